/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a rank of a replay makes of the times of a trace: drawn, they add up to what was recorded;
 * and waiting goes to the ranks that waited.
 *
 * NEEDS: zstd random123
 */
#include "harness/small_trace.h"
#include "harness/virtual_run.h"
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
            crn_hist_count(&l->gap[i].time.all) > 1)
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
    const uint64_t n = crn_hist_count(&gap->time.all);
    double sum = 0, tenth = 0;
    crn_times x;
    (void)state;
    assert_ok(crn_times_init(&x, t, 0, 1));
    for (uint64_t i = 0; i < 3 * n; i++) {
        const double v = crn_times_draw(&x, gap);
        sum += v;
        tenth += i < n / 2 ? v : 0;
    }
    expect_near(sum, 3 * (double)n * crn_hist_mean(&gap->time.all));
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

/* What the calls of a rank waited, each once. */
static double waiting_of(const crn_trace *t, uint32_t rank)
{
    crn_times x;
    double sum = 0;
    assert_ok(crn_times_init(&x, t, 0, rank));
    for (uint32_t i = 0; i < t->lane[0].nsymbols; i++)
        if (t->lane[0].symbol[i].call != CRN_CALL_NONE)
            sum += crn_times_passing(&x, i).waited;
    crn_times_done(&x);
    return sum;
}

/* Computing that is drawn for a rank, and waiting in its calls, over a walk. */
static void expect_pace(const crn_trace *t, uint32_t rank, const vr_rank *was)
{
    crn_traced_event e;
    crn_walk *w;
    crn_times x;
    double computed = 0, waited = 0;
    assert_ok(crn_times_init(&x, t, 0, rank));
    assert_ok(crn_walk_open(t, 0, rank, 1, &w));
    while (crn_walk_next(w, &e)) {
        const crn_gap *gap = crn_lane_gap(&t->lane[0], e.from, e.symbol);
        computed += gap ? crn_times_draw(&x, gap) : 0;
        waited += crn_times_passing(&x, e.symbol).waited;
    }
    if (fabs(computed - was->computed) > 0.05 * was->computed)
        fail_msg("rank %u computes for %g instead of %g", rank, computed, was->computed);
    if (fabs(waited - was->waited) > 0.15 * was->waited + 0.02 * (double)t->lasted)
        fail_msg("rank %u waits for %g instead of %g", rank, waited, was->waited);
    crn_walk_close(w);
    crn_times_done(&x);
}

/* Each rank computes and waits for as long as it did: within 5 and 15 per cent, the latter and a
 * fiftieth of the run, which is what noise does to ranks that hardly wait. */
static void test_each_rank_keeps_its_pace(void **state)
{
    static vr_run run;
    crn_rng rng = crn_rng_of(test_seed(), 29);
    (void)state;
    for (int i = 0; i < 60; i++) {
        vr_program p = vr_random_program(&rng, (vr_plant)(i % VR_PLANTS), 1.2);
        p.calm = true; /* hiccups are any rank's, and go to all alike */
        crn_trace *t = vr_sent(vr_record(&run, &p, crn_rng_u64(&rng)));
        for (uint32_t r = 0; r < p.nranks; r++)
            expect_pace(t, r, &run.rank[r]);
        crn_trace_free(t);
        vr_done(&run);
    }
}

static void test_waiting_is_of_those_who_waited(void **state)
{
    const uint32_t precisions[] = {100, 0};
    (void)state;
    for (int i = 0; i < 2; i++) {
        crn_trace *t = small_merged(2, precisions[i], true, uneven_program);
        assert_true(waiting_of(t, 0) > 3 * waiting_of(t, 1));
        expect_near(length_of(t, 0), (double)t->lasted);
        expect_near(length_of(t, 1), (double)t->lasted);
        crn_trace_free(t);
    }
}

/* The end of a call that waited, at the end of a run of an hour. */
static uint64_t expected_end(const crn_times *x, uint32_t symbol, double speed, bool no_delay)
{
    const cairn_replay_options opt = {.speed = speed, .no_delay = no_delay};
    crn_player *p;
    assert_ok(crn_alloc(&p, 1));
    p->opt = &opt;
    p->times = *x;
    p->e.symbol = symbol;
    p->began = crn_now_ns();
    p->pace.recorded = 3600e9;
    const uint64_t end = crn_play_expected_end(p) - p->began;
    free(p);
    return end;
}

/* A rank that does not compute waits for nobody: whatever was recorded is not awaited. */
static void test_no_delay_waits_for_nobody(void **state)
{
    crn_trace *t = small_merged(2, 0, true, uneven_program);
    crn_times x;
    uint32_t barrier = 0;
    (void)state;
    while (t->lane[0].symbol[barrier].call != CRN_CALL_MPI_Barrier)
        barrier++;
    assert_ok(crn_times_init(&x, t, 0, 0));
    const double waited = crn_times_passing(&x, barrier).waited;
    assert_true(waited > 0);
    const uint64_t full = expected_end(&x, barrier, 1, false);
    assert_true(full >= 3600000000000);
    assert_true((double)(full - expected_end(&x, barrier, 4, false)) > 0.7 * waited);
    assert_true(expected_end(&x, barrier, 1, true) < 1800000000000);
    crn_times_done(&x);
    crn_trace_free(t);
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
        cmocka_unit_test(test_each_rank_keeps_its_pace),
        cmocka_unit_test(test_waiting_is_of_those_who_waited),
        cmocka_unit_test(test_no_delay_waits_for_nobody),
        cmocka_unit_test(test_a_trace_without_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
