/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn export: marks as HDF5 files.
 */
#include "cmd/cmd_shelf.h"

#include <cairn/exchange.h>

static const char usage[] =
    "cairn export [--json] [--all | --mark VERSION] [--output FILE] TRAIL[/RUN]\n"
    "cairn export [--json] [--all | --mark VERSION] [--output FILE] SHELF[/KEY[@VERSION]]";

enum {
    IN_TRAIL = 1 << 3, /* of cairn_mark_info.levels */
    TRIES = 8
};

typedef struct exporting {
    bool json, all;
    const char *mark, *output;
    const char *place;  /* as named */
    cairn_shelf *shelf; /* whose states are meant; NULL: a trail's marks */
    uint64_t version;   /* what mark says */
    cairn_export_options how;
    cairn_export_result made;
    char path[4096], series[4096]; /* of how */
    json_t *list;                  /* of files, with json */
    uint64_t nfiles;
    char why[CRN_ERR_TEXT]; /* the last mark failed */
    unsigned ntries;        /* with the newest mark that failed */
    bool again;             /* there is another newest now */
    cmd_progress progress;
} exporting;

static int on_progress(void *arg, uint64_t done_bytes, uint64_t total_bytes)
{
    cmd_progress_update(arg, done_bytes, total_bytes);
    return 0;
}

/* The file of a mark: as named, before the ".h5" of which the version comes if there are several.
 */
static void name_file(exporting *e)
{
    const char *name = e->output ? e->output : e->how.run;
    const size_t n = strlen(name);
    const bool suffix = n > 3 && strcmp(name + n - 3, ".h5") == 0;
    if (e->output && !e->all)
        snprintf(e->path, sizeof e->path, "%s", name);
    else
        snprintf(e->path, sizeof e->path, "%.*s-%" PRIu64 ".h5", (int)(suffix ? n - 3 : n), name,
                 e->how.version);
}

static json_t *json_of(const exporting *e, uint64_t version)
{
    json_t *facts = json_pack("{s:I, s:o, s:I, s:I}", "version", (json_int_t)version, "file",
                              cmd_json_text(e->path), "variables", (json_int_t)e->made.nvars,
                              "nbytes", (json_int_t)e->made.nbytes);
    if (e->shelf)
        json_object_set_new(facts, "key", json_string(e->how.run));
    return facts;
}

/* Returns what the library says. */
static int export_mark(exporting *e, uint64_t version)
{
    char what[CRN_ERR_TEXT], nbytes[CRN_NUMBER_TEXT];
    e->how.version = version;
    e->how.path = e->path;
    e->how.progress = on_progress;
    e->how.arg = &e->progress;
    name_file(e);
    snprintf(what, sizeof what, "writing '%.256s'", e->path);
    cmd_progress_start(&e->progress, what);
    int rc;
    if (e->shelf)
        rc = cairn_state_export(e->shelf, e->how.run, version, &e->how, &e->made);
    else
        rc = cairn_export(&e->how, &e->made);
    cmd_progress_end(&e->progress);
    if (rc < 0) {
        snprintf(e->why, sizeof e->why, "%s", cairn_error_text());
        return rc;
    }
    e->how.nmoments = e->made.nmoments;
    e->nfiles++;
    if (e->json)
        cmd_json_append(&e->list, json_of(e, version));
    else
        cmd_line("%s %" PRIu64 ": '%s', %" PRIu64 " variable%s, %s", e->shelf ? e->how.run : "mark",
                 version, e->path, e->made.nvars, e->made.nvars == 1 ? "" : "s",
                 crn_format_nbytes(e->made.nbytes, nbytes, sizeof nbytes));
    return CAIRN_OK;
}

/* The time series of all marks is called as their files are, without a version. */
static void name_series(exporting *e)
{
    const char *name = e->output ? e->output : e->how.run, *slash = strrchr(name, '/');
    name = slash ? slash + 1 : name;
    const size_t n = strlen(name);
    const bool suffix = n > 3 && strcmp(name + n - 3, ".h5") == 0;
    snprintf(e->series, sizeof e->series, "%.*s.xmf", (int)(suffix ? n - 3 : n), name);
    e->how.series = e->series;
}

/* The newest mark of a run that the trail has, or with only, that very one. */
static bool find_mark(const cmd_place *place, size_t nmarks, const uint64_t *only, uint64_t *ret)
{
    cairn_mark_info mark = {.struct_bytes = sizeof mark};
    for (size_t i = nmarks; i-- > 0;) {
        if (cairn_trail_mark(place->trail, place->first, i, &mark) < 0 || !(mark.levels & IN_TRAIL))
            continue;
        *ret = mark.version;
        if (!only || mark.version == *only)
            return true;
    }
    return false;
}

/* Is the mark that could not be read no longer there? A program that keeps few may have dropped it
 * under our hands. */
static bool has_gone(const exporting *e, int rc)
{
    cairn_run_info run = {.struct_bytes = sizeof run};
    cmd_place place;
    uint64_t version;
    if (rc != CAIRN_ENOTFOUND || cmd_place_open(e->place, &place) != CMD_YES)
        return false;
    const bool gone = cairn_trail_run(place.trail, place.first, &run) == CAIRN_OK &&
                      !find_mark(&place, run.nmarks, &e->how.version, &version);
    cmd_place_close(&place);
    return gone;
}

