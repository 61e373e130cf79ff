/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Jobs of a study under Slurm. The name of a job, which follows from the study and the job's name
 * in it, is written down before it is submitted; squeue then says what became of it, whoever asks.
 * No command of Slurm is waited for: a controller that hangs must not stop the launcher.
 */
#ifndef CAIRN_ENSEMBLE_SLURM_H
#define CAIRN_ENSEMBLE_SLURM_H

#include "ensemble/ensemble_jobs.h"

/* What squeue says, asked again and again. */
typedef struct crn_slurm {
    bool used;        /* the study has jobs of Slurm */
    pid_t asking;     /* squeue; 0: none runs */
    uint64_t next_ns; /* when to ask again */
} crn_slurm;

cairn_status crn_slurm_start(const crn_study *s, crn_job *job, const char *command);
bool crn_slurm_ended(const crn_study *s, crn_job *job, char *how, size_t cap);
void crn_slurm_kill(const crn_study *s, crn_job *job);

/* Ask squeue, or take its answer: what it says goes to the jobs, and jobs of this study that are
 * missing there are added, as those of an earlier launcher. wait: until there is an answer. */
cairn_status crn_slurm_look(const crn_study *s, crn_slurm *q, bool wait, crn_jobs *jobs);

/* The answer: lines "ID|NAME|STATE". For tests. */
cairn_status crn_slurm_take(const crn_study *s, char *text, crn_jobs *jobs);

#endif
