/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tuner, driven by a program that exists only as a model: marks cost what its curves say, with
 * some noise, and restarts take what it says; the tuner is told nothing else.
 *
 * NEEDS: random123
 */
#include <math.h>

#include "harness/harness.h"
#include "harness/spmv_growth.h"
#include "plan/plan.h"

/* Amrizal et al.: 6.25 Gbit/s and 125 Mbit/s, and two failure rates. */
static const double LOCAL_BANDWIDTH = 6.25e9 / 8, GLOBAL_BANDWIDTH = 125e6 / 8;
static const double LOCAL_RATE = 0.1757e-2, GLOBAL_RATE = 0.1778e-4;

static const double STATE = 1e9;

static crn_plan_model paper_model(double rates, double costs, double theta)
{
    return (crn_plan_model){.nlevels = 2,
                            .changed = {.floor = 1e7, .span = STATE - 1e7, .theta = theta},
                            .level = {{.rate = LOCAL_RATE * rates,
                                       .restart = STATE / LOCAL_BANDWIDTH,
                                       .fixed = 0.05,
                                       .bandwidth = LOCAL_BANDWIDTH},
                                      {.rate = GLOBAL_RATE * rates,
                                       .restart = STATE / GLOBAL_BANDWIDTH,
                                       .fixed = 0.5,
                                       .bandwidth = GLOBAL_BANDWIDTH / costs}}};
}

/* A program under the tuner: what it has computed, and when each level had its last mark. */
typedef struct program {
    crn_plan_model truth;
    const double *growth; /* measured blocks of STATE, in place of the model's curve; or NULL */
    crn_plan_tuner tuner;
    crn_rng rng;
    double noise, work, last[CRN_PLAN_LEVELS];
} program;

static program start(const crn_plan_model *truth, const crn_plan_options *opt, double noise)
{
    program p = {.truth = *truth, .rng = crn_rng_of(test_seed(), 7), .noise = noise};
    assert_ok(crn_plan_tuner_init(&p.tuner, opt));
    for (size_t l = 0; l < truth->nlevels; l++)
        assert_ok(crn_plan_tuner_restart(&p.tuner, l, truth->level[l].restart));
    return p;
}

static crn_plan_options options_for(const crn_plan_model *m)
{
    crn_plan_options opt = {.nlevels = m->nlevels,
                            .trust = 2,
                            .limits = {.interval_min = 1, .interval_max = 3600, .ratio_max = 200}};
    for (size_t l = 0; l < m->nlevels; l++)
        opt.rate[l] = m->level[l].rate;
    return opt;
}

static const double SPMV_STEP = 5; /* seconds */

/* Bytes that changed in a kernel of spmv: straight lines through what was measured. */
static double measured_growth(const double *blocks, double t)
{
    const double at = t / SPMV_STEP, byte = STATE / SPMV_BLOCKS;
    double x = 0, y = 2; /* each rank's counters, whatever else there is */
    for (size_t i = 0; i < SPMV_POINTS; i++) {
        if (at < SPMV_STEPS[i])
            return (y + (blocks[i] - y) * (at - x) / (SPMV_STEPS[i] - x)) * byte;
        x = SPMV_STEPS[i], y = blocks[i];
    }
    return y * byte;
}

static double changed_by(const program *p, double elapsed)
{
    if (p->growth)
        return measured_growth(p->growth, elapsed);
    return crn_plan_growth_at(&p->truth.changed, elapsed);
}

static void mark(program *p, size_t level)
{
    bool full = p->tuner.nmarks == 0;
    double elapsed = p->work - p->last[level];
    double wobble = 1 + p->noise * (2 * crn_rng_unit(&p->rng) - 1);
    crn_plan_measure measured = {
        .level = level,
        .full = full,
        .elapsed = elapsed,
        .nbytes = full ? STATE : changed_by(p, elapsed),
        .total = STATE,
    };
    const cairn_plan_level *l = &p->truth.level[level];
    measured.held = (l->fixed + measured.nbytes / l->bandwidth) * wobble;
    measured.background = l->background * wobble;
    assert_ok(crn_plan_tuner_mark(&p->tuner, &measured));
    for (size_t k = 0; k <= level; k++)
        p->last[k] = p->work;
}

