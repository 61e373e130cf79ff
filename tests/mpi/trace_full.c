/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program that never does the same twice: each turn has a new stack, a new list and a new
 * datatype. Its recorder must keep to CAIRN_TRACE_MEMORY, which is given as the argument. One rank.
 * With another argument: one that is all rule, but has many requests at once.
 */
#include <malloc.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { TURNS = 1 << 13, BLOCKS = 1000, REQUESTS = 30000 };

static unsigned long held(void)
{
#if __GLIBC_PREREQ(2, 33)
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
#else /* in int, which these few megabytes fit in */
    struct mallinfo m = mallinfo();
    return (unsigned)m.uordblks + (unsigned)m.hblkhd;
#endif
}

static void new_type(unsigned turn)
{
    static int lengths[BLOCKS], at[BLOCKS];
    static char data[BLOCKS * 1024];
    MPI_Datatype type;
    for (unsigned i = 0; i < BLOCKS; i++) {
        lengths[i] = 1;
        at[i] = (int)(i * 1024 + (turn * 2654435761u + i * i * 40503u) % 1000);
    }
    MPI_Type_indexed(BLOCKS, lengths, at, MPI_CHAR, &type);
    MPI_Type_commit(&type);
    MPI_Bcast(data, 1, type, 0, MPI_COMM_SELF);
    MPI_Type_free(&type);
}

static void new_list(unsigned turn)
{
    static char from[TURNS], to[TURNS];
    int n = (int)turn, at = 0;
    MPI_Alltoallv(from, &n, &at, MPI_CHAR, to, &n, &at, MPI_CHAR, MPI_COMM_SELF);
}

static volatile int calls; /* changed after each, so that none becomes a jump */

static void left(unsigned path);

__attribute__((noinline)) static void right(unsigned path)
{
    if (path <= 1)
        MPI_Barrier(MPI_COMM_SELF);
    else if (path & 1)
        left(path / 2);
    else
        right(path / 2);
    calls++;
}

__attribute__((noinline)) static void left(unsigned path)
{
    if (path <= 1)
        MPI_Barrier(MPI_COMM_SELF);
    else if (path & 1)
        left(path / 2);
    else
        right(path / 2);
    calls++;
}

static void many_requests(void)
{
    static MPI_Request q[REQUESTS];
    static int x;
    for (int i = 0; i < REQUESTS; i++)
        MPI_Recv_init(&x, 1, MPI_INT, 0, i, MPI_COMM_SELF, &q[i]);
    for (int i = 0; i < REQUESTS; i++)
        MPI_Request_free(&q[i]);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc > 2) {
        many_requests();
        MPI_Finalize();
        return 0;
    }
    unsigned long may = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    new_type(0);
    unsigned long before = held();
    for (unsigned turn = 1; turn < TURNS; turn++) {
        if (turn % 4 == 0)
            new_type(turn);
        new_list(turn);
        right(TURNS | turn);
    }
    unsigned long after = held();
    printf("%ld bytes more\n", (long)(after - before));
    MPI_Finalize();
    return after > before + may;
}
