/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How a program comes by descriptors and loses them: open and its kin, copies, close.
 */
#include "trace/trace_posix.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

/* name flags mode newfd; nothing is recorded of an open that fails */
static int leave_open(crn_ev *e, const char *path, int flags, int mode, int fd)
{
    int keep = errno;
    crn_ev_stop(e);
    if (fd < 0 || crn_fd_is_special(path) || crn_fd_in_child()) {
        crn_ev_forget(e);
        errno = keep;
        return fd;
    }
    crn_ev_name(e, path, strlen(path));
    e->r.value[0] = flags;
    e->r.value[1] = mode;
    e->r.value[2] = crn_fd_follow(fd);
    crn_ev_leave(e);
    errno = keep;
    return fd;
}

static int mode_of(int flags, va_list ap)
{
    bool makes = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE; /* which has several bits */
    return makes ? (int)va_arg(ap, unsigned) : 0;
}

/* ---- open and close ---- */

#define OPEN(name)                                                                                 \
    CRN_EXPORT int name(const char *path, int flags, ...)                                          \
    {                                                                                              \
        crn_ev e;                                                                                  \
        va_list ap;                                                                                \
        va_start(ap, flags);                                                                       \
        int mode = mode_of(flags, ap);                                                             \
        va_end(ap);                                                                                \
        if (!crn_ev_enter(&e, CRN_CALL_open, HERE))                                                \
            return REAL(name)(path, flags, mode);                                                  \
        crn_ev_start(&e);                                                                          \
        return leave_open(&e, path, flags, mode, REAL(name)(path, flags, mode));                   \
    }

#define OPENAT(name)                                                                               \
    CRN_EXPORT int name(int dir, const char *path, int flags, ...)                                 \
    {                                                                                              \
        crn_ev e;                                                                                  \
        va_list ap;                                                                                \
        va_start(ap, flags);                                                                       \
        int mode = mode_of(flags, ap);                                                             \
        va_end(ap);                                                                                \
        if (!crn_ev_enter(&e, CRN_CALL_open, HERE))                                                \
            return REAL(name)(dir, path, flags, mode);                                             \
        crn_ev_start(&e);                                                                          \
        return leave_open(&e, path, flags, mode, REAL(name)(dir, path, flags, mode));              \
    }

#define CREAT(name)                                                                                \
    CRN_EXPORT int name(const char *path, mode_t mode)                                             \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!crn_ev_enter(&e, CRN_CALL_open, HERE))                                                \
            return REAL(name)(path, mode);                                                         \
        crn_ev_start(&e);                                                                          \
        return leave_open(&e, path, O_CREAT | O_WRONLY | O_TRUNC, (int)mode,                       \
                          REAL(name)(path, mode));                                                 \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
CREAT(creat)
CREAT(creat64)

/* The name is known when the call is over, in the place of its pattern. */
#define TEMPORARY(name, flags, params, ...)                                                        \
    CRN_EXPORT int name params                                                                     \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!crn_ev_enter(&e, CRN_CALL_open, HERE))                                                \
            return REAL(name)(__VA_ARGS__);                                                        \
        crn_ev_start(&e);                                                                          \
        return leave_open(&e, path, O_RDWR | O_CREAT | O_EXCL | (flags), 0600,                     \
                          REAL(name)(__VA_ARGS__));                                                \
    }

TEMPORARY(mkstemp, 0, (char *path), path)
TEMPORARY(mkstemp64, 0, (char *path), path)
TEMPORARY(mkstemps, 0, (char *path, int end), path, end)
TEMPORARY(mkstemps64, 0, (char *path, int end), path, end)
TEMPORARY(mkostemp, flags, (char *path, int flags), path, flags)
TEMPORARY(mkostemp64, flags, (char *path, int flags), path, flags)
TEMPORARY(mkostemps, flags, (char *path, int end, int flags), path, end, flags)
TEMPORARY(mkostemps64, flags, (char *path, int end, int flags), path, end, flags)

CRN_EXPORT int close(int fd)
{
    crn_ev e;
    bool on = crn_fd_enter_change(&e, CRN_CALL_close, fd, HERE);
    crn_fd_unfollow(fd); /* before the number can be another's */
    int rc = REAL(close)(fd);
    if (on)
        crn_fd_leave(&e, true); /* also where it reports that a write had failed */
    return rc;
}

