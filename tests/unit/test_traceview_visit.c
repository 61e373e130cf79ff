/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Looking at traces: what visits and sums say of known programs, without order and with repeat
 * counts, is what counting event by event says.
 *
 * NEEDS: zstd
 */
#include "harness/opened_trace.h"

enum { NRANKS = 5 };

typedef struct sums {
    uint64_t events, nbytes, calls_of_fn, sent[NRANKS];
} sums;

static int add(void *arg, const cairn_trace_event *e)
{
    sums *s = arg;
    s->calls_of_fn++;
    s->events += e->repeat;
    for (uint64_t i = 0; i < e->repeat; i++)
        s->nbytes += e->nbytes + i * (uint64_t)e->nbytes_step;
    for (size_t m = 0; m < e->nmessages; m++)
        if (e->message[m].sent && e->message[m].peer >= 0)
            s->sent[e->message[m].peer] += e->repeat * e->message[m].nbytes;
    return 0;
}

/* Both ways of looking at a rank agree; the one without order needs far fewer calls. */
static void expect_agreement(cairn_trace *t, uint32_t nranks, uint64_t fewer)
{
    for (uint32_t r = 0; r < nranks; r++) {
        sums folded = {0}, plain = {0};
        assert_ok(cairn_trace_visit(t, r, add, &folded));
        assert_ok(cairn_trace_walk(t, r, 0, add, &plain));
        assert_int_equal(folded.events, plain.events);
        assert_int_equal(folded.nbytes, plain.nbytes);
        assert_memory_equal(folded.sent, plain.sent, sizeof plain.sent);
        assert_in_range(folded.calls_of_fn, 1, plain.calls_of_fn / fewer);
    }
}

static void test_visit_repeats(void **state)
{
    (void)state;
    cairn_trace *t = opened_trace(NRANKS, 100, true, small_program);
    expect_agreement(t, NRANKS, 20);
    cairn_trace_close(t);
}

/* To rank 0 of communicator 2, as its rank of size. */
static void send_on_two(small_rank *x, uint32_t rank, uint32_t size)
{
    small_rank y = *x;
    y.rank = rank;
    y.nranks = size;
    small_event(&y, CRN_CALL_MPI_Send, 10, (int64_t[]){1, 0, 0, 1, 2});
    y.rank = x->rank;
    y.nranks = x->nranks;
    *x = y;
}

/* A number of a file and of a communicator that stands for one thing after the other. */
static void reusing_program(small_rank *x)
{
    int64_t all[NRANKS], two[] = {0, 1};
    for (int64_t r = 0; r < NRANKS; r++)
        all[r] = NRANKS - 1 - r;
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    small_open(x, "a", 3);
    small_event(x, CRN_CALL_write, 5, (int64_t[]){3, 100, 100});
    small_event(x, CRN_CALL_close, 6, (int64_t[]){3});
    small_open(x, "b", 3);
    small_event(x, CRN_CALL_write, 7, (int64_t[]){3, 1000, 1000});
    small_event(x, CRN_CALL_close, 8, (int64_t[]){3});
    small_event_list(x, CRN_CALL_MPI_Comm_split, 9, (int64_t[]){0, 0, 0, 2, 0}, 4, all, NRANKS);
    send_on_two(x, NRANKS - 1 - x->rank, NRANKS);
    small_event(x, CRN_CALL_MPI_Comm_free, 11, (int64_t[]){2});
    if (x->rank < 2) {
        small_event_list(x, CRN_CALL_MPI_Comm_split, 9, (int64_t[]){0, 0, 0, 2, 0}, 4, two, 2);
        send_on_two(x, x->rank, 2);
    }
    small_event(x, CRN_CALL_MPI_Finalize, 2, NULL);
}

static int expect_file(void *arg, const cairn_trace_row *row)
{
    uint64_t *seen = arg;
    if (row->nbytes > 0) {
        assert_string_equal(row->file, row->nbytes == NRANKS * 100 ? "a" : "b");
        *seen += row->nbytes;
    }
    return 0;
}

static void test_numbers_that_are_used_again(void **state)
{
    (void)state;
    cairn_trace *t = opened_trace(NRANKS, 100, true, reusing_program);
    uint64_t seen = 0;
    sums s = {0};
    expect_agreement(t, NRANKS, 1);
    assert_ok(cairn_trace_visit(t, 0, add, &s));
    assert_int_equal(s.sent[NRANKS - 1], 8); /* rank 0 of the first, which is turned around */
    assert_int_equal(s.sent[0], 8);
    assert_ok(cairn_trace_sum(t, CAIRN_TRACE_BY_FILE | CAIRN_TRACE_BY_CALL, expect_file, &seen));
    assert_int_equal(seen, NRANKS * 1100);
    cairn_trace_close(t);
}

/* A chain: the last rank has nobody behind it, the first nobody before it. Type 0 has 8 bytes. */
static void chain_program(small_rank *x)
{
    int64_t self = x->rank, next = self + 1 < NRANKS ? self + 1 : CRN_PEER_NULL;
    int64_t before = self > 0 ? self - 1 : CRN_PEER_NULL;
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    small_event(x, CRN_CALL_MPI_Sendrecv, 3, (int64_t[]){10, 0, next, 1, 10, 0, before, 1, 0});
    small_event(x, CRN_CALL_MPI_Finalize, 2, NULL);
}

