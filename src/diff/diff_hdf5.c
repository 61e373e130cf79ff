/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An HDF5 file of another program: everything in it that can be compared, with attributes, by name.
 * What cannot be compared is in the list, too, and says why.
 */
#include "diff/diff.h"

#include "hdf5/hdf5.h"

#include <inttypes.h>

_Static_assert(sizeof(hid_t) == sizeof(int64_t), "HDF5's numbers fit ours");

typedef struct opening {
    const crn_h5 *h5;
    diff_file *f;
} opening;

static void array_done(const crn_h5 *h5, diff_array *a)
{
    crn_hdf5_form_free(a->form);
    if (a->memory > 0)
        h5->H5Tclose(a->memory);
    if (a->attribute > 0)
        h5->H5Aclose(a->attribute);
    if (a->dataset > 0)
        h5->H5Dclose(a->dataset);
    a->form = NULL;
    a->memory = a->attribute = a->dataset = 0;
}

/* --- datasets and attributes ---------------------------------------------------------------- */

/* Takes the space. */
static cairn_status get_shape(const crn_h5 *h5, hid_t space, diff_array *a)
{
    hsize_t dims[H5S_MAX_RANK] = {1};
    const int ndims = h5->H5Sget_simple_extent_ndims(space);
    const hssize_t n = h5->H5Sget_simple_extent_npoints(space);
    if (ndims > 0)
        h5->H5Sget_simple_extent_dims(space, dims, NULL);
    h5->H5Sclose(space);
    CRN_FAIL_IF(ndims < 0 || ndims > CRN_DIMS_MAX || n < 0, CAIRN_EUNSUPPORTED,
                "%d dimensions, at most %d are possible", ndims, CRN_DIMS_MAX);
    a->scalar = ndims == 0;
    a->ndims = (uint32_t)CRN_MAX(ndims, 1);
    a->nvalues = (uint64_t)n;
    if (n == 0 && ndims == 0) /* HDF5's empty space */
        dims[0] = 0;
    for (uint32_t d = 0; d < a->ndims; d++) {
        a->shape[d] = dims[d];
        a->chunk[d] = 1;
    }
    return CAIRN_OK;
}

static void get_chunk(const crn_h5 *h5, diff_array *a)
{
    hsize_t chunk[H5S_MAX_RANK];
    hid_t plist = h5->H5Dget_create_plist(a->dataset);
    if (!a->scalar && h5->H5Pget_chunk(plist, (int)a->ndims, chunk) >= 0)
        for (uint32_t d = 0; d < a->ndims; d++)
            a->chunk[d] = CRN_MAX(chunk[d], 1);
    h5->H5Pclose(plist);
}

/* The type that values are read as, and what they consist of. Structures are read without gaps,
 * whose bytes mean nothing. */
static cairn_status get_type(const crn_h5 *h5, hid_t type, diff_array *a)
{
    a->memory = h5->H5Tget_native_type(type, H5T_DIR_ASCEND);
    CRN_FAIL_IF(a->memory < 0, CAIRN_EUNSUPPORTED, "its elements are of no type that is known");
    if (h5->H5Tget_class(a->memory) == H5T_COMPOUND)
        h5->H5Tpack(a->memory);
    a->item = h5->H5Tget_size(a->memory);
    cairn_status rc = crn_hdf5_type_text(h5, a->memory, &a->type);
    if (rc != CAIRN_EUNSUPPORTED)
        return rc;
    CRN_TRY(crn_hdf5_form_of(h5, a->memory, &a->form));
    return crn_strdup(crn_hdf5_form_word(a->form), &a->type);
}

/* Do the values of a dataset lie in the file as they are in memory? */
static void get_place(const crn_h5 *h5, hid_t type, bool within, diff_array *a)
{
    const bool as_it_is = within && !a->form && h5->H5Tequal(type, a->memory) > 0;
    const haddr_t off = as_it_is ? h5->H5Dget_offset(a->dataset) : HADDR_UNDEF;
    a->plain = off != HADDR_UNDEF;
    a->off = a->plain ? off : 0;
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
        rc = a->form ? CAIRN_OK : get_fill(h5, plist, a);
    }
    h5->H5Pclose(plist);
    return rc;
}

static cairn_status get_bytes(const diff_array *a, uint64_t *ret)
{
    CRN_FAIL_IF(__builtin_mul_overflow(a->nvalues, a->item, ret) || *ret > INT64_MAX,
                CAIRN_EUNSUPPORTED, "%" PRIu64 " values of %zu bytes are more than there can be",
                a->nvalues, a->item);
    return CAIRN_OK;
}

