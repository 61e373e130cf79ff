/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What asking costs, in calls of MPI, which this program counts: whether to stop and whether to
 * mark is one reduction together, in either order; so is each of them alone.
 *
 * TEST: ranks 1 2 4
 * NEEDS: inih
 */
#include "harness/session.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static unsigned ncalls;
static time_t step_s; /* that lies between two questions, by the clock */

int MPI_Iallreduce(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *req)
{
    ncalls++;
    return PMPI_Iallreduce(send, recv, n, type, op, comm, req);
}

int MPI_Allreduce(const void *send, void *recv, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    ncalls++;
    return PMPI_Allreduce(send, recv, n, type, op, comm);
}

int MPI_Ibcast(void *data, int n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *req)
{
    ncalls++;
    return PMPI_Ibcast(data, n, type, root, comm, req);
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *req)
{
    ncalls++;
    return PMPI_Ibarrier(comm, req);
}

int MPI_Isend(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *req)
{
    ncalls++;
    return PMPI_Isend(data, n, type, to, tag, comm, req);
}

/* Stands before that of the C library: a machine on which nothing takes time but what says so, so
 * that load changes nothing. */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
    static struct timespec start;
    if (clock != CLOCK_MONOTONIC)
        return (int)syscall(SYS_clock_gettime, clock, ret);
    if (start.tv_sec == 0)
        syscall(SYS_clock_gettime, clock, &start);
    *ret = start;
    ret->tv_sec += step_s;
    return 0;
}

static cairn *open_session(place *p, crn_comm *comm, uint64_t *x)
{
    cairn *c;
    place_init(p, comm, "[level]\nlocal = trail\n[mark]\ninterval = 100h\n");
    assert_ok(cairn_open(p->mpi, p->config, &c));
    assert_ok(cairn_protect(c, "x", x, CAIRN_UINT64, 1));
    assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    return c;
}

enum { STEPS = 100 };

static void test_one_reduction_answers_both(void **state)
{
    for (int stop_first = 0; stop_first < 2; stop_first++) {
        place p;
        uint64_t x = 0;
        cairn *c = open_session(&p, *state, &x);
        for (int i = 0; i < STEPS + 2; i++) {
            if (i == 2) /* by then it is known that nothing lies between the two */
                ncalls = 0;
            assert_false(stop_first && cairn_should_stop(c));
            assert_false(cairn_due(c));
            assert_false(!stop_first && cairn_should_stop(c));
        }
        assert_int_equal(ncalls, STEPS);
        assert_ok(cairn_close(c));
        place_done(&p);
    }
}

static void test_one_question_is_one_reduction(void **state)
{
    place p;
    uint64_t x = 0;
    cairn *c = open_session(&p, *state, &x);
    ncalls = 0;
    for (int i = 0; i < STEPS; i++)
        assert_false(cairn_should_stop(c));
    assert_int_equal(ncalls, STEPS);
    ncalls = 0;
    for (int i = 0; i < STEPS; i++)
        assert_false(cairn_due(c));
    assert_true(ncalls <= STEPS);
    assert_ok(cairn_close(c));
    place_done(&p);
}

/* A signal that comes in a step is noticed after it, also by a program that asks whether to mark
 * before the step. */
static void test_a_step_between_is_a_new_look(void **state)
{
    place p;
    uint64_t x = 0;
    cairn *c = open_session(&p, *state, &x);
    for (int i = 0; i < STEPS; i++) {
        assert_false(cairn_due(c));
        step_s++;
        if (i == STEPS - 1 && p.rank == p.nranks - 1)
            assert_int_equal(raise(SIGUSR1), 0);
        assert_int_equal(cairn_should_stop(c), i == STEPS - 1);
    }
    assert_true(cairn_due(c));
    assert_ok(cairn_close(c));
    step_s = 0;
    place_done(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_reduction_answers_both),
        cmocka_unit_test(test_one_question_is_one_reduction),
        cmocka_unit_test(test_a_step_between_is_a_new_look),
    };
    return run_mpi_tests(argc, argv, tests);
}
