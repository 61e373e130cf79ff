/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What an event means: how many bytes it moved, and which messages it sent or is to receive, by
 * the kinds of its columns, not call by call.
 *
 * The rule for collectives: bytes are those that the rank gives, all that its send buffer has for
 * the others and itself; in place, the part of the receive buffer that stands for it. Ranks of a
 * broadcast or a scatter count what they get.
 */
#include "traceview/traceview.h"

typedef struct amount {
    uint64_t nbytes;
    int64_t step;
} amount;

static uint64_t type_nbytes(const crn_trace *t, int64_t type)
{
    return (uint64_t)type < t->ntypes ? t->type[type].nbytes : 0;
}

static amount amount_at(const crn_traced_event *e, const int64_t *step, int i, uint64_t unit)
{
    if (e->value[i] < 0)
        return (amount){0};
    return (amount){(uint64_t)e->value[i] * unit, step ? step[i] * (int64_t)unit : 0};
}

/* The pair of count (or total) and type that begins at or after *i; *i is left after it. */
static bool next_amount(const crn_trace *t, const crn_traced_event *e, const int64_t *step, int *i,
                        amount *ret)
{
    for (; *i < e->ncolumns; (*i)++) {
        unsigned kind = e->kind[*i];
        if (kind == CRN_KIND_COUNT || kind == CRN_KIND_TOTAL) {
            int type = crn_event_find(e, CRN_KIND_TYPE, *i);
            *ret = amount_at(e, step, *i, type < 0 ? 1 : type_nbytes(t, e->value[type]));
            *i = type < 0 ? e->ncolumns : type + 1;
            return true;
        }
        if (kind == CRN_KIND_BYTES) {
            int moved = crn_event_find(e, CRN_KIND_MOVED, *i);
            *ret = amount_at(e, step, moved < 0 ? *i : moved, 1);
            *i = moved < 0 ? *i + 1 : e->ncolumns;
            return true;
        }
    }
    return false;
}

static int64_t world_rank(int64_t peer, const crn_comm_view *comm)
{
    if (peer < 0 || !comm->world)
        return peer;
    return peer < comm->size ? comm->world[peer] : CRN_PEER_NONE;
}

/* To MPI_PROC_NULL goes nothing, and nothing comes from there. */
static bool is_nobody(const crn_traced_event *e, int column)
{
    return column >= 0 && e->value[column] == CRN_PEER_NULL;
}

/* Each peer has its own amount, but for MPI_Sendrecv_replace. */
void crn_messages_of(crn_meaning *m, const crn_bind *b, const crn_traced_event *e,
                     const crn_comm_view *comm, const int64_t *step)
{
    amount a = {0};
    int at = 0;
    const bool sends = crn_call_has(e->place->call, CRN_TRAIT_SENDS);
    const uint64_t identity = crn_bind_identity(b, e);
    for (int i = crn_event_find(e, CRN_KIND_PEER, 0); i >= 0 && m->nmessages < CRN_MESSAGES_FEW;
         i = crn_event_find(e, CRN_KIND_PEER, i + 1)) {
        const int tag = crn_event_find(e, CRN_KIND_TAG, i);
        next_amount(b->t, e, step, &at, &a);
        if (is_nobody(e, i))
            a = (amount){0};
        m->few[m->nmessages] = (cairn_trace_message){.sent = sends && m->nmessages == 0,
                                                     .peer = world_rank(e->value[i], comm),
                                                     .tag = tag < 0 ? CRN_TAG_ANY : e->value[tag],
                                                     .comm = identity,
                                                     .nbytes = a.nbytes,
                                                     .nbytes_step = a.step};
        m->nmessages++;
    }
}

static cairn_status add_started(crn_meaning *m, const crn_bind *b, int64_t number)
{
    if (number < 0 || (size_t)number >= b->request.n || !b->request.at[number].known)
        return CAIRN_OK;
    const crn_bound_request *r = &b->request.at[number];
    if (!r->collective)
        CRN_TRY(crn_vec_push(&m->many, (cairn_trace_message){.sent = r->sent,
                                                             .peer = r->peer,
                                                             .nbytes = r->nbytes,
                                                             .tag = r->tag,
                                                             .comm = r->comm}));
    m->nmessages = m->many.n;
    m->nbytes += r->sent ? r->nbytes : 0;
    return CAIRN_OK;
}

