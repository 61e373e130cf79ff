/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The fault gate: every kind of fault at every operation, over every backend and the blocking
 * forms; counting, also by several threads; the watcher; a disk that is really full.
 *
 * NEEDS: random123
 */
#include "harness/scratch.h"
#include "io/io_fault.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>

enum { NOPS = 6, PIECES = 3, OP_BYTES = 5000, SECTOR = 512 };

static int disarm(void **state)
{
    (void)state;
    crn_fault_arm(NULL);
    crn_fault_watch(NULL, NULL);
    return 0;
}

/* --- a few operations in flight, over a backend, or blocking where io is NULL --- */

typedef struct batch {
    crn_io *io;
    crn_file *file;
    crn_op op[NOPS];
    struct iovec iov[NOPS][PIECES];
    unsigned char data[NOPS * OP_BYTES];
} batch;

static void run_blocking(crn_op *op)
{
    void *data = op->iov->iov_base;
    size_t n = op->iov->iov_len;
    if (op->kind == CRN_OP_READ)
        op->status = crn_file_read(op->file, data, n, op->off);
    else
        op->status = crn_file_write(op->file, data, n, op->off);
    crn_err_take(&op->err);
}

/* All operations of one kind: back to back in the file, in three pieces (blocking: in one). */
static void run_batch(batch *b, crn_op_kind kind)
{
    for (int i = 0; i < NOPS; i++) {
        unsigned char *at = b->data + (size_t)i * OP_BYTES;
        struct iovec *v = b->iov[i];
        v[0] = (struct iovec){at, b->io ? 700 : OP_BYTES};
        v[1] = (struct iovec){at + 700, 1};
        v[2] = (struct iovec){at + 701, OP_BYTES - 701};
        b->op[i] = (crn_op){.kind = kind,
                            .file = b->file,
                            .iov = v,
                            .niov = b->io ? PIECES : 1,
                            .off = (uint64_t)i * OP_BYTES};
        if (b->io)
            assert_ok(crn_io_submit(b->io, &b->op[i]));
        else
            run_blocking(&b->op[i]);
    }
    crn_op *op = NULL;
    do {
        if (b->io)
            assert_ok(crn_io_wait(b->io, &op));
    } while (op);
}

static void fill(batch *b, unsigned seed)
{
    crn_rng rng = crn_rng_of(test_seed(), seed);
    for (size_t i = 0; i < sizeof b->data; i++)
        b->data[i] = (unsigned char)(crn_rng_u64(&rng) | 1); /* never the zeros of a fresh file */
}

static void for_each_way(void (*body)(batch *b))
{
    static const crn_io_backend kinds[] = {CRN_IO_URING, CRN_IO_THREADS};
    batch *b;
    assert_ok(crn_alloc(&b, 1));
    for (size_t i = 0; i < 3; i++) {
        b->io = NULL;
        if (i < 2 && crn_io_create(kinds[i], 4, &b->io) < 0) {
            print_message("SKIPPED one backend: %s\n", crn_err_peek()->text);
            continue;
        }
        assert_ok(
            crn_file_open(dir, "batch", CRN_READ | CRN_WRITE | CRN_CREATE | CRN_DIRECT, &b->file));
        body(b);
        crn_file_close(b->file);
        crn_io_free(b->io);
    }
    free(b);
}

/* Zeros everywhere, so that everything that a faulty write leaves is seen. */
static void clear_file(batch *b)
{
    assert_ok(crn_file_truncate(b->file, 0));
    assert_ok(crn_file_truncate(b->file, sizeof b->data));
}

static bool is_zero(const unsigned char *at, size_t n)
{
    while (n > 0 && *at == 0)
        at++, n--;
    return n == 0;
}

/* --- failures --- */

typedef struct failure {
    crn_fault_how how;
    cairn_status status;
    const char *words;
} failure;

/* Write i was failed, and left nothing, or it was not, and is there. */
static void check_write(batch *b, uint64_t i, bool hit, const failure *how)
{
    unsigned char back[OP_BYTES];
    assert_ok(crn_file_read(b->file, back, OP_BYTES, i * OP_BYTES));
    assert_int_equal(b->op[i].status, hit ? how->status : CAIRN_OK);
    if (hit) {
        assert_non_null(strstr(b->op[i].err.text, how->words));
        assert_true(is_zero(back, OP_BYTES));
    } else {
        assert_memory_equal(back, b->data + i * OP_BYTES, OP_BYTES);
    }
}

static void check_two_failures(batch *b, uint64_t at, const failure *how)
{
    clear_file(b);
    crn_fault_arm(&(crn_fault){CRN_FAULT_WRITE, how->how, at, 2});
    run_batch(b, CRN_OP_WRITE);
    assert_int_equal(crn_fault_seen(), NOPS);
    crn_fault_arm(NULL);
    for (uint64_t i = 0; i < NOPS; i++)
        check_write(b, i, i + 1 == at || i == at, how);
}

