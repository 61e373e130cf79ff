/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn version: what is running here.
 */
#include "cmd/cmd.h"

#include <cairn/version.h>

static const char usage[] = "cairn version [--json]\ncairn --version [--json]";

int cmd_version(int argc, char **argv)
{
    bool json = false;
    int code;
    const cmd_option options[] = {CMD_JSON(&json), CMD_END};
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    if (argc > 0)
        return cmd_misuse(usage, "unexpected argument '%s'", argv[0]);
    if (json)
        return cmd_print_json(json_pack("{s:s, s:i, s:i}", "version", cairn_version(), "format",
                                        CAIRN_FORMAT, "trace_format", CAIRN_TRACE_FORMAT),
                              CMD_YES);
    printf("cairn %s\n", cairn_version());
    return CMD_YES;
}
