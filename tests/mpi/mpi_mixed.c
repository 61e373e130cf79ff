/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program of one MPI; with CAIRN defined, it opens a session of a library for the other.
 */
#include <mpi.h>
#include <stdio.h>
#ifdef CAIRN
#include <cairn/ckpt.h>
#endif

int main(int argc, char **argv)
{
    int sum = 1, n = 0;
    MPI_Init(&argc, &argv);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
#ifdef CAIRN
    cairn *c = NULL;
    int rc = cairn_open(MPI_COMM_WORLD, NULL, &c);
    printf("%s: %s\n", rc == CAIRN_EUNSUPPORTED ? "refused" : "taken", cairn_last_error(NULL));
#endif
    printf("%s with '%s'\n", sum == n ? "done" : "wrong", argc > 1 ? argv[1] : "");
    MPI_Finalize();
    return 0;
}
