/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One variable of a unit: what has to be looked at beyond what trees prove, and how.
 */
#include "diff/diff_unit.h"

#include <inttypes.h>

/* What a read costs beside its bytes, as so many more. By bench_compare: scattered blocks of 64 KiB
 * are worth reading alone until some two thirds of them are flagged, those of 4 KiB until a fifth.
 */
static uint64_t read_cost(uint32_t block)
{
    return (16 << 10) + block / 4;
}

/* --- variables that are cut in the same way ------------------------------------------------- */

static bool same_dims(uint32_t n, const uint64_t *a, const uint64_t *b)
{
    return n == 0 || memcmp(a, b, n * sizeof *a) == 0;
}

bool crn_diff_same_place(const crn_var_spec *a, const crn_var_spec *b)
{
    return a->ndims == b->ndims && a->nbytes == b->nbytes &&
           same_dims(a->ndims, a->global, b->global) && same_dims(a->ndims, a->offset, b->offset) &&
           same_dims(a->ndims, a->count, b->count);
}

cairn_status crn_diff_explain(diff_unit *u, cairn_status rc)
{
    const crn_err why = *crn_err_peek();
    const bool partly = rc == CAIRN_OK && u->row.verdict == CAIRN_INCONCLUSIVE;
    if (!partly && rc != CAIRN_ENOTFOUND && rc != CAIRN_ECORRUPT && rc != CAIRN_EMISMATCH)
        return rc;
    for (int k = 0; k < 2; k++) {
        if (!crn_diff_has_dropped(&u->side[k], u->mark[k]))
            continue;
        if (partly) /* what is told instead is less grave */
            u->row.verdict = CAIRN_SAME;
        CRN_FAIL_IF(u->side[k].source, CAIRN_ENOTFOUND, "'%s' was dropped while it was read",
                    u->side[k].name);
        return crn_fail(CAIRN_ENOTFOUND,
                        "mark %" PRIu64 " of '%s' went while it was read: its program keeps few "
                        "(keep.global)",
                        u->mark[k]->version, u->side[k].name);
    }
    return partly ? CAIRN_OK : crn_err_give(&why);
}

cairn_status crn_diff_judge_failure(diff_unit *u, cairn_status rc, uint64_t nblocks)
{
    switch (rc) {
    case CAIRN_ENOTFOUND:
        if (u->why[0])
            crn_diff_row_judge(&u->row, CAIRN_INCONCLUSIVE, "%s", u->why);
        crn_diff_row_judge(&u->row, CAIRN_UNPROVEN,
                           "%" PRIu64 " block%s of rank %u %s not proven equal: %s", nblocks,
                           nblocks == 1 ? "" : "s", u->share[0].rank, nblocks == 1 ? "is" : "are",
                           crn_err_peek()->text);
        return CAIRN_OK;
    case CAIRN_ECORRUPT:
    case CAIRN_EIO:
    case CAIRN_EMISMATCH:
    case CAIRN_EUNSUPPORTED:
        crn_diff_row_judge(&u->row, CAIRN_INCONCLUSIVE, "%s", crn_err_peek()->text);
        return CAIRN_OK;
    default:
        return rc;
    }
}

/* Would scattered reads take longer than reading all? Blocks in a row are one read. What fits
 * into memory takes no time to speak of. */
static bool is_worth_streaming(const crn_var *v, const crn_tree_delta *d)
{
    uint64_t nreads = 0;
    if (v->spec.nbytes <= DIFF_MEMORY)
        return false;
    for (size_t i = 0; i < d->leaf.n; i++)
        nreads += i == 0 || d->leaf.at[i] != d->leaf.at[i - 1] + 1;
    return d->leaf.n * v->spec.block + nreads * read_cost(v->spec.block) >
           v->nblocks * v->spec.block;
}

/* Look at flagged blocks; where that is no longer worth it, or nothing is known (d is NULL), at all
 * of them. */
