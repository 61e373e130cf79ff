/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A handler of signals that writes to a file and makes one, whatever the program and the recorder
 * are doing when the timer strikes.
 */
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

enum { SIGNALS = 500, PERIOD = 100 }; /* microseconds */

static int out;
static char other[32];
static volatile sig_atomic_t nsignals;

static void must(int ok)
{
    if (!ok)
        abort();
}

static void on_signal(int number)
{
    int fd = open(other, O_WRONLY | O_CREAT, 0600);
    (void)number;
    if (fd >= 0 && close(fd) == 0 && write(out, "x", 1) == 1)
        nsignals++;
}

static void set_timer(int period)
{
    struct itimerval it = {{0, period}, {0, period}};
    must(setitimer(ITIMER_REAL, &it, NULL) == 0);
}

/* Descriptors come and go. Nothing here allocates memory, or the handler might wait for that. */
static void work(int rank)
{
    char name[32];
    snprintf(name, sizeof name, "signals-%d-more", rank);
    while (nsignals < SIGNALS) {
        int fd = open(name, O_WRONLY | O_CREAT, 0600);
        must(fd >= 0 && write(fd, name, 1) == 1 && close_range((unsigned)fd, (unsigned)fd, 0) == 0);
    }
}

int main(int argc, char **argv)
{
    char name[32];
    int rank;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(name, sizeof name, "signals-%d", rank);
    snprintf(other, sizeof other, "signals-%d-other", rank);
    out = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    must(out >= 0 && sigaction(SIGALRM, &action, NULL) == 0);
    set_timer(PERIOD);
    work(rank);
    set_timer(0);
    must(close(out) == 0);
    MPI_Finalize();
    return 0;
}
