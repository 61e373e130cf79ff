/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Every filter of the table goes through the same cases; those of the Kalman filter's family are
 * held against the Kalman filter itself.
 *
 * NEEDS: lapacke random123
 */
#include "filter/filter.h"
#include "harness/harness.h"

#include <math.h>

enum { N = 12, NX = 3000, NOBS = 700 };

typedef struct ensemble {
    double x[N][NX];
    double *member[N];
    double y[N * NOBS], value[NOBS], variance[NOBS];
    crn_filter_case c;
} ensemble;

static void observe(ensemble *e)
{
    for (size_t j = 0; j < N; j++)
        for (size_t i = 0; i < NOBS; i++)
            e->y[i + j * NOBS] = e->x[j][i * 4];
}

static ensemble *make(void)
{
    ensemble *e;
    assert_ok(crn_alloc(&e, 1));
    for (size_t j = 0; j < N; j++) {
        const crn_rng_key key = {test_seed(), CRN_FOR_INITIAL, 1, j};
        e->member[j] = e->x[j];
        for (size_t i = 0; i < NX; i++)
            e->x[j][i] = sin((double)i / 9) + crn_rng_normal_at(&key, i);
    }
    for (size_t i = 0; i < NOBS; i++) {
        const crn_rng_key key = {test_seed(), CRN_FOR_OBSERVATION, 1, 0};
        e->value[i] = sin((double)i / 9) + 0.5 * crn_rng_normal_at(&key, i);
        e->variance[i] = 0.25 + (double)(i % 3);
    }
    observe(e);
    e->c = (crn_filter_case){.study = test_seed(),
                             .cycle = 1,
                             .nmembers = N,
                             .nobs = NOBS,
                             .y = e->y,
                             .value = e->value,
                             .variance = e->variance,
                             .inflation = 1};
    return e;
}

static void analyse(const crn_filter_ops *f, ensemble *e)
{
    double w[N * N];
    assert_ok(crn_filter_weights(f, &e->c, w));
    if (!crn_filter_is_free(f))
        assert_ok(crn_filter_update(w, N, NX, e->member));
}

static double mean_of(const ensemble *e, size_t i)
{
    double sum = 0;
    for (size_t j = 0; j < N; j++)
        sum += e->x[j][i];
    return sum / N;
}

static double covariance(const ensemble *e, size_t a, size_t b)
{
    double sum = 0, ma = mean_of(e, a), mb = mean_of(e, b);
    for (size_t j = 0; j < N; j++)
        sum += (e->x[j][a] - ma) * (e->x[j][b] - mb);
    return sum / (N - 1);
}

static void for_all(void each(const crn_filter_ops *f))
{
    for (size_t i = 0; crn_filter_at(i); i++)
        each(crn_filter_at(i));
}

/* --- what all filters share, also those of shared objects --------------------------------- */

typedef struct findings {
    const char *who;
    size_t nfailed;
    bool quiet;
} findings;

static void found(void *arg, const char *test, const char *why)
{
    findings *f = arg;
    f->nfailed += why[0] != 0;
    if (why[0] && !f->quiet)
        print_error("%s: %s: %s\n", f->who, test, why);
}

static void conforms(const crn_filter_ops *f)
{
    findings x = {.who = crn_filter_name(f)};
    assert_int_equal(crn_filter_conform(f, found, &x), CAIRN_OK);
    assert_int_equal(x.nfailed, 0);
}

static void test_all_conform(void **state)
{
    const crn_filter_ops *f;
    (void)state;
    for_all(conforms);
    assert_ok(crn_filter_of_file(TEMPLATE_FILTER, &f));
    conforms(f);
}

/* bad_filter.c has an option for each way to be wrong: each fails one test at least. */
static void test_wrong_filters_are_found_out(void **state)
{
    static const char *const wrong[] = {"forgets", "widens",  "pushes",  "keyless",
                                        "nan",     "outside", "gives-up"};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const crn_filter_ops *f;
        char text[600];
        findings x = {.quiet = true};
        snprintf(text, sizeof text, "%s:%s", BAD_FILTER, wrong[i]);
        assert_ok(crn_filter_of_file(text, &f));
        if (crn_filter_conform(f, found, &x) != CAIRN_NOTHING || x.nfailed == 0)
            fail_msg("'%s' was not found out", wrong[i]);
    }
}

