/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Weights and resampling: exact counts where a scheme promises them, unbiased by a chi-squared test
 * over 100,000 draws.
 *
 * NEEDS: random123
 */
#include <math.h>

#include "harness/harness.h"
#include "particle/particle.h"

static void test_weights_survive_any_scale(void **state)
{
    (void)state;
    double w[4];
    crn_weight_sum s;
    assert_ok(crn_weights((double[]){-1e5, -1e5 + log(2), -INFINITY}, 3, w, &s));
    assert_true(fabs(w[0] - 1. / 3) < 1e-10 && fabs(w[1] - 2. / 3) < 1e-10 && w[2] == 0);
    assert_true(fabs(s.ess - 1 / (1. / 9 + 4. / 9)) < 1e-9 && s.nzero == 1);
    assert_true(fabs(s.log_mean - (-1e5)) < 1e-9); /* (1 + 2 + 0) / 3 */
    assert_ok(crn_weights((double[]){7, 7, 7, 7}, 4, w, &s));
    assert_true(s.ess == 4 && s.log_mean == 7);
}

static void test_weights_refuse(void **state)
{
    (void)state;
    double w[2];
    crn_weight_sum s;
    assert_fails(crn_weights((double[]){0, NAN}, 2, w, &s), CAIRN_EINVAL, "member 1");
    assert_fails(crn_weights((double[]){INFINITY, 0}, 2, w, &s), CAIRN_EINVAL, "member 0");
    assert_fails(crn_weights((double[]){-INFINITY, -INFINITY}, 2, w, &s), CAIRN_EINVAL,
                 "exclude every member");
}

static uint64_t sum_of(const uint32_t *count, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += count[i];
    return sum;
}

enum { MOST = 60 };

/* Weights of three kinds: many scales, all equal, half of them zero. Returns their sum. */
static long double draw_weights(crn_rng *rng, uint64_t kind, double *w, size_t n)
{
    long double total = 0;
    for (size_t i = 0; i < n; i++) {
        double u = crn_rng_unit(rng);
        w[i] = kind == 0 ? ldexp(u, -(int)(i % 40)) : kind == 1 ? 1 : u < 0.5 ? 0 : u;
        total += w[i];
    }
    return total;
}

/* Systematic and residual counts: floor or ceil, and floor or more, of m w. */
static void check_counts(crn_resampling scheme, const uint32_t *count, const double *w, size_t n,
                         size_t m, long double total)
{
    assert_int_equal(sum_of(count, n), m);
    for (size_t i = 0; i < n; i++) {
        long double expected = (long double)m * w[i] / total;
        assert_true(w[i] > 0 || count[i] == 0);
        if (scheme == CRN_RESAMPLE_SYSTEMATIC || scheme == CRN_RESAMPLE_RESIDUAL)
            assert_true(count[i] >= floorl(expected - 1e-9L));
        if (scheme == CRN_RESAMPLE_SYSTEMATIC)
            assert_true(count[i] <= ceill(expected + 1e-9L));
    }
}

static void test_counts_follow_the_weights(void **state)
{
    (void)state;
    double w[MOST];
    uint32_t count[MOST];
    for (uint64_t seed = 0; seed < 3000; seed++) {
        crn_rng rng = crn_rng_of(1, seed);
        size_t n = 1 + crn_rng_below(&rng, MOST), m = 1 + crn_rng_below(&rng, 200);
        long double total = draw_weights(&rng, seed % 3, w, n);
        if (total == 0)
            continue;
        for (crn_resampling s = CRN_RESAMPLE_SYSTEMATIC; s <= CRN_RESAMPLE_RESIDUAL; s++) {
            assert_ok(crn_resample(s, w, n, m, &rng, count));
            check_counts(s, count, w, n, m, total);
        }
    }
}

/* The mean count of each member against m w. Counts of one draw are correlated, but draws are
 * independent: each member's mean is normal with the sample's own variance. */
static void test_schemes_are_unbiased(void **state)
{
    (void)state;
    enum { N = 7, M = 10, DRAWS = 100000 };
    static const double w[N] = {0.30, 0.05, 0.21, 0.001, 0.179, 0.2, 0.06};
    for (crn_resampling s = CRN_RESAMPLE_SYSTEMATIC; s <= CRN_RESAMPLE_RESIDUAL; s++) {
        double sum[N] = {0}, square[N] = {0}, chi = 0;
        for (uint64_t draw = 0; draw < DRAWS; draw++) {
            uint32_t count[N];
            crn_rng rng = crn_rng_of(2 + (uint64_t)s, draw);
            assert_ok(crn_resample(s, w, N, M, &rng, count));
            for (size_t i = 0; i < N; i++) {
                sum[i] += count[i];
                square[i] += (double)count[i] * count[i];
            }
        }
        for (size_t i = 0; i < N; i++) {
            double mean = sum[i] / DRAWS, variance = square[i] / DRAWS - mean * mean;
            double apart = mean - M * w[i];
            if (variance < 1e-12)
                assert_true(fabs(apart) < 1e-12);
            else
                chi += apart * apart / (variance / DRAWS);
        }
        if (chi > 24.3) /* 0.1% of chi-squared with 7 degrees of freedom */
            fail_msg("%s: chi-squared %.1f", crn_resampling_name(s), chi);
    }
}

/* Whatever the missing likelihoods turn out to be, the certain ones are kept. */
static void test_certain_members_are_kept(void **state)
{
    (void)state;
    enum { N = 30 };
    size_t found = 0;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        crn_rng rng = crn_rng_of(9, seed);
        double logw[N], full[N], w[N];
        uint32_t count[N];
        size_t m = 1 + crn_rng_below(&rng, 60);
        for (size_t i = 0; i < N; i++) {
            full[i] = -6 * crn_rng_unit(&rng);
            logw[i] = crn_rng_unit(&rng) < 0.2 ? NAN : full[i];
            if (isnan(logw[i]) && crn_rng_unit(&rng) < 0.5)
                full[i] = 0; /* as likely as possible */
        }
        double certain = crn_resample_certain(logw, N, m, 0);
        crn_weight_sum sum;
        assert_ok(crn_weights(full, N, w, &sum));
        assert_ok(crn_resample(CRN_RESAMPLE_SYSTEMATIC, w, N, m, &rng, count));
        for (size_t i = 0; i < N; i++) {
            bool kept = logw[i] >= certain;
            assert_true(!kept || count[i] > 0);
            found += kept;
        }
    }
    assert_true(found > 1000);
}

static void test_resample_refuses(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(1, 1);
    uint32_t count[2];
    crn_resampling s;
    assert_fails(crn_resample(0, (double[]){0, 0}, 2, 5, &rng, count), CAIRN_EINVAL, "zero");
    assert_fails(crn_resample(0, (double[]){1, NAN}, 2, 5, &rng, count), CAIRN_EINVAL, "weight 1");
    assert_fails(crn_resample(0, (double[]){1, 1}, 2, 0, &rng, count), CAIRN_EINVAL, "0 children");
    assert_fails(crn_resampling_of("bootstrap", &s), CAIRN_EINVAL, "'bootstrap'");
    assert_ok(crn_resampling_of("residual", &s));
    assert_int_equal(s, CRN_RESAMPLE_RESIDUAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights_survive_any_scale),
        cmocka_unit_test(test_weights_refuse),
        cmocka_unit_test(test_counts_follow_the_weights),
        cmocka_unit_test(test_schemes_are_unbiased),
        cmocka_unit_test(test_certain_members_are_kept),
        cmocka_unit_test(test_resample_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
