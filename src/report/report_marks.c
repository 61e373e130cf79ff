/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The marks of a run, told from its events: all that were taken, also those that are no longer
 * kept or belong to a future that was abandoned.
 */
#include "report/report_leg.h"

#include <math.h>

static json_t *copy_member(json_t *event, const char *name)
{
    json_t *value = json_object_get(event, name);
    return value ? json_incref(value) : json_null();
}

static json_t *mark_json(json_t *event, size_t leg, double before)
{
    static const char *const copied[] = {"version", "held",   "stored",  "interval",
                                         "nbytes",  "blocks", "changed", "written"};
    json_t *mark =
        json_pack("{s:I, s:f, s:f, s:b, s:{}, s:[], s:[], s:[]}", "leg", (json_int_t)leg, "time",
                  crn_event_captured(event), "since", crn_event_captured(event) - before,
                  "abandoned", false, "levels", "failed", "ranks", "variables");
    for (size_t i = 0; mark && i < sizeof copied / sizeof *copied; i++)
        json_object_set_new(mark, copied[i], copy_member(event, copied[i]));
    return mark;
}

/* The marks of a run, and which of each version was taken last: a log may have many thousands. */
typedef struct mark_list {
    json_t *all;    /* an array */
    json_t *newest; /* by version */
} mark_list;

enum { VERSION_TEXT = 32 };

static const char *version_of(json_t *event, char *buf)
{
    snprintf(buf, VERSION_TEXT, "%" JSON_INTEGER_FORMAT, crn_event_version(event));
    return buf;
}

static void add_mark(mark_list *marks, json_t *event, size_t leg, double before)
{
    char version[VERSION_TEXT];
    json_t *mark = mark_json(event, leg, before);
    json_object_set(marks->newest, version_of(event, version), mark);
    json_array_append_new(marks->all, mark);
}

static json_t *find_mark(const mark_list *marks, json_t *event)
{
    char version[VERSION_TEXT];
    return json_object_get(marks->newest, version_of(event, version));
}

static void add_level(const mark_list *marks, json_t *event)
{
    json_t *levels = json_object_get(find_mark(marks, event), "levels");
    const char *level = json_string_value(json_object_get(event, "level"));
    if (level)
        json_object_set_new(levels, level,
                            json_pack("{s:o, s:o, s:o}", "seconds", copy_member(event, "seconds"),
                                      "moved", copy_member(event, "moved"), "stored",
                                      copy_member(event, "stored")));
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

static void add_changes(const mark_list *marks, json_t *event)
{
    json_t *mark = find_mark(marks, event);
    const char *ranks = json_string_value(json_object_get(event, "ranks"));
    json_object_set_new(mark, "ranks", shares(ranks));
    json_object_set_new(mark, "variables", copy_member(event, "variables"));
}

static void add_failure(const mark_list *marks, json_t *event)
{
    json_array_append_new(json_object_get(find_mark(marks, event), "failed"),
                          json_pack("{s:o, s:o}", "level", copy_member(event, "level"), "text",
                                    copy_member(event, "text")));
}

static void add_leg(mark_list *marks, size_t number, const report_leg *l)
{
    double before = crn_event_time(l->resume ? l->resume : l->open);
    size_t i;
    json_t *event;
    json_array_foreach(l->events, i, event)
    {
        if (crn_event_is(event, "mark")) {
            add_mark(marks, event, number, before);
            before = crn_event_captured(event);
        } else if (crn_event_is(event, "changes")) {
            add_changes(marks, event);
        } else if (crn_event_is(event, "raised")) {
            add_level(marks, event);
        } else if (crn_event_is(event, "failed")) {
            add_failure(marks, event);
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
            if (crn_event_version(mark) > kept)
                json_object_set_new(mark, "abandoned", json_true());
        }
        if (leg->mark)
            kept = leg->resume ? CRN_MIN(kept, crn_event_version(leg->resume)) : -1;
    }
}

json_t *crn_report_marks(json_t *events)
{
    report_leg_list legs = {0};
    mark_list marks = {.newest = json_object()};
    if (crn_legs_split(events, &legs) == CAIRN_OK)
        marks.all = json_array();
    for (size_t i = 0; marks.all && i < legs.n; i++)
        add_leg(&marks, i + 1, &legs.at[i]);
    abandon(&marks, &legs);
    json_decref(marks.newest);
    crn_legs_done(&legs);
    return marks.all;
}
