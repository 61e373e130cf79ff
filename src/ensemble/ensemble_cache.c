/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where the caches of a study's runners are: directories on the node, one for each process that has
 * a helper, locked by it. A cache that a dead runner has left goes to the next one on the node,
 * with its states.
 */
#include "ensemble/ensemble_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CACHES = 10000 };

/* A directory of this user that nobody else may write to. */
static cairn_status make_own(const char *path)
{
    struct stat st;
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return crn_fail_sys(errno, "cannot make '%s'", path);
    if (lstat(path, &st) < 0)
        return crn_fail_sys(errno, "cannot look at '%s'", path);
    CRN_FAIL_IF(!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022) != 0,
                CAIRN_EINVAL,
                "'%s' is no directory of this user's alone: name another by particle.cache", path);
    return CAIRN_OK;
}

static cairn_status find_base(const crn_study *study, char **ret)
{
    const char *given = study->particle.cache, *tmp = getenv("TMPDIR");
    if (strcmp(given, "auto") != 0) {
        CRN_TRY(crn_strdup(given, ret));
    } else {
        CRN_FAIL_IF(asprintf(ret, "%s/cairn-particles-%u", tmp && tmp[0] ? tmp : "/tmp",
                             (unsigned)geteuid()) < 0,
                    CAIRN_ENOMEM, "no memory for a path");
    }
    cairn_status rc = make_own(*ret);
    if (rc < 0)
        free(*ret);
    return rc;
}

/* CAIRN_NOTHING: another process has it. */
static cairn_status try_lock(const char *path, int *ret)
{
    char *lock;
    cairn_status rc = CAIRN_OK;
    CRN_FAIL_IF(asprintf(&lock, "%s.lock", path) < 0, CAIRN_ENOMEM, "no memory for a path");
    int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        rc = crn_fail_sys(errno, "cannot open '%s'", lock);
    else if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        rc = CAIRN_NOTHING;
    free(lock);
    if (rc != CAIRN_OK && fd >= 0)
        close(fd);
    if (rc == CAIRN_OK)
        *ret = fd;
    return rc;
}

static cairn_status claim_below(const crn_study *study, const char *base, char **ret, int *ret_lock)
{
    for (int i = 0; i < CACHES; i++) {
        char *path;
        CRN_FAIL_IF(asprintf(&path, "%s/%016" PRIx64 ".%d", base, study->id, i) < 0, CAIRN_ENOMEM,
                    "no memory for a path");
        cairn_status rc = try_lock(path, ret_lock);
        if (rc == CAIRN_OK)
            *ret = path;
        else
            free(path);
        if (rc != CAIRN_NOTHING)
            return rc;
    }
    return crn_fail(CAIRN_EBUSY, "all %d caches of the study below '%s' are in use", CACHES, base);
}

cairn_status crn_cache_claim(const crn_study *study, char **ret, int *ret_lock)
{
    char *base;
    CRN_TRY(find_base(study, &base));
    cairn_status rc = claim_below(study, base, ret, ret_lock);
    free(base);
    return rc;
}
