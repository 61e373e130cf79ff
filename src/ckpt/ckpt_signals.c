/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Signals. One that asks the program to leave is counted, and passed on to the program's handler if
 * it has one. Where it has none, and the signal would have ended the program, it still does in the
 * end: the second one at once, and the first one when the program shows no sign that it will ever
 * leave by itself: it has not learnt of it, and calls nothing any more that could tell it.
 */
#include "ckpt/ckpt_session.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <stdatomic.h>
#include <time.h>

/*
 * A signal handler can find nothing but process-wide state. This is all of it. Sessions that are
 * opened and closed share the handlers by counting. All atomics are lone values, looked at later by
 * whoever asks: relaxed.
 */
static atomic_uint signals_seen;
static pthread_mutex_t signals_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct handled {
    unsigned users;            /* sessions; guarded by signals_mutex */
    struct sigaction before;   /* this and the next two: written before our handler is installed */
    timer_t timer;             /* sends the signal again when patience is over, */
    bool timed;                /* if there is one */
    _Atomic uint64_t first_ns; /* when it came; 0: not yet */
    _Atomic uint64_t armed_ns; /* when the timer was set */
} handled[NSIG];

/* What the program does about it. */
static _Atomic uint64_t called_ns;   /* its last call that could have told it */
static _Atomic uint64_t gap_ns;      /* the longest time between two of them */
static _Atomic uint64_t patience_ns; /* at least; as the sessions are configured */
static atomic_bool asks, told;       /* it calls cairn_should_stop; which has said yes */
static atomic_uint nbusy;            /* marks under way */

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_BOOL_LOCK_FREE == 2,
               "a handler must not meet a lock");

#define GET(x)     atomic_load_explicit(&(x), memory_order_relaxed)
#define SET(x, to) atomic_store_explicit(&(x), (to), memory_order_relaxed)

/* One request may come twice, from a terminal and from a launcher, say. */
#define ONE_REQUEST_NS UINT64_C(500000000)

/* How many times the longest gap between its calls a program may be silent; and how long it is
 * waited for a mark under way until the next look. */
enum { PATIENCE_GAPS = 10 };
#define LOOK_NS UINT64_C(100000000)

/*
 * Signals that are being passed on, each with the thread that does so; 0 is a free place. A program
 * that stands before us, calling our handler from its own, stays there when a session is closed;
 * the next one then stands before it, and it would call us, and we it, for ever. Not thread-local:
 * what a handler may use of that (initial-exec) keeps a library from being loaded by dlopen.
 */
static _Atomic uint64_t passing_on[64];

static uint64_t passage(int number)
{
    return (uint64_t)syscall(SYS_gettid) << 8 | (uint64_t)number;
}

static bool is_passing_on(uint64_t passage)
{
    for (size_t i = 0; i < sizeof passing_on / sizeof *passing_on; i++)
        if (GET(passing_on[i]) == passage)
            return true;
    return false;
}

/* The place taken; when more threads than places do so at once, NULL. */
static _Atomic uint64_t *begin_passing(uint64_t passage)
{
    for (size_t i = 0; i < sizeof passing_on / sizeof *passing_on; i++) {
        uint64_t none = 0;
        if (atomic_compare_exchange_strong(&passing_on[i], &none, passage))
            return &passing_on[i];
    }
    return NULL;
}

static bool has_handler(const struct sigaction *a)
{
    return a->sa_flags & SA_SIGINFO || (a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN);
}

/* Does it end a program that does nothing about it? The signals for users' own purposes are often
 * sent as a mere hint, and do not. */
static bool is_final(int number)
{
    const struct sigaction *before = &handled[number].before;
    return number != SIGUSR1 && number != SIGUSR2 && !has_handler(before) &&
           before->sa_handler == SIG_DFL;
}

/* Let the signal do what it would have done without us: within its handler, when that returns. */
static void act(int number)
{
    sigaction(number, &handled[number].before, NULL);
    raise(number);
}

/* timer_settime is one of the few functions that a handler may call. */
static void arm(struct handled *h, uint64_t after_ns)
{
    const struct itimerspec when = {.it_value = {.tv_sec = (time_t)(after_ns / 1000000000u),
                                                 .tv_nsec = (long)(after_ns % 1000000000u)}};
    SET(h->armed_ns, crn_now_ns());
    if (h->timed)
        timer_settime(h->timer, 0, &when, NULL);
}

static uint64_t patience(void)
{
    const uint64_t gaps = GET(gap_ns) * PATIENCE_GAPS;
    return CRN_MAX(CRN_MAX(gaps, GET(patience_ns)), 1);
}

/* The program had its time to learn of the signal. */
static void on_timer(int number)
{
    struct handled *h = &handled[number];
    if (GET(told))
        return;
    if (GET(called_ns) > GET(h->armed_ns))
        arm(h, patience());
    else if (GET(nbusy) > 0)
        arm(h, LOOK_NS);
    else
        act(number);
}

