/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Legs that are killed between a mark and the manifest that would count it, and what the next ones,
 * 'cairn prune' and 'cairn drain' make of that: a mark that counts is never lost to one that does
 * not. Each leg is a process of its own.
 *
 * TEST: ranks self
 * NEEDS: inih
 */
#include "harness/mpi.h"

#include <signal.h>
#include <sys/wait.h>

#include <cairn/cairn.h>

#include "io/io_fault.h"

enum { CELLS = 4000 };

static char dir[64], config[96], trail[96];

static void set_up(const char *settings)
{
    make_scratch(dir, sizeof dir, "legs");
    snprintf(config, sizeof config, "%s/cairn.ini", dir);
    snprintf(trail, sizeof trail, "%s/trail", dir);
    FILE *f = fopen(config, "w");
    assert_non_null(f);
    fprintf(f, "[run]\ntrail = %s\n[level]\nlocal = %s/local\n%s", trail, dir, settings);
    fclose(f);
}

static void run_in_dir(const char *command)
{
    char line[256];
    snprintf(line, sizeof line, "cd %s && %s", dir, command);
    assert_int_equal(system(line), 0);
}

/* What a leg does: comes back, to one version if that is not 0, takes marks, and dies or leaves. */
typedef struct leg {
    int dies; /* stages that it enters before it is killed, 0: it dies after its marks */
    crn_stage stage;
    bool at_operation; /* of files, instead of stages, in its marks */
    uint64_t at;
    uint64_t mark[4];
    cairn_level level;
    uint64_t more;  /* what its marks hold is so much more than their versions */
    uint64_t still; /* protects a second variable that never changes */
} leg;

static _Noreturn void be_leg(const leg *l)
{
    static uint64_t field[CELLS], still[CELLS];
    cairn *c;
    const crn_fault death = {.where = l->at_operation ? CRN_FAULT_ANY : CRN_FAULT_STAGES + l->stage,
                             .how = CRN_FAULT_KILL,
                             .at = (uint64_t)l->dies,
                             .count = 1};
    if (!l->at_operation)
        crn_fault_arm(&death);
    if (cairn_open(MPI_COMM_SELF, config, &c) < 0 ||
        cairn_protect(c, "field", field, CAIRN_UINT64, CELLS) < 0 ||
        (l->still && cairn_protect(c, "still", still, CAIRN_UINT64, CELLS) < 0))
        _exit(2);
    const int rc = l->at > 0 ? cairn_resume_at(c, l->at) : cairn_resume(c, NULL);
    if (rc < 0 && rc != CAIRN_ENOTFOUND)
        _exit(5);
    if (l->at_operation)
        crn_fault_arm(&death);
    for (size_t i = 0; i < 4 && l->mark[i] > 0; i++) {
        for (size_t k = 0; k < CELLS; k++)
            field[k] = l->mark[i] + l->more;
        if (cairn_mark(c, l->mark[i], l->level) < 0 || cairn_settle(c) < 0)
            _exit(3);
    }
    if (l->at_operation && crn_fault_seen() < (uint64_t)l->dies)
        _exit(0); /* there is no such operation */
    kill(getpid(), SIGKILL);
    _exit(4);
}

/* False: it came to its end instead. */
static bool run_and_kill(leg l)
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        be_leg(&l);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return false;
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return true;
}

static void run_leg(leg l)
{
    assert_true(run_and_kill(l));
}

/* Everything that the manifest says of the trail is true, of each version once. */
static void expect_sound(void)
{
    cairn_trail *t;
    uint64_t before = 0;
    cairn_run_info run = {.struct_bytes = sizeof run};
    assert_ok(cairn_trail_open(trail, &t));
    assert_ok(cairn_trail_run(t, 0, &run));
    for (size_t i = 0; i < run.nmarks; i++) {
        cairn_mark_info mark = {.struct_bytes = sizeof mark};
        cairn_part_info part = {.struct_bytes = sizeof part};
        assert_ok(cairn_trail_mark(t, 0, i, &mark));
        assert_true(mark.version > before);
        before = mark.version;
        if (mark.levels & 1 << 3)
            assert_ok(cairn_trail_part(t, 0, i, 0, &part));
    }
    cairn_trail_close(t);
}

