/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the statistics of ensembles mean: for each setting and variable, which criteria hold, which
 * fail and from which cycle on, and which of these a sample of so few members cannot decide.
 */
#ifndef CAIRN_VALIDATE_JUDGE_H
#define CAIRN_VALIDATE_JUDGE_H

#include "validate/validate_spread.h"

/* --- tools ---------------------------------------------------------------------------------- */

/* y = intercept + slope x, by least squares. Without two different x the slope is NaN. */
typedef struct crn_line {
    double slope, intercept;
    double error; /* standard error of the slope; NaN with fewer than three points */
} crn_line;

crn_line crn_line_fit(const double *x, const double *y, size_t n);

/*
 * Slopes between all pairs of members, each of which has n values (value[member * n + i]): how far
 * slopes differ from 1 by chance. Fewer than two members, or pairs without a slope: all NaN.
 */
typedef struct crn_slopes {
    double mean, deviation;
    size_t npairs;
} crn_slopes;

crn_slopes crn_slopes_of(const double *value, size_t nmembers, size_t n);

/*
 * Which of n hypotheses are rejected, when of those that are, a share of at most q is rejected
 * wrongly (Benjamini and Hochberg 1995)? A p that is NaN is of no test, and is not. Returns how
 * many. CAIRN_ENOMEM.
 */
cairn_status crn_discoveries(const double *p, size_t n, double q, bool *ret, size_t *ret_n);

/* --- verdicts ------------------------------------------------------------------------------- */

typedef enum crn_criterion {
    CRN_CRITERION_FINITE, /* no value that is not finite, or off where all members agree */
    CRN_CRITERION_DELTA,  /* the largest |RMSZ - RMSZ without loss| over members */
    CRN_CRITERION_RHO,    /* mean of rho over members */
    CRN_CRITERION_SHARE,  /* the largest error over spread over members (RMS over elements) */
    CRN_CRITERION_SSIM,   /* the least over members */
    CRN_CRITERION_SLOPE,  /* of the noise test */
    CRN_NCRITERIA
} crn_criterion;

const char *crn_criterion_name(crn_criterion c);

typedef struct crn_thresholds {
    double delta;       /* below */
    double rho, strict; /* at least; strict is shown beside it and decides nothing */
    double share;       /* at most */
    double ssim;        /* at least */
    double sigmas;      /* the slope is within so many deviations of the mean slope */
    uint32_t cycles;    /* that are judged, from the first on; 0: all */
} crn_thresholds;

crn_thresholds crn_thresholds_default(void); /* the sources' own */

/* Members of one variable under one setting: [cycle * nmembers + member], cycles from the first. */
typedef struct crn_history {
    uint32_t ncycles, nmembers;
    const crn_spread_stats *stats, *lossless; /* of the setting, and of ensemble 0 */
    const double *ssim;                       /* NULL: it does not apply */
    const double *noisy, *pair; /* NRMSE of the noise test: of the setting and of the pair without
                                   loss; NULL: there was none */
} crn_history;

typedef enum crn_finding {
    CRN_FINDING_NONE, /* it does not apply */
    CRN_FINDING_PASS,
    CRN_FINDING_FAIL,
    CRN_FINDING_NOISE /* within noise of the threshold: members drawn anew decide otherwise */
} crn_finding;

const char *crn_finding_name(crn_finding f);

typedef struct crn_verdict {
    crn_finding all; /* fail if one fails, else noise if one is, else pass */
    crn_finding finding[CRN_NCRITERIA];
    double value[CRN_NCRITERIA];   /* at the last cycle that is judged; the slope itself */
    uint32_t since[CRN_NCRITERIA]; /* the first cycle in which it fails; 0: in none */
    crn_finding strict;            /* rho against the strict threshold */
    crn_line line;                 /* of the noise test */
    crn_slopes slopes;
} crn_verdict;

/* CAIRN_ENOMEM. Draws of members are keyed by seed. */
cairn_status crn_judge(const crn_history *h, const crn_thresholds *t, uint64_t seed,
                       crn_verdict *ret);

#endif
