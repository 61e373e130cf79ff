/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The optimum: closed forms against their equations, the search against trying everything.
 *
 * NEEDS: random123
 */
#include <math.h>

#include "harness/harness.h"
#include "plan/plan.h"

static void assert_near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance * fabs(want)))
        fail_msg("%.12g instead of %.12g", got, want);
}

static cairn_plan_level constant(double rate, double cost, double restart)
{
    return (cairn_plan_level){.rate = rate, .restart = restart, .fixed = cost, .bandwidth = 1};
}

static double efficiency(const crn_plan_model *m, const cairn_plan_schedule *s)
{
    crn_plan_prediction p;
    assert_ok(crn_plan_predict(m, s, &p));
    return p.efficiency;
}

static void test_closed_solves_seven_to_nine(void **state)
{
    (void)state;
    const double c1 = 2, c2 = 40, m1 = 2000, m2 = 90000;
    crn_plan_model m = {.nlevels = 2,
                        .changed = {.theta = 1},
                        .level = {constant(1 / m1, c1, 5), constant(1 / m2, c2, 100)}};
    crn_plan_limits lim = crn_plan_limits_default();
    cairn_plan_schedule s;
    assert_ok(crn_plan_closed(&m, &lim, &s));
    double t2 = sqrt(2 * c2 * m2), p = 1 - s.interval / t2;
    assert_near(s.interval, sqrt(2 * (p * c1 + (1 - p) * c2) * m1), 1e-9);
    assert_int_equal(s.ratio[1], (unsigned)round(t2 / s.interval));
}

static void test_closed_of_one_level_is_young(void **state)
{
    (void)state;
    crn_plan_model m = {.nlevels = 1, .changed = {.theta = 1}, .level = {constant(1e-4, 18, 0)}};
    crn_plan_limits lim = crn_plan_limits_default();
    cairn_plan_schedule s;
    assert_ok(crn_plan_closed(&m, &lim, &s));
    assert_near(s.interval, 600, 1e-12);
}

/* Costs from the curve: the interval is a fixed point of Young's formula. */
static void test_closed_follows_the_cost_curve(void **state)
{
    (void)state;
    crn_plan_model m = {.nlevels = 1,
                        .changed = {.floor = 1e8, .span = 1e10, .theta = 900},
                        .level = {{.rate = 1e-4, .fixed = 1, .bandwidth = 1e8}}};
    crn_plan_limits lim = crn_plan_limits_default();
    cairn_plan_schedule s;
    assert_ok(crn_plan_closed(&m, &lim, &s));
    assert_near(s.interval, sqrt(2 * crn_plan_cost(&m, 0, s.interval) / 1e-4), 1e-9);
}

/* Hardly any local failures: local marks are not worth it, and global ones answer for both. */
static void test_closed_drops_a_useless_level(void **state)
{
    (void)state;
    crn_plan_model m = {.nlevels = 2,
                        .changed = {.theta = 1},
                        .level = {constant(1e-9, 2, 1), constant(1e-4, 18, 1)}};
    crn_plan_limits lim = crn_plan_limits_default();
    cairn_plan_schedule s;
    assert_ok(crn_plan_closed(&m, &lim, &s));
    assert_int_equal(s.ratio[1], 1);
    assert_near(s.interval, sqrt(2 * 18 / (1e-4 + 1e-9)), 1e-9);
    m.level[0].rate = m.level[1].rate = 0;
    assert_ok(crn_plan_closed(&m, &lim, &s));
    assert_true(s.interval == lim.interval_max);
}

static void test_closed_refuses_marks_dearer_than_failures(void **state)
{
    (void)state;
    crn_plan_model m = {.nlevels = 2,
                        .changed = {.theta = 1},
                        .level = {constant(1e-2, 2, 1), constant(1e-3, 1000, 1)}};
    crn_plan_limits lim = crn_plan_limits_default();
    cairn_plan_schedule s;
    assert_fails(crn_plan_closed(&m, &lim, &s), CAIRN_EINVAL, "a mark at level 1 takes 1000 s");
    lim.interval_min = 0;
    assert_fails(crn_plan_closed(&m, &lim, &s), CAIRN_EINVAL, "the shortest interval is 0");
    lim.interval_min = 10, lim.interval_max = 1;
    assert_fails(crn_plan_best(&m, &lim, &s, NULL), CAIRN_EINVAL, "is above the longest");
    lim = crn_plan_limits_default(), lim.ratio_max = 0;
    assert_fails(crn_plan_best(&m, &lim, &s, NULL), CAIRN_EINVAL, "the largest ratio is 0");
}

