/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The bootstrap filter against outside measures: DAPPER's published error for Lorenz-63 (0.28 with
 * 800 members), a figure of an independent program for Lorenz-96 with 10 variables (0.30), and the
 * Kalman filter for a linear model, to which mean and variance converge as one over the root of the
 * number of members.
 *
 * NEEDS: lapacke random123
 */
#include <math.h>

#include "filter/filter.h"
#include "harness/harness.h"
#include "particle/particle.h"

enum { N = 800, MOST = 10, INITIAL = 1, OBSERVED = 3, RESAMPLED = 7 };

/* A model, what is observed of it, and how it is filtered. */
typedef struct twin {
    size_t dim, every, nsteps; /* variables; every so manyth is observed, after so many steps */
    double dt, variance, factor, spread; /* spread: standard deviation of the first ensemble */
    uint64_t nspin, ncycles;
    double start[MOST];
    void (*slope)(const double *x, double *d);
} twin;

static void lorenz63(const double *x, double *d)
{
    d[0] = 10 * (x[1] - x[0]);
    d[1] = x[0] * (28 - x[2]) - x[1];
    d[2] = x[0] * x[1] - 8. / 3 * x[2];
}

static void lorenz96(const double *x, double *d)
{
    for (int i = 0; i < 10; i++)
        d[i] = (x[(i + 1) % 10] - x[(i + 8) % 10]) * x[(i + 9) % 10] - x[i] + 8;
}

static void advance(const twin *t, double *x)
{
    static const double part[] = {0, 0.5, 0.5, 1}, weight[] = {1, 2, 2, 1};
    for (size_t step = 0; step < t->nsteps; step++) {
        double d[MOST] = {0}, at[MOST], sum[MOST] = {0};
        for (int s = 0; s < 4; s++) {
            for (size_t i = 0; i < t->dim; i++)
                at[i] = x[i] + part[s] * t->dt * d[i];
            t->slope(at, d);
            for (size_t i = 0; i < t->dim; i++)
                sum[i] += weight[s] * d[i];
        }
        for (size_t i = 0; i < t->dim; i++)
            x[i] += t->dt / 6 * sum[i];
    }
}

typedef struct filter {
    const twin *t;
    uint64_t study, cycle;
    double truth[MOST], x[N * MOST], child[N * MOST], logw[N], w[N];
} filter;

static void weigh(filter *f)
{
    const twin *t = f->t;
    const crn_rng_key key = {f->study, OBSERVED, f->cycle, 0};
    crn_weight_sum sum;
    for (size_t i = 0; i < t->dim; i += t->every) {
        double y = f->truth[i] + sqrt(t->variance) * crn_rng_normal_at(&key, i);
        for (size_t j = 0; j < N; j++) {
            double apart = f->x[j * t->dim + i] - y;
            f->logw[j] -= apart * apart / (2 * t->variance);
        }
    }
    assert_ok(crn_weights(f->logw, N, f->w, &sum));
    if (sum.ess > 0.2 * N)
        return;
    uint32_t count[N];
    crn_rng rng = crn_rng_of(f->study * 16 + RESAMPLED, f->cycle);
    const crn_jitter jitter = {f->study, f->cycle, t->factor};
    assert_ok(crn_resample(CRN_RESAMPLE_SYSTEMATIC, f->w, N, N, &rng, count));
    assert_ok(crn_filter_jitter(&jitter, f->x, f->w, N, t->dim, count, f->child));
    memcpy(f->x, f->child, N * t->dim * sizeof *f->x);
    for (size_t j = 0; j < N; j++) {
        f->w[j] = 1. / N;
        f->logw[j] = 0;
    }
}

static double error_of_mean(const filter *f)
{
    double square = 0;
    for (size_t i = 0; i < f->t->dim; i++) {
        double mean = 0;
        for (size_t j = 0; j < N; j++)
            mean += f->w[j] * f->x[j * f->t->dim + i];
        square += (mean - f->truth[i]) * (mean - f->truth[i]) / (double)f->t->dim;
    }
    return sqrt(square);
}

static double run(const twin *t, uint64_t study)
{
    static filter f;
    double sum = 0;
    f = (filter){.t = t, .study = study};
    const crn_rng_key first = {study, INITIAL, 0, N};
    for (size_t i = 0; i < t->dim; i++)
        f.truth[i] = t->start[i] + t->spread * crn_rng_normal_at(&first, i);
    for (uint64_t j = 0; j < N; j++) {
        const crn_rng_key key = {study, INITIAL, 0, j};
        for (size_t i = 0; i < t->dim; i++)
            f.x[j * t->dim + i] = t->start[i] + t->spread * crn_rng_normal_at(&key, i);
    }
    for (f.cycle = 1; f.cycle <= t->nspin + t->ncycles; f.cycle++) {
        advance(t, f.truth);
        for (size_t j = 0; j < N; j++)
            advance(t, f.x + j * t->dim);
        weigh(&f);
        sum += f.cycle > t->nspin ? error_of_mean(&f) : 0;
    }
    return sum / (double)t->ncycles;
}

