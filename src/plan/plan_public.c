/* SPDX-License-Identifier: BSD-3-Clause
 *
 * <cairn/planner.h>: the public names of the planner, translated to its own.
 */
#include <cairn/planner.h>

#include "plan/plan.h"

_Static_assert(CAIRN_PLAN_LEVELS == CRN_NLEVELS, "every level has its place in the planner");

typedef struct problem {
    crn_plan_model model;
    crn_plan_limits limits;
} problem;

static cairn_status read_input(const cairn_plan_input *given, problem *ret)
{
    cairn_plan_input in;
    CRN_TRY(crn_struct_in(given, &in));
    problem p = {.model = {.nlevels = in.nlevels,
                           .changed = {.floor = in.changed_at_once,
                                       .span = in.changed_in_time,
                                       .theta = in.change_pace}},
                 .limits = crn_plan_limits_default()};
    memcpy(p.model.level, in.level, sizeof in.level);
    if (in.interval_min != 0)
        p.limits.interval_min = in.interval_min;
    if (in.interval_max != 0)
        p.limits.interval_max = in.interval_max;
    if (in.ratio_max != 0)
        p.limits.ratio_max = in.ratio_max;
    *ret = p;
    return CAIRN_OK;
}

int cairn_plan_best(const cairn_plan_input *in, cairn_plan_schedule *ret)
{
    problem p;
    cairn_plan_schedule best;
    crn_plan_prediction at;
    CRN_TRY(crn_struct_check(ret));
    CRN_TRY(read_input(in, &p));
    CRN_TRY(crn_plan_best(&p.model, &p.limits, &best, &at));
    best.efficiency = at.efficiency;
    return crn_struct_out(&best, ret);
}

int cairn_plan_predict(const cairn_plan_input *in, cairn_plan_schedule *s)
{
    problem p;
    cairn_plan_schedule ours;
    crn_plan_prediction at;
    CRN_TRY(read_input(in, &p));
    CRN_TRY(crn_struct_in(s, &ours));
    CRN_TRY(crn_plan_predict(&p.model, &ours, &at));
    ours.efficiency = at.efficiency;
    return crn_struct_out(&ours, s);
}

int cairn_plan_simulate(const cairn_plan_input *in, const cairn_plan_schedule *s,
                        cairn_plan_trial *trial)
{
    problem p;
    cairn_plan_schedule schedule;
    cairn_plan_trial ours;
    crn_plan_result result;
    CRN_TRY(read_input(in, &p));
    CRN_TRY(crn_struct_in(s, &schedule));
    CRN_TRY(crn_struct_in(trial, &ours));
    crn_plan_trial t = {
        .work = ours.work, .wall_max = 1000 * ours.work, .nruns = ours.nruns, .seed = ours.seed};
    for (size_t l = 0; l < CRN_PLAN_LEVELS; l++)
        t.shape[l] = ours.shape[l] == 0 ? 1 : ours.shape[l];
    CRN_TRY(crn_plan_simulate(&p.model, &schedule, &t, &result));
    ours.efficiency = result.efficiency;
    ours.error = result.error;
    return crn_struct_out(&ours, trial);
}

int cairn_plan_replay(const cairn_plan_input *in, const cairn_plan_schedule *s, double work,
                      const cairn_plan_failure *failures, size_t nfailures, cairn_plan_outcome *ret)
{
    problem p;
    cairn_plan_schedule schedule;
    cairn_plan_outcome out;
    CRN_TRY(crn_struct_check(ret));
    CRN_TRY(read_input(in, &p));
    CRN_TRY(crn_struct_in(s, &schedule));
    CRN_TRY(crn_plan_replay(&p.model, &schedule, work, 1000 * work, failures, nfailures, &out));
    return crn_struct_out(&out, ret);
}
