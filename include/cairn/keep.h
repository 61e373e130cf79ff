/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is kept of a run after its program has died or ended: bringing a mark from the nodes into
 * the trail (drain), deleting what is no longer needed (prune), and adding an event to the log
 * (note). 'cairn drain', 'cairn prune' and 'cairn run' are made of these calls. Trail, run
 * and node-local storage are those that the configuration names, as for the program itself; all
 * refuse a run that a program is writing.
 *
 * Returns are codes of <cairn/error.h>; the sentence is cairn_error_text().
 */
#ifndef CAIRN_KEEP_H
#define CAIRN_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#include <cairn/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairn_drain_result {
    size_t struct_bytes; /* <cairn/version.h> */
    uint64_t version;    /* the newest mark that the trail has now */
    uint64_t nbytes;     /* written into the trail */
    uint64_t nlost; /* marks that were newer and could not be produced from what is seen here */
} cairn_drain_result;

/*
 * Bring the newest mark that can still be produced into the trail, from whatever copies are left.
 * Collective; any number of ranks, at least one on each node whose storage is to be read, on one
 * machine with virtual nodes MPI_COMM_SELF (also without MPI_Init).
 *   config  [in]  as for cairn_open
 *   ret     [out] what was done
 * CAIRN_OK: brought. CAIRN_NOTHING: it was there already. CAIRN_ENOTFOUND: there is no run, no
 * mark, or none that can be produced. CAIRN_EBUSY: a program writes the run. CAIRN_EINVAL,
 * CAIRN_EIO, CAIRN_ENOSPC, CAIRN_ENOMEM, CAIRN_EPEER.
 */
CAIRN_API CAIRN_CHECK int cairn_drain(MPI_Comm comm, const char *config, cairn_drain_result *ret);

typedef struct cairn_prune_options {
    size_t struct_bytes; /* <cairn/version.h> */
    uint64_t keep;       /* marks in the trail to keep, the newest ones; 0: a finished run only */
    bool local;          /* delete the run's node-local files too; unless keep is 0, the last mark
                            must be in the trail */
    bool dry;            /* change nothing, only count */
} cairn_prune_options;

typedef struct cairn_prune_result {
    size_t struct_bytes;
    uint64_t nmarks; /* marks that were, or would be, deleted */
    uint64_t nfiles; /* files that were deleted */
} cairn_prune_result;

/*
 * Delete what is no longer needed of a run: marks in the trail beyond the newest ones (later marks
 * use the space that they took in part files), part files that no mark refers to, and node-local
 * files of a finished run. Collective; any number of ranks, at least one on each node
 * whose files are to go, on one machine with virtual nodes MPI_COMM_SELF (also without MPI_Init).
 *   config  [in]  as for cairn_open
 *   how     [in]  the same on all ranks
 *   ret     [out] NULL is allowed
 * CAIRN_OK, CAIRN_ENOTFOUND, CAIRN_EBUSY, CAIRN_EINVAL, CAIRN_EIO, CAIRN_ENOMEM, CAIRN_EPEER.
 */
CAIRN_API CAIRN_CHECK int cairn_prune(MPI_Comm comm, const char *config,
                                      const cairn_prune_options *how, cairn_prune_result *ret);

typedef struct cairn_orphan_options {
    size_t struct_bytes; /* <cairn/version.h> */
    bool dry;            /* change nothing, only count */
    /* Called for the files of each run, with a sentence, on a rank of the node that has them; goes:
     * they were, or would be, deleted. May be NULL. */
    void (*report)(void *arg, const char *text, bool goes);
    void *arg;
} cairn_orphan_options;

typedef struct cairn_orphan_result { /* over all nodes */
    size_t struct_bytes;
    uint64_t nruns;  /* runs whose files were, or would be, deleted */
    uint64_t nkept;  /* runs whose files stay */
    uint64_t nbytes; /* bytes that were, or would be, freed */
} cairn_orphan_result;

/*
 * Delete node-local files of all runs that no longer exist, or that are finished and whose last
 * mark is in the trail. A run that is not finished keeps its files, and so does a running program.
 * While the trail cannot be reached, files stay until nothing has been written for the time
 * keep.orphans. Programs delete files of that age when they open a session. Collective; one rank on
 * each node is enough.
 *   config  [in]  as for cairn_open
 *   how     [in]  the same on all ranks, except arg
 *   ret     [out] NULL is allowed
 * CAIRN_OK, CAIRN_EINVAL, CAIRN_EIO, CAIRN_ENOMEM, CAIRN_EPEER.
 */
CAIRN_API CAIRN_CHECK int cairn_prune_orphans(MPI_Comm comm, const char *config,
                                              const cairn_orphan_options *how,
                                              cairn_orphan_result *ret);

/*
 * Append an event to the log of a run. Not collective.
 *   trail, run [in]  where: these two are named here, not by the configuration
 *   event      [in]  a JSON object whose member "event" is its kind; its time is added, and when
 *                    whoever had the run before gave its last sign of life
 * CAIRN_ENOTFOUND: no such trail or run. CAIRN_EBUSY: a program writes the run, and the sentence
 * tells which. CAIRN_EINVAL, CAIRN_ENOSPC, CAIRN_EIO, CAIRN_ENOMEM.
 */
CAIRN_API CAIRN_CHECK int cairn_note(const char *trail, const char *run, const char *event);

#ifdef __cplusplus
}
#endif
#endif
