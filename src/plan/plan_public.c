/* SPDX-License-Identifier: BSD-3-Clause
 *
 * <cairn/planner.h>: the public names of the planner, translated to its own.
 */
#include <cairn/planner.h>

#include "plan/plan.h"

_Static_assert(CAIRN_PLAN_LEVELS == CRN_PLAN_LEVELS, "the public and the inner number of levels");

/* The first member of each public structure; a caller that is older than this library has less. */
static cairn_status check_size(size_t theirs, size_t ours)
{
    CRN_FAIL_IF(theirs < ours, CAIRN_EINVAL, "set struct_bytes of the structure before the call");
    return CAIRN_OK;
}

typedef struct problem {
    crn_plan_model model;
    crn_plan_limits limits;
} problem;

static cairn_status read_input(const cairn_plan_input *in, problem *ret)
{
    CRN_TRY(check_size(in->struct_bytes, sizeof *in));
    problem p = {.model = {.nlevels = in->nlevels,
                           .changed = {.floor = in->changed_at_once,
                                       .span = in->changed_in_time,
                                       .theta = in->change_pace}},
                 .limits = crn_plan_limits_default()};
    for (size_t l = 0; l < CRN_PLAN_LEVELS; l++)
        p.model.level[l] = (crn_plan_level){.rate = in->level[l].rate,
                                            .restart = in->level[l].restart,
                                            .fixed = in->level[l].fixed,
                                            .bandwidth = in->level[l].bandwidth,
                                            .background = in->level[l].background};
    if (in->interval_min != 0)
        p.limits.interval_min = in->interval_min;
    if (in->interval_max != 0)
        p.limits.interval_max = in->interval_max;
    if (in->ratio_max != 0)
        p.limits.ratio_max = in->ratio_max;
    *ret = p;
    return CAIRN_OK;
}

static cairn_status read_schedule(const cairn_plan_schedule *s, crn_plan_schedule *ret)
{
    CRN_TRY(check_size(s->struct_bytes, sizeof *s));
    ret->interval = s->interval;
    for (size_t l = 0; l < CRN_PLAN_LEVELS; l++)
        ret->ratio[l] = s->ratio[l];
    return CAIRN_OK;
}

int cairn_plan_best(const cairn_plan_input *in, cairn_plan_schedule *ret)
{
    problem p;
    crn_plan_schedule s;
    crn_plan_prediction at;
    CRN_TRY(check_size(ret->struct_bytes, sizeof *ret));
    CRN_TRY(read_input(in, &p));
    CRN_TRY(crn_plan_best(&p.model, &p.limits, &s, &at));
    ret->interval = s.interval;
    for (size_t l = 0; l < CRN_PLAN_LEVELS; l++)
        ret->ratio[l] = l < p.model.nlevels ? s.ratio[l] : 0;
    ret->efficiency = at.efficiency;
    return CAIRN_OK;
}

int cairn_plan_predict(const cairn_plan_input *in, cairn_plan_schedule *s)
{
    problem p;
    crn_plan_schedule inner;
    crn_plan_prediction at;
    CRN_TRY(read_input(in, &p));
    CRN_TRY(read_schedule(s, &inner));
    CRN_TRY(crn_plan_predict(&p.model, &inner, &at));
    s->efficiency = at.efficiency;
    return CAIRN_OK;
}

int cairn_plan_simulate(const cairn_plan_input *in, const cairn_plan_schedule *s,
                        cairn_plan_trial *trial)
{
    problem p;
    crn_plan_schedule inner;
    crn_plan_result result;
    CRN_TRY(check_size(trial->struct_bytes, sizeof *trial));
    CRN_TRY(read_input(in, &p));
    CRN_TRY(read_schedule(s, &inner));
    crn_plan_trial t = {.work = trial->work,
                        .wall_max = 1000 * trial->work,
                        .nruns = trial->nruns,
                        .seed = trial->seed};
    for (size_t l = 0; l < CRN_PLAN_LEVELS; l++)
        t.shape[l] = trial->shape[l] == 0 ? 1 : trial->shape[l];
    CRN_TRY(crn_plan_simulate(&p.model, &inner, &t, &result));
    trial->efficiency = result.efficiency;
    trial->error = result.error;
    return CAIRN_OK;
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
    crn_plan_schedule inner;
    crn_plan_outcome o;
    crn_plan_event *events;
    CRN_TRY(check_size(ret->struct_bytes, sizeof *ret));
    CRN_TRY(read_input(in, &p));
    CRN_TRY(read_schedule(s, &inner));
    CRN_TRY(copy_failures(failures, nfailures, &events));
    cairn_status rc = crn_plan_replay(&p.model, &inner, work, 1000 * work, events, nfailures, &o);
    free(events);
    CRN_TRY(rc);
    cairn_plan_outcome out = {.struct_bytes = ret->struct_bytes,
                              .finished = o.finished,
                              .work = o.work,
                              .wall = o.wall,
                              .held = o.held,
                              .lost = o.lost,
                              .restarting = o.restarting};
    for (size_t l = 0; l < CRN_PLAN_LEVELS; l++) {
        out.nmarks[l] = o.nmarks[l];
        out.nfailures[l] = o.nfailures[l];
    }
    *ret = out;
    return CAIRN_OK;
}
