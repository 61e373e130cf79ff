/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The legs of a run, told from its events: when each began and ended, why, what was lost with it
 * and what coming back cost.
 */
#include "report/report.h"

#include <signal.h>

typedef struct leg {
    json_t *launch, *open, *resume, *mark, *close,
        *ended;    /* NULL: there was none; mark: the last */
    json_t *marks; /* all of its "mark" events, borrowed */
    size_t nfailed, nlost;
    bool stopped;
    double last; /* the time of its last event */
} leg;

typedef CRN_VEC(leg) leg_list;

enum { END_TEXT = 64 };

static double time_of(json_t *event)
{
    return crn_event_number(event, "time");
}

/* --- from events to legs ------------------------------------------------------------------ */

/* A leg begins when it is launched, or when the run is opened by a program that was not. */
static bool begins(json_t *event, const leg *now)
{
    if (crn_event_is(event, "launch"))
        return true;
    return crn_event_is(event, "open") && (!now || !now->launch || now->open || now->ended);
}

static void add_event(leg *l, json_t *event)
{
    const struct {
        const char *kind;
        json_t **place;
    } row[] = {{"launch", &l->launch}, {"open", &l->open},   {"resume", &l->resume},
               {"mark", &l->mark},     {"close", &l->close}, {"ended", &l->ended}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (crn_event_is(event, row[i].kind))
            *row[i].place = event;
    if (crn_event_is(event, "mark"))
        json_array_append(l->marks, event);
    l->nfailed += crn_event_is(event, "failed");
    l->nlost += crn_event_is(event, "lost");
    l->stopped |= crn_event_is(event, "stop");
    if (!crn_event_is(event, "drained") && !crn_event_is(event, "pruned"))
        l->last = time_of(event);
}

static cairn_status split(json_t *events, leg_list *ret)
{
    size_t i;
    json_t *event;
    json_array_foreach(events, i, event)
    {
        if (begins(event, ret->n > 0 ? &ret->at[ret->n - 1] : NULL))
            CRN_TRY(crn_vec_push(ret, (leg){.marks = json_array()}));
        if (ret->n > 0)
            add_event(&ret->at[ret->n - 1], event);
    }
    return CAIRN_OK;
}

/* --- what became of a leg ------------------------------------------------------------------- */

static double began_at(const leg *l)
{
    const double launched = crn_event_number(l->ended, "launched");
    return l->launch ? time_of(l->launch) : launched > 0 ? launched : time_of(l->open);
}

/* As exactly as anyone knows: it was watched, or closed, or the next one saw its last sign of life.
 */
static double ended_at(const leg *l, const leg *next)
{
    const double seen = next ? crn_event_number(next->open, "seen") : 0;
    if (l->ended)
        return time_of(l->ended);
    return l->close ? time_of(l->close) : CRN_MAX(l->last, seen);
}

static bool is_finished(const leg *l)
{
    return json_is_true(json_object_get(l->close, "finished"));
}

static bool is_hung(const leg *l)
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
    } row[] = {{"limit", "out of time"}, {"told", "did not leave when told to"}};
    const char *why = json_string_value(json_object_get(ended, "why"));
    for (size_t i = 0; why && i < sizeof row / sizeof *row; i++)
        if (strcmp(why, row[i].why) == 0)
            return row[i].text;
    if (why && strcmp(why, "signal") == 0)
        return signal_text((int)crn_event_number(ended, "signal"), buf);
    return exit_text((int)crn_event_number(ended, "code"), buf);
}

static const char *end_text(const leg *l, bool last, char *buf)
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
 * anything for it. */
static double kept_until(const leg *l, const leg *next)
{
    const double begun = l->resume ? time_of(l->resume) : time_of(l->open);
    json_t *last = l->mark, *mark;
    size_t i;
    if (next && next->open && !next->resume)
        return begun;
    if (next && next->resume) {
        last = NULL;
        json_array_foreach(l->marks, i, mark)
        {
            if (crn_event_number(mark, "version") == crn_event_number(next->resume, "version"))
                last = mark;
        }
    }
    return last ? time_of(last) - crn_event_number(last, "stored") : begun;
}

/* Seconds of work that have to be done again; none when it left in order. */
static json_t *lost_seconds(const leg *l, const leg *next)
{
    if (l->close || !l->open)
        return json_real(0);
    if (!l->ended && !next) /* it may still run */
        return json_null();
    return json_real(CRN_MAX(ended_at(l, next) - kept_until(l, next), 0.0));
}

/* Seconds from the end of the leg before until this one could go on. */
static json_t *restart_seconds(const leg *l, const leg *before)
{
    if (!before || !l->open)
        return json_null();
    const double ready = time_of(l->resume ? l->resume : l->open);
    return json_real(CRN_MAX(ready - ended_at(before, l), 0.0));
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

static double count_bad(json_t *resume)
{
    double bad = 0;
    const char *level;
    json_t *from;
    json_object_foreach(json_object_get(resume, "from"), level, from)
    {
        bad += crn_event_number(from, "bad");
    }
    return bad;
}

static int ranks_of(const leg *l)
{
    json_t *teller = l->open ? l->open : l->launch ? l->launch : l->ended;
    return (int)crn_event_number(teller, "nranks");
}

/* next: the leg after it that opened the run, or NULL; last: no leg at all comes after it. */
static json_t *leg_json(size_t number, const leg *before, const leg *l, const leg *next, bool last)
{
    char end[END_TEXT];
    const bool running = last && !l->close && !l->ended;
    return json_pack(
        "{s:I, s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:s, s:o, "
        "s:o, s:o, s:o, s:o, s:o}",
        "leg", (json_int_t)number, "began", time_or_null(began_at(l)), "opened",
        time_or_null(time_of(l->open)), "ended",
        running ? json_null() : time_or_null(ended_at(l, next)), "ranks", ranks_of(l), "nodes",
        member(l->open, "nnodes"), "resumed", member(l->resume, "version"), "resume_seconds",
        member(l->resume, "seconds"), "from", member(l->resume, "from"), "bad",
        (json_int_t)count_bad(l->resume), "marks", (json_int_t)json_array_size(l->marks), "failed",
        (json_int_t)l->nfailed, "lost_marks", (json_int_t)l->nlost, "end", end_text(l, last, end),
        "lost_seconds", lost_seconds(l, next), "restart_seconds", restart_seconds(l, before),
        "code", member(l->ended, "code"), "signal", member(l->ended, "signal"), "command",
        member(l->ended ? l->ended : l->launch, "command"), "output", member(l->ended, "output"));
}

json_t *crn_report_legs(json_t *events)
{
    leg_list legs = {0};
    json_t *list = split(events, &legs) == CAIRN_OK ? json_array() : NULL;
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
    for (size_t i = 0; i < legs.n; i++)
        json_decref(legs.at[i].marks);
    crn_vec_done(&legs);
    return list;
}
