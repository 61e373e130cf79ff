/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is in a mark, over all ranks: read from the part files' tables, not from the blocks.
 */
#ifndef CAIRN_CMD_CONTENTS_H
#define CAIRN_CMD_CONTENTS_H

#include "cmd/cmd.h"

/* Blocks and bytes of a piece, of a variable or of a mark. */
typedef struct cmd_totals {
    uint64_t nbytes, nblocks, nchanged, stored_bytes;
} cmd_totals;

typedef struct cmd_variable {
    char *name, *type;
    cairn_variable_info first; /* of the first rank that has it, without its strings */
    cmd_totals sum;
    uint64_t whole_bytes, kept_bytes; /* that the program had, and that the mark has of them */
    json_t *pieces;                   /* of each rank; NULL unless asked for */
} cmd_variable;

typedef struct cmd_contents {
    cairn_mark_info info;
    bool in_trail;       /* else it is on the nodes that wrote it, and nothing below is known */
    uint64_t file_bytes; /* of the parts, which hold other marks, too */
    cmd_totals sum;
    CRN_VEC(cmd_variable) vars;
    crn_index index; /* of vars by their names, while reading */
} cmd_contents;

/*
 * Fill *ret, which is zero; cmd_contents_done is due whatever the result. pieces: keep each. A part
 * that cannot be read is reported and makes the result CMD_UNKNOWN; the others are still added up.
 */
int cmd_contents_read(cairn_trail *trail, size_t run, size_t mark, bool pieces, cmd_contents *ret);
void cmd_contents_done(cmd_contents *c);

json_t *cmd_contents_json(const cmd_contents *c);

#endif
