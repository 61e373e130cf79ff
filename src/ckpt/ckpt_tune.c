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

#include <jansson.h>

/* The configured rates count like so many failures seen: a handful of real ones outweighs them. */
static const double TRUST = 2;

static const crn_opt_id mtbf_option[CRN_NLEVELS] = {CRN_OPT_PLAN_MTBF, CRN_OPT_PLAN_MTBF_NODE,
                                                    CRN_OPT_PLAN_MTBF_GROUP, CRN_OPT_PLAN_MTBF_ALL};
static const crn_opt_id every_option[CRN_NLEVELS] = {
    [CRN_LEVEL_PARTNER] = CRN_OPT_LEVEL_PARTNER,
    [CRN_LEVEL_ENCODED] = CRN_OPT_LEVEL_ENCODED,
    [CRN_LEVEL_GLOBAL] = CRN_OPT_LEVEL_GLOBAL,
};

/* --- levels --------------------------------------------------------------------------------- */

uint64_t crn_tune_every(const cairn *c, crn_level level)
{
    return crn_config_count(c->cfg, every_option[level]);
}

bool crn_tune_is_configured(const cairn *c, crn_level level)
{
    const crn_opt_id id = every_option[level];
    return strcmp(crn_config_text(c->cfg, id), crn_opt_row(id)->def) != 0;
}

/* Without node-local storage the own part is in the trail, and there is no other global copy. */
static void choose_levels(cairn *c)
{
    ckpt_tune *t = &c->tune;
    t->level[t->nlevels++] = CRN_LEVEL_LOCAL;
    for (crn_level l = CRN_LEVEL_PARTNER; l < CRN_NLEVELS; l++) {
        const bool apart = c->local || l != CRN_LEVEL_GLOBAL;
        if (apart && c->usable & 1u << l && crn_tune_every(c, l) > 0)
            t->level[t->nlevels++] = l;
        t->sets_levels &= !crn_tune_is_configured(c, l);
    }
}

/* The planner's number of the cheapest level that survives what destroys all below level. */
static size_t number_of(const ckpt_tune *t, crn_level level)
{
    size_t n = 0;
    while (n + 1 < t->nlevels && t->level[n] < level)
        n++;
    return n;
}

static unsigned configured_levels(const cairn *c)
{
    unsigned bits = 1u << CRN_LEVEL_LOCAL;
    for (crn_level l = CRN_LEVEL_PARTNER; l < CRN_NLEVELS; l++) {
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
        if (crn_comm_rank(c->comm) == 0)
            bits =
                1u << CRN_LEVEL_LOCAL | 1u << c->tune.level[crn_plan_tuner_level(&c->tune.tuner)];
        CRN_TRY(crn_comm_bcast(c->comm, &bits, sizeof bits, 0));
    }
    *ret = bits;
    return CAIRN_OK;
}

/* --- what failed before ----------------------------------------------------------------------- */

/* Legs of the run so far, as its events tell. */
typedef struct history {
    const ckpt_tune *tune;
    double begun, last; /* of the leg at hand; 0: none */
    bool failed;        /* a leg was killed, and nobody has come back from that yet */
    uint64_t nmarks;
    double seconds;
    unsigned nfailures[CRN_PLAN_LEVELS];
} history;

static void end_leg(history *h)
{
    if (h->begun > 0 && h->last > h->begun)
        h->seconds += h->last - h->begun;
    h->begun = 0;
}

/* A failure destroyed what lies below the safest level that blocks had to come from. */
static void count_failure(history *h, json_t *from)
{
    crn_level level = CRN_LEVEL_LOCAL;
    for (crn_level l = CRN_LEVEL_PARTNER; l < CRN_NLEVELS; l++)
        if (json_integer_value(
                json_object_get(json_object_get(from, crn_level_name(l)), "blocks")) > 0)
            level = l;
    h->nfailures[number_of(h->tune, level)]++;
    h->failed = false;
}

