/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One-sided calls, and communication between two groups of ranks; at least two ranks.
 */
#include <mpi.h>
#include <string.h>

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

/* The lower half of the ranks and the upper one. */
static void groups(void)
{
    MPI_Comm half, both, one;
    const int upper = rank >= size / 2;
    int me, peers, x[N] = {0}, y[N];
    MPI_Comm_split(MPI_COMM_WORLD, upper, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, upper ? 0 : size / 2, 9, &both);
    MPI_Comm_rank(both, &me);
    MPI_Comm_remote_size(both, &peers);
    for (int i = 0; i < TURNS; i++) {
        if (me < peers && !upper)
            MPI_Send(x, N, MPI_INT, me, 4, both);
        else if (me < peers && me < size / 2)
            MPI_Recv(y, N, MPI_INT, MPI_ANY_SOURCE, 4, both, MPI_STATUS_IGNORE);
        MPI_Bcast(x, N, MPI_INT, upper ? 0 : me == 0 ? MPI_ROOT : MPI_PROC_NULL, both);
        MPI_Allreduce(x, y, N, MPI_INT, MPI_SUM, both);
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
    MPI_Finalize();
    return 0;
}
