/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Adaptive refinement in miniature: a reaction spreads over a ring of patches. Those near a front
 * that wanders around the ring are cut into finer cells, take smaller steps in time and trade
 * larger messages with their neighbours; every few steps the patches are handed out anew. Counts,
 * sizes and partners change with the data, from step to step and from rank to rank.
 *
 *     mpirun -n 8 amr [steps [patches per rank]]
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 64, FINEST = 4, ROWS = 1 << FINEST, REBALANCE = 10, TAG_UP = 1, TAG_DOWN = 2 };

/* CELLS along the ring, and of rows across it one, or as many as refinement makes of it. */
typedef struct patch {
    int owner, level, was;            /* known to all ranks; was: the owner before */
    double u[ROWS][CELLS];            /* the rest is its owner's */
    double mean, edge[ROWS];          /* for the neighbours: of the whole; of the first column */
    double before[ROWS], after[ROWS]; /* from the neighbours: a mean; a column */
} patch;

static int rank, size, npatches;
static patch *patches;
static double *out, *in; /* patches that change hands */

static int rows(const patch *p)
{
    return 1 << p->level;
}

static int cells(const patch *p)
{
    return CELLS * rows(p);
}

static void set_mean(patch *p)
{
    double sum = 0;
    for (int r = 0; r < rows(p); r++)
        for (int i = 0; i < CELLS; i++)
            sum += p->u[r][i];
    p->mean = sum / cells(p);
}

/* Cut each row into two equal ones, or put two together. */
static void set_level(patch *p, int level)
{
    for (; p->owner == rank && p->level < level; p->level++)
        for (int r = rows(p); r-- > 0;) {
            memcpy(p->u[2 * r + 1], p->u[r], sizeof p->u[r]);
            memmove(p->u[2 * r], p->u[r], sizeof p->u[r]);
        }
    for (; p->owner == rank && p->level > level; p->level--)
        for (int r = 0; r < rows(p) / 2; r++)
            for (int i = 0; i < CELLS; i++)
                p->u[r][i] = 0.5 * (p->u[2 * r][i] + p->u[2 * r + 1][i]);
    p->level = level;
}

/* Patches near the front are fine, those far away coarse. */
static void refine(int step)
{
    double front = npatches * (0.5 + 0.45 * sin(step * 0.07));
    for (int i = 0; i < npatches; i++) {
        int apart = (int)fabs(i - front);
        set_level(&patches[i], apart < FINEST ? FINEST - apart : 0);
    }
}

/* Hand out patches in order, so that each rank gets about the same number of cells. */
static void rebalance(void)
{
    long total = 0, before = 0, packed = 0;
    int *sends = calloc(4 * (size_t)size, sizeof *sends), *gets = sends + size;
    int *at_send = gets + size, *at_get = at_send + size;
    for (patch *p = patches; p < patches + npatches; p++)
        total += cells(p);
    for (patch *p = patches; p < patches + npatches; p++) {
        p->was = p->owner;
        p->owner = (int)(before * size / total);
        before += cells(p);
        if (p->was == rank && p->owner != rank) {
            memcpy(out + packed, p->u, (size_t)cells(p) * sizeof *out);
            packed += cells(p);
            sends[p->owner] += cells(p);
        }
        if (p->was != rank && p->owner == rank)
            gets[p->was] += cells(p);
    }
    for (int i = 1; i < size; i++) {
        at_send[i] = at_send[i - 1] + sends[i - 1];
        at_get[i] = at_get[i - 1] + gets[i - 1];
    }
    MPI_Alltoallv(out, sends, at_send, MPI_DOUBLE, in, gets, at_get, MPI_DOUBLE, MPI_COMM_WORLD);
    packed = 0;
    for (patch *p = patches; p < patches + npatches; p++) {
        if (p->was != rank && p->owner == rank) {
            memcpy(p->u, in + packed, (size_t)cells(p) * sizeof *in);
            packed += cells(p);
            set_mean(p);
        }
    }
    free(sends);
}

/* Rows where two patches meet: as many as the finer one has. */
static int border(const patch *p, const patch *q)
{
    return rows(p) > rows(q) ? rows(p) : rows(q);
}

