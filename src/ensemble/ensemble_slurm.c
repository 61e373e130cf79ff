/* SPDX-License-Identifier: BSD-3-Clause */
#include "ensemble/ensemble_slurm.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ASK_NS = 1000000000, /* between two questions */
    MISSED_MAX = 5,      /* answers without a job that was submitted: then it is gone */
    WORDS_MAX = 64       /* of runner.submit */
};

/* --- commands ------------------------------------------------------------------------------- */

/* Run a command of Slurm, without waiting; its input and output are files of the log. */
static pid_t spawn(const crn_study *s, char *const *words, const char *in, const char *out)
{
    char *path;
    if (asprintf(&path, "%s/log", s->dir) >= 0) {
        (void)mkdir(path, 0700);
        free(path);
    }
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    if (asprintf(&path, "%s/log/%s", s->dir, in ? in : "") < 0)
        _exit(127);
    int from = open(in ? path : "/dev/null", O_RDONLY);
    if (asprintf(&path, "%s/log/%s", s->dir, out) < 0)
        _exit(127);
    int to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(from, STDIN_FILENO);
    dup2(to, STDOUT_FILENO);
    dup2(to, STDERR_FILENO);
    execvp(words[0], words);
    dprintf(STDOUT_FILENO, "cannot run %s: %s\n", words[0], strerror(errno));
    _exit(127);
}

static void name_job(const crn_study *s, const char *job, char *text, size_t cap)
{
    snprintf(text, cap, "cairn-%016" PRIx64 "-%s", s->id, job);
}

/* --- submission ----------------------------------------------------------------------------- */

/* What the job does; it finds out by itself when its time is over. */
static cairn_status write_script(const crn_study *s, const crn_job *job, const char *command)
{
    char name[64], *text;
    int n =
        asprintf(&text,
                 "#!/bin/sh\n"
                 "export CAIRN_ENSEMBLE_DIR='%s' CAIRN_ENSEMBLE_JOB=%s%s\n"
                 "end=$(squeue -h -j \"$SLURM_JOB_ID\" -o %%e 2>/dev/null) &&\n"
                 "    end=$(date -d \"$end\" +%%s 2>/dev/null) && export "
                 "CAIRN_ENSEMBLE_UNTIL=\"$end\"\n"
                 "%s\n",
                 s->dir, job->name, job->name[0] == 's' ? " OPENBLAS_NUM_THREADS=1" : "", command);
    CRN_FAIL_IF(n < 0, CAIRN_ENOMEM, "no memory for a job's script");
    snprintf(name, sizeof name, "log/%s.sh", job->name);
    cairn_status rc = crn_study_write(s, name, text);
    free(text);
    return rc;
}

cairn_status crn_slurm_start(const crn_study *s, crn_job *job, const char *command)
{
    char name[80], title[100], out[64], script[64], *log, *options, *rest = NULL;
    /* after the failure of a node Slurm would start it again, held back for minutes: we do */
    char *words[WORDS_MAX + 8] = {"sbatch", "--parsable", "--no-requeue"};
    size_t n = 3;
    CRN_TRY(write_script(s, job, command));
    name_job(s, job->name, name, sizeof name);
    snprintf(title, sizeof title, "--job-name=%s", name);
    snprintf(script, sizeof script, "%s.sh", job->name);
    snprintf(out, sizeof out, "%s.submit", job->name);
    words[n++] = title;
    CRN_TRY(crn_strdup(job->name[0] == 's' ? s->server_submit : s->runner_submit, &options));
    for (char *w = strtok_r(options, " \t", &rest); w && n < WORDS_MAX;
         w = strtok_r(NULL, " \t", &rest))
        words[n++] = w;
    if (asprintf(&log, "--output=%s/log/%s", s->dir, job->name) < 0) {
        free(options);
        return crn_fail(CAIRN_ENOMEM, "no memory for a command");
    }
    words[n++] = log;
    job->pid = spawn(s, words, script, out);
    job->submitting = true;
    const int sys = errno;
    free(log);
    free(options);
    return job->pid < 0 ? crn_fail_sys(sys, "cannot submit job '%s'", job->name) : CAIRN_OK;
}

/* What sbatch has printed: the job's number, or why there is none. */
static void read_answer(const crn_study *s, const crn_job *job, char *text, size_t cap)
{
    char name[64], *all;
    snprintf(name, sizeof name, "log/%s.submit", job->name);
    text[0] = 0;
    if (crn_study_read(s->dir, name, &all) < 0) {
        crn_err_take(&(crn_err){0});
        return;
    }
    snprintf(text, cap, "%.*s", (int)strcspn(all, "\n;"), all);
    crn_text_clean(text);
    free(all);
}

/* --- squeue --------------------------------------------------------------------------------- */

static bool is_alive(const char *state)
{
    static const char *const over[] = {"BOOT_FAIL", "CANCELLED",     "COMPLETED",   "DEADLINE",
                                       "FAILED",    "NODE_FAIL",     "PREEMPTED",   "REVOKED",
                                       "TIMEOUT",   "OUT_OF_MEMORY", "SPECIAL_EXIT"};
    for (size_t i = 0; i < sizeof over / sizeof *over; i++)
        if (strcmp(state, over[i]) == 0)
            return false;
    return true;
}

static crn_job *find(const crn_jobs *jobs, const char *name)
{
    for (size_t i = 0; i < jobs->n; i++)
        if (strcmp(jobs->at[i]->name, name) == 0)
            return jobs->at[i];
    return NULL;
}

