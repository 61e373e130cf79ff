/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Directories and names: making, listing, renaming, removing, and making such changes last.
 */
#include "io/io_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static cairn_status make_dir(int dirfd, const char *name, mode_t mode)
{
    crn_fault_event event = {.kind = CRN_SEEN_MKDIR, .dirfd = dirfd, .name = name};
    int sys = crn_fault_pass(CRN_FAULT_OPEN, &event, NULL);
    if (sys == 0 && mkdirat(dirfd, name, mode) < 0 && errno != EEXIST)
        sys = errno;
    if (sys != 0)
        return crn_fail_sys(sys, "cannot make directory '%s'", name);
    return CAIRN_OK;
}

static cairn_status open_dir(int dirfd, const char *name, bool create, int nofollow, int *ret_fd)
{
    CRN_TRY(crn_fault_ready());
    if (create)
        CRN_TRY(make_dir(dirfd, name, 0700));
    int fd;
    do
        fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | nofollow);
    while (fd < 0 && errno == EINTR);
    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
        return crn_fail(CAIRN_EIO, "'%s' is not a directory%s", name,
                        nofollow ? " (links are not followed)" : "");
    if (fd < 0)
        return crn_fail_sys(errno, "cannot open directory '%s'", name);
    *ret_fd = fd;
    return CAIRN_OK;
}

cairn_status crn_dir_open(int dirfd, const char *name, bool create, int *ret_fd)
{
    return open_dir(dirfd, name, create, O_NOFOLLOW, ret_fd);
}

cairn_status crn_dir_open_within(int dirfd, const char *name, bool create, int *ret_fd)
{
    const mode_t mode = create ? crn_mode_of_dir(dirfd) : 0;
    CRN_TRY(crn_fault_ready());
    if (create)
        CRN_TRY(make_dir(dirfd, name, mode));
    CRN_TRY(open_dir(dirfd, name, false, O_NOFOLLOW, ret_fd));
    if (create)
        crn_mode_keep(dirfd, *ret_fd, mode);
    return CAIRN_OK;
}

cairn_status crn_dir_open_path(const char *path, bool create, int *ret_fd)
{
    return open_dir(AT_FDCWD, path, create, 0, ret_fd);
}

cairn_status crn_dir_sync(int dirfd)
{
    crn_fault_event event = {.kind = CRN_SEEN_DIRSYNC, .dirfd = dirfd};
    int sys = crn_fault_pass(CRN_FAULT_SYNC, &event, NULL);
    if (sys == 0) {
        int fd = dirfd == AT_FDCWD ? open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : dirfd;
        if (fd < 0 || fsync(fd) < 0)
            sys = errno;
        if (dirfd == AT_FDCWD && fd >= 0)
            close(fd);
    }
    if (sys != 0)
        return crn_fail_sys(sys, "cannot sync a directory");
    return CAIRN_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

typedef CRN_VEC(char *) name_list;

static cairn_status read_names(DIR *dir, name_list *names)
{
    for (;;) {
        char *copy;
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (!entry && errno != 0)
            return crn_fail_sys(errno, "cannot list a directory");
        if (!entry)
            return CAIRN_OK;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        CRN_TRY(crn_vec_reserve(names, 1));
        CRN_TRY(crn_strdup(entry->d_name, &copy));
        names->at[names->n++] = copy;
    }
}

cairn_status crn_dir_list(int dirfd, char ***ret_names, size_t *ret_n)
{
    name_list names = {0};
    cairn_status rc;
    int fd = -1; /* one of its own, as reading moves the position that all copies of dirfd share */
    CRN_TRY(crn_dir_open(dirfd, ".", false, &fd));
    DIR *dir = fdopendir(fd);
    if (!dir) {
        rc = crn_fail_sys(errno, "cannot list a directory");
        close(fd);
        return rc;
    }
    CRN_TRY_OUT(rc, crn_vec_reserve(&names, 1)); /* an empty directory gives an array, too */
    CRN_TRY_OUT(rc, read_names(dir, &names));
    qsort(names.at, names.n, sizeof *names.at, compare_names);
    *ret_names = names.at;
    *ret_n = names.n;
    closedir(dir);
    return CAIRN_OK;
out:
    for (size_t i = 0; i < names.n; i++)
        free(names.at[i]);
    crn_vec_done(&names);
    closedir(dir);
    return rc;
}

cairn_status crn_rename(int dirfd, const char *from, const char *to)
{
    crn_fault_event event = {.kind = CRN_SEEN_RENAME, .dirfd = dirfd, .name = from, .to = to};
    int sys = crn_fault_pass(CRN_FAULT_RENAME, &event, NULL);
    if (sys == 0 && renameat(dirfd, from, dirfd, to) < 0)
        sys = errno;
    if (sys != 0)
        return crn_fail_sys(sys, "cannot rename '%s' to '%s'", from, to);
    return CAIRN_OK;
}

cairn_status crn_unlink(int dirfd, const char *name)
{
    crn_fault_event event = {.kind = CRN_SEEN_UNLINK, .dirfd = dirfd, .name = name};
    int sys = crn_fault_pass(CRN_FAULT_RENAME, &event, NULL);
    if (sys == 0 && unlinkat(dirfd, name, 0) < 0)
        sys = errno;
    if (sys == EISDIR)
        sys = unlinkat(dirfd, name, AT_REMOVEDIR) < 0 ? errno : 0;
    if (sys != 0)
        return crn_fail_sys(sys, "cannot remove '%s'", name);
    return CAIRN_OK;
}
