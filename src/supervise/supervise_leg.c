/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One leg of a run: a launcher is started, its output passed on, its signs of life watched, and at
 * the end everything that it started is gone.
 */
#include "supervise/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KILL_AFTER_S = 10, STUCK_AFTER_S = 10, LOOK_EVERY_S = 2 };

typedef struct stream {
    int from, to;    /* from -1: at its end */
    char data[4096]; /* what a pipe that can be written to surely takes */
    size_t at, n;    /* of these, what is to be passed on */
} stream;

typedef struct watch {
    crn_leg *leg;
    crn_signals *signals;
    pid_t pid; /* and process group */
    crn_rank_watch ranks;
    stream out, err;
    int status;         /* of the launcher; -1: it runs */
    uint64_t pulse;     /* as seen last */
    uint64_t pulse_ns;  /* when it changed; here and below: crn_now_ns */
    uint64_t look_ns;   /* when its children were looked at */
    uint64_t stuck_ns;  /* since when they have all ended; 0: they have not */
    uint64_t asked_ns;  /* 0: not asked to leave */
    uint64_t ending_ns; /* 0: not being ended */
} watch;

/* --- starting ----------------------------------------------------------------------------- */

/* In the new process; errno goes to the parent when it cannot become the program. */
static void become(const crn_leg *leg, const sigset_t *mask, pid_t parent, int out, int err,
                   int failed)
{
    setpgid(0, 0);
    /* should 'cairn run' be killed, the program is to leave as after any other signal; whoever is
     * first, the parent's death or this line, is noticed */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    if (isatty(STDIN_FILENO)) { /* which is not ours to share: we are in the background */
        int nothing = open("/dev/null", O_RDONLY);
        dup2(nothing, STDIN_FILENO);
    }
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(leg->words[0], leg->words);
    int sys = errno;
    (void)!write(failed, &sys, sizeof sys);
    _exit(127);
}

static cairn_status start(watch *w)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1}, failed[2] = {-1, -1}, sys = 0;
    const pid_t self = getpid();
    if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0 || pipe2(failed, O_CLOEXEC) < 0)
        return crn_fail_sys(errno, "cannot start '%s'", w->leg->words[0]);
    w->leg->launched_ns = crn_wall_ns();
    w->pid = fork();
    if (w->pid == 0)
        become(w->leg, &w->signals->was, self, out[1], err[1], failed[1]);
    if (w->pid < 0)
        sys = errno;
    close(out[1]);
    close(err[1]);
    close(failed[1]);
    if (w->pid > 0 && read(failed[0], &sys, sizeof sys) == (ssize_t)sizeof sys)
        waitpid(w->pid, NULL, 0);
    close(failed[0]);
    w->out.from = out[0];
    w->err.from = err[0];
    return sys == 0 ? CAIRN_OK : crn_fail_sys(sys, "cannot start '%s'", w->leg->words[0]);
}

/* --- output ------------------------------------------------------------------------------- */

/* What to wait for. Whoever reads our output may take a while, in which signals must not wait. */
static struct pollfd next_step(const stream *s)
{
    if (s->at < s->n)
        return (struct pollfd){.fd = s->to, .events = POLLOUT};
    return (struct pollfd){.fd = s->from, .events = POLLIN};
}

/* Whether the place for it is still there is not the program's worry. */
static void pass_on_output(stream *s)
{
    const ssize_t k = write(s->to, s->data + s->at, s->n - s->at);
    if (k > 0)
        s->at += (size_t)k;
    else if (errno != EINTR && errno != EAGAIN)
        s->at = s->n;
}

static void take_output(watch *w, stream *s, size_t most)
{
    const ssize_t n = read(s->from, s->data, CRN_MIN(most, sizeof s->data));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    s->at = 0;
    s->n = n > 0 ? (size_t)n : 0;
    if (n > 0) {
        crn_tail_add(&w->leg->tail, s->data, s->n);
        return;
    }
    close(s->from);
    s->from = -1;
}

static void pump(watch *w, stream *s)
{
    if (s->at < s->n)
        pass_on_output(s);
    else
        take_output(w, s, sizeof s->data);
}

/* What was written before the end, and no more: a process that got away may hold the other end, and
 * write for ever. */
static void pump_rest(watch *w, stream *s)
{
    int left = 0;
    if (s->from >= 0 && ioctl(s->from, FIONREAD, &left) < 0)
        left = 0;
    while (s->at < s->n || (left > 0 && s->from >= 0)) {
        struct pollfd p = next_step(s);
        poll(&p, 1, -1);
        if (s->at < s->n) {
            pass_on_output(s);
            continue;
        }
        take_output(w, s, (size_t)left);
        left -= (int)s->n;
    }
    if (s->from >= 0)
        close(s->from);
    s->from = -1;
}

/* --- ending ------------------------------------------------------------------------------- */

/* End it: the launcher first, which can reach other machines. */
static void end(watch *w, crn_leg_end why)
{
    if (w->ending_ns != 0)
        return;
    w->leg->why = why;
    w->leg->worked_ns = why == CRN_LEG_HANG ? 0 : crn_wall_ns();
    w->ending_ns = crn_now_ns();
    kill(-w->pid, SIGTERM);
    kill(-w->pid, SIGCONT);
}

static void ask_to_leave(watch *w)
{
    if (w->asked_ns != 0)
        return;
    w->asked_ns = crn_now_ns();
    w->leg->asked = true;
    kill(-w->pid, w->leg->leave);
}

