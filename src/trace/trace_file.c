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
        crn_fd_leave_seek(&e, fd, off, whence, at);                                                \
        return at;                                                                                 \
    }

#define SYNC(name)                                                                                 \
    CRN_EXPORT int name(int fd)                                                                    \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (!crn_fd_enter(&e, CRN_CALL_##name, fd, HERE))                                          \
            return REAL(name)(fd);                                                                 \
        int rc = REAL(name)(fd);                                                                   \
        crn_fd_leave(&e, rc == 0);                                                                 \
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
        crn_fd_leave(&e, rc == 0);                                                                 \
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
        crn_fd_leave(&e, p != MAP_FAILED);                                                         \
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
    if (rc == 0) {
        crn_ev_name(e, path, strlen(path));
        crn_ev_leave(e);
    } else {
        crn_ev_forget(e);
    }
    errno = keep;
    return rc;
}

/* A name goes, or, of rename, another file gets it. */
#define NAMED(name, call, path, params, ...)                                                       \
    CRN_EXPORT int name params                                                                     \
    {                                                                                              \
        crn_ev e;                                                                                  \
        if (crn_fd_is_special(path) || !crn_ev_enter(&e, CRN_CALL_##call, HERE))                   \
            return REAL(name)(__VA_ARGS__);                                                        \
        crn_ev_start(&e);                                                                          \
        return leave_name(&e, path, REAL(name)(__VA_ARGS__));                                      \
    }

NAMED(unlink, unlink, path, (const char *path), path)
NAMED(unlinkat, unlink, path, (int dir, const char *path, int flags), dir, path, flags)
NAMED(remove, unlink, path, (const char *path), path)
NAMED(rename, rename, to, (const char *from, const char *to), from, to)
NAMED(renameat, rename, to, (int dir, const char *from, int into, const char *to), dir, from, into,
      to)
NAMED(renameat2, rename, to, (int dir, const char *from, int into, const char *to, unsigned flags),
      dir, from, into, to, flags)
