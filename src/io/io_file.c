/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files: opening them safely, with a second descriptor past the page cache where that works, and
 * the blocking forms of the operations.
 */
#include "io/io_impl.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

static int access_mode(int flags)
{
    if ((flags & (CRN_READ | CRN_WRITE)) == (CRN_READ | CRN_WRITE))
        return O_RDWR;
    return flags & CRN_WRITE ? O_WRONLY : O_RDONLY;
}

static cairn_status open_failed(const char *name, int sys)
{
    CRN_FAIL_IF(sys == EEXIST, CAIRN_EBUSY, "'%s' exists already", name);
    CRN_FAIL_IF(sys == ELOOP, CAIRN_EIO, "'%s' is a link, and links are not followed", name);
    CRN_FAIL_IF(sys == EISDIR || sys == ENXIO, CAIRN_EIO, "'%s' is not a regular file", name);
    return crn_fail_sys(sys, "cannot open '%s'", name);
}

static cairn_status check_regular(crn_file *f)
{
    struct stat st;
    if (fstat(f->fd, &st) < 0)
        return crn_fail_sys(errno, "cannot inspect '%s'", f->name);
    CRN_FAIL_IF(!S_ISREG(st.st_mode), CAIRN_EIO, "'%s' is not a regular file", f->name);
    return CAIRN_OK;
}

static cairn_status open_buffered(crn_file *f, int flags)
{
    /* O_NONBLOCK: never wait for the other end of what turns out to be a pipe. */
    int how = access_mode(flags) | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK;
    if (flags & CRN_CREATE)
        how |= O_CREAT | (flags & CRN_EXCL ? O_EXCL : 0);

    crn_fault_event event = {.kind = CRN_SEEN_OPEN, .dirfd = f->dirfd, .name = f->name};
    int sys = crn_fault_pass(CRN_FAULT_OPEN, flags & CRN_CREATE ? &event : NULL, NULL);
    const mode_t mode = flags & CRN_CREATE ? crn_mode_of_file(f->dirfd) : 0;
    if (sys == 0) {
        do
            f->fd = openat(f->dirfd, f->name, how, mode);
        while (f->fd < 0 && errno == EINTR);
        sys = f->fd < 0 ? errno : 0;
    }
    if (sys != 0)
        return open_failed(f->name, sys);
    CRN_TRY(check_regular(f));
    if (flags & CRN_CREATE)
        crn_mode_keep(f->dirfd, f->fd, mode);
    /* io_uring takes the flag as a wish to get EAGAIN rather than to go on in the background. */
    if (fcntl(f->fd, F_SETFL, how & ~O_NONBLOCK) < 0)
        return crn_fail_sys(errno, "cannot set the flags of '%s'", f->name);
    return CAIRN_OK;
}

static bool is_same_file(int a, int b)
{
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Does the file lie in a file system in memory? */
static bool is_in_memory(int fd)
{
    struct statfs fs;
    return fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

/*
 * The alignments that direct transfers of fd need, or false where they make no sense: a file system
 * in memory has nothing to go past. Offsets and lengths are whole pages even where the device takes
 * less, so that no page is ever written both ways at once: the cache would write its stale rest of
 * the page over what went past it.
 */
static bool find_alignment(int fd, size_t *ret_align, size_t *ret_mem_align)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (is_in_memory(fd))
        return false;
    size_t align = page, mem_align = page; /* where the kernel does not report it */
#ifdef STATX_DIOALIGN
    struct statx sx;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &sx) == 0 && sx.stx_mask & STATX_DIOALIGN) {
        if (sx.stx_dio_offset_align == 0)
            return false;
        align = CRN_MAX(page, sx.stx_dio_offset_align);
        mem_align = sx.stx_dio_mem_align;
    }
#endif
    *ret_align = align;
    *ret_mem_align = mem_align;
    return true;
}