static cairn_status look(diff_unit *u, const crn_var *v, const crn_tree_delta *d)
{
    uint64_t *block;
    const bool stream = !d || is_worth_streaming(v, d);
    const size_t n = stream ? v->nblocks : d->leaf.n;
    diff_share *share[2] = {&u->share[0], &u->share[1]};
    CRN_TRY(crn_alloc(&block, n));
    for (size_t i = 0; i < n; i++)
        block[i] = stream ? i : d->leaf.at[i];
    cairn_status rc = crn_diff_verify(u->w, share, &v->spec, block, n, &u->row);
    u->seen = true;
    /* blocks that were read only on the way are not false alarms */
    u->row.nfalse -= CRN_MIN(u->row.nfalse, n - CRN_MIN(n, u->row.nflagged));
    free(block);
    return rc;
}

/* Let a golden file prove of flagged blocks what it can. */
static cairn_status prove(diff_unit *u, const diff_var v[2], crn_tree_delta *d)
{
    diff_share *share[2] = {&u->share[0], &u->share[1]};
    bool used = false;
    cairn_status rc = CAIRN_OK;
    if (crn_diff_golden_side(u) >= 0 && d->leaf.n > 0)
        rc = crn_diff_prove(u->w, share, crn_diff_golden_side(u), v, NULL, d, &u->row, &used);
    if (used)
        u->why[0] = 0; /* a common bound is not missed */
    return rc;
}

static cairn_status compare_blocks(diff_unit *u, const diff_var v[2])
{
    crn_tree_delta d = {0};
    cairn_status rc = CAIRN_OK;
    const uint64_t nblocks = v[0].var->nblocks;
    u->row.nblocks = u->row.nflagged = nblocks;
    bool told = false;
    if (!u->w->ask->direct) {
        rc = crn_diff_flag(u, v, &d);
        told = rc == CAIRN_OK;
        u->row.nflagged = told ? d.leaf.n : nblocks;
        if (told)
            rc = prove(u, v, &d);
    }
    if (rc == CAIRN_ECORRUPT && !told) /* of trees or a table: data may do, or says the same */
        rc = CAIRN_OK;
    if (rc == CAIRN_OK && (told ? d.leaf.n : nblocks) > 0)
        rc = look(u, v[0].var, told ? &d : NULL);
    rc = crn_diff_explain(u, rc);
    if (rc == CAIRN_ENOTFOUND && u->row.verdict < CAIRN_DIFFERENT)
        crn_diff_row_doubt(&u->row, &v[0].var->spec, u->share[0].rank,
                           (d.leaf.n > 0 ? d.leaf.at[0] : 0) * v[0].var->spec.block /
                               v[0].var->spec.item);
    const uint64_t nleft = d.leaf.n > 0 ? d.leaf.n : u->row.nflagged;
    crn_tree_delta_done(&d);
    return crn_diff_judge_failure(u, rc, nleft);
}

/* --- variables that are not ----------------------------------------------------------------- */

bool crn_diff_is_partly_kept(diff_unit *u, const diff_share *share, uint32_t n, const char *name)
{
    diff_var v;
    for (uint32_t r = 0; r < n; r++)
        if (crn_diff_share_find(&share[r], name, &v) && crn_kept_line(v.var->spec.attributes)) {
            crn_diff_row_judge(&u->row, CAIRN_INCONCLUSIVE,
                               "not all of it is kept on rank %u in '%s'", share[r].rank,
                               u->side[1].name);
            return true;
        }
    return false;
}

cairn_status crn_diff_compare_all(diff_unit *u, const crn_var_spec *spec, diff_comparing *how)
{
    const uint32_t n = u->mark[1]->nranks;
    diff_share *other;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_alloc(&other, n));
    for (uint32_t r = 0; r < n; r++)
        CRN_TRY_OUT(rc, crn_diff_share_open(&u->side[1], u->mark[1], r, &other[r]));
    if (crn_diff_is_partly_kept(u, other, n, spec->name))
        goto out;
    CRN_TRY_OUT(rc, how(u->w, &u->share[0], other, n, spec, &u->row));
    u->seen = true;
out:
    for (uint32_t r = 0; r < n; r++)
        crn_diff_share_close(&other[r]);
    free(other);
    return crn_diff_judge_failure(u, crn_diff_explain(u, rc), u->row.nblocks);
}

