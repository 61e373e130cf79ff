/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two yardsticks for marks: whether to write only what changed (Keller, section 5.4), and what
 * share of a run marks and recoveries take (section 6.3).
 */
#include "plan/plan_check.h"

static cairn_status check_block(double hash, double write)
{
    CRN_TRY(crn_plan_check_natural("the time to hash a block", hash));
    CRN_TRY(crn_plan_check_positive("the time to write a block", write));
    return CAIRN_OK;
}

/*
 * Per block of the state, by the time to write one: all are hashed (rho), the changed ones perhaps
 * again (rho n), and those that did not change are not written (n - 1). The zero of the sum in n:
 */
cairn_status crn_plan_diff_threshold(double hash, double write, crn_plan_hashing h, double *ret)
{
    CRN_TRY(check_block(hash, write));
    double rho = hash / write;
    *ret = fmax(0, h == CRN_PLAN_HASH_TWICE ? (1 - rho) / (1 + rho) : 1 - rho);
    return CAIRN_OK;
}

cairn_status crn_plan_diff_gain(double hash, double write, double share, crn_plan_hashing h,
                                double *ret)
{
    CRN_TRY(check_block(hash, write));
    CRN_FAIL_IF(!(share >= 0 && share <= 1), CAIRN_EINVAL,
                "the share of changed blocks is %g: it must be 0 to 1", share);
    double rho = hash / write;
    *ret = rho - 1 + share * (h == CRN_PLAN_HASH_TWICE ? 1 + rho : 1);
    return CAIRN_OK;
}

cairn_status crn_plan_track_gain(const crn_plan_track *t, double *ret)
{
    CRN_TRY(crn_plan_check_natural("the time to hash a byte", t->hash));
    CRN_TRY(crn_plan_check_natural("the size of a variable", t->nbytes));
    CRN_TRY(crn_plan_check_natural("what was looked at", t->looked));
    CRN_TRY(crn_plan_check_natural("the number of faults", t->nfaults));
    CRN_TRY(crn_plan_check_natural("the time of a fault", t->fault));
    CRN_TRY(crn_plan_check_natural("the time of a scan", t->scan));
    *ret = (t->nbytes - t->looked) * t->hash - t->nfaults * t->fault - t->scan;
    return CAIRN_OK;
}

static cairn_status check_run(const crn_plan_run *r)
{
    CRN_TRY(crn_plan_check_natural("the cost of a recovery", r->recovery));
    CRN_TRY(crn_plan_check_natural("the work of the run", r->work));
    CRN_TRY(crn_plan_check_natural("the mean recomputation", r->recompute));
    CRN_TRY(crn_plan_check_natural("the mean downtime", r->downtime));
    return CAIRN_OK;
}

cairn_status crn_plan_overhead_of(const crn_plan_run *run, crn_plan_overhead *ret)
{
    double interval;
    CRN_TRY(check_run(run));
    CRN_TRY(crn_plan_young(run->mark, run->mtbf, &interval));
    crn_plan_overhead o = {.mark_share = run->mark / interval,
                           .recovery_share = run->recovery / run->mtbf};
    o.marks = o.mark_share * run->work;
    o.recoveries = o.recovery_share * run->work;
    o.correction = run->work / run->mtbf * (run->recompute + run->downtime);
    o.total = o.marks + o.recoveries + o.correction;
    o.valid = o.total < run->mtbf;
    *ret = o;
    return CAIRN_OK;
}
