/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A linear model without noise, more members than variables: the ETKF, and the LETKF without a
 * limit, are the Kalman filter, cycle after cycle, with any operator and with correlated errors.
 *
 * NEEDS: lapacke random123
 */
#include "filter/filter.h"
#include "harness/harness.h"

#include <math.h>

enum { NX = 5, N = 8, NOBS = 4, CYCLES = 30 };

typedef double square[NX][NX];

typedef struct kalman {
    double mean[NX];
    square p;
} kalman;

static double draw(uint64_t study, uint64_t purpose, uint64_t cycle, uint64_t i)
{
    const crn_rng_key key = {study, purpose, cycle, 0};
    return crn_rng_normal_at(&key, i);
}

/* x = M x and P = M P M^T */
static void propagate(const square m, kalman *k)
{
    kalman next = {{0}, {{0}}};
    square mp = {{0}};
    for (int i = 0; i < NX; i++)
        for (int j = 0; j < NX; j++) {
            next.mean[i] += m[i][j] * k->mean[j];
            for (int l = 0; l < NX; l++)
                mp[i][j] += m[i][l] * k->p[l][j];
        }
    for (int i = 0; i < NX; i++)
        for (int j = 0; j < NX; j++)
            for (int l = 0; l < NX; l++)
                next.p[i][j] += mp[i][l] * m[j][l];
    *k = next;
}

/* One combination of observations at a time, whose errors are independent: for covariances R = L
 * L^T of the first two, those of L^-1 of them. h has NOBS rows. */
static void assimilate(kalman *k, double h[NOBS][NX], double *value, double variance)
{
    for (int o = 0; o < NOBS; o++) {
        double ph[NX] = {0}, s = variance, d = value[o];
        for (int i = 0; i < NX; i++)
            for (int j = 0; j < NX; j++)
                ph[i] += k->p[i][j] * h[o][j];
        for (int i = 0; i < NX; i++) {
            s += h[o][i] * ph[i];
            d -= h[o][i] * k->mean[i];
        }
        for (int i = 0; i < NX; i++) {
            k->mean[i] += ph[i] / s * d;
            for (int j = 0; j < NX; j++)
                k->p[i][j] -= ph[i] * ph[j] / s;
        }
    }
}

static void sample(double x[N][NX], kalman *k)
{
    *k = (kalman){{0}, {{0}}};
    for (int i = 0; i < NX; i++)
        for (int n = 0; n < N; n++)
            k->mean[i] += x[n][i] / N;
    for (int i = 0; i < NX; i++)
        for (int j = 0; j < NX; j++)
            for (int n = 0; n < N; n++)
                k->p[i][j] += (x[n][i] - k->mean[i]) * (x[n][j] - k->mean[j]) / (N - 1);
}

static void expect_same(double x[N][NX], const kalman *k)
{
    kalman is;
    sample(x, &is);
    for (int i = 0; i < NX; i++) {
        assert_float_equal(is.mean[i], k->mean[i], 1e-10);
        for (int j = 0; j < NX; j++)
            assert_float_equal(is.p[i][j], k->p[i][j], 1e-10);
    }
}

static void advance(const square m, double x[N][NX])
{
    for (int n = 0; n < N; n++) {
        double next[NX] = {0};
        for (int i = 0; i < NX; i++)
            for (int j = 0; j < NX; j++)
                next[i] += m[i][j] * x[n][j];
        memcpy(x[n], next, sizeof next);
    }
}

typedef struct setting {
    uint64_t study;
    bool local, rotate;
} setting;

static const double variance = 0.5, covariance[4] = {2, 1, 1, 3};

static void filter(const setting *t, uint64_t cycle, double h[NOBS][NX], const double *value,
                   double x[N][NX])
{
    double y[N * NOBS] = {0}, var[NOBS] = {2, 3, variance, variance}, w[N * N];
    double *member[N], point[NX] = {0, 1, 2, 3, 4}, place[NOBS] = {0}, radius[NOBS];
    const crn_filter_block block = {0, 2, covariance};
    for (int n = 0; n < N; n++) {
        member[n] = x[n];
        for (int o = 0; o < NOBS; o++)
            for (int i = 0; i < NX; i++)
                y[o + n * NOBS] += h[o][i] * x[n][i];
    }
    for (int o = 0; o < NOBS; o++)
        radius[o] = INFINITY;
    const crn_filter_case c = {.study = t->study,
                               .cycle = cycle,
                               .nmembers = N,
                               .nobs = NOBS,
                               .y = y,
                               .value = value,
                               .variance = var,
                               .block = &block,
                               .nblocks = 1,
                               .inflation = 1,
                               .rotate = t->rotate};
    const crn_locality l = {.ndims = 1, .place = place, .radius = radius};
    if (t->local) {
        assert_ok(crn_filter_update_local(crn_filter_of_name("letkf"), &c, &l, NX, point, member));
        return;
    }
    assert_ok(crn_filter_weights(crn_filter_of_name("etkf"), &c, w));
    assert_ok(crn_filter_update(w, N, NX, member));
}

/* L^-1 of the block, so that the Kalman filter sees independent errors of one variance. */
static void whiten(double h[NOBS][NX], double *value)
{
    const double a = sqrt(2), b = 1 / a, c = sqrt(3 - b * b), unit = sqrt(variance);
    for (int i = 0; i < NX; i++) {
        h[0][i] *= unit / a;
        h[1][i] = (h[1][i] * unit - b * h[0][i]) / c;
    }
    value[0] *= unit / a;
    value[1] = (value[1] * unit - b * value[0]) / c;
}

static void study(const setting *t)
{
    double x[N][NX];
    square m;
    kalman k;
    for (int i = 0; i < NX * NX; i++)
        m[i / NX][i % NX] = draw(t->study, 1, 0, (uint64_t)i) / 8 + (i / NX == i % NX) * 0.9;
    for (int i = 0; i < N * NX; i++)
        x[i / NX][i % NX] = draw(t->study, 2, 0, (uint64_t)i);
    sample(x, &k);
    for (uint64_t cycle = 1; cycle <= CYCLES; cycle++) {
        double h[NOBS][NX], value[NOBS];
        for (int i = 0; i < NOBS * NX; i++)
            h[i / NX][i % NX] = draw(t->study, 3, cycle, (uint64_t)i);
        for (int o = 0; o < NOBS; o++)
            value[o] = draw(t->study, 4, cycle, (uint64_t)o);
        advance(m, x);
        propagate(m, &k);
        filter(t, cycle, h, value, x);
        whiten(h, value);
        assimilate(&k, h, value, variance);
        expect_same(x, &k);
    }
}

static void test_etkf(void **state)
{
    (void)state;
    for (uint64_t s = 1; s <= 10; s++)
        study(&(setting){s, false, s % 2});
}

static void test_letkf_without_a_limit(void **state)
{
    (void)state;
    for (uint64_t s = 1; s <= 10; s++)
        study(&(setting){s, true, s % 2});
}

int main(void)
{
    const char *kernel;
    if (crn_filter_kernel(&kernel) == CAIRN_EUNSUPPORTED)
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_etkf),
        cmocka_unit_test(test_letkf_without_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
