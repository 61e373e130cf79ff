/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What runs have left on a node's storage. A session that prepares its directory there leaves a
 * file 'home' in it, which says where the trail is, and holds a lock on it: so a later run can see
 * whether anybody still needs what lies there.
 */
#include "level/level_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

static const char home_name[] = "home", home_magic[] = "cairn home 1";
enum { HOME_BYTES_MAX = PATH_MAX + 512, RUN_NAME_MAX = 256 };

/* Where the files of a run belong. */
typedef struct home {
    char trail[PATH_MAX], run[RUN_NAME_MAX];
    uint64_t device, fsid; /* of the file system that the trail is on */
} home;

static bool identify(const char *path, uint64_t *ret_device, uint64_t *ret_fsid)
{
    struct stat st;
    struct statvfs fs;
    if (stat(path, &st) < 0 || statvfs(path, &fs) < 0)
        return false;
    *ret_device = (uint64_t)st.st_dev;
    *ret_fsid = (uint64_t)fs.f_fsid;
    return true;
}

/* --- leaving word --------------------------------------------------------------------------- */

/* If it cannot be written, the time alone decides. */
static void write_home(crn_file *file, const char *trail, const char *run)
{
    char text[HOME_BYTES_MAX], path[PATH_MAX];
    uint64_t device, fsid;
    if (!realpath(trail, path) || strchr(path, '\n') || !identify(path, &device, &fsid))
        return;
    int n = snprintf(text, sizeof text, "%s\n%s\n%s\n%" PRIu64 " %" PRIu64 "\n", home_magic, path,
                     run, device, fsid);
    if (n > 0 && (size_t)n < sizeof text && crn_file_truncate(file, 0) == CAIRN_OK)
        (void)crn_file_write(file, text, (size_t)n, 0);
}

void crn_vault_settle(crn_vault *v, const char *trail)
{
    int fd;
    if (!v->local || v->settled || crn_vault_rank_at(v, v->nodes.node, 0) != v->rank ||
        crn_vault_dir(v, v->home, false, &fd) < 0)
        return;
    if (crn_file_open(fd, home_name, CRN_READ | CRN_WRITE | CRN_CREATE, &v->settled) < 0)
        v->settled = NULL;
    else if (crn_file_lock(v->settled) != CAIRN_EBUSY)
        write_home(v->settled, trail, crn_run_name(v->opt.run));
    close(fd);
}

/* --- judging -------------------------------------------------------------------------------- */

/* Say why; a path that is too long is cut. */
__attribute__((format(printf, 2, 3))) static void explain(char why[CRN_ERR_TEXT],
                                                          const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(why, CRN_ERR_TEXT, format, ap);
    va_end(ap);
}

static bool get_line(char **rest, char *dst, size_t cap)
{
    char *end = strchr(*rest, '\n');
    if (!end || (size_t)(end - *rest) >= cap)
        return false;
    memcpy(dst, *rest, (size_t)(end - *rest));
    dst[end - *rest] = 0;
    *rest = end + 1;
    return true;
}

static bool read_home(int dir, home *ret)
{
    void *data;
    size_t nbytes;
    char text[HOME_BYTES_MAX + 1], magic[sizeof home_magic], *rest = text;
    if (crn_file_slurp(dir, home_name, HOME_BYTES_MAX, &data, &nbytes) < 0)
        return false;
    memcpy(text, data, nbytes);
    text[nbytes] = 0;
    free(data);
    return get_line(&rest, magic, sizeof magic) && strcmp(magic, home_magic) == 0 &&
           get_line(&rest, ret->trail, sizeof ret->trail) && ret->trail[0] == '/' &&
           get_line(&rest, ret->run, sizeof ret->run) &&
           sscanf(rest, "%" SCNu64 " %" SCNu64, &ret->device, &ret->fsid) == 2;
}

/* A trail is not where it was. Is the file system there that it was on? Then somebody removed it.
 */
