/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Growable arrays.
 */
#include "harness/harness.h"

typedef struct pair {
    int a;
    double b;
} pair;

static void test_push_keeps_order(void **state)
{
    (void)state;
    CRN_VEC(int) v = {0};
    for (int i = 0; i < 10000; i++)
        assert_ok(crn_vec_push(&v, i * 3));
    assert_int_equal(v.n, 10000);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(v.at[i], i * 3);
    crn_vec_done(&v);
    assert_int_equal(v.n, 0);
    assert_ok(crn_vec_push(&v, 1));
    crn_vec_done(&v);
}

static void test_push_takes_structs(void **state)
{
    (void)state;
    CRN_VEC(pair) v = {0};
    assert_ok(crn_vec_push(&v, (pair){.a = 1, .b = 0.5}));
    assert_int_equal(v.at[0].a, 1);
    assert_true(v.at[0].b == 0.5);
    crn_vec_done(&v);
}

static void test_growth_is_geometric(void **state)
{
    (void)state;
    CRN_VEC(char) v = {0};
    int ngrowths = 0;
    for (int i = 0; i < 100000; i++) {
        size_t cap = v.cap;
        assert_ok(crn_vec_push(&v, 'x'));
        ngrowths += v.cap != cap;
    }
    assert_true(ngrowths < 30);
    crn_vec_done(&v);
}

static void test_reserve_gives_exactly_enough_at_least(void **state)
{
    (void)state;
    CRN_VEC(uint64_t) v = {0};
    assert_ok(crn_vec_reserve(&v, 1000));
    assert_true(v.cap >= 1000);
    assert_int_equal(v.n, 0);
    const uint64_t *at = v.at;
    for (uint64_t i = 0; i < 1000; i++)
        assert_ok(crn_vec_push(&v, i));
    assert_ptr_equal(v.at, at);
    assert_int_equal(crn_vec_reserve(&v, SIZE_MAX), CAIRN_ENOMEM);
    assert_int_equal(crn_vec_reserve(&v, SIZE_MAX / 8), CAIRN_ENOMEM);
    assert_int_equal(v.at[999], 999);
    crn_vec_done(&v);
}

static void test_failed_push_changes_nothing(void **state)
{
    (void)state;
    CRN_VEC(int) v = {0};
    for (int i = 0; i < 8; i++)
        assert_ok(crn_vec_push(&v, i));
    assert_int_equal(v.cap, 8);
    crn_mem_fail_at(1);
    assert_int_equal(crn_vec_push(&v, 8), CAIRN_ENOMEM);
    assert_int_equal(v.n, 8);
    assert_int_equal(v.at[7], 7);
    assert_ok(crn_vec_push(&v, 8));
    crn_vec_done(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_push_keeps_order),
        cmocka_unit_test(test_push_takes_structs),
        cmocka_unit_test(test_growth_is_geometric),
        cmocka_unit_test(test_reserve_gives_exactly_enough_at_least),
        cmocka_unit_test(test_failed_push_changes_nothing),
    };
    return cmocka_run_group_tests_name("vec", tests, NULL, NULL);
}
