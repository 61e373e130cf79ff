/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CAIRN_FAULT, which strikes programs that know nothing of tests. Called with an argument, this
 * program is its own victim: it writes and syncs one file, with whatever CAIRN_FAULT says.
 */
#include "harness/scratch.h"
#include "io/io_fault.h"

#include <signal.h>
#include <sys/wait.h>

/* Write three blocks one after the other, each synced; used by the tests below. */
static int be_victim(const char *backend)
{
    static char block[4096];
    crn_io *io;
    crn_file *f;
    struct iovec iov = {block, sizeof block};
    crn_io_backend kind = strcmp(backend, "uring") == 0 ? CRN_IO_URING : CRN_IO_THREADS;
    if (crn_file_open(AT_FDCWD, "victim", CRN_WRITE | CRN_CREATE, &f) < 0) {
        fprintf(stderr, "%s\n", crn_err_peek()->text);
        return 3;
    }
    if (crn_io_create(kind, 2, &io) < 0)
        return 77;
    int failed = 0;
    for (uint64_t i = 0; i < 3; i++) {
        crn_op op = {.kind = CRN_OP_WRITE, .file = f, .iov = &iov, .niov = 1, .off = i * 4096};
        crn_op *done;
        memset(block, 'a' + (int)i, sizeof block);
        failed |= crn_io_submit(io, &op) < 0 || crn_io_wait(io, &done) < 0 || op.status < 0;
        failed |= crn_file_sync(f) < 0;
    }
    crn_io_free(io);
    crn_file_close(f);
    return failed;
}

static int run_victim(const char *backend, const char *fault)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char self[512];
        ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        if (n < 0 || fchdir(dir) < 0 || setenv("CAIRN_FAULT", fault, 1) < 0)
            _exit(4);
        self[n] = '\0';
        execl(self, self, backend, (char *)NULL);
        _exit(4);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void assert_victim_has(off_t nbytes)
{
    struct stat st;
    assert_int_equal(fstatat(dir, "victim", &st, 0), 0);
    assert_int_equal(st.st_size, nbytes);
    assert_int_equal(unlinkat(dir, "victim", 0), 0);
}

static void check_victim(const char *backend)
{
    int status = run_victim(backend, "");
    if (WEXITSTATUS(status) == 77) {
        print_message("SKIPPED: no %s\n", backend);
        return;
    }
    assert_int_equal(status, 0);
    assert_victim_has(12288);
    for (int i = 1; i <= 3; i++) {
        char fault[32];
        snprintf(fault, sizeof fault, "write:%d:exit", i);
        status = run_victim(backend, fault);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 86);
        assert_victim_has((i - 1) * 4096);
        snprintf(fault, sizeof fault, "sync:%d:kill", i);
        status = run_victim(backend, fault);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_victim_has(i * 4096);
    }
    status = run_victim(backend, "write:2:eio:0"); /* the second and all after it */
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_victim_has(4096);
    status = run_victim(backend, "write:2:slow"); /* late, but right */
    assert_int_equal(status, 0);
    assert_victim_has(12288);
    status = run_victim(backend, "any:1:exit");
    assert_int_equal(WEXITSTATUS(status), 86);
    assert_int_equal(faccessat(dir, "victim", F_OK, 0), -1);
}

static void test_environment_ends_the_process(void **state)
{
    (void)state;
    check_victim("uring");
    check_victim("threads");
}

static void test_environment_without_sense_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "x",        "write",        "write:",     "write:1",      "write:x:eio",
        "write:1:", "write:1:boom", "none:1:eio", "write:1:eio:", "write:1:eio:2x",
        ":1:eio",   "write::eio"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int status = run_victim("threads", bad[i]);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 3)
            fail_msg("CAIRN_FAULT='%s' was taken (%d)", bad[i], status);
    }
    assert_int_equal(faccessat(dir, "victim", F_OK, 0), -1);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return be_victim(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_environment_ends_the_process),
        cmocka_unit_test(test_environment_without_sense_is_refused),
    };
    return cmocka_run_group_tests_name("io_fault_env", tests, scratch_begin, scratch_end);
}