static crn_need judge_missing(const home *h, char why[CRN_ERR_TEXT])
{
    char path[PATH_MAX];
    uint64_t device, fsid;
    snprintf(path, sizeof path, "%s", h->trail);
    for (char *slash = strrchr(path, '/'); slash; slash = strrchr(path, '/')) {
        slash[slash == path] = 0; /* the root keeps its name */
        if (identify(path, &device, &fsid) || strcmp(path, "/") == 0)
            break;
    }
    if (identify(path, &device, &fsid) && device == h->device && fsid == h->fsid) {
        explain(why, "trail '%s' was removed", h->trail);
        return CRN_NEED_NONE;
    }
    explain(why, "trail '%s' cannot be reached: its file system is not mounted here", h->trail);
    return CRN_NEED_UNKNOWN;
}

static crn_need judge_manifest(const home *h, const char *run, const crn_manifest *m,
                               char why[CRN_ERR_TEXT])
{
    const crn_manifest_mark *last = m->mark.n > 0 ? &m->mark.at[m->mark.n - 1] : NULL;
    if (!m->finished) {
        explain(why, "run '%s' of trail '%s' is not finished", run, h->trail);
        return CRN_NEED_RESUME;
    }
    if (last && !(last->levels & CRN_IN_TRAIL)) {
        explain(why,
                "run '%s' of trail '%s' is finished, but its last mark is nowhere else: 'cairn "
                "drain' brings it into the trail",
                run, h->trail);
        return CRN_NEED_UNKNOWN;
    }
    explain(why, "run '%s' of trail '%s' is finished", run, h->trail);
    return CRN_NEED_NONE;
}

/* Look at a run of the trail; false: it is not the one. */
static bool judge_run(crn_trail *t, const home *h, const char *name, const char *id, crn_need *ret,
                      char why[CRN_ERR_TEXT])
{
    char text[CRN_RUN_ID_TEXT];
    crn_run *run;
    cairn_status rc = crn_run_open(t, name, false, &run);
    if (rc == CAIRN_ENOTFOUND)
        return false;
    if (rc < 0) { /* it may be the one */
        explain(why, "trail '%s': %s", h->trail, crn_err_peek()->text);
        *ret = CRN_NEED_RESUME;
        return true;
    }
    const crn_manifest *m = crn_run_manifest(run);
    const bool same = strcmp(crn_run_id_format(m->run, text), id) == 0;
    if (same)
        *ret = judge_manifest(h, name, m, why);
    crn_run_close(run);
    return same;
}

/* The run may have another name by now. */
static crn_need judge_trail(crn_trail *t, const home *h, const char *id, char why[CRN_ERR_TEXT])
{
    crn_need need = CRN_NEED_RESUME;
    char **names;
    size_t n;
    bool found = false;
    if (judge_run(t, h, h->run, id, &need, why))
        return need;
    if (crn_trail_runs(t, &names, &n) < 0) {
        explain(why, "trail '%s': %s", h->trail, crn_err_peek()->text);
        return CRN_NEED_RESUME;
    }
    for (size_t i = 0; i < n; i++) {
        found = found || judge_run(t, h, names[i], id, &need, why);
        free(names[i]);
    }
    free(names);
    if (found)
        return need;
    explain(why, "trail '%s' does not have its run any more", h->trail);
    return CRN_NEED_NONE;
}

static crn_need judge(int dir, const char *id, char why[CRN_ERR_TEXT])
{
    home h;
    crn_trail *t;
    if (!read_home(dir, &h)) {
        explain(why, "it does not name the trail it belongs to");
        return CRN_NEED_UNKNOWN;
    }
    cairn_status rc = crn_trail_open(h.trail, false, &t);
    if (rc == CAIRN_ENOTFOUND)
        return judge_missing(&h, why);
    if (rc < 0) {
        explain(why, "trail '%s' cannot be reached: %s", h.trail, crn_err_peek()->text);
        return CRN_NEED_UNKNOWN;
    }
    const crn_need need = judge_trail(t, &h, id, why);
    crn_trail_close(t);
    return need;
}

/* --- sweeping ------------------------------------------------------------------------------- */

