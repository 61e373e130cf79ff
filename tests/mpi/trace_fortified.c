/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files read through the names that _FORTIFY_SOURCE gives to calls: sizes that the compiler cannot
 * know make it call __read_chk and the like. trace_fortified COUNT, at most 64.
 */
#undef _FORTIFY_SOURCE
#define _FORTIFY_SOURCE 2
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char room[64];

static void need(int yes)
{
    if (!yes)
        MPI_Abort(MPI_COMM_WORLD, 2);
}

static void read_all(const char *name, int flags, size_t n)
{
    int fd = open(name, flags);
    need(fd >= 0 && read(fd, room, n) == (ssize_t)n && pread(fd, room, n, 1) == (ssize_t)n);
    close(fd);
    fd = openat(AT_FDCWD, name, flags);
    need(fd >= 0 && close(fd) == 0);
    FILE *f = fopen(name, "r");
    need(f && fread(room, 1, n, f) == n);
    fclose(f);
}

int main(int argc, char **argv)
{
    char name[32];
    int rank, flags = argc > 2 ? O_RDWR : O_RDONLY;
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 32;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(name, sizeof name, "fortified-%d", rank);
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    need(fd >= 0 && write(fd, room, sizeof room) == (ssize_t)sizeof room);
    close(fd);
    read_all(name, flags, n);
    MPI_Finalize();
    return 0;
}
