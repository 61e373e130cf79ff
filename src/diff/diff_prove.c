/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks of a run that trees do not prove equal to a golden file's, which has no values to look at:
 * its sketch may prove them equal, and its facts that they differ. Only the run's blocks are read.
 */
#include "diff/diff.h"

#include <inttypes.h>

/* What is being proven about one variable. */
typedef struct proof {
    diff_worker *w;
    diff_share *run;
    diff_gather *gather; /* NULL: the values are the share's, of */
    crn_var *var;        /* this variable */
    const crn_var *cut;  /* the golden file's: its blocks are the leaves */
    uint32_t rank;
    diff_sketch sketch;
    crn_sketcher *sketcher; /* NULL: there is no sketch for the bound, only facts */
    size_t bound;           /* that the sketch is for */
    diff_row *row;
    uint64_t *left; /* blocks of which nothing is known */
    size_t nleft;
} proof;

/* Note that a block differs; the first one's place is told. */
static void note_different(diff_row *row, const crn_var_spec *spec, uint32_t rank, uint64_t block,
                           const char *why)
{
    if (row->verdict < CAIRN_DIFFERENT)
        crn_diff_row_doubt(row, spec, rank, block * spec->block / spec->item);
    crn_diff_row_judge(row, CAIRN_DIFFERENT, "values of block %" PRIu64 " of rank %u differ: %s",
                       block, rank, why);
}

/* --- floating-point values ------------------------------------------------------------------- */

static bool has_digest(proof *p, uint64_t i, const void *data, size_t nbytes)
{
    crn_digest d;
    if (!p->sketcher)
        return false;
    const diff_sketch_block b = crn_diff_sketch_block(&p->sketch, p->bound, i);
    return crn_sketch_digest(p->sketcher, b.kind, b.data, b.nbytes, data, nbytes, &d) &&
           crn_digest_equal(&d, &b.digest);
}

/* What the digest does not prove equal is looked at more closely. */
static cairn_status judge_facts(proof *p, uint64_t i, const void *data, size_t nbytes)
{
    const crn_var_spec *spec = &p->cut->spec;
    const crn_bound *bound = &p->row->bound;
    const crn_facts golden = crn_diff_sketch_facts(&p->sketch, i);
    crn_facts facts;
    CRN_TRY(crn_facts_of(spec->item, data, nbytes, &facts));
    const char *why =
        crn_facts_differ(&facts, &golden, nbytes / spec->item, bound, p->w->ask->nan_differs);
    if (why)
        note_different(p->row, spec, p->rank, i, why);
    else if (bound->absolute > 0 || bound->relative > 0)
        p->left[p->nleft++] = i;
    else /* to the last bit, but for what counts as the same: a proof as well */
        p->row->nproven++, p->row->nfalse++;
    return CAIRN_OK;
}

static cairn_status judge_block(proof *p, uint64_t i, const void *data)
{
    const size_t nbytes = crn_var_block_bytes(p->cut, i);
    const bool nans = p->w->ask->nan_differs && crn_diff_sketch_facts(&p->sketch, i).nnan > 0;
    p->row->at.step = i;
    p->row->read_bytes += nbytes;
    if (nans || !has_digest(p, i, data, nbytes))
        return judge_facts(p, i, data, nbytes);
    p->row->nproven++;
    p->row->nfalse++;
    return CAIRN_OK;
}

static bool is_bad(const crn_bad_blocks *bad, uint64_t block)
{
    for (size_t i = 0; i < bad->n; i++)
        if (bad->at[i] == block)
            return true;
    return false;
}

/* Read blocks [first, first + n). */
static cairn_status read_blocks(proof *p, uint64_t first, size_t n, unsigned char *data,
                                crn_bad_blocks *bad)
{
    const uint32_t leaf = p->cut->spec.block;
    if (!p->gather)
        return crn_diff_read_leaves(p->run, p->var, leaf, first, n, data, bad);
    return crn_diff_gather_read(p->gather, first * leaf,
                                CRN_MIN((first + n) * leaf, p->cut->spec.nbytes), data);
}

