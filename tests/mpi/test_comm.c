/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What every kind of communicator must do: the same cases with MPI and without.
 *
 * TEST: ranks self 1 2 4 7
 */
#include "harness/mpi.h"

#include <errno.h>
#include <pthread.h>

/* Byte i of what a rank sends: differs between ranks and places. */
static unsigned char byte_of(int rank, size_t i)
{
    return (unsigned char)(rank * 31 + (int)(i * 7 + i / 251));
}

static unsigned char *bytes_of(int rank, size_t n)
{
    unsigned char *b = malloc(n + 1);
    for (size_t i = 0; i < n; i++)
        b[i] = byte_of(rank, i);
    return b;
}

static void assert_bytes_of(int rank, const unsigned char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (b[i] != byte_of(rank, i))
            fail_msg("byte %zu of rank %d is %d instead of %d", i, rank, b[i], byte_of(rank, i));
}

/* A copy of c that cuts data at piece bytes, so that small data takes the long ways. */
static crn_comm *cut_at(crn_comm *c, size_t piece)
{
    crn_comm *cut;
    assert_ok(crn_comm_dup(c, &cut));
    crn_comm_set_piece(cut, piece);
    return cut;
}

static const size_t pieces[] = {CRN_COMM_PIECE, 1000, 64};
enum { NPIECES = sizeof pieces / sizeof *pieces };

static void test_rank_and_size(void **state)
{
    crn_comm *c = *state;
    uint64_t seen = UINT64_C(1) << crn_comm_rank(c);
    assert_in_range(crn_comm_rank(c), 0, crn_comm_size(c) - 1);
    assert_ok(crn_comm_allreduce_u64(c, CRN_REDUCE_SUM, &seen, 1));
    assert_true(seen == (UINT64_C(1) << crn_comm_size(c)) - 1);
}

/* Every rank leaves a byte before each barrier; after it, the bytes of all must be there. */
static void test_barrier_holds_until_all_are_there(void **state)
{
    crn_comm *c = *state;
    char dir[64], path[128];
    if (crn_comm_rank(c) == 0)
        make_scratch(dir, sizeof dir, "barrier");
    assert_ok(crn_comm_bcast(c, dir, sizeof dir, 0));
    snprintf(path, sizeof path, "%s/bytes", dir);
    int fd = open(path, O_CREAT | O_WRONLY | O_APPEND, 0600);
    for (int i = 1; i <= 20; i++) {
        struct stat st;
        assert_int_equal(write(fd, "x", 1), 1);
        assert_ok(crn_comm_barrier(c));
        assert_int_equal(fstat(fd, &st), 0);
        assert_in_range(st.st_size, i * crn_comm_size(c), (i + 1) * crn_comm_size(c));
    }
    close(fd);
    assert_ok(crn_comm_barrier(c));
    if (crn_comm_rank(c) == 0)
        remove_tree(dir);
}

static void test_bcast_from_each_root(void **state)
{
    crn_comm *c = *state;
    for (int p = 0; p < NPIECES; p++) {
        crn_comm *cut = cut_at(c, pieces[p]);
        for (int root = 0; root < crn_comm_size(c); root++) {
            unsigned char *b = bytes_of(crn_comm_rank(c), 3001);
            assert_ok(crn_comm_bcast(cut, b, 3001, root));
            assert_bytes_of(root, b, 3001);
            assert_ok(crn_comm_bcast(cut, NULL, 0, root));
            free(b);
        }
        crn_comm_free(cut);
    }
}

static void gather_case(crn_comm *c, size_t n, int root)
{
    int rank = crn_comm_rank(c), size = crn_comm_size(c);
    unsigned char *send = bytes_of(rank, n), *recv = malloc((size_t)size * n + 1);
    assert_ok(crn_comm_gather(c, send, n, root, recv));
    for (int i = 0; (root == CRN_COMM_ALL || root == rank) && i < size; i++)
        assert_bytes_of(i, recv + (size_t)i * n, n);
    free(send);
    free(recv);
}

/* Lengths that differ between ranks, among them 0. */
static size_t length_of(int rank, size_t n)
{
    return (size_t)rank % 3 * n + (size_t)rank % 2;
}

