/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Statistics of ensembles against a naive reference in quadruple precision: each formula as it is
 * printed, without a downdate, a shift or a block.
 *
 * NEEDS: random123
 */
#include <math.h>

#include "harness/harness.h"
#include "validate/validate.h"

enum { MOST_MEMBERS = 25, MOST_N = 1100, NENSEMBLES = 3 };

typedef struct set {
    uint32_t nmembers;
    size_t n;
    double weight[MOST_MEMBERS];
    double value[NENSEMBLES][MOST_MEMBERS][MOST_N];
} set;

typedef __float128 quad;

static quad root(quad x)
{
    if (x <= 0)
        return 0;
    quad r = sqrtl((long double)x);
    for (int i = 0; i < 2 && r > 0; i++)
        r = (r + x / r) / 2;
    return r;
}

/* z^2 of y against the others of an ensemble: 1, 0 where it has none, -1 off a point. */
static int naive_z(const set *s, uint32_t e, uint32_t p, size_t i, double y, quad *z, quad *var)
{
    quad w = 0, mean = 0, square = 0;
    for (uint32_t k = 0; k < s->nmembers; k++)
        if (k != p && s->weight[k] > 0) {
            if (!isfinite(s->value[e][k][i]))
                return 0;
            w += s->weight[k];
            mean += (quad)s->weight[k] * s->value[e][k][i];
        }
    if (w == 0 || !isfinite(y))
        return 0;
    bool same = true;
    double first = NAN;
    mean /= w;
    for (uint32_t k = 0; k < s->nmembers; k++)
        if (k != p && s->weight[k] > 0) {
            const quad d = s->value[e][k][i] - mean;
            first = isnan(first) ? s->value[e][k][i] : first;
            same = same && s->value[e][k][i] == first;
            square += s->weight[k] * d * d;
        }
    *var = same ? 0 : square / w;
    *z = same ? 0 : (y - mean) * (y - mean) / *var;
    return same && y != first ? -1 : 1;
}

typedef struct naive {
    quad rmsz0, rmsz, rmse, psnr, decorrelation, error, nrmse, npme, mean, deviation, min, max,
        share;
    uint64_t nz0, nz, n, nbroken, noutside;
} naive;

static void naive_z_stats(const set *s, uint32_t e, uint32_t p, naive *r)
{
    quad z = 0, var = 0;
    for (size_t i = 0; i < s->n; i++) {
        const double x = s->value[0][p][i], y = s->value[e][p][i];
        if (naive_z(s, e, p, i, y, &z, &var) == 1) {
            r->rmsz += z;
            r->nz++;
        }
        const int found = naive_z(s, 0, p, i, y, &z, &var);
        r->noutside += found < 0;
        if (found == 1) {
            r->rmsz0 += z;
            r->nz0++;
            if (isfinite(x) && var > 0)
                r->share += ((quad)y - x) * ((quad)y - x) / var;
        }
    }
    r->rmsz = root(r->rmsz / (r->nz ? r->nz : 1));
    r->rmsz0 = root(r->rmsz0 / (r->nz0 ? r->nz0 : 1));
    r->share = root(r->share / (r->nz0 ? r->nz0 : 1));
}

static bool same_special(double x, double y)
{
    return (isnan(x) && isnan(y)) || x == y;
}

static void naive_sums(const set *s, uint32_t e, uint32_t p, naive *r, quad *most, quad mean[2])
{
    r->min = INFINITY;
    r->max = -INFINITY;
    for (size_t i = 0; i < s->n; i++) {
        const quad x = s->value[0][p][i], y = s->value[e][p][i];
        if (isfinite((double)y) && y < r->min)
            r->min = y;
        if (isfinite((double)y) && y > r->max)
            r->max = y;
        const quad size = x < 0 ? -x : x, d = y > x ? y - x : x - y;
        if (isfinite((double)x) && size > *most)
            *most = size;
        if (!isfinite((double)x) || !isfinite((double)y)) {
            r->nbroken += !same_special((double)x, (double)y);
            continue;
        }
        r->n++;
        mean[0] += x;
        mean[1] += y;
        r->rmse += d * d;
        r->error = d > r->error ? d : r->error;
    }
}