/* The template is the ETKF: the same to rounding, by the same linear algebra. */
static void test_template_is_the_etkf(void **state)
{
    const crn_filter_ops *f;
    ensemble *e = make();
    double a[N * N], b[N * N];
    (void)state;
    e->c.rotate = true;
    e->c.inflation = 1.03;
    assert_ok(crn_filter_of_file(TEMPLATE_FILTER, &f));
    assert_ok(crn_filter_weights(f, &e->c, a));
    assert_ok(crn_filter_weights(crn_filter_of_name("etkf"), &e->c, b));
    for (size_t i = 0; i < N * N; i++)
        assert_true(fabs(a[i] - b[i]) < 1e-13);
    free(e);
}

static void test_files_that_are_no_filters(void **state)
{
    const crn_filter_ops *f;
    (void)state;
    assert_int_equal(crn_filter_of_file("/nowhere/x.so", &f), CAIRN_EINVAL);
    assert_non_null(strstr(crn_err_peek()->text, "cannot load filter '/nowhere/x.so'"));
    assert_int_equal(crn_filter_of_file("etkf", &f), CAIRN_EINVAL);
    assert_int_equal(crn_filter_of_file(WIND_PLUGIN, &f), CAIRN_EINVAL);
    assert_non_null(strstr(crn_err_peek()->text, "no table 'cairn_filter'"));
    assert_int_equal(crn_filter_of_file(TEMPLATE_FILTER ":tune=no", &f), CAIRN_EINVAL);
    assert_non_null(strstr(crn_err_peek()->text, "does not take 'tune=no'"));
    assert_true(crn_filter_is_file("a.so") && crn_filter_is_file("a.so:b"));
    assert_false(crn_filter_is_file("a.sob"));
}

/* --- what all filters share ----------------------------------------------------------------- */

static void nothing_observed(const crn_filter_ops *f)
{
    ensemble *was = make(), *is = make();
    is->c.nobs = 0;
    is->c.inflation = 1.1;
    is->c.rotate = true;
    analyse(f, is);
    const double factor = crn_filter_is_free(f) ? 1 : 1.1 * 1.1;
    for (size_t i = 0; i + 7 < NX; i += 7) {
        assert_true(fabs(mean_of(was, i) - mean_of(is, i)) < 1e-12);
        assert_true(fabs(factor * covariance(was, i, i + 7) - covariance(is, i, i + 7)) < 1e-12);
    }
    free(was);
    free(is);
}

static void test_without_observations_mean_and_covariance_stay(void **state)
{
    (void)state;
    for_all(nothing_observed);
}

static void any_slices(const crn_filter_ops *f)
{
    ensemble *whole = make(), *cut = make();
    double w[N * N], again[N * N], *member[N];
    whole->c.rotate = cut->c.rotate = true;
    assert_ok(crn_filter_weights(f, &whole->c, w));
    assert_ok(crn_filter_weights(f, &cut->c, again));
    assert_memory_equal(w, again, sizeof w);
    assert_ok(crn_filter_update(w, N, NX, whole->member));
    const size_t from[] = {0, CRN_FILTER_ROWS, NX};
    for (size_t s = 0; s < 2; s++) {
        for (size_t j = 0; j < N; j++)
            member[j] = cut->x[j] + from[s];
        assert_ok(crn_filter_update(w, N, from[s + 1] - from[s], member));
    }
    assert_memory_equal(whole->x, cut->x, sizeof whole->x);
    free(whole);
    free(cut);
}

static void test_any_slices_give_the_same_bits(void **state)
{
    (void)state;
    for_all(any_slices);
}

