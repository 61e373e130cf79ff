/* SPDX-License-Identifier: BSD-3-Clause
 *
 * <cairn/planner.h>: what became of a run, from its log, in the planner's terms.
 */
#include <cairn/planner.h>

#include <math.h>

#include "ckpt/ckpt_history.h"

/* --- the model ------------------------------------------------------------------------------ */

static bool find_level(const char *name, crn_level *ret)
{
    for (crn_level l = CRN_LEVEL_LOCAL; name && l < CRN_NLEVELS; l++)
        if (strcmp(name, crn_level_name(l)) == 0) {
            *ret = l;
            return true;
        }
    return false;
}

/* What the run's planner believed last. */
static cairn_status read_tuned(const crn_event_tuned *tuned, ckpt_ladder *ladder,
                               cairn_plan_input *in)
{
    in->changed_at_once = json_number_value(json_array_get(tuned->changed, 0));
    in->changed_in_time = json_number_value(json_array_get(tuned->changed, 1));
    in->change_pace = json_number_value(json_array_get(tuned->changed, 2));
    in->nlevels = json_array_size(tuned->levels);
    CRN_FAIL_IF(in->nlevels < 1 || in->nlevels > CAIRN_PLAN_LEVELS, CAIRN_ECORRUPT,
                "an event 'tuned' has %zu levels", in->nlevels);
    for (size_t i = 0; i < in->nlevels; i++) {
        const crn_event_belief b = crn_event_belief_decode(json_array_get(tuned->levels, i));
        CRN_FAIL_IF(!find_level(b.level, &ladder->level[ladder->n++]), CAIRN_ECORRUPT,
                    "an event 'tuned' has a level '%s'", b.level ? b.level : "");
        in->level[i] = (cairn_plan_level){.rate = b.rate,
                                          .restart = b.restart,
                                          .fixed = b.fixed,
                                          .bandwidth = b.bandwidth,
                                          .background = b.background};
    }
    return CAIRN_OK;
}

/* The levels that marks got to. */
static ckpt_ladder levels_of(const ckpt_history *h)
{
    unsigned seen = 1u << CRN_LEVEL_LOCAL;
    ckpt_ladder ladder = {0};
    for (size_t i = 0; i < h->mark.n; i++)
        seen |= 1u << h->mark.at[i].level;
    for (crn_level l = CRN_LEVEL_LOCAL; l < CRN_NLEVELS; l++)
        if (seen & 1u << l)
            ladder.level[ladder.n++] = l;
    return ladder;
}

/* Without a planner that said anything: what it would have measured, with the rates that it would
 * have expected by default. */
static cairn_status measure(const ckpt_history *h, const ckpt_ladder *ladder, cairn_plan_input *in)
{
    crn_plan_options opt = {.mode = CRN_PLAN_FROZEN,
                            .nlevels = ladder->n,
                            .trust = CKPT_TRUST,
                            .limits = crn_plan_limits_default()};
    unsigned nfailures[CRN_PLAN_LEVELS] = {0};
    crn_plan_tuner t;
    for (crn_level class = CRN_LEVEL_LOCAL; class < CRN_NLEVELS; class ++) {
        double mtbf;
        CRN_TRY(crn_parse_seconds(crn_opt_row(crn_opt_mtbf((crn_level) class))->def, &mtbf));
        opt.rate[crn_ladder_needed(ladder, class)] += 1 / mtbf;
    }
    CRN_TRY(crn_plan_tuner_init(&t, &opt));
    CRN_TRY(crn_history_teach(h, ladder, &t));
    CRN_FAIL_IF(t.nsamples == 0, CAIRN_ENOTFOUND,
                "%zu mark%s of a run that was not tuned: two of one level in one leg are needed to "
                "know what marks cost and how fast data changes",
                h->mark.n, h->mark.n == 1 ? "" : "s");
    const double seconds = crn_history_observe(h, ladder, nfailures);
    CRN_TRY(crn_plan_tuner_observe(&t, seconds, nfailures));
    const crn_plan_model m = crn_plan_tuner_model(&t);
    in->changed_at_once = m.changed.floor;
    in->changed_in_time = m.changed.span;
    in->change_pace = m.changed.theta;
    in->nlevels = m.nlevels;
    for (size_t l = 0; l < m.nlevels; l++)
        in->level[l] = (cairn_plan_level){.rate = m.level[l].rate,
                                          .restart = m.level[l].restart,
                                          .fixed = m.level[l].fixed,
                                          .bandwidth = m.level[l].bandwidth,
                                          .background = m.level[l].background};
    return CAIRN_OK;
}

/* --- what was done -------------------------------------------------------------------------- */

/* When the state was captured that the next leg went on with, as far as the log tells; ready: all
 * that it did is lost. */
static double kept_until(const ckpt_history *h, size_t leg)
{
    const ckpt_past_leg *l = &h->leg.at[leg], *next = leg + 1 < h->leg.n ? l + 1 : NULL;
    double kept = l->ready;
    for (size_t i = l->first; i < crn_history_end(h, leg); i++) {
        const ckpt_past_mark *m = &h->mark.at[i];
        if (!next || (next->resumed && m->version <= next->version))
            kept = m->begun + m->held;
    }
    return fmin(kept, l->end);
}

