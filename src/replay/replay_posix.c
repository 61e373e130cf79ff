/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files of the system, in the scratch directory of replay_file.c. A failure of a call that moves no
 * data is not the replay's, as it was not the program's.
 */
#include "replay/replay.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static cairn_status set_fd(crn_player *p, int64_t number, int fd, bool writable)
{
    crn_play_files *f = p->files;
    if (number < 0 || number >= CRN_PLAY_FILES_MAX) {
        close(fd);
        return CAIRN_OK;
    }
    while (f->fd.n <= (size_t)number) {
        CRN_TRY(crn_vec_reserve(&f->writable, 1));
        CRN_TRY(crn_vec_push(&f->fd, -1));
        f->writable.n++;
    }
    if (f->fd.at[number] >= 0)
        close(f->fd.at[number]);
    f->fd.at[number] = fd;
    f->writable.at[number] = writable;
    return CAIRN_OK;
}

/* Is it the program's own, and not what MPI-IO will do again? */
static bool is_reissued(const crn_player *p)
{
    return !p->opt->no_io && p->e.place->within == CRN_CALL_NONE;
}

cairn_status crn_play_open_fd(crn_player *p)
{
    int64_t number = crn_play_value(p, CRN_KIND_FD_NEW, 0, -1);
    int recorded = (int)crn_play_value(p, CRN_KIND_INT, 0, 0);
    int flags = recorded & (O_APPEND | O_TRUNC), fd;
    char path[PATH_MAX];
    if (!is_reissued(p))
        return CAIRN_OK;
    if (!crn_play_path_of(p, path)) {
        crn_play_skip(p);
        return CAIRN_OK;
    }
    if (number < 0) { /* it failed, and mostly does so again */
        fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0)
            close(fd);
        return CAIRN_OK;
    }
    fd = open(path, flags | O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return crn_fail_sys(errno, "cannot open '%s'", path);
    return set_fd(p, number, fd, (recorded & O_ACCMODE) != O_RDONLY);
}

static cairn_status move_bytes(crn_player *p, int fd, bool out, size_t nbytes, int64_t off)
{
    char *buf;
    CRN_TRY(crn_play_bytes(out ? &p->payload : &p->scratch, nbytes, p->opt->seed, &buf));
    ssize_t n;
    if (!out)
        CRN_TRY(
            crn_play_lengthen(p, fd, (off >= 0 ? off : lseek(fd, 0, SEEK_CUR)) + (int64_t)nbytes));
    if (off >= 0)
        n = out ? pwrite(fd, buf, nbytes, off) : pread(fd, buf, nbytes, off);
    else
        n = out ? write(fd, buf, nbytes) : read(fd, buf, nbytes);
    if (n < 0)
        return crn_fail_sys(errno, "cannot %s a file in '%s'", out ? "write" : "read",
                            p->files->dir);
    *(out ? &p->result->written_bytes : &p->result->read_bytes) += (uint64_t)n;
    return CAIRN_OK;
}

/*
 * What stdio wrote in other ways than fwrite shows in how far it got. Where it appends, all that
 * others have appended lies before that, too.
 */
static cairn_status catch_up(crn_player *p, int64_t number, int fd)
{
    const bool appends = (fcntl(fd, F_GETFL) & O_APPEND) != 0;
    const int64_t reached = crn_play_value(p, CRN_KIND_MOVED, 0, 0);
    const int64_t at = lseek(fd, 0, appends ? SEEK_END : SEEK_CUR);
    if (at < 0 || reached <= at || !p->files->writable.at[number])
        return CAIRN_OK;
    return move_bytes(p, fd, true, (size_t)(reached - at), -1);
}

/* What a program did with the memory is not known: it is mapped and left alone. */
static void map_and_unmap(const crn_player *p, int fd)
{
    const size_t nbytes = (size_t)crn_play_value(p, CRN_KIND_BYTES, 0, 0);
    const int prot = (int)crn_play_value(p, CRN_KIND_INT, 0, 0) & (PROT_READ | PROT_WRITE);
    void *at = mmap(NULL, nbytes, prot, MAP_SHARED, fd, crn_play_value(p, CRN_KIND_OFFSET, 0, 0));
    if (at != MAP_FAILED)
        munmap(at, nbytes);
}