static void expect(const char *name, const twin *t, size_t nstudies, double rmse)
{
    double sum = 0;
    for (uint64_t study = 1; study <= nstudies; study++)
        sum += run(t, study);
    sum /= (double)nstudies;
    printf("%s: %.4f, expected %.2f\n", name, sum, rmse);
    if (fabs(sum - rmse) > 0.08 * rmse)
        fail_msg("%s: %.4f instead of %.2f", name, sum, rmse);
}

static void test_lorenz63(void **state)
{
    (void)state;
    const twin t = {.dim = 3,
                    .every = 1,
                    .nsteps = 25,
                    .dt = 0.01,
                    .variance = 2,
                    .factor = 0.9,
                    .spread = sqrt(2),
                    .nspin = 64,
                    .ncycles = 1000,
                    .start = {1.509, -1.531, 25.46},
                    .slope = lorenz63};
    expect("Lorenz-63", &t, 2, 0.28);
}

static void test_lorenz96(void **state)
{
    (void)state;
    twin t = {.dim = 10,
              .every = 2,
              .nsteps = 1,
              .dt = 0.05,
              .variance = 2.25,
              .factor = 0.8,
              .spread = 1,
              .nspin = 400,
              .ncycles = 4000,
              .slope = lorenz96};
    for (size_t i = 0; i < t.dim; i++)
        t.start[i] = 8 + (i == 0);
    expect("Lorenz-96", &t, 1, 0.30);
}

/* One variable, x <- a x + noise, observed with noise; the filter's mean and variance after some
 * cycles against the Kalman filter's, with n members. */
static double apart_from_kalman(size_t n, uint64_t study)
{
    const double a = 0.9, q = 0.5, r = 1;
    double *x, *logw, *w, mean = 0, variance = 1, y, worst = 0;
    uint32_t *count;
    assert_ok(crn_alloc(&x, 2 * n));
    assert_ok(crn_alloc(&logw, n));
    assert_ok(crn_alloc(&w, n));
    assert_ok(crn_alloc(&count, n));
    for (uint64_t j = 0; j < n; j++)
        x[j] = crn_rng_normal_at(&(crn_rng_key){study, INITIAL, 0, j}, 0);
    for (uint64_t cycle = 1; cycle <= 10; cycle++) {
        crn_weight_sum sum;
        crn_rng rng = crn_rng_of(study, cycle);
        y = 2 * sin((double)cycle);
        for (uint64_t j = 0; j < n; j++) {
            x[j] = a * x[j] + sqrt(q) * crn_rng_normal_at(&(crn_rng_key){study, 2, cycle, j}, 0);
            logw[j] = -(x[j] - y) * (x[j] - y) / (2 * r);
        }
        mean *= a;
        variance = a * a * variance + q;
        mean += variance / (variance + r) * (y - mean);
        variance *= r / (variance + r);
        assert_ok(crn_weights(logw, n, w, &sum));
        double m = 0, s = 0;
        for (size_t j = 0; j < n; j++)
            m += w[j] * x[j];
        for (size_t j = 0; j < n; j++)
            s += w[j] * (x[j] - m) * (x[j] - m);
        worst += (m - mean) * (m - mean) + (s - variance) * (s - variance);
        assert_ok(crn_resample(CRN_RESAMPLE_SYSTEMATIC, w, n, n, &rng, count));
        assert_ok(crn_filter_jitter(&(crn_jitter){study, cycle, 0}, x, w, n, 1, count, x + n));
        memcpy(x, x + n, n * sizeof *x);
    }
    free(x);
    free(logw);
    free(w);
    free(count);
    return worst / 10;
}

static void test_linear_models_converge_to_kalman(void **state)
{
    (void)state;
    double few = 0, many = 0;
    for (uint64_t study = 1; study <= 40; study++) {
        few += apart_from_kalman(100, study);
        many += apart_from_kalman(1600, study);
    }
    double ratio = sqrt(few / many); /* sixteen times the members: a quarter of the error */
    printf("error with 100 and 1600 members: %.4f and %.4f\n", sqrt(few / 40), sqrt(many / 40));
    assert_true(ratio > 3 && ratio < 5.3);
}

static void test_only_further_children_are_moved(void **state)
{
    (void)state;
    const double x[] = {0, 0, 2, 1, 4, 5}, w[] = {0.25, 0.5, 0.25};
    double child[6], still[6];
    assert_ok(
        crn_filter_jitter(&(crn_jitter){1, 1, 0.5}, x, w, 3, 2, (uint32_t[]){0, 3, 0}, child));
    assert_ok(crn_filter_jitter(&(crn_jitter){1, 1, 0}, x, w, 3, 2, (uint32_t[]){0, 3, 0}, still));
    assert_true(child[0] == 2 && child[1] == 1);
    for (size_t i = 0; i < 6; i++) {
        assert_true(still[i] == x[2 + i % 2]);
        assert_true(i < 2 || child[i] != still[i]);
    }
    assert_fails(crn_filter_jitter(&(crn_jitter){0}, x, w, 1, 2, (uint32_t[]){1}, child),
                 CAIRN_EINVAL, "no covariance");
}

int main(void)
{
    const char *kernel;
    if (crn_filter_kernel(&kernel) == CAIRN_EUNSUPPORTED)
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lorenz63),
        cmocka_unit_test(test_lorenz96),
        cmocka_unit_test(test_linear_models_converge_to_kalman),
        cmocka_unit_test(test_only_further_children_are_moved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
