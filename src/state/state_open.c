/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The calls that take a communicator, and those that do without.
 */
#include <mpi.h>

#include "state/state_compare.h"

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

int cairn_compare_states(MPI_Comm mpi, const cairn_states *first, const cairn_states *second,
                         const cairn_comparison_options *how, cairn_comparison *ret)
{
    crn_comm *comm;
    CRN_TRY(crn_comm_create(mpi, &comm));
    return crn_states_compare(comm, first, second, how, ret);
}
