/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Collectives, blocking and not. Counts are the recorded ones. Where those are known by
 * distribution only, or not one by one (MPI_Alltoallw), a rank takes from its shadows what the
 * others will send.
 */
#include "replay/replay.h"

/* The current event as arguments: of the two pairs of count and type, the last again if there is
 * one; lists of counts for as many as ranks or neighbours, NULL without; a request of NULL if it
 * blocks. */
typedef struct args {
    crn_play_args mpi;
    int size, rank; /* of the communicator */
    int64_t ntype[2];
    size_t ncounts[2];
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
    a->mpi.op = crn_play_op_of(crn_play_value(p, CRN_KIND_OP, 0, CRN_OP_NULL));
    if (y->named && a->mpi.op != MPI_OP_NULL)
        return CAIRN_OK;
    a->mpi.op = MPI_BOR;
    a->mpi.type[0] = MPI_BYTE;
    a->ntype[0] = a->ntype[1] = -1;
    CRN_FAIL_IF((uint64_t)a->mpi.count[0] * y->nbytes > INT32_MAX, CAIRN_EUNSUPPORTED,
                "a reduction of %d elements of %llu bytes is too large to be made again",
                a->mpi.count[0], (unsigned long long)y->nbytes);
    a->mpi.count[0] *= (int)y->nbytes;
    for (size_t i = 0; i < a->ncounts[0]; i++)
        a->mpi.counts[0][i] *= (int)y->nbytes;
    return CAIRN_OK;
}

static void args_done(args *a)
{
    for (int i = 0; i < 2; i++) {
        free(a->mpi.counts[i]);
        free(a->mpi.displs[i]);
    }
}

static void set_displs(args *a, int which)
{
    int at = 0;
    for (size_t i = 0; i < a->ncounts[which]; i++) {
        a->mpi.displs[which][i] = at;
        at += a->mpi.counts[which][i];
    }
}

static cairn_status make_counts(args *a, int which, size_t n)
{
    CRN_TRY(crn_alloc(&a->mpi.counts[which], n));
    CRN_TRY(crn_alloc(&a->mpi.displs[which], n));
    a->ncounts[which] = n;
    return CAIRN_OK;
}

/* The nth list of counts of the event; without one there are none. */
static cairn_status set_counts(crn_player *p, args *a, int which, int nth)
{
    crn_list list = crn_play_list(p, CRN_KIND_LIST, nth);
    CRN_TRY(make_counts(a, which, CRN_MAX(list.n, (size_t)a->size)));
    for (size_t i = 0; i < list.n; i++)
        a->mpi.counts[which][i] = (int)list.at[i];
    set_displs(a, which);
    return CAIRN_OK;
}

/* Elements that a side of the event has in all: what its memory must hold. */
static int64_t elements(const args *a, int which, bool times_size)
{
    int64_t n = 0;
    if (!a->mpi.counts[which])
        return (int64_t)a->mpi.count[which] * (times_size ? a->size : 1);
    for (size_t i = 0; i < a->ncounts[which]; i++)
        n += a->mpi.counts[which][i];
    return n;
}

/* Memory of both sides; what is asked for may be more than is used. */
static cairn_status set_memory(crn_player *p, args *a)
{
    void *send;
    bool inplace = crn_play_value(p, CRN_KIND_INPLACE, 0, 0) != 0;
    const bool scatters = p->e.call->traits & CRN_TRAIT_SCATTERS;
    int64_t nsend = elements(a, 0, true), nrecv = CRN_MAX(elements(a, 1, true), nsend);
    crn_play_slot *slot = NULL;
    int64_t big =
        crn_play_type_of(p, a->ntype[0])->extent > crn_play_type_of(p, a->ntype[1])->extent
            ? a->ntype[0]
            : a->ntype[1];
    CRN_TRY(crn_play_buffer(p, &p->payload, a->ntype[0], nsend, &send));
    if (a->mpi.request) {
        CRN_TRY(crn_play_slot_of(p, crn_play_value(p, CRN_KIND_REQ, 0, CRN_REQ_NULL), &slot));
        CRN_FAIL_IF(!slot, CAIRN_ECORRUPT, "the trace has a collective without its request");
        CRN_TRY(crn_play_slot_clear(p, slot));
        CRN_TRY(crn_play_slot_buffer(p, slot, big, nrecv, &a->mpi.recv));
        a->mpi.request = &slot->request;
    } else {
        CRN_TRY(crn_play_buffer(p, &p->scratch, big, nrecv, &a->mpi.recv));
    }
    a->mpi.send = inplace && !scatters ? MPI_IN_PLACE : send;
    if (inplace && scatters)
        a->mpi.recv = MPI_IN_PLACE;
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
    a->mpi.count[0] = a->mpi.count[1] = most;
}

