/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The calls that open a shelf: the only ones that know of MPI.
 */
#include <mpi.h>

#include <cairn/state_mpi.h>

#include "state/state_shelf.h"

int cairn_shelf_open(const char *path, const char *config, cairn_shelf **ret)
{
    crn_comm *comm;
    CRN_FAIL_IF(!path || !ret, CAIRN_EINVAL, "cairn_shelf_open: an argument is NULL");
    *ret = NULL;
    CRN_TRY(crn_comm_create_self(&comm));
    return crn_shelf_open(comm, path, config, ret);
}

int cairn_shelf_open_group(MPI_Comm mpi, const char *path, const char *config, cairn_shelf **ret)
{
    crn_comm *comm;
    CRN_FAIL_IF(!path || !ret, CAIRN_EINVAL, "cairn_shelf_open_group: an argument is NULL");
    *ret = NULL;
    CRN_TRY(crn_comm_create(mpi, &comm));
    return crn_shelf_open(comm, path, config, ret);
}
