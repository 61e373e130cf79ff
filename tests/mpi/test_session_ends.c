/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sessions at their edges: no session at all, links, a run that ends while it is found, signals of
 * programs that have their own mind about them.
 *
 * TEST: ranks self
 * NEEDS: inih
 */
#include "harness/session.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "io/io_fault.h"

/* What a program meets that did not look at the result of cairn_open. */
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

/* --- places ----------------------------------------------------------------------------------- */

static void run_in(const place *p, const char *command)
{
    char line[256];
    snprintf(line, sizeof line, "cd %s && %s", p->dir, command);
    assert_int_equal(system(line), 0);
}

/* A session that takes a mark; closed as a program does that has come to its end, or leaves. */
static void take_mark(const place *p, uint64_t version, bool ends)
{
    static uint64_t field[100];
    cairn *c;
    assert_ok(cairn_open(MPI_COMM_SELF, p->config, &c));
    assert_ok(cairn_protect(c, "field", field, CAIRN_UINT64, 100));
    assert_true(cairn_resume(c, NULL) >= 0);
    assert_ok(cairn_mark(c, version, CAIRN_LEVEL_GLOBAL));
    if (ends)
        assert_ok(cairn_close(c));
    else
        leave_session(c);
}

/* Scratch directories are often links. */
static void test_local_may_be_a_link(void **state)
{
    place p;
    char local[96];
    place_init(&p, *state, "");
    snprintf(local, sizeof local, "%s/local", p.dir);
    run_in(&p, "mkdir real && ln -s real local");
    setenv("CAIRN_LEVEL_LOCAL", local, 1);
    take_mark(&p, 1, false);
    take_mark(&p, 2, false);
    unsetenv("CAIRN_LEVEL_LOCAL");
    run_in(&p, "test -n \"$(find real -name own-0)\"");
    place_done(&p);
}

static void finish_run(void *arg, const crn_fault_event *event)
{
    const place *p = arg;
    char from[96], to[112];
    if (event->kind != CRN_SEEN_OPEN || strcmp(event->name, "lock") != 0)
        return;
    snprintf(from, sizeof from, "%s/finished", p->dir);
    snprintf(to, sizeof to, "%s/trail/run-1/manifest", p->dir);
    (void)rename(from, to);
}

/* Paths mean what they meant when the session was opened, wherever the program goes. */
static void test_a_program_that_goes_elsewhere(void **state)
{
    place p;
    cairn *c;
    uint64_t x = 0, version = 0;
    const int here = open(".", O_RDONLY | O_DIRECTORY);
    place_init(&p, *state, "[level]\nlocal = local\n");
    assert_int_equal(setenv("CAIRN_RUN_TRAIL", "trail", 1), 0);
    assert_int_equal(chdir(p.dir), 0);
    assert_int_equal(mkdir("elsewhere", 0700), 0);
    assert_ok(cairn_open(p.mpi, "cairn.ini", &c));
    assert_int_equal(chdir("elsewhere"), 0);
    assert_ok(cairn_protect(c, "x", &x, CAIRN_UINT64, 1));
    assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    assert_ok(cairn_mark(c, x = 1, CAIRN_LEVEL_LOCAL));
    assert_ok(cairn_settle(c));
    assert_ok(cairn_reopen(c, p.mpi));
    assert_ok(cairn_resume(c, &version));
    assert_int_equal(version, 1);
    assert_ok(cairn_mark(c, x = 2, CAIRN_LEVEL_LOCAL));
    leave_session(c);
    assert_int_equal(chdir(".."), 0);
    assert_ok(cairn_open(p.mpi, "cairn.ini", &c));
    assert_ok(cairn_protect(c, "x", &x, CAIRN_UINT64, 1));
    x = 0;
    assert_ok(cairn_resume(c, &version));
    assert_int_equal(version, 2);
    assert_int_equal(x, 2);
    assert_ok(cairn_close(c));
    assert_int_equal(unsetenv("CAIRN_RUN_TRAIL"), 0);
    assert_int_equal(fchdir(here), 0);
    close(here);
    place_done(&p);
}

