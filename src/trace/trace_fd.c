/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Descriptors that are followed, and events of calls on them.
 */
#include "trace/trace_posix.h"

#include <errno.h>
#include <unistd.h>

static _Atomic int32_t followed[CRN_FDS]; /* number + 1, or 0 */
static _Atomic int64_t position[CRN_FDS]; /* of those that are followed */
static crn_handles numbers;               /* guarded by the recorder's lock */

int64_t crn_fd_number(int fd)
{
    if (fd < 0 || fd >= CRN_FDS)
        return -1;
    return atomic_load_explicit(&followed[fd], memory_order_relaxed) - 1;
}

int64_t crn_fd_follow(int fd)
{
    if (fd < 0 || fd >= CRN_FDS)
        return -1;
    crn_rec_lock();
    int64_t number = crn_handles_add(&numbers, (uintptr_t)fd);
    crn_rec_unlock();
    crn_fd_set_position(fd, 0);
    atomic_store_explicit(&followed[fd], (int32_t)number + 1, memory_order_relaxed);
    return number;
}

/* relaxed: threads that share a position must agree about it by themselves */
int64_t crn_fd_position(int fd)
{
    return atomic_load_explicit(&position[fd], memory_order_relaxed);
}

void crn_fd_set_position(int fd, int64_t at)
{
    atomic_store_explicit(&position[fd], at, memory_order_relaxed);
}

bool crn_fd_in_child(void)
{
    return getpid() != crn_rec.pid;
}

void crn_fd_unfollow(int fd)
{
    if (crn_fd_number(fd) < 0 || crn_fd_in_child())
        return;
    if (!crn_rec_locked) { /* else a signal's handler closes: the number stays with the descriptor
                            */
        crn_rec_lock();
        crn_handles_drop(&numbers, (uintptr_t)fd);
        crn_rec_unlock();
    }
    atomic_store_explicit(&followed[fd], 0, memory_order_relaxed);
}

bool crn_fd_is_special(const char *path)
{
    return !path || strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0 ||
           strncmp(path, "/sys/", 5) == 0;
}

bool crn_fd_enter(crn_ev *e, uint32_t call, int fd, const void *ret, const void *frame)
{
    int64_t number = crn_fd_number(fd);
    if (number < 0 || !crn_ev_enter(e, call, ret, frame))
        return false;
    e->r.value[0] = number;
    crn_ev_start(e);
    return true;
}

bool crn_fd_enter_change(crn_ev *e, uint32_t call, int fd, const void *ret, const void *frame)
{
    return crn_fd_number(fd) >= 0 && !crn_fd_in_child() && crn_fd_enter(e, call, fd, ret, frame);
}

void crn_fd_leave(crn_ev *e, bool ok)
{
    int keep = errno;
    crn_ev_stop(e);
    if (ok)
        crn_ev_leave(e);
    else
        crn_ev_forget(e);
    errno = keep;
}

ssize_t crn_fd_leave_moved(crn_ev *e, int fd, size_t nbytes, ssize_t moved)
{
    e->r.value[1] = (int64_t)nbytes;
    e->r.value[2] = moved;
    crn_fd_set_position(fd, crn_fd_position(fd) + CRN_MAX(moved, 0));
    crn_fd_leave(e, moved >= 0);
    return moved;
}

ssize_t crn_fd_leave_moved_at(crn_ev *e, size_t nbytes, int64_t off, ssize_t moved)
{
    e->r.value[1] = (int64_t)nbytes;
    e->r.value[2] = off;
    e->r.value[3] = moved;
    crn_fd_leave(e, moved >= 0);
    return moved;
}

void crn_fd_leave_seek(crn_ev *e, int fd, int64_t off, int whence, int64_t at)
{
    e->r.value[1] = off;
    e->r.value[2] = whence;
    e->r.value[3] = at;
    if (at >= 0)
        crn_fd_set_position(fd, at);
    crn_fd_leave(e, at >= 0);
}
