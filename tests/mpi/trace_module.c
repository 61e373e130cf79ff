/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module that calls MPI; trace_unload.c loads copies of it.
 */
#include <mpi.h>

int module_call(void);

int module_call(void)
{
    return MPI_Barrier(MPI_COMM_SELF) + 1; /* something is left to do: no jump */
}
