/* SPDX-License-Identifier: BSD-3-Clause
 *
 * small_trace FILE RANKS [cut | stuck | order | swapped]: write the small trace of tests/harness.
 * cut: rank 0 ended early; stuck: all receive what nobody sends; order and swapped: four marks,
 * with wildcard receives of rank 0 and reads of rank 1 that come in another order before mark 3.
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

/* A turn between two marks. */
static void order_turn(small_rank *x, bool swapped)
{
    for (int64_t i = 1; i < 4 && x->rank == 0; i++) {
        small_event(x, CRN_CALL_MPI_Recv, 6, (int64_t[]){1, 0, CRN_PEER_ANY, 7, 0});
        small_event(x, CRN_CALL_match, 6, (int64_t[]){swapped ? 4 - i : i, 7, 8});
    }
    for (int64_t i = 0; i < 2 && x->rank == 1; i++) {
        small_open(x, (i == 1) != swapped ? "in-1" : "in-0", 3);
        small_event(x, CRN_CALL_read, 8, (int64_t[]){3, 100, 100});
        small_event(x, CRN_CALL_close, 9, (int64_t[]){3});
    }
}

static void marked_program(small_rank *x, bool swapped)
{
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    for (int64_t mark = 1; mark <= 4; mark++) {
        order_turn(x, swapped && mark == 3);
        small_event(x, CRN_CALL_mark, 10, (int64_t[]){mark});
    }
    small_event(x, CRN_CALL_MPI_Finalize, 2, NULL);
}

static void order_program(small_rank *x)
{
    marked_program(x, false);
}

static void swapped_program(small_rank *x)
{
    marked_program(x, true);
}

static const struct {
    const char *name;
    void (*program)(small_rank *x);
} programs[] = {{"", small_program},
                {"cut", cut_program},
                {"stuck", stuck_program},
                {"order", order_program},
                {"swapped", swapped_program}};

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
