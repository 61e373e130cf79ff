/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Between ranks: flows of pieces.
 *
 * Why flows never deadlock. In step k a rank (1) starts to receive piece k + 1 of every incoming
 * flow, (2) waits until piece k - 2 of every outgoing flow has left, fills piece k and starts to
 * send it, (3) waits for piece k of every incoming flow and takes it. A wait in step k is for what
 * the peer starts, without waiting, in its step k or before it. So the rank that is behind all
 * others can always go on.
 */
#include "level/level_ops.h"

#include <assert.h>

enum { TAG_FLOW = 102, PIECE_ALIGN = 4096 };

/* --- flows -------------------------------------------------------------------------------- */

cairn_status crn_flows_prepare(crn_flow *flow, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (int slot = 0; slot < 2; slot++)
            CRN_TRY(crn_alloc_aligned(&flow[i].piece[slot], flow[i].cap, PIECE_ALIGN));
    return CAIRN_OK;
}

void crn_flows_done(crn_flow *flow, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (int slot = 0; slot < 2; slot++) {
            free(flow[i].piece[slot]);
            flow[i].piece[slot] = NULL;
        }
    }
}

/* The next piece's length into its slot; a flow without one has ended. */
static bool begin_piece(crn_flow *f, int slot)
{
    assert(f->nbytes[slot] == 0);
    size_t nbytes = f->ended ? 0 : f->next(f->arg);
    assert(nbytes <= f->cap);
    f->ended = nbytes == 0;
    f->nbytes[slot] = nbytes;
    return nbytes > 0;
}

static cairn_status wait_piece(crn_comm *comm, crn_flow *f, int slot)
{
    cairn_status rc = f->nbytes[slot] > 0 ? crn_comm_wait(comm, &f->msg[slot]) : CAIRN_OK;
    if (rc < 0)
        f->nbytes[slot] = 0; /* it was waited for, whatever came of it */
    return rc;
}

static cairn_status start_receive(crn_comm *comm, crn_flow *f, int slot)
{
    if (!begin_piece(f, slot))
        return CAIRN_OK;
    cairn_status rc =
        crn_comm_irecv(comm, f->piece[slot], f->nbytes[slot], f->peer, TAG_FLOW, &f->msg[slot]);
    if (rc < 0)
        f->nbytes[slot] = 0;
    return rc;
}

static cairn_status send_piece(crn_comm *comm, crn_flow *f, int slot)
{
    CRN_TRY(wait_piece(comm, f, slot));
    f->nbytes[slot] = 0;
    if (!begin_piece(f, slot))
        return CAIRN_OK;
    f->move(f->arg, f->piece[slot], f->nbytes[slot]);
    cairn_status rc =
        crn_comm_isend(comm, f->piece[slot], f->nbytes[slot], f->peer, TAG_FLOW, &f->msg[slot]);
    if (rc < 0)
        f->nbytes[slot] = 0;
    return rc;
}

static cairn_status take_piece(crn_comm *comm, crn_flow *f, int slot)
{
    CRN_TRY(wait_piece(comm, f, slot));
    if (f->nbytes[slot] > 0)
        f->move(f->arg, f->piece[slot], f->nbytes[slot]);
    f->nbytes[slot] = 0;
    return CAIRN_OK;
}

static bool is_idle(const crn_flow *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!f[i].ended || f[i].nbytes[0] > 0 || f[i].nbytes[1] > 0)
            return false;
    return true;
}

/* After the transport failed: nothing of ours may stay in its hands. */
static void give_up(crn_comm *comm, crn_flow *f, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (int slot = 0; slot < 2; slot++) {
            if (f[i].nbytes[slot] == 0)
                continue;
            if (f[i].msg[slot].is_send)
                (void)crn_comm_wait(comm, &f[i].msg[slot]);
            else
                crn_comm_cancel(comm, &f[i].msg[slot]);
            f[i].nbytes[slot] = 0;
        }
    }
}

cairn_status crn_flows_run(crn_comm *comm, crn_flow *out, size_t nout, crn_flow *in, size_t nin)
{
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; i < nin; i++)
        CRN_TRY_OUT(rc, start_receive(comm, &in[i], 0));
    for (int slot = 0; !is_idle(out, nout) || !is_idle(in, nin); slot = !slot) {
        for (size_t i = 0; i < nin; i++)
            CRN_TRY_OUT(rc, start_receive(comm, &in[i], !slot));
        for (size_t i = 0; i < nout; i++)
            CRN_TRY_OUT(rc, send_piece(comm, &out[i], slot));
        for (size_t i = 0; i < nin; i++)
            CRN_TRY_OUT(rc, take_piece(comm, &in[i], slot));
    }
out:
    if (rc < 0) {
        crn_err why = *crn_err_peek();
        give_up(comm, out, nout);
        give_up(comm, in, nin);
        rc = crn_err_give(&why);
    }
    return rc;
}
