/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mark made of an HDF5 file, by whatever tool that was written. First all datasets are looked at;
 * only then is a run made, so that a file that does not fit leaves nothing behind.
 */
#include <cairn/exchange.h>
#include <inttypes.h>

#include "ckpt/ckpt_hdf5.h"

enum { BLOCK_BYTES = 64 << 10, WINDOW_BYTES = 16 << 20 };

/* A dataset that becomes a variable. */
typedef struct source {
    char *name, *type, *attributes;
    hid_t dataset, memory; /* memory: the type as it is read */
    uint32_t ndims;        /* 0: a single value, which every rank gets */
    uint64_t dims[CRN_DIMS_MAX];
    size_t item;
    bool by_rank;
    uint64_t *start; /* by rank: where each rank's elements begin, flat; nranks + 1 */
} source;

typedef struct importer {
    cairn_importing *what;
    const crn_h5 *h5;
    hid_t file;
    uint32_t nranks;
    CRN_VEC(source) source;
    uint64_t total_bytes;
    crn_trail *trail;
    crn_run *run;
    unsigned char *window;
} importer;

static void source_done(const crn_h5 *h5, source *s)
{
    if (s->dataset >= 0)
        h5->H5Dclose(s->dataset);
    if (s->memory >= 0)
        h5->H5Tclose(s->memory);
    free(s->name);
    free(s->type);
    free(s->attributes);
    free(s->start);
}

/* --- attributes --------------------------------------------------------------------------- */

/* The text of a string attribute, or NULL when it is none. Free it. */
static char *get_text(const crn_h5 *h5, hid_t attribute)
{
    hid_t type = h5->H5Aget_type(attribute), space = h5->H5Aget_space(attribute);
    char *text = NULL, *theirs = NULL;
    const bool one =
        h5->H5Tget_class(type) == H5T_STRING && h5->H5Sget_simple_extent_npoints(space) == 1;
    if (one && h5->H5Tis_variable_str(type) > 0) {
        if (h5->H5Aread(attribute, type, &theirs) >= 0 && theirs) {
            (void)crn_strdup(theirs, &text);
            h5->H5free_memory(theirs);
        }
    } else if (one && crn_alloc(&text, h5->H5Tget_size(type) + 1) == CAIRN_OK &&
               h5->H5Aread(attribute, type, text) < 0) {
        free(text);
        text = NULL;
    }
    h5->H5Tclose(type);
    h5->H5Sclose(space);
    return text;
}

static char *find_text(const crn_h5 *h5, hid_t on, const char *key)
{
    if (h5->H5Aexists(on, key) <= 0)
        return NULL;
    hid_t attribute = h5->H5Aopen(on, key, H5P_DEFAULT);
    if (attribute < 0)
        return NULL;
    char *text = get_text(h5, attribute);
    h5->H5Aclose(attribute);
    return text;
}

static bool is_ours(const char *key)
{
    return strncmp(key, "cairn_", 6) == 0;
}

/* All texts that are attributes, but our own, as "key=value" lines. */
static cairn_status get_attributes(const crn_h5 *h5, hid_t on, char **ret)
{
    crn_buf b = {0};
    char key[256];
    for (hsize_t i = 0;; i++) {
        hid_t a =
            h5->H5Aopen_by_idx(on, ".", H5_INDEX_NAME, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT);
        if (a < 0)
            break;
        ssize_t n = h5->H5Aget_name(a, sizeof key, key);
        char *text = n > 0 && n < (ssize_t)sizeof key && !is_ours(key) ? get_text(h5, a) : NULL;
        h5->H5Aclose(a);
        if (text && !strpbrk(key, "=\n") && !strchr(text, '\n') &&
            b.n + strlen(key) + strlen(text) + 2 <= UINT16_MAX) {
            crn_put_bytes(&b, key, strlen(key));
            crn_put_u8(&b, '=');
            crn_put_bytes(&b, text, strlen(text));
            crn_put_u8(&b, '\n');
        }
        free(text);
    }
    h5->H5Eclear2(H5E_DEFAULT); /* the end of the list is a failure to HDF5 */
    crn_put_u8(&b, 0);
    cairn_status rc = crn_buf_status(&b);
    if (rc < 0)
        crn_buf_done(&b);
    else
        *ret = (char *)b.at;
    return rc;
}

