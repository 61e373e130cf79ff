/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn report: one page, or one JSON object, that tells what happened to the runs of a trail.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "report/report.h"

static const char usage[] =
    "cairn report [-o FILE | --json] [--first RUN --second RUN [--bound BOUND]] TRAIL[/RUN] ...";

typedef struct comparison {
    const char *first, *second, *bound;
} comparison;

static int add_place(const char *name, json_t *runs)
{
    cmd_place place;
    if (cmd_place_open(name, &place) != CMD_YES)
        return CMD_UNKNOWN;
    int code = CMD_YES;
    if (crn_report_runs(place.trail, name, place.first, place.end, runs) < 0)
        code = cmd_fail("%s", crn_err_peek()->text);
    cmd_place_close(&place);
    return code;
}

static int add_comparison(json_t *data, const comparison *c)
{
    json_t *result;
    if (!c->first)
        return CMD_YES;
    if (crn_report_compare(c->first, c->second, c->bound, &result) < 0)
        return cmd_fail("%s", crn_err_peek()->text);
    return json_object_set_new(data, "comparison", result) == 0 ? CMD_YES : cmd_fail("no memory");
}

/* All that the page shows; NULL after saying why not. */
static json_t *collect(char **names, const comparison *c)
{
    json_t *runs = json_array();
    for (; *names; names++)
        if (add_place(*names, runs) != CMD_YES) {
            json_decref(runs);
            return NULL;
        }
    json_t *data = json_pack("{s:s, s:f, s:o}", "version", cairn_version(), "time",
                             (double)crn_wall_ns() * 1e-9, "runs", runs);
    if (!data)
        cmd_fail("no memory for the report");
    else if (add_comparison(data, c) == CMD_YES)
        return data;
    json_decref(data);
    return NULL;
}

/* A reader sees the old page or the new one; names and data of a run are its owner's business. */
static int write_page(json_t *data, const char *path)
{
    char *temporary;
    if (asprintf(&temporary, "%s.new", path) < 0)
        return cmd_fail("no memory");
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600), code;
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!f)
        code = cmd_fail("cannot write '%s': %s", temporary, strerror(errno));
    else if (crn_report_page(data, f) < 0)
        code = cmd_fail("'%s': %s", temporary, crn_err_peek()->text);
    else
        code = CMD_YES;
    if (f && fclose(f) != 0 && code == CMD_YES)
        code = cmd_fail("cannot write '%s': %s", temporary, strerror(errno));
    if (code == CMD_YES && rename(temporary, path) != 0)
        code = cmd_fail("cannot replace '%s': %s", path, strerror(errno));
    if (code != CMD_YES)
        unlink(temporary);
    free(temporary);
    return code;
}

int cmd_report(int argc, char **argv)
{
    bool json = false;
    const char *out = "report.html";
    comparison c = {0};
    int code;
    const cmd_option options[] = {
        CMD_TEXT('o', "output", "FILE", &out, "where the page goes (report.html)"),
        CMD_JSON(&json),
        CMD_TEXT(0, "first", "RUN", &c.first, "compare this run"),
        CMD_TEXT(0, "second", "RUN", &c.second, "with this one"),
        CMD_TEXT('b', "bound", "BOUND", &c.bound, "within this bound, as cairn-diff(1) has it"),
        CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc < 1)
        return cmd_misuse(usage, "a trail must be named");
    if (!c.first != !c.second || (c.bound && !c.first))
        return cmd_misuse(usage, "a comparison needs --first and --second");
    json_t *data = collect(argv, &c);
    if (!data)
        return CMD_UNKNOWN;
    if (json)
        return cmd_print_json(data, CMD_YES);
    code = write_page(data, out);
    json_decref(data);
    return code;
}
