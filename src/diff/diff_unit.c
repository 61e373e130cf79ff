/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One unit of work: a rank's piece of each variable of a mark, held against the second side. Here
 * it is decided what trees prove, and what has to be looked at.
 */
#include "diff/diff.h"

#include <inttypes.h>

/* What a read costs beside its bytes, as so many more. By bench_compare: scattered blocks of 64 KiB
 * are worth reading alone until some two thirds of them are flagged, those of 4 KiB until a fifth.
 */
static uint64_t read_cost(uint32_t block)
{
    return (16 << 10) + block / 4;
}

typedef struct unit {
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
} unit;

/* --- what trees tell ------------------------------------------------------------------------ */

static bool same_bound(const crn_bound *a, const crn_bound *b)
{
    return a->absolute == b->absolute && a->relative == b->relative;
}

/* Do numbers that agree within a bound, all of a value's, agree as is asked? */
static bool implies(const crn_bound *b, const crn_fields *asked)
{
    for (size_t i = 0; i < asked->n; i++)
        if (asked->at[i].kind != CRN_VALUE_OTHER && !crn_bound_implies(b, &asked->at[i].bound))
            return false;
    return true;
}

/*
 * The bound to compare with, and the trees that can help: those of the loosest bound that both
 * sides have and that implies the one asked for. Equal digests then prove more than was asked.
 */
static bool choose_bound(const crn_fields *asked, const diff_var v[2], crn_bound *bound,
                         size_t number[2])
{
    if (!v[0].trees || !v[1].trees)
        return false;
    for (size_t i = 0; i < v[0].trees->nbounds; i++) {
        const crn_bound *b = &v[0].trees->bound[i];
        if (asked && !implies(b, asked))
            continue;
        for (size_t k = 0; k < v[1].trees->nbounds; k++) {
            if (!same_bound(b, &v[1].trees->bound[k]))
                continue;
            number[0] = i;
            number[1] = k;
            if (!asked)
                *bound = *b;
            return true;
        }
    }
    return false;
}

static bool has_floats(const crn_fields *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->at[i].kind == CRN_VALUE_F32 || f->at[i].kind == CRN_VALUE_F64)
            return true;
    return false;
}

/* Is NaN unlike itself, and can there be any? */
static bool minds_nans(const unit *u)
{
    return u->w->ask->nan_differs && has_floats(&u->fields);
}

/* The exact tree of a variable: as kept, or made from the block table of its part. */
static cairn_status exact_tree(unit *u, int k, const diff_var *v, crn_tree *made,
                               const crn_tree **ret)
{
    crn_var *var;
    crn_digest *leaf;
    if (v->trees && (v->trees->loaded ||
                     (u->alone[k] && crn_trees_load(u->share[k].trees, u->share[k].described,
                                                    v->trees) == CAIRN_OK))) {
        *ret = &v->trees->exact;
        return CAIRN_OK;
    }
    CRN_TRY(crn_diff_share_data(&u->share[k], v->var->spec.name, &var));
    CRN_FAIL_IF(!crn_diff_same_cut(v->var, var), CAIRN_ECORRUPT,
                "the trees of rank %u in '%s' cannot be read, and its blocks have another size",
                u->share[k].rank, u->side[k].name);
    CRN_TRY(crn_mark_table(u->share[k].part, u->share[k].data, var));
    CRN_TRY(crn_alloc(&leaf, var->nblocks));
    for (uint64_t i = 0; i < var->nblocks; i++)
        leaf[i] = var->table[i].digest;
    cairn_status rc = crn_tree_build(leaf, var->nblocks, made);
    free(leaf);
    *ret = made;
    return rc;
}

static cairn_status exact_delta(unit *u, const diff_var v[2], crn_tree_delta *ret)
{
    crn_tree made[2] = {{0}};
    const crn_tree *tree[2];
    cairn_status rc = exact_tree(u, 0, &v[0], &made[0], &tree[0]);
    if (rc == CAIRN_OK)
        rc = exact_tree(u, 1, &v[1], &made[1], &tree[1]);
    if (rc == CAIRN_OK)
        rc = crn_tree_diff(tree[0], tree[1], DIFF_START_WIDTH, ret);
    crn_tree_done(&made[0]);
    crn_tree_done(&made[1]);
    return rc;
}

