/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn diff: compare two runs, mark by mark, and show where they first part; or two files of other
 * programs. Started by mpirun, its processes share the work.
 */
#include "cmd/cmd_diff_shelf.h"
#include "cmd/cmd_shelf.h"

#include <sys/stat.h>

static const char usage[] =
    "cairn diff [--all | --first] [--marks WORD] [--bound BOUND] [--variable NAME] [--nan WORD] "
    "[--exclude NAMES] [--direct] [--threads N] [--json | --csv] RUN RUN\n"
    "cairn diff [--all | --first] [--marks WORD] [--bound BOUND] [--variable NAME] [--nan WORD] "
    "[--exclude NAMES] [--direct] [--threads N] [--json | --csv] SHELF[/KEY[@VERSION]] "
    "SHELF[/KEY[@VERSION]]\n"
    "cairn diff [--first] [--bound BOUND] [--variable NAME] [--nan WORD] [--threads N] "
    "[--follow] [--exclude NAMES] [--raw TYPE [--shape NxN]] [--json | --csv] FILE FILE";

static int compare(MPI_Comm comm, int rank, void *arg)
{
    cmd_comparison *c = arg;
    cairn_comparison result = {.struct_bytes = sizeof result};
    cmd_comparison_begin(c, rank == 0, "comparing");
    int rc = (c->files ? cairn_compare_files : cairn_compare)(comm, c->first, c->second, &c->how,
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
    cmd_comparison c = {0};
    int code;
    const cmd_option options[] = {
        CMD_FLAG('a', "all", &c.how.all, "compare all marks, not only up to the first difference"),
        CMD_FLAG('f', "first", &c.only_first, "print the first difference and nothing else"),
        CMD_TEXT('m', "marks", "WORD", &c.marks,
                 "'common': those that both have (the default); 'all': others are a difference"),
        CMD_TEXT('b', "bound", "BOUND", &c.how.bound, "such as '1e-6', 'rel 1e-4' or both"),
        CMD_TEXT('v', "variable", "NAME", &c.how.variable, "compare this variable only"),
        CMD_TEXT(0, "nan", "WORD", &c.nan, "'same': NaN equals NaN (the default); 'differ': never"),
        CMD_FLAG(0, "direct", &c.how.direct, "read everything, whatever the trees say"),
        CMD_TEXT('t', "threads", "N", &c.threads, "threads to work with; as many as processors"),
        CMD_FLAG(0, "follow", &c.how.follow, "follow links of HDF5 files into other files"),
        CMD_TEXT('x', "exclude", "NAMES", &c.how.exclude, "leave out such names, as 'log,*/@date'"),
        CMD_TEXT(0, "raw", "TYPE", &c.how.raw, "files are values of a type, as 'float64'"),
        CMD_TEXT(0, "shape", "NxN", &c.shape, "and these make an array of that shape"),
        CMD_JSON(&c.json),
        CMD_FLAG(0, "csv", &c.csv, "print a line for each variable of each mark"),
        CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc != 2)
        return cmd_misuse(usage, "two runs must be named, or two shelves, or two files");
    const bool shelves = cmd_is_shelf(argv[0]) && cmd_is_shelf(argv[1]);
    c.files = c.how.raw || is_file(argv[0]) || is_file(argv[1]);
    if (!cmd_comparison_check(&c, usage))
        return CMD_UNKNOWN;
    c.first = argv[0];
    c.second = argv[1];
    return cmd_on_ranks(shelves ? cmd_diff_shelves : compare, &c);
}
