/* SPDX-License-Identifier: BSD-3-Clause
 *
 * NEEDS: random123
 */
#include "harness/harness.h"

#include "tracefmt/tracefmt.h"

typedef CRN_VEC(int64_t) values;

static void add(values *v, int64_t x)
{
    assert_ok(crn_vec_push(v, x));
}

/* Encode the values; the items must give them back, checked, whole and in runs. */
static crn_seq round_trip(const values *v)
{
    crn_seq s;
    crn_seq_iter it;
    int64_t x, stride;
    uint64_t n, sum = 0;
    assert_ok(crn_seq_of(v->at, v->n, &s));
    assert_ok(crn_seq_check(&s));
    assert_int_equal(crn_seq_count(&s), v->n);
    crn_seq_iter_init(&it, &s);
    for (size_t i = 0; i < v->n; i++) {
        assert_true(crn_seq_next(&it, &x));
        assert_int_equal(x, v->at[i]);
        sum += (uint64_t)x;
    }
    assert_false(crn_seq_next(&it, &x));
    assert_true((uint64_t)crn_seq_sum(&s, v->n) == sum);
    crn_seq_iter_init(&it, &s);
    for (size_t i = 0; crn_seq_next_run(&it, 7, &x, &stride, &n); i += n) {
        assert_int_equal(x, v->at[i]);
        assert_int_equal((uint64_t)x + (n - 1) * (uint64_t)stride, v->at[i + n - 1]);
    }
    return s;
}

static void expect_nbytes(const values *v, size_t max)
{
    crn_seq s = round_trip(v);
    assert_in_range(s.n, 1, max);
    crn_seq_done(&s);
}

static void test_nested_strides_fold(void **state)
{
    (void)state;
    values v = {0};
    for (int t = 0; t < 50; t++)
        for (int j = 0; j < 20; j++)
            for (int i = 0; i < 30; i++)
                add(&v, 1000000 * t + 1000 * j + 10 * i);
    expect_nbytes(&v, 60);
    crn_vec_done(&v);
}

static void test_periods_fold(void **state)
{
    (void)state;
    values v = {0};
    const int64_t peer[] = {-1, 1, -8, 8, -64, 64, 3};
    for (int t = 0; t < 10000; t++)
        add(&v, peer[t % 7]);
    expect_nbytes(&v, 60);
    v.n = 0;
    for (int t = 0; t < 3000; t++)
        add(&v, t % 10 == 9 ? 16 : 8);
    expect_nbytes(&v, 30);
    crn_vec_done(&v);
}

static void test_constant_has_no_items(void **state)
{
    (void)state;
    crn_seq_build b = {0};
    crn_seq s;
    int64_t x;
    crn_seq_iter it;
    for (int i = 0; i < 1000; i++)
        crn_seq_add(&b, -5);
    assert_ok(crn_seq_encode(&b, NULL, true, &s));
    assert_int_equal(s.n, 0);
    crn_seq_iter_init(&it, &s);
    for (int i = 0; i < 2000; i++) {
        assert_true(crn_seq_next(&it, &x));
        assert_int_equal(x, -5);
    }
    crn_seq_build_done(&b);
}

/* Random mixtures of runs, periods and noise, with extreme values. */
static void random_values(values *v, crn_rng *r)
{
    size_t n = 1 + crn_rng_below(r, 3000);
    while (v->n < n) {
        uint64_t what = crn_rng_below(r, 4), len = 1 + crn_rng_below(r, 40), start = v->n;
        uint64_t at = crn_rng_below(r, 50), step = crn_rng_below(r, 5);
        for (uint64_t i = 0; i < len; i++) {
            if (what == 0)
                add(v, (int64_t)crn_rng_u64(r));
            else if (what == 1)
                add(v, (int64_t)(at + i * step));
            else if (what == 2)
                add(v, (int64_t)crn_rng_below(r, 3));
            else /* repeat something from before */
                add(v, start > 0 ? v->at[start - 1 - i % CRN_MIN(start, 9)] : INT64_MIN);
        }
    }
}

