/* SPDX-License-Identifier: BSD-3-Clause
 *
 * When to mark and when to leave. Both are decided on rank 0, or by whichever rank a signal
 * reached, and told to all, so that all ranks do the same.
 */
#include "ckpt/ckpt_session.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>

/* --- signals ------------------------------------------------------------------------------ */

/*
 * A signal handler can find nothing but process-wide state. This is all of it: how many signals
 * came, and what to call besides. Sessions that are opened and closed share the handlers by
 * counting.
 */
static atomic_uint signals_seen;
static pthread_mutex_t signals_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    unsigned users;          /* sessions; guarded by signals_mutex */
    struct sigaction before; /* written before our handler is installed */
} handled[NSIG];

/*
 * Signals that are being passed on by this thread. A program that stands before us, calling our
 * handler from its own, stays there when a session is closed; the next one then stands before it,
 * and it would call us, and we it, for ever. Initial-exec: nothing is allocated in a handler.
 */
static _Thread_local volatile uint64_t passing_on __attribute__((tls_model("initial-exec")));

static void on_signal(int number, siginfo_t *info, void *context)
{
    const struct sigaction *before = &handled[number].before;
    const uint64_t bit = UINT64_C(1) << (number - 1);
    if (passing_on & bit)
        return;
    /* relaxed: a lone counter, looked at later by whoever asks */
    atomic_fetch_add_explicit(&signals_seen, 1, memory_order_relaxed);
    passing_on |= bit;
    if (before->sa_flags & SA_SIGINFO)
        before->sa_sigaction(number, info, context);
    else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN)
        before->sa_handler(number);
    passing_on &= ~bit;
}

/* By its name, with or without "SIG"; 0: there is none. */
static int signal_number(const char *name, size_t n)
{
    if (n > 3 && memcmp(name, "SIG", 3) == 0) {
        name += 3;
        n -= 3;
    }
    for (int s = 1; s < NSIG; s++) {
        const char *abbrev = sigabbrev_np(s);
        if (abbrev && strlen(abbrev) == n && memcmp(abbrev, name, n) == 0)
            return s;
    }
    return 0;
}

/* Stand before the program's handler, if it has one, under the terms that it asked for: whether
 * system calls go on after it, on which stack it runs, and what it keeps away meanwhile. */
static int stand_before(int number, struct sigaction *before)
{
    struct sigaction ours = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    if (sigaction(number, NULL, before) < 0)
        return -1;
    if (before->sa_flags & SA_SIGINFO ||
        (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN)) {
        ours.sa_flags = SA_SIGINFO | (before->sa_flags & (SA_RESTART | SA_ONSTACK | SA_NODEFER));
        ours.sa_mask = before->sa_mask;
    }
    return sigaction(number, &ours, NULL);
}

/*
 * Shells and nohup let the signals of a terminal be ignored by what is to outlive it or runs in the
 * background. That is the user's word, as it is for all programs.
 */
