/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files of MPI, in a scratch directory that rank 0 makes. A name of the trace becomes a name there
 * that can be no path. All files are opened for reading and writing, and made if they are not
 * there; a read beyond the end of what the replay wrote gets what there is.
 */
#include "replay/replay.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the directory ---- */

static cairn_status make_dir(crn_player *p, crn_play_files *f)
{
    const char *base = p->opt->scratch ? p->opt->scratch : ".";
    int n = snprintf(f->dir, sizeof f->dir, "%s/replay-XXXXXX", base);
    CRN_FAIL_IF((size_t)n >= sizeof f->dir, CAIRN_EINVAL, "'%s' is too long for a name", base);
    if (!mkdtemp(f->dir))
        return crn_fail_sys(errno, "cannot make a directory in '%s'", base);
    f->made = true;
    return CAIRN_OK;
}

/* Only names that the replay made are there, in no directories. */
static void remove_dir(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *entry;
    while (d && (entry = readdir(d)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(d), entry->d_name, 0);
    if (d)
        closedir(d);
    rmdir(dir);
}

cairn_status crn_play_files_create(crn_player *p, crn_play_files **ret)
{
    crn_play_files *f;
    cairn_status rc = CAIRN_OK;
    int code;
    CRN_TRY(crn_alloc(&f, 1));
    if (p->rank == 0 && !p->opt->no_io)
        rc = make_dir(p, f);
    code = rc;
    CRN_TRY_MPI(MPI_Bcast(&code, 1, MPI_INT, 0, MPI_COMM_WORLD));
    if (code < 0) {
        free(f);
        return rc < 0 ? rc
                      : crn_fail((cairn_status)code, "rank 0 cannot make the scratch directory");
    }
    CRN_TRY_MPI(MPI_Bcast(f->dir, sizeof f->dir, MPI_CHAR, 0, MPI_COMM_WORLD));
    *ret = f;
    return CAIRN_OK;
}

void crn_play_files_free(crn_player *p, crn_play_files *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->fd.n; i++)
        if (f->fd.at[i] >= 0)
            close(f->fd.at[i]);
    for (size_t i = 0; i < f->file.n; i++)
        if (f->file.at[i] != MPI_FILE_NULL)
            MPI_File_close(&f->file.at[i]);
    for (size_t i = 0; i < f->below.n; i++)
        if (f->below.at[i] >= 0)
            close(f->below.at[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (f->made && !p->opt->keep)
        remove_dir(f->dir);
    crn_vec_done(&f->fd);
    crn_vec_done(&f->writable);
    crn_vec_done(&f->file);
    crn_vec_done(&f->below);
    free(f);
}

/* The last part of the name, made safe, and a digest of all of it: different names stay different.
 */
bool crn_play_path_of(const crn_player *p, char path[PATH_MAX])
{
    char name[PATH_MAX], safe[CRN_PLAY_NAME];
    const crn_symbol *place = p->e.place;
    int first = p->e.call->ncolumns;
    if (!place->name || !crn_pattern_join(p->t->string[place->name], p->e.value + first,
                                          p->e.ncolumns - first, name, sizeof name))
        return false;
    const char *base = strrchr(name, '/');
    snprintf(safe, sizeof safe, "%016llx-%.100s", (unsigned long long)crn_hash_text(name),
             base ? base + 1 : name);
    for (char *c = safe; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *c))
            *c = '_';
    snprintf(path, PATH_MAX, "%s/%s", p->files->dir, safe);
    return true;
}

/*
 * What the program read and the replay did not write was there before: make the file as long as
 * that, with a hole. Unlike ftruncate this cannot make it shorter when ranks that share it do so at
 * once, and what the byte was does not matter: all payloads are random.
 */
cairn_status crn_play_lengthen(const crn_player *p, int fd, int64_t end)
{
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size >= end)
        return CAIRN_OK;
    if (pwrite(fd, "", 1, end - 1) < 0)
        return crn_fail_sys(errno, "cannot make a file in '%s' %lld bytes long", p->files->dir,
                            (long long)end);
    return CAIRN_OK;
}

