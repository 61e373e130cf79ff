/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Very many requests under way at once, alike in all but their buffers: set through one variable or
 * in place, and completed one by one, some at a time or all at once, in any order. Each turn does
 * the same, so that requests have the same numbers again, and the trace of many turns is that of
 * one: trace_many REQUESTS TURNS.
 */
#include <mpi.h>
#include <stdlib.h>

static int *room;
static MPI_Request *request;

/* Receives, then the sends that they get; the first half through one variable, then copied. */
static void start(int n)
{
    for (int i = 0; i < 2 * n; i++) {
        MPI_Request here = MPI_REQUEST_NULL, *at = i % n < n / 2 ? &here : &request[i];
        if (i < n)
            MPI_Irecv(&room[i], 1, MPI_INT, 0, 7, MPI_COMM_SELF, at);
        else
            MPI_Isend(&room[i], 1, MPI_INT, 0, 7, MPI_COMM_SELF, at);
        request[i] = *at;
    }
}

/* Backwards. */
static void complete_each(int n)
{
    for (int i = 2 * n - 1; i >= 0; i--)
        MPI_Wait(&request[i], MPI_STATUS_IGNORE);
}

/* First one of them in the middle, which leaves the others as they are. */
static void complete_all(int n)
{
    MPI_Wait(&request[n / 2], MPI_STATUS_IGNORE);
    MPI_Waitall(2 * n, request, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int n = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 100;
    int turns = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1;
    room = calloc((size_t)n * 2, sizeof *room);
    request = malloc((size_t)n * 2 * sizeof(MPI_Request));
    if (!room || !request)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int turn = 0; turn < turns; turn++) {
        start(n);
        complete_each(n);
        start(n);
        complete_all(n);
    }
    free(room);
    free(request);
    MPI_Finalize();
    return 0;
}
