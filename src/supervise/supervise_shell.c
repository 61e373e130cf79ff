/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands whose result a supervisor needs: the user's, or our own. They may take long, or for
 * ever: a supervisor that is asked to stop does not wait for them.
 */
#include "supervise/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEAVE_S = 5 }; /* from SIGTERM until a command is killed */

typedef struct shell {
    pid_t pid;
    int from;   /* what it prints; -1: that is all */
    int status; /* -1: it has not ended */
    char *text;
    size_t n, cap;
    bool line_ended;
} shell;

static bool start(shell *sh, const char *command, const sigset_t *mask)
{
    int out[2];
    if (pipe2(out, O_CLOEXEC) < 0)
        return false;
    sh->pid = fork();
    if (sh->pid == 0) {
        setpgid(0, 0); /* as the program of a leg: the terminal's signals come to us */
        if (isatty(STDIN_FILENO))
            dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        signal(SIGPIPE, SIG_DFL);
        sigprocmask(SIG_SETMASK, mask, NULL);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    sh->from = out[0];
    if (sh->pid < 0)
        close(out[0]);
    else
        setpgid(sh->pid, sh->pid); /* whoever is first, it or we: it can be signalled */
    return sh->pid > 0;
}

static void add(shell *sh, char letter)
{
    if (sh->n + 1 < sh->cap)
        sh->text[sh->n++] = letter;
    sh->text[sh->n] = 0;
}

/* All of it is read, or it would die of a closed pipe; as much is kept as there is room for, its
 * lines as one. */
static void take(shell *sh)
{
    char data[512];
    const ssize_t n = read(sh->from, data, sizeof data);
    for (ssize_t i = 0; i < n; i++) {
        const bool ends = data[i] == '\n';
        if (sh->line_ended)
            add(sh, ';'), add(sh, ' ');
        if (!ends)
            add(sh, data[i]);
        sh->line_ended = ends;
    }
    if (n > 0 || (n < 0 && errno == EINTR))
        return;
    close(sh->from);
    sh->from = -1;
}

/* Wait for output, its end or a signal, no longer than until then (0: for ever); false: it is over.
 */
static bool step(shell *sh, crn_signals *s, uint64_t until)
{
    struct pollfd p[] = {{.fd = sh->from, .events = POLLIN}, {.fd = s->fd, .events = POLLIN}};
    const uint64_t now = crn_now_ns();
    if (sh->status < 0 && waitpid(sh->pid, &sh->status, WNOHANG) <= 0)
        sh->status = -1;
    if ((sh->status >= 0 && sh->from < 0) || (until > 0 && now >= until))
        return false;
    poll(p, 2, until > 0 ? (int)((until - now) / 1000000 + 1) : -1);
    while (crn_signals_next(s) != 0)
        ;
    if (p[0].revents)
        take(sh);
    return true;
}

int crn_shell_run(const char *command, const crn_offspring *o, crn_signals *s, bool patient,
                  char *text, size_t cap)
{
    shell sh = {.status = -1, .text = text, .cap = cap};
    const int before = s->nleave;
    text[0] = 0;
    if (!start(&sh, command, &s->was))
        return -1;
    while ((patient || s->nleave == before) && step(&sh, s, 0))
        ;
    if (sh.status < 0 || sh.from >= 0) {
        const uint64_t until = crn_now_ns() + (uint64_t)LEAVE_S * 1000000000;
        kill(-sh.pid, SIGTERM);
        while (step(&sh, s, until))
            ;
        crn_offspring_kill(o, sh.pid);
        if (sh.from >= 0)
            close(sh.from);
        sh.status = -1;
    }
    return sh.status;
}