static void expect_version_from(uint64_t wanted, uint64_t or_later)
{
    static uint64_t field[CELLS];
    cairn *c;
    uint64_t version = 0;
    assert_ok(cairn_open(MPI_COMM_SELF, config, &c));
    assert_ok(cairn_protect(c, "field", field, CAIRN_UINT64, CELLS));
    assert_ok(cairn_resume(c, &version));
    assert_in_range(version, wanted, or_later);
    for (size_t k = 0; k < CELLS; k++)
        assert_int_equal(field[k], version);
    assert_int_equal(raise(SIGUSR1), 0);
    assert_true(cairn_should_stop(c));
    assert_ok(cairn_close(c));
}

static void expect_version(uint64_t wanted)
{
    expect_version_from(wanted, wanted);
}

#define GLOBAL_MARK .level = CAIRN_LEVEL_GLOBAL
/* The second manifest is that of the level above local. */
#define BEFORE_MANIFEST .dies = 2, .stage = CRN_STAGE_COMMIT
#define IN_CAPTURE      .dies = 1, .stage = CRN_STAGE_CAPTURE

static void test_uncounted_copies_push_out_nothing(void **state)
{
    (void)state;
    set_up("[keep]\nglobal = 1\n");
    run_leg((leg){.mark = {8}, GLOBAL_MARK});
    run_leg((leg){BEFORE_MANIFEST, .mark = {12}, GLOBAL_MARK});
    run_leg((leg){BEFORE_MANIFEST, .mark = {16}, GLOBAL_MARK});
    expect_sound();
    run_in_dir("rm -rf local");
    expect_version(8);
    remove_tree(dir);
}

static void test_the_next_mark_keeps_the_manifest_true(void **state)
{
    (void)state;
    set_up("[keep]\nglobal = 2\n");
    run_leg((leg){.mark = {1}, GLOBAL_MARK});
    run_leg((leg){BEFORE_MANIFEST, .mark = {2}, GLOBAL_MARK});
    run_leg((leg){.mark = {3}, GLOBAL_MARK});
    expect_sound();
    remove_tree(dir);
}

static void test_prune_keeps_what_counts(void **state)
{
    (void)state;
    cairn_prune_options how = {.struct_bytes = sizeof how, .keep = 1};
    set_up("");
    run_leg((leg){.mark = {1}, GLOBAL_MARK});
    run_leg((leg){BEFORE_MANIFEST, .mark = {2}, GLOBAL_MARK});
    assert_ok(cairn_prune(MPI_COMM_SELF, config, &how, NULL));
    run_in_dir("rm -rf local");
    expect_version(1);
    remove_tree(dir);
}

static void test_drain_passes_what_does_not_count(void **state)
{
    (void)state;
    cairn_drain_result drained = {.struct_bytes = sizeof drained};
    set_up("");
    run_leg((leg){.mark = {1}, .level = CAIRN_LEVEL_LOCAL});
    run_leg((leg){BEFORE_MANIFEST, .mark = {2}, GLOBAL_MARK});
    run_leg((leg){.at = 1, .mark = {3}, .level = CAIRN_LEVEL_LOCAL});
    assert_ok(cairn_drain(MPI_COMM_SELF, config, &drained));
    run_in_dir("rm -rf local");
    expect_version(3);
    remove_tree(dir);
}

