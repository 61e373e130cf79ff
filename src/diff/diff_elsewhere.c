/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A golden file, and a run that has other pieces of an array, on as many ranks or others. The
 * golden file's pieces are gathered from the run's values, and each leaf is digested and held
 * against what is known of it. While a run goes on a rank has its own values only: leaves that lie
 * across the edges of its piece are left open.
 */
#include "diff/diff_unit.h"

#include <inttypes.h>

/* A golden piece that is looked at. */
typedef struct looking {
    diff_unit *u;
    const diff_var *golden;
    diff_gather *gather;
    crn_digester *digester;
    unsigned char *leaf;
    crn_tree_delta flagged; /* leaves that their digests do not prove equal */
    uint64_t nopen;         /* leaves of which not all values are there */
} looking;

/* Do the digests of a leaf prove it equal? */
static bool is_equal(const looking *l, uint64_t i, const unsigned char *data, uint32_t nbytes)
{
    const diff_unit *u = l->u;
    const crn_trees_var *t = l->golden->trees;
    crn_digest exact, tolerant[CRN_BOUNDS_MAX];
    (void)crn_digester_leaf(l->digester, i * t->var.spec.block, data, nbytes, &exact, tolerant);
    if (crn_diff_minds_nans(u) && (t->nbounds == 0 || crn_trees_has_nan(t, i)))
        return false;
    const size_t k = u->number[0];
    return crn_digest_equal(&exact, &t->exact.node[i]) ||
           (u->tolerant && crn_digest_equal(&tolerant[k], &t->tolerant[k].node[i]));
}

static cairn_status look_at_leaf(looking *l, uint64_t i)
{
    const crn_var *v = l->golden->var;
    const uint64_t from = i * v->spec.block, to = from + crn_var_block_bytes(v, i);
    const uint64_t first = from / v->spec.item, end = (to + v->spec.item - 1) / v->spec.item;
    const uint64_t there = crn_diff_gather_covers(l->gather, first, end);
    if (there == 0 && l->u->lonely)
        return CAIRN_OK; /* another rank sees to it */
    l->u->row.nblocks++;
    if (there != end - first) {
        l->nopen++;
        return CAIRN_OK;
    }
    CRN_TRY(crn_diff_gather_read(l->gather, from, to, l->leaf));
    return is_equal(l, i, l->leaf, (uint32_t)(to - from)) ? CAIRN_OK
                                                          : crn_vec_push(&l->flagged.leaf, i);
}

static cairn_status look_at_leaves(looking *l)
{
    cairn_status rc;
    CRN_TRY(crn_diff_digester_of(l->golden->trees, &l->digester));
    CRN_TRY_OUT(rc, crn_io_memory(l->golden->var->spec.block, &l->leaf));
    for (uint64_t i = 0; i < l->golden->var->nblocks; i++)
        CRN_TRY_OUT(rc, look_at_leaf(l, i));
out:
    free(l->leaf);
    crn_digester_free(l->digester);
    return rc;
}

/* What is left open when all that could be proven is. */
static void judge_open(looking *l, uint32_t rank)
{
    diff_unit *u = l->u;
    const crn_var_spec *spec = &l->golden->var->spec;
    const size_t n = l->flagged.leaf.n;
    if (n > 0 && u->row.verdict < CAIRN_DIFFERENT)
        crn_diff_row_doubt(&u->row, spec, rank, l->flagged.leaf.at[0] * spec->block / spec->item);
    if (n > 0)
        crn_diff_row_judge(&u->row, CAIRN_UNPROVEN,
                           "%zu block%s of rank %u %s not proven equal, and a golden file has no "
                           "values to look at",
                           n, n == 1 ? "" : "s", rank, n == 1 ? "is" : "are");
    if (l->nopen > 0 && u->lonely)
        crn_diff_row_judge(&u->row, CAIRN_UNPROVEN,
                           "%" PRIu64
                           " block%s of rank %u of '%s' %s values of several ranks here, "
                           "which only cairn gate can put together",
                           l->nopen, l->nopen == 1 ? "" : "s", rank,
                           u->side[crn_diff_golden_side(u)].name, l->nopen == 1 ? "has" : "have");
    else if (l->nopen > 0)
        crn_diff_row_judge(&u->row, CAIRN_INCONCLUSIVE,
                           "the run does not have each value of rank %u's piece in '%s' once", rank,
                           u->side[0].name);
}

