/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The streams of stdio, by their effect: what fopen opened, how far fclose and fflush got, and the
 * blocks of fread and fwrite.
 */
#include "trace/trace_posix.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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

CRN_EXPORT int fclose(FILE *f)
{
    crn_ev e;
    int fd = fileno(f);
    bool on = crn_fd_enter_change(&e, CRN_CALL_fclose, fd, HERE);
    if (on) {
        REAL(fflush)(f);
        e.r.value[1] = reached(f);
    }
    crn_fd_unfollow(fd);
    int rc = REAL(fclose)(f);
    if (on)
        crn_fd_leave(&e);
    return rc;
}

CRN_EXPORT int fflush(FILE *f)
{
    crn_ev e;
    if (!f || !crn_fd_enter(&e, CRN_CALL_fflush, fileno(f), HERE))
        return REAL(fflush)(f);
    int rc = REAL(fflush)(f);
    e.r.value[1] = reached(f);
    crn_fd_leave(&e);
    return rc;
}

CRN_EXPORT size_t fread(void *buf, size_t item, size_t n, FILE *f)
{
    crn_ev e;
    if (!crn_fd_enter(&e, CRN_CALL_fread, fileno(f), HERE))
        return REAL(fread)(buf, item, n, f);
    size_t got = REAL(fread)(buf, item, n, f);
    crn_fd_leave_moved(&e, item * n, (ssize_t)(item * got));
    return got;
}

CRN_EXPORT size_t fwrite(const void *buf, size_t item, size_t n, FILE *f)
{
    crn_ev e;
    if (!crn_fd_enter(&e, CRN_CALL_fwrite, fileno(f), HERE))
        return REAL(fwrite)(buf, item, n, f);
    size_t put = REAL(fwrite)(buf, item, n, f);
    crn_fd_leave_moved(&e, item * n, (ssize_t)(item * put));
    return put;
}

CRN_EXPORT size_t __fread_chk(void *buf, size_t room, size_t item, size_t n, FILE *f);

size_t __fread_chk(void *buf, size_t room, size_t item, size_t n, FILE *f)
{
    crn_ev e;
    if (!crn_fd_enter(&e, CRN_CALL_fread, fileno(f), HERE))
        return REAL(__fread_chk)(buf, room, item, n, f);
    size_t got = REAL(__fread_chk)(buf, room, item, n, f);
    crn_fd_leave_moved(&e, item * n, (ssize_t)(item * got));
    return got;
}
