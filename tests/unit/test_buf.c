/* SPDX-License-Identifier: BSD-3-Clause */
#include "harness/harness.h"

static void test_put_get_round_trip(void **state)
{
    (void)state;
    crn_buf b = {0};
    crn_put_u8(&b, 7);
    crn_put_u16(&b, 0x1234);
    crn_put_u32(&b, 0x89abcdef);
    crn_put_u64(&b, UINT64_MAX - 1);
    crn_put_f64(&b, -0.1);
    crn_put_str(&b, "temperature");
    assert_ok(crn_buf_status(&b));
    assert_int_equal(b.at[1], 0x34); /* little-endian whatever the machine */

    crn_cursor c = crn_cursor_of(b.at, b.n);
    char name[16];
    assert_int_equal(crn_get_u8(&c), 7);
    assert_int_equal(crn_get_u16(&c), 0x1234);
    assert_int_equal(crn_get_u32(&c), 0x89abcdef);
    assert_true(crn_get_u64(&c) == UINT64_MAX - 1);
    assert_true(crn_get_f64(&c) == -0.1);
    crn_get_str(&c, name, sizeof name - 1);
    assert_string_equal(name, "temperature");
    assert_ok(crn_cursor_status(&c, "record"));
    assert_int_equal(c.n, 0);
    crn_buf_done(&b);
}

static void test_put_nothing_into_nothing(void **state)
{
    (void)state;
    crn_buf b = {0};
    crn_put_bytes(&b, NULL, 0);
    crn_put_zeros(&b, 0);
    assert_ok(crn_buf_status(&b));
    assert_int_equal(b.n, 0);
    crn_buf_done(&b);
}

static void test_text_is_never_cut(void **state)
{
    (void)state;
    crn_buf b = {0};
    assert_string_equal(crn_buf_text(&b), "");
    for (int i = 0; i < 1000; i++)
        crn_put_text(&b, "%s%d", i ? " < " : "", 100000 + i);
    assert_int_equal(b.n, 1000 * 6 + 999 * 3);
    assert_string_equal(strrchr(crn_buf_text(&b), ' '), " 100999");
    crn_put_text(&b, ".");
    assert_string_equal(strrchr(crn_buf_text(&b), ' '), " 100999.");
    crn_buf_done(&b);
}

static void test_get_past_end_fails_and_stays_failed(void **state)
{
    (void)state;
    crn_cursor c = crn_cursor_of("\1\2\3", 3);
    assert_int_equal(crn_get_u32(&c), 0);
    assert_int_equal(crn_get_u8(&c), 0);
    assert_fails(crn_cursor_status(&c, "the record"), CAIRN_ECORRUPT,
                 "the record is cut short or damaged");
}

static void test_get_str_refuses_long_and_zero_bytes(void **state)
{
    (void)state;
    char dst[4];
    crn_cursor c = crn_cursor_of("\4\0abcd", 6);
    crn_get_str(&c, dst, 3);
    assert_true(c.failed);
    assert_string_equal(dst, "");
    c = crn_cursor_of("\3\0a\0b", 5);
    crn_get_str(&c, dst, 3);
    assert_true(c.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_get_round_trip),
        cmocka_unit_test(test_put_nothing_into_nothing),
        cmocka_unit_test(test_text_is_never_cut),
        cmocka_unit_test(test_get_past_end_fails_and_stays_failed),
        cmocka_unit_test(test_get_str_refuses_long_and_zero_bytes),
    };
    return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
