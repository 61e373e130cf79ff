/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A communicator of this process alone, without MPI. Collectives are copies; a message to oneself
 * is copied when its other half is started.
 */
#include "comm/comm_ops.h"

typedef struct self_comm {
    crn_comm base;
    crn_msg *waiting; /* started, without their other half, oldest first */
} self_comm;

static const crn_comm_ops self_ops;

cairn_status crn_comm_create_self(crn_comm **ret)
{
    self_comm *c;
    CRN_TRY(crn_alloc(&c, 1));
    c->base = (crn_comm){.ops = &self_ops, .size = 1, .threaded = true, .piece = CRN_COMM_PIECE};
    *ret = &c->base;
    return CAIRN_OK;
}

static cairn_status self_dup(crn_comm *c, crn_comm **ret)
{
    (void)c;
    return crn_comm_create_self(ret);
}

static void self_destroy(crn_comm *c)
{
    free(c);
}

static cairn_status self_leader(crn_comm *c, int *ret)
{
    *ret = c->rank;
    return CAIRN_OK;
}

static cairn_status self_barrier(crn_comm *c)
{
    (void)c;
    return CAIRN_OK;
}

static cairn_status self_bcast(crn_comm *c, void *data, int nbytes, int root)
{
    (void)c, (void)data, (void)nbytes, (void)root;
    return CAIRN_OK;
}

static cairn_status self_gather(crn_comm *c, const void *send, int nbytes, int root, void *recv)
{
    (void)c, (void)root;
    if (nbytes > 0)
        memcpy(recv, send, (size_t)nbytes);
    return CAIRN_OK;
}

static cairn_status self_gatherv(crn_comm *c, const void *send, int nbytes, int root, void *recv,
                                 const int *nrecv, const int *off)
{
    (void)nrecv, (void)off; /* of one rank: all bytes, at 0 */
    return self_gather(c, send, nbytes, root, recv);
}

static cairn_status self_allreduce(crn_comm *c, crn_number type, crn_reduction op, void *v, int n)
{
    (void)c, (void)type, (void)op, (void)v, (void)n;
    return CAIRN_OK;
}

/* The place of the oldest message that msg completes, or the list's end. */
static crn_msg **other_half(self_comm *self, const crn_msg *msg)
{
    crn_msg **at = &self->waiting;
    while (*at && ((*at)->is_send == msg->is_send || (*at)->tag != msg->tag))
        at = &(*at)->link.next;
    return at;
}

static cairn_status self_start(crn_comm *c, crn_msg *msg)
{
    self_comm *self = (self_comm *)c;
    crn_msg **at = other_half(self, msg), *other = *at;
    if (!other) {
        *at = msg;
        return CAIRN_OK;
    }
    *at = other->link.next;
    const crn_msg *from = msg->is_send ? msg : other, *to = msg->is_send ? other : msg;
    size_t n = CRN_MIN(from->nbytes, to->nbytes);
    if (n > 0)
        memcpy(to->data, from->data, n);
    /* a receive that got another length than it expects says so in its wait, as with MPI */
    msg->done = msg->is_send || from->nbytes == to->nbytes;
    other->done = other->is_send || from->nbytes == to->nbytes;
    return CAIRN_OK;
}

static void self_cancel(crn_comm *c, crn_msg *msg)
{
    for (crn_msg **at = &((self_comm *)c)->waiting; *at; at = &(*at)->link.next)
        if (*at == msg) {
            *at = msg->link.next;
            return;
        }
}

/* Waiting for what this process alone could have done and has not would be forever. */
static cairn_status self_wait(crn_comm *c, crn_msg *msg)
{
    if (msg->done)
        return CAIRN_OK;
    self_cancel(c, msg);
    return crn_fail(CAIRN_EINTERNAL, "a message of %zu bytes with tag %d to oneself has no %s",
                    msg->nbytes, msg->tag, msg->is_send ? "receive" : "send of that length");
}

static const crn_comm_ops self_ops = {
    .dup = self_dup,
    .destroy = self_destroy,
    .leader = self_leader,
    .barrier = self_barrier,
    .bcast = self_bcast,
    .gather = self_gather,
    .gatherv = self_gatherv,
    .allreduce = self_allreduce,
    .start = self_start,
    .wait = self_wait,
    .cancel = self_cancel,
};
