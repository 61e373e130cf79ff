/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mark made of an HDF5 file, by whatever tool that was written. First all datasets are looked at;
 * only then is a run made, so that a file that does not fit leaves nothing behind.
 */
#include <errno.h>
#include <inttypes.h>
#include <sys/statvfs.h>

#include "exchange/exchange_import.h"

enum { BLOCK_BYTES = 64 << 10, WINDOW_BYTES = 16 << 20 };

/* A rank's share of a source: elements [first, first + n) of its first dimension, or all. */
typedef struct share {
    uint64_t first, n;  /* rows; of an array by rank, elements or rows of a rank */
    uint64_t row_items; /* elements of a row */
    uint32_t axis;      /* the dimension that rows are counted in, within those before it */
    crn_var_spec spec;
    uint64_t global[CRN_DIMS_MAX], offset[CRN_DIMS_MAX], count[CRN_DIMS_MAX];
} share;

/* n * i / parts, of any n */
static uint64_t split(uint64_t n, uint64_t i, uint64_t parts)
{
    return n / parts * i + n % parts * i / parts;
}

static void cut_share(const crn_importer *im, const crn_source *s, uint32_t rank, share *ret)
{
    share sh = {.n = 1, .row_items = 1};
    for (uint32_t d = 1; d < s->ndims; d++)
        sh.row_items *= s->dims[d];
    if (s->by_rank) {
        const uint64_t row = CRN_MAX(sh.row_items, 1);
        sh.first = s->start[rank] / row;
        sh.n = (s->start[rank + 1] - s->start[rank]) / row;
    } else if (s->ndims > 0) {
        sh.first = split(s->dims[0], rank, im->nranks);
        sh.n = split(s->dims[0], rank + 1, im->nranks) - sh.first;
    }
    const uint32_t ndims = s->by_rank ? 0 : s->ndims;
    for (uint32_t d = 0; d < ndims; d++) {
        sh.global[d] = s->dims[d];
        sh.offset[d] = d == 0 ? sh.first : 0;
        sh.count[d] = d == 0 ? sh.n : s->dims[d];
    }
    *ret = sh;
    ret->spec = (crn_var_spec){.name = s->name,
                               .type = s->type,
                               .attributes = s->attributes,
                               .item = (uint32_t)s->item,
                               .block = BLOCK_BYTES,
                               .nbytes = sh.n * sh.row_items * s->item,
                               .ndims = ndims,
                               .global = ret->global,
                               .offset = ret->offset,
                               .count = ret->count};
}

/* Rows too long for the window are cut into those of the next dimension. */
static void shorten_rows(const crn_source *s, share *sh)
{
    while (sh->axis + 1 < s->ndims && sh->row_items * s->item > WINDOW_BYTES) {
        const uint64_t n = s->dims[++sh->axis];
        sh->first *= n;
        sh->n *= n;
        sh->row_items /= n;
    }
}

/* Rows from number i on, n of them, which do not go beyond one range of their dimension. */
static cairn_status read_rows(const crn_importer *im, const crn_source *s, uint32_t axis,
                              uint64_t i, uint64_t n, void *dst)
{
    const crn_h5 *h5 = im->h5;
    hsize_t offset[CRN_DIMS_MAX] = {0}, count[CRN_DIMS_MAX];
    hid_t there = H5S_ALL, here = H5S_ALL;
    if (s->ndims > 0) {
        for (uint32_t d = s->ndims; d-- > 0;) {
            count[d] = d > axis ? s->dims[d] : d == axis ? n : 1;
            offset[d] = d > axis ? 0 : i % s->dims[d];
            i = d > axis ? i : i / s->dims[d];
        }
        there = h5->H5Dget_space(s->dataset);
        h5->H5Sselect_hyperslab(there, H5S_SELECT_SET, offset, NULL, count, NULL);
        here = h5->H5Screate_simple((int)s->ndims, count, NULL);
    }
    cairn_status rc = CAIRN_OK;
    if (h5->H5Dread(s->dataset, s->memory, here, there, H5P_DEFAULT, dst) < 0)
        rc = crn_hdf5_fail(h5, "cannot read dataset '%s'", s->name);
    if (s->ndims > 0) {
        h5->H5Sclose(there);
        h5->H5Sclose(here);
    }
    return rc;
}

