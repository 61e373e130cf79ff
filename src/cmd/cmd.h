/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The command 'cairn'. To add a subcommand:
 *
 *   1. Write src/cmd/cmd_<name>.c with the function cmd_<name>: options by cmd_parse, results on
 *      standard output, everything else on standard error, --json if it prints facts.
 *   2. Declare the function below and give it a row in the table of cmd_main.c.
 *   3. Write docs/man/cairn-<name>.1; its SYNOPSIS is what 'cairn <name> -h' prints, its JSON
 *      section says what --json prints. Name it in the list of cairn.1.
 *   4. Add cases to tests/cli/<name>/.
 *
 * Nothing else needs to know. Subcommands use the public headers and base, nothing of the library's
 * inside: what they cannot do through include/cairn, a user's program cannot do either.
 */
#ifndef CAIRN_CMD_H
#define CAIRN_CMD_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cairn/trail.h>

#include "base/base.h"

/* What every subcommand returns, and the command's exit code. */
enum { CMD_YES = 0, CMD_NO = 1, CMD_UNKNOWN = 2 /* inconclusive, or wrong usage */ };

/* argv[0] is the name of the subcommand. */
typedef int cmd_function(int argc, char **argv);

cmd_function cmd_bench, cmd_codecs, cmd_diff, cmd_drain, cmd_ensemble, cmd_explain, cmd_export,
    cmd_gate, cmd_help, cmd_import, cmd_ls, cmd_plan, cmd_prune, cmd_report, cmd_run, cmd_show,
    cmd_trace, cmd_verify, cmd_version;

typedef struct cmd_row {
    const char *name;
    cmd_function *run;
    const char *summary; /* a phrase that completes "this command can ..." */
} cmd_row;

/* The table of subcommands; its end has no name. */
extern const cmd_row cmd_table[];

/* The row of a subcommand, or NULL after saying which one may have been meant. */
const cmd_row *cmd_find(const char *name);

/* The list of options, which 'cairn help config' prints. */
typedef enum cmd_config_form { CMD_CONFIG_INI, CMD_CONFIG_JSON, CMD_CONFIG_MAN } cmd_config_form;
int cmd_print_config(cmd_config_form form);

/*
 * Options: an array of these, ended by CMD_END, with places for their values. -h and --help are
 * always there.
 */
typedef struct cmd_option {
    char letter;       /* 0: the long name only */
    const char *name;  /* without dashes */
    const char *value; /* what its argument is called, NULL for a flag */
    bool *flag;        /* set to true by a flag */
    const char **text; /* set by an option with an argument */
    const char *help;  /* a phrase */
} cmd_option;

#define CMD_FLAG(letter, name, flag, help)                                                         \
    {                                                                                              \
        letter, name, NULL, flag, NULL, help                                                       \
    }
#define CMD_TEXT(letter, name, value, text, help)                                                  \
    {                                                                                              \
        letter, name, value, NULL, text, help                                                      \
    }
#define CMD_JSON(flag) CMD_FLAG('j', "json", flag, "print JSON, as the manual page describes")
#define CMD_END                                                                                    \
    {                                                                                              \
        0                                                                                          \
    }

/*
 * Take the options off the arguments: afterwards argc and argv are the operands. usage has the
 * forms of the whole command, one a line. False when nothing is left to do (help was printed, the
 * usage was wrong): then return *ret.
 */
bool cmd_parse(const char *usage, const cmd_option *options, int *argc, char ***argv, int *ret);

/* For operands that are wrong: the sentence, the usage, and CMD_UNKNOWN to return. */
int cmd_misuse(const char *usage, const char *fmt, ...) CAIRN_PRINTF(2);

/* "cairn: " and a sentence to standard error; returns CMD_UNKNOWN. */
int cmd_fail(const char *fmt, ...) CAIRN_PRINTF(1);
int cmd_vfail(const char *fmt, va_list ap);

/* A line of the result. Like everything printed here, what may not be shown (crn_text_clean)
 * becomes '?'. */
void cmd_line(const char *fmt, ...) CAIRN_PRINTF(1);

/*
 * JSON. What cannot be made is NULL, and so is all that it was to become part of, as with
 * json_pack; so only cmd_print_json, which prints a value and releases it, says that it failed.
 * It returns code otherwise.
 */
