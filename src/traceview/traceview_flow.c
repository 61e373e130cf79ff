/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which receive gets which message: the k-th send to a rank with a tag and a communicator meets the
 * k-th receive of such a message, since messages do not overtake each other. So both sides give a
 * message the same number without knowing of each other. Of a receive of any source or tag it is
 * known when it is done what it got: by @match.
 *
 * Nothing is said where the order of sends is not that of the trace: of lossy or incomplete traces,
 * and of programs with several threads.
 */
#include "traceview/traceview.h"

enum { REQUESTS_MAX = 1 << 20 };

/* Who, with what: the same on both sides. */
typedef struct line {
    uint64_t comm;
    int64_t from, to, tag;
} line;

/* A receive that is under way. */
typedef struct receive {
    bool active, wild;
    uint64_t id;  /* of its message, unless it is wild */
    int64_t comm; /* number of its communicator */
} receive;

typedef struct count {
    uint64_t line; /* hash, 0: free */
    uint64_t n;
} count;

struct crn_flows {
    bool known;
    CRN_VEC(receive) request;   /* by number */
    CRN_VEC(int64_t) unmatched; /* communicators of wild receives that are done, by @match next */
    CRN_VEC(cairn_trace_flow) flow; /* of the event */
    count *slot;                    /* of the rank's lines, sends and receives apart */
    size_t nslots, n;
};

cairn_status crn_flows_open(const crn_trace *t, crn_flows **ret)
{
    CRN_TRY(crn_alloc(ret, 1));
    (*ret)->known = t->precision == 100 && t->nlanes == 1 && crn_trace_complete(t);
    return CAIRN_OK;
}

void crn_flows_begin(crn_flows *f)
{
    f->request.n = f->unmatched.n = f->n = 0;
    if (f->nslots > 0)
        memset(f->slot, 0, f->nslots * sizeof *f->slot);
}

void crn_flows_close(crn_flows *f)
{
    if (!f)
        return;
    crn_vec_done(&f->request);
    crn_vec_done(&f->unmatched);
    crn_vec_done(&f->flow);
    free(f->slot);
    free(f);
}

static uint64_t line_hash(const line *l)
{
    uint64_t h = crn_hash_mix(l->comm, (uint64_t)l->from);
    h = crn_hash_mix(crn_hash_mix(h, (uint64_t)l->to), (uint64_t)l->tag);
    return h ? h : 1;
}

static cairn_status grow(crn_flows *f)
{
    if (2 * (f->n + 1) < f->nslots)
        return CAIRN_OK;
    const size_t n = CRN_MAX(2 * f->nslots, 64);
    count *slot;
    CRN_TRY(crn_alloc(&slot, n));
    for (size_t i = 0; i < f->nslots; i++) {
        size_t k = f->slot[i].line & (n - 1);
        while (f->slot[i].line && slot[k].line)
            k = (k + 1) & (n - 1);
        if (f->slot[i].line)
            slot[k] = f->slot[i];
    }
    free(f->slot);
    f->slot = slot;
    f->nslots = n;
    return CAIRN_OK;
}

/* The number of the next message of a line, as its sender or its receiver counts. */
static cairn_status next_id(crn_flows *f, const line *l, bool sent, uint64_t *ret)
{
    CRN_TRY(grow(f));
    const uint64_t message = line_hash(l), key = (message ^ (sent ? 0x5eed : 0)) | 1;
    size_t i = key & (f->nslots - 1);
    while (f->slot[i].line && f->slot[i].line != key)
        i = (i + 1) & (f->nslots - 1);
    f->n += f->slot[i].line == 0;
    f->slot[i].line = key;
    *ret = crn_hash_mix(message, f->slot[i].n++);
    return CAIRN_OK;
}

static cairn_status add(crn_flows *f, bool leaves, uint64_t id)
{
    return crn_vec_push(&f->flow, (cairn_trace_flow){leaves, id});
}

/* ---- receives ---- */

static cairn_status post(crn_flows *f, int64_t number, receive r)
{
    if (number < 0 || number >= REQUESTS_MAX)
        return CAIRN_OK;
    while (f->request.n <= (size_t)number)
        CRN_TRY(crn_vec_push(&f->request, (receive){.active = false}));
    f->request.at[number] = r;
    return CAIRN_OK;
}

/* A receive that the rank begins, by its message as the trace has it; done: it is over as well. */
static cairn_status begin(crn_flows *f, const crn_view *v, const cairn_trace_message *m,
                          int64_t comm, int64_t number, bool done)
{
    receive r = {.active = true, .comm = comm};
    r.wild = m->peer == CRN_PEER_ANY || m->tag == CRN_TAG_ANY;
    if (m->comm == 0 || (m->peer < 0 && m->peer != CRN_PEER_ANY))
        return CAIRN_OK;
    if (r.wild)
        return done ? crn_vec_push(&f->unmatched, comm) : post(f, number, r);
    const line l = {m->comm, m->peer, v->event->rank, m->tag};
    CRN_TRY(next_id(f, &l, false, &r.id));
    return done ? add(f, false, r.id) : post(f, number, r);
}

static cairn_status complete(crn_flows *f, int64_t number)
{
    if (number < 0 || (size_t)number >= f->request.n || !f->request.at[number].active)
        return CAIRN_OK;
    receive *r = &f->request.at[number];
    r->active = false;
    return r->wild ? crn_vec_push(&f->unmatched, r->comm) : add(f, false, r->id);
}

