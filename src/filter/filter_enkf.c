/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ensemble Kalman filter with perturbed observations (Burgers, van Leeuwen and Evensen 1998):
 * each member is updated with an observation of its own, perturbed by the error that it claims. The
 * perturbations are keyed by member and observation, and their mean over the members is taken off.
 * With S and d as crn_filter_gram has them and E the perturbations over their standard deviation,
 *
 *     weights  I + (S^T S + (N - 1) I)^-1 S^T (d 1^T - S + E)
 */
#include "filter/filter_ops.h"

static cairn_status combine(const crn_filter_case *c, crn_filter_spectrum *s, double *inverse,
                            double *sum, double *w)
{
    const size_t n = s->n;
    CRN_TRY(crn_filter_perturb(c, sum));
    CRN_TRY(crn_filter_function(s, crn_filter_inverse, inverse));
    CRN_TRY(crn_filter_gram(c, w, s->right)); /* the spectrum took its place */
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < n; i++)
            sum[i + k * n] += s->right[i] - w[i + k * n];
    CRN_TRY(crn_filter_product(n, n, n, 1, inverse, sum, false, w));
    for (size_t k = 0; k < n; k++)
        w[k + k * n] += 1;
    return CAIRN_OK;
}

static cairn_status weights(const crn_filter_case *c, double *w)
{
    const size_t n = c->nmembers;
    crn_filter_spectrum s = {0};
    double *work = NULL;
    cairn_status rc;
    CRN_TRY_OUT(rc, crn_filter_spectrum_init(c, &s));
    CRN_TRY_OUT(rc, crn_alloc(&work, 2 * n * n));
    CRN_TRY_OUT(rc, combine(c, &s, work, work + n * n, w));
out:
    crn_filter_spectrum_done(&s);
    free(work);
    return rc;
}

const crn_filter_ops crn_filter_enkf = {
    .name = "enkf",
    .summary = "ensemble Kalman filter with perturbed observations",
    .weights = weights,
};
