/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading and writing by descriptor, in all forms. Copies between descriptors are a read and a
 * write; asynchronous ones are recorded when they are asked for, since within a call of MPI-IO that
 * is in this call, and nobody may ask how they ended.
 */
#include "trace/trace_posix.h"

#include <aio.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#define TRANSFER(name, call, buf_type)                                                             \
    CRN_EXPORT ssize_t name(int fd, buf_type buf, size_t n)                                        \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!crn_fd_enter(&e, CRN_CALL_##call, fd, HERE))                                          \
            return REAL(name)(fd, buf, n);                                                         \
        return crn_fd_leave_moved(&e, fd, n, REAL(name)(fd, buf, n));                              \
    }

#define TRANSFER_AT(name, call, buf_type, off_type)                                                \
    CRN_EXPORT ssize_t name(int fd, buf_type buf, size_t n, off_type off)                          \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!crn_fd_enter(&e, CRN_CALL_##call, fd, HERE))                                          \
            return REAL(name)(fd, buf, n, off);                                                    \
        return crn_fd_leave_moved_at(&e, n, off, REAL(name)(fd, buf, n, off));                     \
    }

static size_t total(const struct iovec *v, int n)
{
    size_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += v[i].iov_len;
    return sum;
}

#define VECTOR(name, call)                                                                         \
    CRN_EXPORT ssize_t name(int fd, const struct iovec *v, int n)                                  \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!crn_fd_enter(&e, CRN_CALL_##call, fd, HERE))                                          \
            return REAL(name)(fd, v, n);                                                           \
        return crn_fd_leave_moved(&e, fd, total(v, n), REAL(name)(fd, v, n));                      \
    }

#define VECTOR_AT(name, call, off_type)                                                            \
    CRN_EXPORT ssize_t name(int fd, const struct iovec *v, int n, off_type off)                    \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!crn_fd_enter(&e, CRN_CALL_##call, fd, HERE))                                          \
            return REAL(name)(fd, v, n, off);                                                      \
        return crn_fd_leave_moved_at(&e, total(v, n), off, REAL(name)(fd, v, n, off));             \
    }

/* With an offset of -1 it goes by the position of the descriptor. */
#define VECTOR_FLAGS(name, call, off_type)                                                         \
    CRN_EXPORT ssize_t name(int fd, const struct iovec *v, int n, off_type off, int flags)         \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!crn_fd_enter(&e, off == -1 ? CRN_CALL_##call : CRN_CALL_p##call, fd, HERE))           \
            return REAL(name)(fd, v, n, off, flags);                                               \
        ssize_t moved = REAL(name)(fd, v, n, off, flags);                                          \
        return off == -1 ? crn_fd_leave_moved(&e, fd, total(v, n), moved)                          \
                         : crn_fd_leave_moved_at(&e, total(v, n), off, moved);                     \
    }

TRANSFER(read, read, void *)
TRANSFER(write, write, const void *)
TRANSFER_AT(pread, pread, void *, off_t)
TRANSFER_AT(pread64, pread, void *, off64_t)
TRANSFER_AT(pwrite, pwrite, const void *, off_t)
TRANSFER_AT(pwrite64, pwrite, const void *, off64_t)
VECTOR(readv, readv)
VECTOR(writev, writev)
VECTOR_AT(preadv, preadv, off_t)
VECTOR_AT(preadv64, preadv, off64_t)
VECTOR_AT(pwritev, pwritev, off_t)
VECTOR_AT(pwritev64, pwritev, off64_t)
VECTOR_FLAGS(preadv2, readv, off_t)
VECTOR_FLAGS(preadv64v2, readv, off64_t)
VECTOR_FLAGS(pwritev2, writev, off_t)
VECTOR_FLAGS(pwritev64v2, writev, off64_t)

/* ---- from one descriptor to another ---- */