static int on_event(void *arg, const char *line)
{
    history *h = arg;
    json_t *event = json_loads(line, 0, NULL);
    const char *kind = json_string_value(json_object_get(event, "event"));
    if (kind && strcmp(kind, "open") == 0) {
        h->last = CRN_MAX(h->last, json_number_value(json_object_get(event, "seen")));
        if (h->failed) /* it never came back: what it lost is not known */
            count_failure(h, NULL);
        h->failed = h->begun > 0;
        end_leg(h);
        h->begun = json_number_value(json_object_get(event, "time"));
    } else if (kind && strcmp(kind, "resume") == 0 && h->failed) {
        count_failure(h, json_object_get(event, "from"));
    } else if (kind && strcmp(kind, "close") == 0) {
        h->last = json_number_value(json_object_get(event, "time"));
        end_leg(h);
    }
    h->nmarks += kind && strcmp(kind, "mark") == 0;
    if (h->begun > 0)
        h->last = json_number_value(json_object_get(event, "time"));
    json_decref(event);
    return 0;
}

/* Before this leg's own "open" is in the log. A leg that was killed just now is counted when this
 * one has come back and knows what was lost. */
static cairn_status learn_from_history(cairn *c)
{
    history h = {.tune = &c->tune};
    CRN_TRY(crn_run_events(c->run, on_event, &h));
    if (h.failed)
        count_failure(&h, NULL);
    c->tune.after_failure = h.begun > 0;
    c->tune.nbefore = h.nmarks;
    end_leg(&h);
    return crn_plan_tuner_observe(&c->tune.tuner, h.seconds, h.nfailures);
}

/* --- setting up ----------------------------------------------------------------------------- */

static crn_plan_options options_of(const cairn *c)
{
    static const crn_plan_mode mode[] = {CRN_PLAN_AUTO, CRN_PLAN_FROZEN, CRN_PLAN_OFF};
    const ckpt_tune *t = &c->tune;
    crn_plan_options opt = {
        .mode = mode[crn_config_word(c->cfg, CRN_OPT_PLAN_TUNE)],
        .nlevels = t->nlevels,
        .trust = TRUST,
        .limits = {.interval_min = crn_config_seconds(c->cfg, CRN_OPT_PLAN_INTERVAL_MIN),
                   .interval_max = crn_config_seconds(c->cfg, CRN_OPT_PLAN_INTERVAL_MAX),
                   .ratio_max = (unsigned)crn_config_count(c->cfg, CRN_OPT_PLAN_RATIO_MAX)}};
    for (crn_level class = CRN_LEVEL_LOCAL; class < CRN_NLEVELS; class ++)
        opt.rate[number_of(t, class)] += 1 / crn_config_seconds(c->cfg, mtbf_option[class]);
    return opt;
}

cairn_status crn_tune_init(cairn *c)
{
    ckpt_tune *t = &c->tune;
    *t = (ckpt_tune){.leg_ns = crn_now_ns(),
                     .sets_levels = crn_config_word(c->cfg, CRN_OPT_PLAN_TUNE) == 0};
    choose_levels(c);
    const crn_plan_options opt = options_of(c);
    CRN_TRY(crn_comm_agree(c->comm, crn_plan_tuner_init(&t->tuner, &opt)));
    cairn_status rc = crn_comm_rank(c->comm) == 0 ? learn_from_history(c) : CAIRN_OK;
    CRN_TRY(crn_comm_agree(c->comm, rc));
    return crn_comm_bcast(c->comm, &t->nbefore, sizeof t->nbefore, 0);
}

/* --- measuring ------------------------------------------------------------------------------ */

static json_t *ratios(const ckpt_tune *t, const crn_plan_schedule *s)
{
    json_t *every = json_object();
    for (size_t i = 0; i < t->nlevels; i++)
        json_object_set_new(every, crn_level_name(t->level[i]),
                            json_integer((json_int_t)crn_plan_period(s, i)));
    return every;
}

/* What the planner believes, so that 'cairn plan --trail' can go on from there. */
static json_t *beliefs(const ckpt_tune *t, const crn_plan_model *m)
{
    json_t *levels = json_array();
    for (size_t i = 0; i < m->nlevels; i++) {
        const crn_plan_level *l = &m->level[i];
        json_array_append_new(levels,
                              json_pack("{s:s, s:f, s:f, s:f, s:f, s:f}", "level",
                                        crn_level_name(t->level[i]), "rate", l->rate, "restart",
                                        l->restart, "fixed", l->fixed, "bandwidth", l->bandwidth,
                                        "background", l->background));
    }
    return levels;
}

