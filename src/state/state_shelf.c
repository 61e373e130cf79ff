/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The directory of a shelf: made, opened, searched for parts.
 */
#include "state/state_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { WRITERS_PER_DIR = 100, ID_TEXT = 32 };

static const char first_line[] = "cairn shelf 1\n";

/* --- names -------------------------------------------------------------------------------- */

char *crn_writer_part_name(uint32_t series, uint32_t rank, char buf[STATE_FILE_NAME])
{
    snprintf(buf, STATE_FILE_NAME, "part-%" PRIu32 "-%" PRIu32, series, rank);
    return buf;
}

char *crn_writer_drops_name(uint32_t series, char buf[STATE_FILE_NAME])
{
    snprintf(buf, STATE_FILE_NAME, "drops-%" PRIu32, series);
    return buf;
}

cairn_status crn_writer_dir(const cairn_shelf *s, uint32_t series, bool create, int *ret_fd)
{
    char name[STATE_FILE_NAME];
    snprintf(name, sizeof name, "writers-%03" PRIu32, series / WRITERS_PER_DIR);
    CRN_TRY(crn_dir_open_within(s->fd, name, create, ret_fd));
    const cairn_status rc = create ? crn_dir_sync(s->fd) : CAIRN_OK;
    if (rc < 0)
        close(*ret_fd);
    return rc;
}

bool crn_shelf_rechecks(const cairn_shelf *s)
{
    return crn_config_bool(s->cfg, CRN_OPT_STATE_RECHECK);
}

cairn_status crn_writer_part(const cairn_shelf *s, uint32_t series, uint32_t rank, uint32_t nranks,
                             bool write, crn_part **ret)
{
    crn_part_id id = {.series = series, .rank = rank, .nranks = nranks, .role = CRN_ROLE_STATES};
    char name[STATE_FILE_NAME];
    int dir;
    memcpy(id.run, s->id, sizeof id.run);
    crn_writer_part_name(series, rank, name);
    CRN_TRY(crn_writer_dir(s, series, false, &dir));
    const crn_part_id *want = nranks > 0 ? &id : NULL;
    cairn_status rc;
    if (write)
        rc = crn_part_try(dir, name, want, &s->opt, ret);
    else
        rc = crn_part_open(dir, name, want, false, &s->opt, ret);
    close(dir);
    CRN_TRY(rc);
    if (write)
        crn_part_set_recheck(*ret, crn_shelf_rechecks(s));
    return CAIRN_OK;
}

/* The parts of a directory of writers. */
static cairn_status parts_in(const cairn_shelf *s, const char *name, state_part_fn *fn, void *arg)
{
    char **names, again[STATE_FILE_NAME];
    size_t n;
    int fd;
    CRN_TRY(crn_dir_open(s->fd, name, false, &fd));
    cairn_status rc = crn_dir_list(fd, &names, &n);
    close(fd);
    CRN_TRY(rc);
    for (size_t i = 0; i < n; i++) {
        uint32_t series, rank;
        if (rc == CAIRN_OK && sscanf(names[i], "part-%" SCNu32 "-%" SCNu32, &series, &rank) == 2 &&
            strcmp(names[i], crn_writer_part_name(series, rank, again)) == 0)
            rc = fn(arg, series, rank);
        free(names[i]);
    }
    free(names);
    return rc;
}

cairn_status crn_shelf_parts(const cairn_shelf *s, state_part_fn *fn, void *arg)
{
    char **names;
    size_t n;
    CRN_TRY(crn_dir_list(s->fd, &names, &n));
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; i < n; i++) {
        if (rc == CAIRN_OK && strncmp(names[i], "writers-", 8) == 0)
            rc = parts_in(s, names[i], fn, arg);
        free(names[i]);
    }
    free(names);
    return rc;
}

/* --- opening ------------------------------------------------------------------------------ */

cairn_status crn_shelf_lock(cairn_shelf *s, crn_file **ret)
{
    enum { WAIT_MS = 30000 };
    crn_file *lock;
    *ret = NULL;
    CRN_TRY(crn_file_open(s->fd, "lock", CRN_READ | CRN_WRITE | CRN_CREATE, &lock));
    cairn_status rc = crn_file_lock_within(lock, WAIT_MS);
    if (rc == CAIRN_OK || rc == CAIRN_EUNSUPPORTED) {
        *ret = lock;
        return CAIRN_OK;
    }
    crn_file_close(lock);
    return rc;
}

static cairn_status read_identity(cairn_shelf *s)
{
    char *text;
    void *data;
    size_t n;
    CRN_TRY(crn_file_slurp(s->fd, "shelf", 4096, &data, &n));
    text = data;
    const size_t head = sizeof first_line - 1;
    bool good = n >= head + ID_TEXT && memcmp(text, first_line, head) == 0;
    for (size_t i = 0; good && i < sizeof s->id; i++) {
        unsigned byte;
        good = sscanf(text + head + 2 * i, "%2x", &byte) == 1;
        s->id[i] = (unsigned char)byte;
    }
    free(data);
    CRN_FAIL_IF(!good, CAIRN_EUNSUPPORTED,
                "'shelf' does not say that this is a shelf of a format that this version knows");
    return CAIRN_OK;
}

