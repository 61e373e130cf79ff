/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A model that no study has started runs alone; what it declares wrongly is refused on all ranks.
 * TEST: ranks 1 2
 */
#include "harness/mpi.h"

#include <cairn/ensemble.h>

static int refused(cairn_ensemble *e, cairn_role role, cairn_field f, const char *words)
{
    int rc = cairn_member_field(e, role, &f);
    assert_non_null(strstr(cairn_member_error(), words));
    return rc;
}

static void test_alone(void **state)
{
    (void)state;
    cairn_ensemble *e;
    int rank, size;
    double x[10];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    assert_int_equal(cairn_member_open(MPI_COMM_WORLD, 7, &e), CAIRN_OK);
    assert_true(cairn_member_is_alone(e));
    cairn_field f = {.name = "x",
                     .data = x,
                     .type = CAIRN_FLOAT64,
                     .ndims = 1,
                     .global = {10 * (uint64_t)size},
                     .offset = {10 * (uint64_t)rank},
                     .count = {10}};
    assert_int_equal(cairn_member_field(e, CAIRN_ASSIMILATED, &f), CAIRN_OK);
    assert_int_equal(refused(e, CAIRN_CARRIED, f, "declared before"), CAIRN_EINVAL);
    f.name = "i";
    f.type = CAIRN_INT32;
    assert_int_equal(refused(e, CAIRN_ASSIMILATED, f, "declare it as carried"), CAIRN_EINVAL);
    f.offset[0] += rank == size - 1; /* one rank is wrong: all hear of it */
    assert_int_equal(refused(e, CAIRN_CARRIED, f, "not within its array"), CAIRN_EINVAL);
    f.name = "../x";
    assert_int_equal(refused(e, CAIRN_CARRIED, f, "is not 1 to 63 letters"), CAIRN_EINVAL);
    cairn_task task = {.struct_bytes = sizeof task};
    assert_int_equal(cairn_member_next(e, &task), 1);
    assert_int_equal(task.nsteps, 7);
    assert_int_equal(cairn_member_next(e, &task), 0);
    cairn_member_close(e);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_alone)};
    return run_mpi_tests(argc, argv, tests);
}
