/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The backend over io_uring. One ring per queue, with room for all attempts in flight, so that
 * neither of its sides can overflow.
 *
 * Two choices matter for speed. A transfer through the page cache is a copy; where the kernel can,
 * it makes it within the submitting call. It is handed to the kernel's workers instead, so that the
 * caller computes meanwhile. That has a price: for callers that only wait, cached reads on ext4 ran
 * at 0.65 of the speed at 4 KiB, 0.8 at 16 KiB (medians of six runs on a busy machine of two
 * cores), and gained or stayed within the noise for cold reads, writes and files in memory. Small
 * attempts are gathered before the kernel is entered, as the entry costs as much as a small
 * transfer.
 */
#include "io/io_impl.h"

#include <errno.h>
#include <liburing.h>
#include <time.h>

/* A wait this long without an end is looked into: see nudge. */
static const struct __kernel_timespec patience = {.tv_sec = 1};

/* Enter the kernel when so many bytes or so many attempts are gathered. */
enum { GATHER_BYTES = 256 << 10, GATHER_COUNT = 16 };

typedef struct uring {
    struct io_uring ring;
    size_t gathered_bytes; /* prepared, but not yet given to the kernel */
    unsigned gathered;
} uring;

/*
 * Where one thread's ring was, another's may be mapped later. The kernel sees to the order, but
 * liburing makes system calls of its own, which the thread sanitizer does not see: annotate them.
 */
#if !defined(__has_feature)
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#include <sanitizer/tsan_interface.h>
static char mapping;
#define MAPPED()         __tsan_acquire(&mapping)
#define ABOUT_TO_UNMAP() __tsan_release(&mapping)
#else
#define MAPPED()         ((void)0)
#define ABOUT_TO_UNMAP() ((void)0)
#endif

static void uring_free(void *self)
{
    uring *u = self;
    ABOUT_TO_UNMAP();
    io_uring_queue_exit(&u->ring);
    free(u);
}

static cairn_status uring_create(unsigned depth, void **ret_self)
{
    /*
     * Completions need no interrupt, as we come for them; a bad attempt does not hold up the rest.
     * Older kernels refuse the flags and do without. SINGLE_ISSUER and DEFER_TASKRUN would tie the
     * ring to the thread that creates it, while ours may move on to another.
     */
    static const unsigned flags[] = {
        IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL,
        0,
    };
    uring *u;
    int rc = -ENOSYS;
    CRN_TRY(crn_alloc(&u, 1));
    for (size_t i = 0; rc < 0 && i < sizeof flags / sizeof *flags; i++)
        rc = io_uring_queue_init(depth, &u->ring, flags[i]);
    if (rc < 0) {
        free(u);
        CRN_FAIL_IF(rc == -ENOMEM, CAIRN_ENOMEM, "no memory for io_uring");
        return crn_fail(CAIRN_EUNSUPPORTED, "the kernel refuses io_uring: %s", CRN_SYS_TEXT(-rc));
    }
    MAPPED();
    *ret_self = u;
    return CAIRN_OK;
}

static bool is_passing(int rc)
{
    return rc == -EINTR || rc == -EAGAIN || rc == -EBUSY;
}

/*
 * Linux 6.18 was seen to sleep on work for its workers while it had none. Work that needs one makes
 * it start one; whatever the wait was for, that does no harm.
 */
static void nudge(uring *u)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    if (!sqe)
        return; /* full: the next entry gives the kernel work anyway */
    io_uring_prep_nop(sqe);
    io_uring_sqe_set_flags(sqe, IOSQE_ASYNC);
    io_uring_sqe_set_data(sqe, NULL);
}

/* Enter the kernel with all that is gathered; with wait, until an attempt has ended or patience is
 * over. What it does not take for now stays gathered in the ring. */
static cairn_status enter(uring *u, bool wait)
{
    struct io_uring_cqe *cqe;
    struct __kernel_timespec limit = patience;
    int rc;
    if (wait)
        rc = io_uring_submit_and_wait_timeout(&u->ring, &cqe, 1, &limit, NULL);
    else
        rc = io_uring_submit(&u->ring);
    if (rc == -ETIME)
        nudge(u);
    else if (rc < 0 && !is_passing(rc))
        return crn_fail_sys(-rc, "io_uring does not take operations");
    u->gathered = io_uring_sq_ready(&u->ring);
    if (u->gathered == 0)
        u->gathered_bytes = 0;
    return CAIRN_OK;
}

static size_t prepare(struct io_uring_sqe *sqe, crn_op *op)
{
    if (op->kind == CRN_OP_SYNC) {
        io_uring_prep_fsync(sqe, op->fd, IORING_FSYNC_DATASYNC);
        return GATHER_BYTES; /* slow to come back: never hold it back */
    }
    size_t left = op->nbytes - op->moved;
    if (op->kind == CRN_OP_READ)
        io_uring_prep_readv(sqe, op->fd, op->cur, (unsigned)op->ncur, op->off + op->moved);
    else
        io_uring_prep_writev(sqe, op->fd, op->cur, (unsigned)op->ncur, op->off + op->moved);
    if (!op->direct)
        io_uring_sqe_set_flags(sqe, IOSQE_ASYNC);
    return left;
}

static cairn_status uring_start(void *self, crn_op *op)
{
    uring *u = self;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    CRN_FAIL_IF(!sqe, CAIRN_EINTERNAL, "more operations in flight than io_uring was made for");
    size_t nbytes = prepare(sqe, op);
    io_uring_sqe_set_data(sqe, op);
    u->gathered++;
    u->gathered_bytes += nbytes;
    if (u->gathered >= GATHER_COUNT || u->gathered_bytes >= GATHER_BYTES)
        (void)enter(u, false); /* a failure comes back when the attempt is waited for */
    return CAIRN_OK;
}

static cairn_status uring_finish(void *self, crn_op **ret_op)
{
    static const struct timespec moment = {.tv_nsec = 100000};
    uring *u = self;
    struct io_uring_cqe *cqe;
    for (;;) {
        while (io_uring_peek_cqe(&u->ring, &cqe) == 0) {
            crn_op *op = io_uring_cqe_get_data(cqe); /* NULL: of a nudge */
            if (op)
                op->result = cqe->res;
            io_uring_cqe_seen(&u->ring, cqe);
            if (op) {
                *ret_op = op;
                return CAIRN_OK;
            }
        }
        CRN_TRY(enter(u, true));
        if (u->gathered > 0) /* the kernel lacks memory for more just now */
            nanosleep(&moment, NULL);
    }
}

const crn_io_ops crn_io_uring = {
    .name = "io_uring",
    .create = uring_create,
    .free = uring_free,
    .start = uring_start,
    .finish = uring_finish,
};
