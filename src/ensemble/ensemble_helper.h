/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The helper of a node in a particle filter's study: a thread beside the model that has all
 * sockets, copies states between the node's cache and the study's shelf, and keeps the cache as the
 * server wishes. The model's thread talks to it through a mailbox and never waits for the network,
 * nor for the shelf unless the next parent is still on its way.
 *
 * Cache and shelf are shelves of named states: p<member>, with the cycle as version; on a runner of
 * several nodes each has its own, p<member>.<node>.
 */
#ifndef CAIRN_ENSEMBLE_HELPER_H
#define CAIRN_ENSEMBLE_HELPER_H

#include <cairn/state.h>

#include "ensemble/ensemble_study.h"

typedef struct crn_helper crn_helper;

/* Who a helper works for. */
typedef struct crn_helper_setup {
    const crn_study *study;
    const char *job;       /* of the runner */
    uint32_t number;       /* of the job */
    uint32_t rank;         /* of this process in the runner */
    uint32_t node, nnodes; /* of this process; of the runner */
    const crn_buf *fields; /* of each rank, on node 0 */
    uint32_t nranks;       /* of the runner */
    const char *cache;     /* directory of the cache, which this process has locked */
} crn_helper_setup;

cairn_status crn_helper_start(const crn_helper_setup *setup, crn_helper **ret);

/* End it: what is under way is given up. over: the study is, and the cache is not needed again. */
void crn_helper_stop(crn_helper *h, bool over);

/* The name of a state. */
enum { CRN_STATE_KEY = 32 };
void crn_helper_key(uint32_t member, uint32_t node, uint32_t nnodes, char key[CRN_STATE_KEY]);

/* --- the model's thread --------------------------------------------------------------------- */

/*
 * A member was propagated, and its state goes to the cache: by put, which is the helper's from now
 * on (NULL: it is there). It is pushed, and its weight is sent; with the weight NAN it has none,
 * and is removed again.
 */
void crn_helper_made(crn_helper *h, uint32_t cycle, uint32_t member, double logw,
                     cairn_transfer *put);

/* Wait until the last put has ended: then its shelf is the caller's again. */
void crn_helper_await_put(crn_helper *h);

/* A task has ended: the announcement, with which the next is asked for. Node 0 only. NULL: the
 * first task is asked for. */
void crn_helper_ask(crn_helper *h, const crn_wire *done);

/* Wait for a task, whose data goes into data, or for the end of the study: false. Node 0 only. */
bool crn_helper_await_task(crn_helper *h, crn_wire *ret, crn_buf *data);

/* Wait until a state is in the cache, and load it if it is not. peer: a cache that may have it, or
 * "". again: it is damaged there, and is to be loaded anew. */
cairn_status crn_helper_need(crn_helper *h, uint32_t cycle, uint32_t member, const char *peer,
                             bool again);

/* --- caches --------------------------------------------------------------------------------- */

/*
 * Find a cache directory of the study on this node that nobody uses, perhaps one that a runner has
 * left, and lock it for this process. *ret_lock is a descriptor, to be closed at the end.
 */
cairn_status crn_cache_claim(const crn_study *study, char **ret, int *ret_lock);

#endif
