/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The parameters of a call: from what the program gave to the columns of its event.
 */
#include "trace/trace.h"

#include <limits.h>

static crn_handles files, windows, ops; /* guarded by the recorder's lock */

/* ---- numbers ---- */

static int64_t rank_of(int rank)
{
    if (rank == MPI_ANY_SOURCE)
        return CRN_PEER_ANY;
    if (rank == MPI_PROC_NULL)
        return CRN_PEER_NULL;
    if (rank == MPI_ROOT)
        return CRN_PEER_ROOT;
    return rank;
}

void crn_ev_peer(crn_ev *e, int c, int peer)
{
    e->r.value[c] = e->key.peer = rank_of(peer);
    e->wild |= peer == MPI_ANY_SOURCE;
}

void crn_ev_rank(crn_ev *e, int c, int rank)
{
    e->r.value[c] = rank_of(rank);
}

void crn_ev_tag(crn_ev *e, int c, int tag)
{
    e->r.value[c] = e->key.tag = tag == MPI_ANY_TAG ? CRN_TAG_ANY : tag;
    e->wild |= tag == MPI_ANY_TAG;
}

void crn_ev_whence(crn_ev *e, int c, int whence)
{
    e->r.value[c] = whence == MPI_SEEK_SET   ? SEEK_SET
                    : whence == MPI_SEEK_CUR ? SEEK_CUR
                                             : SEEK_END;
}

void crn_ev_split_type(crn_ev *e, int c, int type)
{
    e->r.value[c] = type == MPI_COMM_TYPE_SHARED ? 1 : type == MPI_UNDEFINED ? -1 : 0;
}

void crn_ev_type(crn_ev *e, int c, MPI_Datatype type)
{
    e->r.value[c] = crn_ev_only_counts(e) ? 0 : crn_type_of(type);
}

void crn_ev_comm(crn_ev *e, int c, MPI_Comm comm)
{
    const crn_comm_info *info = crn_comm_of(comm);
    e->r.value[c] = e->key.comm = info->number;
    e->r.comm_rank = info->rank;
    e->r.comm_size = info->size;
    e->own_size = info->own_size;
    e->between = info->between;
}

void crn_ev_new_comm(crn_ev *e, int c, MPI_Comm comm)
{
    crn_ints *world = &e->t->list[c + 1];
    crn_comm_info info = crn_comm_new(comm, world);
    e->r.value[c] = info.number;
    e->r.value[c + 1] = 0;
    e->r.list[c + 1] = (crn_list){world->at, world->n};
}

void crn_ev_old_comm(crn_ev *e, int c, MPI_Comm comm)
{
    crn_ev_comm(e, c, comm);
    crn_comm_drop(comm);
}

void crn_ev_op(crn_ev *e, int c, MPI_Op op)
{
    static const MPI_Op known[CRN_OP_USER] = {
        MPI_MAX, MPI_MIN,  MPI_SUM,  MPI_PROD,   MPI_LAND,   MPI_BAND,    MPI_LOR,
        MPI_BOR, MPI_LXOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC, MPI_REPLACE, MPI_NO_OP};
    for (int i = 0; i < CRN_OP_USER; i++) {
        if (known[i] == op) {
            e->r.value[c] = i;
            return;
        }
    }
    crn_rec_lock();
    e->r.value[c] =
        op == MPI_OP_NULL ? CRN_OP_NULL : CRN_OP_USER + crn_handles_add(&ops, (uintptr_t)op);
    crn_rec_unlock();
}

/* ---- files and windows ---- */

/* The handle that this thread asked for last: most calls have the file of the call before. */
typedef struct last_handle {
    const crn_handles *of;
    uintptr_t handle;
    int64_t number;
    unsigned drops; /* as of then */
} last_handle;

static _Thread_local last_handle last __attribute__((tls_model("initial-exec")));
static _Atomic unsigned drops; /* files and windows that were closed */

static int64_t number_of(crn_handles *h, uintptr_t handle)
{
    unsigned now = atomic_load_explicit(&drops, memory_order_acquire);
    if (last.of == h && last.handle == handle && last.drops == now)
        return last.number;
    crn_rec_lock();
    last = (last_handle){h, handle, crn_handles_add(h, handle), now};
    crn_rec_unlock();
    return last.number;
}

