/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A part file as a whole: which superblock counts, what it retains, what is free.
 */
#include "store/store_gather.h"
#include "store/store_uses.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static void part_free(crn_part *part)
{
    if (!part)
        return;
    crn_vec_done(&part->cat);
    crn_vec_done(&part->list);
    crn_vec_done(&part->pieces);
    crn_vec_done(&part->older);
    crn_space_done(&part->space);
    crn_states_forget(part);
    crn_uses_free(part->uses);
    crn_mark_free(part->tip);
    crn_mark_free(part->before);
    crn_vec_done(&part->lost);
    crn_gather_free(part->gather);
    crn_io_free(part->io);
    crn_file_close(part->file);
    if (part->dir >= 0)
        close(part->dir);
    free(part->name);
    free(part);
}

void crn_part_close(crn_part *part)
{
    assert(!part || !part->drafting);
    if (part && part->write && part->super.id.role == CRN_ROLE_STATES)
        (void)crn_part_shrink(part);
    part_free(part);
}

/* --- opening ------------------------------------------------------------------------------ */

static cairn_status slot_fail(const crn_part *part, cairn_status newer)
{
    if (newer == CAIRN_EUNSUPPORTED) {
        crn_err_prefix("'%s': ", part->name);
        return newer;
    }
    return crn_fail(CAIRN_ECORRUPT, "'%s': no whole superblock: not a part file, or damaged",
                    part->name);
}

/* The whole superblocks of a file, newest first; one per slot. */
static cairn_status find_supers(crn_part *part, part_super found[NSLOTS], int *ret_n)
{
    unsigned char head[DATA_START];
    cairn_status newer = CAIRN_OK;
    int n = 0;
    uint64_t nbytes;
    CRN_TRY(crn_file_nbytes(part->file, &nbytes));
    CRN_FAIL_IF(nbytes < DATA_START, CAIRN_ECORRUPT,
                "'%s': %" PRIu64 " bytes are too few for a part file", part->name, nbytes);
    CRN_TRY(crn_file_read(part->file, head, sizeof head, 0));
    for (int slot = 0; slot < NSLOTS; slot++) {
        part_super copy[2];
        const unsigned char *at = head + slot * SLOT_BYTES;
        cairn_status a = crn_format_get_super(at, &copy[0]);
        cairn_status b = crn_format_get_super(at + COPY_OFFSET, &copy[1]);
        if (a == CAIRN_EUNSUPPORTED || b == CAIRN_EUNSUPPORTED)
            newer = CAIRN_EUNSUPPORTED;
        if (a == CAIRN_OK && (b < 0 || copy[0].seq >= copy[1].seq))
            found[n++] = copy[0];
        else if (b == CAIRN_OK)
            found[n++] = copy[1];
        /* a torn write can leave a new and an old copy: the new one counts */
    }
    /* A file that a newer version has written to is not ours to interpret, whatever else is in it.
     */
    if (n == 0 || newer < 0)
        return slot_fail(part, newer);
    if (n == 2 && found[0].seq < found[1].seq) {
        part_super swap = found[0];
        found[0] = found[1];
        found[1] = swap;
    }
    *ret_n = n;
    return CAIRN_OK;
}

/*
 * May the older superblock stand in for the newest, whose catalogue could not be loaded? Not for
 * lack of memory. Where the disk gives an error it may be a passing one: to read that is good
 * enough, but a writer would replace the newest superblock, and with it a committed mark.
 */
static bool may_fall_back(const crn_part *part, cairn_status rc)
{
    return rc == CAIRN_ECORRUPT || (rc == CAIRN_EIO && !part->write);
}

/* Where the catalogues lie: that of the superblock that counts, and of the one before, or NULL. */
static cairn_status find_pieces(crn_part *part, const part_super *before)
{
    CRN_TRY(crn_catalogue_extents(&part->super.catalogue, &part->list, &part->pieces));
    part->older.n = 0;
    return before ? crn_catalogue_find(part, before, &part->older) : CAIRN_OK;
}

/* Pick the newest of the superblocks whose catalogue is whole. */
static cairn_status pick(crn_part *part, const part_super *found, int n)
{
    part_catalogue cat;
    part_list list;
    cairn_status rc = CAIRN_OK;
    for (int i = 0; i < n; i++) {
        rc = crn_catalogue_load(part, &found[i], &list, &cat);
        if (rc < 0 && may_fall_back(part, rc))
            continue;
        CRN_TRY(rc);
        crn_vec_done(&part->cat);
        crn_vec_done(&part->list);
        part->super = found[i];
        part->cat = cat;
        part->list = list;
        if (part->write)
            CRN_TRY(find_pieces(part, i + 1 < n ? &found[i + 1] : NULL));
        /* the newest of a whole file with more than one commit has a predecessor beside it */
        part->fallback = i > 0 || (n == 1 && found[0].seq > 1);
        return CAIRN_OK;
    }
    return rc;
}

