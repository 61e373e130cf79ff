/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Who may read what is made: see io.h.
 */
#include "io/io_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

/* Mode of a directory; 0 if it is unknown, so that new files are private. */
static mode_t mode_above(int dirfd)
{
    struct stat st;
    return fstat(dirfd, &st) == 0 ? st.st_mode : 0;
}

mode_t crn_mode_of_file(int dirfd)
{
    return dirfd == AT_FDCWD ? 0666 : 0600 | (mode_above(dirfd) & 0066);
}

mode_t crn_mode_of_dir(int dirfd)
{
    return dirfd == AT_FDCWD ? 0700 : 0700 | (mode_above(dirfd) & 0077);
}

void crn_mode_keep(int dirfd, int fd, mode_t mode)
{
    struct stat st;
    const mode_t group = mode & 0050; /* to read, and to enter */
    if (dirfd == AT_FDCWD || group == 0 || !(mode_above(dirfd) & S_ISGID))
        return;
    if (fstat(fd, &st) == 0 && (st.st_mode & group) != group)
        (void)fchmod(fd, (st.st_mode & 07777) | group); /* another's is as it is */
}

/* The umask from /proc: umask(2) can only set it, for all threads of a program that is not ours.
 * Where it is unknown, new files are private. */
static mode_t current_umask(void)
{
    unsigned mask = 077;
    char line[256];
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Umask: %o", &mask) == 1)
            break;
    if (f)
        fclose(f);
    return (mode_t)mask;
}

cairn_status crn_dir_share(int fd, crn_share share)
{
    struct stat st;
    if (share == CRN_SHARE_NONE)
        return CAIRN_OK;
    const mode_t mode = share == CRN_SHARE_GROUP ? S_ISGID | 0750 : 0777 & ~current_umask();
    if (fstat(fd, &st) < 0)
        return crn_fail_sys(errno, "cannot inspect a directory");
    if ((st.st_mode & mode) == mode)
        return CAIRN_OK;
    return fchmod(fd, (st.st_mode & 07777) | mode) < 0
               ? crn_fail_sys(errno, "cannot let others read a directory")
               : CAIRN_OK;
}

cairn_status crn_file_share(crn_file *f, int dirfd)
{
    struct stat st;
    const int fd = crn_file_fd(f);
    if (fstat(fd, &st) < 0 || fchmod(fd, (st.st_mode & 07777) | crn_mode_of_file(dirfd)) < 0)
        return crn_fail_sys(errno, "cannot let others read a file");
    return CAIRN_OK;
}