/* A help, not a need: where it fails, everything goes through the page cache. */
static void open_direct(crn_file *f, int flags)
{
    if (!find_alignment(f->fd, &f->direct_align, &f->direct_mem_align))
        return;
    int how = access_mode(flags) | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_DIRECT;
    int fd = openat(f->dirfd, f->name, how);
    if (fd >= 0 && is_same_file(fd, f->fd) && fcntl(fd, F_SETFL, how & ~O_NONBLOCK) == 0) {
        f->direct_fd = fd;
        return;
    }
    if (fd >= 0)
        close(fd);
    f->direct_align = 0;
}

cairn_status crn_file_open(int dirfd, const char *name, int flags, crn_file **ret)
{
    crn_file *f;
    cairn_status rc;
    assert(flags & (CRN_READ | CRN_WRITE));
    CRN_TRY(crn_fault_ready());
    CRN_TRY(crn_alloc(&f, 1));
    f->fd = f->direct_fd = -1;
    f->dirfd = dirfd;
    CRN_TRY_OUT(rc, crn_strdup(name, &f->name));
    CRN_TRY_OUT(rc, open_buffered(f, flags));
    if (flags & CRN_DIRECT)
        open_direct(f, flags);
    *ret = f;
    return CAIRN_OK;
out:
    crn_file_close(f);
    return rc;
}

void crn_file_close(crn_file *f)
{
    if (!f)
        return;
    crn_file_unlock(f);
    if (f->direct_fd >= 0)
        close(f->direct_fd);
    if (f->fd >= 0)
        close(f->fd);
    free(f->name);
    free(f);
}

int crn_file_fd(const crn_file *f)
{
    return f->fd;
}

cairn_status crn_file_nbytes(const crn_file *f, uint64_t *ret)
{
    struct stat st;
    if (fstat(f->fd, &st) < 0)
        return crn_fail_sys(errno, "cannot inspect '%s'", f->name);
    *ret = (uint64_t)st.st_size;
    return CAIRN_OK;
}

static bool is_direct(const crn_file *f)
{
    /* relaxed: see crn_op_settle */
    return f->direct_fd >= 0 && !atomic_load_explicit(&f->direct_refused, memory_order_relaxed);
}

size_t crn_file_direct_align(const crn_file *f)
{
    return is_direct(f) ? CRN_MAX(f->direct_align, f->direct_mem_align) : 0;
}

bool crn_file_takes_direct(const crn_file *f, const struct iovec *iov, int niov, uint64_t off)
{
    if (!is_direct(f) || off % f->direct_align != 0)
        return false;
    for (int i = 0; i < niov; i++) {
        if ((uintptr_t)iov[i].iov_base % f->direct_mem_align != 0)
            return false;
        if (iov[i].iov_len % f->direct_align != 0)
            return false;
    }
    return true;
}

/* Debian 12 has neither the number nor the structures of cachestat(2), which came with Linux 6.5.
 */
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

/* How many pages of the range are in the page cache; none where the kernel does not report it. */
static uint64_t count_cached(const crn_file *f, uint64_t off, uint64_t nbytes)
{
    struct {
        uint64_t off, nbytes;
    } range = {off, nbytes};
    struct {
        uint64_t cached, dirty, writeback, evicted, recently_evicted;
    } pages = {0};
    return syscall(SYS_cachestat, f->fd, &range, &pages, 0) == 0 ? pages.cached : 0;
}

/* The kernel looks at every page of a range, which took 70 ns each: for a large file as long as a
 * good part of reading it. So some stretches stand for the others. */
enum { SAMPLES = 32, SAMPLE_PAGES = 16 };

bool crn_file_is_cached(const crn_file *f, uint64_t off, uint64_t nbytes)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (nbytes == 0 || is_in_memory(f->fd))
        return nbytes > 0;
    const uint64_t first = off / page, npages = (off + nbytes - 1) / page - first + 1;
    if (npages <= SAMPLES * SAMPLE_PAGES)
        return count_cached(f, off, nbytes) > npages / 2;
    uint64_t ncached = 0;
    for (uint64_t i = 0; i < SAMPLES; i++) {
        const uint64_t at = first + i * (npages - SAMPLE_PAGES) / (SAMPLES - 1);
        ncached += count_cached(f, at * page, SAMPLE_PAGES * page);
    }
    return ncached > SAMPLES * SAMPLE_PAGES / 2;
}