/* A mark that never came to be has abandoned nothing. */
static void test_a_failed_mark_harms_no_other(void **state)
{
    (void)state;
    set_up("[keep]\nlocal = 3\n");
    run_leg((leg){.mark = {1, 2}, .level = CAIRN_LEVEL_LOCAL});
    run_in_dir("mv local away");
    run_leg((leg){IN_CAPTURE, .mark = {3}, .level = CAIRN_LEVEL_LOCAL});
    run_in_dir("rm -rf local && mv away local");
    expect_version(2);
    run_leg((leg){IN_CAPTURE, .at = 1, .mark = {2}, .level = CAIRN_LEVEL_LOCAL});
    expect_version(2);
    run_leg((leg){.at = 1, .mark = {2, 3}, .level = CAIRN_LEVEL_LOCAL});
    expect_version(3);
    remove_tree(dir);
}

/* Whoever leaves does not know whether the next job gets the same nodes. */
static void test_leaving_at_once_brings_the_mark_to_the_trail(void **state)
{
    (void)state;
    static uint64_t field[CELLS];
    cairn *c;
    set_up("");
    run_leg((leg){.mark = {1, 2}, .level = CAIRN_LEVEL_LOCAL});
    assert_ok(cairn_open(MPI_COMM_SELF, config, &c));
    assert_ok(cairn_protect(c, "field", field, CAIRN_UINT64, CELLS));
    assert_ok(cairn_resume(c, NULL));
    assert_int_equal(raise(SIGUSR1), 0);
    assert_true(cairn_should_stop(c));
    assert_true(cairn_due(c));
    assert_int_equal(cairn_mark(c, 2, CAIRN_AUTO), CAIRN_NOTHING);
    assert_false(cairn_due(c));
    assert_ok(cairn_close(c));
    run_in_dir("rm -rf local");
    expect_version(2);
    remove_tree(dir);
}

static void leave_at(uint64_t version, int expected)
{
    static uint64_t field[CELLS];
    cairn *c;
    assert_ok(cairn_open(MPI_COMM_SELF, config, &c));
    assert_ok(cairn_protect(c, "field", field, CAIRN_UINT64, CELLS));
    assert_ok(cairn_resume_at(c, version));
    assert_int_equal(field[CELLS - 1], version);
    assert_int_equal(raise(SIGUSR1), 0);
    assert_true(cairn_should_stop(c));
    assert_int_equal(cairn_mark(c, version, CAIRN_AUTO), expected);
    assert_ok(cairn_close(c));
}

/* So it is with an older mark that this leg chose: later ones make way for it, on the nodes and in
 * the trail. */
static void test_leaving_at_once_with_an_older_mark(void **state)
{
    (void)state;
    const cairn_level later[] = {CAIRN_LEVEL_LOCAL, CAIRN_LEVEL_GLOBAL};
    for (size_t i = 0; i < 4; i++) {
        set_up("[keep]\nlocal = 3\n");
        run_leg((leg){.mark = {1, 2}, .level = CAIRN_LEVEL_LOCAL});
        run_leg((leg){.mark = {3}, .level = later[i % 2]});
        leave_at(2, CAIRN_OK);
        if (i >= 2)
            run_in_dir("rm -rf local");
        expect_version(2);
        expect_sound();
        leave_at(2, CAIRN_NOTHING); /* it is the last one now */
        run_leg((leg){.mark = {3}, .level = CAIRN_LEVEL_LOCAL});
        expect_version(3);
        remove_tree(dir);
    }
}

/* But not because later ones could not be produced for a while. */
static void test_leaving_at_once_without_the_nodes(void **state)
{
    (void)state;
    set_up("");
    run_leg((leg){.mark = {1}, GLOBAL_MARK});
    run_leg((leg){.mark = {2}, .level = CAIRN_LEVEL_LOCAL});
    run_in_dir("mv local away");
    leave_at(1, CAIRN_NOTHING);
    run_in_dir("rm -rf local && mv away local");
    expect_version(2);
    remove_tree(dir);
}

