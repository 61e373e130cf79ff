/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Encoding what was gathered, by several threads where the configuration has it so. All items of a
 * few buffers are one list, of which each thread takes the next; what it makes goes to memory of
 * the group, at a place of its own. Which thread made what does not show in the file: items are put
 * together in their order. Threads live as long as a group: starting one takes as long as encoding
 * a few values.
 */
#include "store/store_gather.h"

#include <pthread.h>
#include <signal.h>

/* What became of an item. */
typedef struct piece {
    gather_item *item;
    gather_buffer *buffer;
    size_t nbytes;
    crn_codec_result result; /* of what a codec tried; */
    uint64_t took_ns;
    bool tried, made; /* and made: */
    uint32_t at;      /* where that is in the group's memory */
} piece;

/* What threads share. */
typedef struct group {
    CRN_VEC(piece) piece;
    unsigned char *data; /* what was encoded */
    pthread_mutex_t mutex;
    size_t next; /* guarded by the mutex, as is all below */
    uint32_t fill;
    cairn_status status;
    crn_err why;
} group;

typedef struct hand {
    pthread_t thread;
    group *group;
    crn_coder *coder;
} hand;

/* --- a piece ------------------------------------------------------------------------------ */

/* Room for what was made of a piece. Never more than it had: it is no larger. */
static unsigned char *room_for(group *g, piece *p)
{
    pthread_mutex_lock(&g->mutex);
    p->at = g->fill;
    g->fill += p->item->room;
    pthread_mutex_unlock(&g->mutex);
    return g->data + p->at;
}

/* Encode it, and say in its block what it is stored as from now on. */
static cairn_status encode(group *g, crn_coder *coder, piece *p)
{
    gather_item *it = p->item;
    crn_block *b = it->block;
    const unsigned char *from = p->buffer->data + it->pos;
    const crn_codec_values values = {it->encoding.elem, from, b->nbytes, it->encoding.shape};
    const uint64_t start = crn_now_ns();
    CRN_TRY(crn_coder_store(coder, &it->encoding.setting, &values, &p->result));
    p->took_ns = crn_now_ns() - start;
    p->tried = true;
    p->made = p->result.codec != 0;
    if (!p->made)
        return CAIRN_OK;
    if (!p->result.exact)
        b->digest = crn_digest_of(p->result.reads, b->nbytes);
    b->nbytes = (uint32_t)p->result.n;
    b->codec = p->result.codec;
    b->stored = crn_digest_of(coder->copy.at, b->nbytes);
    it->room = crn_gather_room(p->buffer->stream, b);
    unsigned char *to = room_for(g, p);
    memcpy(to, coder->copy.at, b->nbytes);
    memset(to + b->nbytes, 0, it->room - b->nbytes);
    return CAIRN_OK;
}

static piece *take(group *g)
{
    piece *p = NULL;
    pthread_mutex_lock(&g->mutex);
    if (g->status == CAIRN_OK && g->next < g->piece.n)
        p = &g->piece.at[g->next++];
    pthread_mutex_unlock(&g->mutex);
    return p;
}

/* The first failure is the one to report. */
static void fail(group *g, cairn_status rc)
{
    pthread_mutex_lock(&g->mutex);
    if (g->status == CAIRN_OK) {
        g->status = rc;
        g->why = *crn_err_peek();
    }
    pthread_mutex_unlock(&g->mutex);
}

static void *work(void *arg)
{
    hand *h = arg;
    piece *p;
    while ((p = take(h->group))) {
        cairn_status rc =
            crn_encodes(&p->item->encoding) ? encode(h->group, h->coder, p) : CAIRN_OK;
        if (rc < 0)
            fail(h->group, rc);
    }
    return NULL;
}

/* --- a group ------------------------------------------------------------------------------ */

