/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program that forgets cairn_close: MPI_Finalize settles what it has left open. MPI ends once in
 * a process, so this is one test: sessions of all kinds are left open, and looked at afterwards.
 * With "single" MPI is for one thread, and marks are shared in the program's calls.
 *
 * TEST: ranks 1 2 4
 * NEEDS: inih
 */
#include "harness/session.h"

#include <sys/stat.h>

static uint64_t field[1000];

/* A trail of its own below the place's. */
static void write_config(const place *p, const char *trail, char config[128])
{
    snprintf(config, 128, "%s/%s.ini", p->dir, trail);
    FILE *f = fopen(config, "w");
    assert_non_null(f);
    fprintf(f, "[run]\ntrail = %s/%s\n[level]\nlocal = trail\n", p->dir, trail);
    fclose(f);
}

static cairn *open_session(const place *p, MPI_Comm comm, const char *trail, uint64_t version)
{
    cairn *c;
    char config[128];
    int rank;
    MPI_Comm_rank(comm, &rank);
    if (rank == 0)
        write_config(p, trail, config);
    snprintf(config, sizeof config, "%s/%s.ini", p->dir, trail);
    MPI_Barrier(comm);
    assert_ok(cairn_open(comm, config, &c));
    assert_ok(cairn_protect(c, "field", field, CAIRN_UINT64, 1000));
    assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    field[7] = version;
    assert_ok(cairn_mark(c, version, CAIRN_AUTO));
    return c;
}

/* What the next start finds; without MPI, which has ended. */
static void check_run(const place *p, const char *trail, uint64_t version)
{
    cairn *c;
    uint64_t found = 0;
    char config[128];
    snprintf(config, sizeof config, "%s/%s.ini", p->dir, trail);
    assert_ok(cairn_open(MPI_COMM_SELF, config, &c));
    assert_ok(cairn_protect(c, "field", field, CAIRN_UINT64, 1000));
    if (version == 0) {
        assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    } else {
        field[7] = 0;
        assert_ok(cairn_resume(c, &found));
        assert_int_equal(found, version);
        assert_int_equal(field[7], version);
    }
    assert_ok(cairn_close(c));
}

static void test_what_is_left_open_is_settled(void **state)
{
    const place *p = *state;
    char half[16], own[16];
    MPI_Comm some;
    MPI_Comm_split(MPI_COMM_WORLD, p->rank % 2, 0, &some);
    snprintf(half, sizeof half, "half-%d", p->rank % 2);
    snprintf(own, sizeof own, "own-%d", p->rank);
    cairn *closed = open_session(p, MPI_COMM_WORLD, "closed", 1);
    cairn *begun = open_session(p, MPI_COMM_WORLD, "begun", 2);
    assert_ok(cairn_close(closed));
    cairn *part = open_session(p, some, half, 3);
    MPI_Comm_free(&some);
    cairn *alone = open_session(p, MPI_COMM_SELF, own, 4);
    cairn *late = open_session(p, MPI_COMM_WORLD, "late", 5);
    assert_ok(cairn_begin(begun, 9, CAIRN_AUTO));
    MPI_Finalize();
    assert_refused(late, cairn_mark(late, 10, CAIRN_AUTO), CAIRN_EINVAL, "MPI has ended");
    assert_false(cairn_should_stop(late));
    assert_ok(cairn_close(late)); /* too late, and harmless; the others are never closed */
    assert_ok(cairn_close(begun));
    assert_ok(cairn_close(alone));
    assert_ok(cairn_close(part));
    check_run(p, own, 4);
    if (p->rank > 0)
        return;
    check_run(p, "closed", 0);
    check_run(p, "begun", 2);
    check_run(p, "half-0", 3);
    check_run(p, "late", 5);
}

/* The directory is removed by the last rank that is done with it. */
static void leave_place(const place *p)
{
    char path[96];
    int left = 0;
    snprintf(path, sizeof path, "%s/done-%d", p->dir, p->rank);
    assert_int_equal(mkdir(path, 0700), 0);
    for (int r = 0; r < p->nranks; r++) {
        snprintf(path, sizeof path, "%s/done-%d", p->dir, r);
        left += access(path, F_OK) != 0;
    }
    if (left == 0)
        remove_tree(p->dir);
}

int main(int argc, char **argv)
{
    int given;
    crn_comm *comm;
    place p;
    const bool single = argc > 1 && strcmp(argv[1], "single") == 0;
    struct CMUnitTest test = cmocka_unit_test(test_what_is_left_open_is_settled);
    MPI_Init_thread(&argc, &argv, single ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &given);
    assert_ok(crn_comm_create(MPI_COMM_WORLD, &comm));
    place_init(&p, comm, "");
    crn_comm_free(comm);
    test.initial_state = &p;
    if (_cmocka_run_group_tests(test.name, &test, 1, NULL, NULL) != 0)
        return 1;
    leave_place(&p);
    return 0;
}