static cairn_status run_blocking(crn_op *op)
{
    CRN_TRY(crn_op_prepare(op));
    if (crn_op_begin(op)) {
        do {
            crn_op_aim(op);
            op->result = crn_op_call(op);
        } while (!crn_op_settle(op));
    }
    return op->status < 0 ? crn_err_give(&op->err) : CAIRN_OK;
}

cairn_status crn_file_read(crn_file *f, void *data, size_t nbytes, uint64_t off)
{
    struct iovec iov = {data, nbytes};
    crn_op op = {.kind = CRN_OP_READ, .file = f, .iov = &iov, .niov = 1, .off = off};
    CRN_TRY(run_blocking(&op));
    return CAIRN_OK;
}

cairn_status crn_file_write(crn_file *f, const void *data, size_t nbytes, uint64_t off)
{
    struct iovec iov = {(void *)(uintptr_t)data, nbytes};
    crn_op op = {.kind = CRN_OP_WRITE, .file = f, .iov = &iov, .niov = 1, .off = off};
    CRN_TRY(run_blocking(&op));
    return CAIRN_OK;
}

cairn_status crn_file_sync(crn_file *f)
{
    crn_op op = {.kind = CRN_OP_SYNC, .file = f};
    CRN_TRY(run_blocking(&op));
    return CAIRN_OK;
}

cairn_status crn_file_truncate(crn_file *f, uint64_t nbytes)
{
    CRN_FAIL_IF(nbytes > INT64_MAX, CAIRN_EINVAL, "'%s': no file has %llu bytes", f->name,
                (unsigned long long)nbytes);
    crn_fault_event event = {
        .kind = CRN_SEEN_TRUNCATE, .dirfd = f->dirfd, .name = f->name, .file = f, .off = nbytes};
    int sys = crn_fault_pass(CRN_FAULT_WRITE, &event, NULL);
    while (sys == 0 && ftruncate(f->fd, (off_t)nbytes) < 0) {
        if (errno != EINTR)
            sys = errno;
    }
    if (sys != 0)
        return crn_fail_sys(sys, "cannot set the length of '%s' to %llu", f->name,
                            (unsigned long long)nbytes);
    return CAIRN_OK;
}

cairn_status crn_file_punch(crn_file *f, uint64_t off, uint64_t nbytes)
{
    int sys = 0;
    while (nbytes > 0 && sys == 0 &&
           fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off, (off_t)nbytes) <
               0) {
        if (errno != EINTR)
            sys = errno;
    }
    return sys == 0 ? CAIRN_OK : crn_fail_sys(sys, "cannot give back space of '%s'", f->name);
}

cairn_status crn_file_slurp(int dirfd, const char *name, size_t max, void **ret, size_t *ret_nbytes)
{
    crn_file *f;
    cairn_status rc;
    char *data = NULL;
    uint64_t nbytes = 0;
    CRN_TRY(crn_file_open(dirfd, name, CRN_READ, &f));
    CRN_TRY_OUT(rc, crn_file_nbytes(f, &nbytes));
    if (nbytes > max)
        CRN_TRY_OUT(rc, crn_fail(CAIRN_ECORRUPT, "'%s' has %llu bytes, at most %zu are possible",
                                 name, (unsigned long long)nbytes, max));
    CRN_TRY_OUT(rc, crn_alloc(&data, (size_t)nbytes + 1));
    CRN_TRY_OUT(rc, crn_file_read(f, data, (size_t)nbytes, 0));
    *ret = data;
    *ret_nbytes = (size_t)nbytes;
    data = NULL;
out:
    free(data);
    crn_file_close(f);
    return rc;
}
