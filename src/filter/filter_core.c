/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What all filters share: a case is checked, the filter's weights are inflated and rotated, and
 * rows of the state are updated with them.
 */
#include "filter/filter_ops.h"

#include <math.h>

static cairn_status check_values(const char *what, const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        CRN_FAIL_IF(!isfinite(v[i]), CAIRN_EINVAL, "filter: %s %zu is not finite", what, i);
    return CAIRN_OK;
}

cairn_status crn_filter_check(const crn_filter_case *c)
{
    CRN_FAIL_IF(c->nmembers < 2 || c->nmembers > CRN_FILTER_MEMBERS, CAIRN_EINVAL,
                "filter: %zu members: 2 to %d make an ensemble", c->nmembers, CRN_FILTER_MEMBERS);
    CRN_FAIL_IF(!isfinite(c->inflation) || c->inflation <= 0, CAIRN_EINVAL,
                "filter: inflation %g is not above 0", c->inflation);
    CRN_FAIL_IF(!(c->rtpp >= 0 && c->rtpp <= 1), CAIRN_EINVAL,
                "filter: relaxation to prior perturbations by %g is not from 0 to 1", c->rtpp);
    CRN_FAIL_IF(!(c->prior >= 0 && isfinite(c->prior)), CAIRN_EINVAL,
                "filter: inflation of the background by %g is not above 0", c->prior);
    CRN_TRY(check_values("observed value", c->value, c->nobs));
    CRN_TRY(check_values("variance", c->variance, c->nobs));
    CRN_TRY(check_values("value in observation space", c->y, c->nobs * c->nmembers));
    for (size_t i = 0; i < c->nobs; i++)
        CRN_FAIL_IF(c->variance[i] <= 0, CAIRN_EINVAL,
                    "filter: the variance of observation %zu is %g; it must be above 0", i,
                    c->variance[i]);
    for (size_t k = 0, end = 0; k < c->nblocks; k++) {
        CRN_FAIL_IF(c->block[k].first < end || c->block[k].first > c->nobs ||
                        c->block[k].n > c->nobs - c->block[k].first,
                    CAIRN_EINVAL, "filter: block %zu overlaps another, or ends behind the last", k);
        end = c->block[k].first + c->block[k].n;
    }
    return CAIRN_OK;
}

double crn_filter_prior(const crn_filter_case *c)
{
    return c->prior > 0 ? c->prior : 1;
}

/* Take the mean of the columns off w. */
static void part_mean(size_t n, double *w, double *mean)
{
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t k = 0; k < n; k++)
            sum += w[i + k * n];
        mean[i] = sum / (double)n;
        for (size_t k = 0; k < n; k++)
            w[i + k * n] -= mean[i];
    }
}

cairn_status crn_filter_rotation_of(const crn_filter_case *c, double *q)
{
    const crn_rng_key key = {.study = c->study, .purpose = CRN_FOR_ROTATION, .cycle = c->cycle};
    return crn_filter_rotation(&key, c->nmembers, q);
}

/* w = mean + inflation (w - mean) Q: after the analysis, as Sakov and Oke 2008 rotate. Relaxation
 * (Zhang, Snyder and Sun 2004) comes before, since it mixes each member with its own past. */
static cairn_status finish(const crn_filter_case *c, const double *q, double *w, double *work)
{
    const size_t n = c->nmembers;
    double *mean = work, *rotated = work + n;
    const double kept = (1 - c->rtpp) * crn_filter_prior(c);
    part_mean(n, w, mean);
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < n; i++)
            w[i + k * n] = kept * w[i + k * n] + (i == k ? c->rtpp : 0);
    if (q) {
        CRN_TRY(crn_filter_product(n, n, n, 1, w, q, false, rotated));
        memcpy(w, rotated, n * n * sizeof *w);
    }
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < n; i++)
            w[i + k * n] = crn_filter_prior(c) * mean[i] + c->inflation * w[i + k * n];
    return CAIRN_OK;
}

