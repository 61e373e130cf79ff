/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The queue that callers see: the choice of a backend, the limit on what is in flight, the order in
 * which waiting operations start and finished ones are handed back. Used by one thread at a time,
 * so nothing here is locked.
 *
 *     submit -> waiting -> in flight (at most depth attempts) -> finished -> wait
 *                              ^            |
 *                              +-- more ----+
 */
#include "io/io_impl.h"

enum { DEPTH_MAX = 4096 };

struct crn_io {
    const crn_io_ops *ops;
    void *self; /* the backend's */
    unsigned depth, inflight;
    crn_op_list waiting;  /* empty unless inflight == depth */
    crn_op_list finished; /* status set, not handed back yet */
};

/* In the order in which CRN_IO_AUTO tries them. */
static const struct {
    crn_io_backend kind;
    const crn_io_ops *ops;
} backends[] = {
#if CRN_WITH_LIBURING
    {CRN_IO_URING, &crn_io_uring},
#endif
    {CRN_IO_THREADS, &crn_io_threads},
};

static cairn_status create_backend(crn_io_backend kind, crn_io *io)
{
    cairn_status rc = CAIRN_EUNSUPPORTED;
    CRN_FAIL_IF(
        !CRN_WITH_LIBURING && kind == CRN_IO_URING, CAIRN_EUNSUPPORTED,
        "this Cairn was built without io_uring: build it with liburing, or set io.backend to "
        "auto or threads");
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        if (kind != CRN_IO_AUTO && kind != backends[i].kind)
            continue;
        rc = backends[i].ops->create(io->depth, &io->self);
        if (rc == CAIRN_OK) {
            io->ops = backends[i].ops;
            break;
        }
    }
    return rc;
}

cairn_status crn_io_create(crn_io_backend backend, unsigned depth, crn_io **ret)
{
    crn_io *io;
    CRN_FAIL_IF(depth == 0, CAIRN_EINVAL, "a queue needs a depth of at least 1");
    CRN_TRY(crn_fault_ready());
    CRN_TRY(crn_alloc(&io, 1));
    io->depth = CRN_MIN(depth, DEPTH_MAX);
    cairn_status rc = create_backend(backend, io);
    if (rc < 0) {
        free(io);
        CRN_TRY(rc);
    }
    *ret = io;
    return CAIRN_OK;
}

const char *crn_io_name(const crn_io *io)
{
    return io->ops->name;
}

static cairn_status start(crn_io *io, crn_op *op)
{
    crn_op_aim(op);
    CRN_TRY(io->ops->start(io->self, op));
    io->inflight++;
    return CAIRN_OK;
}

cairn_status crn_io_submit(crn_io *io, crn_op *op)
{
    CRN_TRY(crn_op_prepare(op));
    if (!crn_op_begin(op))
        crn_op_push(&io->finished, op);
    else if (io->inflight == io->depth)
        crn_op_push(&io->waiting, op);
    else
        CRN_TRY(start(io, op));
    return CAIRN_OK;
}

/* Start op after its submitting call has returned: a failure completes the operation. */
static void start_later(crn_io *io, crn_op *op)
{
    if (start(io, op) < 0) {
        crn_op_fail(op);
        crn_op_push(&io->finished, op);
    }
}

/* Take in the end of one attempt and keep the backend busy. */
static void settle(crn_io *io, crn_op *op)
{
    io->inflight--;
    if (crn_op_settle(op))
        crn_op_push(&io->finished, op);
    else
        start_later(io, op);
    while (io->inflight < io->depth && io->waiting.first)
        start_later(io, crn_op_pop(&io->waiting));
}

cairn_status crn_io_wait(crn_io *io, crn_op **ret_op)
{
    while (!io->finished.first && io->inflight > 0) {
        crn_op *op;
        CRN_TRY(io->ops->finish(io->self, &op));
        settle(io, op);
    }
    *ret_op = crn_op_pop(&io->finished);
    return CAIRN_OK;
}

void crn_io_free(crn_io *io)
{
    crn_op *op;
    if (!io)
        return;
    do {
        if (crn_io_wait(io, &op) < 0)
            break; /* the backend is broken: ending it is all that is left */
    } while (op);
    io->ops->free(io->self);
    free(io);
}
