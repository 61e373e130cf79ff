/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Unreadable pages. A fault first makes its range readable: if that was enough, the program has
 * read there; if the same address faults once more, it has written, which is found otherwise. A
 * signal handler has no argument of ours, so the guard that is on has one place in the process.
 */
#include "region/region_guard.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NOTHING, READ, ALL };

static _Atomic(crn_guard *) active;
static struct sigaction before; /* written while no guard is on */

static crn_guarded *find(const crn_guard *g, uintptr_t at)
{
    for (size_t i = 0; i < g->range.n; i++) {
        crn_guarded *r = &g->range.at[i];
        if (at >= (uintptr_t)r->at && at - (uintptr_t)r->at < r->nbytes)
            return r;
    }
    return NULL;
}

/* Several threads may be here with the same range: each fault allows one step more at most. */
static void allow_more(crn_guarded *r, uintptr_t at)
{
    unsigned was = NOTHING;
    if (atomic_compare_exchange_strong(&r->access, &was, READ)) {
        atomic_store(&r->read, at);
        (void)mprotect(r->at, r->nbytes, PROT_READ);
        return;
    }
    if (atomic_load(&r->read) == at)
        atomic_store(&r->read, 0); /* it was a write */
    atomic_store(&r->access, ALL);
    (void)mprotect(r->at, r->nbytes, PROT_READ | PROT_WRITE);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    crn_guard *g = atomic_load(&active);
    crn_guarded *r = g ? find(g, (uintptr_t)info->si_addr) : NULL;
    if (r)
        allow_more(r, (uintptr_t)info->si_addr);
    else if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(number);
    else
        (void)sigaction(number, &before, NULL); /* it faults again, for good */
}

static bool take_signal(crn_guard *g)
{
    crn_guard *none = NULL;
    struct sigaction ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigemptyset(&ours.sa_mask);
    if (!atomic_compare_exchange_strong(&active, &none, g))
        return false;
    if (sigaction(SIGSEGV, &ours, &before) == 0)
        return true;
    atomic_store(&active, NULL);
    return false;
}

cairn_status crn_guard_add(crn_guard *g, size_t var, unsigned char *at, size_t nbytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = ((uintptr_t)at + page - 1) / page * page;
    const uintptr_t end = ((uintptr_t)at + nbytes) / page * page;
    if (first >= end)
        return CAIRN_OK;
    CRN_TRY(crn_vec_reserve(&g->range, 1));
    crn_guarded *r = &g->range.at[g->range.n++];
    memset(r, 0, sizeof *r);
    r->var = var;
    r->at = at + (first - (uintptr_t)at);
    r->nbytes = end - first;
    return CAIRN_OK;
}

void crn_guard_on(crn_guard *g)
{
    if (g->range.n == 0)
        return;
    g->refused = !take_signal(g);
    g->on = !g->refused;
    for (size_t i = 0; g->on && i < g->range.n; i++)
        if (mprotect(g->range.at[i].at, g->range.at[i].nbytes, PROT_NONE) < 0)
            g->range.at[i].access = ALL; /* memory of another kind is not looked at */
}

void crn_guard_off(crn_guard *g)
{
    if (!g->on)
        return;
    for (size_t i = 0; i < g->range.n; i++)
        if (atomic_exchange(&g->range.at[i].access, ALL) != ALL)
            (void)mprotect(g->range.at[i].at, g->range.at[i].nbytes, PROT_READ | PROT_WRITE);
    (void)sigaction(SIGSEGV, &before, NULL);
    atomic_store(&active, NULL);
    g->on = false;
}

void crn_guard_clear(crn_guard *g)
{
    crn_guard_off(g);
    g->range.n = 0;
}

void crn_guard_done(crn_guard *g)
{
    crn_guard_clear(g);
    crn_vec_done(&g->range);
}
