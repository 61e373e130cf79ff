/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn explain: where two runs part, and the reason, from their traces: what happened in another
 * order between the last mark that agrees and the first that does not.
 */
#include <cairn/explain.h>

#include "cmd/cmd_compare.h"
#include "cmd/cmd_trace.h"

static const char usage[] = "cairn explain [--all] [--bound BOUND] [--variable NAME] [--nan WORD] "
                            "[--json] RUN RUN [TRACE TRACE]";

enum { SHOWN = 3 }; /* receives of a rank, unless all are asked for */

typedef struct explanation {
    cmd_comparison compare;
    cairn_explanation *why;
    cairn_parting parting;
    char *trace[2];
    bool all, json;
    uint64_t ndeviations;
    cairn_explain_remarks remarks;
    json_t *list;
} explanation;

/* ---- the traces ---- */

/* The only run of a trail may go by the trail's name. */
static int only_run(const char *trail, char **ret)
{
    cmd_place place;
    cairn_run_info run = {.struct_bytes = sizeof run};
    if (cmd_place_open(trail, &place) != CMD_YES)
        return CMD_UNKNOWN;
    int code = CMD_YES;
    if (cairn_trail_run(place.trail, 0, &run) < 0)
        code = cmd_fail("%s", cairn_error_text());
    else if (crn_strdup(run.name, ret) < 0)
        code = cmd_fail("no memory");
    cmd_place_close(&place);
    return code;
}

/* Beside the run, in the trail: RUN.ctr. */
static int find_trace(const char *name, char **ret)
{
    char *trail, *run;
    int code = cmd_place_names(name, &trail, &run);
    if (code != CMD_YES)
        return code;
    if (!run)
        code = only_run(trail, &run);
    if (code == CMD_YES)
        code = cmd_trace_beside(trail, run, ret);
    free(trail);
    free(run);
    return code;
}

/* Also what a run that was killed has left of one will do. */
static bool is_there(const char *path)
{
    cairn_trace *t;
    const int rc = cairn_trace_open(path, &t);
    if (rc == CAIRN_OK)
        cairn_trace_close(t);
    return rc != CAIRN_ENOTFOUND;
}

static int find_traces(explanation *x, int argc, char **argv)
{
    for (int i = 0; i < 2; i++) {
        if (argc == 4 && crn_strdup(argv[2 + i], &x->trace[i]) < 0)
            return cmd_fail("no memory");
        if (argc == 2 && find_trace(argv[i], &x->trace[i]) != CMD_YES)
            return CMD_UNKNOWN;
        if (argc == 2 && !is_there(x->trace[i]))
            return cmd_fail("there is no trace '%s': name the traces of both runs, or record them "
                            "there by 'cairn trace record -o %s'",
                            x->trace[i], x->trace[i]);
    }
    return CMD_YES;
}

/* When a run's mark was taken; 0 if that is not known, as of trees without data. */
static uint64_t time_of(const char *run, uint64_t version)
{
    cmd_place place;
    cairn_run_info info = {.struct_bytes = sizeof info};
    cairn_mark_info mark = {.struct_bytes = sizeof mark};
    uint64_t taken = 0;
    if (cmd_place_open(run, &place) != CMD_YES)
        return 0;
    if (cairn_trail_run(place.trail, place.first, &info) == CAIRN_OK)
        for (size_t i = 0; i < info.nmarks && taken == 0; i++)
            if (cairn_trail_mark(place.trail, place.first, i, &mark) == CAIRN_OK &&
                mark.version == version)
                taken = mark.wall_ns;
    cmd_place_close(&place);
    return taken;
}

/* A trace that is incomplete, or was not recorded when the mark was taken. Only a remark: clocks
 * may be wrong. */
static int doubt_trace(const char *path, uint64_t taken, uint64_t version)
{
    enum { NEAR = 1000000000 }; /* clocks of several machines */
    char from[CMD_WORDS], to[CMD_WORDS], at[CMD_WORDS];
    cairn_trace_info info = {.struct_bytes = sizeof info};
    cairn_trace *t;
    if (cmd_trace_open(path, &t, &info) != CMD_YES)
        return CMD_UNKNOWN;
    cairn_trace_close(t);
    const uint64_t began = info.began_ns, ended = began + info.lasted_ns;
    if (taken == 0 || began == 0 || (taken + NEAR >= began && taken <= ended + NEAR))
        return CMD_YES;
    cmd_fail("'%s' was recorded from %s to %s, but mark %" PRIu64 " was taken at %s: is it of this "
             "run?",
             path, cmd_date(began, from), cmd_date(ended, to), version, cmd_date(taken, at));
    return CMD_YES;
}

/* ---- output ---- */

static json_t *json_thread(int64_t thread)
{
    return thread < 0 ? json_null() : json_integer((json_int_t)thread);
}

