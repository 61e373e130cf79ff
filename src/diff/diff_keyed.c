/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Items of a unit that are found by their cells or numbers.
 */
#include "diff/diff_unit.h"

#include <inttypes.h>

/* The variable that tells items apart, of both shares: their numbers or their cells. */
static bool find_keys(const diff_unit *u, const crn_var_spec *spec, diff_var ret[2])
{
    char id[CRN_VAR_NAME + 1], name[CRN_VAR_NAME + 8];
    if (!crn_diff_item_id(spec, id))
        crn_diff_index_name(spec->name, name);
    else
        snprintf(name, sizeof name, "%s", id);
    return crn_diff_share_find(&u->share[0], name, &ret[0]) &&
           crn_diff_share_find(&u->share[1], name, &ret[1]);
}

bool crn_diff_same_keys(diff_unit *u, const crn_var_spec *spec)
{
    diff_var v[2];
    diff_cut made = {0};
    if (!find_keys(u, spec, v) || v[0].var->spec.nbytes != v[1].var->spec.nbytes)
        return false;
    const bool same = crn_diff_cut(u->share, v, &made) == CAIRN_OK &&
                      crn_diff_same_cut(v[0].var, v[1].var) &&
                      crn_digest_equal(&v[0].var->root, &v[1].var->root);
    crn_diff_cut_done(&made);
    return same;
}

bool crn_diff_is_numbered_within(const diff_unit *u, const crn_var_spec *spec)
{
    char id[CRN_VAR_NAME + 1];
    diff_var v;
    return crn_diff_item_id(spec, id) && !crn_diff_share_find(&u->share[0], id, &v);
}

/* How many items there are on both sides. */
static cairn_status count_items(diff_unit *u, const crn_var_spec *spec)
{
    uint64_t n[2];
    for (int k = 0; k < 2; k++)
        CRN_TRY(crn_diff_count_items(&u->side[k], u->mark[k], spec->name, &n[k]));
    if (n[0] != n[1])
        crn_diff_row_judge(&u->row, CAIRN_DIFFERENT,
                           "there are %" PRIu64 " items in '%s' and %" PRIu64 " in '%s'", n[0],
                           u->side[0].name, n[1], u->side[1].name);
    return CAIRN_OK;
}

/* All items of the share are on the second side. That this has no others, and that no two ranks of
 * the first have the same one, is noticed by how many there are and by the sums of their numbers;
 * any unit may be the only one that sees to it. */
static cairn_status check_numbers(diff_unit *u, const crn_var_spec *spec)
{
    uint64_t sum[2];
    if (u->lonely) {
        u->row.numbered = true;
        return CAIRN_OK;
    }
    CRN_TRY(count_items(u, spec));
    for (int k = 0; k < 2; k++)
        CRN_TRY(crn_diff_sum_all_numbers(&u->side[k], u->mark[k], spec, &sum[k]));
    if (sum[0] != sum[1])
        crn_diff_row_judge(&u->row, CAIRN_DIFFERENT,
                           "the items in '%s' and in '%s' are not the same", u->side[0].name,
                           u->side[1].name);
    return CAIRN_OK;
}

/* A golden file does not say which items its digests are of; but it does say how many. */
static cairn_status judge_moved(diff_unit *u, const crn_var_spec *spec)
{
    if (!u->lonely)
        CRN_TRY(crn_diff_judge_failure(u, count_items(u, spec), 0));
    crn_diff_row_judge(&u->row, CAIRN_INCONCLUSIVE,
                       "its items lie in other places in '%s' than in '%s', and a golden file does "
                       "not say which they are: compare with the run itself",
                       u->side[0].name, u->side[1].name);
    return CAIRN_OK;
}

cairn_status crn_diff_compare_items(diff_unit *u, const diff_var v[2])
{
    const crn_var_spec *a = &v[0].var->spec, *b = &v[1].var->spec;
    const char *ncells[2] = {crn_var_attribute(a, "cells"), crn_var_attribute(b, "cells")};
    char id[CRN_VAR_NAME + 1];
    u->row.nblocks = v[0].var->nblocks;
    if (crn_diff_has_golden(u))
        return judge_moved(u, a);
    const bool numbered = crn_diff_item_id(a, id);
    if (!numbered && ncells[0] && ncells[1] &&
        strtoull(ncells[0], NULL, 10) != strtoull(ncells[1], NULL, 10)) {
        crn_diff_row_judge(&u->row, CAIRN_DIFFERENT, "it has %llu cells in '%s' and %llu in '%s'",
                           strtoull(ncells[0], NULL, 10), u->side[0].name,
                           strtoull(ncells[1], NULL, 10), u->side[1].name);
        return CAIRN_OK;
    }
    CRN_TRY(crn_diff_compare_all(u, a, crn_diff_items));
    return numbered ? crn_diff_judge_failure(u, check_numbers(u, a), 0) : CAIRN_OK;
}
