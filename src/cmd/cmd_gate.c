/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn gate: check a run against a golden file, for continuous integration; --bless makes one.
 * Started by mpirun, its processes share the work of checking.
 */
#include "cmd/cmd_compare.h"
#include "cmd/cmd_ranks.h"

static const char usage[] = "cairn gate [--all] [--marks WORD] [--bound BOUND] [--variable NAME] "
                            "[--nan WORD] [--json | --csv] GOLDEN RUN\n"
                            "cairn gate --bless GOLDEN RUN";

/* What is not proven equal does not pass: there is nothing else to look at. */
static int gate(MPI_Comm comm, int rank, void *arg)
{
    cmd_comparison *c = arg;
    cairn_comparison result = {.struct_bytes = sizeof result};
    cmd_comparison_begin(c, rank == 0, "checking");
    int rc = cairn_gate(comm, c->first, c->second, &c->how, &result);
    int code = cmd_comparison_end(c, rc, &result);
    if (rc < 0 || result.verdict == CAIRN_UNTOLD)
        return CMD_UNKNOWN;
    if (c->speaks && !c->json && !c->csv)
        cmd_line("%s", result.verdict == CAIRN_SAME ? "pass" : "fail");
    return code == CMD_UNKNOWN && result.verdict == CAIRN_UNPROVEN ? CMD_NO : code;
}

/* One process does it. */
static int bless(MPI_Comm comm, int rank, void *arg)
{
    const cmd_comparison *c = arg;
    (void)comm;
    if (rank > 0)
        return CMD_YES;
    if (cairn_bless(c->second, c->first) < 0)
        return cmd_fail("%s", cairn_error_text());
    cmd_line("'%s' is golden now, as '%s'", c->second, c->first);
    return CMD_YES;
}

int cmd_gate(int argc, char **argv)
{
    cmd_comparison c = {0};
    bool blesses = false;
    int code;
    const cmd_option options[] = {
        CMD_FLAG(0, "bless", &blesses, "make the golden file, of this run"),
        CMD_FLAG('a', "all", &c.how.all, "check all marks, not only up to the first difference"),
        CMD_TEXT('m', "marks", "WORD", &c.marks,
                 "'all': the run has those of the golden file (the default); 'common': or some"),
        CMD_TEXT('b', "bound", "BOUND", &c.how.bound, "such as '1e-6', 'rel 1e-4' or both"),
        CMD_TEXT('v', "variable", "NAME", &c.how.variable, "check this variable only"),
        CMD_TEXT(0, "nan", "WORD", &c.nan, "'same': NaN equals NaN (the default); 'differ': never"),
        CMD_JSON(&c.json),
        CMD_FLAG(0, "csv", &c.csv, "print a line for each variable of each mark"),
        CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc != 2)
        return cmd_misuse(usage, "a golden file and a run must be named");
    if (!cmd_comparison_check(&c, usage))
        return CMD_UNKNOWN;
    if (!c.marks)
        c.how.marks = CAIRN_MARKS_ALL;
    c.first = argv[0];
    c.second = argv[1];
    return cmd_on_ranks(blesses ? bless : gate, &c);
}
