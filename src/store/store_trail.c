/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Trails and runs: directories, locks, and the manifest that says which marks count.
 */
#include "store/store_trail.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char trail_text[] = "cairn trail 1\n";

/* --- trails ------------------------------------------------------------------------------- */

/* Make the name of the trail itself last. A directory above that may not be read was made by
 * another, and its entries are that one's to keep. */
static cairn_status sync_parent(const crn_trail *t)
{
    int up;
    if (crn_dir_open(t->fd, "..", false, &up) < 0)
        return CAIRN_OK;
    cairn_status rc = crn_dir_sync(up);
    close(up);
    return rc;
}

/* What its file 'trail' says. CAIRN_ENOTFOUND: there is none; CAIRN_EUNSUPPORTED: a newer format;
 * CAIRN_ECORRUPT: no such thing. */
static cairn_status read_marker(const crn_trail *t)
{
    enum { NBYTES = sizeof trail_text - 1, DIGITS = 12 };
    void *data;
    size_t nbytes;
    CRN_TRY(crn_file_slurp(t->fd, "trail", NBYTES + 64, &data, &nbytes));
    const bool same = nbytes == NBYTES && memcmp(data, trail_text, NBYTES) == 0;
    const char *text = data;
    const bool newer = !same && nbytes > DIGITS && memcmp(data, trail_text, DIGITS) == 0 &&
                       strspn(text + DIGITS, "0123456789") == nbytes - DIGITS - 1 &&
                       text[nbytes - 1] == '\n';
    free(data);
    CRN_FAIL_IF(newer, CAIRN_EUNSUPPORTED,
                "'%s' is a trail of a newer format; or its file 'trail' is damaged: if so, remove "
                "that file, and it is made again",
                t->path);
    CRN_FAIL_IF(!same, CAIRN_ECORRUPT,
                "'%s' is not a trail: its file 'trail' says otherwise, and there is no run in it; "
                "if it was one, remove that file, and it is made again",
                t->path);
    return CAIRN_OK;
}

/* Is there a run that this version can read? */
static bool has_run(crn_trail *t)
{
    char **names;
    size_t n;
    bool found = false;
    if (crn_trail_runs(t, &names, &n) < 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        crn_run *run;
        if (!found && crn_run_open(t, names[i], false, &run) == CAIRN_OK) {
            found = true;
            crn_run_close(run);
        }
        free(names[i]);
    }
    free(names);
    return found;
}

static cairn_status write_marker(const crn_trail *t)
{
    CRN_TRY(sync_parent(t));
    cairn_status rc = crn_file_replace(t->fd, "trail", trail_text, sizeof trail_text - 1);
    if (rc == CAIRN_OK)
        return CAIRN_OK;
    /* Where the file system knows no locks another may have been faster. */
    const crn_err why = *crn_err_peek();
    return read_marker(t) == CAIRN_OK ? CAIRN_OK : crn_err_give(&why);
}

/* A directory with runs is a trail whatever happened to those few bytes; who writes to it makes
 * them again. */
static cairn_status check_marker(crn_trail *t, bool create)
{
    const cairn_status rc = read_marker(t);
    if (rc != CAIRN_ENOTFOUND && rc != CAIRN_ECORRUPT && rc != CAIRN_EUNSUPPORTED)
        return rc;
    const crn_err why = *crn_err_peek();
    if ((rc == CAIRN_ENOTFOUND && create) || has_run(t))
        return create ? write_marker(t) : CAIRN_OK;
    CRN_FAIL_IF(rc == CAIRN_ENOTFOUND, CAIRN_ENOTFOUND, "'%s' is not a trail", t->path);
    crn_err_give(&why);
    return rc == CAIRN_EUNSUPPORTED ? rc : crn_fail(CAIRN_ENOTFOUND, "%s", why.text);
}

cairn_status crn_trail_open(const char *path, bool create, crn_trail **ret)
{
    crn_trail *t;
    cairn_status rc;
    CRN_TRY(crn_alloc(&t, 1));
    t->fd = -1;
    CRN_TRY_OUT(rc, crn_strdup(path, &t->path));
    CRN_TRY_OUT(rc, crn_dir_open_path(path, create, &t->fd));
    CRN_TRY_OUT(rc, check_marker(t, create));
    *ret = t;
    return CAIRN_OK;
out:
    crn_trail_close(t);
    return rc;
}

