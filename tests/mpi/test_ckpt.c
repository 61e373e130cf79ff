/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sessions: marks that come back, what is refused, what is said. Every case runs in the background
 * and synchronously, with node-local storage and without.
 *
 * TEST: ranks self 1 2 4
 *
 * NEEDS: isal
 */
#include "harness/session.h"

#include <inttypes.h>

enum { CELLS = 30000 };

/* The world of a case: a scratch directory, a configuration file, a state. */
typedef struct world {
    place at;
    uint64_t step;
    double field[CELLS];
} world;

static void world_init(world *w, crn_comm *comm, const char *settings)
{
    memset(w, 0, sizeof *w);
    place_init(&w->at, comm, settings);
}

/* One step of the program: a tenth of the field changes. */
static void advance(world *w)
{
    w->step++;
    for (size_t i = 0; i < CELLS; i++)
        if (i % 10 == w->step % 10)
            w->field[i] = (double)w->at.rank * 1e6 + (double)(w->step * i);
}

static void protect(world *w, cairn *c)
{
    assert_ok(cairn_protect(c, "step", &w->step, CAIRN_UINT64, 1));
    assert_ok(cairn_protect(c, "field", w->field, CAIRN_FLOAT64, CELLS));
}

/* A session on what is protected. */
static cairn *begin(world *w)
{
    cairn *c;
    assert_ok(cairn_open(w->at.mpi, w->at.config, &c));
    protect(w, c);
    return c;
}

/* In the background or not, and with node-local storage or without. */
static const char *const settings[] = {
    "[mark]\nmode = background\n[level]\nlocal = @/local\nnode_size = 1\n",
    "[mark]\nmode = synchronous\n[level]\nlocal = @/local\nnode_size = 1\n",
    "[mark]\nmode = background\n[level]\nlocal = trail\nnode_size = 1\n",
    "[mark]\nmode = synchronous\n[level]\nlocal = trail\nnode_size = 1\n",
};

static void for_all_settings(crn_comm *comm, void (*fn)(world *w))
{
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        world w;
        world_init(&w, comm, settings[i]);
        fn(&w);
        place_done(&w.at);
    }
}

static void come_back(world *w)
{
    cairn *c;
    uint64_t version = 0;
    static double want[CELLS];
    c = begin(w);
    assert_int_equal(cairn_resume(c, &version), CAIRN_NOTHING);
    for (int i = 0; i < 5; i++) {
        advance(w);
        assert_ok(cairn_mark(c, w->step, CAIRN_AUTO));
    }
    memcpy(want, w->field, sizeof want);
    advance(w); /* lost */
    leave_session(c);
    memset(w->field, 0, sizeof w->field);
    w->step = 0;
    c = begin(w);
    assert_ok(cairn_probe(c, &version));
    assert_int_equal(version, 5);
    assert_ok(cairn_resume(c, &version));
    assert_int_equal(version, 5);
    assert_int_equal(w->step, 5);
    assert_memory_equal(w->field, want, sizeof want);
    /* the run goes on where it was, and is finished by closing it */
    advance(w);
    assert_ok(cairn_mark(c, w->step, CAIRN_LEVEL_GLOBAL));
    assert_ok(cairn_close(c));
    c = begin(w);
    assert_int_equal(cairn_resume(c, &version), CAIRN_NOTHING);
    assert_ok(cairn_close(c));
}

static void test_come_back(void **state)
{
    for_all_settings(*state, come_back);
}

static void older_mark(world *w)
{
    cairn *c;
    static double want[CELLS];
    c = begin(w);
    assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    for (int i = 0; i < 2; i++) {
        advance(w);
        assert_ok(cairn_mark(c, w->step, CAIRN_LEVEL_LOCAL));
        if (i == 0)
            memcpy(want, w->field, sizeof want);
    }
    leave_session(c);
    c = begin(w);
    assert_int_equal(cairn_mark(c, 9, CAIRN_AUTO), CAIRN_EINVAL);
    assert_non_null(strstr(cairn_last_error(c), "resume it before marking"));
    assert_int_equal(cairn_resume_at(c, 7), CAIRN_ENOTFOUND);
    assert_ok(cairn_resume_at(c, 1));
    assert_int_equal(w->step, 1);
    assert_memory_equal(w->field, want, sizeof want);
    /* going on from there abandons mark 2 */
    advance(w);
    advance(w);
    assert_ok(cairn_mark(c, w->step, CAIRN_LEVEL_LOCAL));
    assert_int_equal(cairn_mark(c, w->step, CAIRN_LEVEL_LOCAL), CAIRN_EINVAL);
    assert_non_null(strstr(cairn_last_error(c), "versions must grow"));
    assert_ok(cairn_settle(c));
    assert_int_equal(cairn_resume_at(c, 2), CAIRN_ENOTFOUND);
    assert_ok(cairn_close(c));
}