static cairn_status write_identity(cairn_shelf *s)
{
    char text[sizeof first_line + ID_TEXT + 1];
    size_t n = sizeof first_line - 1;
    memcpy(text, first_line, n);
    if (getrandom(s->id, sizeof s->id, 0) != (ssize_t)sizeof s->id)
        return crn_fail_sys(errno, "cannot draw an identity");
    for (size_t i = 0; i < sizeof s->id; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%02x", s->id[i]);
    text[n++] = '\n';
    return crn_file_replace(s->fd, "shelf", text, n);
}

/* Make what is missing of a shelf, as one of several processes that may come at the same time. */
static cairn_status furnish(cairn_shelf *s)
{
    crn_file *lock;
    cairn_status rc = read_identity(s);
    if (rc == CAIRN_OK && faccessat(s->fd, "index", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return CAIRN_OK;
    CRN_TRY(crn_shelf_lock(s, &lock));
    rc = read_identity(s);
    if (rc == CAIRN_ENOTFOUND)
        rc = write_identity(s);
    if (rc == CAIRN_OK && faccessat(s->fd, "index", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        rc = crn_shelf_make_index(s);
    crn_file_close(lock);
    return rc;
}

static cairn_status open_index(cairn_shelf *s)
{
    if (crn_state_index_open(s->fd, true, &s->index) < 0) /* who may only read, reads */
        CRN_TRY(crn_state_index_open(s->fd, false, &s->index));
    crn_state_index_set_mender(s->index, crn_shelf_mend, s);
    return CAIRN_OK;
}

/* A slash at its end would have a link followed. */
static cairn_status take_path(cairn_shelf *s, const char *path)
{
    CRN_TRY(crn_strdup(path, &s->path));
    for (size_t n = strlen(path); n > 1 && s->path[n - 1] == '/'; n--)
        s->path[n - 1] = 0;
    return CAIRN_OK;
}

static cairn_status open_directory(cairn_shelf *s, const char *path)
{
    const crn_share share = (crn_share)crn_config_word(s->cfg, CRN_OPT_RUN_MODE);
    CRN_TRY(take_path(s, path));
    CRN_TRY(crn_dir_open(AT_FDCWD, s->path, true, &s->fd));
    if (share != CRN_SHARE_NONE)
        CRN_TRY(crn_dir_share(s->fd, share));
    CRN_TRY(furnish(s));
    return open_index(s);
}

/* The first process makes what is missing; the others find it. */
static cairn_status open_together(cairn_shelf *s, const char *path, const char *config)
{
    cairn_status rc = crn_config_load(config, &s->cfg);
    if (rc == CAIRN_OK)
        rc = crn_state_log_create(&s->log);
    if (rc == CAIRN_OK)
        rc = crn_codec_check_configured(s->cfg);
    if (rc == CAIRN_OK) {
        s->opt = (crn_part_options){(crn_io_backend)crn_config_word(s->cfg, CRN_OPT_IO_BACKEND),
                                    (unsigned)crn_config_count(s->cfg, CRN_OPT_IO_DEPTH),
                                    crn_config_bool(s->cfg, CRN_OPT_IO_DIRECT)};
        if (crn_comm_rank(s->comm) == 0)
            rc = open_directory(s, path);
    }
    CRN_TRY(crn_comm_agree(s->comm, rc));
    if (crn_comm_rank(s->comm) > 0)
        rc = open_directory(s, path);
    return crn_comm_agree(s->comm, rc);
}

cairn_status crn_shelf_open(crn_comm *comm, const char *path, const char *config, cairn_shelf **ret)
{
    cairn_shelf *s;
    cairn_status rc = crn_alloc(&s, 1);
    if (rc < 0) {
        crn_comm_free(comm);
        return rc;
    }
    s->comm = comm;
    s->fd = -1;
    rc = open_together(s, path, config);
    if (rc < 0) {
        crn_err_prefix("shelf '%s': ", path);
        cairn_shelf_close(s);
        return rc;
    }
    *ret = s;
    return CAIRN_OK;
}

cairn_status crn_shelf_again(const cairn_shelf *s, cairn_shelf **ret)
{
    cairn_shelf *t;
    cairn_status rc;
    CRN_TRY(crn_alloc(&t, 1));
    t->cfg = s->cfg;
    t->log = s->log;
    t->borrowed = true;
    t->opt = s->opt;
    memcpy(t->id, s->id, sizeof t->id);
    t->fd = fcntl(s->fd, F_DUPFD_CLOEXEC, 0);
    CRN_TRY_OUT(rc, t->fd < 0 ? crn_fail_sys(errno, "cannot open '%s' again", s->path) : CAIRN_OK);
    CRN_TRY_OUT(rc, crn_comm_create_self(&t->comm));
    CRN_TRY_OUT(rc, crn_strdup(s->path, &t->path));
    CRN_TRY_OUT(rc, open_index(t));
    *ret = t;
    return CAIRN_OK;
out:
    cairn_shelf_close(t);
    return rc;
}

void cairn_shelf_close(cairn_shelf *s)
{
    if (!s)
        return;
    crn_shelf_disengage(s);
    crn_part_close(s->part);
    crn_hosts_done(s);
    crn_readers_done(s);
    crn_state_index_close(s->index);
    if (s->fd >= 0)
        close(s->fd);
    if (!s->borrowed) {
        crn_config_free(s->cfg);
        crn_state_log_free(s->log);
    }
    crn_comm_free(s->comm);
    crn_vec_done(&s->chosen);
    free(s->path);
    free(s);
}
