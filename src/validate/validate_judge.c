/* SPDX-License-Identifier: BSD-3-Clause */
#include "validate/validate.h"

#include <math.h>

enum { DRAWS = 400 };

static const char *const criterion_names[CRN_NCRITERIA] = {"finite", "delta", "rho",
                                                           "share",  "ssim",  "slope"};
static const char *const finding_names[] = {"-", "pass", "fail", "noise"};

const char *crn_criterion_name(crn_criterion c)
{
    return criterion_names[c];
}

const char *crn_finding_name(crn_finding f)
{
    return finding_names[f];
}

crn_thresholds crn_thresholds_default(void)
{
    return (crn_thresholds){
        .delta = 0.1, .rho = 0.9999, .strict = 0.99999, .share = 0.1, .ssim = 0.9995, .sigmas = 1};
}

/* --- tools ---------------------------------------------------------------------------------- */

crn_line crn_line_fit(const double *x, const double *y, size_t n)
{
    long double mx = 0, my = 0, xx = 0, xy = 0, rest = 0;
    for (size_t i = 0; i < n; i++) {
        mx += x[i] / (long double)n;
        my += y[i] / (long double)n;
    }
    for (size_t i = 0; i < n; i++) {
        xx += (x[i] - mx) * (x[i] - mx);
        xy += (x[i] - mx) * (y[i] - my);
    }
    if (n < 2 || !(xx > 0) || !isfinite((double)xy))
        return (crn_line){NAN, NAN, NAN};
    const long double slope = xy / xx;
    for (size_t i = 0; i < n; i++) {
        const long double d = (y[i] - my) - slope * (x[i] - mx);
        rest += d * d;
    }
    return (crn_line){(double)slope, (double)(my - slope * mx),
                      n < 3 ? NAN : (double)sqrtl(rest / (long double)(n - 2) / xx)};
}

crn_slopes crn_slopes_of(const double *value, size_t nmembers, size_t n)
{
    crn_slopes r = {NAN, NAN, 0};
    long double sum = 0, square = 0;
    for (size_t p = 0; p < nmembers; p++)
        for (size_t q = p + 1; q < nmembers; q++) {
            const crn_line line = crn_line_fit(value + p * n, value + q * n, n);
            if (isnan(line.slope))
                continue;
            r.npairs++;
            sum += line.slope - 1;
            square += (line.slope - 1.L) * (line.slope - 1.L);
        }
    if (r.npairs == 0)
        return r;
    const long double mean = sum / (long double)r.npairs;
    r.mean = (double)(1 + mean);
    r.deviation = (double)sqrtl(fmaxl(square / (long double)r.npairs - mean * mean, 0));
    return r;
}

typedef struct ranked {
    double p;
    size_t index;
} ranked;

static int by_p(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->p != y->p ? (x->p > y->p) - (x->p < y->p) : (x->index > y->index) ? 1 : -1;
}

cairn_status crn_discoveries(const double *p, size_t n, double q, bool *ret, size_t *ret_n)
{
    ranked *r;
    size_t m = 0, found = 0;
    CRN_TRY(crn_alloc(&r, n));
    for (size_t i = 0; i < n; i++) {
        ret[i] = false;
        if (!isnan(p[i]))
            r[m++] = (ranked){p[i], i};
    }
    qsort(r, m, sizeof *r, by_p);
    for (size_t i = 0; i < m; i++)
        if (r[i].p <= q * (double)(i + 1) / (double)m)
            found = i + 1;
    for (size_t i = 0; i < found; i++)
        ret[r[i].index] = true;
    free(r);
    *ret_n = found;
    return CAIRN_OK;
}

/* --- criteria ------------------------------------------------------------------------------- */

/* Members as they are, or drawn anew: member i is pick[i]. NULL: as they are. */
typedef const uint32_t *sample;

static uint32_t drawn(sample s, uint32_t i)
{
    return s ? s[i] : i;
}

static double rho_mean(const crn_history *h, const crn_spread_stats *at, sample s)
{
    long double sum = 0; /* of 1 - rho, which keeps its digits */
    for (uint32_t i = 0; i < h->nmembers; i++)
        sum += at[drawn(s, i)].decorrelation;
    return (double)(1 - sum / h->nmembers);
}

