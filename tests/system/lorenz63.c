/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lorenz's model of 1963 (sigma 10, rho 28, beta 8/3) by the fourth-order Runge-Kutta method with
 * steps of 0.01, for test_particle_numpy.py: it prints the state before and after each task, so
 * that another program can follow what the filter did.
 *
 *     lorenz63 [microseconds that a task takes besides]
 */
#define _POSIX_C_SOURCE 199309L /* nanosleep */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cairn/ensemble.h>

enum { N = 3 };
static const double dt = 0.01;

static void slope(const double *x, double *d)
{
    d[0] = 10 * (x[1] - x[0]);
    d[1] = x[0] * (28 - x[2]) - x[1];
    d[2] = x[0] * x[1] - 8. / 3 * x[2];
}

static void step(double *x)
{
    static const double at[] = {0, 0.5, 0.5, 1}, weight[] = {1, 2, 2, 1};
    double k[N] = {0}, y[N], sum[N] = {0};
    for (int s = 0; s < 4; s++) {
        for (int i = 0; i < N; i++)
            y[i] = x[i] + at[s] * dt * k[i];
        slope(y, k);
        for (int i = 0; i < N; i++)
            sum[i] += weight[s] * k[i];
    }
    for (int i = 0; i < N; i++)
        x[i] += dt / 6 * sum[i];
}

static void show(const char *what, const cairn_task *t, const double *x)
{
    printf("%s %llu %u %.17g %.17g %.17g\n", what, (unsigned long long)t->cycle, t->member, x[0],
           x[1], x[2]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    cairn_ensemble *e;
    cairn_task t = {.struct_bytes = sizeof t};
    double x[N] = {1.509, -1.531, 25.46};
    int more;
    const struct timespec pause = {.tv_nsec = argc > 1 ? 1000 * atol(argv[1]) : 0};
    MPI_Init(&argc, &argv);
    const cairn_field f = {.name = "x", .data = x, .type = CAIRN_FLOAT64, .count = {N}};
    if (cairn_member_open(MPI_COMM_WORLD, 0, &e) < 0 ||
        cairn_member_field(e, CAIRN_ASSIMILATED, &f) < 0)
        return 1;
    while ((more = cairn_member_next(e, &t)) > 0) {
        show("before", &t, x);
        for (uint64_t i = 0; i < t.nsteps; i++)
            step(x);
        nanosleep(&pause, NULL);
        show("after", &t, x);
    }
    if (more < 0)
        fprintf(stderr, "%s\n", cairn_member_error());
    cairn_member_close(e);
    MPI_Finalize();
    return more < 0;
}
