/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The system's files. A descriptor is followed if it was opened after MPI_Init by the program, or
 * by MPI-IO on its behalf: sockets, pipes and what MPI opens for itself are none of our business,
 * and cost one look into an array. Of stdio the effect is recorded: what fopen opened, how far
 * fclose and fflush got, and the blocks of fread and fwrite.
 */
#include "trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FDS = 1 << 16 };

static _Atomic int32_t followed[FDS]; /* number + 1, or 0 */
static crn_handles numbers;           /* guarded by the recorder's lock */

#define HERE __builtin_return_address(0), __builtin_frame_address(0)

/* The function that we stand before, found when it is first needed. */
#define REAL(name)                                                                                 \
    (__extension__({                                                                               \
        static _Atomic(void *) at_;                                                                \
        (__typeof__(&name))crn_next(&at_, #name);                                                  \
    }))

/* ---- descriptors ---- */

static int64_t number_of(int fd)
{
    if (fd < 0 || fd >= FDS)
        return -1;
    return atomic_load_explicit(&followed[fd], memory_order_relaxed) - 1;
}

static int64_t follow(int fd)
{
    if (fd < 0 || fd >= FDS)
        return -1;
    crn_rec_lock();
    int64_t number = crn_handles_add(&numbers, (uintptr_t)fd);
    crn_rec_unlock();
    atomic_store_explicit(&followed[fd], (int32_t)number + 1, memory_order_relaxed);
    return number;
}

/* A child of vfork has our memory but descriptors of its own; one of fork may find locks taken. */
static bool is_child(void)
{
    return getpid() != crn_rec.pid;
}

static void unfollow(int fd)
{
    if (number_of(fd) < 0 || is_child())
        return;
    crn_rec_lock();
    crn_handles_drop(&numbers, (uintptr_t)fd);
    crn_rec_unlock();
    atomic_store_explicit(&followed[fd], 0, memory_order_relaxed);
}

/* Not files that hold anything. */
static bool is_special(const char *path)
{
    return !path || strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0 ||
           strncmp(path, "/sys/", 5) == 0;
}

/* ---- entering and leaving ---- */

static bool enter_fd(crn_ev *e, uint32_t call, int fd, const void *ret, const void *frame)
{
    int64_t number = number_of(fd);
    if (number < 0 || !crn_ev_enter(e, call, ret, frame))
        return false;
    e->r.value[0] = number;
    crn_ev_start(e);
    return true;
}

/* Of a call that changes which descriptors there are. */
static bool enter_change(crn_ev *e, uint32_t call, int fd, const void *ret, const void *frame)
{
    return number_of(fd) >= 0 && !is_child() && enter_fd(e, call, fd, ret, frame);
}

static void leave(crn_ev *e)
{
    int keep = errno;
    crn_ev_stop(e);
    crn_ev_leave(e);
    errno = keep;
}

/* fd bytes moved */
static ssize_t leave_moved(crn_ev *e, size_t nbytes, ssize_t moved)
{
    e->r.value[1] = (int64_t)nbytes;
    e->r.value[2] = moved;
    leave(e);
    return moved;
}

/* fd bytes offset moved */
static ssize_t leave_moved_at(crn_ev *e, size_t nbytes, int64_t off, ssize_t moved)
{
    e->r.value[1] = (int64_t)nbytes;
    e->r.value[2] = off;
    e->r.value[3] = moved;
    leave(e);
    return moved;
}

/* name flags mode newfd; nothing is recorded of an open that fails */
static int leave_open(crn_ev *e, const char *path, int flags, int mode, int fd)
{
    int keep = errno;
    crn_ev_stop(e);
    if (fd < 0 || is_special(path) || is_child()) {
        crn_ev_forget(e);
        errno = keep;
        return fd;
    }
    crn_ev_name(e, path, strlen(path));
    e->r.value[0] = flags;
    e->r.value[1] = flags & O_CREAT ? mode : 0;
    e->r.value[2] = follow(fd);
    crn_ev_leave(e);
    errno = keep;
    return fd;
}

static int mode_of(int flags, va_list ap)
{
    return flags & (O_CREAT | O_TMPFILE) ? (int)va_arg(ap, unsigned) : 0;
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
    bool on = enter_change(&e, CRN_CALL_close, fd, HERE);
    unfollow(fd); /* before the number can be another's */
    int rc = REAL(close)(fd);
    if (on)
        leave(&e);
    return rc;
}

/* A close of each that is followed. */
static void close_all(unsigned first, unsigned last, const void *ret, const void *frame)
{
    for (unsigned fd = first; fd <= last && fd < FDS; fd++) {
        crn_ev e;
        if (enter_change(&e, CRN_CALL_close, (int)fd, ret, frame))
            leave(&e);
        unfollow((int)fd);
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
    close_all((unsigned)CRN_MAX(first, 0), FDS, HERE);
    REAL(closefrom)(first);
}

/* ---- reading and writing ---- */

#define TRANSFER(name, call, buf_type)                                                             \
    CRN_EXPORT ssize_t name(int fd, buf_type buf, size_t n)                                        \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!enter_fd(&e, CRN_CALL_##call, fd, HERE))                                              \
            return REAL(name)(fd, buf, n);                                                         \
        return leave_moved(&e, n, REAL(name)(fd, buf, n));                                         \
    }

#define TRANSFER_AT(name, call, buf_type, off_type)                                                \
    CRN_EXPORT ssize_t name(int fd, buf_type buf, size_t n, off_type off)                          \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!enter_fd(&e, CRN_CALL_##call, fd, HERE))                                              \
            return REAL(name)(fd, buf, n, off);                                                    \
        return leave_moved_at(&e, n, off, REAL(name)(fd, buf, n, off));                            \
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
        if (!enter_fd(&e, CRN_CALL_##call, fd, HERE))                                              \
            return REAL(name)(fd, v, n);                                                           \
        return leave_moved(&e, total(v, n), REAL(name)(fd, v, n));                                 \
    }

#define VECTOR_AT(name, call, off_type)                                                            \
    CRN_EXPORT ssize_t name(int fd, const struct iovec *v, int n, off_type off)                    \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!enter_fd(&e, CRN_CALL_##call, fd, HERE))                                              \
            return REAL(name)(fd, v, n, off);                                                      \
        return leave_moved_at(&e, total(v, n), off, REAL(name)(fd, v, n, off));                    \
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

/* ---- the rest ---- */

#define SEEK(name, off_type)                                                                       \
    CRN_EXPORT off_type name(int fd, off_type off, int whence)                                     \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!enter_fd(&e, CRN_CALL_lseek, fd, HERE))                                               \
            return REAL(name)(fd, off, whence);                                                    \
        off_type at = REAL(name)(fd, off, whence);                                                 \
        e.r.value[1] = off;                                                                        \
        e.r.value[2] = whence;                                                                     \
        e.r.value[3] = at;                                                                         \
        leave(&e);                                                                                 \
        return at;                                                                                 \
    }

#define SYNC(name)                                                                                 \
    CRN_EXPORT int name(int fd)                                                                    \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!enter_fd(&e, CRN_CALL_##name, fd, HERE))                                              \
            return REAL(name)(fd);                                                                 \
        int rc = REAL(name)(fd);                                                                   \
        leave(&e);                                                                                 \
        return rc;                                                                                 \
    }

#define TRUNCATE(name, off_type)                                                                   \
    CRN_EXPORT int name(int fd, off_type off)                                                      \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!enter_fd(&e, CRN_CALL_ftruncate, fd, HERE))                                           \
            return REAL(name)(fd, off);                                                            \
        int rc = REAL(name)(fd, off);                                                              \
        e.r.value[1] = off;                                                                        \
        leave(&e);                                                                                 \
        return rc;                                                                                 \
    }

#define MMAP(name, off_type)                                                                       \
    CRN_EXPORT void *name(void *at, size_t n, int prot, int flags, int fd, off_type off)           \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!enter_fd(&e, CRN_CALL_mmap, fd, HERE))                                                \
            return REAL(name)(at, n, prot, flags, fd, off);                                        \
        void *p = REAL(name)(at, n, prot, flags, fd, off);                                         \
        e.r.value[1] = (int64_t)n;                                                                 \
        e.r.value[2] = off;                                                                        \
        e.r.value[3] = prot;                                                                       \
        leave(&e);                                                                                 \
        return p;                                                                                  \
    }

