/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What benchmarks on several ranks share: all begin at once, the slowest counts, and where one rank
 * cannot go on, none does.
 */
#ifndef CAIRN_BENCH_MPI_H
#define CAIRN_BENCH_MPI_H

#include <mpi.h>

#include <errno.h>
#include <string.h>

#include <cairn/ckpt.h>

#include "bench.h"

/* The result of a call on c must not be a failure. */
static inline void bench_need_call(const cairn *c, int rc)
{
    if (rc < 0) {
        fprintf(stderr, "bench: %s\n", cairn_last_error(c));
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

/* So must that of a system call, whose errno is told. */
static inline void bench_need_sys(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

/* The largest of all ranks' numbers. Collective. */
static inline double bench_longest(double seconds)
{
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds;
}

/* The time when all ranks begin, and seconds since then of the slowest of them. Collective. */
static inline double bench_begin(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    return bench_seconds();
}

static inline double bench_since(double start)
{
    return bench_longest(bench_seconds() - start);
}

#endif