/* Look at blocks [first, first + n), which are read together. */
static cairn_status judge_blocks(proof *p, uint64_t first, size_t n)
{
    unsigned char *data = p->w->data[0];
    crn_bad_blocks bad = {0};
    const uint32_t leaf = p->cut->spec.block;
    cairn_status rc = read_blocks(p, first, n, data, &bad);
    for (size_t i = 0; i < n && rc == CAIRN_OK; i++) {
        if (is_bad(&bad, first + i))
            crn_diff_row_judge(p->row, CAIRN_INCONCLUSIVE,
                               "block %" PRIu64 " of rank %u is damaged or cannot be read in '%s'",
                               first + i, p->rank, p->run->side->name);
        else
            rc = judge_block(p, first + i, data + i * leaf);
    }
    crn_vec_done(&bad);
    return rc;
}

static cairn_status judge_all(proof *p, const crn_tree_delta *d)
{
    const size_t most = CRN_MAX(DIFF_BATCH / p->cut->spec.block, 1u);
    for (size_t i = 0, n; i < d->leaf.n; i += n) {
        for (n = 1; n < most && i + n < d->leaf.n && d->leaf.at[i + n] == d->leaf.at[i] + n; n++)
            continue;
        CRN_TRY(judge_blocks(p, d->leaf.at[i], n));
    }
    return CAIRN_OK;
}

/* The loosest of a golden file's bounds that is as tight as the row's; false: none is. */
static bool find_bound(const crn_trees_var *v, const crn_bound *asked, size_t *ret)
{
    for (size_t i = 0; i < v->nbounds; i++) {
        *ret = i;
        if (crn_bound_implies(&v->bound[i], asked))
            return true;
    }
    return false;
}

static cairn_status prove_floats(proof *p, const crn_trees_var *golden, crn_tree_delta *d,
                                 bool *ret_used)
{
    const crn_var_spec *spec = &golden->var.spec;
    const bool has_bound = find_bound(golden, &p->row->bound, &p->bound);
    const bool exact = p->row->bound.absolute == 0 && p->row->bound.relative == 0;
    cairn_status rc = CAIRN_OK;
    if (!p->gather) {
        CRN_TRY(crn_diff_share_data(p->run, spec->name, &p->var));
        CRN_TRY(crn_mark_table(p->run->part, p->run->data, p->var));
    }
    if (has_bound)
        CRN_TRY(crn_sketcher_create(spec->item, &golden->bound[p->bound], &p->sketcher));
    CRN_TRY_OUT(rc, crn_alloc(&p->left, d->leaf.n));
    CRN_TRY_OUT(rc, judge_all(p, d));
    for (size_t i = 0; i < p->nleft; i++)
        d->leaf.at[i] = p->left[i];
    d->leaf.n = p->nleft;
    *ret_used = has_bound || exact;
out:
    crn_sketcher_free(p->sketcher);
    free(p->left);
    return rc;
}

/* --- all others ------------------------------------------------------------------------------ */

/* Do values differ whenever their bytes do? Not where a bound lets integers differ, and not in
 * structures, whose floating-point members and bytes between members may. */
static bool is_bytewise(const diff_row *row)
{
    return !row->fields && row->bound.absolute < 1 && row->bound.relative == 0;
}

/* Such values differ when their digests do. */
static void prove_bytes(const diff_share *share, const crn_var_spec *spec, crn_tree_delta *d,
                        diff_row *row)
{
    for (size_t i = 0; i < d->leaf.n; i++) {
        row->at.step = d->leaf.at[i];
        note_different(row, spec, share->rank, d->leaf.at[i], "their digests do");
    }
    d->leaf.n = 0;
}

cairn_status crn_diff_prove(diff_worker *w, diff_share *share[2], int golden, const diff_var v[2],
                            diff_gather *gather, crn_tree_delta *d, diff_row *row, bool *ret_used)
{
    proof p = {.w = w,
               .run = share[!golden],
               .gather = gather,
               .cut = v[golden].var,
               .rank = share[0]->rank,
               .row = row};
    const diff_at at = row->at;
    cairn_status rc = CAIRN_OK;
    *ret_used = false;
    const bool floats = crn_value_is_float(v[0].var->spec.type);
    if (!floats && is_bytewise(row))
        prove_bytes(share[0], &v[golden].var->spec, d, row);
    else if (floats && crn_diff_sketch_find(share[golden], v[golden].trees, &p.sketch))
        rc = prove_floats(&p, v[golden].trees, d, ret_used);
    row->at = at;
    return rc;
}
