/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Threads of the library's own.
 */
#ifndef CAIRN_BASE_THREAD_H
#define CAIRN_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Start a thread on which no signal is handled: the program's handlers run on its own threads.
 * Returns 0 or an errno. */
int crn_thread_start(pthread_t *ret, void *(*fn)(void *arg), void *arg);

/* Has the process more than one processor? A rank that is bound to one has no use for threads. */
bool crn_has_processors(void);

#endif
