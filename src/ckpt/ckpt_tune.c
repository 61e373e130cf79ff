/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The planner at work in a session: what marks cost goes in, when to mark and at which level comes
 * out. Rank 0 measures and decides; the others learn what it decided in the calls that ask. So all
 * ranks do the same, and nothing needs to be agreed on but the decision.
 *
 * The planner knows levels by number, cheapest first; here those are the levels that the nodes can
 * give and the configuration uses. A failure that destroys what such a level survives counts for
 * the next one that outlives it.
 */
#include "ckpt/ckpt_session.h"

#include <math.h>

/* --- levels --------------------------------------------------------------------------------- */

uint64_t crn_tune_every(const cairn *c, crn_level level)
{
    return crn_config_count(c->held.cfg, crn_opt_every(level));
}

bool crn_tune_is_configured(const cairn *c, crn_level level)
{
    return crn_config_is_given(c->held.cfg, crn_opt_every(level));
}

/* Without node-local storage the own part is in the trail, and there is no other global copy. */
static void choose_levels(cairn *c)
{
    ckpt_ladder *ladder = &c->tune.ladder;
    ladder->level[ladder->n++] = CRN_LEVEL_LOCAL;
    for (crn_level l = CRN_LEVEL_RAISED; l < CRN_NLEVELS; l++) {
        const bool apart = c->held.local || l != CRN_LEVEL_GLOBAL;
        if (apart && c->usable & 1u << l && crn_tune_every(c, l) > 0)
            ladder->level[ladder->n++] = l;
        c->tune.sets_levels &= !crn_tune_is_configured(c, l);
    }
}

static unsigned configured_levels(const cairn *c)
{
    unsigned bits = 1u << CRN_LEVEL_LOCAL;
    for (crn_level l = CRN_LEVEL_RAISED; l < CRN_NLEVELS; l++) {
        const uint64_t every = crn_tune_every(c, l);
        if (every > 0 && (c->tune.nbefore + c->nmarks + 1) % every == 0)
            bits |= 1u << l & c->usable;
    }
    return bits;
}

cairn_status crn_tune_levels(cairn *c, unsigned *ret)
{
    unsigned bits = configured_levels(c);
    if (c->tune.sets_levels) {
        if (crn_comm_rank(c->held.comm) == 0)
            bits = 1u << CRN_LEVEL_LOCAL |
                   1u << c->tune.ladder.level[crn_plan_tuner_level(&c->tune.tuner)];
        CRN_TRY(crn_comm_bcast(c->held.comm, &bits, sizeof bits, 0));
    }
    *ret = bits;
    return CAIRN_OK;
}

/* --- setting up ----------------------------------------------------------------------------- */

static crn_plan_options options_of(const cairn *c)
{
    static const crn_plan_mode mode[] = {CRN_PLAN_AUTO, CRN_PLAN_FROZEN, CRN_PLAN_OFF};
    const ckpt_ladder *ladder = &c->tune.ladder;
    crn_plan_options opt = {
        .mode = mode[crn_config_word(c->held.cfg, CRN_OPT_PLAN_TUNE)],
        .nlevels = ladder->n,
        .trust = CKPT_TRUST,
        .limits = {.interval_min = crn_config_seconds(c->held.cfg, CRN_OPT_PLAN_INTERVAL_MIN),
                   .interval_max = crn_config_seconds(c->held.cfg, CRN_OPT_PLAN_INTERVAL_MAX),
                   .ratio_max = (unsigned)crn_config_count(c->held.cfg, CRN_OPT_PLAN_RATIO_MAX)}};
    for (crn_level class = CRN_LEVEL_LOCAL; class < CRN_NLEVELS; class ++)
        opt.rate[crn_ladder_needed(ladder, class)] +=
            1 / crn_config_seconds(c->held.cfg, crn_opt_mtbf((crn_level) class));
    return opt;
}

/* Go on where earlier legs were, knowing what they had measured. A leg that was killed just now is
 * counted when this one has come back and knows what was lost. */
static cairn_status learn_from(cairn *c, const ckpt_history *h, crn_plan_options *opt)
{
    ckpt_tune *t = &c->tune;
    unsigned nfailures[CRN_PLAN_LEVELS] = {0};
    CRN_FAIL_IF(h->failed, CAIRN_ENOMEM, "no memory for the log of the run");
    (void)crn_history_schedule(h, &t->ladder, &opt->start);
    CRN_TRY(crn_plan_tuner_init(&t->tuner, opt));
    CRN_TRY(crn_history_teach(h, &t->ladder, &t->tuner));
    t->after_failure = h->leg.n > 0 && !h->leg.at[h->leg.n - 1].closed;
    t->nbefore = h->mark.n;
    const double seconds = crn_history_observe(h, &t->ladder, nfailures);
    return crn_plan_tuner_observe(&t->tuner, seconds, nfailures);
}

