/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What every filter must do, whoever wrote it: the same case gives the same bits, nothing observed
 * changes nothing, the order of observations does not matter, observations pull the mean towards
 * them and never widen the ensemble, slices of local analyses fit together. None of this asks for a
 * Kalman filter: what a filter does beyond is its own.
 */
#include "filter/filter_ops.h"

#include <math.h>
#include <stdarg.h>

enum { N = 12, NX = 60, NOBS = 40, WHY = 256, GUARD = 8 };

typedef struct trial {
    const crn_filter_ops *filter;
    double x[N][NX], y[N * NOBS], value[NOBS], variance[NOBS];
    uint64_t number[NOBS];
    double *member[N];
    double w[N * N + 2 * GUARD]; /* with a guard before and behind */
    crn_filter_case c;
    char why[WHY];
} trial;

static void setup(trial *t, const crn_filter_ops *filter)
{
    *t = (trial){.filter = filter};
    for (size_t j = 0; j < N; j++) {
        const crn_rng_key key = {7, CRN_FOR_INITIAL, 1, j};
        t->member[j] = t->x[j];
        for (size_t i = 0; i < NX; i++)
            t->x[j][i] = sin((double)i / 9) + crn_rng_normal_at(&key, i);
        for (size_t i = 0; i < NOBS; i++)
            t->y[i + j * NOBS] = t->x[j][i];
    }
    for (size_t i = 0; i < NOBS; i++) {
        const crn_rng_key key = {7, CRN_FOR_OBSERVATION, 1, 0};
        t->value[i] = sin((double)i / 9) + 0.5 * crn_rng_normal_at(&key, i);
        t->variance[i] = 0.25 + (double)(i % 3);
        t->number[i] = 3 * i + 1;
    }
    t->c = (crn_filter_case){.study = 7,
                             .cycle = 1,
                             .nmembers = N,
                             .nobs = NOBS,
                             .y = t->y,
                             .value = t->value,
                             .variance = t->variance,
                             .number = t->number,
                             .inflation = 1};
}

static bool because(trial *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(t->why, sizeof t->why, fmt, ap);
    va_end(ap);
    return false;
}

/* The weights, which are N by N behind a guard. */
static bool solve(trial *t)
{
    const double mark = -12345.678;
    for (size_t i = 0; i < GUARD; i++)
        t->w[i] = t->w[GUARD + N * N + i] = mark;
    for (size_t i = 0; i < N * N; i++)
        t->w[GUARD + i] = NAN;
    if (crn_filter_weights(t->filter, &t->c, t->w + GUARD) < 0) {
        crn_err e;
        crn_err_take(&e);
        return because(t, "%s", e.text);
    }
    for (size_t i = 0; i < GUARD; i++)
        if (t->w[i] != mark || t->w[GUARD + N * N + i] != mark)
            return because(t, "it writes outside of the weights");
    return true;
}

static bool analyse(trial *t)
{
    if (!solve(t))
        return false;
    if (crn_filter_update(t->w + GUARD, N, NX, t->member) == CAIRN_OK)
        return true;
    crn_err_take(&(crn_err){0});
    return because(t, "no memory");
}

static double mean_of(const trial *t, size_t i)
{
    double sum = 0;
    for (size_t j = 0; j < N; j++)
        sum += t->x[j][i];
    return sum / N;
}

static double covariance(const trial *t, size_t a, size_t b)
{
    double sum = 0;
    for (size_t j = 0; j < N; j++)
        sum += (t->x[j][a] - mean_of(t, a)) * (t->x[j][b] - mean_of(t, b));
    return sum / (N - 1);
}

/* Are mean and covariance those of another trial, within a bound? */
static bool alike(trial *t, const trial *was, double within)
{
    for (size_t i = 0; i + 1 < NX; i++) {
        const double mean = fabs(mean_of(t, i) - mean_of(was, i));
        const double both = fabs(covariance(t, i, i + 1) - covariance(was, i, i + 1));
        const double own = fabs(covariance(t, i, i) - covariance(was, i, i));
        if (!(mean <= within && both <= within && own <= within))
            return because(t, "element %zu: the mean differs by %.2g, the covariance by %.2g", i,
                           mean, fmax(both, own));
    }
    return true;
}

/* --- the tests ------------------------------------------------------------------------------ */

