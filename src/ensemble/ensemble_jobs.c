/* SPDX-License-Identifier: BSD-3-Clause */
#include "ensemble/ensemble_slurm.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervise/supervise.h"

enum { LOG_END = 4096 };

static size_t signal_job(const crn_study *s, const char *name, int number)
{
    const crn_variable has[] = {{"CAIRN_ENSEMBLE_DIR", s->dir}, {"CAIRN_ENSEMBLE_JOB", name}};
    return crn_marked_signal(has, 2, number);
}

static cairn_status adopt(const char *name, crn_jobs *jobs)
{
    crn_job *job;
    CRN_TRY(crn_alloc(&job, 1));
    snprintf(job->name, sizeof job->name, "%s", name);
    job->started_ns = job->heard_ns = crn_now_ns();
    job->adopted = true;
    return crn_vec_push(jobs, job);
}

cairn_status crn_jobs_find(const crn_study *s, uint32_t *ret_runner, uint32_t *ret_server,
                           uint32_t *ret_validator, crn_jobs *ret)
{
    char *text, *rest = NULL;
    *ret_runner = *ret_server = *ret_validator = 0;
    cairn_status rc = crn_study_read(s->dir, "jobs", &text);
    if (rc == CAIRN_ENOTFOUND)
        return CAIRN_OK;
    CRN_TRY(rc);
    for (char *name = strtok_r(text, "\n", &rest); rc == CAIRN_OK && name;
         name = strtok_r(NULL, "\n", &rest)) {
        uint32_t number = (uint32_t)strtoul(name + 1, NULL, 10);
        uint32_t *highest = name[0] == 'r'   ? ret_runner
                            : name[0] == 'v' ? ret_validator
                                             : ret_server;
        *highest = CRN_MAX(*highest, number);
        if (strlen(name) < sizeof((crn_job *)0)->name && signal_job(s, name, 0) > 0)
            rc = adopt(name, ret);
    }
    free(text);
    return rc;
}

/* --- starting ------------------------------------------------------------------------------- */

static int open_log(const crn_study *s, const char *name)
{
    char *path;
    if (asprintf(&path, "%s/log", s->dir) < 0)
        return -1;
    (void)mkdir(path, 0700);
    free(path);
    if (asprintf(&path, "%s/log/%s", s->dir, name) < 0)
        return -1;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    free(path);
    return fd;
}

/* In the new process. */
static void become(const crn_study *s, const char *name, const char *command, uint64_t until,
                   int log)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setsid();
    int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    setenv("CAIRN_ENSEMBLE_DIR", s->dir, 1);
    setenv("CAIRN_ENSEMBLE_JOB", name, 1);
    if (until > 0) {
        char text[32];
        snprintf(text, sizeof text, "%llu", (unsigned long long)until);
        setenv("CAIRN_ENSEMBLE_UNTIL", text, 1);
    } else
        unsetenv("CAIRN_ENSEMBLE_UNTIL");
    setenv("CAIRN_ENSEMBLE_FILE", s->path, 1);
    setenv("CAIRN_ENSEMBLE_METHOD", s->particle.on && !s->plain ? "particle" : "kalman", 1);
    if (name[0] == 's') /* another number would sum in another order */
        setenv("OPENBLAS_NUM_THREADS", "1", 1);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

static cairn_status start_here(const crn_study *s, crn_job *job, const char *command)
{
    const uint64_t now = crn_wall_ns() / 1000000000;
    const uint64_t until = job->limit_s > 0 ? now + (uint64_t)job->limit_s : 0;
    int log = open_log(s, job->name);
    job->pid = log < 0 ? -1 : fork();
    if (job->pid == 0)
        become(s, job->name, command, until, log);
    const int sys = errno;
    if (log >= 0)
        close(log);
    return job->pid < 0 ? crn_fail_sys(sys, "cannot start job '%s'", job->name) : CAIRN_OK;
}

cairn_status crn_job_start(const crn_study *s, const char *name, const char *command, crn_job **ret)
{
    crn_job *job;
    CRN_TRY(crn_study_append(s, "jobs", "%s", name));
    CRN_TRY(crn_alloc(&job, 1));
    snprintf(job->name, sizeof job->name, "%s", name);
    job->started_ns = job->heard_ns = crn_now_ns();
    job->place = name[0] == 's'   ? s->server_place
                 : name[0] == 'r' ? s->runner_place
                                  : CRN_JOB_LOCAL;
    job->limit_s = name[0] == 'r' && job->place == CRN_JOB_LOCAL ? s->limit_s : 0;
    int log = open_log(s, name); /* also makes the folder that Slurm writes to */
    if (log >= 0)
        close(log);
    const bool slurm = job->place == CRN_JOB_SLURM;
    cairn_status rc = slurm ? crn_slurm_start(s, job, command) : start_here(s, job, command);
    if (rc < 0)
        free(job);
    else
        *ret = job;
    return rc;
}

/* --- watching ------------------------------------------------------------------------------- */

/* Is its time over? Then it is ended, as a batch system does. */
static void enforce_limit(const crn_study *s, crn_job *job)
{
    if (job->limit_s > 0 && (double)(crn_now_ns() - job->started_ns) / 1e9 > job->limit_s) {
        job->cause = CRN_CAUSE_LIMIT;
        job->limit_s = 0;
        crn_job_kill(s, job);
    }
}

bool crn_job_ended(const crn_study *s, crn_job *job, char *how, size_t cap)
{
    int status;
    if (job->place == CRN_JOB_SLURM)
        return crn_slurm_ended(s, job, how, cap);
    enforce_limit(s, job);
    snprintf(how, cap, "its processes are gone");
    if (job->pid == 0)
        return signal_job(s, job->name, 0) == 0;
    if (waitpid(job->pid, &status, WNOHANG) != job->pid)
        return false;
    if (job->cause == CRN_CAUSE_LIMIT)
        snprintf(how, cap, "time limit");
    else if (WIFSIGNALED(status))
        snprintf(how, cap, "killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(how, cap, "exit code %d", WEXITSTATUS(status));
    (void)signal_job(s, job->name, SIGKILL); /* what its launcher left behind */
    job->pid = 0;
    return true;
}

void crn_job_kill(const crn_study *s, crn_job *job)
{
    job->ending = true;
    if (job->place == CRN_JOB_SLURM)
        crn_slurm_kill(s, job);
    else
        (void)signal_job(s, job->name, SIGKILL);
}

void crn_job_last_words(const crn_study *s, const crn_job *job, char *text, size_t cap)
{
    char *path, data[LOG_END + 1];
    text[0] = 0;
    if (asprintf(&path, "%s/log/%s", s->dir, job->name) < 0)
        return;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    free(path);
    if (fd < 0)
        return;
    off_t end = lseek(fd, 0, SEEK_END);
    ssize_t n = pread(fd, data, LOG_END, end > LOG_END ? end - LOG_END : 0);
    close(fd);
    while (n > 0 && data[n - 1] == '\n')
        n--;
    data[n > 0 ? n : 0] = 0;
    const char *line = strrchr(data, '\n');
    snprintf(text, cap, "%s", line ? line + 1 : data);
    crn_text_clean(text);
}