static void gatherv_case(crn_comm *c, size_t n, int root)
{
    int rank = crn_comm_rank(c), size = crn_comm_size(c);
    size_t own = length_of(rank, n), off = 0;
    unsigned char *send = bytes_of(rank, own);
    crn_gathered g = {0};
    assert_ok(crn_comm_gatherv(c, own ? send : NULL, own, root, &g));
    if (root != CRN_COMM_ALL && root != rank)
        assert_null(g.off);
    for (int i = 0; g.off && i < size; i++) {
        assert_int_equal(g.off[i], off);
        assert_bytes_of(i, g.data + off, length_of(i, n));
        off += length_of(i, n);
    }
    assert_true(!g.off || g.off[size] == off);
    crn_gathered_done(&g);
    free(send);
}

static void each_gather(crn_comm *c, void gather(crn_comm *c, size_t n, int root))
{
    static const size_t lengths[] = {0, 1, 8, 700};
    for (int p = 0; p < NPIECES; p++) {
        crn_comm *cut = cut_at(c, pieces[p]);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            for (int root = CRN_COMM_ALL; root < crn_comm_size(c); root++)
                gather(cut, lengths[i], root);
        crn_comm_free(cut);
    }
}

static void test_gather(void **state)
{
    each_gather(*state, gather_case);
}

static void test_gatherv(void **state)
{
    each_gather(*state, gatherv_case);
}

static void reduce_case(crn_comm *c, crn_reduction op)
{
    const uint64_t rank = (uint64_t)crn_comm_rank(c), size = (uint64_t)crn_comm_size(c);
    const uint64_t base = UINT64_MAX / 64; /* needs all 64 bits, also in the sum */
    uint64_t v[200];                       /* 25 pieces of 64 bytes */
    for (uint64_t i = 0; i < 200; i++)
        v[i] = op == CRN_REDUCE_AND ? ~(UINT64_C(1) << rank) : base + rank * i;
    assert_ok(crn_comm_allreduce_u64(c, op, v, 200));
    for (uint64_t i = 0; i < 200; i++) {
        const uint64_t expect[] = {
            [CRN_REDUCE_MIN] = base,
            [CRN_REDUCE_MAX] = base + (size - 1) * i,
            [CRN_REDUCE_SUM] = base * size + i * size * (size - 1) / 2,
            [CRN_REDUCE_AND] = UINT64_MAX << size,
        };
        assert_true(v[i] == expect[op]);
    }
}

static void test_allreduce_u64(void **state)
{
    for (int p = 0; p < NPIECES; p++) {
        crn_comm *cut = cut_at(*state, pieces[p]);
        for (crn_reduction op = CRN_REDUCE_MIN; op <= CRN_REDUCE_AND; op++)
            reduce_case(cut, op);
        crn_comm_free(cut);
    }
}

/* Numbers that would be negative if they were signed, beside small ones. */
static void test_allreduce_unsigned_order(void **state)
{
    crn_comm *c = *state;
    const bool first = crn_comm_rank(c) == 0, alone = crn_comm_size(c) == 1;
    uint64_t low = first ? UINT64_MAX : 5, high = low;
    assert_ok(crn_comm_allreduce_u64(c, CRN_REDUCE_MIN, &low, 1));
    assert_ok(crn_comm_allreduce_u64(c, CRN_REDUCE_MAX, &high, 1));
    assert_true(low == (alone ? UINT64_MAX : 5) && high == UINT64_MAX);
}

static void test_allreduce_f64(void **state)
{
    crn_comm *c = *state;
    double rank = crn_comm_rank(c), size = crn_comm_size(c);
    double v[3] = {rank - 1.5, rank + 0.25, -rank};
    assert_ok(crn_comm_allreduce_f64(c, CRN_REDUCE_MIN, &v[0], 1));
    assert_ok(crn_comm_allreduce_f64(c, CRN_REDUCE_MAX, &v[1], 1));
    assert_ok(crn_comm_allreduce_f64(c, CRN_REDUCE_SUM, &v[2], 1));
    assert_true(v[0] == -1.5 && v[1] == size - 0.75 && v[2] == -size * (size - 1) / 2);
    assert_ok(crn_comm_allreduce_f64(c, CRN_REDUCE_SUM, NULL, 0));
}

