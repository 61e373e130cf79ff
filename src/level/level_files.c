/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The files of a vault on a node's storage: their places, and those that are open.
 */
#include "level/level_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

bool crn_vault_parse_name(const char *name, uint32_t *ret_role, uint32_t *ret_rank)
{
    for (int l = 0; l < CRN_NLEVELS; l++) {
        const char *begin = crn_level_table[l]->file;
        const size_t n = begin ? strlen(begin) : 0;
        uint64_t rank;
        if (!begin || strncmp(name, begin, n) != 0 || name[n] != '-')
            continue;
        if (crn_parse_count(name + n + 1, &rank) < 0 || rank > UINT32_MAX)
            return false;
        *ret_role = crn_level_table[l]->role;
        *ret_rank = (uint32_t)rank;
        return true;
    }
    return false;
}

/* --- directories -------------------------------------------------------------------------- */

/* Open a directory below up, made durably where create is set and there is none. Closes up. */
static cairn_status descend(int up, const char *name, bool create, int *ret)
{
    int fd;
    cairn_status rc = crn_dir_open(up, name, false, &fd);
    if (rc == CAIRN_ENOTFOUND && create) {
        rc = crn_dir_open(up, name, true, &fd);
        if (rc == CAIRN_OK && up != AT_FDCWD) {
            rc = crn_dir_sync(up);
            if (rc < 0)
                close(fd);
        }
    }
    if (up != AT_FDCWD)
        close(up);
    if (rc == CAIRN_OK)
        *ret = fd;
    return rc;
}

char *crn_vault_run_dir(const crn_vault *v, char buf[CRN_RUN_ID_TEXT])
{
    return crn_run_id_format(crn_run_manifest(v->opt.run)->run, buf);
}

cairn_status crn_vault_dir(crn_vault *v, uint32_t dir, bool create, int *ret_fd)
{
    char name[CRN_RUN_ID_TEXT];
    int fd;
    CRN_FAIL_IF(!v->local, CAIRN_EINVAL, "no node-local directory is configured");
    CRN_TRY(descend(AT_FDCWD, v->local, create, &fd));
    if (v->opt.node_size > 0) {
        snprintf(name, sizeof name, "node-%" PRIu32, dir);
        CRN_TRY(descend(fd, name, create, &fd));
    }
    return descend(fd, crn_vault_run_dir(v, name), create, ret_fd);
}

cairn_status crn_vault_prepare(crn_vault *v)
{
    int fd;
    if (!v->local)
        return CAIRN_OK;
    CRN_TRY(crn_vault_dir(v, v->home, true, &fd));
    close(fd);
    return CAIRN_OK;
}

/* --- parts -------------------------------------------------------------------------------- */

crn_part_id crn_vault_id(const crn_vault *v, uint32_t role, uint32_t series, uint32_t rank,
                         uint32_t nranks)
{
    crn_part_id id = {.series = series, .rank = rank, .nranks = nranks, .role = role};
    memcpy(id.run, crn_run_manifest(v->opt.run)->run, sizeof id.run);
    return id;
}

static bool is_same_id(const crn_part_id *a, const crn_part_id *b)
{
    return memcmp(a->run, b->run, sizeof a->run) == 0 && a->series == b->series &&
           a->rank == b->rank && a->nranks == b->nranks && a->role == b->role;
}

static cairn_status open_local(crn_vault *v, const crn_part_id *id, bool write, crn_part **ret)
{
    char name[32];
    int fd;
    CRN_TRY(crn_vault_dir(v, write ? v->home : crn_vault_dir_of(v, id), write, &fd));
    snprintf(name, sizeof name, "series-%" PRIu32, id->series);
    CRN_TRY(descend(fd, name, write, &fd));
    snprintf(name, sizeof name, "%s-%" PRIu32, crn_role_name(id->role), id->rank);
    cairn_status rc = crn_part_open(fd, name, id, write, &v->opt.part, ret);
    /* a file without a whole superblock has nothing left that anyone could read */
    if ((rc == CAIRN_ENOTFOUND || rc == CAIRN_ECORRUPT) && write)
        rc = crn_part_create(fd, name, id, &v->opt.part, ret);
    close(fd);
    if (rc < 0)
        crn_err_prefix("'%s', series %" PRIu32 ": ", v->local, id->series);
    return rc;
}

