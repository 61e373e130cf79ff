/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Jobs of a study: commands in sessions of their own on this machine, or jobs of Slurm
 * (ensemble_slurm.h). The name of a job is written down before it is started and stands in the
 * environment of all its processes; so a launcher that was killed leaves no job that the next one
 * does not find.
 */
#ifndef CAIRN_ENSEMBLE_JOBS_H
#define CAIRN_ENSEMBLE_JOBS_H

#include <sys/types.h>

#include "ensemble/ensemble.h"

typedef struct crn_job {
    char name[32];       /* r12: a runner; s3: the server's third incarnation; v1: a validator */
    pid_t pid;           /* 0: an earlier launcher's child, known by its environment */
    bool hello;          /* it has said that it is there */
    bool ending;         /* it was killed, or asked to leave */
    bool adopted;        /* an earlier launcher has started it */
    uint32_t nears;      /* nodes beside the first that listen, too */
    uint64_t started_ns; /* crn_now_ns */
    uint64_t heard_ns;   /* of a validator: its last sign of life */
    crn_job_place place;
    crn_cause cause; /* why it has ended; LOST unless more is known */
    double limit_s;  /* it is ended after so long; 0: never */
    /* of Slurm */
    bool submitting, listed; /* sbatch runs, its number is pid; the last answer had it */
    bool running;            /* it had its turn */
    unsigned missed;         /* answers of squeue that did not have it, in a row */
    char id[24], state[24];  /* "": not known */
    pid_t killer;            /* scancel, to be reaped; 0: none */
} crn_job;

typedef CRN_VEC(crn_job *) crn_jobs;

/* Names that were ever used: the highest number of each kind, and jobs of them that are alive on
 * this machine. */
cairn_status crn_jobs_find(const crn_study *s, uint32_t *ret_runner, uint32_t *ret_server,
                           uint32_t *ret_validator, crn_jobs *ret);

/* Start a command as a job; its output goes to log/NAME in the study's directory. */
cairn_status crn_job_start(const crn_study *s, const char *name, const char *command,
                           crn_job **ret);

/* Has it ended? Then how, in words. */
bool crn_job_ended(const crn_study *s, crn_job *job, char *how, size_t cap);

/* End all its processes at once. */
void crn_job_kill(const crn_study *s, crn_job *job);

/* The last line that it printed, or "". */
void crn_job_last_words(const crn_study *s, const crn_job *job, char *text, size_t cap);

#endif
