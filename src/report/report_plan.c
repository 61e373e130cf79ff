/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the planner thought of a run, over time, and what would have been best for it.
 */
#include "report/report_log.h"

#include <math.h>

/* Intervals of the curve: from a sixteenth of the best one to sixteen times it. */
enum { CURVE_STEPS = 32 };
static const double CURVE_REACH = 16;

static json_t *every_of(const cairn_plan_past *past, const cairn_plan_schedule *s)
{
    json_t *every = json_object();
    json_int_t period = 1;
    for (size_t l = 0; l < past->in.nlevels; l++) {
        period *= s->ratio[l];
        json_object_set_new(every, past->name[l], json_integer(period));
    }
    return every;
}

static json_t *schedule_json(const cairn_plan_past *past, const cairn_plan_schedule *s)
{
    return json_pack("{s:f, s:o, s:f}", "interval", s->interval, "every", every_of(past, s),
                     "efficiency", s->efficiency);
}

/* The efficiency of other intervals with the levels of s. */
static json_t *curve_json(const cairn_plan_past *past, const cairn_plan_schedule *s)
{
    json_t *list = json_array();
    for (int i = 0; i <= CURVE_STEPS; i++) {
        cairn_plan_schedule other = *s;
        other.interval *= pow(CURVE_REACH, 2.0 * i / CURVE_STEPS - 1);
        if (cairn_plan_predict(&past->in, &other) == CAIRN_OK)
            json_array_append_new(list, json_pack("[f,f]", other.interval, other.efficiency));
    }
    return list;
}

/* As the run's failures came, with a setting: the seconds that it would have taken; 0: unknown. */
static double replayed(const cairn_plan_past *past, const cairn_plan_schedule *s)
{
    cairn_plan_outcome o = {.struct_bytes = sizeof o};
    if (cairn_plan_replay(&past->in, s, past->outcome.work, past->failures, past->nfailures, &o) <
            0 ||
        !o.finished)
        return 0;
    return o.wall;
}

static json_t *seconds_or_null(double s)
{
    return s > 0 ? json_real(s) : json_null();
}

/* How far model and run may be apart: a tenth of the run's time. */
static const double FIT = 0.1;

bool crn_report_fits(const cairn_plan_past *past, double expected, double took)
{
    const double wall = past->outcome.wall;
    return wall > 0 && took > 0 && fabs(took - wall) <= FIT * wall &&
           fabs(expected - past->done.efficiency) <= FIT;
}

static json_t *past_json(const cairn_plan_past *past)
{
    cairn_plan_schedule best = {.struct_bytes = sizeof best}, done = past->done;
    if (cairn_plan_best(&past->in, &best) < 0 || cairn_plan_predict(&past->in, &done) < 0)
        return json_null();
    const double took = replayed(past, &done);
    return json_pack("{s:o, s:f, s:o, s:o, s:o, s:o, s:f, s:I, s:b}", "done",
                     schedule_json(past, &done), "achieved", past->done.efficiency, "best",
                     schedule_json(past, &best), "curve", curve_json(past, &best), "took_done",
                     seconds_or_null(took), "took_best", seconds_or_null(replayed(past, &best)),
                     "took", past->outcome.wall, "failures", (json_int_t)past->nfailures, "fits",
                     (int)crn_report_fits(past, done.efficiency, took));
}

json_t *crn_report_plan(cairn_trail *trail, size_t run, json_t *tuned)
{
    cairn_plan_past past = {.struct_bytes = sizeof past};
    json_t *of_run = NULL;
    if (cairn_plan_recall(trail, run, &past) == CAIRN_OK) {
        of_run = past_json(&past);
        cairn_plan_forget(&past);
    }
    return json_pack("{s:o, s:o}", "tuned", tuned, "run", of_run ? of_run : json_null());
}
