/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The deterministic ensemble Kalman filter (Sakov and Oke 2008): the mean as the Kalman filter has
 * it, the anomalies with half of its gain, which needs no root and no perturbed observations. In
 * the terms of crn_filter_gram, with S^T S = V L V^T:
 *
 *     weights of the anomalies  I - 1/2 V L (L + (N - 1) I)^-1 V^T
 */
#include "filter/filter_ops.h"

static double half_gain(double value, double n1)
{
    return 1 - 0.5 * value / (n1 + value);
}

static double slope(double value, double n1)
{
    return -0.5 / (n1 + value);
}

static cairn_status weights(const crn_filter_case *c, double *w)
{
    return crn_filter_of_function(c, half_gain, w);
}

const crn_filter_ops crn_filter_denkf = {
    .name = "denkf",
    .summary = "deterministic ensemble Kalman filter: half the gain for the anomalies",
    .slope = slope,
    .weights = weights,
};
