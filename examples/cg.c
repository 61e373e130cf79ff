/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Conjugate gradients on a matrix that is cut into a grid of processes, as in the NAS benchmark CG:
 * sums over a row of the grid are made by exchanges with partners at growing distance, so the
 * number of messages per step grows with the logarithm of the number of ranks.
 *
 *     mpirun -n 8 cg [iterations [solves [size]]]
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BAND = 4, TAG = 1 };

typedef struct grid {
    int rows, cols;      /* of processes; cols = rows or twice as many; powers of two */
    int row, col;        /* where this one is */
    int n, nrow, ncol;   /* size of the matrix; rows and columns of a block */
    int transpose;       /* the rank that has our piece of the result as its piece of the vector */
    int steps, *partner; /* of the sums over a row */
} grid;

static int grid_setup(grid *g, int n)
{
    int rank, size, log = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    while (2 << log <= size)
        log++;
    if (1 << log != size) {
        fprintf(stderr, "cg: %d ranks are not a power of two\n", size);
        return -1;
    }
    g->cols = 1 << (log + 1) / 2;
    g->rows = 1 << log / 2;
    g->row = rank / g->cols;
    g->col = rank % g->cols;
    g->n = (n + g->cols - 1) / g->cols * g->cols;
    g->nrow = g->n / g->rows;
    g->ncol = g->n / g->cols;
    g->transpose = g->cols == g->rows
                       ? g->col * g->cols + g->row
                       : 2 * (rank / 2 % g->rows * g->rows + rank / 2 / g->rows) + rank % 2;
    g->partner = malloc((size_t)(log + 1) * sizeof *g->partner);
    for (g->steps = 0; 1 << g->steps < g->cols; g->steps++)
        g->partner[g->steps] = g->row * g->cols + (g->col ^ 1 << g->steps);
    return g->partner ? 0 : -1;
}

/* One element of the matrix: banded, symmetric, positive definite. */
static double element(int i, int j)
{
    int apart = abs(i - j);
    return apart == 0 ? 2 * BAND + 1 : apart <= BAND ? -1.0 / apart : 0;
}

static void exchange(const double *out, double *in, int n, int peer)
{
    MPI_Request request;
    MPI_Irecv(in, n, MPI_DOUBLE, peer, TAG, MPI_COMM_WORLD, &request);
    MPI_Send(out, n, MPI_DOUBLE, peer, TAG, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Add v over the processes of a row, so that each of them has the sum. */
static void sum_over_row(const grid *g, double *v, double *room, int n)
{
    for (int s = 0; s < g->steps; s++) {
        exchange(v, room, n, g->partner[s]);
        for (int i = 0; i < n; i++)
            v[i] += room[i];
    }
}

static double dot(const grid *g, const double *x, const double *y)
{
    double sum = 0, other;
    for (int i = 0; i < g->ncol; i++)
        sum += x[i] * y[i];
    sum_over_row(g, &sum, &other, 1);
    return sum;
}

/* q = A p: multiply the block, add over the row, bring the piece to where the vector has it. */
static void multiply(const grid *g, const double *p, double *w, double *room, double *q)
{
    for (int i = 0; i < g->nrow; i++) {
        int gi = g->row * g->nrow + i, first = g->col * g->ncol;
        w[i] = 0;
        for (int gj = gi - BAND; gj <= gi + BAND; gj++) {
            if (gj >= first && gj < first + g->ncol)
                w[i] += element(gi, gj) * p[gj - first];
        }
    }
    sum_over_row(g, w, room, g->nrow);
    int half = g->cols > g->rows ? g->col % 2 * g->ncol : 0;
    exchange(w + half, q, g->ncol, g->transpose);
}

/* Solve A z = 1; the residual's norm is returned. */
static double solve(const grid *g, int iterations, double *z, double *r, double *p, double *q,
                    double *w, double *room)
{
    for (int i = 0; i < g->ncol; i++) {
        z[i] = 0;
        r[i] = p[i] = 1;
    }
    double rho = dot(g, r, r);
    for (int it = 0; it < iterations; it++) {
        multiply(g, p, w, room, q);
        double alpha = rho / dot(g, p, q), before = rho;
        for (int i = 0; i < g->ncol; i++) {
            z[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        rho = dot(g, r, r);
        for (int i = 0; i < g->ncol; i++)
            p[i] = r[i] + rho / before * p[i];
    }
    return sqrt(rho);
}

int main(int argc, char **argv)
{
    int iterations = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 25;
    int solves = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 15;
    int n = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 7000;
    grid g;
    MPI_Init(&argc, &argv);
    if (grid_setup(&g, n) < 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    size_t most = (size_t)(g.nrow > g.ncol ? g.nrow : g.ncol);
    double *v = calloc(6 * most, sizeof *v), norm = 0;
    if (!v)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < solves; i++)
        norm = solve(&g, iterations, v, v + most, v + 2 * most, v + 3 * most, v + 4 * most,
                     v + 5 * most);
    if (g.row == 0 && g.col == 0)
        printf("residual %.3e\n", norm);
    free(v);
    free(g.partner);
    MPI_Finalize();
    return 0;
}
