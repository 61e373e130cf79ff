/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shallow water on a rotating plane, periodic in both directions, with a vortex that a mean flow
 * carries along: a model for ensembles, observed at scattered points (examples/vortex.ini).
 *
 *     dh/dt = -d(uh)/dx - d(vh)/dy
 *     du/dt = -u du/dx - v du/dy + f v       - g dh/dx + k laplace(u)
 *     dv/dt = -u dv/dx - v dv/dy - f (u - U) - g dh/dy + k laplace(v)
 *
 * by centred differences and the fourth-order Runge-Kutta method; f, g and the mean depth are 1, so
 * waves travel one length in one time. Each rank has some rows.
 *
 *     shallow [--n 48] [--dt 0.1] [--steps 200] [--pause US]
 *
 * Started alone it prints mass, energy and where the vortex is; started by a study it advances what
 * it is given.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/ensemble.h>

#include "example.h"

enum { H, U, V, FIELDS };

static const double SIZE = 12, FLOW = 0.5, FRICTION = 0.005;

typedef struct model {
    uint64_t n, first, rows; /* of n by n elements, rows of this rank */
    double dx, dt;
    uint64_t pause;
    double *x[FIELDS], *slope[FIELDS], *sum[FIELDS];
    double *stage[FIELDS]; /* with a row of each neighbour around it */
    int rank, size;
} model;

/* --- the equations -------------------------------------------------------------------------- */

