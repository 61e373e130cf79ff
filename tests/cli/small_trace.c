/* SPDX-License-Identifier: BSD-3-Clause
 *
 * small_trace FILE RANKS [WORD]: write the small trace of tests/harness, or one that the word below
 * stands for. cut: rank 0 ended early; stuck: all receive what nobody sends; waiting: for others;
 * deep: long call stacks and names;
 * the others have four marks, and pairs of them differ before mark 3 in an order, or in nothing.
 */
#include "harness/small_trace.h"

static void cut_program(small_rank *x)
{
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    small_ring(x, SMALL_COUNT);
}

static void stuck_program(small_rank *x)
{
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    small_event(x, CRN_CALL_MPI_Irecv, 3, (int64_t[]){1, 0, x->rank, 8, 0, 4});
    small_event(x, CRN_CALL_MPI_Recv, 4, (int64_t[]){1, 0, x->rank, 7, 0});
    small_event(x, CRN_CALL_MPI_Finalize, 2, NULL);
}

/* Rank 1 comes last to the barriers, and rank 2 waits for a message of rank 0. */
static void waiting_program(small_rank *x)
{
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    for (uint64_t i = 1; i <= 4; i++) {
        small_event_took(x, CRN_CALL_MPI_Barrier, 3, (int64_t[]){0}, x->rank == 1 ? 100 : 9000);
        if (x->rank == 0)
            small_event(x, CRN_CALL_MPI_Send, 4, (int64_t[]){1, 0, 2, 7, 0});
        if (x->rank == 2)
            small_event_took(x, CRN_CALL_MPI_Recv, 5, (int64_t[]){1, 0, 0, 7, 0}, i * 1000);
    }
    small_event(x, CRN_CALL_MPI_Finalize, 2, NULL);
}

static void receive(small_rank *x, uint32_t site, int64_t source)
{
    small_event(x, CRN_CALL_MPI_Recv, site, (int64_t[]){1, 0, CRN_PEER_ANY, 7, 0});
    small_event(x, CRN_CALL_match, site, (int64_t[]){source, 7, 8});
}

/* The first thread takes a mark, and the others are told. */
static void mark(small_rank *x, int64_t version)
{
    for (unsigned i = x->nthreads; i-- > 0;) {
        crn_record r = {.call = CRN_CALL_mark, .ncolumns = 1, .value = {version}};
        small_turn(x, i);
        if (i > 0)
            small_add(x, &r, 0, 500);
        else
            small_event(x, CRN_CALL_mark, 10, (int64_t[]){version});
    }
}

/* A turn between two marks, at places that lie so far behind. */
static void order_turn(small_rank *x, bool swapped, uint32_t shift)
{
    for (int64_t i = 1; i < 4 && x->rank == 0; i++)
        receive(x, 6 + shift, swapped ? 4 - i : i);
    for (int64_t i = 0; i < 2 && x->rank == 1; i++) {
        small_open(x, (i == 1) != swapped ? "in-1" : "in-0", 3);
        small_event(x, CRN_CALL_read, 8, (int64_t[]){3, 100, 100});
        small_event(x, CRN_CALL_close, 9, (int64_t[]){3});
    }
}

static void marked_program(small_rank *x, bool swapped, uint32_t shift)
{
    small_event(x, CRN_CALL_MPI_Init, 1 + shift, NULL);
    for (int64_t i = 1; i <= 4; i++) {
        order_turn(x, swapped && i == 3, shift);
        mark(x, i);
    }
    small_event(x, CRN_CALL_MPI_Finalize, 2, NULL);
}

static void order_program(small_rank *x)
{
    marked_program(x, false, 0);
}

static void swapped_program(small_rank *x)
{
    marked_program(x, true, 0);
}

static void rebuilt_program(small_rank *x)
{
    marked_program(x, true, 100);
}

/* Mark 3 is begun before the turn that it is to hold, and committed after it. */
static void begun_program(small_rank *x, bool swapped)
{
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    for (int64_t i = 1; i <= 4; i++) {
        mark(x, i);
        order_turn(x, swapped && i == 3, 0);
        mark(x, i);
    }
    small_event(x, CRN_CALL_MPI_Finalize, 2, NULL);
}

static void begun_in_order(small_rank *x)
{
    begun_program(x, false);
}

static void begun_swapped(small_rank *x)
{
    begun_program(x, true);
}

/* A probe may find a message several times before it is received. */
static void probing_program(small_rank *x, int64_t nfound)
{
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    for (int64_t i = 1; i <= 4; i++) {
        for (int64_t k = 0; k < nfound; k++) {
            small_event(x, CRN_CALL_MPI_Iprobe, 5, (int64_t[]){CRN_PEER_ANY, 7, 0, 1});
            small_event(x, CRN_CALL_match, 5, (int64_t[]){1, 7, 8});
        }
        small_event(x, CRN_CALL_MPI_Recv, 6, (int64_t[]){1, 0, 1, 7, 0});
        mark(x, i);
    }
    small_event(x, CRN_CALL_MPI_Finalize, 2, NULL);
}

