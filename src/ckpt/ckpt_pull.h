/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bringing stretches of old ranks' variables from a mark to where they belong now. Blocks that
 * belong to one place as a whole are read straight to it; of the others, what is wanted is copied
 * from memory of a fixed size, in as many rounds as it takes.
 */
#ifndef CAIRN_CKPT_PULL_H
#define CAIRN_CKPT_PULL_H

#include "ckpt/ckpt_box.h"
#include "level/level.h"

typedef struct crn_pull {
    uint32_t rank;         /* the old one, */
    const char *name;      /* and its variable */
    const crn_mark *share; /* of that rank, which whoever runs the pulls finds, */
    const crn_var *var;    /* and the variable in it */
    crn_stretches at;      /* the stretch that is being pulled, in elements of the variable, */
    uint64_t done;         /* and how much of it has been, in bytes */
    unsigned char *to;     /* what the stretches' places are counted from */
} crn_pull;

typedef CRN_VEC(crn_pull) crn_pulls;

/* n elements of a variable, from number first on; goes on with the pull before where that ends. */
cairn_status crn_pulls_add_range(crn_pulls *p, uint32_t rank, const char *name, uint32_t item,
                                 uint64_t first, uint64_t n, unsigned char *to);

/* The box that a piece has in common with memory that fills another one; in far indices. The piece
 * begins with element number first of the variable. */
cairn_status crn_pulls_add_box(crn_pulls *p, uint32_t rank, const char *name, uint64_t first,
                               const crn_box *common, const crn_box *piece, const crn_box *memory,
                               unsigned char *to);

/* Pull all. Collective; each rank has its own list, which may be empty. As crn_vault_load. */
cairn_status crn_pulls_run(crn_pulls *p, crn_comm *comm, crn_vault *vault,
                           const crn_manifest_mark *mark, crn_load_stats *ret_stats);

#endif
