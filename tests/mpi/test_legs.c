/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Legs that are killed between a mark and the manifest that would count it, and what the next ones,
 * 'cairn prune' and 'cairn drain' make of that: a mark that counts is never lost to one that does
 * not. Each leg is a process of its own.
 *
 * TEST: ranks self
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
    uint64_t at;
    uint64_t mark[4];
    cairn_level level;
    uint64_t still; /* protects a second variable that never changes */
} leg;

static _Noreturn void be_leg(const leg *l)
{
    static uint64_t field[CELLS], still[CELLS];
    cairn *c;
    const crn_fault death = {.where = CRN_FAULT_STAGES + l->stage,
                             .how = CRN_FAULT_KILL,
                             .at = (uint64_t)l->dies,
                             .count = 1};
    crn_fault_arm(&death);
    if (cairn_open(MPI_COMM_SELF, config, &c) < 0 ||
        cairn_protect(c, "field", field, CAIRN_UINT64, CELLS) < 0 ||
        (l->still && cairn_protect(c, "still", still, CAIRN_UINT64, CELLS) < 0))
        _exit(2);
    const int rc = l->at > 0 ? cairn_resume_at(c, l->at) : cairn_resume(c, NULL);
    if (rc < 0 && rc != CAIRN_ENOTFOUND)
        _exit(5);
    for (size_t i = 0; i < 4 && l->mark[i] > 0; i++) {
        for (size_t k = 0; k < CELLS; k++)
            field[k] = l->mark[i];
        if (cairn_mark(c, l->mark[i], l->level) < 0 || cairn_settle(c) < 0)
            _exit(3);
    }
    kill(getpid(), SIGKILL);
    _exit(4);
}

static void run_leg(leg l)
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        be_leg(&l);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Everything that the manifest says of the trail is true. */
static void expect_sound(void)
{
    cairn_trail *t;
    cairn_run_info run = {.struct_bytes = sizeof run};
    assert_ok(cairn_trail_open(trail, &t));
    assert_ok(cairn_trail_run(t, 0, &run));
    for (size_t i = 0; i < run.nmarks; i++) {
        cairn_mark_info mark = {.struct_bytes = sizeof mark};
        cairn_part_info part = {.struct_bytes = sizeof part};
        assert_ok(cairn_trail_mark(t, 0, i, &mark));
        if (mark.levels & 1 << 3)
            assert_ok(cairn_trail_part(t, 0, i, 0, &part));
    }
    cairn_trail_close(t);
}

static void expect_version(uint64_t wanted)
{
    static uint64_t field[CELLS];
    cairn *c;
    uint64_t version = 0;
    assert_ok(cairn_open(MPI_COMM_SELF, config, &c));
    assert_ok(cairn_protect(c, "field", field, CAIRN_UINT64, CELLS));
    assert_ok(cairn_resume(c, &version));
    assert_int_equal(version, wanted);
    assert_int_equal(field[CELLS - 1], wanted);
    assert_int_equal(raise(SIGUSR1), 0);
    assert_true(cairn_should_stop(c));
    assert_ok(cairn_close(c));
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
    cairn_pruning how = {.struct_bytes = sizeof how, .keep = 1};
    set_up("");
    run_leg((leg){.mark = {1}, GLOBAL_MARK});
    run_leg((leg){BEFORE_MANIFEST, .mark = {2}, GLOBAL_MARK});
    assert_ok(cairn_prune(MPI_COMM_SELF, config, &how));
    run_in_dir("rm -rf local");
    expect_version(1);
    remove_tree(dir);
}

