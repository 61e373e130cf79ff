/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Legal programs that a replay could hang in if it waited anywhere that the program did not, or
 * for less or more: trace_orders CASE.
 *
 *   crossed    ranks start non-blocking collectives on two communicators in opposite orders
 *   held       one that all ranks start, but some of them only after what others do behind it
 *   apart      a master and its workers broadcast at places of their own, in loops without rule
 *   neighbors  collectives among neighbours between large messages
 *   spread     MPI_Ialltoallw across messages
 *   copied     MPI_Comm_idup in opposite orders, with collectives on the parents behind
 *   late       the same after one half was busy, so that the other comes to its copies long before
 *   unmet      receives from anyone that get nothing, completed beside others that do
 *   tested     requests without rule, completed by tests, between barriers of few
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TURNS = 150, ROOM = 1 << 16, LARGE = 1 << 15, MANY = 8 };

static int rank, size;
static int even; /* which of two halves: neither is empty on two ranks */
static MPI_Comm all[2], pair;
static double sent[ROOM], got[ROOM], more[ROOM];

/* Without rule, and the same on all ranks. */
static int irregular(int turn, int below)
{
    unsigned x = (unsigned)turn * 2654435761u + 12345u;
    x ^= x >> 15;
    x *= 2246822519u;
    return (int)((x ^ x >> 13) % (unsigned)below);
}

static void crossed(int turn)
{
    MPI_Request q[2];
    int n = irregular(turn, 900), m = irregular(-turn, 500);
    for (int i = 0; i < 2; i++) {
        if ((i == 0) == even)
            MPI_Iallreduce(sent, got, n, MPI_DOUBLE, MPI_SUM, all[0], &q[0]);
        else
            MPI_Ibcast(more, m, MPI_DOUBLE, 0, all[1], &q[1]);
    }
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
}

/* The even ones start it first, and send and meet their neighbour behind it. */
static void held(int turn)
{
    MPI_Request q, r;
    int n = LARGE + irregular(turn, LARGE), peer = rank ^ 1;
    MPI_Irecv(got, ROOM, MPI_DOUBLE, peer < size ? peer : MPI_PROC_NULL, 1, all[0], &r);
    if (even)
        MPI_Ibarrier(all[0], &q);
    MPI_Barrier(pair);
    MPI_Send(sent, n, MPI_DOUBLE, peer < size ? peer : MPI_PROC_NULL, 1, all[0]);
    if (!even)
        MPI_Ibarrier(all[0], &q);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
}

static void apart(int turn)
{
    for (int left = irregular(turn, 7); left > 0; left--) {
        if (rank == 0)
            MPI_Bcast(sent, 10, MPI_DOUBLE, 0, all[0]);
        else
            MPI_Bcast(got, 10, MPI_DOUBLE, 0, all[0]);
    }
    MPI_Barrier(pair);
}

static MPI_Comm ring;

static void neighbors(int turn)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    int n = irregular(turn, LARGE), out[] = {1, 3}, in[] = {3, 1}; /* to the left, to the right */
    MPI_Aint at[] = {0, 64};
    MPI_Datatype out_type[] = {MPI_INT, MPI_DOUBLE}, in_type[] = {MPI_DOUBLE, MPI_INT};
    MPI_Request q;
    MPI_Neighbor_allgather(sent, 3, MPI_DOUBLE, got, 3, MPI_DOUBLE, ring);
    MPI_Neighbor_alltoallw(sent, out, at, out_type, got, in, at, in_type, ring);
    MPI_Ineighbor_alltoallw(sent, out, at, out_type, got, in, at, in_type, ring, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    MPI_Sendrecv(sent, LARGE + n, MPI_DOUBLE, right, 2, got, ROOM, MPI_DOUBLE, left, 2, all[0],
                 MPI_STATUS_IGNORE);
    if (turn % 3 == 0)
        MPI_Barrier(all[0]);
}