static json_t *json_of(const cairn_deviation *d)
{
    json_t *matches = json_array();
    for (size_t i = 0; i < d->nmatches; i++) {
        const cairn_match *m = &d->match[i];
        cmd_json_append(&matches, json_pack("{s:I, s:s, s:o, s:[I,I], s:[I,I]}", "receive",
                                            (json_int_t)m->nth, "call", m->call, "site",
                                            cmd_json_text(m->site), "sources",
                                            (json_int_t)m->source[0], (json_int_t)m->source[1],
                                            "tags", (json_int_t)m->tag[0], (json_int_t)m->tag[1]));
    }
    json_t *row =
        json_pack("{s:i, s:[o,o], s:[I,I], s:o, s:o}", "rank", (int)d->rank, "threads",
                  json_thread(d->thread[0]), json_thread(d->thread[1]), "received",
                  (json_int_t)d->nreceived[0], (json_int_t)d->nreceived[1], "matches", matches,
                  "parted", d->parted ? json_integer((json_int_t)d->ncommon + 1) : json_null());
    if (d->cut)
        row = cmd_json_merge(
            row, json_pack("{s:[I,I]}", "marked", (json_int_t)d->ncut[0], (json_int_t)d->ncut[1]));
    if (d->nth_file == 0)
        return row;
    return cmd_json_merge(row,
                          json_pack("{s:I, s:[o,o], s:b}", "file", (json_int_t)d->nth_file, "files",
                                    d->file[0] ? cmd_json_text(d->file[0]) : json_null(),
                                    d->file[1] ? cmd_json_text(d->file[1]) : json_null(),
                                    "same_files", d->same_files));
}

static void print_matches(const explanation *x, const cairn_deviation *d)
{
    const size_t shown = x->all ? d->nmatches : CRN_MIN(d->nmatches, SHOWN);
    if (d->nmatches > 0)
        cmd_line("  %zu of %" PRIu64 " wildcard receives matched other senders:", d->nmatches,
                 d->ncommon);
    for (size_t i = 0; i < shown; i++) {
        const cairn_match *m = &d->match[i];
        cmd_line("    receive %" PRIu64 ", %s at %s: rank %" PRId64 ", tag %" PRId64
                 " and rank %" PRId64 ", tag %" PRId64,
                 m->nth, m->call, m->site, m->source[0], m->tag[0], m->source[1], m->tag[1]);
    }
    if (shown < d->nmatches)
        cmd_line("    and %zu more: --all shows them", d->nmatches - shown);
    if (d->parted)
        cmd_line("  from wildcard receive %" PRIu64 " on they receive at other places",
                 d->ncommon + 1);
    else if (d->nreceived[0] != d->nreceived[1])
        cmd_line("  wildcard receives: %" PRIu64 " and %" PRIu64, d->nreceived[0], d->nreceived[1]);
}

static void print_files(const cairn_deviation *d)
{
    const char *quote[2];
    for (int i = 0; i < 2; i++)
        quote[i] = d->file[i] ? "'" : "";
    cmd_line("  %s: file %" PRIu64 " is %s%s%s and %s%s%s",
             d->same_files ? "files are read in another order" : "other files are read",
             d->nth_file, quote[0], d->file[0] ? d->file[0] : "none", quote[0], quote[1],
             d->file[1] ? d->file[1] : "none", quote[1]);
}

static void print_thread(const cairn_deviation *d)
{
    const int64_t a = d->thread[0], b = d->thread[1];
    if (a == 0 && b == 0)
        cmd_line("rank %" PRIu32 ":", d->rank);
    else if (a == b)
        cmd_line("rank %" PRIu32 ", thread %" PRId64 ":", d->rank, a);
    else if (a >= 0 && b >= 0)
        cmd_line("rank %" PRIu32 ", thread %" PRId64 " of the first and %" PRId64
                 " of the second run:",
                 d->rank, a, b);
    else
        cmd_line("rank %" PRIu32 ", thread %" PRId64 " of the %s run, which the other has not:",
                 d->rank, CRN_MAX(a, b), a >= 0 ? "first" : "second");
}

static void on_deviation(void *arg, const cairn_deviation *d)
{
    explanation *x = arg;
    x->ndeviations++;
    if (x->json) {
        cmd_json_append(&x->list, json_of(d));
        return;
    }
    print_thread(d);
    print_matches(x, d);
    if (d->cut)
        cmd_line("  mark %" PRIu64 ", which another thread took, came after %" PRIu64
                 " and %" PRIu64 " of its wildcard receives",
                 x->parting.to, d->ncut[0], d->ncut[1]);
    if (d->nth_file > 0)
        print_files(d);
}

static void print_stretch(const cairn_parting *s)
{
    if (s->from_start)
        cmd_line("from the start to mark %" PRIu64 ":", s->to);
    else
        cmd_line("between mark %" PRIu64 " and mark %" PRIu64 ":", s->from, s->to);
}

