/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is kept of a run after its program has died or ended: bringing a mark from the nodes into
 * the trail (drain), letting go of what is no longer needed (prune), and adding to the log of what
 * happened (note). 'cairn drain', 'cairn prune' and 'cairn run' are made of these calls. Trail, run
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

typedef struct cairn_drained {
    size_t struct_bytes; /* <cairn/version.h> */
    uint64_t version;    /* the newest mark that the trail has now */
    uint64_t nbytes;     /* written into the trail */
    uint64_t nlost; /* marks that were newer and could not be produced from what is seen here */
} cairn_drained;

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
CAIRN_API CAIRN_CHECK int cairn_drain(MPI_Comm comm, const char *config, cairn_drained *ret);

typedef struct cairn_pruning {
    size_t struct_bytes; /* <cairn/version.h> */
    uint64_t keep;       /* marks in the trail to keep, the newest ones; 0 of a finished run only */
    bool local;          /* let go of the run's node-local files too; unless keep is 0, the last
                            mark must be in the trail */
    bool dry;            /* only tell */
    uint64_t nmarks;     /* result: marks that the run does not have any more */
    uint64_t nfiles;     /* result: files that were removed */
} cairn_pruning;

/*
 * Let go of what is no longer needed of a run: marks in the trail beyond the newest ones (the space
 * that they took in part files is free for later marks), part files that no mark refers to, and
 * node-local files of a finished run. Collective; any number of ranks, at least one on each node
 * whose files are to go, on one machine with virtual nodes MPI_COMM_SELF (also without MPI_Init).
 *   config  [in]  as for cairn_open
 *   how     [in, out] the same on all ranks
 * CAIRN_OK, CAIRN_ENOTFOUND, CAIRN_EBUSY, CAIRN_EINVAL, CAIRN_EIO, CAIRN_ENOMEM, CAIRN_EPEER.
 */
CAIRN_API CAIRN_CHECK int cairn_prune(MPI_Comm comm, const char *config, cairn_pruning *how);

typedef struct cairn_orphans {
    size_t struct_bytes; /* <cairn/version.h> */
    bool dry;            /* only tell */
    /* Called for what each run has left, with a sentence, on a rank of the node where it lies: goes
     * says whether it is removed, or would be. May be NULL. */
    void (*tell)(void *arg, const char *text, bool goes);
    void *arg;
    uint64_t nruns;  /* result, over all nodes: runs whose files were, or would be, removed; */
    uint64_t nkept;  /* runs whose files stay; */
    uint64_t nbytes; /* bytes that were, or would be, freed */
} cairn_orphans;

/*
 * Remove from node-local storage what belongs to no run any more, or to a finished one whose last
 * mark is in its trail, whichever runs those are. A run that is not finished keeps its files, and
 * so does a running program. Where it cannot be told, because the trail cannot be reached now,
 * files stay until nothing has been written for the time keep.orphans. Programs do the same when
 * they open a session, with all that is so old. Collective; one rank on each node is enough. config
 * [in]  as for cairn_open how     [in, out] the same on all ranks, but for arg CAIRN_OK,
 * CAIRN_EINVAL, CAIRN_EIO, CAIRN_ENOMEM, CAIRN_EPEER.
 */
CAIRN_API CAIRN_CHECK int cairn_prune_orphans(MPI_Comm comm, const char *config,
                                              cairn_orphans *how);

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