/* Which of its requests a wait or a test found done. */
static cairn_status complete_some(crn_flows *f, const crn_traced_event *e)
{
    const int one = crn_event_find(e, CRN_KIND_REQ, 0), all = crn_event_find(e, CRN_KIND_REQS, 0);
    const int flag = crn_event_find(e, CRN_KIND_FLAG, 0),
              list = crn_event_find(e, CRN_KIND_LIST, 0);
    const int index = crn_event_find(e, CRN_KIND_INDEX, 0);
    if (flag >= 0 && !e->value[flag])
        return CAIRN_OK;
    if (one >= 0)
        return complete(f, e->value[one]);
    const crn_list reqs = all >= 0 ? e->list[all] : (crn_list){0};
    const size_t n = index >= 0 ? 1 : list >= 0 ? e->list[list].n : reqs.n;
    for (size_t i = 0; i < n; i++) {
        const int64_t k = index >= 0  ? e->value[index]
                          : list >= 0 ? e->list[list].at[i]
                                      : (int64_t)i;
        if (k >= 0 && (size_t)k < reqs.n)
            CRN_TRY(complete(f, reqs.at[k]));
    }
    return CAIRN_OK;
}

/* What a wild receive got: the first of those that are done. */
static cairn_status match(crn_flows *f, const crn_view *v)
{
    uint64_t id;
    if (f->unmatched.n == 0)
        return CAIRN_OK;
    const int64_t number = f->unmatched.at[0], from = v->e->value[0];
    memmove(f->unmatched.at, f->unmatched.at + 1, --f->unmatched.n * sizeof *f->unmatched.at);
    if (number < 0 || (size_t)number >= v->bind->comm.n)
        return CAIRN_OK;
    const crn_bound_comm *c = &v->bind->comm.at[number];
    if (from < 0 || from >= c->view.size || c->identity == 0)
        return CAIRN_OK;
    const line l = {c->identity, c->view.world ? c->view.world[from] : from, v->event->rank,
                    v->e->value[1]};
    CRN_TRY(next_id(f, &l, false, &id));
    return add(f, false, id);
}

/* ---- events ---- */

static cairn_status start_request(crn_flows *f, const crn_view *v, int64_t number)
{
    if (number < 0 || (size_t)number >= v->bind->request.n)
        return CAIRN_OK;
    const crn_bound_request *r = &v->bind->request.at[number];
    const cairn_trace_message m = {.peer = r->peer, .tag = r->tag, .comm = r->comm};
    if (!r->known || r->sent)
        return CAIRN_OK;
    return begin(f, v, &m, r->comm_number, number, false);
}

static cairn_status start_receives(crn_flows *f, const crn_view *v)
{
    const int one = crn_event_find(v->e, CRN_KIND_REQ, 0);
    const int all = crn_event_find(v->e, CRN_KIND_REQS, 0);
    if (one >= 0)
        CRN_TRY(start_request(f, v, v->e->value[one]));
    for (size_t i = 0; all >= 0 && i < v->e->list[all].n; i++)
        CRN_TRY(start_request(f, v, v->e->list[all].at[i]));
    return CAIRN_OK;
}

static cairn_status send_and_receive(crn_flows *f, const crn_view *v)
{
    const bool starts = crn_call_has(v->e->place->call, CRN_TRAIT_STARTS);
    const int comm = crn_event_find(v->e, CRN_KIND_COMM, 0);
    const int request = crn_event_find(v->e, CRN_KIND_REQ, 0);
    for (size_t i = 0; i < v->event->nmessages; i++) {
        const cairn_trace_message *m = &v->event->message[i];
        uint64_t id;
        if (m->sent && m->peer >= 0 && m->comm != 0) {
            const line l = {m->comm, v->event->rank, m->peer, m->tag};
            CRN_TRY(next_id(f, &l, true, &id));
            CRN_TRY(add(f, true, id));
        } else if (!m->sent && !starts && comm >= 0) {
            CRN_TRY(begin(f, v, m, v->e->value[comm], request < 0 ? -1 : v->e->value[request],
                          request < 0));
        }
    }
    return starts ? start_receives(f, v) : CAIRN_OK;
}

/* A probe that keeps what it found takes the message. */
static cairn_status probe(crn_flows *f, const crn_view *v)
{
    crn_meaning m = {0};
    const int flag = crn_event_find(v->e, CRN_KIND_FLAG, 0);
    const int comm = crn_event_find(v->e, CRN_KIND_COMM, 0);
    if (!crn_call_has(v->e->place->call, CRN_TRAIT_MATCHED) || comm < 0 ||
        (flag >= 0 && !v->e->value[flag]))
        return CAIRN_OK;
    crn_messages_of(&m, v->bind, v->e, &v->e->comm, NULL);
    return m.nmessages > 0 ? begin(f, v, &m.few[0], v->e->value[comm], -1, true) : CAIRN_OK;
}

cairn_status crn_flows_next(crn_flows *f, const crn_view *v, const cairn_trace_flow **ret,
                            size_t *ret_n)
{
    const uint32_t call = v->e->place->call;
    cairn_status rc = CAIRN_OK;
    f->flow.n = 0;
    if (f->known && call == CRN_CALL_match)
        rc = match(f, v);
    else if (f->known && v->e->place->within == CRN_CALL_NONE) {
        f->unmatched.n = 0; /* such as were cancelled */
        if (crn_call_has(call, CRN_TRAIT_COMPLETES))
            rc = complete_some(f, v->e);
        else if (crn_call_has(call, CRN_TRAIT_PROBES))
            rc = probe(f, v);
        else if (!crn_call_has(call, CRN_TRAIT_PREPARES))
            rc = send_and_receive(f, v);
    }
    *ret = f->flow.at;
    *ret_n = f->flow.n;
    return rc;
}