/* How many ranks wrote the file, if it comes from Cairn; 1 otherwise. */
static uint32_t file_ranks(const crn_h5 *h5, hid_t file)
{
    uint32_t n = 1;
    if (h5->H5Aexists(file, "cairn") <= 0 || h5->H5Aexists(file, "nranks") <= 0)
        return n;
    hid_t a = h5->H5Aopen(file, "nranks", H5P_DEFAULT);
    if (a >= 0 && (h5->H5Aread(a, h5->H5T_NATIVE_UINT32_g, &n) < 0 || n == 0 || n > CRN_RANKS_MAX))
        n = 1;
    if (a >= 0)
        h5->H5Aclose(a);
    return n;
}

/* --- looking at datasets ------------------------------------------------------------------ */

static cairn_status get_shape(const importer *im, source *s)
{
    const crn_h5 *h5 = im->h5;
    hsize_t dims[H5S_MAX_RANK];
    hid_t space = h5->H5Dget_space(s->dataset);
    const int ndims = h5->H5Sget_simple_extent_ndims(space);
    if (ndims > 0)
        h5->H5Sget_simple_extent_dims(space, dims, NULL);
    h5->H5Sclose(space);
    CRN_FAIL_IF(ndims < 0, CAIRN_EUNSUPPORTED, "it has no elements");
    CRN_FAIL_IF(ndims > CRN_DIMS_MAX, CAIRN_EUNSUPPORTED, "%d dimensions, at most %d are possible",
                ndims, CRN_DIMS_MAX);
    s->ndims = (uint32_t)ndims;
    for (int d = 0; d < ndims; d++)
        s->dims[d] = dims[d];
    return CAIRN_OK;
}

static cairn_status get_type(const importer *im, source *s)
{
    const crn_h5 *h5 = im->h5;
    hid_t type = h5->H5Dget_type(s->dataset);
    s->memory = h5->H5Tget_native_type(type, H5T_DIR_ASCEND);
    h5->H5Tclose(type);
    if (s->memory < 0)
        return crn_hdf5_fail(h5, "its type is not known");
    CRN_TRY(crn_hdf5_type_text(h5, s->memory, &s->type));
    s->item = h5->H5Tget_size(s->memory);
    char *bytes = find_text(h5, s->dataset, "cairn_type");
    if (bytes && strcmp(bytes, "bytes") == 0 && strcmp(s->type, "uint8") == 0) {
        free(s->type);
        s->type = bytes;
    } else {
        free(bytes);
    }
    return CAIRN_OK;
}

/* Where the elements of ranks begin in an array that has them behind each other. */
static cairn_status get_starts(const importer *im, source *s)
{
    const crn_h5 *h5 = im->h5;
    char name[CRN_VAR_NAME + 32];
    const uint32_t wrote = file_ranks(h5, im->file);
    CRN_FAIL_IF(wrote != im->nranks, CAIRN_EMISMATCH, "it has elements of %u ranks, not of %u",
                wrote, im->nranks);
    CRN_TRY(crn_alloc(&s->start, (size_t)im->nranks + 1));
    const uint64_t each = s->ndims == 2 ? s->dims[1] : 1;
    if (s->dims[0] == im->nranks) {
        for (uint32_t r = 0; r <= im->nranks; r++)
            s->start[r] = r * each;
        return CAIRN_OK;
    }
    snprintf(name, sizeof name, "cairn/starts/%s", s->name);
    hid_t o = h5->H5Oopen(im->file, name, H5P_DEFAULT);
    hid_t space = o >= 0 && h5->H5Iget_type(o) == H5I_DATASET ? h5->H5Dget_space(o) : -1;
    const bool fits = space >= 0 && s->ndims == 1 &&
                      h5->H5Sget_simple_extent_npoints(space) == (hssize_t)im->nranks + 1;
    bool ok = fits &&
              h5->H5Dread(o, h5->H5T_NATIVE_UINT64_g, H5S_ALL, H5S_ALL, H5P_DEFAULT, s->start) >= 0;
    if (space >= 0)
        h5->H5Sclose(space);
    if (o >= 0)
        h5->H5Oclose(o);
    for (uint32_t r = 0; ok && r < im->nranks; r++)
        ok = s->start[r] <= s->start[r + 1] && s->start[r + 1] <= s->dims[0];
    CRN_FAIL_IF(!ok, CAIRN_EMISMATCH, "where the elements of each rank begin is not known");
    return CAIRN_OK;
}

