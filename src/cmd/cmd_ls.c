/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn ls: the runs of a trail, the marks and the legs of each. Reads manifests and event logs
 * only.
 */
#include "cmd/cmd_events.h"
#include "cmd/cmd_shelf.h"

static const char usage[] = "cairn ls [--json] [TRAIL[/RUN]]\n"
                            "cairn ls [--json] SHELF[/KEY]";

static int print_run(const cairn_run_info *run, const cairn_mark_info *marks, json_t *legs)
{
    cmd_columns t = {.align = "rlrrl"};
    char date[CMD_WORDS], levels[CMD_WORDS], nbytes[CRN_NUMBER_TEXT];
    cmd_line("%s  %zu mark%s, created %s%s%s", run->name, run->nmarks, run->nmarks == 1 ? "" : "s",
             cmd_date(run->created_ns, date), run->finished ? ", finished" : "",
             run->rebuilt ? ", manifest rebuilt" : "");
    for (size_t i = 0; i < run->nmarks; i++) {
        const cairn_mark_info *mark = &marks[i];
        cmd_cell(&t, "%" PRIu64, mark->version);
        cmd_cell(&t, "%s", cmd_date(mark->wall_ns, date));
        cmd_cell(&t, "%" PRIu32 " rank%s", mark->nranks, mark->nranks == 1 ? "" : "s");
        cmd_cell(&t, "%s", crn_format_nbytes(mark->nbytes, nbytes, sizeof nbytes));
        cmd_cell(&t, "%s", cmd_levels(mark->levels, levels));
    }
    return cmd_print_legs_short(legs, cmd_columns_print(&t, 2, CMD_YES));
}

static void print_run_json(cmd_json *j, const cairn_run_info *run, const cairn_mark_info *marks,
                           json_t *legs)
{
    cmd_json_begin(j, NULL, '{');
    cmd_json_add_members(j, cmd_json_run(run));
    cmd_json_begin(j, "marks", '[');
    for (size_t i = 0; i < run->nmarks; i++)
        cmd_json_add(j, NULL, cmd_json_mark(&marks[i]));
    cmd_json_end(j, ']');
    cmd_json_add(j, "legs", json_incref(legs));
    cmd_json_end(j, '}');
}

/* Fill marks, of which there are as many as the run has. */
static int read_marks(cairn_trail *trail, size_t r, size_t n, cairn_mark_info *marks)
{
    for (size_t i = 0; i < n; i++) {
        marks[i].struct_bytes = sizeof marks[i];
        if (cairn_trail_mark(trail, r, i, &marks[i]) < 0)
            return cmd_fail("%s", cairn_error_text());
    }
    return CMD_YES;
}

/* Print a run, as JSON if j is given. */
static int list_run(cairn_trail *trail, size_t r, cmd_json *j)
{
    cairn_run_info run = {.struct_bytes = sizeof run};
    cairn_mark_info *marks;
    crn_report_log *log;
    if (cairn_trail_run(trail, r, &run) < 0)
        return cmd_fail("%s", cairn_error_text());
    if (crn_alloc(&marks, run.nmarks) < 0)
        return cmd_fail("no memory for marks");
    int code = read_marks(trail, r, run.nmarks, marks);
    const int read = cmd_log_read(trail, r, &log);
    json_t *legs = cmd_log_legs(log);
    if (code == CMD_YES && j)
        print_run_json(j, &run, marks, legs);
    else if (code == CMD_YES)
        code = print_run(&run, marks, legs);
    code = CRN_MAX(code, read);
    json_decref(legs);
    crn_report_log_free(log);
    free(marks);
    return code;
}

/* One that is damaged hides no others. */
static int list_runs(const cmd_place *place, cmd_json *j)
{
    int code = CMD_YES;
    for (size_t r = place->first; r < place->end; r++) {
        int one = list_run(place->trail, r, j);
        code = CRN_MAX(code, one);
    }
    return code;
}

static int list_runs_json(const cmd_place *place)
{
    cmd_json j = {0};
    cmd_json_begin(&j, NULL, '{');
    cmd_json_begin(&j, "runs", '[');
    int code = list_runs(place, &j);
    cmd_json_end(&j, ']');
    cmd_json_end(&j, '}');
    return cmd_json_finish(&j, code);
}

int cmd_ls(int argc, char **argv)
{
    bool json = false;
    cmd_place place;
    int code;
    const cmd_option options[] = {CMD_JSON(&json), CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc > 1)
        return cmd_misuse(usage, "'%s' is too much", argv[1]);
    if (argc == 1 && cmd_is_shelf(argv[0]))
        return cmd_shelf_ls(argv[0], json);
    if (cmd_place_open(argc ? argv[0] : ".", &place) != CMD_YES)
        return CMD_UNKNOWN;
    code = json ? list_runs_json(&place) : list_runs(&place, NULL);
    cmd_place_close(&place);
    return code;
}