static void test_older_mark(void **state)
{
    for_all_settings(*state, older_mark);
}

/* Let rank 0 run a command where the nodes are, for all. */
static void run_on_nodes(world *w, const char *command)
{
    char text[512];
    assert_ok(crn_comm_barrier(w->at.comm));
    snprintf(text, sizeof text, "cd %s/local && %s", w->at.dir, command);
    if (w->at.rank == 0)
        assert_int_equal(system(text), 0);
    assert_ok(crn_comm_barrier(w->at.comm));
}

static void test_file_from_an_abandoned_future_is_not_used(void **state)
{
    world w;
    cairn *c;
    uint64_t version;
    world_init(&w, *state, settings[0]);
    c = begin(&w);
    assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    for (int i = 0; i < 2; i++) {
        advance(&w);
        assert_ok(cairn_mark(c, w.step, CAIRN_LEVEL_LOCAL));
    }
    leave_session(c);
    run_on_nodes(&w, "cp $(find . -name 'own-*0' | head -n 1) stale"); /* marks 1 and 2 */
    c = begin(&w);
    assert_ok(cairn_resume_at(c, 1));
    w.field[0] = 17; /* another future */
    w.step = 2;
    assert_ok(cairn_mark(c, 2, CAIRN_LEVEL_LOCAL));
    leave_session(c);
    /* rank 0's node comes back with the storage that it had before */
    run_on_nodes(&w, "cp stale $(find . -path '*series-1/own-0')");
    run_on_nodes(&w, "rm $(find . -path '*series-2/own-0')");
    c = begin(&w);
    assert_ok(cairn_resume(c, &version));
    assert_int_equal(version, 1);
    assert_true(w.field[0] != 17);
    assert_ok(cairn_close(c));
    place_done(&w.at);
}

/* Three more local marks have pushed a safer one out of the local level when a node is lost. */
static void lose_node_later(crn_comm *comm, cairn_level level)
{
    world w;
    cairn *c;
    uint64_t version = 0;
    world_init(&w, comm, "[level]\nlocal = @/local\nnode_size = 1\ngroup = 2\npartner = 0\n");
    c = begin(&w);
    assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    for (int i = 0; i < 4; i++) {
        advance(&w);
        assert_ok(cairn_mark(c, w.step, i == 0 ? level : CAIRN_LEVEL_LOCAL));
    }
    leave_session(c);
    run_on_nodes(&w, "rm -r node-0");
    c = begin(&w);
    assert_ok(cairn_resume(c, &version));
    assert_int_equal(version, 1);
    assert_int_equal(w.step, 1);
    assert_ok(cairn_close(c));
    place_done(&w.at);
}

static void test_safer_mark_outlives_local_ones(void **state)
{
    if (crn_comm_size(*state) < 2)
        skip();
    lose_node_later(*state, CAIRN_LEVEL_PARTNER);
    lose_node_later(*state, CAIRN_LEVEL_ENCODED);
}

/* Someone cleans up the node's storage while the program runs: later marks are found all the same.
 */
static void test_removed_files_are_made_anew(void **state)
{
    world w;
    cairn *c;
    uint64_t version = 0;
    world_init(&w, *state, settings[0]);
    c = begin(&w);
    assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    for (int i = 0; i < 2; i++) {
        advance(&w);
        assert_ok(cairn_mark(c, w.step, CAIRN_LEVEL_LOCAL));
        assert_ok(cairn_settle(c));
        if (i == 0)
            run_on_nodes(&w, "rm -r node-*");
    }
    leave_session(c);
    c = begin(&w);
    assert_ok(cairn_resume(c, &version));
    assert_int_equal(version, 2);
    assert_ok(cairn_close(c));
    place_done(&w.at);
}

/* A program that sees that its marks do not fit, and closes, has not finished its run. */
static void give_up_and_return(world *w)
{
    cairn *c;
    uint64_t version = 0;
    char other = 0;
    c = begin(w);
    assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    advance(w);
    assert_ok(cairn_mark(c, w->step, CAIRN_AUTO));
    leave_session(c);
    c = begin(w);
    assert_ok(cairn_protect(c, "other", &other, CAIRN_BYTES, 1));
    assert_int_equal(cairn_resume(c, NULL), CAIRN_EMISMATCH);
    assert_ok(cairn_close(c));
    c = begin(w);
    assert_ok(cairn_resume(c, &version));
    assert_int_equal(version, 1);
    /* a loop that marks before it advances comes here with the mark that it resumed */
    assert_int_equal(cairn_mark(c, w->step, CAIRN_AUTO), CAIRN_NOTHING);
    advance(w);
    assert_ok(cairn_mark(c, w->step, CAIRN_AUTO));
    assert_ok(cairn_close(c));
}