/* Until so many more schedules were considered, at most so many marks. */
static void go_on(program *p, uint64_t nretuned, unsigned nmarks)
{
    uint64_t until = p->tuner.nretuned + nretuned;
    for (unsigned i = 0; i < nmarks && p->tuner.nretuned < until; i++) {
        if (p->tuner.nmarks > 0)
            p->work += p->tuner.schedule.interval;
        mark(p, crn_plan_tuner_level(&p->tuner));
    }
}

static double efficiency(const crn_plan_model *m, const cairn_plan_schedule *s)
{
    crn_plan_prediction p;
    assert_ok(crn_plan_predict(m, s, &p));
    return p.efficiency;
}

/* A schedule has marks of a level at one distance only, so that their costs are constants. */
static double measured_efficiency(const crn_plan_model *m, const double *growth,
                                  const cairn_plan_schedule *s)
{
    crn_plan_model constant = *m;
    if (!growth)
        return efficiency(m, s);
    constant.changed = (crn_plan_growth){.theta = 1};
    for (size_t l = 0; l < m->nlevels; l++)
        constant.level[l].fixed +=
            measured_growth(growth, s->interval * (double)crn_plan_period(s, l)) /
            m->level[l].bandwidth;
    return efficiency(&constant, s);
}

static double exhaust_measured(const crn_plan_model *m, const double *growth,
                               const crn_plan_limits *lim)
{
    double best = 0;
    cairn_plan_schedule s = {.ratio = {1}};
    for (s.ratio[1] = 1; s.ratio[1] <= lim->ratio_max; s.ratio[1]++)
        for (s.interval = lim->interval_min; s.interval <= lim->interval_max; s.interval *= 1.02)
            best = fmax(best, measured_efficiency(m, growth, &s));
    return best;
}

static double exhaust(const crn_plan_model *m, const crn_plan_limits *lim)
{
    return exhaust_measured(m, NULL, lim);
}

/* Their grid: rates and global costs by 1, 2 and 10, data changing slowly and 3 times faster.
 */
static void test_tuner_comes_within_two_percent_of_the_best(void **state)
{
    (void)state;
    const double by[] = {1, 2, 10};
    for (int i = 0; i < 18; i++) {
        crn_plan_model m = paper_model(by[i % 3], by[i / 3 % 3], i < 9 ? 100 : 33);
        crn_plan_options opt = options_for(&m);
        program p = start(&m, &opt, 0.05);
        go_on(&p, 8, 5000);
        double best = exhaust(&m, &opt.limits), got = efficiency(&m, &p.tuner.schedule);
        if (got < 0.98 * best)
            fail_msg("rates x%g, costs x%g: %g instead of %g (interval %g, ratio %u)", by[i % 3],
                     by[i / 3 % 3], got, best, p.tuner.schedule.interval,
                     p.tuner.schedule.ratio[1]);
        cairn_plan_schedule neutral = crn_plan_neutral(2);
        assert_true(got > efficiency(&m, &neutral));
    }
}

/* The same grid with what the two kernels of examples/spmv really change, which is no curve of the
 * tuner's: lines that bend. */
static void test_tuner_comes_within_two_percent_for_measured_kernels(void **state)
{
    (void)state;
    const double by[] = {1, 2, 10};
    for (int i = 0; i < 18; i++) {
        const double *growth = i < 9 ? SPMV_RANDOM : SPMV_DIAGONAL;
        crn_plan_model m = paper_model(by[i % 3], by[i / 3 % 3], 100);
        crn_plan_options opt = options_for(&m);
        program p = start(&m, &opt, 0.05);
        p.growth = growth;
        go_on(&p, 8, 5000);
        double best = exhaust_measured(&m, growth, &opt.limits);
        double got = measured_efficiency(&m, growth, &p.tuner.schedule);
        if (got < 0.98 * best)
            fail_msg("%s, rates x%g, costs x%g: %g instead of %g (interval %g, ratio %u)",
                     i < 9 ? "random" : "diagonal", by[i % 3], by[i / 3 % 3], got, best,
                     p.tuner.schedule.interval, p.tuner.schedule.ratio[1]);
    }
}