static bool is_in_trail(const crn_vault *v, const crn_part_id *id)
{
    return id->role == CRN_ROLE_TRAIL || (id->role == CRN_ROLE_OWN && !v->local);
}

cairn_status crn_vault_part(crn_vault *v, const crn_part_id *id, bool write, crn_part **ret)
{
    crn_part *part;
    for (size_t i = 0; i < v->open.n; i++) {
        crn_open_part *o = &v->open.at[i];
        if (!is_same_id(&o->id, id))
            continue;
        if (o->write || !write) {
            *ret = o->part;
            return CAIRN_OK;
        }
        crn_part_close(o->part); /* as a reader: it becomes a writer */
        *o = v->open.at[--v->open.n];
        break;
    }
    CRN_TRY(crn_vec_reserve(&v->open, 1));
    if (is_in_trail(v, id))
        CRN_TRY(
            crn_run_part(v->opt.run, id->series, id->rank, id->nranks, write, &v->opt.part, &part));
    else
        CRN_TRY(open_local(v, id, write, &part));
    v->open.at[v->open.n++] = (crn_open_part){*id, write, part};
    *ret = part;
    return CAIRN_OK;
}

static void close_parts(crn_vault *v, bool writers)
{
    size_t kept = 0;
    for (size_t i = 0; i < v->open.n; i++) {
        if (v->open.at[i].write && !writers)
            v->open.at[kept++] = v->open.at[i];
        else
            crn_part_close(v->open.at[i].part);
    }
    v->open.n = kept;
}

void crn_vault_refresh(crn_vault *v)
{
    size_t kept = 0;
    for (size_t i = 0; i < v->open.n; i++) {
        if (crn_part_is_removed(v->open.at[i].part))
            crn_part_close(v->open.at[i].part);
        else
            v->open.at[kept++] = v->open.at[i];
    }
    v->open.n = kept;
}

void crn_vault_close_readers(crn_vault *v)
{
    close_parts(v, false);
}

void crn_vault_close_all(crn_vault *v)
{
    close_parts(v, true);
    crn_vec_done(&v->open);
}

cairn_status crn_vault_visit(crn_vault *v, const crn_part_id *id,
                             cairn_status (*visit)(crn_part *part, uint64_t arg), uint64_t arg)
{
    crn_part *part;
    cairn_status rc = crn_vault_part(v, id, false, &part);
    if (rc == CAIRN_ENOTFOUND || rc == CAIRN_ECORRUPT)
        return CAIRN_OK; /* to write would make a file */
    CRN_TRY(rc);
    CRN_TRY(crn_vault_part(v, id, true, &part));
    return visit(part, arg);
}

crn_part_id crn_vault_own_id(const crn_vault *v)
{
    return crn_vault_id(v, CRN_ROLE_OWN, v->opt.series, (uint32_t)v->rank, (uint32_t)v->nranks);
}

cairn_status crn_vault_own(crn_vault *v, crn_part **ret)
{
    crn_part_id id = crn_vault_own_id(v);
    return crn_vault_part(v, &id, true, ret);
}

cairn_status crn_vault_own_mark(crn_vault *v, uint64_t version, crn_part **ret_part,
                                crn_mark **ret_mark)
{
    crn_part *part;
    crn_mark *mark;
    CRN_TRY(crn_vault_own(v, &part));
    CRN_TRY(crn_part_load(part, version, &mark));
    for (size_t i = 0; i < mark->nvars; i++) {
        cairn_status rc = crn_mark_table(part, mark, &mark->var[i]);
        if (rc < 0) {
            crn_mark_free(mark);
            return rc;
        }
    }
    *ret_part = part;
    *ret_mark = mark;
    return CAIRN_OK;
}
