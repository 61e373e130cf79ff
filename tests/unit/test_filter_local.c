/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Local analyses: with an infinite radius the global ones; with cells the same as without; on
 * planes, around periods and on spheres. Relaxation of perturbations and of spread.
 *
 * NEEDS: lapacke random123
 */
#include "filter/filter.h"
#include "harness/harness.h"

#include <math.h>

enum { N = 9, NX = 200, NOBS = 150 };

typedef struct field {
    double x[N][NX], *member[N];
    double point[NX * 3], place[NOBS * 3], radius[NOBS];
    double y[N * NOBS], value[NOBS], variance[NOBS];
    crn_filter_case c;
    crn_locality l;
} field;

static field *make(int ndims, double extent, double radius)
{
    field *f;
    assert_ok(crn_alloc(&f, 1));
    crn_rng rng = crn_rng_of(test_seed(), (uint64_t)ndims);
    for (size_t i = 0; i < (size_t)(NX * ndims); i++)
        f->point[i] = extent * crn_rng_unit(&rng);
    for (size_t i = 0; i < (size_t)(NOBS * ndims); i++)
        f->place[i] = extent * crn_rng_unit(&rng);
    for (size_t j = 0; j < N; j++) {
        f->member[j] = f->x[j];
        for (size_t i = 0; i < NX; i++)
            f->x[j][i] = crn_rng_unit(&rng) * 4;
        for (size_t i = 0; i < NOBS; i++)
            f->y[i + j * NOBS] = crn_rng_unit(&rng) * 4;
    }
    for (size_t i = 0; i < NOBS; i++) {
        f->value[i] = crn_rng_unit(&rng) * 4;
        f->variance[i] = 0.5 + crn_rng_unit(&rng);
        f->radius[i] = radius * (i % 2 ? 1 : 0.5); /* two types of observations */
    }
    f->c = (crn_filter_case){.study = 1,
                             .cycle = 1,
                             .nmembers = N,
                             .nobs = NOBS,
                             .y = f->y,
                             .value = f->value,
                             .variance = f->variance,
                             .inflation = 1.02,
                             .rotate = true};
    f->l = (crn_locality){.ndims = ndims, .place = f->place, .radius = f->radius};
    return f;
}

static void update(field *f, const char *name)
{
    assert_ok(
        crn_filter_update_local(crn_filter_of_name(name), &f->c, &f->l, NX, f->point, f->member));
}

static double apart(const field *a, const field *b)
{
    double most = 0;
    for (size_t j = 0; j < N; j++)
        for (size_t i = 0; i < NX; i++)
            most = fmax(most, fabs(a->x[j][i] - b->x[j][i]));
    return most;
}

static void test_an_infinite_radius_is_global(void **state)
{
    (void)state;
    static const char *const names[] = {"etkf", "enkf", "denkf"};
    for (size_t k = 0; k < 3; k++) {
        field *global = make(2, 10, 1), *local = make(2, 10, INFINITY);
        double w[N * N];
        assert_ok(crn_filter_weights(crn_filter_of_name(names[k]), &global->c, w));
        assert_ok(crn_filter_update(w, N, NX, global->member));
        update(local, names[k]);
        assert_true(apart(global, local) < 1e-10);
        free(global);
        free(local);
    }
}

/* The distance of two places, written another way than in the filter. */
static double distance(const crn_locality *l, const double *a, const double *b)
{
    double sum = 0;
    if (l->sphere > 0) { /* the haversine formula */
        double lat1 = a[1] * M_PI / 180, lat2 = b[1] * M_PI / 180;
        double s = sin((lat2 - lat1) / 2), t = sin((b[0] - a[0]) * M_PI / 360);
        double arc = 2 * l->sphere * asin(sqrt(s * s + cos(lat1) * cos(lat2) * t * t));
        double up = l->ndims > 2 ? (a[2] - b[2]) * (l->vertical > 0 ? l->vertical : 1) : 0;
        return sqrt(arc * arc + up * up);
    }
    for (int d = 0; d < l->ndims; d++) {
        double x = a[d] - b[d];
        if (l->period[d] > 0)
            x = remainder(x, l->period[d]);
        sum += x * x * (d == 2 && l->vertical > 0 ? l->vertical * l->vertical : 1);
    }
    return sqrt(sum);
}

/* Each point by a global analysis of the observations that reach it, found by looking at all. */
static void update_plainly(field *f)
{
    const size_t ndims = (size_t)f->l.ndims;
    for (size_t p = 0; p < NX; p++) {
        double y[N * NOBS], value[NOBS], variance[NOBS], w[N * N], *row[N];
        size_t n = 0, at[NOBS];
        for (size_t i = 0; i < NOBS; i++) {
            double taper = crn_filter_taper(
                distance(&f->l, f->point + p * ndims, f->place + i * ndims), f->radius[i]);
            value[n] = f->value[i];
            variance[n] = f->variance[i] / taper;
            at[n] = i;
            n += taper > 0;
        }
        for (size_t j = 0; j < N; j++) {
            row[j] = &f->x[j][p];
            for (size_t i = 0; i < n; i++)
                y[i + j * n] = f->y[at[i] + j * NOBS];
        }
        crn_filter_case c = f->c;
        c.nobs = n, c.y = y, c.value = value, c.variance = variance;
        assert_ok(crn_filter_weights(crn_filter_of_name("etkf"), &c, w));
        assert_ok(crn_filter_update(w, N, 1, row));
    }
}