static cairn_status compare_ranges(diff_unit *u, const crn_var_spec *spec)
{
    cairn_status rc = crn_diff_ranges(u->w, &u->share[0], &u->share[1], 1, spec, &u->row);
    u->seen = rc == CAIRN_OK;
    return crn_diff_judge_failure(u, crn_diff_explain(u, rc), u->row.nblocks);
}

/* Can variables at the same place be compared block by block? What is one block is so whatever the
 * size of blocks. */
static bool is_blockwise(const diff_var v[2])
{
    const crn_var *a = v[0].var, *b = v[1].var;
    return crn_diff_same_cut(a, b) && a->spec.block % a->spec.item == 0;
}

/* A variable of the ranks' own, of runs on different numbers of ranks: what all ranks of each run
 * hold alike is compared as what their first ranks have. A size that depends on the number of ranks
 * says that it is the ranks' own after all. */
static cairn_status compare_alike(diff_unit *u, const diff_var v[2])
{
    const crn_var_spec *a = &v[0].var->spec, *b = &v[1].var->spec;
    char why[CRN_ERR_TEXT];
    u->row.alike = true;
    for (int k = u->lonely; k < 2; k++) {
        if (crn_diff_is_alike(&u->side[k], u->mark[k], v[k].var, why))
            continue;
        crn_diff_row_judge(&u->row, CAIRN_INCONCLUSIVE, "%s", why);
        return CAIRN_OK;
    }
    if (crn_diff_same_place(a, b) && crn_diff_is_proven(u, v))
        return CAIRN_OK;
    if (crn_diff_same_place(a, b))
        return is_blockwise(v) ? compare_blocks(u, v) : compare_ranges(u, a);
    crn_diff_row_judge(&u->row, CAIRN_INCONCLUSIVE,
                       "it is no global array, and each rank has %" PRIu64 " values in '%s' and "
                       "%" PRIu64 " in '%s'",
                       a->nbytes / a->item, u->side[0].name, b->nbytes / b->item, u->side[1].name);
    return CAIRN_OK;
}

static cairn_status compare_shapes(diff_unit *u, const diff_var v[2], bool same_rank)
{
    const crn_var_spec *a = &v[0].var->spec, *b = &v[1].var->spec;
    char text[CRN_ERR_TEXT];
    u->row.nblocks = v[0].var->nblocks;
    if (!crn_diff_same_ranks(u) && a->ndims == 0 && b->ndims == 0)
        return compare_alike(u, v);
    if (crn_diff_same_place(a, b) && (same_rank || a->ndims == 0))
        return compare_ranges(u, a);
    const bool same_array =
        a->ndims > 0 && a->ndims == b->ndims && same_dims(a->ndims, a->global, b->global);
    if (same_array && crn_diff_has_golden(u))
        return crn_diff_compare_elsewhere(u, v);
    if (same_array)
        return crn_diff_compare_all(u, a, crn_diff_ranges);
    crn_diff_why_shapes(u->side, u->share[0].rank, v, text);
    crn_diff_row_judge(&u->row, CAIRN_DIFFERENT, "%s", text);
    return CAIRN_OK;
}

/* --- all of them ---------------------------------------------------------------------------- */

/*
 * Programs leave out of marks what they do not need: that is not compared. False: the row says so.
 * What both have in the same places is compared as ever, since the rest is zeros in both.
 */
static bool is_kept_alike(diff_unit *u, const diff_var v[2], bool same_rank)
{
    const char *line[2];
    size_t n[2];
    for (int k = 0; k < 2; k++) {
        line[k] = crn_kept_line(v[k].var->spec.attributes);
        n[k] = line[k] ? strcspn(line[k], "\n") : 0;
    }
    const bool alike = n[0] == n[1] && (n[0] == 0 || memcmp(line[0], line[1], n[0]) == 0);
    if (alike && n[0] > 0 && crn_kept_is_none(line[0])) {
        snprintf(u->row.text, sizeof u->row.text, "not kept");
        return false;
    }
    if (alike && (n[0] == 0 || same_rank))
        return true;
    for (int k = 0; k < 2; k++)
        if (n[k] > 0 && crn_kept_is_none(line[k]))
            crn_diff_row_judge(&u->row, CAIRN_INCONCLUSIVE, "not kept on rank %u in '%s'",
                               u->share[k].rank, u->side[k].name);
    crn_diff_row_judge(&u->row, CAIRN_INCONCLUSIVE, "the runs keep other parts of it on rank %u",
                       u->share[0].rank);
    return false;
}

