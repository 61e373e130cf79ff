/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Collectives, blocking and not. Counts are the recorded ones. Where those are known by
 * distribution only, or not one by one (MPI_Alltoallw), a rank takes from its shadows what the
 * others will send.
 */
#include "replay/replay.h"

/* The current event as arguments. */
typedef struct args {
    MPI_Comm comm;
    int size, rank; /* of comm */
    int root;
    const void *send; /* random, or MPI_IN_PLACE */
    void *recv;
    int count[2]; /* of the two pairs of count and type; the last again if there is one */
    MPI_Datatype type[2];
    int64_t ntype[2];
    int *counts[2]; /* of the lists, as many as ranks or neighbours; NULL without */
    int *displs[2];
    size_t ncounts[2];
    MPI_Op op;
    MPI_Request *request; /* NULL: blocking */
} args;

MPI_Op crn_play_op_of(int64_t op)
{
    const MPI_Op known[] = {MPI_MAX,    MPI_MIN,    MPI_SUM,     MPI_PROD, MPI_LAND,
                            MPI_BAND,   MPI_LOR,    MPI_BOR,     MPI_LXOR, MPI_BXOR,
                            MPI_MAXLOC, MPI_MINLOC, MPI_REPLACE, MPI_NO_OP};
    return op >= 0 && op < CRN_OP_USER ? known[op] : MPI_OP_NULL;
}

/* An operation of the program's own, or on its own types, is a bitwise or of as many bytes. */
static cairn_status set_op(crn_player *p, args *a)
{
    const crn_play_type *y = crn_play_type_of(p, a->ntype[0]);
    a->op = crn_play_op_of(crn_play_value(p, CRN_KIND_OP, 0, CRN_OP_NULL));
    if (y->named && a->op != MPI_OP_NULL)
        return CAIRN_OK;
    a->op = MPI_BOR;
    a->type[0] = MPI_BYTE;
    a->ntype[0] = a->ntype[1] = -1;
    CRN_FAIL_IF((uint64_t)a->count[0] * y->nbytes > INT32_MAX, CAIRN_EUNSUPPORTED,
                "a reduction of %d elements of %llu bytes is too large to be made again",
                a->count[0], (unsigned long long)y->nbytes);
    a->count[0] *= (int)y->nbytes;
    for (size_t i = 0; i < a->ncounts[0]; i++)
        a->counts[0][i] *= (int)y->nbytes;
    return CAIRN_OK;
}

static void args_done(args *a)
{
    for (int i = 0; i < 2; i++) {
        free(a->counts[i]);
        free(a->displs[i]);
    }
}

static void set_displs(args *a, int which)
{
    int at = 0;
    for (size_t i = 0; i < a->ncounts[which]; i++) {
        a->displs[which][i] = at;
        at += a->counts[which][i];
    }
}

static cairn_status make_counts(args *a, int which, size_t n)
{
    CRN_TRY(crn_alloc(&a->counts[which], n));
    CRN_TRY(crn_alloc(&a->displs[which], n));
    a->ncounts[which] = n;
    return CAIRN_OK;
}

/* The nth list of counts of the event; without one there are none. */
static cairn_status set_counts(crn_player *p, args *a, int which, int nth)
{
    crn_list list = crn_play_list(p, CRN_KIND_LIST, nth);
    CRN_TRY(make_counts(a, which, CRN_MAX(list.n, (size_t)a->size)));
    for (size_t i = 0; i < list.n; i++)
        a->counts[which][i] = (int)list.at[i];
    set_displs(a, which);
    return CAIRN_OK;
}

/* Elements that a side of the event has in all: what its memory must hold. */
static int64_t elements(const args *a, int which, bool times_size)
{
    int64_t n = 0;
    if (!a->counts[which])
        return (int64_t)a->count[which] * (times_size ? a->size : 1);
    for (size_t i = 0; i < a->ncounts[which]; i++)
        n += a->counts[which][i];
    return n;
}

