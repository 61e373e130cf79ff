/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn show: a run with what each mark wrote and what became of its legs, or one mark with its
 * variables.
 */
#include "cmd/cmd_events.h"
#include "cmd/cmd_shelf.h"

#include <math.h>

static const char usage[] = "cairn show [--json] TRAIL[/RUN] [MARK]\n"
                            "cairn show [--json] SHELF[/KEY] [VERSION]";

/* What is asked for: a run, or one mark of it. */
typedef struct show_job {
    const cmd_place *place;
    cairn_run_info run;
    size_t first, end; /* marks of the run */
} show_job;

/* Read mark i of the run; then cmd_contents_done is due. */
static int read_mark(const show_job *job, size_t i, bool pieces, cmd_contents *ret)
{
    *ret = (cmd_contents){0};
    return cmd_contents_read(job->place->trail, job->place->first, i, pieces, ret);
}

/* --- JSON ----------------------------------------------------------------------------------- */

static int print_event(void *arg, const char *line)
{
    crn_event e;
    if (crn_event_decode(line, NULL, &e)) {
        cmd_json_add_line(arg, line);
        crn_event_done(&e);
    }
    return 0;
}

/* What codecs made of the variables of the run, or NULL. */
static int read_codecs(const show_job *job, json_t **ret)
{
    *ret = NULL;
    if (crn_report_codecs(job->place->trail, job->place->first, ret) < 0)
        return cmd_fail("%s", crn_err_peek()->text);
    return CMD_YES;
}

static int show_json(const show_job *job)
{
    cmd_json j = {0};
    json_t *codecs;
    crn_report_log *log;
    int code = CMD_YES;
    cmd_json_begin(&j, NULL, '{');
    cmd_json_add_members(&j, cmd_json_run(&job->run));
    cmd_json_begin(&j, "marks", '[');
    for (size_t i = job->first; i < job->end; i++) {
        cmd_contents c;
        const int one = read_mark(job, i, true, &c);
        cmd_json_add(&j, NULL, cmd_contents_json(&c));
        cmd_contents_done(&c);
        code = CRN_MAX(code, one);
    }
    cmd_json_end(&j, ']');
    const int read = cmd_log_read(job->place->trail, job->place->first, &log);
    cmd_json_add(&j, "legs", cmd_log_legs(log));
    const int known = read_codecs(job, &codecs);
    cmd_json_add(&j, "codecs", codecs ? codecs : json_array());
    cmd_json_begin(&j, "events", '[');
    if (log && cairn_trail_events(job->place->trail, job->place->first, print_event, &j) < 0)
        code = cmd_fail("%s", cairn_error_text());
    cmd_json_end(&j, ']');
    cmd_json_end(&j, '}');
    crn_report_log_free(log);
    code = CRN_MAX(code, known);
    return cmd_json_finish(&j, CRN_MAX(code, read));
}

/* --- a run ---------------------------------------------------------------------------------- */

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
static void safety_cells(cmd_columns *t, const cmd_contents *c, const crn_logged_mark *logged)
{
    char held[CRN_NUMBER_TEXT] = "-", levels[CMD_WORDS];
    if (logged)
        crn_format_seconds(logged->held, held, sizeof held);
    cmd_cell(t, "%s", held);
    cmd_cell(t, "%s", cmd_levels(c->info.levels, levels));
}

static cmd_totals logged_totals(const crn_logged_mark *logged)
{
    return (cmd_totals){.nbytes = logged->nbytes,
                        .nblocks = logged->blocks,
                        .nchanged = logged->changed,
                        .stored_bytes = logged->written};
}

static void mark_cells(cmd_columns *t, const cmd_contents *c, const crn_logged_mark *logged)
{
    char date[CMD_WORDS];
    const cmd_totals sum = logged ? logged_totals(logged) : (cmd_totals){0};
    cmd_cell(t, "%" PRIu64, c->info.version);
    cmd_cell(t, "%s", cmd_date(c->info.wall_ns, date));
    cmd_cell(t, "%" PRIu32, c->info.nranks);
    total_cells(t, c->in_trail ? &c->sum : logged ? &sum : NULL);
    safety_cells(t, c, logged);
}

static int print_marks(const show_job *job, const crn_report_log *log)
{
    static const char *const head[] = {"MARK",  "TIME",   "RANKS", "STATE",  "BLOCKS", "CHANGED",
                                       "SHARE", "STORED", "HELD",  "LEVELS", NULL};
    cmd_columns t = {.align = "rlrrrrrrrl"};
    int code = CMD_YES;
    head_cells(&t, head);
    for (size_t i = job->first; i < job->end; i++) {
        cmd_contents c;
        const int one = read_mark(job, i, false, &c);
        mark_cells(&t, &c, log ? crn_report_mark(log, c.info.version) : NULL);
        cmd_contents_done(&c);
        code = CRN_MAX(code, one);
    }
    return cmd_columns_print(&t, 0, code);
}

