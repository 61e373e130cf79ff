/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the log has of the marks that a report shows, also those that are no longer kept or belong
 * to a future that was abandoned, and the decisions of the planner between them: a second pass over
 * the log, which parses the lines of these only.
 */
#include "report/report_log.h"

#include <inttypes.h>

enum { DETAILED = 1000 }; /* newest marks whose changes are shown by rank and variable */

typedef struct details {
    const crn_report_log *log;
    const report_choice *choice;
    uint64_t line, ntuned; /* so far */
    bool at_tuned;         /* the line is one of those */
    size_t next;           /* the first mark whose line has not come yet */
    json_t *marks, *tuned; /* arrays */
    json_t *newest;        /* by version: the last mark so far, where that is shown */
    crn_buf changes;       /* the last line that has what a mark changed */
} details;

enum { VERSION_TEXT = 32 };

static const char *text_of(uint64_t version, char *buf)
{
    snprintf(buf, VERSION_TEXT, "%" PRIu64, version);
    return buf;
}

static json_t *find_mark(const details *d, uint64_t version)
{
    char text[VERSION_TEXT];
    return json_object_get(d->newest, text_of(version, text));
}

/* --- members of a mark ---------------------------------------------------------------------- */

static json_t *mark_json(const crn_event *e, const crn_logged_mark *m)
{
    return json_pack(
        "{s:I, s:f, s:f, s:b, s:{}, s:[], s:[], s:[], s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "leg", (json_int_t)m->leg, "time", m->captured, "since", m->since, "abandoned",
        (int)m->abandoned, "levels", "failed", "ranks", "variables", "version",
        CRN_EVENT_COPY(e, mark, version), "held", CRN_EVENT_COPY(e, mark, held), "stored",
        CRN_EVENT_COPY(e, mark, stored), "interval", CRN_EVENT_COPY(e, mark, interval), "nbytes",
        CRN_EVENT_COPY(e, mark, nbytes), "blocks", CRN_EVENT_COPY(e, mark, blocks), "changed",
        CRN_EVENT_COPY(e, mark, changed), "written", CRN_EVENT_COPY(e, mark, written));
}

static int add_mark(details *d, const crn_event *e, const crn_logged_mark *m)
{
    char version[VERSION_TEXT];
    json_t *mark = mark_json(e, m);
    json_object_set(d->newest, text_of(m->version, version), mark);
    return json_array_append_new(d->marks, mark);
}

static void add_level(const details *d, const crn_event *e)
{
    json_t *levels = json_object_get(find_mark(d, e->raised.version), "levels");
    if (e->raised.level)
        json_object_set_new(levels, e->raised.level,
                            json_pack("{s:o, s:o, s:o}", "seconds",
                                      CRN_EVENT_COPY(e, raised, seconds), "moved",
                                      CRN_EVENT_COPY(e, raised, moved), "stored",
                                      CRN_EVENT_COPY(e, raised, stored)));
}

static void add_failure(const details *d, const crn_event *e)
{
    json_array_append_new(json_object_get(find_mark(d, e->failed.version), "failed"),
                          json_pack("{s:o, s:o}", "level", CRN_EVENT_COPY(e, failed, level), "text",
                                    CRN_EVENT_COPY(e, failed, text)));
}

/* --- what it changed ------------------------------------------------------------------------ */

cairn_status crn_report_note_changes(crn_buf *last, const char *line)
{
    static const char changes[] = "\"changes\"";
    const char *kind = crn_event_peek(line, "event");
    if (!kind || strncmp(kind, changes, sizeof changes - 1) != 0 || crn_event_peek(line, "as"))
        return CAIRN_OK;
    last->n = 0;
    crn_put_bytes(last, line, strlen(line) + 1);
    return crn_buf_status(last);
}

void crn_report_resolve_changes(const crn_buf *last, crn_event *e)
{
    static const crn_event_filter wanted = {.kinds = CRN_EVENT_BIT(CHANGES)};
    crn_event full;
    if (e->kind != CRN_EVENT_CHANGES || e->changes.as == CRN_EVENT_NO_VERSION || last->n == 0 ||
        !crn_event_decode((const char *)last->at, &wanted, &full))
        return;
    if (full.changes.version == e->changes.as) {
        full.changes.version = e->changes.version;
        crn_event_done(e);
        *e = full;
    } else {
        crn_event_done(&full);
    }
}

/* A character for each rank or group: 0 to 9 and a to z, in 35 steps. */
static json_t *shares(const char *text)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    json_t *list = json_array();
    for (; text && *text; text++) {
        const char *digit = strchr(digits, *text);
        json_array_append_new(list, json_real(digit ? (double)(digit - digits) / 35 : 0));
    }
    return list;
}