/* NaN: no member has it. */
static double largest(const crn_history *h, const crn_spread_stats *at, sample s, bool delta)
{
    double most = NAN;
    for (uint32_t i = 0; i < h->nmembers; i++) {
        const crn_spread_stats *t = &at[drawn(s, i)];
        const double v = delta ? t->delta : t->share;
        if (isnan(most) || v > most)
            most = v;
    }
    return most;
}

static double spoiled(const crn_history *h, uint32_t cycle)
{
    double n = 0;
    for (uint32_t i = 0; i < h->nmembers; i++) {
        const crn_spread_stats *t = &h->stats[cycle * h->nmembers + i];
        const crn_spread_stats *t0 = &h->lossless[cycle * h->nmembers + i];
        n += (double)t->nbroken +
             (t->noutside > t0->noutside ? (double)(t->noutside - t0->noutside) : 0);
    }
    return n;
}

static double least_ssim(const crn_history *h, uint32_t cycle, sample s)
{
    double least = INFINITY;
    for (uint32_t i = 0; i < h->nmembers; i++)
        least = fmin(least, h->ssim[cycle * h->nmembers + drawn(s, i)]);
    return least;
}

/* The value of a criterion in a cycle; NaN: it does not apply. */
static double value_of(const crn_history *h, crn_criterion c, uint32_t cycle, sample s)
{
    const crn_spread_stats *at = h->stats + (size_t)cycle * h->nmembers;
    switch (c) {
    case CRN_CRITERION_FINITE:
        return spoiled(h, cycle);
    case CRN_CRITERION_DELTA:
        return largest(h, at, s, true);
    case CRN_CRITERION_RHO:
        return rho_mean(h, at, s);
    case CRN_CRITERION_SHARE:
        return largest(h, at, s, false);
    case CRN_CRITERION_SSIM:
        return h->ssim ? least_ssim(h, cycle, s) : NAN;
    default:
        return NAN;
    }
}

static bool holds(const crn_thresholds *t, crn_criterion c, double value)
{
    switch (c) {
    case CRN_CRITERION_FINITE:
        return value == 0;
    case CRN_CRITERION_DELTA:
        return value < t->delta;
    case CRN_CRITERION_RHO:
        return value >= t->rho;
    case CRN_CRITERION_SHARE:
        return value <= t->share;
    case CRN_CRITERION_SSIM:
        return value >= t->ssim;
    default:
        return true;
    }
}

/* In all cycles; *since is the first that fails. */
static crn_finding over_cycles(const crn_history *h, const crn_thresholds *t, crn_criterion c,
                               uint32_t ncycles, sample s, uint32_t *since)
{
    bool applies = false;
    *since = 0;
    for (uint32_t k = 0; k < ncycles; k++) {
        const double v = value_of(h, c, k, s);
        if (isnan(v))
            continue;
        applies = true;
        if (!holds(t, c, v)) {
            *since = k + 1;
            return CRN_FINDING_FAIL;
        }
    }
    return applies ? CRN_FINDING_PASS : CRN_FINDING_NONE;
}

static void draw(uint64_t seed, uint64_t number, uint32_t n, uint32_t *pick)
{
    crn_rng rng = crn_rng_of(seed, number);
    for (uint32_t i = 0; i < n; i++)
        pick[i] = (uint32_t)crn_rng_below(&rng, n);
}

/* Would members drawn anew, with replacement, decide otherwise more often than one time in 40? */
static crn_finding decide(const crn_history *h, const crn_thresholds *t, crn_criterion c,
                          uint32_t ncycles, uint64_t seed, uint32_t *pick, uint32_t *since)
{
    const crn_finding first = over_cycles(h, t, c, ncycles, NULL, since);
    uint32_t others = 0, ignored;
    if (first == CRN_FINDING_NONE || c == CRN_CRITERION_FINITE)
        return first;
    for (uint32_t k = 0; k < DRAWS; k++) {
        draw(seed, k, h->nmembers, pick);
        others += over_cycles(h, t, c, ncycles, pick, &ignored) != first;
    }
    return others * 40 > DRAWS ? CRN_FINDING_NOISE : first;
}

/* --- the noise test ------------------------------------------------------------------------- */