static void check_failures(batch *b)
{
    static const failure eio = {CRN_FAULT_EIO, CAIRN_EIO, "Input/output error"};
    static const failure enospc = {CRN_FAULT_ENOSPC, CAIRN_ENOSPC, "No space left"};
    fill(b, 1);
    for (uint64_t at = 1; at <= NOPS; at++) {
        check_two_failures(b, at, &eio);
        check_two_failures(b, at, &enospc);
    }
}

static void test_failures_hit_the_nth_write(void **state)
{
    (void)state;
    for_each_way(check_failures);
}

static void check_reads(batch *b)
{
    assert_ok(crn_file_truncate(b->file, sizeof b->data));
    crn_fault_arm(&(crn_fault){CRN_FAULT_READ, CRN_FAULT_EIO, 2, 0});
    run_batch(b, CRN_OP_READ);
    crn_fault_arm(NULL);
    assert_int_equal(b->op[0].status, CAIRN_OK);
    for (int i = 1; i < NOPS; i++)
        assert_int_equal(b->op[i].status, CAIRN_EIO);
}

static void test_failures_of_reads_from_the_nth_on(void **state)
{
    (void)state;
    for_each_way(check_reads);
}

static void check_syncs(batch *b)
{
    crn_fault_arm(&(crn_fault){CRN_FAULT_SYNC, CRN_FAULT_EIO, 1, 1});
    crn_op op = {.kind = CRN_OP_SYNC, .file = b->file}, *done = &op;
    if (b->io) {
        assert_ok(crn_io_submit(b->io, &op));
        assert_ok(crn_io_wait(b->io, &done));
        assert_ptr_equal(done, &op);
        assert_int_equal(op.status, CAIRN_EIO);
        assert_non_null(strstr(op.err.text, "cannot sync 'batch'"));
    } else {
        assert_fails(crn_file_sync(b->file), CAIRN_EIO, "cannot sync 'batch'");
    }
    assert_int_equal(crn_fault_seen(), 1); /* one failure, one attempt: never tried again */
    assert_ok(crn_file_sync(b->file));
}

static void test_failure_of_a_sync_is_told(void **state)
{
    (void)state;
    for_each_way(check_syncs);
}

/* --- partial transfers --- */

static void check_short(batch *b)
{
    unsigned char back[NOPS * OP_BYTES];
    fill(b, 2);
    clear_file(b);
    crn_fault_arm(&(crn_fault){CRN_FAULT_WRITE, CRN_FAULT_SHORT, 1, 0});
    run_batch(b, CRN_OP_WRITE);
    assert_int_equal(crn_fault_seen(), NOPS); /* going on is not another operation */
    crn_fault_arm(NULL);
    assert_ok(crn_file_read(b->file, back, sizeof back, 0));
    assert_memory_equal(back, b->data, sizeof back);

    memset(b->data, 0, sizeof b->data);
    crn_fault_arm(&(crn_fault){CRN_FAULT_READ, CRN_FAULT_SHORT, 1, 0});
    run_batch(b, CRN_OP_READ);
    crn_fault_arm(NULL);
    assert_memory_equal(back, b->data, sizeof back);
    for (int i = 0; i < NOPS; i++)
        assert_int_equal(b->op[i].status, CAIRN_OK);
}

static void test_short_transfers_go_on(void **state)
{
    (void)state;
    for_each_way(check_short);
}

/* The sectors of the operation at off that hold new data, as a set; none may be mixed. */
static uint64_t sectors_written(batch *b, uint64_t off, uint64_t *ret_all)
{
    unsigned char back[OP_BYTES];
    uint64_t set = 0;
    int i = 0;
    assert_ok(crn_file_read(b->file, back, OP_BYTES, off));
    for (size_t at = 0, len; at < OP_BYTES; at += len, i++) {
        len = CRN_MIN(SECTOR - (off + at) % SECTOR, OP_BYTES - at);
        if (memcmp(back + at, b->data + off + at, len) == 0)
            set |= UINT64_C(1) << i;
        else
            assert_true(is_zero(back + at, len));
    }
    *ret_all = (UINT64_C(1) << i) - 1;
    return set;
}