/* Keep of the leaves those that are in other, too; both ascend. */
static void intersect(crn_tree_delta *d, const crn_tree_delta *other)
{
    size_t n = 0, k = 0;
    for (size_t i = 0; i < d->leaf.n; i++) {
        while (k < other->leaf.n && other->leaf.at[k] < d->leaf.at[i])
            k++;
        if (k < other->leaf.n && other->leaf.at[k] == d->leaf.at[i])
            d->leaf.at[n++] = d->leaf.at[i];
    }
    d->leaf.n = n;
}

static bool are_loaded(const diff_var v[2])
{
    return v[0].trees && v[1].trees && v[0].trees->loaded && v[1].trees->loaded;
}

/* With NaN unlike NaN, blocks that have one are flagged whatever their digests say; where nobody
 * has looked for NaNs, all blocks are. */
static cairn_status flag_nans(const diff_var v[2], crn_tree_delta *d)
{
    const uint64_t n = v[0].var->nblocks;
    const bool known = are_loaded(v) && v[0].trees->nbounds > 0 && v[1].trees->nbounds > 0;
    size_t *all, kept = 0, k = 0;
    CRN_TRY(crn_alloc(&all, n));
    for (uint64_t i = 0; i < n; i++) {
        while (k < d->leaf.n && d->leaf.at[k] < i)
            k++;
        if (!known || (k < d->leaf.n && d->leaf.at[k] == i) || crn_trees_has_nan(v[0].trees, i) ||
            crn_trees_has_nan(v[1].trees, i))
            all[kept++] = i;
    }
    free(d->leaf.at);
    d->leaf.at = all;
    d->leaf.n = kept;
    d->leaf.cap = n;
    return CAIRN_OK;
}

/* The blocks that trees do not prove equal. */
static cairn_status flag(unit *u, const diff_var v[2], crn_tree_delta *ret)
{
    crn_tree_delta d = {0}, t = {0};
    cairn_status rc = CAIRN_OK;
    const bool nans = minds_nans(u);
    if (!nans && crn_digest_equal(&v[0].var->root, &v[1].var->root))
        goto out; /* all of the variable, without reading a tree */
    CRN_TRY_OUT(rc, exact_delta(u, v, &d));
    if (u->tolerant && are_loaded(v)) {
        CRN_TRY_OUT(rc, crn_tree_diff(&v[0].trees->tolerant[u->number[0]],
                                      &v[1].trees->tolerant[u->number[1]], DIFF_START_WIDTH, &t));
        intersect(&d, &t);
    }
    if (nans)
        CRN_TRY_OUT(rc, flag_nans(v, &d));
out:
    crn_tree_delta_done(&t);
    if (rc < 0)
        crn_tree_delta_done(&d);
    else
        *ret = d;
    return rc;
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

/* Why data could not be read, or not all of it: a program that keeps few marks may have dropped one
 * under our hands, which then is not found, and not damaged. */
static cairn_status explain(unit *u, cairn_status rc)
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
        return crn_fail(CAIRN_ENOTFOUND,
                        "mark %" PRIu64 " of '%s' went while it was read: its program keeps few "
                        "(keep.global)",
                        u->mark[k]->version, u->side[k].name);
    }
    return partly ? CAIRN_OK : crn_err_give(&why);
}

/* What the row says when the data that should be looked at cannot be had. */
static cairn_status judge_failure(unit *u, cairn_status rc, uint64_t nblocks)
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
static cairn_status look(unit *u, const crn_var *v, const crn_tree_delta *d)
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

/* Which side is a golden file? -1: none. */
static int golden_of(const unit *u)
{
    return u->side[0].golden ? 0 : u->side[1].golden ? 1 : -1;
}

/* Let a golden file prove of flagged blocks what it can. */
static cairn_status prove(unit *u, const diff_var v[2], crn_tree_delta *d)
{
    diff_share *share[2] = {&u->share[0], &u->share[1]};
    bool used = false;
    cairn_status rc = CAIRN_OK;
    if (golden_of(u) >= 0 && d->leaf.n > 0)
        rc = crn_diff_prove(u->w, share, golden_of(u), v, d, &u->row, &used);
    if (used)
        u->why[0] = 0; /* a common bound is not missed */
    return rc;
}