static double held_between(const ckpt_history *h, size_t leg, double from, double to)
{
    double held = 0;
    for (size_t i = h->leg.at[leg].first; i < crn_history_end(h, leg); i++)
        if (h->mark.at[i].begun >= from && h->mark.at[i].begun < to)
            held += h->mark.at[i].held;
    return held;
}

/* Walks the legs in order of time. */
typedef struct walk {
    const ckpt_history *h;
    const ckpt_ladder *ladder;
    cairn_plan_past *past;
    double coming_back[CAIRN_PLAN_LEVELS]; /* seconds, after failures that needed a level */
} walk;

static void fail_leg(walk *w, size_t leg, crn_level needed)
{
    const ckpt_past_leg *l = &w->h->leg.at[leg];
    cairn_plan_outcome *o = &w->past->outcome;
    const size_t n = crn_ladder_needed(w->ladder, needed);
    const double kept = kept_until(w->h, leg);
    const double lost = fmax(l->end - kept - held_between(w->h, leg, kept, l->end), 0);
    w->past->failures[w->past->nfailures++] = (cairn_plan_failure){.at = o->wall, .level = n};
    o->nfailures[n]++;
    o->lost += lost;
    o->work -= lost;
    if (leg + 1 < w->h->leg.n) {
        const double back = fmax(l[1].ready - l->end, 0);
        o->restarting += back;
        o->wall += back;
        w->coming_back[n] += back;
    }
}

static void walk_leg(walk *w, size_t leg)
{
    const ckpt_past_leg *l = &w->h->leg.at[leg];
    cairn_plan_outcome *o = &w->past->outcome;
    const double wall = fmax(l->end - l->ready, 0), held = held_between(w->h, leg, 0, l->end);
    crn_level needed;
    o->wall += wall;
    o->held += fmin(held, wall);
    o->work += wall - fmin(held, wall);
    if (crn_history_failed(w->h, leg, &needed))
        fail_leg(w, leg, needed);
}

/* The schedule that makes as many marks of each level; one without marks is the rarest possible. */
static cairn_plan_schedule mean_schedule(const cairn_plan_past *past, double computed)
{
    cairn_plan_schedule s = {.struct_bytes = sizeof s};
    uint64_t at_least[CAIRN_PLAN_LEVELS] = {0};
    double period = 1;
    for (size_t l = 0; l < past->in.nlevels; l++)
        for (size_t k = l; k < past->in.nlevels; k++)
            at_least[l] += past->outcome.nmarks[k];
    s.interval = computed / (double)CRN_MAX(at_least[0], 1u);
    for (size_t l = 0; l < past->in.nlevels; l++) {
        const double of = at_least[l] > 0 ? (double)at_least[l] : 0.5;
        s.ratio[l] = l == 0 ? 1
                            : (unsigned)fmin(fmax(round((double)at_least[0] / of / period), 1),
                                             CRN_PLAN_RATIO_MAX);
        period *= s.ratio[l];
    }
    return s;
}

static cairn_status walk_legs(const ckpt_history *h, const ckpt_ladder *ladder,
                              cairn_plan_past *past)
{
    walk w = {.h = h, .ladder = ladder, .past = past};
    CRN_TRY(crn_alloc(&past->failures, h->leg.n));
    past->nlegs = h->leg.n;
    past->outcome.struct_bytes = sizeof past->outcome;
    for (size_t i = 0; i < h->leg.n; i++)
        walk_leg(&w, i);
    for (size_t i = 0; i < h->mark.n; i++)
        past->outcome.nmarks[crn_ladder_reached(ladder, h->mark.at[i].level)]++;
    for (size_t l = 0; l < ladder->n; l++)
        if (w.coming_back[l] > 0)
            past->in.level[l].restart = w.coming_back[l] / (double)past->outcome.nfailures[l];
    past->done = mean_schedule(past, past->outcome.work + past->outcome.lost);
    if (past->outcome.wall > 0)
        past->done.efficiency = past->outcome.work / past->outcome.wall;
    return CAIRN_OK;
}

/* --- the calls ------------------------------------------------------------------------------ */

static cairn_status recall(const ckpt_history *h, cairn_plan_past *past)
{
    ckpt_ladder ladder = {0};
    past->in.struct_bytes = sizeof past->in;
    past->tuned = h->tuned.kind == CRN_EVENT_TUNED;
    if (past->tuned) {
        CRN_TRY(read_tuned(&h->tuned.tuned, &ladder, &past->in));
    } else {
        ladder = levels_of(h);
        CRN_TRY(measure(h, &ladder, &past->in));
    }
    for (size_t l = 0; l < ladder.n; l++)
        past->name[l] = crn_level_name(ladder.level[l]);
    return walk_legs(h, &ladder, past);
}

int cairn_plan_recall(cairn_trail *trail, size_t run, cairn_plan_past *ret)
{
    ckpt_history h = {0};
    cairn_plan_past past = {0};
    CRN_TRY(crn_struct_check(ret));
    cairn_status rc = (cairn_status)cairn_trail_events(trail, run, crn_history_take, &h);
    if (h.failed)
        rc = crn_fail(CAIRN_ENOMEM, "no memory for the log of the run");
    if (rc == CAIRN_OK)
        rc = recall(&h, &past);
    crn_history_done(&h);
    return rc == CAIRN_OK ? crn_struct_out(&past, ret) : rc;
}

void cairn_plan_forget(cairn_plan_past *past)
{
    free(past->failures);
    past->failures = NULL;
    past->nfailures = 0;
}