static int64_t last_number_of(crn_handles *h, uintptr_t handle)
{
    crn_rec_lock();
    int64_t number = crn_handles_find(h, handle);
    crn_handles_drop(h, handle);
    atomic_fetch_add_explicit(&drops, 1, memory_order_release);
    crn_rec_unlock();
    return number;
}

void crn_ev_file(crn_ev *e, int c, MPI_File file)
{
    e->r.value[c] = file == MPI_FILE_NULL ? -1 : number_of(&files, (uintptr_t)file);
    e->key.comm = e->r.value[c];
}

void crn_ev_old_file(crn_ev *e, int c, MPI_File file)
{
    e->r.value[c] = last_number_of(&files, (uintptr_t)file);
}

void crn_ev_win(crn_ev *e, int c, MPI_Win win)
{
    e->r.value[c] = win == MPI_WIN_NULL ? -1 : number_of(&windows, (uintptr_t)win);
}

void crn_ev_old_win(crn_ev *e, int c, MPI_Win win)
{
    e->r.value[c] = last_number_of(&windows, (uintptr_t)win);
}

/* A file name of n bytes: its pattern, and its numbers at the end of the columns. */
void crn_ev_name(crn_ev *e, const char *name, size_t n)
{
    char text[PATH_MAX];
    if (crn_ev_only_counts(e))
        return;
    n = CRN_MIN(n, sizeof text - 1);
    memcpy(text, name, n);
    text[n] = 0;
    crn_rec_lock();
    if (crn_tables_pattern(&crn_rec.tables, text, e->number, &e->nnumbers, &e->r.name) < 0)
        e->nnumbers = 0;
    crn_rec_grown();
    crn_rec_unlock();
}

/* ---- lists ---- */

void crn_ev_list(crn_ev *e, int c, crn_whole v, int n)
{
    crn_ints *list = &e->t->list[c];
    list->n = 0;
    if (n > 0 && crn_whole_given(v) && crn_vec_reserve(list, (size_t)n) == 0) {
        for (int i = 0; i < n; i++)
            list->at[list->n++] = crn_whole_at(v, i);
    }
    e->r.value[c] = 0;
    e->r.list[c] = (crn_list){list->at, list->n};
}

/* Two columns: the sum, and the counts. */
void crn_ev_counts(crn_ev *e, int c, crn_whole counts, int64_t n)
{
    int64_t total = 0;
    for (int64_t i = 0; crn_whole_given(counts) && i < n; i++)
        total += crn_whole_at(counts, i);
    e->r.value[c] = total;
    crn_ev_list(e, c + 1, counts, (int)n);
}

/* In place a call has no counts to send by, and what the program gives for them is not read. */
void crn_ev_send_counts(crn_ev *e, int c, crn_whole counts, const void *buf)
{
    crn_ev_counts(e, c, counts, buf == MPI_IN_PLACE ? 0 : e->r.comm_size);
}

/* Only the root has counts. Between groups it says so itself: ranks are those of its group. */
void crn_ev_root_counts(crn_ev *e, int c, crn_whole counts, int root)
{
    bool here = e->between ? root == MPI_ROOT : root == e->r.comm_rank;
    crn_ev_counts(e, c, counts, here ? e->r.comm_size : 0);
}

static int64_t type_nbytes(int64_t count, MPI_Datatype type)
{
    MPI_Count size = 0;
    if (count > 0) /* else the type need not be one */
        PMPI_Type_size_x(type, &size);
    return count * size;
}

void crn_ev_type_counts(crn_ev *e, int c, crn_whole counts, const MPI_Datatype *types)
{
    int64_t total = 0;
    for (int64_t i = 0; crn_whole_given(counts) && types && i < e->r.comm_size; i++)
        total += type_nbytes(crn_whole_at(counts, i), types[i]);
    e->r.value[c] = total;
}

void crn_ev_send_type_counts(crn_ev *e, int c, crn_whole counts, const MPI_Datatype *types,
                             const void *buf)
{
    crn_ev_type_counts(e, c, buf == MPI_IN_PLACE ? crn_small(NULL) : counts, types);
}

void crn_ev_neighbor_counts(crn_ev *e, int c, crn_whole counts, MPI_Comm comm, bool out)
{
    crn_ev_counts(e, c, counts, crn_comm_neighbors(comm, out));
}