/* Of a renaming the new name is known: some file gets it. */
static void rename_to(const char *path)
{
    char from[PATH_MAX + 16];
    snprintf(from, sizeof from, "%s-%d", path, (int)getpid());
    int fd = open(from, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && close(fd) == 0 && rename(from, path) < 0)
        unlink(from);
}

/* The number of the current event's open descriptor, whose own is *ret_fd; -1 if there is none. */
static int64_t open_number(crn_player *p, int *ret_fd)
{
    const int64_t number = crn_play_value(p, CRN_KIND_FD, 0, -1);
    if (!is_reissued(p))
        return -1;
    if ((uint64_t)number < p->files->fd.n && p->files->fd.at[number] >= 0) {
        *ret_fd = p->files->fd.at[number];
        return number;
    }
    crn_play_skip(p);
    return -1;
}

cairn_status crn_play_move_bytes(crn_player *p)
{
    const int64_t moved = crn_play_value(p, CRN_KIND_MOVED, 0, 0);
    int fd;
    if (open_number(p, &fd) < 0 || moved <= 0)
        return CAIRN_OK;
    return move_bytes(p, fd, p->e.call->traits & CRN_TRAIT_WRITES, (size_t)moved,
                      crn_play_value(p, CRN_KIND_OFFSET, 0, -1));
}

cairn_status crn_play_seek_fd(crn_player *p)
{
    int fd;
    if (open_number(p, &fd) >= 0)
        (void)lseek(fd, crn_play_value(p, CRN_KIND_OFFSET, 0, 0),
                    (int)crn_play_value(p, CRN_KIND_INT, 0, 0));
    return CAIRN_OK;
}

cairn_status crn_play_fsync(crn_player *p)
{
    int fd;
    if (open_number(p, &fd) >= 0)
        (void)fsync(fd);
    return CAIRN_OK;
}

cairn_status crn_play_fdatasync(crn_player *p)
{
    int fd;
    if (open_number(p, &fd) >= 0)
        (void)fdatasync(fd);
    return CAIRN_OK;
}

cairn_status crn_play_ftruncate(crn_player *p)
{
    int fd, rc = 0;
    if (open_number(p, &fd) >= 0)
        rc = ftruncate(fd, crn_play_value(p, CRN_KIND_OFFSET, 0, 0));
    (void)rc;
    return CAIRN_OK;
}

cairn_status crn_play_mmap(crn_player *p)
{
    int fd;
    if (open_number(p, &fd) >= 0)
        map_and_unmap(p, fd);
    return CAIRN_OK;
}

cairn_status crn_play_dup_fd(crn_player *p)
{
    int fd;
    const int64_t number = open_number(p, &fd);
    if (number < 0)
        return CAIRN_OK;
    return set_fd(p, crn_play_value(p, CRN_KIND_FD_NEW, 0, -1), dup(fd),
                  p->files->writable.at[number]);
}

cairn_status crn_play_flush_stream(crn_player *p)
{
    int fd;
    const int64_t number = open_number(p, &fd);
    return number >= 0 ? catch_up(p, number, fd) : CAIRN_OK;
}

static cairn_status close_number(crn_player *p, int64_t number)
{
    if (p->t->nlanes > 1) /* another thread may have used it last: gone with its number */
        return CAIRN_OK;
    close(p->files->fd.at[number]);
    p->files->fd.at[number] = -1;
    return CAIRN_OK;
}

cairn_status crn_play_close_fd(crn_player *p)
{
    int fd;
    const int64_t number = open_number(p, &fd);
    return number >= 0 ? close_number(p, number) : CAIRN_OK;
}

cairn_status crn_play_close_stream(crn_player *p)
{
    int fd;
    const int64_t number = open_number(p, &fd);
    if (number < 0)
        return CAIRN_OK;
    CRN_TRY(catch_up(p, number, fd));
    return close_number(p, number);
}

cairn_status crn_play_unlink(crn_player *p)
{
    char path[PATH_MAX];
    if (is_reissued(p) && crn_play_path_of(p, path))
        unlink(path);
    return CAIRN_OK;
}

cairn_status crn_play_rename(crn_player *p)
{
    char path[PATH_MAX];
    if (is_reissued(p) && crn_play_path_of(p, path))
        rename_to(path);
    return CAIRN_OK;
}