static bool repeats(trial *t, trial *other)
{
    if (!solve(t))
        return false;
    if (!solve(other))
        return because(t, "%s", other->why);
    if (memcmp(t->w, other->w, sizeof t->w) != 0)
        return because(t, "two calls give other weights");
    return true;
}

static bool keeps_without(trial *t, trial *was)
{
    t->c.nobs = 0;
    return analyse(t) && alike(t, was, 1e-10);
}

static bool keeps_worthless(trial *t, trial *was)
{
    for (size_t i = 0; i < NOBS; i++)
        t->variance[i] = 1e16;
    return analyse(t) && alike(t, was, 1e-5);
}

static bool ignores_order(trial *t, trial *other)
{
    for (size_t i = 0; i < NOBS; i++) {
        const size_t k = (i * 7 + 3) % NOBS;
        other->value[i] = t->value[k];
        other->variance[i] = t->variance[k];
        other->number[i] = t->number[k];
        for (size_t j = 0; j < N; j++)
            other->y[i + j * NOBS] = t->y[k + j * NOBS];
    }
    return analyse(t) && (analyse(other) || because(t, "%s", other->why)) && alike(t, other, 1e-9);
}

static bool pulls(trial *t, trial *was)
{
    t->c.nobs = 1;
    for (size_t j = 0; j < N; j++)
        t->y[j] = t->x[j][0];
    t->variance[0] = 0.5 * covariance(was, 0, 0);
    t->value[0] = mean_of(was, 0) + 1;
    if (!analyse(t))
        return false;
    const double moved = mean_of(t, 0) - mean_of(was, 0);
    if (moved < -1e-10 || moved > 1 + 1e-10)
        return because(t, "an observation 1 above the mean moves it by %.3g", moved);
    if (covariance(t, 0, 0) > covariance(was, 0, 0) * (1 + 1e-10))
        return because(t, "an observation widens the ensemble by %.3g",
                       sqrt(covariance(t, 0, 0) / covariance(was, 0, 0)));
    return true;
}

static bool update_slices(trial *t, const size_t *from, size_t n)
{
    double place[NX], radius[NOBS], *member[N];
    for (size_t i = 0; i < NX; i++)
        place[i] = (double)i;
    for (size_t i = 0; i < NOBS; i++)
        radius[i] = 4;
    const crn_locality l = {.ndims = 1, .period = {NX}, .place = place, .radius = radius};
    for (size_t s = 0; s < n; s++) {
        for (size_t j = 0; j < N; j++)
            member[j] = t->x[j] + from[s];
        if (crn_filter_update_local(t->filter, &t->c, &l, from[s + 1] - from[s], place + from[s],
                                    member) < 0) {
            crn_err e;
            crn_err_take(&e);
            return because(t, "%s", e.text);
        }
    }
    return true;
}

static bool is_local(trial *t, trial *other)
{
    const size_t whole[] = {0, NX}, cut[] = {0, 13, 14, NX};
    if (!update_slices(t, whole, 1))
        return false;
    if (!update_slices(other, cut, 3))
        return because(t, "%s", other->why);
    if (memcmp(t->x, other->x, sizeof t->x) != 0)
        return because(t, "local analyses of slices are not those of the whole");
    return true;
}

static const struct {
    const char *name;
    bool (*run)(trial *t, trial *other); /* other: the same, not analysed yet */
} tests[] = {
    {"the same case gives the same weights", repeats},
    {"without observations the ensemble stays", keeps_without},
    {"observations without worth change nothing", keeps_worthless},
    {"the order of observations does not matter", ignores_order},
    {"an observation pulls the mean and does not widen", pulls},
    {"local analyses fit together", is_local},
};

cairn_status crn_filter_conform(const crn_filter_ops *filter, crn_filter_finding_fn *found,
                                void *arg)
{
    const char *kernel;
    trial *t;
    bool all = true;
    CRN_TRY(crn_filter_kernel(&kernel));
    CRN_TRY(crn_alloc(&t, 2));
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        setup(&t[0], filter);
        setup(&t[1], filter);
        const bool passed = tests[i].run(&t[0], &t[1]);
        found(arg, tests[i].name, passed ? "" : t[0].why);
        all = all && passed;
    }
    free(t);
    return all ? CAIRN_OK : CAIRN_NOTHING;
}
