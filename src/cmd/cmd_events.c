/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading the event log of a run, and showing its legs.
 */
#include "cmd/cmd_events.h"

int cmd_log_read(cairn_trail *trail, size_t run, crn_report_log **ret)
{
    if (crn_report_read(trail, run, ret) == CAIRN_OK)
        return CMD_YES;
    *ret = NULL;
    return cmd_fail("%s", crn_err_peek()->text);
}

json_t *cmd_log_legs(const crn_report_log *log)
{
    return log ? crn_report_legs(log) : json_array();
}

int cmd_events_read(cairn_trail *trail, size_t run, uint64_t version, crn_event_list *ret)
{
    if (crn_report_events(trail, run, version, ret) == CAIRN_OK)
        return CMD_YES;
    return cmd_fail("%s", crn_err_peek()->text);
}

const crn_event *cmd_events_find(const crn_event_list *events, crn_event_kind kind,
                                 const char *level)
{
    for (size_t i = events->n; i-- > 0;) {
        const crn_event *e = &events->at[i];
        if (e->kind == kind && (!level || (e->raised.level && strcmp(e->raised.level, level) == 0)))
            return e;
    }
    return NULL;
}

/* --- legs ----------------------------------------------------------------------------------- */

static void seconds_cell(cmd_columns *t, json_t *leg, const char *name)
{
    char text[CRN_NUMBER_TEXT] = "-";
    if (json_is_number(json_object_get(leg, name)))
        crn_format_seconds(crn_event_number(leg, name), text, sizeof text);
    cmd_cell(t, "%s", text);
}

static void count_cell(cmd_columns *t, json_t *leg, const char *name)
{
    if (json_is_number(json_object_get(leg, name)))
        cmd_cell(t, "%.0f", crn_event_number(leg, name));
    else
        cmd_cell(t, "-");
}

/* All digits of it. */
static void version_cell(cmd_columns *t, json_t *leg, const char *name)
{
    json_t *version = json_object_get(leg, name);
    if (json_is_integer(version))
        cmd_cell(t, "%" JSON_INTEGER_FORMAT, json_integer_value(version));
    else
        cmd_cell(t, "-");
}

static void date_cell(cmd_columns *t, json_t *leg)
{
    char date[CMD_WORDS];
    const double began = CRN_MIN(CRN_MAX(crn_event_number(leg, "began"), 0.0), 1e10);
    cmd_cell(t, "%s", cmd_date((uint64_t)(began * 1e9), date));
}

/* "local 70, partner 2": blocks by the level that they came from. */
static void from_cell(cmd_columns *t, json_t *leg)
{
    char text[4 * CMD_WORDS] = "";
    size_t n = 0;
    for (unsigned l = 0; l < 4; l++) {
        char level[CMD_WORDS];
        json_t *from = json_object_get(json_object_get(leg, "from"), cmd_levels(1u << l, level));
        const uint64_t blocks = crn_event_source_decode(from).blocks;
        if (blocks > 0 && n < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s %" PRIu64, n ? ", " : "", level,
                                  blocks);
    }
    cmd_cell(t, "%s", text[0] ? text : "-");
}

static void leg_cells(cmd_columns *t, json_t *leg)
{
    count_cell(t, leg, "leg");
    date_cell(t, leg);
    count_cell(t, leg, "ranks");
    count_cell(t, leg, "nodes");
    version_cell(t, leg, "resumed");
    seconds_cell(t, leg, "resume_seconds");
    from_cell(t, leg);
    count_cell(t, leg, "bad");
    count_cell(t, leg, "marks");
    count_cell(t, leg, "failed");
    seconds_cell(t, leg, "restart_seconds");
    seconds_cell(t, leg, "lost_seconds");
    cmd_cell(t, "%s", json_string_value(json_object_get(leg, "end")));
}

int cmd_print_legs(json_t *legs, int code)
{
    static const char *const head[] = {"LEG", "BEGAN", "RANKS",  "NODES", "RESUMED", "IN", "FROM",
                                       "BAD", "MARKS", "FAILED", "AFTER", "LOST",    "END"};
    cmd_columns t = {.align = "rlrrrrlrrrrrl"};
    size_t i;
    json_t *leg;
    if (json_array_size(legs) == 0)
        return code;
    for (size_t k = 0; k < sizeof head / sizeof *head; k++)
        cmd_cell(&t, "%s", head[k]);
    json_array_foreach(legs, i, leg)
    {
        leg_cells(&t, leg);
    }
    cmd_line("%s", "");
    return cmd_columns_print(&t, 0, code);
}

/* "leg 2  DATE  4 ranks  12 marks  killed by signal 9 (KILL), 1.2 s lost, back after 3.4 s" */
static void short_cells(cmd_columns *t, json_t *leg)
{
    char lost[CRN_NUMBER_TEXT], restart[CRN_NUMBER_TEXT];
    const double ranks = crn_event_number(leg, "ranks"), marks = crn_event_number(leg, "marks");
    const double lost_s = crn_event_number(leg, "lost_seconds");
    const bool restarted = json_is_number(json_object_get(leg, "restart_seconds"));
    crn_format_seconds(lost_s, lost, sizeof lost);
    crn_format_seconds(crn_event_number(leg, "restart_seconds"), restart, sizeof restart);
    cmd_cell(t, "leg %.0f", crn_event_number(leg, "leg"));
    date_cell(t, leg);
    cmd_cell(t, "%.0f rank%s", ranks, ranks == 1 ? "" : "s");
    cmd_cell(t, "%.0f mark%s", marks, marks == 1 ? "" : "s");
    cmd_cell(t, "%s%s", restarted ? "after " : "", restarted ? restart : "");
    cmd_cell(t, "%s%s%s%s", json_string_value(json_object_get(leg, "end")), lost_s > 0 ? ", " : "",
             lost_s > 0 ? lost : "", lost_s > 0 ? " lost" : "");
}

int cmd_print_legs_short(json_t *legs, int code)
{
    cmd_columns t = {.align = "llrrll"};
    size_t i;
    json_t *leg;
    json_array_foreach(legs, i, leg)
    {
        short_cells(&t, leg);
    }
    return cmd_columns_print(&t, 2, code);
}
