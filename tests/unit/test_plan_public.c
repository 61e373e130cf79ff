/* SPDX-License-Identifier: BSD-3-Clause
 *
 * <cairn/planner.h>: the same answers as inside, and structures that carry their size.
 *
 * NEEDS: random123
 */
#include <cairn/planner.h>

#include "harness/harness.h"
#include "plan/plan.h"

static cairn_plan_input input(void)
{
    return (cairn_plan_input){
        .struct_bytes = sizeof(cairn_plan_input),
        .changed_at_once = 1e8,
        .changed_in_time = 9e8,
        .change_pace = 300,
        .nlevels = 2,
        .level = {{.rate = 1e-3, .restart = 2, .fixed = 0.1, .bandwidth = 8e8, .background = 1},
                  {.rate = 1e-5, .restart = 60, .fixed = 1, .bandwidth = 2e7, .background = 30}}};
}

static void test_best_is_that_of_the_planner(void **state)
{
    (void)state;
    cairn_plan_input in = input();
    cairn_plan_schedule best = {.struct_bytes = sizeof best};
    crn_plan_model m = {.nlevels = 2,
                        .changed = {.floor = 1e8, .span = 9e8, .theta = 300},
                        .level = {{1e-3, 2, 0.1, 8e8, 1}, {1e-5, 60, 1, 2e7, 30}}};
    crn_plan_limits lim = crn_plan_limits_default();
    cairn_plan_schedule inner;
    crn_plan_prediction at;
    assert_ok(cairn_plan_best(&in, &best));
    assert_ok(crn_plan_best(&m, &lim, &inner, &at));
    assert_true(best.interval == inner.interval && best.efficiency == at.efficiency);
    assert_int_equal(best.ratio[1], inner.ratio[1]);
    assert_int_equal(best.ratio[2], 0);

    cairn_plan_schedule again = best;
    again.efficiency = -1;
    assert_ok(cairn_plan_predict(&in, &again));
    assert_true(again.efficiency == best.efficiency);
}

static void test_limits_are_obeyed(void **state)
{
    (void)state;
    cairn_plan_input in = input();
    cairn_plan_schedule best = {.struct_bytes = sizeof best};
    in.interval_min = 70, in.interval_max = 80, in.ratio_max = 2;
    assert_ok(cairn_plan_best(&in, &best));
    assert_true(best.interval >= 70 && best.interval <= 80 && best.ratio[1] <= 2);
}

static void test_simulation_agrees(void **state)
{
    (void)state;
    cairn_plan_input in = input();
    cairn_plan_schedule s = {.struct_bytes = sizeof s, .interval = 30, .ratio = {1, 20}};
    cairn_plan_trial trial = {
        .struct_bytes = sizeof trial, .work = 6e4, .nruns = 50, .seed = test_seed()};
    assert_ok(cairn_plan_predict(&in, &s));
    assert_ok(cairn_plan_simulate(&in, &s, &trial));
    assert_true(trial.error > 0 && trial.error < 0.02);
    assert_true(trial.efficiency > s.efficiency - 4 * trial.error);
    assert_true(trial.efficiency < s.efficiency + 4 * trial.error);
}

/* As the simulator does it: marks of 1.1 s and more, failures that lose what they must. */
static void test_replay_is_that_of_the_planner(void **state)
{
    (void)state;
    cairn_plan_input in = input();
    cairn_plan_schedule s = {.struct_bytes = sizeof s, .interval = 10, .ratio = {1, 3}};
    const cairn_plan_failure failures[] = {{.at = 50, .level = 0}, {.at = 90, .level = 1}};
    const cairn_plan_failure events[] = {{.at = 50, .level = 0}, {.at = 90, .level = 1}};
    crn_plan_model m = {.nlevels = 2,
                        .changed = {.floor = 1e8, .span = 9e8, .theta = 300},
                        .level = {{1e-3, 2, 0.1, 8e8, 1}, {1e-5, 60, 1, 2e7, 30}}};
    cairn_plan_schedule inner = {.interval = 10, .ratio = {1, 3}};
    cairn_plan_outcome out = {.struct_bytes = sizeof out};
    cairn_plan_outcome want;
    assert_ok(cairn_plan_replay(&in, &s, 100, failures, 2, &out));
    assert_ok(crn_plan_replay(&m, &inner, 100, 1e5, events, 2, &want));
    assert_true(out.finished && out.wall == want.wall && out.work == 100);
    assert_true(out.lost == want.lost && out.held == want.held);
    assert_true(out.restarting == want.restarting && out.restarting >= 62);
    assert_int_equal(out.nfailures[1], 1);
    assert_int_equal(out.nmarks[0], want.nmarks[0]);

    const cairn_plan_failure none_survives = {.at = 1, .level = 2};
    assert_fails(cairn_plan_replay(&in, &s, 100, &none_survives, 1, &out), CAIRN_EINVAL,
                 "no level survives");
    assert_ok(cairn_plan_replay(&in, &s, 100, NULL, 0, &out));
    assert_true(out.lost == 0);
    out.struct_bytes = 0;
    assert_fails(cairn_plan_replay(&in, &s, 100, NULL, 0, &out), CAIRN_EINVAL, "set struct_bytes");
}

static void test_a_size_that_is_not_set_is_refused(void **state)
{
    (void)state;
    cairn_plan_input in = input(), none = {0};
    cairn_plan_schedule s = {.struct_bytes = sizeof s, .interval = 30, .ratio = {1, 20}},
                        unset = {0};
    cairn_plan_trial trial = {0};
    assert_fails(cairn_plan_best(&none, &s), CAIRN_EINVAL, "set struct_bytes");
    assert_fails(cairn_plan_best(&in, &unset), CAIRN_EINVAL, "set struct_bytes");
    assert_fails(cairn_plan_predict(&in, &unset), CAIRN_EINVAL, "set struct_bytes");
    assert_fails(cairn_plan_simulate(&in, &s, &trial), CAIRN_EINVAL, "set struct_bytes");
    in.nlevels = 9;
    assert_fails(cairn_plan_best(&in, &s), CAIRN_EINVAL, "1 to 4 levels");
    in.nlevels = 0;
    assert_fails(cairn_plan_predict(&in, &s), CAIRN_EINVAL, "1 to 4 levels");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_best_is_that_of_the_planner),
        cmocka_unit_test(test_limits_are_obeyed),
        cmocka_unit_test(test_simulation_agrees),
        cmocka_unit_test(test_replay_is_that_of_the_planner),
        cmocka_unit_test(test_a_size_that_is_not_set_is_refused),
    };
    return cmocka_run_group_tests_name("plan_public", tests, NULL, NULL);
}
