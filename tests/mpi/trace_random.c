/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A random MPI program that cannot deadlock: trace_random SEED. All ranks make the same plan from
 * the seed, a tree of loops over exchanges; an exchange names its messages so that each rank knows
 * what it is to send and to receive.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROOM = 1 << 14, CHILDREN = 4, COMMS = 4, MEMBERS = 64 };

static int rank, size;
static MPI_Comm comm[COMMS];
static char sent[ROOM], got[MEMBERS * 256];
static MPI_Request persistent[2];
static unsigned long state;

static unsigned long draw(unsigned long below)
{
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    return (state >> 33) % below;
}

typedef struct node {
    void (*exchange)(int seed); /* NULL: a loop */
    int seed, turns, varies;
    int nchildren;
    struct node *child[CHILDREN];
} node;

/* Numbers that all ranks agree on without changing the state of the plan. */
static int agreed(int seed, int step, int below)
{
    unsigned x = (unsigned)seed * 2654435761u + (unsigned)step * 40503u;
    x ^= x >> 15;
    x *= 2246822519u;
    return (int)((x ^ x >> 13) % (unsigned)below);
}

static int step;

static void ring(int seed)
{
    MPI_Request q[2];
    int n = 100 + seed % 50;
    MPI_Irecv(got, n, MPI_CHAR, (rank + size - 1) % size, seed, MPI_COMM_WORLD, &q[0]);
    MPI_Isend(sent, n, MPI_CHAR, (rank + 1) % size, seed, MPI_COMM_WORLD, &q[1]);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
}

