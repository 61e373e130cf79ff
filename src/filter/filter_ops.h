/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a filter must do, and what filter_core.c and filter_algebra.c do once for all of them:
 * arguments are checked, inflation and rotation are applied, sums have a fixed order.
 */
#ifndef CAIRN_FILTER_OPS_H
#define CAIRN_FILTER_OPS_H

#include "filter/filter.h"

/* A filter of a shared object. */
typedef struct crn_filter_foreign crn_filter_foreign;

struct crn_filter_ops {
    const char *name;    /* as in a configuration */
    const char *summary; /* a phrase */
    bool free;           /* the ensemble runs free: neither inflated nor rotated */
    bool local;          /* studies make local analyses of it */

    /*
     * Where the weights of the anomalies are V f(L) V^T of the spectrum S^T S = V L V^T, and those
     * of the mean the Kalman filter's: (f(value) - 1) / value, also for value 0. With it, a case of
     * fewer observations than members is solved in the space of the observations. NULL: by weights
     * alone.
     */
    double (*slope)(double value, double n1);

    /*
     * Weights as crn_filter_weights describes them, before inflation and rotation. The case was
     * checked; nobs may be 0. The mean of the columns moves the mean: column k minus that mean
     * makes anomaly k.
     */
    cairn_status (*weights)(const crn_filter_case *c, double *w);

    const crn_filter_foreign *foreign; /* instead of the two functions; NULL: one of ours */
};

/* The weights by a filter of a shared object. CAIRN_EINVAL: it gives some that are not finite. */
cairn_status crn_filter_foreign_weights(const crn_filter_foreign *f, const crn_filter_case *c,
                                        double *w);

/* A case's data, to be changed; and such a copy with its blocks made independent, in the case, too.
 */
typedef struct crn_filter_plain {
    size_t nobs, nmembers;
    double *y, *value, *variance;
} crn_filter_plain;

cairn_status crn_filter_plain_init(crn_filter_case *c, crn_filter_plain *p);
void crn_filter_plain_done(crn_filter_plain *p);

/* Make the errors of one block independent; its covariances are overwritten. CAIRN_EINVAL. */
cairn_status crn_filter_whiten(crn_filter_plain *p, size_t first, size_t n, double *covariance);

/* What makes no sense is refused, by crn_filter_weights and crn_filter_update_local. */
cairn_status crn_filter_check(const crn_filter_case *c);

double crn_filter_prior(const crn_filter_case *c); /* 1 where none is given */

/* Weights of a case that was checked, rotated by q if it is not NULL; and that q. */
cairn_status crn_filter_weights_rotated(const crn_filter_ops *filter, const crn_filter_case *c,
                                        const double *q, double *w);
cairn_status crn_filter_rotation_of(const crn_filter_case *c, double *q);

/* --- algebra: matrices are column by column ------------------------------------------------- */

/*
 * The observations' part of all square-root filters: with S the anomalies of y and d the innovation
 * (value minus mean of y), both divided by the error's standard deviation, gram = S^T S, nmembers
 * by nmembers, and right = S^T d. Summed over blocks of observations by their index.
 */
cairn_status crn_filter_gram(const crn_filter_case *c, double *gram, double *right);

/* S (nobs by nmembers) and d (nobs) of the case themselves. */
void crn_filter_scale(const crn_filter_case *c, double *s, double *d);

/* Eigenvalues, ascending, and eigenvectors, in place of the symmetric n by n matrix a: of each the
 * component of largest magnitude (the first of equals) is positive. */
cairn_status crn_filter_eigen(size_t n, double *a, double *values);

/* c = alpha a b, of n by k and k by m; b is m by k if it is to be transposed. */
cairn_status crn_filter_product(size_t n, size_t m, size_t k, double alpha, const double *a,
                                const double *b, bool transposed, double *c);

/* A random orthogonal n by n matrix whose rows sum to 1, of Haar's measure among these. */
cairn_status crn_filter_rotation(const crn_rng_key *key, size_t n, double *q);

/* perturbed = S^T E, nmembers by nmembers: E has a normal number of variance 1 for each observation
 * and member, keyed by both, less the mean over the members. */
cairn_status crn_filter_perturb(const crn_filter_case *c, double *perturbed);

/* S^T S = V L V^T of a case, and S^T d. */
typedef struct crn_filter_spectrum {
    size_t n;       /* members */
    double *v;      /* n by n */
    double *values; /* L: n, ascending, none below 0 */
    double *right;  /* S^T d: n */
    double *scaled; /* n by n, for crn_filter_function */
} crn_filter_spectrum;

cairn_status crn_filter_spectrum_init(const crn_filter_case *c, crn_filter_spectrum *s);
void crn_filter_spectrum_done(crn_filter_spectrum *s);

/* w = V f(L) V^T, n by n; n1 is n - 1. The inverse is that of the Kalman gain. */
cairn_status crn_filter_function(crn_filter_spectrum *s, double (*f)(double value, double n1),
                                 double *w);
double crn_filter_inverse(double value, double n1);

/* Add the weights of the Kalman filter's mean to every column of w; work is n by n. */
cairn_status crn_filter_add_mean(crn_filter_spectrum *s, double *work, double *w);

/* All of a filter whose anomalies have the weights V f(L) V^T. */
cairn_status crn_filter_of_function(const crn_filter_case *c, double (*f)(double value, double n1),
                                    double *w);

/* R of the QR factorisation of the n by m matrix a, n >= m, in the first m rows of a; zeros below
 * its diagonal, which is positive. */
cairn_status crn_filter_triangle(size_t n, size_t m, double *a);

/*
 * Rows updated without weights, in the space of the observations: S S^T = U L U^T. For filters with
 * a slope, and cases of few observations.
 */
typedef struct crn_thin {
    size_t p, n;                          /* observations and members */
    size_t cap;                           /* observations that there is room for */
    double *s;                            /* S: p by n */
    double *u;                            /* U: p by p */
    double *value, *mean, *slope, *z, *t; /* p each: L; U^T d over n - 1 + L; of L; for a row */
} crn_thin;

/* Of a checked case of fewer observations than members; used again for the next one. */
cairn_status crn_thin_set(crn_thin *t, const crn_filter_ops *filter, const crn_filter_case *c);
void crn_thin_done(crn_thin *t);

/* The analysis's anomalies of one row from the background's, before all that a case adds, in place;
 * returns what the mean moves by. */
double crn_thin_apply(crn_thin *t, double *row);

extern const crn_filter_ops crn_filter_none, crn_filter_etkf, crn_filter_enkf, crn_filter_denkf,
    crn_filter_letkf;

#endif
