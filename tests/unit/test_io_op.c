/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The life of one operation, with outcomes that a real kernel seldom gives.
 *
 * NEEDS: random123
 */
#include "harness/harness.h"
#include "io/io_impl.h"

#include <errno.h>

static char name[] = "file";
static struct crn_file file = {.fd = 5, .direct_fd = -1, .name = name};

static crn_op begin(crn_op_kind kind, const struct iovec *iov, int niov)
{
    crn_op op = {.kind = kind, .file = &file, .iov = iov, .niov = niov, .off = 100};
    assert_ok(crn_op_prepare(&op));
    assert_true(crn_op_begin(&op));
    crn_op_aim(&op);
    return op;
}

static bool settle(crn_op *op, ssize_t result)
{
    op->result = result;
    return crn_op_settle(op);
}

static void test_interrupted_transfers_are_tried_again(void **state)
{
    (void)state;
    char data[8];
    struct iovec iov = {data, 8};
    crn_op op = begin(CRN_OP_WRITE, &iov, 1);
    assert_false(settle(&op, -EINTR));
    assert_false(settle(&op, -EAGAIN));
    assert_true(settle(&op, 8));
    assert_int_equal(op.status, CAIRN_OK);
}

static void test_interrupted_sync_has_failed(void **state)
{
    (void)state;
    crn_op op = begin(CRN_OP_SYNC, NULL, 0);
    assert_true(settle(&op, -EINTR));
    assert_int_equal(op.status, CAIRN_EIO);
}

static void test_write_of_nothing_has_failed(void **state)
{
    (void)state;
    char data[8];
    struct iovec iov = {data, 8};
    crn_op op = begin(CRN_OP_WRITE, &iov, 1);
    assert_false(settle(&op, 3));
    crn_op_aim(&op);
    assert_true(settle(&op, 0));
    assert_int_equal(op.status, CAIRN_EIO);
    assert_non_null(strstr(op.err.text, "cannot write 8 bytes at 100 of 'file' (3 done)"));
}

static void test_short_fault_halves_the_first_attempt_only(void **state)
{
    (void)state;
    char data[8];
    struct iovec iov[] = {{data, 0}, {data, 5}, {data + 5, 3}};
    crn_fault_arm(&(crn_fault){CRN_FAULT_WRITE, CRN_FAULT_SHORT, 1, 1});
    crn_op op = begin(CRN_OP_WRITE, iov, 3);
    crn_fault_arm(NULL);
    assert_int_equal(op.ncur, 1);
    assert_int_equal(op.cur[0].iov_len, 3);
    assert_false(settle(&op, 3));
    crn_op_aim(&op);
    assert_int_equal(op.cur[0].iov_len, 2);
    assert_ptr_equal(op.cur[0].iov_base, data + 3);
}

/* Bytes of the attempt under way, which must be those of memory from at on. */
static size_t attempt_bytes(const crn_op *op, const char *at)
{
    size_t n = 0;
    for (int i = 0; i < op->ncur; i++) {
        if (op->cur[i].iov_len > 0)
            assert_ptr_equal(op->cur[i].iov_base, at + n);
        n += op->cur[i].iov_len;
    }
    return n;
}

/* Whatever lengths come back, the attempts cover every byte once and in order. */
static void test_resume_covers_every_byte(void **state)
{
    (void)state;
    enum { N = 40 };
    char data[N];
    crn_rng rng = crn_rng_of(test_seed(), 0);
    struct iovec iov[] = {{data, 0},      {data, 7},       {data + 7, 1}, {data + 8, 0},
                          {data + 8, 20}, {data + 28, 12}, {data, 0}};
    for (int round = 0; round < 1000; round++) {
        crn_op op = begin(CRN_OP_READ, iov, 7);
        for (size_t at = 0, n; at < N; at += n) {
            crn_op_aim(&op);
            size_t most = attempt_bytes(&op, data + at);
            assert_in_range(most, 1, N - at);
            n = 1 + crn_rng_below(&rng, most);
            assert_int_equal(settle(&op, (ssize_t)n), at + n == N);
        }
        assert_int_equal(op.status, CAIRN_OK);
    }
}

static void test_direct_wants_everything_aligned(void **state)
{
    (void)state;
    struct crn_file f = {.direct_fd = 7, .direct_align = 4096, .direct_mem_align = 512};
    char *at = (char *)(uintptr_t)(1 << 20);
    struct iovec good[] = {{at, 4096}, {at + 4608, 8192}};
    struct iovec odd_length[] = {{at, 4096 + 512}, {at, 4096 - 512}};
    struct iovec odd_memory[] = {{at, 4096}, {at + 256, 4096}};
    assert_true(crn_file_takes_direct(&f, good, 2, 8192));
    assert_false(crn_file_takes_direct(&f, good, 2, 512));
    assert_false(crn_file_takes_direct(&f, odd_length, 2, 8192));
    assert_false(crn_file_takes_direct(&f, odd_memory, 2, 8192));
    assert_int_equal(crn_file_direct_align(&f), 4096);
    f.direct_fd = -1;
    assert_false(crn_file_takes_direct(&f, good, 2, 8192));
    assert_int_equal(crn_file_direct_align(&f), 0);
}

/* The kernel refuses a direct transfer although the file said that it would take it. */
static void test_refused_direct_falls_back(void **state)
{
    (void)state;
    char scratch[64], path[96], back[100];
    crn_file *f;
    make_scratch(scratch, sizeof scratch, "op");
    snprintf(path, sizeof path, "%s/f", scratch);
    assert_ok(crn_file_open(AT_FDCWD, path, CRN_READ | CRN_WRITE | CRN_CREATE | CRN_DIRECT, &f));
    if (crn_file_direct_align(f) == 0) {
        print_message("SKIPPED: no direct transfers in the build tree\n");
    } else {
        f->direct_align = f->direct_mem_align = 1; /* a lie */
        memset(back, 7, sizeof back);
        assert_ok(crn_file_write(f, back, sizeof back, 3));
        assert_int_equal(crn_file_direct_align(f), 0);
        memset(back, 0, sizeof back);
        assert_ok(crn_file_read(f, back, sizeof back, 3));
        assert_int_equal(back[99], 7);
    }
    crn_file_close(f);
    remove_tree(scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interrupted_transfers_are_tried_again),
        cmocka_unit_test(test_interrupted_sync_has_failed),
        cmocka_unit_test(test_write_of_nothing_has_failed),
        cmocka_unit_test(test_short_fault_halves_the_first_attempt_only),
        cmocka_unit_test(test_resume_covers_every_byte),
        cmocka_unit_test(test_direct_wants_everything_aligned),
        cmocka_unit_test(test_refused_direct_falls_back),
    };
    return cmocka_run_group_tests_name("io_op", tests, NULL, NULL);
}