/* Add up what is in a directory, so many levels deep. */
static void measure(int fd, int depth, crn_orphan *o)
{
    char **names;
    size_t n;
    struct stat st;
    int below;
    if (crn_dir_list(fd, &names, &n) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        if (fstatat(fd, names[i], &st, AT_SYMLINK_NOFOLLOW) == 0) {
            o->changed_ns = CRN_MAX(o->changed_ns, (uint64_t)st.st_mtim.tv_sec * 1000000000u);
            o->nbytes += S_ISREG(st.st_mode) ? (uint64_t)st.st_blocks * 512 : 0;
            if (depth > 0 && S_ISDIR(st.st_mode) &&
                crn_dir_open(fd, names[i], false, &below) == CAIRN_OK) {
                measure(below, depth - 1, o);
                close(below);
            }
        }
        free(names[i]);
    }
    free(names);
}

static bool is_old(const crn_orphan *o, const crn_sweep *how)
{
    const double now = (double)time(NULL), then = (double)o->changed_ns * 1e-9;
    return how->after_s > 0 && now - then >= how->after_s;
}

/* Hold the lock that a running program would hold; false: one does. Where there is no file it is
 * made, but not to look only: the directory would look younger then. */
static bool hold(int dir, bool dry, crn_file **ret)
{
    const int flags = CRN_READ | CRN_WRITE | (dry ? 0 : CRN_CREATE);
    cairn_status rc = crn_file_open(dir, home_name, flags, ret);
    if (rc < 0) {
        *ret = NULL;
        return dry && rc == CAIRN_ENOTFOUND;
    }
    rc = crn_file_lock(*ret);
    if (rc < 0)
        crn_file_close(*ret);
    return rc == CAIRN_OK;
}

static void remove_orphan(int up, int dir, const crn_sweep *how, crn_orphan *o)
{
    crn_file *lock;
    if (!hold(dir, how->dry, &lock)) {
        o->need = CRN_NEED_RESUME;
        explain(o->why, "a running program has it");
        return;
    }
    o->goes = true;
    if (!how->dry && crn_tree_remove_local(up, o->id, 2, &o->nfiles) < 0) {
        o->goes = false;
        explain(o->why, "%s", crn_err_peek()->text);
    }
    crn_file_close(lock);
}

static void sweep_run(int up, const char *id, const crn_sweep *how)
{
    crn_orphan o = {.id = id};
    struct stat st;
    int dir;
    if (crn_dir_open(up, id, false, &dir) < 0)
        return;
    if (fstat(dir, &st) == 0 && st.st_uid == geteuid()) {
        o.changed_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u;
        measure(dir, 1, &o);
        o.old = is_old(&o, how);
        if (o.old || how->at_once) { /* else there is no need to ask a file system far away */
            o.need = judge(dir, id, o.why);
            if (o.need != CRN_NEED_RESUME && (o.old || o.need == CRN_NEED_NONE))
                remove_orphan(up, dir, how, &o);
            how->report(how->arg, &o);
        }
    }
    close(dir);
}

static bool is_run_id(const char *name)
{
    return strlen(name) == CRN_RUN_ID_TEXT - 1 &&
           strspn(name, "0123456789abcdef") == CRN_RUN_ID_TEXT - 1;
}

/* Directories of runs lie here, or in those of virtual nodes. */
static void sweep_dir(int fd, bool nodes, const char *own, const crn_sweep *how)
{
    char **names;
    size_t n;
    int below;
    if (crn_dir_list(fd, &names, &n) < 0)
        return;
    for (size_t i = 0; i < n; i++) {
        if (is_run_id(names[i]) && strcmp(names[i], own) != 0)
            sweep_run(fd, names[i], how);
        if (nodes && strncmp(names[i], "node-", 5) == 0 &&
            crn_dir_open(fd, names[i], false, &below) == CAIRN_OK) {
            sweep_dir(below, false, own, how);
            close(below);
        }
        free(names[i]);
    }
    free(names);
}

void crn_local_sweep(const char *local, const char *own, const crn_sweep *how)
{
    int fd;
    if (crn_dir_open_path(local, false, &fd) < 0)
        return;
    sweep_dir(fd, true, own, how);
    close(fd);
}

void crn_vault_sweep(crn_vault *v, const crn_sweep *how)
{
    char id[CRN_RUN_ID_TEXT];
    if (v->local && how->after_s > 0 && crn_vault_rank_at(v, v->nodes.node, 0) == v->rank)
        crn_local_sweep(v->local, crn_vault_run_dir(v, id), how);
}
