/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One file of another program: which arrays it has, and how they are read.
 */
#include "diff/diff.h"

#include "hdf5/hdf5.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

_Static_assert(sizeof(hid_t) == sizeof(int64_t), "HDF5's numbers fit ours");

/* Past the page cache, unless that has it. */
static cairn_status open_plain(diff_file *f, const char *path, uint64_t *ret_nbytes)
{
    CRN_TRY(crn_file_open(AT_FDCWD, path, CRN_READ, &f->file));
    CRN_TRY(crn_file_nbytes(f->file, ret_nbytes));
    if (crn_file_is_cached(f->file, 0, *ret_nbytes))
        return CAIRN_OK;
    crn_file_close(f->file);
    f->file = NULL;
    return crn_file_open(AT_FDCWD, path, CRN_READ | CRN_DIRECT, &f->file);
}

/* --- raw values ----------------------------------------------------------------------------- */

static cairn_status open_raw(diff_file *f, const char *path, const char *type, uint32_t ndims,
                             const uint64_t *shape)
{
    crn_type_tree *tree;
    diff_array a = {.plain = true, .ndims = CRN_MAX(ndims, 1)};
    uint64_t nbytes, wanted = 1;
    CRN_FAIL_IF(ndims > CRN_DIMS_MAX, CAIRN_EINVAL, "%u dimensions, at most %d are possible", ndims,
                CRN_DIMS_MAX);
    CRN_TRY(crn_type_parse(type, &tree));
    a.item = tree->nbytes;
    crn_type_free(tree);
    CRN_TRY(open_plain(f, path, &nbytes));
    CRN_FAIL_IF(nbytes % a.item != 0, CAIRN_EINVAL,
                "'%s' has %" PRIu64 " bytes, which are no whole number of %s values", f->name,
                nbytes, type);
    a.nvalues = a.shape[0] = nbytes / a.item;
    for (uint32_t d = 0; d < a.ndims; d++) {
        a.shape[d] = ndims > 0 ? shape[d] : a.nvalues;
        a.chunk[d] = 1;
        CRN_FAIL_IF(__builtin_mul_overflow(wanted, a.shape[d], &wanted), CAIRN_EINVAL,
                    "there are no arrays of that shape");
    }
    CRN_FAIL_IF(wanted != a.nvalues, CAIRN_EINVAL,
                "'%s' has %" PRIu64 " values, and an array of that shape %" PRIu64, f->name,
                a.nvalues, wanted);
    CRN_TRY(crn_strdup("values", &a.name));
    cairn_status rc = crn_strdup(type, &a.type);
    if (rc == CAIRN_OK)
        rc = crn_vec_push(&f->array, a);
    if (rc < 0) {
        free(a.name);
        free(a.type);
    }
    return rc;
}

/* --- HDF5 ----------------------------------------------------------------------------------- */

typedef struct opening {
    const crn_h5 *h5;
    diff_file *f;
} opening;

static void array_done(const crn_h5 *h5, diff_array *a)
{
    if (h5 && a->memory > 0)
        h5->H5Tclose(a->memory);
    if (h5 && a->dataset > 0)
        h5->H5Dclose(a->dataset);
    free(a->name);
    free(a->type);
    free(a->why);
    free(a->fill);
}

static cairn_status get_shape(const crn_h5 *h5, diff_array *a)
{
    hsize_t dims[H5S_MAX_RANK] = {1}, chunk[H5S_MAX_RANK];
    hid_t space = h5->H5Dget_space(a->dataset);
    const int ndims = h5->H5Sget_simple_extent_ndims(space);
    const hssize_t n = h5->H5Sget_simple_extent_npoints(space);
    if (ndims > 0)
        h5->H5Sget_simple_extent_dims(space, dims, NULL);
    h5->H5Sclose(space);
    CRN_FAIL_IF(ndims < 0 || ndims > CRN_DIMS_MAX || n < 0, CAIRN_EUNSUPPORTED,
                "%d dimensions, at most %d are possible", ndims, CRN_DIMS_MAX);
    a->ndims = (uint32_t)CRN_MAX(ndims, 1);
    a->nvalues = (uint64_t)n;
    if (n == 0 && ndims == 0) /* HDF5's empty space */
        dims[0] = 0;
    hid_t plist = h5->H5Dget_create_plist(a->dataset);
    const bool chunked = ndims > 0 && h5->H5Pget_chunk(plist, ndims, chunk) >= 0;
    h5->H5Pclose(plist);
    for (uint32_t d = 0; d < a->ndims; d++) {
        a->shape[d] = dims[d];
        a->chunk[d] = chunked ? CRN_MAX(chunk[d], 1) : 1;
    }
    return CAIRN_OK;
}

