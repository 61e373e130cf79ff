/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn trace replay: do what a trace says, without the program. Rank 0 speaks for all.
 */
#include "cmd/cmd_trace.h"

#include <unistd.h>

static const char usage[] = "mpirun -n RANKS cairn trace replay [--speed F | --no-delay] [--no-io] "
                            "[--scratch DIR] [--keep] "
                            "[--patience TIME] [--json] FILE";

typedef struct request {
    cairn_replay_options opt;
    const char *speed, *patience;
    bool json;
} request;

/* Every rank that stands still says so; the first to leave makes the launcher end the others. */
static void stuck(void *arg, const char *state)
{
    (void)arg;
    fprintf(stderr, "cairn: the replay stands still: %s\n", state);
    sleep(2);
    _exit(CMD_UNKNOWN);
}

static int print_result(const request *r, const cairn_replay_result *x)
{
    char took[CRN_NUMBER_TEXT], was[CRN_NUMBER_TEXT], sent[CRN_NUMBER_TEXT];
    char in[CRN_NUMBER_TEXT], out[CRN_NUMBER_TEXT];
    if (x->rank != 0)
        return CMD_YES;
    if (r->json)
        return cmd_print_json(
            json_pack("{s:i, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "nranks", x->size,
                      "seconds", cmd_trace_seconds(x->seconds), "recorded",
                      cmd_trace_seconds(x->recorded), "events", (json_int_t)x->nevents, "skipped",
                      (json_int_t)x->nskipped, "skipped_threads", (json_int_t)x->nskipped_threads,
                      "late", (json_int_t)x->nlate, "sent_bytes", (json_int_t)x->sent_bytes,
                      "read_bytes", (json_int_t)x->read_bytes, "written_bytes",
                      (json_int_t)x->written_bytes),
            CMD_YES);
    cmd_line("%" PRIu64 " events on %d rank%s in %s (recorded: %s)", x->nevents, x->size,
             x->size == 1 ? "" : "s", crn_format_seconds(x->seconds, took, sizeof took),
             crn_format_seconds(x->recorded, was, sizeof was));
    cmd_line("%s sent in messages, %s read, %s written",
             crn_format_nbytes(x->sent_bytes, sent, sizeof sent),
             crn_format_nbytes(x->read_bytes, in, sizeof in),
             crn_format_nbytes(x->written_bytes, out, sizeof out));
    if (x->nskipped > 0)
        cmd_line("%" PRIu64 " events could not be reissued, %" PRIu64 " of them by other threads "
                 "than the first",
                 x->nskipped, x->nskipped_threads);
    if (x->nlate > 0)
        cmd_line("%" PRIu64 " blocking sends and waits went on in the background", x->nlate);
    return CMD_YES;
}

static int replay(request *r, const char *path)
{
    cairn_trace *t;
    cairn_replay_result result = {.struct_bytes = sizeof result};
    if (cairn_trace_open(path, &t) < 0)
        return cmd_fail("%s", cairn_error_text());
    int rc = cairn_trace_replay(t, &r->opt, &result), code = CMD_UNKNOWN;
    if (rc == CAIRN_OK)
        code = print_result(r, &result);
    else if (result.rank == 0 || rc == CAIRN_EINTERNAL || rc == CAIRN_EIO)
        cmd_fail("%s", cairn_error_text());
    cairn_trace_close(t);
    return code;
}

int cmd_trace_replay(int argc, char **argv)
{
    request r = {.opt = {.struct_bytes = sizeof r.opt, .seed = 1, .stuck = stuck}};
    int code;
    const cmd_option options[] = {
        CMD_TEXT(0, "speed", "F", &r.speed, "compute F times as fast as recorded (1)"),
        CMD_FLAG(0, "no-delay", &r.opt.no_delay, "do not compute at all"),
        CMD_FLAG(0, "no-io", &r.opt.no_io, "leave files alone"),
        CMD_TEXT(0, "scratch", "DIR", &r.opt.scratch, "where files go (this folder)"),
        CMD_FLAG(0, "keep", &r.opt.keep, "do not remove them at the end"),
        CMD_TEXT(0, "patience", "TIME", &r.patience, "without progress before giving up (60s)"),
        CMD_JSON(&r.json),
        CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc != 1)
        return cmd_misuse(usage, "one trace must be named");
    if (r.speed && r.opt.no_delay)
        return cmd_misuse(usage, "'--speed' and '--no-delay' exclude each other");
    if (r.speed && (crn_parse_real(r.speed, &r.opt.speed) < 0 || !(r.opt.speed > 0)))
        return cmd_fail("--speed: '%s' is not a number above 0", r.speed);
    if (r.patience && crn_parse_seconds(r.patience, &r.opt.patience) < 0)
        return cmd_fail("--patience: %s", crn_err_peek()->text);
    return replay(&r, argv[0]);
}