/* What a member has for this rank, from its list. */
static int for_me(const args *a, const crn_coll_share *s)
{
    return (size_t)a->rank < s->ncounts ? s->counts[a->rank] : 0;
}

static void take_lists(args *a, const crn_meeting *m)
{
    for (size_t i = 0; i < CRN_MIN(m->n, a->ncounts[1]); i++)
        a->mpi.counts[1][i] = m->share[i].counts ? for_me(a, &m->share[i]) : m->share[i].count;
    set_displs(a, 1);
}

static void take_first_list(args *a, const crn_meeting *m)
{
    for (size_t i = 0; i < CRN_MIN(m->share[0].ncounts, a->ncounts[0]); i++)
        a->mpi.counts[0][i] = m->share[0].counts[i];
}

/* Agree with the others, whatever was drawn. */
static void take_shares(args *a, const crn_meeting *m, unsigned traits)
{
    if (traits & (CRN_TRAIT_LISTS_1 | CRN_TRAIT_SUMS))
        take_lists(a, m);
    else if (traits & CRN_TRAIT_LISTS_0 && !(traits & CRN_TRAIT_SCATTERS))
        take_first_list(a, m);
    else if (!(traits & CRN_TRAIT_LISTS_0))
        take_most(a, m);
    else if (a->mpi.root >= 0 && (size_t)a->mpi.root < m->n)
        a->mpi.count[1] = for_me(a, &m->share[a->mpi.root]);
}

/* Bytes in all, but not to whom: as its share says. */
static cairn_status spread(crn_player *p, args *a)
{
    crn_coll_share mine;
    CRN_TRY(crn_share_of(p, &p->e, (size_t)a->size, &mine));
    a->mpi.counts[0] = mine.counts;
    a->ncounts[0] = mine.ncounts;
    CRN_TRY(crn_alloc(&a->mpi.displs[0], a->ncounts[0]));
    set_displs(a, 0);
    a->ntype[0] = a->ntype[1] = -1;
    a->mpi.type[0] = a->mpi.type[1] = MPI_BYTE;
    return make_counts(a, 1, (size_t)a->size);
}

static bool has_list(const crn_traced_event *e, int side)
{
    return e->call->traits & (side == 0 ? CRN_TRAIT_LISTS_0 : CRN_TRAIT_LISTS_1);
}

static cairn_status set_lists(crn_player *p, args *a)
{
    int nth = 0;
    for (int which = 0; which < 2; which++)
        if (has_list(&p->e, which))
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
        a->mpi.count[i] = in_bytes(a->mpi.count[i], nbytes);
        for (size_t k = 0; k < a->ncounts[i]; k++)
            a->mpi.counts[i][k] = in_bytes(a->mpi.counts[i][k], nbytes);
        if (a->mpi.counts[i])
            set_displs(a, i);
        a->ntype[i] = -1;
        a->mpi.type[i] = MPI_BYTE;
    }
}

/* Both sides of a call without lists have one size, but two columns were drawn from. */
static void equalise(args *a, const crn_traced_event *e)
{
    int side = crn_coll_side(e);
    if (e->call->traits & CRN_COLL_LISTS)
        return;
    a->mpi.count[!side] = a->mpi.count[side];
    a->mpi.type[!side] = a->mpi.type[side];
    a->ntype[!side] = a->ntype[side];
}

