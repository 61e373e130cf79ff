/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is left of a run afterwards, on one process or several, each a virtual node: node-local
 * files of a finished run go, a manifest that was lost is made again, and what is said of it.
 *
 * TEST: ranks self 2 4
 *
 * NEEDS: isal
 */
#include "harness/session.h"

#include <glob.h>

#include "io/io_fault.h"
#include "store/store.h"

enum { CELLS = 4000 };

static uint64_t field[CELLS];

/* A place with node-local storage below it. */
static void set_up(place *p, crn_comm *comm, const char *settings)
{
    place_init(p, comm, "");
    if (p->rank == 0) {
        FILE *f = fopen(p->config, "a");
        assert_non_null(f);
        fprintf(f, "[level]\nlocal = %s/local\nnode_size = 1\n%s", p->dir, settings);
        fclose(f);
    }
    assert_ok(crn_comm_barrier(comm));
}

/* Let rank 0 run a command in the place for all. */
static void run_in(place *p, const char *command)
{
    char line[512];
    assert_ok(crn_comm_barrier(p->comm));
    snprintf(line, sizeof line, "cd %s && %s", p->dir, command);
    if (p->rank == 0)
        assert_int_equal(system(line), 0);
    assert_ok(crn_comm_barrier(p->comm));
}

static cairn *open_at(place *p)
{
    cairn *c;
    assert_ok(cairn_open(p->mpi, p->config, &c));
    assert_ok(cairn_protect(c, "field", field, CAIRN_UINT64, CELLS));
    return c;
}

static void mark(place *p, cairn *c, uint64_t version, cairn_level level)
{
    for (size_t i = 0; i < CELLS; i++)
        field[i] = version * 100 + (uint64_t)p->rank;
    assert_ok(cairn_mark(c, version, level));
    assert_ok(cairn_settle(c));
}

static void come_back(place *p, uint64_t wanted)
{
    uint64_t version = 0;
    cairn *c = open_at(p);
    memset(field, 0, sizeof field);
    assert_ok(cairn_resume(c, &version));
    assert_int_equal(version, wanted);
    for (size_t i = 0; i < CELLS; i++)
        assert_int_equal(field[i], wanted * 100 + (uint64_t)p->rank);
    leave_session(c);
}

#define NO_FILES   "test -z \"$(find local -type f)\""
#define SOME_FILES "test -n \"$(find local -name 'own-*')\""

/* A run that takes these marks, with the level of the last one, and comes to its end. */
static void finish(place *p, uint64_t nmarks, cairn_level last)
{
    cairn *c = open_at(p);
    assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    for (uint64_t v = 1; v <= nmarks; v++)
        mark(p, c, v, v == nmarks ? last : CAIRN_LEVEL_LOCAL);
    assert_ok(cairn_close(c));
}

static size_t count_marks(place *p)
{
    char path[96];
    cairn_trail *t;
    cairn_run_info run = {.struct_bytes = sizeof run};
    snprintf(path, sizeof path, "%s/trail", p->dir);
    assert_ok(cairn_trail_open(path, &t));
    assert_ok(cairn_trail_run(t, 0, &run));
    assert_true(run.finished);
    cairn_trail_close(t);
    return run.nmarks;
}

static void test_a_finished_run_leaves_its_nodes(void **state)
{
    place p;
    set_up(&p, *state, "");
    finish(&p, 3, CAIRN_LEVEL_GLOBAL);
    run_in(&p, NO_FILES);
    assert_int_equal(count_marks(&p), 1); /* and the manifest names none that is gone */
    place_done(&p);
}

static void test_a_finished_run_keeps_what_is_nowhere_else(void **state)
{
    place p;
    cairn_prune_result done = {.struct_bytes = sizeof done};
    cairn_prune_options how = {.struct_bytes = sizeof how, .keep = 1, .local = true};
    set_up(&p, *state, "[run]\nname = r\n");
    finish(&p, 3, CAIRN_LEVEL_LOCAL);
    run_in(&p, SOME_FILES);
    assert_int_equal(count_marks(&p), 2);
    assert_int_equal(cairn_prune(p.mpi, p.config, &how, &done), CAIRN_EINVAL);
    assert_non_null(strstr(cairn_error_text(), "is on the nodes only"));
    run_in(&p, SOME_FILES);
    /* all ranks together, each for its node */
    how.keep = 0;
    assert_ok(cairn_prune(p.mpi, p.config, &how, &done));
    assert_int_equal(done.nmarks, 2);
    assert_int_equal(done.nfiles, p.nranks);
    run_in(&p, NO_FILES);
    assert_int_equal(count_marks(&p), 0);
    place_done(&p);
}

static void test_all_marks_means_all(void **state)
{
    place p;
    set_up(&p, *state, "[keep]\nlocal = all\n");
    finish(&p, 3, CAIRN_LEVEL_GLOBAL);
    run_in(&p, SOME_FILES);
    assert_int_equal(count_marks(&p), 3);
    place_done(&p);
}

