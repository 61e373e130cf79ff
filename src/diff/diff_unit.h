/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A unit of work and what its files share. Inside of diff only.
 */
#ifndef CAIRN_DIFF_UNIT_H
#define CAIRN_DIFF_UNIT_H

#include "diff/diff.h"

typedef struct diff_unit {
    diff_worker *w;
    diff_side *side;              /* two of them */
    const diff_mark *const *mark; /* likewise */
    diff_share share[2];
    diff_share first[2]; /* of rank 0, for units of others if the numbers of ranks differ */
    bool alone[2];       /* the share is this unit's: its trees may be loaded */
    bool lonely;         /* the first side has no shares but this one */
    diff_at at;          /* the variable */
    diff_row row;
    bool seen;              /* blocks of it were looked at, and have been told */
    crn_fields fields;      /* the numbers that a value has, with their bounds */
    bool tolerant;          /* both have trees for a bound that helps: */
    size_t number[2];       /* these */
    char why[CRN_ERR_TEXT]; /* a golden file cannot tell; empty: it can */
} diff_unit;

static inline bool crn_diff_same_ranks(const diff_unit *u)
{
    return u->mark[0]->nranks == u->mark[1]->nranks;
}

/* Which side is a golden file? -1: none. */
static inline int crn_diff_golden_side(const diff_unit *u)
{
    return u->side[0].golden ? 0 : u->side[1].golden ? 1 : -1;
}

static inline bool crn_diff_has_golden(const diff_unit *u)
{
    return crn_diff_golden_side(u) >= 0;
}

/* --- what trees prove ----------------------------------------------------------------------- */

/* Which bounds count for two variables? The row says so afterwards. */
void crn_diff_settle_bound(diff_unit *u, const diff_var v[2]);

/* Which trees help with them? Those of v may be others than the bounds were settled by. */
void crn_diff_choose_trees(diff_unit *u, const diff_var v[2]);

/* Is NaN unlike itself, and can there be any? */
bool crn_diff_minds_nans(const diff_unit *u);

/* Do the roots of trees over the same blocks prove all of a variable equal? */
bool crn_diff_is_proven(const diff_unit *u, const diff_var v[2]);

/* The blocks that trees do not prove equal. */
cairn_status crn_diff_flag(diff_unit *u, const diff_var v[2], crn_tree_delta *ret);

/* --- one variable --------------------------------------------------------------------------- */

/* Compare two variables. same_rank: v[1] is of the second share, which is of the first one's rank.
 * The first is for those of two shares, which are cut alike as far as that can be had. */
cairn_status crn_diff_paired(diff_unit *u, const diff_var v[2]);
cairn_status crn_diff_pair(diff_unit *u, const diff_var v[2], bool same_rank);

/* Why data could not be read, or not all of it: a program that keeps few marks may have dropped one
 * under our hands, which then is not found, and not damaged. */
cairn_status crn_diff_explain(diff_unit *u, cairn_status rc);

/* What the row says when the data that should be looked at cannot be had. */
cairn_status crn_diff_judge_failure(diff_unit *u, cairn_status rc, uint64_t nblocks);

/* How a share is compared with all of the second side. */
typedef cairn_status diff_comparing(diff_worker *w, diff_share *first, diff_share *second, size_t n,
                                    const crn_var_spec *spec, diff_row *row);

/* Compare with what belongs to the share wherever the second side has it: pieces that overlap in
 * the global array, or items. */
cairn_status crn_diff_compare_all(diff_unit *u, const crn_var_spec *spec, diff_comparing *how);

/* Is of some rank's piece less than all in the mark? The row says so then. */
bool crn_diff_is_partly_kept(diff_unit *u, const diff_share *share, uint32_t n, const char *name);

/* Compare a golden file's piece of an array, or this share's, with what the other side has of it in
 * other pieces. */
cairn_status crn_diff_compare_elsewhere(diff_unit *u, const diff_var v[2]);

/* Open a share of a side that has the variable, whichever rank's; false: none has, as far as they
 * can be read. What cannot be read is told by the unit of its own rank. */
bool crn_diff_find_elsewhere(diff_unit *u, int side, const char *name, diff_share *ret,
                             diff_var *ret_var);

/* --- items that are found by their cells or numbers ----------------------------------------- */

/* Are what tells items apart, and with it their order, the same in both shares? */
bool crn_diff_same_keys(diff_unit *u, const crn_var_spec *spec);

/* Are items numbered by a member? Then digests of them tell of their numbers, too. */
bool crn_diff_is_numbered_within(const diff_unit *u, const crn_var_spec *spec);

/* Compare items that do not lie in the same places. */
cairn_status crn_diff_compare_items(diff_unit *u, const diff_var v[2]);

#endif
