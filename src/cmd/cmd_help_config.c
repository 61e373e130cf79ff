/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The option table in print: as a configuration file with all defaults in comments, as JSON, as
 * mdoc.
 */
#include "cmd/cmd.h"

/* Calls print for each row; first is true where a section begins. */
static void for_each(void (*print)(const crn_opt *row, bool first, void *arg), void *arg)
{
    for (int i = 0; i < CRN_OPT_COUNT_OF; i++) {
        const crn_opt *row = crn_opt_row((crn_opt_id)i);
        bool first = i == 0 || strcmp(row->section, crn_opt_row((crn_opt_id)(i - 1))->section) != 0;
        print(row, first, arg);
    }
}

static void print_ini(const crn_opt *row, bool first, void *arg)
{
    bool *started = arg;
    char env[CRN_OPT_ENV];
    if (first)
        printf("%s[%s]\n", *started ? "\n" : "", row->section);
    *started = true;
    printf("# %s\n# %s", row->help, crn_opt_type_name(row->type));
    if (row->range[0])
        printf(" (%s)", row->range);
    /* a default that is set differs from one that is not: level.partner on one node, for example */
    printf("; %s\n; %s = %s\n", crn_opt_env(row, env), row->key, row->def);
}

static void add_json(const crn_opt *row, bool first, void *arg)
{
    char env[CRN_OPT_ENV];
    (void)first;
    json_array_append_new(
        arg, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "section", row->section, "key",
                       row->key, "type", crn_opt_type_name(row->type), "default", row->def, "range",
                       row->range, "environment", crn_opt_env(row, env), "help", row->help));
}

/* Text as an mdoc line: nothing in it is a request or an escape. */
static void print_mdoc(const char *text)
{
    printf("\\&");
    for (; *text; text++)
        if (*text == '\\')
            printf("\\e");
        else
            putchar(*text);
    printf("\n");
}

static void print_man(const crn_opt *row, bool first, void *arg)
{
    bool *started = arg;
    char env[CRN_OPT_ENV];
    if (first && *started)
        printf(".El\n");
    if (first)
        printf(".Ss Section [%s]\n.Bl -tag -width Ds\n", row->section);
    *started = true;
    printf(".It Ic %s\n", row->key);
    print_mdoc(row->help);
    printf("(%s; default\n.Ql %s ;\n.Ev %s ) .\n", crn_opt_type_name(row->type), row->def,
           crn_opt_env(row, env));
    if (row->range[0])
        printf("Allowed:\n.Ql %s .\n", row->range);
}

int cmd_print_config(cmd_config_form form)
{
    bool started = false;
    if (form == CMD_CONFIG_JSON) {
        json_t *list = json_array();
        for_each(add_json, list);
        return cmd_print_json(list, CMD_YES);
    }
    for_each(form == CMD_CONFIG_MAN ? print_man : print_ini, &started);
    if (form == CMD_CONFIG_MAN && started)
        printf(".El\n");
    return CMD_YES;
}