/* As above, but bytes: each neighbour has its own type. */
void crn_ev_neighbor_type_counts(crn_ev *e, int c, crn_whole counts, const MPI_Datatype *types,
                                 MPI_Comm comm, bool out)
{
    crn_ints *list = &e->t->list[c + 1];
    int n = crn_comm_neighbors(comm, out);
    list->n = 0;
    e->r.value[c] = e->r.value[c + 1] = 0;
    if (n > 0 && crn_whole_given(counts) && types && crn_vec_reserve(list, (size_t)n) == 0) {
        for (int i = 0; i < n; i++) {
            list->at[list->n++] = type_nbytes(crn_whole_at(counts, i), types[i]);
            e->r.value[c] += list->at[i];
        }
    }
    e->r.list[c + 1] = (crn_list){list->at, list->n};
}

void crn_ev_cart_dims(crn_ev *e, int c, crn_whole dims, MPI_Comm comm)
{
    int n = 0;
    PMPI_Cartdim_get(comm, &n);
    crn_ev_list(e, c, dims, n);
}

/* ---- requests ---- */

void crn_ev_new_request(crn_ev *e, int c, const MPI_Request *request)
{
    e->r.value[c] = CRN_REQ_NULL;
    if (request && !crn_ev_only_counts(e)) {
        crn_requests_lock();
        e->r.value[c] =
            crn_request_new(request, &e->key, crn_call_has(e->r.call, CRN_TRAIT_PREPARES), e->wild);
        crn_requests_unlock();
    }
    e->wild = false; /* who it got is known when it completes */
}

/* The numbers of n requests into number; their slots into the thread's list. */
static void note_requests(crn_ev *e, size_t n, const MPI_Request *request, int64_t *number)
{
    crn_thread *t = e->t;
    crn_requests_lock();
    for (size_t i = 0; i < n; i++) {
        uint32_t slot = t->request.at[i] = crn_request_find(&request[i]);
        number[i] = CRN_REQ_NULL;
        if (slot == CRN_NO_REQUEST)
            continue;
        number[i] = crn_request_at(slot)->number;
        e->wild |= crn_request_at(slot)->wild;
    }
    crn_requests_unlock();
    t->request.n = n;
}

void crn_ev_request(crn_ev *e, int c, const MPI_Request *request)
{
    e->r.value[c] = CRN_REQ_NULL;
    if (crn_vec_reserve(&e->t->request, 1) == 0)
        note_requests(e, 1, request, &e->r.value[c]);
}

void crn_ev_requests(crn_ev *e, int c, int n, const MPI_Request *request)
{
    crn_ints *list = &e->t->list[c];
    list->n = 0;
    if (n > 0 && request && crn_vec_reserve(list, (size_t)n) == 0 &&
        crn_vec_reserve(&e->t->request, (size_t)n) == 0) {
        note_requests(e, (size_t)n, request, list->at);
        list->n = (size_t)n;
    }
    e->r.value[c] = 0;
    e->r.list[c] = (crn_list){list->at, list->n};
}

void crn_ev_completed(crn_ev *e, const MPI_Request *request)
{
    e->after = request;
}

void crn_ev_flag(crn_ev *e, int c, int flag)
{
    e->r.value[c] = flag != 0;
    e->nothing |= flag == 0;
}

void crn_ev_index(crn_ev *e, int c, int index)
{
    e->r.value[c] = index == MPI_UNDEFINED ? -1 : index;
    e->only = index == MPI_UNDEFINED ? -1 : index;
    e->nothing |= index == MPI_UNDEFINED;
}

void crn_ev_indices(crn_ev *e, int c, int n, const int *index)
{
    n = n == MPI_UNDEFINED ? 0 : n;
    crn_ev_list(e, c, crn_small(index), n);
    e->some = index;
    e->nsome = n;
}

/* A status that the program ignores is only asked for where a wildcard wants to know. */
MPI_Status *crn_ev_status(crn_ev *e, MPI_Status *status)
{
    if (status == MPI_STATUS_IGNORE && !e->wild)
        return status;
    e->status = status == MPI_STATUS_IGNORE ? &e->one : status;
    return e->status;
}

MPI_Status *crn_ev_statuses(crn_ev *e, int n, MPI_Status *statuses)
{
    if (statuses == MPI_STATUSES_IGNORE) {
        if (!e->wild || crn_vec_reserve(&e->t->status, (size_t)CRN_MAX(n, 1)) < 0)
            return statuses;
        e->status = e->t->status.at;
    } else {
        e->status = statuses;
    }
    return e->status;
}