/* An old mark that is damaged hides no newer one, and a refusal tells of the newest. */
static void test_refusals_tell_of_the_newest(void **state)
{
    (void)state;
    static uint64_t field[CELLS];
    cairn *c;
    uint64_t version;
    set_up("[keep]\nlocal = 3\n");
    run_leg((leg){.mark = {1, 2, 3}, .level = CAIRN_LEVEL_LOCAL});
    run_in_dir("for f in $(find local -name own-0); do printf x | dd of=$f bs=1 seek=9000 "
               "conv=notrunc 2>/dev/null; done");
    assert_ok(cairn_open(MPI_COMM_SELF, config, &c));
    assert_ok(cairn_protect(c, "field", field, CAIRN_UINT64, CELLS));
    assert_int_equal(cairn_resume_at(c, 1), CAIRN_ENOTFOUND);
    assert_ok(cairn_probe(c, &version));
    assert_int_equal(version, 3);
    assert_ok(cairn_close(c));
    run_in_dir("rm -rf local");
    assert_ok(cairn_open(MPI_COMM_SELF, config, &c));
    assert_ok(cairn_protect(c, "field", field, CAIRN_UINT64, CELLS));
    assert_int_equal(cairn_resume(c, NULL), CAIRN_ENOTFOUND);
    assert_non_null(
        strstr(cairn_last_error(c), "none of 3 marks can be produced; the newest: mark 3"));
    assert_ok(cairn_close(c));
    remove_tree(dir);
}

/* Levels are counted over legs: a program that dies often needs them most. */
static void test_levels_are_counted_over_legs(void **state)
{
    (void)state;
    set_up("global = 4\n");
    for (uint64_t v = 1; v <= 4; v++)
        run_leg((leg){.mark = {v}});
    run_in_dir("rm -rf local");
    expect_version(4);
    remove_tree(dir);
}

/* Killed at any operation on files of a mark, the manifest is true all the same: what it says of
 * the trail, the trail has. */
static void test_the_manifest_is_true_at_any_time(void **state)
{
    (void)state;
    bool killed = true;
    for (int n = 1; killed; n++) {
        set_up("[compare]\ntrees = no\n");
        run_leg((leg){.mark = {1}, GLOBAL_MARK});
        killed = run_and_kill((leg){.dies = n, .at_operation = true, .mark = {2}, GLOBAL_MARK});
        expect_sound();
        expect_version_from(1, 2);
        run_in_dir("rm -rf local");
        expect_version_from(1, 2);
        remove_tree(dir);
    }
}

/* A node comes back with a mark that was never counted; one of the same version was, meanwhile. */
static void test_a_mark_that_never_counted_is_not_used(void **state)
{
    (void)state;
    set_up("[keep]\nlocal = 3\n");
    run_leg((leg){.mark = {1}, .level = CAIRN_LEVEL_LOCAL});
    run_leg((leg){.dies = 1,
                  .stage = CRN_STAGE_COMMIT,
                  .mark = {2},
                  .level = CAIRN_LEVEL_LOCAL,
                  .more = 7000});
    run_in_dir("cp -r local stale");
    run_leg((leg){.mark = {2}, .level = CAIRN_LEVEL_LOCAL});
    expect_version(2);
    run_in_dir("rm -rf local && mv stale local");
    expect_version(1);
    remove_tree(dir);
}

/* Directories of a node that were made, and not made to last yet. */
enum { PENDING_MAX = 64 };
static ino_t pending[PENDING_MAX];
static size_t npending;
static unsigned nmade, nbroken;

