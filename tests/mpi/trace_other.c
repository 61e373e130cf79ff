/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program whose MPI says that it is not the recorder's, or, given a word, that it was spawned by
 * another program; and after MPI_Init understands nothing of what the recorder calls by itself.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int spawned;

int PMPI_Get_library_version(char *text, int *n)
{
#ifdef OPEN_MPI
    const int open_mpi = spawned;
#else
    const int open_mpi = !spawned;
#endif
    *n = snprintf(text, sizeof "Open MPI", "%s", open_mpi ? "Open MPI" : "MPICH");
    return MPI_SUCCESS;
}

int PMPI_Comm_get_parent(MPI_Comm *parent)
{
    *parent = spawned ? MPI_COMM_SELF : MPI_COMM_NULL;
    return MPI_SUCCESS;
}

int PMPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy)
{
    (void)comm;
    (void)copy;
    abort();
}

int main(int argc, char **argv)
{
    spawned = argc > 1;
    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
