/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The verdict that counts: where the truth is known, how much worse is an analysis whose states are
 * coded with loss in each cycle?
 */
#ifndef CAIRN_VALIDATE_BOUND_H
#define CAIRN_VALIDATE_BOUND_H

#include "validate/validate.h"

/* Errors of n runs with and without loss, of the same seeds. */
typedef struct crn_paired {
    double change; /* mean of with / without - 1 */
    double half;   /* half of its 95% confidence interval; NaN with one run */
    size_t n;
} crn_paired;

crn_paired crn_paired_of(const double *without, const double *with, size_t n);

typedef struct crn_bound_trial {
    double bound, rate;
    crn_paired paired;
    bool safe; /* the whole interval is within the tolerance */
} crn_bound_trial;

/* One run: states are coded with this bound in each cycle; 0: without loss. The error of its
 * analysis, and the rate. */
typedef cairn_status crn_trial_fn(void *arg, uint64_t seed, double bound, double *ret_rmse,
                                  double *ret_rate);
typedef void crn_trial_tell_fn(void *arg, const crn_bound_trial *t);

typedef struct crn_bound_case {
    uint64_t seed; /* the first of nseeds */
    uint32_t nseeds;
    double tolerance;        /* of the change, such as 0.01 */
    double low, high;        /* bounds between which it is looked for, */
    uint32_t nsteps;         /* by so many equal steps of their logarithm */
    crn_trial_fn *run;       /* both with arg */
    crn_trial_tell_fn *tell; /* of each bound that was tried; NULL is allowed */
    void *arg;
} crn_bound_case;

typedef struct crn_bound_result {
    bool found;                 /* a bound is safe */
    crn_bound_trial best, next; /* the largest that is, and the one after it, if there is one */
    double rmse;                /* without loss */
} crn_bound_result;

/* By bisection: a bound is taken to be safe if a larger one is. CAIRN_EINVAL, CAIRN_ENOMEM, and
 * what run returns. */
cairn_status crn_bound_find(const crn_bound_case *c, crn_bound_result *ret);

#endif