/* One side of a copy that began then: by the position of the descriptor if at is NULL. */
static void add_side(int fd, bool out, const off64_t *at, size_t nbytes, ssize_t moved,
                     uint64_t began, const void *ret, const void *frame)
{
    crn_ev e;
    uint32_t here = out ? CRN_CALL_write : CRN_CALL_read;
    if (moved < 0 || !crn_fd_enter(&e,
                                   !at   ? here
                                   : out ? CRN_CALL_pwrite
                                         : CRN_CALL_pread,
                                   fd, ret, frame))
        return;
    e.r.start = began;
    if (at)
        crn_fd_leave_moved_at(&e, nbytes, *at, moved);
    else
        crn_fd_leave_moved(&e, fd, nbytes, moved);
}

/* The duration is recorded with the read. */
#define SENDFILE(name, off_type)                                                                   \
    CRN_EXPORT ssize_t name(int to, int from, off_type *off, size_t n)                             \
    {                                                                                              \
        uint64_t began = crn_now_ns();                                                             \
        off64_t at = off ? *off : 0;                                                               \
        ssize_t moved = REAL(name)(to, from, off, n);                                              \
        add_side(from, false, off ? &at : NULL, n, moved, began, HERE);                            \
        add_side(to, true, NULL, n, moved, crn_now_ns(), HERE);                                    \
        return moved;                                                                              \
    }

SENDFILE(sendfile, off_t)
SENDFILE(sendfile64, off64_t)

CRN_EXPORT ssize_t copy_file_range(int from, off64_t *from_off, int to, off64_t *to_off, size_t n,
                                   unsigned flags)
{
    uint64_t began = crn_now_ns();
    off64_t from_at = from_off ? *from_off : 0, to_at = to_off ? *to_off : 0;
    ssize_t moved = REAL(copy_file_range)(from, from_off, to, to_off, n, flags);
    add_side(from, false, from_off ? &from_at : NULL, n, moved, began, HERE);
    add_side(to, true, to_off ? &to_at : NULL, n, moved, crn_now_ns(), HERE);
    return moved;
}

/* ---- asynchronous ---- */

#define AIO(name, call, cb_type)                                                                   \
    CRN_EXPORT int name(struct cb_type *cb)                                                        \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!crn_fd_enter(&e, CRN_CALL_##call, cb->aio_fildes, HERE))                              \
            return REAL(name)(cb);                                                                 \
        size_t n = cb->aio_nbytes;                                                                 \
        int64_t off = cb->aio_offset;                                                              \
        int rc = REAL(name)(cb);                                                                   \
        crn_fd_leave_moved_at(&e, n, off, rc == 0 ? (ssize_t)n : -1);                              \
        return rc;                                                                                 \
    }

AIO(aio_read, pread, aiocb)
AIO(aio_read64, pread, aiocb64)
AIO(aio_write, pwrite, aiocb)
AIO(aio_write64, pwrite, aiocb64)

/* ---- the names that calls have with _FORTIFY_SOURCE: they know how much room there is ---- */

#define CHECKED_PREAD(name, off_type)                                                              \
    CRN_EXPORT ssize_t name(int fd, void *buf, size_t n, off_type off, size_t room);               \
    ssize_t name(int fd, void *buf, size_t n, off_type off, size_t room)                           \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!crn_fd_enter(&e, CRN_CALL_pread, fd, HERE))                                           \
            return REAL(name)(fd, buf, n, off, room);                                              \
        return crn_fd_leave_moved_at(&e, n, off, REAL(name)(fd, buf, n, off, room));               \
    }

CHECKED_PREAD(__pread_chk, off_t)
CHECKED_PREAD(__pread64_chk, off64_t)

CRN_EXPORT ssize_t __read_chk(int fd, void *buf, size_t n, size_t room);

ssize_t __read_chk(int fd, void *buf, size_t n, size_t room)
{
    crn_ev e;
    if (!crn_fd_enter(&e, CRN_CALL_read, fd, HERE))
        return REAL(__read_chk)(fd, buf, n, room);
    return crn_fd_leave_moved(&e, fd, n, REAL(__read_chk)(fd, buf, n, room));
}
