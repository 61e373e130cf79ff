/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cairn help: the list of subcommands, the help of one, the table of options.
 */
#include "cmd/cmd.h"

static const char usage[] = "cairn help [COMMAND]\ncairn help config [--json | --man]";

static int print_overview(void)
{
    cmd_columns t = {.align = "ll"};
    printf("usage: cairn COMMAND [ARGUMENT ...]\n\n");
    for (const cmd_row *row = cmd_table; row->name; row++) {
        cmd_cell(&t, "%s", row->name);
        cmd_cell(&t, "%s", row->summary);
    }
    int code = cmd_columns_print(&t, 2, CMD_YES);
    printf("\n'cairn help COMMAND' explains one, 'cairn help config' lists the options.\n");
    return code;
}

static int print_one(const char *name)
{
    const cmd_row *row = cmd_find(name);
    char dash_h[] = "-h";
    char *argv[] = {(char *)name, dash_h, NULL};
    return row ? row->run(2, argv) : CMD_UNKNOWN;
}

int cmd_help(int argc, char **argv)
{
    bool json = false, man = false;
    int code;
    const cmd_option options[] = {
        CMD_JSON(&json),
        CMD_FLAG(0, "man", &man, "print the options as part of a manual page"),
        CMD_END,
    };
    if (!cmd_parse(usage, options, &argc, &argv, &code))
        return code;
    bool config = argc > 0 && strcmp(argv[0], "config") == 0;
    if (argc > 1)
        return cmd_misuse(usage, "unexpected argument '%s'", argv[1]);
    if (json && man)
        return cmd_misuse(usage, "'--json' and '--man' are two forms of the same");
    if ((json || man) && !config)
        return cmd_misuse(usage, "'%s' is for 'config'", json ? "--json" : "--man");
    if (config)
        return cmd_print_config(json ? CMD_CONFIG_JSON : man ? CMD_CONFIG_MAN : CMD_CONFIG_INI);
    return argc == 0 ? print_overview() : print_one(argv[0]);
}