static void test_tuner_starts_neutral_with_a_mark_at_the_highest_level(void **state)
{
    (void)state;
    crn_plan_model m = paper_model(1, 1, 100);
    crn_plan_options opt = options_for(&m);
    program p = start(&m, &opt, 0);
    assert_true(p.tuner.schedule.interval == 100);
    assert_int_equal(p.tuner.schedule.ratio[1], 3);
    const size_t want[] = {1, 0, 0, 1};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(crn_plan_tuner_level(&p.tuner), want[i]);
        p.work += 100;
        mark(&p, want[i]);
    }
    assert_int_equal(p.tuner.nretuned, 1);
    assert_true(p.tuner.schedule.interval != 100);
}

/* A change goes three quarters of the way, in logarithms; soon the rest is not worth one. */
static void test_tuner_goes_step_by_step(void **state)
{
    (void)state;
    crn_plan_model m = paper_model(1, 1, 100);
    crn_plan_options opt = options_for(&m);
    program p = start(&m, &opt, 0);
    double before = p.tuner.schedule.interval;
    for (int i = 0; i < 3; i++) {
        go_on(&p, 1, 1000);
        double way = log(p.tuner.schedule.interval / before);
        double whole = log(p.tuner.better.interval / before);
        assert_true(fabs(way - 0.75 * whole) < 1e-9 || (i > 0 && way == 0));
        before = p.tuner.schedule.interval;
    }
    assert_true(efficiency(&m, &p.tuner.schedule) > 0.98 * exhaust(&m, &opt.limits));
}

/* A mark that the program asked for at a higher level counts for the pattern. */
static void test_tuner_pattern_follows_marks_made(void **state)
{
    (void)state;
    crn_plan_options opt = {.mode = CRN_PLAN_FROZEN,
                            .nlevels = 3,
                            .rate = {1e-3, 1e-4, 1e-5},
                            .trust = 1,
                            .limits = crn_plan_limits_default(),
                            .start = {.interval = 10, .ratio = {1, 2, 2}}};
    crn_plan_model m = {.nlevels = 3, .changed = {.span = STATE, .theta = 100}};
    for (size_t l = 0; l < 3; l++)
        m.level[l] = (cairn_plan_level){.rate = 1e-4, .restart = 1, .bandwidth = 1e9};
    program p = start(&m, &opt, 0);
    mark(&p, 2);
    mark(&p, 0);
    assert_int_equal(crn_plan_tuner_level(&p.tuner), 1);
    mark(&p, 1);
    mark(&p, 1); /* instead of local */
    assert_int_equal(crn_plan_tuner_level(&p.tuner), 2);
    mark(&p, 2);
    assert_int_equal(crn_plan_tuner_level(&p.tuner), 0);
}

static void test_tuner_follows_a_slower_file_system(void **state)
{
    (void)state;
    crn_plan_model m = paper_model(1, 1, 100), slow = paper_model(1, 10, 33);
    crn_plan_options opt = options_for(&m);
    program p = start(&m, &opt, 0.1);
    go_on(&p, 8, 5000);
    assert_true(efficiency(&m, &p.tuner.schedule) > 0.98 * exhaust(&m, &opt.limits));
    p.truth = slow;
    go_on(&p, 12, 5000);
    assert_true(efficiency(&slow, &p.tuner.schedule) > 0.98 * exhaust(&slow, &opt.limits));
}

/* Noise of a quarter on every mark must not make the schedule wander. */
static void test_tuner_is_calm(void **state)
{
    (void)state;
    crn_plan_model m = paper_model(2, 1, 100);
    crn_plan_options opt = options_for(&m);
    program p = start(&m, &opt, 0.25);
    go_on(&p, 8, 5000);
    uint64_t before = p.tuner.nchanged;
    go_on(&p, 30, 10000);
    assert_true(p.tuner.nchanged - before <= 6);
    assert_true(efficiency(&m, &p.tuner.schedule) > 0.98 * exhaust(&m, &opt.limits));
}

