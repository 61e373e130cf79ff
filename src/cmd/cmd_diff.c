/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn diff: compare two runs, mark by mark, and say where they first part; or two files of other
 * programs. Started by mpirun, its processes share the work.
 */
#include "cmd/cmd_compare.h"
#include "cmd/cmd_ranks.h"

#include <sys/stat.h>

static const char usage[] =
    "cairn diff [--all | --first] [--bound BOUND] [--variable NAME] [--nan WORD] [--direct] "
    "[--threads N] [--json | --csv] RUN RUN\n"
    "cairn diff [--first] [--bound BOUND] [--variable NAME] [--nan WORD] [--threads N] "
    "[--raw TYPE [--shape NxN]] [--json | --csv] FILE FILE";

typedef struct request {
    cmd_comparison c;
    const char *first, *second;
} request;

static int compare(MPI_Comm comm, int rank, void *arg)
{
    request *r = arg;
    cmd_comparison *c = &r->c;
    cairn_comparison result = {.struct_bytes = sizeof result};
    cmd_comparison_begin(c, rank == 0, "comparing");
    int rc = (c->files ? cairn_compare_files : cairn_compare)(comm, r->first, r->second, &c->how,
                                                              &result);
    return cmd_comparison_end(c, rc, &result);
}

static bool is_file(const char *name)
{
    struct stat st;
    return stat(name, &st) == 0 && S_ISREG(st.st_mode);
}

int cmd_diff(int argc, char **argv)
{
    request r = {0};
    int code;
    const cmd_option options[] = {
        CMD_FLAG('a', "all", &r.c.how.all,
                 "compare all marks, not only up to the first difference"),
        CMD_FLAG('f', "first", &r.c.only_first, "print the first difference and nothing else"),
        CMD_TEXT('b', "bound", "BOUND", &r.c.how.bound, "such as '1e-6', 'rel 1e-4' or both"),
        CMD_TEXT('v', "variable", "NAME", &r.c.how.variable, "compare this variable only"),
        CMD_TEXT(0, "nan", "WORD", &r.c.nan,
                 "'same': NaN equals NaN (the default); 'differ': never"),
        CMD_FLAG(0, "direct", &r.c.how.direct, "read everything, whatever the trees say"),
        CMD_TEXT('t', "threads", "N", &r.c.threads, "threads to work with; as many as processors"),
        CMD_TEXT(0, "raw", "TYPE", &r.c.how.raw, "files are values of a type, as 'float64'"),
        CMD_TEXT(0, "shape", "NxN", &r.c.shape, "and these make an array of that shape"),
        CMD_JSON(&r.c.json),
        CMD_FLAG(0, "csv", &r.c.csv, "print a line for each variable of each mark"),
        CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc != 2)
        return cmd_misuse(usage, "two runs must be named, or two files");
    r.c.files = r.c.how.raw || is_file(argv[0]) || is_file(argv[1]);
    if (!cmd_comparison_check(&r.c, usage))
        return CMD_UNKNOWN;
    r.first = argv[0];
    r.second = argv[1];
    return cmd_on_ranks(compare, &r);
}
