/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Named states of a group of processes with a communicator.
 */
#ifndef CAIRN_STATE_MPI_H
#define CAIRN_STATE_MPI_H

#include <mpi.h>

#include <cairn/compare.h>
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

/* States of a key on a shelf: that of a version, or all of them. */
typedef struct cairn_states {
    cairn_shelf *shelf;
    const char *key;
    bool all;
    uint64_t version; /* not of all */
} cairn_states;

/*
 * Compare states as cairn_compare compares the marks of two runs (<cairn/compare.h>): those of all
 * versions that both have, or two of any versions. Blocks of equal digests are not read; states of
 * groups of different sizes are compared through their arrays. Collective; all processes have the
 * same shelves open. As cairn_compare; CAIRN_ENOTFOUND: there is no such state.
 */
CAIRN_API CAIRN_CHECK int cairn_compare_states(MPI_Comm comm, const cairn_states *first,
                                               const cairn_states *second,
                                               const cairn_comparison_options *how,
                                               cairn_comparison *ret);

#ifdef __cplusplus
}
#endif
#endif
