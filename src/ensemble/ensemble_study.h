/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A study: its configuration (a file of its own, study.ini) and its directory, which holds its
 * keys, where its launcher listens, its states, its observations' copy, its log and its events.
 *
 *     study.ini, jobs          what was asked for; the jobs that were ever started
 *     keys, launcher           for those who may talk to it
 *     shelf/                   states: a<member> of the analysis, b<member> of the background,
 *                              p<member> of a particle filter
 *     ledger                   decisions about members, before they count
 *     journal                  of a particle filter: weights, assignments, resamplings
 *     kernel                   for which kind of processor its bits are promised
 *     events.jsonl, log/JOB    what happened; what jobs printed
 */
#ifndef CAIRN_ENSEMBLE_STUDY_H
#define CAIRN_ENSEMBLE_STUDY_H

#include "base/base.h"
#include "ensemble/ensemble_zmq.h"
#include "filter/filter.h"
#include "particle/particle.h"

#define CRN_STUDY_ROW(id, section, key, type, def, range, help) CRN_STUDY_##id,
typedef enum crn_study_opt {
#include "ensemble/ensemble_study_table.h"
    CRN_STUDY_COUNT_OF
} crn_study_opt;
#undef CRN_STUDY_ROW

extern const crn_opt crn_study_table[CRN_STUDY_COUNT_OF];

typedef enum crn_keep {
    CRN_KEEP_BOTH,
    CRN_KEEP_ANALYSIS,
    CRN_KEEP_BACKGROUND,
    CRN_KEEP_NONE
} crn_keep;
typedef enum crn_job_place { CRN_JOB_LOCAL, CRN_JOB_SLURM } crn_job_place;
typedef enum crn_hdf5_kept { CRN_HDF5_NONE, CRN_HDF5_ANALYSIS, CRN_HDF5_BOTH } crn_hdf5_kept;
typedef enum crn_failing { CRN_FAILING_STOP, CRN_FAILING_DROP, CRN_FAILING_DONOR } crn_failing;

typedef enum crn_products_as {
    CRN_PRODUCTS_HDF5,
    CRN_PRODUCTS_SHELF,
    CRN_PRODUCTS_BOTH
} crn_products_as;

/* Of studies with filter.name = particle. */
typedef struct crn_study_particle {
    bool on;
    crn_resampling resampling;
    double threshold, jitter, perturb;
    const char *cache; /* directory; "auto" */
    uint32_t capacity, node_size;
    uint64_t limit;
    bool early, strict, ahead, peers;
} crn_study_particle;

typedef struct crn_study {
    crn_config *config;
    char *file; /* as given, for sentences */
    char *path, *dir;
    uint64_t seed, steps, spin;
    uint64_t id; /* on the wire: of the directory's keys */
    uint32_t server_ranks;
    bool quiet; /* another rank of the server writes down what happens */
    uint32_t members, cycles, runners, attempts, min_members;
    double spread, inflation, register_s, due_s, server_s, twin_variance;
    uint64_t twin_every;
    bool rotate, local, adaptive, stop_diverged, asynchronous;
    double rtpp, rtps, far, diverged;
    uint32_t diverged_cycles;
    uint64_t products_every, twin_places;
    crn_products_as products_as;
    crn_keep keep;
    crn_failing failing;
    crn_study_particle particle;
    bool plain; /* it is run to make observations, or to check the model: states go to the server */
    const crn_filter_ops *filter;
    const char *observations, *runner, *server, *address, *check_command; /* "": not given */
    const char *model_first, *model_assimilated, *model_carried, *model_parameter;
    crn_hdf5_kept hdf5;
    crn_job_place runner_place, server_place;
    const char *runner_submit, *server_submit, *ranges;
    double limit_s;
    crn_keys keys;
    struct crn_dynamic *dynamic; /* NULL: states are stored without loss */
    struct crn_side *side; /* ensembles side by side; NULL: an ordinary study */
} crn_study;

/* Read the file, and make the directory and its keys where there are none. CAIRN_EINVAL says what
 * is wrong with it. */
cairn_status crn_study_open(const char *file, crn_study **ret);
void crn_study_free(crn_study *s); /* NULL is allowed */

/* The address at which this process is to listen for other jobs of the study. */
void crn_study_address(const crn_study *s, char *text, size_t cap);
/* From now on the study's directory is dir/name, with keys of its own. */
cairn_status crn_study_enter(crn_study *s, const char *name);

/* dir/name as text: valid until the caller frees it. */
cairn_status crn_study_path(const crn_study *s, const char *name, char **ret);

/* A path as the study's file has it: from where that file is. */
cairn_status crn_study_beside(const crn_study *s, const char *name, char **ret);

/* A small file of the directory, whole; text is the caller's to free. CAIRN_ENOTFOUND. */
cairn_status crn_study_read(const char *dir, const char *name, char **ret);
cairn_status crn_study_write(const crn_study *s, const char *name, const char *text);
/* The same with what was put into b, which is done then. */
cairn_status crn_study_write_buf(const crn_study *s, const char *name, crn_buf *b);

/* The end of a file, some last lines; the first may be cut. */
cairn_status crn_study_read_tail(const crn_study *s, const char *name, char **ret);

/* Add a line to a file of the directory, durably; one write, so that lines of several processes
 * never mix. */
cairn_status crn_study_append(const crn_study *s, const char *name, const char *fmt, ...)
    CAIRN_PRINTF(3);

/* Add lines to a table that can be computed again: not durable. */
cairn_status crn_study_note(const crn_study *s, const char *name, const char *lines);

/* An event: {"at":..., "event":"kind", members}; members are an object as json_pack() makes it. */
void crn_study_event(const crn_study *s, const char *kind, const char *members, ...);

/* A number for an event; null where JSON has none. */
json_t *crn_study_real(double x);

/* The processor kernel for which the study's bits are promised; "" before its first analysis. */
enum { CRN_KERNEL_NAME = 64 };
void crn_kernel_of(const crn_study *s, char name[CRN_KERNEL_NAME]);

/* Keys as their file has them. */
cairn_status crn_keys_read(const char *dir, crn_keys *ret, uint64_t *ret_id);

#endif
