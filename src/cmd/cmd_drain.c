/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn drain: bring the newest mark that a dead program left on the nodes into the trail. Started
 * by mpirun or srun, one process on each node, it reads the storage of all of them.
 */
#include "cmd/cmd_ranks.h"

#include <cairn/keep.h>

static const char usage[] = "cairn drain [--json] [--config FILE] TRAIL[/RUN]";

static int print(const cairn_drain_result *d, bool already, bool json)
{
    char nbytes[CRN_NUMBER_TEXT];
    if (json)
        return cmd_print_json(json_pack("{s:I, s:b, s:I, s:I}", "mark", (json_int_t)d->version,
                                        "brought", !already, "nbytes", (json_int_t)d->nbytes,
                                        "lost", (json_int_t)d->nlost),
                              CMD_YES);
    if (d->nlost > 0)
        cmd_line("%" PRIu64 " newer mark%s cannot be produced from what is seen here: if nodes of "
                 "the job are still there, start this on all of them",
                 d->nlost, d->nlost == 1 ? "" : "s");
    if (already)
        cmd_line("mark %" PRIu64 " is in the trail already", d->version);
    else
        cmd_line("mark %" PRIu64 " is in the trail now, %s were written", d->version,
                 crn_format_nbytes(d->nbytes, nbytes, sizeof nbytes));
    return CMD_YES;
}

typedef struct request {
    const char *config;
    bool json;
} request;

static int drain(MPI_Comm comm, int rank, void *arg)
{
    const request *r = arg;
    cairn_drain_result d = {.struct_bytes = sizeof d};
    int rc = cairn_drain(comm, r->config, &d);
    if (rank > 0)
        return rc < 0 ? CMD_UNKNOWN : CMD_YES;
    if (rc == CAIRN_ENOTFOUND) {
        cmd_fail("%s", cairn_error_text());
        return CMD_NO;
    }
    return rc < 0 ? cmd_fail("%s", cairn_error_text()) : print(&d, rc == CAIRN_NOTHING, r->json);
}

int cmd_drain(int argc, char **argv)
{
    request r = {0};
    int code;
    const cmd_option options[] = {CMD_JSON(&r.json),
                                  CMD_TEXT('c', "config", "FILE", &r.config,
                                           "the configuration of the program, if it has one"),
                                  CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc != 1)
        return cmd_misuse(usage, "one trail must be named");
    if (cmd_place_configure(argv[0]) != CMD_YES)
        return CMD_UNKNOWN;
    return cmd_on_ranks(drain, &r);
}