static void shifted(int seed)
{
    int far = 1 + agreed(seed, step, size), n = 1 + agreed(seed, step + 1, 500);
    MPI_Sendrecv(sent, n, MPI_CHAR, (rank + far) % size, 1, got, n, MPI_CHAR,
                 (rank + size - far % size) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void boundary(int seed)
{
    int up = rank + 1 < size ? rank + 1 : MPI_PROC_NULL, down = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    MPI_Request q[4];
    int index, flag = 0;
    MPI_Irecv(got, 64, MPI_INT, down, seed, MPI_COMM_WORLD, &q[0]);
    MPI_Irecv(got + 256, 64, MPI_INT, up, seed, MPI_COMM_WORLD, &q[1]);
    MPI_Issend(sent, 64, MPI_INT, up, seed, MPI_COMM_WORLD, &q[2]);
    MPI_Isend(sent, 64, MPI_INT, down, seed, MPI_COMM_WORLD, &q[3]);
    MPI_Waitany(4, q, &index, MPI_STATUS_IGNORE);
    while (!flag)
        MPI_Testall(4, q, &flag, MPI_STATUSES_IGNORE);
}

static void butterfly(int seed)
{
    for (int bit = 1; bit < size; bit *= 2) {
        int peer = rank ^ bit;
        if (peer >= size)
            continue;
        MPI_Request q;
        MPI_Status status;
        MPI_Irecv(got, 256, MPI_CHAR, peer, bit, comm[1], &q);
        MPI_Send(sent, seed % 256, MPI_CHAR, peer, bit, comm[1]);
        MPI_Wait(&q, &status);
    }
}

/* Rank 0 takes what comes, in any order; some of it must be looked at first. */
static void take_all(int seed)
{
    MPI_Status status;
    int n;
    for (int i = 1; i < size; i++) {
        if (seed % 2) {
            MPI_Probe(MPI_ANY_SOURCE, seed, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_INT, &n);
            MPI_Recv(got, n, MPI_INT, status.MPI_SOURCE, seed, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(got, 16, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        }
    }
    MPI_Barrier(MPI_COMM_SELF);
}

static void master(int seed)
{
    if (rank > 0)
        MPI_Send(sent, rank % 7, MPI_INT, 0, seed, MPI_COMM_WORLD);
    else
        take_all(seed);
    MPI_Barrier(comm[0]); /* wildcards must not see the next one's messages */
}

static void any_of_many(int seed)
{
    MPI_Request q[MEMBERS];
    int index[MEMBERS], done = 0, some;
    if (rank > 0) {
        MPI_Request one;
        MPI_Isend(sent, 8, MPI_DOUBLE, 0, seed, comm[0], &one);
        MPI_Wait(&one, MPI_STATUS_IGNORE);
    } else {
        for (int i = 1; i < size; i++)
            MPI_Irecv(got + 256 * i, 8, MPI_DOUBLE, seed % 3 ? MPI_ANY_SOURCE : i, seed, comm[0],
                      &q[i - 1]);
        while (done < size - 1) {
            MPI_Waitsome(size - 1, q, &some, index, MPI_STATUSES_IGNORE);
            done += some;
        }
    }
    MPI_Barrier(comm[0]); /* as above, and the next one's must not see ours */
}

static void reduce(int seed)
{
    double x[16] = {0}, y[16];
    MPI_Comm c = comm[agreed(seed, 0, COMMS)];
    int n = 1 + agreed(seed, seed % 2 ? step : 0, 16);
    MPI_Allreduce(x, y, n, MPI_DOUBLE, MPI_SUM, c);
    MPI_Allreduce(MPI_IN_PLACE, y, n, MPI_DOUBLE, MPI_MAX, c);
    MPI_Bcast(y, n, MPI_DOUBLE, 0, c);
    MPI_Reduce(x, y, n, MPI_DOUBLE, MPI_MIN, 0, c);
}

static void scatter(int seed)
{
    int counts[MEMBERS], displs[MEMBERS], total = 0, mine[64];
    for (int i = 0; i < size; i++) {
        counts[i] = agreed(seed, i, 8);
        displs[i] = total;
        total += counts[i];
    }
    MPI_Scatterv(sent, counts, displs, MPI_INT, mine, counts[rank], MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Allgatherv(mine, counts[rank], MPI_INT, got, counts, displs, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoall(sent, 2, MPI_INT, got, 2, MPI_INT, comm[0]);
}

static void nonblocking(int seed)
{
    MPI_Request q[2];
    double x = 0, y = 0;
    (void)seed;
    MPI_Iallreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, comm[2], &q[0]);
    MPI_Ibarrier(MPI_COMM_WORLD, &q[1]);
    MPI_Wait(&q[1], MPI_STATUS_IGNORE);
    MPI_Wait(&q[0], MPI_STATUS_IGNORE);
}

/* All are started before any is waited for, by each rank in an order of its own. */
static void crossing(int seed)
{
    MPI_Request q[3];
    double x[64] = {0}, y[64], z[64] = {0};
    int n = 1 + agreed(seed, step, 60), flag = 0;
    for (int i = 0; i < 3; i++) {
        switch ((i + rank + seed) % 3) {
        case 0:
            MPI_Iallreduce(x, y, n, MPI_DOUBLE, MPI_SUM, comm[2], &q[0]);
            break;
        case 1:
            MPI_Ibcast(z, n, MPI_DOUBLE, 0, comm[3], &q[1]);
            break;
        default:
            MPI_Iallgather(sent, n, MPI_CHAR, got, n, MPI_CHAR, comm[1], &q[2]);
        }
    }
    if (seed % 2)
        MPI_Wait(&q[seed % 3], MPI_STATUS_IGNORE);
    while (!flag)
        MPI_Testall(3, q, &flag, MPI_STATUSES_IGNORE);
}

static void started(int seed)
{
    (void)seed;
    MPI_Startall(2, persistent);
    MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
}

static void derived(int seed)
{
    MPI_Datatype column, resized;
    MPI_Type_vector(4 + seed % 4, 2, 8, MPI_INT, &column);
    MPI_Type_create_resized(column, 0, 64, &resized);
    MPI_Type_commit(&resized);
    MPI_Sendrecv(sent, 2, resized, (rank + 1) % size, 9, got, 2, resized, (rank + size - 1) % size,
                 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Type_free(&resized);
    MPI_Type_free(&column);
}

static void comms(int seed)
{
    MPI_Comm dup, row;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_split(dup, seed % 3 == 0 && rank == 0 ? MPI_UNDEFINED : rank % 2, -rank, &row);
    if (row != MPI_COMM_NULL) {
        int r, n;
        MPI_Comm_rank(row, &r);
        MPI_Comm_size(row, &n);
        MPI_Sendrecv(sent, 3, MPI_CHAR, (r + 1) % n, 0, got, 3, MPI_CHAR, (r + n - 1) % n, 0, row,
                     MPI_STATUS_IGNORE);
        MPI_Comm_free(&row);
    }
    MPI_Comm_free(&dup);
}

static void cancelled(int seed)
{
    MPI_Request q, r;
    MPI_Irecv(got, 4, MPI_CHAR, MPI_ANY_SOURCE, 30000 + seed, MPI_COMM_WORLD, &q);
    MPI_Cancel(&q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    MPI_Isend(sent, 1, MPI_CHAR, rank, 2, MPI_COMM_SELF == MPI_COMM_NULL ? comm[0] : MPI_COMM_WORLD,
              &r);
    MPI_Request_free(&r);
    MPI_Recv(got, 1, MPI_CHAR, rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void files(int seed)
{
    char name[64];
    MPI_File f;
    snprintf(name, sizeof name, "shared.%03d", step % 10 + seed % 3);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
    MPI_File_write_at_all(f, (MPI_Offset)rank * 512, sent, 512, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_read_at(f, (MPI_Offset)rank * 512, got, 256, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_close(&f);
    snprintf(name, sizeof name, "own-%d.%d", rank, step % 5);
    int fd = open(name, O_CREAT | O_RDWR | O_TRUNC, 0600);
    for (int i = 0; i < 3; i++) {
        if (pwrite(fd, sent, 100, i * 100) != 100 || write(fd, sent, 10) != 10)
            MPI_Abort(MPI_COMM_WORLD, 3);
    }
    close(fd);
    FILE *text = fopen("common.txt", "a");
    if (text) {
        fprintf(text, "step %d\n", step);
        fclose(text);
    }
}

static void (*const exchanges[])(int) = {ring,   shifted,   boundary,    butterfly, master,
                                         reduce, scatter,   nonblocking, started,   derived,
                                         comms,  cancelled, any_of_many, files,     crossing};

static node *plan(int depth)
{
    node *n = calloc(1, sizeof *n);
    n->seed = (int)draw(1000);
    if (depth == 0 || draw(3) == 0) {
        n->exchange = exchanges[draw(sizeof exchanges / sizeof *exchanges)];
        return n;
    }
    n->turns = 1 + (int)draw(depth > 2 ? 4 : 12);
    n->varies = draw(3) == 0;
    n->nchildren = 1 + (int)draw(CHILDREN);
    for (int i = 0; i < n->nchildren; i++)
        n->child[i] = plan(depth - 1);
    return n;
}

static void run(const node *n)
{
    if (n->exchange) {
        n->exchange(n->seed);
        return;
    }
    int turns = n->varies ? agreed(n->seed, step, n->turns + 1) : n->turns;
    for (int i = 0; i < turns && step < 2000; i++) {
        step++;
        for (int k = 0; k < n->nchildren; k++)
            run(n->child[k]);
    }
}

static void release(node *n)
{
    for (int i = 0; i < n->nchildren; i++)
        release(n->child[i]);
    free(n);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    state = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    comm[0] = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm[1]);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm[2]);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, -rank, &comm[3]);
    MPI_Recv_init(got, 10, MPI_CHAR, (rank + size - 1) % size, 77, MPI_COMM_WORLD, &persistent[0]);
    MPI_Send_init(sent, 10, MPI_CHAR, (rank + 1) % size, 77, MPI_COMM_WORLD, &persistent[1]);
    node *root = plan(4);
    for (int i = 0; i < 3; i++)
        run(root);
    release(root);
    MPI_Request_free(&persistent[0]);
    MPI_Request_free(&persistent[1]);
    for (int i = 1; i < COMMS; i++)
        MPI_Comm_free(&comm[i]);
    MPI_Finalize();
    return 0;
}
