/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ensembles that were propagated side by side: number 0 without loss, each other one with its own.
 * Member p means the same in all of them. One pass over blocks of all members gives, for each
 * member of each ensemble, sums from which all statistics of seed 003's chapter 9 follow, and more.
 *
 *     crn_spread s;
 *     CRN_TRY(crn_spread_init(&s, nensembles, nmembers, weight));
 *     for each slice, by index: CRN_TRY(crn_spread_add(&s, value, n));
 *     crn_spread_stats(&s, ensemble, member, &stats);
 *
 * The bits of the sums follow from the values and from where slices begin, and from nothing else:
 * not from the processor's vectors. Slices of several processes are merged by their index
 * (crn_spread_merge).
 */
#ifndef CAIRN_VALIDATE_SPREAD_H
#define CAIRN_VALIDATE_SPREAD_H

#include "validate/validate.h"

enum { CRN_SPREAD_BLOCK = 512 }; /* slices begin at a multiple of it */

/* Sums over elements, of one member of one ensemble. z is the distance from the mean of the other
 * members, in their deviations. */
typedef struct crn_spread_row {
    crn_deviation pair; /* x: the member of ensemble 0; y: this one */
    crn_deviation own;  /* x: this one */
    double most_x;      /* the largest |x| */
    long double z0;     /* sum of z^2 against ensemble 0 (9.1) */
    long double z;      /* the same against the member's own ensemble (9.2) */
    long double share;  /* sum of (y - x)^2 over the variance of the others in ensemble 0 */
    uint64_t nz0, nz;   /* elements in these sums */
    uint64_t noutside;  /* where the others of ensemble 0 are all equal, and y is not */
    uint64_t nlost;     /* the same for the own ensemble */
} crn_spread_row;

typedef struct crn_spread {
    uint32_t nensembles, nmembers;
    double *weight;                   /* of members; not negative, finite */
    double total;                     /* of the weights */
    crn_spread_row *row;              /* ensemble * nmembers + member */
    struct crn_spread_basis *scratch; /* of a block */
} crn_spread;

/* weight: of each member, the same in all ensembles; NULL: equal. CAIRN_EINVAL, CAIRN_ENOMEM. */
cairn_status crn_spread_init(crn_spread *s, uint32_t nensembles, uint32_t nmembers,
                             const double *weight);
void crn_spread_done(crn_spread *s);

/* Add n elements: value[ensemble * nmembers + member] has those of one member. CAIRN_ENOMEM. */
cairn_status crn_spread_add(crn_spread *s, const double *const *value, size_t n);

/* Add the sums of the elements that follow. Both have the same weights. */
void crn_spread_merge(crn_spread *s, const crn_spread *next);

/* What the sums of a member say. What has no meaning (z of a single member) is NaN. */
typedef struct crn_spread_stats {
    double rmsz0;                     /* (9.1), (9.3) */
    double rmsz;                      /* (9.2), (9.3) */
    double delta;                     /* |rmsz0 - that of the member without loss| (9.11) */
    double rmse, psnr;                /* (9.6) */
    double decorrelation;             /* 1 - rho (9.7) */
    double error;                     /* the largest (9.8) */
    double nrmse, npme;               /* (9.13), (9.14) */
    double mean, deviation, min, max; /* of the member itself */
    double share;                     /* RMS of the error over the ensemble's spread */
    uint64_t n, nbroken, noutside;    /* elements; not finite where ensemble 0 is; off a point */
} crn_spread_stats;

void crn_spread_stats_of(const crn_spread *s, uint32_t ensemble, uint32_t member,
                         crn_spread_stats *ret);

#endif
