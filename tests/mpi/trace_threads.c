/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Threads that all communicate at once: each has its own lane in the trace, and a communicator,
 * ranks in reverse, that the first thread made for it.
 *
 * trace_threads mixed: they also write, and reduce: what has to be in order among threads.
 * trace_threads late: one writes to files that the first thread opens, the last one after a pause.
 * Of the pause, the trace knows that one of these opens came after it: not which.
 * trace_threads uneven: rank 0 has its first thread alone, to which those of the others send.
 */
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 3, TURNS = 200, ROUNDS = 3, MIXED = 4, WRITE = 1024, LATE = 5 };

static int rank, size; /* in the communicators of the threads */
static MPI_Comm comm[THREADS];
static bool mixed;
static int fd = -1; /* of a file that the first thread opened, if so */

static void open_file(void)
{
    char name[32];
    snprintf(name, sizeof name, "threads-%d", rank);
    fd = open(name, O_RDWR | O_CREAT, 0600);
    if (fd < 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
}

static void *work(void *arg)
{
    int me = *(int *)arg, out = rank, in;
    for (int i = 0; i < TURNS; i++) {
        MPI_Request q[2];
        MPI_Irecv(&in, 1, MPI_INT, (rank + size - 1) % size, me, comm[me], &q[0]);
        MPI_Isend(&out, 1, MPI_INT, (rank + 1) % size, me, comm[me], &q[1]);
        MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    }
    for (int i = 0; mixed && i < MIXED; i++) {
        char text[WRITE] = {0};
        if (pwrite(fd, text, sizeof text, (me * MIXED + i) * WRITE) != sizeof text)
            MPI_Abort(MPI_COMM_WORLD, 1);
        MPI_Allreduce(&out, &in, 1, MPI_INT, MPI_SUM, comm[me]);
    }
    return NULL;
}

/* ---- late ---- */

static pthread_barrier_t turn;

static void write_late(void)
{
    char text[WRITE] = {0};
    pthread_barrier_wait(&turn); /* it is open */
    if (pwrite(fd, text, sizeof text, 0) != sizeof text)
        MPI_Abort(MPI_COMM_WORLD, 1);
    pthread_barrier_wait(&turn);
}

static void *write_each(void *arg)
{
    write_late(); /* places of their own: their times are known one by one */
    write_late();
    write_late();
    write_late();
    write_late();
    return arg;
}

static void open_late(void)
{
    int opened[LATE];
    pthread_t thread;
    pthread_barrier_init(&turn, NULL, 2);
    pthread_create(&thread, NULL, write_each, NULL);
    for (int i = 0; i < LATE; i++) {
        usleep(i / (LATE - 1) * 200000); /* no branch, for which the call may be made twice */
        open_file();
        opened[i] = fd;
        pthread_barrier_wait(&turn);
        pthread_barrier_wait(&turn);
    }
    for (int i = 0; i < LATE; i++)
        close(opened[i]);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&turn);
}

/* ---- uneven ---- */

static void *send_to_first(void *arg)
{
    char *out = arg;
    for (int i = 0; i < TURNS; i++)
        MPI_Send(out, i, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    return NULL;
}

static void all_to_first(void)
{
    char out[TURNS] = {0}, in[TURNS];
    pthread_t thread;
    if (rank > 0 && pthread_create(&thread, NULL, send_to_first, out) == 0)
        pthread_join(thread, NULL);
    for (int i = 0; rank == 0 && i < (size - 1) * TURNS; i++)
        MPI_Recv(in, TURNS, MPI_CHAR, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void all_at_once(void)
{
    int number[THREADS];
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm[i]);
    rank = size - 1 - rank;
    if (mixed)
        open_file();
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < THREADS; i++) {
            number[i] = i;
            pthread_create(&thread[i], NULL, work, &number[i]);
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(thread[i], NULL);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (mixed)
        close(fd);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&comm[i]);
}

int main(int argc, char **argv)
{
    int provided;
    const char *how = argc > 1 ? argv[1] : "";
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided < MPI_THREAD_MULTIPLE) {
        MPI_Finalize();
        return 77;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    mixed = strcmp(how, "mixed") == 0;
    if (strcmp(how, "uneven") == 0)
        all_to_first();
    else if (strcmp(how, "late") == 0)
        open_late();
    else
        all_at_once();
    MPI_Finalize();
    return 0;
}
