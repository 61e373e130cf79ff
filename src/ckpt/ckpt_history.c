/* SPDX-License-Identifier: BSD-3-Clause
 *
 * From the lines of a run's log (docs/format/events.md) to legs, marks and what the tuner would
 * have made of them.
 */
#include "ckpt/ckpt_history.h"

const crn_opt_id crn_mtbf_option[CRN_NLEVELS] = {CRN_OPT_PLAN_MTBF, CRN_OPT_PLAN_MTBF_NODE,
                                                 CRN_OPT_PLAN_MTBF_GROUP, CRN_OPT_PLAN_MTBF_ALL};

size_t crn_ladder_needed(const ckpt_ladder *ladder, crn_level level)
{
    size_t n = 0;
    while (n + 1 < ladder->n && ladder->level[n] < level)
        n++;
    return n;
}

size_t crn_ladder_reached(const ckpt_ladder *ladder, crn_level level)
{
    size_t n = 0;
    while (n + 1 < ladder->n && ladder->level[n + 1] <= level)
        n++;
    return n;
}

void crn_pace_mark(ckpt_pace *pace, double since_leg, crn_plan_measure *measured)
{
    const size_t n = measured->level;
    const double computed = CRN_MAX(since_leg - pace->held, 0.0);
    measured->full = pace->nmarks[n] == 0;
    measured->elapsed = CRN_MAX(computed - pace->computed[n], 0.0);
    pace->held += measured->held;
    for (size_t l = 0; l <= n; l++) {
        pace->computed[l] = computed;
        pace->nmarks[l]++;
    }
}

/* --- reading -------------------------------------------------------------------------------- */

/* A log may have been damaged: what cannot be, of times and of sizes, is taken for nothing. */
static double number(json_t *event, const char *name)
{
    const double x = json_number_value(json_object_get(event, name));
    return x >= -1e18 && x <= 1e18 ? x : 0;
}

static double natural(json_t *event, const char *name)
{
    return CRN_MAX(number(event, name), 0.0);
}

static uint64_t version_of(json_t *event)
{
    return (uint64_t)json_integer_value(json_object_get(event, "version"));
}

static ckpt_past_leg *last_leg(ckpt_history *h)
{
    return h->leg.n > 0 ? &h->leg.at[h->leg.n - 1] : NULL;
}

/* Whoever comes after a leg tells when that gave its last sign of life; the next one sees that of
 * the one before it, who took the lock. */
static void saw_last(ckpt_past_leg *leg, json_t *event)
{
    if (!leg || leg->closed || leg->told)
        return;
    leg->told = true;
    leg->end = CRN_MAX(leg->end, number(event, "seen"));
}

static cairn_status on_open(ckpt_history *h, json_t *event)
{
    const double now = number(event, "time");
    saw_last(last_leg(h), event);
    return crn_vec_push(
        &h->leg, (ckpt_past_leg){.first = h->mark.n, .opened = now, .ready = now, .end = now});
}

static cairn_status on_launch(ckpt_history *h, json_t *event)
{
    saw_last(last_leg(h), event);
    return CAIRN_OK;
}

static cairn_status on_ended(ckpt_history *h, json_t *event)
{
    saw_last(last_leg(h), event);
    if (h->leg.n > 0)
        last_leg(h)->ended = true;
    return CAIRN_OK;
}

static cairn_status on_resume(ckpt_history *h, json_t *event)
{
    ckpt_past_leg *leg = last_leg(h);
    json_t *from = json_object_get(event, "from");
    if (!leg)
        return CAIRN_OK;
    leg->resumed = true;
    leg->version = version_of(event);
    leg->ready = leg->end = number(event, "time");
    for (crn_level l = CRN_LEVEL_PARTNER; l < CRN_NLEVELS; l++)
        if (number(json_object_get(from, crn_level_name(l)), "blocks") > 0)
            leg->from = l;
    return CAIRN_OK;
}

static cairn_status on_mark(ckpt_history *h, json_t *event)
{
    const double now = number(event, "time");
    if (h->leg.n == 0)
        return CAIRN_OK;
    last_leg(h)->end = now;
    return crn_vec_push(&h->mark, (ckpt_past_mark){.leg = h->leg.n - 1,
                                                   .version = version_of(event),
                                                   .begun = now - natural(event, "stored"),
                                                   .held = natural(event, "held"),
                                                   .safe = natural(event, "stored"),
                                                   .nbytes = natural(event, "written"),
                                                   .total = natural(event, "nbytes")});
}

static cairn_status on_raised(ckpt_history *h, json_t *event)
{
    ckpt_past_mark *mark = h->mark.n > 0 ? &h->mark.at[h->mark.n - 1] : NULL;
    const char *name = json_string_value(json_object_get(event, "level"));
    if (!mark || !name || mark->version != version_of(event))
        return CAIRN_OK;
    mark->held += natural(event, "held");
    for (crn_level l = CRN_LEVEL_PARTNER; l < CRN_NLEVELS; l++)
        if (strcmp(name, crn_level_name(l)) == 0 && l > mark->level) {
            mark->level = l;
            mark->safe = number(event, "time") - mark->begun;
            mark->nbytes = natural(event, "stored");
        }
    last_leg(h)->end = number(event, "time");
    return CAIRN_OK;
}