/* A job of this study that we do not know: submitted by a launcher that died before it knew. */
static cairn_status adopt(const char *name, crn_jobs *jobs, crn_job **ret)
{
    crn_job *job;
    CRN_TRY(crn_alloc(&job, 1));
    snprintf(job->name, sizeof job->name, "%s", name);
    job->place = CRN_JOB_SLURM;
    job->adopted = true;
    job->started_ns = crn_now_ns();
    cairn_status rc = crn_vec_push(jobs, job);
    if (rc < 0)
        free(job);
    else
        *ret = job;
    return rc;
}

static cairn_status take_line(const crn_study *s, char *line, crn_jobs *jobs)
{
    char prefix[80], *rest = NULL;
    const char *id = strtok_r(line, "|", &rest), *name = strtok_r(NULL, "|", &rest);
    const char *state = strtok_r(NULL, "|", &rest);
    name_job(s, "", prefix, sizeof prefix);
    if (!state || strncmp(name, prefix, strlen(prefix)) != 0)
        return CAIRN_OK;
    name += strlen(prefix);
    crn_job *job = find(jobs, name);
    if ((name[0] != 'r' && name[0] != 's') || strlen(name) >= sizeof job->name || strlen(id) > 20)
        return CAIRN_OK;
    if (!job && is_alive(state))
        CRN_TRY(adopt(name, jobs, &job));
    if (!job || job->place != CRN_JOB_SLURM)
        return CAIRN_OK;
    snprintf(job->id, sizeof job->id, "%s", id);
    snprintf(job->state, sizeof job->state, "%s", state);
    job->listed = true;
    if (strcmp(state, "RUNNING") == 0 && !job->running) {
        job->running = true;
        job->started_ns = crn_now_ns();
    }
    return CAIRN_OK;
}

cairn_status crn_slurm_take(const crn_study *s, char *text, crn_jobs *jobs)
{
    char *rest = NULL;
    for (size_t i = 0; i < jobs->n; i++)
        jobs->at[i]->listed = false;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        CRN_TRY(take_line(s, line, jobs));
    for (size_t i = 0; i < jobs->n; i++) {
        crn_job *job = jobs->at[i];
        if (job->place == CRN_JOB_SLURM && !job->submitting)
            job->missed = job->listed ? 0 : job->missed + 1;
    }
    return CAIRN_OK;
}

static cairn_status take_answer(const crn_study *s, int status, crn_jobs *jobs)
{
    char *text;
    if (status != 0) /* the controller does not answer: what was known holds */
        return CAIRN_OK;
    CRN_TRY(crn_study_read(s->dir, "log/squeue", &text));
    cairn_status rc = crn_slurm_take(s, text, jobs);
    free(text);
    return rc;
}

cairn_status crn_slurm_look(const crn_study *s, crn_slurm *q, bool wait, crn_jobs *jobs)
{
    int status;
    if (!q->used)
        return CAIRN_OK;
    if (q->asking == 0 && (wait || crn_now_ns() >= q->next_ns)) {
        char *words[] = {"squeue", "-h", "-t", "all", "--me", "-o", "%i|%j|%T", NULL};
        q->asking = spawn(s, words, NULL, "squeue");
        if (q->asking < 0) {
            q->asking = 0;
            return crn_fail_sys(errno, "cannot run squeue");
        }
    }
    if (q->asking == 0 || waitpid(q->asking, &status, wait ? 0 : WNOHANG) != q->asking)
        return CAIRN_OK;
    q->asking = 0;
    q->next_ns = crn_now_ns() + ASK_NS;
    return take_answer(s, status, jobs);
}

/* --- watching ------------------------------------------------------------------------------- */

static bool submission_failed(const crn_study *s, crn_job *job, char *how, size_t cap)
{
    int status;
    char text[100];
    if (waitpid(job->pid, &status, WNOHANG) != job->pid)
        return false;
    job->pid = 0;
    job->submitting = false;
    read_answer(s, job, text, sizeof text);
    if (status != 0) {
        snprintf(how, cap, "sbatch: %.80s", text);
        return true;
    }
    snprintf(job->id, sizeof job->id, "%.20s", text);
    return false;
}

bool crn_slurm_ended(const crn_study *s, crn_job *job, char *how, size_t cap)
{
    if (job->killer > 0 && waitpid(job->killer, NULL, WNOHANG) == job->killer)
        job->killer = 0;
    if (job->submitting)
        return submission_failed(s, job, how, cap);
    if (job->state[0] && !is_alive(job->state)) {
        snprintf(how, cap, "Slurm: %s", job->state);
        job->cause = strcmp(job->state, "TIMEOUT") == 0 ? CRN_CAUSE_LIMIT : CRN_CAUSE_LOST;
        return true;
    }
    snprintf(how, cap, "Slurm has no job %s any more", job->id);
    return job->missed >= MISSED_MAX;
}

/* By name as long as it has no number: scancel then finds it when it is there. */
void crn_slurm_kill(const crn_study *s, crn_job *job)
{
    char name[80], title[100];
    char *by_id[] = {"scancel", job->id, NULL}, *by_name[] = {"scancel", title, NULL};
    name_job(s, job->name, name, sizeof name);
    snprintf(title, sizeof title, "--name=%s", name);
    pid_t pid = spawn(s, job->id[0] ? by_id : by_name, NULL, "scancel");
    job->killer = pid > 0 ? pid : 0;
}
