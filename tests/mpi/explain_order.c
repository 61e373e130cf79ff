/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program whose result depends on an order: explain_order SWAPPED [thread]. In each step rank 0
 * takes a number from every other rank, from any of them as far as MPI is told, and adds them up in
 * a way that depends on who comes first; rank 1 reads two files. Steps up to 2 are the same in all
 * runs; step 3 has another order if SWAPPED is 1. Who comes first is not left to chance: rank 0
 * asks one rank after the other. With 'thread' a second thread of each rank does all that, and the
 * first one only takes the marks.
 */
#include <mpi.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/cairn.h>

enum { STEPS = 4, ASK = 1, ANSWER = 2 };

static int rank, size;
static double sum;

/* The i-th rank that is asked in a step. */
static int asked(int i, int swapped)
{
    return swapped ? size - i : i;
}

static void add_up(int swapped)
{
    double x = rank;
    int go = 0;
    if (rank > 0) {
        MPI_Recv(&go, 1, MPI_INT, 0, ASK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&x, 1, MPI_DOUBLE, 0, ANSWER, MPI_COMM_WORLD);
        return;
    }
    for (int i = 1; i < size; i++) {
        MPI_Send(&go, 1, MPI_INT, asked(i, swapped), ASK, MPI_COMM_WORLD);
        MPI_Recv(&x, 1, MPI_DOUBLE, MPI_ANY_SOURCE, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sum = sum / 3 + x;
    }
}

static void read_files(int swapped)
{
    char name[32], text[16];
    for (int i = 0; i < 2 && rank == 1; i++) {
        snprintf(name, sizeof name, "input-%d", swapped ? 1 - i : i);
        FILE *f = fopen(name, "r");
        if (!f || fread(text, 1, 4, f) != 4)
            MPI_Abort(MPI_COMM_WORLD, 2);
        fclose(f);
    }
}

static void check(int rc)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "explain_order: %s\n", cairn_last_error(NULL));
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static void step(int number, int swapped)
{
    add_up(swapped && number == 3);
    read_files(swapped && number == 3);
}

/* ---- the second thread: it does a step when it is told to, and says when it is done ---- */

static sem_t begin, done;
static int swaps;

static void *other(void *arg)
{
    (void)arg;
    MPI_Barrier(MPI_COMM_SELF); /* it is the second thread that calls MPI in all runs */
    sem_post(&done);
    for (int i = 1; i <= STEPS; i++) {
        sem_wait(&begin);
        step(i, swaps);
        sem_post(&done);
    }
    return NULL;
}

static void step_of_other(void)
{
    sem_post(&begin);
    sem_wait(&done);
}

int main(int argc, char **argv)
{
    cairn *c;
    pthread_t thread;
    int provided;
    const int swapped = argc > 1 && strtol(argv[1], NULL, 10) == 1;
    const int threads = argc > 2 && strcmp(argv[2], "thread") == 0;
    MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    if (threads && provided < MPI_THREAD_MULTIPLE) {
        MPI_Finalize();
        return 77;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sem_init(&begin, 0, 0);
    sem_init(&done, 0, 0);
    swaps = swapped;
    if (threads && pthread_create(&thread, NULL, other, NULL) == 0)
        sem_wait(&done);
    check(cairn_open(MPI_COMM_WORLD, NULL, &c));
    check(cairn_protect(c, "sum", &sum, CAIRN_FLOAT64, 1));
    for (int i = 1; i <= STEPS; i++) {
        if (threads)
            step_of_other();
        else
            step(i, swapped);
        check(cairn_mark(c, (uint64_t)i, CAIRN_AUTO));
    }
    if (threads)
        pthread_join(thread, NULL);
    check(cairn_close(c));
    MPI_Finalize();
    return 0;
}
