/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checkpoint and restart. Five calls protect a program:
 *
 *     cairn *c;
 *     if (cairn_open(MPI_COMM_WORLD, NULL, &c) < 0)
 *         fail(cairn_last_error(NULL));
 *     cairn_protect(c, "step", &step, CAIRN_UINT64, 1);
 *     cairn_protect(c, "field", field, CAIRN_FLOAT64, n);
 *     if (cairn_resume(c, NULL) < 0)            step and field are as they were, if there is a mark
 *         fail(cairn_last_error(c));            there are marks, but none that can be produced
 *     for (; step < nsteps; step++) {
 *         if (cairn_due(c))
 *             cairn_mark(c, step, CAIRN_AUTO);  returns after copying what changed
 *         advance(field);
 *     }
 *     cairn_close(c);
 *
 * A run lives in a trail, a directory that the configuration names (guide:
 * docs/guide/checkpoint.md). When the program is started again after a failure, it goes on with the
 * run's newest mark that can still be produced; when it was closed after its end, a new run begins.
 *
 * Results. 0, a positive answer, or a negative code (<cairn/error.h>); the sentence for a person is
 * cairn_last_error(c). Calls that say "Collective" must be made by all ranks of the communicator in
 * the same order, and return the same result on all of them. A failed mark never harms the run or
 * an earlier mark: the program may ignore it and go on. What goes wrong with a mark in the
 * background is said once, with the mark and its level, by the next of these calls: cairn_mark,
 * which takes its own mark all the same; cairn_begin, cairn_resume and the probes, which then do
 * nothing else, and can be called again; cairn_commit, cairn_settle, cairn_close.
 *
 * Threads. A session is used by one thread at a time, the one that may call MPI. Sessions are
 * independent of each other. With MPI_THREAD_MULTIPLE everything but the copying happens on a
 * thread of Cairn's own, on communicators of its own; without it, the parts that need MPI happen in
 * the next collective call.
 */
#ifndef CAIRN_CKPT_H
#define CAIRN_CKPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#if (defined(CAIRN_FOR_OPEN_MPI) && !defined(OPEN_MPI)) ||                                         \
    (defined(CAIRN_FOR_MPICH) && defined(OPEN_MPI))
#error "this libcairn was built for another MPI than the one whose <mpi.h> is included"
#endif

#include <cairn/error.h>
#include <cairn/type.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairn cairn;

/* How safe a mark is; each includes CAIRN_LEVEL_LOCAL. */
typedef enum cairn_level {
    CAIRN_AUTO = 0,          /* as the configuration and the planner say */
    CAIRN_LEVEL_LOCAL = 1,   /* survives the death of processes */
    CAIRN_LEVEL_PARTNER = 2, /* survives the loss of a node */
    CAIRN_LEVEL_ENCODED = 3, /* survives the loss of several nodes of a group */
    CAIRN_LEVEL_GLOBAL = 4   /* survives the loss of everything but the trail */
} cairn_level;

/*
 * Open a session on the ranks of comm. Collective.
 *   comm    [in]  duplicated; MPI_COMM_SELF also before MPI_Init, or in a program without MPI
 *   config  [in]  path of an INI file; NULL: $CAIRN_CONFIG, or the defaults ('cairn help config')
 *   ret     [out] the session, to be closed with cairn_close; NULL on failure
 *
 * CAIRN_EINVAL (configuration, or levels that these nodes cannot give), CAIRN_EBUSY (another
 * program writes this run), CAIRN_ENOTFOUND (a directory above the trail; all marks of a run whose
 * manifest is lost), CAIRN_ECORRUPT (a run that cannot be read), CAIRN_EIO, CAIRN_ENOSPC,
 * CAIRN_ENOMEM, CAIRN_EUNSUPPORTED, CAIRN_EPEER. The sentence is cairn_last_error(NULL).
 */
CAIRN_API CAIRN_CHECK int cairn_open(MPI_Comm comm, const char *config, cairn **ret);

/*
 * Say which experiment this is, in a line for people: "grid 512, viscosity 1e-3, case B". Before
 * the run is resumed, probed or marked. Logically collective; rank 0's text counts, UTF-8 of at
 * most 4096 bytes. A run that has marks and says something else is not resumed: cairn_resume, the
 * probes and cairn_mark return CAIRN_EMISMATCH and name both; setting run.name begins or continues
 * another run, resume.identity = any goes on with this one, which is this experiment's from then
 * on. Where one side says nothing, or the program's file has another name, only the log tells.
 * CAIRN_EINVAL, CAIRN_ENOMEM.
 */
