/* SPDX-License-Identifier: BSD-3-Clause
 *
 * <cairn/planner.h>: the public names of the planner, translated to its own.
 */
#include <cairn/planner.h>

#include "plan/plan.h"

_Static_assert(CAIRN_PLAN_LEVELS == CRN_PLAN_LEVELS, "the public and the inner number of levels");

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
    for (size_t l = 0; l < CRN_PLAN_LEVELS; l++)
        p.model.level[l] = (crn_plan_level){.rate = in.level[l].rate,
                                            .restart = in.level[l].restart,
                                            .fixed = in.level[l].fixed,
                                            .bandwidth = in.level[l].bandwidth,
                                            .background = in.level[l].background};
    if (in.interval_min != 0)
        p.limits.interval_min = in.interval_min;
    if (in.interval_max != 0)
        p.limits.interval_max = in.interval_max;
    if (in.ratio_max != 0)
        p.limits.ratio_max = in.ratio_max;
    *ret = p;
    return CAIRN_OK;
}

static crn_plan_schedule schedule_of(const cairn_plan_schedule *s)
{
    crn_plan_schedule inner = {.interval = s->interval};
    for (size_t l = 0; l < CRN_PLAN_LEVELS; l++)
        inner.ratio[l] = s->ratio[l];
    return inner;
}

int cairn_plan_best(const cairn_plan_input *in, cairn_plan_schedule *ret)
{
    problem p;
    crn_plan_schedule s;
    crn_plan_prediction at;
    CRN_TRY(crn_struct_check(ret));
    CRN_TRY(read_input(in, &p));
    CRN_TRY(crn_plan_best(&p.model, &p.limits, &s, &at));
    cairn_plan_schedule best = {.interval = s.interval, .efficiency = at.efficiency};
    for (size_t l = 0; l < p.model.nlevels; l++)
        best.ratio[l] = s.ratio[l];
    return crn_struct_out(&best, ret);
}

int cairn_plan_predict(const cairn_plan_input *in, cairn_plan_schedule *s)
{
    problem p;
    cairn_plan_schedule ours;
    crn_plan_prediction at;
    CRN_TRY(read_input(in, &p));
    CRN_TRY(crn_struct_in(s, &ours));
    const crn_plan_schedule inner = schedule_of(&ours);
    CRN_TRY(crn_plan_predict(&p.model, &inner, &at));
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
    const crn_plan_schedule inner = schedule_of(&schedule);
    crn_plan_trial t = {
        .work = ours.work, .wall_max = 1000 * ours.work, .nruns = ours.nruns, .seed = ours.seed};
    for (size_t l = 0; l < CRN_PLAN_LEVELS; l++)
        t.shape[l] = ours.shape[l] == 0 ? 1 : ours.shape[l];
    CRN_TRY(crn_plan_simulate(&p.model, &inner, &t, &result));
    ours.efficiency = result.efficiency;
    ours.error = result.error;
    return crn_struct_out(&ours, trial);
}

static cairn_status copy_failures(const cairn_plan_failure *from, size_t n, crn_plan_event **ret)
{
    crn_plan_event *events;
    CRN_TRY(crn_alloc(&events, n));
    for (size_t i = 0; i < n; i++)
        events[i] = (crn_plan_event){.at = from[i].at, .class = from[i].level};
    *ret = events;
    return CAIRN_OK;
}

int cairn_plan_replay(const cairn_plan_input *in, const cairn_plan_schedule *s, double work,
                      const cairn_plan_failure *failures, size_t nfailures, cairn_plan_outcome *ret)
{
    problem p;
    cairn_plan_schedule schedule;
    crn_plan_outcome o;
    crn_plan_event *events;
    CRN_TRY(crn_struct_check(ret));
    CRN_TRY(read_input(in, &p));
    CRN_TRY(crn_struct_in(s, &schedule));
    const crn_plan_schedule inner = schedule_of(&schedule);
    CRN_TRY(copy_failures(failures, nfailures, &events));
    cairn_status rc = crn_plan_replay(&p.model, &inner, work, 1000 * work, events, nfailures, &o);
    free(events);
    CRN_TRY(rc);
    cairn_plan_outcome out = {.finished = o.finished,
                              .work = o.work,
                              .wall = o.wall,
                              .held = o.held,
                              .lost = o.lost,
                              .restarting = o.restarting};
    for (size_t l = 0; l < CRN_PLAN_LEVELS; l++) {
        out.nmarks[l] = o.nmarks[l];
        out.nfailures[l] = o.nfailures[l];
    }
    return crn_struct_out(&out, ret);
}
