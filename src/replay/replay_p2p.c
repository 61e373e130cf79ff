/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages, and the requests that they leave. Persistent requests are started as ordinary ones each
 * time, since wildcard receives must ask for another sender each time.
 */
#include "replay/replay.h"

enum { NUMBERS_MAX = 1 << 24, LATE_NS = 50000000, LATE_MANY = 64 };

cairn_status crn_play_slot_of(crn_player *p, int64_t number, crn_play_slot **ret)
{
    CRN_FAIL_IF(number >= NUMBERS_MAX, CAIRN_ECORRUPT, "the trace has a request number %lld",
                (long long)number);
    while ((int64_t)p->slot.n <= number)
        CRN_TRY(crn_vec_push(&p->slot, (crn_play_slot){.request = MPI_REQUEST_NULL}));
    *ret = number < 0 ? NULL : &p->slot.at[number];
    return CAIRN_OK;
}

static int mpi_peer(int64_t peer)
{
    return peer == CRN_PEER_NULL  ? MPI_PROC_NULL
           : peer == CRN_PEER_ANY ? MPI_ANY_SOURCE
                                  : (int)peer;
}

static crn_play_message message_of(const crn_player *p, int nth, bool sends)
{
    int64_t tag = crn_play_value(p, CRN_KIND_TAG, nth, 0);
    return (crn_play_message){
        .count = (int)crn_play_value(p, CRN_KIND_COUNT, nth, 0),
        .type = crn_play_value(p, CRN_KIND_TYPE, nth, 0),
        .peer = mpi_peer(crn_play_value(p, CRN_KIND_PEER, nth, CRN_PEER_NULL)),
        .tag = tag == CRN_TAG_ANY ? MPI_ANY_TAG : (int)tag,
        .comm = crn_play_comm_of(p, crn_play_value(p, CRN_KIND_COMM, 0, CRN_COMM_NULL)),
        .sends = sends};
}

static bool is_wild(const crn_play_message *m)
{
    return !m->sends && m->peer != MPI_PROC_NULL &&
           (m->peer == MPI_ANY_SOURCE || m->tag == MPI_ANY_TAG);
}

/* Ask for whom it met; one that never completed may take anything. */
static void name_sender(crn_player *p, crn_play_message *m)
{
    int source, tag;
    if (is_wild(m) && crn_scout_next(p->scout, &source, &tag) && source >= 0) {
        m->peer = source;
        m->tag = tag;
    }
}

static cairn_status send(crn_player *p, const crn_play_message *m, bool waits_for_receiver,
                         MPI_Request *ret)
{
    const crn_play_type *y = crn_play_type_of(p, m->type);
    void *buf;
    CRN_TRY(crn_play_buffer(p, &p->payload, m->type, m->count, &buf));
    if (m->peer != MPI_PROC_NULL)
        p->result->sent_bytes += (uint64_t)m->count * y->nbytes;
    if (waits_for_receiver)
        CRN_TRY_MPI(MPI_Issend(buf, m->count, y->mpi, m->peer, m->tag, m->comm, ret));
    else
        CRN_TRY_MPI(MPI_Isend(buf, m->count, y->mpi, m->peer, m->tag, m->comm, ret));
    return CAIRN_OK;
}

/* What is under way when its number is used again, or when its caller has lost patience. */
static cairn_status add_late(crn_player *p, crn_play_slot late)
{
    size_t n = 0;
    if (late.request == MPI_REQUEST_NULL)
        return CAIRN_OK;
    for (size_t i = 0; p->late.n >= LATE_MANY && i < p->late.n; i++) {
        int done;
        CRN_TRY_MPI(MPI_Test(&p->late.at[i].request, &done, MPI_STATUS_IGNORE));
        if (done)
            crn_play_slot_done(&p->late.at[i]);
        else
            p->late.at[n++] = p->late.at[i];
    }
    if (p->late.n >= LATE_MANY)
        p->late.n = n;
    return crn_vec_push(&p->late, late);
}