/* How many rows from number i on are read at once: what fits the window and lies together. */
static uint64_t count_rows(const crn_source *s, const share *sh, uint64_t i)
{
    const uint64_t fit = CRN_MAX(WINDOW_BYTES / (sh->row_items * s->item), 1);
    const uint64_t n = CRN_MIN(fit, sh->first + sh->n - i);
    return s->ndims > 0 ? CRN_MIN(n, s->dims[sh->axis] - i % s->dims[sh->axis]) : n;
}

/* Put whole blocks from the window, and at the end what is left; *fill is what stays. */
static cairn_status put_blocks(crn_draft *d, size_t v, unsigned char *window, size_t *fill,
                               uint64_t *block, bool end)
{
    size_t at = 0;
    while (*fill - at >= BLOCK_BYTES || (end && at < *fill)) {
        CRN_TRY(crn_draft_put(d, v, (*block)++, window + at, NULL));
        at += CRN_MIN((size_t)BLOCK_BYTES, *fill - at);
    }
    *fill -= at;
    memmove(window, window + at, *fill);
    return CAIRN_OK;
}

static cairn_status copy_share(crn_importer *im, crn_draft *d, const crn_source *s, uint32_t rank)
{
    share sh;
    size_t v, fill = 0;
    uint64_t block = 0;
    cut_share(im, s, rank, &sh);
    CRN_TRY(crn_draft_add(d, &sh.spec, &v));
    if (sh.spec.nbytes == 0)
        return CAIRN_OK;
    shorten_rows(s, &sh);
    const size_t row = sh.row_items * s->item;
    CRN_TRY(crn_realloc(&im->window, CRN_MAX((size_t)WINDOW_BYTES, row) + BLOCK_BYTES));
    for (uint64_t i = sh.first, n; i < sh.first + sh.n; i += n) {
        n = count_rows(s, &sh, i);
        CRN_TRY(read_rows(im, s, sh.axis, i, n, im->window + fill));
        fill += n * row;
        CRN_TRY(put_blocks(d, v, im->window, &fill, &block, i + n == sh.first + sh.n));
        im->result.nbytes += n * row;
        if (im->how->progress &&
            im->how->progress(im->how->arg, im->result.nbytes, im->total_bytes) != 0)
            return CAIRN_NOTHING;
    }
    return CAIRN_OK;
}

static cairn_status write_rank(crn_importer *im, uint32_t rank, uint64_t wall_ns)
{
    const crn_part_options opt = {.backend = CRN_IO_AUTO, .depth = 16, .direct = true};
    crn_part *part;
    crn_draft *draft = NULL;
    CRN_TRY(crn_run_part(im->run, 1, rank, im->nranks, true, &opt, &part));
    cairn_status rc = crn_draft_begin(part, im->how->version, &draft);
    if (rc == CAIRN_OK)
        crn_draft_set_time(draft, wall_ns);
    for (size_t i = 0; rc == CAIRN_OK && i < im->source.n; i++)
        rc = copy_share(im, draft, &im->source.at[i], rank);
    if (rc == CAIRN_OK)
        rc = crn_draft_commit(draft, 1, NULL);
    else
        crn_draft_drop(draft);
    crn_part_close(part);
    return rc;
}

/* A dataset of which little or nothing was ever written has its full size here. */
static cairn_status check_room(const crn_importer *im)
{
    struct statvfs fs;
    char wanted[CRN_NUMBER_TEXT], left[CRN_NUMBER_TEXT];
    if (statvfs(im->how->trail, &fs) < 0)
        return crn_fail_sys(errno, "cannot inspect '%s'", im->how->trail);
    CRN_FAIL_IF(im->total_bytes / fs.f_frsize >= fs.f_bavail, CAIRN_ENOSPC,
                "the datasets of '%s' have %s, and there is room for %s in '%s'", im->how->path,
                crn_format_nbytes(im->total_bytes, wanted, sizeof wanted),
                crn_format_nbytes(fs.f_bavail * fs.f_frsize, left, sizeof left), im->how->trail);
    return CAIRN_OK;
}

