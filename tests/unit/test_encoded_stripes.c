/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The arithmetic of stripes against a plain walk over all of them, for all small sets.
 *
 * NEEDS: random123
 */
#include "harness/harness.h"
#include "level/level_encoded.h"

enum { SEATS = 7, STRIPES = 200 };

static void each_shape(void check(const crn_stripes *s))
{
    static const uint32_t chunks[] = {1, 2, 5};
    for (uint32_t n = 2; n <= SEATS; n++)
        for (uint32_t m = 1; m < n; m++)
            for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++)
                check(&(crn_stripes){.nseats = n, .nparity = m, .chunk = chunks[c]});
}

/* Each seat has one unit of each stripe; units of a kind are numbered in the order of stripes. */
static void check_units(const crn_stripes *s)
{
    uint64_t ndata[SEATS] = {0}, nparity[SEATS] = {0};
    for (uint64_t stripe = 0; stripe < STRIPES; stripe++) {
        uint32_t parity = 0;
        for (uint32_t seat = 0; seat < s->nseats; seat++) {
            int role = crn_stripe_role(s, stripe, seat);
            assert_int_equal(crn_stripe_seat(s, stripe, role), seat);
            assert_int_equal(crn_stripes_nparity(s, stripe, seat), nparity[seat]);
            uint64_t unit = crn_stripe_unit(s, stripe, seat);
            if (crn_stripe_is_data(s, stripe, seat)) {
                assert_in_range(role, 0, s->nseats - s->nparity - 1);
                assert_int_equal(unit, ndata[seat]++);
                assert_int_equal(crn_stripe_of(s, seat, unit), stripe);
            } else {
                assert_in_range(role, s->nseats - s->nparity, s->nseats - 1);
                assert_int_equal(unit, nparity[seat]++);
                parity++;
            }
        }
        assert_int_equal(parity, s->nparity);
    }
}

static void test_units_and_stripes(void **state)
{
    (void)state;
    each_shape(check_units);
}

/* Parity is spread: after whole periods each seat has the same share of it. */
static void check_balance(const crn_stripes *s)
{
    uint64_t period = (uint64_t)s->nseats * s->chunk;
    for (uint32_t seat = 0; seat < s->nseats; seat++)
        assert_int_equal(crn_stripes_nparity(s, 3 * period, seat), 3 * s->nparity * s->chunk);
}

static void test_parity_is_spread(void **state)
{
    (void)state;
    each_shape(check_balance);
}

static bool has_data(const crn_stripes *s, uint64_t stripe, const uint64_t *nunits)
{
    for (uint32_t seat = 0; seat < s->nseats; seat++)
        if (crn_stripe_is_data(s, stripe, seat) && crn_stripe_unit(s, stripe, seat) < nunits[seat])
            return true;
    return false;
}

static void check_count(const crn_stripes *s)
{
    crn_rng rng = crn_rng_of(test_seed(), s->nseats);
    for (int i = 0; i < 20; i++) {
        uint64_t nunits[SEATS], last = 0;
        for (uint32_t seat = 0; seat < s->nseats; seat++)
            nunits[seat] = crn_rng_below(&rng, 20);
        for (uint64_t stripe = 0; stripe < STRIPES; stripe++)
            if (has_data(s, stripe, nunits))
                last = stripe + 1;
        assert_int_equal(crn_stripes_count(s, nunits), last);
    }
}

static void test_stripes_end_with_the_data(void **state)
{
    (void)state;
    each_shape(check_count);
}

/* Groups lie one behind the other, and each node is in the one that it says. */
static void check_groups(int nnodes, int group)
{
    int first, n, next = 0;
    for (int node = 0; node < nnodes; node++) {
        crn_group_of(nnodes, group, node, &first, &n);
        if (node == next)
            next = first + n;
        assert_in_range(n, group, 2 * group - 1);
        assert_in_range(node, first, first + n - 1);
        assert_int_equal(first + n, next);
    }
    assert_int_equal(next, nnodes);
}

static void test_groups_cover_all_nodes(void **state)
{
    (void)state;
    for (int group = 2; group <= 9; group++)
        for (int nnodes = group; nnodes <= 60; nnodes++)
            check_groups(nnodes, group);
}

static void test_chunks_grow_with_the_state(void **state)
{
    (void)state;
    uint32_t before = 1;
    assert_int_equal(crn_stripes_chunk(4, 2, 0), 1);
    assert_int_equal(crn_stripes_chunk(4, 2, UINT64_MAX / 2), crn_stripes_depth(4));
    for (uint64_t nunits = 0; nunits < 1000; nunits++) {
        uint32_t chunk = crn_stripes_chunk(4, 2, nunits);
        assert_true(chunk == before || chunk == 2 * before);
        assert_true(chunk == 1 || (uint64_t)chunk * 2 * 8 <= nunits);
        before = chunk;
    }
    for (uint32_t n = 2; n <= CRN_ERASURE_MAX; n++)
        assert_in_range(crn_stripes_depth(n), 1, 4);
}

static crn_layout some_layout(void)
{
    crn_layout l = {.own = 1, .stripes = {.nseats = 3, .nparity = 1, .chunk = 4}};
    for (uint32_t i = 0; i < 3; i++)
        l.seat[i] = (crn_seat){.file = i, .rank = i, .nunits = 10 * i, .share_bytes = 100};
    l.seat[2] = (crn_seat){.file = 9, .rank = CRN_SEAT_IDLE};
    memset(l.seal.b, 7, sizeof l.seal.b);
    return l;
}

static void test_layout_travels(void **state)
{
    (void)state;
    crn_layout l = some_layout(), back;
    crn_buf buf = {0};
    crn_layout_put(&l, &buf);
    crn_cursor cur = crn_cursor_of(buf.at, buf.n);
    assert_ok(crn_layout_get(&cur, &back));
    assert_int_equal(cur.n, 0);
    assert_memory_equal(&l, &back, sizeof l);
    for (size_t n = 0; n < buf.n; n++) {
        cur = crn_cursor_of(buf.at, n);
        assert_fails(crn_layout_get(&cur, &back), CAIRN_ECORRUPT, "layout of parity");
    }
    crn_buf_done(&buf);
}

static void bad_layout(crn_layout *l)
{
    crn_layout back;
    crn_buf buf = {0};
    crn_layout_put(l, &buf);
    crn_cursor cur = crn_cursor_of(buf.at, buf.n);
    assert_fails(crn_layout_get(&cur, &back), CAIRN_ECORRUPT, "layout of parity");
    crn_buf_done(&buf);
    *l = some_layout();
}

static void test_layout_is_checked(void **state)
{
    (void)state;
    crn_layout l = some_layout();
    l.stripes.nparity = 0, bad_layout(&l);
    l.stripes.nparity = 3, bad_layout(&l);
    l.stripes.chunk = 0, bad_layout(&l);
    l.own = 3, bad_layout(&l);
    l.seat[0].nunits = UINT64_MAX, bad_layout(&l);
    l.seat[0].share_bytes = UINT64_MAX, bad_layout(&l);
    l.seat[2].nunits = 1, bad_layout(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units_and_stripes),
        cmocka_unit_test(test_parity_is_spread),
        cmocka_unit_test(test_stripes_end_with_the_data),
        cmocka_unit_test(test_groups_cover_all_nodes),
        cmocka_unit_test(test_chunks_grow_with_the_state),
        cmocka_unit_test(test_layout_travels),
        cmocka_unit_test(test_layout_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
