/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Communicators: number, own rank and size of each. Those that a thread used lately are at hand; a
 * count of changes shows when these entries may be stale.
 */
#include "trace/trace.h"

enum { CACHE = 8 };

static crn_handles handles;            /* guarded by the recorder's lock */
static CRN_VEC(crn_comm_info) info_of; /* by number; guarded by the recorder's lock */
static _Atomic unsigned changes;

typedef struct known_comm {
    MPI_Comm comm;
    crn_comm_info info;
    unsigned changes; /* + 1, so that 0 is empty */
} known_comm;

static _Thread_local known_comm cache[CACHE] __attribute__((tls_model("initial-exec")));

static uintptr_t key_of(MPI_Comm comm)
{
    return (uintptr_t)comm;
}

/* What MPI says of a communicator. Peers of an intercommunicator are in the other group. */
static crn_comm_info ask(MPI_Comm comm)
{
    crn_comm_info info = {0};
    int rank, size, inter = 0;
    PMPI_Comm_test_inter(comm, &inter);
    PMPI_Comm_size(comm, &size);
    info.size = info.own_size = size;
    info.between = inter;
    if (inter) {
        PMPI_Comm_remote_size(comm, &size);
        info.size = size;
        return info;
    }
    PMPI_Comm_rank(comm, &rank);
    info.rank = rank;
    return info;
}

static crn_comm_info remember(MPI_Comm comm, crn_comm_info info)
{
    int64_t number = crn_handles_add(&handles, key_of(comm));
    while (number >= 0 && info_of.n <= (size_t)number) {
        if (crn_vec_push(&info_of, (crn_comm_info){0}) < 0)
            number = -1;
    }
    info.number = number;
    if (number >= 0)
        info_of.at[number] = info;
    return info;
}

/* World and self have their numbers before any other. */
static void first_two(void)
{
    if (handles.n > 0)
        return;
    remember(MPI_COMM_WORLD, ask(MPI_COMM_WORLD));
    remember(MPI_COMM_SELF, ask(MPI_COMM_SELF));
}

static crn_comm_info look_up(MPI_Comm comm)
{
    crn_comm_info info;
    crn_rec_lock();
    first_two();
    int64_t number = crn_handles_find(&handles, key_of(comm));
    if (number >= 0) {
        info = info_of.at[number];
    } else { /* made by a call that we do not know: its ranks stay as they are */
        info = remember(comm, (crn_comm_info){0});
    }
    crn_rec_unlock();
    return info;
}

static const crn_comm_info *refresh(known_comm *k, MPI_Comm comm, unsigned now) CRN_RARE;

static const crn_comm_info *refresh(known_comm *k, MPI_Comm comm, unsigned now)
{
    static const crn_comm_info null = {.number = CRN_COMM_NULL};
    if (comm == MPI_COMM_NULL)
        return &null;
    *k = (known_comm){.comm = comm, .info = look_up(comm), .changes = now};
    return &k->info;
}

const crn_comm_info *crn_comm_of(MPI_Comm comm)
{
    known_comm *k = &cache[crn_handle_hash(key_of(comm)) % CACHE];
    unsigned now = atomic_load_explicit(&changes, memory_order_acquire) + 1;
    return k->comm == comm && k->changes == now ? &k->info : refresh(k, comm, now);
}

/* World ranks of a communicator's processes: those that peers are counted among. */
static void world_ranks(MPI_Comm comm, crn_ints *ret)
{
    MPI_Group group, world;
    int inter = 0, n, *rank = NULL;
    ret->n = 0;
    PMPI_Comm_test_inter(comm, &inter);
    if (inter)
        PMPI_Comm_remote_group(comm, &group);
    else
        PMPI_Comm_group(comm, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_size(group, &n);
    if (crn_alloc(&rank, 2 * (size_t)n) == 0 && crn_vec_reserve(ret, (size_t)n) == 0) {
        for (int i = 0; i < n; i++)
            rank[i] = i;
        PMPI_Group_translate_ranks(group, n, rank, world, rank + n);
        for (int i = 0; i < n; i++)
            ret->at[ret->n++] = rank[n + i] == MPI_UNDEFINED ? -1 : rank[n + i];
    }
    free(rank);
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
}

crn_comm_info crn_comm_new(MPI_Comm comm, crn_ints *world)
{
    world->n = 0;
    if (comm == MPI_COMM_NULL)
        return (crn_comm_info){.number = CRN_COMM_NULL};
    world_ranks(comm, world);
    crn_comm_info info = ask(comm);
    crn_rec_lock();
    first_two();
    crn_handles_drop(&handles, key_of(comm)); /* freed by a call that we do not know */
    info = remember(comm, info);
    /* release: pairs with the acquire above, so a thread that sees the change looks anew */
    atomic_fetch_add_explicit(&changes, 1, memory_order_release);
    crn_rec_unlock();
    return info;
}

void crn_comm_drop(MPI_Comm comm)
{
    crn_rec_lock();
    crn_handles_drop(&handles, key_of(comm));
    atomic_fetch_add_explicit(&changes, 1, memory_order_release);
    crn_rec_unlock();
}

int crn_comm_neighbors(MPI_Comm comm, bool out)
{
    int status, in_n = 0, out_n = 0, weighted, rank;
    PMPI_Topo_test(comm, &status);
    if (status == MPI_DIST_GRAPH) {
        PMPI_Dist_graph_neighbors_count(comm, &in_n, &out_n, &weighted);
        return out ? out_n : in_n;
    }
    if (status == MPI_CART) {
        PMPI_Cartdim_get(comm, &in_n);
        return 2 * in_n;
    }
    PMPI_Comm_rank(comm, &rank);
    PMPI_Graph_neighbors_count(comm, rank, &in_n);
    return in_n;
}
