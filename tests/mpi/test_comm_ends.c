/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Communicators before MPI_Init, with wrong arguments, and after MPI_Finalize: a program that does
 * things in the wrong order gets a sentence, and never ends by it. The program's own communicator
 * keeps its error handler.
 *
 * TEST: ranks 1 2
 */
#include "harness/mpi.h"

static void refuse_without_mpi(void **state)
{
    (void)state;
    crn_comm *c;
    assert_fails(crn_comm_create(MPI_COMM_WORLD, &c), CAIRN_EINVAL, "MPI is not running");
}

static void refuse_odd_communicators(void **state)
{
    (void)state;
    crn_comm *c;
    int rank, size;
    assert_fails(crn_comm_create(MPI_COMM_NULL, &c), CAIRN_EINVAL, "MPI_COMM_NULL");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size < 2)
        return;
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &inter);
    assert_fails(crn_comm_create(inter, &c), CAIRN_EINVAL, "inter-communicator");
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

static void keep_the_error_handler(void **state)
{
    crn_comm **c = (crn_comm **)*state;
    MPI_Errhandler before, after;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    assert_ok(crn_comm_create(MPI_COMM_WORLD, c));
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &after);
    assert_true(before == after);
    MPI_Errhandler_free(&before);
    MPI_Errhandler_free(&after);
}

/* The last rank has no memory for the first communicator: none gets one. */
static void fail_together(void **state)
{
    (void)state;
    crn_comm *c;
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    crn_mem_fail_at(rank == size - 1);
    assert_int_equal(crn_comm_create(MPI_COMM_WORLD, &c), CAIRN_ENOMEM);
    assert_int_equal(crn_err_peek()->rank, size - 1);
}

int main(int argc, char **argv)
{
    crn_comm *c = NULL;
    const struct CMUnitTest without[] = {cmocka_unit_test(refuse_without_mpi)};
    const struct CMUnitTest with[] = {
        cmocka_unit_test(refuse_odd_communicators),
        cmocka_unit_test_prestate(keep_the_error_handler, &c),
        cmocka_unit_test(fail_together),
    };
    if (cmocka_run_group_tests_name("before", without, NULL, NULL) != 0)
        return 1;
    MPI_Init(&argc, &argv);
    if (cmocka_run_group_tests_name("between", with, NULL, NULL) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
    crn_comm_free(c);
    return cmocka_run_group_tests_name("after", without, NULL, NULL) != 0;
}