static void test_give_up_and_return(void **state)
{
    for_all_settings(*state, give_up_and_return);
}

static void changing_variables(world *w)
{
    cairn *c;
    static double other[2 * CELLS];
    c = begin(w);
    assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    assert_ok(cairn_mark(c, 1, CAIRN_AUTO));
    memcpy(other, w->field, sizeof w->field);
    for (size_t i = CELLS; i < 2 * CELLS; i++)
        other[i] = (double)i;
    assert_ok(cairn_protect(c, "field", other, CAIRN_FLOAT64, 2 * CELLS)); /* moved and grown */
    assert_ok(cairn_mark(c, 2, CAIRN_AUTO));
    assert_ok(cairn_protect(c, "field", other, CAIRN_FLOAT64, 100)); /* shrunk */
    assert_ok(cairn_release(c, "step"));
    assert_int_equal(cairn_release(c, "step"), CAIRN_ENOTFOUND);
    assert_ok(cairn_protect(c, "empty", NULL, CAIRN_INT32, 0));
    assert_ok(cairn_mark(c, 3, CAIRN_AUTO));
    leave_session(c);
    memset(other, 0, sizeof other);
    assert_ok(cairn_open(w->at.mpi, w->at.config, &c));
    assert_ok(cairn_protect(c, "field", other, CAIRN_FLOAT64, 2 * CELLS));
    assert_ok(cairn_protect(c, "empty", NULL, CAIRN_INT32, 0));
    assert_int_equal(cairn_resume(c, NULL), CAIRN_EMISMATCH);
    assert_non_null(strstr(cairn_last_error(c), "'field' is float64[60000], but in mark 3 it is "
                                                "float64[100]"));
    assert_ok(cairn_protect(c, "field", other, CAIRN_FLOAT64, 100));
    assert_ok(cairn_protect(c, "more", other, CAIRN_FLOAT64, 1));
    assert_int_equal(cairn_resume(c, NULL), CAIRN_EMISMATCH);
    assert_non_null(strstr(cairn_last_error(c), "'more' is protected, but mark 3 does not have"));
    assert_ok(cairn_release(c, "more"));
    assert_ok(cairn_release(c, "empty"));
    assert_int_equal(cairn_resume(c, NULL), CAIRN_EMISMATCH);
    assert_non_null(strstr(cairn_last_error(c), "has a variable 'empty' that is not protected"));
    assert_ok(cairn_protect(c, "empty", NULL, CAIRN_INT32, 0));
    assert_ok(cairn_resume(c, NULL));
    assert_memory_equal(other, w->field, 100 * sizeof *other);
    assert_ok(cairn_close(c));
}

static void test_changing_variables(void **state)
{
    for_all_settings(*state, changing_variables);
}

static void in_steps(world *w)
{
    cairn *c;
    double early = w->at.rank + 0.5;
    c = begin(w);
    assert_ok(cairn_protect(c, "early", &early, CAIRN_FLOAT64, 1));
    assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    assert_int_equal(cairn_capture(c, "early"), CAIRN_EINVAL);
    assert_ok(cairn_begin(c, 1, CAIRN_AUTO));
    assert_ok(cairn_capture(c, "early"));
    assert_int_equal(cairn_capture(c, "early"), CAIRN_EINVAL);
    assert_int_equal(cairn_release(c, "early"), CAIRN_EINVAL);
    early = -1; /* captured already */
    advance(w);
    assert_false(cairn_due(c));
    assert_ok(cairn_commit(c));
    assert_ok(cairn_begin(c, 2, CAIRN_AUTO));
    assert_ok(cairn_capture(c, "early"));
    assert_ok(cairn_cancel(c));
    leave_session(c);
    c = begin(w);
    assert_ok(cairn_protect(c, "early", &early, CAIRN_FLOAT64, 1));
    w->step = 0;
    assert_ok(cairn_resume(c, NULL));
    assert_true(early == w->at.rank + 0.5);
    assert_int_equal(w->step, 1);
    assert_ok(cairn_close(c));
}

static void test_in_steps(void **state)
{
    for_all_settings(*state, in_steps);
}