/* What one dataset becomes. CAIRN_EUNSUPPORTED: nothing. Takes the dataset. */
static cairn_status look_at(importer *im, const char *name, hid_t dataset, source *s)
{
    *s = (source){.dataset = dataset, .memory = -1};
    CRN_TRY(crn_strdup(name, &s->name));
    CRN_TRY(get_shape(im, s));
    CRN_TRY(get_type(im, s));
    char *layout = find_text(im->h5, dataset, "cairn_layout");
    s->by_rank = layout && strcmp(layout, "rank") == 0 && s->ndims > 0 && s->ndims <= 2;
    free(layout);
    if (s->by_rank)
        CRN_TRY(get_starts(im, s));
    return get_attributes(im->h5, dataset, &s->attributes);
}

static cairn_status add_dataset(void *arg, const char *name, hid_t dataset)
{
    importer *im = arg;
    source s;
    if (strncmp(name, "cairn/", 6) == 0) { /* what an export says of itself */
        im->h5->H5Dclose(dataset);
        return CAIRN_OK;
    }
    cairn_status rc = crn_vec_reserve(&im->source, 1);
    if (rc == CAIRN_OK)
        rc = look_at(im, name, dataset, &s);
    else
        s = (source){.dataset = dataset, .memory = -1};
    if (rc == CAIRN_OK) {
        im->source.at[im->source.n++] = s;
        return CAIRN_OK;
    }
    source_done(im->h5, &s);
    if (rc == CAIRN_EUNSUPPORTED) {
        im->what->nskipped++;
        return CAIRN_OK;
    }
    crn_err_prefix("dataset '%s': ", name);
    return rc;
}

/* --- taking them over --------------------------------------------------------------------- */

/* A rank's share of a source: elements [first, first + n) of its first dimension, or all. */
typedef struct share {
    uint64_t first, n;  /* rows; of an array by rank, elements or rows of a rank */
    uint64_t row_items; /* elements of a row */
    crn_var_spec spec;
    uint64_t global[CRN_DIMS_MAX], offset[CRN_DIMS_MAX], count[CRN_DIMS_MAX];
} share;