static void test_send_and_recv_to_root(void **state)
{
    for (int p = 0; p < NPIECES; p++) {
        crn_comm *c = cut_at(*state, pieces[p]);
        int rank = crn_comm_rank(c);
        size_t n = length_of(rank, 2001);
        unsigned char *b = bytes_of(rank, n);
        if (rank > 0)
            assert_ok(crn_comm_send(c, b, n, 0, rank));
        free(b);
        for (int i = crn_comm_size(c) - 1; rank == 0 && i > 0; i--) {
            size_t nrecv = length_of(i, 2001);
            unsigned char *recv = malloc(nrecv + 1);
            assert_ok(crn_comm_recv(c, recv, nrecv, i, i));
            assert_bytes_of(i, recv, nrecv);
            free(recv);
        }
        crn_comm_free(c);
    }
}

/* Many messages under way, waited for in another order than they were started. */
static void pipeline(crn_comm *c, size_t n)
{
    enum { DEPTH = 16 };
    int rank = crn_comm_rank(c), size = crn_comm_size(c);
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    unsigned char *send = bytes_of(rank, n * DEPTH), *recv = calloc(n, DEPTH);
    crn_msg in[DEPTH], out[DEPTH];
    for (size_t i = 0; i < DEPTH; i++)
        assert_ok(crn_comm_irecv(c, recv + i * n, n, from, (int)i % 3, &in[i]));
    for (size_t i = 0; i < DEPTH; i++)
        assert_ok(crn_comm_isend(c, send + i * n, n, to, (int)i % 3, &out[i]));
    for (size_t i = DEPTH; i-- > 0;) {
        assert_ok(crn_comm_wait(c, &in[i]));
        assert_ok(crn_comm_wait(c, &out[i]));
    }
    assert_bytes_of(from, recv, n * DEPTH);
    free(send);
    free(recv);
}

static void test_many_messages_under_way(void **state)
{
    pipeline(*state, 0);
    pipeline(*state, 1);
    pipeline(*state, 100000);
}

static void test_receive_of_fewer_bytes_fails(void **state)
{
    crn_comm *c = cut_at(*state, 1000);
    unsigned char sent[9] = {0}, got[10];
    crn_msg in, out;
    int rank = crn_comm_rank(c), size = crn_comm_size(c);
    assert_ok(crn_comm_irecv(c, got, 10, (rank + size - 1) % size, 1, &in));
    assert_ok(crn_comm_isend(c, sent, 9, (rank + 1) % size, 1, &out));
    assert_fails(crn_comm_wait(c, &in), CAIRN_EINTERNAL, "with tag 1");
    assert_ok(crn_comm_wait(c, &out));
    crn_comm_free(c);
}

static void test_cancelled_receive_lets_go(void **state)
{
    crn_comm *c = cut_at(*state, 1000);
    unsigned char b = 1, kept = 2, got = 0;
    int rank = crn_comm_rank(c);
    crn_msg in, out;
    assert_ok(crn_comm_irecv(c, &kept, 1, rank, 1, &in));
    crn_comm_cancel(c, &in);
    assert_ok(crn_comm_irecv(c, &got, 1, rank, 1, &in));
    assert_ok(crn_comm_isend(c, &b, 1, rank, 1, &out));
    assert_ok(crn_comm_wait(c, &in));
    assert_ok(crn_comm_wait(c, &out));
    assert_int_equal(got, 1);
    assert_int_equal(kept, 2);
    crn_comm_free(c);
}

static void test_dup_keeps_messages_apart(void **state)
{
    crn_comm *a = cut_at(*state, 1000), *b = cut_at(*state, 1000);
    int rank = crn_comm_rank(a), size = crn_comm_size(a);
    int to = (rank + 1) % size, from = (rank + size - 1) % size, got[2], sent[2] = {1, 2};
    crn_msg in[2], out[2];
    assert_ok(crn_comm_isend(a, &sent[0], sizeof(int), to, 0, &out[0]));
    assert_ok(crn_comm_isend(b, &sent[1], sizeof(int), to, 0, &out[1]));
    assert_ok(crn_comm_irecv(b, &got[1], sizeof(int), from, 0, &in[1]));
    assert_ok(crn_comm_irecv(a, &got[0], sizeof(int), from, 0, &in[0]));
    for (int i = 0; i < 2; i++) {
        assert_ok(crn_comm_wait(i ? b : a, &in[i]));
        assert_ok(crn_comm_wait(i ? b : a, &out[i]));
        assert_int_equal(got[i], sent[i]);
    }
    crn_comm_free(a);
    crn_comm_free(b);
}