/* One level has an exact optimum: 1 - x = exp(-x - rate cost) for x = rate interval. */
static void test_best_of_one_level_is_exact(void **state)
{
    (void)state;
    for (double cost = 0.1; cost < 500; cost *= 3) {
        crn_plan_model m = {
            .nlevels = 1, .changed = {.theta = 1}, .level = {constant(1e-3, cost, 9)}};
        crn_plan_limits lim = crn_plan_limits_default();
        cairn_plan_schedule s;
        assert_ok(crn_plan_best(&m, &lim, &s, NULL));
        double x = s.interval * 1e-3;
        assert_near(1 - x, exp(-x - cost * 1e-3), 1e-4);
    }
}

static crn_plan_model random_model(crn_rng *rng, size_t nlevels)
{
    crn_plan_model m = {.nlevels = nlevels,
                        .changed = {.floor = 2e7 * crn_rng_unit(rng),
                                    .span = 1e9 * crn_rng_unit(rng),
                                    .theta = pow(10, 4 * crn_rng_unit(rng))}};
    for (size_t l = 0; l < nlevels; l++)
        m.level[l] =
            (cairn_plan_level){.rate = pow(10, -2 - 3 * crn_rng_unit(rng)) / pow(8, l),
                               .restart = 50 * crn_rng_unit(rng),
                               .fixed = crn_rng_unit(rng),
                               .bandwidth = pow(10, 7 + 2 * crn_rng_unit(rng)) / pow(3, l)};
    return m;
}

/* The best of a fine grid of intervals and ratios, by trying all. */
static double exhaust(const crn_plan_model *m, const crn_plan_limits *lim, size_t l,
                      cairn_plan_schedule *s)
{
    double best = 0;
    if (l == m->nlevels) {
        for (s->interval = lim->interval_min; s->interval <= lim->interval_max; s->interval *= 1.1)
            best = fmax(best, efficiency(m, s));
        return best;
    }
    for (unsigned r = 1; r <= lim->ratio_max; r += 1 + r / 5) {
        s->ratio[l] = r;
        best = fmax(best, exhaust(m, lim, l + 1, s));
    }
    return best;
}

static void test_best_is_what_trying_everything_finds(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 2);
    crn_plan_limits lim = {.interval_min = 1, .interval_max = 3000, .ratio_max = 300};
    for (int i = 0; i < 24; i++) {
        crn_plan_model m = random_model(&rng, 1 + i % 3);
        cairn_plan_schedule any = {.ratio = {1}}, best, closed;
        crn_plan_prediction p;
        assert_ok(crn_plan_best(&m, &lim, &best, &p));
        double most = exhaust(&m, &lim, 1, &any);
        if (p.efficiency < most * 0.9999)
            fail_msg("model %d: best %g, a grid finds %g", i, p.efficiency, most);
        assert_near(efficiency(&m, &best), p.efficiency, 1e-12);
        if (crn_plan_closed(&m, &lim, &closed) == CAIRN_OK)
            assert_true(p.efficiency >= efficiency(&m, &closed) * (1 - 1e-9));
    }
}

/*
 * Data that changes evenly and marks without fixed cost: tiny global marks are nearly as good as
 * large ones with many local ones between, and for most ratios they are better.
 */
static void test_best_finds_the_higher_of_two_hills(void **state)
{
    (void)state;
    crn_plan_limits lim = {.interval_min = 0.1, .interval_max = 86400, .ratio_max = 1000};
    for (double costs = 1; costs <= 16; costs *= 2) {
        crn_plan_model m = {
            .nlevels = 2,
            .changed = {.span = 1e9, .theta = 1000},
            .level = {{.rate = 3.5e-3, .restart = 1.3, .bandwidth = 7.8e8},
                      {.rate = 3.5e-5, .restart = 64, .bandwidth = 1.56e7 / costs}}};
        cairn_plan_schedule any = {.ratio = {1}}, best;
        crn_plan_prediction p;
        assert_ok(crn_plan_best(&m, &lim, &best, &p));
        assert_true(p.efficiency >= exhaust(&m, &lim, 1, &any) * 0.9999);
    }
}

