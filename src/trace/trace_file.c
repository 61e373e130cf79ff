/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is done to files without moving data: positions, lengths, names, syncs and maps.
 */
#include "trace/trace_posix.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEEK(name, off_type)                                                                       \
    CRN_EXPORT off_type name(int fd, off_type off, int whence)                                     \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!crn_fd_enter(&e, CRN_CALL_lseek, fd, HERE))                                           \
            return REAL(name)(fd, off, whence);                                                    \
        off_type at = REAL(name)(fd, off, whence);                                                 \
        e.r.value[1] = off;                                                                        \
        e.r.value[2] = whence;                                                                     \
        e.r.value[3] = at;                                                                         \
        crn_fd_leave(&e);                                                                          \
        return at;                                                                                 \
    }

#define SYNC(name)                                                                                 \
    CRN_EXPORT int name(int fd)                                                                    \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!crn_fd_enter(&e, CRN_CALL_##name, fd, HERE))                                          \
            return REAL(name)(fd);                                                                 \
        int rc = REAL(name)(fd);                                                                   \
        crn_fd_leave(&e);                                                                          \
        return rc;                                                                                 \
    }

#define TRUNCATE(name, off_type)                                                                   \
    CRN_EXPORT int name(int fd, off_type off)                                                      \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!crn_fd_enter(&e, CRN_CALL_ftruncate, fd, HERE))                                       \
            return REAL(name)(fd, off);                                                            \
        int rc = REAL(name)(fd, off);                                                              \
        e.r.value[1] = off;                                                                        \
        crn_fd_leave(&e);                                                                          \
        return rc;                                                                                 \
    }

#define MMAP(name, off_type)                                                                       \
    CRN_EXPORT void *name(void *at, size_t n, int prot, int flags, int fd, off_type off)           \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!crn_fd_enter(&e, CRN_CALL_mmap, fd, HERE))                                            \
            return REAL(name)(at, n, prot, flags, fd, off);                                        \
        void *p = REAL(name)(at, n, prot, flags, fd, off);                                         \
        e.r.value[1] = (int64_t)n;                                                                 \
        e.r.value[2] = off;                                                                        \
        e.r.value[3] = prot;                                                                       \
        crn_fd_leave(&e);                                                                          \
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
    if (crn_fd_is_special(path) || !crn_ev_enter(&e, CRN_CALL_unlink, HERE))
        return REAL(unlink)(path);
    crn_ev_start(&e);
    return leave_name(&e, path, REAL(unlink)(path));
}

CRN_EXPORT int rename(const char *from, const char *to)
{
    crn_ev e;
    if (crn_fd_is_special(from) || !crn_ev_enter(&e, CRN_CALL_rename, HERE))
        return REAL(rename)(from, to);
    crn_ev_start(&e);
    return leave_name(&e, to, REAL(rename)(from, to));
}
