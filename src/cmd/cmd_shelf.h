/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shelves of states, for the subcommands that take a trail as well: SHELF, SHELF/KEY
 * or SHELF/KEY@VERSION.
 */
#ifndef CAIRN_CMD_SHELF_H
#define CAIRN_CMD_SHELF_H

#include <cairn/state.h>

#include "cmd/cmd.h"

/* Does name stand for a shelf, or for the states of a key on one? */
bool cmd_is_shelf(const char *name);

/* A shelf, and the key whose states are meant, or NULL for all. */
typedef struct cmd_shelf_place {
    char *path; /* the key follows it, where there is one */
    const char *key;
    bool has_version; /* KEY@VERSION was named */
    uint64_t version;
    cairn_shelf *shelf;
    CRN_VEC(cairn_state_info) state; /* by key and version */
} cmd_shelf_place;

/* Open what name stands for; returns the code. */
int cmd_shelf_open(const char *name, cmd_shelf_place *p);
void cmd_shelf_close(cmd_shelf_place *p);

/* What 'ls', 'show' (version NULL: the newest) and 'verify' print of it; they return the code. */
int cmd_shelf_ls(const char *name, bool json);
int cmd_shelf_show(const char *name, const char *version, bool json);
int cmd_shelf_verify(const char *name, bool json);

#endif