/* It is its values; not fewer, not more, and none other. */
static void expect_is(const crn_seq *s, values *v, crn_rng *r)
{
    size_t at = crn_rng_below(r, v->n);
    add(v, 0); /* room to ask for one more */
    v->n--;
    assert_true(crn_seq_is(s, v->at, v->n));
    assert_false(crn_seq_is(s, v->at, v->n - 1));
    assert_false(crn_seq_is(s, v->at, v->n + 1));
    v->at[at] ^= 1;
    assert_false(crn_seq_is(s, v->at, v->n));
    v->at[at] ^= 1;
}

static void test_random_values_come_back(void **state)
{
    (void)state;
    crn_rng r = crn_rng_of(test_seed(), 1);
    for (int i = 0; i < 200; i++) {
        values v = {0};
        random_values(&v, &r);
        crn_seq s = round_trip(&v);
        for (int k = 0; k < 20; k++) {
            uint64_t at = crn_rng_below(&r, v.n);
            assert_int_equal(crn_seq_at(&s, at), v.at[at]);
        }
        expect_is(&s, &v, &r);
        crn_seq_done(&s);
        crn_vec_done(&v);
    }
    crn_seq none;
    assert_ok(crn_seq_of(NULL, 0, &none));
    assert_true(crn_seq_is(&none, NULL, 0));
    assert_false(crn_seq_is(&none, (const int64_t[]){0}, 1));
}

static void test_add_run_equals_adding_each(void **state)
{
    (void)state;
    crn_rng r = crn_rng_of(test_seed(), 2);
    crn_seq_build runs = {0}, each = {0};
    for (int i = 0; i < 500; i++) {
        int64_t v = (int64_t)crn_rng_below(&r, 9), stride = (int64_t)crn_rng_below(&r, 3) - 1;
        uint64_t n = crn_rng_below(&r, 50);
        crn_seq_add_run(&runs, v, stride, n);
        for (uint64_t k = 0; k < n; k++)
            crn_seq_add(&each, v + (int64_t)k * stride);
    }
    crn_seq a, b;
    assert_ok(crn_seq_encode(&runs, NULL, false, &a));
    assert_ok(crn_seq_encode(&each, NULL, false, &b));
    assert_true(crn_seq_equal(&a, &b));
    crn_seq_done(&a);
    crn_seq_done(&b);
    crn_seq_build_done(&runs);
    crn_seq_build_done(&each);
}

static void test_one_more_value_leaves_the_rest(void **state)
{
    (void)state;
    crn_rng r = crn_rng_of(test_seed(), 4);
    crn_seq_build b = {0};
    values v = {0};
    for (int i = 0; i < 300; i++) {
        crn_seq s;
        int64_t more = (int64_t)crn_rng_below(&r, 3), x;
        assert_ok(crn_seq_encode(&b, &more, false, &s));
        assert_ok(crn_seq_check(&s));
        assert_int_equal(crn_seq_count(&s), v.n + 1);
        crn_seq_iter it;
        crn_seq_iter_init(&it, &s);
        for (size_t k = 0; k < v.n; k++) {
            assert_true(crn_seq_next(&it, &x));
            assert_int_equal(x, v.at[k]);
        }
        assert_true(crn_seq_next(&it, &x));
        assert_int_equal(x, more);
        crn_seq_done(&s);
        add(&v, (int64_t)crn_rng_below(&r, 3));
        crn_seq_add(&b, v.at[v.n - 1]);
    }
    crn_seq_build_done(&b);
    crn_vec_done(&v);
}

