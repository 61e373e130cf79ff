/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A model of one process that misbehaves, for test_ensemble.py: with member 2, in cycle 2, it does
 * what ODD says: "nan", "refuse", "exit", or "once", which exits at the first attempt only. Its
 * state also has a field that is carried.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/ensemble.h>

enum { N = 5 };

static int misbehave(cairn_ensemble *e, const cairn_task *task, const char *how, double *x)
{
    if (task->member != 2 || task->cycle != 2)
        return 0;
    if (strcmp(how, "nan") == 0)
        x[3] = NAN;
    if (strcmp(how, "exit") == 0 || (strcmp(how, "once") == 0 && task->attempt == 1))
        exit(3);
    return strcmp(how, "refuse") == 0 ? cairn_member_refuse(e, "too \"hot\"") : 0;
}

int main(int argc, char **argv)
{
    const char *how = getenv("ODD") ? getenv("ODD") : "";
    double x[N] = {1, 2, 3, 4, 5};
    uint32_t age = 0;
    cairn_ensemble *e;
    cairn_task task = {.struct_bytes = sizeof task};
    const cairn_field fx = {.name = "x", .data = x, .type = CAIRN_FLOAT64, .count = {N}};
    const cairn_field fage = {.name = "age", .data = &age, .type = CAIRN_UINT32, .count = {1}};
    MPI_Init(&argc, &argv);
    int rc = cairn_member_open(MPI_COMM_WORLD, 3, &e);
    if (rc == 0)
        rc = cairn_member_field(e, CAIRN_ASSIMILATED, &fx);
    if (rc == 0)
        rc = cairn_member_field(e, CAIRN_CARRIED, &fage);
    while (rc >= 0 && (rc = cairn_member_next(e, &task)) > 0) {
        if (!cairn_member_is_alone(e) && age != task.step)
            exit(4); /* what is carried did not come along */
        for (uint64_t s = 0; s < task.nsteps; s++, age++)
            for (int i = 0; i < N; i++)
                x[i] = 0.9 * x[i] + 0.1 * x[(i + 1) % N] + 0.01 * age;
        rc = misbehave(e, &task, how, x);
    }
    cairn_member_close(e);
    MPI_Finalize();
    return rc < 0;
}
