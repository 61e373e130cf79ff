/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The update of a cycle, inside: an ensemble as its observations see it, the update of its fields
 * piece by piece, statistics of all of that.
 */
#ifndef CAIRN_ENSEMBLE_UPDATE_H
#define CAIRN_ENSEMBLE_UPDATE_H

#include "ensemble/ensemble_observing.h"
#include "ensemble/ensemble_server.h"
#include "filter/filter.h"

/* Statistics of a field against the truth, summed over its elements. */
typedef struct crn_score {
    uint32_t field;
    uint64_t n;
    double square[2], variance[2], crps[2]; /* of background and analysis */
} crn_score;

/* Observations of one type and region (or all), as the background sees them. */
typedef struct crn_innovations {
    const char *type, *region; /* "all" */
    size_t n;
    double bias, rms; /* of value minus the members' mean */
    double spread;    /* root mean square of the members' standard deviation */
    double error;     /* of the observations' */
    double chi2;      /* d^T (HPH^T + R)^-1 d over n */
    double rank;      /* effective number of directions in which members differ */
    double crps;
    uint32_t *histogram; /* of the ranks of values among members: members + 1 */
} crn_innovations;

typedef struct crn_update {
    crn_server *s;
    crn_obs_set *set;
    uint32_t n;                 /* members */
    unsigned char **from, **to; /* their backgrounds and analyses */
    double **seen;              /* what observations saw of each, at their times; NULL: now */
    double *y, *value, *variance, *place, *radius;
    uint64_t *number;
    crn_filter_block *block;
    crn_filter_case c;
    crn_locality l;
    size_t nfar;
    double normal; /* root mean square of the innovations over their expected deviations, of all
                      observations, also those left out */
    bool products, scored;
    uint64_t nrows;       /* of the slice */
    double *product[4];   /* its rows, and in the end rank 0's of all: mean and spread of background
                             and analysis */
    unsigned char *truth; /* a state; NULL */
    CRN_VEC(crn_score) stretch; /* of the slice */
    crn_score *score;           /* of each field: rank 0's, in the end */
    CRN_VEC(crn_innovations) row;
} crn_update;

void crn_update_done(crn_update *u);

/* What of a member's slice is observed (at a step, as crn_obs_pick). */
cairn_status crn_observe_slice(const crn_server *s, const crn_obs_set *set, uint64_t step,
                               const unsigned char *slice, double *entry);

/* Coordinates that are fields of the model, from any state. Collective. */
cairn_status crn_observe_place(crn_server *s, const unsigned char *slice);

/* Memory for the rows of products; what all ranks have found, to rank 0. Collective. */
cairn_status crn_update_rows(crn_update *u);
cairn_status crn_update_collect(crn_update *u);

/* The members as they would be observed, and which observations are used. Collective. */
cairn_status crn_update_observe(crn_update *u);

/* All rows of the slice, from and to the members' memory. Collective. */
cairn_status crn_update_fields(crn_update *u);

/* Statistics of what was observed; the table of the cycle and its list of those left out. */
cairn_status crn_diagnose(crn_update *u);
cairn_status crn_diagnose_write(crn_update *u);
void crn_diagnose_done(crn_update *u);

/* Has the filter lost the truth, for as many cycles as the study allows? CAIRN_EPEER where it is to
 * stop then. */
cairn_status crn_diagnose_judge(crn_update *u);

/* Adaptive inflation: sets c.prior. */
cairn_status crn_adapt(crn_update *u);

/* Means and spreads: put where the study wants them. */
cairn_status crn_products_put(crn_update *u);

/* What a twin experiment observes of its truth. */
cairn_status crn_twin_observe(crn_server *s);

/* The truth of a twin experiment: kept by the twin, found by the study. */
cairn_status crn_truth_put(crn_server *s);
cairn_status crn_truth_get(crn_update *u);

#endif