static void exchange(model *m)
{
    int up = (m->rank + 1) % m->size, down = (m->rank + m->size - 1) % m->size, n = (int)m->n;
    for (int f = 0; f < FIELDS; f++) {
        double *first = m->stage[f] + m->n, *last = first + (m->rows - 1) * m->n;
        MPI_Sendrecv(last, n, MPI_DOUBLE, up, f, m->stage[f], n, MPI_DOUBLE, down, f,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(first, n, MPI_DOUBLE, down, FIELDS + f, last + m->n, n, MPI_DOUBLE, up,
                     FIELDS + f, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* The neighbours of an element, and differences of fields there. */
typedef struct place {
    uint64_t mid, west, east, south, north;
    double half; /* 1 / (2 dx) */
} place;

static double along_x(const double *a, const place *p)
{
    return (a[p->east] - a[p->west]) * p->half;
}

static double along_y(const double *a, const place *p)
{
    return (a[p->north] - a[p->south]) * p->half;
}

static double friction(const double *a, const place *p)
{
    double sum = a[p->east] + a[p->west] + a[p->north] + a[p->south] - 4 * a[p->mid];
    return FRICTION * sum * 4 * p->half * p->half;
}

static void slope_at(model *m, const place *p, uint64_t i)
{
    const double *h = m->stage[H], *u = m->stage[U], *v = m->stage[V];
    const double uu = u[p->mid], vv = v[p->mid];
    m->slope[H][i] = -(h[p->east] * u[p->east] - h[p->west] * u[p->west] +
                       h[p->north] * v[p->north] - h[p->south] * v[p->south]) *
                     p->half;
    m->slope[U][i] = -uu * along_x(u, p) - vv * along_y(u, p) + vv - along_x(h, p) + friction(u, p);
    m->slope[V][i] =
        -uu * along_x(v, p) - vv * along_y(v, p) - (uu - FLOW) - along_y(h, p) + friction(v, p);
}

static void stage(model *m, double h, double weight)
{
    const uint64_t n = m->n, all = m->rows * n;
    for (int f = 0; f < FIELDS; f++)
        for (uint64_t i = 0; i < all; i++)
            m->stage[f][n + i] = m->x[f][i] + h * m->slope[f][i];
    exchange(m);
    for (uint64_t j = 0; j < m->rows; j++)
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t row = (j + 1) * n;
            const place p = {row + i,     row + (i + n - 1) % n, row + (i + 1) % n,
                             row + i - n, row + i + n,           0.5 / m->dx};
            slope_at(m, &p, j * n + i);
        }
    for (int f = 0; f < FIELDS; f++)
        for (uint64_t i = 0; i < all; i++)
            m->sum[f][i] += weight * m->slope[f][i];
}

static void advance(model *m, uint64_t nsteps)
{
    const uint64_t all = m->rows * m->n;
    for (uint64_t s = 0; s < nsteps; s++) {
        pause_us(m->pause);
        for (int f = 0; f < FIELDS; f++)
            memset(m->sum[f], 0, all * sizeof(double));
        stage(m, 0, 1);
        stage(m, m->dt / 2, 2);
        stage(m, m->dt / 2, 2);
        stage(m, m->dt, 1);
        for (int f = 0; f < FIELDS; f++)
            for (uint64_t i = 0; i < all; i++)
                m->x[f][i] += m->dt / 6 * m->sum[f][i];
    }
}

/* --- the first state ------------------------------------------------------------------------ */

/* A low in the west, in balance with the flow around it. */
static void set_vortex(model *m)
{
    const double depth = 0.3, radius = 1.2, x0 = SIZE / 4, y0 = SIZE / 2;
    for (uint64_t j = 0; j < m->rows; j++)
        for (uint64_t i = 0; i < m->n; i++) {
            double x = (double)i * m->dx - x0, y = (double)(m->first + j) * m->dx - y0;
            double hill = -depth * exp(-(x * x + y * y) / (2 * radius * radius));
            uint64_t k = j * m->n + i;
            m->x[H][k] = 1 + hill;
            m->x[U][k] = FLOW + hill * y / (radius * radius);
            m->x[V][k] = -hill * x / (radius * radius);
        }
}

static int model_init(model *m)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &m->rank);
    m->first = m->n * (uint64_t)m->rank / (uint64_t)m->size;
    m->rows = m->n * (uint64_t)(m->rank + 1) / (uint64_t)m->size - m->first;
    m->dx = SIZE / (double)m->n;
    for (int f = 0; f < FIELDS; f++) {
        m->x[f] = calloc(m->rows * m->n, sizeof(double));
        m->slope[f] = calloc(m->rows * m->n, sizeof(double));
        m->sum[f] = calloc(m->rows * m->n, sizeof(double));
        m->stage[f] = calloc((m->rows + 2) * m->n, sizeof(double));
        if (!m->x[f] || !m->slope[f] || !m->sum[f] || !m->stage[f])
            return -1;
    }
    set_vortex(m);
    return 0;
}

static void model_done(model *m)
{
    for (int f = 0; f < FIELDS; f++)
        free(m->x[f]), free(m->slope[f]), free(m->sum[f]), free(m->stage[f]);
}

/* --- the program ---------------------------------------------------------------------------- */

static void print_summary(const model *m)
{
    double local[2] = {0, 0}, total[2];
    struct {
        double depth;
        int at;
    } mine = {INFINITY, 0}, low;
    for (uint64_t i = 0; i < m->rows * m->n; i++) {
        double h = m->x[H][i], u = m->x[U][i] - FLOW, v = m->x[V][i];
        local[0] += h;
        local[1] += 0.5 * (h * (u * u + v * v) + h * h);
        if (h < mine.depth) {
            mine.depth = h;
            mine.at = (int)(m->first * m->n + i);
        }
    }
    MPI_Reduce(local, total, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mine, &low, 1, MPI_DOUBLE_INT, MPI_MINLOC, 0, MPI_COMM_WORLD);
    if (m->rank == 0)
        printf("shallow: mass %.9f, energy %.9f, vortex of depth %.4f at %.2f %.2f\n",
               total[0] * m->dx * m->dx, total[1] * m->dx * m->dx, 1 - low.depth,
               low.at % (int)m->n * m->dx, low.at / (int)m->n * m->dx);
}

static int declare(cairn_ensemble *e, model *m)
{
    static const char *const name[FIELDS] = {"h", "u", "v"};
    int rc = 0;
    for (int f = 0; rc >= 0 && f < FIELDS; f++) {
        cairn_field x = {.name = name[f],
                         .data = m->x[f],
                         .type = CAIRN_FLOAT64,
                         .ndims = 2,
                         .global = {m->n, m->n},
                         .offset = {m->first, 0},
                         .count = {m->rows, m->n}};
        rc = cairn_member_field(e, CAIRN_ASSIMILATED, &x);
    }
    return rc;
}

static int serve(model *m, uint64_t nsteps)
{
    cairn_ensemble *e;
    cairn_task task = {.struct_bytes = sizeof task};
    int rc = cairn_member_open(MPI_COMM_WORLD, nsteps, &e);
    if (rc < 0)
        return rc;
    rc = declare(e, m);
    while (rc >= 0 && (rc = cairn_member_next(e, &task)) > 0)
        advance(m, task.nsteps);
    if (rc == 0 && cairn_member_is_alone(e))
        print_summary(m);
    cairn_member_close(e);
    return rc;
}

static int read_options(model *m, int argc, char **argv, uint64_t *nsteps)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--n") == 0)
            m->n = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--dt") == 0)
            m->dt = strtod(argv[i + 1], NULL);
        else if (strcmp(argv[i], "--steps") == 0)
            *nsteps = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--pause") == 0)
            m->pause = strtoull(argv[i + 1], NULL, 10);
        else
            return -1;
    }
    return argc % 2 == 1 && m->n >= 4 && m->n <= 30000 && m->dt > 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
    model m = {.n = 48, .dt = 0.1};
    uint64_t nsteps = 200;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &m.size);
    if (read_options(&m, argc, argv, &nsteps) < 0 || m.n < (uint64_t)m.size) {
        fprintf(stderr, "usage: shallow [--n N] [--dt T] [--steps S] [--pause US]; at least one "
                        "row on each rank\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int rc = model_init(&m);
    if (rc == 0 && (rc = serve(&m, nsteps)) < 0)
        fprintf(stderr, "shallow: %s\n", cairn_member_error());
    if (rc < 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    model_done(&m);
    MPI_Finalize();
    return 0;
}
