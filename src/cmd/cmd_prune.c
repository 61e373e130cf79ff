/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn prune: delete marks and files that are no longer needed. Started by mpirun or srun, one
 * process on each node, it removes the node-local files of all of them.
 */
#include "cmd/cmd_ranks.h"

#include <cairn/keep.h>

static const char usage[] =
    "cairn prune [--json] [--dry-run] [--local] [--keep N] [--config FILE] TRAIL[/RUN]\n"
    "cairn prune [--json] [--dry-run] --local --orphans [--config FILE]";

static int print(const cairn_prune_result *p, bool dry, bool json)
{
    if (json)
        return cmd_print_json(json_pack("{s:I, s:I, s:b}", "marks", (json_int_t)p->nmarks, "files",
                                        (json_int_t)p->nfiles, "dry_run", dry),
                              CMD_YES);
    if (dry)
        cmd_line("%" PRIu64 " mark%s would be dropped", p->nmarks, p->nmarks == 1 ? "" : "s");
    else
        cmd_line("%" PRIu64 " mark%s dropped, %" PRIu64 " file%s removed", p->nmarks,
                 p->nmarks == 1 ? "" : "s", p->nfiles, p->nfiles == 1 ? "" : "s");
    return CMD_YES;
}

typedef struct request {
    cairn_prune_options how;
    const char *config;
    bool json, orphans;
} request;

static int prune(MPI_Comm comm, int rank, void *arg)
{
    request *r = arg;
    cairn_prune_result done = {.struct_bytes = sizeof done};
    int rc = cairn_prune(comm, r->config, &r->how, &done);
    if (rank > 0)
        return rc < 0 ? CMD_UNKNOWN : CMD_YES;
    return rc < 0 ? cmd_fail("%s", cairn_error_text()) : print(&done, r->how.dry, r->json);
}

static void print_orphan(void *arg, const char *text, bool goes)
{
    const request *r = arg;
    (void)goes;
    if (!r->json)
        cmd_line("%s", text);
}

static int print_orphans(const cairn_orphan_result *o, bool dry, bool json)
{
    char size[32];
    if (json)
        return cmd_print_json(json_pack("{s:I, s:I, s:I, s:b}", "runs", (json_int_t)o->nruns,
                                        "kept", (json_int_t)o->nkept, "nbytes",
                                        (json_int_t)o->nbytes, "dry_run", dry),
                              CMD_YES);
    cmd_line("%s of %" PRIu64 " run%s %s, %" PRIu64 " run%s kept",
             crn_format_nbytes(o->nbytes, size, sizeof size), o->nruns, o->nruns == 1 ? "" : "s",
             dry ? "would be removed" : "removed", o->nkept, o->nkept == 1 ? "" : "s");
    return CMD_YES;
}

static int prune_orphans(MPI_Comm comm, int rank, void *arg)
{
    request *r = arg;
    const cairn_orphan_options how = {
        .struct_bytes = sizeof how, .dry = r->how.dry, .report = print_orphan, .arg = r};
    cairn_orphan_result done = {.struct_bytes = sizeof done};
    int rc = cairn_prune_orphans(comm, r->config, &how, &done);
    if (rank > 0)
        return rc < 0 ? CMD_UNKNOWN : CMD_YES;
    return rc < 0 ? cmd_fail("%s", cairn_error_text()) : print_orphans(&done, how.dry, r->json);
}

int cmd_prune(int argc, char **argv)
{
    request r = {.how.struct_bytes = sizeof r.how};
    const char *keep = "1";
    int code;
    const cmd_option options[] = {
        CMD_JSON(&r.json),
        CMD_FLAG('n', "dry-run", &r.how.dry, "change nothing, show what would be done"),
        CMD_FLAG('l', "local", &r.how.local,
                 "also files of a finished run on the nodes it is run on"),
        CMD_FLAG('o', "orphans", &r.orphans,
                 "with --local: files on the nodes that no run needs any more"),
        CMD_TEXT('k', "keep", "N", &keep, "marks to keep in the trail (1)"),
        CMD_TEXT('c', "config", "FILE", &r.config,
                 "the configuration of the program, if it has one"),
        CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (r.orphans && (argc > 0 || !r.how.local))
        return cmd_misuse(usage, "--orphans goes with --local, and with no trail");
    if (r.orphans)
        return cmd_on_ranks(prune_orphans, &r);
    if (argc != 1)
        return cmd_misuse(usage, "one trail must be named");
    if (crn_parse_count(keep, &r.how.keep) < 0)
        return cmd_misuse(usage, "--keep: %s", crn_err_peek()->text);
    if (cmd_place_configure(argv[0]) != CMD_YES)
        return CMD_UNKNOWN;
    return cmd_on_ranks(prune, &r);
}