static void test_tuner_finds_four_levels(void **state)
{
    (void)state;
    crn_plan_model m = {.nlevels = 4, .changed = {.floor = 1e7, .span = 9e8, .theta = 200}};
    for (size_t l = 0; l < 4; l++)
        m.level[l] = (cairn_plan_level){.rate = 4e-3 / pow(8, (double)l),
                                        .restart = 2 * pow(3, (double)l),
                                        .fixed = 0.1,
                                        .bandwidth = 2e9 / pow(5, (double)l)};
    crn_plan_options opt = options_for(&m);
    program p = start(&m, &opt, 0.1);
    go_on(&p, 6, 5000);
    cairn_plan_schedule best;
    crn_plan_prediction at_best;
    assert_ok(crn_plan_best(&m, &opt.limits, &best, &at_best));
    assert_true(efficiency(&m, &p.tuner.schedule) > 0.98 * at_best.efficiency);
}

static void test_tuner_frozen_measures_and_off_does_not(void **state)
{
    (void)state;
    crn_plan_model m = paper_model(1, 1, 100);
    crn_plan_options opt = options_for(&m);
    opt.mode = CRN_PLAN_FROZEN;
    program p = start(&m, &opt, 0);
    go_on(&p, 3, 100);
    assert_int_equal(p.tuner.nretuned, 3);
    assert_true(p.tuner.schedule.interval == 100 && p.tuner.schedule.ratio[1] == 3);
    assert_true(p.tuner.better.interval < 60);
    assert_true(p.tuner.prediction.efficiency > 0);
    opt.mode = CRN_PLAN_OFF;
    p = start(&m, &opt, 0);
    go_on(&p, 3, 100);
    assert_int_equal(p.tuner.nretuned, 0);
    assert_int_equal(p.tuner.nmarks, 100);
    assert_true(p.tuner.schedule.interval == 100);
}

static void test_tuner_obeys_its_limits(void **state)
{
    (void)state;
    crn_plan_model m = paper_model(10, 1, 33);
    crn_plan_options opt = options_for(&m);
    opt.limits = (crn_plan_limits){.interval_min = 30, .interval_max = 50, .ratio_max = 2};
    program p = start(&m, &opt, 0.1);
    assert_true(p.tuner.schedule.interval == 50 && p.tuner.schedule.ratio[1] == 2);
    for (int i = 0; i < 60; i++) {
        go_on(&p, 1, 1);
        assert_true(p.tuner.schedule.interval >= 30 && p.tuner.schedule.interval <= 50);
        assert_true(p.tuner.schedule.ratio[1] <= 2);
    }
}

static void test_tuner_learns_rates(void **state)
{
    (void)state;
    crn_plan_model m = paper_model(1, 1, 100);
    crn_plan_options opt = options_for(&m);
    program p = start(&m, &opt, 0);
    go_on(&p, 1, 10);
    assert_true(fabs(crn_plan_tuner_model(&p.tuner).level[0].rate / LOCAL_RATE - 1) < 1e-12);
    /* ten times as many failures as expected, over 100 of the expected intervals */
    unsigned seen[CRN_PLAN_LEVELS] = {1000, 0};
    assert_ok(crn_plan_tuner_observe(&p.tuner, 100 / LOCAL_RATE, seen));
    crn_plan_model now = crn_plan_tuner_model(&p.tuner);
    assert_true(fabs(now.level[0].rate / (10 * LOCAL_RATE) - 1) < 0.03);
    assert_true(now.level[1].rate < GLOBAL_RATE && now.level[1].rate > 0);
    assert_ok(crn_plan_tuner_restart(&p.tuner, 1, 123));
    assert_true(crn_plan_tuner_model(&p.tuner).level[1].restart == 123);
}

/* A day was expected, ten minutes come: a handful of failures is believed. A failure in a year of
 * quiet is not. */
