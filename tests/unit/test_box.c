/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Boxes against counting every element: stretches, tilings made by cutting at random, overlaps,
 * holes.
 *
 * NEEDS: random123
 */
#include "harness/harness.h"

#include "redist/redist.h"

static bool is_same(const crn_box *a, const crn_box *b)
{
    for (uint32_t d = 0; d < a->ndims && a->ndims == b->ndims; d++)
        if (a->lo[d] != b->lo[d] || a->hi[d] != b->hi[d])
            return false;
    return a->ndims == b->ndims;
}

/* --- stretches ---------------------------------------------------------------------------- */

static crn_box random_box(crn_rng *rng, uint32_t ndims, uint64_t below)
{
    crn_box b = {.ndims = ndims};
    for (uint32_t d = 0; d < ndims; d++) {
        b.lo[d] = crn_rng_below(rng, below);
        b.hi[d] = b.lo[d] + 1 + crn_rng_below(rng, below);
    }
    return b;
}

/* The number of an element in an array that fills a box. */
static uint64_t place_in(const crn_box *b, const uint64_t *index)
{
    uint64_t place = 0;
    for (uint32_t d = 0; d < b->ndims; d++)
        place = place * (b->hi[d] - b->lo[d]) + index[d] - b->lo[d];
    return place;
}

/* The next element of a box; false behind the last. */
static bool step(const crn_box *b, uint64_t *index)
{
    for (uint32_t d = b->ndims; d-- > 0;) {
        if (++index[d] < b->hi[d])
            return true;
        index[d] = b->lo[d];
    }
    return false;
}

static void check_stretches(const crn_box *common, const crn_box *from, const crn_box *to)
{
    crn_stretches r = crn_stretches_of(common, from, to);
    uint64_t index[CRN_DIMS_MAX], k = 0;
    memcpy(index, common->lo, sizeof index);
    assert_true(crn_stretches_next(&r));
    do {
        if (k == r.n) {
            assert_true(crn_stretches_next(&r));
            k = 0;
        }
        assert_true(r.from + k == place_in(from, index) && r.to + k == place_in(to, index));
        k++;
    } while (step(common, index));
    assert_true(k == r.n);
    assert_false(crn_stretches_next(&r));
}

static void test_stretches_are_the_common_elements_in_order(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 1);
    int nonempty = 0;
    for (int round = 0; round < 3000; round++) {
        const uint32_t ndims = 1 + (uint32_t)crn_rng_below(&rng, 5);
        crn_box from = random_box(&rng, ndims, 5), to = random_box(&rng, ndims, 5), common;
        if (!crn_box_cut(&from, &to, &common))
            continue;
        nonempty++;
        check_stretches(&common, &from, &to);
    }
    assert_true(nonempty > 100);
}

static void test_stretches_are_as_long_as_can_be(void **state)
{
    (void)state;
    const crn_box all = {.ndims = 3, .hi = {6, 4, 5}}, slab = {3, {2, 0, 0}, {5, 4, 5}};
    crn_stretches r = crn_stretches_of(&slab, &all, &slab);
    assert_true(crn_stretches_next(&r));
    assert_true(r.from == 40 && r.to == 0 && r.n == 60);
    assert_false(crn_stretches_next(&r));
}

/* --- tilings ------------------------------------------------------------------------------ */

/* Cut a box across at random places until there are n. */
static void cut_up(crn_rng *rng, const crn_box *whole, size_t n, crn_claims *ret)
{
    ret->n = 0;
    assert_ok(crn_vec_push(ret, (crn_claim){0, *whole}));
    for (int tries = 0; ret->n < n && tries < 10000; tries++) {
        const size_t i = crn_rng_below(rng, ret->n);
        const uint32_t d = (uint32_t)crn_rng_below(rng, whole->ndims);
        crn_box *b = &ret->at[i].box;
        if (b->hi[d] - b->lo[d] < 2)
            continue;
        crn_box high = *b;
        high.lo[d] += 1 + crn_rng_below(rng, b->hi[d] - b->lo[d] - 1);
        b->hi[d] = high.lo[d];
        assert_ok(crn_vec_push(ret, (crn_claim){(uint32_t)ret->n, high}));
    }
}

/* Five boxes of which no cut goes all across. */
static void pinwheel(crn_claims *ret)
{
    static const crn_claim wheel[] = {{0, {2, {0, 0}, {2, 4}}},
                                      {1, {2, {0, 4}, {4, 6}}},
                                      {2, {2, {4, 2}, {6, 6}}},
                                      {3, {2, {2, 0}, {6, 2}}},
                                      {4, {2, {2, 2}, {4, 4}}}};
    ret->n = 0;
    for (size_t i = 0; i < sizeof wheel / sizeof *wheel; i++)
        assert_ok(crn_vec_push(ret, wheel[i]));
}

static const crn_claim *claim_of(const crn_claims *c, int64_t rank)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->at[i].rank == rank)
            return &c->at[i];
    fail_msg("no claim of rank %d", (int)rank);
    return NULL;
}

static void check_whole(crn_claims *c, const crn_box *whole)
{
    crn_tiling t;
    assert_ok(crn_claims_check(c->at, c->n, whole, &t));
    assert_int_equal(t.fault, CRN_TILING_WHOLE);
}