/* A reader takes no lock: what looks damaged to it may have been replaced between two of its reads.
 * Damage is what is still there when no commit has come between. */
static cairn_status load_head(crn_part *part)
{
    part_super found[NSLOTS];
    int n;
    CRN_TRY(find_supers(part, found, &n));
    for (;;) {
        uint64_t seq = found[0].seq;
        cairn_status rc = pick(part, found, n);
        if (part->write || (rc == CAIRN_OK && !part->fallback))
            return rc;
        crn_err why = *crn_err_peek();
        CRN_TRY(find_supers(part, found, &n));
        if (found[0].seq == seq)
            return rc < 0 ? crn_err_give(&why) : CAIRN_OK;
    }
}

static bool same_id(const crn_part_id *a, const crn_part_id *b)
{
    return memcmp(a->run, b->run, sizeof a->run) == 0 && a->series == b->series &&
           a->rank == b->rank && a->nranks == b->nranks && a->role == b->role;
}

static cairn_status check_id(const crn_part *part, const crn_part_id *want)
{
    const crn_part_id *is = &part->super.id;
    if (!want || same_id(is, want))
        return CAIRN_OK;
    if (memcmp(is->run, want->run, sizeof is->run) != 0)
        return crn_fail(CAIRN_EMISMATCH, "'%s' belongs to another run", part->name);
    return crn_fail(CAIRN_EMISMATCH,
                    "'%s' is the part of rank %u of %u, series %u, not of rank %u of %u, series %u",
                    part->name, is->rank, is->nranks, is->series, want->rank, want->nranks,
                    want->series);
}

/* A reader needs a queue only when it reads blocks that do not lie in memory already. */
cairn_status crn_part_queue(crn_part *part, crn_io **ret)
{
    if (!part->io)
        CRN_TRY(crn_io_create(part->opt.backend, part->opt.depth, &part->io));
    *ret = part->io;
    return CAIRN_OK;
}

static cairn_status open_file(crn_part *part, int dirfd)
{
    const int mode = part->write ? CRN_READ | CRN_WRITE : CRN_READ;
    const int direct = part->opt.direct ? CRN_DIRECT : 0;
    uint64_t nbytes;
    crn_io *io;
    CRN_TRY(crn_file_open(dirfd, part->name, mode | direct, &part->file));
    if (part->write)
        return crn_part_queue(part, &io);
    CRN_TRY(crn_file_nbytes(part->file, &nbytes));
    part->cached = crn_file_is_cached(part->file, 0, nbytes);
    if (part->cached && crn_file_direct_align(part->file) > 0) { /* faster from where it is */
        crn_file_close(part->file);
        part->file = NULL;
        CRN_TRY(crn_file_open(dirfd, part->name, mode, &part->file));
    }
    return CAIRN_OK;
}

/* Did the caller make the file? Others may have forged it. */
static bool is_own(const crn_part *part)
{
    struct stat st;
    return fstat(crn_file_fd(part->file), &st) == 0 && st.st_uid == geteuid();
}

/*
 * Make ready for writing. What we have read may be in the page cache only, since its writer may
 * have ended before it could sync: of a superblock that is settled before the first change; of a
 * file without a commit, whose name may not be durable yet, here.
 */
static cairn_status prepare_write(crn_part *part, int dirfd)
{
    CRN_TRY(crn_file_nbytes(part->file, &part->found_bytes));
    part->found_seq = part->super.seq;
    part->doubt = part->super.seq > 1;
    if (!part->doubt)
        CRN_TRY(crn_dir_sync(dirfd));
    return crn_part_derive(part);
}

/* The kernel may release the locks of a killed process a moment after the process is gone: its last
 * operations were still under way. */
enum { LINGER_MS = 2000 };