cairn_status crn_filter_weights_rotated(const crn_filter_ops *filter, const crn_filter_case *c,
                                        const double *q, double *w)
{
    double *work;
    CRN_TRY(filter->foreign ? crn_filter_foreign_weights(filter->foreign, c, w)
                            : filter->weights(c, w));
    if (filter->free || (c->inflation == 1 && c->rtpp == 0 && crn_filter_prior(c) == 1 && !q))
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&work, c->nmembers * (c->nmembers + 1)));
    cairn_status rc = finish(c, q, w, work);
    free(work);
    return rc;
}

cairn_status crn_filter_weights(const crn_filter_ops *filter, const crn_filter_case *c, double *w)
{
    crn_filter_case plain = *c;
    crn_filter_plain data = {0};
    double *q = NULL;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_filter_check(c));
    if (c->nblocks > 0)
        CRN_TRY_OUT(rc, crn_filter_plain_init(&plain, &data));
    if (c->rotate && !filter->free) {
        CRN_TRY_OUT(rc, crn_alloc(&q, c->nmembers * c->nmembers));
        CRN_TRY_OUT(rc, crn_filter_rotation_of(c, q));
    }
    CRN_TRY_OUT(rc, crn_filter_weights_rotated(filter, &plain, q, w));
out:
    crn_filter_plain_done(&data);
    free(q);
    return rc;
}

/* One block of n rows, from row on in each member's memory. */
static cairn_status update_block(const double *w, size_t nmembers, size_t row, size_t n,
                                 double *const *member, double *work)
{
    double *anomaly = work, *out = work + n * nmembers, *mean = out + n * nmembers;
    memset(mean, 0, n * sizeof *mean);
    for (size_t j = 0; j < nmembers; j++)
        for (size_t i = 0; i < n; i++)
            mean[i] += member[j][row + i];
    for (size_t i = 0; i < n; i++)
        mean[i] /= (double)nmembers;
    for (size_t j = 0; j < nmembers; j++)
        for (size_t i = 0; i < n; i++)
            anomaly[i + j * n] = member[j][row + i] - mean[i];
    CRN_TRY(crn_filter_product(n, nmembers, nmembers, 1, anomaly, w, false, out));
    for (size_t j = 0; j < nmembers; j++)
        for (size_t i = 0; i < n; i++)
            member[j][row + i] = mean[i] + out[i + j * n];
    return CAIRN_OK;
}

cairn_status crn_filter_update(const double *w, size_t nmembers, size_t n, double *const *member)
{
    double *work;
    cairn_status rc = CAIRN_OK;
    const size_t most = CRN_MIN(n, (size_t)CRN_FILTER_ROWS);
    CRN_TRY(crn_alloc(&work, most * (2 * nmembers + 1)));
    for (size_t row = 0; rc == CAIRN_OK && row < n; row += CRN_FILTER_ROWS)
        rc =
            update_block(w, nmembers, row, CRN_MIN((size_t)CRN_FILTER_ROWS, n - row), member, work);
    free(work);
    return rc;
}

/* Mean of row i over the members, and its standard deviation. */
static double row_spread(size_t nmembers, double *const *member, size_t i, double *ret_mean)
{
    double mean = 0, square = 0;
    for (size_t j = 0; j < nmembers; j++)
        mean += member[j][i];
    mean /= (double)nmembers;
    for (size_t j = 0; j < nmembers; j++)
        square += (member[j][i] - mean) * (member[j][i] - mean);
    *ret_mean = mean;
    return sqrt(square / (double)(nmembers - 1));
}

void crn_filter_spread(size_t nmembers, size_t n, double *const *member, double *spread)
{
    double mean;
    for (size_t i = 0; i < n; i++)
        spread[i] = row_spread(nmembers, member, i, &mean);
}

void crn_filter_relax_spread(double factor, size_t nmembers, size_t n, const double *background,
                             double *const *member)
{
    for (size_t i = 0; i < n; i++) {
        double mean, spread = row_spread(nmembers, member, i, &mean);
        double scale = spread > 0 ? 1 + factor * (background[i] - spread) / spread : 1;
        for (size_t j = 0; j < nmembers; j++)
            member[j][i] = mean + scale * (member[j][i] - mean);
    }
}
