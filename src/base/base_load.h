/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Libraries that are loaded when they are first used: those that bring along what a program should
 * not get for nothing (run-times of other languages, threads, network libraries).
 */
#ifndef CAIRN_BASE_LOAD_H
#define CAIRN_BASE_LOAD_H

#include <pthread.h>
#include <stdbool.h>

#include "base/base_err.h"

typedef struct crn_library {
    const char *file;         /* as the loader knows it */
    const char *const *names; /* of functions, ended by NULL */
    void **calls;             /* where they go, one after the other */
    pthread_mutex_t mutex;
    _Atomic bool loaded;
} crn_library;

/* Load it, once; any thread may call it. CAIRN_EUNSUPPORTED. */
cairn_status crn_library_load(crn_library *library);

#endif