/* Memory of both sides; what is asked for may be more than is used. */
static cairn_status set_memory(crn_player *p, args *a)
{
    void *send;
    bool inplace = crn_play_value(p, CRN_KIND_INPLACE, 0, 0) != 0;
    uint32_t call = p->e.place->call;
    bool scatters = call == CRN_CALL_MPI_Scatter || call == CRN_CALL_MPI_Iscatter ||
                    call == CRN_CALL_MPI_Scatterv || call == CRN_CALL_MPI_Iscatterv;
    int64_t nsend = elements(a, 0, true), nrecv = CRN_MAX(elements(a, 1, true), nsend);
    crn_play_slot *slot = NULL;
    int64_t big =
        crn_play_type_of(p, a->ntype[0])->extent > crn_play_type_of(p, a->ntype[1])->extent
            ? a->ntype[0]
            : a->ntype[1];
    CRN_TRY(crn_play_buffer(p, &p->payload, a->ntype[0], nsend, &send));
    if (a->request) {
        CRN_TRY(crn_play_slot_of(p, crn_play_value(p, CRN_KIND_REQ, 0, CRN_REQ_NULL), &slot));
        CRN_FAIL_IF(!slot, CAIRN_ECORRUPT, "the trace has a collective without its request");
        CRN_TRY(crn_play_slot_clear(p, slot));
        CRN_TRY(crn_play_slot_buffer(p, slot, big, nrecv, &a->recv));
        a->request = &slot->request;
    } else {
        CRN_TRY(crn_play_buffer(p, &p->scratch, big, nrecv, &a->recv));
    }
    a->send = inplace && !scatters ? MPI_IN_PLACE : send;
    if (inplace && scatters)
        a->recv = MPI_IN_PLACE;
    return CAIRN_OK;
}

/* ---- what the others send ---- */

/*
 * One count on all ranks, where MPI wants that: ranks that call at different places of the program,
 * or some of them more often, draw different ones.
 */
static void take_most(args *a, const crn_meeting *m)
{
    int most = 0;
    for (size_t i = 0; i < m->n; i++)
        most = CRN_MAX(most, m->share[i].count);
    a->count[0] = a->count[1] = most;
}

/* What a member has for this rank, from its list. */
static int for_me(const args *a, const crn_share *s)
{
    return (size_t)a->rank < s->ncounts ? s->counts[a->rank] : 0;
}

static void take_lists(args *a, const crn_meeting *m)
{
    for (size_t i = 0; i < CRN_MIN(m->n, a->ncounts[1]); i++)
        a->counts[1][i] = m->share[i].counts ? for_me(a, &m->share[i]) : m->share[i].count;
    set_displs(a, 1);
}

static void take_first_list(args *a, const crn_meeting *m)
{
    for (size_t i = 0; i < CRN_MIN(m->share[0].ncounts, a->ncounts[0]); i++)
        a->counts[0][i] = m->share[0].counts[i];
}

/* Agree with the others, whatever was drawn. */
static void take_shares(args *a, const crn_meeting *m, uint32_t call)
{
    switch (call) {
    case CRN_CALL_MPI_Gatherv:
    case CRN_CALL_MPI_Igatherv:
    case CRN_CALL_MPI_Allgatherv:
    case CRN_CALL_MPI_Iallgatherv:
    case CRN_CALL_MPI_Alltoallv:
    case CRN_CALL_MPI_Ialltoallv:
    case CRN_CALL_MPI_Alltoallw:
    case CRN_CALL_MPI_Ialltoallw:
        take_lists(a, m);
        break;
    case CRN_CALL_MPI_Scatterv:
    case CRN_CALL_MPI_Iscatterv:
        if (a->root >= 0 && (size_t)a->root < m->n)
            a->count[1] = for_me(a, &m->share[a->root]);
        break;
    case CRN_CALL_MPI_Reduce_scatter:
    case CRN_CALL_MPI_Ireduce_scatter:
        take_first_list(a, m);
        break;
    default:
        take_most(a, m);
    }
}

/* Bytes in all, but not to whom: as its share says. */
static cairn_status spread(crn_player *p, args *a)
{
    crn_share mine;
    CRN_TRY(crn_share_of(p, &p->e, (size_t)a->size, &mine));
    a->counts[0] = mine.counts;
    a->ncounts[0] = mine.ncounts;
    CRN_TRY(crn_alloc(&a->displs[0], a->ncounts[0]));
    set_displs(a, 0);
    a->ntype[0] = a->ntype[1] = -1;
    a->type[0] = a->type[1] = MPI_BYTE;
    return make_counts(a, 1, (size_t)a->size);
}

