/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Variables that are no piece of an array, in runs on different numbers of ranks. Nothing says
 * which rank's values belong to which, unless there is no choice: where all ranks of a run hold the
 * same bits, as they do of a step's number or of what was reduced over all. Digests tell.
 */
#include "diff/diff.h"

#include <inttypes.h>

/* Roots tell about values where blocks are of one size, or where there is but one. */
static bool same_bits(const crn_var *a, const crn_var *b)
{
    return strcmp(a->spec.type, b->spec.type) == 0 && a->spec.ndims == b->spec.ndims &&
           a->spec.nbytes == b->spec.nbytes && crn_diff_same_cut(a, b) &&
           crn_digest_equal(&a->root, &b->root);
}

/* Has a rank the variable as var is? Otherwise ret says that it has not. */
static bool has_same(diff_side *s, const diff_mark *m, uint32_t rank, const crn_var *var,
                     char ret[CRN_ERR_TEXT])
{
    diff_share share = {0};
    diff_var v;
    bool same = false;
    if (crn_diff_share_open(s, m, rank, &share) < 0) {
        crn_err_prefix("rank %u of '%s': ", rank, s->name);
        snprintf(ret, CRN_ERR_TEXT, "%s", crn_err_peek()->text);
    } else if (!crn_diff_share_find(&share, var->spec.name, &v)) {
        snprintf(ret, CRN_ERR_TEXT, "rank %u of '%s' does not have it, and others have", rank,
                 s->name);
    } else if (!(same = same_bits(v.var, var))) {
        snprintf(
            ret, CRN_ERR_TEXT,
            "it is no global array, the runs have other numbers of ranks, and those of '%s' do "
            "not hold it alike: rank 0 and rank %u",
            s->name, rank);
    }
    crn_diff_share_close(&share);
    return same;
}

bool crn_diff_is_alike(diff_side *s, const diff_mark *m, const crn_var *var, char ret[CRN_ERR_TEXT])
{
    for (uint32_t r = 0; r < m->nranks; r++)
        if (!has_same(s, m, r, var, ret))
            return false;
    return true;
}
