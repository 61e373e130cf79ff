/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames: HDF5 files with everything but the variables' bytes.
 *
 *     /                    attributes run, version, time, nranks, cairn
 *     /<name>              a variable; what its name has before slashes are groups
 *     /cairn/starts/<name> where each rank's elements begin, if not all have one
 */
#include "exchange/exchange.h"
#include "hdf5/hdf5.h"

typedef struct framer {
    const crn_h5 *h5;
    hid_t file;
    hid_t links; /* properties of links: make groups as needed */
} framer;

/* --- attributes --------------------------------------------------------------------------- */

/* An attribute of one element, of a type that is the caller's. */
static cairn_status put_attribute(const framer *f, hid_t on, const char *key, hid_t type,
                                  const void *value)
{
    const crn_h5 *h5 = f->h5;
    hid_t space = h5->H5Screate(H5S_SCALAR);
    hid_t attribute = h5->H5Acreate2(on, key, type, space, H5P_DEFAULT, H5P_DEFAULT);
    cairn_status rc = CAIRN_OK;
    if (attribute < 0 || h5->H5Awrite(attribute, type, value) < 0)
        rc = crn_hdf5_fail(h5, "cannot write attribute '%s'", key);
    if (attribute >= 0)
        h5->H5Aclose(attribute);
    h5->H5Sclose(space);
    return rc;
}

static cairn_status put_text(const framer *f, hid_t on, const char *key, const char *text)
{
    hid_t type = f->h5->H5Tcopy(f->h5->H5T_C_S1_g);
    f->h5->H5Tset_size(type, strlen(text) + 1);
    f->h5->H5Tset_cset(type, H5T_CSET_UTF8);
    cairn_status rc = put_attribute(f, on, key, type, text);
    f->h5->H5Tclose(type);
    return rc;
}

/* The "key=value" lines of a variable. */
static cairn_status put_lines(const framer *f, hid_t on, const char *lines)
{
    char *copy, *rest, *line;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_strdup(lines, &copy));
    rest = copy;
    while (rc == CAIRN_OK && (line = strsep(&rest, "\n"))) {
        char *equals = strchr(line, '=');
        if (!equals || equals == line)
            continue;
        *equals = 0;
        rc = put_text(f, on, line, equals + 1);
    }
    free(copy);
    return rc;
}

static cairn_status put_head(const framer *f, const crn_frame *frame)
{
    const uint32_t nranks = frame->nranks;
    const double time = (double)frame->wall_ns * 1e-9;
    char date[64];
    CRN_TRY(put_text(f, f->file, "cairn", cairn_version()));
    if (frame->run)
        CRN_TRY(put_text(f, f->file, "run", frame->run));
    CRN_TRY(put_attribute(f, f->file, "version", f->h5->H5T_NATIVE_UINT64_g, &frame->version));
    CRN_TRY(put_attribute(f, f->file, "time", f->h5->H5T_NATIVE_DOUBLE_g, &time));
    CRN_TRY(put_text(f, f->file, "date", crn_format_date(frame->wall_ns, date, sizeof date)));
    return put_attribute(f, f->file, "nranks", f->h5->H5T_NATIVE_UINT32_g, &nranks);
}

/* --- datasets ----------------------------------------------------------------------------- */

/* Space in one piece, taken now and not filled: its place is to be known, and its bytes come. */
static hid_t reserved_space(const framer *f)
{
    hid_t p = f->h5->H5Pcreate(f->h5->H5P_CLS_DATASET_CREATE_ID_g);
    f->h5->H5Pset_layout(p, H5D_CONTIGUOUS);
    f->h5->H5Pset_alloc_time(p, H5D_ALLOC_TIME_EARLY);
    f->h5->H5Pset_fill_time(p, H5D_FILL_TIME_NEVER);
    return p;
}

/* Where a piece lies in the array, as HDF5 counts. */
static void select_piece(const crn_array *a, const crn_piece *piece, hsize_t *offset,
                         hsize_t *count)
{
    if (!a->by_rank) {
        for (uint32_t d = 0; d < a->ndims; d++) {
            offset[d] = piece->offset[d];
            count[d] = piece->count[d];
        }
    } else {
        offset[0] = piece->start;
        count[0] = piece->nitems;
    }
}

/* The name of a dataset in another file, where HDF5 takes what follows a '%' for a number. */
static void escape_name(const char *name, char buf[2 * CRN_VAR_NAME + 1])
{
    for (; *name; name++) {
        if (*name == '%')
            *buf++ = '%';
        *buf++ = *name;
    }
    *buf = 0;
}

