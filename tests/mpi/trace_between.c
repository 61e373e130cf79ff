/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One-sided calls, and communication between two groups of ranks, one of them a single rank; at
 * least two ranks. Counts lie before a page that nobody may touch: who reads more of them than MPI
 * says, dies.
 */
#include <mpi.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { N = 64, TURNS = 5 };

static int rank, size;

static void put_and_get(MPI_Win win, double *own)
{
    double x[N] = {0}, y[N], one = 1, old;
    int next = (rank + 1) % size;
    MPI_Request q;
    MPI_Win_fence(0, win);
    MPI_Put(x, N / 2, MPI_DOUBLE, next, 0, N / 2, MPI_DOUBLE, win);
    MPI_Accumulate(x, N / 2, MPI_DOUBLE, next, N / 2, N / 2, MPI_DOUBLE, MPI_SUM, win);
    MPI_Win_fence(0, win);
    MPI_Get(y, N, MPI_DOUBLE, next, 0, N, MPI_DOUBLE, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_lock_all(0, win);
    MPI_Fetch_and_op(&one, &old, MPI_DOUBLE, 0, 3, MPI_SUM, win);
    MPI_Rput(x, 1, MPI_DOUBLE, next, 1, 1, MPI_DOUBLE, win, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    MPI_Rget_accumulate(x, 2, MPI_DOUBLE, y, 2, MPI_DOUBLE, next, 4, 2, MPI_DOUBLE, MPI_SUM, win,
                        &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    MPI_Win_flush_all(win);
    MPI_Win_unlock_all(win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win);
    MPI_Get_accumulate(x, 2, MPI_DOUBLE, y, 2, MPI_DOUBLE, next, 4, 2, MPI_DOUBLE, MPI_MAX, win);
    MPI_Win_unlock(next, win);
    own[0] += old;
}

static void windows(void)
{
    MPI_Win win;
    double *own;
    MPI_Win_allocate(N * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win);
    memset(own, 0, N * sizeof(double));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < TURNS; i++)
        put_and_get(win, own);
    MPI_Win_free(&win);
}

/* n times the same number, and after it the end of what may be read. */
static int *counts_of(int n, int each)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *at =
        mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, (off_t)0);
    if (at == MAP_FAILED || mprotect(at + page, page, PROT_NONE) < 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    int *counts = (int *)(void *)(at + page) - n;
    for (int i = 0; i < n; i++)
        counts[i] = each;
    return counts;
}

/* Lists of counts between the groups: of the other one, but for what a group reduces for itself. */
static void vectors(MPI_Comm both, int root, int own, int peers)
{
    int x[N] = {0}, y[N];
    const int *of_peers = counts_of(peers, 2), *zeros = counts_of(peers, 0);
    const int *of_own = counts_of(own, 2 * peers), *here = root == MPI_ROOT ? of_peers : NULL;
    MPI_Allgatherv(x, 2, MPI_INT, y, of_peers, zeros, MPI_INT, both);
    MPI_Alltoallv(x, of_peers, zeros, MPI_INT, y, of_peers, zeros, MPI_INT, both);
    MPI_Gatherv(x, 2, MPI_INT, y, here, here ? zeros : NULL, MPI_INT, root, both);
    MPI_Scatterv(x, here, here ? zeros : NULL, MPI_INT, y, 2, MPI_INT, root, both);
    MPI_Reduce_scatter(x, y, of_own, MPI_INT, MPI_SUM, both);
}

/* In place nothing is said of what is sent. */
static void in_place(void)
{
    int y[N] = {0}, displs[N];
    MPI_Datatype types[N];
    const int *counts = counts_of(size, 1);
    for (int i = 0; i < size; i++) {
        displs[i] = i * (int)sizeof(int);
        types[i] = MPI_INT;
    }
    MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, y, counts, displs, types, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        displs[i] = i;
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, y, counts, displs, MPI_INT,
                  MPI_COMM_WORLD);
}

/* All ranks but one, and the last. */
static void groups(void)
{
    MPI_Comm half, both, one;
    const int upper = rank == size - 1;
    int me, peers, x[N] = {0}, y[N];
    MPI_Comm_split(MPI_COMM_WORLD, upper, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, upper ? 0 : size - 1, 9, &both);
    MPI_Comm_rank(both, &me);
    MPI_Comm_remote_size(both, &peers);
    const int root = upper ? 0 : me == 0 ? MPI_ROOT : MPI_PROC_NULL;
    for (int i = 0; i < TURNS; i++) {
        if (me < peers && !upper)
            MPI_Send(x, N, MPI_INT, me, 4, both);
        else if (upper)
            MPI_Recv(y, N, MPI_INT, MPI_ANY_SOURCE, 4, both, MPI_STATUS_IGNORE);
        MPI_Bcast(x, N, MPI_INT, root, both);
        MPI_Allreduce(x, y, N, MPI_INT, MPI_SUM, both);
        vectors(both, root, size - peers, peers);
    }
    MPI_Intercomm_merge(both, upper, &one);
    MPI_Allreduce(MPI_IN_PLACE, x, 1, MPI_INT, MPI_SUM, one);
    MPI_Comm_free(&one);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    windows();
    groups();
    in_place();
    MPI_Finalize();
    return 0;
}
