/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The legs of a run, from its events: when each began and ended, why, what was lost with it
 * and what coming back cost.
 */
#include "report/report_log.h"

#include <signal.h>

enum { END_TEXT = 64 };

/* --- what became of a leg ------------------------------------------------------------------- */

static double began_at(const report_leg *l)
{
    const double launched = crn_has(&l->ended) ? l->ended.ended.launched : 0;
    return crn_has(&l->launch) ? l->launch.time : launched > 0 ? launched : l->open.time;
}

/* When it closed the run, or gave its last sign of life: what comes after is no work. */
static double ended_at(const report_leg *l)
{
    if (crn_has(&l->close))
        return l->close.time;
    if (!crn_has(&l->open))
        return l->ended.time;
    return CRN_MAX(l->last, l->seen);
}

static bool is_finished(const report_leg *l)
{
    return crn_has(&l->close) && l->close.close.finished;
}

static bool is_hung(const report_leg *l)
{
    return crn_has(&l->ended) && l->ended.ended.why && strcmp(l->ended.ended.why, "hang") == 0;
}

static const char *signal_text(int number, char *buf)
{
    const char *name = crn_signal_name(number);
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
    if (crn_has(&l->close))
        return l->stopped ? "stopped" : "closed";
    if (crn_has(&l->ended))
        return watched_end(&l->ended.ended, buf);
    return last ? "not closed" : "died";
}

/* --- what it cost --------------------------------------------------------------------------- */

/* When the state was captured that the run went on with after this leg, as far as the leg did
 * anything for it. A leg may have died after a mark counted and before the log had it: then this
 * is the newest mark before it that the log knows, as it was before anything went on. */
static double kept_until(const crn_report_log *log, const report_leg *l, const report_leg *next)
{
    const crn_logged_mark *mark = l->nmarks > 0 ? log->mark.at + l->first : NULL;
    const uint64_t newest =
        next && crn_has(&next->resume) ? next->resume.resume.version : UINT64_MAX;
    size_t n = l->nmarks;
    if (next && crn_has(&next->open) && !crn_has(&next->resume))
        n = 0;
    while (n > 0 && mark[n - 1].version > newest)
        n--;
    if (n > 0)
        return mark[n - 1].captured;
    return crn_has(&l->resume) ? l->resume.time : l->open.time;
}

/* Seconds of work that have to be done again; none when it left in order. */
static json_t *lost_seconds(const crn_report_log *log, const report_leg *l, const report_leg *next)
{
    if (crn_has(&l->close) || !crn_has(&l->open))
        return json_real(0);
    if (!crn_has(&l->ended) && !next) /* it may still run */
        return json_null();
    return json_real(CRN_MAX(ended_at(l) - kept_until(log, l, next), 0.0));
}

/* Seconds from the end of the leg before until this one could go on. */
static json_t *restart_seconds(const report_leg *l, const report_leg *before)
{
    if (!before || !crn_has(&l->open))
        return json_null();
    const double ready = crn_has(&l->resume) ? l->resume.time : l->open.time;
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
    json_object_foreach(crn_has(resume) ? resume->resume.from : NULL, level, from)
    {
        bad += crn_event_source_decode(from).bad;
    }
    return bad;
}

static uint64_t ranks_of(const report_leg *l)
{
    if (crn_has(&l->open))
        return l->open.open.nranks;
    return crn_has(&l->launch) ? l->launch.launch.nranks : l->ended.ended.nranks;
}

static json_t *leg_json(const crn_report_log *log, size_t i)
{
    char end[END_TEXT];
    const report_leg *l = &log->leg.at[i], *before = i > 0 ? l - 1 : NULL;
    const report_leg *next = l->next > 0 ? &log->leg.at[l->next] : NULL;
    const bool last = i + 1 == log->leg.n;
    const bool running = last && !crn_has(&l->close) && !crn_has(&l->ended);
    return json_pack(
        "{s:I, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:s, s:o, "
        "s:o, s:o, s:o, s:o, s:o}",
        "leg", (json_int_t)i + 1, "began", time_or_null(began_at(l)), "opened",
        time_or_null(l->open.time), "ended", running ? json_null() : time_or_null(ended_at(l)),
        "ranks", (json_int_t)ranks_of(l), "nodes", CRN_EVENT_COPY(&l->open, open, nnodes),
        "resumed", CRN_EVENT_COPY(&l->resume, resume, version), "resume_seconds",
        CRN_EVENT_COPY(&l->resume, resume, seconds), "from",
        CRN_EVENT_COPY(&l->resume, resume, from), "bad", (json_int_t)count_bad(&l->resume), "marks",
        (json_int_t)l->nmarks, "failed", (json_int_t)l->nfailed, "lost_marks", (json_int_t)l->nlost,
        "end", end_text(l, last, end), "lost_seconds", lost_seconds(log, l, next),
        "restart_seconds", restart_seconds(l, before), "code",
        CRN_EVENT_COPY(&l->ended, ended, code), "signal", CRN_EVENT_COPY(&l->ended, ended, signal),
        "command",
        crn_has(&l->ended) ? CRN_EVENT_COPY(&l->ended, ended, command)
                           : CRN_EVENT_COPY(&l->launch, launch, command),
        "output", CRN_EVENT_COPY(&l->ended, ended, output));
}

json_t *crn_report_legs(const crn_report_log *log)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < log->leg.n; i++) {
        json_t *one = leg_json(log, i);
        if (!one || json_array_append_new(list, one) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}
