/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The less usual ways to move data between memory and files, KiB by KiB: each rank writes 10 and
 * reads 8. Streams are written and read in other ways than by fwrite and fread.
 */
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

enum { KIB = 1024 };

static char room[KIB];

static void must(int ok)
{
    if (!ok)
        abort();
}

static void finish(struct aiocb *cb)
{
    const struct aiocb *list[] = {cb};
    while (aio_error(cb) == EINPROGRESS)
        aio_suspend(list, 1, NULL);
    must(aio_return(cb) == KIB);
}

/* 3 written, 3 read. */
static void vectors_and_aio(int fd)
{
    struct iovec v[] = {{room, KIB / 2}, {room + KIB / 2, KIB / 2}};
    struct aiocb cb = {
        .aio_fildes = fd, .aio_buf = room, .aio_nbytes = KIB, .aio_offset = 2L * KIB};
    must(pwritev2(fd, v, 2, KIB, 0) == KIB && preadv2(fd, v, 2, KIB, 0) == KIB);
    must(pwritev2(fd, v, 2, -1, 0) == KIB && lseek(fd, 0, SEEK_SET) == 0);
    must(preadv2(fd, v, 2, -1, 0) == KIB && aio_write(&cb) == 0);
    finish(&cb);
    must(aio_read(&cb) == 0);
    finish(&cb);
}

/* 2 written, 2 read. */
static void copies(int from, int to)
{
    off_t off = 0;
    loff_t at = 3L * KIB;
    must(sendfile(to, from, &off, KIB) == KIB && lseek(from, 0, SEEK_SET) == 0);
    must(copy_file_range(from, NULL, to, &at, KIB, 0) == KIB);
}

static void put_kib(FILE *f)
{
    for (int i = 0; i < KIB / 16; i++)
        must(fprintf(f, "line %9d", i) == 14 && putc('.', f) == '.' && putc('\n', f) == '\n');
}

static void get_kib(FILE *f)
{
    char line[32];
    for (int n = 0; n < KIB;) {
        must(fgets(line, sizeof line, f) != NULL);
        n += (int)strlen(line);
    }
}

/* 5 written, 3 read. */
static void streams(const char *name, const char *other)
{
    FILE *f = fopen(name, "w+");
    must(f != NULL);
    put_kib(f);
    must(fseek(f, 8L * KIB, SEEK_SET) == 0);
    put_kib(f);
    rewind(f);
    get_kib(f);
    must(fseeko(f, 8L * KIB, SEEK_SET) == 0);
    get_kib(f);
    f = freopen(other, "w", f);
    must(f != NULL);
    put_kib(f);
    must(fclose(f) == 0);
    f = fopen(other, "a");
    must(f && fwrite(room, 1, KIB, f) == KIB);
    put_kib(f);
    must(fclose(f) == 0);
    f = fdopen(open(other, O_RDONLY), "r");
    must(f != NULL);
    get_kib(f);
    must(fclose(f) == 0);
}

int main(int argc, char **argv)
{
    char name[3][32];
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 3; i++)
        snprintf(name[i], sizeof name[i], "forms-%d-%c", rank, 'a' + i);
    int fd = open(name[0], O_RDWR | O_CREAT, 0600), to = creat(name[1], 0600);
    must(fd >= 0 && to >= 0);
    vectors_and_aio(fd);
    copies(fd, to);
    must(close(fd) == 0 && close(to) == 0);
    streams(name[0], name[1]);
    must(renameat(AT_FDCWD, name[0], AT_FDCWD, name[2]) == 0);
    must(remove(name[1]) == 0 && unlinkat(AT_FDCWD, name[2], 0) == 0);
    MPI_Finalize();
    return 0;
}
