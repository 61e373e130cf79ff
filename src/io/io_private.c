/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directories that nobody else can have prepared: below a place that all may write to, a name that
 * can be guessed may be another user's directory, or a link of his to one of ours.
 */
#include "io/io_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

/* May a directory of ours lie below this one? Its owner could move it away and put another in its
 * place, and so could all that may write to it, unless it is sticky. A group is its owner's choice.
 */
static bool is_fit_above(const struct stat *st)
{
    return (st->st_uid == 0 || st->st_uid == geteuid()) &&
           (!(st->st_mode & S_IWOTH) || st->st_mode & S_ISVTX);
}

static bool is_ours_alone(const struct stat *st)
{
    return st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* Step from up, which is closed, to name. */
static cairn_status step(int up, const char *name, struct stat *ret_st, int *ret_fd)
{
    const int fd = openat(up, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const int sys = fd < 0 || fstat(fd, ret_st) < 0 ? errno : 0;
    close(up);
    if (sys != 0 && fd >= 0)
        close(fd);
    CRN_FAIL_IF(sys == ENOTDIR || sys == ELOOP, CAIRN_EMISMATCH, "'%s' is a link, or no directory",
                name);
    if (sys != 0)
        return crn_fail_sys(sys, "cannot open '%s'", name);
    *ret_fd = fd;
    return CAIRN_OK;
}

static cairn_status judge(const char *path, const char *name, const struct stat *st, bool last)
{
    CRN_FAIL_IF(!last && !is_fit_above(st), CAIRN_EMISMATCH,
                "'%s': others can replace what lies in '%s'", path, name);
    CRN_FAIL_IF(last && !is_ours_alone(st), CAIRN_EMISMATCH,
                "'%s' belongs to another user, or others may write to it", path);
    return CAIRN_OK;
}

cairn_status crn_dir_check_private(const char *path)
{
    char copy[PATH_MAX], *rest = copy;
    struct stat st;
    int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *name = strtok_r(memcpy(copy, path, strnlen(path, sizeof copy - 1) + 1), "/", &rest);
    cairn_status rc = CAIRN_OK;
    if (path[0] != '/' || strlen(path) >= sizeof copy)
        rc = crn_fail(CAIRN_EINVAL, "'%s' is too long, or no absolute path", path);
    while (rc == CAIRN_OK && name) {
        const char *next = strtok_r(NULL, "/", &rest);
        rc = step(fd, name, &st, &fd);
        if (rc < 0)
            return rc;
        rc = judge(path, name, &st, !next);
        name = next;
    }
    close(fd);
    return rc;
}
