/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The legs of a run, from its events: when each began and ended, why, what was lost with it
 * and what coming back cost.
 */
#include "report/report_leg.h"

#include <signal.h>

enum { END_TEXT = 64 };

/* --- what became of a leg ------------------------------------------------------------------- */

static double began_at(const report_leg *l)
{
    const double launched = l->ended ? l->ended->ended.launched : 0;
    return l->launch ? crn_time_of(l->launch) : launched > 0 ? launched : crn_time_of(l->open);
}

/* The last sign of life before an event that begins or ends a leg. */
static double seen_before(const crn_event *e)
{
    switch (e ? e->kind : CRN_EVENT_OTHER) {
    case CRN_EVENT_LAUNCH:
        return e->launch.seen;
    case CRN_EVENT_OPEN:
        return e->open.seen;
    case CRN_EVENT_ENDED:
        return e->ended.seen;
    default:
        return 0;
    }
}

/* When it closed the run, or gave its last sign of life: what comes after is no work. */
static double ended_at(const report_leg *l)
{
    if (l->close)
        return crn_time_of(l->close);
    if (!l->open)
        return crn_time_of(l->ended);
    return CRN_MAX(l->last, seen_before(l->teller));
}

static bool is_finished(const report_leg *l)
{
    return l->close && l->close->close.finished;
}

static bool is_hung(const report_leg *l)
{
    return l->ended && l->ended->ended.why && strcmp(l->ended->ended.why, "hang") == 0;
}

static const char *signal_text(int number, char *buf)
{
    const char *name = sigabbrev_np(number);
    snprintf(buf, END_TEXT, "killed by signal %d%s%s%s", number, name ? " (" : "", name ? name : "",
             name ? ")" : "");
    return buf;
}

/* Launchers report a killed rank as shells do. */
static const char *exit_text(int code, char *buf)
{
    if (code > 128 && code <= 128 + SIGRTMAX)
        return signal_text(code - 128, buf);
    if (code == 0)
        return "ended without closing";
    snprintf(buf, END_TEXT, "exit code %d", code);
    return buf;
}

static const char *watched_end(const crn_event_ended *ended, char *buf)
{
    static const struct {
        const char *why, *text;
    } row[] = {{"limit", "out of time"},
               {"told", "did not leave when told to"},
               {"unstarted", "could not be started"}};
    for (size_t i = 0; ended->why && i < sizeof row / sizeof *row; i++)
        if (strcmp(ended->why, row[i].why) == 0)
            return row[i].text;
    if (ended->signal > 0)
        return signal_text(ended->signal, buf);
    return exit_text(CRN_MAX(ended->code, 0), buf);
}

static const char *end_text(const report_leg *l, bool last, char *buf)
{
    if (is_finished(l))
        return "finished";
    if (is_hung(l)) /* ending it may have given it the chance to close */
        return "hung";
    if (l->close)
        return l->stopped ? "stopped" : "closed";
    if (l->ended)
        return watched_end(&l->ended->ended, buf);
    return last ? "not closed" : "died";
}

/* --- what it cost --------------------------------------------------------------------------- */

/* When the state was captured that the run went on with after this leg, as far as the leg did
 * anything for it. A leg may have died after a mark counted and before the log said so: then this
 * is the newest mark before it that the log knows, as it was before anything went on. */
static double kept_until(const report_leg *l, const report_leg *next)
{
    const double begun = l->resume ? crn_time_of(l->resume) : crn_time_of(l->open);
    const crn_event *last = l->mark;
    if (next && next->open && !next->resume)
        return begun;
    if (next && next->resume) {
        last = NULL;
        for (size_t i = 0; i < l->nevents; i++)
            if (l->events[i].kind == CRN_EVENT_MARK &&
                l->events[i].mark.version <= next->resume->resume.version)
                last = &l->events[i];
    }
    return last ? crn_captured_at(last) : begun;
}

/* Seconds of work that have to be done again; none when it left in order. */
static json_t *lost_seconds(const report_leg *l, const report_leg *next)
{
    if (l->close || !l->open)
        return json_real(0);
    if (!l->ended && !next) /* it may still run */
        return json_null();
    return json_real(CRN_MAX(ended_at(l) - kept_until(l, next), 0.0));
}

/* Seconds from the end of the leg before until this one could go on. */
static json_t *restart_seconds(const report_leg *l, const report_leg *before)
{
    if (!before || !l->open)
        return json_null();
    const double ready = crn_time_of(l->resume ? l->resume : l->open);
    return json_real(CRN_MAX(ready - ended_at(before), 0.0));
}

/* --- as JSON -------------------------------------------------------------------------------- */

static json_t *time_or_null(double time)
{
    return time > 0 ? json_real(time) : json_null();
}

static uint64_t count_bad(const crn_event *resume)
{
    uint64_t bad = 0;
    const char *level;
    json_t *from;
    json_object_foreach(resume ? resume->resume.from : NULL, level, from)
    {
        bad += crn_event_source_decode(from).bad;
    }
    return bad;
}

static uint64_t ranks_of(const report_leg *l)
{
    if (l->open)
        return l->open->open.nranks;
    return l->launch ? l->launch->launch.nranks : l->ended ? l->ended->ended.nranks : 0;
}

/* next: the leg after it that opened the run, or NULL; last: no leg at all comes after it. */
static json_t *leg_json(size_t number, const report_leg *before, const report_leg *l,
                        const report_leg *next, bool last)
{
    char end[END_TEXT];
    const bool running = last && !l->close && !l->ended;
    return json_pack(
        "{s:I, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:s, s:o, "
        "s:o, s:o, s:o, s:o, s:o}",
        "leg", (json_int_t)number, "began", time_or_null(began_at(l)), "opened",
        time_or_null(crn_time_of(l->open)), "ended",
        running ? json_null() : time_or_null(ended_at(l)), "ranks", (json_int_t)ranks_of(l),
        "nodes", CRN_EVENT_COPY(l->open, open, nnodes), "resumed",
        CRN_EVENT_COPY(l->resume, resume, version), "resume_seconds",
        CRN_EVENT_COPY(l->resume, resume, seconds), "from", CRN_EVENT_COPY(l->resume, resume, from),
        "bad", (json_int_t)count_bad(l->resume), "marks", (json_int_t)l->nmarks, "failed",
        (json_int_t)l->nfailed, "lost_marks", (json_int_t)l->nlost, "end", end_text(l, last, end),
        "lost_seconds", lost_seconds(l, next), "restart_seconds", restart_seconds(l, before),
        "code", CRN_EVENT_COPY(l->ended, ended, code), "signal",
        CRN_EVENT_COPY(l->ended, ended, signal), "command",
        l->ended ? CRN_EVENT_COPY(l->ended, ended, command)
                 : CRN_EVENT_COPY(l->launch, launch, command),
        "output", CRN_EVENT_COPY(l->ended, ended, output));
}

json_t *crn_report_legs(const crn_event_list *events)
{
    report_leg_list legs = {0};
    json_t *list = crn_legs_split(events, &legs) == CAIRN_OK ? json_array() : NULL;
    for (size_t i = 0; i < legs.n; i++) {
        size_t k = i + 1;
        while (k < legs.n && !legs.at[k].open)
            k++;
        json_t *one = leg_json(i + 1, i > 0 ? &legs.at[i - 1] : NULL, &legs.at[i],
                               k < legs.n ? &legs.at[k] : NULL, i + 1 == legs.n);
        if (!list || !one || json_array_append_new(list, one) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    crn_vec_done(&legs);
    return list;
}