static void test_virtual_nodes(void **state)
{
    crn_comm *c = *state;
    int rank = crn_comm_rank(c), size = crn_comm_size(c);
    for (int node_size = 1; node_size <= size + 1; node_size++) {
        crn_nodes n;
        assert_ok(crn_comm_nodes(c, node_size, &n));
        assert_int_equal(n.nnodes, (size + node_size - 1) / node_size);
        assert_int_equal(n.node, rank / node_size);
        assert_int_equal(n.local, rank % node_size);
        assert_int_equal(n.nlocal, n.nranks[n.node]);
        for (int i = 0; i < size; i++)
            assert_int_equal(n.of_rank[i], i / node_size);
        for (int i = 0; i < n.nnodes; i++)
            assert_int_equal(n.nranks[i], CRN_MIN(node_size, size - i * node_size));
        crn_nodes_done(&n);
    }
}

/* Nodes that ranks know: every third rank is on the same one. */
static void test_known_nodes(void **state)
{
    crn_comm *c = *state;
    const int rank = crn_comm_rank(c), size = crn_comm_size(c);
    crn_nodes n;
    assert_ok(crn_comm_nodes_by(c, 70 - 10 * (rank % 3), &n));
    assert_int_equal(n.nnodes, CRN_MIN(size, 3));
    assert_int_equal(n.node, rank % 3);
    assert_int_equal(n.local, rank / 3);
    assert_int_equal(n.nlocal, (size - rank % 3 + 2) / 3);
    for (int i = 0; i < size; i++)
        assert_int_equal(n.of_rank[i], i % 3);
    crn_nodes_done(&n);
}

static void test_real_nodes(void **state)
{
    crn_comm *c = *state;
    crn_nodes n;
    assert_ok(crn_comm_nodes(c, 0, &n));
    assert_int_equal(n.nnodes, 1); /* tests run on one machine */
    assert_int_equal(n.nlocal, crn_comm_size(c));
    assert_int_equal(n.local, crn_comm_rank(c));
    crn_nodes_done(&n);
}

static void test_agree_on_success(void **state)
{
    crn_comm *c = *state;
    bool first = crn_comm_rank(c) == 0;
    assert_int_equal(crn_comm_agree(c, CAIRN_OK), CAIRN_OK);
    assert_int_equal(crn_comm_agree(c, CAIRN_NOTHING), CAIRN_NOTHING);
    assert_int_equal(crn_comm_agree(c, first ? CAIRN_OK : CAIRN_NOTHING), CAIRN_OK);
}

static void test_agree_tells_the_first_failure(void **state)
{
    crn_comm *c = *state;
    int rank = crn_comm_rank(c), size = crn_comm_size(c);
    for (int first = 0; first < size; first++) {
        cairn_status local = CAIRN_OK;
        if (rank == first)
            local = crn_fail_sys(ENOSPC, "cannot write 'part %d'", rank);
        else if (rank > first)
            local = crn_fail(CAIRN_EINVAL, "rank %d fails otherwise", rank);
        char words[64];
        snprintf(words, sizeof words, "cannot write 'part %d': No space", first);
        assert_fails(crn_comm_agree(c, local), CAIRN_ENOSPC, words);
        assert_int_equal(crn_err_peek()->rank, first);
        assert_int_equal(crn_err_peek()->sys, ENOSPC);
        assert_int_equal(crn_err_peek()->code, CAIRN_ENOSPC);
        assert_in_range(crn_err_peek()->nframes, 1, CRN_ERR_FRAMES);
    }
}

static void test_agree_on_a_bare_code_ignores_the_old_record(void **state)
{
    crn_comm *c = *state;
    (void)crn_fail(CAIRN_EIO, "long ago");
    assert_fails(crn_comm_agree(c, CAIRN_EBUSY), CAIRN_EBUSY, "busy");
    assert_int_equal(crn_err_peek()->rank, 0);
}