static void test_find_among_ranks(void **state)
{
    (void)state;
    values v = {0};
    uint64_t at;
    for (int row = 0; row < 8; row++)
        for (int i = 0; i < 5; i++)
            add(&v, row * 100 + 3 * i);
    crn_seq s = round_trip(&v);
    for (size_t i = 0; i < v.n; i++) {
        assert_true(crn_seq_find(&s, v.at[i], &at));
        assert_int_equal(at, i);
        assert_false(crn_seq_find(&s, v.at[i] + 1, &at));
    }
    assert_false(crn_seq_find(&s, 100000, &at));
    crn_seq_done(&s);
    crn_vec_done(&v);
}

static void test_memory_stays_bounded(void **state)
{
    (void)state;
    crn_seq_build b = {0};
    for (int i = 0; i < 10000000; i++)
        crn_seq_add(&b, i / 1000 + i % 4);
    assert_in_range(crn_seq_build_nbytes(&b), 0, 100000);
    assert_int_equal(b.count, 10000000);
    crn_seq_build_done(&b);
}

static void test_damaged_items_are_refused(void **state)
{
    (void)state;
    crn_rng r = crn_rng_of(test_seed(), 3);
    unsigned char bytes[40];
    crn_seq_iter it;
    int64_t x;
    unsigned char deep[200]; /* loops of one loop of one loop ... */
    memset(deep, 3, sizeof deep);
    for (size_t i = 1; i < sizeof deep; i += 2)
        deep[i] = 1;
    assert_fails(crn_seq_check(&(crn_seq){.at = deep, .n = sizeof deep}), CAIRN_ECORRUPT,
                 "damaged");
    for (int i = 0; i < 100000; i++) {
        crn_seq s = {.at = bytes, .n = 1 + crn_rng_below(&r, sizeof bytes)};
        for (size_t k = 0; k < s.n; k++)
            bytes[k] = (unsigned char)crn_rng_below(&r, crn_rng_below(&r, 2) ? 8 : 256);
        if (crn_seq_check(&s) < 0)
            continue;
        uint64_t n = crn_seq_count(&s);
        crn_seq_iter_init(&it, &s);
        for (uint64_t k = 0; k < CRN_MIN(n, 1000); k++)
            assert_true(crn_seq_next(&it, &x));
        if (n < 1000)
            assert_false(crn_seq_next(&it, &x));
    }
}

/* Loops are memory, too: here the window is full of them. */
static void test_loops_count_as_memory(void **state)
{
    (void)state;
    enum { LOOPS = 100, VALUES = 100, TURNS = 4 };
    crn_seq_build b = {0};
    int64_t value[VALUES];
    crn_rng rng = crn_rng_of(test_seed(), 5);
    for (int i = 0; i < LOOPS; i++) {
        for (int k = 0; k < VALUES; k++)
            value[k] = (int64_t)crn_rng_u64(&rng);
        for (int k = 0; k < TURNS * VALUES; k++)
            crn_seq_add(&b, value[k % VALUES]);
    }
    size_t run = 4 * sizeof(int64_t); /* at least */
    assert_in_range(crn_seq_build_nbytes(&b), LOOPS * VALUES / 2 * run, 1 << 20);
    for (int i = 0; i < 2000; i++) /* as they leave, they go */
        crn_seq_add(&b, (int64_t)crn_rng_u64(&rng));
    assert_int_equal(crn_seq_build_nbytes(&b), crn_seq_build_irregular(&b));
    crn_seq_build_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nested_strides_fold),
        cmocka_unit_test(test_periods_fold),
        cmocka_unit_test(test_constant_has_no_items),
        cmocka_unit_test(test_random_values_come_back),
        cmocka_unit_test(test_add_run_equals_adding_each),
        cmocka_unit_test(test_one_more_value_leaves_the_rest),
        cmocka_unit_test(test_find_among_ranks),
        cmocka_unit_test(test_memory_stays_bounded),
        cmocka_unit_test(test_loops_count_as_memory),
        cmocka_unit_test(test_damaged_items_are_refused),
    };
    return cmocka_run_group_tests_name("tracefmt_seq", tests, NULL, NULL);
}
