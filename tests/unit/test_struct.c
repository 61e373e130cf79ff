/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Structures of programs and libraries of different versions.
 */
#include "harness/harness.h"

typedef struct then {
    size_t struct_bytes;
    int a;
} then;

typedef struct now {
    size_t struct_bytes;
    int a, b;
} now;

static void test_the_same_version_is_copied_whole(void **state)
{
    (void)state;
    const now theirs = {.struct_bytes = sizeof theirs, .a = 1, .b = 2};
    now ours = {0}, back = {.struct_bytes = sizeof back};
    assert_ok(crn_struct_in(&theirs, &ours));
    assert_memory_equal(&ours, &theirs, sizeof ours);
    assert_ok(crn_struct_out(&ours, &back));
    assert_memory_equal(&back, &theirs, sizeof back);
}

static void test_an_older_program_has_zeros_and_keeps_its_neighbours(void **state)
{
    (void)state;
    struct {
        then theirs;
        now behind;
    } program = {.theirs = {.struct_bytes = sizeof(then), .a = 1}, .behind = {7, 7, 7}};
    now ours = {.b = 9};
    assert_ok(crn_struct_in(&program.theirs, &ours));
    assert_int_equal(ours.struct_bytes, sizeof ours);
    assert_int_equal(ours.a, 1);
    ours.a = 3;
    assert_ok(crn_struct_out(&ours, &program.theirs));
    assert_int_equal(program.theirs.struct_bytes, sizeof(then));
    assert_int_equal(program.theirs.a, 3);
    assert_int_equal(program.behind.struct_bytes, 7);
}

static void test_what_a_newer_program_has_is_left_alone(void **state)
{
    (void)state;
    now theirs = {.struct_bytes = sizeof theirs, .a = 1, .b = 2};
    then ours;
    assert_ok(crn_struct_in(&theirs, &ours));
    assert_int_equal(ours.struct_bytes, sizeof ours);
    ours.a = 3;
    assert_ok(crn_struct_out(&ours, &theirs));
    assert_int_equal(theirs.struct_bytes, sizeof theirs);
    assert_int_equal(theirs.a, 3);
}

static void test_a_size_that_is_not_set_is_refused(void **state)
{
    (void)state;
    now theirs = {0}, ours = {.a = 5};
    assert_fails(crn_struct_check(NULL), CAIRN_EINVAL, "set struct_bytes");
    assert_fails(crn_struct_check(&theirs), CAIRN_EINVAL, "set struct_bytes");
    assert_fails(crn_struct_in(&theirs, &ours), CAIRN_EINVAL, "set struct_bytes");
    assert_fails(crn_struct_out(&ours, &theirs), CAIRN_EINVAL, "set struct_bytes");
    assert_int_equal(ours.a, 5);
    assert_int_equal(theirs.a, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_version_is_copied_whole),
        cmocka_unit_test(test_an_older_program_has_zeros_and_keeps_its_neighbours),
        cmocka_unit_test(test_what_a_newer_program_has_is_left_alone),
        cmocka_unit_test(test_a_size_that_is_not_set_is_refused),
    };
    return cmocka_run_group_tests_name("struct", tests, NULL, NULL);
}
