/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading and writing by descriptor, in all forms.
 */
#include "trace/trace_posix.h"

#include <sys/uio.h>
#include <unistd.h>

#define TRANSFER(name, call, buf_type)                                                             \
    CRN_EXPORT ssize_t name(int fd, buf_type buf, size_t n)                                        \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!crn_fd_enter(&e, CRN_CALL_##call, fd, HERE))                                          \
            return REAL(name)(fd, buf, n);                                                         \
        return crn_fd_leave_moved(&e, n, REAL(name)(fd, buf, n));                                  \
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
        return crn_fd_leave_moved(&e, total(v, n), REAL(name)(fd, v, n));                          \
    }

#define VECTOR_AT(name, call, off_type)                                                            \
    CRN_EXPORT ssize_t name(int fd, const struct iovec *v, int n, off_type off)                    \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!crn_fd_enter(&e, CRN_CALL_##call, fd, HERE))                                          \
            return REAL(name)(fd, v, n, off);                                                      \
        return crn_fd_leave_moved_at(&e, total(v, n), off, REAL(name)(fd, v, n, off));             \
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
    return crn_fd_leave_moved(&e, n, REAL(__read_chk)(fd, buf, n, room));
}
