/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files and directories: what is refused, what is created how, direct and cached transfers, whole
 * files, listing, and replacement that is all or nothing under every fault.
 */
#include "harness/scratch.h"
#include "io/io_fault.h"

#include <linux/magic.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <sys/wait.h>

static int tear_down(void **state)
{
    crn_fault_arm(NULL);
    return scratch_end(state);
}

static void make_file(const char *name, const char *text)
{
    crn_file *f;
    assert_ok(crn_file_open(dir, name, CRN_WRITE | CRN_CREATE, &f));
    assert_ok(crn_file_truncate(f, 0));
    assert_ok(crn_file_write(f, text, strlen(text), 0));
    crn_file_close(f);
}

static void assert_content(const char *name, const char *text)
{
    void *data;
    size_t n;
    assert_ok(crn_file_slurp(dir, name, 1 << 20, &data, &n));
    assert_int_equal(n, strlen(text));
    assert_string_equal(data, text);
    free(data);
}

static bool is_there(const char *name)
{
    return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* --- opening --- */

static void test_open_creates_private_files(void **state)
{
    (void)state;
    struct stat st;
    int sub;
    mode_t old = umask(0);
    make_file("private", "x");
    assert_ok(crn_dir_open(dir, "inner", true, &sub));
    umask(old);
    assert_int_equal(fstatat(dir, "private", &st, 0), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(fstat(sub, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(fcntl(sub, F_GETFD), FD_CLOEXEC);
    close(sub);
    assert_ok(crn_dir_open(dir, "inner", true, &sub)); /* already there is fine */
    close(sub);
}

static void test_open_refuses_what_is_no_regular_file(void **state)
{
    (void)state;
    crn_file *f = NULL;
    int fd = -1;
    make_file("target", "x");
    assert_int_equal(symlinkat("target", dir, "link"), 0);
    assert_int_equal(symlinkat("nowhere", dir, "dangling"), 0);
    assert_int_equal(symlinkat(".", dir, "dirlink"), 0);
    assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
    assert_int_equal(mkdirat(dir, "sub", 0700), 0);

    assert_fails(crn_file_open(dir, "link", CRN_READ, &f), CAIRN_EIO, "'link' is a link");
    assert_fails(crn_file_open(dir, "dangling", CRN_WRITE | CRN_CREATE, &f), CAIRN_EIO,
                 "'dangling' is a link");
    assert_false(is_there("nowhere"));
    assert_fails(crn_file_open(dir, "fifo", CRN_READ, &f), CAIRN_EIO, "not a regular file");
    assert_fails(crn_file_open(dir, "fifo", CRN_WRITE, &f), CAIRN_EIO, "not a regular file");
    assert_fails(crn_file_open(dir, "sub", CRN_READ, &f), CAIRN_EIO, "not a regular file");
    assert_fails(crn_file_open(dir, "sub", CRN_WRITE, &f), CAIRN_EIO, "not a regular file");
    assert_fails(crn_dir_open(dir, "dirlink", false, &fd), CAIRN_EIO, "links are not followed");
    assert_fails(crn_dir_open(dir, "target", true, &fd), CAIRN_EIO, "not a directory");
    assert_null(f); /* untouched on failure */
    assert_int_equal(fd, -1);
}

static void test_open_missing_and_existing(void **state)
{
    (void)state;
    crn_file *f;
    int fd;
    assert_fails(crn_file_open(dir, "none", CRN_READ, &f), CAIRN_ENOTFOUND, "cannot open 'none'");
    assert_fails(crn_dir_open(dir, "none", false, &fd), CAIRN_ENOTFOUND, "'none'");
    make_file("there", "x");
    assert_fails(crn_file_open(dir, "there", CRN_WRITE | CRN_CREATE | CRN_EXCL, &f), CAIRN_EBUSY,
                 "'there' exists already");
    crn_file_close(NULL);
}

/* --- past the page cache --- */

/* Does the file system below the scratch directory write past the page cache, whatever io says? */
static bool kernel_goes_direct(void)
{
    static char data[4096] __attribute__((aligned(4096)));
    int fd = openat(dir, "probe", O_WRONLY | O_CREAT | O_DIRECT, 0600);
    bool works = fd >= 0 && pwrite(fd, data, sizeof data, 0) == sizeof data;
    struct statfs fs;
    works = works && fstatfs(fd, &fs) == 0 && fs.f_type != TMPFS_MAGIC;
    if (fd >= 0)
        close(fd);
    return works;
}

/* Of a long range stretches are looked at, from its first page to its last; in /dev/shm all lies in
 * memory, whatever the kernel can tell. */
static void test_what_is_cached(void **state)
{
    (void)state;
    enum { N = 8 << 20, PIECE = 1 << 20 };
    static unsigned char data[PIECE];
    crn_file *f;
    assert_ok(crn_file_open(dir, "long", CRN_READ | CRN_WRITE | CRN_CREATE, &f));
    assert_false(crn_file_is_cached(f, 0, 0));
    assert_ok(crn_file_truncate(f, N)); /* a hole has no pages */
    const bool memory = crn_file_is_cached(f, 0, N);
    assert_ok(crn_file_write(f, data, PIECE, 0));
    const bool tells = !memory && crn_file_is_cached(f, 0, PIECE);
    assert_true(crn_file_is_cached(f, 0, N) == memory);
    for (uint64_t at = 0; at < N; at += PIECE)
        assert_ok(crn_file_write(f, data, PIECE, at));
    assert_true(crn_file_is_cached(f, 0, N) == (memory || tells));
    assert_true(crn_file_is_cached(f, 5, N - 9) == (memory || tells));
    crn_file_close(f);
    if (crn_file_open(AT_FDCWD, "/dev/shm/cairn-test-file", CRN_READ | CRN_WRITE | CRN_CREATE, &f) <
        0)
        return;
    assert_ok(crn_file_truncate(f, N));
    assert_true(crn_file_is_cached(f, 0, N));
    crn_file_close(f);
    unlink("/dev/shm/cairn-test-file");
}

/* On a file of 1 MiB: what is written one way is read the other way, and only aligned transfers
 * avoid the cache. */
static void test_direct_and_cached_agree(void **state)
{
    (void)state;
    enum { N = 1 << 20 };
    crn_file *f;
    unsigned char *data, *back;
    assert_ok(crn_file_open(dir, "direct", CRN_READ | CRN_WRITE | CRN_CREATE | CRN_DIRECT, &f));
    size_t align = crn_file_direct_align(f);
    if (align == 0) {
        crn_file_close(f);
        assert_false(kernel_goes_direct());
        print_message("SKIPPED: no direct transfers in the build tree\n");
        skip();
    }
    assert_ok(crn_alloc_aligned(&data, N, align));
    assert_ok(crn_alloc_aligned(&back, N + align, align));
    memset(data, 1, N);
    assert_ok(crn_file_write(f, data, N, 0));
    assert_false(crn_file_is_cached(f, 0, N));
    assert_ok(crn_file_read(f, back, N, 0));
    assert_false(crn_file_is_cached(f, 0, N));
    assert_memory_equal(back, data, N);

    memset(data + 5, 2, 100);
    assert_ok(crn_file_write(f, data + 5, 100, 5)); /* cached */
    assert_ok(crn_file_read(f, back, N, 0));        /* direct */
    assert_memory_equal(back, data, N);
    memset(data, 3, align);
    assert_ok(crn_file_write(f, data, align, 0));    /* direct, over a cached page */
    assert_ok(crn_file_read(f, back + 1, N - 1, 1)); /* cached */
    assert_memory_equal(back + 1, data + 1, N - 1);
    if (!crn_file_is_cached(f, 0, N))
        print_message("note: the kernel has no cachestat\n");
    assert_false(crn_file_is_cached(f, 0, 0));
    free(back);
    free(data);
    crn_file_close(f);
}

static void test_memory_file_system_is_never_direct(void **state)
{
    (void)state;
    char name[64];
    crn_file *f;
    snprintf(name, sizeof name, "/dev/shm/cairn-test-file-%d", (int)getpid());
    if (crn_file_open(AT_FDCWD, name, CRN_WRITE | CRN_CREATE | CRN_DIRECT, &f) < 0) {
        print_message("SKIPPED: no /dev/shm\n");
        skip();
    }
    unlink(name);
    assert_int_equal(crn_file_direct_align(f), 0);
    crn_file_close(f);
}

/* --- whole files and directories --- */

static void test_slurp(void **state)
{
    (void)state;
    void *data = NULL;
    size_t n;
    make_file("slurp", "hello");
    assert_content("slurp", "hello");
    make_file("slurp", "");
    assert_content("slurp", "");
    make_file("slurp", "hello");
    assert_fails(crn_file_slurp(dir, "slurp", 4, &data, &n), CAIRN_ECORRUPT,
                 "'slurp' has 5 bytes, at most 4");
    assert_null(data);
}

static void test_truncate(void **state)
{
    (void)state;
    crn_file *f;
    uint64_t n;
    make_file("trunc", "hello");
    assert_ok(crn_file_open(dir, "trunc", CRN_WRITE, &f));
    assert_ok(crn_file_truncate(f, 2));
    assert_content("trunc", "he");
    assert_ok(crn_file_truncate(f, UINT64_C(5) << 30)); /* a hole: takes no room */
    assert_ok(crn_file_nbytes(f, &n));
    assert_true(n == UINT64_C(5) << 30);
    assert_fails(crn_file_truncate(f, UINT64_MAX), CAIRN_EINVAL, "no file has");
    crn_file_close(f);
}

static void test_list_is_sorted(void **state)
{
    (void)state;
    int sub;
    char **names;
    size_t n;
    assert_ok(crn_dir_open(dir, "list", true, &sub));
    assert_ok(crn_dir_list(sub, &names, &n));
    assert_int_equal(n, 0);
    free(names);
    static const char *const made[] = {"b", "a10", "a", ".hidden", "B", "z"};
    static const char *const sorted[] = {".hidden", "B", "a", "a10", "b", "z"};
    for (size_t i = 0; i < 6; i++) {
        crn_file *f;
        assert_ok(crn_file_open(sub, made[i], CRN_WRITE | CRN_CREATE, &f));
        crn_file_close(f);
    }
    for (int twice = 0; twice < 2; twice++) {
        assert_ok(crn_dir_list(sub, &names, &n));
        assert_int_equal(n, 6);
        for (size_t i = 0; i < n; i++) {
            assert_string_equal(names[i], sorted[i]);
            free(names[i]);
        }
        free(names);
    }
    close(sub);
}

static void test_list_without_memory(void **state)
{
    (void)state;
    char **names = NULL;
    size_t n;
    make_file("one", "1");
    for (uint64_t i = 1;; i++) {
        crn_mem_fail_at(i);
        cairn_status rc = crn_dir_list(dir, &names, &n);
        crn_mem_fail_at(0);
        if (rc == CAIRN_OK)
            break;
        assert_int_equal(rc, CAIRN_ENOMEM);
        assert_null(names);
    }
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

static void test_rename_and_unlink(void **state)
{
    (void)state;
    make_file("old", "x");
    assert_ok(crn_rename(dir, "old", "new"));
    assert_false(is_there("old"));
    assert_content("new", "x");
    assert_fails(crn_rename(dir, "old", "new"), CAIRN_ENOTFOUND, "cannot rename 'old' to 'new'");
    assert_ok(crn_unlink(dir, "new"));
    assert_fails(crn_unlink(dir, "new"), CAIRN_ENOTFOUND, "cannot remove 'new'");
    assert_int_equal(mkdirat(dir, "gone", 0700), 0);
    assert_ok(crn_unlink(dir, "gone"));
    assert_false(is_there("gone"));
    assert_ok(crn_dir_sync(dir));
    assert_ok(crn_dir_sync(AT_FDCWD));
}

/* --- replacement --- */

static void test_replace(void **state)
{
    (void)state;
    char path[128];
    assert_ok(crn_file_replace(dir, "rep", "one", 3));
    assert_content("rep", "one");
    assert_ok(crn_file_replace(dir, "rep", "", 0));
    assert_content("rep", "");
    snprintf(path, sizeof path, "%s/rep", scratch);
    assert_ok(crn_file_replace(AT_FDCWD, path, "three", 5));
    assert_content("rep", "three");
    assert_false(is_there(".rep.tmp"));
    char longer[300];
    memset(longer, 'n', sizeof longer);
    longer[253] = '\0';
    assert_fails(crn_file_replace(dir, longer, "x", 1), CAIRN_EINVAL, "too long a name");
}

static void test_replace_over_leftovers(void **state)
{
    (void)state;
    make_file(".left.tmp", "something long that a dead process has left behind");
    assert_ok(crn_file_replace(dir, "left", "new", 3));
    assert_content("left", "new");
    assert_false(is_there(".left.tmp"));

    make_file("victim", "untouched");
    assert_int_equal(symlinkat("victim", dir, ".left.tmp"), 0);
    assert_fails(crn_file_replace(dir, "left", "newer", 5), CAIRN_EIO, "is a link");
    assert_content("left", "new");
    assert_content("victim", "untouched");
    assert_int_equal(unlinkat(dir, ".left.tmp", 0), 0);
}

static void test_own_refuses_a_live_rival(void **state)
{
    crn_file *f;
    (void)state;
    make_file(".rival.tmp", "half");
    int fd = openat(dir, ".rival.tmp", O_WRONLY);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_fails(crn_file_own(dir, ".rival.tmp", &f), CAIRN_EBUSY, "by another process");
    assert_content(".rival.tmp", "half");
    close(fd);
    assert_ok(crn_file_replace(dir, "rival", "new", 3));
    assert_content("rival", "new");
}

/* Many processes replace one file, each many times: all wait for each other. */
static void test_replace_waits_for_rivals(void **state)
{
    enum { NRIVALS = 8, NTIMES = 20 };
    int status;
    (void)state;
    fflush(NULL);
    for (int i = 0; i < NRIVALS; i++) {
        if (fork() == 0) {
            int failed = 0;
            for (int k = 0; k < NTIMES; k++)
                failed += crn_file_put(dir, "shared", "content", 7) < 0;
            _exit(failed);
        }
    }
    for (int i = 0; i < NRIVALS; i++) {
        assert_true(wait(&status) > 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    assert_content("shared", "content");
}

static uint64_t count_replace_steps(void)
{
    crn_fault_arm(&(crn_fault){.where = CRN_FAULT_ANY});
    assert_ok(crn_file_replace(dir, "steps", "new", 3));
    uint64_t n = crn_fault_seen();
    crn_fault_arm(NULL);
    return n;
}

/* Every step of a replacement fails in every way that a call can fail. */
static void test_replace_is_all_or_nothing(void **state)
{
    (void)state;
    static const crn_fault_how hows[] = {CRN_FAULT_EIO, CRN_FAULT_ENOSPC, CRN_FAULT_TORN,
                                         CRN_FAULT_SHORT};
    uint64_t nsteps = count_replace_steps();
    assert_int_equal(nsteps, 6); /* open, truncate, write, sync, rename, sync of the directory */
    for (size_t h = 0; h < 4; h++) {
        for (uint64_t at = 1; at <= nsteps; at++) {
            make_file("atomic", "the old content");
            crn_fault_arm(&(crn_fault){CRN_FAULT_ANY, hows[h], at, 1});
            cairn_status rc = crn_file_replace(dir, "atomic", "fresh content", 13);
            crn_fault_arm(NULL);
            bool fails = hows[h] != CRN_FAULT_SHORT;
            assert_int_equal(rc < 0, fails);
            if (fails)
                assert_int_equal(rc, hows[h] == CRN_FAULT_ENOSPC ? CAIRN_ENOSPC : CAIRN_EIO);
            assert_content("atomic", fails && at < nsteps ? "the old content" : "fresh content");
            assert_false(is_there(".atomic.tmp"));
        }
    }
}

static void test_replace_survives_the_end_of_the_process(void **state)
{
    (void)state;
    static const crn_fault_how hows[] = {CRN_FAULT_EXIT, CRN_FAULT_KILL};
    for (size_t h = 0; h < 2; h++) {
        for (uint64_t at = 1; at <= 6; at++) {
            make_file("atomic", "the old content");
            pid_t pid = fork();
            assert_true(pid >= 0);
            if (pid == 0) {
                crn_fault_arm(&(crn_fault){CRN_FAULT_ANY, hows[h], at, 1});
                _exit(crn_file_replace(dir, "atomic", "fresh content", 13) < 0);
            }
            int status;
            assert_int_equal(waitpid(pid, &status, 0), pid);
            if (hows[h] == CRN_FAULT_EXIT)
                assert_int_equal(WEXITSTATUS(status), 86);
            else
                assert_int_equal(WTERMSIG(status), SIGKILL);
            assert_content("atomic", at <= 5 ? "the old content" : "fresh content");
            assert_ok(crn_file_replace(dir, "atomic", "afterwards", 10));
            assert_content("atomic", "afterwards");
            assert_false(is_there(".atomic.tmp"));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_creates_private_files),
        cmocka_unit_test(test_open_refuses_what_is_no_regular_file),
        cmocka_unit_test(test_open_missing_and_existing),
        cmocka_unit_test(test_what_is_cached),
        cmocka_unit_test(test_direct_and_cached_agree),
        cmocka_unit_test(test_memory_file_system_is_never_direct),
        cmocka_unit_test(test_slurp),
        cmocka_unit_test(test_truncate),
        cmocka_unit_test(test_list_is_sorted),
        cmocka_unit_test(test_list_without_memory),
        cmocka_unit_test(test_rename_and_unlink),
        cmocka_unit_test(test_replace),
        cmocka_unit_test(test_replace_over_leftovers),
        cmocka_unit_test(test_own_refuses_a_live_rival),
        cmocka_unit_test(test_replace_waits_for_rivals),
        cmocka_unit_test(test_replace_is_all_or_nothing),
        cmocka_unit_test(test_replace_survives_the_end_of_the_process),
    };
    return cmocka_run_group_tests_name("file", tests, scratch_begin, tear_down);
}
