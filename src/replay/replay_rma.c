/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One-sided calls. A window is memory of the recorded size, and what lies in it means nothing, so
 * it does not matter what is put where; bytes, targets and the calls that wait are as recorded.
 * Not reissued, but counted: windows without memory of their own (MPI_Win_create_dynamic), epochs
 * of MPI_Win_start, whose groups the trace does not have, and everything where sizes are known by
 * distribution only: they might lie outside the target's window.
 */
#include "replay/replay.h"

enum { NUMBERS_MAX = 1 << 16 };

static cairn_status set_window(crn_player *p, int64_t number, crn_play_window w)
{
    if (number < 0 || number >= NUMBERS_MAX)
        return CAIRN_OK;
    while (p->window.n <= (size_t)number)
        CRN_TRY(crn_vec_push(&p->window, (crn_play_window){.win = MPI_WIN_NULL}));
    p->window.at[number] = w;
    return CAIRN_OK;
}

static crn_play_window *window_of(crn_player *p)
{
    int64_t number = crn_play_value(p, CRN_KIND_WIN, 0, -1);
    if (number < 0 || (size_t)number >= p->window.n || p->window.at[number].win == MPI_WIN_NULL)
        return NULL;
    return &p->window.at[number];
}

static cairn_status make_window(crn_player *p)
{
    crn_play_window w = {.win = MPI_WIN_NULL};
    MPI_Comm comm = crn_play_comm_of(p, crn_play_value(p, CRN_KIND_COMM, 0, CRN_COMM_NULL));
    int64_t number = crn_play_value(p, CRN_KIND_WIN_NEW, 0, -1);
    void *base;
    if (p->by_shadows || comm == MPI_COMM_NULL ||
        p->e.place->call == CRN_CALL_MPI_Win_create_dynamic) {
        crn_play_skip(p);
        return set_window(p, number, w);
    }
    CRN_TRY_MPI(MPI_Win_allocate((MPI_Aint)crn_play_value(p, CRN_KIND_BYTES, 0, 0),
                                 (int)crn_play_value(p, CRN_KIND_INT, 0, 1), MPI_INFO_NULL, comm,
                                 &base, &w.win));
    CRN_TRY_MPI(MPI_Win_set_errhandler(w.win, MPI_ERRORS_RETURN));
    return set_window(p, number, w);
}

void crn_play_windows_free(crn_player *p)
{
    for (size_t i = 0; i < p->window.n; i++)
        if (p->window.at[i].win != MPI_WIN_NULL)
            MPI_Win_free(&p->window.at[i].win);
    crn_vec_done(&p->window);
}

/* ---- epochs ---- */

static int target_of(const crn_player *p)
{
    int64_t rank = crn_play_value(p, CRN_KIND_ROOT, 0, CRN_PEER_NULL);
    return rank == CRN_PEER_NULL ? MPI_PROC_NULL : (int)rank;
}

static int synchronise(const crn_player *p, MPI_Win win)
{
    bool shared = crn_play_value(p, CRN_KIND_INT, 0, 0) == MPI_LOCK_SHARED;
    switch (p->e.place->call) {
    case CRN_CALL_MPI_Win_fence:
        return MPI_Win_fence(0, win);
    case CRN_CALL_MPI_Win_lock:
        return MPI_Win_lock(shared ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target_of(p), 0, win);
    case CRN_CALL_MPI_Win_unlock:
        return MPI_Win_unlock(target_of(p), win);
    case CRN_CALL_MPI_Win_lock_all:
        return MPI_Win_lock_all(0, win);
    case CRN_CALL_MPI_Win_unlock_all:
        return MPI_Win_unlock_all(win);
    case CRN_CALL_MPI_Win_flush:
        return MPI_Win_flush(target_of(p), win);
    case CRN_CALL_MPI_Win_flush_all:
        return MPI_Win_flush_all(win);
    case CRN_CALL_MPI_Win_flush_local:
        return MPI_Win_flush_local(target_of(p), win);
    case CRN_CALL_MPI_Win_flush_local_all:
        return MPI_Win_flush_local_all(win);
    default: /* MPI_Win_sync */
        return MPI_Win_sync(win);
    }
}

