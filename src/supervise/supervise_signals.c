/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Signals to this process. They are blocked and read from a descriptor, so that nothing happens
 * between the lines of other files.
 */
#include "supervise/supervise.h"

#include <errno.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Which ones mean that the program shall leave with a mark; the others are only passed on. */
static const struct {
    int number;
    bool leave;
} taken[] = {{SIGTERM, true},  {SIGINT, true},   {SIGUSR1, true},  {SIGHUP, true},
             {SIGUSR2, false}, {SIGQUIT, false}, {SIGTSTP, false}, {SIGCONT, false}};

cairn_status crn_signals_start(crn_signals *s)
{
    sigset_t set;
    struct sigaction was;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) /* as nohup(1) has it */
        if (sigaction(taken[i].number, NULL, &was) == 0 && was.sa_handler != SIG_IGN)
            sigaddset(&set, taken[i].number);
    sigaddset(&set, SIGCHLD);
    signal(SIGCHLD, SIG_DFL); /* where it is ignored, nobody learns how a child has ended */
    *s = (crn_signals){.fd = -1};
    if (sigprocmask(SIG_BLOCK, &set, &s->was) < 0 ||
        (s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
        return crn_fail_sys(errno, "cannot wait for signals");
    signal(SIGPIPE, SIG_IGN); /* whoever read our output may be gone; the program goes on */
    return CAIRN_OK;
}

void crn_signals_end(crn_signals *s)
{
    close(s->fd);
    sigprocmask(SIG_SETMASK, &s->was, NULL);
}

int crn_signals_next(crn_signals *s)
{
    struct signalfd_siginfo info;
    if (read(s->fd, &info, sizeof info) != (ssize_t)sizeof info)
        return 0;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (taken[i].number == (int)info.ssi_signo)
            s->nleave += taken[i].leave;
    return (int)info.ssi_signo;
}

bool crn_signals_pause(crn_signals *s, double seconds)
{
    const uint64_t end = crn_now_ns() + (uint64_t)(seconds * 1e9);
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    for (uint64_t now; s->nleave == 0 && (now = crn_now_ns()) < end;) {
        poll(&p, 1, (int)CRN_MIN((end - now) / 1000000 + 1, 60000));
        while (crn_signals_next(s) != 0)
            ;
    }
    return s->nleave == 0;
}
