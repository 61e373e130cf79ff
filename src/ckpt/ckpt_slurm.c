/* SPDX-License-Identifier: BSD-3-Clause
 *
 * When the job of Slurm that this program runs in ends. Newer versions put it into the environment;
 * others tell by 'scontrol show job', which is asked once, by one rank, and given a few seconds:
 * the controller may be down, and a program must not wait for it.
 */
#include "ckpt/ckpt_session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_S = 5, ANSWER_BYTES = 16384 };

/* --- asking ------------------------------------------------------------------------------- */

/* The environment for a command of Slurm: dates in the usual form, and no library of ours in it.
 * To be freed, not its strings. */
static char **environment(void)
{
    static char form[] = "SLURM_TIME_FORMAT=standard";
    size_t n = 0, to = 0;
    char **env;
    while (environ[n])
        n++;
    if (crn_alloc(&env, n + 2) < 0)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0 &&
            strncmp(environ[i], "SLURM_TIME_FORMAT=", 18) != 0)
            env[to++] = environ[i];
    env[to] = form;
    return env;
}

/* Start it with its output going to a pipe; no fork, which libraries of MPI do not like. */
static bool start(char **words, int out, pid_t *ret)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, all;
    char **env = environment();
    if (!env)
        return false;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out, 1);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&how);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &all);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    const bool ok = posix_spawnp(ret, words[0], &files, &how, words, env) == 0;
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    free(env);
    return ok;
}

/* What comes out of the pipe until it is closed, or the time is over. Was it closed? */
static bool read_answer(int fd, char *buf, size_t cap)
{
    const uint64_t until = crn_now_ns() + (uint64_t)ANSWER_S * 1000000000u;
    size_t n = 0;
    buf[0] = 0;
    while (n + 1 < cap) {
        const uint64_t now = crn_now_ns();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        const int ready = now < until ? poll(&p, 1, (int)((until - now) / 1000000) + 1) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        const ssize_t got = ready > 0 ? read(fd, buf + n, cap - 1 - n) : -1;
        if (got <= 0)
            return got == 0;
        n += (size_t)got;
        buf[n] = 0;
    }
    return true;
}

/* Run a command and keep what it prints. Did it come to its end in time? */
static bool ask(char **words, char *buf, size_t cap)
{
    int pipes[2];
    pid_t pid;
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return false;
    const bool started = start(words, pipes[1], &pid);
    close(pipes[1]);
    const bool ended = started && read_answer(pipes[0], buf, cap);
    close(pipes[0]);
    if (started && !ended)
        kill(pid, SIGKILL);
    while (started && waitpid(pid, NULL, 0) < 0 && errno == EINTR) /* a program's own handler may */
        ;                                                          /* have been faster */
    return ended;
}

/* --- understanding ------------------------------------------------------------------------ */

/* "EndTime=2026-11-18T12:30:00", by the clock on the wall here; 0: there is none. */
static time_t parse_end(const char *text)
{
    struct tm tm = {.tm_isdst = -1};
    const char *at = strstr(text, " EndTime=");
    if (!at || sscanf(at, " EndTime=%d-%d-%dT%d:%d:%d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
                      &tm.tm_hour, &tm.tm_min, &tm.tm_sec) != 6)
        return 0;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    const time_t t = mktime(&tm);
    return t > 0 ? t : 0;
}

static uint64_t end_by_scontrol(const char *job)
{
    char scontrol[] = "scontrol", show[] = "show", what[] = "job", id[32];
    char *words[] = {scontrol, show, what, id, NULL};
    char *answer;
    time_t end = 0;
    const size_t n = strspn(job, "0123456789");
    if (n == 0 || job[n] || n >= sizeof id || crn_alloc(&answer, ANSWER_BYTES) < 0)
        return 0;
    snprintf(id, sizeof id, "%s", job);
    if (ask(words, answer, ANSWER_BYTES))
        end = parse_end(answer);
    free(answer);
    return (uint64_t)end;
}

uint64_t crn_slurm_end_s(bool may_ask)
{
    const char *text = getenv("SLURM_JOB_END_TIME"), *job = getenv("SLURM_JOB_ID");
    char *end = NULL;
    const unsigned long long seconds = text ? strtoull(text, &end, 10) : 0;
    if (seconds > 0 && *end == 0 && seconds <= INT64_MAX / 1000000000)
        return seconds;
    return may_ask && job ? end_by_scontrol(job) : 0;
}