SEEK(lseek, off_t)
SEEK(lseek64, off64_t)
SYNC(fsync)
SYNC(fdatasync)
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)

static int leave_name(crn_ev *e, const char *path, int rc)
{
    int keep = errno;
    crn_ev_stop(e);
    crn_ev_name(e, path, strlen(path));
    crn_ev_leave(e);
    errno = keep;
    return rc;
}

CRN_EXPORT int unlink(const char *path)
{
    crn_ev e;
    if (is_special(path) || !crn_ev_enter(&e, CRN_CALL_unlink, HERE))
        return REAL(unlink)(path);
    crn_ev_start(&e);
    return leave_name(&e, path, REAL(unlink)(path));
}

CRN_EXPORT int rename(const char *from, const char *to)
{
    crn_ev e;
    if (is_special(from) || !crn_ev_enter(&e, CRN_CALL_rename, HERE))
        return REAL(rename)(from, to);
    crn_ev_start(&e);
    return leave_name(&e, to, REAL(rename)(from, to));
}

static int leave_dup(crn_ev *e, int fd)
{
    e->r.value[1] = fd < 0 ? -1 : follow(fd);
    leave(e);
    return fd;
}

CRN_EXPORT int dup(int fd)
{
    crn_ev e;
    if (!enter_change(&e, CRN_CALL_dup, fd, HERE))
        return REAL(dup)(fd);
    return leave_dup(&e, REAL(dup)(fd));
}

