/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn verify: read every block of every mark, and its trees, and list those that are not what was
 * written.
 */
#include "cmd/cmd.h"
#include "cmd/cmd_shelf.h"

static const char usage[] = "cairn verify [--json] TRAIL[/RUN] ...\n"
                            "cairn verify [--json] SHELF[/KEY]";

enum { IN_TRAIL = 1 << 3 }; /* of cairn_mark_info.levels */

static const char rebuilt[] =
    "the manifest was lost or damaged; marks are taken from the part files";

/* What is known so far of all that was named. */
typedef struct verdict {
    bool json;
    json_t *damage; /* a list, with json */
    uint64_t nruns, nmarks, nbytes, ndamaged;
    uint64_t nelsewhere; /* marks that are on the nodes only, and are not read */
    bool unchecked;      /* something could not be checked */
} verdict;

/* The run that is being read. */
typedef struct check {
    verdict *all;
    const char *place, *run;
    uint64_t done_bytes;
    bool unread; /* something could not be read, and was reported */
    cmd_progress progress;
} check;

static json_t *json_of_finding(const check *c, const cairn_finding *f)
{
    bool whole = !f->variable || f->block == UINT64_MAX;
    json_t *mark = f->version == UINT64_MAX ? json_null() : json_integer((json_int_t)f->version);
    return json_pack("{s:o, s:s, s:o, s:i, s:o, s:o, s:o}", "trail", cmd_json_text(c->place), "run",
                     c->run, "mark", mark, "rank", (int)f->rank, "variable",
                     f->variable ? cmd_json_text(f->variable) : json_null(), "block",
                     whole ? json_null() : json_integer((json_int_t)f->block), "text",
                     cmd_json_text(f->text));
}

static void report_damage(const check *c, const cairn_finding *f)
{
    c->all->ndamaged++;
    if (c->all->json)
        cmd_json_append(&c->all->damage, json_of_finding(c, f));
    else if (f->variable) /* the sentence says which mark */
        cmd_line("%s: run '%s': %s", c->place, c->run, f->text);
    else if (f->version == UINT64_MAX)
        cmd_line("%s: run '%s', rank %" PRIu32 ": %s", c->place, c->run, f->rank, f->text);
    else
        cmd_line("%s: run '%s', mark %" PRIu64 ", rank %" PRIu32 ": %s", c->place, c->run,
                 f->version, f->rank, f->text);
}

static void report_unread(check *c, const cairn_finding *f)
{
    c->unread = c->all->unchecked = true;
    if (f->variable || f->version == UINT64_MAX)
        cmd_fail("%s: %s", c->place, f->text);
    else
        cmd_fail("%s: mark %" PRIu64 ": %s", c->place, f->version, f->text);
}

static int on_finding(void *arg, const cairn_finding *f)
{
    check *c = arg;
    c->done_bytes = f->done_bytes;
    if (f->status < 0)
        cmd_progress_end(&c->progress);
    if (f->status == CAIRN_EIO)
        report_unread(c, f);
    else if (f->status < 0)
        report_damage(c, f);
    cmd_progress_update(&c->progress, f->done_bytes, f->total_bytes);
    return 0;
}

/* Damage to a run, which text names, that no mark can be blamed for. */
static void report_run(check *c, const char *text)
{
    c->all->ndamaged++;
    if (c->all->json)
        cmd_json_append(&c->all->damage,
                        json_pack("{s:o, s:s, s:n, s:n, s:n, s:n, s:o}", "trail",
                                  cmd_json_text(c->place), "run", c->run, "mark", "rank",
                                  "variable", "block", "text", cmd_json_text(text)));
    else
        cmd_line("%s: %s", c->place, text);
}

static uint64_t count_elsewhere(const cmd_place *place, size_t r, size_t nmarks)
{
    uint64_t n = 0;
    for (size_t i = 0; i < nmarks; i++) {
        cairn_mark_info mark = {.struct_bytes = sizeof mark};
        n += cairn_trail_mark(place->trail, r, i, &mark) == CAIRN_OK && !(mark.levels & IN_TRAIL);
    }
    return n;
}

