/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Signals to programs that do not ask whether to stop: they end them in the end, as they would have
 * without Cairn. Each program is a process of its own.
 *
 * TEST: ranks self
 * NEEDS: inih
 */
#include "harness/session.h"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void nap(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

typedef struct program {
    pid_t pid;
    int out; /* what it has to say, letter by letter */
} program;

/* Start fn in a process of its own, which is not to come back from it. */
static program start(void (*fn)(const place *p, int out), const place *p)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        fn(p, ends[1]);
        _exit(9);
    }
    close(ends[1]);
    return (program){pid, ends[0]};
}

static void say(int out, char letter)
{
    if (write(out, &letter, 1) != 1)
        _exit(8);
}

static void must_say(const program *g, char letter)
{
    char got = 0;
    assert_int_equal(read(g->out, &got, 1), 1);
    assert_int_equal(got, letter);
}

/* How the program ended: the number of a signal, or -1 - its exit code. */
static int end_of(const program *g)
{
    int status = 0;
    assert_int_equal(waitpid(g->pid, &status, 0), g->pid);
    close(g->out);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -1 - WEXITSTATUS(status);
}

static cairn *open_session(const place *p, uint64_t *x)
{
    cairn *c;
    if (cairn_open(MPI_COMM_SELF, p->config, &c) < 0 ||
        cairn_protect(c, "x", x, CAIRN_UINT64, 1) < 0 || cairn_resume(c, NULL) < 0)
        _exit(7);
    return c;
}

/* Calls nothing of Cairn any more; tells of each signal that it has survived. */
static void compute_only(const place *p, int out)
{
    static uint64_t x;
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    open_session(p, &x);
    sigprocmask(SIG_SETMASK, &all, NULL); /* none is to come but while we wait for it */
    say(out, 'o');
    for (;;) {
        sigsuspend(&none);
        say(out, 's');
    }
}

static void test_the_second_signal_ends_a_program_that_never_asks(void **state)
{
    static const int number[] = {SIGTERM, SIGINT};
    for (int i = 0; i < 2; i++) {
        place p;
        int status = 0;
        place_init(&p, *state, "[stop]\npatience = 1h\n");
        const program g = start(compute_only, &p);
        must_say(&g, 'o');
        assert_int_equal(kill(g.pid, number[i]), 0);
        must_say(&g, 's'); /* the first is a request */
        /* one that follows at once may be the same request */
        for (int n = 0; n < 1000 && waitpid(g.pid, &status, WNOHANG) == 0; n++) {
            assert_int_equal(kill(g.pid, number[i]), 0);
            nap(20);
        }
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), number[i]);
        close(g.out);
        place_done(&p);
    }
}

static void test_the_first_signal_ends_a_program_that_is_silent(void **state)
{
    place p;
    place_init(&p, *state, "[stop]\npatience = 0.05\n");
    const program g = start(compute_only, &p);
    must_say(&g, 'o');
    assert_int_equal(kill(g.pid, SIGTERM), 0);
    assert_int_equal(end_of(&g), SIGTERM);
    place_done(&p);
}

/* Users' own signals are hints, and never end a program. */
static void test_a_hint_ends_nothing(void **state)
{
    place p;
    place_init(&p, *state, "[stop]\npatience = 0\n");
    const program g = start(compute_only, &p);
    must_say(&g, 'o');
    for (int i = 0; i < 3; i++) {
        nap(i * 300);
        assert_int_equal(kill(g.pid, SIGUSR1), 0);
        must_say(&g, 's');
    }
    assert_int_equal(kill(g.pid, SIGKILL), 0);
    assert_int_equal(end_of(&g), SIGKILL);
    place_done(&p);
}

/* Asks whether to mark, never whether to stop. */
static void mark_only(const place *p, int out)
{
    static uint64_t x;
    cairn *c = open_session(p, &x);
    for (x = 1;; x++) {
        if (x == 5)
            raise(SIGTERM);
        if (cairn_due(c)) {
            say(out, (char)('0' + x));
            if (cairn_mark(c, x, CAIRN_AUTO) < 0)
                _exit(6);
        }
        if (x == 50)
            _exit(5);
    }
}