#define DUP_TO(name, params, ...)                                                                  \
    CRN_EXPORT int name params                                                                     \
    {                                                                                              \
        crn_ev e;                                                                                  \
        bool on = enter_change(&e, CRN_CALL_dup, fd, HERE);                                        \
        unfollow(fd != to ? to : -1);                                                              \
        int copy = REAL(name)(__VA_ARGS__);                                                        \
        return on ? leave_dup(&e, copy) : copy;                                                    \
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
            !enter_change(&e, CRN_CALL_dup, fd, HERE))                                             \
            return REAL(name)(fd, what, with);                                                     \
        return leave_dup(&e, REAL(name)(fd, what, with));                                          \
    }

FCNTL(fcntl)
FCNTL(fcntl64)

/* ---- stdio ---- */

static int flags_of(const char *mode)
{
    bool plus = strchr(mode, '+') != NULL;
    if (*mode == 'r')
        return plus ? O_RDWR : O_RDONLY;
    return (plus ? O_RDWR : O_WRONLY) | O_CREAT | (*mode == 'a' ? O_APPEND : O_TRUNC);
}

static FILE *leave_fopen(crn_ev *e, const char *path, const char *mode, FILE *f)
{
    int keep = errno;
    crn_ev_stop(e);
    if (!f || is_special(path) || is_child()) {
        crn_ev_forget(e);
        errno = keep;
        return f;
    }
    crn_ev_name(e, path, strlen(path));
    e->r.value[0] = flags_of(mode);
    e->r.value[1] = follow(fileno(f));
    crn_ev_leave(e);
    errno = keep;
    return f;
}

