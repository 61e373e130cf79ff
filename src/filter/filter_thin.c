/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The analysis in the space of the observations, where they are fewer than the members, as they are
 * around most points of a local analysis. With S S^T = U L U^T (p by p instead of N by N) the
 * weights of the anomalies are I + S^T U slope(L) U^T S and those of the mean
 * S^T U (L + (N - 1) I)^-1 U^T d. They are never formed: a row x becomes x + ((S x)^T U slope U^T)
 * S.
 */
#include "filter/filter_ops.h"

#include <math.h>

void crn_thin_done(crn_thin *t)
{
    free(t->s);
    *t = (crn_thin){0};
}

static cairn_status make_room(crn_thin *t, size_t p, size_t n)
{
    if (p <= t->cap && n == t->n)
        return CAIRN_OK;
    const size_t cap = CRN_MAX(p, 2 * t->cap);
    crn_thin_done(t);
    CRN_TRY(crn_alloc(&t->s, cap * (n + cap + 5)));
    t->cap = cap;
    t->n = n;
    t->u = t->s + cap * n;
    t->value = t->u + cap * cap;
    t->mean = t->value + cap;
    t->slope = t->mean + cap;
    t->z = t->slope + cap;
    t->t = t->z + cap;
    return CAIRN_OK;
}

/* r = U^T v */
static void turn(const crn_thin *t, const double *v, double *r)
{
    for (size_t k = 0; k < t->p; k++) {
        double sum = 0;
        for (size_t i = 0; i < t->p; i++)
            sum += t->u[i + k * t->p] * v[i];
        r[k] = sum;
    }
}

cairn_status crn_thin_set(crn_thin *t, const crn_filter_ops *filter, const crn_filter_case *c)
{
    const double n1 = (double)(c->nmembers - 1);
    CRN_TRY(make_room(t, c->nobs, c->nmembers));
    t->p = c->nobs;
    if (t->p == 0)
        return CAIRN_OK;
    crn_filter_scale(c, t->s, t->z);
    CRN_TRY(crn_filter_product(t->p, t->p, t->n, 1, t->s, t->s, true, t->u));
    CRN_TRY(crn_filter_eigen(t->p, t->u, t->value));
    turn(t, t->z, t->mean);
    for (size_t k = 0; k < t->p; k++) {
        double value = fmax(t->value[k], 0); /* rounding */
        t->mean[k] *= crn_filter_inverse(value, n1);
        t->slope[k] = filter->slope(value, n1);
    }
    return CAIRN_OK;
}

double crn_thin_apply(crn_thin *t, double *row)
{
    double moves = 0;
    memset(t->z, 0, t->p * sizeof *t->z);
    for (size_t j = 0; j < t->n; j++) /* by columns of S, which lie together */
        for (size_t i = 0; i < t->p; i++)
            t->z[i] += t->s[i + j * t->p] * row[j];
    turn(t, t->z, t->t);
    for (size_t k = 0; k < t->p; k++) {
        moves += t->t[k] * t->mean[k];
        t->t[k] *= t->slope[k];
    }
    memset(t->z, 0, t->p * sizeof *t->z);
    for (size_t k = 0; k < t->p; k++)
        for (size_t i = 0; i < t->p; i++)
            t->z[i] += t->u[i + k * t->p] * t->t[k];
    for (size_t j = 0; j < t->n; j++) {
        double sum = 0;
        for (size_t i = 0; i < t->p; i++)
            sum += t->s[i + j * t->p] * t->z[i];
        row[j] += sum;
    }
    return moves;
}