static cairn_status add_late_send(crn_player *p, MPI_Request request)
{
    return add_late(p, (crn_play_slot){.request = request});
}

/* Wait for a while: one that is under way still is late. */
cairn_status crn_play_wait_in_time(crn_player *p, MPI_Request *request)
{
    uint64_t start = crn_now_ns();
    int done = 0;
    do {
        CRN_TRY_MPI(MPI_Test(request, &done, MPI_STATUS_IGNORE));
    } while (!done && crn_now_ns() - start < LATE_NS);
    p->result->nlate += !done;
    return CAIRN_OK;
}

/* MPI_Send returns when its buffer is free, in time or not: programs that rely on it must end. */
static cairn_status send_in_time(crn_player *p, const crn_play_message *m, bool waits_for_receiver)
{
    MPI_Request request;
    CRN_TRY(send(p, m, waits_for_receiver, &request));
    CRN_TRY(crn_play_wait_in_time(p, &request));
    return add_late_send(p, request);
}

static cairn_status receive(crn_player *p, crn_play_message m, crn_play_slot *slot)
{
    const crn_play_type *y = crn_play_type_of(p, m.type);
    void *buf;
    name_sender(p, &m);
    if (slot) {
        CRN_TRY(crn_play_slot_buffer(p, slot, m.type, m.count, &buf));
        CRN_TRY_MPI(MPI_Irecv(buf, m.count, y->mpi, m.peer, m.tag, m.comm, &slot->request));
        return CAIRN_OK;
    }
    CRN_TRY(crn_play_buffer(p, &p->scratch, m.type, m.count, &buf));
    CRN_TRY_MPI(MPI_Recv(buf, m.count, y->mpi, m.peer, m.tag, m.comm, MPI_STATUS_IGNORE));
    return CAIRN_OK;
}

void crn_play_slot_done(crn_play_slot *s)
{
    for (int i = 0; i < 4; i++) {
        free(s->list[i]);
        s->list[i] = NULL;
    }
    free(s->buf);
    s->buf = NULL;
    s->cap = 0;
}

/* What still is under way goes on without its number, and takes its memory with it. */
cairn_status crn_play_slot_clear(crn_player *p, crn_play_slot *s)
{
    crn_play_slot old = *s;
    *s = (crn_play_slot){.request = MPI_REQUEST_NULL};
    if (old.request != MPI_REQUEST_NULL)
        return add_late(p, old);
    s->buf = old.buf;
    s->cap = old.cap;
    old.buf = NULL;
    crn_play_slot_done(&old);
    return CAIRN_OK;
}

static cairn_status new_slot(crn_player *p, crn_play_slot **ret)
{
    CRN_TRY(crn_play_slot_of(p, crn_play_value(p, CRN_KIND_REQ, 0, CRN_REQ_NULL), ret));
    return *ret ? crn_play_slot_clear(p, *ret) : CAIRN_OK;
}

/* To a number that means nothing (-1), a request is one that nobody waits for. */
static cairn_status start_message(crn_player *p, const crn_play_message *m, bool waits_for_receiver,
                                  crn_play_slot *slot)
{
    MPI_Request request;
    crn_play_message unknown = *m;
    if (m->comm == MPI_COMM_NULL) {
        name_sender(p, &unknown);
        return CAIRN_OK;
    }
    if (!m->sends && slot)
        return receive(p, *m, slot);
    if (!m->sends)
        return CAIRN_OK;
    CRN_TRY(send(p, m, waits_for_receiver, &request));
    if (!slot)
        return add_late_send(p, request);
    slot->request = request;
    return CAIRN_OK;
}

static cairn_status start_slot(crn_player *p, int64_t number)
{
    crn_play_slot *s;
    CRN_TRY(crn_play_slot_of(p, number, &s));
    if (!s || !s->persistent)
        return CAIRN_OK;
    return start_message(p, &s->message, false, s);
}

