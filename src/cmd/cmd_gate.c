/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn gate: check a run against a golden file, for continuous integration; --bless makes one.
 * Started by mpirun, its processes share the work of checking.
 */
#include "cmd/cmd_compare.h"
#include "cmd/cmd_ranks.h"

static const char usage[] = "cairn gate [--all] [--marks WORD] [--bound BOUND] [--variable NAME] "
                            "[--nan WORD] [--exclude NAMES] [--json | --csv] GOLDEN RUN\n"
                            "cairn gate --bless [--sketch KIND] [--json] GOLDEN RUN";

/* What 'cairn gate' is asked for. */
typedef struct gate_request {
    cmd_comparison c;
    const char *sketch; /* as given */
    cairn_bless_options how;
} gate_request;

/* What is not proven equal neither passes nor fails. */
static int gate(MPI_Comm comm, int rank, void *arg)
{
    cmd_comparison *c = &((gate_request *)arg)->c;
    cairn_comparison result = {.struct_bytes = sizeof result};
    cmd_comparison_begin(c, rank == 0, "checking");
    int rc = cairn_gate(comm, c->first, c->second, &c->how, &result);
    int code = cmd_comparison_end(c, rc, &result);
    if (rc >= 0 && c->speaks && !c->json && !c->csv && result.verdict != CAIRN_INCONCLUSIVE)
        cmd_line("%s", result.verdict == CAIRN_SAME       ? "pass"
                       : result.verdict == CAIRN_UNPROVEN ? "not proven"
                                                          : "fail");
    return rc < 0 ? CMD_UNKNOWN : code;
}

/* --- blessing -------------------------------------------------------------------------------- */

static bool parse_sketch(gate_request *r)
{
    static const char *const word[] = {
        [CAIRN_SKETCH_BYTES] = "bytes", [CAIRN_SKETCH_BITS] = "bits", [CAIRN_SKETCH_NONE] = "none"};
    for (size_t i = 0; r->sketch && i < sizeof word / sizeof *word; i++) {
        if (strcmp(r->sketch, word[i]) != 0)
            continue;
        r->how.sketch = (cairn_sketch)i;
        return true;
    }
    return !r->sketch;
}

static int print_blessing(const gate_request *r, const cairn_bless_result *b)
{
    char file[CRN_NUMBER_TEXT], sketch[CRN_NUMBER_TEXT];
    const double share = b->nbytes > 0 ? 100.0 * (double)b->file_bytes / (double)b->nbytes : 0;
    if (r->c.json)
        return cmd_print_json(
            json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "run", r->c.second, "golden",
                      r->c.first, "marks", (json_int_t)b->nmarks, "sketched",
                      (json_int_t)b->nsketched, "nbytes", (json_int_t)b->nbytes, "file",
                      (json_int_t)b->file_bytes, "sketch", (json_int_t)b->sketch_bytes, "lossy",
                      (json_int_t)b->nlossy, "loose", (json_int_t)b->nloose),
            CMD_YES);
    cmd_line("'%s' is golden now, as '%s': %" PRIu64 " mark%s, %s (%.2f%% of the data), sketch %s",
             r->c.second, r->c.first, b->nmarks, b->nmarks == 1 ? "" : "s",
             crn_format_nbytes(b->file_bytes, file, sizeof file), share,
             crn_format_nbytes(b->sketch_bytes, sketch, sizeof sketch));
    if (b->nloose > 0)
        fprintf(stderr,
                "cairn: warning: a codec may have changed %" PRIu64
                " pieces of variables by more than the bound that they are to be compared with: "
                "bless a run with a smaller loss\n",
                b->nloose);
    if (r->how.sketch != CAIRN_SKETCH_NONE && b->nsketched < b->nmarks)
        cmd_line("%" PRIu64 " mark%s no sketch: %s; noise may not be proven equal",
                 b->nmarks - b->nsketched, b->nmarks - b->nsketched == 1 ? " has" : "s have",
                 b->nlossy > 0 ? "a codec may have changed values, or the data is gone"
                               : "the data is gone");
    return CMD_YES;
}

/* One process does it. */
static int bless(MPI_Comm comm, int rank, void *arg)
{
    const gate_request *r = arg;
    cairn_bless_result made = {.struct_bytes = sizeof made};
    (void)comm;
    if (rank > 0)
        return CMD_YES;
    if (cairn_bless_as(r->c.second, r->c.first, &r->how, &made) < 0)
        return cmd_fail("%s", cairn_error_text());
    return print_blessing(r, &made);
}

int cmd_gate(int argc, char **argv)
{
    gate_request r = {.how.struct_bytes = sizeof r.how};
    cmd_comparison *c = &r.c;
    bool blesses = false;
    int code;
    const cmd_option options[] = {
        CMD_FLAG(0, "bless", &blesses, "make the golden file, of this run"),
        CMD_TEXT(0, "sketch", "KIND", &r.sketch,
                 "of the values: 'bytes' (one for 64 of them; the default), 'bits' or 'none'"),
        CMD_FLAG('a', "all", &c->how.all, "check all marks, not only up to the first difference"),
        CMD_TEXT('m', "marks", "WORD", &c->marks,
                 "'all': the run has those of the golden file (the default); 'common': or some"),
        CMD_TEXT('b', "bound", "BOUND", &c->how.bound, "such as '1e-6', 'rel 1e-4' or both"),
        CMD_TEXT('v', "variable", "NAME", &c->how.variable, "check this variable only"),
        CMD_TEXT(0, "nan", "WORD", &c->nan,
                 "'same': NaN equals NaN (the default); 'differ': never"),
        CMD_TEXT('x', "exclude", "NAMES", &c->how.exclude, "leave out such names, as 'log,*/time'"),
        CMD_JSON(&c->json),
        CMD_FLAG(0, "csv", &c->csv, "print a line for each variable of each mark"),
        CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc != 2)
        return cmd_misuse(usage, "a golden file and a run must be named");
    if (!cmd_comparison_check(c, usage))
        return CMD_UNKNOWN;
    if (!parse_sketch(&r) || (r.sketch && !blesses))
        return cmd_misuse(usage, "--sketch is for --bless: 'bytes', 'bits' or 'none', not '%s'",
                          r.sketch);
    if (!c->marks)
        c->how.marks = CAIRN_MARKS_ALL;
    c->golden = true;
    c->first = argv[0];
    c->second = argv[1];
    return cmd_on_ranks(blesses ? bless : gate, &r);
}