/* The same with marks every so many steps. */
static void mark_regularly(const place *p, int out)
{
    static uint64_t x;
    cairn *c = open_session(p, &x);
    say(out, '1');
    for (x = 1; x < 50; x++) {
        if (x == 5)
            raise(SIGTERM);
        if (x == 5)
            say(out, '5');
        if (cairn_mark(c, x, CAIRN_LEVEL_LOCAL) < 0)
            _exit(6);
    }
    _exit(5);
}

static void test_a_program_that_only_marks_leaves_with_one_in_the_trail(void **state)
{
    void (*const kind[])(const place *, int) = {mark_only, mark_regularly};
    for (int i = 0; i < 2; i++) {
        place p;
        cairn *c;
        uint64_t x = 0, version = 0;
        char gone[128];
        place_init(&p, *state,
                   "[stop]\npatience = 1h\n[level]\nlocal = @/local\nglobal = 0\n"
                   "[mark]\ninterval = 0\n[plan]\ninterval_min = 1000\ninterval_max = 2000\n");
        const program g = start(kind[i], &p);
        must_say(&g, '1'); /* the first mark tells what marks cost */
        must_say(&g, '5');
        assert_int_equal(end_of(&g), SIGTERM);
        snprintf(gone, sizeof gone, "%s/local", p.dir);
        remove_tree(gone);
        assert_ok(cairn_open(MPI_COMM_SELF, p.config, &c));
        assert_ok(cairn_protect(c, "x", &x, CAIRN_UINT64, 1));
        assert_ok(cairn_resume(c, &version));
        assert_int_equal(version, 5);
        assert_int_equal(x, 5);
        assert_ok(cairn_close(c));
        place_done(&p);
    }
}

static volatile sig_atomic_t nown;

static void on_own(int number)
{
    (void)number;
    nown++;
}

/* Has a mind of its own about the signal. */
static void handle_itself(const place *p, int out)
{
    static uint64_t x;
    struct sigaction own = {.sa_handler = on_own};
    sigaction(SIGTERM, &own, NULL);
    open_session(p, &x);
    say(out, 'o');
    while (nown < 3) {
        nap(300);
        raise(SIGTERM);
    }
    _exit(3);
}

static void test_a_programs_own_handler_decides(void **state)
{
    place p;
    place_init(&p, *state, "[stop]\npatience = 0\n");
    const program g = start(handle_itself, &p);
    must_say(&g, 'o');
    assert_int_equal(end_of(&g), -1 - 3);
    place_done(&p);
}

/* Asks, learns of the signal, and takes its time to leave. */
static void ask(const place *p, int out)
{
    static uint64_t x;
    cairn *c = open_session(p, &x);
    if (cairn_should_stop(c))
        _exit(4);
    raise(SIGTERM);
    raise(SIGTERM); /* from the launcher, say */
    if (!cairn_should_stop(c))
        _exit(5);
    say(out, 'a');
    nap(300);
    _exit(cairn_close(c) < 0 ? 6 : 3);
}

static void test_a_program_that_asks_leaves_when_it_likes(void **state)
{
    place p;
    place_init(&p, *state, "[stop]\npatience = 0.1\n");
    const program g = start(ask, &p);
    must_say(&g, 'a');
    assert_int_equal(end_of(&g), -1 - 3);
    place_done(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_second_signal_ends_a_program_that_never_asks),
        cmocka_unit_test(test_the_first_signal_ends_a_program_that_is_silent),
        cmocka_unit_test(test_a_hint_ends_nothing),
        cmocka_unit_test(test_a_program_that_only_marks_leaves_with_one_in_the_trail),
        cmocka_unit_test(test_a_programs_own_handler_decides),
        cmocka_unit_test(test_a_program_that_asks_leaves_when_it_likes),
    };
    return run_mpi_tests(argc, argv, tests);
}