/* With the members that the log leaves out where they are 0. */
static json_t *variables_of(const crn_event *e)
{
    json_t *list = CRN_EVENT_COPY(e, changes, variables), *one;
    json_t *zeros = json_pack("{s:b, s:i, s:i, s:i, s:i, s:n, s:n}", "tracked", false, "written", 0,
                              "hashed", 0, "changed", 0, "stored", 0, "predicted", "measured");
    size_t i;
    json_array_foreach(list, i, one)
    {
        json_object_update_missing(one, zeros);
    }
    json_decref(zeros);
    return list;
}

static void add_changes(const details *d, const crn_event *e)
{
    json_t *mark = find_mark(d, e->changes.version);
    json_object_set_new(mark, "ranks", shares(e->changes.ranks));
    json_object_set_new(mark, "variables", variables_of(e));
}

/* These are most of the data of a long run. */
static void leave_out_changes(const json_t *marks)
{
    for (size_t i = 0; i + DETAILED < json_array_size(marks); i++) {
        json_object_set_new(json_array_get(marks, i), "ranks", json_array());
        json_object_set_new(json_array_get(marks, i), "variables", json_array());
    }
}

/* --- the pass ------------------------------------------------------------------------------- */

/* The decisions of the planner. */
static int add_tuned(details *d, const crn_event *e)
{
    return json_array_append_new(
        d->tuned,
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "time", crn_event_copy(e, "time"), "interval",
                  CRN_EVENT_COPY(e, tuned, interval), "every", CRN_EVENT_COPY(e, tuned, every),
                  "efficiency", CRN_EVENT_COPY(e, tuned, efficiency), "better_interval",
                  CRN_EVENT_COPY(e, tuned, better_interval), "better_every",
                  CRN_EVENT_COPY(e, tuned, better_every)));
}

/* A mark that is not shown takes the place of an earlier one of its version, too. */
static bool wants_mark(details *d, uint64_t version)
{
    char text[VERSION_TEXT];
    if (d->next < d->log->mark.n && d->log->mark.at[d->next].line == d->line &&
        d->choice->mark[d->next])
        return true;
    json_object_del(d->newest, text_of(version, text));
    return false;
}

static bool wants(void *arg, crn_event_kind kind, uint64_t version)
{
    details *d = arg;
    if (kind == CRN_EVENT_MARK)
        return wants_mark(d, version);
    d->at_tuned = kind == CRN_EVENT_TUNED;
    if (d->at_tuned)
        return crn_report_shows_tuned(d->log, d->ntuned);
    return find_mark(d, version) != NULL;
}

static int take(details *d, const crn_event *e)
{
    switch (e->kind) {
    case CRN_EVENT_MARK:
        return add_mark(d, e, &d->log->mark.at[d->next]);
    case CRN_EVENT_TUNED:
        return add_tuned(d, e);
    case CRN_EVENT_CHANGES:
        add_changes(d, e);
        break;
    case CRN_EVENT_RAISED:
        add_level(d, e);
        break;
    default:
        add_failure(d, e);
    }
    return 0;
}

static int take_line(void *arg, const char *line)
{
    details *d = arg;
    const crn_event_filter wanted = {.some = CRN_EVENT_BIT(MARK) | CRN_EVENT_BIT(CHANGES) |
                                             CRN_EVENT_BIT(RAISED) | CRN_EVENT_BIT(FAILED) |
                                             CRN_EVENT_BIT(TUNED),
                                     .want = wants,
                                     .arg = d};
    crn_event e;
    int rc = crn_report_note_changes(&d->changes, line) < 0;
    if (rc == 0 && crn_event_decode(line, &wanted, &e)) {
        crn_report_resolve_changes(&d->changes, &e);
        rc = take(d, &e);
        crn_event_done(&e);
    }
    d->next += d->next < d->log->mark.n && d->log->mark.at[d->next].line == d->line;
    d->ntuned += d->at_tuned;
    d->at_tuned = false;
    d->line++;
    return rc;
}

cairn_status crn_report_details(cairn_trail *trail, size_t run, const crn_report_log *log,
                                const report_choice *choice, json_t **ret_marks, json_t **ret_tuned)
{
    details d = {.log = log,
                 .choice = choice,
                 .marks = json_array(),
                 .tuned = json_array(),
                 .newest = json_object()};
    const cairn_status rc = crn_report_lines(trail, run, take_line, &d);
    json_decref(d.newest);
    crn_buf_done(&d.changes);
    if (rc < 0) {
        json_decref(d.marks);
        json_decref(d.tuned);
        return rc;
    }
    leave_out_changes(d.marks);
    *ret_marks = d.marks;
    *ret_tuned = d.tuned;
    return CAIRN_OK;
}
