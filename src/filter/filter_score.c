/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How well an ensemble and its observations, or a truth, agree.
 */
#include "filter/filter_ops.h"

#include <math.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double crn_filter_crps(double *x, size_t n, double truth)
{
    double error = 0, apart = 0;
    qsort(x, n, sizeof *x, ascending);
    for (size_t i = 0; i < n; i++) {
        error += fabs(x[i] - truth);
        apart += x[i] * (2 * (double)i - (double)(n - 1)); /* sum over k < i of x_i - x_k */
    }
    return error / (double)n - apart / (double)n / (double)n;
}

/* d^T R^-1 d of independent observations. */
static double square_of(const crn_filter_case *c)
{
    double sum = 0;
    for (size_t i = 0; i < c->nobs; i++) {
        double mean = 0;
        for (size_t j = 0; j < c->nmembers; j++)
            mean += c->y[i + j * c->nobs];
        mean = c->value[i] - mean / (double)c->nmembers;
        sum += mean * mean / c->variance[i];
    }
    return sum;
}

/* With S^T S = V L V^T: HPH^T + R is R^1/2 (S S^T / (N - 1) + I) R^1/2, which Woodbury's formula
 * inverts with N by N matrices. */
static cairn_status fit(const crn_filter_case *c, crn_filter_fit *ret)
{
    crn_filter_spectrum s = {0};
    const double n1 = (double)(c->nmembers - 1);
    double sum = 0, squares = 0;
    cairn_status rc;
    CRN_TRY_OUT(rc, crn_filter_spectrum_init(c, &s));
    ret->square = ret->chi2 = square_of(c);
    for (size_t k = 0; k < s.n; k++) {
        double turned = 0;
        for (size_t i = 0; i < s.n; i++)
            turned += s.v[i + k * s.n] * s.right[i];
        ret->chi2 -= turned * turned / (s.values[k] + n1);
        sum += s.values[k];
        squares += s.values[k] * s.values[k];
    }
    ret->trace = sum / n1;
    ret->rank = squares > 0 ? sum * sum / squares : 0;
out:
    crn_filter_spectrum_done(&s);
    return rc;
}

cairn_status crn_filter_fit_of(const crn_filter_case *c, crn_filter_fit *ret)
{
    crn_filter_case plain = *c;
    crn_filter_plain data = {0};
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_filter_check(c));
    if (c->nblocks > 0)
        CRN_TRY_OUT(rc, crn_filter_plain_init(&plain, &data));
    CRN_TRY_OUT(rc, fit(&plain, ret));
out:
    crn_filter_plain_done(&data);
    return rc;
}