static void print_remarks(const explanation *x)
{
    if (x->ndeviations == 0)
        cmd_line(
            "  all wildcard receives matched the same senders, and files were read in the same "
            "order: the cause is in what the ranks computed");
    if (x->remarks.rebuilt)
        cmd_line("the programs were not built alike: receives were compared in their order, "
                 "wherever they are");
    if (x->remarks.nnameless > 0)
        cmd_line("%" PRIu64 " reads of files that other threads had opened were left out: their "
                 "names are not known",
                 x->remarks.nnameless);
}

/* ---- the command ---- */

/* Marks that only one run has make runs differ, too, but no trace can show why. */
static cairn_verdict verdict_of(const cairn_parting *p)
{
    return p->nalone > 0 && p->verdict < CAIRN_ONLY_FIRST ? CAIRN_ONLY_FIRST : p->verdict;
}

static int print_json(explanation *x)
{
    const cairn_parting *p = &x->parting;
    const bool from = p->differ && !p->from_start;
    return cmd_print_json(
        json_pack("{s:s, s:o, s:o, s:o, s:o, s:b, s:I}", "verdict",
                  cmd_comparison_word(verdict_of(p)), "first",
                  p->differ ? cmd_comparison_json(&x->compare, &p->first) : json_null(), "from",
                  from ? json_integer((json_int_t)p->from) : json_null(), "to",
                  p->differ ? json_integer((json_int_t)p->to) : json_null(), "ranks", x->list,
                  "rebuilt", (int)x->remarks.rebuilt, "nameless", (json_int_t)x->remarks.nnameless),
        cmd_comparison_code(verdict_of(p)));
}

/* There is nothing to explain. */
static void print_likeness(const cairn_parting *p)
{
    if (p->nmarks == 0)
        cmd_line("the runs have no mark in common: there is nothing to explain");
    else if (p->verdict != CAIRN_SAME)
        cmd_line("mark %" PRIu64
                 "%s%s%s: %s; no mark is known to differ: there is nothing to explain",
                 p->first.version, p->first.variable ? ", variable '" : "",
                 p->first.variable ? p->first.variable : "", p->first.variable ? "'" : "",
                 p->first.text);
    else
        cmd_line("%s: there is nothing to explain",
                 p->nalone > 0 ? "the marks that both runs have agree" : "the runs agree");
}

static int look_into_traces(explanation *x, char *const run[2])
{
    const cairn_parting *p = &x->parting;
    if (!x->json) {
        cmd_comparison_print_first(&p->first);
        print_stretch(p);
    }
    for (int i = 0; i < 2; i++)
        if (doubt_trace(x->trace[i], time_of(run[i], p->to), p->to) != CMD_YES)
            return CMD_UNKNOWN;
    x->remarks.struct_bytes = sizeof x->remarks;
    if (cairn_explain_traces(x->why, x->trace[0], x->trace[1], on_deviation, x, &x->remarks) < 0)
        return cmd_fail("%s", cairn_error_text());
    if (!x->json)
        print_remarks(x);
    return CMD_YES;
}

static int explain(explanation *x, int argc, char **argv)
{
    const cairn_parting *p = &x->parting;
    x->compare.how.struct_bytes = sizeof x->compare.how;
    x->parting.struct_bytes = sizeof x->parting;
    if (cairn_explain(argv[0], argv[1], &x->compare.how, &x->why) < 0 ||
        cairn_explain_parting(x->why, &x->parting) < 0)
        return cmd_fail("%s", cairn_error_text());
    x->list = x->json ? json_array() : NULL;
    if (p->differ &&
        (find_traces(x, argc, argv) != CMD_YES || look_into_traces(x, argv) != CMD_YES)) {
        json_decref(x->list);
        return CMD_UNKNOWN;
    }
    if (x->json)
        return print_json(x);
    if (!p->differ)
        print_likeness(p);
    return cmd_comparison_code(verdict_of(p));
}

int cmd_explain(int argc, char **argv)
{
    explanation x = {0};
    int code;
    const cmd_option options[] = {
        CMD_FLAG('a', "all", &x.all, "show all receives that matched other senders"),
        CMD_TEXT('b', "bound", "BOUND", &x.compare.how.bound, "as of 'cairn diff'"),
        CMD_TEXT('v', "variable", "NAME", &x.compare.how.variable, "compare this variable only"),
        CMD_TEXT(0, "nan", "WORD", &x.compare.nan, "as of 'cairn diff'"),
        CMD_JSON(&x.json),
        CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc != 2 && argc != 4)
        return cmd_misuse(usage, "two runs must be named, and both traces or none");
    if (!cmd_comparison_check(&x.compare, usage))
        return CMD_UNKNOWN;
    code = explain(&x, argc, argv);
    cairn_explain_close(x.why);
    free(x.trace[0]);
    free(x.trace[1]);
    return code;
}