cairn_status crn_play_begin(crn_player *p)
{
    crn_list many = crn_play_list(p, CRN_KIND_REQS, 0);
    if (crn_event_find(&p->e, CRN_KIND_REQ, 0) >= 0)
        return start_slot(p, crn_play_value(p, CRN_KIND_REQ, 0, CRN_REQ_NULL));
    for (size_t i = 0; i < many.n; i++)
        CRN_TRY(start_slot(p, many.at[i]));
    return CAIRN_OK;
}

static cairn_status sendrecv(crn_player *p)
{
    crn_play_message out = message_of(p, 0, true), in = message_of(p, 1, false);
    const crn_play_type *to = crn_play_type_of(p, out.type), *from = crn_play_type_of(p, in.type);
    void *sbuf, *rbuf;
    name_sender(p, &in);
    CRN_TRY(crn_play_buffer(p, &p->payload, out.type, out.count, &sbuf));
    CRN_TRY(crn_play_buffer(p, &p->scratch, in.type, in.count, &rbuf));
    if (out.peer != MPI_PROC_NULL)
        p->result->sent_bytes += (uint64_t)out.count * to->nbytes;
    CRN_TRY_MPI(MPI_Sendrecv(sbuf, out.count, to->mpi, out.peer, out.tag, rbuf, in.count, from->mpi,
                             in.peer, in.tag, in.comm, MPI_STATUS_IGNORE));
    return CAIRN_OK;
}

/* A probe that saw a message waits for it; one that did not only looks. */
static cairn_status probe(crn_player *p)
{
    crn_play_message m = message_of(p, 0, false);
    MPI_Message message;
    int flag;
    if (crn_play_value(p, CRN_KIND_FLAG, 0, 1) == 0) {
        CRN_TRY_MPI(MPI_Iprobe(m.peer, m.tag, m.comm, &flag, MPI_STATUS_IGNORE));
        return CAIRN_OK;
    }
    name_sender(p, &m);
    if (!(p->e.call->traits & CRN_TRAIT_MATCHED)) {
        CRN_TRY_MPI(MPI_Probe(m.peer, m.tag, m.comm, MPI_STATUS_IGNORE));
        return CAIRN_OK;
    }
    CRN_TRY_MPI(MPI_Mprobe(m.peer, m.tag, m.comm, &message, MPI_STATUS_IGNORE));
    return crn_vec_push(&p->message, message);
}

/* Messages that were probed are received in the order of the probes. */
cairn_status crn_play_receive_probed(crn_player *p)
{
    crn_play_message m = message_of(p, 0, false);
    const crn_play_type *y = crn_play_type_of(p, m.type);
    crn_play_slot *slot;
    void *buf;
    if (p->message.n == 0) {
        crn_play_skip(p);
        return CAIRN_OK;
    }
    MPI_Message message = p->message.at[0];
    memmove(p->message.at, p->message.at + 1, --p->message.n * sizeof *p->message.at);
    if (message == MPI_MESSAGE_NULL) {
        crn_play_skip(p);
        return CAIRN_OK;
    }
    if (!(p->e.call->traits & CRN_TRAIT_BLOCKS)) {
        CRN_TRY(new_slot(p, &slot));
        if (slot) {
            CRN_TRY(crn_play_slot_buffer(p, slot, m.type, m.count, &buf));
            CRN_TRY_MPI(MPI_Imrecv(buf, m.count, y->mpi, &message, &slot->request));
            return CAIRN_OK;
        }
    }
    CRN_TRY(crn_play_buffer(p, &p->scratch, m.type, m.count, &buf));
    CRN_TRY_MPI(MPI_Mrecv(buf, m.count, y->mpi, &message, MPI_STATUS_IGNORE));
    return CAIRN_OK;
}

/* A call that cannot be reissued still consumes its entry of the scout. */
static cairn_status pass_by(crn_player *p)
{
    const unsigned traits = p->e.call->traits;
    const bool sends = traits & CRN_TRAIT_SENDS, receives = traits & CRN_TRAIT_RECEIVES;
    const bool saw = crn_play_value(p, CRN_KIND_FLAG, 0, 1) != 0;
    crn_play_message m = message_of(p, sends && receives, sends && !receives);
    crn_play_skip(p);
    if (saw)
        name_sender(p, &m);
    if (saw && traits & CRN_TRAIT_MATCHED)
        return crn_vec_push(&p->message, MPI_MESSAGE_NULL);
    return CAIRN_OK;
}

