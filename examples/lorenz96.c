/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lorenz's model of 1996 on a ring of n variables, dx[i]/dt = (x[i+1] - x[i-2]) x[i-1] - x[i] + F,
 * by the fourth-order Runge-Kutta method, in parallel: a model for ensembles.
 *
 *     lorenz96 [--n 40] [--force 8] [--dt 0.05] [--steps 1000] [--rough 0] [--pause US]
 *
 * --rough adds up to so much to each variable at the start, so that large rings are chaotic soon.
 * --pause sleeps so many microseconds in each step, for a model that takes its time.
 * Started alone it advances its state by so many steps and prints the mean and the variance;
 * started by a study it advances what it is given.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/ensemble.h>

#include "example.h"

enum { LEFT = 2, RIGHT = 1 }; /* neighbours that a variable needs */

typedef struct model {
    uint64_t n, first, mine;
    double force, dt, rough;
    uint64_t pause;
    double *x, *slope, *sum, *stage; /* mine each; stage has the neighbours around it */
    int rank, size;
} model;

static uint64_t cut(uint64_t n, int part, int parts)
{
    return n / (uint64_t)parts * (uint64_t)part +
           (n % (uint64_t)parts) * (uint64_t)part / (uint64_t)parts;
}

/* Fill the neighbours around stage from the ranks beside this one; every rank has at least two. */
static void exchange(model *m)
{
    int left = (m->rank + m->size - 1) % m->size, right = (m->rank + 1) % m->size;
    double *x = m->stage + LEFT;
    MPI_Sendrecv(x + m->mine - LEFT, LEFT, MPI_DOUBLE, right, 0, m->stage, LEFT, MPI_DOUBLE, left,
                 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(x, RIGHT, MPI_DOUBLE, left, 1, x + m->mine, RIGHT, MPI_DOUBLE, right, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* One stage: the slope at x + h times the last slope, added to the sum with its weight. */
static void stage(model *m, double h, double weight)
{
    double *restrict x = m->stage + LEFT, *restrict slope = m->slope, *restrict sum = m->sum;
    const double *restrict from = m->x, force = m->force;
    const int64_t n = (int64_t)m->mine;
    for (int64_t i = 0; i < n; i++)
        x[i] = from[i] + h * slope[i];
    exchange(m);
    for (int64_t i = 0; i < n; i++) {
        slope[i] = (x[i + 1] - x[i - 2]) * x[i - 1] - x[i] + force;
        sum[i] += weight * slope[i];
    }
}

static void advance(model *m, uint64_t nsteps)
{
    for (uint64_t s = 0; s < nsteps; s++) {
        pause_us(m->pause);
        memset(m->sum, 0, m->mine * sizeof *m->sum);
        stage(m, 0, 1);
        stage(m, m->dt / 2, 2);
        stage(m, m->dt / 2, 2);
        stage(m, m->dt, 1);
        for (uint64_t i = 0; i < m->mine; i++)
            m->x[i] += m->dt / 6 * m->sum[i];
    }
}

static int model_init(model *m)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &m->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &m->size);
    m->first = cut(m->n, m->rank, m->size);
    m->mine = cut(m->n, m->rank + 1, m->size) - m->first;
    m->x = calloc(m->mine, sizeof(double));
    m->slope = calloc(m->mine, sizeof(double));
    m->sum = calloc(m->mine, sizeof(double));
    m->stage = calloc(m->mine + LEFT + RIGHT, sizeof(double));
    if (!m->x || !m->slope || !m->sum || !m->stage)
        return -1;
    for (uint64_t i = 0; i < m->mine;
         i++) { /* at rest but for one variable, or as rough as asked */
        const uint64_t k = (m->first + i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        const double unit = (double)((k ^ k >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 11) * 0x1p-53;
        m->x[i] = m->force + (m->first + i == 0 ? 0.01 : 0) + m->rough * (2 * unit - 1);
    }
    return 0;
}

static int read_options(model *m, int argc, char **argv, uint64_t *nsteps)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--n") == 0)
            m->n = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--force") == 0)
            m->force = strtod(argv[i + 1], NULL);
        else if (strcmp(argv[i], "--dt") == 0)
            m->dt = strtod(argv[i + 1], NULL);
        else if (strcmp(argv[i], "--steps") == 0)
            *nsteps = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--rough") == 0)
            m->rough = strtod(argv[i + 1], NULL);
        else if (strcmp(argv[i], "--pause") == 0)
            m->pause = strtoull(argv[i + 1], NULL, 10);
        else
            return -1;
    }
    return argc % 2 == 1 && m->n >= 4 && m->dt > 0 ? 0 : -1;
}

static void print_summary(const model *m)
{
    double local[2] = {0, 0}, total[2];
    for (uint64_t i = 0; i < m->mine; i++) {
        local[0] += m->x[i];
        local[1] += m->x[i] * m->x[i];
    }
    MPI_Reduce(local, total, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    double mean = total[0] / (double)m->n;
    if (m->rank == 0)
        printf("lorenz96: mean %.6f, variance %.6f\n", mean, total[1] / (double)m->n - mean * mean);
}

/* Advance whatever is given, until there is nothing more. */
static int serve(model *m, uint64_t nsteps)
{
    cairn_ensemble *e;
    cairn_task task = {.struct_bytes = sizeof task};
    cairn_field x = {.name = "x",
                     .data = m->x,
                     .type = CAIRN_FLOAT64,
                     .ndims = 1,
                     .global = {m->n},
                     .offset = {m->first},
                     .count = {m->mine}};
    int rc = cairn_member_open(MPI_COMM_WORLD, nsteps, &e);
    if (rc < 0)
        return rc;
    rc = cairn_member_field(e, CAIRN_ASSIMILATED, &x);
    while (rc >= 0 && (rc = cairn_member_next(e, &task)) > 0)
        advance(m, task.nsteps);
    if (rc == 0 && cairn_member_is_alone(e))
        print_summary(m);
    cairn_member_close(e);
    return rc;
}

int main(int argc, char **argv)
{
    model m = {.n = 40, .force = 8, .dt = 0.05};
    uint64_t nsteps = 1000;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &m.size);
    if (read_options(&m, argc, argv, &nsteps) < 0 || m.n / (uint64_t)m.size < LEFT) {
        fprintf(
            stderr,
            "usage: lorenz96 [--n N] [--force F] [--dt T] [--steps S] [--rough A] [--pause US]; "
            "at least two variables on each rank\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int rc = model_init(&m);
    if (rc == 0 && (rc = serve(&m, nsteps)) < 0)
        fprintf(stderr, "lorenz96: %s\n", cairn_member_error());
    if (rc < 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    free(m.x), free(m.slope), free(m.sum), free(m.stage);
    MPI_Finalize();
    return 0;
}
