/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tree against the plainest possible model: leaves compared one by one, nodes made by recursion
 * from the leaves that they stand for.
 *
 * NEEDS: random123
 */
#include "harness/harness.h"
#include "hash/hash.h"

enum { MOST = 300 };

/* Sizes around the powers of two, where levels come and go, and a few others. */
static const size_t sizes[] = {0,  1,   2,   3,   4,   5,   6,   7,   8,   9,  10,
                               11, 12,  13,  15,  16,  17,  31,  32,  33,  63, 64,
                               65, 100, 127, 128, 129, 255, 256, 257, MOST};
enum { NSIZES = sizeof sizes / sizeof *sizes };

static crn_digest random_digest(crn_rng *rng)
{
    uint64_t v = crn_rng_u64(rng);
    return crn_digest_of(&v, sizeof v);
}

static void random_leaves(crn_rng *rng, crn_digest *leaf, size_t n)
{
    for (size_t i = 0; i < n; i++)
        leaf[i] = random_digest(rng);
}

/* The node over leaves [first, last) of a subtree that has room for 1 << level of them. */
static crn_digest model_node(const crn_digest *leaf, size_t first, size_t last, int level)
{
    if (level == 0)
        return leaf[first];
    size_t middle = first + ((size_t)1 << (level - 1));
    crn_digest pair[2] = {model_node(leaf, first, CRN_MIN(middle, last), level - 1)};
    if (middle >= last)
        return pair[0];
    pair[1] = model_node(leaf, middle, last, level - 1);
    return crn_digest_of(pair, sizeof pair);
}

static void assert_tree_is(const crn_tree *t, const crn_digest *leaf, size_t nleaves)
{
    assert_int_equal(t->nleaves, nleaves);
    assert_int_equal(t->nnodes, crn_tree_nnodes(nleaves));
    size_t seen = 0;
    for (int level = 0; level < t->nlevels; level++) {
        size_t width, start = crn_tree_level(t, level, &width);
        assert_int_equal(start, seen);
        for (size_t i = 0; i < width; i++) {
            size_t first = i << level, last = CRN_MIN((i + 1) << level, nleaves);
            crn_digest want = model_node(leaf, first, last, level);
            assert_true(crn_digest_equal(&t->node[start + i], &want));
        }
        seen += width;
        assert_int_equal(width == 1, level == t->nlevels - 1);
    }
    assert_int_equal(seen, t->nnodes);
}

static void test_build_matches_model(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 1);
    crn_digest leaf[MOST];
    random_leaves(&rng, leaf, MOST);
    for (size_t k = 0; k < NSIZES; k++) {
        crn_tree t;
        assert_ok(crn_tree_build(leaf, sizes[k], &t));
        assert_tree_is(&t, leaf, sizes[k]);
        crn_tree_done(&t);
    }
}

static void test_build_of_nothing_is_the_empty_tree(void **state)
{
    (void)state;
    crn_tree t;
    crn_digest zero = {{0}}, root;
    assert_ok(crn_tree_build(NULL, 0, &t));
    assert_int_equal(t.nlevels, 0);
    root = crn_tree_root(&t);
    assert_true(crn_digest_equal(&root, &zero));
    crn_tree_update(&t, NULL, NULL, 0);
    crn_tree_done(&t);
    crn_tree_done(&t);
}

/* The shape is part of the file format: this value may never change. */
static void test_root_known_answer(void **state)
{
    (void)state;
    crn_digest leaf[5];
    for (unsigned char i = 0; i < 5; i++)
        leaf[i] = crn_digest_of(&i, 1);
    crn_tree t;
    assert_ok(crn_tree_build(leaf, 5, &t));
    char text[CRN_DIGEST_TEXT];
    crn_digest root = crn_tree_root(&t);
    assert_string_equal(crn_digest_format(&root, text), "06113ae7b128ef7e8990486af9d0eb20");
    crn_tree_done(&t);
}

static void test_build_without_memory(void **state)
{
    (void)state;
    crn_digest leaf[2] = {{{1}}, {{2}}};
    crn_tree t = {.nleaves = 77};
    crn_mem_fail_at(1);
    assert_fails(crn_tree_build(leaf, 2, &t), CAIRN_ENOMEM, "cannot allocate");
    assert_int_equal(t.nleaves, 77);
}

/* Ascending random indices below n; about one in sparse. */
static size_t random_indices(crn_rng *rng, size_t n, uint64_t sparse, size_t *index)
{
    size_t nchanged = 0;
    for (size_t i = 0; i < n; i++)
        if (crn_rng_below(rng, sparse) == 0)
            index[nchanged++] = i;
    return nchanged;
}

