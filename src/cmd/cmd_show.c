/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn show: a run with what each mark wrote and what became of its legs, or one mark with its
 * variables.
 */
#include "cmd/cmd_events.h"

#include <math.h>

static const char usage[] = "cairn show [--json] TRAIL[/RUN] [MARK]";

typedef CRN_VEC(cmd_contents) mark_list;

static void mark_list_done(mark_list *marks)
{
    for (size_t i = 0; i < marks->n; i++)
        cmd_contents_done(&marks->at[i]);
    crn_vec_done(marks);
}

/* Marks [first, end) of a run. */
static int read_marks(const cmd_place *place, size_t first, size_t end, bool json, mark_list *ret)
{
    int code = CMD_YES;
    for (size_t i = first; i < end; i++) {
        if (crn_vec_push(ret, (cmd_contents){0}) < 0)
            return cmd_fail("no memory for marks");
        int one = cmd_contents_read(place->trail, place->first, i, json, &ret->at[ret->n - 1]);
        code = CRN_MAX(code, one);
    }
    return code;
}

static int print_json(const cairn_run_info *run, const mark_list *marks,
                      const crn_event_list *events, int code)
{
    json_t *list = json_array(), *log = json_array();
    for (size_t i = 0; i < events->n; i++)
        cmd_json_append(&log, json_incref(events->at[i].json));
    for (size_t i = 0; i < marks->n; i++)
        cmd_json_append(&list, cmd_contents_json(&marks->at[i]));
    return cmd_print_json(
        cmd_json_merge(cmd_json_run(run), json_pack("{s:o, s:o, s:o}", "marks", list, "legs",
                                                    crn_report_legs(events), "events", log)),
        code);
}

static void head_cells(cmd_columns *t, const char *const *words)
{
    for (; *words; words++)
        cmd_cell(t, "%s", *words);
}

/* STATE BLOCKS CHANGED SHARE STORED; sum NULL: not known here. */
static void total_cells(cmd_columns *t, const cmd_totals *sum)
{
    for (int i = 0; !sum && i < 5; i++)
        cmd_cell(t, "-");
    if (!sum)
        return;
    char state[CRN_NUMBER_TEXT], stored[CRN_NUMBER_TEXT], share[CMD_WORDS];
    cmd_cell(t, "%s", crn_format_nbytes(sum->nbytes, state, sizeof state));
    cmd_cell(t, "%" PRIu64, sum->nblocks);
    cmd_cell(t, "%" PRIu64, sum->nchanged);
    cmd_cell(t, "%s", cmd_share(sum->nchanged, sum->nblocks, share));
    cmd_cell(t, "%s", crn_format_nbytes(sum->stored_bytes, stored, sizeof stored));
}

/* What the program was held for, and where the mark is. */
static void safety_cells(cmd_columns *t, const cmd_contents *c, const crn_event_mark *told)
{
    char held[CRN_NUMBER_TEXT] = "-", levels[CMD_WORDS];
    if (told)
        crn_format_seconds(told->held, held, sizeof held);
    cmd_cell(t, "%s", held);
    cmd_cell(t, "%s", cmd_levels(c->info.levels, levels));
}

static cmd_totals told_totals(const crn_event_mark *told)
{
    return (cmd_totals){.nbytes = told->nbytes,
                        .nblocks = told->blocks,
                        .nchanged = told->changed,
                        .stored_bytes = told->written};
}

static int print_run(const cairn_run_info *run, const mark_list *marks,
                     const crn_event_list *events, int code)
{
    static const char *const head[] = {"MARK",  "TIME",   "RANKS", "STATE",  "BLOCKS", "CHANGED",
                                       "SHARE", "STORED", "HELD",  "LEVELS", NULL};
    cmd_columns t = {.align = "rlrrrrrrrl"};
    char date[CMD_WORDS];
    cmd_line("run      %s", run->name);
    cmd_line("id       %s", run->id);
    cmd_line("created  %s", cmd_date(run->created_ns, date));
    if (run->rebuilt)
        cmd_line("the manifest was lost or damaged; marks are taken from the part files");
    cmd_line("%s", "");
    head_cells(&t, head);
    for (size_t i = 0; i < marks->n; i++) {
        const cmd_contents *c = &marks->at[i];
        cmd_cell(&t, "%" PRIu64, c->info.version);
        cmd_cell(&t, "%s", cmd_date(c->info.wall_ns, date));
        cmd_cell(&t, "%" PRIu32, c->info.nranks);
        const crn_event *e = cmd_events_find(events, CRN_EVENT_MARK, c->info.version, NULL);
        const cmd_totals told = e ? told_totals(&e->mark) : (cmd_totals){0};
        total_cells(&t, c->in_trail ? &c->sum : e ? &told : NULL);
        safety_cells(&t, c, e ? &e->mark : NULL);
    }
    json_t *legs = crn_report_legs(events);
    code = cmd_print_legs(legs, cmd_columns_print(&t, 0, code));
    json_decref(legs);
    return code;
}

