/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Atomic replacement of a small file. The new content goes to ".<name>.tmp" beside it, one fixed
 * name per file, so that what a dead process has left is written over instead of piling up. Who
 * holds the lock on the temporary file owns it; the lock dies with its process.
 */
#include "io/io_impl.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Is the file that we have locked still the one with that name? Its last owner may have renamed it
 * between our opening and our locking. */
static bool is_still_named(const crn_file *f, int dirfd, const char *name)
{
    struct stat a, b;
    return fstat(crn_file_fd(f), &a) == 0 && fstatat(dirfd, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

cairn_status crn_file_own(int dirfd, const char *name, crn_file **ret)
{
    crn_file *f = NULL;
    CRN_TRY(crn_file_open(dirfd, name, CRN_WRITE | CRN_CREATE, &f));
    /* Some file systems know no locks: there the caller's own exclusion has to do. */
    cairn_status rc = crn_file_lock(f);
    if (rc == CAIRN_EUNSUPPORTED)
        rc = CAIRN_OK;
    if (rc == CAIRN_OK && !is_still_named(f, dirfd, name))
        rc = crn_fail(CAIRN_EBUSY, "'%s' is being written by another process", name);
    if (rc < 0) {
        crn_file_close(f);
        return rc;
    }
    *ret = f;
    return CAIRN_OK;
}

static cairn_status fill(crn_file *f, const void *data, size_t nbytes, bool durable)
{
    CRN_TRY(crn_file_truncate(f, 0));
    CRN_TRY(crn_file_write(f, data, nbytes, 0));
    if (durable)
        CRN_TRY(crn_file_sync(f));
    return CAIRN_OK;
}

/* Remove the temporary file without touching the record of why. */
static void drop(int dirfd, const char *temp)
{
    crn_err keep;
    crn_err_take(&keep);
    (void)crn_unlink(dirfd, temp);
    (void)crn_err_give(&keep);
}

/* Take the temporary file. Whoever replaces the same file at this moment is waited for: several
 * programs may begin on one trail at once. */
static cairn_status own_in_turn(int dirfd, const char *temp, crn_file **ret)
{
    static const struct timespec moment = {.tv_nsec = 10000000};
    enum { MOMENTS = 3000 };
    cairn_status rc = crn_file_own(dirfd, temp, ret);
    for (int i = 0; rc == CAIRN_EBUSY && i < MOMENTS; i++) {
        nanosleep(&moment, NULL);
        rc = crn_file_own(dirfd, temp, ret);
    }
    return rc;
}

/* name has no directory in it. */
static cairn_status replace_here(int dirfd, const char *name, const void *data, size_t nbytes,
                                 bool durable)
{
    char temp[NAME_MAX + 1];
    crn_file *f = NULL;
    cairn_status rc;
    int n = snprintf(temp, sizeof temp, ".%s.tmp", name);
    CRN_FAIL_IF(n < 0 || (size_t)n >= sizeof temp, CAIRN_EINVAL, "'%s' is too long a name", name);
    CRN_TRY(own_in_turn(dirfd, temp, &f));
    rc = fill(f, data, nbytes, durable);
    if (rc == CAIRN_OK)
        rc = crn_rename(dirfd, temp, name);
    if (rc < 0)
        drop(dirfd, temp);
    crn_file_close(f); /* only now: the lock must cover the rename */
    if (rc < 0) {
        crn_err_prefix("cannot replace '%s': ", name);
        return rc;
    }
    if (durable)
        CRN_TRY(crn_dir_sync(dirfd));
    return CAIRN_OK;
}

cairn_status crn_file_put(int dirfd, const char *name, const void *data, size_t nbytes)
{
    CRN_TRY(replace_here(dirfd, name, data, nbytes, false));
    return CAIRN_OK;
}

cairn_status crn_file_replace(int dirfd, const char *name, const void *data, size_t nbytes)
{
    const char *slash = strrchr(name, '/');
    if (!slash) {
        CRN_TRY(replace_here(dirfd, name, data, nbytes, true));
        return CAIRN_OK;
    }
    char *parent;
    int fd;
    CRN_TRY(crn_strndup(name, slash == name ? 1 : (size_t)(slash - name), &parent));
    cairn_status rc = crn_dir_open(dirfd, parent, false, &fd);
    free(parent);
    CRN_TRY(rc);
    rc = replace_here(fd, slash + 1, data, nbytes, true);
    close(fd);
    return rc;
}