static cairn_status set_lists(crn_player *p, args *a)
{
    int sides = crn_coll_lists(p->e.place->call), nth = 0;
    for (int which = 0; which < 2; which++)
        if (sides & 1 << which)
            CRN_TRY(set_counts(p, a, which, nth++));
    return CAIRN_OK;
}

static int in_bytes(int count, uint64_t nbytes)
{
    return (int)CRN_MIN((uint64_t)count * nbytes, INT32_MAX);
}

/*
 * Counts that come from another rank mean the same everywhere: bytes. Only reductions keep their
 * type, which is the same on all ranks.
 */
static void use_bytes(crn_player *p, args *a)
{
    for (int i = 0; i < 2; i++) {
        const uint64_t nbytes = crn_play_type_of(p, a->ntype[i])->nbytes;
        a->count[i] = in_bytes(a->count[i], nbytes);
        for (size_t k = 0; k < a->ncounts[i]; k++)
            a->counts[i][k] = in_bytes(a->counts[i][k], nbytes);
        if (a->counts[i])
            set_displs(a, i);
        a->ntype[i] = -1;
        a->type[i] = MPI_BYTE;
    }
}

/* Both sides of a call without lists have one size, but two columns were drawn from. */
static void equalise(args *a, const crn_event *e)
{
    int side = crn_coll_side(e);
    if (crn_coll_lists(e->place->call))
        return;
    a->count[!side] = a->count[side];
    a->type[!side] = a->type[side];
    a->ntype[!side] = a->ntype[side];
}

/* Arguments on which the ranks agree, whatever they have drawn. */
static void settle_args(crn_player *p, args *a, const crn_meeting *m)
{
    uint32_t call = p->e.place->call;
    if (crn_event_find(&p->e, CRN_KIND_OP, 0) < 0 && !crn_coll_is_alltoallw(call))
        use_bytes(p, a);
    if (!crn_coll_is_alltoallw(call))
        equalise(a, &p->e);
    take_shares(a, m, call);
}

/* Between groups the root's own side says who it is by two other words. */
static int root_of(int64_t root)
{
    return root == CRN_PEER_ROOT ? MPI_ROOT : root == CRN_PEER_NULL ? MPI_PROC_NULL : (int)root;
}

static cairn_status set_args(crn_player *p, args *a, const crn_meeting *m)
{
    uint32_t call = p->e.place->call;
    int sides = crn_coll_lists(call);
    CRN_TRY(crn_play_peers(a->comm, &a->size));
    CRN_TRY_MPI(MPI_Comm_rank(a->comm, &a->rank));
    a->root = root_of(crn_play_value(p, CRN_KIND_ROOT, 0, 0));
    for (int i = 0, nth = 0; i < 2; i++) { /* a side with a list has no count of its own */
        a->ntype[i] = crn_play_value(p, CRN_KIND_TYPE, i, -1);
        a->type[i] = crn_play_type_of(p, a->ntype[i])->mpi;
        a->count[i] = sides & 1 << i ? 0 : (int)crn_play_value(p, CRN_KIND_COUNT, nth++, 0);
    }
    CRN_TRY(crn_coll_is_alltoallw(call) ? spread(p, a) : set_lists(p, a));
    if (p->by_shadows || crn_coll_is_alltoallw(call))
        settle_args(p, a, m);
    if (crn_event_find(&p->e, CRN_KIND_OP, 0) >= 0)
        CRN_TRY(set_op(p, a));
    return set_memory(p, a);
}

/* ---- the calls ---- */

#define BOTH(blocking, other, ...)                                                                 \
    (a->request ? other(__VA_ARGS__, a->request) : blocking(__VA_ARGS__))