static cairn_status compare_blocks(unit *u, const diff_var v[2])
{
    crn_tree_delta d = {0};
    cairn_status rc = CAIRN_OK;
    const uint64_t nblocks = v[0].var->nblocks;
    u->row.nblocks = u->row.nflagged = nblocks;
    bool told = false;
    if (!u->w->ask->direct) {
        rc = flag(u, v, &d);
        told = rc == CAIRN_OK;
        u->row.nflagged = told ? d.leaf.n : nblocks;
        if (told)
            rc = prove(u, v, &d);
    }
    if (rc == CAIRN_ECORRUPT && !told) /* of trees or a table: data may do, or says the same */
        rc = CAIRN_OK;
    if (rc == CAIRN_OK && (told ? d.leaf.n : nblocks) > 0)
        rc = look(u, v[0].var, told ? &d : NULL);
    rc = explain(u, rc);
    if (rc == CAIRN_ENOTFOUND && u->row.verdict < CAIRN_DIFFERENT)
        crn_diff_row_doubt(&u->row, &v[0].var->spec, u->share[0].rank,
                           (d.leaf.n > 0 ? d.leaf.at[0] : 0) * v[0].var->spec.block /
                               v[0].var->spec.item);
    const uint64_t nleft = d.leaf.n > 0 ? d.leaf.n : u->row.nflagged;
    crn_tree_delta_done(&d);
    return judge_failure(u, rc, nleft);
}

/* --- variables that are not ----------------------------------------------------------------- */

/* Is of some rank's piece less than all in the mark? The row says so then. */
static bool is_partly_kept(unit *u, const diff_share *share, uint32_t n, const char *name)
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

/* How a share is compared with all of the second side. */
typedef cairn_status comparing(diff_worker *w, diff_share *first, diff_share *second, size_t n,
                               const crn_var_spec *spec, diff_row *row);

/* Compare with what belongs to the share wherever the second side has it: pieces that overlap in
 * the global array, or items. */
static cairn_status compare_all(unit *u, const crn_var_spec *spec, comparing *how)
{
    const uint32_t n = u->mark[1]->nranks;
    diff_share *other;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_alloc(&other, n));
    for (uint32_t r = 0; r < n; r++)
        CRN_TRY_OUT(rc, crn_diff_share_open(&u->side[1], u->mark[1], r, &other[r]));
    if (is_partly_kept(u, other, n, spec->name))
        goto out;
    CRN_TRY_OUT(rc, how(u->w, &u->share[0], other, n, spec, &u->row));
    u->seen = true;
out:
    for (uint32_t r = 0; r < n; r++)
        crn_diff_share_close(&other[r]);
    free(other);
    return judge_failure(u, explain(u, rc), u->row.nblocks);
}

static cairn_status compare_ranges(unit *u, const crn_var_spec *spec)
{
    cairn_status rc = crn_diff_ranges(u->w, &u->share[0], &u->share[1], 1, spec, &u->row);
    u->seen = rc == CAIRN_OK;
    return judge_failure(u, explain(u, rc), u->row.nblocks);
}

/* Do the roots of trees over the same blocks prove all of a variable equal? */
static bool is_proven(const unit *u, const diff_var v[2])
{
    if (v[0].var->spec.block != v[1].var->spec.block || minds_nans(u) || u->w->ask->direct)
        return false;
    return crn_digest_equal(&v[0].var->root, &v[1].var->root) ||
           (u->tolerant &&
            crn_digest_equal(&v[0].trees->root[u->number[0]], &v[1].trees->root[u->number[1]]));
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
static cairn_status compare_alike(unit *u, const diff_var v[2])
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
    if (crn_diff_same_place(a, b) && is_proven(u, v))
        return CAIRN_OK;
    if (crn_diff_same_place(a, b))
        return is_blockwise(v) ? compare_blocks(u, v) : compare_ranges(u, a);
    crn_diff_row_judge(&u->row, CAIRN_INCONCLUSIVE,
                       "it is no global array, and each rank has %" PRIu64 " values in '%s' and "
                       "%" PRIu64 " in '%s'",
                       a->nbytes / a->item, u->side[0].name, b->nbytes / b->item, u->side[1].name);
    return CAIRN_OK;
}

static bool same_ranks(const unit *u)
{
    return u->mark[0]->nranks == u->mark[1]->nranks;
}

/* Open a share of the other side that has the variable, whichever rank's; false: none has, as far
 * as they can be read. What cannot be read is told by the unit of its own rank. */