/* Arguments on which the ranks agree, whatever they have drawn. */
static void settle_args(crn_player *p, args *a, const crn_meeting *m)
{
    const unsigned traits = p->e.call->traits;
    if (crn_event_find(&p->e, CRN_KIND_OP, 0) < 0 && !(traits & CRN_TRAIT_SUMS))
        use_bytes(p, a);
    if (!(traits & CRN_TRAIT_SUMS))
        equalise(a, &p->e);
    take_shares(a, m, traits);
}

/* Between groups the root's own side says who it is by two other words. */
static int root_of(int64_t root)
{
    return root == CRN_PEER_ROOT ? MPI_ROOT : root == CRN_PEER_NULL ? MPI_PROC_NULL : (int)root;
}

static cairn_status set_args(crn_player *p, args *a, const crn_meeting *m)
{
    const bool sums = p->e.call->traits & CRN_TRAIT_SUMS;
    CRN_TRY(crn_play_peers(a->mpi.comm, &a->size));
    CRN_TRY_MPI(MPI_Comm_rank(a->mpi.comm, &a->rank));
    a->mpi.root = root_of(crn_play_value(p, CRN_KIND_ROOT, 0, 0));
    for (int i = 0, nth = 0; i < 2; i++) { /* a side with a list has no count of its own */
        a->ntype[i] = crn_play_value(p, CRN_KIND_TYPE, i, -1);
        a->mpi.type[i] = crn_play_type_of(p, a->ntype[i])->mpi;
        a->mpi.count[i] = has_list(&p->e, i) ? 0 : (int)crn_play_value(p, CRN_KIND_COUNT, nth++, 0);
    }
    CRN_TRY(sums ? spread(p, a) : set_lists(p, a));
    if (p->by_shadows || sums)
        settle_args(p, a, m);
    if (crn_event_find(&p->e, CRN_KIND_OP, 0) >= 0)
        CRN_TRY(set_op(p, a));
    return set_memory(p, a);
}

static bool has_topology(MPI_Comm comm)
{
    int topology = MPI_UNDEFINED;
    MPI_Topo_test(comm, &topology);
    return topology != MPI_UNDEFINED;
}

/* What a non-blocking call uses must stay until it completes. */
static void keep_lists(crn_player *p, args *a)
{
    crn_play_slot *slot = &p->slot.at[crn_play_value(p, CRN_KIND_REQ, 0, 0)];
    slot->kind = CRN_KIND_COMM;
    slot->on = crn_play_value(p, CRN_KIND_COMM, 0, CRN_COMM_NULL);
    for (int i = 0; i < 2; i++) {
        slot->list[2 * i] = a->mpi.counts[i];
        slot->list[2 * i + 1] = a->mpi.displs[i];
        a->mpi.counts[i] = a->mpi.displs[i] = NULL;
    }
}

static cairn_status play_coll(crn_player *p, const crn_meeting *m)
{
    MPI_Request pending = MPI_REQUEST_NULL;
    bool blocking = crn_event_find(&p->e, CRN_KIND_REQ, 0) < 0;
    args a = {
        .mpi = {.comm = crn_play_comm_of(p, crn_play_value(p, CRN_KIND_COMM, 0, CRN_COMM_NULL)),
                .request = blocking ? NULL : &pending}};
    if (a.mpi.comm == MPI_COMM_NULL || (p->by_shadows && crn_play_is_between(a.mpi.comm)) ||
        (p->shadows && !m->all_come) ||
        (p->e.call->traits & CRN_TRAIT_NEIGHBORS && (p->by_shadows || !has_topology(a.mpi.comm)))) {
        crn_play_skip(p);
        return CAIRN_OK;
    }
    cairn_status rc = crn_play_copied(p);
    if (rc == CAIRN_OK)
        rc = set_args(p, &a, m);
    if (rc == CAIRN_OK)
        rc = crn_play_issue_call(p, &a.mpi);
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