/* ---- transfers ---- */

/* A pair of count and type of the current event. */
typedef struct part {
    int count;
    const crn_play_type *type;
    int64_t number; /* of the type */
} part;

static part part_of(const crn_player *p, int nth)
{
    int64_t type = crn_play_value(p, CRN_KIND_TYPE, nth, -1);
    return (part){(int)crn_play_value(p, CRN_KIND_COUNT, nth, 1), crn_play_type_of(p, type), type};
}

/* Operations of the program's own, or on its own types, are a bitwise or of as many bytes. */
static bool as_bytes(const crn_player *p, part *x, MPI_Op *op)
{
    *op = crn_play_op_of(crn_play_value(p, CRN_KIND_OP, 0, CRN_OP_NULL));
    if (x->type->named && (*op != MPI_OP_NULL || p->e.place->call == CRN_CALL_MPI_Compare_and_swap))
        return true;
    uint64_t nbytes = (uint64_t)x->count * x->type->nbytes;
    *op = MPI_BOR;
    *x = (part){(int)nbytes, crn_play_type_of(p, -1), -1};
    return nbytes <= INT32_MAX;
}

static int put(const crn_player *p, const void *buf, part a, part b, MPI_Win win, MPI_Request *req)
{
    const MPI_Aint at = (MPI_Aint)crn_play_value(p, CRN_KIND_OFFSET, 0, 0);
    const int to = target_of(p);
    if (req)
        return MPI_Rput(buf, a.count, a.type->mpi, to, at, b.count, b.type->mpi, win, req);
    return MPI_Put(buf, a.count, a.type->mpi, to, at, b.count, b.type->mpi, win);
}

static int get(const crn_player *p, void *buf, part a, part b, MPI_Win win, MPI_Request *req)
{
    const MPI_Aint at = (MPI_Aint)crn_play_value(p, CRN_KIND_OFFSET, 0, 0);
    const int from = target_of(p);
    if (req)
        return MPI_Rget(buf, a.count, a.type->mpi, from, at, b.count, b.type->mpi, win, req);
    return MPI_Get(buf, a.count, a.type->mpi, from, at, b.count, b.type->mpi, win);
}

/* All that combine. What a target fetches is one and the same type on both sides. */
static int combine(const crn_player *p, const void *in, void *out, part x, MPI_Op op, MPI_Win win,
                   MPI_Request *req)
{
    const MPI_Aint at = (MPI_Aint)crn_play_value(p, CRN_KIND_OFFSET, 0, 0);
    const MPI_Datatype type = x.type->mpi;
    const int to = target_of(p);
    switch (p->e.place->call) {
    case CRN_CALL_MPI_Accumulate:
        return MPI_Accumulate(in, x.count, type, to, at, x.count, type, op, win);
    case CRN_CALL_MPI_Raccumulate:
        return MPI_Raccumulate(in, x.count, type, to, at, x.count, type, op, win, req);
    case CRN_CALL_MPI_Compare_and_swap:
        return MPI_Compare_and_swap(in, in, out, type, to, at, win);
    case CRN_CALL_MPI_Fetch_and_op:
        return MPI_Fetch_and_op(in, out, type, to, at, op, win);
    case CRN_CALL_MPI_Rget_accumulate:
        return MPI_Rget_accumulate(in, x.count, type, out, x.count, type, to, at, x.count, type, op,
                                   win, req);
    default: /* MPI_Get_accumulate */
        return MPI_Get_accumulate(in, x.count, type, out, x.count, type, to, at, x.count, type, op,
                                  win);
    }
}

