/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Threads that all communicate at once: each has its own lane in the trace, and a communicator,
 * ranks in reverse, that the first thread made for it.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 3, TURNS = 200 };

static int rank, size; /* in the communicators of the threads */
static MPI_Comm comm[THREADS];

static void *work(void *arg)
{
    int me = *(int *)arg, out = rank, in;
    for (int i = 0; i < TURNS; i++) {
        MPI_Request q[2];
        MPI_Irecv(&in, 1, MPI_INT, (rank + size - 1) % size, me, comm[me], &q[0]);
        MPI_Isend(&out, 1, MPI_INT, (rank + 1) % size, me, comm[me], &q[1]);
        MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, number[THREADS];
    pthread_t thread[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided < MPI_THREAD_MULTIPLE) {
        MPI_Finalize();
        return 77;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm[i]);
    rank = size - 1 - rank;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < THREADS; i++) {
            number[i] = i;
            pthread_create(&thread[i], NULL, work, &number[i]);
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(thread[i], NULL);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&comm[i]);
    MPI_Finalize();
    return 0;
}
