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

static double root(double value, double n1)
{
    return sqrt(n1 / (n1 + value));
}

/* (root - 1) / value, without the difference of nearly equal numbers. */
static double slope(double value, double n1)
{
    return -1 / ((n1 + value) * (1 + root(value, n1)));
}

static cairn_status weights(const crn_filter_case *c, double *w)
{
    return crn_filter_of_function(c, root, w);
}

const crn_filter_ops crn_filter_etkf = {
    .name = "etkf",
    .summary = "ensemble transform Kalman filter, symmetric square root",
    .slope = slope,
    .weights = weights,
};

const crn_filter_ops crn_filter_letkf = {
    .name = "letkf",
    .summary = "the same by local analyses: each element by the observations around it",
    .local = true,
    .slope = slope,
    .weights = weights,
};