static cairn_status start_requests(crn_meaning *m, const crn_bind *b, const crn_traced_event *e)
{
    int one = crn_event_find(e, CRN_KIND_REQ, 0), many = crn_event_find(e, CRN_KIND_REQS, 0);
    if (one >= 0)
        CRN_TRY(add_started(m, b, e->value[one]));
    for (size_t i = 0; many >= 0 && i < e->list[many].n; i++)
        CRN_TRY(add_started(m, b, e->list[many].at[i]));
    return CAIRN_OK;
}

/* What the rank's own entry of a list of counts comes to. */
static amount own_amount(const crn_trace *t, const crn_traced_event *e, const crn_comm_view *comm,
                         int list)
{
    const int type = crn_event_find(e, CRN_KIND_TYPE, list);
    if (comm->rank < 0 || (size_t)comm->rank >= e->list[list].n || type < 0)
        return (amount){0};
    return (amount){(uint64_t)e->list[list].at[comm->rank] * type_nbytes(t, e->value[type]), 0};
}

/* Of a rank whose buffer is MPI_IN_PLACE: the other side has its part. */
static amount in_place_amount(const crn_trace *t, const crn_traced_event *e,
                              const crn_comm_view *comm, const int64_t *step)
{
    const uint32_t call = e->place->call;
    const bool scatters = crn_call_has(call, CRN_TRAIT_SCATTERS);
    const bool both =
        crn_call_has(call, CRN_TRAIT_LISTS_0) && crn_call_has(call, CRN_TRAIT_LISTS_1);
    amount a = {0}, other = {0};
    int at = 0, list = crn_event_find(e, CRN_KIND_LIST, 0);
    if (list >= 0 && !both && !crn_call_has(call, CRN_TRAIT_SUMS | CRN_TRAIT_EACH) &&
        crn_event_find(e, CRN_KIND_OP, 0) < 0)
        return own_amount(t, e, comm, list);
    next_amount(t, e, step, &at, &a);
    if (!scatters && next_amount(t, e, step, &at, &other))
        return other;
    return a;
}

static amount collective_amount(const crn_bind *b, const crn_traced_event *e,
                                const crn_comm_view *comm, const int64_t *step)
{
    const uint32_t call = e->place->call;
    const int in_place = crn_event_find(e, CRN_KIND_INPLACE, 0);
    const uint64_t targets = crn_call_has(call, CRN_TRAIT_EACH) ? crn_bind_targets(b, e) : 1;
    amount a = {0};
    int at = 0;
    if (in_place >= 0 && e->value[in_place])
        a = in_place_amount(b->t, e, comm, step);
    else
        while (next_amount(b->t, e, step, &at, &a) && crn_call_has(call, CRN_TRAIT_SCATTERS))
            continue; /* what a rank gets of a scatter is its second pair of count and type */
    return (amount){a.nbytes * targets, a.step * (int64_t)targets};
}

uint64_t crn_collective_nbytes(const crn_bind *b, const crn_traced_event *e,
                               const crn_comm_view *comm)
{
    return collective_amount(b, e, comm, NULL).nbytes;
}

cairn_status crn_meaning_of(crn_meaning *m, const crn_bind *b, const crn_traced_event *e,
                            const crn_comm_view *comm, const int64_t *step)
{
    uint32_t call = e->place->call;
    int at = 0;
    amount a = {0};
    m->nbytes = 0;
    m->nbytes_step = 0;
    m->nmessages = 0;
    m->many.n = 0;
    if (crn_call_has(call, CRN_TRAIT_STARTS))
        return start_requests(m, b, e);
    if (crn_call_has(call, CRN_TRAIT_PREPARES | CRN_TRAIT_PROBES)) /* which move nothing */
        return CAIRN_OK;
    if (e->call->layer == CRN_LAYER_P2P)
        crn_messages_of(m, b, e, comm, step);
    if (is_nobody(e, crn_event_find(e, CRN_KIND_PEER, 0)))
        return CAIRN_OK;
    if (e->call->layer == CRN_LAYER_COLL)
        a = collective_amount(b, e, comm, step);
    else
        next_amount(b->t, e, step, &at, &a);
    m->nbytes = a.nbytes;
    m->nbytes_step = a.step;
    return CAIRN_OK;
}

void crn_meaning_done(crn_meaning *m)
{
    crn_vec_done(&m->many);
}
