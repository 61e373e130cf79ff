/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Programs that end in other ways than they should: trace_ends HOW, after some hundred exchanges
 * and enough time for each rank to keep its trace aside.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void exchange(int n)
{
    int rank, size, in = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < n; i++) {
        MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &in, 1, MPI_INT,
                     (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (i % 50 == 0)
            usleep(10000);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A child that is no rank, and one that becomes another program: neither may disturb the trace. */
static void make_children(void)
{
    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            if (i == 0)
                exit(0); /* runs what the library does at the end of a program */
            execl("/bin/true", "true", (char *)NULL);
            _exit(1);
        }
        waitpid(pid, NULL, 0);
    }
}

/* Until all ranks have kept their traces aside, or for ten seconds at least. */
static void exchange_for_long(int rank)
{
    char name[4096];
    const char *out = getenv("CAIRN_TRACE_OUT");
    snprintf(name, sizeof name, "%s.%d", out ? out : "", rank);
    for (int i = 0, kept = 0; i < 1000 && !kept; i++) {
        exchange(50);
        kept = access(name, F_OK) == 0;
        MPI_Allreduce(MPI_IN_PLACE, &kept, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    int rank;
    const char *how = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    exchange(400);
    if (strcmp(how, "abort") == 0 && rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 7);
    if (strcmp(how, "early") == 0)
        exchange_for_long(rank);
    if ((strcmp(how, "kill") == 0 || strcmp(how, "early") == 0) && rank == 1)
        raise(SIGKILL);
    if (strcmp(how, "exit") == 0)
        _Exit(rank == 1 ? 3 : 0);
    if (strcmp(how, "fork") == 0)
        make_children();
    exchange(400);
    MPI_Finalize();
    return 0;
}
