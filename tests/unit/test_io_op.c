/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The life of one operation, with outcomes that a real kernel seldom gives.
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
        size_t at = 0;
        bool ended = false;
        while (!ended) {
            size_t room = 0;
            for (int i = 0; i < op.ncur; i++) {
                if (op.cur[i].iov_len > 0)
                    assert_ptr_equal(op.cur[i].iov_base, data + at + room);
                room += op.cur[i].iov_len;
            }
            assert_in_range(room, 1, N - at);
            size_t n = 1 + crn_rng_below(&rng, room);
            at += n;
            ended = settle(&op, (ssize_t)n);
            if (!ended)
                crn_op_aim(&op);
        }
        assert_int_equal(at, N);
        assert_int_equal(op.status, CAIRN_OK);
    }
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
        cmocka_unit_test(test_resume_covers_every_byte),
        cmocka_unit_test(test_refused_direct_falls_back),
    };
    return cmocka_run_group_tests_name("io_op", tests, NULL, NULL);
}