static void check_against_all(const crn_locality *l, double extent, double radius)
{
    field *cells = make(l->ndims, extent, radius), *plain = make(l->ndims, extent, radius);
    for (int d = 0; d < 3; d++)
        cells->l.period[d] = plain->l.period[d] = l->period[d];
    cells->l.sphere = plain->l.sphere = l->sphere;
    cells->l.vertical = plain->l.vertical = l->vertical;
    update(cells, "etkf");
    update_plainly(plain);
    if (apart(cells, plain) > 1e-9)
        fail_msg("%d dimensions, period %g, sphere %g: %g apart", l->ndims, l->period[0], l->sphere,
                 apart(cells, plain));
    free(cells);
    free(plain);
}

static void test_cells_find_all_that_reach(void **state)
{
    (void)state;
    check_against_all(&(crn_locality){.ndims = 1}, 100, 2);
    check_against_all(&(crn_locality){.ndims = 1, .period = {100}}, 100, 2);
    check_against_all(&(crn_locality){.ndims = 1, .period = {100}}, 250, 3); /* around, twice */
    check_against_all(&(crn_locality){.ndims = 2, .period = {20, 0}}, 20, 0.7);
    check_against_all(&(crn_locality){.ndims = 3, .vertical = 3}, 20, 1);
    check_against_all(&(crn_locality){.ndims = 2, .sphere = 6371}, 85, 400);
    check_against_all(&(crn_locality){.ndims = 3, .sphere = 6371, .vertical = 500}, 85, 600);
    check_against_all(&(crn_locality){.ndims = 2}, 10, 100);
}

static void test_the_taper_is_gaspari_and_cohns(void **state)
{
    (void)state;
    assert_true(crn_filter_taper(0, 3) == 1);
    assert_true(fabs(crn_filter_taper(1.82 * 3, 3) - 5. / 24) < 1e-12); /* where its pieces meet */
    assert_true(crn_filter_taper(3.64 * 3, 3) == 0 && crn_filter_taper(1e9, INFINITY) == 1);
    for (double r = 0; r < 4; r += 0.01) {
        assert_true(crn_filter_taper(r + 0.01, 1) <= crn_filter_taper(r, 1) + 1e-12);
        assert_true(fabs(crn_filter_taper(r, 1) - exp(-r * r / 2)) < 0.04);
    }
}

static void test_relaxation(void **state)
{
    (void)state;
    field *all = make(1, 100, INFINITY), *was = make(1, 100, INFINITY);
    double background[NX], spread[NX], analysis[NX];
    all->c.inflation = was->c.inflation = 1;
    all->c.rotate = false;
    all->c.rtpp = 1; /* the background's anomalies, around the analysis's mean */
    update(all, "etkf");
    crn_filter_spread(N, NX, was->member, background);
    crn_filter_spread(N, NX, all->member, spread);
    for (size_t i = 0; i < NX; i++)
        assert_true(fabs(spread[i] - background[i]) < 1e-12);
    was->c.rotate = false;
    update(was, "etkf");
    crn_filter_spread(N, NX, was->member, analysis);
    crn_filter_relax_spread(0.3, N, NX, background, was->member);
    crn_filter_spread(N, NX, was->member, spread);
    for (size_t i = 0; i < NX; i++)
        assert_true(fabs(spread[i] - (0.7 * analysis[i] + 0.3 * background[i])) < 1e-12);
    free(all);
    free(was);
}

static void test_what_is_missing_is_refused(void **state)
{
    (void)state;
    field *f = make(1, 10, 1);
    const crn_filter_ops *etkf = crn_filter_of_name("etkf");
    assert_fails(crn_filter_update_local(etkf, &f->c, &f->l, NX, NULL, f->member), CAIRN_EINVAL,
                 "coordinates of the field's points");
    f->l.radius = NULL;
    assert_fails(crn_filter_update_local(etkf, &f->c, &f->l, NX, f->point, f->member), CAIRN_EINVAL,
                 "radius of every observation");
    f->l.radius = f->radius;
    f->radius[7] = 0;
    assert_fails(crn_filter_update_local(etkf, &f->c, &f->l, NX, f->point, f->member), CAIRN_EINVAL,
                 "observation 7 has the radius 0");
    f->radius[7] = 1;
    f->c.rtpp = 1.5;
    assert_fails(crn_filter_update_local(etkf, &f->c, &f->l, NX, f->point, f->member), CAIRN_EINVAL,
                 "1.5 is not from 0 to 1");
    free(f);
}

int main(void)
{
    const char *kernel;
    if (crn_filter_kernel(&kernel) == CAIRN_EUNSUPPORTED)
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_infinite_radius_is_global),
        cmocka_unit_test(test_cells_find_all_that_reach),
        cmocka_unit_test(test_the_taper_is_gaspari_and_cohns),
        cmocka_unit_test(test_relaxation),
        cmocka_unit_test(test_what_is_missing_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
