/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Variables whose trees have leaves of other sizes, or that have no trees: is there another way to
 * look at both by which they are cut alike?
 */
#include "diff/diff.h"

bool crn_diff_same_cut(const crn_var *a, const crn_var *b)
{
    return a->spec.block == b->spec.block || (a->nblocks <= 1 && b->nblocks <= 1);
}

/* --- tables --------------------------------------------------------------------------------- */

/* The variable as its part has it; var is NULL when there is no data. */
static diff_var stored(diff_share *s, const char *name)
{
    crn_var *var = NULL;
    (void)crn_diff_share_data(s, name, &var);
    return (diff_var){var, NULL};
}

/* Use tables instead of trees on one side, or on both. */
static bool cut_by_tables(diff_share share[2], diff_var v[2])
{
    const char *name = v[0].var->spec.name;
    const diff_var part[2] = {stored(&share[0], name), stored(&share[1], name)};
    for (int k = 0; k < 2; k++) {
        if (part[k].var && crn_diff_same_cut(part[k].var, v[!k].var)) {
            v[k] = part[k];
            return true;
        }
    }
    if (!part[0].var || !part[1].var || !crn_diff_same_cut(part[0].var, part[1].var))
        return false;
    v[0] = part[0];
    v[1] = part[1];
    return true;
}

/* --- data ----------------------------------------------------------------------------------- */

/* Which leaves of [first, first + n) have one of the blocks that are bad? */
static cairn_status list_bad(const crn_var *v, uint32_t leaf, uint64_t first, size_t n,
                             const crn_bad_blocks *block, crn_bad_blocks *ret)
{
    for (uint64_t i = first; i < first + n; i++) {
        const uint64_t from = i * leaf / v->spec.block, to = ((i + 1) * leaf - 1) / v->spec.block;
        bool is_bad = false;
        for (size_t k = 0; k < block->n; k++)
            is_bad |= block->at[k] >= from && block->at[k] <= to;
        if (is_bad)
            CRN_TRY(crn_vec_push(ret, i));
    }
    return CAIRN_OK;
}

cairn_status crn_diff_read_leaves(diff_share *s, crn_var *v, uint32_t leaf, uint64_t first,
                                  size_t n, unsigned char *dst, crn_bad_blocks *bad)
{
    const uint64_t block = v->spec.block, from = first * leaf;
    const uint64_t to = CRN_MIN(from + n * leaf, v->spec.nbytes);
    const uint64_t at = from / block, end = to / block + (to % block != 0);
    unsigned char *data = dst, *blocks = NULL;
    crn_bad_blocks found = {0};
    if (leaf % block != 0) { /* a leaf is within a block */
        CRN_TRY(crn_io_memory((end - at) * block, &blocks));
        data = blocks;
    }
    cairn_status rc = crn_mark_read(s->part, s->data, v, at, end - at, data, bad ? &found : NULL);
    if (rc == CAIRN_OK && blocks)
        memcpy(dst, blocks + (from - at * block), to - from);
    if (rc == CAIRN_OK && found.n > 0)
        rc = list_bad(v, leaf, first, n, &found, bad);
    crn_vec_done(&found);
    free(blocks);
    return rc;
}

/* Trees in the making, of a variable in a part. */
typedef struct cutting {
    crn_trees_var *to;
    crn_digester *digester;
    crn_digest *exact, *tolerant[CRN_BOUNDS_MAX];
} cutting;

static void digest(cutting *c, uint64_t i, const unsigned char *data)
{
    crn_trees_var *to = c->to;
    const uint32_t nbytes = crn_var_block_bytes(&to->var, i);
    crn_digest d[CRN_BOUNDS_MAX];
    const bool nan =
        crn_digester_leaf(c->digester, i * to->var.spec.block, data, nbytes, &c->exact[i], d);
    if (nan) {
        to->nan[i / 8] |= (unsigned char)(1u << i % 8);
        to->nnan++;
    }
    for (size_t k = 0; k < to->nbounds; k++)
        c->tolerant[k][i] = d[k];
}

/* Read the variable, so many leaves at a time that blocks are read once. */
static cairn_status digest_all(cutting *c, diff_share *s, crn_var *from)
{
    const uint32_t leaf = c->to->var.spec.block;
    const uint64_t step = CRN_MAX(CRN_MAX(leaf, from->spec.block), (uint32_t)DIFF_BATCH) / leaf;
    unsigned char *data;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_io_memory(step * leaf, &data));
    for (uint64_t i = 0; rc == CAIRN_OK && i < c->to->var.nblocks; i += step) {
        const uint64_t n = CRN_MIN(step, c->to->var.nblocks - i);
        rc = crn_diff_read_leaves(s, from, leaf, i, n, data, NULL);
        for (uint64_t k = 0; rc == CAIRN_OK && k < n; k++)
            digest(c, i + k, data + k * leaf);
    }
    free(data);
    return rc;
}