/* "100x200" of a global array, else the number of elements. */
static void shape_cell(cmd_columns *t, const cmd_variable *v)
{
    char text[8 * 21] = "";
    size_t n = 0;
    for (uint32_t i = 0; i < v->first.ndims && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%" PRIu64, i ? "x" : "",
                              v->first.global[i]);
    if (v->first.ndims > 0)
        cmd_cell(t, "%s", text);
    else
        cmd_cell(t, "%" PRIu64, v->sum.nbytes / CRN_MAX(v->first.item_bytes, 1u));
}

/* How long the mark held the program, and what its way to each level took. */
static void print_way(const cmd_contents *c, const crn_event_list *events)
{
    char took[CRN_NUMBER_TEXT], moved[CRN_NUMBER_TEXT], stored[CRN_NUMBER_TEXT];
    const crn_event *e = cmd_events_find(events, CRN_EVENT_MARK, c->info.version, NULL);
    if (e)
        cmd_line("held    %s", crn_format_seconds(e->mark.held, took, sizeof took));
    for (unsigned l = 1; l < 4; l++) {
        char level[CMD_WORDS];
        e = cmd_events_find(events, CRN_EVENT_RAISED, c->info.version, cmd_levels(1u << l, level));
        if (e)
            cmd_line("%-7s in %s, %s moved between ranks, %s stored", level,
                     crn_format_seconds(e->raised.seconds, took, sizeof took),
                     crn_format_nbytes(e->raised.moved, moved, sizeof moved),
                     crn_format_nbytes(e->raised.stored, stored, sizeof stored));
    }
}

/* "-93%" of the time of a full mark more, or "-" where that is not known. */
static void gain_cell(cmd_columns *t, double gain)
{
    if (isnan(gain))
        cmd_cell(t, "-");
    else
        cmd_cell(t, "%+.0f%%", 100 * gain);
}

static void change_cells(cmd_columns *t, const crn_event_variable *v)
{
    const uint64_t nbytes[] = {v->nbytes, v->written, v->hashed, v->changed, v->stored};
    char text[CRN_NUMBER_TEXT];
    cmd_cell(t, "%s", v->name ? v->name : "-");
    for (size_t k = 0; k < sizeof nbytes / sizeof *nbytes; k++)
        if (k == 1 && !v->tracked)
            cmd_cell(t, "-");
        else
            cmd_cell(t, "%s", crn_format_nbytes(nbytes[k], text, sizeof text));
    cmd_cell(t, "%s%s", v->tracked ? "tracking, " : "", v->way ? v->way : "-");
    gain_cell(t, v->predicted);
    gain_cell(t, v->measured);
}

/* How the changes of each variable were found, and whether that was a good choice. */
static int print_changes(const cmd_contents *c, const crn_event_list *events, int code)
{
    static const char *const head[] = {"VARIABLE", "STATE",    "WRITTEN",   "HASHED",   "CHANGED",
                                       "STORED",   "FOUND BY", "PREDICTED", "MEASURED", NULL};
    cmd_columns t = {.align = "lrrrrrlrr"};
    const crn_event *e = cmd_events_find(events, CRN_EVENT_CHANGES, c->info.version, NULL);
    json_t *variables = e ? e->changes.variables : NULL;
    const size_t ntold = json_array_size(variables);
    if (e && ntold == 0 && c->vars.n > 0)
        cmd_line("\nhow changes were found is not told: the ranks have different variables");
    if (ntold == 0)
        return code;
    cmd_line("%s", "");
    head_cells(&t, head);
    for (size_t i = 0; i < ntold; i++) {
        const crn_event_variable v = crn_event_variable_decode(json_array_get(variables, i));
        change_cells(&t, &v);
    }
    code = cmd_columns_print(&t, 0, code);
    if (c->vars.n > ntold)
        cmd_line("and %zu smaller variables", c->vars.n - ntold);
    return code;
}

/* Which variables the program has left out of the mark, wholly or in part. */
static void print_not_kept(const cmd_contents *c)
{
    bool any = false;
    for (size_t i = 0; i < c->vars.n; i++) {
        const cmd_variable *v = &c->vars.at[i];
        char kept[CRN_NUMBER_TEXT], whole[CRN_NUMBER_TEXT];
        if (v->kept_bytes >= v->whole_bytes)
            continue;
        if (!any)
            cmd_line("%s", "");
        any = true;
        crn_format_nbytes(v->whole_bytes, whole, sizeof whole);
        if (v->kept_bytes == 0)
            cmd_line("'%s': not kept, %s", v->name, whole);
        else
            cmd_line("'%s': %s of %s kept", v->name,
                     crn_format_nbytes(v->kept_bytes, kept, sizeof kept), whole);
    }
}