static void test_update_equals_build(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 2);
    crn_digest leaf[MOST], fresh[MOST];
    size_t index[MOST];
    random_leaves(&rng, leaf, MOST);
    for (size_t k = 0; k < NSIZES; k++)
        for (uint64_t sparse = 1; sparse <= 64; sparse *= 4) {
            crn_tree t;
            assert_ok(crn_tree_build(leaf, sizes[k], &t));
            size_t n = random_indices(&rng, sizes[k], sparse, index);
            random_leaves(&rng, fresh, n);
            for (size_t i = 0; i < n; i++)
                leaf[index[i]] = fresh[i];
            crn_tree_update(&t, index, fresh, n);
            assert_tree_is(&t, leaf, sizes[k]);
            crn_tree_done(&t);
        }
}

/* Compare trees of na and nb leaves that differ at about one in sparse of the common ones. */
static void check_diff(crn_rng *rng, size_t na, size_t nb, uint64_t sparse, size_t start_width)
{
    crn_digest la[MOST], lb[MOST];
    size_t index[MOST], common = CRN_MIN(na, nb);
    random_leaves(rng, la, na);
    random_leaves(rng, lb, nb);
    memcpy(lb, la, common * sizeof *la);
    size_t n = random_indices(rng, common, sparse, index);
    for (size_t i = 0; i < n; i++)
        lb[index[i]] = random_digest(rng);

    crn_tree a, b;
    crn_tree_delta d;
    assert_ok(crn_tree_build(la, na, &a));
    assert_ok(crn_tree_build(lb, nb, &b));
    assert_ok(crn_tree_diff(&a, &b, start_width, &d));
    assert_int_equal(d.common, common);
    assert_int_equal(d.leaf.n, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(d.leaf.at[i], index[i]);
    assert_true(d.visited <= crn_tree_nnodes(common));
    crn_tree_delta_done(&d);
    crn_tree_done(&a);
    crn_tree_done(&b);
}

static void test_diff_every_pair_of_sizes(void **state)
{
    (void)state;
    static const size_t widths[] = {0, 1, 2, 3, 8, 33, MOST, SIZE_MAX};
    crn_rng rng = crn_rng_of(test_seed(), 3);
    for (size_t i = 0; i < NSIZES; i++)
        for (size_t k = 0; k < NSIZES; k++)
            check_diff(&rng, sizes[i], sizes[k], 1 + crn_rng_below(&rng, 40),
                       widths[crn_rng_below(&rng, sizeof widths / sizeof *widths)]);
}

static void test_diff_random(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 4);
    for (int round = 0; round < 2000; round++) {
        size_t na = crn_rng_below(&rng, 40), nb = crn_rng_below(&rng, 40);
        check_diff(&rng, na, crn_rng_below(&rng, 2) ? na : nb, 1 + crn_rng_below(&rng, 20),
                   crn_rng_below(&rng, 50));
    }
}

/* Nodes compared, and leaves found, between the first na and the first nb of two lists. */
static size_t visits(const crn_digest *la, size_t na, const crn_digest *lb, size_t nb,
                     size_t start_width, size_t *ret_nfound)
{
    crn_tree a, b;
    crn_tree_delta d;
    assert_ok(crn_tree_build(la, na, &a));
    assert_ok(crn_tree_build(lb, nb, &b));
    assert_ok(crn_tree_diff(&a, &b, start_width, &d));
    size_t visited = d.visited;
    *ret_nfound = d.leaf.n;
    crn_tree_delta_done(&d);
    crn_tree_done(&a);
    crn_tree_done(&b);
    return visited;
}

/* What the tree is for: equal trees cost one look per start node, one change costs one path. */
static void test_diff_prunes(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 5);
    crn_digest la[MOST], lb[MOST];
    size_t n;
    random_leaves(&rng, la, MOST);
    memcpy(lb, la, sizeof lb);
    assert_int_equal(visits(la, 256, lb, 256, 0, &n), 1);
    assert_int_equal(visits(la, 256, lb, 256, 16, &n), 16);
    assert_int_equal(visits(la, 255, lb, 255, 0, &n), 1); /* also where the last node is not full */
    assert_int_equal(visits(la, 256, lb, 257, 0, &n), 1); /* the common part is one node of both */
    assert_int_equal(visits(la, 255, lb, 257, 0, &n), 8); /* 128 + 64 + ... + 1: whole nodes only */
    assert_int_equal(n, 0);

    lb[77] = random_digest(&rng);
    assert_int_equal(visits(la, 256, lb, 256, 0, &n), 1 + 2 * 8); /* two children on 8 levels */
    assert_int_equal(n, 1);
}

