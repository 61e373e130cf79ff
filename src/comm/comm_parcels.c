/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parcels that find their receivers: who gets what is known to the senders alone.
 */
#include "comm/comm.h"

enum { TAG_PARCEL = 101 };

/* What a rank announces: a parcel for rank to. */
typedef struct notice {
    uint64_t nbytes;
    int32_t to, from;
} notice;

static cairn_status announce(crn_comm *comm, cairn_status local, const crn_parcel *out, size_t nout,
                             crn_gathered *ret)
{
    notice *own = NULL;
    if (local == CAIRN_OK)
        local = crn_alloc(&own, nout);
    for (size_t i = 0; local == CAIRN_OK && i < nout; i++) {
        own[i] = (notice){out[i].n, out[i].peer, crn_comm_rank(comm)};
        if (out[i].n > CRN_COMM_PIECE)
            local =
                crn_fail(CAIRN_EUNSUPPORTED, "%zu bytes are too many for one message to rank %d",
                         out[i].n, out[i].peer);
    }
    cairn_status rc = crn_comm_agree(comm, local);
    if (rc == CAIRN_OK)
        rc = crn_comm_gatherv(comm, own, nout * sizeof *own, CRN_COMM_ALL, ret);
    free(own);
    return rc;
}

/* Room for all parcels that were announced to this rank; gathered notices come by ascending rank.
 */
static cairn_status make_room(crn_comm *comm, const crn_gathered *all, crn_parcels *ret)
{
    const int rank = crn_comm_rank(comm);
    const notice *note = (const notice *)(const void *)all->data;
    size_t n = all->off[crn_comm_size(comm)] / sizeof *note, total = 0;
    for (size_t i = 0; i < n; i++) {
        if (note[i].to != rank)
            continue;
        CRN_TRY(crn_vec_push(&ret->in, (crn_parcel){note[i].from, NULL, note[i].nbytes}));
        total += note[i].nbytes;
    }
    CRN_TRY(crn_alloc(&ret->data, total));
    total = 0;
    for (size_t i = 0; i < ret->in.n; i++) {
        ret->in.at[i].data = ret->data + total;
        total += ret->in.at[i].n;
    }
    return CAIRN_OK;
}

/* Start all messages, then wait for those that were started, also after a failure. */
static cairn_status deliver(crn_comm *comm, const crn_parcel *out, size_t nout, crn_parcels *in,
                            crn_msg *msg)
{
    cairn_status rc = CAIRN_OK;
    size_t started = 0;
    for (size_t i = 0; i < in->in.n && rc == CAIRN_OK; i++) {
        crn_parcel *p = &in->in.at[i];
        rc = crn_comm_irecv(comm, p->data, p->n, p->peer, TAG_PARCEL, &msg[started]);
        started += rc == CAIRN_OK;
    }
    for (size_t i = 0; i < nout && rc == CAIRN_OK; i++) {
        rc = crn_comm_isend(comm, out[i].data, out[i].n, out[i].peer, TAG_PARCEL, &msg[started]);
        started += rc == CAIRN_OK;
    }
    return crn_comm_end(comm, msg, started, rc);
}

cairn_status crn_parcels_swap(crn_comm *comm, cairn_status local, const crn_parcel *out,
                              size_t nout, crn_parcels *ret)
{
    crn_gathered all = {0};
    crn_parcels in = {0};
    crn_msg *msg = NULL;
    cairn_status rc;
    CRN_TRY_OUT(rc, announce(comm, local, out, nout, &all));
    rc = make_room(comm, &all, &in);
    if (rc == CAIRN_OK)
        rc = crn_alloc(&msg, in.in.n + nout);
    CRN_TRY_OUT(rc, crn_comm_agree(comm, rc));
    CRN_TRY_OUT(rc, deliver(comm, out, nout, &in, msg));
    *ret = in;
    in = (crn_parcels){0};
out:
    crn_parcels_done(&in);
    crn_gathered_done(&all);
    free(msg);
    return rc;
}

void crn_parcels_done(crn_parcels *p)
{
    free(p->data);
    p->data = NULL;
    crn_vec_done(&p->in);
}

/* --- an outbox ---------------------------------------------------------------------------- */

void crn_outbox_done(crn_outbox *o)
{
    for (size_t i = 0; i < o->buf.n; i++)
        crn_buf_done(&o->buf.at[i]);
    crn_vec_done(&o->buf);
    crn_vec_done(&o->parcel);
}

/* The buffer for a peer. Valid until the next call. */
cairn_status crn_outbox_for(crn_outbox *o, int peer, crn_buf **ret)
{
    size_t i = o->parcel.n;
    while (i > 0 && o->parcel.at[i - 1].peer != peer)
        i--;
    if (i == 0) {
        CRN_TRY(crn_vec_push(&o->parcel, (crn_parcel){.peer = peer}));
        CRN_TRY(crn_vec_push(&o->buf, (crn_buf){0}));
        i = o->buf.n;
    }
    *ret = &o->buf.at[i - 1];
    return CAIRN_OK;
}

cairn_status crn_outbox_swap(crn_outbox *o, crn_comm *comm, cairn_status rc, crn_parcels *ret)
{
    for (size_t i = 0; i < o->buf.n && rc == CAIRN_OK; i++) {
        rc = crn_buf_status(&o->buf.at[i]);
        o->parcel.at[i].data = o->buf.at[i].at;
        o->parcel.at[i].n = o->buf.at[i].n;
    }
    return crn_parcels_swap(comm, rc, o->parcel.at, o->parcel.n, ret);
}
