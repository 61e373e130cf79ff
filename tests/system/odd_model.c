/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A model of one process that misbehaves, for test_ensemble.py: with member 2, in cycle 2, it does
 * what ODD says: "nan", "range" (a large value), "refuse", "exit", or "once", which exits at the
 * first attempt only, "slow", which takes 3.3 s at the first. "long" sleeps 0.3 s in each task. Its
 * state also has a field that is carried. "hidden" keeps something in the process that is no field
 * and changes field 'y'; "layout" adds up in an order that depends on its ranks; "parameter"
 * changes its parameter; "idle" changes 'x' without a step.
 */
#define _POSIX_C_SOURCE 199309L /* nanosleep */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cairn/ensemble.h>

enum { N = 5 };

static int misbehave(cairn_ensemble *e, const cairn_task *task, const char *how, double *x)
{
    if (task->member != 2 || task->cycle != 2)
        return 0;
    if (strcmp(how, "nan") == 0)
        x[3] = NAN;
    if (strcmp(how, "range") == 0)
        x[4] = 1234;
    if (strcmp(how, "slow") == 0 && task->attempt == 1)
        nanosleep(&(struct timespec){.tv_sec = 3, .tv_nsec = 300000000}, NULL);
    if (strcmp(how, "exit") == 0 || (strcmp(how, "once") == 0 && task->attempt == 1))
        exit(3);
    return strcmp(how, "refuse") == 0 ? cairn_member_refuse(e, "too \"hot\"") : 0;
}

typedef struct model {
    double x[N], y[2], k;
    uint32_t age;
    double hidden;
    int rank, size;
} model;

/* Each element belongs to a rank in turn; the sum of their parts depends on how many there are. */
static double sum_by_rank(const model *m)
{
    double sum = 0;
    for (int r = 0; r < m->size; r++) {
        double part = 0;
        for (int i = r; i < N; i += m->size)
            part += m->x[i];
        sum += part;
    }
    return sum;
}

static void step(model *m, const char *how)
{
    for (int i = 0; i < N; i++)
        m->x[i] = 0.9 * m->x[i] + 0.1 * m->x[(i + 1) % N] + 0.01 * m->k * m->age;
    if (strcmp(how, "hidden") == 0)
        m->y[1] += m->hidden++;
    if (strcmp(how, "layout") == 0)
        m->y[0] = sum_by_rank(m) / 3;
    if (strcmp(how, "parameter") == 0)
        m->k *= 1.01;
    m->age++;
}

static int declare(cairn_ensemble *e, model *m)
{
    const uint64_t mine = m->rank == 0; /* the first rank has all of it, the others compute along */
    const cairn_field field[] = {
        {.name = "x", .data = m->x, .type = CAIRN_FLOAT64, .count = {mine * N}},
        {.name = "y", .data = m->y, .type = CAIRN_FLOAT64, .count = {mine * 2}},
        {.name = "k", .data = &m->k, .type = CAIRN_FLOAT64, .count = {mine}},
        {.name = "age", .data = &m->age, .type = CAIRN_UINT32, .count = {mine}}};
    const cairn_role role[] = {CAIRN_ASSIMILATED, CAIRN_ASSIMILATED, CAIRN_PARAMETER,
                               CAIRN_CARRIED};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof field / sizeof *field; i++)
        rc = cairn_member_field(e, role[i], &field[i]);
    return rc;
}

int main(int argc, char **argv)
{
    const char *how = getenv("ODD") ? getenv("ODD") : "";
    model m = {.x = {1, 2, 3, 4, 5}, .y = {0.1, 0.2}, .k = 1};
    cairn_ensemble *e;
    cairn_task task = {.struct_bytes = sizeof task};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &m.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &m.size);
    int rc = cairn_member_open(MPI_COMM_WORLD, 3, &e);
    if (rc == 0)
        rc = declare(e, &m);
    while (rc >= 0 && (rc = cairn_member_next(e, &task)) > 0) {
        MPI_Bcast(&m, sizeof m, MPI_BYTE, 0, MPI_COMM_WORLD);
        MPI_Comm_rank(MPI_COMM_WORLD, &m.rank);
        if (!cairn_member_is_alone(e) && m.age != task.step)
            exit(4); /* what is carried did not come along */
        for (uint64_t s = 0; s < task.nsteps; s++)
            step(&m, how);
        if (strcmp(how, "long") == 0)
            nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
        if (strcmp(how, "idle") == 0)
            m.x[1] += 1;
        rc = misbehave(e, &task, how, m.x);
    }
    cairn_member_close(e);
    MPI_Finalize();
    return rc < 0;
}
