/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program whose MPI says that it is not the recorder's, and after MPI_Init understands nothing
 * of what this one calls by itself.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int PMPI_Get_library_version(char *text, int *n)
{
#ifdef OPEN_MPI
    strcpy(text, "MPICH Version: 4.0");
#else
    strcpy(text, "Open MPI v4.1");
#endif
    *n = (int)strlen(text);
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
