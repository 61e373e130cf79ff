/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Subcommands that share their work among ranks.
 */
#ifndef CAIRN_CMD_RANKS_H
#define CAIRN_CMD_RANKS_H

#include <mpi.h>

#include "cmd/cmd.h"

/* Does the work on the ranks of comm, of which this is one; returns the command's exit code. */
typedef int cmd_work(MPI_Comm comm, int rank, void *arg);

/* Do it with all that a launcher such as mpirun has started, or else alone, without MPI. */
int cmd_on_ranks(cmd_work *work, void *arg);

#endif
