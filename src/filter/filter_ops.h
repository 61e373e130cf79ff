/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a filter must do, and what filter_core.c and filter_algebra.c do once for all of them:
 * arguments are checked, inflation and rotation are applied, sums have a fixed order.
 */
#ifndef CAIRN_FILTER_OPS_H
#define CAIRN_FILTER_OPS_H

#include "filter/filter.h"

struct crn_filter_ops {
    const char *name;    /* as in a configuration */
    const char *summary; /* a phrase */
    bool free;           /* the ensemble runs free: neither inflated nor rotated */

    /*
     * Weights as crn_filter_weights describes them, before inflation and rotation. The case was
     * checked; nobs may be 0. The mean of the columns moves the mean: column k minus that mean
     * makes anomaly k.
     */
    cairn_status (*weights)(const crn_filter_case *c, double *w);
};

/* --- algebra: matrices are column by column ------------------------------------------------- */

/*
 * The observations' part of all square-root filters: with S the anomalies of y and d the innovation
 * (value minus mean of y), both divided by the error's standard deviation, gram = S^T S, nmembers
 * by nmembers, and right = S^T d. Summed over blocks of observations by their index.
 */
cairn_status crn_filter_gram(const crn_filter_case *c, double *gram, double *right);

/* Eigenvalues, ascending, and eigenvectors, in place of the symmetric n by n matrix a: of each the
 * component of largest magnitude (the first of equals) is positive. */
cairn_status crn_filter_eigen(size_t n, double *a, double *values);

/* c = alpha a b, of n by k and k by m; b is m by k if it is to be transposed. */
cairn_status crn_filter_product(size_t n, size_t m, size_t k, double alpha, const double *a,
                                const double *b, bool transposed, double *c);

/* A random orthogonal n by n matrix whose rows sum to 1, of Haar's measure among these. */
cairn_status crn_filter_rotation(const crn_rng_key *key, size_t n, double *q);

extern const crn_filter_ops crn_filter_none, crn_filter_etkf;

#endif
