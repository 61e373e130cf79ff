/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn report: one page, or one JSON object, about the runs of a trail.
 */
#include "cmd/cmd_trace.h"

#include <unistd.h>

#include "ensemble/ensemble.h"
#include "report/report.h"

static const char usage[] =
    "cairn report [-o FILE | --json] [--trace FILE] [--first RUN --second RUN [--bound BOUND]] "
    "TRAIL[/RUN]|STUDY.ini ...";

enum { GROUPS = 64 }; /* of ranks in pictures of traces: more would be too small to see */

typedef struct comparison {
    const char *first, *second, *bound;
} comparison;

/* What is asked for, and what there is of it. */
typedef struct report_job {
    comparison compare;
    const char *trace; /* NULL: those that lie beside their runs */
    json_t *runs, *studies;
    int code; /* CMD_UNKNOWN: some trace could not be read, which was reported */
} report_job;

/* One that cannot be read is missing from the page: the rest is worth having. */
static void add_trace(report_job *job, json_t *run, const char *path)
{
    json_t *trace = cmd_trace_stat_joined(path, GROUPS);
    if (!trace || json_object_set_new(run, "trace", trace) != 0)
        job->code = CMD_UNKNOWN;
}

static int add_named_trace(report_job *job)
{
    const size_t n = json_array_size(job->runs);
    if (n != 1)
        return cmd_fail("'%s' is the trace of one run, and there are %zu: name one as TRAIL/RUN",
                        job->trace, n);
    add_trace(job, json_array_get(job->runs, 0), job->trace);
    return CMD_YES;
}

/* Those of a trail's runs, from the given one on. */
static int add_traces_beside(report_job *job, const char *trail, size_t first)
{
    for (size_t i = first; i < json_array_size(job->runs); i++) {
        json_t *run = json_array_get(job->runs, i);
        const char *name = json_string_value(json_object_get(run, "run"));
        char *path;
        if (cmd_trace_beside(trail, name, &path) != CMD_YES)
            return CMD_UNKNOWN;
        if (access(path, F_OK) == 0)
            add_trace(job, run, path);
        free(path);
    }
    return CMD_YES;
}

static int find_traces(report_job *job, const char *name, size_t first)
{
    char *trail, *run;
    if (cmd_place_names(name, &trail, &run) != CMD_YES)
        return CMD_UNKNOWN;
    int code = add_traces_beside(job, trail, first);
    free(trail);
    free(run);
    return code;
}

static int add_place(report_job *job, const char *name)
{
    cmd_place place;
    const size_t first = json_array_size(job->runs);
    if (cmd_place_open(name, &place) != CMD_YES)
        return CMD_UNKNOWN;
    int code = CMD_YES;
    if (crn_report_runs(place.trail, name, place.first, place.end, job->runs) < 0)
        code = cmd_fail("%s", crn_err_peek()->text);
    else if (!job->trace)
        code = find_traces(job, name, first);
    cmd_place_close(&place);
    return code;
}

static bool is_study(const char *name)
{
    const size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".ini") == 0;
}

static int add_study(report_job *job, const char *name)
{
    crn_study *study;
    char *events;
    json_t *found = NULL;
    cairn_status rc = crn_study_open(name, &study);
    if (rc == CAIRN_OK) {
        rc = crn_study_path(study, "events.jsonl", &events);
        if (rc == CAIRN_OK) {
            rc = crn_report_study(name, events, &found);
            free(events);
        }
        crn_study_free(study);
    }
    if (rc < 0)
        return cmd_fail("%s", crn_err_peek()->text);
    cmd_json_append(&job->studies, found);
    return CMD_YES;
}

static int add_places(report_job *job, char **names)
{
    for (; *names; names++)
        if ((is_study(*names) ? add_study(job, *names) : add_place(job, *names)) != CMD_YES)
            return CMD_UNKNOWN;
    return job->trace ? add_named_trace(job) : CMD_YES;
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
static json_t *collect(report_job *job, char **names)
{
    job->runs = json_array();
    job->studies = json_array();
    if (add_places(job, names) != CMD_YES) {
        json_decref(job->runs);
        json_decref(job->studies);
        return NULL;
    }
    json_t *data =
        json_pack("{s:s, s:f, s:o, s:o}", "version", cairn_version(), "time",
                  (double)crn_wall_ns() * 1e-9, "runs", job->runs, "studies", job->studies);
    if (!data)
        cmd_fail("no memory for the report");
    else if (add_comparison(data, &job->compare) == CMD_YES)
        return data;
    json_decref(data);
    return NULL;
}

static int write_page(json_t *data, const char *path)
{
    crn_buf page = {0};
    cairn_status rc = crn_report_page(data, &page);
    if (rc == CAIRN_OK)
        rc = crn_output_write(path, page.at, page.n);
    crn_buf_done(&page);
    return rc < 0 ? cmd_fail("%s", crn_err_peek()->text) : CMD_YES;
}

int cmd_report(int argc, char **argv)
{
    bool json = false;
    const char *out = "report.html";
    report_job job = {.code = CMD_YES};
    comparison *c = &job.compare;
    int code;
    const cmd_option options[] = {
        CMD_TEXT('o', "output", "FILE", &out, "where the page goes (report.html)"),
        CMD_JSON(&json),
        CMD_TEXT('t', "trace", "FILE", &job.trace, "the trace of the run (TRAIL/RUN.ctr)"),
        CMD_TEXT(0, "first", "RUN", &c->first, "compare this run"),
        CMD_TEXT(0, "second", "RUN", &c->second, "with this one"),
        CMD_TEXT('b', "bound", "BOUND", &c->bound, "within this bound, as cairn-diff(1) has it"),
        CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc < 1)
        return cmd_misuse(usage, "a trail must be named");
    if (!c->first != !c->second || (c->bound && !c->first))
        return cmd_misuse(usage, "a comparison needs --first and --second");
    if (crn_json_present("a report") < 0)
        return cmd_fail("%s", crn_err_peek()->text);
    json_t *data = collect(&job, argv);
    if (!data)
        return CMD_UNKNOWN;
    if (json)
        return cmd_print_json(data, job.code);
    code = write_page(data, out);
    json_decref(data);
    return code == CMD_YES ? job.code : code;
}