static void tell(cairn *c)
{
    const ckpt_tune *t = &c->tune;
    const crn_plan_model m = crn_plan_tuner_model(&t->tuner);
    crn_ckpt_event(c, "{s:s, s:f, s:o, s:f, s:f, s:o, s:[f,f,f], s:o}", "event", "tuned",
                   "interval", t->tuner.schedule.interval, "every", ratios(t, &t->tuner.schedule),
                   "efficiency", t->tuner.prediction.efficiency, "better_interval",
                   t->tuner.better.interval, "better_every", ratios(t, &t->tuner.better), "changed",
                   m.changed.floor, m.changed.span, m.changed.theta, "levels", beliefs(t, &m));
}

static double seconds(uint64_t from, uint64_t to)
{
    return to > from ? (double)(to - from) * 1e-9 : 0;
}

void crn_tune_mark(cairn *c)
{
    ckpt_tune *t = &c->tune;
    const ckpt_job *j = &c->job;
    size_t n = t->nlevels;
    while (n > 0 && j->level_ns[t->level[n - 1]] == 0)
        n--;
    if (n == 0 || crn_comm_rank(c->comm) != 0)
        return; /* it came to nothing */
    const crn_level level = t->level[n - 1];
    const double computed = seconds(t->leg_ns, j->begin_ns) - t->held;
    const crn_plan_measure measured = {
        .level = n - 1,
        .full = t->nmarks[n - 1] == 0,
        .elapsed = CRN_MAX(computed - t->computed[n - 1], 0),
        .nbytes = (double)(level == CRN_LEVEL_LOCAL ? j->written : j->level_bytes[level]),
        .total = (double)j->nbytes,
        .held = seconds(0, j->held_ns),
        .background = seconds(j->begin_ns + j->held_ns, j->level_ns[level])};
    t->held += measured.held;
    for (size_t l = 0; l < n; l++) {
        t->computed[l] = computed;
        t->nmarks[l]++;
    }
    const uint64_t before = t->tuner.nretuned;
    if (crn_plan_tuner_mark(&t->tuner, &measured) < 0)
        crn_log_write(&c->log, CRN_LOG_WARN, CRN_LOG_ROOT, "%s", crn_err_peek()->text);
    else if (t->tuner.nretuned > before)
        tell(c);
}

void crn_tune_restart(cairn *c, const uint64_t blocks[CRN_NLEVELS], double took)
{
    ckpt_tune *t = &c->tune;
    unsigned nfailures[CRN_PLAN_LEVELS] = {0};
    crn_level level = CRN_LEVEL_LOCAL;
    for (crn_level l = CRN_LEVEL_PARTNER; l < CRN_NLEVELS; l++)
        if (blocks[l] > 0)
            level = l;
    const size_t n = number_of(t, level);
    nfailures[n] = t->after_failure;
    t->after_failure = false;
    if (crn_plan_tuner_restart(&t->tuner, n, took) < 0 ||
        crn_plan_tuner_observe(&t->tuner, 0, nfailures) < 0)
        crn_log_write(&c->log, CRN_LOG_WARN, CRN_LOG_ROOT, "%s", crn_err_peek()->text);
}

/* --- deciding ------------------------------------------------------------------------------- */

double crn_tune_interval(const cairn *c)
{
    const double fixed = crn_config_seconds(c->cfg, CRN_OPT_MARK_INTERVAL);
    double young;
    if (fixed > 0)
        return fixed;
    if (c->nmarks == 0 && c->resumed_from == CRN_NO_VERSION)
        return 0; /* the first mark tells what marks cost */
    if (c->tune.tuner.opt.mode != CRN_PLAN_OFF)
        return c->tune.tuner.schedule.interval;
    const double cost = CRN_MAX(c->cost_s, 1e-6);
    if (crn_plan_young(cost, crn_config_seconds(c->cfg, CRN_OPT_PLAN_MTBF), &young) < 0)
        return 10 * cost;
    return young;
}