/* Between finding a run and locking it, its program may come to its end. */
static void test_a_run_that_ends_meanwhile_is_not_continued(void **state)
{
    place p;
    cairn *c;
    place_init(&p, *state, "[level]\nlocal = trail\n");
    take_mark(&p, 1, false);
    run_in(&p, "cp trail/run-1/manifest before");
    take_mark(&p, 2, true);
    run_in(&p, "mv trail/run-1/manifest finished && mv before trail/run-1/manifest");
    crn_fault_watch(finish_run, &p);
    assert_ok(cairn_open(MPI_COMM_SELF, p.config, &c));
    crn_fault_watch(NULL, NULL);
    assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    assert_ok(cairn_close(c));
    run_in(&p, "test -e trail/run-2");
    place_done(&p);
}

/* --- signals ---------------------------------------------------------------------------------- */

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
    place p;
    cairn *c;
    struct sigaction theirs = {.sa_sigaction = chained, .sa_flags = SA_SIGINFO}, before;
    place_init(&p, *state, "");
    assert_int_equal(sigaction(SIGUSR1, NULL, &before), 0);
    assert_ok(cairn_open(MPI_COMM_SELF, p.config, &c));
    assert_int_equal(sigaction(SIGUSR1, &theirs, &ours), 0);
    assert_ok(cairn_close(c));
    assert_ok(cairn_open(MPI_COMM_SELF, p.config, &c));
    nhandled = 0;
    assert_int_equal(raise(SIGUSR1), 0);
    assert_int_equal(nhandled, 1);
    assert_true(cairn_should_stop(c));
    assert_ok(cairn_close(c));
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    place_done(&p);
}

/* A signal by the name that shells give it; and one that nohup or a script has let be ignored. */
static void test_names_of_signals_and_ignored_ones(void **state)
{
    place p;
    cairn *c;
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before, now;
    place_init(&p, *state, "[stop]\nsignals = SIGUSR2, INT\n");
    assert_int_equal(sigaction(SIGINT, &ignore, &before), 0);
    assert_ok(cairn_open(MPI_COMM_SELF, p.config, &c));
    assert_int_equal(sigaction(SIGINT, NULL, &now), 0);
    assert_true(now.sa_handler == SIG_IGN);
    assert_int_equal(raise(SIGINT), 0);
    assert_false(cairn_should_stop(c));
    assert_int_equal(raise(SIGUSR2), 0);
    assert_true(cairn_should_stop(c));
    assert_ok(cairn_close(c));
    assert_int_equal(sigaction(SIGINT, &before, NULL), 0);
    place_done(&p);
}

/* --- time ------------------------------------------------------------------------------------- */

static time_t clock_step; /* by which somebody has set the wall clock */

/* Stands before that of the C library. */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
    const int rc = (int)syscall(SYS_clock_gettime, clock, ret);
    if (clock == CLOCK_REALTIME)
        ret->tv_sec += clock_step;
    return rc;
}

static void test_a_clock_that_is_set_ends_no_run(void **state)
{
    char end[32];
    for (int slurm = 0; slurm < 2; slurm++) {
        place p;
        cairn *c;
        place_init(&p, *state, slurm ? "" : "[stop]\nlimit = 1h\n");
        snprintf(end, sizeof end, "%lld", (long long)time(NULL) + 3600);
        if (slurm)
            assert_int_equal(setenv("SLURM_JOB_END_TIME", end, 1), 0);
        assert_ok(cairn_open(p.mpi, p.config, &c));
        clock_step = 2 * 3600;
        assert_false(cairn_should_stop(c));
        clock_step = 0;
        assert_ok(cairn_close(c));
        unsetenv("SLURM_JOB_END_TIME");
        place_done(&p);
    }
}

static void test_a_clock_that_is_set_back_prolongs_no_run(void **state)
{
    place p;
    cairn *c;
    place_init(&p, *state, "[stop]\nlimit = 0.1\nmargin = 0\n");
    assert_ok(cairn_open(p.mpi, p.config, &c));
    clock_step = -2 * 3600;
    for (int i = 0; i < 10000 && !cairn_should_stop(c); i++)
        usleep(1000);
    assert_true(cairn_should_stop(c));
    clock_step = 0;
    assert_ok(cairn_close(c));
    place_done(&p);
}

