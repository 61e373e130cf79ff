/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What all kinds of communicators share: inheritance of settings, and cutting data of any length
 * into pieces that the kinds can move.
 */
#include "comm/comm_ops.h"

#include <assert.h>
#include <limits.h>

_Static_assert(CRN_COMM_PIECE <= INT_MAX, "a piece is counted by an int");

/* A macro, because a function used in assertions only is unused in a release. */
#define IS_RANK(c, r) ((r) >= 0 && (r) < (c)->size)

int crn_comm_rank(const crn_comm *c)
{
    return c->rank;
}

int crn_comm_size(const crn_comm *c)
{
    return c->size;
}

bool crn_comm_is_threaded(const crn_comm *c)
{
    return c->threaded;
}

void crn_comm_set_patient(crn_comm *c, bool patient)
{
    c->patient = patient;
}

void crn_comm_set_piece(crn_comm *c, size_t nbytes)
{
    assert(nbytes > 0 && nbytes <= CRN_COMM_PIECE);
    c->piece = nbytes;
}

static void inherit(crn_comm *child, const crn_comm *c)
{
    child->threaded = c->threaded;
    child->patient = c->patient;
    child->piece = c->piece;
}

cairn_status crn_comm_dup(crn_comm *c, crn_comm **ret)
{
    CRN_TRY(c->ops->dup(c, ret));
    inherit(*ret, c);
    return CAIRN_OK;
}

void crn_comm_free(crn_comm *c)
{
    if (c)
        c->ops->destroy(c);
}

void crn_comm_abandon(crn_comm *c)
{
    free(c); /* every kind is one allocation */
}

cairn_status crn_comm_barrier(crn_comm *c)
{
    return c->ops->barrier(c);
}

cairn_status crn_comm_bcast(crn_comm *c, void *data, size_t nbytes, int root)
{
    assert(IS_RANK(c, root));
    unsigned char *at = data;
    while (nbytes > 0) {
        size_t n = CRN_MIN(nbytes, c->piece);
        CRN_TRY(c->ops->bcast(c, at, (int)n, root));
        at += n;
        nbytes -= n;
    }
    return CAIRN_OK;
}

/* Where the ranks' bytes lie in a gather's result: all of one length, or at given offsets. */
typedef struct layout {
    size_t nbytes;
    const size_t *off;
} layout;

static size_t off_of(const layout *l, int rank)
{
    return l->off ? l->off[rank] : (size_t)rank * l->nbytes;
}

static size_t nbytes_of(const layout *l, int rank)
{
    return off_of(l, rank + 1) - off_of(l, rank);
}

static void place_own(const crn_comm *c, const void *send, size_t nbytes, unsigned char *recv,
                      const layout *l)
{
    if (nbytes > 0)
        memcpy(recv + off_of(l, c->rank), send, nbytes);
}

/* A gather of more than one piece. Its time goes into moving bytes, so one rank after the other. */
static cairn_status gather_long(crn_comm *c, const void *send, size_t nbytes, int root, void *recv,
                                const layout *l)
{
    if (root != CRN_COMM_ALL && root != c->rank)
        return crn_comm_send(c, send, nbytes, root, CRN_COMM_TAG_MAX);
    unsigned char *to = recv;
    assert(to);
    place_own(c, send, nbytes, to, l);
    for (int i = 0; i < c->size; i++) {
        if (root == CRN_COMM_ALL)
            CRN_TRY(crn_comm_bcast(c, to + off_of(l, i), nbytes_of(l, i), i));
        else if (i != root)
            CRN_TRY(crn_comm_recv(c, to + off_of(l, i), nbytes_of(l, i), i, CRN_COMM_TAG_MAX));
    }
    return CAIRN_OK;
}

cairn_status crn_comm_gather(crn_comm *c, const void *send, size_t nbytes, int root, void *recv)
{
    assert(root == CRN_COMM_ALL || IS_RANK(c, root));
    if (nbytes <= c->piece / (size_t)c->size)
        return c->ops->gather(c, send, (int)nbytes, root, recv);
    return gather_long(c, send, nbytes, root, recv, &(layout){.nbytes = nbytes});
}

/* Lengths of all ranks into offsets of their bytes, and memory for those. */
static cairn_status gathered_init(const crn_comm *c, const uint64_t *len, crn_gathered *g)
{
    CRN_TRY(crn_alloc(&g->off, (size_t)c->size + 1));
    for (int i = 0; i < c->size; i++)
        g->off[i + 1] = g->off[i] + len[i];
    return crn_alloc(&g->data, g->off[c->size]);
}

static cairn_status gatherv_short(crn_comm *c, const void *send, size_t nbytes, int root,
                                  crn_gathered *g, int *nrecv, int *off)
{
    assert(!g->off || (nrecv && off));
    for (int i = 0; g->off && i < c->size; i++) {
        off[i] = (int)g->off[i];
        nrecv[i] = (int)(g->off[i + 1] - g->off[i]);
    }
    return c->ops->gatherv(c, send, (int)nbytes, root, g->data, nrecv, off);
}

