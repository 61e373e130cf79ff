/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The marks of a run, told from its events: all that were taken, also those that are no longer
 * kept or belong to a future that was abandoned.
 */
#include "report/report_leg.h"

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

/* The mark of an event's version that was taken last. */
static json_t *find_mark(json_t *marks, json_t *event)
{
    for (size_t i = json_array_size(marks); i-- > 0;) {
        json_t *mark = json_array_get(marks, i);
        if (crn_event_number(mark, "version") == crn_event_number(event, "version"))
            return mark;
    }
    return NULL;
}

static void add_level(json_t *marks, json_t *event)
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

static void add_changes(json_t *marks, json_t *event)
{
    json_t *mark = find_mark(marks, event);
    const char *ranks = json_string_value(json_object_get(event, "ranks"));
    json_object_set_new(mark, "ranks", shares(ranks));
    json_object_set_new(mark, "variables", copy_member(event, "variables"));
}

static void add_failure(json_t *marks, json_t *event)
{
    json_array_append_new(json_object_get(find_mark(marks, event), "failed"),
                          json_pack("{s:o, s:o}", "level", copy_member(event, "level"), "text",
                                    copy_member(event, "text")));
}

/* A leg that opened the run went on from one mark, or from none: later ones count no more. */
static void abandon(json_t *marks, const report_leg *l)
{
    size_t i;
    json_t *mark;
    json_array_foreach(marks, i, mark)
    {
        if (!l->resume ||
            crn_event_number(mark, "version") > crn_event_number(l->resume, "version"))
            json_object_set_new(mark, "abandoned", json_true());
    }
}

static void add_leg(json_t *marks, size_t number, const report_leg *l)
{
    double before = crn_event_time(l->resume ? l->resume : l->open);
    size_t i;
    json_t *event;
    if (l->mark) /* one that took no marks has abandoned nothing yet */
        abandon(marks, l);
    json_array_foreach(l->events, i, event)
    {
        if (crn_event_is(event, "mark")) {
            json_array_append_new(marks, mark_json(event, number, before));
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

json_t *crn_report_marks(json_t *events)
{
    report_leg_list legs = {0};
    json_t *marks = crn_legs_split(events, &legs) == CAIRN_OK ? json_array() : NULL;
    for (size_t i = 0; marks && i < legs.n; i++)
        add_leg(marks, i + 1, &legs.at[i]);
    crn_legs_done(&legs);
    return marks;
}