static void test_bad_configuration_is_refused_everywhere(void **state)
{
    world w;
    cairn *c;
    world_init(&w, *state, "[mark]\nmode = sometimes\n");
    assert_int_equal(cairn_open(w.at.mpi, w.at.config, &c), CAIRN_EINVAL);
    assert_non_null(strstr(cairn_last_error(NULL), "mode"));
    assert_null(c);
    place_done(&w.at);
    world_init(&w, *state, "[level]\npartner = 1\nnode_size = 100\n");
    assert_int_equal(cairn_open(w.at.mpi, w.at.config, &c), CAIRN_EINVAL);
    assert_non_null(strstr(cairn_last_error(NULL), "node"));
    place_done(&w.at);
    /* a demand also where it says what the default says, which alone may be relaxed */
    world_init(&w, *state, "[level]\npartner = 4\nnode_size = 100\n");
    assert_int_equal(cairn_open(w.at.mpi, w.at.config, &c), CAIRN_EINVAL);
    assert_non_null(strstr(cairn_last_error(NULL), "level 'partner' needs at least 2 nodes"));
    place_done(&w.at);
    world_init(&w, *state, "[level]\nnode_size = 100\n");
    assert_ok(cairn_open(w.at.mpi, w.at.config, &c));
    assert_ok(cairn_close(c));
    place_done(&w.at);
}

/* A place that cannot be used is told of before the program has computed for an hour. */
static void test_unusable_storage_is_refused_at_once(void **state)
{
    world w;
    cairn *c;
    world_init(&w, *state, "[level]\nlocal = /dev/null/node\n");
    assert_true(cairn_open(w.at.mpi, w.at.config, &c) < 0);
    assert_non_null(strstr(cairn_last_error(NULL), "level.local"));
    place_done(&w.at);
}

static void test_ranks_must_mark_the_same(void **state)
{
    world w;
    cairn *c;
    world_init(&w, *state, settings[2]);
    if (crn_comm_size(w.at.comm) > 1) {
        const cairn_level level = w.at.rank == 0 ? CAIRN_LEVEL_GLOBAL : CAIRN_LEVEL_LOCAL;
        assert_ok(cairn_open(w.at.mpi, w.at.config, &c));
        protect(&w, c);
        assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
        assert_int_equal(cairn_mark(c, (uint64_t)w.at.rank, CAIRN_AUTO), CAIRN_EINVAL);
        assert_non_null(strstr(cairn_last_error(c), "different versions, from 0 to"));
        assert_int_equal(cairn_mark(c, 1, level), CAIRN_EINVAL);
        assert_non_null(strstr(cairn_last_error(c), "different levels"));
        assert_ok(cairn_mark(c, 1, CAIRN_AUTO));
        assert_ok(cairn_close(c));
    }
    place_done(&w.at);
}

static void test_second_program_is_refused(void **state)
{
    world w;
    cairn *c, *other;
    world_init(&w, *state, settings[2]);
    assert_ok(cairn_open(w.at.mpi, w.at.config, &c));
    assert_int_equal(cairn_open(w.at.mpi, w.at.config, &other), CAIRN_EBUSY);
    assert_non_null(strstr(cairn_last_error(NULL), "is being written by process"));
    assert_ok(cairn_close(c));
    place_done(&w.at);
}

static void test_declarations_are_checked(void **state)
{
    world w;
    cairn *c;
    uint64_t n = 4, off = 2, count = 3;
    world_init(&w, *state, settings[2]);
    assert_ok(cairn_open(w.at.mpi, w.at.config, &c));
    assert_int_equal(cairn_protect(c, "x", w.field, 99, 1), CAIRN_EINVAL);
    assert_non_null(strstr(cairn_last_error(c), "there is no type 99"));
    assert_int_equal(cairn_protect(c, "x", NULL, CAIRN_INT8, 1), CAIRN_EINVAL);
    assert_int_equal(cairn_protect(c, "x", w.field, CAIRN_INT64, SIZE_MAX), CAIRN_EINVAL);
    assert_int_equal(cairn_protect_part(c, "x", w.field, CAIRN_INT64, 1, &n, &off, &count),
                     CAIRN_EINVAL);
    assert_non_null(strstr(cairn_last_error(c), "does not fit"));
    assert_ok(cairn_close(c));
    place_done(&w.at);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_come_back),
        cmocka_unit_test(test_older_mark),
        cmocka_unit_test(test_file_from_an_abandoned_future_is_not_used),
        cmocka_unit_test(test_safer_mark_outlives_local_ones),
        cmocka_unit_test(test_removed_files_are_made_anew),
        cmocka_unit_test(test_give_up_and_return),
        cmocka_unit_test(test_changing_variables),
        cmocka_unit_test(test_in_steps),
        cmocka_unit_test(test_bad_configuration_is_refused_everywhere),
        cmocka_unit_test(test_unusable_storage_is_refused_at_once),
        cmocka_unit_test(test_ranks_must_mark_the_same),
        cmocka_unit_test(test_second_program_is_refused),
        cmocka_unit_test(test_declarations_are_checked),
    };
    return run_mpi_tests(argc, argv, tests);
}