static void check_torn(batch *b)
{
    fill(b, 3);
    bool partial = false;
    for (uint64_t at = 1; at <= NOPS; at++) {
        uint64_t set[2], all;
        for (int twice = 0; twice < 2; twice++) {
            clear_file(b);
            crn_fault_arm(&(crn_fault){CRN_FAULT_WRITE, CRN_FAULT_TORN, at, 1});
            run_batch(b, CRN_OP_WRITE);
            crn_fault_arm(NULL);
            for (uint64_t i = 0; i < NOPS; i++)
                assert_int_equal(b->op[i].status, i + 1 == at ? CAIRN_EIO : CAIRN_OK);
            set[twice] = sectors_written(b, (at - 1) * OP_BYTES, &all);
        }
        assert_int_equal(set[0], set[1]); /* the same each time */
        partial |= set[0] != 0 && set[0] != all;
    }
    assert_true(partial);
}

static void test_torn_writes_leave_whole_sectors(void **state)
{
    (void)state;
    for_each_way(check_torn);
}

/* --- counting and watching --- */

static void *write_many(void *arg)
{
    crn_file *f = arg;
    char byte = 1;
    uint64_t failures = 0;
    for (int i = 0; i < 500; i++)
        failures += crn_file_write(f, &byte, 1, 0) < 0;
    return (void *)(uintptr_t)failures;
}

static void test_threads_are_counted_together(void **state)
{
    (void)state;
    enum { N = 4 };
    pthread_t thread[N];
    crn_file *f;
    assert_ok(crn_file_open(dir, "count", CRN_WRITE | CRN_CREATE, &f));
    crn_fault_arm(&(crn_fault){CRN_FAULT_WRITE, CRN_FAULT_EIO, 700, 3});
    for (int i = 0; i < N; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, write_many, f), 0);
    uint64_t failures = 0;
    for (int i = 0; i < N; i++) {
        void *ret;
        pthread_join(thread[i], &ret);
        failures += (uintptr_t)ret;
    }
    assert_int_equal(crn_fault_seen(), 500 * N);
    assert_int_equal(failures, 3);
    crn_file_close(f);
}

typedef struct diary {
    char text[512];
    size_t n;
} diary;

static void note(void *arg, const crn_fault_event *e)
{
    static const char *const kinds[] = {
        [CRN_SEEN_OPEN] = "open",     [CRN_SEEN_WRITE] = "write",
        [CRN_SEEN_SYNC] = "sync",     [CRN_SEEN_TRUNCATE] = "truncate",
        [CRN_SEEN_RENAME] = "rename", [CRN_SEEN_UNLINK] = "unlink",
        [CRN_SEEN_MKDIR] = "mkdir",   [CRN_SEEN_DIRSYNC] = "dirsync"};
    diary *d = arg;
    assert_int_equal(e->dirfd, dir);
    assert_int_equal(e->file != NULL, e->kind == CRN_SEEN_WRITE || e->kind == CRN_SEEN_SYNC ||
                                          e->kind == CRN_SEEN_TRUNCATE);
    d->n += (size_t)snprintf(d->text + d->n, sizeof d->text - d->n, "%s(%s%s%s %llu+%zu) ",
                             kinds[e->kind], e->name ? e->name : "", e->to ? ">" : "",
                             e->to ? e->to : "", (unsigned long long)e->off, e->nbytes);
}

static void test_watcher_sees_changes_in_order(void **state)
{
    (void)state;
    diary d = {0};
    crn_file *f;
    int sub;
    char byte;
    crn_fault_watch(note, &d);
    assert_ok(crn_dir_open(dir, "watched", true, &sub));
    close(sub);
    assert_ok(crn_file_open(dir, "w", CRN_READ | CRN_WRITE | CRN_CREATE, &f));
    assert_ok(crn_file_write(f, "abc", 3, 7));
    assert_ok(crn_file_read(f, &byte, 1, 8)); /* changes nothing: not told */
    assert_ok(crn_file_truncate(f, 9));
    assert_ok(crn_file_sync(f));
    crn_fault_arm(&(crn_fault){CRN_FAULT_WRITE, CRN_FAULT_EIO, 1, 1});
    assert_fails(crn_file_write(f, "x", 1, 0), CAIRN_EIO, "cannot write"); /* does not happen */
    crn_fault_arm(NULL);
    crn_file_close(f);
    assert_ok(crn_file_replace(dir, "r", "12345", 5));
    assert_ok(crn_unlink(dir, "r"));
    crn_fault_watch(NULL, NULL);
    assert_ok(crn_unlink(dir, "w"));
    assert_string_equal(d.text, "mkdir(watched 0+0) open(w 0+0) write(w 7+3) truncate(w 9+0) "
                                "sync(w 0+0) open(.r.tmp 0+0) truncate(.r.tmp 0+0) "
                                "write(.r.tmp 0+5) sync(.r.tmp 0+0) rename(.r.tmp>r 0+0) "
                                "dirsync( 0+0) unlink(r 0+0) ");
}