cairn_status crn_comm_gatherv(crn_comm *c, const void *send, size_t nbytes, int root,
                              crn_gathered *ret)
{
    assert(root == CRN_COMM_ALL || IS_RANK(c, root));
    bool receives = root == CRN_COMM_ALL || root == c->rank;
    size_t n = receives ? (size_t)c->size : 0;
    uint64_t own = nbytes, total = nbytes, *len = NULL;
    int *narrow = NULL; /* lengths and offsets as MPI wants them */
    crn_gathered g = {0};
    cairn_status rc = crn_alloc(&len, n);
    if (rc == CAIRN_OK)
        rc = crn_alloc(&narrow, 2 * n);
    /* agreed before each step that a rank without memory could not follow */
    CRN_TRY_OUT(rc, crn_comm_agree(c, rc));
    CRN_TRY_OUT(rc, crn_comm_allreduce_u64(c, CRN_REDUCE_SUM, &total, 1));
    CRN_TRY_OUT(rc, crn_comm_gather(c, &own, sizeof own, root, len));
    CRN_TRY_OUT(rc, crn_comm_agree(c, receives ? gathered_init(c, len, &g) : CAIRN_OK));
    if (total <= c->piece)
        CRN_TRY_OUT(rc, gatherv_short(c, send, nbytes, root, &g, narrow, narrow + n));
    else
        CRN_TRY_OUT(rc, gather_long(c, send, nbytes, root, g.data, &(layout){.off = g.off}));
    *ret = g;
out:
    free(len);
    free(narrow);
    if (rc < 0)
        crn_gathered_done(&g);
    return rc;
}

void crn_gathered_done(crn_gathered *g)
{
    free(g->data);
    free(g->off);
    *g = (crn_gathered){0};
}

static cairn_status allreduce(crn_comm *c, crn_number type, crn_reduction op, void *v, size_t n)
{
    const size_t item = sizeof(uint64_t);
    const size_t max = CRN_MAX(c->piece / item, 1);
    unsigned char *at = v;
    while (n > 0) {
        size_t part = CRN_MIN(n, max);
        CRN_TRY(c->ops->allreduce(c, type, op, at, (int)part));
        at += part * item;
        n -= part;
    }
    return CAIRN_OK;
}

cairn_status crn_comm_allreduce_u64(crn_comm *c, crn_reduction op, uint64_t *v, size_t n)
{
    return allreduce(c, CRN_NUMBER_U64, op, v, n);
}

cairn_status crn_comm_allreduce_f64(crn_comm *c, crn_reduction op, double *v, size_t n)
{
    assert(op != CRN_REDUCE_AND);
    return allreduce(c, CRN_NUMBER_F64, op, v, n);
}

static cairn_status start(crn_comm *c, crn_msg msg, crn_msg *ret)
{
    assert(IS_RANK(c, msg.peer) && msg.tag >= 0 && msg.tag <= CRN_COMM_TAG_MAX);
    assert(msg.nbytes <= CRN_COMM_PIECE);
    *ret = msg; /* in place before it starts: the communicator may keep its address */
    return c->ops->start(c, ret);
}

static crn_msg message_to(const void *data, size_t nbytes, int to, int tag)
{
    return (crn_msg){
        .data = (void *)data, .nbytes = nbytes, .peer = to, .tag = tag, .is_send = true};
}

static crn_msg message_from(void *data, size_t nbytes, int from, int tag)
{
    return (crn_msg){.data = data, .nbytes = nbytes, .peer = from, .tag = tag};
}

cairn_status crn_comm_isend(crn_comm *c, const void *data, size_t nbytes, int to, int tag,
                            crn_msg *ret)
{
    return start(c, message_to(data, nbytes, to, tag), ret);
}

cairn_status crn_comm_irecv(crn_comm *c, void *data, size_t nbytes, int from, int tag, crn_msg *ret)
{
    return start(c, message_from(data, nbytes, from, tag), ret);
}

cairn_status crn_comm_wait(crn_comm *c, crn_msg *msg)
{
    return c->ops->wait(c, msg);
}

void crn_comm_cancel(crn_comm *c, crn_msg *msg)
{
    assert(!msg->is_send);
    c->ops->cancel(c, msg);
}

cairn_status crn_comm_end(crn_comm *c, crn_msg *msg, size_t n, cairn_status rc)
{
    for (size_t i = 0; i < n; i++) {
        if (rc < 0 && !msg[i].is_send) {
            crn_comm_cancel(c, &msg[i]);
            continue;
        }
        cairn_status one = crn_comm_wait(c, &msg[i]);
        rc = rc < 0 ? rc : one;
    }
    return rc;
}

/* Both ends of a message cut it alike. */
static cairn_status move(crn_comm *c, crn_msg whole)
{
    for (size_t at = 0; at < whole.nbytes; at += c->piece) {
        crn_msg piece = whole, msg;
        piece.data += at;
        piece.nbytes = CRN_MIN(whole.nbytes - at, c->piece);
        CRN_TRY(start(c, piece, &msg));
        CRN_TRY(crn_comm_wait(c, &msg));
    }
    return CAIRN_OK;
}

cairn_status crn_comm_send(crn_comm *c, const void *data, size_t nbytes, int to, int tag)
{
    return move(c, message_to(data, nbytes, to, tag));
}

cairn_status crn_comm_recv(crn_comm *c, void *data, size_t nbytes, int from, int tag)
{
    return move(c, message_from(data, nbytes, from, tag));
}
