/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Classical intervals, and the two yardsticks of Keller, against numbers worked out by hand.
 */
#include <math.h>

#include "harness/harness.h"
#include "plan/plan.h"

static void assert_near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance * fmax(1e-300, fabs(want))))
        fail_msg("%.12g instead of %.12g", got, want);
}

static void test_young_is_the_root_of_twice_cost_by_mtbf(void **state)
{
    (void)state;
    double t;
    assert_ok(crn_plan_young(18, 10000, &t));
    assert_near(t, 600, 1e-15);
    assert_ok(crn_plan_daly1(18, 6000, 4000, &t));
    assert_near(t, 600, 1e-15);
}

/* The exact optimum of one level solves 1 - x = exp(-x - c) for x = interval / mtbf. */
static double exact_interval(double cost, double mtbf)
{
    double lo = 0, hi = 1;
    for (int i = 0; i < 200; i++) {
        double x = (lo + hi) / 2;
        if (1 - x > exp(-x - cost / mtbf))
            lo = x;
        else
            hi = x;
    }
    return lo * mtbf;
}

static void test_daly_comes_nearer_to_the_optimum_than_young(void **state)
{
    (void)state;
    const double cost[] = {0.1, 1, 10, 100, 400};
    for (size_t i = 0; i < sizeof cost / sizeof *cost; i++) {
        double young, daly, exact = exact_interval(cost[i], 1000);
        assert_ok(crn_plan_young(cost[i], 1000, &young));
        assert_ok(crn_plan_daly(cost[i], 1000, &daly));
        assert_true(fabs(daly - exact) < fabs(young - exact) / 4);
        assert_near(daly, exact, 0.02);
    }
}

static void test_intervals_refuse_senseless_numbers(void **state)
{
    (void)state;
    double t = 7;
    const double bad[] = {0, -1, NAN, INFINITY};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_fails(crn_plan_young(bad[i], 100, &t), CAIRN_EINVAL, "the cost of a mark is");
        assert_fails(crn_plan_daly(1, bad[i], &t), CAIRN_EINVAL, "mean time between failures is");
    }
    assert_fails(crn_plan_daly1(1, -1, 100, &t), CAIRN_EINVAL, "the cost of a restart is -1");
    assert_fails(crn_plan_young(100, 100, &t), CAIRN_EINVAL, "a failure comes every 100 s");
    assert_true(t == 7);
}

/* The block times measured by Keller, (5.9), (5.10) give the threshold of about 94 %. */
static void test_diff_threshold_of_the_thesis(void **state)
{
    (void)state;
    double eta, gain;
    assert_ok(crn_plan_diff_threshold(3.92e-5, 1.35e-3, CRN_PLAN_HASH_TWICE, &eta));
    assert_near(eta, 0.9436, 1e-3);
    assert_ok(crn_plan_diff_gain(3.92e-5, 1.35e-3, eta, CRN_PLAN_HASH_TWICE, &gain));
    assert_true(fabs(gain) < 1e-12);
    assert_ok(crn_plan_diff_gain(3.92e-5, 1.35e-3, 1, CRN_PLAN_HASH_TWICE, &gain));
    assert_near(gain, 2 * 3.92e-5 / 1.35e-3, 1e-12); /* at worst two hashes more */
}

static void test_diff_hashed_once_is_never_worse(void **state)
{
    (void)state;
    for (double rho = 0; rho < 2; rho += 0.125) {
        double once, twice, g1, g2;
        assert_ok(crn_plan_diff_threshold(rho, 1, CRN_PLAN_HASH_ONCE, &once));
        assert_ok(crn_plan_diff_threshold(rho, 1, CRN_PLAN_HASH_TWICE, &twice));
        assert_true(once >= twice && once >= 0 && once <= 1);
        assert_near(once, fmax(0, 1 - rho), 1e-15);
        for (double n = 0; n <= 1; n += 0.125) {
            assert_ok(crn_plan_diff_gain(rho, 1, n, CRN_PLAN_HASH_ONCE, &g1));
            assert_ok(crn_plan_diff_gain(rho, 1, n, CRN_PLAN_HASH_TWICE, &g2));
            assert_true(g1 <= g2);
        }
    }
    double gain;
    assert_fails(crn_plan_diff_gain(1, 0, 0.5, CRN_PLAN_HASH_ONCE, &gain), CAIRN_EINVAL,
                 "the time to write a block");
    assert_fails(crn_plan_diff_gain(1, 1, 1.5, CRN_PLAN_HASH_ONCE, &gain), CAIRN_EINVAL,
                 "the share of changed blocks");
}

static void test_tracking_pays_for_few_faults(void **state)
{
    (void)state;
    crn_plan_track t = {.hash = 1e-10, .nbytes = 1 << 30, .fault = 1e-6, .scan = 1e-3};
    double gain;
    assert_ok(crn_plan_track_gain(&t, &gain));
    assert_near(gain, 0.1063741824, 1e-9);
    t.looked = t.nbytes / 100;
    t.nfaults = t.looked / 4096;
    assert_ok(crn_plan_track_gain(&t, &gain));
    assert_true(gain > 0.1);
    t.looked = t.nbytes / 2;
    t.nfaults = t.looked / 4096;
    assert_ok(crn_plan_track_gain(&t, &gain));
    assert_true(gain < 0);
    t.fault = -1;
    assert_fails(crn_plan_track_gain(&t, &gain), CAIRN_EINVAL, "the time of a fault");
}

static void test_overhead_adds_up(void **state)
{
    (void)state;
    crn_plan_run run = {
        .mark = 18, .recovery = 50, .mtbf = 10000, .work = 5000, .recompute = 300, .downtime = 60};
    crn_plan_overhead o;
    assert_ok(crn_plan_overhead_of(&run, &o));
    assert_near(o.mark_share, 0.03, 1e-12); /* sqrt(18 / 20000) */
    assert_near(o.recovery_share, 0.005, 1e-12);
    assert_near(o.marks, 150, 1e-12);
    assert_near(o.recoveries, 25, 1e-12);
    assert_near(o.correction, 180, 1e-12);
    assert_near(o.total, 355, 1e-12);
    assert_true(o.valid);
    run.work = 1e6;
    assert_ok(crn_plan_overhead_of(&run, &o));
    assert_false(o.valid);
    run.mark = 10000;
    assert_fails(crn_plan_overhead_of(&run, &o), CAIRN_EINVAL, "a mark takes 10000 s");
    run.mark = 18, run.downtime = NAN;
    assert_fails(crn_plan_overhead_of(&run, &o), CAIRN_EINVAL, "the mean downtime is");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_young_is_the_root_of_twice_cost_by_mtbf),
        cmocka_unit_test(test_daly_comes_nearer_to_the_optimum_than_young),
        cmocka_unit_test(test_intervals_refuse_senseless_numbers),
        cmocka_unit_test(test_diff_threshold_of_the_thesis),
        cmocka_unit_test(test_diff_hashed_once_is_never_worse),
        cmocka_unit_test(test_tracking_pays_for_few_faults),
        cmocka_unit_test(test_overhead_adds_up),
    };
    return cmocka_run_group_tests_name("plan_interval", tests, NULL, NULL);
}
