/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What MPI 4 has that MPI 3 has not: counts beyond an int, persistent collectives, messages in
 * partitions, both directions at once, groups of sessions; and a program that another one starts.
 * trace_mpi4.py knows how often each call is made. "large": only those that a replay knows;
 * "sessions": without MPI_Init.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TURNS = 5, N = 64 };

static int rank, size, left, right;
static int in[N * 8], out[N * 8];

#if MPI_VERSION >= 4

static void large(void)
{
    MPI_Datatype type;
    MPI_Request r[2];
    MPI_Count counts[8];
    MPI_Aint displs[8];
    MPI_Type_contiguous_c(N / 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < 8; i++) {
        counts[i] = i + 1;
        displs[i] = 8 * i;
    }
    for (int i = 0; i < TURNS; i++) {
        MPI_Irecv_c(in, 2, type, left, 1, MPI_COMM_WORLD, &r[0]);
        MPI_Isend_c(out, 2, type, right, 1, MPI_COMM_WORLD, &r[1]);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        MPI_Bcast_c(in, N, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Allgatherv_c(out, rank + 1, MPI_INT, in, counts, displs, MPI_INT, MPI_COMM_WORLD);
        if (rank % 2 == 0 && rank + 1 < size)
            MPI_Send_c(out, i + 1, MPI_INT, rank + 1, 2, MPI_COMM_WORLD);
        else if (rank % 2 == 1)
            MPI_Recv_c(in, N, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Type_free(&type);
}

static void persistent(void)
{
    MPI_Request r[2];
    MPI_Bcast_init(in, N, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]);
    MPI_Allreduce_init_c(out, in, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]);
    for (int i = 0; i < TURNS; i++) {
        MPI_Startall(2, r);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
}

static void partitioned(void)
{
    MPI_Request r[2];
    int there = 0;
    MPI_Psend_init(out, 4, N / 4, MPI_INT, right, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]);
    MPI_Precv_init(in, 4, N / 4, MPI_INT, left, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]);
    for (int i = 0; i < TURNS; i++) {
        MPI_Startall(2, r);
        MPI_Pready(0, r[0]);
        MPI_Pready_range(1, 2, r[0]);
        MPI_Pready_list(1, (int[]){3}, r[0]);
        MPI_Parrived(r[1], 0, &there);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
}

static void both(void)
{
    MPI_Request r;
    for (int i = 0; i < TURNS; i++) {
        MPI_Isendrecv(out, N, MPI_INT, right, 4, in, N, MPI_INT, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD,
                      &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
}

static void groups(void)
{
    MPI_Group group;
    MPI_Comm comm;
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Comm_create_from_group(group, "trace_mpi4", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Allreduce(out, in, 1, MPI_INT, MPI_SUM, comm);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
}

static int sessions(void)
{
    MPI_Session s;
    MPI_Group group;
    MPI_Comm comm;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &s);
    MPI_Group_from_session_pset(s, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "trace_mpi4", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&s);
    return 0;
}

#endif

static void spawn(char *self)
{
    MPI_Comm child;
    char *args[] = {(char *)"child", NULL};
    MPI_Comm_spawn(self, args, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &child, MPI_ERRCODES_IGNORE);
    if (rank == 0)
        MPI_Recv(in, 1, MPI_INT, 0, 5, child, MPI_STATUS_IGNORE);
    MPI_Comm_disconnect(&child);
}

static int be_child(void)
{
    MPI_Comm parent;
    MPI_Init(NULL, NULL);
    MPI_Comm_get_parent(&parent);
    MPI_Send(out, 1, MPI_INT, 0, 5, parent);
    MPI_Comm_disconnect(&parent);
    MPI_Finalize();
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "child") == 0)
        return be_child();
#if MPI_VERSION >= 4
    if (strcmp(what, "sessions") == 0)
        return sessions();
#endif
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    left = (rank + size - 1) % size;
    right = (rank + 1) % size;
#if MPI_VERSION >= 4
    if (strcmp(what, "spawn") != 0)
        large();
    if (strcmp(what, "all") == 0) {
        persistent();
        partitioned();
        both();
        groups();
    }
#endif
    if (strcmp(what, "spawn") == 0)
        spawn(argv[0]);
    MPI_Finalize();
    return 0;
}
