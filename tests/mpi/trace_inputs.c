/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program that reads what was there before it: a file of each rank, written before MPI_Init, is
 * read by the system and by MPI, through a view, too; mapped; renamed; and one that is not there
 * is not opened. 10 reads of 4096 bytes on each rank, and 10 lines of 1024 that it appends to a
 * log.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PIECE = 4096, PIECES = 8 };

static char name[64], other[80], buf[PIECE];

static void must(int ok)
{
    if (!ok)
        abort();
}

static void make_input(void)
{
    snprintf(name, sizeof name, "input-%d", (int)getpid());
    snprintf(other, sizeof other, "%s.old", name);
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (int i = 0; i < PIECES; i++)
        must(write(fd, buf, PIECE) == PIECE);
    must(close(fd) == 0);
}

static void by_system(void)
{
    int fd = open(name, O_RDONLY);
    for (int i = 0; i < 3; i++)
        must(read(fd, buf, PIECE) == PIECE);
    must(pread(fd, buf, PIECE, (PIECES - 1) * PIECE) == PIECE);
    void *at = mmap(NULL, PIECE, PROT_READ, MAP_PRIVATE, fd, 0);
    must(at != MAP_FAILED && memcmp(at, buf, PIECE) == 0);
    munmap(at, PIECE);
    must(close(fd) == 0);
    must(open("nothing-of-this-name", O_RDONLY) < 0);
}

static void by_mpi(void)
{
    MPI_File file;
    MPI_Datatype every_other;
    MPI_Type_vector(PIECES, PIECE / 8, PIECE / 4, MPI_BYTE, &every_other);
    MPI_Type_commit(&every_other);
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    for (int i = 0; i < 2; i++)
        MPI_File_read(file, buf, PIECE, MPI_BYTE, MPI_STATUS_IGNORE);
    for (int i = 0; i < 3; i++)
        MPI_File_read_at(file, (MPI_Offset)i * PIECE, buf, PIECE, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_set_view(file, PIECE, MPI_BYTE, every_other, "native", MPI_INFO_NULL);
    MPI_File_read_all(file, buf, PIECE, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Type_free(&every_other);
    must(MPI_File_open(MPI_COMM_SELF, "nothing-of-this-name", MPI_MODE_RDONLY, MPI_INFO_NULL,
                       &file) != MPI_SUCCESS);
}

static void append(void)
{
    char log[64];
    snprintf(log, sizeof log, "log-%d", (int)getpid());
    for (int i = 0; i < 10; i++) {
        FILE *f = fopen(log, "a");
        must(f && fprintf(f, "%1023d\n", i) == 1024 && fclose(f) == 0);
    }
    must(unlink(log) == 0);
}

int main(int argc, char **argv)
{
    make_input();
    MPI_Init(&argc, &argv);
    by_system();
    by_mpi();
    append();
    must(rename(name, other) == 0 && unlink(other) == 0);
    MPI_Finalize();
    return 0;
}
