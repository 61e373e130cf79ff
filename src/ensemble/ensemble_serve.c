/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The server as a process: alone, or one of the ranks of a program of MPI, which is started for
 * those studies that ask for it, since it takes longer than all else that a server begins with.
 */
#include <mpi.h>

#include "ensemble/ensemble_server.h"

bool crn_server_has_ranks(const crn_study *study, crn_study_mode mode)
{
    return study->server_ranks > 1 && mode == CRN_MODE_RUN && !study->particle.on;
}

static cairn_status serve_ranks(crn_study *study, crn_study_mode mode)
{
    crn_comm *comm;
    CRN_FAIL_IF(MPI_Init(NULL, NULL) != MPI_SUCCESS, CAIRN_EPEER, "MPI does not start");
    cairn_status rc = crn_comm_create(MPI_COMM_WORLD, &comm);
    if (rc == CAIRN_OK)
        rc = crn_server_run(study, mode, comm);
    if (rc < 0) { /* other ranks may wait for this one */
        fprintf(stderr, "server: %s\n", crn_err_peek()->text);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Finalize();
    return rc;
}

cairn_status crn_serve(crn_study *study, crn_study_mode mode)
{
    crn_comm *comm;
    if (crn_server_has_ranks(study, mode))
        return serve_ranks(study, mode);
    CRN_TRY(crn_comm_create_self(&comm));
    return crn_server_run(study, mode, comm);
}