static void naive_pair(const set *s, uint32_t e, uint32_t p, naive *r)
{
    quad mean[2] = {0}, xx = 0, yy = 0, xy = 0, most = 0;
    naive_sums(s, e, p, r, &most, mean);
    if (r->n == 0)
        return;
    mean[0] /= r->n;
    mean[1] /= r->n;
    for (size_t i = 0; i < s->n; i++) {
        const quad x = s->value[0][p][i] - mean[0], y = s->value[e][p][i] - mean[1];
        if (!isfinite((double)x) || !isfinite((double)y))
            continue;
        xx += x * x;
        yy += y * y;
        xy += x * y;
    }
    r->rmse = root(r->rmse / r->n);
    r->nrmse = r->rmse / (r->max - r->min);
    r->npme = r->error / (r->max - r->min);
    r->psnr = 20 * log10l((long double)(most / r->rmse));
    r->mean = mean[1];
    r->deviation = root(yy / r->n);
    r->decorrelation = xx > 0 && yy > 0 ? 1 - xy / root(xx) / root(yy) : r->error > 0;
}

/* --- comparing ------------------------------------------------------------------------------ */

static void check_relative(const char *what, double got, quad want)
{
    const long double w = (long double)want, error = fabsl(got - w);
    if (!isfinite((double)w) || isnan(got) || error > 1e-12L * fabsl(w))
        fail_msg("%s is %.17g, not %.17Lg", what, got, w);
}

static void check_absolute(const char *what, double got, quad want, quad scale)
{
    if (!(fabsl(got - (long double)want) <= 1e-12L * (scale > 1 ? (long double)scale : 1)))
        fail_msg("%s is %.17g, not %.17Lg", what, got, (long double)want);
}

static void check_errors(const crn_spread_stats *t, const naive *r)
{
    if (r->nbroken > 0) {
        assert_true(isinf(t->rmse) && isinf(t->error) && isinf(t->nrmse) && isinf(t->npme));
        assert_true(t->decorrelation == 1);
        return;
    }
    check_relative("RMSE", t->rmse, r->rmse);
    check_relative("largest error", t->error, r->error);
    check_absolute("1 - rho", t->decorrelation, r->decorrelation, 1);
    if (r->error > 0 && r->max > r->min) {
        check_relative("NRMSE", t->nrmse, r->nrmse);
        check_relative("NPME", t->npme, r->npme);
        check_absolute("PSNR", t->psnr, r->psnr, 100);
    }
    check_relative("deviation", t->deviation, r->deviation);
    if (r->deviation < 1e6 * (r->mean < 0 ? -r->mean : r->mean))
        check_relative("mean", t->mean, r->mean);
}

static void check_row(const crn_spread *s, const set *v, uint32_t e, uint32_t p)
{
    naive r = {0}, r0 = {0};
    crn_spread_stats t;
    naive_z_stats(v, e, p, &r);
    naive_z_stats(v, 0, p, &r0);
    naive_pair(v, e, p, &r);
    crn_spread_stats_of(s, e, p, &t);
    assert_int_equal(t.n, r.n);
    assert_int_equal(t.nbroken, r.nbroken);
    assert_int_equal(t.noutside, r.noutside);
    if (r.nz0 == 0)
        assert_true(isnan(t.rmsz0));
    else {
        check_relative("RMSZ against the ensemble without loss", t.rmsz0, r.rmsz0);
        check_relative("error over spread", t.share, r.share);
    }
    if (r.nz == 0)
        assert_true(isnan(t.rmsz));
    else
        check_relative("RMSZ against the own ensemble", t.rmsz, r.rmsz);
    if (r.nz0 > 0 && r0.nz0 > 0)
        check_absolute("difference of RMSZ", t.delta,
                       r.rmsz0 > r0.rmsz0 ? r.rmsz0 - r0.rmsz0 : r0.rmsz0 - r.rmsz0,
                       r.rmsz0 + r0.rmsz0);
    if (r.n > 0)
        check_errors(&t, &r);
}

static void check_set(const set *v)
{
    crn_spread s;
    const double *at[NENSEMBLES * MOST_MEMBERS];
    for (uint32_t e = 0; e < NENSEMBLES; e++)
        for (uint32_t p = 0; p < v->nmembers; p++)
            at[e * v->nmembers + p] = v->value[e][p];
    assert_ok(crn_spread_init(&s, NENSEMBLES, v->nmembers, v->weight));
    assert_ok(crn_spread_add(&s, at, v->n));
    for (uint32_t e = 0; e < NENSEMBLES; e++)
        for (uint32_t p = 0; p < v->nmembers; p++)
            check_row(&s, v, e, p);
    crn_spread_done(&s);
}

/* --- making --------------------------------------------------------------------------------- */

typedef struct making {
    double mean, spread, loss, bias;
    bool rounded; /* values as float32: many are equal */
} making;

