/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn ensemble check and try: a study's model before the study is paid for, and a state that
 * failed. The server writes what it finds as events; here they are printed.
 */
#include "cmd/cmd_ensemble.h"

typedef struct findings {
    uint64_t since; /* events before are of earlier checks */
    json_t *list;
    size_t nfaults;
} findings;

static void take_line(const char *line, void *arg)
{
    findings *f = arg;
    json_t *event = json_loads(line, 0, NULL);
    const char *kind = json_string_value(json_object_get(event, "event"));
    if (kind && strcmp(kind, "check") == 0 &&
        (uint64_t)json_integer_value(json_object_get(event, "at")) >= f->since) {
        f->nfaults += json_is_false(json_object_get(event, "ok"));
        cmd_json_append(&f->list,
                        json_pack("{s:O, s:O, s:O}", "what", json_object_get(event, "what"), "ok",
                                  json_object_get(event, "ok"), "found",
                                  json_object_get(event, "found")));
    }
    json_decref(event);
}

static int print_table(findings *f, int code)
{
    cmd_columns table = {.align = "lll"};
    size_t i;
    json_t *row;
    json_array_foreach(f->list, i, row)
    {
        const json_t *ok = json_object_get(row, "ok");
        cmd_cell(&table, "%s", json_is_null(ok) ? "-" : json_is_true(ok) ? "ok" : "FAULT");
        cmd_cell(&table, "%s", json_string_value(json_object_get(row, "what")));
        cmd_cell(&table, "%s", json_string_value(json_object_get(row, "found")));
    }
    json_decref(f->list);
    return cmd_columns_print(&table, 0, code);
}

int cmd_ensemble_check(crn_study *study, char **words)
{
    findings f = {.since = crn_wall_ns(), .list = json_array()};
    const bool json = words[0] && strcmp(words[0], "json") == 0;
    if (words[0] && !json)
        return cmd_fail("check knows 'json', not '%s'", words[0]);
    int rc = cmd_ensemble_launch(study, CRN_MODE_CHECK);
    if (cmd_ensemble_events(study, take_line, &f) != CMD_YES)
        return CMD_UNKNOWN;
    int code = rc != CAIRN_OK ? CMD_UNKNOWN : f.nfaults > 0 ? CMD_NO : CMD_YES;
    return json ? cmd_print_json(f.list, code) : print_table(&f, code);
}

/* --- try ------------------------------------------------------------------------------------ */

typedef struct outcome {
    uint64_t since;
    json_t *event;
} outcome;

static void take_tried(const char *line, void *arg)
{
    outcome *o = arg;
    json_t *event = json_loads(line, 0, NULL);
    const char *kind = json_string_value(json_object_get(event, "event"));
    if (kind && strcmp(kind, "tried") == 0 &&
        (uint64_t)json_integer_value(json_object_get(event, "at")) >= o->since) {
        json_decref(o->event);
        o->event = json_incref(event);
    }
    json_decref(event);
}

int cmd_ensemble_try(crn_study *study, char **words)
{
    outcome o = {.since = crn_wall_ns()};
    uint64_t member;
    if (!words[0] || crn_parse_count(words[0], &member) < 0)
        return cmd_fail("try needs the number of a member that has failed");
    if (setenv("CAIRN_ENSEMBLE_TRY", words[0], 1) != 0)
        return cmd_fail("no memory");
    if (cmd_ensemble_launch(study, CRN_MODE_TRY) != CAIRN_OK ||
        cmd_ensemble_events(study, take_tried, &o) != CMD_YES || !o.event)
        return CMD_UNKNOWN;
    const bool ok = json_is_true(json_object_get(o.event, "ok"));
    cmd_line("member %s of cycle %lld: %s (%s)", words[0],
             (long long)json_integer_value(json_object_get(o.event, "cycle")),
             json_string_value(json_object_get(o.event, "kind")),
             json_string_value(json_object_get(o.event, "found")));
    json_decref(o.event);
    return ok ? CMD_YES : CMD_NO;
}