static cairn_status set_file(crn_player *p, int64_t number, MPI_File file, const char *path)
{
    crn_play_files *f = p->files;
    if (number < 0 || number >= CRN_PLAY_FILES_MAX)
        return CAIRN_OK;
    while (f->file.n <= (size_t)number) {
        CRN_TRY(crn_vec_reserve(&f->below, 1));
        CRN_TRY(crn_vec_push(&f->file, MPI_FILE_NULL));
        f->below.at[f->below.n++] = -1;
    }
    if (f->below.at[number] >= 0)
        close(f->below.at[number]);
    f->file.at[number] = file;
    f->below.at[number] = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC); /* -1: reads may be short */
    return CAIRN_OK;
}

/* An open that failed is tried again in the same way; should it succeed, nobody uses the file. */
static cairn_status fail_to_open_file(MPI_Comm comm, const char *path)
{
    MPI_File file;
    if (MPI_File_open(comm, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file) == MPI_SUCCESS)
        CRN_TRY_MPI(MPI_File_close(&file));
    return CAIRN_OK;
}

cairn_status crn_play_open_file(crn_player *p)
{
    MPI_Comm comm = crn_play_comm_of(p, crn_play_value(p, CRN_KIND_COMM, 0, CRN_COMM_NULL));
    int64_t number = crn_play_value(p, CRN_KIND_FILE_NEW, 0, -1);
    MPI_File file = MPI_FILE_NULL;
    char path[PATH_MAX];
    if (p->opt->no_io)
        return CAIRN_OK;
    if (comm == MPI_COMM_NULL || !crn_play_path_of(p, path)) {
        crn_play_skip(p);
        return CAIRN_OK;
    }
    if (number < 0)
        return fail_to_open_file(comm, path);
    CRN_TRY_MPI(MPI_File_open(comm, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    return set_file(p, number, file, path);
}

cairn_status crn_play_delete_file(crn_player *p)
{
    char path[PATH_MAX];
    if (!p->opt->no_io && crn_play_path_of(p, path))
        unlink(path);
    return CAIRN_OK;
}

/* The number of the current event's file; -1 if there is none, or files are left out. */
static int64_t open_number(crn_player *p)
{
    const int64_t number = crn_play_value(p, CRN_KIND_FILE, 0, -1);
    if (p->opt->no_io)
        return -1;
    if ((uint64_t)number < p->files->file.n && p->files->file.at[number] != MPI_FILE_NULL)
        return number;
    crn_play_skip(p);
    return -1;
}

bool crn_play_has_file(const crn_player *p, const crn_traced_event *e)
{
    const crn_play_files *f = p->files;
    if (p->opt->no_io || e->place->within != CRN_CALL_NONE)
        return true;
    if (crn_event_find(e, CRN_KIND_FD, 0) >= 0) {
        const uint64_t number = (uint64_t)crn_event_value(e, CRN_KIND_FD, 0, -1);
        return number < f->fd.n && f->fd.at[number] >= 0;
    }
    if (crn_event_find(e, CRN_KIND_FILE, 0) >= 0) {
        const uint64_t number = (uint64_t)crn_event_value(e, CRN_KIND_FILE, 0, -1);
        return number < f->file.n && f->file.at[number] != MPI_FILE_NULL;
    }
    return true;
}

cairn_status crn_play_close_file(crn_player *p)
{
    const int64_t number = open_number(p);
    if (number < 0)
        return CAIRN_OK;
    CRN_TRY(crn_play_complete_on(p, CRN_KIND_FILE, number));
    return crn_play_mpi(MPI_File_close(&p->files->file.at[number]), p->e.call->name);
}

/* Calls on an open file that move no data. */
cairn_status crn_play_manage(crn_player *p)
{
    const int whence[] = {MPI_SEEK_SET, MPI_SEEK_CUR, MPI_SEEK_END};
    const int64_t number = open_number(p), word = crn_play_value(p, CRN_KIND_INT, 0, 0);
    if (number < 0)
        return CAIRN_OK;
    crn_play_args a = {.file = p->files->file.at[number],
                       .off = crn_play_value(p, CRN_KIND_OFFSET, 0, 0),
                       .word = (int)word};
    for (int i = 0; i < 2; i++) /* of a view */
        a.type[i] = crn_play_type_of(p, crn_play_value(p, CRN_KIND_TYPE, i, -1))->mpi;
    if (crn_event_find(&p->e, CRN_KIND_OFFSET, 0) >= 0 &&
        crn_event_find(&p->e, CRN_KIND_INT, 0) >= 0)
        a.word = whence[(uint64_t)word < 3 ? word : 0];
    return crn_play_issue_call(p, &a);
}

/* A view's types are copies, unless they are predefined. */
static void free_copy(MPI_Datatype *type)
{
    int n, combiner = MPI_COMBINER_NAMED;
    MPI_Type_get_envelope(*type, &n, &n, &n, &combiner);
    if (combiner != MPI_COMBINER_NAMED)
        MPI_Type_free(type);
}

/* Where a read through a view ends; -1 if that cannot be known. */
static int64_t end_of_read(const crn_player *p, const crn_play_args *x)
{
    MPI_Offset at = x->off, disp, end;
    MPI_Datatype unit, tile;
    char rep[MPI_MAX_DATAREP_STRING];
    int unit_size = 0, size = 0;
    bool given = crn_event_find(&p->e, CRN_KIND_OFFSET, 0) >= 0;
    if (p->e.call->traits & CRN_TRAIT_SHARED ||
        (!given && MPI_File_get_position(x->file, &at) != MPI_SUCCESS) ||
        MPI_File_get_view(x->file, &disp, &unit, &tile, rep) != MPI_SUCCESS)
        return -1;
    MPI_Type_size(unit, &unit_size);
    MPI_Type_size(x->type[0], &size);
    free_copy(&unit);
    free_copy(&tile);
    if (unit_size <= 0 || x->count[0] <= 0 ||
        MPI_File_get_byte_offset(x->file, at + (MPI_Offset)x->count[0] * size / unit_size - 1,
                                 &end) != MPI_SUCCESS)
        return -1;
    return end + unit_size;
}

static cairn_status set_buffer(crn_player *p, int64_t number, int64_t type, crn_play_args *x)
{
    const bool writes = p->e.call->traits & CRN_TRAIT_WRITES;
    crn_play_slot *slot = NULL;
    if (crn_event_find(&p->e, CRN_KIND_REQ, 0) >= 0) {
        CRN_TRY(crn_play_slot_of(p, crn_play_value(p, CRN_KIND_REQ, 0, CRN_REQ_NULL), &slot));
        CRN_FAIL_IF(!slot, CAIRN_ECORRUPT, "the trace has a transfer without its request");
        CRN_TRY(crn_play_slot_clear(p, slot));
        x->request = &slot->request;
        slot->kind = CRN_KIND_FILE;
        slot->on = number;
    }
    if (slot && !writes)
        CRN_TRY(crn_play_slot_buffer(p, slot, type, x->count[0], &x->recv));
    else
        CRN_TRY(
            crn_play_buffer(p, writes ? &p->payload : &p->scratch, type, x->count[0], &x->recv));
    x->send = x->recv;
    return CAIRN_OK;
}

/* A split collective is done whole where it began: what follows it has nothing left to do. */
cairn_status crn_play_transfer(crn_player *p)
{
    const int64_t number = open_number(p), type = crn_play_value(p, CRN_KIND_TYPE, 0, -1);
    const bool writes = p->e.call->traits & CRN_TRAIT_WRITES;
    if (number < 0)
        return CAIRN_OK;
    crn_play_args x = {.file = p->files->file.at[number],
                       .off = crn_play_value(p, CRN_KIND_OFFSET, 0, 0),
                       .count = {(int)crn_play_value(p, CRN_KIND_COUNT, 0, 0)},
                       .type = {crn_play_type_of(p, type)->mpi}};
    const uint64_t nbytes = (uint64_t)x.count[0] * crn_play_type_of(p, type)->nbytes;
    *(writes ? &p->result->written_bytes : &p->result->read_bytes) += nbytes;
    CRN_TRY(set_buffer(p, number, type, &x));
    if (!writes)
        CRN_TRY(crn_play_lengthen(p, p->files->below.at[number], end_of_read(p, &x)));
    return crn_play_issue_call(p, &x);
}