static bool find_elsewhere(unit *u, int side, const char *name, diff_share *ret, diff_var *ret_var)
{
    for (uint32_t r = 0; r < u->mark[side]->nranks; r++) {
        if (crn_diff_share_open(&u->side[side], u->mark[side], r, ret) == CAIRN_OK &&
            crn_diff_share_find(ret, name, ret_var))
            return true;
        crn_diff_share_close(ret);
    }
    return false;
}

/* --- items that are found by their cells or numbers ----------------------------------------- */

static bool has_golden(const unit *u)
{
    return u->side[0].golden || u->side[1].golden;
}

/* A golden file does not say which cells its digests are of. */
static bool is_keyed(const unit *u, const crn_var_spec *spec)
{
    return crn_diff_is_keyed(spec) && !has_golden(u);
}

/* Are what tells items apart, and with it their order, the same in both shares? */
static bool same_keys(const unit *u, const crn_var_spec *spec)
{
    char id[CRN_VAR_NAME + 1], name[CRN_VAR_NAME + 8];
    diff_var a, b;
    if (!crn_diff_item_id(spec, id))
        crn_diff_index_name(spec->name, name);
    else
        snprintf(name, sizeof name, "%s", id);
    const bool found =
        crn_diff_share_find(&u->share[0], name, &a) && crn_diff_share_find(&u->share[1], name, &b);
    return found && crn_diff_same_cut(a.var, b.var) && a.var->spec.nbytes == b.var->spec.nbytes &&
           crn_digest_equal(&a.var->root, &b.var->root);
}

/* Are items numbered by a member? Then digests of them tell of their numbers, too. */
static bool is_numbered_within(const unit *u, const crn_var_spec *spec)
{
    char id[CRN_VAR_NAME + 1];
    diff_var v;
    return crn_diff_item_id(spec, id) && !crn_diff_share_find(&u->share[0], id, &v);
}

/* Has this share the variable first of all of its side? */
static bool is_first_with(unit *u, const char *name)
{
    diff_share other = {0};
    diff_var v;
    const bool found = find_elsewhere(u, 0, name, &other, &v);
    const bool first = !found || other.rank == u->share[0].rank;
    crn_diff_share_close(&other);
    return first;
}

/* Numbers that the first side does not have are noticed by how many there are. */
static cairn_status count_items(unit *u, const crn_var_spec *spec)
{
    uint64_t n[2];
    if (u->lonely) {
        crn_diff_row_judge(&u->row, CAIRN_INCONCLUSIVE,
                           "all items of rank %u are in '%s', but whether that has others only "
                           "cairn diff can tell",
                           u->share[0].rank, u->side[1].name);
        return CAIRN_OK;
    }
    if (!is_first_with(u, spec->name))
        return CAIRN_OK;
    for (int k = 0; k < 2; k++)
        CRN_TRY(crn_diff_count_items(&u->side[k], u->mark[k], spec->name, &n[k]));
    if (n[0] != n[1])
        crn_diff_row_judge(&u->row, CAIRN_DIFFERENT,
                           "there are %" PRIu64 " items in '%s' and %" PRIu64 " in '%s'", n[0],
                           u->side[0].name, n[1], u->side[1].name);
    return CAIRN_OK;
}

static cairn_status compare_items(unit *u, const diff_var v[2])
{
    const crn_var_spec *a = &v[0].var->spec, *b = &v[1].var->spec;
    const char *ncells[2] = {crn_var_attribute(a, "cells"), crn_var_attribute(b, "cells")};
    char id[CRN_VAR_NAME + 1];
    u->row.nblocks = v[0].var->nblocks;
    const bool numbered = crn_diff_item_id(a, id);
    if (!numbered && ncells[0] && ncells[1] &&
        strtoull(ncells[0], NULL, 10) != strtoull(ncells[1], NULL, 10)) {
        crn_diff_row_judge(&u->row, CAIRN_DIFFERENT, "it has %llu cells in '%s' and %llu in '%s'",
                           strtoull(ncells[0], NULL, 10), u->side[0].name,
                           strtoull(ncells[1], NULL, 10), u->side[1].name);
        return CAIRN_OK;
    }
    CRN_TRY(compare_all(u, a, crn_diff_items));
    return numbered ? judge_failure(u, count_items(u, a), 0) : CAIRN_OK;
}

