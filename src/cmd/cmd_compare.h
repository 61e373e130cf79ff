/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What 'cairn diff' and 'cairn gate' share: the options of a comparison, and how its result is
 * shown to people and programs.
 */
#ifndef CAIRN_CMD_COMPARE_H
#define CAIRN_CMD_COMPARE_H

#include "cmd/cmd.h"

#include <cairn/compare.h>

typedef struct cmd_comparison {
    const char *first, *second; /* two runs or files; a golden file comes first */
    cairn_comparison_options how;
    const char *nan, *threads, *shape, *marks; /* as given */
    bool only_first, json, csv;
    bool files;  /* and not runs: there are no marks and no ranks */
    bool golden; /* the first is a golden file */
    /* from here on its own */
    bool speaks;      /* this process prints */
    bool lists_marks; /* of one run alone, one by one: they make a difference */
    uint64_t nrows;
    json_t *rows;  /* with json */
    cmd_columns t; /* otherwise, of what is not the same */
    cmd_progress progress;
} cmd_comparison;

/* Are the options sound? Sets what follows from them. */
bool cmd_comparison_check(cmd_comparison *c, const char *usage);

/* Before the call, which is to be given c->how, and after it; the latter gives the exit code. */
void cmd_comparison_begin(cmd_comparison *c, bool speaks, const char *what);
int cmd_comparison_end(cmd_comparison *c, int rc, const cairn_comparison *result);

/* The words of these two for others: the first difference as a line, a row as JSON, verdicts. */
void cmd_comparison_print_first(const cairn_comparison_row *r);
json_t *cmd_comparison_json(const cmd_comparison *c, const cairn_comparison_row *r);
const char *cmd_comparison_word(cairn_verdict v);
int cmd_comparison_code(cairn_verdict v);

#endif