static void test_nobody_gets_nothing(void **state)
{
    (void)state;
    cairn_trace *t = opened_trace(NRANKS, 100, true, chain_program);
    sums s = {0};
    for (uint32_t r = 0; r < NRANKS; r++)
        assert_ok(cairn_trace_visit(t, r, add, &s));
    assert_int_equal(s.nbytes, (NRANKS - 1) * 80);
    assert_int_equal(s.sent[0], 0);
    assert_int_equal(s.sent[NRANKS - 1], 80);
    cairn_trace_close(t);
}

/* Sizes that grow by a step: cut where they pass a power of two. */
static void growing_program(small_rank *x)
{
    for (int64_t i = 0; i < 100; i++)
        small_event(x, CRN_CALL_MPI_Send, 5, (int64_t[]){i, 0, 0, 1, 0});
    for (int64_t i = 100; i > 0; i--)
        small_event(x, CRN_CALL_MPI_Send, 6, (int64_t[]){i, 0, 0, 1, 0});
}

static int expect_size(void *arg, const cairn_trace_row *row)
{
    uint64_t n = 0, nbytes = 0, *seen = arg;
    for (uint64_t i = 0; i <= 200; i++) {
        uint64_t one = 8 * (i < 100 ? i : 201 - i); /* both loops */
        if (i != 100 && (row->size == 0 ? one == 0 : one >= row->size && one < 2 * row->size)) {
            n++;
            nbytes += one;
        }
    }
    assert_int_equal(row->nevents, n);
    assert_int_equal(row->nbytes, nbytes);
    *seen += row->nevents;
    return 0;
}

static void test_sum_by_size(void **state)
{
    (void)state;
    cairn_trace *t = opened_trace(1, 100, true, growing_program);
    uint64_t seen = 0;
    expect_agreement(t, 1, 20);
    assert_ok(cairn_trace_sum(t, CAIRN_TRACE_BY_SIZE, expect_size, &seen));
    assert_int_equal(seen, 200);
    cairn_trace_close(t);
}

static int expect_pair(void *arg, const cairn_trace_row *row)
{
    ++*(uint64_t *)arg;
    assert_int_equal(row->peer, (row->rank + 1) % NRANKS);
    assert_int_equal(row->nevents, SMALL_TURNS);
    assert_int_equal(row->nbytes, SMALL_TURNS * SMALL_COUNT * 8);
    return 0;
}

static int stop_at_once(void *arg, const cairn_trace_row *row)
{
    (void)row;
    ++*(uint64_t *)arg;
    return 1;
}

static void test_sum_by_pair(void **state)
{
    (void)state;
    cairn_trace *t = opened_trace(NRANKS, 100, true, small_program);
    uint64_t n = 0;
    assert_ok(cairn_trace_sum(t, CAIRN_TRACE_BY_RANK | CAIRN_TRACE_BY_PEER, expect_pair, &n));
    assert_int_equal(n, NRANKS);
    assert_int_equal(cairn_trace_sum(t, CAIRN_TRACE_BY_RANK, stop_at_once, &n), CAIRN_NOTHING);
    assert_int_equal(n, NRANKS + 1);
    cairn_trace_close(t);
}

static int count_pieces(void *arg, const cairn_trace_piece *p)
{
    uint64_t *n = arg;
    n[p->call == NULL]++;
    assert_int_equal(p->nranks, NRANKS);
    if (!p->call)
        assert_int_equal(p->total, p->met * SMALL_TURNS);
    return 0;
}

static void test_outline(void **state)
{
    (void)state;
    cairn_trace *t = opened_trace(NRANKS, 100, true, small_program);
    uint64_t n[2] = {0};
    cairn_trace_info info = {.struct_bytes = sizeof info};
    assert_ok(cairn_trace_outline(t, count_pieces, n));
    assert_ok(cairn_trace_describe(t, &info));
    assert_int_equal(n[0], info.nplaces);
    assert_int_equal(n[1], info.nloops);
    assert_int_equal(info.nevents, NRANKS * (4 * SMALL_TURNS + 3 + 2 + SMALL_WRITES + 2));
    assert_null(info.incomplete);
    cairn_trace_close(t);
}

static void test_ranks_that_are_not_there(void **state)
{
    (void)state;
    cairn_trace *t = opened_trace(2, 100, true, small_program);
    sums s = {0};
    assert_fails(cairn_trace_visit(t, 2, add, &s), CAIRN_EINVAL, "has ranks 0 to 1, not 2");
    assert_int_equal(cairn_trace_walk(t, 0, 1, add, &s), CAIRN_NOTHING);
    cairn_trace_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_visit_repeats),
        cmocka_unit_test(test_numbers_that_are_used_again),
        cmocka_unit_test(test_sum_by_size),
        cmocka_unit_test(test_sum_by_pair),
        cmocka_unit_test(test_outline),
        cmocka_unit_test(test_ranks_that_are_not_there),
        cmocka_unit_test(test_nobody_gets_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
