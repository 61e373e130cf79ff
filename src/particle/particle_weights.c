/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Weights from log-likelihoods, and the four resampling schemes. Weights become integers once, and
 * all schemes count with these: a sum of doubles would decide differently where a weight lies on
 * the edge between two counts, and systematic counts could miss floor and ceil.
 */
#include <math.h>
#include <string.h>

#include "particle/particle.h"

typedef unsigned __int128 wide;

enum { WEIGHT_BITS = 53 };

cairn_status crn_weights(const double *logw, size_t n, double *w, crn_weight_sum *ret)
{
    double max = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        CRN_FAIL_IF(isnan(logw[i]) || logw[i] == INFINITY, CAIRN_EINVAL,
                    "member %zu: its log-weight is %s", i, isnan(logw[i]) ? "NaN" : "infinite");
        max = CRN_MAX(max, logw[i]);
    }
    CRN_FAIL_IF(max == -INFINITY, CAIRN_EINVAL,
                "all %zu weights are zero: the observations exclude every member", n);
    double sum = 0, squares = 0;
    crn_weight_sum s = {0};
    for (size_t i = 0; i < n; i++) {
        w[i] = exp(logw[i] - max);
        sum += w[i];
        s.nzero += w[i] == 0;
    }
    for (size_t i = 0; i < n; i++) {
        w[i] /= sum;
        squares += w[i] * w[i];
    }
    s.log_mean = max + log(sum / (double)n);
    s.ess = CRN_MIN(1 / squares, (double)n); /* rounding may lift equal weights above n */
    *ret = s;
    return CAIRN_OK;
}

static const char *const scheme_names[] = {"systematic", "multinomial", "stratified", "residual"};

cairn_status crn_resampling_of(const char *name, crn_resampling *ret)
{
    for (size_t i = 0; i < sizeof scheme_names / sizeof *scheme_names; i++)
        if (!strcmp(name, scheme_names[i])) {
            *ret = (crn_resampling)i;
            return CAIRN_OK;
        }
    return crn_fail(CAIRN_EINVAL,
                    "resampling is '%s': systematic, multinomial, stratified or residual", name);
}

const char *crn_resampling_name(crn_resampling scheme)
{
    return scheme_names[scheme];
}

/* Cumulative integer weights: sum[i] of the members before i; sum[n] is the total. */
static cairn_status cumulate(const double *w, size_t n, uint64_t *sum)
{
    double max = 0;
    for (size_t i = 0; i < n; i++) {
        CRN_FAIL_IF(!isfinite(w[i]) || w[i] < 0, CAIRN_EINVAL, "weight %zu is %g", i, w[i]);
        max = CRN_MAX(max, w[i]);
    }
    CRN_FAIL_IF(max == 0, CAIRN_EINVAL, "all %zu weights are zero", n);
    int exponent = 0, room = 0;
    frexp(max, &exponent);
    while ((n >> room) > 1)
        room++;
    int shift = CRN_MIN(WEIGHT_BITS, 62 - room); /* n weights of 2^shift stay below 2^63 */
    sum[0] = 0;
    for (size_t i = 0; i < n; i++)
        sum[i + 1] = sum[i] + (uint64_t)llrint(ldexp(w[i], shift - exponent));
    return CAIRN_OK;
}

/* The member whose stretch of the cumulative weights contains x < sum[n]. */
static size_t member_at(const uint64_t *sum, size_t n, uint64_t x)
{
    size_t lo = 0, hi = n;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (sum[mid] <= x)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* Points (k total + u) / m for k = 0 .. m - 1; count those in each member's stretch. */
static void count_systematic(const uint64_t *sum, size_t n, size_t m, uint64_t u, uint32_t *count)
{
    uint64_t total = sum[n], before = 0;
    for (size_t i = 0; i < n; i++) {
        wide end = (wide)sum[i + 1] * m;
        uint64_t below = end > u ? (uint64_t)((end - u + total - 1) / total) : 0;
        count[i] = (uint32_t)(below - before);
        before = below;
    }
}

static void count_stratified(const uint64_t *sum, size_t n, size_t m, crn_rng *rng, uint32_t *count)
{
    uint64_t total = sum[n];
    size_t i = 0;
    for (size_t k = 0; k < m; k++) {
        wide point = (wide)k * total + crn_rng_below(rng, total);
        while ((wide)sum[i + 1] * m <= point)
            i++;
        count[i]++;
    }
}

static void count_multinomial(const uint64_t *sum, size_t n, size_t m, crn_rng *rng,
                              uint32_t *count)
{
    for (size_t k = 0; k < m; k++)
        count[member_at(sum, n, crn_rng_below(rng, sum[n]))]++;
}

/* Floor of m w for certain. What is left of m w, in units of 1 / total, is each below the total:
 * its sum is the number of children that are left times the total. */
static cairn_status count_residual(const uint64_t *sum, size_t n, size_t m, crn_rng *rng,
                                   uint32_t *count)
{
    uint64_t total = sum[n], left = m;
    double *rest;
    CRN_TRY(crn_alloc(&rest, n));
    for (size_t i = 0; i < n; i++) {
        wide share = (wide)(sum[i + 1] - sum[i]) * m;
        count[i] = (uint32_t)(share / total);
        rest[i] = (double)(uint64_t)(share % total);
        left -= count[i];
    }
    cairn_status rc = CAIRN_OK;
    uint64_t *again = NULL;
    if (left > 0) {
        CRN_TRY_OUT(rc, crn_alloc(&again, n + 1));
        CRN_TRY_OUT(rc, cumulate(rest, n, again));
        count_multinomial(again, n, left, rng, count);
    }
out:
    free(again);
    free(rest);
    return rc;
}

cairn_status crn_resample(crn_resampling scheme, const double *w, size_t n, size_t m, crn_rng *rng,
                          uint32_t *count)
{
    const size_t most = (size_t)1 << 31;
    CRN_FAIL_IF(n == 0 || m == 0 || n > most || m > most, CAIRN_EINVAL,
                "cannot draw %zu children of %zu members", m, n);
    uint64_t *sum;
    CRN_TRY(crn_alloc(&sum, n + 1));
    cairn_status rc;
    CRN_TRY_OUT(rc, cumulate(w, n, sum));
    memset(count, 0, n * sizeof *count);
    switch (scheme) {
    case CRN_RESAMPLE_SYSTEMATIC:
        count_systematic(sum, n, m, crn_rng_below(rng, sum[n]), count);
        break;
    case CRN_RESAMPLE_MULTINOMIAL:
        count_multinomial(sum, n, m, rng, count);
        break;
    case CRN_RESAMPLE_STRATIFIED:
        count_stratified(sum, n, m, rng, count);
        break;
    case CRN_RESAMPLE_RESIDUAL:
        rc = count_residual(sum, n, m, rng, count);
        break;
    }
out:
    free(sum);
    return rc;
}

double crn_resample_certain(const double *logw, size_t n, size_t m, double log_max)
{
    double sum = 0, max = -INFINITY;
    for (size_t i = 0; i < n; i++)
        max = CRN_MAX(max, isnan(logw[i]) ? log_max : logw[i]);
    for (size_t i = 0; i < n; i++)
        sum += exp((isnan(logw[i]) ? log_max : logw[i]) - max);
    /* A member with m w >= 1 gets a child at any offset. The margin is far above the rounding of
     * sums and of integer weights. */
    return max + log(sum / (double)m) + 1e-9;
}