/* VARIABLE CODEC BOUND BLOCKS RATE ERROR STRICTER LOSSLESS SPECIAL SIZE ASIDE */
static void codec_cells(cmd_columns *t, const crn_event_coded *c)
{
    const uint64_t counts[] = {c->stricter, c->bound, c->special, c->size, c->aside};
    cmd_cell(t, "%s", c->name && c->name[0] ? c->name : "(all)");
    cmd_cell(t, "%s", c->codec ? c->codec : "-");
    cmd_cell(t, "%s", c->loss ? c->loss : "-");
    cmd_cell(t, "%" PRIu64, c->blocks);
    cmd_cell(t, "%.2f", crn_report_rate(c));
    cmd_cell(t, "%.3g", c->error);
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
        cmd_cell(t, "%" PRIu64, counts[k]);
}

/* What codecs made of variables: an array of objects as the log has them, or NULL. */
static int print_codecs(const json_t *variables, int code)
{
    static const char *const head[] = {"VARIABLE", "CODEC",      "BOUND",    "BLOCKS",
                                       "RATE",     "ERROR",      "STRICTER", "UNBOUND",
                                       "SPECIAL",  "NO SMALLER", "ASIDE",    NULL};
    cmd_columns t = {.align = "lllrrrrrrrr"};
    json_t *one;
    size_t i;
    if (json_array_size(variables) == 0)
        return code;
    cmd_line("%s", "");
    head_cells(&t, head);
    json_array_foreach(variables, i, one)
    {
        const crn_event_coded c = crn_event_coded_decode(one);
        codec_cells(&t, &c);
    }
    return cmd_columns_print(&t, 0, code);
}

/* What region.check has found, if anything. */
static int print_findings(const show_job *job, int code)
{
    cmd_columns t = {.align = "lllrrr"};
    crn_event_list found;
    if (crn_report_findings(job->place->trail, job->place->first, &found) < 0)
        return cmd_fail("%s", crn_err_peek()->text);
    if (found.n > 0) {
        cmd_line("%s", "");
        head_cells(
            &t, (const char *const[]){"SITE", "VARIABLE", "KIND", "FIRST", "COUNT", "RANK", NULL});
    }
    for (size_t i = 0; i < found.n; i++) {
        const crn_event_finding *f = &found.at[i].finding;
        cmd_cell(&t, "%s", f->site ? f->site : "-");
        cmd_cell(&t, "%s", f->variable ? f->variable : "-");
        cmd_cell(&t, "%s", f->kind ? f->kind : "-");
        cmd_cell(&t, "%" PRIu64, f->index);
        cmd_cell(&t, "%" PRIu64, f->count);
        cmd_cell(&t, "%" PRIu64, f->rank);
    }
    if (found.n > 0)
        code = cmd_columns_print(&t, 0, code);
    crn_events_done(&found);
    return code;
}

static int show_run(const show_job *job)
{
    const cairn_run_info *run = &job->run;
    char date[CMD_WORDS];
    crn_report_log *log;
    const int read = cmd_log_read(job->place->trail, job->place->first, &log);
    cmd_line("run      %s", run->name);
    cmd_line("id       %s", run->id);
    cmd_line("created  %s", cmd_date(run->created_ns, date));
    if (run->rebuilt)
        cmd_line("the manifest was lost or damaged; marks are taken from the part files");
    cmd_line("%s", "");
    int code = print_marks(job, log);
    json_t *legs = cmd_log_legs(log);
    code = cmd_print_legs(legs, CRN_MAX(code, read));
    json_decref(legs);
    crn_report_log_free(log);
    json_t *codecs;
    const int known = read_codecs(job, &codecs);
    code = print_codecs(codecs, CRN_MAX(code, known));
    json_decref(codecs);
    return print_findings(job, code);
}