cairn_status crn_diff_digester_of(const crn_trees_var *v, crn_digester **ret)
{
    const crn_var_spec *s = &v->var.spec;
    return crn_digester_create(s->type, s->item, s->block, v->bound, v->nbounds,
                               crn_diff_members(v), ret);
}

static cairn_status furnish(cutting *c, const crn_trees_var *like)
{
    crn_trees_var *to = c->to;
    const uint64_t n = to->var.nblocks;
    CRN_TRY(crn_alloc(&c->exact, n));
    if (like->nbounds > 0)
        CRN_TRY(crn_alloc(&to->nan, n / 8 + 1));
    CRN_TRY(crn_trees_make_room(to, like->nbounds));
    if (like->nbounds > 0)
        memcpy(to->bound, like->bound, like->nbounds * sizeof *to->bound);
    for (; to->nbounds < like->nbounds; to->nbounds++)
        CRN_TRY(crn_alloc(&c->tolerant[to->nbounds], n));
    return crn_diff_digester_of(to, &c->digester);
}

static cairn_status build(cutting *c)
{
    crn_trees_var *to = c->to;
    const uint64_t n = to->var.nblocks;
    CRN_TRY(crn_tree_build(c->exact, n, &to->exact));
    to->var.root = crn_tree_root(&to->exact);
    for (size_t k = 0; k < to->nbounds; k++) {
        CRN_TRY(crn_tree_build(c->tolerant[k], n, &to->tolerant[k]));
        to->root[k] = crn_tree_root(&to->tolerant[k]);
    }
    to->loaded = true;
    return CAIRN_OK;
}

/* Trees of a variable in a part with the leaves and the bounds of like. */
static cairn_status cut_like(diff_share *s, crn_var *from, const crn_trees_var *like,
                             crn_trees_var *to)
{
    cutting c = {.to = to};
    crn_var_spec spec = from->spec;
    spec.block = like->var.spec.block;
    CRN_TRY(crn_trees_declare(to, &spec, crn_diff_members(like)));
    cairn_status rc = furnish(&c, like);
    if (rc == CAIRN_OK)
        rc = digest_all(&c, s, from);
    if (rc == CAIRN_OK)
        rc = build(&c);
    crn_digester_free(c.digester);
    free(c.exact);
    for (size_t k = 0; k < to->nbounds; k++)
        free(c.tolerant[k]);
    return rc;
}

cairn_status crn_diff_describes(diff_share *s, crn_var *v, const crn_trees_var *trees, bool *ret)
{
    const crn_trees_var exact = {.var = trees->var};
    crn_trees_var made = {0};
    CRN_TRY(crn_mark_table(s->part, s->data, v));
    if (crn_diff_same_cut(v, &trees->var) || v->spec.nbytes != trees->var.spec.nbytes) {
        *ret = crn_digest_equal(&v->root, &trees->var.root);
        return CAIRN_OK;
    }
    cairn_status rc = cut_like(s, v, &exact, &made);
    *ret = rc == CAIRN_OK && crn_digest_equal(&made.var.root, &trees->var.root);
    crn_trees_var_done(&made);
    return rc;
}

/* --- both ----------------------------------------------------------------------------------- */

/* Has one side nothing but trees, for bounds, too? A table tells of equal bits alone. */
static bool needs_bounds(const diff_share share[2], const diff_var v[2])
{
    for (int k = 0; k < 2; k++)
        if (share[k].side->golden && v[k].trees && v[k].trees->nbounds > 0)
            return true;
    return false;
}

cairn_status crn_diff_cut(diff_share share[2], diff_var v[2], diff_cut *made)
{
    const crn_var_spec *a = &v[0].var->spec, *b = &v[1].var->spec;
    if (crn_diff_same_cut(v[0].var, v[1].var) || !crn_diff_same_place(a, b) ||
        strcmp(a->type, b->type) != 0)
        return CAIRN_OK;
    if (!needs_bounds(share, v) && cut_by_tables(share, v))
        return CAIRN_OK;
    for (int k = 0; k < 2; k++) {
        crn_var *var;
        if (!share[!k].side->golden || !v[!k].trees ||
            crn_diff_share_data(&share[k], a->name, &var) < 0)
            continue;
        made->is_made = true;
        CRN_TRY(cut_like(&share[k], var, v[!k].trees, &made->trees));
        v[k] = (diff_var){&made->trees.var, &made->trees};
        return CAIRN_OK;
    }
    return CAIRN_OK;
}

void crn_diff_cut_done(diff_cut *made)
{
    if (!made->is_made)
        return;
    crn_trees_var_done(&made->trees);
}
