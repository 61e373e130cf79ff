/* SPDX-License-Identifier: BSD-3-Clause
 *
 * small_trace FILE RANKS [cut | stuck]: write the small trace of tests/harness. cut: rank 0 ended
 * early; stuck: all receive what nobody sends.
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
    bool is_cut = argc > 3 && strcmp(argv[3], "cut") == 0;
    bool is_stuck = argc > 3 && strcmp(argv[3], "stuck") == 0;
    if (is_stuck)
        small_trace(argv[1], nranks, 100, true, stuck_program);
    else
        small_trace(argv[1], nranks, 100, true, is_cut ? cut_program : small_program);
    if (is_cut)
        cut(argv[1]);
    return 0;
}