#define FOPEN(name)                                                                                \
    CRN_EXPORT FILE *name(const char *path, const char *mode)                                      \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!crn_ev_enter(&e, CRN_CALL_fopen, HERE))                                               \
            return REAL(name)(path, mode);                                                         \
        crn_ev_start(&e);                                                                          \
        return leave_fopen(&e, path, mode, REAL(name)(path, mode));                                \
    }

FOPEN(fopen)
FOPEN(fopen64)

/* How far a stream has got in its file. */
static int64_t reached(FILE *f)
{
    int keep = errno;
    int64_t at = REAL(lseek)(fileno(f), 0, SEEK_CUR);
    errno = keep;
    return at;
}

CRN_EXPORT int fclose(FILE *f)
{
    crn_ev e;
    int fd = fileno(f);
    bool on = enter_change(&e, CRN_CALL_fclose, fd, HERE);
    if (on) {
        REAL(fflush)(f);
        e.r.value[1] = reached(f);
    }
    unfollow(fd);
    int rc = REAL(fclose)(f);
    if (on)
        leave(&e);
    return rc;
}

CRN_EXPORT int fflush(FILE *f)
{
    crn_ev e;
    if (!f || !enter_fd(&e, CRN_CALL_fflush, fileno(f), HERE))
        return REAL(fflush)(f);
    int rc = REAL(fflush)(f);
    e.r.value[1] = reached(f);
    leave(&e);
    return rc;
}

CRN_EXPORT size_t fread(void *buf, size_t item, size_t n, FILE *f)
{
    crn_ev e;
    if (!enter_fd(&e, CRN_CALL_fread, fileno(f), HERE))
        return REAL(fread)(buf, item, n, f);
    size_t got = REAL(fread)(buf, item, n, f);
    leave_moved(&e, item * n, (ssize_t)(item * got));
    return got;
}

CRN_EXPORT size_t fwrite(const void *buf, size_t item, size_t n, FILE *f)
{
    crn_ev e;
    if (!enter_fd(&e, CRN_CALL_fwrite, fileno(f), HERE))
        return REAL(fwrite)(buf, item, n, f);
    size_t put = REAL(fwrite)(buf, item, n, f);
    leave_moved(&e, item * n, (ssize_t)(item * put));
    return put;
}

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

#define CHECKED_PREAD(name, off_type)                                                              \
    CRN_EXPORT ssize_t name(int fd, void *buf, size_t n, off_type off, size_t room);               \
    ssize_t name(int fd, void *buf, size_t n, off_type off, size_t room)                           \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!enter_fd(&e, CRN_CALL_pread, fd, HERE))                                               \
            return REAL(name)(fd, buf, n, off, room);                                              \
        return leave_moved_at(&e, n, off, REAL(name)(fd, buf, n, off, room));                      \
    }

CHECKED_OPEN(__open_2)
CHECKED_OPEN(__open64_2)
CHECKED_OPENAT(__openat_2)
CHECKED_OPENAT(__openat64_2)
CHECKED_PREAD(__pread_chk, off_t)
CHECKED_PREAD(__pread64_chk, off64_t)

CRN_EXPORT ssize_t __read_chk(int fd, void *buf, size_t n, size_t room);

ssize_t __read_chk(int fd, void *buf, size_t n, size_t room)
{
    crn_ev e;
    if (!enter_fd(&e, CRN_CALL_read, fd, HERE))
        return REAL(__read_chk)(fd, buf, n, room);
    return leave_moved(&e, n, REAL(__read_chk)(fd, buf, n, room));
}

CRN_EXPORT size_t __fread_chk(void *buf, size_t room, size_t item, size_t n, FILE *f);

size_t __fread_chk(void *buf, size_t room, size_t item, size_t n, FILE *f)
{
    crn_ev e;
    if (!enter_fd(&e, CRN_CALL_fread, fileno(f), HERE))
        return REAL(__fread_chk)(buf, room, item, n, f);
    size_t got = REAL(__fread_chk)(buf, room, item, n, f);
    leave_moved(&e, item * n, (ssize_t)(item * got));
    return got;
}
