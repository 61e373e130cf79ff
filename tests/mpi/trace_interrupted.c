/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A handler of signals that writes to a file exactly while the recorder holds its lock: the
 * program's own pthread_mutex_lock, which the recorder gets, too, raises the signal.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TURNS = 20 };

static int out;
static volatile sig_atomic_t nsignals;
static _Thread_local volatile sig_atomic_t armed; /* threads of MPI take locks, too */

static void must(int ok)
{
    if (!ok)
        abort();
}

static void on_signal(int number)
{
    (void)number;
    must(write(out, "x", 1) == 1);
    nsignals++;
}

__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t *lock)
{
    static int (*real)(pthread_mutex_t *);
    if (!real)
        real = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
    int rc = real(lock);
    if (armed) {
        armed = 0;
        must(raise(SIGUSR1) == 0);
    }
    return rc;
}

/* To open a file is to give it a number, under the recorder's lock. */
static void open_one(int turn)
{
    char name[32];
    snprintf(name, sizeof name, "interrupted-%d", turn);
    armed = 1;
    int fd = open(name, O_WRONLY | O_CREAT, 0600);
    armed = 0;
    must(fd >= 0 && close(fd) == 0);
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    MPI_Init(&argc, &argv);
    out = open("interrupted", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    must(out >= 0 && sigaction(SIGUSR1, &action, NULL) == 0);
    for (int i = 0; i < TURNS; i++)
        open_one(i);
    must(write(out, "y", 1) == 1 && close(out) == 0);
    printf("%d signals\n", (int)nsignals);
    MPI_Finalize();
    return 0;
}
