/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is special about one process alone; the common cases are in tests/mpi/test_comm.c.
 */
#include "comm/comm.h"
#include "harness/harness.h"

static void test_wait_without_other_half_fails(void **state)
{
    (void)state;
    crn_comm *c;
    crn_msg in, out;
    char b = 1;
    assert_ok(crn_comm_create_self(&c));
    assert_ok(crn_comm_irecv(c, &b, 1, 0, 7, &in));
    assert_fails(crn_comm_wait(c, &in), CAIRN_EINTERNAL, "with tag 7 to oneself has no send");
    assert_ok(crn_comm_isend(c, &b, 1, 0, 7, &out));
    assert_fails(crn_comm_wait(c, &out), CAIRN_EINTERNAL, "has no receive");
    crn_comm_free(c);
}

static void test_receive_of_more_bytes_fails(void **state)
{
    (void)state;
    crn_comm *c;
    crn_msg in, out;
    char sent[3] = "ab", got[3] = "--";
    assert_ok(crn_comm_create_self(&c));
    assert_ok(crn_comm_isend(c, sent, 2, 0, 0, &out));
    assert_ok(crn_comm_irecv(c, got, 1, 0, 0, &in));
    assert_fails(crn_comm_wait(c, &in), CAIRN_EINTERNAL, "has no send of that length");
    assert_ok(crn_comm_wait(c, &out));
    assert_string_equal(got, "a-");
    crn_comm_free(c);
}

static void test_is_threaded_and_alone(void **state)
{
    (void)state;
    crn_comm *c;
    assert_ok(crn_comm_create_self(&c));
    assert_true(crn_comm_is_threaded(c));
    assert_int_equal(crn_comm_rank(c), 0);
    assert_int_equal(crn_comm_size(c), 1);
    crn_comm_free(c);
    crn_comm_free(NULL);
}

static void test_create_without_memory(void **state)
{
    (void)state;
    crn_comm *c;
    crn_mem_fail_at(1);
    assert_int_equal(crn_comm_create_self(&c), CAIRN_ENOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wait_without_other_half_fails),
        cmocka_unit_test(test_receive_of_more_bytes_fails),
        cmocka_unit_test(test_is_threaded_and_alone),
        cmocka_unit_test(test_create_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
