/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base.h"

#include <sched.h>
#include <signal.h>

int crn_thread_start(pthread_t *ret, void *(*fn)(void *arg), void *arg)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const int rc = pthread_create(ret, NULL, fn, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc;
}

bool crn_has_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1;
}
