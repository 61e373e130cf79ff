/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program whose result depends on an order: explain_order SWAPPED [thread]. In each step rank 0
 * takes a number from every other rank, from any of them as far as MPI is told, and adds them up in
 * a way that depends on who comes first; the others read two files, each in another way. Step
 * SWAPPED has another order than in other runs. Who comes first is not left to chance: rank 0 asks
 * one rank after the other. With 'thread' a second thread of each rank does all that, and the first
 * one only takes the marks.
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

/* What lies in a status before the call must not matter: MPICH leaves some of it there. */
static void find_any(MPI_Status *status)
{
    memset(status, -1, sizeof *status);
    MPI_Probe(MPI_ANY_SOURCE, ANSWER, MPI_COMM_WORLD, status);
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
        MPI_Status status = {.MPI_SOURCE = MPI_ANY_SOURCE};
        MPI_Send(&go, 1, MPI_INT, asked(i, swapped), ASK, MPI_COMM_WORLD);
        if (i == size - 1)
            find_any(&status);
        MPI_Recv(&x, 1, MPI_DOUBLE, status.MPI_SOURCE, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sum = sum / 3 + x;
    }
}

static int read_block(const char *name)
{
    char text[16];
    FILE *f = fopen(name, "r");
    const int done = f && fread(text, 1, 4, f) == 4;
    return f && fclose(f) == 0 && done;
}

static int read_line(const char *name)
{
    char text[16];
    FILE *f = fopen(name, "r");
    const int done = f && fgets(text, sizeof text, f);
    return f && fclose(f) == 0 && done;
}

static int read_by_mpi(const char *name)
{
    MPI_File f;
    char text[4];
    return MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &f) == MPI_SUCCESS &&
           MPI_File_read_at(f, 0, text, 4, MPI_CHAR, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
           MPI_File_close(&f) == MPI_SUCCESS;
}

static void read_files(int swapped)
{
    static int (*const read_one[])(const char *) = {read_block, read_line, read_by_mpi};
    char name[32];
    for (int i = 0; i < 2 && rank > 0; i++) {
        snprintf(name, sizeof name, "input-%d", swapped ? 1 - i : i);
        if (!read_one[(rank - 1) % 3](name))
            MPI_Abort(MPI_COMM_WORLD, 2);
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
    add_up(number == swapped);
    read_files(number == swapped);
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
    const int swapped = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0;
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