/* Is the communicator one that the recorder, too, does not know? */
static bool is_unknown(const crn_player *p)
{
    return crn_play_comm_of(p, crn_play_value(p, CRN_KIND_COMM, 0, CRN_COMM_NULL)) == MPI_COMM_NULL;
}

cairn_status crn_play_send(crn_player *p)
{
    if (is_unknown(p))
        return pass_by(p);
    const crn_play_message m = message_of(p, 0, true);
    return send_in_time(p, &m, p->e.call->traits & CRN_TRAIT_SYNC);
}

cairn_status crn_play_receive(crn_player *p)
{
    return is_unknown(p) ? pass_by(p) : receive(p, message_of(p, 0, false), NULL);
}

cairn_status crn_play_sendrecv(crn_player *p)
{
    return is_unknown(p) ? pass_by(p) : sendrecv(p);
}

cairn_status crn_play_probe(crn_player *p)
{
    return is_unknown(p) ? pass_by(p) : probe(p);
}

cairn_status crn_play_start(crn_player *p)
{
    if (is_unknown(p))
        return pass_by(p);
    const crn_play_message m = message_of(p, 0, p->e.call->traits & CRN_TRAIT_SENDS);
    crn_play_slot *slot;
    CRN_TRY(new_slot(p, &slot));
    return start_message(p, &m, p->e.call->traits & CRN_TRAIT_SYNC, slot);
}

cairn_status crn_play_prepare(crn_player *p)
{
    crn_play_slot *slot;
    if (is_unknown(p))
        crn_play_skip(p);
    CRN_TRY(new_slot(p, &slot));
    if (slot) {
        slot->persistent = true;
        slot->message = message_of(p, 0, p->e.call->traits & CRN_TRAIT_SENDS);
    }
    return CAIRN_OK;
}

/* ---- completion ---- */

static cairn_status complete_one(crn_player *p, int64_t number)
{
    crn_play_slot *s;
    CRN_TRY(crn_play_slot_of(p, number, &s));
    if (s)
        CRN_TRY_MPI(MPI_Wait(&s->request, MPI_STATUS_IGNORE));
    return CAIRN_OK;
}

/* Where the trace does not know which requests these were (DESIGN in replay.h). */
static cairn_status complete_by_shadows(crn_player *p, const crn_numbers *done)
{
    crn_play_slot *s;
    for (size_t i = 0; i < done->n; i++) {
        CRN_TRY(crn_play_slot_of(p, done->at[i], &s));
        if (s && s->request != MPI_REQUEST_NULL)
            CRN_TRY(crn_play_wait_in_time(p, &s->request));
    }
    return crn_shadows_wait(p);
}

/* Statuses are asked for, since gcc takes MPICH's MPI_STATUSES_IGNORE for an array. */
static cairn_status wait_all(MPI_Request *request, size_t n)
{
    enum { AT_ONCE = 64 };
    MPI_Status status[AT_ONCE];
    for (size_t i = 0; i < n; i += AT_ONCE)
        CRN_TRY_MPI(MPI_Waitall((int)CRN_MIN(n - i, AT_ONCE), request + i, status));
    return CAIRN_OK;
}

/* All at once, since their order of completion is MPI's affair. */
static cairn_status complete_all(crn_player *p, const crn_numbers *done)
{
    CRN_VEC(MPI_Request) all = {0};
    crn_play_slot *s;
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; i < done->n && rc == CAIRN_OK; i++) {
        rc = crn_play_slot_of(p, done->at[i], &s);
        if (rc == CAIRN_OK && s && s->request != MPI_REQUEST_NULL) {
            rc = crn_vec_push(&all, s->request);
            s->request = MPI_REQUEST_NULL;
        }
    }
    if (rc == CAIRN_OK)
        rc = wait_all(all.at, all.n);
    crn_vec_done(&all);
    return rc;
}

