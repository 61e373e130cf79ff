/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CAIRN_CMD_DIFF_SHELF_H
#define CAIRN_CMD_DIFF_SHELF_H

#include "cmd/cmd_compare.h"
#include "cmd/cmd_ranks.h"

/* Compare the shelves, or states of a key of each, that a cmd_comparison names. */
int cmd_diff_shelves(MPI_Comm comm, int rank, void *arg);

#endif