static cairn_status compare_shapes(unit *u, const diff_var v[2], bool same_rank)
{
    const crn_var_spec *a = &v[0].var->spec, *b = &v[1].var->spec;
    char text[CRN_ERR_TEXT];
    u->row.nblocks = v[0].var->nblocks;
    if (!same_ranks(u) && a->ndims == 0 && b->ndims == 0)
        return compare_alike(u, v);
    if (crn_diff_same_place(a, b) && (same_rank || a->ndims == 0))
        return compare_ranges(u, a);
    if (a->ndims > 0 && a->ndims == b->ndims && same_dims(a->ndims, a->global, b->global))
        return compare_all(u, a, crn_diff_ranges);
    crn_diff_why_shapes(u->side, u->share[0].rank, v, text);
    crn_diff_row_judge(&u->row, CAIRN_DIFFERENT, "%s", text);
    return CAIRN_OK;
}

/* --- the unit ------------------------------------------------------------------------------- */

/* Has a golden file a sketch of the variable, for a bound? */
static bool is_sketched(const unit *u, const diff_var v[2])
{
    const int golden = golden_of(u);
    diff_sketch sketch;
    return golden >= 0 && v[golden].trees && v[golden].trees->nbounds > 0 &&
           crn_diff_sketch_find(&u->share[golden], v[golden].trees, &sketch);
}

/* Which bounds count, and which trees help? */
static void settle_bound(unit *u, const diff_var v[2])
{
    const diff_question *ask = u->w->ask;
    const crn_var_spec *spec = &v[0].var->spec;
    const bool given = crn_diff_asks_bound(ask, spec->name);
    const bool own = !given && ask->own_bounds && v[0].trees && v[0].trees->nbounds > 0;
    crn_bound bound = given ? crn_diff_bound_of(ask, spec->name, "") : (crn_bound){0};
    if (own)
        bound = v[0].trees->bound[0];
    crn_diff_fields(ask, spec, given ? NULL : &bound, &u->fields);
    u->row.fields = NULL;
    if (u->fields.n == 0 || strcmp(spec->type, "bytes") == 0)
        return;
    u->tolerant = choose_bound(given || own ? &u->fields : NULL, v, &bound, u->number);
    if (!given && !own && !u->tolerant && is_sketched(u, v))
        bound = v[golden_of(u)].trees->bound[0]; /* which needs no trees of the run */
    if (!given)
        crn_diff_fields(ask, spec, &bound, &u->fields);
    u->row.bound = bound;
    u->row.fields = crn_diff_is_plain(&u->fields) ? NULL : &u->fields;
}

/*
 * Programs leave out of marks what they do not need: that is not compared. False: the row says so.
 * What both have in the same places is compared as ever, since the rest is zeros in both.
 */
static bool is_kept_alike(unit *u, const diff_var v[2], bool same_rank)
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

/* same_rank: v[1] is of the second share, which is of the first one's rank. */
static cairn_status compare_pair(unit *u, const diff_var v[2], bool same_rank)
{
    const crn_var_spec *a = &v[0].var->spec, *b = &v[1].var->spec;
    u->row.nvalues = a->nbytes / a->item;
    u->tolerant = false;
    settle_bound(u, v);
    if (strcmp(a->type, b->type) != 0) {
        crn_diff_row_judge(&u->row, CAIRN_DIFFERENT, "its type is %s in '%s' and %s in '%s'",
                           a->type, u->side[0].name, b->type, u->side[1].name);
        return CAIRN_OK;
    }
    if (!is_kept_alike(u, v, same_rank))
        return CAIRN_OK;
    if (!u->side[0].run || golden_of(u) == 1)
        crn_diff_why_golden(u->side, u->mark, v,
                            crn_diff_asks_bound(u->w->ask, a->name) ? &u->row.bound : NULL,
                            u->tolerant, u->why);
    const bool keyed = is_keyed(u, a) && crn_diff_is_keyed(b);
    const bool here = same_rank && crn_diff_same_place(a, b);
    const bool alike = here && (!keyed || same_keys(u, a));
    u->row.nblocks = here ? v[0].var->nblocks : 0;
    if ((alike || (here && is_numbered_within(u, a))) && is_proven(u, v))
        return CAIRN_OK;
    if (alike && is_blockwise(v))
        return compare_blocks(u, v);
    if (keyed && !alike)
        return compare_items(u, v);
    return compare_shapes(u, v, same_rank);
}

