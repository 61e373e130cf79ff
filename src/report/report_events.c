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

static int take_line(void *arg, const char *line)
{
    json_t *event = json_loads(line, 0, NULL);
    if (json_is_string(json_object_get(event, "event")))
        return json_array_append_new(arg, event);
    json_decref(event); /* cut by a crash */
    return 0;
}

/* Changes of variables are most of a long log: such lines, as they are written, are not parsed. */
static int take_line_of_legs(void *arg, const char *line)
{
    static const char changes[] = "{\"event\":\"changes\",";
    return strncmp(line, changes, sizeof changes - 1) == 0 ? 0 : take_line(arg, line);
}

static cairn_status read_events(cairn_trail *trail, size_t run,
                                int (*take)(void *arg, const char *line), json_t **ret)
{
    json_t *list = json_array();
    int rc = list ? cairn_trail_events(trail, run, take, list) : CAIRN_NOTHING;
    if (rc == CAIRN_OK) {
        *ret = list;
        return CAIRN_OK;
    }
    json_decref(list);
    if (rc == CAIRN_NOTHING)
        return crn_fail(CAIRN_ENOMEM, "no memory for the events of a run");
    return crn_fail((cairn_status)rc, "%s", cairn_error_text());
}

cairn_status crn_report_events(cairn_trail *trail, size_t run, json_t **ret)
{
    return read_events(trail, run, take_line, ret);
}

cairn_status crn_report_leg_events(cairn_trail *trail, size_t run, json_t **ret)
{
    return read_events(trail, run, take_line_of_legs, ret);
}
