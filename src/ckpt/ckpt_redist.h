/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Coming back with other ranks, or with other shares, than a mark was written with.
 *
 * Design. Every rank looks at the shares of some of the old ranks, and a census lets all ranks know
 * what variables the old ones had. From that each rank plans for itself which stretches of whose
 * variables belong to its memory now, asks for the descriptions of these old ranks' shares alone,
 * and pulls: no block is read that it has no element of.
 */
#ifndef CAIRN_CKPT_REDIST_H
#define CAIRN_CKPT_REDIST_H

#include "ckpt/ckpt_session.h"

/* A restart under way. */
typedef struct crn_restart {
    cairn *c;
    const crn_manifest_mark *mark;
    uint32_t me, nranks, nold;
    CRN_VEC(uint32_t) rank; /* old ranks whose shares are known here, the first ones told of */
    CRN_VEC(crn_mark *) share;
    size_t ntold; /* how many of them this rank tells the others of */
    crn_census past;
    crn_pulls pull;
} crn_restart;

/* The mark's variables become c's. Collective; the same status on all ranks. */
cairn_status crn_redist_load(cairn *c, const crn_manifest_mark *mark, crn_load_stats *ret_stats);

/* The same for one variable, which need not be c's. */
cairn_status crn_redist_read(cairn *c, const crn_manifest_mark *mark, const ckpt_var *v,
                             crn_load_stats *ret_stats);

/* How many elements of a variable would this rank have? Collective. */
cairn_status crn_redist_count(cairn *c, const crn_manifest_mark *mark, const char *name,
                              size_t *ret);

/* How many items are in cells? Collective. */
cairn_status crn_redist_count_cells(cairn *c, const crn_manifest_mark *mark, const char *name,
                                    size_t ncells, const uint64_t *cell, uint64_t *ret);

/* Is a variable of this rank what the rank had in its share of a mark? Then plan to bring that. */
bool crn_ckpt_stays(const ckpt_var *v, const crn_mark *share);
cairn_status crn_ckpt_pull_own(const ckpt_var *v, const crn_mark *share, uint32_t rank,
                               crn_pulls *ret);

/* Pull all. Collective; each rank has its own list, which may be empty. As crn_vault_load. */
cairn_status crn_pulls_run(crn_pulls *p, crn_comm *comm, crn_vault *vault,
                           const crn_manifest_mark *mark, crn_load_stats *ret_stats);

/* --- inside ------------------------------------------------------------------------------- */

/* Check a variable of c and plan what to pull for it: all layouts but items in cells. */
cairn_status crn_restart_plan(crn_restart *t, const ckpt_var *v);

/* The records of a variable, which must be there and be like it in type and layout. */
cairn_status crn_restart_records(const crn_restart *t, const ckpt_var *v,
                                 const crn_owner_record *const **ret, size_t *ret_n);

/* Where this rank's share of a list begins among the items of all ranks, and how many it has. */
void crn_restart_split(const crn_restart *t, const crn_owner_record *const *r, size_t n,
                       uint64_t *ret_first, uint64_t *ret_count);

/*
 * Fill in where the items of n cells of a variable lie; numbers are given. Collective (name).
 */
cairn_status crn_restart_find_cells(crn_restart *t, const char *name, crn_cell *want, size_t n);

/* Plan what to pull for all items in cells. Collective; results may differ between ranks. */
cairn_status crn_restart_plan_cells(crn_restart *t);

#endif
