/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading the event log of a run, and the legs that it tells of.
 */
#include "cmd/cmd_events.h"

static bool is_kind(json_t *event, const char *kind)
{
    const char *text = json_string_value(json_object_get(event, "event"));
    return text && strcmp(text, kind) == 0;
}

static int take_line(void *arg, const char *line)
{
    json_t **list = arg;
    json_t *event = json_loads(line, 0, NULL);
    if (json_is_string(json_object_get(event, "event")))
        cmd_json_append(list, event);
    else
        json_decref(event); /* cut by a crash */
    return *list == NULL;
}

json_t *cmd_events_read(cairn_trail *trail, size_t run)
{
    json_t *list = json_array();
    if (cairn_trail_events(trail, run, take_line, &list) < 0) {
        cmd_fail("%s", cairn_error_text());
        json_decref(list);
        return NULL;
    }
    return list;
}

double cmd_event_number(json_t *event, const char *name)
{
    return json_number_value(json_object_get(event, name));
}

json_t *cmd_events_find(json_t *events, const char *kind, uint64_t version, const char *level)
{
    for (size_t i = json_array_size(events); i-- > 0;) {
        json_t *event = json_array_get(events, i);
        const char *at = json_string_value(json_object_get(event, "level"));
        if (is_kind(event, kind) &&
            json_integer_value(json_object_get(event, "version")) == (json_int_t)version &&
            (!level || (at && strcmp(at, level) == 0)))
            return event;
    }
    return NULL;
}

cmd_totals cmd_event_totals(json_t *event)
{
    return (cmd_totals){.nbytes = (uint64_t)cmd_event_number(event, "nbytes"),
                        .nblocks = (uint64_t)cmd_event_number(event, "blocks"),
                        .nchanged = (uint64_t)cmd_event_number(event, "changed"),
                        .stored_bytes = (uint64_t)cmd_event_number(event, "written")};
}

/* --- legs ----------------------------------------------------------------------------------- */

typedef struct leg {
    json_t *open, *resume, *close; /* NULL: there was none */
    size_t nmarks, nfailed, nlost;
    bool stopped;
} leg;

static void add_event(leg *l, json_t *event)
{
    if (is_kind(event, "resume"))
        l->resume = event;
    else if (is_kind(event, "close"))
        l->close = event;
    l->nmarks += is_kind(event, "mark");
    l->nfailed += is_kind(event, "failed");
    l->nlost += is_kind(event, "lost");
    l->stopped |= is_kind(event, "stop");
}

/* "local 70, partner 2": blocks by the level that they came from; and those that were bad. */
static void from_cells(cmd_columns *t, json_t *resume)
{
    char text[4 * CMD_WORDS] = "";
    size_t n = 0;
    double bad = 0;
    const char *level;
    json_t *from;
    json_object_foreach(json_object_get(resume, "from"), level, from)
    {
        bad += cmd_event_number(from, "bad");
        if (cmd_event_number(from, "blocks") > 0 && n < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s %.0f", n ? ", " : "", level,
                                  cmd_event_number(from, "blocks"));
    }
    cmd_cell(t, "%s", text[0] ? text : "-");
    cmd_cell(t, "%.0f", bad);
}

static const char *end_of(const leg *l, bool last)
{
    if (json_is_true(json_object_get(l->close, "finished")))
        return "finished";
    if (l->close)
        return l->stopped ? "stopped" : "closed";
    return last ? "not closed" : "died";
}

static void leg_cells(cmd_columns *t, size_t number, const leg *l, bool last)
{
    char date[CMD_WORDS], took[CRN_NUMBER_TEXT];
    cmd_cell(t, "%zu", number);
    cmd_cell(t, "%s", cmd_date((uint64_t)(cmd_event_number(l->open, "time") * 1e9), date));
    cmd_cell(t, "%.0f", cmd_event_number(l->open, "nranks"));
    cmd_cell(t, "%.0f", cmd_event_number(l->open, "nnodes"));
    if (l->resume) {
        cmd_cell(t, "%.0f", cmd_event_number(l->resume, "version"));
        cmd_cell(t, "%s",
                 crn_format_seconds(cmd_event_number(l->resume, "seconds"), took, sizeof took));
    } else {
        cmd_cell(t, "-");
        cmd_cell(t, "-");
    }
    from_cells(t, l->resume);
    cmd_cell(t, "%zu", l->nmarks);
    cmd_cell(t, "%zu", l->nfailed);
    cmd_cell(t, "%s", end_of(l, last));
}

static int print_table(json_t *events, int code)
{
    static const char *const head[] = {"LEG",  "BEGAN", "RANKS", "NODES",  "RESUMED", "IN",
                                       "FROM", "BAD",   "MARKS", "FAILED", "END"};
    cmd_columns t = {.align = "rlrrrrlrrrl"};
    leg now = {0};
    size_t number = 0, i;
    json_t *event;
    for (size_t k = 0; k < sizeof head / sizeof *head; k++)
        cmd_cell(&t, "%s", head[k]);
    json_array_foreach(events, i, event)
    {
        if (is_kind(event, "open")) {
            if (number > 0)
                leg_cells(&t, number, &now, false);
            now = (leg){.open = event};
            number++;
        }
        add_event(&now, event);
    }
    leg_cells(&t, number, &now, true);
    cmd_line("%s", "");
    return cmd_columns_print(&t, 0, code);
}

static bool has_legs(json_t *events)
{
    size_t i;
    json_t *event;
    json_array_foreach(events, i, event)
    {
        if (is_kind(event, "open"))
            return true;
    }
    return false;
}

int cmd_print_legs(json_t *events, int code)
{
    return has_legs(events) ? print_table(events, code) : code;
}