/* --- a mark --------------------------------------------------------------------------------- */

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
static void print_way(const crn_event_list *events)
{
    char took[CRN_NUMBER_TEXT], moved[CRN_NUMBER_TEXT], stored[CRN_NUMBER_TEXT];
    const crn_event *e = cmd_events_find(events, CRN_EVENT_MARK, NULL);
    if (e)
        cmd_line("held    %s", crn_format_seconds(e->mark.held, took, sizeof took));
    for (unsigned l = 1; l < 4; l++) {
        char level[CMD_WORDS];
        e = cmd_events_find(events, CRN_EVENT_RAISED, cmd_levels(1u << l, level));
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
    const crn_event *e = cmd_events_find(events, CRN_EVENT_CHANGES, NULL);
    json_t *variables = e ? e->changes.variables : NULL;
    const size_t nlogged = json_array_size(variables);
    if (e && nlogged == 0 && c->vars.n > 0)
        cmd_line("\nhow changes were found is not shown: the ranks have different variables");
    if (nlogged == 0)
        return code;
    cmd_line("%s", "");
    head_cells(&t, head);
    for (size_t i = 0; i < nlogged; i++) {
        const crn_event_variable v = crn_event_variable_decode(json_array_get(variables, i));
        change_cells(&t, &v);
    }
    code = cmd_columns_print(&t, 0, code);
    if (c->vars.n > nlogged)
        cmd_line("and %zu smaller variables", c->vars.n - nlogged);
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

/* PLACE MEAN SPREAD VISITS GAP */
static void site_cells(cmd_columns *t, json_t *one)
{
    const crn_event_site s = crn_event_site_decode(one);
    char text[CRN_NUMBER_TEXT];
    cmd_cell(t, "%s", s.name ? s.name : "-");
    cmd_cell(t, "%s", crn_format_nbytes((uint64_t)fmax(s.mean, 0), text, sizeof text));
    cmd_cell(t, "%s", crn_format_nbytes((uint64_t)fmax(s.spread, 0), text, sizeof text));
    cmd_cell(t, "%" PRIu64, s.visits);
    cmd_cell(t, "%" PRIu64, s.gap);
}

/* Where a mark of a program with regions began, what it keeps and why, and the other places. */
static int print_regions(const crn_event_list *events, int code)
{
    const crn_event *e = cmd_events_find(events, CRN_EVENT_REGIONS, NULL);
    cmd_columns kept = {.align = "lrl"}, sites = {.align = "lrrrr"};
    char text[CRN_NUMBER_TEXT], whole[CRN_NUMBER_TEXT], share[CMD_WORDS];
    json_t *one;
    size_t i;
    if (!e || !e->regions.place)
        return code;
    cmd_line("%s", "");
    cmd_line("regions: begun at '%s', %s; keeps %s of %s, %s", e->regions.place,
             e->regions.named ? "as the program asks" : "the best place so far",
             crn_format_nbytes(e->regions.kept, text, sizeof text),
             crn_format_nbytes(e->regions.whole, whole, sizeof whole),
             cmd_share(e->regions.kept, e->regions.whole, share));
    cmd_line(
        "in the program: cairn_region_options o = {.struct_bytes = sizeof o, .place = \"%s\"};",
        e->regions.place);
    head_cells(&kept, (const char *const[]){"VARIABLE", "KEPT", "WHY", NULL});
    json_array_foreach(e->regions.variables, i, one)
    {
        const crn_event_kept v = crn_event_kept_decode(one);
        cmd_cell(&kept, "%s", v.name ? v.name : "-");
        cmd_cell(&kept, "%s", crn_format_nbytes(v.nbytes, text, sizeof text));
        cmd_cell(&kept, "%s", v.why ? v.why : "-");
    }
    cmd_line("%s", "");
    code = cmd_columns_print(&kept, 0, code);
    if (json_array_size(e->regions.sites) == 0)
        return code;
    head_cells(&sites, (const char *const[]){"PLACE", "MEAN", "SPREAD", "VISITS", "GAP", NULL});
    json_array_foreach(e->regions.sites, i, one) site_cells(&sites, one);
    cmd_line("%s", "");
    return cmd_columns_print(&sites, 0, code);
}

static int print_coded(const crn_event_list *events, int code)
{
    const crn_event *e = cmd_events_find(events, CRN_EVENT_CODECS, NULL);
    return e ? print_codecs(e->codecs.variables, code) : code;
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
    print_way(events);
    if (!c->in_trail) {
        cmd_line("its data is on the nodes that wrote it");
        return print_changes(c, events, print_coded(events, print_regions(events, code)));
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
    return print_changes(c, events, print_coded(events, print_regions(events, code)));
}

static int show_mark(const show_job *job)
{
    cmd_contents c;
    crn_event_list events;
    int code = read_mark(job, job->first, false, &c);
    const int read = cmd_events_read(job->place->trail, job->place->first, c.info.version, &events);
    code = print_mark(&job->run, &c, &events, CRN_MAX(code, read));
    crn_events_done(&events);
    cmd_contents_done(&c);
    return code;
}

/* --- the command ---------------------------------------------------------------------------- */

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
    show_job job = {.place = place, .run.struct_bytes = sizeof job.run};
    if (cairn_trail_run(place->trail, place->first, &job.run) < 0)
        return cmd_fail("%s", cairn_error_text());
    job.end = job.run.nmarks;
    if (version && find_mark(place, &job.run, version, &job.first) != CMD_YES)
        return CMD_UNKNOWN;
    if (version)
        job.end = job.first + 1;
    return json ? show_json(&job) : version ? show_mark(&job) : show_run(&job);
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
    if (cmd_is_shelf(argv[0]))
        return cmd_shelf_show(argv[0], argc > 1 ? argv[1] : NULL, json);
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
