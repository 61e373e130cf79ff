/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What validators find in a slice beside the sums: in which rank members without loss are among
 * those of each ensemble, a sample of values for a test of distributions, and what functions of the
 * user's own say. It lies in one stretch of memory, so that it is kept and read as it is.
 */
#ifndef CAIRN_ENSEMBLE_EXTRA_H
#define CAIRN_ENSEMBLE_EXTRA_H

#include "ensemble/ensemble_functions.h"
#include "ensemble/ensemble_side.h"

enum { CRN_SAMPLE = 4096 }; /* at most, of a variable */

typedef struct crn_extra {
    uint32_t nensembles, nmembers, nfunctions;
    size_t nsample, nbytes;
    unsigned char *data; /* of which these are parts: */
    uint64_t *rank;      /* [ensemble][rank] */
    double *sample;      /* [state][nsample] */
    double *value;       /* [function][state] */
    int32_t *why;        /* [function] */
} crn_extra;

cairn_status crn_extra_init(crn_extra *x, uint32_t nensembles, uint32_t nmembers, size_t nsample,
                            uint32_t nfunctions);
void crn_extra_done(crn_extra *x);

/* How many of the elements [first, first + n) of all are in the sample? */
size_t crn_sample_count(uint64_t all, uint64_t first, size_t n);

/*
 * Elements [first, first + n) of a variable of all: ranks and sample of the values of all states.
 * Element i of a member without loss, which is member i modulo their number, is ranked among the
 * other members of each ensemble; of equal ones half are below it.
 */
void crn_extra_add(crn_extra *x, const double *const *value, uint64_t all, uint64_t first,
                   size_t n);

/* Add the ranks and the sample of the slice that follows; x has room for nsample, of which *at are
 * filled. */
void crn_extra_merge(crn_extra *x, const crn_extra *next, size_t *at);

/*
 * Are the values of each member of an ensemble with loss of the distribution of those without? p of
 * [state], 1 for ensemble 0; and which of these are rejected, when of those of a setting that are a
 * share of at most q is rejected wrongly. CAIRN_ENOMEM.
 */
cairn_status crn_extra_test(const crn_extra *x, double q, crn_ks *ret, bool *ret_rejected);

/* Are ranks as flat as those without loss? Pearson's sum of ensemble e over its expectation from
 * ensemble 0, for each degree of freedom: 0 for ensemble 0. */
double crn_extra_skew(const crn_extra *x, uint32_t ensemble);

#endif
