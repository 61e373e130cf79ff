/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A ring of ranks that compute and exchange, of which one computes for a fifth longer than the
 * others. Computing is virtual: the recorder's clock is this program's, so that no load of the
 * machine makes another rank slow. trace_uneven RANK
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 60, COUNT = 1000, COMPUTE_NS = 2000000, CALL_NS = 1000, SECOND = 1000000000 };

static uint64_t now = SECOND;

/* For the recorder a clock that goes on by itself a little, for all others that of the system. */
int clock_gettime(clockid_t id, struct timespec *ret)
{
    Dl_info caller;
    if (id != CLOCK_MONOTONIC || !dladdr(__builtin_return_address(0), &caller) ||
        !strstr(caller.dli_fname, "libcairn-trace"))
        return (int)syscall(SYS_clock_gettime, id, ret);
    now += CALL_NS;
    *ret = (struct timespec){(time_t)(now / SECOND), (long)(now % SECOND)};
    return 0;
}

/* Up to a hundredth of noise. */
static void compute(int turn, int rank, bool slow)
{
    const uint64_t ns = COMPUTE_NS + (uint64_t)(turn * 7919 + rank * 104729) % (COMPUTE_NS / 100);
    now += slow ? ns * 6 / 5 : ns;
}

int main(int argc, char **argv)
{
    static double out[COUNT], in[COUNT];
    int rank, size;
    const int slow = argc > 1 ? (int)strtol(argv[1], NULL, 10) : -1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < TURNS; i++) {
        compute(i, rank, rank == slow);
        MPI_Sendrecv(out, COUNT, MPI_DOUBLE, (rank + 1) % size, 1, in, COUNT, MPI_DOUBLE,
                     (rank + size - 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