/* The second signal to leave ends the leg at once. */
static void pass_on(watch *w, int number, bool leave)
{
    if (number == SIGCHLD)
        return;
    if (!leave)
        kill(-w->pid, number);
    else if (w->signals->nleave > 1)
        end(w, CRN_LEG_ASKED);
    else
        ask_to_leave(w);
    if (number == SIGTSTP)
        raise(SIGSTOP);
    w->pulse_ns = crn_now_ns(); /* after a stop, it is not to blame */
}

static void take_signals(watch *w)
{
    for (int number, before = w->signals->nleave; (number = crn_signals_next(w->signals)) != 0;) {
        pass_on(w, number, w->signals->nleave > before);
        before = w->signals->nleave;
    }
}

/* --- watching ----------------------------------------------------------------------------- */

static double since(uint64_t ns)
{
    return (double)(crn_now_ns() - ns) * 1e-9;
}

static void say(const watch *w, const char *sentence)
{
    if (w->leg->offspring->say)
        w->leg->offspring->say(sentence);
}

static void feel_pulse(watch *w)
{
    uint64_t pulse;
    if (w->leg->pulse(w->leg->pulse_arg, &pulse) && pulse != w->pulse) {
        w->pulse = pulse;
        w->pulse_ns = crn_now_ns();
    }
    if (w->out.at < w->out.n || w->err.at < w->err.n) /* whoever reads its output holds it up */
        w->pulse_ns = crn_now_ns();
    if (since(w->pulse_ns) > w->leg->hang_s) {
        char text[80];
        snprintf(text, sizeof text, "no sign of life for %.0f s: it hangs, and is killed",
                 w->leg->hang_s);
        say(w, text);
        end(w, CRN_LEG_HANG);
    }
}

/* A launcher of which all ranks have died while it was starting them may wait for ever. */
static void feel_launcher(watch *w)
{
    if (since(w->look_ns) < LOOK_EVERY_S)
        return;
    w->look_ns = crn_now_ns();
    if (!crn_offspring_is_stuck(w->pid))
        w->stuck_ns = 0;
    else if (w->stuck_ns == 0)
        w->stuck_ns = w->look_ns;
    else if (since(w->stuck_ns) > STUCK_AFTER_S) {
        say(w, "all ranks have ended, and the launcher does not notice: it is killed");
        end(w, CRN_LEG_HANG);
    }
}

static void look(watch *w)
{
    const crn_leg *leg = w->leg;
    if (leg->launcher && w->ending_ns == 0)
        feel_launcher(w);
    if (leg->until_ns != 0 && crn_now_ns() > leg->until_ns)
        ask_to_leave(w);
    if (w->asked_ns != 0 && since(w->asked_ns) > leg->grace_s)
        end(w, w->signals->nleave > 0 ? CRN_LEG_ASKED : CRN_LEG_LIMIT);
    if (leg->hang_s > 0 && w->ending_ns == 0)
        feel_pulse(w);
    if (w->ending_ns != 0 && since(w->ending_ns) > KILL_AFTER_S)
        w->status = crn_offspring_kill(leg->offspring, w->pid);
}

/* Wait until something happens there, or to a rank, or for a moment. */
static void wait_for_any(watch *w, struct pollfd *p, size_t n)
{
    enum { ALL_MAX = 1024 };
    struct pollfd all[ALL_MAX];
    if (w->leg->launcher)
        crn_rank_watch_look(&w->ranks, w->pid);
    const size_t nranks = CRN_MIN(w->ranks.process.n, ALL_MAX - n);
    memcpy(all, p, n * sizeof *p);
    if (nranks > 0)
        memcpy(all + n, w->ranks.process.at, nranks * sizeof *all);
    poll(all, n + nranks, w->leg->launcher && w->ranks.known.n == 0 ? 50 : 500);
    memcpy(p, all, n * sizeof *p);
}

static void wait_for_end(watch *w)
{
    while (w->status < 0) {
        struct pollfd p[] = {
            {.fd = w->signals->fd, .events = POLLIN}, next_step(&w->out), next_step(&w->err)};
        wait_for_any(w, p, sizeof p / sizeof *p);
        if (p[1].revents)
            pump(w, &w->out);
        if (p[2].revents)
            pump(w, &w->err);
        take_signals(w);
        w->status = crn_offspring_reap(w->pid);
        if (w->status < 0)
            look(w);
    }
}

cairn_status crn_leg_run(crn_leg *leg, crn_signals *s)
{
    watch w = {.leg = leg,
               .signals = s,
               .out = {.to = leg->out},
               .err = {.to = leg->err},
               .status = -1,
               .pulse_ns = crn_now_ns()};
    leg->why = CRN_LEG_UNSTARTED;
    leg->code = -1;
    CRN_TRY(start(&w));
    leg->why = CRN_LEG_EXIT;
    wait_for_end(&w);
    if (w.ending_ns == 0)
        leg->worked_ns = crn_rank_watch_first(&w.ranks, crn_wall_ns());
    crn_rank_watch_done(&w.ranks);
    leg->code = WIFEXITED(w.status) ? WEXITSTATUS(w.status) : -1;
    leg->signal = WIFSIGNALED(w.status) ? WTERMSIG(w.status) : 0;
    if (leg->signal != 0 && w.ending_ns == 0)
        leg->why = CRN_LEG_SIGNAL;
    if (leg->code != 0 || w.ending_ns != 0) /* else it may leave something behind on purpose */
        crn_offspring_kill(leg->offspring, w.pid);
    pump_rest(&w, &w.out);
    pump_rest(&w, &w.err);
    return CAIRN_OK;
}