/* A test that found nothing keeps MPI going, and must complete nothing. */
cairn_status crn_play_look(crn_player *p)
{
    crn_play_slot *s;
    int flag;
    crn_list reqs = crn_play_list(p, CRN_KIND_REQS, 0);
    int64_t first = reqs.n > 0 ? reqs.at[0] : crn_play_value(p, CRN_KIND_REQ, 0, CRN_REQ_NULL);
    CRN_TRY(crn_play_slot_of(p, first, &s));
    if (s && s->request != MPI_REQUEST_NULL)
        CRN_TRY_MPI(MPI_Request_get_status(s->request, &flag, MPI_STATUS_IGNORE));
    return CAIRN_OK;
}

cairn_status crn_play_cancel(crn_player *p)
{
    crn_play_slot *s;
    if (p->by_shadows) /* what is under way then are collectives, which cannot be */
        return CAIRN_OK;
    CRN_TRY(crn_play_slot_of(p, crn_play_value(p, CRN_KIND_REQ, 0, CRN_REQ_NULL), &s));
    if (s && s->request != MPI_REQUEST_NULL)
        CRN_TRY_MPI(MPI_Cancel(&s->request));
    return CAIRN_OK;
}

cairn_status crn_play_forget(crn_player *p)
{
    crn_play_slot *s;
    CRN_TRY(crn_play_slot_of(p, crn_play_value(p, CRN_KIND_REQ, 0, CRN_REQ_NULL), &s));
    return s ? crn_play_slot_clear(p, s) : CAIRN_OK;
}

cairn_status crn_play_complete(crn_player *p)
{
    crn_numbers done = {0};
    cairn_status rc = crn_completed_of(&p->e, &done);
    if (rc == CAIRN_OK && done.n > 0 && p->by_shadows)
        rc = complete_by_shadows(p, &done);
    else if (rc == CAIRN_OK && done.n == 0)
        rc = crn_play_look(p);
    else if (rc == CAIRN_OK)
        rc = done.n == 1 ? complete_one(p, done.at[0]) : complete_all(p, &done);
    crn_vec_done(&done);
    return rc;
}

cairn_status crn_play_finish(crn_player *p)
{
    for (size_t i = 0; i < p->slot.n; i++) {
        crn_play_slot *s = &p->slot.at[i];
        int done = 1;
        if (s->request == MPI_REQUEST_NULL)
            continue;
        if (p->by_shadows) /* nothing that would need a partner which never comes */
            CRN_TRY_MPI(MPI_Wait(&s->request, MPI_STATUS_IGNORE));
        else
            CRN_TRY_MPI(MPI_Test(&s->request, &done, MPI_STATUS_IGNORE));
        if (!done) /* the program left it, too: a receive for which nothing came */
            s->buf = NULL;
    }
    for (size_t i = 0; i < p->late.n; i++) {
        CRN_TRY_MPI(MPI_Wait(&p->late.at[i].request, MPI_STATUS_IGNORE));
        crn_play_slot_done(&p->late.at[i]);
    }
    p->late.n = 0;
    return CAIRN_OK;
}

static cairn_status complete_on(crn_play_slot *s, unsigned kind, int64_t number)
{
    if (s->kind == kind && s->on == number && s->request != MPI_REQUEST_NULL)
        CRN_TRY_MPI(MPI_Wait(&s->request, MPI_STATUS_IGNORE));
    return CAIRN_OK;
}

cairn_status crn_play_complete_on(crn_player *p, unsigned kind, int64_t number)
{
    for (size_t i = 0; i < p->slot.n; i++)
        CRN_TRY(complete_on(&p->slot.at[i], kind, number));
    for (size_t i = 0; i < p->late.n; i++)
        CRN_TRY(complete_on(&p->late.at[i], kind, number));
    return CAIRN_OK;
}