CAIRN_API int cairn_identify(cairn *c, const char *text);

/*
 * Protect count elements at data under a name, unique in the session. Not collective; ranks may
 * protect different variables and sizes. The memory stays the program's and must be valid until
 * released, protected anew, or the session is closed. Protecting a name again changes its address,
 * type or size from the next mark on. CAIRN_EINVAL, CAIRN_ENOMEM.
 */
CAIRN_API int cairn_protect(cairn *c, const char *name, void *data, cairn_type type, size_t count);

/*
 * The same for a piece of a global array of ndims (1 to 8) dimensions, last index fastest: this
 * rank has count[d] of global[d] elements from offset[d] on. The pieces of all ranks tile the
 * array: a mark with an overlap, a hole or different global sizes is refused; only an array that
 * every rank has as a whole is allowed besides. What was protected so comes back on any number of
 * ranks, in any other pieces. CAIRN_EINVAL, CAIRN_ENOMEM.
 */
CAIRN_API int cairn_protect_part(cairn *c, const char *name, void *data, cairn_type type, int ndims,
                                 const uint64_t *global, const uint64_t *offset,
                                 const uint64_t *count);

/* A piece of a global array, and what lies around it in memory. */
typedef struct cairn_piece {
    size_t struct_bytes; /* <cairn/version.h> */
    int ndims;
    uint64_t global[8], offset[8], count[8]; /* as for cairn_protect_part */
    uint64_t before[8], after[8]; /* elements of memory around the piece: a halo, padding */
    bool halo;                    /* resume fills those, too */
} cairn_piece;

/*
 * The same for a piece within larger memory: data is the address of that, whose extents are
 * before[d] + count[d] + after[d]. Marks have the piece alone, and with halo also what this rank
 * holds around it: that comes back bit for bit on as many ranks to a rank with the same piece and
 * memory. For other pieces it is filled from those that the array had, as far as the array goes.
 * CAIRN_EINVAL, CAIRN_ENOMEM.
 */
CAIRN_API int cairn_protect_piece(cairn *c, const char *name, void *data, cairn_type type,
                                  const cairn_piece *piece);

/*
 * Protect items that lie in cells, some in each: particles in the cells of a grid. Not collective.
 *   data    [in]  the items of the first cell, those of the second, ...
 *   global  [in]  cells of all ranks; each belongs to one of them, or a mark is refused
 *   cell    [in]  numbers, growing, of the ncells cells that are this rank's; copied
 *   nitems  [in]  of each of those; copied: protect anew before the mark after items have moved
 * On a restart each rank gets the items of the cells that are its own then, whoever had them: ask
 * cairn_probe_cells how many they are, allocate, protect, resume. CAIRN_EINVAL, CAIRN_ENOMEM.
 */
CAIRN_API int cairn_protect_ragged(cairn *c, const char *name, void *data, cairn_type type,
                                   uint64_t global, size_t ncells, const uint64_t *cell,
                                   const uint64_t *nitems);

/*
 * Protect count items of which it does not matter who has which: after a restart on another number
 * of ranks, each has an equal share of all ranks' items, as many as cairn_probe_count says, and the
 * program sends them to where they belong. CAIRN_EINVAL, CAIRN_ENOMEM.
 */
CAIRN_API int cairn_protect_list(cairn *c, const char *name, void *data, cairn_type type,
                                 size_t count);

/*
 * Make a type of a structure, for variables whose elements are structures. Not collective.
 *   nbytes  [in]  sizeof the structure
 *   member  [in]  n members (<cairn/type.h>); other bytes of the structure are kept, too
 *   ret     [out] the type, valid in this session alone
 * Other tools see the members by their names, and a mark is refused to a program that has other
 * ones. CAIRN_EINVAL (members that overlap, leave the structure or do not fit their type),
 * CAIRN_ENOMEM.
 */
CAIRN_API int cairn_define_type(cairn *c, size_t nbytes, const cairn_member *member, size_t n,
                                cairn_type *ret);

/*
 * Say something about a protected variable that other tools show: in HDF5 files it is an attribute
 * of the dataset. Customary keys are "units" and "description"; "spacing" and "origin" (a number
 * for each dimension) let an array be drawn to scale; "id" names the member of items, or another
 * variable, whose number tells items apart when runs are compared. Not collective; what the lowest
 * rank with the variable says is shown. A value of NULL takes back what was said.
 * CAIRN_EINVAL, CAIRN_ENOTFOUND, CAIRN_ENOMEM.
 */