static double normal(crn_rng *rng)
{
    return sqrt(-2 * log(1 - crn_rng_unit(rng))) * cos(6.283185307179586 * crn_rng_unit(rng));
}

static void fill(set *v, uint64_t seed, uint32_t nmembers, size_t n, const making *how)
{
    crn_rng rng = crn_rng_of(seed, 25);
    *v = (set){.nmembers = nmembers, .n = n};
    for (uint32_t p = 0; p < nmembers; p++) {
        v->weight[p] = 1;
        for (size_t i = 0; i < n; i++) {
            const double x = how->mean + how->spread * (normal(&rng) + sin((double)i));
            v->value[0][p][i] = x;
            for (uint32_t e = 1; e < NENSEMBLES; e++)
                v->value[e][p][i] =
                    how->rounded ? (double)(float)x
                                 : x + how->bias + how->loss * pow(10, 3. * e) * normal(&rng);
        }
    }
}

static set *scratch(void)
{
    static set values; /* too large for a stack */
    return &values;
}

static void test_spread_random(void **state)
{
    (void)state;
    set *v = scratch();
    const making how[] = {{0, 1, 1e-9, 0, false},
                          {5, 2, 1e-4, 1e-3, false},
                          {0, 1, 0, 0, true},
                          {1e8, 1e-3, 1e-9, 0, false},
                          {-1e5, 1, 1e-12, 0, false}};
    for (uint64_t seed = 0; seed < 10; seed++) {
        fill(v, seed, 3 + (uint32_t)(seed * 7 % 23), 1 + seed * 197 % 400, &how[seed % 5]);
        check_set(v);
    }
}

static void test_spread_weighted(void **state)
{
    (void)state;
    set *v = scratch();
    for (uint64_t seed = 0; seed < 10; seed++) {
        crn_rng rng = crn_rng_of(seed, 1);
        fill(v, seed, 4 + (uint32_t)seed, 200, &(making){3, 1, 1e-7, 0, false});
        for (uint32_t p = 0; p < v->nmembers; p++)
            v->weight[p] = p % 3 == 2 ? 0 : pow(10, -6 * crn_rng_unit(&rng));
        if (seed % 2) /* one that has no weight is far away */
            for (size_t i = 0; i < v->n; i++)
                v->value[0][2][i] = v->value[1][2][i] = 1e12;
        check_set(v);
    }
}

static void test_spread_few_members(void **state)
{
    (void)state;
    set *v = scratch();
    for (uint32_t members = 1; members < 4; members++) {
        fill(v, members, members, 513, &(making){1, 1, 1e-6, 0, false});
        check_set(v);
    }
    fill(v, 9, 5, 100, &(making){1, 1, 1e-6, 0, false});
    for (uint32_t p = 0; p < 5; p++)
        v->weight[p] = p == 1; /* one has all the weight: it has no others */
    check_set(v);
}

static void push_away(set *v, uint32_t e, double far)
{
    for (size_t i = 0; i < v->n; i++) {
        v->value[e][0][i] += far;
        v->value[e][5][i] -= i % 2 ? far : 0;
    }
}

/* A member far from all others has nearly all of the variance: without it, little is left. */
static void test_spread_outliers(void **state)
{
    (void)state;
    set *v = scratch();
    const double far[] = {1e3, 1e6, 1e9, 1e13};
    for (size_t k = 0; k < 4; k++) {
        fill(v, k, 8, 300, &(making){1, 1e-3, 1e-9, 0, false});
        for (uint32_t e = 0; e < NENSEMBLES; e++)
            push_away(v, e, far[k]);
        check_set(v);
    }
}

/* Spread of none: at all elements, at some, of the others only; and zeros. */
static void flatten(set *v, int kind, uint32_t e, uint32_t p)
{
    for (size_t i = 0; i < v->n; i++)
        if (kind == 0 || (kind == 1 && i % 3 == 0) || (kind == 2 && p > 0))
            v->value[e][p][i] = 0.1 + (kind == 0 && e == 2 ? 1e-3 : 0);
        else if (kind == 3)
            v->value[e][p][i] = 0;
}

static void test_spread_zero(void **state)
{
    (void)state;
    set *v = scratch();
    for (int kind = 0; kind < 4; kind++) {
        fill(v, 3, 7, 300, &(making){0.1, 1, 1e-6, 0, false});
        for (uint32_t r = 0; r < NENSEMBLES * 7; r++)
            flatten(v, kind, r / 7, r % 7);
        check_set(v);
    }
}