static cairn_status map_piece(const framer *f, const crn_frame *frame, const crn_array *a,
                              const crn_piece *piece, hid_t whole, hid_t properties)
{
    const crn_h5 *h5 = f->h5;
    char name[CRN_OUTSIDE_NAME], dataset[2 * CRN_VAR_NAME + 1];
    hsize_t offset[CRN_DIMS_MAX], count[CRN_DIMS_MAX];
    select_piece(a, piece, offset, count);
    h5->H5Sselect_hyperslab(whole, H5S_SELECT_SET, offset, NULL, count, NULL);
    if (a->by_rank) /* which is a list in the rank's file */
        count[0] = piece->nitems;
    hid_t theirs = h5->H5Screate_simple(a->by_rank ? 1 : (int)a->ndims, count, NULL);
    crn_outside_name(frame->version, piece->rank, name);
    escape_name(a->spec.name, dataset);
    cairn_status rc = CAIRN_OK;
    if (h5->H5Pset_virtual(properties, whole, name, dataset, theirs) < 0)
        rc = crn_hdf5_fail(h5, "cannot map dataset '%s' of rank %u", a->spec.name, piece->rank);
    h5->H5Sclose(theirs);
    return rc;
}

/* Let the properties be those of an array that is made of the ranks' files. */
static cairn_status map_pieces(const framer *f, const crn_frame *frame, const crn_array *a,
                               hid_t whole, hid_t properties)
{
    for (size_t i = 0; i < a->piece.n; i++)
        if (a->piece.at[i].nitems > 0)
            CRN_TRY(map_piece(f, frame, a, &a->piece.at[i], whole, properties));
    return CAIRN_OK;
}

/* Make an array's dataset; what it stands on is closed whatever happens. */
static cairn_status create_dataset(const framer *f, const crn_frame *frame, const crn_array *a,
                                   hid_t type, bool pieces, hid_t *ret)
{
    hsize_t dims[CRN_DIMS_MAX];
    for (uint32_t d = 0; d < a->ndims; d++)
        dims[d] = a->dims[d];
    hid_t space = f->h5->H5Screate_simple((int)a->ndims, dims, NULL);
    hid_t properties =
        pieces ? f->h5->H5Pcreate(f->h5->H5P_CLS_DATASET_CREATE_ID_g) : reserved_space(f);
    cairn_status rc = pieces ? map_pieces(f, frame, a, space, properties) : CAIRN_OK;
    if (rc == CAIRN_OK) {
        *ret = f->h5->H5Dcreate2(f->file, a->spec.name, type, space, f->links, properties,
                                 H5P_DEFAULT);
        if (*ret < 0)
            rc = crn_hdf5_fail(f->h5, "cannot make dataset '%s'", a->spec.name);
    }
    f->h5->H5Pclose(properties);
    f->h5->H5Sclose(space);
    return rc;
}

static uint64_t count_items(const crn_array *a)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < a->ndims; d++)
        n *= a->dims[d];
    return n;
}

/* May a variable have its name in HDF5, where what stands before a slash is a group? */
static cairn_status check_name(const crn_frame *frame, const crn_array *a)
{
    const char *name = a->spec.name;
    CRN_FAIL_IF(strcmp(name, "cairn") == 0 || strncmp(name, "cairn/", 6) == 0, CAIRN_EINVAL,
                "variable '%s' has no place in HDF5: the group 'cairn' is Cairn's own", name);
    for (const char *slash = name; (slash = strchr(slash, '/')); slash++) {
        for (size_t i = 0; i < frame->array.n; i++) {
            const char *other = frame->array.at[i].spec.name;
            CRN_FAIL_IF(strlen(other) == (size_t)(slash - name) &&
                            strncmp(other, name, (size_t)(slash - name)) == 0,
                        CAIRN_EINVAL,
                        "variable '%s' has no place in HDF5: variable '%s' cannot be its group",
                        name, other);
        }
    }
    return CAIRN_OK;
}

static cairn_status add_array(const framer *f, const crn_frame *frame, crn_array *a, bool pieces)
{
    hid_t type, dataset;
    CRN_TRY(check_name(frame, a));
    CRN_TRY(crn_hdf5_type(f->h5, a->spec.type, &type));
    cairn_status rc = create_dataset(f, frame, a, type, pieces, &dataset);
    f->h5->H5Tclose(type);
    CRN_TRY(rc);
    a->off = pieces || count_items(a) == 0 ? 0 : f->h5->H5Dget_offset(dataset);
    rc = put_lines(f, dataset, a->spec.attributes);
    if (rc == CAIRN_OK && strcmp(a->spec.type, "bytes") == 0) /* which HDF5 shows as numbers */
        rc = put_text(f, dataset, "cairn_type", a->spec.type);
    if (rc == CAIRN_OK)
        rc = put_text(f, dataset, "cairn_layout", a->by_rank ? "rank" : "global");
    f->h5->H5Dclose(dataset);
    if (rc == CAIRN_OK && a->off == HADDR_UNDEF)
        rc = crn_hdf5_fail(f->h5, "dataset '%s' has no place", a->spec.name);
    return rc;
}

