/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn import: a mark made of an HDF5 file.
 */
#include "cmd/cmd.h"

#include <cairn/exchange.h>

static const char usage[] = "cairn import [--json] [--mark VERSION] [--ranks N] FILE TRAIL[/RUN]";

static int on_progress(void *arg, uint64_t done_bytes, uint64_t total_bytes)
{
    cmd_progress_update(arg, done_bytes, total_bytes);
    return 0;
}

static int print(const cairn_import_result *r, uint64_t version, bool json)
{
    char nbytes[CRN_NUMBER_TEXT];
    if (json)
        return cmd_print_json(json_pack("{s:s, s:I, s:I, s:I, s:I}", "run", r->name, "version",
                                        (json_int_t)version, "variables", (json_int_t)r->nvars,
                                        "nbytes", (json_int_t)r->nbytes, "skipped",
                                        (json_int_t)r->nskipped),
                              CMD_YES);
    cmd_line("run '%s', mark %" PRIu64 ": %" PRIu64 " variable%s, %s", r->name, version, r->nvars,
             r->nvars == 1 ? "" : "s", crn_format_nbytes(r->nbytes, nbytes, sizeof nbytes));
    if (r->nskipped > 0)
        cmd_line("%" PRIu64 " dataset%s left out: no numbers, or in other files", r->nskipped,
                 r->nskipped == 1 ? " was" : "s were");
    return CMD_YES;
}

static int import_file(cairn_import_options *how, cmd_progress *progress, const char *place,
                       bool json)
{
    char *trail, *run, title[CRN_ERR_TEXT];
    cairn_import_result made = {.struct_bytes = sizeof made};
    if (cmd_place_names(place, &trail, &run) != CMD_YES)
        return CMD_UNKNOWN;
    how->trail = trail;
    how->run = run;
    how->progress = on_progress;
    how->arg = progress;
    snprintf(title, sizeof title, "reading '%.256s'", how->path);
    cmd_progress_start(progress, title);
    int rc = cairn_import(how, &made);
    cmd_progress_end(progress);
    free(trail);
    free(run);
    return rc < 0 ? cmd_fail("%s", cairn_error_text()) : print(&made, how->version, json);
}

int cmd_import(int argc, char **argv)
{
    cairn_import_options how = {.struct_bytes = sizeof how};
    cmd_progress progress;
    bool json = false;
    const char *mark = "0", *ranks = "0";
    uint64_t nranks;
    int code;
    const cmd_option options[] = {
        CMD_JSON(&json), CMD_TEXT('m', "mark", "VERSION", &mark, "the version of the mark (0)"),
        CMD_TEXT('n', "ranks", "N", &ranks, "ranks to cut arrays for (as many as wrote the file)"),
        CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc != 2)
        return cmd_misuse(usage, "a file and a trail must be named");
    if (crn_parse_count(mark, &how.version) < 0)
        return cmd_misuse(usage, "--mark: %s", crn_err_peek()->text);
    if (crn_parse_count(ranks, &nranks) < 0 || nranks > UINT32_MAX)
        return cmd_misuse(usage, "--ranks: '%s' is no number of ranks", ranks);
    how.nranks = (uint32_t)nranks;
    how.path = argv[0];
    return import_file(&how, &progress, argv[1], json);
}
