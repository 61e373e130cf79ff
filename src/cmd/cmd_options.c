/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Options of subcommands, and the sentences about wrong ones.
 */
#include "cmd/cmd.h"

#include <getopt.h>

enum {
    OPTIONS_MAX = 30,
    LONG_ONLY = 256 /* getopt's code of option i is LONG_ONLY + i: above all letters */
};

static const cmd_option help_option = {
    .letter = 'h', .name = "help", .help = "print this and exit"};

/* What getopt_long needs: its own tables of the same options. */
typedef struct getopt_tables {
    char letters[2 * OPTIONS_MAX + 2];
    struct option names[OPTIONS_MAX + 2];
    int n;
} getopt_tables;

static void add(getopt_tables *t, const cmd_option *option)
{
    char letter[3] = {option->letter, option->value ? ':' : 0, 0};
    size_t used = strlen(t->letters);
    snprintf(t->letters + used, sizeof t->letters - used, "%s", letter);
    t->names[t->n] = (struct option){option->name, option->value ? required_argument : no_argument,
                                     NULL, LONG_ONLY + t->n};
    t->n++;
}

static getopt_tables tables_of(const cmd_option *options)
{
    getopt_tables t = {.letters = ":"};
    for (const cmd_option *o = options; o->name && t.n < OPTIONS_MAX; o++)
        add(&t, o);
    add(&t, &help_option);
    return t;
}

/* "-j, --json" or "    --run NAME" */
static void print_option(cmd_columns *t, const cmd_option *o)
{
    char letter[5] = "    ";
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    cmd_cell(t, "%s--%s%s%s", letter, o->name, o->value ? " " : "", o->value ? o->value : "");
    cmd_cell(t, "%s", o->help);
}

static void print_usage(FILE *to, const char *usage)
{
    const char *lead = "usage: ";
    for (const char *line = usage; *line;) {
        int n = (int)strcspn(line, "\n");
        fprintf(to, "%s%.*s\n", lead, n, line);
        lead = "       ";
        line += n + (line[n] == '\n');
    }
}

static int print_help(const char *name, const char *usage, const cmd_option *options)
{
    cmd_columns t = {.align = "ll"};
    print_usage(stdout, usage);
    printf("\n");
    for (const cmd_option *o = options; o->name; o++)
        print_option(&t, o);
    print_option(&t, &help_option);
    int code = cmd_columns_print(&t, 2, CMD_YES);
    printf("\nMore in cairn-%s(1).\n", name);
    return code;
}

static int report_unknown(const char *usage, const cmd_option *options, const char *word)
{
    crn_nearest near = crn_nearest_to(word);
    char name[CRN_WORD_MAX + 1];
    for (const cmd_option *o = options; o->name; o++) {
        snprintf(name, sizeof name, "--%s", o->name);
        crn_nearest_offer(&near, name);
    }
    return cmd_misuse(usage, "no option '%s'%s", word, near.hint);
}

static const cmd_option *option_of(const cmd_option *options, const getopt_tables *t, int code)
{
    for (int i = 0; i < t->n; i++) {
        const cmd_option *o = i == t->n - 1 ? &help_option : &options[i];
        if (code == LONG_ONLY + i || (o->letter && code == o->letter))
            return o;
    }
    return NULL;
}

/* The word on the command line that getopt_long did not like. */
static const char *wrong_word(char **argv, char *buf, size_t cap)
{
    if (optopt > 0 && optopt < LONG_ONLY)
        snprintf(buf, cap, "-%c", optopt);
    else
        snprintf(buf, cap, "%s", argv[optind - 1]);
    return buf;
}

static void take(const cmd_option *o)
{
    if (o->flag)
        *o->flag = true;
    else
        *o->text = optarg;
}

bool cmd_parse(const char *usage, const cmd_option *options, int *argc, char ***argv, int *ret)
{
    getopt_tables t = tables_of(options);
    char word[CRN_WORD_MAX + 1];
    int code;
    optind = 0; /* 'cairn help' parses twice */
    while ((code = getopt_long(*argc, *argv, t.letters, t.names, NULL)) != -1) {
        const cmd_option *o = option_of(options, &t, code);
        if (code == ':')
            *ret = cmd_misuse(usage, "option '%s' needs a value",
                              wrong_word(*argv, word, sizeof word));
        else if (!o)
            *ret = report_unknown(usage, options, wrong_word(*argv, word, sizeof word));
        else if (o == &help_option)
            *ret = print_help((*argv)[0], usage, options);
        else if (o->flag && strcmp(o->name, "json") == 0 && crn_json_present("--json") < 0)
            *ret = cmd_fail("%s", crn_err_peek()->text);
        else {
            take(o);
            continue;
        }
        return false;
    }
    *argc -= optind;
    *argv += optind;
    return true;
}

int cmd_misuse(const char *usage, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    cmd_vfail(fmt, ap);
    va_end(ap);
    print_usage(stderr, usage);
    return CMD_UNKNOWN;
}