static cairn_status on_close(ckpt_history *h, json_t *event)
{
    if (h->leg.n > 0) {
        last_leg(h)->closed = true;
        last_leg(h)->end = number(event, "time");
    }
    return CAIRN_OK;
}

static cairn_status on_tuned(ckpt_history *h, json_t *event)
{
    json_decref(h->tuned);
    h->tuned = json_incref(event);
    if (h->leg.n > 0)
        last_leg(h)->end = number(event, "time");
    return CAIRN_OK;
}

/* What each mark did with each variable is most of a long log, and says nothing here: such lines,
 * as they are written, are not worth to be parsed. */
static bool is_in_vain(const char *line)
{
    static const char changes[] = "{\"event\":\"changes\",";
    return strncmp(line, changes, sizeof changes - 1) == 0;
}

int crn_history_take(void *arg, const char *line)
{
    static const struct {
        const char *kind;
        cairn_status (*take)(ckpt_history *h, json_t *event);
    } row[] = {{"launch", on_launch}, {"open", on_open},     {"resume", on_resume},
               {"mark", on_mark},     {"raised", on_raised}, {"tuned", on_tuned},
               {"close", on_close},   {"ended", on_ended}};
    ckpt_history *h = arg;
    json_t *event = is_in_vain(line) ? NULL : json_loads(line, 0, NULL);
    const char *kind = json_string_value(json_object_get(event, "event"));
    for (size_t i = 0; kind && i < sizeof row / sizeof *row; i++)
        if (strcmp(kind, row[i].kind) == 0)
            h->failed |= row[i].take(h, event) < 0;
    json_decref(event);
    return h->failed;
}

void crn_history_done(ckpt_history *h)
{
    crn_vec_done(&h->leg);
    crn_vec_done(&h->mark);
    json_decref(h->tuned);
    h->tuned = NULL;
}

/* --- what it means -------------------------------------------------------------------------- */

/* What was destroyed is known by the one who came back: the safest level that blocks had to come
 * from. Who did not come back does not know of more than processes. */
bool crn_history_failed(const ckpt_history *h, size_t leg, crn_level *ret_needed)
{
    const ckpt_past_leg *l = &h->leg.at[leg], *next = leg + 1 < h->leg.n ? l + 1 : NULL;
    if (l->closed || (!next && !l->ended))
        return false;
    *ret_needed = next && next->resumed ? next->from : CRN_LEVEL_LOCAL;
    return true;
}

size_t crn_history_end(const ckpt_history *h, size_t leg)
{
    return leg + 1 < h->leg.n ? h->leg.at[leg + 1].first : h->mark.n;
}

double crn_history_observe(const ckpt_history *h, const ckpt_ladder *ladder,
                           unsigned nfailures[CRN_PLAN_LEVELS])
{
    double seconds = 0;
    crn_level needed;
    for (size_t i = 0; i < h->leg.n; i++) {
        seconds += CRN_MAX(h->leg.at[i].end - h->leg.at[i].opened, 0.0);
        if (i + 1 < h->leg.n && crn_history_failed(h, i, &needed))
            nfailures[crn_ladder_needed(ladder, needed)]++;
    }
    return seconds;
}

cairn_status crn_history_teach(const ckpt_history *h, const ckpt_ladder *ladder, crn_plan_tuner *t)
{
    ckpt_pace pace = {0};
    for (size_t i = 0; i < h->mark.n; i++) {
        const ckpt_past_mark *mark = &h->mark.at[i];
        if (i > 0 && mark->leg != mark[-1].leg)
            pace = (ckpt_pace){0};
        crn_plan_measure measured = {.level = crn_ladder_reached(ladder, mark->level),
                                     .nbytes = mark->nbytes,
                                     .total = mark->total,
                                     .held = mark->held,
                                     .background = CRN_MAX(mark->safe - mark->held, 0.0)};
        crn_pace_mark(&pace, mark->begun - h->leg.at[mark->leg].ready, &measured);
        CRN_TRY(crn_plan_tuner_recall(t, &measured));
    }
    return CAIRN_OK;
}

bool crn_history_schedule(const ckpt_history *h, const ckpt_ladder *ladder, crn_plan_schedule *ret)
{
    json_t *every = json_object_get(h->tuned, "every");
    crn_plan_schedule s = {.interval = number(h->tuned, "interval")};
    json_int_t before = 1;
    if (!(s.interval > 0) || json_object_size(every) != ladder->n)
        return false;
    for (size_t l = 0; l < ladder->n; l++) {
        const json_int_t period =
            json_integer_value(json_object_get(every, crn_level_name(ladder->level[l])));
        if (period < before || period / before > CRN_PLAN_RATIO_MAX)
            return false;
        s.ratio[l] = (unsigned)(period / before);
        before = period;
    }
    *ret = s;
    return s.ratio[0] == 1;
}