static void test_diff_without_memory(void **state)
{
    (void)state;
    crn_digest la[2] = {{{1}}, {{2}}}, lb[2] = {{{1}}, {{3}}};
    crn_tree a, b;
    assert_ok(crn_tree_build(la, 2, &a));
    assert_ok(crn_tree_build(lb, 2, &b));
    crn_tree_delta d = {.common = 77};
    crn_mem_fail_at(1);
    assert_fails(crn_tree_diff(&a, &b, 0, &d), CAIRN_ENOMEM, "cannot allocate");
    assert_int_equal(d.common, 77);
    crn_tree_done(&a);
    crn_tree_done(&b);
}

static void put_tree(crn_rng *rng, size_t nleaves, crn_buf *buf)
{
    crn_digest leaf[MOST];
    random_leaves(rng, leaf, nleaves);
    crn_tree t;
    assert_ok(crn_tree_build(leaf, nleaves, &t));
    crn_tree_put(&t, buf);
    assert_ok(crn_buf_status(buf));
    crn_tree_done(&t);
}

static void test_put_get_round_trip(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 6);
    for (size_t k = 0; k < NSIZES; k++) {
        crn_buf buf = {0}, again = {0};
        put_tree(&rng, sizes[k], &buf);
        assert_int_equal(buf.n, 8 + 16 * crn_tree_nnodes(sizes[k]));
        crn_put_u8(&buf, 99); /* what follows a tree is not its own */
        crn_cursor cur = crn_cursor_of(buf.at, buf.n);
        crn_tree t;
        assert_ok(crn_tree_get(&cur, &t));
        assert_int_equal(crn_get_u8(&cur), 99);
        crn_tree_put(&t, &again);
        assert_int_equal(again.n, buf.n - 1);
        assert_memory_equal(again.at, buf.at, again.n);
        crn_tree_done(&t);
        crn_buf_done(&buf);
        crn_buf_done(&again);
    }
}

static void test_get_refuses_every_cut(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 7);
    crn_buf buf = {0};
    put_tree(&rng, 7, &buf);
    for (size_t n = 0; n < buf.n; n++) {
        crn_cursor cur = crn_cursor_of(buf.at, n);
        crn_tree t = {.nleaves = 77};
        assert_fails(crn_tree_get(&cur, &t), CAIRN_ECORRUPT, "a hash tree is cut short");
        assert_int_equal(t.nleaves, 77);
    }
    crn_buf_done(&buf);
}

static void test_get_refuses_every_flipped_bit(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 8);
    crn_buf buf = {0};
    put_tree(&rng, 11, &buf);
    for (size_t bit = 0; bit < 8 * buf.n; bit++) {
        buf.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
        crn_cursor cur = crn_cursor_of(buf.at, buf.n);
        crn_tree t;
        assert_fails(crn_tree_get(&cur, &t), CAIRN_ECORRUPT, "a hash tree");
        assert_true(cur.failed);
        buf.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    crn_buf_done(&buf);
}

/* A length is believed only when its bytes are there: nothing is allocated before. */
static void test_get_refuses_huge_lengths(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {3, UINT64_MAX, UINT64_MAX / 2 + 2, UINT64_MAX / 16 + 1};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        crn_buf buf = {0};
        crn_put_u64(&buf, lengths[i]);
        crn_put_zeros(&buf, 64);
        crn_cursor cur = crn_cursor_of(buf.at, buf.n);
        crn_tree t;
        assert_fails(crn_tree_get(&cur, &t), CAIRN_ECORRUPT, "a hash tree is cut short");
        crn_buf_done(&buf);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_build_matches_model),
        cmocka_unit_test(test_build_of_nothing_is_the_empty_tree),
        cmocka_unit_test(test_root_known_answer),
        cmocka_unit_test(test_build_without_memory),
        cmocka_unit_test(test_update_equals_build),
        cmocka_unit_test(test_diff_every_pair_of_sizes),
        cmocka_unit_test(test_diff_random),
        cmocka_unit_test(test_diff_prunes),
        cmocka_unit_test(test_diff_without_memory),
        cmocka_unit_test(test_put_get_round_trip),
        cmocka_unit_test(test_get_refuses_every_cut),
        cmocka_unit_test(test_get_refuses_every_flipped_bit),
        cmocka_unit_test(test_get_refuses_huge_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