static void spread(int turn)
{
    enum { MEMBERS = 64 };
    int counts[MEMBERS], displs[MEMBERS], peer = rank ^ 1;
    MPI_Datatype type[MEMBERS];
    MPI_Request q;
    for (int i = 0; i < size; i++) {
        counts[i] = 1 + turn % 3;
        displs[i] = i * 64;
        type[i] = MPI_INT;
    }
    if (even)
        MPI_Ialltoallw(sent, counts, displs, type, got, counts, displs, type, all[0], &q);
    if (even && peer < size)
        MPI_Send(more, 1, MPI_DOUBLE, peer, 3, all[0]);
    else if (!even)
        MPI_Recv(more, 1, MPI_DOUBLE, peer, 3, all[0], MPI_STATUS_IGNORE);
    if (!even)
        MPI_Ialltoallw(sent, counts, displs, type, got, counts, displs, type, all[0], &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
}

static void copied(int turn)
{
    MPI_Request q[2];
    MPI_Comm copy[2];
    for (int i = 0; i < 2; i++) {
        int which = (i == 0) == even;
        MPI_Comm_idup(all[which], &copy[which], &q[which]);
    }
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    MPI_Iallreduce(sent, got, 1 + turn % 9, MPI_DOUBLE, MPI_SUM, all[0], &q[0]);
    MPI_Wait(&q[0], MPI_STATUS_IGNORE);
    MPI_Barrier(copy[0]);
    MPI_Comm_free(&copy[0]);
    MPI_Comm_free(&copy[1]);
}

/* The odd ones exchange enough, once in a while, to make the even ones wait for 50 ms and more. */
static void late(int turn)
{
    enum { OFTEN = 400 };
    int peer = rank ^ 2;
    for (int i = 0; turn % 50 == 0 && !even && peer < size && i < OFTEN; i++)
        MPI_Sendrecv(sent, ROOM, MPI_DOUBLE, peer, 3, got, ROOM, MPI_DOUBLE, peer, 3,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    copied(turn);
}

/*
 * Of the receives one is cancelled, one never started and one from nobody; those that get something
 * stand on both sides.
 */
static void unmet(int turn)
{
    enum { FIRST, CANCELLED, NOBODY, NEVER, LAST, ALL };
    static MPI_Request q[ALL];
    int next = (rank + 1) % size;
    if (turn == 0)
        MPI_Recv_init(more, 1, MPI_DOUBLE, MPI_ANY_SOURCE, NEVER, all[0], &q[NEVER]);
    MPI_Irecv(more, 1, MPI_DOUBLE, MPI_ANY_SOURCE, CANCELLED, all[0], &q[CANCELLED]);
    MPI_Irecv(more, 1, MPI_DOUBLE, MPI_PROC_NULL, MPI_ANY_TAG, all[0], &q[NOBODY]);
    MPI_Irecv(got, 1, MPI_DOUBLE, MPI_ANY_SOURCE, FIRST, all[0], &q[FIRST]);
    MPI_Irecv(got + 1, 1, MPI_DOUBLE, rank > 0 ? rank - 1 : size - 1, MPI_ANY_TAG, all[1],
              &q[LAST]);
    MPI_Cancel(&q[CANCELLED]);
    MPI_Send(sent, 1, MPI_DOUBLE, next, FIRST, all[0]);
    MPI_Send(sent, 1, MPI_DOUBLE, next, LAST, all[1]);
    MPI_Waitall(ALL, q, MPI_STATUSES_IGNORE);
    if (turn == TURNS - 1)
        MPI_Request_free(&q[NEVER]);
}

/*
 * Of several barriers of all ranks one is waited for before the pair meets, and the others are
 * tested for behind it: which request that is has no rule.
 */
static void tested(int turn)
{
    MPI_Request q[MANY];
    int first = irregular(turn, MANY), flag, before = even ? MANY : first + 1;
    for (int i = 0; i < before; i++)
        MPI_Ibarrier(all[0], &q[i]);
    if (even) {
        MPI_Wait(&q[first], MPI_STATUS_IGNORE);
        MPI_Barrier(pair);
    } else {
        MPI_Barrier(pair);
        for (int i = before; i < MANY; i++)
            MPI_Ibarrier(all[0], &q[i]);
    }
    MPI_Request_get_status(q[MANY - 1], &flag, MPI_STATUS_IGNORE);
    for (int i = 0; i < MANY; i++) {
        flag = even && i == first;
        while (!flag)
            MPI_Test(&q[i], &flag, MPI_STATUS_IGNORE);
    }
}

static const struct {
    const char *name;
    void (*turn)(int turn);
} cases[] = {{"crossed", crossed},     {"held", held},     {"apart", apart},
             {"neighbors", neighbors}, {"spread", spread}, {"copied", copied},
             {"late", late},           {"unmet", unmet},   {"tested", tested}};

int main(int argc, char **argv)
{
    int periodic = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    even = rank % 2 == 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &all[0]);
    MPI_Comm_dup(MPI_COMM_WORLD, &all[1]);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, 0, &pair);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++)
        for (int turn = 0; strcmp(cases[i].name, argv[1]) == 0 && turn < TURNS; turn++)
            cases[i].turn(turn);
    MPI_Comm_free(&ring);
    MPI_Comm_free(&pair);
    MPI_Comm_free(&all[1]);
    MPI_Comm_free(&all[0]);
    MPI_Finalize();
    return 0;
}
