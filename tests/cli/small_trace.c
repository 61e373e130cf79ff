/* SPDX-License-Identifier: BSD-3-Clause
 *
 * small_trace FILE RANKS [cut]: write the small trace of tests/harness; cut: rank 0 ended early.
 */
#include "harness/small_trace.h"

static void cut_program(small_rank *x)
{
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    small_ring(x, SMALL_COUNT);
}

int main(int argc, char **argv)
{
    crn_trace *t;
    if (argc < 3)
        return 2;
    uint32_t nranks = (uint32_t)strtoul(argv[2], NULL, 10);
    small_trace(argv[1], nranks, 100, true, argc > 3 ? cut_program : small_program);
    if (argc == 3)
        return 0;
    assert_ok(crn_trace_load(argv[1], &t));
    assert_ok(crn_seq_of((int64_t[]){0}, 1, &t->cut));
    t->dropped = 12;
    assert_ok(crn_trace_save(t, argv[1]));
    crn_trace_free(t);
    return 0;
}
