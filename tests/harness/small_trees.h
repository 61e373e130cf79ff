/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Small marks with trees, whose every digest follows from version, variable and block: for tests of
 * the trees file, its golden file, and the seeds of its fuzzer.
 */
#ifndef CAIRN_TESTS_SMALL_TREES_H
#define CAIRN_TESTS_SMALL_TREES_H

#include "harness/harness.h"
#include "store/store.h"

enum { SMALL_TREES_BLOCK = 1024 };

static inline crn_digest small_leaf(uint64_t version, size_t tree, uint64_t block)
{
    /* the first blocks change with every mark, the others never */
    const uint64_t of[3] = {block < 3 ? version : 0, tree, block};
    return crn_digest_of(of, sizeof of);
}

static inline void small_tree(uint64_t version, size_t number, uint64_t n, crn_tree *ret)
{
    crn_digest *leaf;
    assert_ok(crn_alloc(&leaf, n));
    for (uint64_t i = 0; i < n; i++)
        leaf[i] = small_leaf(version, number, i);
    assert_ok(crn_tree_build(leaf, n, ret));
    free(leaf);
}

/* "field", with two bounds and a NaN in block 4; "flag", which never changes; "none", empty. */
static inline crn_trees_mark *small_trees_mark(uint64_t version)
{
    const uint64_t global[2] = {40, 64}, offset[2] = {0, 32}, count[2] = {40, 32};
    const crn_var_spec spec[] = {
        {.name = "field",
         .type = "float64",
         .item = 8,
         .block = SMALL_TREES_BLOCK,
         .nbytes = 40 * 32 * 8,
         .ndims = 2,
         .global = global,
         .offset = offset,
         .count = count},
        {.name = "flag", .type = "int32", .item = 4, .block = 1024, .nbytes = 8},
        {.name = "none", .type = "bytes", .item = 1, .block = 1024}};
    crn_trees_mark *m;
    assert_ok(crn_trees_mark_create(3, &m));
    m->version = version;
    m->wall_ns = 1000 + version;
    m->series = 1;
    m->nranks = 4;
    for (size_t i = 0; i < 3; i++) {
        crn_trees_var *v = &m->var[i];
        assert_ok(crn_trees_declare(v, &spec[i], NULL));
        small_tree(i == 1 ? 0 : version, 10 * i, v->var.nblocks, &v->exact);
        v->var.root = crn_tree_root(&v->exact);
        assert_ok(crn_trees_make_room(v, 2));
        for (size_t k = 0; i == 0 && k < 2; k++) {
            v->bound[k] = (crn_bound){k ? 1e-9 : 1e-6, k ? 0 : 1e-4};
            small_tree(version, k + 1, v->var.nblocks, &v->tolerant[k]);
            v->root[k] = crn_tree_root(&v->tolerant[k]);
            v->nbounds++;
        }
        v->loaded = true;
    }
    m->var[0].nnan = 1;
    assert_ok(crn_alloc(&m->var[0].nan, 2));
    m->var[0].nan[0] = 1 << 4;
    return m;
}

/* Is a loaded variable what small_trees_mark made? */
static inline void assert_small_var(uint64_t version, size_t i, const crn_trees_var *v)
{
    for (uint64_t b = 0; b < v->var.nblocks; b++) {
        const crn_digest want = small_leaf(i == 1 ? 0 : version, 10 * i, b);
        assert_true(crn_digest_equal(&v->exact.node[b], &want));
        for (size_t k = 0; k < v->nbounds; k++) {
            const crn_digest tolerant = small_leaf(version, k + 1, b);
            assert_true(crn_digest_equal(&v->tolerant[k].node[b], &tolerant));
        }
        assert_int_equal(crn_trees_has_nan(v, b), i == 0 && b == 4);
    }
}

#endif