/* Neighbours in the set of numbers: the spread is in the last digit. */
static void test_spread_last_digit(void **state)
{
    (void)state;
    set *v = scratch();
    crn_rng rng = crn_rng_of(4, 4);
    fill(v, 3, 9, 300, &(making){0.1, 1, 1e-6, 0, false});
    for (uint32_t e = 0; e < NENSEMBLES; e++)
        for (uint32_t p = 0; p < 9; p++)
            for (size_t i = 0; i < v->n; i++)
                v->value[e][p][i] = 1e5 * (1 + 0x1p-52 * (double)crn_rng_below(&rng, 5));
    check_set(v);
}

static void test_spread_special(void **state)
{
    (void)state;
    set *v = scratch();
    fill(v, 3, 6, 520, &(making){0.1, 1, 1e-6, 0, false});
    for (uint32_t p = 0; p < 6; p++)
        for (uint32_t e = 0; e < NENSEMBLES; e++)
            for (size_t i = 0; i < v->n; i += 7) /* land */
                v->value[e][p][i] = NAN;
    check_set(v);
    v->value[0][3][300] = INFINITY;
    v->value[1][4][301] = NAN; /* broken by its codec */
    v->value[2][5][15] = -INFINITY;
    check_set(v);
}

static void test_spread_scales(void **state)
{
    (void)state;
    set *v = scratch();
    const double scale[] = {1e160, 1e300, 1e-160, 1e-300};
    for (size_t k = 0; k < 4; k++) {
        fill(v, k, 6, 300, &(making){0.1 * scale[k], scale[k], 1e-6 * scale[k], 0, false});
        check_set(v);
    }
}

/* Slices that were computed apart, and merged by index, are as good as one pass, and two ways to
 * compute the same slices give the same bits. */
static void test_spread_merge(void **state)
{
    (void)state;
    set *v = scratch();
    crn_spread whole, part, twice[2];
    const double *at[NENSEMBLES * MOST_MEMBERS], *from[NENSEMBLES * MOST_MEMBERS];
    fill(v, 3, 9, 1100, &(making){0.1, 1, 1e-6, 0, false});
    for (uint32_t r = 0; r < NENSEMBLES * 9; r++)
        at[r] = v->value[r / 9][r % 9];
    assert_ok(crn_spread_init(&whole, NENSEMBLES, 9, v->weight));
    assert_ok(crn_spread_add(&whole, at, v->n));
    for (int k = 0; k < 2; k++) {
        assert_ok(crn_spread_init(&twice[k], NENSEMBLES, 9, v->weight));
        for (size_t first = 0; first < v->n; first += 512) {
            assert_ok(crn_spread_init(&part, NENSEMBLES, 9, v->weight));
            for (uint32_t r = 0; r < NENSEMBLES * 9; r++)
                from[r] = at[r] + first;
            assert_ok(crn_spread_add(&part, from, CRN_MIN((size_t)512, v->n - first)));
            crn_spread_merge(&twice[k], &part);
            crn_spread_done(&part);
        }
    }
    for (uint32_t r = 0; r < NENSEMBLES * 9; r++) {
        crn_spread_stats a, b, c;
        crn_spread_stats_of(&whole, r / 9, r % 9, &a);
        crn_spread_stats_of(&twice[0], r / 9, r % 9, &b);
        crn_spread_stats_of(&twice[1], r / 9, r % 9, &c);
        assert_memory_equal(&b, &c, sizeof b);
        assert_true(fabs(a.rmsz - b.rmsz) < 1e-14 && a.error == b.error && a.n == b.n);
        assert_true(fabs(a.rmse - b.rmse) <= 1e-14 * a.rmse);
    }
    crn_spread_done(&whole);
    crn_spread_done(&twice[0]);
    crn_spread_done(&twice[1]);
}

static void test_spread_refuses(void **state)
{
    (void)state;
    crn_spread s;
    assert_fails(crn_spread_init(&s, 2, 2, (double[]){1, -1}), CAIRN_EINVAL, "member 1");
    assert_fails(crn_spread_init(&s, 2, 2, (double[]){1, NAN}), CAIRN_EINVAL, "member 1");
    assert_fails(crn_spread_init(&s, 2, 2, (double[]){0, 0}), CAIRN_EINVAL, "add up to 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spread_random),      cmocka_unit_test(test_spread_weighted),
        cmocka_unit_test(test_spread_few_members), cmocka_unit_test(test_spread_outliers),
        cmocka_unit_test(test_spread_zero),        cmocka_unit_test(test_spread_last_digit),
        cmocka_unit_test(test_spread_special),     cmocka_unit_test(test_spread_scales),
        cmocka_unit_test(test_spread_merge),       cmocka_unit_test(test_spread_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