static void once_program(small_rank *x)
{
    probing_program(x, 1);
}

static void often_program(small_rank *x)
{
    probing_program(x, 3);
}

/* Another thread receives all the time; marks come after so many of its messages. */
static void beside_program(small_rank *x, unsigned thread, const int marked[4],
                           const int64_t source[8])
{
    int next = 0;
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    for (int i = 0; i <= 8; i++) {
        while (next < 4 && marked[next] == i)
            mark(x, ++next);
        small_turn(x, thread);
        if (i < 8)
            receive(x, 6, source[i]);
    }
    small_turn(x, 0);
    small_event(x, CRN_CALL_MPI_Finalize, 2, NULL);
}

static const int64_t in_order[] = {1, 2, 3, 1, 2, 3, 1, 2};

static void early_program(small_rank *x)
{
    beside_program(x, 1, (int[]){1, 3, 5, 7}, in_order);
}

static void late_program(small_rank *x)
{
    beside_program(x, 1, (int[]){2, 4, 5, 8}, in_order);
}

static void later_program(small_rank *x)
{
    beside_program(x, 1, (int[]){2, 4, 6, 8}, in_order);
}

static void other_number(small_rank *x)
{
    beside_program(x, 2, (int[]){2, 4, 6, 8}, in_order);
}

static void after_marks(small_rank *x)
{
    beside_program(x, 1, (int[]){0, 0, 0, 0}, in_order);
}

static void beside_swapped(small_rank *x)
{
    beside_program(x, 1, (int[]){2, 4, 6, 8}, (int64_t[]){1, 2, 3, 1, 3, 2, 1, 2});
}

/* Two more threads, of which the one with this number comes first. */
static void threads_program(small_rank *x, unsigned first)
{
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    for (int64_t i = 1; i <= 4; i++) {
        small_turn(x, first);
        receive(x, 6, 1);
        receive(x, 6, 2);
        small_turn(x, 3 - first);
        receive(x, 7, 3);
        mark(x, i);
    }
    small_event(x, CRN_CALL_MPI_Finalize, 2, NULL);
}

/* The same by threads that live for a turn each, and have the number of the one before. */
static void lives_program(small_rank *x)
{
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    for (int64_t i = 1; i <= 4; i++) {
        small_turn(x, 1);
        small_event(x, CRN_CALL_thread, 0, NULL);
        receive(x, 7, 3);
        small_event(x, CRN_CALL_thread, 0, NULL);
        receive(x, 6, 1);
        receive(x, 6, 2);
        mark(x, i);
    }
    small_event(x, CRN_CALL_MPI_Finalize, 2, NULL);
}

static void threads_one(small_rank *x)
{
    threads_program(x, 1);
}

static void threads_two(small_rank *x)
{
    threads_program(x, 2);
}

/* What is longer than any buffer: a call stack, a file name, ranks that are no range. */
static void deep_program(small_rank *x)
{
    enum { FRAMES = 60 };
    crn_record barrier = {.call = CRN_CALL_MPI_Barrier, .ncolumns = 1};
    char name[1000] = "";
    barrier.comm_rank = x->rank;
    barrier.comm_size = x->nranks;
    for (uint64_t i = 0; i < FRAMES; i++)
        assert_ok(crn_tables_site(&x->tables,
                                  (crn_site){.module = 1, .off = 0x2712 + i, .outer = barrier.site},
                                  &barrier.site));
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    small_add(x, &barrier, 0, 500);
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 2] = 'x';
    if (x->rank % 2 == 1)
        small_open(x, name, 3);
    small_event(x, CRN_CALL_MPI_Finalize, 2, NULL);
}

static const struct {
    const char *name;
    void (*program)(small_rank *x);
} programs[] = {{"", small_program},
                {"cut", cut_program},
                {"stuck", stuck_program},
                {"waiting", waiting_program},
                {"order", order_program},
                {"swapped", swapped_program},
                {"rebuilt", rebuilt_program},
                {"begun", begun_in_order},
                {"begun-swapped", begun_swapped},
                {"once", once_program},
                {"often", often_program},
                {"early", early_program},
                {"late", late_program},
                {"later", later_program},
                {"beside-swapped", beside_swapped},
                {"threads", threads_one},
                {"turned", threads_two},
                {"lives", lives_program},
                {"other-number", other_number},
                {"after-marks", after_marks},
                {"deep", deep_program}};

static void cut(const char *path)
{
    crn_trace *t;
    assert_ok(crn_trace_load(path, &t));
    assert_ok(crn_seq_of((int64_t[]){0}, 1, &t->cut));
    t->dropped = 12;
    assert_ok(crn_trace_save(t, path));
    crn_trace_free(t);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    uint32_t nranks = (uint32_t)strtoul(argv[2], NULL, 10);
    const char *name = argc > 3 ? argv[3] : "";
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (strcmp(name, programs[i].name) == 0)
            small_trace(argv[1], nranks, 100, true, programs[i].program);
    if (strcmp(name, "cut") == 0)
        cut(argv[1]);
    return 0;
}
