/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks on numbers that come from outside, inside plan only.
 */
#ifndef CAIRN_PLAN_CHECK_H
#define CAIRN_PLAN_CHECK_H

#include <math.h>

#include "plan/plan.h"

/* Comparisons with NaN are false: both forms refuse it. */
static inline cairn_status crn_plan_check_positive(const char *what, double v)
{
    CRN_FAIL_IF(!(v > 0) || !isfinite(v), CAIRN_EINVAL, "%s is %g: it must be above 0", what, v);
    return CAIRN_OK;
}

static inline cairn_status crn_plan_check_natural(const char *what, double v)
{
    CRN_FAIL_IF(!(v >= 0) || !isfinite(v), CAIRN_EINVAL, "%s is %g: it must be 0 or more", what, v);
    return CAIRN_OK;
}

cairn_status crn_plan_schedule_check(const cairn_plan_schedule *s, size_t nlevels);
cairn_status crn_plan_limits_check(const crn_plan_limits *lim);

/* crn_plan_predict without the checks, for code that asks thousands of times. */
crn_plan_prediction crn_plan_solve(const crn_plan_model *m, const cairn_plan_schedule *s);

#endif
