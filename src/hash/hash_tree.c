/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hash tree: building, renewing, comparing, and its bytes in a file. hash.h has the shape.
 */
#include "hash/hash.h"

#include <assert.h>

/* A level of 2^63 leaves has 64 above and with it; no memory holds more. */
enum { MAX_LEVELS = 64 };

/* Nodes of the level above one with n nodes. */
static size_t half(size_t n)
{
    return n / 2 + n % 2;
}

int crn_tree_nlevels(size_t nleaves)
{
    int nlevels = nleaves > 0;
    for (size_t n = nleaves; n > 1; n = half(n))
        nlevels++;
    return nlevels;
}

size_t crn_tree_nnodes(size_t nleaves)
{
    size_t total = nleaves;
    for (size_t n = nleaves; n > 1; n = half(n))
        total += half(n);
    return total;
}

size_t crn_tree_level(const crn_tree *t, int level, size_t *ret_n)
{
    assert(level >= 0 && level < t->nlevels);
    size_t start = 0, n = t->nleaves;
    for (int l = 0; l < level; l++) {
        start += n;
        n = half(n);
    }
    *ret_n = n;
    return start;
}

/* Make node i from its children in the level below, which has n nodes. */
static crn_digest parent(const crn_digest *below, size_t n, size_t i)
{
    _Static_assert(sizeof(crn_digest[2]) == 32, "children lie side by side");
    if (2 * i + 1 == n)
        return below[2 * i];
    return crn_digest_of(&below[2 * i], sizeof(crn_digest[2]));
}

cairn_status crn_tree_build(const crn_digest *leaf, size_t nleaves, crn_tree *ret)
{
    crn_tree t = {.nleaves = nleaves,
                  .nnodes = crn_tree_nnodes(nleaves),
                  .nlevels = crn_tree_nlevels(nleaves)};
    CRN_TRY(crn_alloc(&t.node, t.nnodes));
    if (nleaves > 0)
        memcpy(t.node, leaf, nleaves * sizeof *leaf);
    crn_digest *below = t.node;
    for (size_t n = nleaves; n > 1; n = half(n)) {
        for (size_t i = 0; i < half(n); i++)
            below[n + i] = parent(below, n, i);
        below += n;
    }
    *ret = t;
    return CAIRN_OK;
}

void crn_tree_done(crn_tree *t)
{
    free(t->node);
    *t = (crn_tree){0};
}

crn_digest crn_tree_root(const crn_tree *t)
{
    return t->nnodes > 0 ? t->node[t->nnodes - 1] : (crn_digest){{0}};
}

void crn_tree_update(crn_tree *t, const size_t *index, const crn_digest *leaf, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        assert(index[k] < t->nleaves && (k == 0 || index[k - 1] <= index[k]));
        t->node[index[k]] = leaf[k];
    }
    crn_digest *below = t->node;
    size_t width = t->nleaves;
    for (int level = 1; level < t->nlevels; level++) {
        /* indices ascend, so those that share a parent stand together: it is made once */
        for (size_t k = 0; k < n; k++) {
            size_t i = index[k] >> level;
            if (k == 0 || index[k - 1] >> level != i)
                below[width + i] = parent(below, width, i);
        }
        below += width;
        width = half(width);
    }
}

/* A comparison under way: the trees by their levels, and what was found. */
typedef struct walk {
    const crn_digest *a[MAX_LEVELS], *b[MAX_LEVELS];
    bool same_size;
    crn_tree_delta found;
} walk;

static void walk_levels(const crn_tree *t, int nlevels, const crn_digest **ret)
{
    size_t n;
    for (int level = 0; level < nlevels; level++)
        ret[level] = t->node + crn_tree_level(t, level, &n);
}

/*
 * Compare node i of a level, and what is below it where it differs. A node speaks for the same
 * leaves in both trees when the trees have one size, or when all of its leaves are common. Of the
 * nodes with common leaves at most one on each level has others, too: it would differ even where
 * the common ones agree, so it is passed by and its children decide.
 */
static cairn_status descend(walk *w, int level, size_t i)
{
    size_t common = w->found.common;
    if (w->same_size || i < common >> level) {
        w->found.visited++;
        if (crn_digest_equal(&w->a[level][i], &w->b[level][i]))
            return CAIRN_OK;
    }
    if (level == 0)
        return crn_vec_push(&w->found.leaf, i);
    CRN_TRY(descend(w, level - 1, 2 * i));
    if (2 * i + 1 <= (common - 1) >> (level - 1))
        CRN_TRY(descend(w, level - 1, 2 * i + 1));
    return CAIRN_OK;
}

cairn_status crn_tree_diff(const crn_tree *a, const crn_tree *b, size_t start_width,
                           crn_tree_delta *ret)
{
    const crn_tree *small = a->nleaves < b->nleaves ? a : b;
    walk w = {.same_size = a->nleaves == b->nleaves, .found.common = small->nleaves};
    walk_levels(a, small->nlevels, w.a);
    walk_levels(b, small->nlevels, w.b);

    size_t width = small->nleaves;
    int start = 0;
    while (start + 1 < small->nlevels && half(width) >= start_width) {
        width = half(width);
        start++;
    }
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; i < width; i++)
        CRN_TRY_OUT(rc, descend(&w, start, i));
    *ret = w.found;
    return CAIRN_OK;
out:
    crn_tree_delta_done(&w.found);
    return rc;
}

void crn_tree_delta_done(crn_tree_delta *d)
{
    crn_vec_done(&d->leaf);
}

void crn_tree_put(const crn_tree *t, crn_buf *buf)
{
    crn_put_u64(buf, t->nleaves);
    crn_put_bytes(buf, t->node, t->nnodes * sizeof *t->node);
}

cairn_status crn_tree_get(crn_cursor *cur, crn_tree *ret)
{
    uint64_t nleaves = crn_get_u64(cur);
    crn_cursor_expect(cur, nleaves <= cur->n / sizeof(crn_digest));
    CRN_TRY(crn_cursor_status(cur, "a hash tree"));
    size_t nnodes = crn_tree_nnodes(nleaves);
    const crn_digest *node = crn_get_view(cur, nnodes * sizeof *node);
    CRN_TRY(crn_cursor_status(cur, "a hash tree"));

    crn_tree t;
    CRN_TRY(crn_tree_build(node, nleaves, &t));
    crn_cursor_expect(cur, memcmp(t.node, node, nnodes * sizeof *node) == 0);
    if (cur->failed) {
        crn_tree_done(&t);
        return crn_fail(CAIRN_ECORRUPT, "a hash tree of %llu leaves does not fit its leaves",
                        (unsigned long long)nleaves);
    }
    *ret = t;
    return CAIRN_OK;
}