/* The last rank's n-th allocation fails: every rank must learn it, and none may wait for ever. */
static void test_no_memory_on_one_rank_fails_on_all(void **state)
{
    crn_comm *c = *state, *made;
    int rank = crn_comm_rank(c), last = crn_comm_size(c) - 1;
    bool failed[3] = {true, true, true};
    for (uint64_t n = 1; failed[0] || failed[1] || failed[2]; n++) {
        assert_in_range(n, 1, 10);
        crn_gathered g;
        crn_nodes nodes;
        cairn_status rc[3];
        crn_mem_fail_at(rank == last ? n : 0);
        rc[0] = crn_comm_gatherv(c, "abc", 3, CRN_COMM_ALL, &g);
        crn_mem_fail_at(rank == last ? n : 0);
        rc[1] = crn_comm_nodes(c, 2, &nodes);
        crn_mem_fail_at(rank == last ? n : 0);
        rc[2] = crn_comm_dup(c, &made);
        if (rc[2] == CAIRN_OK)
            crn_comm_free(made);
        crn_mem_fail_at(0);
        if (rc[0] == CAIRN_OK)
            crn_gathered_done(&g);
        if (rc[1] == CAIRN_OK)
            crn_nodes_done(&nodes);
        for (int i = 0; i < 3; i++) {
            uint64_t low = (uint64_t)-rc[i], high = low;
            assert_ok(crn_comm_allreduce_u64(c, CRN_REDUCE_MIN, &low, 1));
            assert_ok(crn_comm_allreduce_u64(c, CRN_REDUCE_MAX, &high, 1));
            assert_true(low == high && (low == 0 || low == -CAIRN_ENOMEM));
            failed[i] = low != 0;
        }
    }
}

static void test_patient_waits_give_the_same(void **state)
{
    crn_comm *c = cut_at(*state, 1000);
    crn_comm_set_patient(c, true);
    gather_case(c, 500, CRN_COMM_ALL);
    gatherv_case(c, 500, 0);
    pipeline(c, 20000);
    assert_int_equal(crn_comm_agree(c, CAIRN_NOTHING), CAIRN_NOTHING);
    crn_comm_free(c);
}

static void *work_in_thread(void *comm)
{
    for (int i = 0; i < 20; i++) {
        pipeline(comm, 3000);
        gather_case(comm, 500, CRN_COMM_ALL);
    }
    return NULL;
}

/* The engine thread and the program at once, each on its own communicator. */
static void test_two_threads_on_two_communicators(void **state)
{
    crn_comm *c = *state;
    if (!crn_comm_is_threaded(c))
        skip();
    crn_comm *mine = cut_at(c, 1000), *theirs = cut_at(c, 1000);
    crn_comm_set_patient(theirs, true);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, work_in_thread, theirs), 0);
    work_in_thread(mine);
    pthread_join(thread, NULL);
    crn_comm_free(mine);
    crn_comm_free(theirs);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rank_and_size),
        cmocka_unit_test(test_barrier_holds_until_all_are_there),
        cmocka_unit_test(test_bcast_from_each_root),
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_gatherv),
        cmocka_unit_test(test_allreduce_u64),
        cmocka_unit_test(test_allreduce_unsigned_order),
        cmocka_unit_test(test_allreduce_f64),
        cmocka_unit_test(test_send_and_recv_to_root),
        cmocka_unit_test(test_many_messages_under_way),
        cmocka_unit_test(test_receive_of_fewer_bytes_fails),
        cmocka_unit_test(test_cancelled_receive_lets_go),
        cmocka_unit_test(test_dup_keeps_messages_apart),
        cmocka_unit_test(test_virtual_nodes),
        cmocka_unit_test(test_known_nodes),
        cmocka_unit_test(test_real_nodes),
        cmocka_unit_test(test_agree_on_success),
        cmocka_unit_test(test_agree_tells_the_first_failure),
        cmocka_unit_test(test_agree_on_a_bare_code_ignores_the_old_record),
        cmocka_unit_test(test_no_memory_on_one_rank_fails_on_all),
        cmocka_unit_test(test_patient_waits_give_the_same),
        cmocka_unit_test(test_two_threads_on_two_communicators),
    };
    return run_mpi_tests(argc, argv, tests);
}