/* Nothing goes before the manifest says that the run has come to its end. */
static void test_files_stay_when_the_manifest_fails(void **state)
{
    place p;
    const crn_fault fault = {CRN_FAULT_RENAME, CRN_FAULT_EIO, 1, 1};
    set_up(&p, *state, "");
    cairn *c = open_at(&p);
    assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    mark(&p, c, 1, CAIRN_LEVEL_GLOBAL);
    if (p.rank == 0)
        crn_fault_arm(&fault);
    assert_int_equal(cairn_close(c), CAIRN_EIO);
    crn_fault_arm(NULL);
    run_in(&p, SOME_FILES);
    come_back(&p, 1);
    place_done(&p);
}

/* --- a manifest that was lost ----------------------------------------------------------------- */

/* Marks of these levels, then the run is left to be resumed. */
static void take_marks(place *p, const cairn_level *level, uint64_t n)
{
    cairn *c = open_at(p);
    assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    for (uint64_t v = 1; v <= n; v++)
        mark(p, c, v, level[v - 1]);
    leave_session(c);
}

static void test_lost_manifest_is_made_again(void **state)
{
    static const cairn_level level[] = {CAIRN_LEVEL_LOCAL, CAIRN_LEVEL_GLOBAL, CAIRN_LEVEL_LOCAL};
    place p;
    set_up(&p, *state, "");
    take_marks(&p, level, 1); /* the nodes have it only */
    run_in(&p, "rm trail/run-1/manifest");
    come_back(&p, 1);
    run_in(&p, "test -e trail/run-1/manifest && test ! -e trail/run-2");
    place_done(&p);
    set_up(&p, *state, "");
    take_marks(&p, level, 3); /* the trail has an older one */
    run_in(&p, ": > trail/run-1/manifest");
    come_back(&p, 3);
    run_in(&p, "rm -rf local");
    come_back(&p, 2);
    place_done(&p);
}

/* Marks that were abandoned for others of the same versions do not come back. */
static void test_abandoned_marks_stay_so(void **state)
{
    static const cairn_level level[] = {CAIRN_LEVEL_LOCAL, CAIRN_LEVEL_LOCAL, CAIRN_LEVEL_LOCAL};
    place p;
    uint64_t version;
    set_up(&p, *state, "[keep]\nlocal = 3\n");
    take_marks(&p, level, 3);
    cairn *c = open_at(&p);
    assert_ok(cairn_resume_at(c, 1));
    mark(&p, c, 2, CAIRN_LEVEL_LOCAL);
    leave_session(c);
    run_in(&p, "rm trail/run-1/manifest");
    c = open_at(&p);
    assert_ok(cairn_resume(c, &version));
    assert_int_equal(version, 2);
    assert_int_equal(cairn_resume_at(c, 3), CAIRN_ENOTFOUND);
    leave_session(c);
    place_done(&p);
}

/* Together with a node: partners tell of its marks. */
static void test_lost_manifest_and_lost_node(void **state)
{
    static const cairn_level level[] = {CAIRN_LEVEL_PARTNER, CAIRN_LEVEL_LOCAL};
    place p;
    if (crn_comm_size(*state) < 2)
        skip();
    set_up(&p, *state, "");
    take_marks(&p, level, 2);
    run_in(&p, "rm -r trail/run-1/manifest local/node-0");
    come_back(&p, 1);
    place_done(&p);
}

/* What cannot be made again is said; nobody begins anew without a word. */
static void test_lost_marks_are_said(void **state)
{
    static const cairn_level level[] = {CAIRN_LEVEL_LOCAL};
    place p;
    cairn *c;
    set_up(&p, *state, "");
    take_marks(&p, level, 1);
    run_in(&p, "rm -r trail/run-1/manifest && mv local away");
    assert_refused(NULL, cairn_open(p.mpi, p.config, &c), CAIRN_ENOTFOUND,
                   "run 'run-1' has lost its manifest, and none of its marks is whole");
    run_in(&p, "rm -rf local && mv away local && test ! -e trail/run-2");
    come_back(&p, 1);
    run_in(&p, "rm trail/run-1/manifest && echo '{\"event\":\"mark\"}' > trail/run-1/events");
    assert_refused(NULL, cairn_open(p.mpi, p.config, &c), CAIRN_ECORRUPT,
                   "neither a part file nor its log tells which files on the nodes are its own");
    place_done(&p);
}

/* A run that came to its end does not go on because its manifest is gone. */
static void test_a_finished_run_stays_so(void **state)
{
    place p;
    set_up(&p, *state, "");
    finish(&p, 1, CAIRN_LEVEL_GLOBAL);
    run_in(&p, "rm trail/run-1/manifest");
    cairn *c = open_at(&p);
    assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    assert_ok(cairn_close(c));
    run_in(&p, "test -e trail/run-2");
    place_done(&p);
}

/* --- what is retained ------------------------------------------------------------------------- */

