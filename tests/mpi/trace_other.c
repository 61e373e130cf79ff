/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program whose MPI says that it is not the recorder's, and after MPI_Init understands nothing
 * of what this one calls by itself.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef OPEN_MPI
#define OTHER "MPICH Version: 4.0"
#else
#define OTHER "Open MPI v4.1"
#endif

int PMPI_Get_library_version(char *text, int *n)
{
    *n = snprintf(text, sizeof OTHER, "%s", OTHER);
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
    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