CAIRN_API int cairn_describe(cairn *c, const char *name, const char *key, const char *value);

/*
 * Set the error bounds within which the numbers of a variable count as the same when runs are
 * compared (<cairn/compare.h>), instead of those of the configuration: "1e-6", "rel 1e-4", "1e-6
 * rel 1e-4", or several with commas between them; members of structures may have their own, as in
 * "1e-6, x=rel 1e-4, id=0". Not collective; from the next mark on. The digests for the bounds are
 * made in the background. CAIRN_ENOTFOUND, CAIRN_EINVAL, CAIRN_ENOMEM.
 */
CAIRN_API int cairn_set_bounds(cairn *c, const char *name, const char *bounds);

/* Protect name no longer. Not collective. CAIRN_ENOTFOUND. */
CAIRN_API int cairn_release(cairn *c, const char *name);

/*
 * Bring back the newest mark that can be produced, into the protected memory, whatever number of
 * ranks wrote it. Collective.
 *   version [out] of that mark; NULL is allowed
 * Parts of global arrays, items in cells and lists come back on any number of ranks; what a rank
 * protected with cairn_protect comes back on as many ranks, or on others if it was the same on all
 * of them. CAIRN_NOTHING: there is no mark, nothing was touched. CAIRN_EMISMATCH: names, types or
 * sizes differ from the mark's, or it cannot come back on these ranks; nothing was touched.
 * CAIRN_ENOTFOUND: there are marks, but none can be produced, and the sentence says what is
 * missing; memory may have been written to. CAIRN_EIO, CAIRN_ENOMEM.
 */
CAIRN_API CAIRN_CHECK int cairn_resume(cairn *c, uint64_t *version);

/* The same for the mark of one version. CAIRN_ENOTFOUND also when there is no such mark. */
CAIRN_API CAIRN_CHECK int cairn_resume_at(cairn *c, uint64_t version);

/*
 * What would cairn_resume bring? Collective. CAIRN_OK: a mark, whose version is in *version (NULL
 * is allowed); CAIRN_NOTHING: none; CAIRN_ENOTFOUND: none that can be produced.
 */
CAIRN_API int cairn_probe(cairn *c, uint64_t *version);

/*
 * How many elements of a variable has this rank in the mark that cairn_probe tells of? For
 * variables whose size changes: probe, ask, allocate, protect, cairn_resume_at; when that says
 * CAIRN_ENOTFOUND, the mark's files are there but damaged, and the next probe tells of an older
 * one. Collective; a rank that does not have the variable gets 0. On another number of ranks it is
 * the equal share of a list, and of others what the first rank had. As cairn_probe.
 */
CAIRN_API int cairn_probe_count(cairn *c, const char *name, size_t *count);

/*
 * The same for items in cells: how many are in each of ncells cells, whose numbers grow?
 * Collective; each rank asks for its own. As cairn_probe; CAIRN_ENOTFOUND also when the mark has no
 * such variable, CAIRN_EMISMATCH when it has no such cell.
 */
CAIRN_API int cairn_probe_cells(cairn *c, const char *name, size_t ncells, const uint64_t *cell,
                                uint64_t *nitems);

/*
 * Read this rank's share of one variable of the mark that cairn_probe tells of, which need not be
 * protected, into memory for count elements. Collective. As cairn_probe; CAIRN_EMISMATCH when the
 * mark does not have that many elements of the type, or not for these ranks.
 */
CAIRN_API int cairn_probe_read(cairn *c, const char *name, void *data, cairn_type type,
                               size_t count);

/*
 * Is a mark worth its cost now? Decided on rank 0 by the planner (docs/guide/plan.md), from the
 * time since the last mark, what marks cost and how often failures come; true as well when the run
 * is to stop and has not been marked since. Collective. False also when the session is in no state
 * to mark.
 */
CAIRN_API bool cairn_due(cairn *c);

/*
 * Take a mark of all protected variables. Collective. Versions must grow from mark to mark, and are
 * less than 2^63.
 * Returns when the protected memory may be changed again; what is left of the work happens in the
 * background unless the configuration says otherwise. CAIRN_OK: taken, so far. CAIRN_NOTHING:
 * skipped, because it is the mark just resumed (if the program is to stop, it is in the trail then,
 * and when there are later marks, it is taken again in their place), or because the mark before it
 * is not finished, the configuration says so, and the program is not to stop. Negative: what went
 * wrong with this mark, or, found only now, with the one before it. That a node has no room for a
 * mark which is to be in the trail is no failure: it goes there directly, and the log says so.
 */