/* Structures are read without gaps, whose bytes mean nothing. */
static cairn_status get_type(const crn_h5 *h5, diff_array *a)
{
    hid_t type = h5->H5Dget_type(a->dataset);
    a->memory = h5->H5Tget_native_type(type, H5T_DIR_ASCEND);
    if (a->memory > 0 && h5->H5Tget_class(a->memory) == H5T_COMPOUND)
        h5->H5Tpack(a->memory);
    const bool as_it_is = a->memory > 0 && h5->H5Tequal(type, a->memory) > 0;
    h5->H5Tclose(type);
    if (a->memory < 0)
        return crn_hdf5_fail(h5, "its type is not known");
    CRN_TRY(crn_hdf5_type_text(h5, a->memory, &a->type));
    a->item = h5->H5Tget_size(a->memory);
    const haddr_t off = as_it_is ? h5->H5Dget_offset(a->dataset) : HADDR_UNDEF;
    a->plain = off != HADDR_UNDEF;
    a->off = a->plain ? off : 0;
    return CAIRN_OK;
}

/* What HDF5 shows of values that were never written; where it does not say, zeros. */
static cairn_status get_fill(const crn_h5 *h5, hid_t plist, diff_array *a)
{
    H5D_fill_value_t defined;
    CRN_TRY(crn_alloc(&a->fill, a->item));
    if (h5->H5Pfill_value_defined(plist, &defined) < 0 || defined == H5D_FILL_VALUE_UNDEFINED)
        return CAIRN_OK;
    return h5->H5Pget_fill_value(plist, a->memory, a->fill) < 0
               ? crn_hdf5_fail(h5, "its fill value is not known")
               : CAIRN_OK;
}

/* Of an array in chunks of which some are missing. */
static uint64_t count_chunk_bytes(const crn_h5 *h5, const diff_array *a, uint64_t nbytes)
{
    uint64_t chunk = a->item; /* below 4 GiB, as HDF5 sees to */
    hsize_t n;
    hid_t space = h5->H5Dget_space(a->dataset); /* not all versions take H5S_ALL */
    const bool known = h5->H5Dget_num_chunks(a->dataset, space, &n) >= 0;
    h5->H5Sclose(space);
    for (uint32_t d = 0; d < a->ndims; d++)
        chunk *= a->chunk[d];
    return known && n < nbytes / chunk ? n * chunk : nbytes - 1;
}

/* How much of it is there: a file may claim more than any disk has. */
static cairn_status get_storage(const crn_h5 *h5, diff_array *a, uint64_t nbytes)
{
    cairn_status rc = CAIRN_OK;
    H5D_space_status_t status;
    a->stored_bytes = nbytes;
    if (a->plain || nbytes == 0)
        return CAIRN_OK;
    hid_t plist = h5->H5Dget_create_plist(a->dataset);
    const H5D_layout_t layout = h5->H5Pget_layout(plist);
    if (h5->H5Dget_space_status(a->dataset, &status) < 0)
        status = H5D_SPACE_STATUS_ERROR;
    if (layout == H5D_CHUNKED && status != H5D_SPACE_STATUS_ALLOCATED)
        a->stored_bytes = count_chunk_bytes(h5, a, nbytes);
    if ((layout == H5D_CHUNKED || layout == H5D_CONTIGUOUS) &&
        status == H5D_SPACE_STATUS_NOT_ALLOCATED) {
        a->stored_bytes = 0;
        rc = get_fill(h5, plist, a);
    }
    h5->H5Pclose(plist);
    return rc;
}

static cairn_status look_at(const crn_h5 *h5, const char *name, diff_array *a)
{
    uint64_t nbytes;
    CRN_TRY(crn_strdup(name, &a->name));
    CRN_TRY(get_shape(h5, a));
    CRN_TRY(get_type(h5, a));
    CRN_FAIL_IF(__builtin_mul_overflow(a->nvalues, a->item, &nbytes) || nbytes > INT64_MAX,
                CAIRN_EUNSUPPORTED, "%" PRIu64 " values of %zu bytes are more than there can be",
                a->nvalues, a->item);
    return get_storage(h5, a, nbytes);
}

/* Texts and the like need not be compared; of numbers it must be said that they were not. */
static bool has_numbers(const crn_h5 *h5, hid_t dataset)
{
    hid_t type = h5->H5Dget_type(dataset);
    const H5T_class_t class = h5->H5Tget_class(type);
    h5->H5Tclose(type);
    return class == H5T_INTEGER || class == H5T_FLOAT || class == H5T_COMPOUND ||
           class == H5T_ARRAY;
}

static cairn_status add_untold(opening *o, const char *name, diff_array *ret)
{
    diff_array a = {.ndims = 1, .item = 1, .dataset = ret->dataset, .memory = ret->memory};
    free(ret->name);
    free(ret->type);
    free(ret->fill);
    *ret = a;
    CRN_TRY(crn_strdup(crn_err_peek()->text, &ret->why));
    CRN_TRY(crn_strdup("", &ret->type));
    CRN_TRY(crn_strdup(name, &ret->name));
    return crn_vec_push(&o->f->array, *ret);
}