static int print_mark(const cairn_run_info *run, const cmd_contents *c,
                      const crn_event_list *events, int code)
{
    static const char *const head[] = {"VARIABLE", "TYPE",    "SHAPE", "BLOCK",  "STATE",
                                       "BLOCKS",   "CHANGED", "SHARE", "STORED", NULL};
    cmd_columns t = {.align = "llrrrrrrr"};
    char date[CMD_WORDS], levels[CMD_WORDS], nbytes[CRN_NUMBER_TEXT];
    cmd_line("run     %s", run->name);
    cmd_line("mark    %" PRIu64, c->info.version);
    cmd_line("time    %s", cmd_date(c->info.wall_ns, date));
    cmd_line("ranks   %" PRIu32, c->info.nranks);
    cmd_line("levels  %s", cmd_levels(c->info.levels, levels));
    print_way(c, events);
    if (!c->in_trail) {
        cmd_line("its data is on the nodes that wrote it");
        return print_changes(c, events, code);
    }
    cmd_line("files   %s", crn_format_nbytes(c->file_bytes, nbytes, sizeof nbytes));
    cmd_line("%s", "");
    head_cells(&t, head);
    for (size_t i = 0; i < c->vars.n; i++) {
        const cmd_variable *v = &c->vars.at[i];
        cmd_cell(&t, "%s", v->name);
        cmd_cell(&t, "%s", v->type);
        shape_cell(&t, v);
        cmd_cell(&t, "%s", crn_format_nbytes(v->first.block_bytes, nbytes, sizeof nbytes));
        total_cells(&t, &v->sum);
    }
    code = cmd_columns_print(&t, 0, code);
    print_not_kept(c);
    return print_changes(c, events, code);
}

/* The number of the mark whose version the user gave. */
static int find_mark(const cmd_place *place, const cairn_run_info *run, const char *text,
                     size_t *ret)
{
    uint64_t version;
    if (crn_parse_count(text, &version) < 0)
        return cmd_misuse(usage, "a mark is named by its number: %s", crn_err_peek()->text);
    for (size_t i = 0; i < run->nmarks; i++) {
        cairn_mark_info mark = {.struct_bytes = sizeof mark};
        if (cairn_trail_mark(place->trail, place->first, i, &mark) < 0)
            return cmd_fail("%s", cairn_error_text());
        if (mark.version == version) {
            *ret = i;
            return CMD_YES;
        }
    }
    return cmd_fail("run '%s' has no mark %" PRIu64 "; 'cairn ls' lists those it has", run->name,
                    version);
}

static int show(const cmd_place *place, const char *version, bool json)
{
    cairn_run_info run = {.struct_bytes = sizeof run};
    mark_list marks = {0};
    size_t mark = 0;
    if (cairn_trail_run(place->trail, place->first, &run) < 0)
        return cmd_fail("%s", cairn_error_text());
    if (version && find_mark(place, &run, version, &mark) != CMD_YES)
        return CMD_UNKNOWN;
    int code = read_marks(place, mark, version ? mark + 1 : run.nmarks, json, &marks);
    const crn_detail detail = json ? CRN_DETAIL_ALL : version ? CRN_DETAIL_MARK : CRN_DETAIL_NONE;
    crn_event_list events;
    const int read = cmd_events_read(place->trail, place->first, detail,
                                     marks.n > 0 ? marks.at[0].info.version : 0, &events);
    code = CRN_MAX(code, read);
    if (json)
        code = print_json(&run, &marks, &events, code);
    else if (version && marks.n == 1)
        code = print_mark(&run, &marks.at[0], &events, code);
    else
        code = print_run(&run, &marks, &events, code);
    crn_events_done(&events);
    mark_list_done(&marks);
    return code;
}

int cmd_show(int argc, char **argv)
{
    bool json = false;
    cmd_place place;
    int code;
    const cmd_option options[] = {CMD_JSON(&json), CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc < 1 || argc > 2)
        return cmd_misuse(usage, "a trail, and perhaps a mark, must be named");
    if (cmd_place_open(argv[0], &place) != CMD_YES)
        return CMD_UNKNOWN;
    if (place.end == 0) {
        code = cmd_fail("'%s' has no runs", argv[0]);
    } else {
        place.first = place.end - 1; /* of a whole trail, the last run */
        code = show(&place, argc > 1 ? argv[1] : NULL, json);
    }
    cmd_place_close(&place);
    return code;
}
