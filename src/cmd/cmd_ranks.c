/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Work that ranks share, if there are others.
 */
#include "cmd/cmd_ranks.h"

/* Has a launcher started us? Only then is there anyone to speak to, and MPI started for nothing
 * takes longer than most commands. */
static bool is_launched(void)
{
    return getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMI_SIZE") || getenv("PMIX_RANK");
}

int cmd_on_ranks(cmd_work *work, void *arg)
{
    int rank;
    if (!is_launched())
        return work(MPI_COMM_SELF, 0, arg);
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int code = work(MPI_COMM_WORLD, rank, arg);
    MPI_Finalize();
    return code;
}