static void test_drain_passes_what_does_not_count(void **state)
{
    (void)state;
    cairn_drained drained = {.struct_bytes = sizeof drained};
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

/* What resume found damaged must not be inherited by the marks that follow. */
static void test_damage_is_healed(void **state)
{
    (void)state;
    set_up("");
    run_leg((leg){.mark = {1}, GLOBAL_MARK, .still = 1});
    run_in_dir("for f in $(find local -name own-0); do printf x | dd of=$f bs=1 seek=45000 "
               "conv=notrunc 2>/dev/null; done");
    run_leg((leg){.mark = {2}, .level = CAIRN_LEVEL_LOCAL, .still = 1});
    run_leg((leg){.mark = {3}, .level = CAIRN_LEVEL_LOCAL, .still = 1});
    cairn *c;
    static uint64_t field[CELLS], still[CELLS];
    uint64_t version;
    assert_ok(cairn_open(MPI_COMM_SELF, config, &c));
    assert_ok(cairn_protect(c, "field", field, CAIRN_UINT64, CELLS));
    assert_ok(cairn_protect(c, "still", still, CAIRN_UINT64, CELLS));
    assert_ok(cairn_resume(c, &version));
    assert_int_equal(version, 3);
    assert_ok(cairn_close(c));
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

/* Scratch directories are often links. */
static void test_local_may_be_a_link(void **state)
{
    (void)state;
    set_up("");
    run_in_dir("mkdir real && ln -s real local");
    run_leg((leg){.mark = {1}, .level = CAIRN_LEVEL_LOCAL});
    expect_version(1);
    run_in_dir("test -n \"$(find real -name own-0)\"");
    remove_tree(dir);
}

static void finish_run(void *arg, const crn_fault_event *event)
{
    char from[96], to[112];
    (void)arg;
    if (event->kind != CRN_SEEN_OPEN || strcmp(event->name, "lock") != 0)
        return;
    snprintf(from, sizeof from, "%s/finished", dir);
    snprintf(to, sizeof to, "%s/run-1/manifest", trail);
    (void)rename(from, to);
}

/* Between finding a run and locking it, its program may come to its end. */
static void test_a_run_that_ends_meanwhile_is_not_continued(void **state)
{
    (void)state;
    cairn *c;
    set_up("");
    run_leg((leg){.mark = {1}, GLOBAL_MARK});
    run_in_dir("cp trail/run-1/manifest before");
    assert_ok(cairn_open(MPI_COMM_SELF, config, &c));
    static uint64_t field[CELLS];
    assert_ok(cairn_protect(c, "field", field, CAIRN_UINT64, CELLS));
    assert_ok(cairn_resume(c, NULL));
    assert_ok(cairn_close(c));
    run_in_dir("mv trail/run-1/manifest finished && mv before trail/run-1/manifest");
    crn_fault_watch(finish_run, NULL);
    assert_ok(cairn_open(MPI_COMM_SELF, config, &c));
    crn_fault_watch(NULL, NULL);
    assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    assert_ok(cairn_close(c));
    run_in_dir("test -e trail/run-2");
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

/* What is left out by a program that did not look at the result of cairn_open. */
static void test_no_session_is_an_error(void **state)
{
    (void)state;
    uint64_t n = 1;
    size_t count;
    cairn_piece piece = {.struct_bytes = sizeof piece};
    cairn_type type;
    cairn *none = NULL;
    assert_int_equal(cairn_protect(none, "x", &n, CAIRN_UINT64, 1), CAIRN_EINVAL);
    assert_non_null(strstr(cairn_last_error(none), "cairn_protect: there is no session"));
    assert_int_equal(cairn_protect_part(none, "x", &n, CAIRN_UINT64, 1, &n, &n, &n), CAIRN_EINVAL);
    assert_int_equal(cairn_protect_piece(none, "x", &n, CAIRN_UINT64, &piece), CAIRN_EINVAL);
    assert_int_equal(cairn_protect_ragged(none, "x", &n, CAIRN_UINT64, 1, 1, &n, &n), CAIRN_EINVAL);
    assert_int_equal(cairn_protect_list(none, "x", &n, CAIRN_UINT64, 1), CAIRN_EINVAL);
    assert_int_equal(cairn_define_type(none, 8, NULL, 0, &type), CAIRN_EINVAL);
    assert_int_equal(cairn_describe(none, "x", "units", "m"), CAIRN_EINVAL);
    assert_int_equal(cairn_set_bounds(none, "x", "1e-6"), CAIRN_EINVAL);
    assert_int_equal(cairn_release(none, "x"), CAIRN_EINVAL);
    assert_int_equal(cairn_resume(none, NULL), CAIRN_EINVAL);
    assert_int_equal(cairn_resume_at(none, 1), CAIRN_EINVAL);
    assert_int_equal(cairn_probe(none, NULL), CAIRN_EINVAL);
    assert_int_equal(cairn_probe_count(none, "x", &count), CAIRN_EINVAL);
    assert_int_equal(cairn_probe_cells(none, "x", 1, &n, &n), CAIRN_EINVAL);
    assert_int_equal(cairn_mark(none, 1, CAIRN_AUTO), CAIRN_EINVAL);
    assert_int_equal(cairn_begin(none, 1, CAIRN_AUTO), CAIRN_EINVAL);
    assert_int_equal(cairn_capture(none, "x"), CAIRN_EINVAL);
    assert_int_equal(cairn_commit(none), CAIRN_EINVAL);
    assert_int_equal(cairn_cancel(none), CAIRN_EINVAL);
    assert_int_equal(cairn_settle(none), CAIRN_EINVAL);
    assert_int_equal(cairn_reopen(none, MPI_COMM_SELF), CAIRN_EINVAL);
    assert_int_equal(cairn_mark_trees(none, 1), CAIRN_EINVAL);
    assert_false(cairn_due(none) || cairn_should_stop(none) || cairn_diverged(none, NULL));
    assert_ok(cairn_close(none));
}

static struct sigaction ours;
static unsigned nhandled;

static void chained(int number, siginfo_t *info, void *context)
{
    nhandled++;
    ours.sa_sigaction(number, info, context);
}

/* A program may stand before our handler, and open another session. */
static void test_a_chained_handler_is_called_once(void **state)
{
    (void)state;
    cairn *c;
    struct sigaction theirs = {.sa_sigaction = chained, .sa_flags = SA_SIGINFO}, before;
    set_up("");
    assert_int_equal(sigaction(SIGUSR1, NULL, &before), 0);
    assert_ok(cairn_open(MPI_COMM_SELF, config, &c));
    assert_int_equal(sigaction(SIGUSR1, &theirs, &ours), 0);
    assert_ok(cairn_close(c));
    assert_ok(cairn_open(MPI_COMM_SELF, config, &c));
    nhandled = 0;
    assert_int_equal(raise(SIGUSR1), 0);
    assert_int_equal(nhandled, 1);
    assert_true(cairn_should_stop(c));
    assert_ok(cairn_close(c));
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    remove_tree(dir);
}

/* A signal by the name that shells give it; and one that nohup or a script has let be ignored. */
static void test_names_of_signals_and_ignored_ones(void **state)
{
    (void)state;
    cairn *c;
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before, now;
    set_up("[stop]\nsignals = SIGUSR2, INT\n");
    assert_int_equal(sigaction(SIGINT, &ignore, &before), 0);
    assert_ok(cairn_open(MPI_COMM_SELF, config, &c));
    assert_int_equal(sigaction(SIGINT, NULL, &now), 0);
    assert_true(now.sa_handler == SIG_IGN);
    assert_int_equal(raise(SIGINT), 0);
    assert_false(cairn_should_stop(c));
    assert_int_equal(raise(SIGUSR2), 0);
    assert_true(cairn_should_stop(c));
    assert_ok(cairn_close(c));
    assert_int_equal(sigaction(SIGINT, &before, NULL), 0);
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
        cmocka_unit_test(test_refusals_tell_of_the_newest),
        cmocka_unit_test(test_levels_are_counted_over_legs),
        cmocka_unit_test(test_damage_is_healed),
        cmocka_unit_test(test_the_lock_dies_with_its_process),
        cmocka_unit_test(test_local_may_be_a_link),
        cmocka_unit_test(test_a_run_that_ends_meanwhile_is_not_continued),
        cmocka_unit_test(test_old_series_are_removed),
        cmocka_unit_test(test_no_session_is_an_error),
        cmocka_unit_test(test_a_chained_handler_is_called_once),
        cmocka_unit_test(test_names_of_signals_and_ignored_ones),
    };
    return run_mpi_tests(argc, argv, tests);
}