static void test_best_stays_within_limits(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 3);
    crn_plan_limits lim = {.interval_min = 40, .interval_max = 60, .ratio_max = 5};
    for (int i = 0; i < 12; i++) {
        crn_plan_model m = random_model(&rng, 1 + i % 4);
        cairn_plan_schedule s;
        assert_ok(crn_plan_best(&m, &lim, &s, NULL));
        assert_true(s.interval >= 40 && s.interval <= 60);
        for (size_t l = 0; l < m.nlevels; l++)
            assert_true(s.ratio[l] >= 1 && s.ratio[l] <= 5);
    }
}

static void test_best_waits_for_the_background(void **state)
{
    (void)state;
    crn_plan_model m = {.nlevels = 2,
                        .changed = {.theta = 1},
                        .level = {constant(1e-2, 0.5, 1), constant(1e-4, 0.5, 1)}};
    crn_plan_limits lim = crn_plan_limits_default();
    cairn_plan_schedule s;
    m.level[1].background = 500;
    assert_ok(crn_plan_best(&m, &lim, &s, NULL));
    assert_true(s.interval * s.ratio[1] >= 500 * (1 - 1e-9));
    m.level[0].background = 80;
    assert_ok(crn_plan_best(&m, &lim, &s, NULL));
    assert_true(s.interval >= 80 * (1 - 1e-9));
}

static void test_best_interval_keeps_the_ratios(void **state)
{
    (void)state;
    crn_plan_model m = {.nlevels = 2,
                        .changed = {.theta = 1},
                        .level = {constant(1e-2, 0.5, 1), constant(1e-4, 8, 1)}};
    crn_plan_limits lim = crn_plan_limits_default();
    cairn_plan_schedule s = {.ratio = {1, 5}};
    crn_plan_prediction p;
    assert_ok(crn_plan_best_interval(&m, &lim, &s, &p));
    assert_int_equal(s.ratio[1], 5);
    for (double f = 0.5; f < 2; f *= 1.05) {
        cairn_plan_schedule other = s;
        other.interval *= f;
        assert_true(efficiency(&m, &other) <= p.efficiency * (1 + 1e-9));
    }
    s.ratio[1] = 0;
    assert_fails(crn_plan_best_interval(&m, &lim, &s, &p), CAIRN_EINVAL, "the ratio of level 1");
}

static void test_best_of_a_hopeless_model_is_an_answer(void **state)
{
    (void)state;
    crn_plan_model m = {.nlevels = 2,
                        .changed = {.theta = 1},
                        .level = {constant(1, 1e4, 1e4), constant(1, 1e4, 1e4)}};
    crn_plan_limits lim = crn_plan_limits_default();
    cairn_plan_schedule s;
    crn_plan_prediction p;
    assert_ok(crn_plan_best(&m, &lim, &s, &p));
    assert_true(p.efficiency == 0 && p.expected == HUGE_VAL);
    assert_true(s.interval >= lim.interval_min && s.interval <= lim.interval_max);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_solves_seven_to_nine),
        cmocka_unit_test(test_closed_of_one_level_is_young),
        cmocka_unit_test(test_closed_follows_the_cost_curve),
        cmocka_unit_test(test_closed_drops_a_useless_level),
        cmocka_unit_test(test_closed_refuses_marks_dearer_than_failures),
        cmocka_unit_test(test_best_of_one_level_is_exact),
        cmocka_unit_test(test_best_is_what_trying_everything_finds),
        cmocka_unit_test(test_best_finds_the_higher_of_two_hills),
        cmocka_unit_test(test_best_stays_within_limits),
        cmocka_unit_test(test_best_waits_for_the_background),
        cmocka_unit_test(test_best_interval_keeps_the_ratios),
        cmocka_unit_test(test_best_of_a_hopeless_model_is_an_answer),
    };
    return cmocka_run_group_tests_name("plan_best", tests, NULL, NULL);
}
