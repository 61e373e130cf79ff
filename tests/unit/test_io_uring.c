/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Waits on io_uring that come back without anything: the backend gives the kernel something to do,
 * and that must neither be taken for an operation of the caller nor get lost in a full ring. The
 * call of liburing is this one here, which plays a wait that has lasted too long.
 *
 * NEEDS: liburing
 */
#include "harness/harness.h"
#include "io/io.h"

#include <dlfcn.h>
#include <errno.h>

#include <liburing.h>

static unsigned ntimeouts;  /* still to be played */
static unsigned most_ready; /* of attempts that lay in the ring when it was entered */

typedef int wait_fn(struct io_uring *ring, struct io_uring_cqe **cqe, unsigned n,
                    struct __kernel_timespec *limit, sigset_t *mask);

int io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **cqe, unsigned n,
                                     struct __kernel_timespec *limit, sigset_t *mask)
{
    wait_fn *real;
    void *found = dlsym(RTLD_NEXT, "io_uring_submit_and_wait_timeout");
    memcpy(&real, &found, sizeof real);
    most_ready = CRN_MAX(most_ready, io_uring_sq_ready(ring));
    if (ntimeouts == 0)
        return real(ring, cqe, n, limit, mask);
    ntimeouts--;
    return -ETIME;
}

/* Read the bytes of a file one by one, with waits that end early before each. */
static void read_with_timeouts(unsigned depth, unsigned expected)
{
    char scratch[64];
    crn_io *io;
    crn_file *f;
    static const char text[] = "abcdefgh";
    cairn_status rc = crn_io_create(CRN_IO_URING, depth, &io);
    if (rc == CAIRN_EUNSUPPORTED)
        skip();
    assert_ok(rc);
    make_scratch(scratch, sizeof scratch, "uring");
    const int dir = open(scratch, O_RDONLY | O_DIRECTORY);
    assert_ok(crn_file_open(dir, "f", CRN_READ | CRN_WRITE | CRN_CREATE, &f));
    assert_ok(crn_file_write(f, text, sizeof text, 0));
    most_ready = 0;
    for (size_t i = 0; i < sizeof text; i++) {
        char byte = 0;
        const struct iovec iov = {&byte, 1};
        crn_op op = {.kind = CRN_OP_READ, .file = f, .iov = &iov, .niov = 1, .off = i}, *done;
        ntimeouts = 2;
        assert_ok(crn_io_submit(io, &op));
        assert_ok(crn_io_wait(io, &done));
        assert_ptr_equal(done, &op);
        assert_ok(op.status);
        assert_int_equal(byte, text[i]);
        assert_int_equal(ntimeouts, 0);
        assert_ok(crn_io_wait(io, &done));
        assert_null(done);
    }
    assert_int_equal(most_ready, expected);
    crn_file_close(f);
    crn_io_free(io);
    close(dir);
    remove_tree(scratch);
}

static void test_a_wait_that_lasts_is_nudged(void **state)
{
    (void)state;
    read_with_timeouts(8, 3); /* the read, and something to do after each of the two */
}

static void test_a_full_ring_is_not_nudged(void **state)
{
    (void)state;
    read_with_timeouts(1, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_wait_that_lasts_is_nudged),
                                       cmocka_unit_test(test_a_full_ring_is_not_nudged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
