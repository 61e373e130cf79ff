/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Adaptive refinement in miniature: a front wanders over a ring of patches; patches near it are cut
 * into finer ones and trade more and larger messages with their neighbours; every few steps the
 * patches are handed out anew. Counts, sizes and partners change with the data, from step to step
 * and from rank to rank.
 *
 *     mpirun -n 8 amr [steps [patches per rank]]
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 64, FINEST = 4, REBALANCE = 10, TAG_UP = 1, TAG_DOWN = 2 };

static int rank, size, npatches;
static int *owner, *level; /* of each patch, known to all */
static double *value;      /* of each patch: its mean */
static double *out, *in;   /* room for the messages of a step */

static int cells(int patch)
{
    return CELLS << level[patch];
}

/* Patches near the front are fine, those far away coarse. */
static void refine(int step)
{
    double front = npatches * (0.5 + 0.45 * sin(step * 0.07));
    for (int p = 0; p < npatches; p++) {
        int apart = (int)fabs(p - front);
        level[p] = apart < FINEST ? FINEST - apart : 0;
    }
}

/* Hand out patches in order, so that each rank gets about the same number of cells. */
static void rebalance(void)
{
    long total = 0, before = 0;
    int *sends = calloc(4 * (size_t)size, sizeof *sends), *gets = sends + size;
    int *at_send = gets + size, *at_get = at_send + size;
    for (int p = 0; p < npatches; p++)
        total += cells(p);
    for (int p = 0; p < npatches; p++) {
        int to = (int)(before * size / total);
        before += cells(p);
        if (owner[p] == rank && to != rank)
            sends[to] += cells(p);
        if (owner[p] != rank && to == rank)
            gets[owner[p]] += cells(p);
        owner[p] = to;
    }
    for (int i = 1; i < size; i++) {
        at_send[i] = at_send[i - 1] + sends[i - 1];
        at_get[i] = at_get[i - 1] + gets[i - 1];
    }
    MPI_Alltoallv(out, sends, at_send, MPI_DOUBLE, in, gets, at_get, MPI_DOUBLE, MPI_COMM_WORLD);
    free(sends);
}

/* Trade borders between patches of different ranks: as many values as the finer one has. */
static int trade(MPI_Request *request)
{
    int n = 0;
    for (int p = 0; p < npatches; p++) {
        int q = (p + 1) % npatches, border = 1 << (level[p] > level[q] ? level[p] : level[q]);
        if (owner[p] == rank && owner[q] != rank) {
            MPI_Irecv(in + n * 64, border, MPI_DOUBLE, owner[q], TAG_DOWN + 2 * p, MPI_COMM_WORLD,
                      &request[n]);
            n++;
            MPI_Isend(&value[p], 1, MPI_DOUBLE, owner[q], TAG_UP + 2 * p, MPI_COMM_WORLD,
                      &request[n++]);
        }
        if (owner[q] == rank && owner[p] != rank) {
            MPI_Irecv(in + n * 64, border, MPI_DOUBLE, owner[p], TAG_UP + 2 * p, MPI_COMM_WORLD,
                      &request[n]);
            n++;
            MPI_Isend(out, border, MPI_DOUBLE, owner[p], TAG_DOWN + 2 * p, MPI_COMM_WORLD,
                      &request[n++]);
        }
    }
    return n;
}

static void advance(int step)
{
    for (int p = 0; p < npatches; p++) {
        if (owner[p] == rank)
            value[p] = 0.9 * value[p] + 0.1 * sin(step + p);
    }
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 200;
    int each = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 4;
    double local = 0, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    npatches = each * size;
    size_t room = (size_t)npatches * (CELLS << FINEST);
    owner = calloc(2 * (size_t)npatches, sizeof *owner);
    level = owner + npatches;
    value = calloc((size_t)npatches, sizeof *value);
    out = calloc(2 * room, sizeof *out);
    in = out + room;
    MPI_Request *request = malloc(4 * (size_t)npatches * sizeof(MPI_Request));
    for (int p = 0; p < npatches; p++)
        owner[p] = p / each;
    for (int step = 0; step < steps; step++) {
        refine(step);
        if (step % REBALANCE == 0)
            rebalance();
        int n = trade(request);
        advance(step);
        MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
        local = 0;
        for (int p = 0; p < npatches; p++)
            local += owner[p] == rank ? fabs(value[p]) : 0;
        MPI_Allreduce(&local, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("sum %.6f\n", sum);
    free(request);
    free(out);
    free(value);
    free(owner);
    MPI_Finalize();
    return 0;
}
