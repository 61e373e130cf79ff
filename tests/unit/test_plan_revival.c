/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The cost of a server's death against Table 7.3 of K. Keller's thesis, and against figures derived
 * from its terms.
 */
#include "harness/harness.h"
#include "plan/plan.h"

#include <math.h>

static const crn_revival_times of_256 = {445.6, 65.6, 184.4, 197, 581, 445.6};
static const crn_revival_times of_512 = {471, 75, 275, 381, 1168, 471};

static void expect(const crn_revival_times *t, crn_revival_mode mode, double seconds)
{
    double is;
    assert_ok(crn_revival_mean(t, mode, &is));
    if (fabs(is - seconds) > 0.51)
        fail_msg("mode %d: %.2f s instead of %.0f", (int)mode, is, seconds);
}

static void test_table(void **state)
{
    (void)state;
    assert_true(fabs(crn_revival_share_a(&of_256, CRN_REVIVAL_BOTH) - 0.489) < 0.0005);
    assert_true(fabs(crn_revival_share_a(&of_512, CRN_REVIVAL_BOTH) - 0.641) < 0.0005);
    expect(&of_256, CRN_REVIVAL_BOTH_ALL, 752);
    expect(&of_512, CRN_REVIVAL_BOTH_ALL, 1574);
    expect(&of_256, CRN_REVIVAL_ANALYSIS, 637);
    expect(&of_512, CRN_REVIVAL_ANALYSIS, 929);
}

static void test_without_the_previous_analysis(void **state)
{
    (void)state;
    expect(&of_256, CRN_REVIVAL_BOTH, 656);
    expect(&of_512, CRN_REVIVAL_BOTH, 1330);
}

static void test_backgrounds_alone(void **state)
{
    (void)state;
    crn_revival_times quick = of_512;
    crn_revival_mode best;
    quick.get_background = quick.get_analysis;
    expect(&of_256, CRN_REVIVAL_BACKGROUND, 896);
    expect(&of_512, CRN_REVIVAL_BACKGROUND, 1742);
    expect(&quick, CRN_REVIVAL_BACKGROUND, 615);
    expect(&quick, CRN_REVIVAL_BOTH_ALL, 846);
    assert_ok(crn_revival_best(&of_512, &best));
    assert_int_equal(best, CRN_REVIVAL_ANALYSIS);
    assert_ok(crn_revival_best(&quick, &best));
    assert_int_equal(best, CRN_REVIVAL_BOTH);
}

/* (7.19) and (7.20): what both save against the analysis alone, in units of propagation. */
static void test_differences_by_region(void **state)
{
    (void)state;
    const crn_revival_times *t = &of_512;
    const double delta = t->repeat / t->propagate, get = t->get_background / t->propagate;
    const double kept = t->keep / t->propagate;
    for (double alpha = 0; alpha <= 1; alpha += 0.25) {
        double both, alone;
        assert_ok(crn_revival_cost(t, CRN_REVIVAL_BOTH_ALL, true, alpha, &both));
        assert_ok(crn_revival_cost(t, CRN_REVIVAL_ANALYSIS, true, alpha, &alone));
        assert_true(fabs((alone - both) / t->propagate - (delta - get)) < 1e-12);
        assert_ok(crn_revival_cost(t, CRN_REVIVAL_BOTH_ALL, false, alpha, &both));
        assert_ok(crn_revival_cost(t, CRN_REVIVAL_ANALYSIS, false, alpha, &alone));
        assert_true(fabs((alone - both) / t->propagate -
                         ((1 - alpha) * (1 - get) * kept + alpha * (delta - get))) < 1e-12);
    }
}

static void test_what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    crn_revival_times t = of_512;
    double is;
    t.keep = 500;
    assert_fails(crn_revival_mean(&t, CRN_REVIVAL_BOTH, &is), CAIRN_EINVAL, "no longer than");
    t.keep = NAN;
    assert_fails(crn_revival_mean(&t, CRN_REVIVAL_BOTH, &is), CAIRN_EINVAL, "makes no sense");
    assert_fails(crn_revival_cost(&of_512, CRN_REVIVAL_BOTH, true, 1.5, &is), CAIRN_EINVAL,
                 "not within its region");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_without_the_previous_analysis),
        cmocka_unit_test(test_backgrounds_alone),
        cmocka_unit_test(test_differences_by_region),
        cmocka_unit_test(test_what_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
