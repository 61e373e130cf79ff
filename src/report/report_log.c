/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One pass over the log of a run: its legs, and the numbers of its marks.
 */
#include "report/report_log.h"

/* --- reading ------------------------------------------------------------------------------- */

cairn_status crn_report_lines(cairn_trail *trail, size_t run, cairn_event_fn *fn, void *arg)
{
    const int rc = cairn_trail_events(trail, run, fn, arg);
    CRN_FAIL_IF(rc == CAIRN_NOTHING, CAIRN_ENOMEM, "no memory for the events of a run");
    CRN_FAIL_IF(rc < 0, (cairn_status)rc, "%s", cairn_error_text());
    return CAIRN_OK;
}

static uint64_t hash_of(uint64_t version)
{
    return crn_hash_bytes(&version, sizeof version);
}

bool crn_report_find(const crn_report_log *log, uint64_t version, size_t *ret)
{
    size_t probe = 0;
    uint32_t at;
    while (crn_index_next(&log->newest, hash_of(version), &probe, &at))
        if (log->mark.at[at].version == version) {
            *ret = at;
            return true;
        }
    return false;
}

const crn_logged_mark *crn_report_mark(const crn_report_log *log, uint64_t version)
{
    size_t at;
    return crn_report_find(log, version, &at) ? &log->mark.at[at] : NULL;
}

/* --- legs ---------------------------------------------------------------------------------- */

/* A leg begins when it is launched, or when the run is opened by a program that was not. */
static bool begins(const crn_event *e, const report_leg *now)
{
    if (e->kind == CRN_EVENT_LAUNCH)
        return true;
    return e->kind == CRN_EVENT_OPEN &&
           (!now || !crn_has(&now->launch) || crn_has(&now->open) || crn_has(&now->ended));
}

/* Until when a leg worked, by the event that ends it or begins the next. */
static double worked_until(const crn_event *e)
{
    switch (e->kind) {
    case CRN_EVENT_LAUNCH:
        return e->launch.seen;
    case CRN_EVENT_OPEN:
        return e->open.seen;
    default:
        return crn_event_worked_until(&e->ended);
    }
}

static void saw_last(report_leg *l, const crn_event *e)
{
    l->seen_last = true;
    l->seen = worked_until(e);
}

/* Keep an event of the leg, which is e's no longer. */
static void keep(crn_event *place, crn_event *e)
{
    crn_event_done(place);
    *place = *e;
    *e = (crn_event){0};
}

static void count_event(report_leg *l, const crn_event *e)
{
    if (e->kind == CRN_EVENT_ENDED)
        saw_last(l, e);
    l->nfailed += e->kind == CRN_EVENT_FAILED;
    l->nlost += e->kind == CRN_EVENT_LOST;
    l->stopped |= e->kind == CRN_EVENT_STOP;
    if (e->kind != CRN_EVENT_DRAINED && e->kind != CRN_EVENT_PRUNED && e->kind != CRN_EVENT_ENDED)
        l->last = e->time;
}

/* --- marks --------------------------------------------------------------------------------- */

/* When the leg could work, or its last mark was captured. */
static double work_began(const crn_report_log *log, const report_leg *l)
{
    if (l->nmarks > 0)
        return log->mark.at[log->mark.n - 1].captured;
    return crn_has(&l->resume) ? l->resume.time : l->open.time;
}

static cairn_status note_newest(crn_report_log *log, uint64_t version, size_t at)
{
    size_t before;
    if (!crn_report_find(log, version, &before))
        return crn_index_add(&log->newest, hash_of(version), at);
    crn_index_move(&log->newest, hash_of(version), before, at);
    return CAIRN_OK;
}

static cairn_status add_mark(crn_report_log *log, report_leg *l, const crn_event *e)
{
    const crn_event_mark *m = &e->mark;
    const double captured = crn_event_begun(e);
    const crn_logged_mark mark = {.version = m->version,
                                  .line = log->nlines,
                                  .leg = log->leg.n,
                                  .captured = captured,
                                  .since = captured - work_began(log, l),
                                  .held = m->held,
                                  .nbytes = m->nbytes,
                                  .blocks = m->blocks,
                                  .changed = m->changed,
                                  .written = m->written};
    if (l->nmarks++ == 0)
        l->first = log->mark.n;
    CRN_TRY(crn_vec_push(&log->mark, mark));
    return note_newest(log, m->version, log->mark.n - 1);
}

/* What a leg learns from those after it. One that went on from a mark, or from none, has by marking
 * abandoned all later ones. Seen from the end: what a mark has to be at most for no later leg to
 * have abandoned it. */
static void look_back(crn_report_log *log)
{
    uint64_t kept = UINT64_MAX;
    bool none = false;
    for (size_t l = log->leg.n, next = 0; l-- > 0;) {
        report_leg *leg = &log->leg.at[l];
        leg->next = next;
        next = crn_has(&leg->open) ? l : next;
        for (size_t i = leg->first; i < leg->first + leg->nmarks; i++)
            log->mark.at[i].abandoned = none || log->mark.at[i].version > kept;
        if (leg->nmarks > 0 && crn_has(&leg->resume))
            kept = CRN_MIN(kept, leg->resume.resume.version);
        else
            none |= leg->nmarks > 0;
    }
}

