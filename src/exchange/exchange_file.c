/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shares of ranks as an HDF5 file: its frame from what all have, then the blocks, rank by rank.
 */
#include <fcntl.h>
#include <unistd.h>

#include "exchange/exchange.h"

typedef struct writer {
    const crn_export_source *from;
    const cairn_export_options *how;
    cairn_export_result *result;
    crn_frame frame;
    int dir;    /* that the file is made in */
    char *name; /* in it */
    char *temporary;
    crn_file *own; /* the temporary file, which nobody else writes to meanwhile */
    crn_file *file;
    crn_scatter *scatter;
    uint64_t done_bytes;
} writer;

static const crn_part_options plain = {.backend = CRN_IO_AUTO, .depth = 16, .direct = true};

/* --- the shares --------------------------------------------------------------------------- */

/* Call use with each rank's part and its share. */
static cairn_status each_rank(writer *e, cairn_status (*use)(writer *e, uint32_t rank,
                                                             crn_part *part, crn_mark *share))
{
    for (uint32_t rank = 0; rank < e->from->nranks; rank++) {
        crn_part *part;
        crn_mark *share;
        CRN_TRY(e->from->open(e->from->arg, rank, &part, &share));
        const cairn_status rc = use(e, rank, part, share);
        crn_mark_free(share);
        crn_part_close(part);
        if (rc != CAIRN_OK)
            return rc;
    }
    return CAIRN_OK;
}

/* What a rank holds around its piece is of no use to others: whose it is has it. */
static bool is_exported(const crn_var *v)
{
    return !crn_var_has_layout(&v->spec, "halo");
}

static cairn_status add_rank(writer *e, uint32_t rank, crn_part *part, crn_mark *share)
{
    (void)part;
    for (size_t i = 0; i < share->nvars; i++)
        if (is_exported(&share->var[i]))
            CRN_TRY(crn_frame_add(&e->frame, rank, &share->var[i].spec));
    return CAIRN_OK;
}

static cairn_status write_variable(writer *e, uint32_t rank, crn_part *part, crn_mark *share,
                                   crn_var *v)
{
    uint64_t off;
    const uint32_t codec = crn_array_place(crn_frame_find(&e->frame, v->spec.name), rank, &off);
    return crn_scatter_variable(e->scatter, part, share, v, codec, off);
}

static cairn_status write_rank(writer *e, uint32_t rank, crn_part *part, crn_mark *share)
{
    for (size_t i = 0; i < share->nvars; i++) {
        crn_var *v = &share->var[i];
        if (is_exported(v))
            CRN_TRY(write_variable(e, rank, part, share, v));
        e->done_bytes += v->spec.nbytes;
        if (e->how->progress && e->how->progress(e->how->arg, e->done_bytes, e->from->nbytes) != 0)
            return CAIRN_NOTHING;
    }
    return CAIRN_OK;
}

/* --- the file ----------------------------------------------------------------------------- */

/* The directory and the name in it that the path stands for. */
static cairn_status find_place(writer *e)
{
    const char *path = e->how->path, *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const size_t n = (size_t)(name - path), cap = strlen(name) + 6;
    char *dir;
    CRN_FAIL_IF(*name == 0, CAIRN_EINVAL, "'%s' does not name a file", path);
    CRN_TRY(crn_strdup(name, &e->name));
    CRN_TRY(crn_alloc(&e->temporary, cap));
    snprintf(e->temporary, cap, ".%s.tmp", name);
    CRN_TRY(crn_alloc(&dir, n + 2));
    snprintf(dir, n + 2, "%.*s.", (int)n, path); /* the dot lets the directory be a link */
    cairn_status rc = crn_dir_open(AT_FDCWD, dir, false, &e->dir);
    free(dir);
    return rc;
}

/* Frame and blocks under the temporary name, then all of it in its place. */
static cairn_status write_file(writer *e)
{
    CRN_TRY(crn_file_own(e->dir, e->temporary, &e->own));
    CRN_TRY(crn_hdf5_frame(e->dir, e->temporary, &e->frame, false));
    CRN_TRY(crn_file_open(e->dir, e->temporary, CRN_WRITE | CRN_DIRECT, &e->file));
    CRN_TRY(crn_scatter_create(e->file, &plain, &e->scatter));
    cairn_status rc = each_rank(e, write_rank);
    if (rc != CAIRN_OK)
        return rc;
    CRN_TRY(crn_scatter_finish(e->scatter));
    CRN_TRY(crn_rename(e->dir, e->temporary, e->name));
    return crn_dir_sync(e->dir);
}