static int rooted(const args *a, uint32_t call)
{
    switch (call) {
    case CRN_CALL_MPI_Bcast:
    case CRN_CALL_MPI_Ibcast: /* the root's data is what the others get: one buffer for both */
        return BOTH(MPI_Bcast, MPI_Ibcast, a->recv, a->count[0], a->type[0], a->root, a->comm);
    case CRN_CALL_MPI_Reduce:
    case CRN_CALL_MPI_Ireduce:
        return BOTH(MPI_Reduce, MPI_Ireduce, a->send, a->recv, a->count[0], a->type[0], a->op,
                    a->root, a->comm);
    case CRN_CALL_MPI_Gather:
    case CRN_CALL_MPI_Igather:
        return BOTH(MPI_Gather, MPI_Igather, a->send, a->count[0], a->type[0], a->recv, a->count[1],
                    a->type[1], a->root, a->comm);
    case CRN_CALL_MPI_Gatherv:
    case CRN_CALL_MPI_Igatherv:
        return BOTH(MPI_Gatherv, MPI_Igatherv, a->send, a->count[0], a->type[0], a->recv,
                    a->counts[1], a->displs[1], a->type[1], a->root, a->comm);
    case CRN_CALL_MPI_Scatter:
    case CRN_CALL_MPI_Iscatter:
        return BOTH(MPI_Scatter, MPI_Iscatter, a->send, a->count[0], a->type[0], a->recv,
                    a->count[1], a->type[1], a->root, a->comm);
    default: /* MPI_Scatterv, MPI_Iscatterv */
        return BOTH(MPI_Scatterv, MPI_Iscatterv, a->send, a->counts[0], a->displs[0], a->type[0],
                    a->recv, a->count[1], a->type[1], a->root, a->comm);
    }
}

static int reducing(const args *a, uint32_t call)
{
    switch (call) {
    case CRN_CALL_MPI_Allreduce:
    case CRN_CALL_MPI_Iallreduce:
        return BOTH(MPI_Allreduce, MPI_Iallreduce, a->send, a->recv, a->count[0], a->type[0], a->op,
                    a->comm);
    case CRN_CALL_MPI_Reduce_scatter:
    case CRN_CALL_MPI_Ireduce_scatter:
        return BOTH(MPI_Reduce_scatter, MPI_Ireduce_scatter, a->send, a->recv, a->counts[0],
                    a->type[0], a->op, a->comm);
    case CRN_CALL_MPI_Reduce_scatter_block:
    case CRN_CALL_MPI_Ireduce_scatter_block:
        return BOTH(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, a->send, a->recv,
                    a->count[0], a->type[0], a->op, a->comm);
    case CRN_CALL_MPI_Scan:
    case CRN_CALL_MPI_Iscan:
        return BOTH(MPI_Scan, MPI_Iscan, a->send, a->recv, a->count[0], a->type[0], a->op, a->comm);
    default: /* MPI_Exscan, MPI_Iexscan */
        return BOTH(MPI_Exscan, MPI_Iexscan, a->send, a->recv, a->count[0], a->type[0], a->op,
                    a->comm);
    }
}

static int exchanging(const args *a, uint32_t call)
{
    switch (call) {
    case CRN_CALL_MPI_Barrier:
        return MPI_Barrier(a->comm);
    case CRN_CALL_MPI_Ibarrier:
        return MPI_Ibarrier(a->comm, a->request);
    case CRN_CALL_MPI_Allgather:
    case CRN_CALL_MPI_Iallgather:
        return BOTH(MPI_Allgather, MPI_Iallgather, a->send, a->count[0], a->type[0], a->recv,
                    a->count[1], a->type[1], a->comm);
    case CRN_CALL_MPI_Allgatherv:
    case CRN_CALL_MPI_Iallgatherv:
        return BOTH(MPI_Allgatherv, MPI_Iallgatherv, a->send, a->count[0], a->type[0], a->recv,
                    a->counts[1], a->displs[1], a->type[1], a->comm);
    case CRN_CALL_MPI_Alltoall:
    case CRN_CALL_MPI_Ialltoall:
        return BOTH(MPI_Alltoall, MPI_Ialltoall, a->send, a->count[0], a->type[0], a->recv,
                    a->count[1], a->type[1], a->comm);
    default: /* MPI_Alltoallv, MPI_Ialltoallv, and MPI_Alltoallw by bytes */
        return BOTH(MPI_Alltoallv, MPI_Ialltoallv, a->send, a->counts[0], a->displs[0], a->type[0],
                    a->recv, a->counts[1], a->displs[1], a->type[1], a->comm);
    }
}

