/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The task of a job array that this process belongs to, from the environment that its scheduler
 * sets: Slurm, PBS, LSF or Grid Engine. Tasks of one array are different experiments in one
 * directory.
 */
#ifndef CAIRN_BASE_JOB_H
#define CAIRN_BASE_JOB_H

#include <stdbool.h>
#include <stddef.h>

typedef struct crn_job_task {
    char job[24], task[24]; /* numbers; both empty where there is no array */
} crn_job_task;

/* False: this process is in no job array. */
bool crn_job_task_find(crn_job_task *ret);

/* A name for the n-th run, from 1 on, that the task begins in a trail: "job-JOB-TASK", then
 * "job-JOB.2-TASK". Returns buf. */
enum { CRN_JOB_NAME = 80 };
char *crn_job_task_name(const crn_job_task *t, unsigned n, char buf[CRN_JOB_NAME]);

/* Is it the name of a run of this task, in this array or another one? Jobs in a chain, each with a
 * number of its own, continue each other's runs. */
bool crn_job_task_fits(const crn_job_task *t, const char *run);

#endif
