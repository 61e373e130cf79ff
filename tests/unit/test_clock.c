/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clocks and dates.
 */
#include "harness/harness.h"

static void test_now_never_goes_back(void **state)
{
    (void)state;
    uint64_t last = crn_now_ns();
    for (int i = 0; i < 10000; i++) {
        uint64_t now = crn_now_ns();
        assert_true(now >= last);
        last = now;
    }
}

static void test_wall_is_a_date_of_this_century(void **state)
{
    (void)state;
    uint64_t now = crn_wall_ns();
    assert_true(now > 1700000000ull * 1000000000u && now < 4102444800ull * 1000000000u);
}

static void test_format_date(void **state)
{
    (void)state;
    char buf[21];
    assert_string_equal(crn_format_date(0, buf, sizeof buf), "1970-01-01 00:00:00Z");
    assert_string_equal(crn_format_date(1794774764999999999u, buf, sizeof buf),
                        "2026-11-15 20:32:44Z");
    assert_string_equal(crn_format_date(0, buf, 5), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_now_never_goes_back),
        cmocka_unit_test(test_wall_is_a_date_of_this_century),
        cmocka_unit_test(test_format_date),
    };
    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
