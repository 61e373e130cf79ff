/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Decoding what a forger may have made: a guard tells of damage, but whoever makes a file can make
 * its guards, and the decoders of some libraries read and write wherever such bytes send them. They
 * see them in a process of their own. Processes are kept for the next block, as starting one takes
 * as long as decoding many.
 */
#include "codec/codec_worker.h"

#include <pthread.h>

static const crn_worker_limits usual = {.cap = 4 << 20, .cpu_seconds = 10, .wait_seconds = 120};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static crn_worker *all; /* processes of this one; guarded by mutex */

enum { IDLE_MAX = 8 }; /* processes that are kept */

/* --- the pool --------------------------------------------------------------------------------- */

static void before_fork(void)
{
    pthread_mutex_lock(&mutex);
}

static void after_fork_parent(void)
{
    pthread_mutex_unlock(&mutex);
}

/* Two programs must not talk to the same process. */
static void after_fork_child(void)
{
    while (all) {
        crn_worker *w = all;
        all = w->next;
        crn_worker_end(w);
    }
    pthread_mutex_unlock(&mutex);
}

static void watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

static void unlist(const crn_worker *w)
{
    crn_worker **at = &all;
    while (*at && *at != w)
        at = &(*at)->next;
    if (*at)
        *at = w->next;
}

/* An idle process that takes blocks of cap bytes, or NULL. */
static crn_worker *find_idle(size_t cap)
{
    crn_worker *w;
    pthread_mutex_lock(&mutex);
    for (w = all; w && (w->busy || w->limits.cap < cap);)
        w = w->next;
    if (w)
        w->busy = true;
    pthread_mutex_unlock(&mutex);
    return w;
}

static cairn_status take(size_t cap, crn_worker **ret)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    crn_worker_limits limits = usual;
    pthread_once(&once, watch_forks);
    crn_worker *w = find_idle(cap);
    if (!w) {
        limits.cap = CRN_MAX(limits.cap, CRN_ROUND_UP(cap, (size_t)4096));
        CRN_TRY(crn_worker_start(&crn_decoder_program, &limits, &w));
        w->busy = true;
        pthread_mutex_lock(&mutex);
        w->next = all;
        all = w;
        pthread_mutex_unlock(&mutex);
    }
    *ret = w;
    return CAIRN_OK;
}

static void give(crn_worker *w, bool usable)
{
    size_t idle = 0;
    pthread_mutex_lock(&mutex);
    for (const crn_worker *o = all; o; o = o->next)
        idle += !o->busy;
    usable = usable && idle < IDLE_MAX;
    w->busy = false;
    if (!usable)
        unlist(w);
    pthread_mutex_unlock(&mutex);
    if (!usable)
        crn_worker_end(w);
}

/* The library may be unloaded by a program that goes on. */
__attribute__((destructor)) static void end_idle(void)
{
    crn_worker *w;
    while ((w = find_idle(0)))
        give(w, false);
}

/* --- decoding --------------------------------------------------------------------------------- */

static cairn_status ask(const crn_worker_request *request, const void *src, void *dst,
                        crn_worker_answer *ret)
{
    crn_worker *w;
    bool usable;
    CRN_TRY(take(CRN_MAX(request->n, request->nbytes), &w));
    *ret = crn_worker_ask(w, request, src, dst, &usable);
    give(w, usable);
    return CAIRN_OK;
}

cairn_status crn_codec_decode_apart(const crn_codec_ops *codec, crn_elem elem, const void *src,
                                    size_t n, void *dst, size_t nbytes, void *scratch)
{
    /* a shared object is the reader's own choice, and nothing that the other process has */
    if (!codec->trusting || codec->known || !crn_codec_is_sound(codec, elem, src, n, nbytes))
        return crn_codec_decode(codec, elem, src, n, dst, nbytes, scratch);
    if (!codec->decode)
        return crn_codec_ready(codec); /* left out of this build: it says so */
    const size_t guard = crn_codec_guard(codec);
    const crn_worker_request request = {codec->id, elem, n - guard, nbytes};
    const unsigned char *own = (const unsigned char *)src + guard;
    crn_worker_answer answer;
    CRN_TRY(ask(&request, own, dst, &answer));
    if (answer == CRN_WORKER_DIED) /* the machine's memory may have been short: once more */
        CRN_TRY(ask(&request, own, dst, &answer));
    CRN_FAIL_IF(answer == CRN_WORKER_DIED || answer == CRN_WORKER_HANGS, CAIRN_ECORRUPT,
                "'%s' %s on %zu bytes, in a process of its own: damaged or forged", codec->name,
                answer == CRN_WORKER_DIED ? "crashes" : "does not end", n);
    CRN_FAIL_IF(answer != CRN_WORKER_GOOD, CAIRN_ECORRUPT,
                "%zu bytes are not what '%s' makes of %zu: damaged", n, codec->name, nbytes);
    return CAIRN_OK;
}