static int neighboring(const args *a, uint32_t call)
{
    switch (call) {
    case CRN_CALL_MPI_Neighbor_allgather:
    case CRN_CALL_MPI_Ineighbor_allgather:
        return BOTH(MPI_Neighbor_allgather, MPI_Ineighbor_allgather, a->send, a->count[0],
                    a->type[0], a->recv, a->count[1], a->type[1], a->comm);
    case CRN_CALL_MPI_Neighbor_allgatherv:
    case CRN_CALL_MPI_Ineighbor_allgatherv:
        return BOTH(MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv, a->send, a->count[0],
                    a->type[0], a->recv, a->counts[1], a->displs[1], a->type[1], a->comm);
    case CRN_CALL_MPI_Neighbor_alltoall:
    case CRN_CALL_MPI_Ineighbor_alltoall:
        return BOTH(MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall, a->send, a->count[0], a->type[0],
                    a->recv, a->count[1], a->type[1], a->comm);
    default: /* MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, and MPI_Neighbor_alltoallw by bytes
              */
        return BOTH(MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, a->send, a->counts[0],
                    a->displs[0], a->type[0], a->recv, a->counts[1], a->displs[1], a->type[1],
                    a->comm);
    }
}

static bool is_rooted(uint32_t call)
{
    return (call >= CRN_CALL_MPI_Bcast && call <= CRN_CALL_MPI_Reduce) ||
           (call >= CRN_CALL_MPI_Gather && call <= CRN_CALL_MPI_Scatterv) ||
           (call >= CRN_CALL_MPI_Ibcast && call <= CRN_CALL_MPI_Ireduce) ||
           (call >= CRN_CALL_MPI_Igather && call <= CRN_CALL_MPI_Iscatterv);
}

static bool is_neighboring(uint32_t call)
{
    return (call >= CRN_CALL_MPI_Neighbor_allgather && call <= CRN_CALL_MPI_Ineighbor_alltoallv) ||
           call == CRN_CALL_MPI_Neighbor_alltoallw || call == CRN_CALL_MPI_Ineighbor_alltoallw;
}

static bool has_topology(MPI_Comm comm)
{
    int topology = MPI_UNDEFINED;
    MPI_Topo_test(comm, &topology);
    return topology != MPI_UNDEFINED;
}

static int issue(const args *a, const crn_event *e)
{
    uint32_t call = e->place->call;
    if (is_neighboring(call))
        return neighboring(a, call);
    if (is_rooted(call))
        return rooted(a, call);
    return crn_event_find(e, CRN_KIND_OP, 0) >= 0 ? reducing(a, call) : exchanging(a, call);
}

/* What a non-blocking call uses must stay until it completes. */
static void keep_lists(crn_player *p, args *a)
{
    crn_play_slot *slot = &p->slot.at[crn_play_value(p, CRN_KIND_REQ, 0, 0)];
    slot->kind = CRN_KIND_COMM;
    slot->on = crn_play_value(p, CRN_KIND_COMM, 0, CRN_COMM_NULL);
    for (int i = 0; i < 2; i++) {
        slot->list[2 * i] = a->counts[i];
        slot->list[2 * i + 1] = a->displs[i];
        a->counts[i] = a->displs[i] = NULL;
    }
}

static cairn_status play_coll(crn_player *p, const crn_meeting *m)
{
    MPI_Request pending = MPI_REQUEST_NULL;
    bool blocking = crn_event_find(&p->e, CRN_KIND_REQ, 0) < 0;
    args a = {.comm = crn_play_comm_of(p, crn_play_value(p, CRN_KIND_COMM, 0, CRN_COMM_NULL)),
              .request = blocking ? NULL : &pending};
    if (a.comm == MPI_COMM_NULL || (p->by_shadows && crn_play_is_between(a.comm)) ||
        (p->shadows && !m->all_come) ||
        (is_neighboring(p->e.place->call) && (p->by_shadows || !has_topology(a.comm)))) {
        crn_play_skip(p);
        return CAIRN_OK;
    }
    cairn_status rc = crn_play_copied(p);
    if (rc == CAIRN_OK)
        rc = set_args(p, &a, m);
    if (rc == CAIRN_OK)
        rc = crn_play_mpi(issue(&a, &p->e), p->e.call->name);
    if (rc == CAIRN_OK && !blocking)
        keep_lists(p, &a);
    args_done(&a);
    return rc;
}

cairn_status crn_play_coll(crn_player *p)
{
    crn_meeting m = {0};
    cairn_status rc = p->shadows ? crn_shadows_meet(p, &m) : CAIRN_OK;
    if (rc == CAIRN_OK && p->by_shadows && m.all_come && m.in_step)
        rc = crn_shadows_settle(p);
    if (rc == CAIRN_OK)
        rc = play_coll(p, &m);
    crn_meeting_done(&m);
    return rc;
}
