/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The streams of stdio, by their effect: what fopen opened, how far fclose and fflush got, and the
 * blocks of fread and fwrite. What a stream moved in other ways (fprintf, fgets and so on) is
 * recorded as one fread or fwrite when it is flushed, closed or set to another position.
 */
#include "trace/trace_posix.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <unistd.h>

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
    if (!f || crn_fd_is_special(path) || crn_fd_in_child()) {
        crn_ev_forget(e);
        errno = keep;
        return f;
    }
    crn_ev_name(e, path, strlen(path));
    e->r.value[0] = flags_of(mode);
    e->r.value[1] = crn_fd_follow(fileno(f));
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

/*
 * How far the stream is beyond what was recorded of it. One that appends shares the end of its file
 * with others: of what it wrote, only what it still holds is surely its own, and the position
 * counts what was recorded since it was empty.
 */
static int64_t unrecorded(FILE *f, int fd)
{
    const bool appends = __fwriting(f) && (REAL(fcntl)(fd, F_GETFL) & O_APPEND) != 0;
    const int64_t at = appends ? (int64_t)__fpending(f) : (int64_t)ftello(f);
    const int64_t more = at - crn_fd_position(fd);
    if (at < 0) /* it has no position */
        return 0;
    crn_fd_set_position(fd, appends ? -CRN_MAX(more, 0) : at - CRN_MAX(more, 0));
    return more;
}

static void record_moved(FILE *f, int fd, const void *ret, const void *frame)
{
    crn_ev e;
    int keep = errno;
    if (crn_fd_number(fd) < 0)
        return;
    const int64_t more = unrecorded(f, fd);
    const uint32_t call = __fwriting(f) ? CRN_CALL_fwrite : CRN_CALL_fread;
    if (more > 0 && crn_fd_enter(&e, call, fd, ret, frame))
        crn_fd_leave_moved(&e, fd, (size_t)more, more);
    errno = keep;
}

static void flush(crn_ev *e, FILE *f)
{
    REAL(fflush)(f);
    e->r.value[1] = reached(f);
}

CRN_EXPORT int fclose(FILE *f)
{
    crn_ev e;
    int fd = fileno(f);
    record_moved(f, fd, HERE);
    bool on = crn_fd_enter_change(&e, CRN_CALL_fclose, fd, HERE);
    if (on)
        flush(&e, f);
    crn_fd_unfollow(fd);
    int rc = REAL(fclose)(f);
    if (on)
        crn_fd_leave(&e, true);
    return rc;
}

/* Without a name only the mode changes. Else it is the end of one stream, and another one. */
#define FREOPEN(name)                                                                              \
    CRN_EXPORT FILE *name(const char *path, const char *mode, FILE *f)                             \
    {                                                                                              \
        crn_ev e;                                                                                  \
        int fd = fileno(f);                                                                        \
        record_moved(f, fd, HERE);                                                                 \
        if (path && crn_fd_enter_change(&e, CRN_CALL_fclose, fd, HERE)) {                          \
            flush(&e, f);                                                                          \
            crn_fd_leave(&e, true);                                                                \
            crn_fd_unfollow(fd);                                                                   \
        }                                                                                          \
        if (!path || !crn_ev_enter(&e, CRN_CALL_fopen, HERE))                                      \
            return REAL(name)(path, mode, f);                                                      \
        crn_ev_start(&e);                                                                          \
        return leave_fopen(&e, path, mode, REAL(name)(path, mode, f));                             \
    }

FREOPEN(freopen)
FREOPEN(freopen64)

CRN_EXPORT int fflush(FILE *f)
{
    crn_ev e;
    if (f)
        record_moved(f, fileno(f), HERE);
    if (!f || !crn_fd_enter(&e, CRN_CALL_fflush, fileno(f), HERE))
        return REAL(fflush)(f);
    int rc = REAL(fflush)(f);
    e.r.value[1] = reached(f);
    crn_fd_leave(&e, rc == 0);
    return rc;
}

/* ---- positions ---- */

static void leave_seek(crn_ev *e, FILE *f, bool ok)
{
    int64_t at = ok ? ftello(f) : -1;
    crn_fd_leave_seek(e, fileno(f), at, SEEK_SET, at);
    if (at >= 0 && REAL(fcntl)(fileno(f), F_GETFL) & O_APPEND)
        crn_fd_set_position(fileno(f), 0);
}

#define SEEK(name, params, ...)                                                                    \
    CRN_EXPORT int name params                                                                     \
    {                                                                                              \
        crn_ev e;                                                                                  \
        record_moved(f, fileno(f), HERE);                                                          \
        if (!crn_fd_enter(&e, CRN_CALL_lseek, fileno(f), HERE))                                    \
            return REAL(name)(__VA_ARGS__);                                                        \
        int rc = REAL(name)(__VA_ARGS__);                                                          \
        leave_seek(&e, f, rc == 0);                                                                \
        return rc;                                                                                 \
    }

SEEK(fseek, (FILE * f, long off, int whence), f, off, whence)
SEEK(fseeko, (FILE * f, off_t off, int whence), f, off, whence)
SEEK(fseeko64, (FILE * f, off64_t off, int whence), f, off, whence)
SEEK(fsetpos, (FILE * f, const fpos_t *to), f, to)
SEEK(fsetpos64, (FILE * f, const fpos64_t *to), f, to)

CRN_EXPORT void rewind(FILE *f)
{
    crn_ev e;
    record_moved(f, fileno(f), HERE);
    bool on = crn_fd_enter(&e, CRN_CALL_lseek, fileno(f), HERE);
    REAL(rewind)(f);
    if (on)
        leave_seek(&e, f, true);
}

/* ---- blocks ---- */

/* item bytes each; none at all may be the end of the file, or a failure */
static void leave_items(crn_ev *e, FILE *f, size_t item, size_t n, size_t done)
{
    bool failed = done == 0 && ferror(f);
    crn_fd_leave_moved(e, fileno(f), item * n, failed ? -1 : (ssize_t)(item * done));
}

CRN_EXPORT size_t fread(void *buf, size_t item, size_t n, FILE *f)
{
    crn_ev e;
    if (!crn_fd_enter(&e, CRN_CALL_fread, fileno(f), HERE))
        return REAL(fread)(buf, item, n, f);
    size_t got = REAL(fread)(buf, item, n, f);
    leave_items(&e, f, item, n, got);
    return got;
}

CRN_EXPORT size_t fwrite(const void *buf, size_t item, size_t n, FILE *f)
{
    crn_ev e;
    if (!crn_fd_enter(&e, CRN_CALL_fwrite, fileno(f), HERE))
        return REAL(fwrite)(buf, item, n, f);
    size_t put = REAL(fwrite)(buf, item, n, f);
    leave_items(&e, f, item, n, put);
    return put;
}

/* The name that it has with _FORTIFY_SOURCE: it knows how much room there is. */
CRN_EXPORT size_t __fread_chk(void *buf, size_t room, size_t item, size_t n, FILE *f);

size_t __fread_chk(void *buf, size_t room, size_t item, size_t n, FILE *f)
{
    crn_ev e;
    if (!crn_fd_enter(&e, CRN_CALL_fread, fileno(f), HERE))
        return REAL(__fread_chk)(buf, room, item, n, f);
    size_t got = REAL(__fread_chk)(buf, room, item, n, f);
    leave_items(&e, f, item, n, got);
    return got;
}
