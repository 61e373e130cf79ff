/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files, in a scratch directory that rank 0 makes. A name of the trace becomes a name there that
 * can be no path. All files are opened for reading and writing, and made if they are not there; a
 * read beyond the end of what the replay wrote gets what there is.
 */
#include "replay/replay.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NUMBERS_MAX = 1 << 20, NAME = 160 };

struct crn_play_files {
    char dir[PATH_MAX - NAME];
    bool made;
    CRN_VEC(MPI_File) file; /* by number */
    CRN_VEC(int) below;     /* beside file: the same file, for the system */
    CRN_VEC(int) fd;
    CRN_VEC(bool) writable; /* beside fd: the program could write */
};

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
static bool path_of(const crn_player *p, char path[PATH_MAX])
{
    char name[PATH_MAX], safe[NAME];
    const crn_symbol *place = p->e.place;
    int first = p->e.call->ncolumns;
    uint64_t h = 0xcbf29ce484222325u;
    if (!place->name || !crn_pattern_join(p->t->string[place->name], p->e.value + first,
                                          p->e.ncolumns - first, name, sizeof name))
        return false;
    for (const char *c = name; *c; c++)
        h = (h ^ (unsigned char)*c) * 0x100000001b3u;
    const char *base = strrchr(name, '/');
    snprintf(safe, sizeof safe, "%016llx-%.100s", (unsigned long long)h, base ? base + 1 : name);
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
static cairn_status lengthen(const crn_player *p, int fd, int64_t end)
{
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size >= end)
        return CAIRN_OK;
    if (pwrite(fd, "", 1, end - 1) < 0)
        return crn_fail_sys(errno, "cannot make a file in '%s' %lld bytes long", p->files->dir,
                            (long long)end);
    return CAIRN_OK;
}

/* ---- files of MPI ---- */

