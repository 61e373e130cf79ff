/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The legs of a run, told from its events: when each began and ended, why, what was lost with it
 * and what coming back cost.
 */
#include "report/report_leg.h"

#include <limits.h>
#include <signal.h>

enum { END_TEXT = 64 };

/* --- what became of a leg ------------------------------------------------------------------- */

static double began_at(const report_leg *l)
{
    const double launched = crn_event_number(l->ended, "launched");
    return l->launch      ? crn_event_time(l->launch)
           : launched > 0 ? launched
                          : crn_event_time(l->open);
}

/* When it closed the run, or gave its last sign of life: what comes after is no work. */
static double ended_at(const report_leg *l)
{
    if (l->close)
        return crn_event_time(l->close);
    if (!l->open)
        return crn_event_time(l->ended);
    return CRN_MAX(l->last, crn_event_number(l->teller, "seen"));
}

static bool is_finished(const report_leg *l)
{
    return json_is_true(json_object_get(l->close, "finished"));
}

static bool is_hung(const report_leg *l)
{
    const char *why = json_string_value(json_object_get(l->ended, "why"));
    return why && strcmp(why, "hang") == 0;
}

static const char *signal_text(int number, char *buf)
{
    const char *name = sigabbrev_np(number);
    snprintf(buf, END_TEXT, "killed by signal %d%s%s%s", number, name ? " (" : "", name ? name : "",
             name ? ")" : "");
    return buf;
}

/* Launchers tell of a rank that was killed as shells do. */
static const char *exit_text(int code, char *buf)
{
    if (code > 128 && code <= 128 + SIGRTMAX)
        return signal_text(code - 128, buf);
    if (code == 0)
        return "ended without closing";
    snprintf(buf, END_TEXT, "exit code %d", code);
    return buf;
}

static const char *watched_end(json_t *ended, char *buf)
{
    static const struct {
        const char *why, *text;
    } row[] = {{"limit", "out of time"},
               {"told", "did not leave when told to"},
               {"unstarted", "could not be started"}};
    const char *why = json_string_value(json_object_get(ended, "why"));
    const int number = (int)CRN_MIN(crn_event_count(ended, "signal"), INT_MAX);
    for (size_t i = 0; why && i < sizeof row / sizeof *row; i++)
        if (strcmp(why, row[i].why) == 0)
            return row[i].text;
    if (number > 0)
        return signal_text(number, buf);
    return exit_text((int)CRN_MIN(crn_event_count(ended, "code"), INT_MAX), buf);
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
        return watched_end(l->ended, buf);
    return last ? "not closed" : "died";
}

/* --- what it cost --------------------------------------------------------------------------- */

/* When the state was captured that the run went on with after this leg, as far as the leg did
 * anything for it. A leg may have died after a mark counted and before the log said so: then this
 * is the newest mark before it that the log knows, as it was before anything went on. */
static double kept_until(const report_leg *l, const report_leg *next)
{
    const double begun = l->resume ? crn_event_time(l->resume) : crn_event_time(l->open);
    json_t *last = l->mark, *event;
    size_t i;
    if (next && next->open && !next->resume)
        return begun;
    if (next && next->resume) {
        last = NULL;
        json_array_foreach(l->events, i, event)
        {
            if (crn_event_is(event, "mark") &&
                crn_event_version(event) <= crn_event_version(next->resume))
                last = event;
        }
    }
    return last ? crn_event_captured(last) : begun;
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
    const double ready = crn_event_time(l->resume ? l->resume : l->open);
    return json_real(CRN_MAX(ready - ended_at(before), 0.0));
}

/* --- as JSON -------------------------------------------------------------------------------- */

static json_t *time_or_null(double time)
{
    return time > 0 ? json_real(time) : json_null();
}

static json_t *member(json_t *event, const char *name)
{
    json_t *value = json_object_get(event, name);
    return value ? json_incref(value) : json_null();
}

static uint64_t count_bad(json_t *resume)
{
    uint64_t bad = 0;
    const char *level;
    json_t *from;
    json_object_foreach(json_object_get(resume, "from"), level, from)
    {
        bad += crn_event_count(from, "bad");
    }
    return bad;
}

static uint64_t ranks_of(const report_leg *l)
{
    json_t *teller = l->open ? l->open : l->launch ? l->launch : l->ended;
    return crn_event_count(teller, "nranks");
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
        time_or_null(crn_event_time(l->open)), "ended",
        running ? json_null() : time_or_null(ended_at(l)), "ranks", (json_int_t)ranks_of(l),
        "nodes", member(l->open, "nnodes"), "resumed", member(l->resume, "version"),
        "resume_seconds", member(l->resume, "seconds"), "from", member(l->resume, "from"), "bad",
        (json_int_t)count_bad(l->resume), "marks", (json_int_t)l->nmarks, "failed",
        (json_int_t)l->nfailed, "lost_marks", (json_int_t)l->nlost, "end", end_text(l, last, end),
        "lost_seconds", lost_seconds(l, next), "restart_seconds", restart_seconds(l, before),
        "code", member(l->ended, "code"), "signal", member(l->ended, "signal"), "command",
        member(l->ended ? l->ended : l->launch, "command"), "output", member(l->ended, "output"));
}

json_t *crn_report_legs(json_t *events)
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
    crn_legs_done(&legs);
    return list;
}
