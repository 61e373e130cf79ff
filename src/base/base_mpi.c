/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base.h"

#include <dlfcn.h>

/* By a symbol that only one of them has, in the library whose MPI_Init the program gets. */
crn_mpi_kind crn_mpi_of_program(void)
{
    Dl_info where;
    crn_mpi_kind kind = CRN_MPI_UNKNOWN;
    void *init = dlsym(RTLD_DEFAULT, "PMPI_Init");
    if (!init || dladdr(init, &where) == 0 || !where.dli_fname)
        return CRN_MPI_UNKNOWN;
    void *library = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        return CRN_MPI_UNKNOWN; /* it is in the program itself */
    if (dlsym(library, "ompi_mpi_comm_world"))
        kind = CRN_MPI_OPEN;
    else if (dlsym(library, "MPIR_Err_create_code"))
        kind = CRN_MPI_MPICH;
    dlclose(library);
    return kind;
}

const char *crn_mpi_name(crn_mpi_kind kind)
{
    return kind == CRN_MPI_OPEN ? "Open MPI" : kind == CRN_MPI_MPICH ? "MPICH" : "an unknown MPI";
}
