/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random numbers: the published answers, purity, and the absence of coarse bias.
 *
 * NEEDS: random123
 */
#include "harness/harness.h"

#include <math.h>

/* Philox2x64-10 on counter (n, stream) and key seed: Random123's known-answer vectors. */
static void test_known_answers(void **state)
{
    (void)state;
    static const struct {
        crn_rng at;
        uint64_t answer;
    } cases[] = {
        {{.seed = 0, .stream = 0, .n = 0}, 0xca00a0459843d731},
        {{.seed = UINT64_MAX, .stream = UINT64_MAX, .n = UINT64_MAX}, 0x65b021d60cd8310f},
        {{.seed = 0xa4093822299f31d0, .stream = 0x13198a2e03707344, .n = 0x243f6a8885a308d3},
         0x0a5e742c2997341c},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        crn_rng r = cases[i].at;
        assert_true(crn_rng_u64(&r) == cases[i].answer);
    }
}

/* Any rank can draw any number of any stream without drawing those before. */
static void test_draws_depend_on_seed_stream_and_n_only(void **state)
{
    (void)state;
    crn_rng a = crn_rng_of(7, 3);
    uint64_t drawn[100];
    for (int i = 0; i < 100; i++)
        drawn[i] = crn_rng_u64(&a);
    for (int i = 99; i >= 0; i--) {
        crn_rng b = {.seed = 7, .stream = 3, .n = (uint64_t)i};
        assert_true(crn_rng_u64(&b) == drawn[i]);
    }
    crn_rng other_stream = crn_rng_of(7, 4), other_seed = crn_rng_of(8, 3);
    assert_true(crn_rng_u64(&other_stream) != drawn[0]);
    assert_true(crn_rng_u64(&other_seed) != drawn[0]);
}

/* With 3 << 62 a plain remainder would give the first third twice as often as the rest. */
static void test_below_is_unbiased(void **state)
{
    (void)state;
    enum { DRAWS = 30000 };
    const uint64_t bound = 3ull << 62, third = 1ull << 62;
    crn_rng r = crn_rng_of(test_seed(), 0);
    int count[3] = {0};
    for (int i = 0; i < DRAWS; i++) {
        uint64_t v = crn_rng_below(&r, bound);
        assert_true(v < bound);
        count[v / third]++;
    }
    for (int i = 0; i < 3; i++) /* five standard deviations are 410 */
        assert_in_range(count[i], DRAWS / 3 - 410, DRAWS / 3 + 410);
}

static void test_below_small_bounds(void **state)
{
    (void)state;
    crn_rng r = crn_rng_of(test_seed(), 1);
    int count[6] = {0};
    for (int i = 0; i < 60000; i++)
        count[crn_rng_below(&r, 6)]++;
    for (int i = 0; i < 6; i++) /* five standard deviations are 457 */
        assert_in_range(count[i], 10000 - 460, 10000 + 460);
    assert_int_equal(crn_rng_below(&r, 1), 0);
}

static void test_unit_is_half_open_and_uniform(void **state)
{
    (void)state;
    crn_rng r = crn_rng_of(test_seed(), 2);
    double sum = 0;
    for (int i = 0; i < 100000; i++) {
        double x = crn_rng_unit(&r);
        assert_true(x >= 0 && x < 1);
        sum += x;
    }
    assert_true(sum > 49500 && sum < 50500); /* five standard deviations are 456 */
}

static void test_keyed_numbers_depend_on_every_part_of_the_key(void **state)
{
    (void)state;
    const crn_rng_key key = {1, 2, 3, 4};
    const crn_rng_key other[] = {{9, 2, 3, 4}, {1, 9, 3, 4}, {1, 2, 9, 4}, {1, 2, 3, 9}};
    for (size_t i = 0; i < 4; i++)
        assert_true(crn_rng_at(&key, 5) != crn_rng_at(&other[i], 5));
    assert_true(crn_rng_at(&key, 5) != crn_rng_at(&key, 6));
    assert_true(crn_rng_at(&key, 5) == crn_rng_at(&key, 5));
}

static void test_keyed_normal_numbers_have_their_moments(void **state)
{
    (void)state;
    const crn_rng_key key = {test_seed(), 1, 1, 1};
    double m[5] = {0};
    const int n = 100000;
    for (int i = 0; i < n; i++) {
        double x = crn_rng_normal_at(&key, (uint64_t)i);
        for (int k = 1; k <= 4; k++)
            m[k] += pow(x, k) / n;
    }
    assert_true(fabs(m[1]) < 0.016 && fabs(m[2] - 1) < 0.023); /* five standard deviations */
    assert_true(fabs(m[3]) < 0.062 && fabs(m[4] - 3) < 0.16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_draws_depend_on_seed_stream_and_n_only),
        cmocka_unit_test(test_below_is_unbiased),
        cmocka_unit_test(test_below_small_bounds),
        cmocka_unit_test(test_unit_is_half_open_and_uniform),
        cmocka_unit_test(test_keyed_numbers_depend_on_every_part_of_the_key),
        cmocka_unit_test(test_keyed_normal_numbers_have_their_moments),
    };
    return cmocka_run_group_tests_name("rng", tests, NULL, NULL);
}