static cairn_status look_at_dataset(const crn_h5 *h5, bool within, diff_array *a)
{
    uint64_t nbytes;
    CRN_TRY(get_shape(h5, h5->H5Dget_space(a->dataset), a));
    get_chunk(h5, a);
    hid_t type = h5->H5Dget_type(a->dataset);
    cairn_status rc = get_type(h5, type, a);
    if (rc == CAIRN_OK)
        get_place(h5, type, within, a);
    h5->H5Tclose(type);
    CRN_TRY(rc);
    CRN_TRY(get_bytes(a, &nbytes));
    return get_storage(h5, a, nbytes);
}

static cairn_status look_at_attribute(const crn_h5 *h5, diff_array *a)
{
    CRN_TRY(get_shape(h5, h5->H5Aget_space(a->attribute), a));
    hid_t type = h5->H5Aget_type(a->attribute);
    cairn_status rc = get_type(h5, type, a);
    h5->H5Tclose(type);
    CRN_TRY(rc);
    CRN_TRY(get_bytes(a, &a->stored_bytes));
    CRN_FAIL_IF(a->stored_bytes > DIFF_MEMORY, CAIRN_EUNSUPPORTED, "it is too large");
    return CAIRN_OK;
}

/* --- the list ------------------------------------------------------------------------------- */

/* Add what was looked at, with what came of it; taken also when that fails. */
static cairn_status add(opening *o, diff_array *a, cairn_status rc)
{
    o->h5->H5Eclear2(H5E_DEFAULT); /* what was asked in vain is no failure */
    if (rc == CAIRN_EUNSUPPORTED && a->name) {
        rc = crn_strdup(crn_err_peek()->text, &a->why);
        if (rc == CAIRN_OK && !a->type)
            rc = crn_strdup("", &a->type);
        a->ndims = CRN_MAX(a->ndims, 1);
        a->item = CRN_MAX(a->item, 1);
    }
    if (rc == CAIRN_OK)
        rc = crn_vec_push(&o->f->array, *a);
    if (rc < 0) {
        crn_err_prefix("'%s', '%s': ", o->f->name, a->name ? a->name : "");
        array_done(o->h5, a);
        crn_diff_array_done(a);
    }
    return rc;
}

/* Takes the attribute. */
static cairn_status add_attribute(opening *o, const char *on, hid_t attribute)
{
    char name[CRN_HDF5_NAME + 1], path[CRN_HDF5_NAME + 1];
    diff_array a = {.kind = DIFF_VALUES, .attribute = attribute};
    cairn_status rc = CAIRN_OK;
    const ssize_t n = o->h5->H5Aget_name(attribute, sizeof name, name);
    const int m = snprintf(path, sizeof path, "%s%s@%s", on, *on ? "/" : "", n < 0 ? "" : name);
    if (n < 0 || n >= (ssize_t)sizeof name || m < 0 || m >= (int)sizeof path)
        rc = crn_fail(CAIRN_EINVAL, "'%s...': a name has at most %d bytes", path, CRN_HDF5_NAME);
    if (rc == CAIRN_OK)
        rc = crn_strdup(path, &a.name);
    if (rc == CAIRN_OK)
        rc = look_at_attribute(o->h5, &a);
    return add(o, &a, rc);
}

static cairn_status add_attributes(opening *o, const char *on, hid_t object)
{
    const crn_h5 *h5 = o->h5;
    H5O_info_t info;
    if (h5->H5Oget_info2(object, &info, H5O_INFO_NUM_ATTRS) < 0)
        return crn_hdf5_fail(h5, "cannot read the attributes of '/%s' in '%s'", on, o->f->name);
    for (hsize_t i = 0; i < info.num_attrs; i++) {
        hid_t a = h5->H5Aopen_by_idx(object, ".", H5_INDEX_NAME, H5_ITER_INC, i, H5P_DEFAULT,
                                     H5P_DEFAULT);
        if (a < 0)
            return crn_hdf5_fail(h5, "cannot read the attributes of '/%s' in '%s'", on, o->f->name);
        CRN_TRY(add_attribute(o, on, a));
    }
    return CAIRN_OK;
}

/* Takes the dataset. */
static cairn_status add_dataset(opening *o, const crn_hdf5_entry *e)
{
    diff_array a = {.kind = DIFF_VALUES, .dataset = e->id};
    cairn_status rc = add_attributes(o, e->name, e->id);
    if (rc == CAIRN_OK)
        rc = crn_strdup(e->name, &a.name);
    if (rc == CAIRN_OK)
        rc = look_at_dataset(o->h5, e->within, &a);
    return add(o, &a, rc);
}

