/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Traces of known programs, made without a recorder, are replayed: all ends, and what is sent and
 * written is what the trace says.
 *
 * TEST: ranks 1 2 4
 *
 * NEEDS: zstd random123
 */
#include "harness/mpi.h"
#include "harness/small_trace.h"

#include <cairn/traces.h>

typedef void program(small_rank *x);

/* Rank 0 makes the trace, all replay it. What the watchdog finds fails the test. */
static void stuck(void *arg, const char *state)
{
    (void)arg;
    fprintf(stderr, "%s\n", state);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static cairn_status replay(crn_comm *c, uint32_t nranks, uint32_t precision, program *body,
                           cairn_replay_result *result)
{
    char dir[64], path[96];
    cairn_trace *t;
    if (crn_comm_rank(c) == 0) {
        make_scratch(dir, sizeof dir, "replay");
        snprintf(path, sizeof path, "%s/t.ctr", dir);
        small_trace(path, nranks, precision, false, body);
    }
    assert_ok(crn_comm_bcast(c, dir, sizeof dir, 0));
    snprintf(path, sizeof path, "%s/t.ctr", dir);
    assert_ok(cairn_trace_open(path, &t));
    cairn_replay_options opt = {
        .struct_bytes = sizeof opt, .scratch = dir, .seed = 7, .patience = 100, .stuck = stuck};
    *result = (cairn_replay_result){.struct_bytes = sizeof *result};
    cairn_status rc = cairn_trace_replay(t, &opt, result);
    cairn_trace_close(t);
    assert_ok(crn_comm_barrier(c));
    if (crn_comm_rank(c) == 0) {
        unlink(path);
        assert_int_equal(rmdir(dir), 0); /* the replay has removed its files */
    }
    return rc;
}

static void test_ring(void **state)
{
    crn_comm *c = *state;
    uint32_t n = (uint32_t)crn_comm_size(c);
    cairn_replay_result r;
    assert_ok(replay(c, n, 100, small_program, &r));
    assert_int_equal(r.sent_bytes, n * SMALL_TURNS * SMALL_COUNT * 8);
    assert_int_equal(r.written_bytes, n * SMALL_WRITES * SMALL_REQUEST);
    assert_int_equal(r.nskipped, 0);
    assert_int_equal(r.nevents, n * (4 * SMALL_TURNS + 3 + 2 + SMALL_WRITES));
}

enum { LARGE = 1 << 18 };

/* All send first and receive then, which ends only where sends are buffered. */
static void unsafe_program(small_rank *x)
{
    int64_t left = (x->rank + x->nranks - 1) % x->nranks, right = (x->rank + 1) % x->nranks;
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    for (int i = 0; i < 3; i++) {
        small_event(x, CRN_CALL_MPI_Send, 5, (int64_t[]){LARGE, 0, right, 1, 0});
        small_event(x, CRN_CALL_MPI_Recv, 6, (int64_t[]){LARGE, 0, left, 1, 0});
    }
    small_event(x, CRN_CALL_MPI_Finalize, 2, NULL);
}

static void test_sends_that_rely_on_buffers(void **state)
{
    crn_comm *c = *state;
    uint32_t n = (uint32_t)crn_comm_size(c);
    cairn_replay_result r;
    assert_ok(replay(c, n, 100, unsafe_program, &r));
    assert_int_equal(r.sent_bytes, n * 3ull * LARGE * 8);
}

/*
 * Rank 0 takes two messages from each other rank, first from any, where the last ranks happened to
 * come first, then the rest by name: taking any again would hang.
 */
static void wild_program(small_rank *x)
{
    int64_t others = x->nranks - 1;
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    for (int64_t i = 0; i < others && x->rank == 0; i++) {
        int64_t from = others - i;
        small_event(x, CRN_CALL_MPI_Irecv, 5, (int64_t[]){10, 0, CRN_PEER_ANY, CRN_TAG_ANY, 0, i});
        if (i % 2 == 1)
            continue;
        small_event(x, CRN_CALL_MPI_Wait, 6, (int64_t[]){i});
        small_event(x, CRN_CALL_match, 6, (int64_t[]){from, 3, 80});
    }
    for (int64_t i = 1; i < others && x->rank == 0; i += 2) {
        small_event(x, CRN_CALL_MPI_Wait, 7, (int64_t[]){i});
        small_event(x, CRN_CALL_match, 7, (int64_t[]){others - i, 3, 80});
    }
    for (int64_t i = 1; i <= others && x->rank == 0; i++)
        small_event(x, CRN_CALL_MPI_Recv, 8, (int64_t[]){10, 0, i, 3, 0});
    for (int i = 0; i < 2 && x->rank > 0; i++)
        small_event(x, CRN_CALL_MPI_Send, 9, (int64_t[]){10, 0, 0, 3, 0});
    small_event(x, CRN_CALL_MPI_Finalize, 2, NULL);
}

static void test_wildcards_meet_whom_they_met(void **state)
{
    crn_comm *c = *state;
    uint32_t n = (uint32_t)crn_comm_size(c);
    cairn_replay_result r;
    assert_ok(replay(c, n, 100, wild_program, &r));
    assert_int_equal(r.sent_bytes, (n - 1) * 160);
}

/* Started again and again; a number that is used for several; tests that find nothing. */
static void request_program(small_rank *x)
{
    int64_t left = (x->rank + x->nranks - 1) % x->nranks, right = (x->rank + 1) % x->nranks;
    int64_t both[] = {0, 1};
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    small_event(x, CRN_CALL_MPI_Recv_init, 5, (int64_t[]){20, 0, left, 4, 0, 0});
    small_event(x, CRN_CALL_MPI_Send_init, 6, (int64_t[]){20, 0, right, 4, 0, 1});
    for (int i = 0; i < 10; i++) {
        small_event_list(x, CRN_CALL_MPI_Startall, 7, (int64_t[]){0}, 0, both, 2);
        small_event(x, CRN_CALL_MPI_Test, 8, (int64_t[]){0, 0});
        small_event_list(x, CRN_CALL_MPI_Waitall, 9, (int64_t[]){0}, 0, both, 2);
    }
    small_event(x, CRN_CALL_MPI_Iallreduce, 10, (int64_t[]){0, 4, 0, CRN_OP_MAX, 0, 2});
    small_event(x, CRN_CALL_MPI_Sendrecv, 11, (int64_t[]){5, 0, right, 9, 5, 0, left, 9, 0});
    small_event(x, CRN_CALL_MPI_Wait, 12, (int64_t[]){2});
    small_event(x, CRN_CALL_MPI_Finalize, 2, NULL);
}

static void test_requests(void **state)
{
    crn_comm *c = *state;
    uint32_t n = (uint32_t)crn_comm_size(c);
    cairn_replay_result r;
    assert_ok(replay(c, n, 100, request_program, &r));
    assert_int_equal(r.sent_bytes, n * (10 * 160 + 40));
    assert_int_equal(r.nskipped, 0);
}

/* Sizes and peers without rule, more than a lossy trace keeps one by one. */
static void irregular_program(small_rank *x)
{
    crn_rng rng = crn_rng_of(5, x->rank);
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    for (int i = 0; i < 4000; i++) {
        int64_t to = (int64_t)crn_rng_below(&rng, x->nranks);
        int64_t count = (int64_t)crn_rng_below(&rng, 1000);
        small_event(x, CRN_CALL_MPI_Isend, 5, (int64_t[]){count, 0, to, 1, 0, i % 7});
        small_event(x, CRN_CALL_MPI_Recv, 6, (int64_t[]){1000, 0, CRN_PEER_ANY, 1, 0});
        small_event(x, CRN_CALL_MPI_Wait, 7, (int64_t[]){i % 7});
        if (i % 500 == 0)
            small_event(x, CRN_CALL_MPI_Barrier, 8, (int64_t[]){0});
    }
    small_event(x, CRN_CALL_MPI_Finalize, 2, NULL);
}

/* The mean of what was drawn is near the mean of what was sent: 4000 messages of 4 kB on average.
 */
static void test_what_is_drawn_ends(void **state)
{
    crn_comm *c = *state;
    uint32_t n = (uint32_t)crn_comm_size(c);
    cairn_replay_result r;
    assert_ok(replay(c, n, 0, irregular_program, &r));
    if (n > 1)
        assert_in_range(r.sent_bytes, n * 4000ull * 3000 / 2, n * 4000ull * 5000);
}

enum { MASTER_TURNS = 60 };

/*
 * The root calls at another place than the others, as masters do, with sizes without rule: drawn
 * at each place for itself, they must still be one size on all ranks.
 */
static void master_program(small_rank *x)
{
    crn_rng rng = crn_rng_of(5, 0);
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    for (int i = 0; i < MASTER_TURNS; i++) {
        int64_t count = (int64_t)crn_rng_below(&rng, 5000);
        uint32_t site = x->rank == 0 ? 5 : 6;
        small_event(x, CRN_CALL_MPI_Bcast, site, (int64_t[]){count, 0, 0, 0});
        small_event(x, CRN_CALL_MPI_Allreduce, site + 2, (int64_t[]){0, count, 0, CRN_OP_MAX, 0});
        small_event(x, CRN_CALL_MPI_Allgather, site + 4, (int64_t[]){0, count, 0, count, 0, 0});
    }
    small_event(x, CRN_CALL_MPI_Finalize, 2, NULL);
}

static void test_what_is_drawn_at_different_places(void **state)
{
    crn_comm *c = *state;
    uint32_t n = (uint32_t)crn_comm_size(c);
    cairn_replay_result r;
    assert_ok(replay(c, n, 0, master_program, &r));
    assert_int_equal(r.nevents, n * 3 * MASTER_TURNS);
    assert_int_equal(r.nskipped, 0);
}

static void cut_program(small_rank *x)
{
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
}

static void test_other_number_of_ranks(void **state)
{
    crn_comm *c = *state;
    cairn_replay_result r;
    assert_fails(replay(c, (uint32_t)crn_comm_size(c) + 1, 100, cut_program, &r), CAIRN_EMISMATCH,
                 "start it as 'mpirun -n");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_sends_that_rely_on_buffers),
        cmocka_unit_test(test_wildcards_meet_whom_they_met),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_what_is_drawn_ends),
        cmocka_unit_test(test_what_is_drawn_at_different_places),
        cmocka_unit_test(test_other_number_of_ranks),
    };
    return run_mpi_tests(argc, argv, tests);
}