static bool is_to_be_ignored(int number)
{
    struct sigaction now;
    return (number == SIGINT || number == SIGQUIT || number == SIGHUP) &&
           sigaction(number, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
           now.sa_handler == SIG_IGN;
}

/* Can it be handled at all? Asked for all of them before any is. */
static cairn_status check(cairn *c, int number)
{
    (void)c;
    CRN_FAIL_IF(number == SIGKILL || number == SIGSTOP, CAIRN_EINVAL,
                "stop.signals: no program can handle signal %s", sigabbrev_np(number));
    return CAIRN_OK;
}

static cairn_status install(cairn *c, int number)
{
    cairn_status rc = CAIRN_OK;
    const uint64_t bit = UINT64_C(1) << (number - 1);
    pthread_mutex_lock(&signals_mutex);
    if (c->signals & bit || (handled[number].users == 0 && is_to_be_ignored(number))) {
        /* named twice, or not ours to handle */
    } else if (handled[number].users == 0 && stand_before(number, &handled[number].before) < 0) {
        rc = crn_fail_sys(errno, "cannot handle signal %s", sigabbrev_np(number));
    } else {
        handled[number].users++;
        c->signals |= bit;
    }
    pthread_mutex_unlock(&signals_mutex);
    return rc;
}

static void uninstall(int number)
{
    struct sigaction now;
    pthread_mutex_lock(&signals_mutex);
    if (--handled[number].users == 0 && sigaction(number, NULL, &now) == 0 &&
        now.sa_sigaction == on_signal)
        sigaction(number, &handled[number].before, NULL);
    pthread_mutex_unlock(&signals_mutex);
}

/* Call fn for each signal that the configuration names. */
static cairn_status each_signal(cairn *c, cairn_status (*fn)(cairn *c, int number))
{
    for (const char *p = crn_config_text(c->cfg, CRN_OPT_STOP_SIGNALS); *p;) {
        size_t n = strcspn(p, " ,");
        int number = n > 0 ? signal_number(p, n) : 0;
        CRN_FAIL_IF(n > 0 && number == 0, CAIRN_EINVAL, "stop.signals: there is no signal '%.*s'",
                    (int)n, p);
        if (number > 0)
            CRN_TRY(fn(c, number));
        p += n + strspn(p + n, " ,");
    }
    return CAIRN_OK;
}

/* --- time --------------------------------------------------------------------------------- */

/*
 * The end of the job by our own clock, which nobody sets: configured, or from Slurm, which gives it
 * in seconds since 1970. UINT64_MAX: nobody says.
 */
static uint64_t job_end(const cairn *c)
{
    const uint64_t now = crn_now_ns(), wall = crn_wall_ns();
    const double limit = crn_config_seconds(c->cfg, CRN_OPT_STOP_LIMIT);
    if (limit > 0)
        return now + (uint64_t)(CRN_MIN(limit, 1e9) * 1e9);
    const char *text = getenv("SLURM_JOB_END_TIME");
    char *end = NULL;
    const unsigned long long seconds = text ? strtoull(text, &end, 10) : 0;
    if (seconds == 0 || *end != 0 || seconds > INT64_MAX / 1000000000)
        return UINT64_MAX;
    const uint64_t then = (uint64_t)seconds * 1000000000u;
    return then > wall ? now + (then - wall) : now;
}

cairn_status crn_stop_init(cairn *c)
{
    c->last_mark_ns = crn_now_ns();
    c->signals_at_open = atomic_load_explicit(&signals_seen, memory_order_relaxed);
    if (c->end_ns == 0) /* with other ranks it is the same job */
        c->end_ns = job_end(c);
    CRN_TRY(each_signal(c, check));
    return each_signal(c, install);
}

void crn_stop_done(cairn *c)
{
    for (int number = 1; number <= 64; number++)
        if (c->signals >> (number - 1) & 1)
            uninstall(number);
    c->signals = 0;
}

/* Is only the time left that a last mark in the trail needs? Its cost is known once there was one;
 * twice that, since the last hour of a job is not the time to be surprised. */
static bool time_is_up(const cairn *c)
{
    const double left = ((double)c->end_ns - (double)crn_now_ns()) * 1e-9;
    return left <
           crn_config_seconds(c->cfg, CRN_OPT_STOP_MARGIN) + 2 * CRN_MAX(c->trail_s, c->cost_s);
}

static bool was_signalled(const cairn *c)
{
    return atomic_load_explicit(&signals_seen, memory_order_relaxed) > c->signals_at_open;
}

/* A program may act upon a signal by itself, and never ask. */
void crn_stop_ask(cairn *c)
{
    uint64_t told = c->stopping || was_signalled(c);
    if (crn_comm_allreduce_u64(c->comm, CRN_REDUCE_MAX, &told, 1) == CAIRN_OK)
        c->stopping = told;
}

bool cairn_should_stop(cairn *c)
{
    if (crn_ckpt_check_usable(c, __func__) < 0)
        return false;
    crn_ckpt_beat(c);
    crn_engine_progress(c);
    /* any rank may know of a signal; of a divergence all shall, so that all can say where it is */
    uint64_t max[] = {c->stopping || time_is_up(c) || was_signalled(c), !crn_reference_stops(c)};
    if (crn_comm_allreduce_u64(c->comm, CRN_REDUCE_MAX, max, 2) < 0)
        return c->stopping;
    if ((max[0] || !max[1]) && !c->stopping) {
        c->stopping = true;
        c->marked_since_stop = false;
        crn_log_write(&c->log, CRN_LOG_INFO, CRN_LOG_ROOT, "told to stop");
        crn_ckpt_event(c, "{s:s}", "event", "stop");
    }
    return c->stopping;
}

/* --- signs of life -------------------------------------------------------------------------- */

/* Steps may be microseconds short, and who watches looks rarely: once a second is enough. */
void crn_ckpt_beat(cairn *c)
{
    const uint64_t now = crn_now_ns();
    if (crn_comm_rank(c->comm) != 0 || now - c->beat_ns < 1000000000u)
        return;
    c->beat_ns = now;
    crn_run_beat(c->run);
}

/* --- marks -------------------------------------------------------------------------------- */

bool cairn_due(cairn *c)
{
    unsigned char due = false;
    if (crn_ckpt_check_usable(c, __func__) < 0)
        return false;
    crn_ckpt_beat(c);
    if (c->open)
        return false;
    crn_engine_progress(c);
    if (crn_comm_rank(c->comm) == 0) {
        const double since = (double)(crn_now_ns() - c->last_mark_ns) * 1e-9;
        due = since >= crn_tune_interval(c) || (c->stopping && !c->marked_since_stop);
    }
    if (crn_comm_bcast(c->comm, &due, 1, 0) < 0)
        return false;
    return due;
}
