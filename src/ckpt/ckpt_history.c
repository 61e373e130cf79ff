/* SPDX-License-Identifier: BSD-3-Clause
 *
 * From the lines of a run's log (docs/format/events.md) to legs, marks and what the tuner would
 * have made of them.
 */
#include "ckpt/ckpt_history.h"

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

static ckpt_past_leg *last_leg(ckpt_history *h)
{
    return h->leg.n > 0 ? &h->leg.at[h->leg.n - 1] : NULL;
}

/* Whoever comes after a leg tells when that gave its last sign of life; the next one sees that of
 * the one before it, who took the lock. */
static void saw_last(ckpt_past_leg *leg, double seen)
{
    if (!leg || leg->closed || leg->told)
        return;
    leg->told = true;
    leg->end = CRN_MAX(leg->end, seen);
}

static cairn_status on_open(ckpt_history *h, const crn_event *e)
{
    saw_last(last_leg(h), e->open.seen);
    return crn_vec_push(
        &h->leg,
        (ckpt_past_leg){.first = h->mark.n, .opened = e->time, .ready = e->time, .end = e->time});
}

static void on_resume(ckpt_past_leg *leg, const crn_event *e)
{
    leg->resumed = true;
    leg->version = e->resume.version;
    leg->ready = leg->end = e->time;
    for (crn_level l = CRN_LEVEL_RAISED; l < CRN_NLEVELS; l++) {
        json_t *from = json_object_get(e->resume.from, crn_level_name(l));
        if (crn_event_source_decode(from).blocks > 0)
            leg->from = l;
    }
}

static cairn_status on_mark(ckpt_history *h, const crn_event *e)
{
    const double stored = CRN_MAX(e->mark.stored, 0.0);
    last_leg(h)->end = e->time;
    return crn_vec_push(&h->mark, (ckpt_past_mark){.leg = h->leg.n - 1,
                                                   .version = e->mark.version,
                                                   .begun = crn_event_begun(e),
                                                   .held = CRN_MAX(e->mark.held, 0.0),
                                                   .safe = stored,
                                                   .nbytes = (double)e->mark.written,
                                                   .total = (double)e->mark.nbytes});
}

static void on_raised(ckpt_history *h, const crn_event *e)
{
    ckpt_past_mark *mark = h->mark.n > 0 ? &h->mark.at[h->mark.n - 1] : NULL;
    if (!mark || !e->raised.level || mark->version != e->raised.version)
        return;
    mark->held += CRN_MAX(e->raised.held, 0.0);
    for (crn_level l = CRN_LEVEL_RAISED; l < CRN_NLEVELS; l++)
        if (strcmp(e->raised.level, crn_level_name(l)) == 0 && l > mark->level) {
            mark->level = l;
            mark->safe = e->time - mark->begun;
            mark->nbytes = (double)e->raised.stored;
        }
    last_leg(h)->end = e->time;
}

/* Of an event in a leg. */
static cairn_status take(ckpt_history *h, ckpt_past_leg *leg, const crn_event *e)
{
    switch (e->kind) {
    case CRN_EVENT_RESUME:
        on_resume(leg, e);
        break;
    case CRN_EVENT_MARK:
        return on_mark(h, e);
    case CRN_EVENT_RAISED:
        on_raised(h, e);
        break;
    case CRN_EVENT_CLOSE:
        leg->closed = true;
        leg->end = e->time;
        break;
    case CRN_EVENT_ENDED:
        saw_last(leg, crn_event_worked_until(&e->ended));
        leg->ended = true;
        break;
    case CRN_EVENT_LAUNCH:
        saw_last(leg, e->launch.seen);
        break;
    case CRN_EVENT_TUNED:
        leg->end = e->time;
        break;
    default:
        break;
    }
    return CAIRN_OK;
}

int crn_history_take(void *arg, const char *line)
{
    static const crn_event_filter wanted = {.kinds = CRN_EVENT_BIT(LAUNCH) | CRN_EVENT_BIT(OPEN) |
                                                     CRN_EVENT_BIT(RESUME) | CRN_EVENT_BIT(MARK) |
                                                     CRN_EVENT_BIT(RAISED) | CRN_EVENT_BIT(TUNED) |
                                                     CRN_EVENT_BIT(CLOSE) | CRN_EVENT_BIT(ENDED)};
    ckpt_history *h = arg;
    crn_event e;
    if (!crn_event_decode(line, &wanted, &e))
        return 0;
    if (e.kind == CRN_EVENT_OPEN)
        h->failed |= on_open(h, &e) < 0;
    else if (h->leg.n > 0)
        h->failed |= take(h, last_leg(h), &e) < 0;
    if (e.kind == CRN_EVENT_TUNED) { /* the last one counts */
        crn_event_done(&h->tuned);
        h->tuned = e;
    } else {
        crn_event_done(&e);
    }
    return h->failed;
}

void crn_history_done(ckpt_history *h)
{
    crn_vec_done(&h->leg);
    crn_vec_done(&h->mark);
    crn_event_done(&h->tuned);
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

bool crn_history_schedule(const ckpt_history *h, const ckpt_ladder *ladder,
                          cairn_plan_schedule *ret)
{
    json_t *every = h->tuned.tuned.every;
    cairn_plan_schedule s = {.interval = h->tuned.tuned.interval};
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
