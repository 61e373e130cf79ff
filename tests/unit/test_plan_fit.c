/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Curves from samples: exact data give the curve back, odd data give something sane.
 *
 * NEEDS: random123
 */
#include <math.h>

#include "harness/harness.h"
#include "plan/plan.h"

static void assert_near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance * fabs(want) + 1e-12))
        fail_msg("%.12g instead of %.12g", got, want);
}

static void test_line_through_points(void **state)
{
    (void)state;
    crn_plan_line f = {0};
    double at0, slope;
    for (int i = 1; i <= 20; i++)
        crn_plan_line_add(&f, i * 1e8, 0.25 + i * 1e8 / 5e8);
    crn_plan_line_solve(&f, &at0, &slope);
    assert_near(at0, 0.25, 0.1); /* pulled a little towards 0, */
    for (double x = 1e8; x < 3e9; x *= 2)
        assert_near(at0 + slope * x, 0.25 + x / 5e8, 0.05); /* which the slope makes up for */
}

static void test_line_of_few_points_is_proportional(void **state)
{
    (void)state;
    crn_plan_line f = {0};
    double at0 = 7, slope = 7;
    crn_plan_line_solve(&f, &at0, &slope);
    assert_true(at0 == 0 && slope == 0);
    for (int i = 0; i < 3; i++) {
        crn_plan_line_add(&f, 1000, 4);
        crn_plan_line_solve(&f, &at0, &slope);
        assert_near(at0 + slope * 1000, 4, 1e-4);
        assert_near(slope, 0.004, 1e-2);
    }
    f = (crn_plan_line){0};
    crn_plan_line_add(&f, 0, 4); /* a mark of nothing that took four seconds */
    crn_plan_line_solve(&f, &at0, &slope);
    assert_true(at0 == 4 && slope == 0);
}

/* Noise on marks of about one size must not pass for a fixed cost. */
static void test_line_does_not_read_noise(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 5);
    for (int i = 0; i < 50; i++) {
        crn_plan_line f = {0};
        double at0, slope;
        for (int k = 0; k < 10; k++) {
            double x = 1e9 * (0.99 + 0.02 * crn_rng_unit(&rng));
            crn_plan_line_add(&f, x, 640e-9 * x * (0.9 + 0.2 * crn_rng_unit(&rng)));
        }
        crn_plan_line_solve(&f, &at0, &slope);
        assert_true(at0 < 0.1 * 640);
    }
}

static void test_line_is_never_negative(void **state)
{
    (void)state;
    crn_plan_line f = {0}, g = {0};
    double at0, slope;
    crn_plan_line_add(&f, 1, 10); /* falls */
    crn_plan_line_add(&f, 10, 1);
    crn_plan_line_solve(&f, &at0, &slope);
    assert_true(slope == 0 && at0 > 1 && at0 < 10);
    crn_plan_line_add(&g, 1, 0); /* would begin below zero */
    crn_plan_line_add(&g, 2, 10);
    crn_plan_line_solve(&g, &at0, &slope);
    assert_true(at0 == 0 && slope > 0);
}

static void test_line_forgets(void **state)
{
    (void)state;
    crn_plan_line f = {0};
    double at0, slope;
    for (int i = 0; i < 100; i++)
        crn_plan_line_add(&f, 1e6 * (1 + i % 3), 1 + i % 3);
    for (int i = 0; i < 30; i++)
        crn_plan_line_add(&f, 1e6 * (1 + i % 3), 5 * (1 + i % 3));
    crn_plan_line_solve(&f, &at0, &slope);
    assert_near(at0 + slope * 2e6, 10, 0.05);
}

static crn_plan_growth fit(const crn_plan_growth *g, const double *t, size_t n, double total)
{
    crn_plan_growth_fit f = {0};
    for (size_t i = 0; i < 40; i++)
        crn_plan_growth_add(&f, i % n % 4, t[i % n], crn_plan_growth_at(g, t[i % n]));
    return crn_plan_growth_solve(&f, total);
}

