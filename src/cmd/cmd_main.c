/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of subcommands, and the way to them.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

const cmd_row cmd_table[] = {
    {"bench", cmd_bench, "measure what a choice would mean on this machine"},
    {"codecs", cmd_codecs, "try codecs on the variables of a mark"},
    {"diff", cmd_diff, "find where two runs part, or that they agree within a bound"},
    {"drain", cmd_drain, "bring a dead program's newest mark from its nodes into the trail"},
    {"ensemble", cmd_ensemble, "run a study of many members, which no failure stops"},
    {"explain", cmd_explain, "say what happened in another order before two runs parted"},
    {"export", cmd_export, "make an HDF5 file of a mark, for other tools"},
    {"gate", cmd_gate, "check a run against a golden file, or make one"},
    {"help", cmd_help, "explain a command, or list all options"},
    {"import", cmd_import, "make a mark of an HDF5 file, for a program to start from"},
    {"ls", cmd_ls, "list the runs and marks of a trail"},
    {"plan", cmd_plan, "find the best interval and levels, from numbers or for a run"},
    {"prune", cmd_prune, "let go of marks and files that are no longer needed"},
    {"report", cmd_report, "write a page about the runs of a trail"},
    {"run", cmd_run, "start a program, keep it going through failures, and report what happened"},
    {"show", cmd_show, "describe a run, or a mark and its variables"},
    {"trace", cmd_trace, "record what a run did to network and storage, look at it, replay it"},
    {"verify", cmd_verify, "read everything and check that it is what was written"},
    {"version", cmd_version, "print versions of the program and its formats"},
    {0},
};

static const cmd_row *look_up(const char *name)
{
    for (const cmd_row *row = cmd_table; row->name; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

const cmd_row *cmd_find(const char *name)
{
    const cmd_row *found = look_up(name);
    if (!found) {
        crn_nearest near = crn_nearest_to(name);
        for (const cmd_row *row = cmd_table; row->name; row++)
            crn_nearest_offer(&near, row->name);
        cmd_fail("'%s' is not a cairn command%s", name,
                 near.hint[0] ? near.hint : "; 'cairn help' lists them");
    }
    return found;
}

/* The two options that people try first are subcommands. */
static char *undash(char *name)
{
    static char help[] = "help", version[] = "version";
    if (strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0)
        return help;
    if (strcmp(name, "--version") == 0)
        return version;
    return name;
}

/* A full disk must not pass for success. */
static int finish(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    return cmd_fail("cannot write to standard output: %s", strerror(errno));
}

/* What is printed must not get into a file that has the number of a stream that was closed. In its
 * place there is one that cannot be written to either. */
static void fill_closed_streams(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    char help[] = "help";
    char *alone[] = {help, NULL};
    fill_closed_streams();
    if (argc < 2) { /* show what there is, but a script must notice */
        cmd_help(1, alone);
        return finish(CMD_UNKNOWN);
    }
    argv[1] = undash(argv[1]);
    const cmd_row *row = cmd_find(argv[1]);
    return row ? finish(row->run(argc - 1, argv + 1)) : CMD_UNKNOWN;
}
