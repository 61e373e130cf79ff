/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shelves of states, for the subcommands that take a trail as well: SHELF or SHELF/KEY.
 */
#ifndef CAIRN_CMD_SHELF_H
#define CAIRN_CMD_SHELF_H

#include <cairn/state.h>

#include "cmd/cmd.h"

/* Does name stand for a shelf, or for the states of a key on one? */
bool cmd_is_shelf(const char *name);

/* What 'ls', 'show' (version NULL: the newest) and 'verify' print of it; they return the code. */
int cmd_shelf_ls(const char *name, bool json);
int cmd_shelf_show(const char *name, const char *version, bool json);
int cmd_shelf_verify(const char *name, bool json);

#endif
