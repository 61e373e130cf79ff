/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Job arrays, by the variables that schedulers set.
 */
#include "base/base.h"

/* The digits at the start of an environment variable; an empty text where there are none, as with
 * Grid Engine's "undefined". */
static void get_number(const char *name, char buf[24])
{
    const char *text = getenv(name);
    const size_t n = text ? strspn(text, "0123456789") : 0;
    snprintf(buf, 24, "%.*s", (int)CRN_MIN(n, 23), n > 0 ? text : "");
}

bool crn_job_task_find(crn_job_task *ret)
{
    static const char *const row[][2] = {{"SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID"},
                                         {"PBS_JOBID", "PBS_ARRAY_INDEX"},
                                         {"LSB_JOBID", "LSB_JOBINDEX"},
                                         {"JOB_ID", "SGE_TASK_ID"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        get_number(row[i][0], ret->job);
        get_number(row[i][1], ret->task);
        /* LSF numbers tasks from 1, and a job that is no array 0 */
        const bool none = strcmp(row[i][1], "LSB_JOBINDEX") == 0 && strcmp(ret->task, "0") == 0;
        if (*ret->job && *ret->task && !none)
            return true;
    }
    *ret = (crn_job_task){0};
    return false;
}

char *crn_job_task_name(const crn_job_task *t, unsigned n, char buf[CRN_JOB_NAME])
{
    char again[16] = "";
    if (n > 1)
        snprintf(again, sizeof again, ".%u", n);
    snprintf(buf, CRN_JOB_NAME, "job-%s%s-%s", t->job, again, t->task);
    return buf;
}

bool crn_job_task_fits(const crn_job_task *t, const char *run)
{
    const char *end = strrchr(run, '-');
    return strncmp(run, "job-", 4) == 0 && end > run + 3 && strcmp(end + 1, t->task) == 0;
}
