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

cairn_status crn_play_make_window(crn_player *p)
{
    crn_play_window w = {.win = MPI_WIN_NULL};
    MPI_Comm comm = crn_play_comm_of(p, crn_play_value(p, CRN_KIND_COMM, 0, CRN_COMM_NULL));
    int64_t number = crn_play_value(p, CRN_KIND_WIN_NEW, 0, -1);
    void *base;
    if (p->by_shadows || comm == MPI_COMM_NULL) {
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

/* The window of the current event, of which it can be reissued; else NULL, and it is skipped. */
static crn_play_window *open_window(crn_player *p)
{
    crn_play_window *w = window_of(p);
    if (!w)
        crn_play_skip(p);
    return w;
}

cairn_status crn_play_free_window(crn_player *p)
{
    crn_play_window *w = open_window(p);
    return w ? crn_play_mpi(MPI_Win_free(&w->win), p->e.call->name) : CAIRN_OK;
}

cairn_status crn_play_synchronise(crn_player *p)
{
    crn_play_window *w = open_window(p);
    if (!w)
        return CAIRN_OK;
    const bool shared = crn_play_value(p, CRN_KIND_INT, 0, 0) == MPI_LOCK_SHARED;
    crn_play_args a = {
        .win = w->win, .root = target_of(p), .word = shared ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE};
    return crn_play_issue_call(p, &a);
}

static cairn_status set_in_group(crn_player *p, bool in_group)
{
    crn_play_window *w = window_of(p);
    if (w)
        w->in_group = in_group;
    crn_play_skip(p);
    return CAIRN_OK;
}

cairn_status crn_play_open_group(crn_player *p)
{
    return set_in_group(p, true);
}

cairn_status crn_play_close_group(crn_player *p)
{
    return set_in_group(p, false);
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

/* Operations of the program's own, or on its own types, are a bitwise or of as many bytes. A call
 * without an operation swaps. */
static bool as_bytes(const crn_player *p, part *x, MPI_Op *op)
{
    const bool swaps = crn_event_find(&p->e, CRN_KIND_OP, 0) < 0;
    *op = crn_play_op_of(crn_play_value(p, CRN_KIND_OP, 0, CRN_OP_NULL));
    if (x->type->named && (*op != MPI_OP_NULL || swaps))
        return true;
    uint64_t nbytes = (uint64_t)x->count * x->type->nbytes;
    *op = MPI_BOR;
    *x = (part){(int)nbytes, crn_play_type_of(p, -1), -1};
    return nbytes <= INT32_MAX;
}

/* The window and the request of a transfer; *ret_slot is NULL without one. False: it is skipped. */
static cairn_status begin(crn_player *p, crn_play_args *a, crn_play_slot **ret_slot, bool *ret_can)
{
    crn_play_window *w = window_of(p);
    *ret_slot = NULL;
    *ret_can = w && !w->in_group;
    if (!*ret_can) {
        crn_play_skip(p);
        return CAIRN_OK;
    }
    *a = (crn_play_args){
        .win = w->win, .root = target_of(p), .off = crn_play_value(p, CRN_KIND_OFFSET, 0, 0)};
    if (crn_event_find(&p->e, CRN_KIND_REQ, 0) < 0)
        return CAIRN_OK;
    CRN_TRY(crn_play_slot_of(p, crn_play_value(p, CRN_KIND_REQ, 0, CRN_REQ_NULL), ret_slot));
    CRN_FAIL_IF(!*ret_slot, CAIRN_ECORRUPT, "the trace has a transfer without its request");
    CRN_TRY(crn_play_slot_clear(p, *ret_slot));
    a->request = &(*ret_slot)->request;
    return CAIRN_OK;
}

static cairn_status room_of(crn_player *p, crn_play_slot *slot, part x, void **ret)
{
    if (slot)
        return crn_play_slot_buffer(p, slot, x.number, x.count, ret);
    return crn_play_buffer(p, &p->scratch, x.number, x.count, ret);
}

static void set_side(crn_play_args *a, int side, part x)
{
    a->count[side] = x.count;
    a->type[side] = x.type->mpi;
}

static cairn_status move(crn_player *p, bool puts)
{
    const part here = part_of(p, 0), there = part_of(p, 1);
    crn_play_args a;
    crn_play_slot *slot;
    bool can;
    CRN_TRY(begin(p, &a, &slot, &can));
    if (!can)
        return CAIRN_OK;
    if (puts)
        CRN_TRY(crn_play_buffer(p, &p->payload, here.number, here.count, &a.recv));
    else
        CRN_TRY(room_of(p, slot, here, &a.recv));
    a.send = a.recv;
    set_side(&a, 0, here);
    set_side(&a, 1, there);
    return crn_play_issue_call(p, &a);
}

cairn_status crn_play_put(crn_player *p)
{
    return move(p, true);
}

cairn_status crn_play_get(crn_player *p)
{
    return move(p, false);
}

static int ntypes_of(const crn_traced_event *e)
{
    int n = 0;
    for (int i = crn_event_find(e, CRN_KIND_TYPE, 0); i >= 0;
         i = crn_event_find(e, CRN_KIND_TYPE, i + 1))
        n++;
    return n;
}

/* All that combine: count and type are the target's, the last ones, on all sides. */
cairn_status crn_play_accumulate(crn_player *p)
{
    part x = part_of(p, ntypes_of(&p->e) - 1);
    crn_play_args a;
    crn_play_slot *slot;
    void *in;
    MPI_Op op;
    bool can;
    if (!as_bytes(p, &x, &op)) {
        crn_play_skip(p);
        return CAIRN_OK;
    }
    CRN_TRY(begin(p, &a, &slot, &can));
    if (!can)
        return CAIRN_OK;
    CRN_TRY(crn_play_buffer(p, &p->payload, x.number, x.count, &in));
    CRN_TRY(room_of(p, slot, x, &a.recv));
    a.send = in;
    a.op = op;
    for (int side = 0; side < CRN_PLAY_SIDES; side++)
        set_side(&a, side, x);
    return crn_play_issue_call(p, &a);
}