/* Every rank's part, then the manifest, with which the mark counts, then the name of the run, with
 * which it is there. */
static cairn_status write_run(crn_importer *im)
{
    const cairn_import_options *how = im->how;
    const uint64_t wall_ns = crn_wall_ns();
    CRN_TRY(crn_trail_open(how->trail, true, &im->trail));
    CRN_TRY(crn_run_prepare(im->trail, how->run, &im->run));
    cairn_status rc = check_room(im);
    for (uint32_t rank = 0; rank < im->nranks && rc == CAIRN_OK; rank++)
        rc = write_rank(im, rank, wall_ns);
    if (rc != CAIRN_OK)
        return rc;
    const crn_manifest_mark mark = {.version = how->version,
                                    .wall_ns = wall_ns,
                                    .nbytes = im->result.nbytes,
                                    .series = 1,
                                    .nranks = im->nranks,
                                    .levels = CRN_IN_TRAIL};
    CRN_TRY(crn_run_commit(im->run, &mark, 1));
    CRN_TRY(crn_run_present(im->trail, im->run, how->run));
    snprintf(im->result.name, sizeof im->result.name, "%s", crn_run_name(im->run));
    return CAIRN_OK;
}

/* --- the call ----------------------------------------------------------------------------- */

/* A file that has nothing of single ranks may claim any number of them; more than have a row each
 * are of no use. */
static uint32_t useful_ranks(const crn_importer *im)
{
    uint64_t rows = 1;
    for (size_t i = 0; i < im->source.n; i++) {
        const crn_source *s = &im->source.at[i];
        if (s->by_rank)
            return im->nranks;
        rows = s->ndims > 0 ? CRN_MAX(rows, s->dims[0]) : rows;
    }
    return (uint32_t)CRN_MIN(im->nranks, rows);
}

/* What all ranks get, and whether the ranks that the file has variables of are those wanted. */
static cairn_status check_sources(crn_importer *im)
{
    CRN_FAIL_IF(im->source.n == 0, CAIRN_ENOTFOUND, "'%s' has no dataset of numbers",
                im->how->path);
    if (im->how->nranks == 0)
        im->nranks = useful_ranks(im);
    for (size_t i = 0; i < im->source.n; i++) {
        const crn_source *s = &im->source.at[i];
        for (uint32_t r = 0; r < im->nranks; r++) {
            share sh;
            cut_share(im, s, r, &sh);
            CRN_TRY(crn_var_spec_check(&sh.spec));
            CRN_FAIL_IF(__builtin_add_overflow(im->total_bytes, sh.spec.nbytes, &im->total_bytes),
                        CAIRN_EINVAL, "the datasets of '%s' are larger than any file",
                        im->how->path);
        }
    }
    im->result.nvars = im->source.n;
    return CAIRN_OK;
}

static cairn_status import_file(crn_importer *im)
{
    CRN_TRY(crn_hdf5_lock(&im->h5));
    cairn_status rc = crn_import_look(im);
    if (rc == CAIRN_OK)
        rc = check_sources(im);
    if (rc == CAIRN_OK)
        rc = write_run(im);
    crn_import_leave(im);
    crn_hdf5_unlock();
    return rc;
}

int cairn_import(const cairn_import_options *how, cairn_import_result *ret)
{
    cairn_import_options ours;
    crn_importer im = {.how = &ours, .file = -1};
    CRN_TRY(crn_struct_in(how, &ours));
    if (ret)
        CRN_TRY(crn_struct_check(ret));
    CRN_FAIL_IF(!ours.trail || !ours.path, CAIRN_EINVAL, "cairn_import: trail or path is missing");
    CRN_FAIL_IF(ours.version > CRN_VERSION_MAX || ours.nranks > CRN_RANKS_MAX, CAIRN_EINVAL,
                "cairn_import: a version or a number of ranks that cannot be");
    cairn_status rc = import_file(&im);
    free(im.window);
    crn_run_withdraw(im.trail, im.run);
    crn_trail_close(im.trail);
    return rc == CAIRN_OK && ret ? crn_struct_out(&im.result, ret) : rc;
}
