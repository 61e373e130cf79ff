/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Multigrid on a cube that is cut into boxes: V-cycles of weighted Jacobi steps on coarser and
 * coarser grids. Ranks on the boundary have fewer neighbours than those inside and pass by the
 * messages that others send.
 *
 *     mpirun -n 8 mg [cycles [points of a box along an edge [1: no boundary, the cube is a torus]]]
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEVELS = 8, SMOOTH = 2 };

typedef struct level {
    int n;             /* points along an edge, without the layer of the neighbours' */
    double *u, *f, *r; /* (n + 2)^3 each */
} level;

static MPI_Comm cart;
static int lower[3], upper[3]; /* neighbours; MPI_PROC_NULL at the boundary */
static double *room[4];        /* faces to send and to receive */

static size_t at(int n, int i, int j, int k)
{
    return ((size_t)i * (size_t)(n + 2) + (size_t)j) * (size_t)(n + 2) + (size_t)k;
}

/* The point (a, b) of the face at depth d along an axis. */
static size_t face(int n, int axis, int d, int a, int b)
{
    return axis == 0 ? at(n, d, a, b) : axis == 1 ? at(n, a, d, b) : at(n, a, b, d);
}

static void pack(const double *u, int n, int axis, int d, double *out)
{
    for (int a = 1; a <= n; a++)
        for (int b = 1; b <= n; b++)
            *out++ = u[face(n, axis, d, a, b)];
}

static void unpack(double *u, int n, int axis, int d, const double *in)
{
    for (int a = 1; a <= n; a++)
        for (int b = 1; b <= n; b++)
            u[face(n, axis, d, a, b)] = *in++;
}

/* Exchange the faces along one axis with the neighbours that are there. */
static void exchange(double *u, int n, int axis)
{
    MPI_Request request[4];
    int count = 0;
    if (lower[axis] != MPI_PROC_NULL)
        MPI_Irecv(room[0], n * n, MPI_DOUBLE, lower[axis], axis, cart, &request[count++]);
    if (upper[axis] != MPI_PROC_NULL)
        MPI_Irecv(room[1], n * n, MPI_DOUBLE, upper[axis], axis, cart, &request[count++]);
    if (lower[axis] != MPI_PROC_NULL) {
        pack(u, n, axis, 1, room[2]);
        MPI_Isend(room[2], n * n, MPI_DOUBLE, lower[axis], axis, cart, &request[count++]);
    }
    if (upper[axis] != MPI_PROC_NULL) {
        pack(u, n, axis, n, room[3]);
        MPI_Isend(room[3], n * n, MPI_DOUBLE, upper[axis], axis, cart, &request[count++]);
    }
    MPI_Waitall(count, request, MPI_STATUSES_IGNORE);
    if (lower[axis] != MPI_PROC_NULL)
        unpack(u, n, axis, 0, room[0]);
    if (upper[axis] != MPI_PROC_NULL)
        unpack(u, n, axis, n + 1, room[1]);
}

/* r = f - A u, with the six neighbours of a point. */
static void residual(const level *l)
{
    int n = l->n;
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= n; j++)
            for (int k = 1; k <= n; k++)
                l->r[at(n, i, j, k)] = l->f[at(n, i, j, k)] - 6 * l->u[at(n, i, j, k)] +
                                       l->u[at(n, i - 1, j, k)] + l->u[at(n, i + 1, j, k)] +
                                       l->u[at(n, i, j - 1, k)] + l->u[at(n, i, j + 1, k)] +
                                       l->u[at(n, i, j, k - 1)] + l->u[at(n, i, j, k + 1)];
}

static void relax(level *l)
{
    for (int i = 1; i <= l->n; i++)
        for (int j = 1; j <= l->n; j++)
            for (int k = 1; k <= l->n; k++)
                l->u[at(l->n, i, j, k)] += 0.8 / 6 * l->r[at(l->n, i, j, k)];
}

static void smooth(level *l)
{
    for (int s = 0; s < SMOOTH; s++) {
        for (int axis = 0; axis < 3; axis++)
            exchange(l->u, l->n, axis);
        residual(l);
        relax(l);
    }
}

/* Each coarse point is the mean of eight fine ones, and gives its correction to all of them. */
static void restrict_to(const level *fine, level *coarse)
{
    memset(coarse->u, 0,
           at(coarse->n, coarse->n + 1, coarse->n + 1, coarse->n + 2) * sizeof(double));
    for (int i = 1; i <= fine->n; i++)
        for (int j = 1; j <= fine->n; j++)
            for (int k = 1; k <= fine->n; k++) {
                double *f = &coarse->f[at(coarse->n, (i + 1) / 2, (j + 1) / 2, (k + 1) / 2)];
                *f = (i % 2 && j % 2 && k % 2 ? 0 : *f) + 0.5 * fine->r[at(fine->n, i, j, k)];
            }
}

static void prolong(const level *coarse, level *fine)
{
    for (int i = 1; i <= fine->n; i++)
        for (int j = 1; j <= fine->n; j++)
            for (int k = 1; k <= fine->n; k++)
                fine->u[at(fine->n, i, j, k)] +=
                    coarse->u[at(coarse->n, (i + 1) / 2, (j + 1) / 2, (k + 1) / 2)];
}

static void cycle(level *l, int depth)
{
    smooth(&l[0]);
    if (depth == 1)
        return;
    residual(&l[0]);
    restrict_to(&l[0], &l[1]);
    cycle(l + 1, depth - 1);
    prolong(&l[1], &l[0]);
    smooth(&l[0]);
}

static double norm(const level *l)
{
    double sum = 0, all = 0;
    for (int i = 1; i <= l->n; i++)
        for (int j = 1; j <= l->n; j++)
            for (int k = 1; k <= l->n; k++)
                sum += l->r[at(l->n, i, j, k)] * l->r[at(l->n, i, j, k)];
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, cart);
    return sqrt(all);
}

static int make_levels(level *l, int n)
{
    int depth = 0;
    for (; depth < LEVELS && n >= 2; depth++, n /= 2) {
        size_t points = (size_t)(n + 2) * (size_t)(n + 2) * (size_t)(n + 2);
        l[depth].n = n;
        l[depth].u = calloc(3 * points, sizeof(double));
        if (!l[depth].u)
            MPI_Abort(MPI_COMM_WORLD, 1);
        l[depth].f = l[depth].u + points;
        l[depth].r = l[depth].f + points;
        if (n % 2)
            return depth + 1;
    }
    return depth;
}

int main(int argc, char **argv)
{
    int cycles = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 40;
    int n = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 64;
    int torus = argc > 3 && strtol(argv[3], NULL, 10) != 0;
    int size, rank, dims[3] = {0}, periods[3] = {torus, torus, torus};
    level l[LEVELS];
    double left = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 3, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &cart);
    MPI_Comm_rank(cart, &rank);
    for (int axis = 0; axis < 3; axis++)
        MPI_Cart_shift(cart, axis, 1, &lower[axis], &upper[axis]);
    int depth = make_levels(l, n);
    for (int i = 0; i < 4; i++)
        room[i] = malloc((size_t)n * (size_t)n * sizeof(double));
    for (int i = 1; i <= n; i++)
        l[0].f[at(n, i, i, i)] = 1;
    for (int c = 0; c < cycles; c++) {
        cycle(l, depth);
        left = norm(&l[0]);
    }
    if (rank == 0)
        printf("residual %.3e\n", left);
    for (int i = 0; i < depth; i++)
        free(l[i].u);
    for (int i = 0; i < 4; i++)
        free(room[i]);
    MPI_Comm_free(&cart);
    MPI_Finalize();
    return 0;
}