/* --- events -------------------------------------------------------------------------------- */

/* Of an event in a leg. */
static cairn_status take(crn_report_log *log, report_leg *l, crn_event *e)
{
    crn_event *const place[CRN_NEVENTS] = {
        [CRN_EVENT_LAUNCH] = &l->launch, [CRN_EVENT_OPEN] = &l->open,
        [CRN_EVENT_RESUME] = &l->resume, [CRN_EVENT_CLOSE] = &l->close,
        [CRN_EVENT_ENDED] = &l->ended,
    };
    size_t mark;
    count_event(l, e);
    if (place[e->kind])
        keep(place[e->kind], e);
    else if (e->kind == CRN_EVENT_MARK)
        return add_mark(log, l, e);
    else if (e->kind == CRN_EVENT_FAILED && crn_report_find(log, e->failed.version, &mark))
        log->mark.at[mark].failed = true;
    return CAIRN_OK;
}

static cairn_status take_event(crn_report_log *log, crn_event *e)
{
    log->ntuned += e->kind == CRN_EVENT_TUNED;
    report_leg *now = log->leg.n > 0 ? &log->leg.at[log->leg.n - 1] : NULL;
    if (begins(e, now)) {
        if (now && !now->seen_last)
            saw_last(now, e);
        CRN_TRY(crn_vec_push(&log->leg, (report_leg){0}));
    }
    return log->leg.n > 0 ? take(log, &log->leg.at[log->leg.n - 1], e) : CAIRN_OK;
}

static int take_line(void *arg, const char *line)
{
    static const crn_event_filter wanted = {.kinds = ~CRN_EVENT_BIT(CHANGES),
                                            .times = CRN_EVENT_BIT(TUNED)};
    crn_report_log *log = arg;
    crn_event e;
    cairn_status rc = CAIRN_OK;
    if (crn_event_decode(line, &wanted, &e)) { /* else it is not wanted, or cut by a crash */
        rc = take_event(log, &e);
        crn_event_done(&e);
    }
    log->nlines++;
    return rc < 0;
}

cairn_status crn_report_read(cairn_trail *trail, size_t run, crn_report_log **ret)
{
    crn_report_log *log;
    CRN_TRY(crn_alloc(&log, 1));
    cairn_status rc = crn_report_lines(trail, run, take_line, log);
    if (rc < 0) {
        crn_report_log_free(log);
        return rc;
    }
    look_back(log);
    *ret = log;
    return CAIRN_OK;
}

void crn_report_log_free(crn_report_log *log)
{
    if (!log)
        return;
    for (size_t i = 0; i < log->leg.n; i++) {
        report_leg *l = &log->leg.at[i];
        crn_event *const kept[] = {&l->launch, &l->open, &l->resume, &l->close, &l->ended};
        for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
            crn_event_done(kept[k]);
    }
    crn_vec_done(&log->leg);
    crn_vec_done(&log->mark);
    crn_index_done(&log->newest);
    free(log);
}

/* --- one mark ------------------------------------------------------------------------------ */

typedef struct of_one {
    uint64_t version;
    crn_event_list *events;
    crn_buf changes; /* the last line that has what a mark changed */
} of_one;

static bool is_of(void *arg, crn_event_kind kind, uint64_t version)
{
    (void)kind;
    return ((of_one *)arg)->version == version;
}

static int take_line_of(void *arg, const char *line)
{
    of_one *o = arg;
    const crn_event_filter wanted = {.some = UINT32_MAX, .want = is_of, .arg = o};
    crn_event e;
    if (crn_report_note_changes(&o->changes, line) < 0)
        return 1;
    if (!crn_event_decode(line, &wanted, &e))
        return 0;
    crn_report_resolve_changes(&o->changes, &e);
    if (crn_vec_push(o->events, e) == CAIRN_OK)
        return 0;
    crn_event_done(&e);
    return 1;
}

cairn_status crn_report_events(cairn_trail *trail, size_t run, uint64_t version,
                               crn_event_list *ret)
{
    of_one o = {.version = version, .events = ret};
    *ret = (crn_event_list){0};
    const cairn_status rc = crn_report_lines(trail, run, take_line_of, &o);
    crn_buf_done(&o.changes);
    if (rc < 0)
        crn_events_done(ret);
    return rc;
}

/* --- findings ------------------------------------------------------------------------------- */

static int take_finding(void *arg, const char *line)
{
    crn_event_list *events = arg;
    const crn_event_filter wanted = {.kinds = CRN_EVENT_BIT(FINDING)};
    crn_event e;
    if (!crn_event_decode(line, &wanted, &e))
        return 0;
    if (crn_vec_push(events, e) == CAIRN_OK)
        return 0;
    crn_event_done(&e);
    return 1;
}

cairn_status crn_report_findings(cairn_trail *trail, size_t run, crn_event_list *ret)
{
    *ret = (crn_event_list){0};
    const cairn_status rc = crn_report_lines(trail, run, take_finding, ret);
    if (rc < 0)
        crn_events_done(ret);
    return rc;
}