/* Variables of two shares, which, on as many ranks, are of the same: what can be cut alike is. */
static cairn_status compare_paired(unit *u, const diff_var v[2])
{
    diff_var now[2] = {v[0], v[1]};
    diff_cut made = {0};
    if (!same_ranks(u))
        return compare_pair(u, v, false);
    cairn_status rc = crn_diff_cut(u->share, now, &made);
    if (rc == CAIRN_OK)
        rc = compare_pair(u, now, true);
    else
        rc = judge_failure(u, explain(u, rc), v[0].var->nblocks);
    u->row.read_bytes += made.is_made ? v[0].var->spec.nbytes : 0;
    crn_diff_cut_done(&made);
    return rc;
}

/* --- global arrays whose pieces other ranks have -------------------------------------------- */

static bool is_elsewhere(unit *u, int side, const char *name)
{
    diff_share other = {0};
    diff_var v;
    const bool found = find_elsewhere(u, side, name, &other, &v);
    crn_diff_share_close(&other);
    return found;
}

/* Is it known which rank's values belong to which? */
static bool is_shared_out(const unit *u, const crn_var_spec *spec)
{
    return spec->ndims > 0 || is_keyed(u, spec);
}

/* See to a variable, of share k, that the other side's share does not have. */
static cairn_status compare_unpaired(unit *u, int k, diff_var v[2])
{
    const crn_var_spec *spec = &v[k].var->spec;
    diff_share other = {0};
    if (k == 0 && is_shared_out(u, spec) && find_elsewhere(u, 1, spec->name, &other, &v[1])) {
        cairn_status rc = compare_pair(u, v, false);
        crn_diff_share_close(&other);
        return rc;
    }
    if (spec->ndims == 0 && !same_ranks(u) && is_elsewhere(u, !k, spec->name))
        crn_diff_row_judge(&u->row, CAIRN_INCONCLUSIVE,
                           "rank %u of '%s' does not have it, and others have", u->share[!k].rank,
                           u->side[!k].name);
    else
        crn_diff_row_judge(&u->row, k == 0 ? CAIRN_ONLY_FIRST : CAIRN_ONLY_SECOND,
                           "rank %u has it in '%s' only", u->share[k].rank, u->side[k].name);
    return CAIRN_OK;
}

/* The second side's share of the unit's rank; where it has fewer ranks, of its first. */
static cairn_status open_second(unit *u, uint32_t rank)
{
    const uint32_t n = u->mark[1]->nranks;
    u->alone[1] = rank < n && (same_ranks(u) || rank == 0);
    for (int k = u->lonely; k < 2 && !same_ranks(u) && rank > 0; k++)
        CRN_TRY(crn_diff_share_open(&u->side[k], u->mark[k], 0, &u->first[k]));
    return crn_diff_share_open(&u->side[1], u->mark[1], rank < n ? rank : 0, &u->share[1]);
}

/* Does the unit of rank 0 see to a variable of the ranks' own? */
static bool is_left_to_first(const unit *u, const crn_var_spec *spec)
{
    diff_var v;
    for (int k = 0; k < 2 && !is_shared_out(u, spec); k++)
        if (u->first[k].side && crn_diff_share_find(&u->first[k], spec->name, &v) &&
            v.var->spec.ndims == 0)
            return true;
    return false;
}

static cairn_status merge(unit *u, diff_rows *rows, pthread_mutex_t *lock)
{
    if (lock)
        pthread_mutex_lock(lock);
    cairn_status rc = crn_diff_rows_merge(rows, &u->row);
    if (lock)
        pthread_mutex_unlock(lock);
    return rc;
}

/* Is a variable of the second share compared where the first side has it? */
static bool is_seen_to(unit *u, const crn_var_spec *spec, bool paired)
{
    return paired || (is_shared_out(u, spec) && is_elsewhere(u, 0, spec->name));
}

/* What a rank holds around its piece is compared where it belongs to a piece, and cells with their
 * items. */
static bool is_asked_for(const unit *u, const crn_var_spec *spec)
{
    const char *name = u->w->ask->variable;
    const bool ours =
        crn_var_has_layout(spec, "halo") || (crn_var_has_layout(spec, "index") && !has_golden(u));
    return !ours && (!name || strcmp(spec->name, name) == 0);
}

/* A row tells that a variable was not looked at. */
static cairn_status leave_out(unit *u, int k, const crn_var_spec *spec, diff_rows *rows,
                              pthread_mutex_t *lock)
{
    CRN_TRY(crn_diff_row_init(&u->row, spec, u->at));
    u->at.step++;
    u->row.excluded = true;
    if (k == 0)
        crn_diff_see(u->w, spec->nbytes);
    return merge(u, rows, lock);
}

