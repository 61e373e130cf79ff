/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is known of a run, in one object.
 */
#include "report/report_log.h"

enum { KEPT_SHOWN = 2000 };

/* The newest marks that the trail has now, with the levels at which each is kept. */
static json_t *kept_marks(cairn_trail *trail, size_t run, size_t n)
{
    json_t *list = json_array();
    for (size_t i = n - CRN_MIN(n, (size_t)KEPT_SHOWN); i < n; i++) {
        cairn_mark_info mark = {.struct_bytes = sizeof mark};
        json_t *levels = json_array();
        if (cairn_trail_mark(trail, run, i, &mark) < 0)
            continue; /* the number is right: the trail was read before */
        for (crn_level l = 0; l < CRN_NLEVELS; l++)
            if (mark.levels & 1u << l)
                json_array_append_new(levels, json_string(crn_level_name(l)));
        json_array_append_new(
            list, json_pack("{s:I, s:f, s:i, s:I, s:o}", "version", (json_int_t)mark.version,
                            "time", (double)mark.wall_ns * 1e-9, "ranks", (int)mark.nranks,
                            "nbytes", (json_int_t)mark.nbytes, "levels", levels));
    }
    return list;
}

/* Over all marks of the log, also those that are not shown. */
static json_t *totals(const crn_report_log *log, const report_choice *choice, size_t nkept)
{
    double held = 0, written = 0, nbytes = 0;
    size_t nfailed = 0;
    for (size_t i = 0; i < log->mark.n; i++) {
        held += log->mark.at[i].held;
        written += (double)log->mark.at[i].written;
        nbytes += (double)log->mark.at[i].nbytes;
        nfailed += log->mark.at[i].failed;
    }
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f}", "marks",
                     (json_int_t)log->mark.n, "shown", (json_int_t)choice->nmarks, "failed",
                     (json_int_t)nfailed, "failed_shown", (json_int_t)choice->nfailed, "kept",
                     (json_int_t)nkept, "tuned", (json_int_t)log->ntuned, "held", held, "written",
                     written, "nbytes", nbytes);
}

static cairn_status run_json(cairn_trail *trail, const char *name, size_t r,
                             const cairn_run_info *run, const crn_report_log *log, json_t **ret)
{
    report_choice choice = {0};
    json_t *marks, *tuned, *codecs = NULL, *regions = NULL;
    cairn_status rc = crn_report_codecs(trail, r, &codecs);
    if (rc == CAIRN_OK)
        rc = crn_report_regions(trail, r, &regions);
    if (rc == CAIRN_OK)
        rc = crn_report_choose(log, &choice);
    if (rc == CAIRN_OK)
        rc = crn_report_details(trail, r, log, &choice, &marks, &tuned);
    if (rc == CAIRN_OK)
        *ret = json_pack("{s:s, s:s, s:s, s:f, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:O, s:O}",
                         "trail", name, "run", run->name, "id", run->id, "created",
                         (double)run->created_ns * 1e-9, "finished", run->finished, "rebuilt",
                         run->rebuilt, "legs", crn_report_legs(log), "totals",
                         totals(log, &choice, run->nmarks), "marks", marks, "kept",
                         kept_marks(trail, r, run->nmarks), "plan",
                         crn_report_plan(trail, r, tuned), "codecs", codecs, "regions", regions);
    json_decref(codecs);
    json_decref(regions);
    free(choice.mark);
    return rc;
}

static cairn_status add_run(cairn_trail *trail, const char *name, size_t r, json_t *runs)
{
    cairn_run_info run = {.struct_bytes = sizeof run};
    crn_report_log *log;
    json_t *one = NULL;
    int rc = cairn_trail_run(trail, r, &run);
    CRN_FAIL_IF(rc < 0, (cairn_status)rc, "%s", cairn_error_text());
    CRN_TRY(crn_report_read(trail, r, &log));
    rc = run_json(trail, name, r, &run, log, &one);
    crn_report_log_free(log);
    CRN_TRY(rc);
    CRN_FAIL_IF(!one || json_array_append_new(runs, one) != 0, CAIRN_ENOMEM,
                "no memory for run '%s'", run.name);
    return CAIRN_OK;
}

cairn_status crn_report_runs(cairn_trail *trail, const char *name, size_t first, size_t end,
                             json_t *runs)
{
    for (size_t r = first; r < end; r++)
        CRN_TRY(add_run(trail, name, r, runs));
    return CAIRN_OK;
}
