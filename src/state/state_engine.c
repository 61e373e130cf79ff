/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The engine of a shelf: one thread that ends puts and copies states while the program goes on.
 *
 * It takes one transfer after the other from a queue. A put that was captured is stored in the own
 * part, which the engine has until then; where the shelf is one process's it is listed, too, while
 * the processes of a group do that together, when it is waited for. Copies use shelves of the
 * engine's own, opened again, so that nothing but the queue is shared with the program's thread.
 *
 * Transfers outlast the shelf: what both sides see of one is guarded by the engine's mutex, and the
 * engine goes with the last who refers to it.
 */
#include "state/state_shelf.h"

#include <inttypes.h>
#include <time.h>

struct state_engine {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned refs;                /* the shelf and its transfers; guarded by the mutex */
    bool quit;                    /* likewise, */
    cairn_transfer *first, *last; /* and the queue: what waits, and is under way */
    pthread_t thread;             /* the shelf's */
    cairn_shelf *shelf;
    cairn_shelf *twin;             /* the engine's thread alone: the shelf, to copy to, */
    CRN_VEC(cairn_shelf *) source; /* and those that it copies from; added to by the program */
};

struct cairn_transfer {
    state_engine *engine;
    cairn_shelf *shelf; /* whose put it is; NULL once that has ended */
    state_putting *put; /* NULL: a copy, or a put that has ended */
    cairn_shelf *from;  /* of a copy */
    char key[CRN_KEY_MAX + 1];
    uint64_t version;
    uint64_t limit, start_ns; /* bytes a second; 0: none */
    bool ended, cancelled;    /* guarded by the engine's mutex, */
    uint64_t nbytes;          /* like the bytes that were copied */
    cairn_status status;      /* once it has ended */
    crn_err why;
    cairn_transfer *next;
};

/* --- the engine's life -------------------------------------------------------------------- */

static void unref(state_engine *e)
{
    pthread_mutex_lock(&e->mutex);
    const bool last = --e->refs == 0;
    pthread_mutex_unlock(&e->mutex);
    if (!last)
        return;
    pthread_mutex_destroy(&e->mutex);
    pthread_cond_destroy(&e->changed);
    free(e);
}

static void keep_result(cairn_transfer *t, cairn_status rc)
{
    t->status = rc;
    if (rc < 0)
        t->why = *crn_err_peek();
}

/* Wait for as long as the limit asks for, or until it is cancelled. With the mutex. */
static void pace(cairn_transfer *t)
{
    const double due = (double)t->nbytes / (double)t->limit * 1e9;
    const uint64_t until = t->start_ns + (uint64_t)due;
    while (!t->cancelled && crn_now_ns() < until) {
        enum { LOOK_NS = 100000000 };
        const uint64_t left = CRN_MIN(until - crn_now_ns(), (uint64_t)LOOK_NS);
        struct timespec at;
        clock_gettime(CLOCK_MONOTONIC, &at);
        const uint64_t ns = (uint64_t)at.tv_nsec + left;
        at.tv_sec += (time_t)(ns / 1000000000);
        at.tv_nsec = (long)(ns % 1000000000);
        pthread_cond_timedwait(&t->engine->changed, &t->engine->mutex, &at);
    }
}

static bool go_on(void *arg, uint64_t nbytes)
{
    cairn_transfer *t = arg;
    pthread_mutex_lock(&t->engine->mutex);
    t->nbytes += nbytes;
    if (t->limit > 0)
        pace(t);
    const bool more = !t->cancelled;
    pthread_mutex_unlock(&t->engine->mutex);
    return more;
}

static cairn_status copy(state_engine *e, cairn_transfer *t)
{
    const crn_state_name name = {t->key, t->version};
    CRN_FAIL_IF(!go_on(t, 0), CAIRN_ECANCELED, "it was cancelled");
    if (!e->twin)
        CRN_TRY(crn_shelf_again(e->shelf, &e->twin));
    t->start_ns = crn_now_ns();
    return crn_state_copy(t->from, e->twin, name, go_on, t);
}

static void work(state_engine *e, cairn_transfer *t)
{
    if (t->from) {
        keep_result(t, copy(e, t));
        return;
    }
    keep_result(t, crn_put_store(t->put));
    if (crn_comm_size(e->shelf->comm) == 1) {
        state_putting *p = t->put;
        t->put = NULL;
        keep_result(t, crn_put_finish(p, t->status));
    }
}

static void *engine_main(void *arg)
{
    state_engine *e = arg;
    pthread_mutex_lock(&e->mutex);
    for (;;) {
        while (!e->first && !e->quit)
            pthread_cond_wait(&e->changed, &e->mutex);
        if (!e->first)
            break;
        cairn_transfer *t = e->first;
        pthread_mutex_unlock(&e->mutex);
        work(e, t);
        pthread_mutex_lock(&e->mutex);
        e->first = t->next;
        e->last = e->first ? e->last : NULL;
        t->ended = true;
        pthread_cond_broadcast(&e->changed);
    }
    pthread_mutex_unlock(&e->mutex);
    return NULL;
}

static cairn_status start_thread(state_engine *e)
{
    const int rc = crn_thread_start(&e->thread, engine_main, e);
    return rc == 0 ? CAIRN_OK : crn_fail_sys(rc, "cannot start the thread of a shelf");
}

static cairn_status engage(cairn_shelf *s)
{
    state_engine *e;
    if (s->engine)
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&e, 1));
    pthread_mutex_init(&e->mutex, NULL);
    pthread_condattr_t steady; /* clocks that are set do not make a limit wait for hours */
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&e->changed, &steady);
    pthread_condattr_destroy(&steady);
    e->refs = 1;
    e->shelf = s;
    const cairn_status rc = start_thread(e);
    if (rc < 0) {
        unref(e);
        return rc;
    }
    s->engine = e;
    return CAIRN_OK;
}