/* Compare variable i of the first share; or, with k = 1, see to one of the second that has no pair.
 */
static cairn_status compare_var(unit *u, int k, size_t i, diff_rows *rows, pthread_mutex_t *lock)
{
    diff_var v[2];
    v[k] = crn_diff_share_var(&u->share[k], i);
    const crn_var_spec *spec = &v[k].var->spec;
    if (!is_asked_for(u, spec))
        return CAIRN_OK;
    if (crn_diff_is_excluded(spec->name, u->w->ask->exclude))
        return leave_out(u, k, spec, rows, lock);
    const bool paired = crn_diff_share_find(&u->share[!k], spec->name, &v[!k]);
    if (is_left_to_first(u, spec) || (k == 1 && is_seen_to(u, spec, paired)))
        return CAIRN_OK;
    CRN_TRY(crn_diff_row_init(&u->row, spec, u->at));
    u->at.step++;
    u->seen = false;
    cairn_status rc = paired ? compare_paired(u, v) : compare_unpaired(u, k, v);
    if (rc < 0) {
        crn_diff_row_done(&u->row);
        return rc;
    }
    if (k == 0 && !u->seen)
        crn_diff_see(u->w, spec->nbytes);
    return merge(u, rows, lock);
}

/* What cannot be described at all gets a row of its own. */
static cairn_status untold(unit *u, diff_rows *rows, pthread_mutex_t *lock)
{
    const crn_var_spec whole = {.name = "*", .type = "", .item = 1};
    (void)explain(u, crn_err_peek()->code);
    CRN_TRY(crn_diff_row_init(&u->row, &whole, u->at));
    crn_diff_row_judge(&u->row, CAIRN_INCONCLUSIVE, "%s", crn_err_peek()->text);
    return merge(u, rows, lock);
}

/* A rank beyond those of the first side may have variables that no other has. */
static cairn_status compare_shares(unit *u, bool beyond, diff_rows *rows, pthread_mutex_t *lock)
{
    for (size_t i = 0; !beyond && i < crn_diff_share_nvars(&u->share[0]); i++)
        CRN_TRY(compare_var(u, 0, i, rows, lock));
    for (size_t i = 0; i < crn_diff_share_nvars(&u->share[1]); i++)
        CRN_TRY(compare_var(u, 1, i, rows, lock));
    return CAIRN_OK;
}

/* Close a share; nodes that no other unit looks at need not stay in memory. */
static void close_share(unit *u, int k)
{
    diff_share *s = &u->share[k];
    for (size_t i = 0; u->alone[k] && s->described && i < s->described->nvars; i++)
        crn_trees_unload(&s->described->var[i]);
    crn_diff_share_close(s);
    crn_diff_share_close(&u->first[k]);
}

cairn_status crn_diff_unit(diff_worker *w, diff_side side[2], const diff_mark *mark[2],
                           uint32_t rank, diff_rows *rows, pthread_mutex_t *lock)
{
    const bool beyond = rank >= mark[0]->nranks;
    unit u = {.w = w, .side = side, .mark = mark, .alone = {!beyond}, .at = {rank, 0}};
    cairn_status rc = crn_diff_share_open(&side[0], mark[0], beyond ? 0 : rank, &u.share[0]);
    if (rc == CAIRN_OK)
        rc = open_second(&u, rank);
    if (rc == CAIRN_OK)
        rc = compare_shares(&u, beyond, rows, lock);
    else if (rc != CAIRN_ENOMEM)
        rc = untold(&u, rows, lock);
    close_share(&u, 0);
    close_share(&u, 1);
    crn_vec_done(&u.fields);
    return rc;
}

cairn_status crn_diff_share(diff_worker *w, const diff_share *first, diff_side side[2],
                            const diff_mark *mark[2], diff_rows *rows)
{
    unit u = {
        .w = w, .side = side, .mark = mark, .share = {*first}, .alone = {true}, .lonely = true};
    cairn_status rc = open_second(&u, first->rank);
    if (rc == CAIRN_OK)
        rc = compare_shares(&u, false, rows, NULL);
    else if (rc != CAIRN_ENOMEM)
        rc = untold(&u, rows, NULL);
    close_share(&u, 1);
    crn_vec_done(&u.fields);
    return rc;
}