/* What has no values of its own. */
static cairn_status add_other(opening *o, const crn_hdf5_entry *e, diff_array_kind kind)
{
    diff_array a = {.kind = kind, .ndims = 1, .item = 1};
    if (kind == DIFF_TYPE)
        a.memory = o->h5->H5Tcopy(e->id);
    cairn_status rc = crn_strdup(e->name, &a.name);
    if (rc == CAIRN_OK)
        rc = crn_strdup("", &a.type);
    if (rc == CAIRN_OK)
        rc = crn_strdup(e->text ? e->text : "", &a.why);
    return add(o, &a, rc);
}

static cairn_status add_entry(void *arg, const crn_hdf5_entry *e)
{
    static const diff_array_kind kind[] = {
        [CRN_HDF5_FAR] = DIFF_VALUES,  [CRN_HDF5_GROUP] = DIFF_GROUP,
        [CRN_HDF5_AGAIN] = DIFF_AGAIN, [CRN_HDF5_TYPE] = DIFF_TYPE,
        [CRN_HDF5_LOST] = DIFF_LOST,   [CRN_HDF5_OUTWARD] = DIFF_OUTWARD};
    opening *o = arg;
    if (e->kind == CRN_HDF5_DATASET)
        return add_dataset(o, e);
    if (e->kind == CRN_HDF5_GROUP || e->kind == CRN_HDF5_TYPE)
        CRN_TRY(add_attributes(o, e->name, e->id));
    return add_other(o, e, kind[e->kind]);
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

cairn_status crn_diff_open_hdf5(diff_file *f, const char *path, bool follow)
{
    opening o = {.f = f};
    hid_t file;
    uint64_t nbytes;
    CRN_TRY(crn_hdf5_lock(&o.h5));
    cairn_status rc = crn_hdf5_open(o.h5, f->name, &file);
    if (rc == CAIRN_OK) {
        f->hdf5 = file;
        rc = crn_hdf5_visit(o.h5, file, CRN_HDF5_ALL | (follow ? CRN_HDF5_FOLLOW : 0), add_entry,
                            &o);
    }
    crn_hdf5_unlock();
    CRN_TRY(rc);
    if (f->array.n > 0)
        qsort(f->array.at, f->array.n, sizeof *f->array.at, by_name);
    CRN_TRY(crn_diff_open_plain(f, path, &nbytes));
    return check_ends(f, nbytes);
}

void crn_diff_close_hdf5(diff_file *f)
{
    const crn_h5 *h5;
    if (crn_hdf5_lock(&h5) < 0)
        return;
    for (size_t i = 0; i < f->array.n; i++)
        array_done(h5, &f->array.at[i]);
    h5->H5Fclose(f->hdf5);
    crn_hdf5_unlock();
}

bool crn_diff_same_types(const diff_array *a, const diff_array *b)
{
    const crn_h5 *h5;
    if (crn_hdf5_lock(&h5) < 0)
        return false;
    const bool same = h5->H5Tequal(a->memory, b->memory) > 0;
    crn_hdf5_unlock();
    return same;
}

/* --- values --------------------------------------------------------------------------------- */

static cairn_status read_dataset(const crn_h5 *h5, const diff_array *a, const diff_slab *slab,
                                 void *dst)
{
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
    if (h5->H5Dread(a->dataset, a->memory, here, here == H5S_ALL ? H5S_ALL : there, H5P_DEFAULT,
                    dst) < 0)
        rc = crn_hdf5_fail(h5, "cannot read dataset '%s'", a->name);
    if (here != H5S_ALL)
        h5->H5Sclose(here);
    h5->H5Sclose(there);
    return rc;
}

cairn_status crn_diff_read_held(const diff_file *f, const diff_array *a, const diff_slab *slab,
                                void *dst)
{
    const crn_h5 *h5 = crn_hdf5_held();
    cairn_status rc = CAIRN_OK;
    if (a->form || a->stored_bytes < a->nvalues * a->item) /* what was never written may be left
                                                              out, and pointers must be none */
        memset(dst, 0, slab->n * a->item);
    if (a->attribute == 0)
        rc = read_dataset(h5, a, slab, dst);
    else if (h5->H5Aread(a->attribute, a->memory, dst) < 0)
        rc = crn_hdf5_fail(h5, "cannot read attribute '%s'", a->name);
    if (rc < 0)
        crn_err_prefix("'%s': ", f->name);
    return rc;
}

cairn_status crn_diff_file_read(const diff_file *f, const diff_array *a, const diff_slab *slab,
                                void *dst)
{
    const crn_h5 *h5;
    CRN_TRY(crn_hdf5_lock(&h5));
    cairn_status rc = crn_diff_read_held(f, a, slab, dst);
    crn_hdf5_unlock();
    return rc;
}