static void test_a_job_whose_time_is_over(void **state)
{
    place p;
    cairn *c;
    place_init(&p, *state, "");
    assert_int_equal(setenv("SLURM_JOB_END_TIME", "1000", 1), 0);
    assert_ok(cairn_open(p.mpi, p.config, &c));
    assert_true(cairn_should_stop(c));
    assert_ok(cairn_close(c));
    unsetenv("SLURM_JOB_END_TIME");
    place_done(&p);
}

/* A command that stands for Slurm's, and how Slurm's older versions tell of a job. */
static void make_scontrol(const char *dir, const char *script)
{
    char path[300];
    snprintf(path, sizeof path, "%s/scontrol", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\n%s\n", script);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0755), 0);
}

/* It says when the job ends; or that it does not know, or nothing for longer than we wait. */
static void test_slurm_is_asked(void **state)
{
    static const struct {
        const char *script;
        bool over;
    } kind[] = {{"[ \"$*\" = 'show job 42' ] && echo 'x=1 EndTime=2001-02-03T04:05:06 y=2'", true},
                {"echo '   StartTime=2001-02-03T04:05:06 EndTime=Unknown'", false},
                {"echo 'slurm_load_jobs error' >&2; exit 1", false},
                {"exec sleep 600", false}};
    const char *path = getenv("PATH");
    char dir[64], *before;
    make_scratch(dir, sizeof dir, "scontrol");
    assert_ok(crn_strdup(path ? path : "", &before));
    char *both;
    assert_true(asprintf(&both, "%s:%s", dir, before) > 0);
    setenv("PATH", both, 1);
    setenv("SLURM_JOB_ID", "42", 1);
    for (size_t i = 0; i < sizeof kind / sizeof *kind; i++) {
        place p;
        cairn *c;
        make_scontrol(dir, kind[i].script);
        place_init(&p, *state, "");
        assert_ok(cairn_open(p.mpi, p.config, &c));
        assert_int_equal(cairn_should_stop(c), kind[i].over);
        assert_ok(cairn_close(c));
        place_done(&p);
    }
    setenv("PATH", before, 1);
    unsetenv("SLURM_JOB_ID");
    remove_tree(dir);
    free(both);
    free(before);
}

/* --- versions --------------------------------------------------------------------------------- */

static void test_versions_that_logs_could_not_tell(void **state)
{
    place p;
    cairn *c;
    uint64_t x = 0;
    place_init(&p, *state, "[level]\nlocal = trail\n");
    assert_ok(cairn_open(p.mpi, p.config, &c));
    assert_ok(cairn_protect(c, "x", &x, CAIRN_UINT64, 1));
    assert_refused(c, cairn_mark(c, UINT64_C(1) << 63, CAIRN_AUTO), CAIRN_EINVAL,
                   "is not a version");
    assert_ok(cairn_mark(c, (UINT64_C(1) << 63) - 1, CAIRN_AUTO));
    assert_ok(cairn_close(c));
    place_done(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_session_is_an_error),
        cmocka_unit_test(test_local_may_be_a_link),
        cmocka_unit_test(test_a_program_that_goes_elsewhere),
        cmocka_unit_test(test_a_run_that_ends_meanwhile_is_not_continued),
        cmocka_unit_test(test_a_chained_handler_is_called_once),
        cmocka_unit_test(test_names_of_signals_and_ignored_ones),
        cmocka_unit_test(test_a_clock_that_is_set_ends_no_run),
        cmocka_unit_test(test_a_clock_that_is_set_back_prolongs_no_run),
        cmocka_unit_test(test_slurm_is_asked),
        cmocka_unit_test(test_a_job_whose_time_is_over),
        cmocka_unit_test(test_versions_that_logs_could_not_tell),
    };
    return run_mpi_tests(argc, argv, tests);
}
