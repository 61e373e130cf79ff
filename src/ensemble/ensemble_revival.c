/* SPDX-License-Identifier: BSD-3-Clause */
#include "ensemble/ensemble_revival.h"

#include <math.h>

#include "ensemble/ensemble_server.h"
#include "plan/plan.h"

/* --- measuring ------------------------------------------------------------------------------ */

/* What the events say of the server before this one; lines are read once. */
static void take_event(crn_revival *v, const json_t *event, uint64_t *begun_ns, uint8_t *done,
                       uint32_t nmembers)
{
    const char *kind = json_string_value(json_object_get(event, "event"));
    const char *job = json_string_value(json_object_get(event, "job"));
    const uint64_t at = (uint64_t)json_integer_value(json_object_get(event, "at"));
    const json_int_t member = json_integer_value(json_object_get(event, "member"));
    if (!kind)
        return;
    if (strcmp(kind, "ended") == 0 && job && job[0] == 's')
        v->died_ns = at;
    else if (strcmp(kind, "analysis") == 0)
        *begun_ns = at;
    else if (strcmp(kind, "done") == 0 && member >= 0 && member < nmembers &&
             json_integer_value(json_object_get(event, "cycle")) == v->cycle)
        done[member] = 1;
}

static void read_past(const crn_server *s, crn_revival *v, uint8_t *done)
{
    char *path, *line = NULL;
    size_t cap = 0;
    uint64_t begun_ns = 0;
    if (crn_study_path(s->study, "events.jsonl", &path) < 0)
        return;
    FILE *f = fopen(path, "re");
    free(path);
    while (f && getline(&line, &cap, f) >= 0) {
        json_t *event = json_loads(line, 0, NULL);
        take_event(v, event, &begun_ns, done, s->nmembers);
        json_decref(event);
    }
    free(line);
    if (f)
        fclose(f);
    v->elapsed = v->died_ns > begun_ns ? (double)(v->died_ns - begun_ns) * 1e-9 : 0;
}

void crn_revival_begin(crn_server *s)
{
    crn_revival *v = &s->revival;
    uint8_t *done;
    if (crn_alloc(&done, s->nmembers) < 0)
        return;
    v->taken_up = true;
    v->cycle = s->cycle;
    read_past(s, v, done);
    for (uint32_t m = 0; m < s->nmembers; m++)
        v->ndone += done[m];
    free(done);
}

void crn_revival_look(crn_server *s)
{
    crn_revival *v = &s->revival;
    const bool there = s->cycle > v->cycle || (s->cycle == v->cycle && s->ndone >= v->ndone);
    if (v->taken_up && v->cost == 0 && v->died_ns > 0 && there)
        v->cost = (double)(crn_wall_ns() - v->died_ns) * 1e-9;
}

/* --- the model ------------------------------------------------------------------------------ */

static crn_revival_times times_of(const crn_revival *v)
{
    const double n = v->ncycles;
    /* the model has no cycles whose states are still being kept when they end */
    const double keep = v->nkept > 0 ? fmin(v->keep / v->nkept, v->propagate / n) : 0;
    return (crn_revival_times){.propagate = v->propagate / n,
                               .update = v->update / n,
                               .keep = keep,
                               .get_analysis = v->get_analysis > 0 ? v->get_analysis : keep,
                               .get_background = v->get_background > 0 ? v->get_background : keep,
                               .repeat = v->propagate / n};
}

static crn_revival_mode mode_of(const crn_server *s)
{
    switch (s->study->keep) {
    case CRN_KEEP_ANALYSIS:
        return CRN_REVIVAL_ANALYSIS;
    case CRN_KEEP_BACKGROUND:
        return CRN_REVIVAL_BACKGROUND;
    default:
        return CRN_REVIVAL_BOTH;
    }
}

/* The model's cost of the death that happened: in region A until the analysis was safe, then in B.
 */
static double expected(const crn_revival *v, const crn_revival_times *t, crn_revival_mode mode)
{
    double cost;
    const double cycle = t->propagate + t->update, a = crn_revival_share_a(t, mode) * cycle;
    const bool in_a = v->elapsed < a;
    double alpha = in_a ? v->elapsed / fmax(a, 1e-9) : (v->elapsed - a) / fmax(cycle - a, 1e-9);
    if (crn_revival_cost(t, mode, in_a, fmin(fmax(alpha, 0), 1), &cost) < 0)
        return NAN;
    return cost;
}

static json_t *means(const crn_revival_times *t)
{
    static const struct {
        const char *name;
        crn_revival_mode mode;
    } rows[] = {{"both", CRN_REVIVAL_BOTH},
                {"analysis", CRN_REVIVAL_ANALYSIS},
                {"background", CRN_REVIVAL_BACKGROUND}};
    json_t *ret = json_object();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double mean;
        if (crn_revival_mean(t, rows[i].mode, &mean) == CAIRN_OK)
            (void)json_object_set_new(ret, rows[i].name, crn_study_real(mean));
    }
    return ret;
}

static const char *best_of(const crn_revival_times *t)
{
    crn_revival_mode best;
    if (crn_revival_best(t, &best) < 0)
        return "both";
    return best == CRN_REVIVAL_ANALYSIS     ? "analysis"
           : best == CRN_REVIVAL_BACKGROUND ? "background"
                                            : "both";
}

void crn_revival_report(crn_server *s)
{
    const crn_revival *v = &s->revival;
    if (v->ncycles == 0 || s->twin || s->study->keep == CRN_KEEP_NONE)
        return;
    const crn_revival_times t = times_of(v);
    const bool known = v->taken_up && v->cost > 0;
    const double model = known ? expected(v, &t, mode_of(s)) : NAN;
    crn_study_event(s->study, "revival", "{s:f,s:f,s:f,s:o,s:o,s:o,s:s}", "propagate", t.propagate,
                    "update", t.update, "keep", t.keep, "mean", means(&t), "measured",
                    crn_study_real(known ? v->cost : NAN), "model", crn_study_real(model), "best",
                    best_of(&t));
    printf("a cycle: propagation %.3g s, update %.3g s, keeping %.3g s\n", t.propagate, t.update,
           t.keep);
    if (known)
        printf("revival of this server: %.3g s measured, %.3g s by the model\n", v->cost, model);
    printf("by the model the death of the server costs least with keep = %s\n", best_of(&t));
}