/* --- what can be shown -------------------------------------------------------------------- */

/* The file's name with another end. */
static cairn_status xdmf_name(const writer *e, char **ret)
{
    const size_t n = strlen(e->name), cap = n + 5;
    const bool suffix = n > 3 && strcmp(e->name + n - 3, ".h5") == 0;
    CRN_TRY(crn_alloc(ret, cap));
    snprintf(*ret, cap, "%.*s.xmf", (int)(suffix ? n - 3 : n), e->name);
    return CAIRN_OK;
}

/* Add the moment to the time series, which begins with the first. */
static cairn_status add_moment(writer *e, const char *moment)
{
    crn_buf b = {0};
    cairn_status rc = CAIRN_OK;
    if (e->how->nmoments == 0)
        crn_xdmf_begin(&b);
    else
        rc = crn_xdmf_reopen(&b, e->dir, e->how->series);
    if (rc == CAIRN_OK)
        rc = crn_xdmf_add(&b, e->dir, moment, "");
    if (rc == CAIRN_OK)
        rc = crn_xdmf_end(&b, e->dir, e->how->series);
    crn_buf_done(&b);
    e->result->nmoments += rc == CAIRN_OK;
    return rc;
}

static cairn_status write_xdmf(writer *e)
{
    char *name;
    CRN_TRY(xdmf_name(e, &name));
    cairn_status rc = crn_xdmf_write(e->dir, name, &e->frame, e->name);
    if (rc == CAIRN_OK && e->how->series)
        rc = add_moment(e, name);
    free(name);
    return rc < 0 ? rc : CAIRN_OK; /* there may be nothing to show */
}

/* --- the call ----------------------------------------------------------------------------- */

static cairn_status prepare(writer *e)
{
    CRN_TRY(find_place(e));
    e->frame.run = e->from->name;
    e->frame.version = e->from->version;
    e->frame.wall_ns = e->from->wall_ns;
    e->frame.nranks = e->from->nranks;
    CRN_TRY(each_rank(e, add_rank));
    crn_frame_seal(&e->frame);
    return CAIRN_OK;
}

static void done(writer *e)
{
    crn_scatter_free(e->scatter);
    crn_file_close(e->file);
    crn_file_close(e->own);
    crn_frame_done(&e->frame);
    if (e->dir >= 0)
        close(e->dir);
    free(e->name);
    free(e->temporary);
}

cairn_status crn_export_shares(const crn_export_source *from, const cairn_export_options *how,
                               cairn_export_result *ret)
{
    writer e = {.from = from, .how = how, .result = ret, .dir = -1};
    ret->nmoments = how->nmoments;
    cairn_status rc = prepare(&e);
    if (rc == CAIRN_OK) {
        rc = write_file(&e);
        crn_err why = *crn_err_peek();
        if (rc != CAIRN_OK && e.own && crn_unlink(e.dir, e.temporary) < 0)
            crn_err_give(&why); /* the first failure is the one to report */
    }
    if (rc == CAIRN_OK)
        rc = write_xdmf(&e);
    ret->nvars = e.frame.array.n;
    ret->nbytes = e.done_bytes;
    done(&e);
    return rc;
}

cairn_status crn_export_check(const cairn_export_options *how, cairn_export_options *ours,
                              const cairn_export_result *ret)
{
    CRN_TRY(crn_struct_in(how, ours));
    if (ret)
        CRN_TRY(crn_struct_check(ret));
    CRN_FAIL_IF(!ours->path, CAIRN_EINVAL, "exporting: the path is missing");
    CRN_FAIL_IF(ours->series && strchr(ours->series, '/'), CAIRN_EINVAL,
                "exporting: '%s' is no name of a file beside '%s'", ours->series, ours->path);
    return CAIRN_OK;
}
