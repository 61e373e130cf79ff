/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The life of one operation, the same for both backends and for the blocking forms: it passes the
 * fault gate once, then takes as many attempts (system calls) as it needs. After each attempt
 * crn_op_settle decides: more to move, try again, or ended. Here, and only here, are short
 * transfers resumed and EINTR, EAGAIN and a refused direct transfer handled.
 *
 * An attempt never needs memory of its own: it covers either the unfinished rest of one piece of
 * the caller's vector, or all pieces from there on.
 */
#include "io/io_impl.h"

#include <errno.h>
#include <unistd.h>

static cairn_status measure(crn_op *op)
{
    CRN_FAIL_IF(op->niov < 1 || op->niov > CRN_OP_IOV, CAIRN_EINVAL,
                "'%s': an operation of %d pieces, 1 to %d are possible", op->file->name, op->niov,
                CRN_OP_IOV);
    size_t sum = 0;
    bool wide = false;
    for (int i = 0; i < op->niov; i++)
        wide |= __builtin_add_overflow(sum, op->iov[i].iov_len, &sum);
    wide |= sum > INT64_MAX || op->off > INT64_MAX - (uint64_t)sum;
    CRN_FAIL_IF(wide, CAIRN_EINVAL, "'%s': an operation at %llu reaches past all possible offsets",
                op->file->name, (unsigned long long)op->off);
    op->nbytes = sum;
    return CAIRN_OK;
}

cairn_status crn_op_prepare(crn_op *op)
{
    op->status = CAIRN_OK;
    op->nbytes = op->moved = 0;
    op->piece = 0;
    op->piece_done = 0;
    op->cut = false;
    if (op->kind != CRN_OP_SYNC)
        CRN_TRY(measure(op));
    return CAIRN_OK;
}

void crn_op_fail(crn_op *op)
{
    crn_err_take(&op->err);
    op->status = op->err.code;
}

/* End op with an errno. The thread's own record, perhaps of an earlier failure, stays as it was. */
static void fail_sys(crn_op *op, int sys)
{
    crn_err keep;
    crn_err_take(&keep);
    if (op->kind == CRN_OP_SYNC)
        (void)crn_fail_sys(sys, "cannot sync '%s'", op->file->name);
    else
        (void)crn_fail_sys(sys, "cannot %s %zu bytes at %llu of '%s' (%zu done)",
                           op->kind == CRN_OP_READ ? "read" : "write", op->nbytes,
                           (unsigned long long)op->off, op->file->name, op->moved);
    crn_op_fail(op);
    (void)crn_err_give(&keep);
}

static void fail_past_end(crn_op *op)
{
    crn_err keep;
    crn_err_take(&keep);
    (void)crn_fail(CAIRN_ECORRUPT, "'%s' ends at %llu, before the end of %zu bytes wanted at %llu",
                   op->file->name, (unsigned long long)(op->off + op->moved), op->nbytes,
                   (unsigned long long)op->off);
    crn_op_fail(op);
    (void)crn_err_give(&keep);
}

static int pass(crn_op *op)
{
    static const crn_fault_where where[] = {
        [CRN_OP_READ] = CRN_FAULT_READ,
        [CRN_OP_WRITE] = CRN_FAULT_WRITE,
        [CRN_OP_SYNC] = CRN_FAULT_SYNC,
    };
    crn_fault_event event = {
        .kind = op->kind == CRN_OP_SYNC ? CRN_SEEN_SYNC : CRN_SEEN_WRITE,
        .dirfd = op->file->dirfd,
        .name = op->file->name,
        .file = op->file,
        .off = op->off,
        .nbytes = op->nbytes,
        .iov = op->iov,
        .niov = op->niov,
    };
    return crn_fault_pass(where[op->kind], op->kind == CRN_OP_READ ? NULL : &event, &op->cut);
}

bool crn_op_begin(crn_op *op)
{
    int sys = pass(op);
    if (sys != 0)
        fail_sys(op, sys);
    return sys == 0 && (op->nbytes > 0 || op->kind == CRN_OP_SYNC);
}

void crn_op_aim(crn_op *op)
{
    op->fd = op->file->fd;
    op->direct = false;
    if (op->kind == CRN_OP_SYNC)
        return;

    while (op->iov[op->piece].iov_len == op->piece_done) { /* finished, or empty from the start */
        op->piece++;
        op->piece_done = 0;
    }
    op->cur = op->iov + op->piece;
    op->ncur = op->niov - op->piece;
    if (op->piece_done > 0 || op->cut) {
        size_t left = op->cur->iov_len - op->piece_done;
        op->rest.iov_base = (char *)op->cur->iov_base + op->piece_done;
        op->rest.iov_len = op->cut ? (left + 1) / 2 : left;
        op->cur = &op->rest;
        op->ncur = 1;
        op->cut = false;
    }
    if (crn_file_takes_direct(op->file, op->cur, op->ncur, op->off + op->moved)) {
        op->fd = op->file->direct_fd;
        op->direct = true;
    }
}

ssize_t crn_op_call(const crn_op *op)
{
    off_t off = (off_t)(op->off + op->moved);
    ssize_t n = -1;
    switch (op->kind) {
    case CRN_OP_READ:
        n = preadv(op->fd, op->cur, op->ncur, off);
        break;
    case CRN_OP_WRITE:
        n = pwritev(op->fd, op->cur, op->ncur, off);
        break;
    case CRN_OP_SYNC:
        n = fdatasync(op->fd);
        break;
    }
    return n < 0 ? -errno : n;
}

static void advance(crn_op *op, size_t n)
{
    op->moved += n;
    while (n > 0) {
        size_t left = op->iov[op->piece].iov_len - op->piece_done;
        size_t step = CRN_MIN(left, n);
        op->piece_done += step;
        n -= step;
        if (step == left) {
            op->piece++;
            op->piece_done = 0;
        }
    }
}

bool crn_op_settle(crn_op *op)
{
    ssize_t res = op->result;
    if (op->kind == CRN_OP_SYNC) { /* even EINTR may hide a lost write that is reported only once */
        if (res < 0)
            fail_sys(op, (int)-res);
        return true;
    }
    if (res == -EINTR || res == -EAGAIN)
        return false;
    if (res == -EINVAL && op->direct) {
        /* A lone flag: whoever reads it late only makes one more vain attempt. */
        atomic_store_explicit(&op->file->direct_refused, true, memory_order_relaxed);
        return false;
    }
    if (res > 0) {
        advance(op, (size_t)res);
        return op->moved == op->nbytes;
    }
    if (res == 0 && op->kind == CRN_OP_READ)
        fail_past_end(op);
    else
        fail_sys(op, res == 0 ? EIO : (int)-res);
    return true;
}