static void test_each_other_operation_fails(void **state)
{
    (void)state;
    crn_file *f;
    int fd;
    assert_ok(crn_file_open(dir, "each", CRN_WRITE | CRN_CREATE, &f));
    crn_fault_arm(&(crn_fault){CRN_FAULT_ANY, CRN_FAULT_ENOSPC, 1, 0});
    assert_fails(crn_file_truncate(f, 1), CAIRN_ENOSPC, "cannot set the length of 'each' to 1");
    assert_fails(crn_dir_open(dir, "d", true, &fd), CAIRN_ENOSPC, "cannot make directory 'd'");
    assert_fails(crn_rename(dir, "each", "e"), CAIRN_ENOSPC, "cannot rename 'each' to 'e'");
    assert_fails(crn_unlink(dir, "each"), CAIRN_ENOSPC, "cannot remove 'each'");
    assert_fails(crn_dir_sync(dir), CAIRN_ENOSPC, "cannot sync a directory");
    crn_file *other;
    assert_fails(crn_file_open(dir, "other", CRN_WRITE | CRN_CREATE, &other), CAIRN_ENOSPC,
                 "cannot open 'other'");
    crn_fault_arm(NULL);
    assert_int_equal(faccessat(dir, "other", F_OK, 0), -1);
    assert_int_equal(faccessat(dir, "each", F_OK, 0), 0);
    crn_file_close(f);
}

/* --- a disk that is really full --- */

static bool mount_small(const char *path)
{
    return mkdir(path, 0700) == 0 && unshare(CLONE_NEWNS) == 0 &&
           mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("small", path, "tmpfs", 0, "size=256k") == 0;
}

static void fill_disk(int small, crn_io_backend kind)
{
    enum { N = 8, BYTES = 64 << 10 };
    static char data[BYTES];
    static crn_op ops[N];
    struct iovec iov = {data, BYTES};
    crn_io *io;
    crn_file *f;
    if (crn_io_create(kind, N, &io) < 0)
        return;
    assert_ok(crn_file_replace(small, "kept", "safe", 4));
    assert_ok(crn_file_open(small, "big", CRN_WRITE | CRN_CREATE, &f));
    for (int i = 0; i < N; i++) {
        ops[i] = (crn_op){
            .kind = CRN_OP_WRITE, .file = f, .iov = &iov, .niov = 1, .off = (uint64_t)i * BYTES};
        assert_ok(crn_io_submit(io, &ops[i]));
    }
    crn_io_free(io);
    int nfull = 0;
    for (int i = 0; i < N; i++) {
        nfull += ops[i].status == CAIRN_ENOSPC;
        assert_true(ops[i].status == CAIRN_OK ||
                    strstr(ops[i].err.text, "No space left on device"));
    }
    assert_in_range(nfull, 4, 7); /* 256 KiB have room for at most 4, of which 'kept' takes some */
    assert_fails(crn_file_replace(small, "kept", data, BYTES), CAIRN_ENOSPC, "cannot replace");
    void *kept;
    size_t n;
    assert_ok(crn_file_slurp(small, "kept", 100, &kept, &n));
    assert_string_equal(kept, "safe");
    free(kept);
    crn_file_close(f);
    assert_ok(crn_unlink(small, "big"));
    assert_ok(crn_file_replace(small, "kept", data, BYTES)); /* there is room again */
    assert_ok(crn_unlink(small, "kept"));
}

static void test_full_disk(void **state)
{
    (void)state;
    char path[128];
    snprintf(path, sizeof path, "%s/small", scratch);
    if (!mount_small(path)) {
        print_message("SKIPPED: cannot mount a small disk: %s\n", strerror(errno));
        skip();
    }
    int small = open(path, O_RDONLY | O_DIRECTORY);
    assert_true(small >= 0);
    fill_disk(small, CRN_IO_URING);
    fill_disk(small, CRN_IO_THREADS);
    close(small);
    assert_int_equal(umount2(path, MNT_DETACH), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_failures_hit_the_nth_write, disarm),
        cmocka_unit_test_teardown(test_failures_of_reads_from_the_nth_on, disarm),
        cmocka_unit_test_teardown(test_failure_of_a_sync_is_told, disarm),
        cmocka_unit_test_teardown(test_short_transfers_go_on, disarm),
        cmocka_unit_test_teardown(test_torn_writes_leave_whole_sectors, disarm),
        cmocka_unit_test_teardown(test_threads_are_counted_together, disarm),
        cmocka_unit_test_teardown(test_watcher_sees_changes_in_order, disarm),
        cmocka_unit_test_teardown(test_each_other_operation_fails, disarm),
        cmocka_unit_test_teardown(test_full_disk, disarm),
    };
    return cmocka_run_group_tests_name("io_fault", tests, scratch_begin, scratch_end);
}
