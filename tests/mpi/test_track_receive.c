/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages that arrive in tracked memory, by every way that MPI has into it: small and large,
 * awaited and not, collective, one-sided. What they change must count as written.
 *
 * TEST: ranks 2 3
 */
#include "harness/mpi.h"

#include <sys/mman.h>

#include "track/track.h"

enum { NBYTES = 4 << 20, BLOCK = 4096, SMALL = 100, LARGE = NBYTES / 4 };

typedef struct world {
    int rank, nranks;
    unsigned char *data, *before;
    crn_watch *w;
} world;

/* No two steps and ranks send the same: what arrives always changes something. */
static unsigned char payload(const world *o, int step)
{
    return (unsigned char)(o->rank * 3 + step * 7 + 1);
}

/* To the next rank, from the one before. */
static void by_message(world *o, int nbytes, int step)
{
    MPI_Request request;
    unsigned char *out = malloc((size_t)nbytes);
    assert_non_null(out);
    memset(out, payload(o, step), (size_t)nbytes);
    MPI_Irecv(o->data + 3 * BLOCK - 7, nbytes, MPI_BYTE, (o->rank + o->nranks - 1) % o->nranks,
              step, MPI_COMM_WORLD, &request);
    MPI_Send(out, nbytes, MPI_BYTE, (o->rank + 1) % o->nranks, step, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(out);
}

static void by_small_message(world *o, int step)
{
    by_message(o, SMALL, step);
}

static void by_large_message(world *o, int step)
{
    by_message(o, LARGE, step);
}

static void by_broadcast(world *o, int step)
{
    if (o->rank == 0)
        memset(o->data + 100 * BLOCK, payload(o, step), LARGE);
    MPI_Bcast(o->data + 100 * BLOCK, LARGE, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void by_reduction(world *o, int step)
{
    unsigned char *at = o->data + 50 * BLOCK + 1;
    at[0] = payload(o, step);
    MPI_Allreduce(MPI_IN_PLACE, at, 3 * BLOCK, MPI_UNSIGNED_CHAR, MPI_SUM, MPI_COMM_WORLD);
}

static void by_strided_message(world *o, int step)
{
    MPI_Datatype column;
    unsigned char out[16];
    memset(out, payload(o, step), sizeof out);
    MPI_Type_vector(16, 1, 5 * BLOCK, MPI_BYTE, &column);
    MPI_Type_commit(&column);
    MPI_Sendrecv(out, 16, MPI_BYTE, (o->rank + 1) % o->nranks, 0, o->data + 17, 1, column,
                 (o->rank + o->nranks - 1) % o->nranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Type_free(&column);
}

#ifndef OPEN_MPI /* which cannot, on one machine with MPI_THREAD_MULTIPLE */
static void by_put(world *o, int step)
{
    MPI_Win win;
    unsigned char out[SMALL];
    memset(out, payload(o, step), sizeof out);
    MPI_Win_create(o->data, NBYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Put(out, SMALL, MPI_BYTE, (o->rank + 1) % o->nranks, 70 * BLOCK - 9, SMALL, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}
#endif

static const struct {
    const char *name;
    void (*take)(world *o, int step);
} routes[] = {
    {"a small message", by_small_message},
    {"a large message", by_large_message},
    {"a strided message", by_strided_message},
    {"a broadcast", by_broadcast},
    {"a reduction", by_reduction},
#ifndef OPEN_MPI
    {"a put", by_put},
#endif
};

static void keep(world *o)
{
    memcpy(o->before, o->data, NBYTES);
    crn_watch_clear(o->w);
}

static void check(world *o, const char *route)
{
    uint64_t changed = 0;
    crn_watch_scan(o->w);
    for (uint64_t i = 0; i < NBYTES / BLOCK; i++) {
        const bool differs = memcmp(o->data + i * BLOCK, o->before + i * BLOCK, BLOCK) != 0;
        if (differs && !crn_watch_is_written(o->w, i))
            fail_msg("%s: block %d changed, and nobody has seen it", route, (int)i);
        changed += differs;
    }
    assert_true(changed > 0);
    keep(o);
}

static void test_receives(void **state)
{
    crn_comm *comm = *state;
    crn_tracker *tracker = NULL;
    world o = {.rank = crn_comm_rank(comm), .nranks = crn_comm_size(comm)};
    const cairn_status rc = crn_tracker_create(&tracker);
    if (rc < 0)
        print_message("*** kernel tracking is not tested: %s\n", crn_err_peek()->text);
    if (rc < 0) /* one machine, one kernel: the same on all ranks */
        skip();
    o.data = mmap(NULL, NBYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(o.data != MAP_FAILED);
    o.before = malloc(NBYTES);
    assert_non_null(o.before);
    assert_ok(crn_watch_create(tracker, o.data, NBYTES, BLOCK, &o.w));
    crn_watch_scan(o.w);
    keep(&o);
    const int nroutes = (int)(sizeof routes / sizeof *routes);
    for (int step = 0; step < 4 * nroutes; step++) {
        routes[step % nroutes].take(&o, step);
        check(&o, routes[step % nroutes].name);
    }
    crn_watch_free(o.w);
    crn_tracker_free(tracker);
    munmap(o.data, NBYTES);
    free(o.before);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_receives)};
    return run_mpi_tests(argc, argv, tests);
}
