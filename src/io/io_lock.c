/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Locks on files, which end with the process that took them.
 *
 * flock(2) it is, because of what the others lack. Record locks (fcntl) belong to a process, but
 * are lost when it closes any other descriptor of the file, as whoever reads a part does, and they
 * do not keep two sessions of one process apart. Open file description locks keep no more than
 * flock does, and network file systems carry both to their servers.
 *
 * But flock belongs to the open file, of which a child of fork has a copy: it would hold the lock
 * of a parent that is long dead, and nobody could resume the run. So every file that is locked is
 * in a list, and a child closes its copies before fork returns to it. (What is started by exec has
 * none from the outset: all descriptors are closed there.)
 */
#include "io/io_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static crn_file *list; /* of all that are locked; guarded by list_mutex */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int once_failed; /* errno of the registration; written once */

static void before_fork(void)
{
    pthread_mutex_lock(&list_mutex);
}

static void after_fork_parent(void)
{
    pthread_mutex_unlock(&list_mutex);
}

/* The child may do nothing with its parent's sessions; should it try, there is no file any more. */
static void after_fork_child(void)
{
    for (crn_file *f = list; f; f = f->next) {
        if (f->direct_fd >= 0)
            close(f->direct_fd);
        close(f->fd);
        f->fd = f->direct_fd = -1;
        f->locked = false;
    }
    list = NULL;
    pthread_mutex_unlock(&list_mutex);
}

static void watch_forks(void)
{
    once_failed = pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

static void enlist(crn_file *f)
{
    f->locked = true;
    f->before = NULL;
    f->next = list;
    if (list)
        list->before = f;
    list = f;
}

static void unlist(crn_file *f)
{
    if (f->before)
        f->before->next = f->next;
    else
        list = f->next;
    if (f->next)
        f->next->before = f->before;
    f->locked = false;
}

cairn_status crn_file_lock(crn_file *f)
{
    pthread_once(&once, watch_forks);
    if (once_failed != 0)
        return crn_fail_sys(once_failed, "cannot lock '%s'", f->name);
    pthread_mutex_lock(&list_mutex); /* no fork between the lock and the list */
    int sys;
    do
        sys = flock(f->fd, LOCK_EX | LOCK_NB) < 0 ? errno : 0;
    while (sys == EINTR);
    if (sys == 0 && !f->locked)
        enlist(f);
    pthread_mutex_unlock(&list_mutex);
    CRN_FAIL_IF(sys == EWOULDBLOCK, CAIRN_EBUSY, "'%s' is being written by another process",
                f->name);
    CRN_FAIL_IF(sys == ENOLCK || sys == ENOTSUP || sys == ENOSYS || sys == EINVAL,
                CAIRN_EUNSUPPORTED, "cannot lock '%s': its file system knows no locks", f->name);
    if (sys != 0)
        return crn_fail_sys(sys, "cannot lock '%s'", f->name);
    return CAIRN_OK;
}

cairn_status crn_file_lock_within(crn_file *f, unsigned ms)
{
    enum { STEP_MS = 10 };
    static const struct timespec step = {.tv_nsec = STEP_MS * 1000000};
    cairn_status rc = crn_file_lock(f);
    for (unsigned i = 0; rc == CAIRN_EBUSY && i < ms / STEP_MS; i++) {
        nanosleep(&step, NULL);
        rc = crn_file_lock(f);
    }
    return rc;
}

void crn_file_unlock(crn_file *f)
{
    pthread_mutex_lock(&list_mutex);
    if (f->locked) {
        unlist(f);
        flock(f->fd, LOCK_UN); /* a child that is made before f is closed must not get it */
    }
    pthread_mutex_unlock(&list_mutex);
}

/* --- ranges ------------------------------------------------------------------------------- */

/*
 * Many locks in one file, each held for a moment: here flock will not do. They belong to the open
 * file, as flock's do, so that two openings in one process keep each other out; a child that is
 * made meanwhile shares them until whoever took them lets go.
 */
static int change_range(const crn_file *f, short type, uint64_t off, uint64_t n)
{
    struct flock range = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)off, .l_len = (off_t)n};
    int sys;
    do
        sys = fcntl(f->fd, F_OFD_SETLK, &range) < 0 ? errno : 0;
    while (sys == EINTR);
    return sys;
}

cairn_status crn_file_lock_range(crn_file *f, uint64_t off, uint64_t n)
{
    enum { SHORTEST = 50 * 1000, LONGEST = 10 * 1000 * 1000 };
    const int64_t limit = 30 * INT64_C(1000000000);
    int64_t slept = 0;
    long pause = SHORTEST;
    int sys = change_range(f, F_WRLCK, off, n);
    while ((sys == EAGAIN || sys == EACCES) && slept < limit) {
        nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
        slept += pause;
        pause = CRN_MIN(2 * pause, (long)LONGEST);
        sys = change_range(f, F_WRLCK, off, n);
    }
    CRN_FAIL_IF(sys == EAGAIN || sys == EACCES, CAIRN_EBUSY,
                "another process holds a lock on '%s' for too long", f->name);
    CRN_FAIL_IF(sys == ENOLCK || sys == ENOTSUP || sys == ENOSYS || sys == EINVAL,
                CAIRN_EUNSUPPORTED, "cannot lock '%s': its file system knows no locks", f->name);
    if (sys != 0)
        return crn_fail_sys(sys, "cannot lock '%s'", f->name);
    return CAIRN_OK;
}

void crn_file_unlock_range(crn_file *f, uint64_t off, uint64_t n)
{
    (void)change_range(f, F_UNLCK, off, n);
}
