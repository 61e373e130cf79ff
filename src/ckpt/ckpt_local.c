/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which directory of a node its processes keep their files in.
 */
#include "ckpt/ckpt_holding.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

/* The program may go to another directory, and the path must still mean the same. */
static cairn_status make_absolute(const char *path, char **ret)
{
    char here[PATH_MAX] = "", whole[2 * PATH_MAX];
    const bool relative = *path != '/';
    if (relative && !getcwd(here, sizeof here))
        return crn_fail_sys(errno, "level.local: cannot tell which directory '%s' lies in", path);
    snprintf(whole, sizeof whole, "%s%s%s", here, relative ? "/" : "", path);
    return crn_strdup(whole, ret);
}

/*
 * The k-th directory below base that this user's files may lie in. All ranks of a node, and those
 * that restart the run, choose the same: one that is there and private, before one that is to be
 * made. CAIRN_EMISMATCH: another user has taken the name, or base is not fit.
 */
static cairn_status try_local(const char *base, int k, bool make, char *path, size_t cap)
{
    char own[32];
    int fd;
    snprintf(own, sizeof own, k > 0 ? "cairn-%ld-%d" : "cairn-%ld", (long)geteuid(), k);
    int n = snprintf(path, cap, "%s/%s", base, own);
    CRN_FAIL_IF(n < 0 || (size_t)n >= cap, CAIRN_EINVAL, "'%s' is too long", base);
    cairn_status rc = crn_dir_check_private(path);
    if (rc != CAIRN_ENOTFOUND || !make)
        return rc;
    CRN_TRY(crn_dir_open(AT_FDCWD, path, true, &fd));
    close(fd);
    return crn_dir_check_private(path);
}

static cairn_status choose_below(crn_holding *h, const char *base)
{
    enum { NTRIES = 8 };
    char path[PATH_MAX];
    cairn_status rc = CAIRN_ENOTFOUND;
    crn_err first = {0};
    for (int k = 0; k < 2 * NTRIES; k++) {
        rc = try_local(base, k % NTRIES, k >= NTRIES, path, sizeof path);
        if (rc == CAIRN_EMISMATCH && !first.code)
            first = *crn_err_peek();
        if (rc == CAIRN_OK) {
            if (first.code)
                crn_log_write(&h->log, CRN_LOG_WARN, CRN_LOG_EACH,
                              "%s: node-local files go to '%s' instead", first.text, path);
            return crn_strdup(path, &h->local);
        }
        if (rc != CAIRN_ENOTFOUND && rc != CAIRN_EMISMATCH)
            return rc;
    }
    return first.code ? crn_err_give(&first) : rc;
}

/* Below $TMPDIR, or /tmp where that will not do. Links in the name of $TMPDIR are its owner's. */
static cairn_status choose_local(crn_holding *h)
{
    const char *tmp = getenv("TMPDIR");
    char base[PATH_MAX];
    if (tmp && *tmp && realpath(tmp, base)) {
        if (choose_below(h, base) == CAIRN_OK)
            return CAIRN_OK;
        crn_log_write(&h->log, CRN_LOG_WARN, CRN_LOG_EACH,
                      "TMPDIR: %s: node-local files go below '/tmp' instead", crn_err_peek()->text);
    }
    cairn_status rc = realpath("/tmp", base) ? choose_below(h, base) : CAIRN_ENOTFOUND;
    if (rc < 0)
        crn_err_prefix("no node-local directory (name one by level.local, or say 'trail'): ");
    return rc;
}

cairn_status crn_holding_find_local(crn_holding *h)
{
    const char *text = crn_config_text(h->cfg, CRN_OPT_LEVEL_LOCAL);
    if (strcmp(text, "trail") == 0)
        return CAIRN_OK;
    if (strcmp(text, "auto") != 0) {
        /* what a person names may be a link, as scratch directories often are; what we choose
         * ourselves, below a directory that all may write to, may not */
        h->local = realpath(text, NULL);
        return h->local ? CAIRN_OK : make_absolute(text, &h->local);
    }
    return choose_local(h);
}