/* Marks that each of the part files has whose names match a pattern. */
static void expect_marks(place *p, const char *pattern, size_t nfiles, size_t nmarks)
{
    const crn_part_options opt = {CRN_IO_THREADS, 1, false};
    char path[192];
    glob_t found;
    snprintf(path, sizeof path, "%s/%s", p->dir, pattern);
    const int rc = glob(path, 0, NULL, &found);
    assert_int_equal(rc, nfiles > 0 ? 0 : GLOB_NOMATCH);
    assert_int_equal(found.gl_pathc, nfiles);
    for (size_t i = 0; i < nfiles; i++) {
        crn_part *part;
        crn_part_info info;
        assert_ok(crn_part_open(AT_FDCWD, found.gl_pathv[i], NULL, false, &opt, &part));
        crn_part_describe(part, &info);
        assert_int_equal(info.nmarks, nmarks);
        crn_part_close(part);
    }
    globfree(&found);
}

/* Every level keeps what it was told to, and no more. */
static void test_older_marks_are_dropped_at_each_level(void **state)
{
    static const cairn_level level[] = {CAIRN_LEVEL_PARTNER, CAIRN_LEVEL_ENCODED,
                                        CAIRN_LEVEL_GLOBAL};
    place p;
    const size_t n = (size_t)crn_comm_size(*state);
    set_up(&p, *state, "group = 2\n[keep]\nlocal = 2\npartner = 1\nencoded = 2\nglobal = 3\n");
    cairn *c = open_at(&p);
    assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    for (uint64_t v = 1; v <= 12; v++)
        mark(&p, c, v, n > 1 ? level[v % 3] : CAIRN_LEVEL_GLOBAL);
    assert_ok(crn_comm_barrier(p.comm));
    expect_marks(&p, "local/node-*/*/series-1/partner-*", n > 1 ? n : 0, 1);
    expect_marks(&p, "local/node-*/*/series-1/parity-*", n > 1 ? n : 0, 2);
    expect_marks(&p, "trail/run-1/series-1/000/part-*", n, 3);
    /* 12, which a partner has, and 11; and 10 and 7 for as long as there is parity of them, which
     * is of no use without the own parts */
    expect_marks(&p, "local/node-*/*/series-1/own-*", n, n > 1 ? 4 : 2);
    assert_ok(crn_comm_barrier(p.comm));
    leave_session(c);
    place_done(&p);
}

/* --- what background work has to say ---------------------------------------------------------- */

/* A mark that fails in the background, since the last rank can write nothing; then call must tell
 * of it on all ranks, and do its work when it is called again. */
static void expect_told_by(crn_comm *comm, crn_fault_how how, cairn_status code,
                           int (*call)(cairn *c))
{
    const crn_fault fault = {CRN_FAULT_WRITE, how, 1, 0};
    place p;
    set_up(&p, comm, "");
    cairn *c = open_at(&p);
    assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    mark(&p, c, 1, CAIRN_LEVEL_LOCAL);
    if (p.rank == p.nranks - 1)
        crn_fault_arm(&fault);
    assert_ok(cairn_mark(c, 2, CAIRN_LEVEL_LOCAL));
    assert_refused(c, call(c), code, "mark 2, level local: ");
    crn_fault_arm(NULL);
    assert_ok(call(c));
    assert_ok(cairn_settle(c)); /* it was said once */
    leave_session(c);
    place_done(&p);
}

static int begin_and_commit(cairn *c)
{
    const int rc = cairn_begin(c, 3, CAIRN_LEVEL_LOCAL);
    return rc < 0 ? rc : cairn_commit(c);
}

static int resume(cairn *c)
{
    return cairn_resume(c, NULL);
}

static int probe(cairn *c)
{
    return cairn_probe(c, NULL);
}

static int probe_count(cairn *c)
{
    size_t n;
    return cairn_probe_count(c, "field", &n);
}

static void test_background_errors_are_told_by_the_next_call(void **state)
{
    expect_told_by(*state, CRN_FAULT_EIO, CAIRN_EIO, begin_and_commit);
    expect_told_by(*state, CRN_FAULT_EIO, CAIRN_EIO, resume);
    expect_told_by(*state, CRN_FAULT_EIO, CAIRN_EIO, probe);
    expect_told_by(*state, CRN_FAULT_EIO, CAIRN_EIO, probe_count);
    expect_told_by(*state, CRN_FAULT_ENOSPC, CAIRN_ENOSPC, cairn_settle);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_finished_run_leaves_its_nodes),
        cmocka_unit_test(test_a_finished_run_keeps_what_is_nowhere_else),
        cmocka_unit_test(test_all_marks_means_all),
        cmocka_unit_test(test_files_stay_when_the_manifest_fails),
        cmocka_unit_test(test_lost_manifest_is_made_again),
        cmocka_unit_test(test_abandoned_marks_stay_so),
        cmocka_unit_test(test_lost_manifest_and_lost_node),
        cmocka_unit_test(test_lost_marks_are_said),
        cmocka_unit_test(test_a_finished_run_stays_so),
        cmocka_unit_test(test_older_marks_are_dropped_at_each_level),
        cmocka_unit_test(test_background_errors_are_told_by_the_next_call),
    };
    return run_mpi_tests(argc, argv, tests);
}