static void test_tuner_believes_a_handful_of_failures(void **state)
{
    (void)state;
    crn_plan_model m = paper_model(1, 1, 100);
    crn_plan_options opt = options_for(&m);
    const unsigned one[CRN_PLAN_LEVELS] = {1, 0};
    opt.rate[0] = 1 / 86400.;
    program p = start(&m, &opt, 0);
    double before = opt.rate[0];
    for (int i = 1; i <= 20; i++) {
        assert_ok(crn_plan_tuner_observe(&p.tuner, 600, one));
        double rate = crn_plan_tuner_model(&p.tuner).level[0].rate;
        assert_true(rate > before && rate < 1 / 600.);
        assert_true(i < 5 || rate > 1 / 2600.);
        before = rate;
    }
    assert_true(before > 1 / 1000.);
    p = start(&m, &opt, 0);
    assert_ok(crn_plan_tuner_observe(&p.tuner, 365 * 86400., one));
    assert_true(fabs(crn_plan_tuner_model(&p.tuner).level[0].rate * 86400 - 3 / 367.) < 1e-9);
}

/* Ranks that are fed the same decide the same, to the last bit. */
static void test_tuner_is_deterministic(void **state)
{
    (void)state;
    crn_plan_model m = paper_model(2, 2, 100);
    crn_plan_options opt = options_for(&m);
    program a = start(&m, &opt, 0.2), b = start(&m, &opt, 0.2);
    go_on(&a, 6, 2000);
    go_on(&b, 6, 2000);
    assert_memory_equal(&a.tuner.schedule, &b.tuner.schedule, sizeof a.tuner.schedule);
    assert_true(a.tuner.prediction.efficiency == b.tuner.prediction.efficiency);
}

/* Marks of an earlier leg: the same pattern and the same knowledge as if there had been one leg,
 * and the decision that follows is the same. */
static void test_tuner_goes_on_with_what_it_is_reminded_of(void **state)
{
    (void)state;
    crn_plan_model m = paper_model(2, 1, 100);
    crn_plan_options opt = options_for(&m);
    opt.mode = CRN_PLAN_FROZEN;
    program p = start(&m, &opt, 0.1);
    crn_plan_tuner again = p.tuner;
    crn_plan_measure none = {0};
    assert_ok(crn_plan_tuner_retune(&again)); /* of nothing comes nothing */
    assert_int_equal(again.nretuned, 0);
    for (int i = 0; i < 12; i++) {
        size_t level = crn_plan_tuner_level(&p.tuner);
        assert_int_equal(crn_plan_tuner_level(&again), level);
        double elapsed = i == 0 ? 0 : 30 * (double)(1 + level);
        crn_plan_measure mark = {.level = level,
                                 .full = i == 0,
                                 .elapsed = elapsed,
                                 .total = STATE,
                                 .nbytes = i == 0 ? STATE : crn_plan_growth_at(&m.changed, elapsed),
                                 .held = 0.5 + (double)level};
        assert_ok(crn_plan_tuner_mark(&p.tuner, &mark));
        assert_ok(crn_plan_tuner_recall(&again, &mark));
    }
    assert_int_equal(again.nretuned, 0);
    assert_ok(crn_plan_tuner_retune(&again));
    assert_int_equal(again.nretuned, 1);
    assert_ok(crn_plan_tuner_retune(&p.tuner));
    assert_memory_equal(&again.better, &p.tuner.better, sizeof again.better);
    none.level = 9;
    assert_fails(crn_plan_tuner_recall(&again, &none), CAIRN_EINVAL, "a mark at level 9");
}

/* A leg that died before its second mark has told what a full one costs: enough to stop trying an
 * interval that failures do not allow. */
static void test_tuner_decides_from_full_marks_and_failures(void **state)
{
    (void)state;
    crn_plan_model m = paper_model(1, 1, 100);
    crn_plan_options opt = options_for(&m);
    program p = start(&m, &opt, 0);
    const unsigned seen[CRN_PLAN_LEVELS] = {20, 0};
    mark(&p, 1);
    assert_true(p.tuner.schedule.interval == 100);
    assert_ok(crn_plan_tuner_observe(&p.tuner, 200, seen));
    assert_ok(crn_plan_tuner_retune(&p.tuner));
    assert_true(p.tuner.schedule.interval < 100);
}

