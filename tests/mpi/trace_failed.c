/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program whose calls fail: where errors return, what a call should have set holds whatever it
 * held before, and nothing was moved, mapped or renamed; and an error handler may jump out of the
 * call, after which the program goes on.
 */
#include <fcntl.h>
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static jmp_buf back;

static void must(int ok)
{
    if (!ok)
        abort();
}

static void failing_calls(int size)
{
    MPI_Comm comm;
    MPI_Request request, none = MPI_REQUEST_NULL;
    int dims[] = {1000 * size}, periods[] = {0}, n = 123456789, index[1], x = 0;
    memset(&comm, 0x5a, sizeof comm);
    memset(&request, 0x5a, sizeof request);
    must(MPI_Comm_dup(MPI_COMM_NULL, &comm) != MPI_SUCCESS);
    must(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &comm) != MPI_SUCCESS);
    must(MPI_Isend(&x, 1, MPI_INT, size, 0, MPI_COMM_WORLD, &request) != MPI_SUCCESS);
    must(MPI_Waitsome(-1, &none, &n, index, MPI_STATUSES_IGNORE) != MPI_SUCCESS);
    must(MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, -77, MPI_COMM_WORLD, MPI_STATUS_IGNORE) !=
         MPI_SUCCESS);
}

/* A file that is open for reading. */
static void failing_files(void)
{
    char name[] = "failed-XXXXXX", byte = 0;
    int out = mkstemp(name), in = open(name, O_RDONLY);
    must(out >= 0 && in >= 0);
    must(write(in, &byte, 1) < 0 && pwrite(in, &byte, 1, 0) < 0 && lseek(in, -1, SEEK_SET) < 0);
    must(ftruncate(in, 1) < 0 && mmap(NULL, 1, PROT_WRITE, MAP_SHARED, in, 0) == MAP_FAILED);
    must(rename("no such file", name) < 0 && fsync(-1) < 0);
    must(close(in) == 0 && close(out) == 0 && unlink(name) == 0);
    FILE *gone = fopen(name, "r");
    must(open(name, O_RDONLY) < 0 && !gone);
}

static void jump(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    longjmp(back, 1);
}

static void jumping_call(int size)
{
    MPI_Errhandler handler;
    int x = 0;
    MPI_Comm_create_errhandler(jump, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    if (setjmp(back) == 0) {
        MPI_Send(&x, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
        abort();
    }
    MPI_Errhandler_free(&handler);
}

int main(int argc, char **argv)
{
    int size, x = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    failing_calls(size);
    failing_files();
    jumping_call(size);
    MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