/* A signal that would have ended the program. */
static void on_final(int number)
{
    struct handled *h = &handled[number];
    const uint64_t now = crn_now_ns();
    uint64_t first = 0;
    if (atomic_compare_exchange_strong_explicit(&h->first_ns, &first, now, memory_order_relaxed,
                                                memory_order_relaxed))
        arm(h, patience());
    else if (now - first > ONE_REQUEST_NS)
        act(number);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    struct handled *h = &handled[number];
    const uint64_t own = passage(number);
    if (is_passing_on(own))
        return;
    if (info->si_code == SI_TIMER && info->si_value.sival_ptr == h) {
        on_timer(number);
        return;
    }
    atomic_fetch_add_explicit(&signals_seen, 1, memory_order_relaxed);
    _Atomic uint64_t *place = begin_passing(own);
    if (h->before.sa_flags & SA_SIGINFO)
        h->before.sa_sigaction(number, info, context);
    else if (has_handler(&h->before))
        h->before.sa_handler(number);
    if (place)
        SET(*place, 0);
    if (is_final(number))
        on_final(number);
}

/* By its name, with or without "SIG"; 0: there is none. */
static int signal_number(const char *name, size_t n)
{
    if (n > 3 && memcmp(name, "SIG", 3) == 0) {
        name += 3;
        n -= 3;
    }
    for (int s = 1; s < NSIG; s++) {
        const char *abbrev = crn_signal_name(s);
        if (abbrev && strlen(abbrev) == n && memcmp(abbrev, name, n) == 0)
            return s;
    }
    return 0;
}

/* Stand before the program's handler, if it has one, under the terms that it asked for: whether
 * system calls go on after it, on which stack it runs, and what it keeps away meanwhile. */
static int stand_before(int number)
{
    struct handled *h = &handled[number];
    struct sigaction ours = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigevent again = {
        .sigev_notify = SIGEV_SIGNAL, .sigev_signo = number, .sigev_value = {.sival_ptr = h}};
    if (sigaction(number, NULL, &h->before) < 0)
        return -1;
    if (has_handler(&h->before)) {
        ours.sa_flags = SA_SIGINFO | (h->before.sa_flags & (SA_RESTART | SA_ONSTACK | SA_NODEFER));
        ours.sa_mask = h->before.sa_mask;
    }
    /* without a timer the second signal still ends the program */
    h->timed = is_final(number) && timer_create(CLOCK_MONOTONIC, &again, &h->timer) == 0;
    SET(h->first_ns, 0);
    SET(told, false);
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
                "stop.signals: no program can handle signal %s", crn_signal_name(number));
    return CAIRN_OK;
}

static cairn_status install(cairn *c, int number)
{
    cairn_status rc = CAIRN_OK;
    const uint64_t bit = UINT64_C(1) << (number - 1);
    pthread_mutex_lock(&signals_mutex);
    if (c->signals & bit || (handled[number].users == 0 && is_to_be_ignored(number))) {
        /* named twice, or not ours to handle */
    } else if (handled[number].users == 0 && stand_before(number) < 0) {
        rc = crn_fail_sys(errno, "cannot handle signal %s", crn_signal_name(number));
    } else {
        handled[number].users++;
        c->signals |= bit;
    }
    pthread_mutex_unlock(&signals_mutex);
    return rc;
}

static void uninstall(int number)
{
    struct handled *h = &handled[number];
    struct sigaction now;
    pthread_mutex_lock(&signals_mutex);
    if (--h->users == 0) {
        if (h->timed)
            timer_delete(h->timer);
        h->timed = false;
        if (sigaction(number, NULL, &now) == 0 && now.sa_sigaction == on_signal)
            sigaction(number, &h->before, NULL);
    }
    pthread_mutex_unlock(&signals_mutex);
}

/* Call fn for each signal that the configuration names. */
static cairn_status each_signal(cairn *c, cairn_status (*fn)(cairn *c, int number))
{
    for (const char *p = crn_config_text(c->held.cfg, CRN_OPT_STOP_SIGNALS); *p;) {
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

cairn_status crn_signals_init(cairn *c)
{
    const double seconds = crn_config_seconds(c->held.cfg, CRN_OPT_STOP_PATIENCE);
    SET(patience_ns, (uint64_t)(CRN_MIN(seconds, 1e9) * 1e9));
    c->signals_at_open = GET(signals_seen);
    CRN_TRY(each_signal(c, check));
    return each_signal(c, install);
}

void crn_signals_done(cairn *c)
{
    for (int number = 1; number <= 64; number++)
        if (c->signals >> (number - 1) & 1)
            uninstall(number);
    c->signals = 0;
}

bool crn_signals_came(const cairn *c)
{
    return GET(signals_seen) > c->signals_at_open;
}

void crn_signals_called(uint64_t now)
{
    const uint64_t before = atomic_exchange_explicit(&called_ns, now, memory_order_relaxed);
    if (before != 0 && now > before && now - before > GET(gap_ns))
        SET(gap_ns, now - before);
}

void crn_signals_asked(bool stop)
{
    SET(asks, true);
    if (stop)
        SET(told, true);
}

bool crn_signals_are_asked_for(void)
{
    return GET(asks);
}

void crn_signals_busy(bool busy)
{
    atomic_fetch_add_explicit(&nbusy, busy ? 1u : -1u, memory_order_relaxed);
}

void crn_signals_obey(const cairn *c)
{
    for (int number = 1; number <= 64; number++)
        if (c->signals >> (number - 1) & 1 && GET(handled[number].first_ns) != 0)
            act(number);
}
