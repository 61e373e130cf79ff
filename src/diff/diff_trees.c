/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What trees prove of two variables: which bound counts, which trees are for it, and the blocks
 * that they leave open.
 */
#include "diff/diff_unit.h"

static bool same_bound(const crn_bound *a, const crn_bound *b)
{
    return a->absolute == b->absolute && a->relative == b->relative;
}

/* Do numbers that agree within the bounds of trees, all of a value's, agree as is asked? */
static bool implies(const crn_trees_var *v, size_t i, const crn_fields *asked)
{
    crn_fields f = {0};
    crn_diff_tree_fields(&v->var.spec, &v->bound[i], crn_diff_members(v), &f);
    bool all = f.n == asked->n;
    for (size_t k = 0; all && k < f.n; k++)
        all = f.at[k].kind == CRN_VALUE_OTHER ||
              crn_bound_implies(&f.at[k].bound, &asked->at[k].bound);
    crn_vec_done(&f);
    return all;
}

/* The loosest bound that both sides have trees for; false: there is none. */
static bool common_bound(const diff_var v[2], crn_bound *ret)
{
    if (!v[0].trees || !v[1].trees || !crn_diff_same_members(v[0].trees, v[1].trees))
        return false;
    for (size_t i = 0; i < v[0].trees->nbounds; i++)
        for (size_t k = 0; k < v[1].trees->nbounds; k++)
            if (same_bound(&v[0].trees->bound[i], &v[1].trees->bound[k])) {
                *ret = v[0].trees->bound[i];
                return true;
            }
    return false;
}

/* The trees of the loosest bound that both sides have and that implies those asked for. Equal
 * digests then prove more than was asked. */
static bool find_trees(const crn_fields *asked, const diff_var v[2], size_t number[2])
{
    if (!v[0].trees || !v[1].trees || !crn_diff_same_members(v[0].trees, v[1].trees))
        return false;
    for (size_t i = 0; i < v[0].trees->nbounds; i++) {
        if (!implies(v[0].trees, i, asked))
            continue;
        for (size_t k = 0; k < v[1].trees->nbounds; k++) {
            if (!same_bound(&v[0].trees->bound[i], &v[1].trees->bound[k]))
                continue;
            number[0] = i;
            number[1] = k;
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

bool crn_diff_minds_nans(const diff_unit *u)
{
    return u->w->ask->nan_differs && has_floats(&u->fields);
}

/* The exact tree of a variable: as kept, or made from the block table of its part. */
static cairn_status exact_tree(diff_unit *u, int k, const diff_var *v, crn_tree *made,
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

static cairn_status exact_delta(diff_unit *u, const diff_var v[2], crn_tree_delta *ret)
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

cairn_status crn_diff_flag(diff_unit *u, const diff_var v[2], crn_tree_delta *ret)
{
    crn_tree_delta d = {0}, t = {0};
    cairn_status rc = CAIRN_OK;
    const bool nans = crn_diff_minds_nans(u);
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

bool crn_diff_is_proven(const diff_unit *u, const diff_var v[2])
{
    if (v[0].var->spec.block != v[1].var->spec.block || crn_diff_minds_nans(u) || u->w->ask->direct)
        return false;
    return crn_digest_equal(&v[0].var->root, &v[1].var->root) ||
           (u->tolerant &&
            crn_digest_equal(&v[0].trees->root[u->number[0]], &v[1].trees->root[u->number[1]]));
}

/* Has a golden file a sketch of the variable, for a bound? */
static bool is_sketched(const diff_unit *u, const diff_var v[2])
{
    const int golden = crn_diff_golden_side(u);
    diff_sketch sketch;
    return golden >= 0 && v[golden].trees && v[golden].trees->nbounds > 0 &&
           crn_diff_sketch_find(&u->share[golden], v[golden].trees, &sketch);
}

/* The bounds to compare with where none are asked for: those of trees, or exact. */
static crn_bound own_bounds(diff_unit *u, const diff_var v[2])
{
    const int golden = crn_diff_golden_side(u);
    const crn_trees_var *from = NULL;
    crn_bound b = {0};
    if (u->w->ask->own_bounds && v[0].trees && v[0].trees->nbounds > 0) {
        from = v[0].trees;
        b = from->bound[0];
    } else if (common_bound(v, &b)) {
        from = v[0].trees;
    } else if (is_sketched(u, v)) {
        b = v[golden].trees->bound[0]; /* which needs no trees of the run */
    }
    crn_diff_tree_fields(&v[0].var->spec, &b, crn_diff_members(from), &u->fields);
    return b;
}

void crn_diff_settle_bound(diff_unit *u, const diff_var v[2])
{
    const diff_question *ask = u->w->ask;
    const crn_var_spec *spec = &v[0].var->spec;
    crn_bound bound;
    if (crn_diff_asks_bound(ask, spec->name)) {
        bound = crn_diff_bound_of(ask, spec->name, "");
        crn_diff_fields(ask, spec, &u->fields);
    } else {
        bound = own_bounds(u, v);
    }
    u->row.fields = NULL;
    if (strcmp(spec->type, "bytes") == 0)
        u->fields.n = 0;
    if (u->fields.n == 0)
        return;
    u->row.bound = bound;
    u->row.fields = crn_diff_is_plain(&u->fields) ? NULL : &u->fields;
}

void crn_diff_choose_trees(diff_unit *u, const diff_var v[2])
{
    u->tolerant = u->fields.n > 0 && find_trees(&u->fields, v, u->number);
}