int cmd_print_json(json_t *value, int code);
void cmd_json_append(json_t **list, json_t *value);
json_t *cmd_json_merge(json_t *object, json_t *members); /* object with the members of both */

/*
 * JSON that may be long, printed piece by piece and never in memory as a whole, as cmd_print_json
 * would print it: an object, its members, and what is in them. A name is NULL in an array. What is
 * added is released; cmd_json_finish says whether all went well, or returns code.
 *
 *     cmd_json j = {0};
 *     cmd_json_begin(&j, NULL, '{');
 *     cmd_json_begin(&j, "marks", '[');
 *     cmd_json_add(&j, NULL, mark);
 *     cmd_json_end(&j, ']');
 *     cmd_json_end(&j, '}');
 *     return cmd_json_finish(&j, code);
 */
typedef struct cmd_json {
    int depth;
    bool any;    /* something stands behind the last bracket */
    bool failed; /* something could not be made */
} cmd_json;

void cmd_json_begin(cmd_json *j, const char *name, char bracket);
void cmd_json_add(cmd_json *j, const char *name, json_t *value);

/* A value that is on one line already, as the lines of the log are. */
void cmd_json_add_line(cmd_json *j, const char *line);
void cmd_json_add_members(cmd_json *j, json_t *object);
void cmd_json_end(cmd_json *j, char bracket);
int cmd_json_finish(const cmd_json *j, int code);

/* s as JSON, with '?' for bytes that are not text: names in damaged files may have any. */
json_t *cmd_json_text(const char *s);

/*
 * Lines in columns. Cells are added from left to right, row after row; align has a letter for each
 * column, 'l' or 'r'. Memory that runs out is reported by cmd_columns_print, which also empties the
 * table; it indents each line by indent.
 */
typedef struct cmd_columns {
    const char *align;
    crn_buf cells; /* one after the other, each with its zero byte */
} cmd_columns;

void cmd_cell(cmd_columns *t, const char *fmt, ...) CAIRN_PRINTF(2);
int cmd_columns_print(cmd_columns *t, int indent, int code);

/* A trail, or one run of it, as a user names it: TRAIL or TRAIL/RUN; "." is the trail that a
 * program would use here, if this directory is none itself. */
typedef struct cmd_place {
    cairn_trail *trail;
    size_t first, end; /* the runs that are meant: all of the trail, or one */
} cmd_place;

int cmd_place_open(const char *name, cmd_place *ret); /* CMD_YES, or CMD_UNKNOWN after saying why */
void cmd_place_close(cmd_place *place);

/* The names of the trail and of the run (NULL: of none) that name stands for, also of a trail that
 * is not there yet, or a run in one that is. Free both. */
int cmd_place_names(const char *name, char **ret_trail, char **ret_run);

/* Let the configuration, by its environment variables, name this place: for calls that change a
 * run and find it as a program does. */
int cmd_place_configure(const char *name);

/* Times, levels and shares ("12.5%") in words; buf has CMD_WORDS bytes. All return buf. */
char *cmd_date(uint64_t wall_ns, char *buf);
char *cmd_levels(uint32_t levels, char *buf);
char *cmd_share(uint64_t part, uint64_t whole, char *buf);

enum { CMD_WORDS = 48 };

/* What is known of a run and of a mark without looking into parts; members can be added. */
json_t *cmd_json_run(const cairn_run_info *run);
json_t *cmd_json_mark(const cairn_mark_info *mark);

/*
 * A line on the terminal about work that takes long: shown on standard error if that is a terminal,
 * not before a second has passed, and wiped at the end.
 */
typedef struct cmd_progress {
    const char *what;      /* "verifying 'trail'" */
    FILE *to;              /* NULL when there is no terminal */
    uint64_t (*now)(void); /* nanoseconds */
    uint64_t start_ns, next_ns;
    bool shown;
} cmd_progress;

void cmd_progress_start(cmd_progress *p, const char *what);
void cmd_progress_update(cmd_progress *p, uint64_t done_bytes, uint64_t total_bytes);
void cmd_progress_end(cmd_progress *p);

#endif
