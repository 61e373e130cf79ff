/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a rank of a replay makes of the times of a trace: drawn, they add up to what was recorded;
 * and waiting goes to the ranks that waited.
 */
#include "harness/small_trace.h"
#include "replay/replay.h"

enum { TURNS = 90, SLOW = 10, MICRO = 1000 };

static void compute(small_rank *x, uint64_t us)
{
    x->now += us * MICRO;
}

/* Every tenth turn is slow. Rank 1 computes twice as long as rank 0, which waits for it. */
static void uneven_program(small_rank *x)
{
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    for (int i = 0; i < TURNS; i++) {
        uint64_t us = i % SLOW == 0 ? 1000 : 100;
        compute(x, x->rank == 1 ? 2 * us : us);
        small_event(x, CRN_CALL_MPI_Send, 10 + x->rank, (int64_t[]){1, 0, 1 - x->rank, 1, 0});
        small_event_took(x, CRN_CALL_MPI_Barrier, 20, (int64_t[]){0},
                         (x->rank == 1 ? 1 : 1 + us) * MICRO);
    }
    small_event(x, CRN_CALL_MPI_Finalize, 2, NULL);
}

/* The gap before a rank's own place, and the trace that it is in. */
static const crn_gap *gap_before_send(const crn_trace *t, uint32_t site)
{
    const crn_lane *l = &t->lane[0];
    for (size_t i = 0; i < l->ngaps; i++) {
        const crn_symbol *to = &l->symbol[l->gap[i].to];
        if (to->call == CRN_CALL_MPI_Send && t->site[to->site].off == site &&
            crn_hist_count(&l->gap[i].hist) > 1)
            return &l->gap[i];
    }
    fail_msg("no gap before the call at %u", site);
    return NULL;
}

static void expect_near(double a, double b)
{
    if (a < 0.98 * b || a > 1.02 * b)
        fail_msg("%g instead of %g", a, b);
}

static void test_draws_add_up(void **state)
{
    crn_trace *t = small_merged(2, 100, true, uneven_program);
    const crn_gap *gap = gap_before_send(t, 11);
    const uint64_t n = crn_hist_count(&gap->hist);
    double sum = 0, tenth = 0;
    crn_times x;
    (void)state;
    assert_ok(crn_times_init(&x, t, 0, 1));
    for (uint64_t i = 0; i < 3 * n; i++) {
        const double v = crn_times_draw(&x, gap);
        sum += v;
        tenth += i < n / 2 ? v : 0;
    }
    expect_near(sum, 3 * (double)n * crn_hist_mean(&gap->hist));
    assert_true(tenth > 0.4 * sum / 3 && tenth < 0.6 * sum / 3); /* slow ones all along */
    crn_times_done(&x);
    crn_trace_free(t);
}

/* What a rank makes of the run as a whole is how long it took. */
static double length_of(const crn_trace *t, uint32_t rank)
{
    crn_traced_event e;
    crn_walk *w;
    crn_times x;
    double sum = 0;
    assert_ok(crn_times_init(&x, t, 0, rank));
    assert_ok(crn_walk_open(t, 0, rank, 1, &w));
    while (crn_walk_next(w, &e)) {
        const crn_gap *gap = crn_lane_gap(&t->lane[0], e.from, e.symbol);
        const crn_passing call = crn_times_passing(&x, e.symbol);
        sum += (gap ? crn_times_draw(&x, gap) : 0) + call.least + call.waited;
    }
    crn_walk_close(w);
    crn_times_done(&x);
    return sum;
}

static void test_waiting_is_of_those_who_waited(void **state)
{
    const uint32_t precisions[] = {100, 0};
    (void)state;
    for (int i = 0; i < 2; i++) {
        crn_trace *t = small_merged(2, precisions[i], true, uneven_program);
        crn_times quick, slow;
        assert_ok(crn_times_init(&quick, t, 0, 0));
        assert_ok(crn_times_init(&slow, t, 0, 1));
        assert_true(quick.waiting > 1.5 && slow.waiting < 0.5);
        expect_near(length_of(t, 0), (double)t->lasted);
        expect_near(length_of(t, 1), (double)t->lasted);
        crn_times_done(&quick);
        crn_times_done(&slow);
        crn_trace_free(t);
    }
}

static void test_a_trace_without_times(void **state)
{
    crn_trace *t = small_merged(2, 100, false, uneven_program);
    crn_times x;
    (void)state;
    assert_ok(crn_times_init(&x, t, 0, 0));
    assert_false(crn_times_passing(&x, 0).known);
    assert_true(x.waiting == 1);
    crn_times_done(&x);
    crn_trace_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draws_add_up),
        cmocka_unit_test(test_waiting_is_of_those_who_waited),
        cmocka_unit_test(test_a_trace_without_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