CAIRN_API int cairn_mark(cairn *c, uint64_t version, cairn_level level);

/*
 * The same in steps, for programs that produce their variables one after the other: begin, capture
 * each variable when it is ready (it may change afterwards), commit. Variables that were not
 * captured are captured by commit. Until it returns the previous mark stands. begin and commit are
 * collective; capture is not. What is declared meanwhile is part of the mark unless it was captured
 * before; pieces that do not tile are refused by commit, which gives the mark up. cairn_cancel
 * gives up an open mark; collective.
 */
CAIRN_API int cairn_begin(cairn *c, uint64_t version, cairn_level level);
CAIRN_API int cairn_capture(cairn *c, const char *name);
CAIRN_API int cairn_commit(cairn *c);
CAIRN_API int cairn_cancel(cairn *c);

/* A box of a variable, which is an array of so many elements in each dimension, last index fastest.
 * For a piece of a global array they are the piece's, and so are the indices. */
typedef struct cairn_box {
    size_t struct_bytes; /* <cairn/version.h> */
    int ndims;           /* 1 to 8 */
    uint64_t extent[8];
    uint64_t lo[8], hi[8]; /* from lo up to, not including, hi */
} cairn_box;

/*
 * Leave out of the open mark what the program does not need to go on: a mark then has less of a
 * variable, or nothing. Not collective; ranks may differ.
 *
 * cairn_capture_box captures a box now, and further ones later; boxes do not overlap, and all have
 * the same extents. What no box has when the mark is committed is left out. cairn_omit leaves out a
 * variable of which no box was captured. What was left out is stored as zeros or not at all;
 * cairn_resume does not touch it, and comparisons do not look at it.
 *
 * CAIRN_EINVAL (no mark is open, the variable is in it already, a box that is not one),
 * CAIRN_ENOTFOUND, CAIRN_EUNSUPPORTED (items in cells, lists), CAIRN_ENOMEM.
 */
CAIRN_API int cairn_capture_box(cairn *c, const char *name, const cairn_box *box);
CAIRN_API int cairn_omit(cairn *c, const char *name);

/* Wait until all marks are as safe as asked for, and say whether they are. Collective. */
CAIRN_API int cairn_settle(cairn *c);

/*
 * Is it time to leave: a signal came, or the job's time limit is so near that only a last mark
 * fits? Collective: the same answer everywhere, and one small reduction, or none directly after
 * cairn_due. A mark taken while it is true goes to the trail. Where nobody asks, a signal that
 * would have ended the program does so after the next mark, or, when the program calls nothing any
 * more, after stop.patience; the second one always does.
 */
CAIRN_API bool cairn_should_stop(cairn *c);

/*
 * Settle and close. Collective. NULL is allowed. The run is then finished and will not be resumed,
 * unless the program was told to stop, or there are marks that it neither resumed nor replaced.
 * Returns what cairn_settle would; the session is gone in any case.
 *
 * A program that calls MPI_Finalize with a session open loses no mark: it is settled there, and the
 * run can be resumed, since nobody has said that it came to its end. A program without MPI that
 * exits so leaves the marks that were safe by then, as if it had been killed.
 */
CAIRN_API int cairn_close(cairn *c);

/*
 * Go on with other ranks in the same job, when some are gone or have joined. Collective over comm,
 * which is duplicated; nothing is asked of ranks that are not in it. What was protected stays so,
 * marks are as after cairn_open, and a mark that was under way counts only if it was finished: say
 * what the pieces are now (cairn_protect_part, ...), then cairn_resume. The number of ranks and
 * their order may differ; all of them must have called cairn_open together. The process of rank 0
 * holds the run's lock: left out, it must have ended (CAIRN_EBUSY otherwise). CAIRN_OK; as
 * cairn_open, and the session can only be closed then.
 */
CAIRN_API CAIRN_CHECK int cairn_reopen(cairn *c, MPI_Comm comm);

/* The sentence about the last failure of a call on c; with NULL, on the calling thread. */
CAIRN_API const char *cairn_last_error(const cairn *c);

#ifdef __cplusplus
}
#endif
#endif
