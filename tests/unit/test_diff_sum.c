/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sums are exact, and so the same in whatever order and groups they are made; their roots neither
 * overflow nor underflow.
 *
 * NEEDS: random123
 */
#include "diff/diff.h"
#include "harness/harness.h"

#include <float.h>
#include <math.h>

enum { N = 500 };

/* From the smallest numbers to such that a few of them are too many. */
static double some_number(crn_rng *r)
{
    switch (crn_rng_below(r, 8)) {
    case 0:
        return 0;
    case 1:
        return DBL_TRUE_MIN * (double)crn_rng_below(r, 5);
    case 2:
        return DBL_MAX / 1024;
    default:
        return ldexp(crn_rng_unit(r), (int)crn_rng_below(r, 2000) - 1050);
    }
}

static int scale_of(size_t i)
{
    return ((int)(i % 3) - 1) * CRN_SQUARES_SCALE;
}

static void test_order_does_not_matter(void **state)
{
    (void)state;
    crn_rng r = crn_rng_of(test_seed(), 1);
    static double x[N];
    static size_t number[N];
    for (int turn = 0; turn < 50; turn++) {
        diff_sum straight = {0}, group[7] = {{{0}}}, all = {0};
        for (size_t i = 0; i < N; i++) {
            x[i] = some_number(&r);
            number[i] = i;
            crn_diff_sum_add(&straight, x[i], scale_of(i));
        }
        for (size_t i = N; i > 0; i--) {
            const size_t k = crn_rng_below(&r, i);
            crn_diff_sum_add(&group[crn_rng_below(&r, 7)], x[k], scale_of(number[k]));
            x[k] = x[i - 1];
            number[k] = number[i - 1];
        }
        for (int g = 6; g >= 0; g--)
            crn_diff_sum_merge(&all, &group[g]);
        assert_memory_equal(all.limb, straight.limb, sizeof all.limb);
        assert_true(crn_diff_sum_rms(&all, N) == crn_diff_sum_rms(&straight, N));
    }
}

static double root_of(double x, int scale, uint64_t n)
{
    diff_sum s = {0};
    crn_diff_sum_add(&s, x, scale);
    return crn_diff_sum_rms(&s, n);
}

static void test_values(void **state)
{
    (void)state;
    diff_sum s = {0};
    assert_true(crn_diff_sum_rms(&s, 0) == 0 && crn_diff_sum_rms(&s, 3) == 0);
    assert_true(root_of(2.5, 0, 10) == 0.5);
    assert_true(root_of(1, 0, 4) == 0.5);
    assert_true(root_of(0x1p-900, -CRN_SQUARES_SCALE, 1) == 0x1p-1050);
    assert_true(root_of(DBL_TRUE_MIN, 0, 1) == 0x1p-537);
    assert_true(root_of(0x1p800, CRN_SQUARES_SCALE, 1) == 0x1p1000);
    for (int i = 0; i < 1000; i++) /* which a sum of doubles would lose, one by one */
        crn_diff_sum_add(&s, 0x1p-52, 0);
    crn_diff_sum_add(&s, 1, 0);
    assert_true(crn_diff_sum_rms(&s, 1) == sqrt(1 + 1000 * 0x1p-52));
    for (int i = 0; i < 5000; i++)
        crn_diff_sum_add(&s, 0x1p840, CRN_SQUARES_SCALE);
    assert_true(crn_diff_sum_rms(&s, 5000) == 0x1p1020);
}

/* Integers, whose sums are exact anyway. */
static void test_as_integers(void **state)
{
    (void)state;
    crn_rng r = crn_rng_of(test_seed(), 2);
    diff_sum s = {0};
    uint64_t plain = 0;
    for (int i = 0; i < 10000; i++) {
        const uint64_t x = crn_rng_u64(&r) >> 24;
        plain += x;
        crn_diff_sum_add(&s, (double)x, 0);
    }
    assert_true(crn_diff_sum_rms(&s, 1) == sqrt((double)plain));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order_does_not_matter),
                                       cmocka_unit_test(test_values),
                                       cmocka_unit_test(test_as_integers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
