/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the death of an ensemble's server costs: (7.3) to (7.22) of K. Keller's thesis, and a third
 * mode, in which backgrounds alone are kept and the analysis is computed again. The cost rises
 * linearly with the place of the failure in its region, so its mean over the region is the cost in
 * the middle.
 */
#include "plan/plan.h"

#include <math.h>

static cairn_status check(const crn_revival_times *t)
{
    const double all[] = {t->propagate,    t->update,         t->keep,
                          t->get_analysis, t->get_background, t->repeat};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        CRN_FAIL_IF(!isfinite(all[i]) || all[i] < 0, CAIRN_EINVAL,
                    "a time of %g s makes no sense in a cycle", all[i]);
    CRN_FAIL_IF(t->propagate <= 0 || t->keep > t->propagate, CAIRN_EINVAL,
                "keeping the analysis (%g s) must take no longer than propagation (%g s)", t->keep,
                t->propagate);
    return CAIRN_OK;
}

/* A cycle: the update, then propagation, in whose first part the analysis is still being kept. In
 * the third mode there is nothing to be kept: region A is the update alone. */
static double region_a(const crn_revival_times *t, crn_revival_mode mode)
{
    return mode == CRN_REVIVAL_BACKGROUND ? t->update : t->update + t->keep;
}

double crn_revival_share_a(const crn_revival_times *t, crn_revival_mode mode)
{
    return region_a(t, mode) / (t->propagate + t->update);
}

/* Region A: the analysis is not safe yet. */
static double cost_a(const crn_revival_times *t, crn_revival_mode mode, double alpha)
{
    const double again = alpha * region_a(t, mode);
    switch (mode) {
    case CRN_REVIVAL_BOTH: /* (7.3), without the previous analysis, which nobody needs */
        return t->get_background + again;
    case CRN_REVIVAL_BOTH_ALL: /* (7.3) */
        return t->get_analysis + t->get_background + again;
    case CRN_REVIVAL_ANALYSIS: /* (7.12) */
        return t->get_analysis + t->repeat + again;
    default:
        return t->get_background + again;
    }
}

/* Region B: it is. alpha_R, the share of members that are done, grows from keep / propagate on. */
static double cost_b(const crn_revival_times *t, crn_revival_mode mode, double alpha)
{
    const double kept = t->keep / t->propagate, done = kept + alpha * (1 - kept);
    switch (mode) {
    case CRN_REVIVAL_BOTH:
    case CRN_REVIVAL_BOTH_ALL: /* (7.4), (7.18) with the alpha_R that (7.20) has */
        return t->get_analysis + done * t->get_background;
    case CRN_REVIVAL_ANALYSIS: /* (7.13) */
        return t->get_analysis + t->keep + alpha * (t->repeat - t->keep);
    default: /* all of the last cycle's, the update again, and what is there of this one's */
        return t->get_background + t->update + alpha * t->get_background;
    }
}

cairn_status crn_revival_cost(const crn_revival_times *times, crn_revival_mode mode, bool in_a,
                              double alpha, double *ret)
{
    CRN_TRY(check(times));
    CRN_FAIL_IF(!(alpha >= 0 && alpha <= 1), CAIRN_EINVAL,
                "a place of %g is not within its region (0 to 1)", alpha);
    *ret = in_a ? cost_a(times, mode, alpha) : cost_b(times, mode, alpha);
    return CAIRN_OK;
}

cairn_status crn_revival_mean(const crn_revival_times *times, crn_revival_mode mode, double *ret)
{
    CRN_TRY(check(times));
    const double a = crn_revival_share_a(times, mode);                        /* (7.5) and (7.6) */
    *ret = a * cost_a(times, mode, 0.5) + (1 - a) * cost_b(times, mode, 0.5); /* (7.7) to (7.10) */
    return CAIRN_OK;
}

cairn_status crn_revival_best(const crn_revival_times *times, crn_revival_mode *ret)
{
    static const crn_revival_mode modes[] = {CRN_REVIVAL_BOTH, CRN_REVIVAL_ANALYSIS,
                                             CRN_REVIVAL_BACKGROUND};
    double best = INFINITY, mean;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        CRN_TRY(crn_revival_mean(times, modes[i], &mean));
        if (mean < best)
            *ret = modes[i];
        best = fmin(best, mean);
    }
    return CAIRN_OK;
}
