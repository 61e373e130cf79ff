/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Named states of a group of processes with a communicator.
 */
#ifndef CAIRN_STATE_MPI_H
#define CAIRN_STATE_MPI_H

#include <mpi.h>

#include <cairn/state.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The same as cairn_shelf_open for the processes of comm, which is duplicated: they put states
 * together, each its pieces. Collective. CAIRN_EPEER besides.
 */
CAIRN_API CAIRN_CHECK int cairn_shelf_open_group(MPI_Comm comm, const char *path,
                                                 const char *config, cairn_shelf **ret);

#ifdef __cplusplus
}
#endif
#endif