static cairn_status open_within(int dirfd, const char *name, const crn_part_id *id, bool write,
                                unsigned ms, const crn_part_options *opt, crn_part **ret)
{
    crn_part *part;
    cairn_status rc;
    CRN_TRY(crn_alloc(&part, 1));
    part->write = write;
    part->opt = *opt;
    part->dir = dirfd < 0 ? AT_FDCWD : fcntl(dirfd, F_DUPFD_CLOEXEC, 0);
    if (part->dir == -1) {
        rc = crn_fail_sys(errno, "cannot open '%s'", name);
        goto out;
    }
    CRN_TRY_OUT(rc, crn_strdup(name, &part->name));
    CRN_TRY_OUT(rc, open_file(part, dirfd));
    part->distrusted = !is_own(part);
    if (write)
        CRN_TRY_OUT(rc, crn_file_lock_within(part->file, ms));
    CRN_TRY_OUT(rc, load_head(part));
    CRN_TRY_OUT(rc, check_id(part, id));
    if (write)
        CRN_TRY_OUT(rc, prepare_write(part, dirfd));
    *ret = part;
    return CAIRN_OK;
out:
    part_free(part);
    return rc;
}

cairn_status crn_part_open(int dirfd, const char *name, const crn_part_id *id, bool write,
                           const crn_part_options *opt, crn_part **ret)
{
    return open_within(dirfd, name, id, write, LINGER_MS, opt, ret);
}

cairn_status crn_part_try(int dirfd, const char *name, const crn_part_id *id,
                          const crn_part_options *opt, crn_part **ret)
{
    return open_within(dirfd, name, id, true, 0, opt, ret);
}

cairn_status crn_part_create(int dirfd, const char *name, const crn_part_id *id,
                             const crn_part_options *opt, crn_part **ret)
{
    unsigned char head[DATA_START] = {0};
    part_super s = {.format = CAIRN_FORMAT, .id = *id, .seq = 1, .end = DATA_START};
    crn_format_put_super(&s, head + SLOT_BYTES * (s.seq % NSLOTS));
    CRN_TRY(crn_file_replace(dirfd, name, head, sizeof head));
    return crn_part_open(dirfd, name, id, true, opt, ret);
}

bool crn_part_is_cached(const crn_part *part)
{
    return part->cached;
}

void crn_part_describe(const crn_part *part, crn_part_info *ret)
{
    uint64_t nbytes = 0;
    (void)crn_file_nbytes(part->file, &nbytes);
    *ret = (crn_part_info){
        .id = part->super.id,
        .seq = part->super.seq,
        .file_bytes = nbytes,
        .used_bytes = part->space.used,
        .nmarks = part->cat.n,
        .fallback = part->fallback,
    };
}

bool crn_part_is_removed(const crn_part *part)
{
    struct stat st;
    return fstat(crn_file_fd(part->file), &st) == 0 && st.st_nlink == 0;
}

void crn_part_set_staging(crn_part *part, uint64_t nbytes)
{
    part->staging = nbytes;
}

void crn_part_set_threads(crn_part *part, unsigned n)
{
    part->threads = n;
}

void crn_part_distrust(crn_part *part)
{
    part->distrusted = true;
}

uint64_t crn_part_version(const crn_part *part, size_t i)
{
    return part->cat.at[i].version;
}

/* --- pieces of the file ------------------------------------------------------------------- */

cairn_status crn_part_read_blob(crn_part *part, const part_ref *ref, const char *what,
                                unsigned char **ret)
{
    unsigned char *data;
    if (!crn_format_extent_fits(ref->off, ref->nbytes, part->file_bytes))
        CRN_TRY(crn_file_nbytes(part->file, &part->file_bytes));
    CRN_FAIL_IF(!crn_format_extent_fits(ref->off, ref->nbytes, part->file_bytes), CAIRN_ECORRUPT,
                "'%s': its %s lies beyond the end of the file", part->name, what);
    CRN_TRY(crn_alloc(&data, ref->nbytes));
    cairn_status rc = crn_file_read(part->file, data, ref->nbytes, ref->off);
    crn_digest d = crn_digest_of(data, ref->nbytes);
    if (rc == CAIRN_OK && !crn_digest_equal(&d, &ref->digest))
        rc = crn_fail(CAIRN_ECORRUPT, "'%s': its %s at byte %" PRIu64 " is damaged", part->name,
                      what, ref->off);
    if (rc < 0) {
        free(data);
        return rc;
    }
    *ret = data;
    return CAIRN_OK;
}

cairn_status crn_part_write_blob(crn_part *part, const crn_buf *blob, part_ref *ret)
{
    CRN_TRY(crn_buf_status(blob));
    uint64_t room = crn_format_blob_room(blob->n);
    crn_extent e = crn_space_take(&part->space, room, room, GRAIN);
    part_ref ref = {e.off, blob->n, crn_digest_of(blob->at, blob->n)};
    cairn_status rc = crn_file_write(part->file, blob->at, blob->n, e.off);
    if (rc < 0) {
        crn_space_leave(&part->space, e.off, e.nbytes);
        return rc;
    }
    *ret = ref;
    return CAIRN_OK;
}