/* Do digests that are equal within the bounds of the trees tell that numbers of items are equal? A
 * bound below 1 lets no integers differ. */
static bool keeps_numbers(const diff_unit *u, const diff_var v[2])
{
    crn_fields f = {0};
    if (!u->tolerant)
        return true;
    const crn_trees_var *t = v[0].trees;
    crn_diff_tree_fields(&t->var.spec, &t->bound[u->number[0]], crn_diff_members(t), &f);
    bool keeps = true;
    for (size_t i = 0; i < f.n; i++)
        keeps &= (f.at[i].kind != CRN_VALUE_INT && f.at[i].kind != CRN_VALUE_UINT) ||
                 f.at[i].bound.absolute < 1;
    crn_vec_done(&f);
    return keeps;
}

/* Do values at the same place belong together? */
static bool is_placed(diff_unit *u, const diff_var v[2])
{
    const crn_var_spec *a = &v[0].var->spec;
    if (!crn_diff_is_keyed(a) || !crn_diff_is_keyed(&v[1].var->spec))
        return true;
    return crn_diff_same_keys(u, a) ||
           (crn_diff_has_golden(u) && keeps_numbers(u, v) && crn_diff_is_numbered_within(u, a));
}

/* Compare what is of the same type and kept alike. */
static cairn_status compare_values(diff_unit *u, const diff_var v[2], bool same_rank)
{
    const crn_var_spec *a = &v[0].var->spec, *b = &v[1].var->spec;
    const bool here = same_rank && crn_diff_same_place(a, b);
    const bool placed = here && is_placed(u, v);
    u->row.nblocks = here ? v[0].var->nblocks : 0;
    if ((placed || (here && crn_diff_is_numbered_within(u, a) && keeps_numbers(u, v))) &&
        crn_diff_is_proven(u, v))
        return CAIRN_OK;
    if (placed && is_blockwise(v))
        return compare_blocks(u, v);
    if (!placed && crn_diff_is_keyed(a) && crn_diff_is_keyed(b))
        return crn_diff_compare_items(u, v);
    return compare_shapes(u, v, same_rank);
}

/* Compare variables whose bounds are settled. */
static cairn_status compare_settled(diff_unit *u, const diff_var v[2], bool same_rank)
{
    const crn_var_spec *a = &v[0].var->spec, *b = &v[1].var->spec;
    u->row.nvalues = a->nbytes / a->item;
    crn_diff_choose_trees(u, v);
    if (strcmp(a->type, b->type) != 0) {
        crn_diff_row_judge(&u->row, CAIRN_DIFFERENT, "its type is %s in '%s' and %s in '%s'",
                           a->type, u->side[0].name, b->type, u->side[1].name);
        return CAIRN_OK;
    }
    if (!is_kept_alike(u, v, same_rank))
        return CAIRN_OK;
    if (crn_diff_has_golden(u))
        crn_diff_why_golden(u->side, u->mark, v,
                            crn_diff_asks_bound(u->w->ask, a->name) ? &u->row.bound : NULL,
                            u->tolerant, u->why);
    return compare_values(u, v, same_rank);
}

cairn_status crn_diff_pair(diff_unit *u, const diff_var v[2], bool same_rank)
{
    crn_diff_settle_bound(u, v);
    return compare_settled(u, v, same_rank);
}

cairn_status crn_diff_paired(diff_unit *u, const diff_var v[2])
{
    diff_var now[2] = {v[0], v[1]};
    diff_cut made = {0};
    if (!crn_diff_same_ranks(u))
        return crn_diff_pair(u, v, false);
    crn_diff_settle_bound(u, v); /* by the trees of both, which cutting may replace */
    cairn_status rc = crn_diff_cut(u->share, now, &made);
    if (rc == CAIRN_OK)
        rc = compare_settled(u, now, true);
    else
        rc = crn_diff_judge_failure(u, crn_diff_explain(u, rc), v[0].var->nblocks);
    u->row.read_bytes += made.is_made ? v[0].var->spec.nbytes : 0;
    crn_diff_cut_done(&made);
    return rc;
}
