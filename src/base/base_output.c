/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static cairn_status write_all(int fd, const char *path, const unsigned char *data, size_t nbytes)
{
    while (nbytes > 0) {
        const ssize_t n = write(fd, data, nbytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return crn_fail_sys(errno, "cannot write '%s'", path);
        data += n;
        nbytes -= (size_t)n;
    }
    return CAIRN_OK;
}

/* flags: beyond those that any writer needs. */
static cairn_status write_to(const char *path, int flags, const void *data, size_t nbytes)
{
    const int fd = open(path, flags | O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0)
        return crn_fail_sys(errno, "cannot write '%s'", path);
    cairn_status rc = write_all(fd, path, data, nbytes);
    if (rc == CAIRN_OK && flags & O_CREAT && fsync(fd) < 0)
        rc = crn_fail_sys(errno, "cannot write '%s'", path);
    if (close(fd) < 0 && rc == CAIRN_OK)
        rc = crn_fail_sys(errno, "cannot write '%s'", path);
    return rc;
}

static cairn_status replace(const char *path, const void *data, size_t nbytes)
{
    char *temp;
    const size_t cap = strlen(path) + sizeof ".new";
    CRN_TRY(crn_alloc(&temp, cap));
    snprintf(temp, cap, "%s.new", path);
    cairn_status rc = write_to(temp, O_CREAT | O_TRUNC | O_NOFOLLOW, data, nbytes);
    if (rc == CAIRN_OK && rename(temp, path) < 0)
        rc = crn_fail_sys(errno, "cannot replace '%s'", path);
    if (rc < 0)
        unlink(temp);
    free(temp);
    return rc;
}

cairn_status crn_output_write(const char *path, const void *data, size_t nbytes)
{
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return write_to(path, 0, data, nbytes);
    return replace(path, data, nbytes);
}
