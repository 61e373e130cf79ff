/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Precision that pays: a program as POP is one, whose sizes and numbers of turns vary by some per
 * cent between ranks and turns, is a third at 95 per cent of what it is without loss; no precision
 * takes more room than none; nobody speaks to whom they never spoke; sums stay.
 *
 * NEEDS: zstd
 */
#include "harness/opened_trace.h"

#include <math.h>

enum { RANKS = 32, STEPS = 60 };

static double vary; /* of sizes and turns, to either side */

static int64_t about(uint32_t rank, int step, int what, int64_t v)
{
    crn_rng rng = crn_rng_of(26, (uint64_t)rank << 32 | (uint64_t)step << 8 | (uint64_t)what);
    return v + (int64_t)((2 * crn_rng_unit(&rng) - 1) * vary * (double)v);
}

/* Halos of sizes that follow the ocean's shape, and a solver whose iterations vary. */
static void pop(small_rank *x)
{
    const int64_t east = (x->rank + 1) % x->nranks, north = (x->rank + 8) % x->nranks;
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    for (int s = 0; s < STEPS; s++) {
        small_event(x, CRN_CALL_MPI_Send, 10,
                    (int64_t[]){about(x->rank, s, 0, 2000), 0, east, 1, 0});
        small_event(x, CRN_CALL_MPI_Send, 11,
                    (int64_t[]){about(x->rank, s, 1, 900), 0, north, 2, 0});
        for (int64_t i = about(x->rank, s, 2, 40); i > 0; i--)
            small_event(x, CRN_CALL_MPI_Send, 12, (int64_t[]){100, 0, east, 3, 0});
        small_event(x, CRN_CALL_MPI_Allreduce, 13, (int64_t[]){0, 1, 0, CRN_OP_SUM, 0});
    }
    small_event(x, CRN_CALL_MPI_Finalize, 2, NULL);
}

static size_t size_at(uint32_t precision)
{
    crn_trace *t = small_merged(RANKS, precision, false, pop);
    crn_buf b = {0};
    assert_ok(crn_trace_encode(t, CRN_TRACE_BEST, &b));
    const size_t n = b.n;
    crn_buf_done(&b);
    crn_trace_free(t);
    return n;
}

static void test_sizes(void **state)
{
    static const uint32_t precisions[] = {99, 95, 90, 75, 50, 25, 10, 0};
    (void)state;
    for (vary = 0.01; vary < 0.2; vary *= 2) {
        const size_t whole = size_at(100);
        for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++) {
            const size_t n = size_at(precisions[i]);
            print_message("varying by %.0f%%: %zu bytes at %u%%, %zu without loss\n", 100 * vary, n,
                          precisions[i], whole);
            assert_true(n <= whole);
            if (precisions[i] == 95 && vary < 0.05)
                assert_true(3 * n <= whole);
        }
    }
}

typedef struct sums {
    uint64_t nbytes, nevents;
} sums;

static int add_pair(void *arg, const cairn_trace_row *r)
{
    sums *s = arg;
    assert_true(r->peer == (r->rank + 1) % RANKS || r->peer == (r->rank + 8) % RANKS);
    s->nbytes += r->nbytes;
    s->nevents += r->nevents;
    return 0;
}

static void test_sums(void **state)
{
    sums whole = {0}, lossy = {0};
    (void)state;
    vary = 0.04;
    cairn_trace *t = opened_trace(RANKS, 100, false, pop);
    assert_ok(cairn_trace_sum(t, CAIRN_TRACE_BY_RANK | CAIRN_TRACE_BY_PEER, add_pair, &whole));
    cairn_trace_close(t);
    t = opened_trace(RANKS, 95, false, pop);
    assert_ok(cairn_trace_sum(t, CAIRN_TRACE_BY_RANK | CAIRN_TRACE_BY_PEER, add_pair, &lossy));
    cairn_trace_close(t);
    assert_true(fabs((double)lossy.nbytes - (double)whole.nbytes) < 0.01 * (double)whole.nbytes);
    assert_true(fabs((double)lossy.nevents - (double)whole.nevents) < 0.01 * (double)whole.nevents);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes), cmocka_unit_test(test_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