/* All marks that the trail has; what goes meanwhile is passed over. */
static int export_all(exporting *e, const cmd_place *place, const cairn_run_info *run)
{
    cairn_mark_info mark = {.struct_bytes = sizeof mark};
    name_series(e);
    for (size_t i = 0; i < run->nmarks; i++) {
        if (cairn_trail_mark(place->trail, place->first, i, &mark) < 0)
            return cmd_fail("%s", cairn_error_text());
        if (!(mark.levels & IN_TRAIL))
            continue;
        const int rc = export_mark(e, mark.version);
        if (rc < 0 && !has_gone(e, rc))
            return cmd_fail("%s", e->why);
    }
    return e->nfiles > 0 ? CMD_YES : cmd_fail("run '%s' has no mark in the trail", run->name);
}

/* The marks that are meant. */
static int export_run(exporting *e, const cmd_place *place)
{
    cairn_run_info run = {.struct_bytes = sizeof run};
    uint64_t version = e->version;
    if (cairn_trail_run(place->trail, place->first, &run) < 0)
        return cmd_fail("%s", cairn_error_text());
    e->how.run = run.name;
    if (e->all)
        return export_all(e, place, &run);
    if (!e->mark && !find_mark(place, run.nmarks, NULL, &version))
        return cmd_fail("run '%s' has no mark in the trail", run.name);
    const int rc = export_mark(e, version);
    if (rc == CAIRN_OK)
        return CMD_YES;
    e->again = !e->mark && ++e->ntries < TRIES && has_gone(e, rc);
    return e->again ? CMD_UNKNOWN : cmd_fail("%s", e->why);
}

static int export_place(exporting *e)
{
    cmd_place place;
    char *trail, *run;
    int code = CMD_UNKNOWN;
    e->again = false;
    if (cmd_place_open(e->place, &place) != CMD_YES)
        return CMD_UNKNOWN;
    if (place.end - place.first != 1) {
        cmd_fail("'%s' has %zu runs: name one", e->place, place.end - place.first);
    } else if (cmd_place_names(e->place, &trail, &run) == CMD_YES) {
        e->how.trail = trail;
        code = export_run(e, &place);
        free(trail);
        free(run);
    }
    cmd_place_close(&place);
    return code;
}

/* --- shelves ------------------------------------------------------------------------------ */

/* The states that are meant: of a key the newest version, one version, or all. */
static bool is_meant(const exporting *e, const cmd_shelf_place *p, size_t i)
{
    if (e->mark)
        return p->state.at[i].version == e->version;
    return e->all || i == p->state.n - 1;
}

static int export_states(exporting *e, const cmd_shelf_place *p)
{
    if (!p->key && !e->all && !e->mark)
        return cmd_fail("'%s' is a shelf: name a key of it, as in '%s/KEY', or --mark or --all",
                        e->place, e->place);
    if (!p->key && e->output)
        return cmd_fail("--output is for the states of one key, as in '%s/KEY'", e->place);
    e->shelf = p->shelf;
    if (p->key && e->all) {
        e->how.run = p->key;
        name_series(e);
    }
    for (size_t i = 0; i < p->state.n; i++) {
        if (!is_meant(e, p, i))
            continue;
        e->how.run = p->state.at[i].key;
        const int rc = export_mark(e, p->state.at[i].version);
        if (rc < 0 && !(rc == CAIRN_ENOTFOUND && e->all)) /* else: dropped meanwhile */
            return cmd_fail("%s", e->why);
    }
    return e->nfiles > 0 ? CMD_YES : cmd_fail("'%s' has no such state", e->place);
}

static int export_shelf(exporting *e)
{
    cmd_shelf_place p;
    int code = cmd_shelf_open(e->place, &p);
    if (code != CMD_YES)
        return code;
    code = export_states(e, &p);
    cmd_shelf_close(&p);
    return code;
}

int cmd_export(int argc, char **argv)
{
    exporting e = {.how.struct_bytes = sizeof e.how, .made.struct_bytes = sizeof e.made};
    int code;
    const cmd_option options[] = {
        CMD_JSON(&e.json),
        CMD_FLAG('a', "all", &e.all, "all marks or states, a file each; of a run a time series"),
        CMD_TEXT('m', "mark", "VERSION", &e.mark,
                 "the mark, or the version of a state (the newest)"),
        CMD_TEXT('o', "output", "FILE", &e.output,
                 "the file to write (RUN-VERSION.h5, KEY-VERSION.h5)"),
        CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc != 1)
        return cmd_misuse(usage, "one run must be named, or one shelf");
    if (e.all && e.mark)
        return cmd_misuse(usage, "--all and --mark exclude each other");
    if (e.mark && crn_parse_count(e.mark, &e.version) < 0)
        return cmd_misuse(usage, "--mark: %s", crn_err_peek()->text);
    if (e.json)
        e.list = json_array();
    e.place = argv[0];
    if (cmd_is_shelf(e.place)) {
        code = export_shelf(&e);
        return e.json && e.nfiles > 0 ? cmd_print_json(e.list, code) : code;
    }
    do
        code = export_place(&e);
    while (e.again);
    return e.json && e.nfiles > 0 ? cmd_print_json(e.list, code) : code;
}
