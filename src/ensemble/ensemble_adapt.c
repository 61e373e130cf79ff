/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Adaptive inflation from innovations (Wang and Bishop 2003; smoothed in time as Li, Kalnay and
 * Miyoshi 2009 do): the background's covariance is multiplied with
 *
 *     l = (d^T R^-1 d - p) / tr(HPH^T R^-1)
 *
 * as one cycle estimates it, combined with that of the cycles before by their variances. The
 * estimate of each cycle is in a table of the study before it counts, so that another server goes
 * on with it.
 */
#include "ensemble/ensemble_update.h"

#include <inttypes.h>
#include <math.h>

#define TABLE "inflation.csv" /* cycle, factor of the covariance, its variance */

static const double FIRST_VARIANCE = 0.1, GROWTH = 1.03, LEAST = 0.9, MOST = 10;

/* The estimate before this cycle. */
static cairn_status recall(crn_server *s)
{
    char *text, *rest = NULL;
    unsigned cycle;
    double value, variance;
    s->adapted = (crn_adapted){.value = 1, .variance = FIRST_VARIANCE};
    if (crn_study_read_tail(s->study, TABLE, &text) < 0) {
        crn_err_take(&(crn_err){0}); /* there is none yet */
        return CAIRN_OK;
    }
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (sscanf(line, "%u,%la,%la", &cycle, &value, &variance) == 3 && cycle < s->cycle) {
            s->adapted.value = value;
            s->adapted.variance = variance;
        }
    free(text);
    return CAIRN_OK;
}

cairn_status crn_adapt(crn_update *u)
{
    crn_server *s = u->s;
    crn_adapted *a = &s->adapted;
    crn_filter_fit fit;
    const double p = (double)u->c.nobs;
    if (!s->study->adaptive || crn_filter_is_free(s->study->filter))
        return CAIRN_OK;
    if (a->cycle + 1 != s->cycle || a->value == 0)
        CRN_TRY(recall(s));
    a->cycle = s->cycle;
    CRN_TRY(crn_filter_fit_of(&u->c, &fit));
    if (p > 0 && fit.trace > 0) {
        const double seen = (fit.square - p) / fit.trace;
        const double own = 2 / p * pow((a->value * fit.trace + p) / fit.trace, 2);
        const double before = a->variance * GROWTH;
        a->value = fmin(fmax((own * a->value + before * seen) / (own + before), LEAST), MOST);
        a->variance = own * before / (own + before);
    }
    u->c.prior = sqrt(a->value);
    return crn_study_append(s->study, TABLE, "%u,%a,%a", s->cycle, a->value, a->variance);
}
