/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Looking at an HDF5 file that someone else may have written: which datasets can become variables,
 * of which type and shape. What is in the file is not trusted: it may be damaged, or made to harm.
 */
#include "exchange/exchange_import.h"

static void source_done(const crn_h5 *h5, crn_source *s)
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

/* What an export says of its own, but for what a codec may have lost: that stays true of the
 * values. */
static bool is_ours(const char *key)
{
    return strncmp(key, "cairn_", 6) == 0 && strcmp(key, CRN_LOSS_KEY) != 0;
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

/* A number that is an attribute; false when there is none, or several. */
static bool find_number(const crn_h5 *h5, hid_t on, const char *key, uint32_t *ret)
{
    if (h5->H5Aexists(on, key) <= 0)
        return false;
    hid_t attribute = h5->H5Aopen(on, key, H5P_DEFAULT);
    if (attribute < 0)
        return false;
    hid_t space = h5->H5Aget_space(attribute);
    const bool found = h5->H5Sget_simple_extent_npoints(space) == 1 &&
                       h5->H5Aread(attribute, h5->H5T_NATIVE_UINT32_g, ret) >= 0;
    h5->H5Sclose(space);
    h5->H5Aclose(attribute);
    return found;
}

/* How many ranks wrote the file, if it comes from Cairn; 1 otherwise. */
static uint32_t file_ranks(const crn_h5 *h5, hid_t file)
{
    uint32_t n = 0;
    if (h5->H5Aexists(file, "cairn") <= 0 || !find_number(h5, file, "nranks", &n))
        return 1;
    return n == 0 || n > CRN_RANKS_MAX ? 1 : n;
}

/* --- looking at datasets ------------------------------------------------------------------ */

static cairn_status get_shape(const crn_importer *im, crn_source *s)
{
    const crn_h5 *h5 = im->h5;
    hsize_t dims[H5S_MAX_RANK];
    hid_t space = h5->H5Dget_space(s->dataset);
    const int ndims = h5->H5Sget_simple_extent_ndims(space);
    const bool null = ndims == 0 && h5->H5Sget_simple_extent_npoints(space) == 0;
    if (ndims > 0)
        h5->H5Sget_simple_extent_dims(space, dims, NULL);
    h5->H5Sclose(space);
    CRN_FAIL_IF(ndims < 0 || null, CAIRN_EUNSUPPORTED, "it has no elements");
    CRN_FAIL_IF(ndims > CRN_DIMS_MAX, CAIRN_EUNSUPPORTED, "%d dimensions, at most %d are possible",
                ndims, CRN_DIMS_MAX);
    s->ndims = (uint32_t)ndims;
    for (int d = 0; d < ndims; d++)
        s->dims[d] = dims[d];
    return CAIRN_OK;
}

/* Files without data may claim any size. An empty dimension excuses no other. */
static cairn_status check_size(const crn_source *s)
{
    uint64_t nbytes = CRN_MAX(s->item, 1);
    for (uint32_t d = 0; d < s->ndims; d++)
        CRN_FAIL_IF(__builtin_mul_overflow(nbytes, CRN_MAX(s->dims[d], 1), &nbytes) ||
                        nbytes > INT64_MAX,
                    CAIRN_EINVAL, "it is larger than any file");
    return CAIRN_OK;
}

static cairn_status get_type(const crn_importer *im, crn_source *s)
{
    const crn_h5 *h5 = im->h5;
    hid_t type = h5->H5Dget_type(s->dataset);
    s->memory = h5->H5Tget_native_type(type, H5T_DIR_ASCEND);
    h5->H5Tclose(type);
    if (s->memory < 0) {
        h5->H5Eclear2(H5E_DEFAULT);
        return crn_fail(CAIRN_EUNSUPPORTED, "its type is not known");
    }
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

/* Where each rank's elements begin in a list, as the file says; false when it does not. */
static bool read_starts(const crn_importer *im, const crn_source *s)
{
    const crn_h5 *h5 = im->h5;
    char name[CRN_VAR_NAME + 32];
    snprintf(name, sizeof name, "cairn/starts/%s", s->name);
    bool near = false;
    hid_t o = h5->H5Oopen(im->file, name, H5P_DEFAULT);
    if (o >= 0 && h5->H5Iget_type(o) == H5I_DATASET)
        (void)crn_hdf5_is_near(h5, im->file, name, o, 0, &near);
    hid_t space = near ? h5->H5Dget_space(o) : -1;
    const bool fits =
        space >= 0 && h5->H5Sget_simple_extent_npoints(space) == (hssize_t)im->nranks + 1;
    bool ok = fits &&
              h5->H5Dread(o, h5->H5T_NATIVE_UINT64_g, H5S_ALL, H5S_ALL, H5P_DEFAULT, s->start) >= 0;
    if (space >= 0)
        h5->H5Sclose(space);
    if (o >= 0)
        h5->H5Oclose(o);
    h5->H5Eclear2(H5E_DEFAULT);
    for (uint32_t r = 0; ok && r < im->nranks; r++)
        ok = s->start[r] <= s->start[r + 1] && s->start[r + 1] <= s->dims[0];
    return ok;
}

/* Ranks have one element each, or the file says where they begin; in files of earlier versions each
 * may have a row of its own. */
static cairn_status get_starts(const crn_importer *im, crn_source *s)
{
    const uint32_t wrote = file_ranks(im->h5, im->file);
    CRN_FAIL_IF(wrote != im->nranks, CAIRN_EMISMATCH, "it has elements of %u ranks, not of %u",
                wrote, im->nranks);
    CRN_TRY(crn_alloc(&s->start, (size_t)im->nranks + 1));
    if (s->ndims == 1 && read_starts(im, s))
        return CAIRN_OK;
    CRN_FAIL_IF(s->dims[0] != im->nranks, CAIRN_EMISMATCH,
                "where the elements of each rank begin is not known");
    for (uint32_t r = 0; r <= im->nranks; r++)
        s->start[r] = r * (s->ndims == 2 ? s->dims[1] : 1);
    return CAIRN_OK;
}

/* What one dataset becomes. CAIRN_EUNSUPPORTED: nothing. Takes the dataset. */
static cairn_status look_at(crn_importer *im, const char *name, hid_t dataset, crn_source *s)
{
    *s = (crn_source){.dataset = dataset, .memory = -1};
    CRN_TRY(crn_strdup(name, &s->name));
    CRN_TRY(get_shape(im, s));
    CRN_TRY(get_type(im, s));
    CRN_TRY(check_size(s));
    char *layout = find_text(im->h5, dataset, "cairn_layout");
    s->by_rank = layout && strcmp(layout, "rank") == 0 && s->ndims > 0 && s->ndims <= 2;
    free(layout);
    if (s->by_rank)
        CRN_TRY(get_starts(im, s));
    return get_attributes(im->h5, dataset, &s->attributes);
}

static cairn_status add_dataset(crn_importer *im, const char *name, hid_t dataset)
{
    crn_source s;
    if (strncmp(name, "cairn/", 6) == 0) { /* what an export says of itself */
        im->h5->H5Dclose(dataset);
        return CAIRN_OK;
    }
    cairn_status rc = crn_vec_reserve(&im->source, 1);
    if (rc == CAIRN_OK)
        rc = look_at(im, name, dataset, &s);
    else
        s = (crn_source){.dataset = dataset, .memory = -1};
    if (rc == CAIRN_OK) {
        im->source.at[im->source.n++] = s;
        return CAIRN_OK;
    }
    source_done(im->h5, &s);
    if (rc == CAIRN_EUNSUPPORTED) {
        im->result.nskipped++;
        return CAIRN_OK;
    }
    crn_err_prefix("dataset '%s': ", name);
    return rc;
}

/* What lies elsewhere is left out and counted: a file does not choose which others are read. */
static cairn_status add_entry(void *arg, const crn_hdf5_entry *e)
{
    crn_importer *im = arg;
    if (e->kind == CRN_HDF5_DATASET)
        return add_dataset(im, e->name, e->id);
    im->result.nskipped += e->kind != CRN_HDF5_GROUP && e->kind != CRN_HDF5_TYPE;
    return CAIRN_OK;
}

/* --- the file ----------------------------------------------------------------------------- */

cairn_status crn_import_look(crn_importer *im)
{
    const crn_h5 *h5 = im->h5;
    CRN_TRY(crn_hdf5_open(h5, im->how->path, &im->file));
    im->nranks = im->how->nranks > 0 ? im->how->nranks : file_ranks(h5, im->file);
    return crn_hdf5_visit(h5, im->file, 0, add_entry, im);
}

void crn_import_leave(crn_importer *im)
{
    for (size_t i = 0; i < im->source.n; i++)
        source_done(im->h5, &im->source.at[i]);
    crn_vec_done(&im->source);
    if (im->file >= 0)
        im->h5->H5Fclose(im->file);
}
