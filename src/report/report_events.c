/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading the event log of a run.
 */
#include "report/report.h"

bool crn_event_is(json_t *event, const char *kind)
{
    const char *text = json_string_value(json_object_get(event, "event"));
    return text && strcmp(text, kind) == 0;
}

double crn_event_number(json_t *event, const char *name)
{
    const double x = json_number_value(json_object_get(event, name));
    return x >= -1e18 && x <= 1e18 ? x : 0;
}

uint64_t crn_event_count(json_t *event, const char *name)
{
    return (uint64_t)CRN_MAX(crn_event_number(event, name), 0.0);
}

json_int_t crn_event_version(json_t *event)
{
    json_t *version = json_object_get(event, "version");
    return json_is_integer(version) ? json_integer_value(version) : -1;
}

typedef struct event_list {
    json_t *events;
    crn_detail detail;
    uint64_t version;
} event_list;

/* As lines of details are written, they need not be parsed to be left out. */
static bool is_wanted(const event_list *l, const char *line)
{
    static const char start[] = "{\"event\":\"changes\",\"version\":";
    if (l->detail == CRN_DETAIL_ALL || strncmp(line, start, sizeof start - 1) != 0)
        return true;
    return l->detail == CRN_DETAIL_MARK &&
           (uint64_t)strtoll(line + sizeof start - 1, NULL, 10) == l->version;
}

static int take_line(void *arg, const char *line)
{
    const event_list *l = arg;
    json_t *event = is_wanted(l, line) ? json_loads(line, 0, NULL) : NULL;
    if (json_is_string(json_object_get(event, "event")))
        return json_array_append_new(l->events, event);
    json_decref(event); /* cut by a crash */
    return 0;
}

cairn_status crn_report_events(cairn_trail *trail, size_t run, crn_detail detail, uint64_t version,
                               json_t **ret)
{
    event_list l = {.events = json_array(), .detail = detail, .version = version};
    int rc = l.events ? cairn_trail_events(trail, run, take_line, &l) : CAIRN_NOTHING;
    if (rc == CAIRN_OK) {
        *ret = l.events;
        return CAIRN_OK;
    }
    json_decref(l.events);
    if (rc == CAIRN_NOTHING)
        return crn_fail(CAIRN_ENOMEM, "no memory for the events of a run");
    return crn_fail((cairn_status)rc, "%s", cairn_error_text());
}
