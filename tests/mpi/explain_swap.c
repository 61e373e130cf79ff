/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Below the recorder, and above MPI: whom a probe for any source finds is not left to chance. Ranks
 * come in their order, again and again; on rank 0 in reverse the EXPLAIN_SWAP-th time.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>

typedef int probe_fn(int source, int tag, MPI_Comm comm, MPI_Status *status);

static int next_source(MPI_Comm comm)
{
    static int asked;
    const char *swap = getenv("EXPLAIN_SWAP");
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int round = asked / size, turn = asked % size;
    asked++;
    return rank == 0 && swap && round + 1 == (int)strtol(swap, NULL, 10) ? size - 1 - turn : turn;
}

int PMPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    probe_fn *real;
    *(void **)&real = dlsym(RTLD_NEXT, "PMPI_Probe");
    return real(source == MPI_ANY_SOURCE ? next_source(comm) : source, tag, comm, status);
}
