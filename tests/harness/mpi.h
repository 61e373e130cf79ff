/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs cmocka tests on all ranks of an MPI job, or, with the first argument "self", on one process
 * without MPI. Each test gets a crn_comm over all ranks as its *state. After the first failure on
 * any rank the job is aborted, since the other ranks may be waiting for the failed one; the
 * launcher tags lines with the rank (tools/mpi-test). Passing tests are told by rank 0 only.
 *
 * A test starts with a comment that says how it is run:
 *
 *     TEST: ranks self 1 2 4      process counts, and "self" for one without MPI
 *     TEST: args --seed 7         optional arguments, after "self" if there is one
 */
#ifndef CAIRN_TESTS_HARNESS_MPI_H
#define CAIRN_TESTS_HARNESS_MPI_H

#include <mpi.h>

#include "comm/comm.h"
#include "harness/harness.h"

#define run_mpi_tests(argc, argv, tests)                                                           \
    harness_run_mpi((argc), (argv), (tests), sizeof(tests) / sizeof *(tests))

/* The lowest n ranks of a test's communicator; NULL for the others. Collective. */
static inline crn_comm *lowest_ranks(crn_comm *all, int n)
{
    const bool in = crn_comm_rank(all) < n;
    crn_comm *some = NULL;
    MPI_Comm mpi = MPI_COMM_SELF;
    if (crn_comm_size(all) > 1)
        MPI_Comm_split(MPI_COMM_WORLD, in ? 0 : MPI_UNDEFINED, 0, &mpi);
    if (in)
        assert_ok(crn_comm_create(mpi, &some));
    if (in && mpi != MPI_COMM_SELF)
        MPI_Comm_free(&mpi);
    return some;
}

static inline bool harness_is_self(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], "self") == 0;
}

static inline int harness_run_each(crn_comm *comm, const struct CMUnitTest *tests, size_t n)
{
    if (crn_comm_rank(comm) > 0 && !freopen("/dev/null", "w", stdout))
        return 1;
    for (size_t i = 0; i < n; i++) {
        struct CMUnitTest test = tests[i];
        test.initial_state = comm;
        if (_cmocka_run_group_tests(test.name, &test, 1, NULL, NULL) != 0)
            return 1;
    }
    return 0;
}

static inline int harness_run_mpi(int argc, char **argv, const struct CMUnitTest *tests, size_t n)
{
    crn_comm *comm;
    int failed, given;
    if (harness_is_self(argc, argv)) {
        if (crn_comm_create_self(&comm) < 0)
            return 1;
        failed = harness_run_each(comm, tests, n);
        crn_comm_free(comm);
        return failed;
    }
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    if (crn_comm_create(MPI_COMM_WORLD, &comm) < 0 || harness_run_each(comm, tests, n) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    crn_comm_free(comm);
    MPI_Finalize();
    return 0;
}

#endif
