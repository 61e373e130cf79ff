/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Correlated errors: a block of observations is replaced by combinations of them whose errors are
 * independent, of variance 1. With R = L L^T these are L^-1 times value and members. What a filter
 * computes of anomalies and innovations over R is the same.
 */
#include "filter/filter_ops.h"

#include <math.h>

/* L in the lower triangle of the n by n matrix a; false: it is not positive definite. */
static bool factor(size_t n, double *a)
{
    for (size_t k = 0; k < n; k++)
        for (size_t i = k; i < n; i++) {
            double sum = a[i + k * n];
            for (size_t j = 0; j < k; j++)
                sum -= a[i + j * n] * a[k + j * n];
            if (i == k && !(sum > 0))
                return false;
            a[i + k * n] = i == k ? sqrt(sum) : sum / a[k + k * n];
        }
    return true;
}

/* v = L^-1 v */
static void solve(size_t n, const double *l, double *v)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            v[i] -= l[i + k * n] * v[k];
        v[i] /= l[i + i * n];
    }
}

cairn_status crn_filter_whiten(crn_filter_plain *p, size_t first, size_t n, double *covariance)
{
    CRN_FAIL_IF(!factor(n, covariance), CAIRN_EINVAL,
                "filter: the covariances of observations %zu to %zu are not positive definite",
                first, first + n - 1);
    for (size_t j = 0; j < p->nmembers; j++)
        solve(n, covariance, p->y + first + j * p->nobs);
    solve(n, covariance, p->value + first);
    for (size_t i = 0; i < n; i++)
        p->variance[first + i] = 1;
    return CAIRN_OK;
}

void crn_filter_plain_done(crn_filter_plain *p)
{
    free(p->y);
    free(p->value);
    free(p->variance);
}

static cairn_status copy(const crn_filter_case *c, crn_filter_plain *p)
{
    *p = (crn_filter_plain){.nobs = c->nobs, .nmembers = c->nmembers};
    CRN_TRY(crn_alloc(&p->y, c->nobs * c->nmembers));
    CRN_TRY(crn_alloc(&p->value, c->nobs));
    CRN_TRY(crn_alloc(&p->variance, c->nobs));
    memcpy(p->y, c->y, c->nobs * c->nmembers * sizeof *p->y);
    memcpy(p->value, c->value, c->nobs * sizeof *p->value);
    memcpy(p->variance, c->variance, c->nobs * sizeof *p->variance);
    return CAIRN_OK;
}

cairn_status crn_filter_plain_init(crn_filter_case *c, crn_filter_plain *p)
{
    cairn_status rc = copy(c, p);
    for (size_t k = 0; rc == CAIRN_OK && k < c->nblocks; k++) {
        const crn_filter_block *b = &c->block[k];
        double *l;
        rc = crn_alloc(&l, b->n * b->n);
        if (rc < 0)
            break;
        memcpy(l, b->covariance, b->n * b->n * sizeof *l);
        rc = crn_filter_whiten(p, b->first, b->n, l);
        free(l);
    }
    c->y = p->y;
    c->value = p->value;
    c->variance = p->variance;
    c->nblocks = 0;
    return rc;
}