static cairn_status add_dataset(void *arg, const char *name, hid_t dataset)
{
    opening *o = arg;
    diff_array a = {.dataset = dataset};
    cairn_status rc = look_at(o->h5, name, &a);
    o->h5->H5Eclear2(H5E_DEFAULT); /* what was asked in vain is no failure */
    if (rc == CAIRN_OK)
        rc = crn_vec_push(&o->f->array, a);
    else if (rc == CAIRN_EUNSUPPORTED && has_numbers(o->h5, dataset))
        rc = add_untold(o, name, &a);
    if (rc == CAIRN_OK)
        return rc;
    array_done(o->h5, &a);
    if (rc == CAIRN_EUNSUPPORTED) {
        o->f->nskipped++;
        return CAIRN_OK;
    }
    crn_err_prefix("'%s', dataset '%s': ", o->f->name, name);
    return rc;
}

static int by_name(const void *x, const void *y)
{
    const diff_array *a = x, *b = y;
    return strcmp(a->name, b->name);
}

/* What lies plainly in the file must do so as a whole. */
static cairn_status check_ends(diff_file *f, uint64_t nbytes)
{
    for (size_t i = 0; i < f->array.n; i++) {
        diff_array *a = &f->array.at[i];
        if (a->plain && !a->why && (a->off > nbytes || a->nvalues * a->item > nbytes - a->off))
            CRN_TRY(crn_strdup("the file ends before it does", &a->why));
    }
    return CAIRN_OK;
}

static cairn_status open_hdf5(diff_file *f, const char *path)
{
    opening o = {.f = f};
    hid_t file;
    uint64_t nbytes;
    CRN_TRY(crn_hdf5_lock(&o.h5));
    cairn_status rc = crn_hdf5_open(o.h5, f->name, &file);
    if (rc == CAIRN_OK) {
        f->hdf5 = file;
        rc = crn_hdf5_visit(o.h5, file, add_dataset, &o, &f->nskipped);
    }
    crn_hdf5_unlock();
    CRN_TRY(rc);
    if (f->array.n > 0)
        qsort(f->array.at, f->array.n, sizeof *f->array.at, by_name);
    CRN_TRY(open_plain(f, path, &nbytes));
    return check_ends(f, nbytes);
}

cairn_status crn_diff_file_read(const diff_file *f, const diff_array *a, const diff_slab *slab,
                                void *dst)
{
    const crn_h5 *h5;
    CRN_TRY(crn_hdf5_lock(&h5));
    hid_t there = h5->H5Dget_space(a->dataset), here = H5S_ALL;
    if (h5->H5Sget_simple_extent_ndims(there) > 0) {
        hsize_t offset[CRN_DIMS_MAX], count[CRN_DIMS_MAX];
        for (uint32_t d = 0; d < a->ndims; d++) {
            offset[d] = slab->offset[d];
            count[d] = slab->count[d];
        }
        h5->H5Sselect_hyperslab(there, H5S_SELECT_SET, offset, NULL, count, NULL);
        here = h5->H5Screate_simple((int)a->ndims, count, NULL);
    }
    cairn_status rc = CAIRN_OK;
    if (a->stored_bytes < a->nvalues * a->item) /* HDF5 may leave out what was never written */
        memset(dst, 0, slab->n * a->item);
    if (h5->H5Dread(a->dataset, a->memory, here, here == H5S_ALL ? H5S_ALL : there, H5P_DEFAULT,
                    dst) < 0)
        rc = crn_hdf5_fail(h5, "cannot read dataset '%s' of '%s'", a->name, f->name);
    if (here != H5S_ALL)
        h5->H5Sclose(here);
    h5->H5Sclose(there);
    crn_hdf5_unlock();
    return rc;
}

/* --- both ----------------------------------------------------------------------------------- */

cairn_status crn_diff_file_open(diff_file *f, const char *name, const char *type, uint32_t ndims,
                                const uint64_t *shape)
{
    struct stat st;
    char *path = realpath(name, NULL);
    if (!path || stat(path, &st) < 0) {
        free(path);
        return crn_fail_sys(errno, "cannot open '%s'", name);
    }
    if (!S_ISREG(st.st_mode)) {
        free(path);
        return crn_fail(CAIRN_EINVAL, "'%s' is not a file", name);
    }
    cairn_status rc = crn_strdup(name, &f->name);
    if (rc == CAIRN_OK)
        rc = type ? open_raw(f, path, type, ndims, shape) : open_hdf5(f, path);
    free(path);
    return rc;
}

void crn_diff_file_close(diff_file *f)
{
    const crn_h5 *h5 = NULL;
    const bool locked = f->hdf5 > 0 && crn_hdf5_lock(&h5) == CAIRN_OK;
    for (size_t i = 0; i < f->array.n; i++)
        array_done(h5, &f->array.at[i]);
    if (locked) {
        h5->H5Fclose(f->hdf5);
        crn_hdf5_unlock();
    }
    crn_vec_done(&f->array);
    crn_file_close(f->file);
    free(f->name);
}