static void cut_share(const importer *im, const source *s, uint32_t rank, share *ret)
{
    share sh = {.n = 1, .row_items = 1};
    for (uint32_t d = 1; d < s->ndims; d++)
        sh.row_items *= s->dims[d];
    if (s->by_rank) {
        const uint64_t row = CRN_MAX(sh.row_items, 1);
        sh.first = s->start[rank] / row;
        sh.n = (s->start[rank + 1] - s->start[rank]) / row;
    } else if (s->ndims > 0) {
        sh.first = s->dims[0] * rank / im->nranks;
        sh.n = s->dims[0] * (rank + 1) / im->nranks - sh.first;
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

/* Rows [first, first + n) of the dataset into memory. */
static cairn_status read_rows(const importer *im, const source *s, uint64_t first, uint64_t n,
                              void *dst)
{
    const crn_h5 *h5 = im->h5;
    hsize_t offset[CRN_DIMS_MAX] = {0}, count[CRN_DIMS_MAX];
    hid_t there = H5S_ALL, here = H5S_ALL;
    if (s->ndims > 0) {
        for (uint32_t d = 0; d < s->ndims; d++)
            count[d] = s->dims[d];
        offset[0] = first;
        count[0] = n;
        there = h5->H5Dget_space(s->dataset);
        h5->H5Sselect_hyperslab(there, H5S_SELECT_SET, offset, NULL, count, NULL);
        here = h5->H5Screate_simple((int)s->ndims, count, NULL);
    }
    herr_t failed = h5->H5Dread(s->dataset, s->memory, here, there, H5P_DEFAULT, dst);
    if (s->ndims > 0) {
        h5->H5Sclose(there);
        h5->H5Sclose(here);
    }
    return failed < 0 ? crn_hdf5_fail(h5, "cannot read dataset '%s'", s->name) : CAIRN_OK;
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

/* Rows at a time: as many as fit the window, which is as large as one at least. */
static cairn_status copy_share(importer *im, crn_draft *d, const source *s, uint32_t rank)
{
    share sh;
    size_t v, fill = 0;
    uint64_t block = 0;
    cut_share(im, s, rank, &sh);
    CRN_TRY(crn_draft_add(d, &sh.spec, &v));
    const size_t row = sh.row_items * s->item;
    const uint64_t step = CRN_MAX((uint64_t)WINDOW_BYTES / CRN_MAX(row, 1), 1);
    CRN_TRY(crn_realloc(&im->window, CRN_MAX((size_t)WINDOW_BYTES, row) + BLOCK_BYTES));
    for (uint64_t i = 0; i < sh.n && row > 0; i += step) {
        const uint64_t n = CRN_MIN(step, sh.n - i);
        CRN_TRY(read_rows(im, s, sh.first + i, n, im->window + fill));
        fill += n * row;
        CRN_TRY(put_blocks(d, v, im->window, &fill, &block, i + n == sh.n));
        im->what->nbytes += n * row;
        if (im->what->progress &&
            im->what->progress(im->what->arg, im->what->nbytes, im->total_bytes) != 0)
            return CAIRN_NOTHING;
    }
    return CAIRN_OK;
}

static cairn_status write_rank(importer *im, uint32_t rank, uint64_t wall_ns)
{
    const crn_part_options opt = {.backend = CRN_IO_AUTO, .depth = 16, .direct = true};
    crn_part *part;
    crn_draft *draft = NULL;
    CRN_TRY(crn_run_part(im->run, 1, rank, im->nranks, true, &opt, &part));
    cairn_status rc = crn_draft_begin(part, im->what->version, &draft);
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

/* The run, then every rank's part, then the manifest, with which the mark counts. */
static cairn_status write_run(importer *im)
{
    cairn_importing *what = im->what;
    const uint64_t wall_ns = crn_wall_ns();
    CRN_TRY(crn_trail_open(what->trail, true, &im->trail));
    CRN_TRY(crn_run_create(im->trail, what->run, &im->run));
    snprintf(what->name, sizeof what->name, "%s", crn_run_name(im->run));
    cairn_status rc = CAIRN_OK;
    for (uint32_t rank = 0; rank < im->nranks && rc == CAIRN_OK; rank++)
        rc = write_rank(im, rank, wall_ns);
    if (rc != CAIRN_OK)
        return rc;
    const crn_manifest_mark mark = {.version = what->version,
                                    .wall_ns = wall_ns,
                                    .nbytes = what->nbytes,
                                    .series = 1,
                                    .nranks = im->nranks,
                                    .levels = CRN_IN_TRAIL};
    return crn_run_commit(im->run, &mark, 1);
}

/* --- the call ----------------------------------------------------------------------------- */

/* What all ranks get, and whether the ranks that the file has variables of are those wanted. */
static cairn_status check_sources(importer *im)
{
    CRN_FAIL_IF(im->source.n == 0, CAIRN_ENOTFOUND, "'%s' has no dataset of numbers",
                im->what->path);
    for (size_t i = 0; i < im->source.n; i++) {
        const source *s = &im->source.at[i];
        for (uint32_t r = 0; r < im->nranks; r++) {
            share sh;
            cut_share(im, s, r, &sh);
            CRN_TRY(crn_var_spec_check(&sh.spec));
            im->total_bytes += sh.spec.nbytes;
        }
    }
    im->what->nvars = im->source.n;
    return CAIRN_OK;
}

static cairn_status read_file(importer *im)
{
    const crn_h5 *h5 = im->h5;
    CRN_TRY(crn_hdf5_open(h5, im->what->path, &im->file));
    im->nranks = im->what->nranks > 0 ? im->what->nranks : file_ranks(h5, im->file);
    CRN_TRY(crn_hdf5_visit(h5, im->file, add_dataset, im, &im->what->nskipped));
    return check_sources(im);
}

static cairn_status import_file(importer *im)
{
    CRN_TRY(crn_hdf5_lock(&im->h5));
    cairn_status rc = read_file(im);
    if (rc == CAIRN_OK)
        rc = write_run(im);
    for (size_t i = 0; i < im->source.n; i++)
        source_done(im->h5, &im->source.at[i]);
    if (im->file >= 0)
        im->h5->H5Fclose(im->file);
    crn_hdf5_unlock();
    return rc;
}

int cairn_import(cairn_importing *what)
{
    importer im = {.what = what, .file = -1};
    CRN_FAIL_IF(!what || what->struct_bytes != sizeof *what, CAIRN_EINVAL,
                "cairn_import: struct_bytes is not set");
    CRN_FAIL_IF(!what->trail || !what->path, CAIRN_EINVAL,
                "cairn_import: trail or path is missing");
    CRN_FAIL_IF(what->version == CRN_NO_VERSION || what->nranks > CRN_RANKS_MAX, CAIRN_EINVAL,
                "cairn_import: a version or a number of ranks that cannot be");
    what->nvars = what->nbytes = what->nskipped = 0;
    what->name[0] = 0;
    cairn_status rc = import_file(&im);
    crn_vec_done(&im.source);
    free(im.window);
    crn_run_close(im.run);
    crn_trail_close(im.trail);
    return rc;
}
