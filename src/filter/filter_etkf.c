/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ensemble transform Kalman filter, with the symmetric square root (Hunt, Kostelich and
 * Szunyogh 2007, sections 2.3 and 2.4): with S and d as crn_filter_gram has them and
 * S^T S = V L V^T,
 *
 *     weights of the mean       V (L + (N - 1) I)^-1 V^T S^T d
 *     weights of the anomalies  V ((N - 1) (L + (N - 1) I)^-1)^1/2 V^T
 *
 * The symmetric root keeps the mean: the vector of ones is an eigenvector of S^T S, with value 0.
 */
#include "filter/filter_ops.h"

#include <math.h>

/* w = V diag(f) V^T; scaled is for V diag(f). */
static cairn_status of_eigen(size_t n, const double *v, const double *f, double *scaled, double *w)
{
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < n; i++)
            scaled[i + k * n] = v[i + k * n] * f[k];
    return crn_filter_product(n, n, n, 1, scaled, v, true, w);
}

static void add_mean(size_t n, const double *mean, double *w)
{
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < n; i++)
            w[i + k * n] += mean[i];
}

static cairn_status transform(const crn_filter_case *c, double *v, double *values, double *right,
                              double *scaled, double *w)
{
    const size_t n = c->nmembers;
    double *const f = values, *const mean = right + n;
    CRN_TRY(crn_filter_gram(c, v, right));
    CRN_TRY(crn_filter_eigen(n, v, values));
    for (size_t k = 0; k < n; k++) /* rounding leaves values of rank-deficient matrices below 0 */
        f[k] = 1 / ((double)(n - 1) + fmax(values[k], 0));
    CRN_TRY(of_eigen(n, v, f, scaled, w));
    CRN_TRY(crn_filter_product(n, 1, n, 1, w, right, false, mean));
    for (size_t k = 0; k < n; k++)
        f[k] = sqrt((double)(n - 1) * f[k]);
    CRN_TRY(of_eigen(n, v, f, scaled, w));
    add_mean(n, mean, w);
    return CAIRN_OK;
}

static cairn_status weights(const crn_filter_case *c, double *w)
{
    const size_t n = c->nmembers;
    double *work;
    CRN_TRY(crn_alloc(&work, 2 * n * n + 3 * n));
    cairn_status rc = transform(c, work, work + 2 * n * n, work + 2 * n * n + n, work + n * n, w);
    free(work);
    return rc;
}

const crn_filter_ops crn_filter_etkf = {
    .name = "etkf",
    .summary = "ensemble transform Kalman filter, symmetric square root",
    .weights = weights,
};
