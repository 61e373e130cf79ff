/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ensemble: studies of many members. Row 5. A library of its own, libcairn-ensemble; states pass
 * through the public <cairn/state.h>.
 *
 *     ensemble_member.c     the model's side: what <cairn/ensemble.h> declares
 *     ensemble_field.c      which fields a model may declare
 *     ensemble_runner.c     the model's side in a study: orders from launcher and server
 *     ensemble_server.c     the server's loop: runners, messages, the order of a study
 *     ensemble_serve.c      the server as a process
 *     ensemble_kalman.c     the method of studies whose server has all states
 *     ensemble_ranks.c      ranks of a server: orders, reports, states between them
 *     ensemble_follower.c   what ranks of a server do that are not rank 0
 *     ensemble_gather.c     states between the server and all ranks of a runner
 *     ensemble_particle*.c  the method of particle filters: server, journal, update, runner
 *     ensemble_helper.c     a thread beside the model: sockets, the cache, pushes and loads
 *     ensemble_cache.c      where a node's caches are
 *     ensemble_journal.c    lines that outlive the server
 *     ensemble_weigh.c      the weight of a particle
 *     ensemble_rows.c       elements of the pieces that a rank has
 *     ensemble_schedule.c   which member goes to which runner, due dates, failures
 *     ensemble_check.c      what 'cairn ensemble check' tries on runners, and what it finds
 *     ensemble_failed.c     states that failed: recorded, and tried again by hand
 *     ensemble_revival.c    what the death of the server costs, by the model and as it was
 *     ensemble_range.c      what results may have
 *     ensemble_needs.c      memory, files and jobs that a study needs
 *     ensemble_analysis.c   the first members, the update, observations made by a twin
 *     ensemble_command.c    a runner around a model that is run by command
 *     ensemble_hdf5.c       states in HDF5 files
 *     ensemble_export.c     states of a study as HDF5 files, for other programs
 *     ensemble_states.c     states on the shelf: putting them behind the loop, taking up a study
 *     ensemble_observing.c  fields, places and types of observations, as study.ini has them
 *     ensemble_update.c     members observed, observations sorted out, fields updated
 *     ensemble_async.c      members observed at the times of observations
 *     ensemble_perturb.c    perturbations of states
 *     ensemble_twin.c       observations made of a truth
 *     ensemble_report.c, ensemble_chart.c  a page about a study's filter
 *     ensemble_adapt.c      adaptive inflation
 *     ensemble_diagnose.c   statistics of innovations, tables, divergence
 *     ensemble_table.c      tables of diagnostics, read and as HDF5
 *     ensemble_kernel.c     for which kind of processor the bits are promised
 *     ensemble_products.c   mean, spread and truth for others to look at
 *     ensemble_launcher.c   the launcher: jobs that are started, watched and replaced
 *     ensemble_jobs.c       jobs of this machine
 *     ensemble_slurm.c      jobs of Slurm
 *     ensemble_side.c       the server of ensembles side by side, which learns what loss does
 *     ensemble_coding.c     settings of codecs, and states coded by them
 *     ensemble_listing.c    settings from a JSON file
 *     ensemble_validator.c  jobs that compute statistics of ensembles side by side
 *     ensemble_bound.c      a twin study in one process: the error with and without loss
 *     ensemble_results.c    what they found: tables and verdicts
 *     ensemble_study.c      a study's configuration and directory
 *     ensemble_layout.c     states in memory, rows for the filter
 *     ensemble_slice.c      slices of them, and what of a runner's pieces is in a slice
 *     ensemble_wire.c       headers of messages
 *     ensemble_zmq.c        sockets
 */
#ifndef CAIRN_ENSEMBLE_ENSEMBLE_H
#define CAIRN_ENSEMBLE_ENSEMBLE_H

#include "base/base.h"
#include "ensemble/ensemble_side.h"
#include "ensemble/ensemble_study.h"

/* What a launcher and its server are to do with a study. */
typedef enum crn_study_mode {
    CRN_MODE_RUN,
    CRN_MODE_TWIN,  /* make a truth and its observations */
    CRN_MODE_CHECK, /* look for what would spoil it: ensemble_check.c */
    CRN_MODE_TRY,   /* propagate a state that failed once more: ensemble_failed.c */
    CRN_MODE_PLAIN, /* ensembles side by side: ensemble_side.h */
    CRN_MODE_NOISE  /* the same, for the noise test */
} crn_study_mode;

/* Why a task has ended without a result, or a runner: numbers on the wire. What the model or its
 * state is to blame for burns an attempt, a lost or hung runner from the second on, limits never.
 */
typedef enum crn_cause {
    CRN_CAUSE_LOST,
    CRN_CAUSE_REFUSED, /* by the model */
    CRN_CAUSE_LIMIT,   /* of the job's time */
    CRN_CAUSE_HANG,
    CRN_CAUSE_STATE /* not finite, or out of range */
} crn_cause;

const char *crn_cause_word(crn_cause cause);

/* A page of HTML about a study's filter, which needs nothing else to be looked at. */
cairn_status crn_study_report(const crn_study *s, FILE *to);

/* The word for a mode on the server's command line, and back; NULL is RUN. */
const char *crn_mode_word(crn_study_mode mode);
crn_study_mode crn_mode_of(const char *word);

/* --- the server ----------------------------------------------------------------------------- */

/*
 * Be the server of a study whose launcher has started this process (by its environment). Returns
 * when the study is over: CAIRN_OK, or a failure whose sentence the launcher has got, too.
 */
cairn_status crn_serve(crn_study *study, crn_study_mode mode);

/* Are there several ranks of it, of MPI? */
bool crn_server_has_ranks(const crn_study *study, crn_study_mode mode);

/*
 * Be a runner around a model that is run by command (ensemble_command.c). Returns when the study is
 * over. other: with another number of ranks.
 */
cairn_status crn_command_run(crn_study *study, bool other);

/* --- a twin study in this process ------------------------------------------------------------ */

/* Its mean error of the analysis over so many cycles, with states coded within a bound in each
 * cycle (0: without loss), and the rate of coding. */
cairn_status crn_twin_run(uint32_t ncycles, uint64_t seed, double bound, double *ret_rmse,
                          double *ret_rate);

/* --- the launcher --------------------------------------------------------------------------- */

/* Takes a line about what goes on; progress is shown in place of the last such one. */
typedef void crn_study_say_fn(const char *sentence, bool progress);

/*
 * Run a study until it is over: CAIRN_OK; CAIRN_NOTHING: it was asked to stop, and goes on when it
 * is run again; or a failure.
 */
cairn_status crn_launcher_run(crn_study *study, crn_study_mode mode, const char *program,
                              crn_study_say_fn *say);

/* Does a launcher of this machine run the study now? */
bool crn_study_is_running(const crn_study *study);

/* Give the launcher of a study an order ("stop", "scale 4", "kill r3"); its answer into text.
 * CAIRN_NOTHING: nobody runs the study now. */
cairn_status crn_launcher_order(crn_study *study, const char *order, char *text, size_t cap);

#endif
