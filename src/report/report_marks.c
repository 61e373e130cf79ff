/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The marks of a run, from its events: all that were taken, also those that are no longer
 * kept or belong to a future that was abandoned.
 */
#include "report/report_leg.h"

#include <inttypes.h>

static json_t *mark_json(const crn_event *e, size_t leg, double before)
{
    return json_pack(
        "{s:I, s:f, s:f, s:b, s:{}, s:[], s:[], s:[], s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "leg", (json_int_t)leg, "time", crn_captured_at(e), "since", crn_captured_at(e) - before,
        "abandoned", false, "levels", "failed", "ranks", "variables", "version",
        CRN_EVENT_COPY(e, mark, version), "held", CRN_EVENT_COPY(e, mark, held), "stored",
        CRN_EVENT_COPY(e, mark, stored), "interval", CRN_EVENT_COPY(e, mark, interval), "nbytes",
        CRN_EVENT_COPY(e, mark, nbytes), "blocks", CRN_EVENT_COPY(e, mark, blocks), "changed",
        CRN_EVENT_COPY(e, mark, changed), "written", CRN_EVENT_COPY(e, mark, written));
}

/* The marks of a run, and which of each version was taken last: a log may have many thousands. */
typedef struct mark_list {
    json_t *all;    /* an array */
    json_t *newest; /* by version */
} mark_list;

enum { VERSION_TEXT = 32 };

static const char *version_of(const crn_event *e, char *buf)
{
    snprintf(buf, VERSION_TEXT, "%" PRIu64, crn_event_version(e));
    return buf;
}

static void add_mark(mark_list *marks, const crn_event *e, size_t leg, double before)
{
    char version[VERSION_TEXT];
    json_t *mark = mark_json(e, leg, before);
    json_object_set(marks->newest, version_of(e, version), mark);
    json_array_append_new(marks->all, mark);
}

static json_t *find_mark(const mark_list *marks, const crn_event *e)
{
    char version[VERSION_TEXT];
    return json_object_get(marks->newest, version_of(e, version));
}

static void add_level(const mark_list *marks, const crn_event *e)
{
    json_t *levels = json_object_get(find_mark(marks, e), "levels");
    if (e->raised.level)
        json_object_set_new(levels, e->raised.level,
                            json_pack("{s:o, s:o, s:o}", "seconds",
                                      CRN_EVENT_COPY(e, raised, seconds), "moved",
                                      CRN_EVENT_COPY(e, raised, moved), "stored",
                                      CRN_EVENT_COPY(e, raised, stored)));
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

static void add_changes(const mark_list *marks, const crn_event *e)
{
    json_t *mark = find_mark(marks, e);
    json_object_set_new(mark, "ranks", shares(e->changes.ranks));
    json_object_set_new(mark, "variables", CRN_EVENT_COPY(e, changes, variables));
}

static void add_failure(const mark_list *marks, const crn_event *e)
{
    json_array_append_new(json_object_get(find_mark(marks, e), "failed"),
                          json_pack("{s:o, s:o}", "level", CRN_EVENT_COPY(e, failed, level), "text",
                                    CRN_EVENT_COPY(e, failed, text)));
}

static void add_leg(mark_list *marks, size_t number, const report_leg *l)
{
    double before = crn_time_of(l->resume ? l->resume : l->open);
    for (const crn_event *e = l->events; e < l->events + l->nevents; e++) {
        if (e->kind == CRN_EVENT_MARK) {
            add_mark(marks, e, number, before);
            before = crn_captured_at(e);
        } else if (e->kind == CRN_EVENT_CHANGES) {
            add_changes(marks, e);
        } else if (e->kind == CRN_EVENT_RAISED) {
            add_level(marks, e);
        } else if (e->kind == CRN_EVENT_FAILED) {
            add_failure(marks, e);
        }
    }
}

/* A leg went on from one mark, or from none, and by marking abandoned all later ones. Seen from the
 * end: what a mark has to be at most for no later leg to have abandoned it. */
static void abandon(const mark_list *marks, const report_leg_list *legs)
{
    json_int_t kept = INT64_MAX;
    size_t i = json_array_size(marks->all);
    for (size_t l = legs->n; l-- > 0;) {
        const report_leg *leg = &legs->at[l];
        for (json_t *mark; i > 0; i--) {
            mark = json_array_get(marks->all, i - 1);
            if (crn_event_number(mark, "leg") <= (double)l)
                break;
            if (json_integer_value(json_object_get(mark, "version")) > kept)
                json_object_set_new(mark, "abandoned", json_true());
        }
        if (leg->mark)
            kept = leg->resume ? CRN_MIN(kept, (json_int_t)leg->resume->resume.version) : -1;
    }
}

json_t *crn_report_marks(const crn_event_list *events)
{
    report_leg_list legs = {0};
    mark_list marks = {.newest = json_object()};
    if (crn_legs_split(events, &legs) == CAIRN_OK)
        marks.all = json_array();
    for (size_t i = 0; marks.all && i < legs.n; i++)
        add_leg(&marks, i + 1, &legs.at[i]);
    abandon(&marks, &legs);
    json_decref(marks.newest);
    crn_vec_done(&legs);
    return marks.all;
}