/* Has every rank one element? Then the places where they begin are not needed. */
static bool has_one_each(const crn_array *a, uint32_t nranks)
{
    bool one = a->piece.n == nranks;
    for (size_t i = 0; i < a->piece.n; i++)
        one = one && a->piece.at[i].nitems == 1;
    return one;
}

/* Where the elements of each rank begin, and where those of the last end. */
static cairn_status add_starts(const framer *f, const crn_frame *frame, const crn_array *a)
{
    char name[CRN_VAR_NAME + 32];
    uint64_t *start;
    const hsize_t n = (hsize_t)frame->nranks + 1;
    if (!a->by_rank || has_one_each(a, frame->nranks))
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&start, (size_t)n));
    for (size_t i = 0, r = 0; r < n; r++) {
        while (i < a->piece.n && a->piece.at[i].rank < r)
            i++;
        start[r] = i < a->piece.n ? a->piece.at[i].start : a->dims[0];
    }
    snprintf(name, sizeof name, "cairn/starts/%s", a->spec.name);
    hid_t type = f->h5->H5T_NATIVE_UINT64_g, space = f->h5->H5Screate_simple(1, &n, NULL);
    hid_t dataset =
        f->h5->H5Dcreate2(f->file, name, type, space, f->links, H5P_DEFAULT, H5P_DEFAULT);
    cairn_status rc = CAIRN_OK;
    if (dataset < 0 || f->h5->H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, start) < 0)
        rc = crn_hdf5_fail(f->h5, "cannot write dataset '%s'", name);
    if (dataset >= 0)
        f->h5->H5Dclose(dataset);
    f->h5->H5Sclose(space);
    free(start);
    return rc;
}

/* --- the file ----------------------------------------------------------------------------- */

static cairn_status fill(const framer *f, crn_frame *frame, bool pieces)
{
    CRN_TRY(put_head(f, frame));
    for (size_t i = 0; i < frame->array.n; i++) {
        CRN_TRY(add_array(f, frame, &frame->array.at[i], pieces));
        CRN_TRY(add_starts(f, frame, &frame->array.at[i]));
    }
    return CAIRN_OK;
}

/* With the library locked. */
static cairn_status make_sketch(const crn_h5 *h5, const char *name, crn_frame *frame, bool pieces,
                                crn_sketch *ret)
{
    enum { ALIGN = 4096 }; /* of datasets that are no smaller, for direct writes */
    framer f = {.h5 = h5, .file = -1};
    hid_t access = h5->H5Pcreate(h5->H5P_CLS_FILE_ACCESS_ID_g);
    h5->H5Pset_alignment(access, ALIGN, ALIGN);
    cairn_status rc = crn_sketch_begin(h5, access, ret);
    if (rc == CAIRN_OK)
        f.file = h5->H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    h5->H5Pclose(access);
    CRN_TRY(rc);
    if (f.file < 0)
        return crn_hdf5_fail(h5, "cannot make HDF5 file '%s'", name);
    f.links = h5->H5Pcreate(h5->H5P_CLS_LINK_CREATE_ID_g);
    h5->H5Pset_create_intermediate_group(f.links, 1);
    rc = fill(&f, frame, pieces);
    h5->H5Pclose(f.links);
    if (h5->H5Fclose(f.file) < 0 && rc == CAIRN_OK)
        rc = crn_hdf5_fail(h5, "cannot make HDF5 file '%s'", name);
    return rc;
}

/* What HDF5 says of the file goes to the disk by Cairn's own writes, like the data. */
static cairn_status write_sketch(int dirfd, const char *name, const crn_sketch *s)
{
    crn_file *file;
    CRN_TRY(crn_file_open(dirfd, name, CRN_WRITE | CRN_CREATE, &file));
    cairn_status rc = crn_file_truncate(file, 0);
    if (rc == CAIRN_OK)
        rc = crn_file_truncate(file, s->nbytes);
    for (size_t i = 0; i < s->piece.n && rc == CAIRN_OK; i++)
        rc = crn_file_write(file, s->piece.at[i].data, s->piece.at[i].nbytes, s->piece.at[i].off);
    crn_file_close(file);
    return rc;
}

cairn_status crn_hdf5_frame(int dirfd, const char *name, crn_frame *f, bool pieces)
{
    const crn_h5 *h5;
    crn_sketch sketch = {0};
    CRN_TRY(crn_hdf5_lock(&h5));
    cairn_status rc = make_sketch(h5, name, f, pieces, &sketch);
    crn_hdf5_unlock();
    if (rc == CAIRN_OK)
        rc = write_sketch(dirfd, name, &sketch);
    crn_sketch_done(&sketch);
    return rc;
}
