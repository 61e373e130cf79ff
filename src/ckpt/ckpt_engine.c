/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The engine: one thread that finishes marks while the program goes on. It has one job at a time
 * and owns what the job needs (part, vault, list of marks) exactly while its state is BUSY. After
 * that it keeps part and vault for a look at what storage made of earlier marks, which nobody but
 * the next one who needs them waits for.
 */
#include "ckpt/ckpt_session.h"

#include <signal.h>

static void set_state(ckpt_engine *e, engine_state state)
{
    pthread_mutex_lock(&e->mutex);
    e->state = state;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->mutex);
}

/* What the engine's thread does with a mark. Comparing it can wait until it is safe, unless that
 * waits for the program. */
static void work(cairn *c)
{
    crn_ckpt_store(c);
    if (c->engine.shares)
        crn_ckpt_share(c, c->leg.engine_comm);
    crn_reference_look(c);
    if (c->engine.shares)
        crn_reference_agree(c, c->leg.engine_comm);
}

/* Does the engine need nothing any more? With the mutex. */
static bool is_ready(const ckpt_engine *e)
{
    return e->state != ENGINE_BUSY && !e->looking;
}

static void wait_until_ready(ckpt_engine *e)
{
    pthread_mutex_lock(&e->mutex);
    while (!is_ready(e))
        pthread_cond_wait(&e->changed, &e->mutex);
    pthread_mutex_unlock(&e->mutex);
}

static void *engine_main(void *arg)
{
    cairn *c = arg;
    ckpt_engine *e = &c->engine;
    pthread_mutex_lock(&e->mutex);
    for (;;) {
        while (e->state != ENGINE_BUSY && !e->quit)
            pthread_cond_wait(&e->changed, &e->mutex);
        if (e->quit)
            break;
        pthread_mutex_unlock(&e->mutex);
        work(c);
        crn_signals_busy(false);
        pthread_mutex_lock(&e->mutex);
        e->looking = true;
        e->state = e->shares ? ENGINE_DONE : ENGINE_STORED;
        pthread_cond_broadcast(&e->changed);
        pthread_mutex_unlock(&e->mutex);
        crn_ckpt_scrub(c);
        pthread_mutex_lock(&e->mutex);
        e->looking = false;
        pthread_cond_broadcast(&e->changed);
    }
    pthread_mutex_unlock(&e->mutex);
    return NULL;
}

void crn_engine_init(ckpt_engine *e)
{
    *e = (ckpt_engine){0};
    pthread_mutex_init(&e->mutex, NULL);
    pthread_cond_init(&e->changed, NULL);
}

cairn_status crn_engine_start(cairn *c)
{
    ckpt_engine *e = &c->engine;
    if (crn_config_word(c->held.cfg, CRN_OPT_MARK_MODE) == 1)
        return CAIRN_OK;
    e->shares = c->leg.engine_comm != NULL;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* the program's handlers run on its own threads */
    int rc = pthread_create(&e->thread, NULL, engine_main, c);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0)
        return crn_fail_sys(rc, "cannot start the engine's thread");
    e->running = true;
    return CAIRN_OK;
}

void crn_engine_stop(cairn *c)
{
    ckpt_engine *e = &c->engine;
    if (e->running) {
        pthread_mutex_lock(&e->mutex);
        e->quit = true;
        pthread_cond_broadcast(&e->changed);
        pthread_mutex_unlock(&e->mutex);
        pthread_join(e->thread, NULL);
        e->running = false;
    }
    pthread_mutex_destroy(&e->mutex);
    pthread_cond_destroy(&e->changed);
}

void crn_engine_abandon(cairn *c)
{
    ckpt_engine *e = &c->engine;
    wait_until_ready(e);
    crn_engine_stop(c);
    crn_engine_init(e);
}

void crn_engine_submit(cairn *c)
{
    if (c->engine.running) {
        crn_signals_busy(true);
        set_state(&c->engine, ENGINE_BUSY);
        return;
    }
    crn_ckpt_store(c);
    crn_ckpt_share(c, c->held.comm);
    crn_reference_look(c);
    crn_reference_agree(c, c->held.comm);
    crn_ckpt_scrub(c);
    set_state(&c->engine, ENGINE_DONE);
}

bool crn_engine_is_ready(cairn *c)
{
    pthread_mutex_lock(&c->engine.mutex);
    bool ready = is_ready(&c->engine);
    pthread_mutex_unlock(&c->engine.mutex);
    return ready;
}

/* The cost of marks as the planner wants it: what the program was held for, and what it took until
 * the mark was in the trail. Smoothed, since machines are noisy. */
static void learn(cairn *c)
{
    const ckpt_job *j = &c->leg.job;
    const double held = (double)j->held_ns * 1e-9;
    c->cost_s = c->cost_s == 0 ? held : 0.5 * (c->cost_s + held);
    if (j->level_ns[CRN_LEVEL_GLOBAL] > 0) {
        const double took = (double)(j->level_ns[CRN_LEVEL_GLOBAL] - j->begin_ns) * 1e-9;
        c->trail_s = CRN_MAX(took, 0.5 * (c->trail_s + took));
    }
    crn_tune_mark(c);
}

bool crn_engine_waits(cairn *c)
{
    pthread_mutex_lock(&c->engine.mutex);
    const bool waits = !c->engine.shares && c->engine.state != ENGINE_IDLE;
    pthread_mutex_unlock(&c->engine.mutex);
    return waits;
}

void crn_engine_progress(cairn *c)
{
    const bool waits = crn_engine_waits(c);
    uint64_t ready = crn_engine_is_ready(c);
    if (waits && crn_comm_allreduce_u64(c->held.comm, CRN_REDUCE_MIN, &ready, 1) == CAIRN_OK &&
        ready)
        crn_engine_finish(c);
}

void crn_engine_settle(cairn *c)
{
    ckpt_engine *e = &c->engine;
    pthread_mutex_lock(&e->mutex);
    while (e->state == ENGINE_BUSY || (e->state == ENGINE_STORED && e->looking))
        pthread_cond_wait(&e->changed, &e->mutex);
    engine_state state = e->state;
    e->state = ENGINE_IDLE;
    pthread_mutex_unlock(&e->mutex);
    if (state == ENGINE_IDLE)
        return;
    if (state == ENGINE_STORED) {
        crn_ckpt_share(c, c->held.comm);
        crn_reference_agree(c, c->held.comm);
    }
    if (c->leg.job.status < 0 && c->leg.behind.code == 0)
        c->leg.behind = c->leg.job.err;
    const uint64_t *level_ns = c->leg.job.level_ns;
    if (level_ns[CRN_LEVEL_LOCAL] > 0)
        c->damaged = c->leg.job.damaged;
    if (level_ns[CRN_LEVEL_LOCAL] + level_ns[CRN_LEVEL_GLOBAL] > 0) {
        c->leg.rewind = false; /* it counts: what it follows is settled */
        c->leg.lost_from = CRN_NO_VERSION;
    }
    if (!c->leg.job.only_trees)
        learn(c);
}

void crn_engine_finish(cairn *c)
{
    crn_engine_settle(c);
    wait_until_ready(&c->engine);
}