/* The file that says what it is was made before. */
static cairn_status share_marker(const crn_trail *t)
{
    crn_file *marker;
    CRN_TRY(crn_file_open(t->fd, "trail", CRN_READ, &marker));
    cairn_status rc = crn_file_share(marker, t->fd);
    crn_file_close(marker);
    return rc;
}

cairn_status crn_trail_share(crn_trail *t, crn_share share)
{
    t->share = share;
    if (share == CRN_SHARE_NONE)
        return CAIRN_OK;
    cairn_status rc = crn_dir_share(t->fd, share);
    if (rc == CAIRN_OK)
        rc = share_marker(t);
    if (rc < 0)
        crn_err_prefix("trail '%s': ", t->path);
    return rc;
}

void crn_trail_close(crn_trail *t)
{
    if (!t)
        return;
    if (t->fd >= 0)
        close(t->fd);
    free(t->path);
    free(t);
}

static int by_version(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

/* Does a directory that has no manifest hold what is left of a run that has lost it: parts, or the
 * log of marks that are elsewhere? The manifest comes before both. */
static bool was_begun(const crn_trail *t, const char *name)
{
    char **names;
    size_t n;
    uint32_t series;
    int fd;
    bool found = false;
    if (crn_dir_open(t->fd, name, false, &fd) < 0)
        return false;
    if (crn_dir_list(fd, &names, &n) == CAIRN_OK) {
        for (size_t i = 0; i < n; i++) {
            found |= crn_series_parse(names[i], &series) || strcmp(names[i], "events") == 0;
            free(names[i]);
        }
        free(names);
    }
    close(fd);
    return found;
}

/* What may not be looked into counts as a run, too: opening it tells why, and nobody takes a trail
 * for sound of which nothing was read. */
static bool is_run(const crn_trail *t, const char *name)
{
    char path[300];
    int n = snprintf(path, sizeof path, "%s/manifest", name);
    if (!crn_name_is_safe(name) || n < 0 || (size_t)n >= sizeof path)
        return false;
    if (faccessat(t->fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return true;
    return errno == ENOENT ? was_begun(t, name) : errno != ENOTDIR;
}

cairn_status crn_trail_runs(crn_trail *t, char ***ret_names, size_t *ret_n)
{
    char **names;
    size_t n, kept = 0;
    CRN_TRY(crn_dir_list(t->fd, &names, &n));
    for (size_t i = 0; i < n; i++) {
        if (is_run(t, names[i]))
            names[kept++] = names[i];
        else
            free(names[i]);
    }
    qsort(names, kept, sizeof *names, by_version);
    *ret_names = names;
    *ret_n = kept;
    return CAIRN_OK;
}

/* --- runs --------------------------------------------------------------------------------- */

void crn_run_close(crn_run *run)
{
    if (!run)
        return;
    crn_file_close(run->lock);
    crn_file_close(run->events);
    if (run->fd >= 0)
        close(run->fd);
    crn_manifest_done(&run->manifest);
    free(run->name);
    free(run);
}

const char *crn_run_name(const crn_run *run)
{
    return run->name;
}

int crn_run_fd(const crn_run *run)
{
    return run->fd;
}

const crn_manifest *crn_run_manifest(const crn_run *run)
{
    return &run->manifest;
}

bool crn_run_was_rebuilt(const crn_run *run)
{
    return run->rebuilt;
}

/* --- signs of life ------------------------------------------------------------------------ */

static uint64_t changed_ns(const struct stat *st)
{
    return (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec;
}

/*
 * The time of the lock is the pulse of the program that holds it: a file that is there anyway, is
 * written by nobody else, and costs one system call without data. What is logged is a sign of life,
 * too.
 */
void crn_run_beat(crn_run *run)
{
    (void)futimens(crn_file_fd(run->lock), NULL);
}

uint64_t crn_run_seen(const crn_run *run)
{
    return run->seen_ns;
}

cairn_status crn_run_pulse(crn_trail *t, const char *name, uint64_t *ret_ns)
{
    static const char *const signs[] = {"lock", "events"};
    uint64_t newest = 0;
    struct stat st;
    int fd;
    CRN_FAIL_IF(!crn_name_is_safe(name), CAIRN_EINVAL, "'%s' cannot name a run", name);
    CRN_TRY(crn_dir_open(t->fd, name, false, &fd));
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (fstatat(fd, signs[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
            newest = CRN_MAX(newest, changed_ns(&st));
    close(fd);
    CRN_FAIL_IF(newest == 0, CAIRN_ENOTFOUND, "run '%s' has given no sign of life", name);
    *ret_ns = newest;
    return CAIRN_OK;
}

/* --- opening runs ------------------------------------------------------------------------- */

/* An empty lock is one that we have just made. */
static void look_back(crn_run *run)
{
    struct stat st;
    if (fstat(crn_file_fd(run->lock), &st) == 0 && st.st_size > 0)
        run->seen_ns = changed_ns(&st);
}

/* The lock goes with the process that holds it; what it wrote into the file is for messages only.
 */
static cairn_status take_lock(crn_run *run)
{
    char who[128] = "", host[64] = "";
    CRN_TRY(crn_file_open(run->fd, "lock", CRN_READ | CRN_WRITE | CRN_CREATE, &run->lock));
    cairn_status rc = crn_file_lock(run->lock);
    if (rc == CAIRN_EBUSY) {
        ssize_t n = pread(crn_file_fd(run->lock), who, sizeof who - 1, 0);
        who[n < 0 ? 0 : strcspn(who, "\n")] = 0;
        return crn_fail(CAIRN_EBUSY, "run '%s' is being written by %s", run->name,
                        who[0] ? who : "another process");
    }
    if (rc < 0)
        crn_err_prefix("run '%s': ", run->name);
    CRN_TRY(rc);
    look_back(run);
    gethostname(host, sizeof host - 1);
    int n = snprintf(who, sizeof who, "process %ld on '%s'\n", (long)getpid(), host);
    CRN_TRY(crn_file_truncate(run->lock, 0));
    return crn_file_write(run->lock, who, (size_t)n, 0);
}

static cairn_status write_manifest(crn_run *run, crn_manifest *m)
{
    crn_buf buf = {0};
    crn_manifest_put(m, &buf);
    cairn_status rc = crn_buf_status(&buf);
    if (rc == CAIRN_OK)
        rc = crn_file_replace(run->fd, "manifest", buf.at, buf.n);
    if (rc == CAIRN_OK)
        crn_manifest_follow(m, buf.at, buf.n);
    crn_buf_done(&buf);
    return rc;
}

/* May parts stand in for a manifest that could not be read? Not for lack of memory. Where the disk
 * gives an error it may be a passing one: to read that is good enough, but a writer would replace a
 * manifest that is whole. */
static bool may_rebuild(const crn_run *run, cairn_status rc)
{
    return rc == CAIRN_ENOTFOUND || rc == CAIRN_ECORRUPT || (rc == CAIRN_EIO && !run->lock);
}

/* A manifest that is lost or damaged can be made again: the part files know the marks as well.
 * Those in the trail are asked here, and who writes the run asks the nodes for theirs. */
static cairn_status read_manifest(crn_run *run)
{
    void *data;
    size_t nbytes;
    if (fstatat(run->fd, "manifest", &run->was, AT_SYMLINK_NOFOLLOW) < 0)
        memset(&run->was, 0, sizeof run->was);
    cairn_status rc = crn_file_slurp(run->fd, "manifest", MANIFEST_BYTES_MAX, &data, &nbytes);
    if (rc == CAIRN_OK) {
        rc = crn_manifest_parse(data, nbytes, &run->manifest);
        if (nbytes >
            run->manifest.end) /* a crash has left something: what follows it would be lost */
            run->manifest.list_end = 0;
        free(data);
    }
    if (rc == CAIRN_OK)
        return CAIRN_OK;
    const crn_err why = *crn_err_peek();
    cairn_status rebuilt = may_rebuild(run, rc) ? crn_run_rebuild(run) : rc;
    if (rebuilt == CAIRN_OK || (rc == CAIRN_ENOTFOUND && rebuilt == CAIRN_ECORRUPT))
        return rebuilt;
    crn_err_give(&why);
    crn_err_prefix("run '%s': ", run->name);
    return rc;
}

static cairn_status open_dir(crn_trail *t, const char *name, const char *dir, bool create,
                             crn_run **ret)
{
    CRN_FAIL_IF(!crn_name_is_safe(name), CAIRN_EINVAL,
                "'%s' cannot name a run: use letters, digits, '.', '_' and '-'", name);
    crn_run *run;
    cairn_status rc;
    CRN_TRY(crn_alloc(&run, 1));
    run->fd = -1;
    CRN_TRY_OUT(rc, crn_strdup(name, &run->name));
    CRN_TRY_OUT(rc, crn_dir_open(t->fd, dir, create, &run->fd));
    if (t->share != CRN_SHARE_NONE) /* also a run that was begun otherwise, from now on */
        CRN_TRY_OUT(rc, crn_dir_share(run->fd, t->share));
    *ret = run;
    return CAIRN_OK;
out:
    crn_run_close(run);
    return rc;
}

cairn_status crn_run_open(crn_trail *t, const char *name, bool write, crn_run **ret)
{
    crn_run *run;
    cairn_status rc = open_dir(t, name, name, false, &run);
    if (rc == CAIRN_ENOTFOUND)
        return crn_fail(CAIRN_ENOTFOUND, "trail '%s' has no run '%s'", t->path, name);
    CRN_TRY(rc);
    if (write) {
        CRN_TRY_OUT(rc, take_lock(run));
        /* the manifest that we are about to trust may have been renamed by a process that ended
         * before it could sync the directory */
        CRN_TRY_OUT(rc, crn_dir_sync(run->fd));
    }
    CRN_TRY_OUT(rc, read_manifest(run));
    *ret = run;
    return CAIRN_OK;
out:
    crn_run_close(run);
    return rc;
}

cairn_status crn_trail_lock(crn_trail *t, crn_file **ret)
{
    enum { WAIT_MS = 30000 };
    crn_file *lock;
    *ret = NULL;
    if (crn_file_open(t->fd, "lock", CRN_READ | CRN_WRITE | CRN_CREATE, &lock) < 0)
        return CAIRN_OK;
    cairn_status rc = crn_file_lock_within(lock, WAIT_MS);
    if (rc == CAIRN_OK) {
        *ret = lock;
        return CAIRN_OK;
    }
    crn_file_close(lock);
    CRN_FAIL_IF(rc == CAIRN_EBUSY, CAIRN_EBUSY,
                "trail '%s': another process has been choosing a run for too long", t->path);
    return CAIRN_OK;
}

/* The first "run-N" that no run is called. */
static cairn_status free_name(const crn_trail *t, char name[PATH_TEXT])
{
    for (unsigned n = 1; n < UINT32_MAX; n++) {
        snprintf(name, PATH_TEXT, "run-%u", n);
        if (faccessat(t->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
            return CAIRN_OK;
    }
    return crn_fail(CAIRN_EBUSY, "no name is left for a run");
}

cairn_status crn_trail_choose_name(const crn_trail *t, const char *name, char chosen[PATH_TEXT],
                                   const char **ret)
{
    CRN_FAIL_IF(name && is_run(t, name), CAIRN_EBUSY, "trail '%s' already has a run '%s'", t->path,
                name);
    if (!name)
        CRN_TRY(free_name(t, chosen));
    *ret = name ? name : chosen;
    return CAIRN_OK;
}

cairn_status crn_run_begin(crn_trail *t, const char *name, bool hidden, crn_run **ret)
{
    crn_run *run;
    cairn_status rc;
    unsigned char id[sizeof run->manifest.run];
    char dir[PATH_TEXT];
    if (getrandom(id, sizeof id, 0) != (ssize_t)sizeof id)
        return crn_fail_sys(errno, "cannot draw an identity for run '%s'", name);
    CRN_TRY(open_dir(t, name, hidden ? crn_hidden_name(id, dir) : name, true, &run));
    run->hidden = hidden;
    memcpy(run->manifest.run, id, sizeof id);
    CRN_TRY_OUT(rc, take_lock(run));
    CRN_TRY_OUT(rc, crn_dir_sync(t->fd));
    run->manifest.created_ns = crn_wall_ns();
    CRN_TRY_OUT(rc, write_manifest(run, &run->manifest));
    *ret = run;
    return CAIRN_OK;
out:
    crn_run_close(run);
    return rc;
}

cairn_status crn_run_create(crn_trail *t, const char *name, crn_run **ret)
{
    char chosen[PATH_TEXT];
    CRN_TRY(crn_trail_choose_name(t, name, chosen, &name));
    return crn_run_begin(t, name, false, ret);
}

/* --- parts of a run ----------------------------------------------------------------------- */

cairn_status crn_run_series_dir(crn_run *run, uint32_t series, bool create, int *ret_fd)
{
    char name[PATH_TEXT];
    int fd;
    crn_series_name(series, name);
    CRN_TRY(crn_dir_open_within(run->fd, name, create, &fd));
    cairn_status rc = create ? crn_dir_sync(run->fd) : CAIRN_OK;
    if (rc < 0)
        close(fd);
    else
        *ret_fd = fd;
    return rc;
}

cairn_status crn_run_part_dir(crn_run *run, uint32_t series, uint32_t rank, bool create,
                              int *ret_fd)
{
    char name[PATH_TEXT];
    int up;
    CRN_TRY(crn_run_series_dir(run, series, create, &up));
    crn_fan_name(rank, name);
    cairn_status rc = crn_dir_open_within(up, name, create, ret_fd);
    if (rc == CAIRN_OK && create) {
        rc = crn_dir_sync(up);
        if (rc < 0)
            close(*ret_fd);
    }
    close(up);
    return rc;
}

cairn_status crn_run_part(crn_run *run, uint32_t series, uint32_t rank, uint32_t nranks, bool write,
                          const crn_part_options *opt, crn_part **ret)
{
    crn_part_id id = {.series = series, .rank = rank, .nranks = nranks, .role = CRN_ROLE_OWN};
    char name[PATH_TEXT];
    int dir;
    memcpy(id.run, run->manifest.run, sizeof id.run);
    CRN_TRY(crn_run_part_dir(run, series, rank, write, &dir));
    crn_part_name(rank, name);
    cairn_status rc = crn_part_open(dir, name, &id, write, opt, ret);
    if (rc == CAIRN_ENOTFOUND && write)
        rc = crn_part_create(dir, name, &id, opt, ret);
    close(dir);
    if (rc < 0)
        crn_err_prefix("run '%s', series %u: ", run->name, series);
    return rc;
}

/* --- marks of a run ----------------------------------------------------------------------- */

/* The file has them: so has the memory, where there is room for them. */
static void take_marks(crn_manifest *m, const crn_manifest_mark *mark, size_t n, size_t nsame,
                       bool finished)
{
    for (m->mark.n = nsame; m->mark.n < n; m->mark.n++)
        m->mark.at[m->mark.n] = mark[m->mark.n];
    m->seq++;
    m->finished = finished;
}

static cairn_status replace_whole(crn_run *run, const crn_manifest_mark *mark, size_t n,
                                  bool finished)
{
    crn_manifest next = run->manifest;
    memset(&next.mark, 0, sizeof next.mark);
    CRN_TRY(crn_vec_reserve(&next.mark, n));
    take_marks(&next, mark, n, 0, finished);
    cairn_status rc = write_manifest(run, &next);
    if (rc < 0) {
        run->manifest.list_end = 0; /* which of the two is there is not known */
        crn_manifest_done(&next);
        return rc;
    }
    crn_manifest_done(&run->manifest);
    run->manifest = next;
    return CAIRN_OK;
}

/* Write a change behind the manifest. What becomes of it is unknown when that fails: then the next
 * one replaces the whole. */
static cairn_status append_change(crn_run *run, const crn_buf *change)
{
    crn_manifest *m = &run->manifest;
    crn_file *f = NULL;
    const uint64_t at = m->end, end = m->list_end;
    m->list_end = 0;
    CRN_TRY(crn_buf_status(change));
    CRN_TRY(crn_file_open(run->fd, "manifest", CRN_READ | CRN_WRITE, &f));
    cairn_status rc = crn_file_write(f, change->at, change->n, at);
    if (rc == CAIRN_OK)
        rc = crn_file_sync(f);
    crn_file_close(f);
    CRN_TRY(rc);
    m->list_end = end;
    m->end = at + change->n;
    return CAIRN_OK;
}

#ifndef NDEBUG
static bool are_equal(const crn_manifest_mark *a, const crn_manifest_mark *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!crn_manifest_mark_equal(&a[i], &b[i]))
            return false;
    return true;
}
#endif

/* mark may be the manifest's own, or lie in it. */
cairn_status crn_run_replace_marks(crn_run *run, const crn_manifest_mark *mark, size_t n,
                                   size_t nsame, bool finished)
{
    crn_manifest *m = &run->manifest;
    crn_buf change = {0};
    nsame = CRN_MIN(nsame, m->mark.n);
    assert(nsame <= n && are_equal(m->mark.at, mark, nsame));
    if (!crn_manifest_change(m, mark, n, nsame, finished, &change))
        return replace_whole(run, mark, n, finished);
    cairn_status rc = n > m->mark.n ? crn_vec_reserve(&m->mark, n - m->mark.n) : CAIRN_OK;
    if (rc == CAIRN_OK)
        rc = append_change(run, &change);
    if (rc == CAIRN_OK)
        take_marks(m, mark, n, nsame, finished);
    crn_buf_done(&change);
    return rc;
}

cairn_status crn_run_commit(crn_run *run, const crn_manifest_mark *mark, uint64_t keep)
{
    const size_t n = run->manifest.mark.n;
    size_t ndrop = keep <= n ? n + 1 - (size_t)CRN_MAX(keep, 1) : 0;
    CRN_TRY(crn_vec_reserve(&run->manifest.mark, 1));
    run->manifest.mark.at[n] = *mark; /* behind the end, until the file says so */
    return crn_run_replace_marks(run, run->manifest.mark.at + ndrop, n + 1 - ndrop,
                                 ndrop == 0 ? n : 0, false);
}

bool crn_run_is_current(const crn_run *run)
{
    struct stat st;
    return fstatat(run->fd, "manifest", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_ino == run->was.st_ino && st.st_size == run->was.st_size &&
           changed_ns(&st) == changed_ns(&run->was);
}

bool crn_trail_dropped(crn_trail *t, const char *name, const crn_manifest_mark *mark)
{
    crn_run *run;
    if (crn_run_open(t, name, false, &run) < 0)
        return false;
    const crn_manifest *m = crn_run_manifest(run);
    bool listed = false;
    for (size_t i = 0; i < m->mark.n && !listed; i++) {
        const crn_manifest_mark *k = &m->mark.at[i];
        listed =
            k->version == mark->version && k->series == mark->series && k->levels & CRN_IN_TRAIL;
    }
    crn_run_close(run);
    return !listed;
}

cairn_status crn_run_attach(crn_trail *t, const char *name, const crn_manifest *m, crn_run **ret)
{
    crn_run *run;
    CRN_TRY(open_dir(t, name, name, false, &run));
    run->manifest = *m;
    memset(&run->manifest.mark, 0, sizeof run->manifest.mark);
    cairn_status rc = crn_vec_reserve(&run->manifest.mark, m->mark.n);
    if (rc < 0) {
        crn_run_close(run);
        return rc;
    }
    for (size_t i = 0; i < m->mark.n; i++)
        run->manifest.mark.at[run->manifest.mark.n++] = m->mark.at[i];
    *ret = run;
    return CAIRN_OK;
}

cairn_status crn_tree_remove(int up, const char *name, int depth, uint64_t *nfiles)
{
    char **names;
    size_t n;
    int fd;
    struct stat st;
    if (fstatat(up, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (depth == 0 || !S_ISDIR(st.st_mode))) {
        CRN_TRY(crn_unlink(up, name));
        ++*nfiles;
        return CAIRN_OK;
    }
    CRN_TRY(crn_dir_open(up, name, false, &fd));
    cairn_status rc = crn_dir_list(fd, &names, &n);
    if (rc == CAIRN_OK) {
        for (size_t i = 0; i < n; i++) {
            if (rc == CAIRN_OK)
                rc = crn_tree_remove(fd, names[i], depth - 1, nfiles);
            free(names[i]);
        }
        free(names);
    }
    close(fd);
    return rc < 0 ? rc : crn_unlink(up, name);
}

cairn_status crn_run_remove_series(crn_run *run, uint32_t series, uint64_t *nfiles)
{
    char name[PATH_TEXT];
    crn_series_name(series, name);
    cairn_status rc = crn_tree_remove(run->fd, name, 2, nfiles);
    return rc == CAIRN_ENOTFOUND ? CAIRN_OK : rc;
}
