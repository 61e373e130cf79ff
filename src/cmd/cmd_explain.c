/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn explain: where two runs part, and what their traces say about why: what happened in another
 * order between the last mark that agrees and the first that does not.
 */
#include <mpi.h>
#include <unistd.h>

#include "cmd/cmd_compare.h"
#include "cmd/cmd_explain.h"
#include "cmd/cmd_trace.h"

static const char usage[] = "cairn explain [--all] [--bound BOUND] [--variable NAME] [--nan WORD] "
                            "[--json] RUN RUN [TRACE TRACE]";

enum { SHOWN = 3 }; /* receives of a rank, unless all are asked for */

typedef struct explanation {
    cmd_comparison compare;
    cairn_comparison result;
    uint64_t seen; /* the newest mark of which something was compared */
    bool any;
    cmd_stretch stretch;
    char *trace[2];
    bool all, json;
    uint64_t ndeviations;
    json_t *list;
} explanation;

/* ---- the runs ---- */

/* Marks come in order, up to the first that differs: the one before it agrees. */
static int on_row(void *arg, const cairn_comparison_row *r)
{
    explanation *x = arg;
    if (x->any && r->version != x->seen) {
        x->stretch.from_start = false;
        x->stretch.from = x->seen;
    }
    x->seen = r->version;
    x->any = true;
    return 0;
}

static int compare_runs(explanation *x, char **run)
{
    x->compare.how.struct_bytes = sizeof x->compare.how;
    x->compare.how.row = on_row;
    x->compare.how.arg = x;
    x->result.struct_bytes = sizeof x->result;
    if (cairn_compare(MPI_COMM_SELF, run[0], run[1], &x->compare.how, &x->result) < 0)
        return cmd_fail("%s", cairn_error_text());
    x->stretch.to = x->result.first.version;
    return CMD_YES;
}

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

static int find_traces(explanation *x, int argc, char **argv)
{
    for (int i = 0; i < 2; i++) {
        if (argc == 4 && crn_strdup(argv[2 + i], &x->trace[i]) < 0)
            return cmd_fail("no memory");
        if (argc == 2 && find_trace(argv[i], &x->trace[i]) != CMD_YES)
            return CMD_UNKNOWN;
        if (argc == 2 && access(x->trace[i], F_OK) != 0)
            return cmd_fail("there is no trace '%s': name the traces of both runs, or record them "
                            "there by 'cairn trace record -o %s'",
                            x->trace[i], x->trace[i]);
    }
    return CMD_YES;
}

/* ---- telling ---- */

static json_t *json_of(const cmd_deviation *d)
{
    json_t *matches = json_array();
    for (size_t i = 0; i < d->nmatches; i++) {
        const cmd_match *m = &d->match[i];
        cmd_json_append(&matches, json_pack("{s:I, s:s, s:o, s:[I,I], s:[I,I]}", "receive",
                                            (json_int_t)m->nth, "call", m->call, "site",
                                            cmd_json_text(m->site), "sources",
                                            (json_int_t)m->source[0], (json_int_t)m->source[1],
                                            "tags", (json_int_t)m->tag[0], (json_int_t)m->tag[1]));
    }
    json_t *row = json_pack("{s:i, s:i, s:[I,I], s:o, s:o}", "rank", (int)d->rank, "thread",
                            (int)d->thread, "received", (json_int_t)d->nreceived[0],
                            (json_int_t)d->nreceived[1], "matches", matches, "parted",
                            d->parted ? json_integer((json_int_t)d->ncommon + 1) : json_null());
    if (d->nth_file == 0)
        return row;
    return cmd_json_merge(row,
                          json_pack("{s:I, s:[o,o], s:b}", "file", (json_int_t)d->nth_file, "files",
                                    d->file[0] ? cmd_json_text(d->file[0]) : json_null(),
                                    d->file[1] ? cmd_json_text(d->file[1]) : json_null(),
                                    "same_files", d->same_files));
}

static void print_matches(const explanation *x, const cmd_deviation *d)
{
    const size_t shown = x->all ? d->nmatches : CRN_MIN(d->nmatches, SHOWN);
    if (d->nmatches > 0)
        cmd_line("  %zu of %" PRIu64 " wildcard receives matched other senders:", d->nmatches,
                 d->ncommon);
    for (size_t i = 0; i < shown; i++) {
        const cmd_match *m = &d->match[i];
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

static void on_deviation(void *arg, const cmd_deviation *d)
{
    explanation *x = arg;
    x->ndeviations++;
    if (x->json) {
        cmd_json_append(&x->list, json_of(d));
        return;
    }
    if (d->thread > 0)
        cmd_line("rank %" PRIu32 ", thread %" PRIu32 ":", d->rank, d->thread);
    else
        cmd_line("rank %" PRIu32 ":", d->rank);
    print_matches(x, d);
    if (d->nth_file > 0)
        cmd_line("  %s: file %" PRIu64 " is %s%s%s and %s%s%s",
                 d->same_files ? "files are read in another order" : "other files are read",
                 d->nth_file, d->file[0] ? "'" : "none", d->file[0] ? d->file[0] : "",
                 d->file[0] ? "'" : "", d->file[1] ? "'" : "none", d->file[1] ? d->file[1] : "",
                 d->file[1] ? "'" : "");
}

static void print_stretch(const explanation *x)
{
    if (x->stretch.from_start)
        cmd_line("from the start to mark %" PRIu64 ":", x->stretch.to);
    else
        cmd_line("between mark %" PRIu64 " and mark %" PRIu64 ":", x->stretch.from, x->stretch.to);
}

static int print_json(explanation *x, bool differ)
{
    return cmd_print_json(
        json_pack(
            "{s:s, s:o, s:o, s:o, s:o}", "verdict", cmd_comparison_word(x->result.verdict), "first",
            differ ? cmd_comparison_json(&x->compare, &x->result.first) : json_null(), "from",
            differ && !x->stretch.from_start ? json_integer((json_int_t)x->stretch.from)
                                             : json_null(),
            "to", differ ? json_integer((json_int_t)x->stretch.to) : json_null(), "ranks", x->list),
        cmd_comparison_code(x->result.verdict));
}

static int explain(explanation *x, int argc, char **argv)
{
    if (compare_runs(x, argv) != CMD_YES)
        return CMD_UNKNOWN;
    const bool differ = x->result.first.struct_bytes > 0;
    if (differ && find_traces(x, argc, argv) != CMD_YES)
        return CMD_UNKNOWN;
    if (!x->json && differ) {
        cmd_comparison_print_first(&x->result.first);
        print_stretch(x);
    }
    x->list = x->json ? json_array() : NULL;
    if (differ && cmd_explain_traces(x->trace, &x->stretch, on_deviation, x) != CMD_YES) {
        json_decref(x->list);
        return CMD_UNKNOWN;
    }
    if (x->json)
        return print_json(x, differ);
    if (!differ)
        cmd_line("the runs agree: there is nothing to explain");
    else if (x->ndeviations == 0)
        cmd_line(
            "  all wildcard receives matched the same senders, and files were read in the same "
            "order: the cause is in what the ranks computed");
    return cmd_comparison_code(x->result.verdict);
}

int cmd_explain(int argc, char **argv)
{
    explanation x = {.stretch = {.from_start = true}};
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
    free(x.trace[0]);
    free(x.trace[1]);
    return code;
}