/* Trade borders with the patches of other ranks: a patch gives its mean up, its first column down.
 */
static int trade(MPI_Request *request)
{
    int n = 0;
    for (int i = 0; i < npatches; i++) {
        patch *p = &patches[i], *q = &patches[(i + 1) % npatches];
        int height = border(p, q);
        for (int r = 0; q->owner == rank && r < height; r++)
            q->edge[r] = q->u[r * rows(q) / height][0];
        if (p->owner == rank && q->owner == rank) {
            memcpy(p->after, q->edge, sizeof p->after);
            q->before[0] = p->mean;
        } else if (p->owner == rank) {
            MPI_Irecv(p->after, height, MPI_DOUBLE, q->owner, TAG_DOWN + 2 * i, MPI_COMM_WORLD,
                      &request[n++]);
            MPI_Isend(&p->mean, 1, MPI_DOUBLE, q->owner, TAG_UP + 2 * i, MPI_COMM_WORLD,
                      &request[n++]);
        } else if (q->owner == rank) {
            MPI_Irecv(q->before, height, MPI_DOUBLE, p->owner, TAG_UP + 2 * i, MPI_COMM_WORLD,
                      &request[n++]);
            MPI_Isend(q->edge, height, MPI_DOUBLE, p->owner, TAG_DOWN + 2 * i, MPI_COMM_WORLD,
                      &request[n++]);
        }
    }
    return n;
}

/* What reacts in a cell during dt: w' = w (1 - w) (w - 1/4), taken implicitly, by Newton's method.
 */
static double react(double v, double dt)
{
    double w = v;
    for (int i = 0; i < 4; i++)
        w -= (w - v - dt * w * (1 - w) * (w - 0.25)) / (1 - dt * (2.5 * w - 3 * w * w - 0.25));
    return w;
}

/* A step of a patch: what flows between neighbouring cells, then what reacts. */
static void sweep(patch *p, int height, double dt)
{
    static double next[ROWS][CELLS];
    int n = rows(p);
    for (int r = 0; r < n; r++) {
        const double *u = p->u[r], *up = p->u[r > 0 ? r - 1 : 0],
                     *down = p->u[r + 1 < n ? r + 1 : r];
        for (int i = 0; i < CELLS; i++) {
            double left = i > 0 ? u[i - 1] : p->before[0];
            double right = i + 1 < CELLS ? u[i + 1] : p->after[r * height / n];
            next[r][i] = react(u[i] + dt * (left + right + up[i] + down[i] - 4 * u[i]), dt);
        }
    }
    memcpy(p->u, next, (size_t)cells(p) * sizeof **next);
}

/* Bring a patch forward, a fine one in more and smaller steps. */
static void advance(patch *p, const patch *q)
{
    for (int s = 0; s < rows(p); s++)
        sweep(p, border(p, q), 0.2 / rows(p));
    set_mean(p);
}

static void setup(int each)
{
    npatches = each * size;
    size_t room = (size_t)npatches * ROWS * CELLS;
    patches = calloc((size_t)npatches, sizeof *patches);
    out = calloc(2 * room, sizeof *out);
    if (!patches || !out)
        MPI_Abort(MPI_COMM_WORLD, 1);
    in = out + room;
    for (int i = 0; i < npatches; i++) {
        patches[i].owner = i / each;
        for (int k = 0; k < CELLS / 2 && i % 3 == 0; k++)
            patches[i].u[0][k] = 1;
        set_mean(&patches[i]);
    }
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 200;
    int each = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 64;
    double local = 0, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    setup(each);
    MPI_Request *request = malloc(4 * (size_t)npatches * sizeof(MPI_Request));
    for (int step = 0; step < steps; step++) {
        refine(step);
        if (step % REBALANCE == 0)
            rebalance();
        int n = trade(request);
        MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
        local = 0;
        for (int i = 0; i < npatches; i++) {
            if (patches[i].owner == rank) {
                advance(&patches[i], &patches[(i + 1) % npatches]);
                local += patches[i].mean;
            }
        }
        MPI_Allreduce(&local, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("sum %.6f\n", sum);
    free(request);
    free(out);
    free(patches);
    MPI_Finalize();
    return 0;
}