/* A close of each that is followed. */
static void close_all(unsigned first, unsigned last, const void *ret, const void *frame)
{
    for (unsigned fd = first; fd <= last && fd < CRN_FDS; fd++) {
        crn_ev e;
        if (crn_fd_enter_change(&e, CRN_CALL_close, (int)fd, ret, frame))
            crn_fd_leave(&e, true);
        crn_fd_unfollow((int)fd);
    }
}

CRN_EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    if (flags == 0)
        close_all(first, last, HERE);
    return REAL(close_range)(first, last, flags);
}

CRN_EXPORT void closefrom(int first)
{
    close_all((unsigned)CRN_MAX(first, 0), CRN_FDS, HERE);
    REAL(closefrom)(first);
}

/* ---- copies ---- */

static int leave_dup(crn_ev *e, int fd, int copy)
{
    e->r.value[1] = copy < 0 ? -1 : crn_fd_follow(copy);
    if (e->r.value[1] >= 0)
        crn_fd_set_position(copy, crn_fd_position(fd));
    crn_fd_leave(e, copy >= 0);
    return copy;
}

CRN_EXPORT int dup(int fd)
{
    crn_ev e;
    if (!crn_fd_enter_change(&e, CRN_CALL_dup, fd, HERE))
        return REAL(dup)(fd);
    return leave_dup(&e, fd, REAL(dup)(fd));
}

#define DUP_TO(name, params, ...)                                                                  \
    CRN_EXPORT int name params                                                                     \
    {                                                                                              \
        crn_ev e;                                                                                  \
        bool on = crn_fd_enter_change(&e, CRN_CALL_dup, fd, HERE);                                 \
        crn_fd_unfollow(fd != to ? to : -1);                                                       \
        int copy = REAL(name)(__VA_ARGS__);                                                        \
        return on ? leave_dup(&e, fd, copy) : copy;                                                \
    }

DUP_TO(dup2, (int fd, int to), fd, to)
DUP_TO(dup3, (int fd, int to, int flags), fd, to, flags)

/* Whatever it is that follows, it fits into a pointer; the system's own wrapper does the same. */
#define FCNTL(name)                                                                                \
    CRN_EXPORT int name(int fd, int what, ...)                                                     \
    {                                                                                              \
        crn_ev e;                                                                                  \
        va_list ap;                                                                                \
        va_start(ap, what);                                                                        \
        void *with = va_arg(ap, void *);                                                           \
        va_end(ap);                                                                                \
        if ((what != F_DUPFD && what != F_DUPFD_CLOEXEC) ||                                        \
            !crn_fd_enter_change(&e, CRN_CALL_dup, fd, HERE))                                      \
            return REAL(name)(fd, what, with);                                                     \
        return leave_dup(&e, fd, REAL(name)(fd, what, with));                                      \
    }

FCNTL(fcntl)
FCNTL(fcntl64)

/* ---- the names that calls have with _FORTIFY_SOURCE: they know how much room there is ---- */

#define CHECKED_OPEN(name)                                                                         \
    CRN_EXPORT int name(const char *path, int flags);                                              \
    int name(const char *path, int flags)                                                          \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!crn_ev_enter(&e, CRN_CALL_open, HERE))                                                \
            return REAL(name)(path, flags);                                                        \
        crn_ev_start(&e);                                                                          \
        return leave_open(&e, path, flags, 0, REAL(name)(path, flags));                            \
    }

#define CHECKED_OPENAT(name)                                                                       \
    CRN_EXPORT int name(int dir, const char *path, int flags);                                     \
    int name(int dir, const char *path, int flags)                                                 \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!crn_ev_enter(&e, CRN_CALL_open, HERE))                                                \
            return REAL(name)(dir, path, flags);                                                   \
        crn_ev_start(&e);                                                                          \
        return leave_open(&e, path, flags, 0, REAL(name)(dir, path, flags));                       \
    }

CHECKED_OPEN(__open_2)
CHECKED_OPEN(__open64_2)
CHECKED_OPENAT(__openat_2)
CHECKED_OPENAT(__openat64_2)
