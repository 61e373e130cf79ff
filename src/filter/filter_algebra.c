/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The spectrum of the anomalies in the space of the observations, of which the weights of all
 * filters of the Kalman family are functions.
 */
#include "filter/filter_ops.h"

#include <math.h>

cairn_status crn_filter_spectrum_init(const crn_filter_case *c, crn_filter_spectrum *s)
{
    const size_t n = c->nmembers;
    *s = (crn_filter_spectrum){.n = n};
    CRN_TRY(crn_alloc(&s->v, 2 * n * n + 2 * n));
    s->scaled = s->v + n * n;
    s->values = s->scaled + n * n;
    s->right = s->values + n;
    CRN_TRY(crn_filter_gram(c, s->v, s->right));
    CRN_TRY(crn_filter_eigen(n, s->v, s->values));
    for (size_t k = 0; k < n; k++) /* rounding leaves values of rank-deficient matrices below 0 */
        s->values[k] = fmax(s->values[k], 0);
    return CAIRN_OK;
}

void crn_filter_spectrum_done(crn_filter_spectrum *s)
{
    free(s->v);
}

cairn_status crn_filter_function(crn_filter_spectrum *s, double (*f)(double value, double n1),
                                 double *w)
{
    const size_t n = s->n;
    for (size_t k = 0; k < n; k++) {
        double factor = f(s->values[k], (double)(n - 1));
        for (size_t i = 0; i < n; i++)
            s->scaled[i + k * n] = s->v[i + k * n] * factor;
    }
    return crn_filter_product(n, n, n, 1, s->scaled, s->v, true, w);
}

double crn_filter_inverse(double value, double n1)
{
    return 1 / (n1 + value);
}

cairn_status crn_filter_add_mean(crn_filter_spectrum *s, double *work, double *w)
{
    const size_t n = s->n;
    double *const mean = s->scaled; /* free after the product that makes work */
    CRN_TRY(crn_filter_function(s, crn_filter_inverse, work));
    CRN_TRY(crn_filter_product(n, 1, n, 1, work, s->right, false, mean));
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < n; i++)
            w[i + k * n] += mean[i];
    return CAIRN_OK;
}

/* The filters that move the mean as the Kalman filter does and make the anomalies by a function of
 * the spectrum. */
cairn_status crn_filter_of_function(const crn_filter_case *c, double (*f)(double value, double n1),
                                    double *w)
{
    crn_filter_spectrum s = {0};
    double *work = NULL;
    cairn_status rc;
    CRN_TRY_OUT(rc, crn_filter_spectrum_init(c, &s));
    CRN_TRY_OUT(rc, crn_alloc(&work, s.n * s.n));
    CRN_TRY_OUT(rc, crn_filter_function(&s, f, w));
    CRN_TRY_OUT(rc, crn_filter_add_mean(&s, work, w));
out:
    crn_filter_spectrum_done(&s);
    free(work);
    return rc;
}