/* Threads that cannot be started are not missed. */
static void work_all(group *g, crn_coder *coder, size_t n)
{
    hand own = {.group = g, .coder = coder}, other[GATHER_THREADS];
    size_t nothers = 0;
    sigset_t every, old;
    n = CRN_MIN(n, g->piece.n);
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &old); /* the program's handlers run on its own threads */
    while (nothers + 1 < n) {
        other[nothers] = (hand){.group = g, .coder = &coder[nothers + 1]};
        if (pthread_create(&other[nothers].thread, NULL, work, &other[nothers]) != 0)
            break;
        nothers++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    (void)work(&own);
    for (size_t i = 0; i < nothers; i++)
        pthread_join(other[i].thread, NULL);
}

/* All items of buffers that are to be encoded, and room for what becomes of them. */
static cairn_status list_pieces(crn_gather *g, gather_buffer *const *b, size_t n, group *ret)
{
    size_t fill = 0;
    for (size_t i = 0; i < n; i++) {
        b[i]->nlarge = b[i]->item.n;
        if (!b[i]->encodes)
            continue;
        CRN_TRY(crn_vec_reserve(&ret->piece, b[i]->item.n));
        for (size_t k = 0; k < b[i]->item.n; k++)
            ret->piece.at[ret->piece.n++] = (piece){
                .item = &b[i]->item.at[k],
                .buffer = b[i],
                .nbytes = b[i]->item.at[k].block->nbytes,
            };
        fill += b[i]->fill;
    }
    g->small_data.n = 0;
    CRN_TRY(crn_vec_reserve(&g->small_data, fill));
    ret->data = g->small_data.at;
    return CAIRN_OK;
}

static void count(const piece *p)
{
    crn_codec_counts *c = p->item->encoding.counts;
    if (!p->tried || !c)
        return;
    c->took_ns += p->took_ns;
    crn_codec_count(c, &p->result, p->nbytes);
}

/*
 * Put a buffer's items together again: those that stay as they are, then what was encoded, which
 * takes whole sectors only, not pages; nlarge stay before it.
 */
static cairn_status put_together(crn_gather *g, gather_buffer *b, const piece *p)
{
    uint32_t fill = 0;
    size_t n = 0;
    g->small.n = 0;
    CRN_TRY(crn_vec_reserve(&g->small, b->item.n));
    for (size_t i = 0; i < b->item.n; i++) {
        gather_item it = b->item.at[i];
        if (p[i].made) {
            it.pos = p[i].at;
            g->small.at[g->small.n++] = it;
            continue;
        }
        memmove(b->data + fill, b->data + it.pos, it.room);
        it.pos = fill;
        fill += it.room;
        b->item.at[n++] = it;
    }
    b->nlarge = n;
    for (size_t i = 0; i < g->small.n; i++) {
        gather_item it = g->small.at[i];
        memcpy(b->data + fill, g->small_data.at + it.pos, it.room);
        it.pos = fill;
        fill += it.room;
        b->item.at[n++] = it;
    }
    b->fill = fill;
    b->encodes = false;
    return CAIRN_OK;
}

cairn_status crn_gather_encode(crn_gather *g, gather_buffer *const *b, size_t n)
{
    group all = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    const piece *p;
    cairn_status rc = list_pieces(g, b, n, &all);
    if (rc == CAIRN_OK && all.piece.n > 0) {
        work_all(&all, g->coder, CRN_MAX(g->part->threads, 1U));
        rc = all.status < 0 ? crn_err_give(&all.why) : CAIRN_OK;
    }
    p = all.piece.at;
    for (size_t i = 0; i < n && rc == CAIRN_OK; i++) {
        const size_t nitems = b[i]->encodes ? b[i]->item.n : 0;
        if (nitems == 0)
            continue; /* where nobody has any, there are no pieces to point at */
        for (size_t k = 0; k < nitems; k++)
            count(&p[k]);
        rc = put_together(g, b[i], p);
        p += nitems;
    }
    crn_vec_done(&all.piece);
    return rc;
}