/* Before this leg's own "open" is in the log. */
static cairn_status init_tuner(cairn *c)
{
    crn_plan_options opt = options_of(c);
    ckpt_history h = {0};
    if (crn_comm_rank(c->held.comm) != 0)
        return crn_plan_tuner_init(&c->tune.tuner, &opt);
    if (crn_run_events(c->held.run, crn_history_take, &h) <
        0) { /* marks matter more than their log */
        crn_log_write(&c->held.log, CRN_LOG_WARN, CRN_LOG_ROOT,
                      "what earlier legs learnt is lost: %s", crn_err_peek()->text);
        crn_history_done(&h);
        h = (ckpt_history){0};
    }
    cairn_status rc = learn_from(c, &h, &opt);
    crn_history_done(&h);
    return rc;
}

cairn_status crn_tune_init(cairn *c)
{
    c->tune = (ckpt_tune){.leg_ns = crn_now_ns(),
                          .sets_levels = crn_config_word(c->held.cfg, CRN_OPT_PLAN_TUNE) == 0};
    choose_levels(c);
    CRN_TRY(crn_comm_agree(c->held.comm, init_tuner(c)));
    return crn_comm_bcast(c->held.comm, &c->tune.nbefore, sizeof c->tune.nbefore, 0);
}

/* --- measuring ------------------------------------------------------------------------------ */

static json_t *ratios(const ckpt_tune *t, const cairn_plan_schedule *s)
{
    json_t *every = json_object();
    for (size_t i = 0; i < t->ladder.n; i++)
        json_object_set_new(every, crn_level_name(t->ladder.level[i]),
                            json_integer((json_int_t)crn_plan_period(s, i)));
    return every;
}

/* What the planner believes, so that 'cairn plan --trail' can go on from there. */
static json_t *beliefs(const ckpt_tune *t, const crn_plan_model *m)
{
    json_t *levels = json_array();
    for (size_t i = 0; i < m->nlevels; i++) {
        const cairn_plan_level *l = &m->level[i];
        json_array_append_new(levels, crn_event_belief_encode(&(crn_event_belief){
                                          .level = crn_level_name(t->ladder.level[i]),
                                          .rate = l->rate,
                                          .restart = l->restart,
                                          .fixed = l->fixed,
                                          .bandwidth = l->bandwidth,
                                          .background = l->background}));
    }
    return levels;
}

static void tell(cairn *c)
{
    ckpt_tune *t = &c->tune;
    const crn_plan_model m = crn_plan_tuner_model(&t->tuner);
    t->told = (ckpt_tuned){.schedule = t->tuner.schedule,
                           .better = t->tuner.better,
                           .efficiency = t->tuner.prediction.efficiency,
                           .nretuned = t->tuner.nretuned,
                           .ntold = t->told.ntold + 1};
    crn_holding_event(&c->held,
                      &(crn_event){.kind = CRN_EVENT_TUNED,
                                   .tuned = {.interval = t->tuner.schedule.interval,
                                             .every = ratios(t, &t->tuner.schedule),
                                             .efficiency = t->tuner.prediction.efficiency,
                                             .better_interval = t->tuner.better.interval,
                                             .better_every = ratios(t, &t->tuner.better),
                                             .changed = json_pack("[f,f,f]", m.changed.floor,
                                                                  m.changed.span, m.changed.theta),
                                             .levels = beliefs(t, &m)}});
}

static double seconds(uint64_t from, uint64_t to)
{
    return to > from ? (double)(to - from) * 1e-9 : 0;
}

/* The log need not have every thought of the planner, which thinks after nearly every mark: of a
 * long run they would be half of it. */
enum { TOLD_FREELY = 16, TOLD_APART = 16 };
static const double NOTICEABLE = 0.1;

static bool differ(double a, double b)
{
    return fabs(a - b) > NOTICEABLE * fmax(fabs(a), fabs(b));
}

static bool schedules_differ(const cairn_plan_schedule *a, const cairn_plan_schedule *b,
                             size_t nlevels)
{
    return differ(a->interval, b->interval) ||
           memcmp(a->ratio, b->ratio, nlevels * sizeof *a->ratio) != 0;
}

