/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The backend over a pool of threads, for kernels without io_uring.
 *
 * DESIGN. The thread that owns the queue and the workers meet at two lists, todo and ended, under
 * one mutex, and nowhere else. An operation belongs to the owner until it is put on todo, to one
 * worker from taking it off todo until putting it on ended, and then to the owner again; the mutex
 * orders these changes of hand, so that the operation itself needs no lock. A worker only makes the
 * system call; what its result means is decided by the owner (crn_op_settle). Workers block all
 * signals: those are the program's.
 */
#include "io/io_impl.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

enum { WORKERS_MAX = 8 }; /* more hardly move more bytes, and the program wants the cores */

typedef struct pool {
    pthread_mutex_t mutex;
    pthread_cond_t has_todo;       /* waited for by workers, with mutex */
    pthread_cond_t has_ended;      /* waited for by the owner, with mutex */
    crn_op_list todo;              /* guarded by mutex */
    crn_op_list ended;             /* guarded by mutex */
    bool stop;                     /* guarded by mutex; set once, by the owner */
    unsigned nworkers;             /* owner only */
    pthread_t worker[WORKERS_MAX]; /* owner only */
} pool;

static void *work(void *arg)
{
    pool *p = arg;
    pthread_mutex_lock(&p->mutex);
    for (;;) {
        while (!p->todo.first && !p->stop)
            pthread_cond_wait(&p->has_todo, &p->mutex);
        crn_op *op = crn_op_pop(&p->todo);
        if (!op)
            break;
        pthread_mutex_unlock(&p->mutex);
        op->result = crn_op_call(op);
        pthread_mutex_lock(&p->mutex);
        crn_op_push(&p->ended, op);
        pthread_cond_signal(&p->has_ended);
    }
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

static void pool_free(void *self)
{
    pool *p = self;
    pthread_mutex_lock(&p->mutex);
    p->stop = true;
    pthread_cond_broadcast(&p->has_todo);
    pthread_mutex_unlock(&p->mutex);
    for (unsigned i = 0; i < p->nworkers; i++)
        pthread_join(p->worker[i], NULL);
    pthread_cond_destroy(&p->has_ended);
    pthread_cond_destroy(&p->has_todo);
    pthread_mutex_destroy(&p->mutex);
    free(p);
}

/* Start up to n workers; fewer are enough, none are not. */
static int start_workers(pool *p, unsigned n)
{
    sigset_t all, old;
    int rc = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* inherited by the workers */
    while (rc == 0 && p->nworkers < n) {
        rc = pthread_create(&p->worker[p->nworkers], NULL, work, p);
        p->nworkers += rc == 0;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return p->nworkers > 0 ? 0 : rc;
}

static cairn_status pool_create(unsigned depth, void **ret_self)
{
    pool *p;
    CRN_TRY(crn_alloc(&p, 1));
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->has_todo, NULL);
    pthread_cond_init(&p->has_ended, NULL);
    int sys = start_workers(p, CRN_MIN(depth, WORKERS_MAX));
    if (sys != 0) {
        pool_free(p);
        return crn_fail(CAIRN_EUNSUPPORTED, "cannot start a thread: %s", CRN_SYS_TEXT(sys));
    }
    *ret_self = p;
    return CAIRN_OK;
}

static cairn_status pool_start(void *self, crn_op *op)
{
    pool *p = self;
    pthread_mutex_lock(&p->mutex);
    crn_op_push(&p->todo, op);
    pthread_cond_signal(&p->has_todo);
    pthread_mutex_unlock(&p->mutex);
    return CAIRN_OK;
}

static cairn_status pool_finish(void *self, crn_op **ret_op)
{
    pool *p = self;
    pthread_mutex_lock(&p->mutex);
    while (!p->ended.first)
        pthread_cond_wait(&p->has_ended, &p->mutex);
    *ret_op = crn_op_pop(&p->ended);
    pthread_mutex_unlock(&p->mutex);
    return CAIRN_OK;
}

const crn_io_ops crn_io_threads = {
    .name = "threads",
    .create = pool_create,
    .free = pool_free,
    .start = pool_start,
    .finish = pool_finish,
};