void crn_shelf_disengage(cairn_shelf *s)
{
    state_engine *e = s->engine;
    if (!e)
        return;
    crn_shelf_settle(s);
    pthread_mutex_lock(&e->mutex);
    for (cairn_transfer *t = e->first; t; t = t->next)
        t->cancelled = true;
    e->quit = true;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->mutex);
    pthread_join(e->thread, NULL);
    cairn_shelf_close(e->twin);
    for (size_t i = 0; i < e->source.n; i++)
        cairn_shelf_close(e->source.at[i]);
    crn_vec_done(&e->source);
    unref(e);
    s->engine = NULL;
}

/* --- transfers ---------------------------------------------------------------------------- */

static cairn_status create(cairn_shelf *s, crn_state_name name, cairn_transfer **ret)
{
    cairn_transfer *t;
    CRN_TRY(engage(s));
    CRN_TRY(crn_alloc(&t, 1));
    snprintf(t->key, sizeof t->key, "%s", name.key);
    t->version = name.version;
    t->engine = s->engine;
    *ret = t;
    return CAIRN_OK;
}

static void submit(cairn_transfer *t)
{
    state_engine *e = t->engine;
    pthread_mutex_lock(&e->mutex);
    e->refs++;
    if (e->last)
        e->last->next = t;
    else
        e->first = t;
    e->last = t;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->mutex);
}

static void wait_for(cairn_transfer *t)
{
    pthread_mutex_lock(&t->engine->mutex);
    while (!t->ended)
        pthread_cond_wait(&t->engine->changed, &t->engine->mutex);
    pthread_mutex_unlock(&t->engine->mutex);
}

void crn_shelf_settle(cairn_shelf *s)
{
    cairn_transfer *t = s->pending;
    if (!t)
        return;
    wait_for(t);
    if (t->put) { /* a group's */
        state_putting *p = t->put;
        t->put = NULL;
        if (t->status < 0)
            (void)crn_err_give(&t->why);
        keep_result(t, crn_put_finish(p, t->status));
    }
    t->shelf = NULL;
    s->pending = NULL;
}

bool crn_shelf_is_putting(const cairn_shelf *s)
{
    return s->pending && !cairn_transfer_done(s->pending, NULL);
}

cairn_status crn_transfer_put(cairn_shelf *s, crn_state_name name, const char *parent,
                              const cairn_field *field, size_t n, cairn_transfer **ret)
{
    const uint64_t staging = crn_config_nbytes(s->cfg, CRN_OPT_MARK_STAGING);
    cairn_transfer *t = NULL;
    cairn_status rc = crn_comm_agree(s->comm, create(s, name, &t));
    if (rc == CAIRN_OK)
        rc = crn_put_capture(s, name, parent, field, n, staging, &t->put);
    if (rc != CAIRN_OK) {
        free(t);
        return rc;
    }
    t->shelf = s;
    s->pending = t;
    submit(t);
    *ret = t;
    return CAIRN_OK;
}

/* The shelf to copy from as the engine's thread sees it. Those that are there stay: several
 * transfers share one. */
static cairn_status find_source(state_engine *e, const cairn_shelf *from, cairn_shelf **ret)
{
    for (size_t i = 0; i < e->source.n; i++)
        if (memcmp(e->source.at[i]->id, from->id, sizeof from->id) == 0) {
            *ret = e->source.at[i];
            return CAIRN_OK;
        }
    CRN_TRY(crn_vec_reserve(&e->source, 1));
    CRN_TRY(crn_shelf_again(from, ret));
    (*ret)->cfg = NULL; /* reading needs none, and from may be closed before the engine ends */
    (*ret)->log = NULL;
    e->source.at[e->source.n++] = *ret;
    return CAIRN_OK;
}

cairn_status crn_transfer_copy(cairn_shelf *from, cairn_shelf *to, crn_state_name name,
                               uint64_t limit, cairn_transfer **ret)
{
    cairn_transfer *t;
    CRN_FAIL_IF(memcmp(from->id, to->id, sizeof from->id) == 0, CAIRN_EINVAL,
                "a state cannot be copied to the shelf that it is on");
    CRN_TRY(create(to, name, &t));
    const cairn_status rc = find_source(t->engine, from, &t->from);
    if (rc < 0) {
        free(t);
        return rc;
    }
    t->limit = limit;
    submit(t);
    *ret = t;
    return CAIRN_OK;
}

/* --- the public line ---------------------------------------------------------------------- */

bool cairn_transfer_done(const cairn_transfer *t, uint64_t *ret_nbytes)
{
    if (!t)
        return true;
    pthread_mutex_lock(&t->engine->mutex);
    const bool ended = t->ended;
    if (ret_nbytes)
        *ret_nbytes = t->nbytes;
    pthread_mutex_unlock(&t->engine->mutex);
    return ended;
}

void cairn_transfer_cancel(cairn_transfer *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->engine->mutex);
    t->cancelled = true;
    pthread_cond_broadcast(&t->engine->changed);
    pthread_mutex_unlock(&t->engine->mutex);
}

int cairn_transfer_wait(cairn_transfer *t)
{
    CRN_FAIL_IF(!t, CAIRN_EINVAL, "the transfer is NULL");
    if (t->shelf && t->shelf->pending == t)
        crn_shelf_settle(t->shelf);
    wait_for(t);
    const cairn_status rc = t->status < 0 ? crn_err_give(&t->why) : t->status;
    if (rc < 0)
        crn_err_prefix("state '%s' %" PRIu64 ": ", t->key, t->version);
    unref(t->engine);
    free(t);
    return rc;
}