static cairn_status request_of(crn_player *p, MPI_Request **ret, crn_play_slot **ret_slot)
{
    *ret = NULL;
    *ret_slot = NULL;
    if (crn_event_find(&p->e, CRN_KIND_REQ, 0) < 0)
        return CAIRN_OK;
    CRN_TRY(crn_play_slot_of(p, crn_play_value(p, CRN_KIND_REQ, 0, CRN_REQ_NULL), ret_slot));
    CRN_FAIL_IF(!*ret_slot, CAIRN_ECORRUPT, "the trace has a transfer without its request");
    CRN_TRY(crn_play_slot_clear(p, *ret_slot));
    *ret = &(*ret_slot)->request;
    return CAIRN_OK;
}

static cairn_status room_of(crn_player *p, crn_play_slot *slot, part x, void **ret)
{
    if (slot)
        return crn_play_slot_buffer(p, slot, x.number, x.count, ret);
    return crn_play_buffer(p, &p->scratch, x.number, x.count, ret);
}

static cairn_status move(crn_player *p, MPI_Win win, bool puts)
{
    part here = part_of(p, 0), there = part_of(p, 1);
    MPI_Request *req;
    crn_play_slot *slot;
    void *buf;
    CRN_TRY(request_of(p, &req, &slot));
    if (puts)
        CRN_TRY(crn_play_buffer(p, &p->payload, here.number, here.count, &buf));
    else
        CRN_TRY(room_of(p, slot, here, &buf));
    int rc = puts ? put(p, buf, here, there, win, req) : get(p, buf, here, there, win, req);
    return crn_play_mpi(rc, p->e.call->name);
}

static cairn_status accumulate(crn_player *p, MPI_Win win)
{
    const uint32_t call = p->e.place->call;
    const bool fetches =
        call == CRN_CALL_MPI_Get_accumulate || call == CRN_CALL_MPI_Rget_accumulate;
    part x = part_of(p, fetches ? 2 : 1); /* the target's */
    MPI_Request *req;
    crn_play_slot *slot;
    MPI_Op op = MPI_OP_NULL;
    void *in, *out;
    if (!as_bytes(p, &x, &op)) {
        crn_play_skip(p);
        return CAIRN_OK;
    }
    CRN_TRY(request_of(p, &req, &slot));
    CRN_TRY(crn_play_buffer(p, &p->payload, x.number, x.count, &in));
    CRN_TRY(room_of(p, slot, x, &out));
    return crn_play_mpi(combine(p, in, out, x, op, win, req), p->e.call->name);
}

static cairn_status transfer(crn_player *p, MPI_Win win)
{
    switch (p->e.place->call) {
    case CRN_CALL_MPI_Put:
    case CRN_CALL_MPI_Rput:
        return move(p, win, true);
    case CRN_CALL_MPI_Get:
    case CRN_CALL_MPI_Rget:
        return move(p, win, false);
    default:
        return accumulate(p, win);
    }
}

static bool is_of_groups(uint32_t call)
{
    return call >= CRN_CALL_MPI_Win_start && call <= CRN_CALL_MPI_Win_test;
}

cairn_status crn_play_rma(crn_player *p)
{
    const uint32_t call = p->e.place->call;
    if (call >= CRN_CALL_MPI_Win_create && call <= CRN_CALL_MPI_Win_create_dynamic)
        return make_window(p);
    crn_play_window *w = window_of(p);
    if (w && call == CRN_CALL_MPI_Win_start)
        w->in_group = true;
    if (w && call == CRN_CALL_MPI_Win_complete)
        w->in_group = false;
    if (!w || is_of_groups(call) || (w->in_group && call >= CRN_CALL_MPI_Put)) {
        crn_play_skip(p);
        return CAIRN_OK;
    }
    if (call == CRN_CALL_MPI_Win_free)
        return crn_play_mpi(MPI_Win_free(&w->win), p->e.call->name);
    if (call < CRN_CALL_MPI_Put)
        return crn_play_mpi(synchronise(p, w->win), p->e.call->name);
    return transfer(p, w->win);
}