static cairn_status set_file(crn_player *p, int64_t number, MPI_File file, const char *path)
{
    crn_play_files *f = p->files;
    if (number < 0 || number >= NUMBERS_MAX)
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

static cairn_status open_file(crn_player *p)
{
    MPI_Comm comm = crn_play_comm_of(p, crn_play_value(p, CRN_KIND_COMM, 0, CRN_COMM_NULL));
    int64_t number = crn_play_value(p, CRN_KIND_FILE_NEW, 0, -1);
    MPI_File file = MPI_FILE_NULL;
    char path[PATH_MAX];
    if (comm == MPI_COMM_NULL || !path_of(p, path)) {
        crn_play_skip(p);
        return CAIRN_OK;
    }
    if (number < 0)
        return fail_to_open_file(comm, path);
    CRN_TRY_MPI(MPI_File_open(comm, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    return set_file(p, number, file, path);
}

/* What a transfer needs. */
typedef struct transfer {
    MPI_File file;
    MPI_Offset off;
    int count;
    MPI_Datatype type;
    void *buf;
    bool writes;
    MPI_Request *request;
} transfer;

static bool writes(uint32_t call)
{
    return strstr(crn_call_row(call)->name, "write") != NULL;
}

static cairn_status transfer_of(crn_player *p, MPI_File file, transfer *x)
{
    int64_t type = crn_play_value(p, CRN_KIND_TYPE, 0, -1);
    crn_play_slot *slot = NULL;
    *x = (transfer){.file = file,
                    .off = crn_play_value(p, CRN_KIND_OFFSET, 0, 0),
                    .count = (int)crn_play_value(p, CRN_KIND_COUNT, 0, 0),
                    .type = crn_play_type_of(p, type)->mpi,
                    .writes = writes(p->e.place->call)};
    uint64_t nbytes = (uint64_t)x->count * crn_play_type_of(p, type)->nbytes;
    *(x->writes ? &p->result->written_bytes : &p->result->read_bytes) += nbytes;
    if (crn_event_find(&p->e, CRN_KIND_REQ, 0) >= 0) {
        CRN_TRY(crn_play_slot_of(p, crn_play_value(p, CRN_KIND_REQ, 0, CRN_REQ_NULL), &slot));
        CRN_FAIL_IF(!slot, CAIRN_ECORRUPT, "the trace has a transfer without its request");
        CRN_TRY(crn_play_slot_clear(p, slot));
        x->request = &slot->request;
        slot->kind = CRN_KIND_FILE;
        slot->on = crn_play_value(p, CRN_KIND_FILE, 0, -1);
    }
    if (slot && !x->writes)
        return crn_play_slot_buffer(p, slot, type, x->count, &x->buf);
    return crn_play_buffer(p, x->writes ? &p->payload : &p->scratch, type, x->count, &x->buf);
}

#define AT   x->file, x->off, x->buf, x->count, x->type
#define HERE x->file, x->buf, x->count, x->type

static int start_transfer(const transfer *x, uint32_t call)
{
    switch (call) {
    case CRN_CALL_MPI_File_iread:
        return MPI_File_iread(HERE, x->request);
    case CRN_CALL_MPI_File_iread_at:
        return MPI_File_iread_at(AT, x->request);
    case CRN_CALL_MPI_File_iread_all:
        return MPI_File_iread_all(HERE, x->request);
    case CRN_CALL_MPI_File_iread_at_all:
        return MPI_File_iread_at_all(AT, x->request);
    case CRN_CALL_MPI_File_iread_shared:
        return MPI_File_iread_shared(HERE, x->request);
    case CRN_CALL_MPI_File_iwrite:
        return MPI_File_iwrite(HERE, x->request);
    case CRN_CALL_MPI_File_iwrite_at:
        return MPI_File_iwrite_at(AT, x->request);
    case CRN_CALL_MPI_File_iwrite_all:
        return MPI_File_iwrite_all(HERE, x->request);
    case CRN_CALL_MPI_File_iwrite_at_all:
        return MPI_File_iwrite_at_all(AT, x->request);
    default:
        return MPI_File_iwrite_shared(HERE, x->request);
    }
}

/* A split collective is done whole where it began: what follows it has nothing left to do. */
static int read_now(const transfer *x, uint32_t call)
{
    switch (call) {
    case CRN_CALL_MPI_File_read:
        return MPI_File_read(HERE, MPI_STATUS_IGNORE);
    case CRN_CALL_MPI_File_read_all:
    case CRN_CALL_MPI_File_read_all_begin:
        return MPI_File_read_all(HERE, MPI_STATUS_IGNORE);
    case CRN_CALL_MPI_File_read_at:
        return MPI_File_read_at(AT, MPI_STATUS_IGNORE);
    case CRN_CALL_MPI_File_read_at_all:
    case CRN_CALL_MPI_File_read_at_all_begin:
        return MPI_File_read_at_all(AT, MPI_STATUS_IGNORE);
    case CRN_CALL_MPI_File_read_shared:
        return MPI_File_read_shared(HERE, MPI_STATUS_IGNORE);
    default:
        return MPI_File_read_ordered(HERE, MPI_STATUS_IGNORE);
    }
}

static int write_now(const transfer *x, uint32_t call)
{
    switch (call) {
    case CRN_CALL_MPI_File_write:
        return MPI_File_write(HERE, MPI_STATUS_IGNORE);
    case CRN_CALL_MPI_File_write_all:
    case CRN_CALL_MPI_File_write_all_begin:
        return MPI_File_write_all(HERE, MPI_STATUS_IGNORE);
    case CRN_CALL_MPI_File_write_at:
        return MPI_File_write_at(AT, MPI_STATUS_IGNORE);
    case CRN_CALL_MPI_File_write_at_all:
    case CRN_CALL_MPI_File_write_at_all_begin:
        return MPI_File_write_at_all(AT, MPI_STATUS_IGNORE);
    case CRN_CALL_MPI_File_write_shared:
        return MPI_File_write_shared(HERE, MPI_STATUS_IGNORE);
    default:
        return MPI_File_write_ordered(HERE, MPI_STATUS_IGNORE);
    }
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
static int64_t end_of_read(const crn_player *p, const transfer *x)
{
    MPI_Offset at = x->off, disp, end;
    MPI_Datatype unit, tile;
    char rep[MPI_MAX_DATAREP_STRING];
    int unit_size = 0, size = 0;
    bool given = crn_event_find(&p->e, CRN_KIND_OFFSET, 0) >= 0;
    bool shared = strstr(p->e.call->name, "_shared") || strstr(p->e.call->name, "_ordered");
    if (shared || (!given && MPI_File_get_position(x->file, &at) != MPI_SUCCESS) ||
        MPI_File_get_view(x->file, &disp, &unit, &tile, rep) != MPI_SUCCESS)
        return -1;
    MPI_Type_size(unit, &unit_size);
    MPI_Type_size(x->type, &size);
    free_copy(&unit);
    free_copy(&tile);
    if (unit_size <= 0 || x->count <= 0 ||
        MPI_File_get_byte_offset(x->file, at + (MPI_Offset)x->count * size / unit_size - 1, &end) !=
            MPI_SUCCESS)
        return -1;
    return end + unit_size;
}

static cairn_status do_transfer(crn_player *p, MPI_File file, int below)
{
    uint32_t call = p->e.place->call;
    const char *end = strstr(p->e.call->name, "_end");
    transfer x;
    if (end && end[4] == 0)
        return CAIRN_OK;
    CRN_TRY(transfer_of(p, file, &x));
    if (!x.writes)
        CRN_TRY(lengthen(p, below, end_of_read(p, &x)));
    if (x.request)
        return crn_play_mpi(start_transfer(&x, call), p->e.call->name);
    return crn_play_mpi(x.writes ? write_now(&x, call) : read_now(&x, call), p->e.call->name);
}

static int set_view(const crn_player *p, MPI_File file, MPI_Offset off)
{
    const crn_play_type *unit = crn_play_type_of(p, crn_play_value(p, CRN_KIND_TYPE, 0, -1));
    const crn_play_type *tile = crn_play_type_of(p, crn_play_value(p, CRN_KIND_TYPE, 1, -1));
    return MPI_File_set_view(file, off, unit->mpi, tile->mpi, "native", MPI_INFO_NULL);
}

/* Calls on an open file that move no data; false if it is none of these. */
static bool manage(crn_player *p, MPI_File *file, int *ret)
{
    int whence[] = {MPI_SEEK_SET, MPI_SEEK_CUR, MPI_SEEK_END};
    MPI_Offset off = crn_play_value(p, CRN_KIND_OFFSET, 0, 0), size;
    int64_t word = crn_play_value(p, CRN_KIND_INT, 0, 0);
    switch (p->e.place->call) {
    case CRN_CALL_MPI_File_close:
        *ret = MPI_File_close(file);
        return true;
    case CRN_CALL_MPI_File_set_size:
        *ret = MPI_File_set_size(*file, off);
        return true;
    case CRN_CALL_MPI_File_get_size:
        *ret = MPI_File_get_size(*file, &size);
        return true;
    case CRN_CALL_MPI_File_preallocate:
        *ret = MPI_File_preallocate(*file, off);
        return true;
    case CRN_CALL_MPI_File_set_view:
        *ret = set_view(p, *file, off);
        return true;
    case CRN_CALL_MPI_File_sync:
        *ret = MPI_File_sync(*file);
        return true;
    case CRN_CALL_MPI_File_set_atomicity:
        *ret = MPI_File_set_atomicity(*file, word != 0);
        return true;
    case CRN_CALL_MPI_File_seek:
        *ret = MPI_File_seek(*file, off, whence[(uint64_t)word < 3 ? word : 0]);
        return true;
    case CRN_CALL_MPI_File_seek_shared:
        *ret = MPI_File_seek_shared(*file, off, whence[(uint64_t)word < 3 ? word : 0]);
        return true;
    default:
        return false;
    }
}

cairn_status crn_play_mpi_file(crn_player *p)
{
    int64_t number = crn_play_value(p, CRN_KIND_FILE, 0, -1);
    crn_play_files *f = p->files;
    char path[PATH_MAX];
    int rc;
    if (p->opt->no_io)
        return CAIRN_OK;
    if (p->e.place->call == CRN_CALL_MPI_File_open)
        return open_file(p);
    if (p->e.place->call == CRN_CALL_MPI_File_delete) {
        if (path_of(p, path))
            unlink(path);
        return CAIRN_OK;
    }
    if ((uint64_t)number >= f->file.n || f->file.at[number] == MPI_FILE_NULL) {
        crn_play_skip(p);
        return CAIRN_OK;
    }
    if (p->e.place->call == CRN_CALL_MPI_File_close)
        CRN_TRY(crn_play_complete_on(p, CRN_KIND_FILE, number));
    if (manage(p, &f->file.at[number], &rc))
        return crn_play_mpi(rc, p->e.call->name);
    return do_transfer(p, f->file.at[number], f->below.at[number]);
}

/* ---- files of the system ---- */

static cairn_status set_fd(crn_player *p, int64_t number, int fd, bool writable)
{
    crn_play_files *f = p->files;
    if (number < 0 || number >= NUMBERS_MAX) {
        close(fd);
        return CAIRN_OK;
    }
    while (f->fd.n <= (size_t)number) {
        CRN_TRY(crn_vec_reserve(&f->writable, 1));
        CRN_TRY(crn_vec_push(&f->fd, -1));
        f->writable.n++;
    }
    if (f->fd.at[number] >= 0)
        close(f->fd.at[number]);
    f->fd.at[number] = fd;
    f->writable.at[number] = writable;
    return CAIRN_OK;
}

static cairn_status open_fd(crn_player *p)
{
    int64_t number = crn_play_value(p, CRN_KIND_FD_NEW, 0, -1);
    int recorded = (int)crn_play_value(p, CRN_KIND_INT, 0, 0);
    int flags = recorded & (O_APPEND | O_TRUNC), fd;
    char path[PATH_MAX];
    if (!path_of(p, path)) {
        crn_play_skip(p);
        return CAIRN_OK;
    }
    if (number < 0) { /* it failed, and mostly does so again */
        fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0)
            close(fd);
        return CAIRN_OK;
    }
    fd = open(path, flags | O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return crn_fail_sys(errno, "cannot open '%s'", path);
    return set_fd(p, number, fd, (recorded & O_ACCMODE) != O_RDONLY);
}

static cairn_status move_bytes(crn_player *p, int fd, bool out, size_t nbytes, int64_t off)
{
    char *buf;
    CRN_TRY(crn_play_bytes(out ? &p->payload : &p->scratch, nbytes, p->opt->seed, &buf));
    ssize_t n;
    if (!out)
        CRN_TRY(lengthen(p, fd, (off >= 0 ? off : lseek(fd, 0, SEEK_CUR)) + (int64_t)nbytes));
    if (off >= 0)
        n = out ? pwrite(fd, buf, nbytes, off) : pread(fd, buf, nbytes, off);
    else
        n = out ? write(fd, buf, nbytes) : read(fd, buf, nbytes);
    if (n < 0)
        return crn_fail_sys(errno, "cannot %s a file in '%s'", out ? "write" : "read",
                            p->files->dir);
    *(out ? &p->result->written_bytes : &p->result->read_bytes) += (uint64_t)n;
    return CAIRN_OK;
}

/*
 * What stdio wrote in other ways than fwrite shows in how far it got. Where it appends, all that
 * others have appended lies before that, too.
 */
static cairn_status catch_up(crn_player *p, int64_t number, int fd)
{
    const bool appends = (fcntl(fd, F_GETFL) & O_APPEND) != 0;
    const int64_t reached = crn_play_value(p, CRN_KIND_MOVED, 0, 0);
    const int64_t at = lseek(fd, 0, appends ? SEEK_END : SEEK_CUR);
    if (at < 0 || reached <= at || !p->files->writable.at[number])
        return CAIRN_OK;
    return move_bytes(p, fd, true, (size_t)(reached - at), -1);
}

/* What a program did with the memory is not known: it is mapped and left alone. */
static void map_and_unmap(const crn_player *p, int fd)
{
    const size_t nbytes = (size_t)crn_play_value(p, CRN_KIND_BYTES, 0, 0);
    const int prot = (int)crn_play_value(p, CRN_KIND_INT, 0, 0) & (PROT_READ | PROT_WRITE);
    void *at = mmap(NULL, nbytes, prot, MAP_SHARED, fd, crn_play_value(p, CRN_KIND_OFFSET, 0, 0));
    if (at != MAP_FAILED)
        munmap(at, nbytes);
}

/* Of a renaming the new name is known: some file gets it. */
static void rename_to(const char *path)
{
    char from[PATH_MAX + 16];
    snprintf(from, sizeof from, "%s-%d", path, (int)getpid());
    int fd = open(from, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && close(fd) == 0 && rename(from, path) < 0)
        unlink(from);
}

/* What moves no data: a failure is not the replay's, as it was not the program's. */
static cairn_status manage_fd(crn_player *p, int64_t number, int fd)
{
    int64_t off = crn_play_value(p, CRN_KIND_OFFSET, 0, 0);
    int whence = (int)crn_play_value(p, CRN_KIND_INT, 0, 0), rc = 0;
    switch (p->e.place->call) {
    case CRN_CALL_lseek:
        rc = lseek(fd, off, whence) < 0;
        break;
    case CRN_CALL_fsync:
        rc = fsync(fd);
        break;
    case CRN_CALL_fdatasync:
        rc = fdatasync(fd);
        break;
    case CRN_CALL_ftruncate:
        rc = ftruncate(fd, off);
        break;
    case CRN_CALL_mmap:
        map_and_unmap(p, fd);
        break;
    case CRN_CALL_dup:
        return set_fd(p, crn_play_value(p, CRN_KIND_FD_NEW, 0, -1), dup(fd),
                      p->files->writable.at[number]);
    case CRN_CALL_fflush:
        return catch_up(p, number, fd);
    case CRN_CALL_fclose:
        CRN_TRY(catch_up(p, number, fd));
        /* fall through */
    case CRN_CALL_close:
        if (p->t->nlanes > 1) /* another thread may have used it last: gone with its number */
            break;
        rc = close(fd);
        p->files->fd.at[number] = -1;
        break;
    default:
        crn_play_skip(p);
    }
    (void)rc;
    return CAIRN_OK;
}

static bool reads_or_writes(uint32_t call, bool *ret_out)
{
    *ret_out = call == CRN_CALL_write || call == CRN_CALL_pwrite || call == CRN_CALL_writev ||
               call == CRN_CALL_pwritev || call == CRN_CALL_fwrite;
    return *ret_out || call == CRN_CALL_read || call == CRN_CALL_pread || call == CRN_CALL_readv ||
           call == CRN_CALL_preadv || call == CRN_CALL_fread;
}

cairn_status crn_play_posix(crn_player *p)
{
    uint32_t call = p->e.place->call;
    int64_t number = crn_play_value(p, CRN_KIND_FD, 0, -1);
    crn_play_files *f = p->files;
    char path[PATH_MAX];
    bool out;
    if (p->opt->no_io || p->e.place->within != CRN_CALL_NONE) /* MPI-IO makes its own again */
        return CAIRN_OK;
    if (call == CRN_CALL_open || call == CRN_CALL_fopen)
        return open_fd(p);
    if (call == CRN_CALL_unlink || call == CRN_CALL_rename) {
        if (path_of(p, path) && call == CRN_CALL_unlink)
            unlink(path);
        else if (path_of(p, path))
            rename_to(path);
        return CAIRN_OK;
    }
    if ((uint64_t)number >= f->fd.n || f->fd.at[number] < 0) {
        crn_play_skip(p);
        return CAIRN_OK;
    }
    int64_t moved = crn_play_value(p, CRN_KIND_MOVED, 0, 0);
    if (!reads_or_writes(call, &out))
        return manage_fd(p, number, f->fd.at[number]);
    if (moved <= 0)
        return CAIRN_OK;
    return move_bytes(p, f->fd.at[number], out, (size_t)moved,
                      crn_play_value(p, CRN_KIND_OFFSET, 0, -1));
}