static void mean_by_cycle(const crn_history *h, const double *nrmse, uint32_t ncycles, sample s,
                          double *ret)
{
    for (uint32_t k = 0; k < ncycles; k++) {
        long double sum = 0;
        for (uint32_t i = 0; i < h->nmembers; i++)
            sum += nrmse[(size_t)k * h->nmembers + drawn(s, i)];
        ret[k] = (double)(sum / h->nmembers);
    }
}

static crn_line line_of(const crn_history *h, uint32_t ncycles, sample s, double *scratch)
{
    mean_by_cycle(h, h->pair, ncycles, s, scratch);
    mean_by_cycle(h, h->noisy, ncycles, s, scratch + ncycles);
    return crn_line_fit(scratch, scratch + ncycles, ncycles);
}

static bool slope_holds(const crn_thresholds *t, const crn_slopes *slopes, double slope)
{
    return fabs(slope - slopes->mean) <= t->sigmas * slopes->deviation;
}

/* scratch: 2 * ncycles and nmembers * ncycles values. */
static void judge_slope(const crn_history *h, const crn_thresholds *t, uint32_t ncycles,
                        uint64_t seed, uint32_t *pick, double *scratch, crn_verdict *v)
{
    double *by_member = scratch + 2 * ncycles;
    uint32_t others = 0;
    for (uint32_t i = 0; i < h->nmembers; i++)
        for (uint32_t k = 0; k < ncycles; k++)
            by_member[(size_t)i * ncycles + k] = h->pair[(size_t)k * h->nmembers + i];
    v->slopes = crn_slopes_of(by_member, h->nmembers, ncycles);
    v->line = line_of(h, ncycles, NULL, scratch);
    v->value[CRN_CRITERION_SLOPE] = v->line.slope;
    if (isnan(v->slopes.mean)) /* nothing to compare with */
        return;
    const bool first = slope_holds(t, &v->slopes, v->line.slope);
    for (uint32_t k = 0; k < DRAWS; k++) {
        draw(seed, k, h->nmembers, pick);
        others += slope_holds(t, &v->slopes, line_of(h, ncycles, pick, scratch).slope) != first;
    }
    v->finding[CRN_CRITERION_SLOPE] = others * 40 > DRAWS ? CRN_FINDING_NOISE
                                      : first             ? CRN_FINDING_PASS
                                                          : CRN_FINDING_FAIL;
}

/* --- the verdict ---------------------------------------------------------------------------- */

static crn_finding worst(const crn_verdict *v)
{
    crn_finding all = CRN_FINDING_PASS;
    for (size_t c = 0; c < CRN_NCRITERIA; c++)
        if (v->finding[c] == CRN_FINDING_FAIL)
            return CRN_FINDING_FAIL;
        else if (v->finding[c] == CRN_FINDING_NOISE)
            all = CRN_FINDING_NOISE;
    return all;
}

cairn_status crn_judge(const crn_history *h, const crn_thresholds *t, uint64_t seed,
                       crn_verdict *ret)
{
    const uint32_t n = t->cycles > 0 && t->cycles < h->ncycles ? t->cycles : h->ncycles;
    crn_verdict v = {.line = {NAN, NAN, NAN}, .slopes = {NAN, NAN, 0}};
    crn_thresholds strict = *t;
    uint32_t *pick, ignored;
    double *scratch;
    strict.rho = t->strict;
    CRN_TRY(crn_alloc(&pick, h->nmembers));
    cairn_status rc = crn_alloc(&scratch, (size_t)n * (h->nmembers + 2));
    if (rc < 0) {
        free(pick);
        return rc;
    }
    for (crn_criterion c = 0; c < CRN_CRITERION_SLOPE; c++) {
        v.value[c] = n > 0 ? value_of(h, c, n - 1, NULL) : NAN;
        v.finding[c] = decide(h, t, c, n, seed, pick, &v.since[c]);
    }
    v.strict = decide(h, &strict, CRN_CRITERION_RHO, n, seed, pick, &ignored);
    if (h->noisy && h->pair)
        judge_slope(h, t, n, seed, pick, scratch, &v);
    else
        v.value[CRN_CRITERION_SLOPE] = NAN;
    v.all = worst(&v);
    free(pick);
    free(scratch);
    *ret = v;
    return CAIRN_OK;
}