/* Is what the planner says now news? In a leg, the first always is; from the TOLD_FREELY-th on, one
 * of TOLD_APART thoughts can be. */
static bool is_news(const ckpt_tune *t)
{
    const ckpt_tuned *told = &t->told;
    const uint64_t apart = told->ntold < TOLD_FREELY ? 1 : TOLD_APART;
    if (told->ntold == 0)
        return true;
    return t->tuner.nretuned - told->nretuned >= apart &&
           (schedules_differ(&t->tuner.schedule, &told->schedule, t->ladder.n) ||
            schedules_differ(&t->tuner.better, &told->better, t->ladder.n) ||
            fabs(t->tuner.prediction.efficiency - told->efficiency) > NOTICEABLE / 10);
}

/* The planner has decided anew, or could not. */
static void report(cairn *c, cairn_status rc, uint64_t nretuned_before)
{
    if (rc < 0)
        crn_log_write(&c->held.log, CRN_LOG_WARN, CRN_LOG_ROOT, "%s", crn_err_peek()->text);
    else if (c->tune.tuner.nretuned > nretuned_before && is_news(&c->tune))
        tell(c);
}

void crn_tune_conclude(cairn *c)
{
    const ckpt_tune *t = &c->tune;
    if (crn_comm_rank(c->held.comm) == 0 && t->tuner.nretuned > t->told.nretuned)
        tell(c);
}

void crn_tune_mark(cairn *c)
{
    ckpt_tune *t = &c->tune;
    const ckpt_job *j = &c->leg.job;
    size_t n = t->ladder.n;
    while (n > 0 && j->level_ns[t->ladder.level[n - 1]] == 0)
        n--;
    if (n == 0 || crn_comm_rank(c->held.comm) != 0)
        return; /* it came to nothing */
    const crn_level level = t->ladder.level[n - 1];
    const uint64_t before = t->tuner.nretuned;
    crn_plan_measure measured = {
        .level = n - 1,
        .nbytes = (double)(level == CRN_LEVEL_LOCAL ? j->written : j->level_bytes[level]),
        .total = (double)j->nbytes,
        .held = seconds(0, j->held_ns),
        .background = seconds(j->begin_ns + j->held_ns, j->level_ns[level])};
    crn_pace_mark(&t->pace, seconds(t->leg_ns, j->begin_ns), &measured);
    report(c, crn_plan_tuner_mark(&t->tuner, &measured), before);
}

/* What the leg before it had measured, and that it failed, is known now: a setting under which it
 * died before it could learn must not be tried again and again. */
static cairn_status go_on(ckpt_tune *t, size_t n, double took)
{
    unsigned nfailures[CRN_PLAN_LEVELS] = {0};
    nfailures[n] = t->after_failure;
    t->after_failure = false;
    t->leg_ns = crn_now_ns();
    CRN_TRY(crn_plan_tuner_restart(&t->tuner, n, took));
    CRN_TRY(crn_plan_tuner_observe(&t->tuner, 0, nfailures));
    return crn_plan_tuner_retune(&t->tuner);
}

void crn_tune_restart(cairn *c, const uint64_t blocks[CRN_NLEVELS], double took)
{
    ckpt_tune *t = &c->tune;
    const uint64_t before = t->tuner.nretuned;
    crn_level level = CRN_LEVEL_LOCAL;
    for (crn_level l = CRN_LEVEL_RAISED; l < CRN_NLEVELS; l++)
        if (blocks[l] > 0)
            level = l;
    if (crn_comm_rank(c->held.comm) == 0)
        report(c, go_on(t, crn_ladder_needed(&t->ladder, level), took), before);
}

/* --- deciding ------------------------------------------------------------------------------- */

double crn_tune_interval(const cairn *c)
{
    const double fixed = crn_config_seconds(c->held.cfg, CRN_OPT_MARK_INTERVAL);
    double young;
    if (fixed > 0)
        return fixed;
    if (c->nmarks == 0 && c->leg.resumed_from == CRN_NO_VERSION)
        return 0; /* the first mark tells what marks cost */
    if (c->tune.tuner.opt.mode != CRN_PLAN_OFF)
        return c->tune.tuner.schedule.interval;
    const double cost = CRN_MAX(c->cost_s, 1e-6);
    if (crn_plan_young(cost, crn_config_seconds(c->held.cfg, CRN_OPT_PLAN_MTBF), &young) < 0)
        return 10 * cost;
    return young;
}