static bool is_local(int fd)
{
    char link[64], path[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return readlink(link, path, sizeof path - 1) > 0 && strstr(path, "/local") != NULL;
}

static void watch_directories(void *arg, const crn_fault_event *e)
{
    struct stat st;
    (void)arg;
    if (e->kind == CRN_SEEN_RENAME && strcmp(e->to, "manifest") == 0)
        nbroken += npending > 0;
    if (e->dirfd < 0 || !is_local(e->dirfd) || fstat(e->dirfd, &st) != 0)
        return;
    if (e->kind == CRN_SEEN_MKDIR && faccessat(e->dirfd, e->name, F_OK, 0) != 0 &&
        npending < PENDING_MAX) {
        pending[npending++] = st.st_ino;
        nmade++;
    }
    for (size_t i = npending; e->kind == CRN_SEEN_DIRSYNC && i-- > 0;)
        if (pending[i] == st.st_ino)
            pending[i] = pending[--npending];
}

/* What is on the node lasts before the manifest says so. */
static void test_directories_last_before_the_mark_counts(void **state)
{
    (void)state;
    static uint64_t field[CELLS];
    cairn *c;
    set_up("node_size = 1\n[mark]\nmode = synchronous\n[compare]\ntrees = no\n");
    npending = nmade = nbroken = 0;
    crn_fault_watch(watch_directories, NULL);
    assert_ok(cairn_open(MPI_COMM_SELF, config, &c));
    assert_ok(cairn_protect(c, "field", field, CAIRN_UINT64, CELLS));
    assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    assert_ok(cairn_mark(c, 1, CAIRN_LEVEL_LOCAL));
    assert_ok(cairn_close(c));
    crn_fault_watch(NULL, NULL);
    assert_true(nmade >= 3); /* the node's, the run's, the series' */
    assert_int_equal(nbroken, 0);
    remove_tree(dir);
}

/* Both variables come back from this mark, which then stays the newest. */
static void expect_both(uint64_t wanted)
{
    static uint64_t field[CELLS], still[CELLS];
    cairn *c;
    uint64_t version = 0;
    assert_ok(cairn_open(MPI_COMM_SELF, config, &c));
    assert_ok(cairn_protect(c, "field", field, CAIRN_UINT64, CELLS));
    assert_ok(cairn_protect(c, "still", still, CAIRN_UINT64, CELLS));
    assert_ok(cairn_resume(c, &version));
    assert_int_equal(version, wanted);
    assert_int_equal(raise(SIGUSR1), 0);
    assert_true(cairn_should_stop(c));
    assert_ok(cairn_close(c));
}

/* What resume found damaged must not be inherited by the marks that follow. */
static void test_damage_is_healed(void **state)
{
    (void)state;
    set_up("");
    run_leg((leg){.mark = {1}, GLOBAL_MARK, .still = 1});
    run_in_dir("for f in $(find local -name own-0); do printf x | dd of=$f bs=1 seek=45000 "
               "conv=notrunc 2>/dev/null; done");
    run_leg((leg){.mark = {2}, .level = CAIRN_LEVEL_LOCAL, .still = 1});
    expect_both(2); /* before a mark that abandons it could hide that it is lost */
    run_leg((leg){.mark = {3}, .level = CAIRN_LEVEL_LOCAL, .still = 1});
    expect_both(3);
    remove_tree(dir);
}

/* A leg with a child that outlives it: the child is told of through told, and ends when *wait does.
 */
static _Noreturn void be_parent(int told, int wait)
{
    static uint64_t field[CELLS];
    cairn *c;
    char byte = 0;
    if (cairn_open(MPI_COMM_SELF, config, &c) < 0 ||
        cairn_protect(c, "field", field, CAIRN_UINT64, CELLS) < 0 || cairn_resume(c, NULL) < 0 ||
        cairn_mark(c, 1, CAIRN_LEVEL_GLOBAL) < 0 || cairn_settle(c) < 0)
        _exit(2);
    if (fork() == 0) {
        if (write(told, &byte, 1) == 1)
            (void)!read(wait, &byte, 1);
        _exit(0);
    }
    for (;;)
        pause();
}

/* A child of fork has copies of all that its parent had open; the lock is not among them. */
static void test_the_lock_dies_with_its_process(void **state)
{
    (void)state;
    int told[2], wait[2], status;
    char byte;
    cairn *c;
    static uint64_t field[CELLS];
    set_up("");
    assert_int_equal(pipe(told) + pipe(wait), 0);
    pid_t parent = fork();
    assert_true(parent >= 0);
    if (parent == 0) {
        close(wait[1]);
        be_parent(told[1], wait[0]);
    }
    close(told[1]);
    assert_int_equal(read(told[0], &byte, 1), 1);
    assert_int_equal(cairn_open(MPI_COMM_SELF, config, &c), CAIRN_EBUSY);
    assert_int_equal(kill(parent, SIGKILL), 0);
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_ok(cairn_open(MPI_COMM_SELF, config, &c));
    assert_ok(cairn_protect(c, "field", field, CAIRN_UINT64, CELLS));
    assert_ok(cairn_resume(c, NULL));
    assert_ok(cairn_mark(c, 2, CAIRN_LEVEL_GLOBAL)); /* parts have locks, too */
    assert_ok(cairn_close(c));
    close(wait[0]);
    close(wait[1]); /* the child may go */
    close(told[0]);
    remove_tree(dir);
}

/* A leg that came back to an older mark writes to new files; the old ones go with their last mark.
 */
static void test_old_series_are_removed(void **state)
{
    (void)state;
    set_up("[keep]\nlocal = 2\nglobal = 1\n");
    run_leg((leg){.mark = {1, 2}, GLOBAL_MARK});
    run_in_dir("test -d trail/run-1/series-1 && test -n \"$(find local -name series-1)\"");
    run_leg((leg){.at = 1, .mark = {2}, GLOBAL_MARK});
    run_in_dir("test -n \"$(find local -name series-1)\""); /* mark 1 is there */
    run_leg((leg){.mark = {3}, GLOBAL_MARK});
    run_in_dir("test ! -e trail/run-1/series-1 && test -z \"$(find local -name series-1)\"");
    run_in_dir("test -d trail/run-1/series-2 && test -n \"$(find local -name series-2)\"");
    expect_sound();
    expect_version(3);
    remove_tree(dir);
}

/* A command on a machine that does not see the nodes must not forget what is on them. */
static void test_a_lost_manifest_and_a_command_elsewhere(void **state)
{
    char elsewhere[96];
    cairn_prune_options how = {.struct_bytes = sizeof how, .keep = 1};
    (void)state;
    set_up("");
    run_leg((leg){.mark = {8}, GLOBAL_MARK});
    run_leg((leg){.mark = {12}, .level = CAIRN_LEVEL_LOCAL});
    run_in_dir("rm trail/run-1/manifest");
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", dir);
    assert_int_equal(setenv("CAIRN_LEVEL_LOCAL", elsewhere, 1), 0);
    const int rc = cairn_prune(MPI_COMM_SELF, config, &how, NULL);
    assert_int_equal(unsetenv("CAIRN_LEVEL_LOCAL"), 0);
    assert_int_equal(rc, CAIRN_ENOTFOUND);
    expect_version(12);
    remove_tree(dir);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uncounted_copies_push_out_nothing),
        cmocka_unit_test(test_the_next_mark_keeps_the_manifest_true),
        cmocka_unit_test(test_prune_keeps_what_counts),
        cmocka_unit_test(test_drain_passes_what_does_not_count),
        cmocka_unit_test(test_a_failed_mark_harms_no_other),
        cmocka_unit_test(test_leaving_at_once_brings_the_mark_to_the_trail),
        cmocka_unit_test(test_leaving_at_once_with_an_older_mark),
        cmocka_unit_test(test_leaving_at_once_without_the_nodes),
        cmocka_unit_test(test_refusals_tell_of_the_newest),
        cmocka_unit_test(test_levels_are_counted_over_legs),
        cmocka_unit_test(test_the_manifest_is_true_at_any_time),
        cmocka_unit_test(test_a_mark_that_never_counted_is_not_used),
        cmocka_unit_test(test_directories_last_before_the_mark_counts),
        cmocka_unit_test(test_damage_is_healed),
        cmocka_unit_test(test_the_lock_dies_with_its_process),
        cmocka_unit_test(test_old_series_are_removed),
        cmocka_unit_test(test_a_lost_manifest_and_a_command_elsewhere),
    };
    return run_mpi_tests(argc, argv, tests);
}