static void refuses(const crn_filter_ops *f)
{
    ensemble *e = make();
    double w[N * N];
    e->y[3] = NAN;
    assert_fails(crn_filter_weights(f, &e->c, w), CAIRN_EINVAL, "is not finite");
    e->y[3] = 0;
    e->variance[5] = 0;
    assert_fails(crn_filter_weights(f, &e->c, w), CAIRN_EINVAL, "variance of observation 5 is 0");
    e->variance[5] = 1;
    e->c.nmembers = 1;
    assert_fails(crn_filter_weights(f, &e->c, w), CAIRN_EINVAL, "1 members");
    free(e);
}

static void test_what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    for_all(refuses);
}

static void test_names_are_found(void **state)
{
    (void)state;
    const char *kernel;
    assert_ok(crn_filter_kernel(&kernel));
    assert_true(strlen(kernel) > 0);
    assert_null(crn_filter_of_name("kalman"));
    for (size_t i = 0; crn_filter_at(i); i++)
        assert_ptr_equal(crn_filter_of_name(crn_filter_name(crn_filter_at(i))), crn_filter_at(i));
}

/* --- against the Kalman filter --------------------------------------------------------------- */

/* One element is observed once: the analysis of any element b has the mean and variance
 * m + cov(b,a) / (var(a) + r) (y - m_a) and var(b) - cov(b,a)^2 / (var(a) + r). */
static void test_etkf_is_the_kalman_filter_of_its_sample(void **state)
{
    (void)state;
    ensemble *was = make(), *is = make();
    const double r = was->variance[0], var = covariance(was, 0, 0);
    is->c.nobs = 1;
    for (size_t j = 0; j < N; j++)
        is->y[j] = is->x[j][0];
    is->c.rotate = true;
    analyse(crn_filter_of_name("etkf"), is);
    for (size_t b = 0; b < NX; b += 111) {
        double cov = covariance(was, b, 0);
        double mean = mean_of(was, b) + cov / (var + r) * (was->value[0] - mean_of(was, 0));
        assert_true(fabs(mean_of(is, b) - mean) < 1e-10);
        assert_true(fabs(covariance(is, b, b) - (covariance(was, b, b) - cov * cov / (var + r))) <
                    1e-10);
    }
    free(was);
    free(is);
}

static void test_free_run_keeps_every_bit(void **state)
{
    (void)state;
    ensemble *was = make(), *is = make();
    analyse(crn_filter_of_name("none"), is);
    assert_memory_equal(was->x, is->x, sizeof was->x);
    free(was);
    free(is);
}

static void test_rotation_depends_on_study_and_cycle_alone(void **state)
{
    (void)state;
    ensemble *e = make();
    double a[N * N], b[N * N];
    const crn_filter_ops *f = crn_filter_of_name("etkf");
    e->c.rotate = true;
    assert_ok(crn_filter_weights(f, &e->c, a));
    e->c.cycle++;
    assert_ok(crn_filter_weights(f, &e->c, b));
    assert_memory_not_equal(a, b, sizeof a);
    e->c.cycle--;
    assert_ok(crn_filter_weights(f, &e->c, b));
    assert_memory_equal(a, b, sizeof a);
    free(e);
}

int main(void)
{
    const char *kernel;
    if (crn_filter_kernel(&kernel) == CAIRN_EUNSUPPORTED)
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_conform),
        cmocka_unit_test(test_wrong_filters_are_found_out),
        cmocka_unit_test(test_template_is_the_etkf),
        cmocka_unit_test(test_files_that_are_no_filters),
        cmocka_unit_test(test_without_observations_mean_and_covariance_stay),
        cmocka_unit_test(test_any_slices_give_the_same_bits),
        cmocka_unit_test(test_what_makes_no_sense_is_refused),
        cmocka_unit_test(test_names_are_found),
        cmocka_unit_test(test_etkf_is_the_kalman_filter_of_its_sample),
        cmocka_unit_test(test_free_run_keeps_every_bit),
        cmocka_unit_test(test_rotation_depends_on_study_and_cycle_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
