/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Allocation: zeroed, checked, and made to fail where a test wants it.
 */
#include "harness/harness.h"

static void test_alloc_is_zeroed(void **state)
{
    (void)state;
    uint64_t *p;
    assert_ok(crn_alloc(&p, 1000));
    for (int i = 0; i < 1000; i++)
        assert_true(p[i] == 0);
    free(p);
}

static void test_alloc_of_nothing_gives_a_pointer(void **state)
{
    (void)state;
    uint64_t *p = NULL;
    assert_ok(crn_alloc(&p, 0));
    assert_non_null(p);
    free(p);
}

static void test_alloc_refuses_what_overflows(void **state)
{
    (void)state;
    uint64_t *p = (uint64_t *)&state;
    assert_fails(crn_alloc(&p, SIZE_MAX / 4), CAIRN_ENOMEM, "cannot allocate");
    assert_fails(crn_alloc(&p, SIZE_MAX / 9), CAIRN_ENOMEM, "items of 8 bytes");
    assert_ptr_equal(p, &state);
}

static void test_alloc_aligned(void **state)
{
    (void)state;
    for (size_t n = 0; n < 3 * 4096; n += 1000) {
        unsigned char *p;
        assert_ok(crn_alloc_aligned(&p, n, 4096));
        assert_int_equal((uintptr_t)p % 4096, 0);
        memset(p, 1, n);
        free(p);
    }
}

static void test_realloc_failure_keeps_what_was(void **state)
{
    (void)state;
    int *p;
    assert_ok(crn_alloc(&p, 2));
    p[1] = 42;
    crn_mem_fail_at(1);
    assert_int_equal(crn_realloc(&p, 1000), CAIRN_ENOMEM);
    assert_int_equal(p[1], 42);
    assert_ok(crn_realloc(&p, 1000));
    assert_int_equal(p[1], 42);
    assert_int_equal(crn_realloc(&p, SIZE_MAX), CAIRN_ENOMEM);
    free(p);
}

static void test_fail_at_hits_the_nth_once(void **state)
{
    (void)state;
    char *p[4] = {0};
    crn_mem_fail_at(3);
    assert_ok(crn_strdup("a", &p[0]));
    assert_ok(crn_strdup("b", &p[1]));
    assert_int_equal(crn_strdup("c", &p[2]), CAIRN_ENOMEM);
    assert_null(p[2]);
    assert_ok(crn_strdup("d", &p[3]));
    crn_mem_fail_at(1);
    crn_mem_fail_at(0);
    assert_ok(crn_strdup("c", &p[2]));
    for (int i = 0; i < 4; i++)
        free(p[i]);
}

static void test_strndup_stops_at_the_end(void **state)
{
    (void)state;
    char *s;
    assert_ok(crn_strndup("temperature", 4, &s));
    assert_string_equal(s, "temp");
    free(s);
    assert_ok(crn_strndup("ab", 100, &s));
    assert_string_equal(s, "ab");
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alloc_is_zeroed),
        cmocka_unit_test(test_alloc_of_nothing_gives_a_pointer),
        cmocka_unit_test(test_alloc_refuses_what_overflows),
        cmocka_unit_test(test_alloc_aligned),
        cmocka_unit_test(test_realloc_failure_keeps_what_was),
        cmocka_unit_test(test_fail_at_hits_the_nth_once),
        cmocka_unit_test(test_strndup_stops_at_the_end),
    };
    return cmocka_run_group_tests_name("mem", tests, NULL, NULL);
}
