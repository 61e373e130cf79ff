/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The program of the guides, app, program or simulation: four steps on a global array of 64
 * numbers, with a mark after each, called 1000 to 4000. NUDGE is added to one of them in the third.
 */
#include <cairn/cairn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 64, STEPS = 4 };

static void advance(double *field, uint64_t first, uint64_t n, int step)
{
    const char *nudge = getenv("NUDGE");
    for (uint64_t i = 0; i < n; i++)
        field[i] += (double)(first + i) * step;
    if (first == 0 && step == 3 && nudge)
        field[0] += atof(nudge);
}

int main(int argc, char **argv)
{
    int given, rank, size;
    double field[N] = {0};
    uint64_t version = 0;
    cairn *c;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const uint64_t whole = N, first = (uint64_t)(N * rank / size);
    const uint64_t n = (uint64_t)(N * (rank + 1) / size) - first;
    if (cairn_open(MPI_COMM_WORLD, NULL, &c) < 0) {
        fprintf(stderr, "%s\n", cairn_last_error(NULL));
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    cairn_protect_part(c, "field", field, CAIRN_FLOAT64, 1, &whole, &first, &n);
    if (cairn_resume(c, &version) < 0) {
        fprintf(stderr, "%s\n", cairn_last_error(c));
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    for (int step = (int)(version / 1000) + 1; step <= STEPS; step++) {
        advance(field, first, n, step);
        cairn_mark(c, (uint64_t)step * 1000, CAIRN_AUTO);
    }
    cairn_close(c);
    MPI_Finalize();
    return 0;
}