/* A claim taken away leaves a hole in its place, which nobody else has. */
static void check_hole(crn_claims *c, const crn_box *whole, size_t which)
{
    crn_tiling t;
    crn_box common;
    const crn_claim gone = c->at[which];
    c->at[which] = c->at[--c->n];
    assert_ok(crn_claims_check(c->at, c->n, whole, &t));
    assert_int_equal(t.fault, CRN_TILING_HOLE);
    assert_true(crn_box_cut(&t.where, &gone.box, &common));
    assert_true(is_same(&common, &t.where) && crn_box_volume(&common) > 0);
    for (int i = 0; i < 2; i++)
        assert_true(t.rank[i] == -1 || claim_of(c, t.rank[i])->rank != gone.rank);
    c->at[c->n++] = gone;
}

/* A claim made larger overlaps another: exactly where both say. */
static void check_overlap(crn_claims *c, const crn_box *whole, crn_rng *rng, size_t which)
{
    crn_tiling t;
    crn_box common;
    const uint32_t d = (uint32_t)crn_rng_below(rng, whole->ndims);
    crn_box *b = &c->at[which].box;
    const crn_box before = *b;
    const uint32_t rank = c->at[which].rank;
    if (b->hi[d] < whole->hi[d])
        b->hi[d]++;
    else if (b->lo[d] > 0)
        b->lo[d]--;
    else
        return;
    assert_ok(crn_claims_check(c->at, c->n, whole, &t));
    assert_int_equal(t.fault, CRN_TILING_OVERLAP);
    assert_true(t.rank[0] == rank || t.rank[1] == rank);
    assert_true(t.rank[0] < t.rank[1]);
    assert_true(crn_box_cut(&claim_of(c, t.rank[0])->box, &claim_of(c, t.rank[1])->box, &common));
    assert_true(is_same(&common, &t.where));
    for (size_t i = 0; i < c->n; i++)
        if (c->at[i].rank == rank)
            c->at[i].box = before;
}

static void test_tilings_are_told_from_others(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 2);
    crn_claims c = {0};
    for (int round = 0; round < 400; round++) {
        crn_box whole = random_box(&rng, 1 + (uint32_t)crn_rng_below(&rng, 4), 12);
        memset(whole.lo, 0, sizeof whole.lo);
        if (round % 10 == 0) {
            whole = (crn_box){.ndims = 2, .hi = {6, 6}};
            pinwheel(&c);
        } else {
            cut_up(&rng, &whole, 1 + crn_rng_below(&rng, 30), &c);
        }
        check_whole(&c, &whole);
        check_hole(&c, &whole, crn_rng_below(&rng, c.n));
        check_overlap(&c, &whole, &rng, crn_rng_below(&rng, c.n));
        check_whole(&c, &whole);
    }
    crn_vec_done(&c);
}

static void test_hole_has_its_neighbours(void **state)
{
    (void)state;
    crn_claim c[] = {{7, {2, {0, 0}, {4, 8}}}, {9, {2, {6, 0}, {16, 8}}}};
    const crn_box whole = {.ndims = 2, .hi = {16, 8}};
    char text[CRN_BOX_TEXT];
    crn_tiling t;
    assert_ok(crn_claims_check(c, 2, &whole, &t));
    assert_int_equal(t.fault, CRN_TILING_HOLE);
    assert_true(t.rank[0] == 7 && t.rank[1] == 9);
    assert_string_equal(crn_box_format(&t.where, text), "[4:6, 0:8]");
    assert_ok(crn_claims_check(c, 0, &whole, &t));
    assert_true(t.fault == CRN_TILING_HOLE && t.rank[0] == -1 && t.rank[1] == -1);
    assert_string_equal(crn_box_format(&t.where, text), "[0:16, 0:8]");
}

/* A quarter of a million boxes in a grid: would not end in time if every pair of a row were looked
 * at. */
static void test_grids_are_checked_fast(void **state)
{
    (void)state;
    enum { SIDE = 64 };
    crn_claims c = {0};
    const crn_box whole = {.ndims = 3, .hi = {SIDE, SIDE, SIDE}};
    assert_ok(crn_vec_reserve(&c, SIDE * SIDE * SIDE));
    for (uint64_t i = 0; i < SIDE * SIDE * SIDE; i++)
        c.at[c.n++] = (crn_claim){(uint32_t)i,
                                  {3,
                                   {i / SIDE / SIDE, i / SIDE % SIDE, i % SIDE},
                                   {i / SIDE / SIDE + 1, i / SIDE % SIDE + 1, i % SIDE + 1}}};
    check_whole(&c, &whole);
    c.at[0].box.hi[0]++;
    crn_tiling t;
    assert_ok(crn_claims_check(c.at, c.n, &whole, &t));
    assert_int_equal(t.fault, CRN_TILING_OVERLAP);
    crn_vec_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stretches_are_the_common_elements_in_order),
        cmocka_unit_test(test_stretches_are_as_long_as_can_be),
        cmocka_unit_test(test_tilings_are_told_from_others),
        cmocka_unit_test(test_hole_has_its_neighbours),
        cmocka_unit_test(test_grids_are_checked_fast),
    };
    return cmocka_run_group_tests_name("box", tests, NULL, NULL);
}