static void test_tuner_refuses_senseless_numbers(void **state)
{
    (void)state;
    crn_plan_model m = paper_model(1, 1, 100);
    crn_plan_options opt = options_for(&m);
    crn_plan_tuner t;
    opt.trust = 0;
    assert_fails(crn_plan_tuner_init(&t, &opt), CAIRN_EINVAL, "the trust in the expected rates");
    opt.trust = 1, opt.rate[1] = NAN;
    assert_fails(crn_plan_tuner_init(&t, &opt), CAIRN_EINVAL, "the expected failure rate");
    opt.rate[1] = 0, opt.start = (cairn_plan_schedule){.interval = 10, .ratio = {1, 0}};
    assert_fails(crn_plan_tuner_init(&t, &opt), CAIRN_EINVAL, "the ratio of level 1 is 0");
    opt.start.ratio[1] = 2;
    assert_ok(crn_plan_tuner_init(&t, &opt));
    crn_plan_measure bad = {.level = 2};
    assert_fails(crn_plan_tuner_mark(&t, &bad), CAIRN_EINVAL, "a mark at level 2");
    bad = (crn_plan_measure){.held = -1};
    assert_fails(crn_plan_tuner_mark(&t, &bad), CAIRN_EINVAL, "held the program is -1");
    assert_int_equal(t.nmarks, 0);
    assert_fails(crn_plan_tuner_restart(&t, 7, 1), CAIRN_EINVAL, "a restart from level 7");
    unsigned none[CRN_PLAN_LEVELS] = {0};
    assert_fails(crn_plan_tuner_observe(&t, INFINITY, none), CAIRN_EINVAL, "under observation");
}

/* Marks of nothing, in no time, of nothing at all: a schedule comes out all the same. */
static void test_tuner_survives_odd_measurements(void **state)
{
    (void)state;
    crn_plan_model m = paper_model(1, 1, 100);
    crn_plan_options opt = options_for(&m);
    crn_plan_tuner t;
    assert_ok(crn_plan_tuner_init(&t, &opt));
    crn_rng rng = crn_rng_of(test_seed(), 9);
    for (int i = 0; i < 200; i++) {
        double scale = i < 50 ? 0 : pow(10, 12 * crn_rng_unit(&rng) - 6);
        crn_plan_measure odd = {.level = crn_rng_below(&rng, 2),
                                .elapsed = scale,
                                .nbytes = 1e9 * crn_rng_unit(&rng) * scale,
                                .total = 1e6,
                                .held = scale * crn_rng_unit(&rng),
                                .background = 10 * crn_rng_unit(&rng) * scale};
        assert_ok(crn_plan_tuner_mark(&t, &odd));
        assert_true(t.schedule.interval >= 1 && t.schedule.interval <= 3600);
        assert_true(t.prediction.efficiency >= 0 && t.prediction.efficiency <= 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tuner_comes_within_two_percent_of_the_best),
        cmocka_unit_test(test_tuner_comes_within_two_percent_for_measured_kernels),
        cmocka_unit_test(test_tuner_starts_neutral_with_a_mark_at_the_highest_level),
        cmocka_unit_test(test_tuner_goes_step_by_step),
        cmocka_unit_test(test_tuner_pattern_follows_marks_made),
        cmocka_unit_test(test_tuner_follows_a_slower_file_system),
        cmocka_unit_test(test_tuner_is_calm),
        cmocka_unit_test(test_tuner_finds_four_levels),
        cmocka_unit_test(test_tuner_frozen_measures_and_off_does_not),
        cmocka_unit_test(test_tuner_obeys_its_limits),
        cmocka_unit_test(test_tuner_learns_rates),
        cmocka_unit_test(test_tuner_believes_a_handful_of_failures),
        cmocka_unit_test(test_tuner_is_deterministic),
        cmocka_unit_test(test_tuner_goes_on_with_what_it_is_reminded_of),
        cmocka_unit_test(test_tuner_decides_from_full_marks_and_failures),
        cmocka_unit_test(test_tuner_refuses_senseless_numbers),
        cmocka_unit_test(test_tuner_survives_odd_measurements),
    };
    return cmocka_run_group_tests_name("plan_tuner", tests, NULL, NULL);
}