/* Look at a golden piece, of share[golden]; the other share is one of the run's. */
static cairn_status look_at(diff_unit *u, diff_share *share[2], const diff_var *golden,
                            diff_gather *gather)
{
    const int k = crn_diff_golden_side(u);
    looking l = {.u = u, .golden = golden, .gather = gather};
    const diff_var v[2] = {*golden, *golden};
    bool used = false;
    CRN_TRY(crn_trees_load(share[k]->trees, share[k]->described, golden->trees));
    crn_diff_choose_trees(u, v);
    cairn_status rc = look_at_leaves(&l);
    u->row.nflagged += l.flagged.leaf.n;
    if (rc == CAIRN_OK && l.flagged.leaf.n > 0)
        rc = crn_diff_prove(u->w, share, k, v, gather, &l.flagged, &u->row, &used);
    if (rc == CAIRN_OK)
        judge_open(&l, share[k]->rank);
    u->row.read_bytes += gather->read_bytes;
    crn_tree_delta_done(&l.flagged);
    return rc;
}

/* The golden file comes first, and its piece is put together from all shares of the run. */
static cairn_status gather_all(diff_unit *u, const diff_var *golden)
{
    const uint32_t n = u->mark[1]->nranks;
    diff_gather g = {.spec = &golden->var->spec};
    diff_share *other, *share[2] = {&u->share[0], &u->share[1]};
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_alloc(&other, n));
    for (uint32_t r = 0; r < n; r++) {
        CRN_TRY_OUT(rc, crn_diff_share_open(&u->side[1], u->mark[1], r, &other[r]));
        CRN_TRY_OUT(rc, crn_diff_gather_add(&g, &other[r]));
    }
    if (!crn_diff_is_partly_kept(u, other, n, g.spec->name))
        rc = look_at(u, share, golden, &g);
out:
    crn_diff_gather_done(&g);
    for (uint32_t r = 0; r < n; r++)
        crn_diff_share_close(&other[r]);
    free(other);
    return rc;
}

/* What the run's share, which comes first, has of one golden rank's piece. */
static cairn_status look_at_rank(diff_unit *u, uint32_t rank)
{
    const crn_var_spec *spec = NULL;
    diff_share golden = {0}, *share[2] = {&u->share[0], &golden};
    diff_gather g = {0};
    diff_overlap overlap;
    diff_var mine, v;
    cairn_status rc;
    CRN_TRY(crn_diff_share_open(&u->side[1], u->mark[1], rank, &golden));
    if (crn_diff_share_find(&u->share[0], u->row.variable, &mine))
        spec = &mine.var->spec;
    if (!spec || !crn_diff_share_find(&golden, spec->name, &v) ||
        v.var->spec.ndims != spec->ndims || !crn_diff_overlap_of(spec, &v.var->spec, &overlap)) {
        crn_diff_share_close(&golden);
        return CAIRN_OK;
    }
    g.spec = &v.var->spec;
    rc = crn_diff_gather_add(&g, &u->share[0]);
    if (rc == CAIRN_OK && !crn_diff_is_partly_kept(u, &golden, 1, spec->name))
        rc = look_at(u, share, &v, &g);
    crn_trees_unload(v.trees);
    crn_diff_gather_done(&g);
    crn_diff_share_close(&golden);
    return rc;
}

cairn_status crn_diff_compare_elsewhere(diff_unit *u, const diff_var v[2])
{
    cairn_status rc = CAIRN_OK;
    u->row.nblocks = 0;
    if (crn_diff_golden_side(u) == 0)
        rc = gather_all(u, &v[0]);
    else
        for (uint32_t r = 0; rc == CAIRN_OK && r < u->mark[1]->nranks; r++)
            rc = look_at_rank(u, r);
    return crn_diff_judge_failure(u, crn_diff_explain(u, rc), v[0].var->nblocks);
}
