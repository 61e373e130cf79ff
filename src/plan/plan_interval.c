/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The classical intervals: one level, marks of constant cost, failures at a constant rate.
 */
#include "plan/plan_check.h"

static cairn_status check(double cost, double mtbf)
{
    CRN_TRY(crn_plan_check_positive("the cost of a mark", cost));
    CRN_TRY(crn_plan_check_positive("the mean time between failures", mtbf));
    CRN_FAIL_IF(cost >= mtbf, CAIRN_EINVAL,
                "a mark takes %g s but a failure comes every %g s: make marks cheaper or use a "
                "safer machine",
                cost, mtbf);
    return CAIRN_OK;
}

cairn_status crn_plan_young(double cost, double mtbf, double *ret)
{
    CRN_TRY(check(cost, mtbf));
    *ret = sqrt(2 * cost * mtbf);
    return CAIRN_OK;
}

/* Young's with the time to restart counted as time between failures (Daly 2003). */
cairn_status crn_plan_daly1(double cost, double restart, double mtbf, double *ret)
{
    CRN_TRY(check(cost, mtbf));
    CRN_TRY(crn_plan_check_natural("the cost of a restart", restart));
    *ret = sqrt(2 * cost * (mtbf + restart));
    return CAIRN_OK;
}

/*
 * The minimum of the exact expected time, expanded in sqrt(cost / (2 mtbf)) (Daly 2006, eq. 37).
 * Its second branch, for a cost of two mtbf and more, is refused by check.
 */
cairn_status crn_plan_daly(double cost, double mtbf, double *ret)
{
    CRN_TRY(check(cost, mtbf));
    double e = sqrt(cost / (2 * mtbf));
    *ret = sqrt(2 * cost * mtbf) * (1 + e / 3 + e * e / 9) - cost;
    return CAIRN_OK;
}