static void test_growth_comes_back(void **state)
{
    (void)state;
    const double t[] = {20, 60, 25, 180};
    const crn_plan_growth curves[] = {
        {.floor = 0, .span = 1e9, .theta = 50},   {.floor = 2e8, .span = 8e8, .theta = 100},
        {.floor = 0, .span = 1e9, .theta = 2000}, {.floor = 5e8, .span = 0, .theta = 1},
        {.floor = 0, .span = 1e9, .theta = 1},
    };
    for (size_t i = 0; i < sizeof curves / sizeof *curves; i++) {
        crn_plan_growth g = fit(&curves[i], t, 4, 1e9);
        for (double at = 10; at < 400; at *= 1.5)
            assert_near(crn_plan_growth_at(&g, at), crn_plan_growth_at(&curves[i], at), 0.05);
    }
}

/* One elapsed time says nothing of the shape: the curve passes there, and ends at the total. */
static void test_growth_of_one_point(void **state)
{
    (void)state;
    const double t[] = {100};
    crn_plan_growth truth = {.floor = 0, .span = 1e9, .theta = 400};
    crn_plan_growth g = fit(&truth, t, 1, 1e9);
    assert_near(crn_plan_growth_at(&g, 100), crn_plan_growth_at(&truth, 100), 1e-3);
    assert_true(crn_plan_growth_at(&g, 1e6) <= 1e9 * (1 + 1e-9));
    assert_true(crn_plan_growth_at(&g, 1e6) > 8e8);
}

/* Two distances do not determine a floor: none is assumed, and what changes soon is foreseen. */
static void test_growth_of_two_distances_has_no_floor(void **state)
{
    (void)state;
    const double t[] = {24, 1680};
    crn_plan_growth truth = {.floor = 0, .span = 1e9, .theta = 33};
    crn_plan_growth g = fit(&truth, t, 2, 1e9);
    for (double at = 3; at < 100; at *= 2)
        assert_near(crn_plan_growth_at(&g, at), crn_plan_growth_at(&truth, at), 0.2);
}

static void test_growth_without_samples_is_everything(void **state)
{
    (void)state;
    crn_plan_growth_fit f = {0};
    crn_plan_growth g = crn_plan_growth_solve(&f, 3e9);
    assert_true(crn_plan_growth_at(&g, 0) == 3e9 && g.theta > 0);
    crn_plan_growth_add(&f, 0, 0, 5); /* a mark right after another */
    g = crn_plan_growth_solve(&f, 3e9);
    assert_true(isfinite(crn_plan_growth_at(&g, 10)));
}

static void test_growth_is_sane_for_any_samples(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 4);
    for (int i = 0; i < 200; i++) {
        crn_plan_growth_fit f = {0};
        for (size_t n = crn_rng_below(&rng, 80); n > 0; n--)
            crn_plan_growth_add(&f, n % 4, pow(10, 6 * crn_rng_unit(&rng) - 3),
                                1e9 * crn_rng_unit(&rng));
        double total = 1e9 * crn_rng_unit(&rng); /* may be less than what was seen: it shrank */
        crn_plan_growth g = crn_plan_growth_solve(&f, total);
        assert_true(g.floor >= 0 && g.span >= 0 && g.theta > 0);
        assert_true(g.floor + g.span <= total * (1 + 1e-9));
    }
}

static void test_growth_follows_a_change(void **state)
{
    (void)state;
    crn_plan_growth before = {.span = 1e8, .theta = 50}, after = {.span = 9e8, .theta = 200};
    crn_plan_growth_fit f = {0};
    for (int i = 0; i < 60; i++) {
        double t = 20.0 * (1 + i % 4);
        crn_plan_growth_add(&f, i % 2, t, crn_plan_growth_at(i < 35 ? &before : &after, t));
    }
    crn_plan_growth g = crn_plan_growth_solve(&f, 1e9);
    for (double t = 20; t <= 80; t += 20)
        assert_near(crn_plan_growth_at(&g, t), crn_plan_growth_at(&after, t), 0.15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line_through_points),
        cmocka_unit_test(test_line_of_few_points_is_proportional),
        cmocka_unit_test(test_line_does_not_read_noise),
        cmocka_unit_test(test_line_is_never_negative),
        cmocka_unit_test(test_line_forgets),
        cmocka_unit_test(test_growth_comes_back),
        cmocka_unit_test(test_growth_of_one_point),
        cmocka_unit_test(test_growth_of_two_distances_has_no_floor),
        cmocka_unit_test(test_growth_without_samples_is_everything),
        cmocka_unit_test(test_growth_is_sane_for_any_samples),
        cmocka_unit_test(test_growth_follows_a_change),
    };
    return cmocka_run_group_tests_name("plan_fit", tests, NULL, NULL);
}
