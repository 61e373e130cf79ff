/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Items that each rank has found in the reference by their numbers: has the reference others? The
 * ranks add up how many they have and a sum of their numbers, for each such variable of the
 * reference, which all of them can list.
 */
#include "ckpt/ckpt_session.h"

#include <inttypes.h>

/* What all ranks have of a variable of the reference. */
typedef struct tally {
    uint64_t n, numbers;
} tally;

typedef struct tallies {
    diff_share share; /* of the reference's first rank */
    tally *at;        /* for each of its variables */
    size_t n;
} tallies;

static cairn_status open_tallies(diff_side *side, const diff_mark *mark, tallies *t)
{
    CRN_TRY(crn_diff_share_open(side, mark, 0, &t->share));
    t->n = crn_diff_share_nvars(&t->share);
    return crn_alloc(&t->at, t->n);
}

static bool has_name(const tallies *t, size_t i, const char *name)
{
    return strcmp(crn_diff_share_var(&t->share, i).var->spec.name, name) == 0;
}

/* Add what this rank has. */
static cairn_status add_own(tallies *t, diff_share *mine)
{
    char id[CRN_VAR_NAME + 1];
    diff_var v;
    for (size_t i = 0; i < t->n; i++) {
        const crn_var_spec *spec = &crn_diff_share_var(&t->share, i).var->spec;
        if (!crn_diff_item_id(spec, id) || !crn_diff_share_find(mine, spec->name, &v))
            continue;
        t->at[i].n = v.var->spec.nbytes / v.var->spec.item;
        CRN_TRY(crn_diff_sum_numbers(mine, &v.var->spec, &t->at[i].numbers));
    }
    return CAIRN_OK;
}

/* Hold a row's items, of all ranks, against those of the reference. */
static cairn_status judge(diff_side *side, const diff_mark *mark, const tallies *t, diff_row *row)
{
    size_t i = 0;
    tally there;
    while (i < t->n && !has_name(t, i, row->variable))
        i++;
    if (i == t->n) {
        crn_diff_row_judge(row, CAIRN_INCONCLUSIVE,
                           "all items are in '%s', but whether that has others only cairn diff can "
                           "tell",
                           side->name);
        return CAIRN_OK;
    }
    const crn_var_spec *spec = &crn_diff_share_var(&t->share, i).var->spec;
    CRN_TRY(crn_diff_count_items(side, mark, spec->name, &there.n));
    CRN_TRY(crn_diff_sum_all_numbers(side, mark, spec, &there.numbers));
    if (there.n != t->at[i].n)
        crn_diff_row_judge(row, CAIRN_DIFFERENT,
                           "there are %" PRIu64 " items in this run and %" PRIu64 " in '%s'",
                           t->at[i].n, there.n, side->name);
    else if (there.numbers != t->at[i].numbers)
        crn_diff_row_judge(row, CAIRN_DIFFERENT, "the items are not those of '%s'", side->name);
    return CAIRN_OK;
}

static void judge_rows(diff_side *side, const diff_mark *mark, const tallies *t, diff_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++)
        if (rows->at[i].numbered && judge(side, mark, t, &rows->at[i]) < 0)
            crn_diff_row_judge(&rows->at[i], CAIRN_INCONCLUSIVE, "%s", crn_err_peek()->text);
}

cairn_status crn_reference_items(cairn *c, crn_comm *comm, diff_side *side, const diff_mark *mark,
                                 ckpt_share_fn *open, diff_rows *rows)
{
    tallies t = {0};
    diff_share mine = {0};
    uint64_t numbered = 0;
    for (size_t i = 0; i < rows->n; i++)
        numbered |= rows->at[i].numbered;
    CRN_TRY(crn_comm_allreduce_u64(comm, CRN_REDUCE_MAX, &numbered, 1));
    if (!numbered)
        return CAIRN_OK;
    cairn_status rc = open_tallies(side, mark, &t);
    if (rc == CAIRN_OK)
        rc = open(c, &mine);
    if (rc == CAIRN_OK)
        rc = add_own(&t, &mine);
    crn_mark_free(mine.data);
    rc = crn_comm_agree(comm, rc);
    if (rc < 0)
        t.n = 0; /* on all ranks: rows say that nothing is known */
    else if (t.n > 0)
        rc = crn_comm_allreduce_u64(comm, CRN_REDUCE_SUM, &t.at->n, 2 * t.n);
    judge_rows(side, mark, &t, rows);
    crn_diff_share_close(&t.share);
    free(t.at);
    return rc == CAIRN_EPEER ? rc : CAIRN_OK;
}