static void verify_run(verdict *all, const char *name, const cmd_place *place, size_t r)
{
    char what[CRN_ERR_TEXT];
    cairn_run_info run = {.struct_bytes = sizeof run};
    check c = {.all = all, .place = name};
    int rc = cairn_trail_run(place->trail, r, &run);
    c.run = run.name;
    if (rc == CAIRN_ECORRUPT) {
        report_run(&c, cairn_error_text());
        return;
    }
    if (rc == CAIRN_OK && run.rebuilt) {
        snprintf(what, sizeof what, "run '%s': %s", run.name, rebuilt);
        report_run(&c, what);
    }
    if (rc == CAIRN_OK) {
        snprintf(what, sizeof what, "verifying '%s', run '%s'", name, run.name);
        all->nruns++;
        all->nmarks += run.nmarks;
        all->nelsewhere += count_elsewhere(place, r, run.nmarks);
        cmd_progress_start(&c.progress, what);
        rc = cairn_trail_verify(place->trail, r, CAIRN_ALL_MARKS, on_finding, &c);
        cmd_progress_end(&c.progress);
        all->nbytes += c.done_bytes;
    }
    if (rc < 0 && rc != CAIRN_ECORRUPT && !(rc == CAIRN_EIO && c.unread)) {
        cmd_fail("%s: %s", name, cairn_error_text());
        all->unchecked = true;
    }
}

static void verify_place(verdict *all, const char *name)
{
    cmd_place place;
    if (cmd_place_open(name, &place) != CMD_YES) {
        all->unchecked = true;
        return;
    }
    for (size_t r = place.first; r < place.end; r++)
        verify_run(all, name, &place, r);
    cmd_place_close(&place);
}

/* Damage is an answer even if not everything could be read; of nothing there is none. */
static int code_of(const verdict *v)
{
    const bool nothing = v->nmarks > 0 && v->nelsewhere == v->nmarks;
    return v->ndamaged > 0 ? CMD_NO : v->unchecked || nothing ? CMD_UNKNOWN : CMD_YES;
}

static void print_words(const verdict *v)
{
    char nbytes[CRN_NUMBER_TEXT], words[CMD_WORDS] = "sound", rest[64] = "";
    if (v->ndamaged > 0)
        snprintf(words, sizeof words, "damaged in %" PRIu64 " place%s", v->ndamaged,
                 v->ndamaged == 1 ? "" : "s");
    else if (code_of(v) != CMD_YES)
        snprintf(words, sizeof words, "nothing is known");
    if (v->nelsewhere > 0)
        snprintf(rest, sizeof rest, "; %" PRIu64 " mark%s on the nodes, not read", v->nelsewhere,
                 v->nelsewhere == 1 ? " is" : "s are");
    cmd_line("%" PRIu64 " run%s, %" PRIu64 " mark%s, %s read: %s%s", v->nruns,
             v->nruns == 1 ? "" : "s", v->nmarks, v->nmarks == 1 ? "" : "s",
             crn_format_nbytes(v->nbytes, nbytes, sizeof nbytes), words, rest);
}

static int print_verdict(const verdict *v)
{
    if (v->json)
        return cmd_print_json(
            json_pack("{s:b, s:b, s:I, s:I, s:I, s:I, s:o}", "sound", code_of(v) == CMD_YES,
                      "complete", !v->unchecked && v->nelsewhere == 0, "runs", (json_int_t)v->nruns,
                      "marks", (json_int_t)v->nmarks, "elsewhere", (json_int_t)v->nelsewhere,
                      "nbytes", (json_int_t)v->nbytes, "damage", v->damage),
            code_of(v));
    if (v->ndamaged > 0 || !v->unchecked)
        print_words(v);
    return code_of(v);
}

int cmd_verify(int argc, char **argv)
{
    verdict all = {0};
    int code;
    const cmd_option options[] = {CMD_JSON(&all.json), CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc < 1)
        return cmd_misuse(usage, "a trail must be named");
    if (argc == 1 && cmd_is_shelf(argv[0]))
        return cmd_shelf_verify(argv[0], all.json);
    if (all.json)
        all.damage = json_array();
    for (int i = 0; i < argc; i++)
        verify_place(&all, argv[i]);
    return print_verdict(&all);
}
