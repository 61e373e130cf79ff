/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Arrays of numbers into HDF5 files and back: what a study makes for others to read. A file gets
 * its name when it is whole.
 */
#include "hdf5/hdf5.h"
#include "observe/observe.h"

#include <errno.h>
#include <unistd.h>

struct crn_obs_file {
    char *path, *temporary;
    hid_t id, links;
};

static cairn_status create(crn_obs_file *f, const crn_h5 *h5)
{
    f->id = h5->H5Fcreate(f->temporary, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    if (f->id < 0)
        return crn_hdf5_fail(h5, "cannot write '%s'", f->temporary);
    f->links = h5->H5Pcreate(h5->H5P_CLS_LINK_CREATE_ID_g);
    if (f->links < 0 || h5->H5Pset_create_intermediate_group(f->links, 1) < 0)
        return crn_hdf5_fail(h5, "cannot write '%s'", f->temporary);
    return CAIRN_OK;
}

cairn_status crn_obs_file_create(const char *path, crn_obs_file **ret)
{
    const crn_h5 *h5;
    crn_obs_file *f;
    CRN_TRY(crn_alloc(&f, 1));
    f->id = f->links = -1;
    cairn_status rc = crn_strdup(path, &f->path);
    if (rc == CAIRN_OK && asprintf(&f->temporary, "%s.new", path) < 0)
        rc = crn_fail(CAIRN_ENOMEM, "no memory for a path");
    if (rc == CAIRN_OK && (rc = crn_hdf5_lock(&h5)) == CAIRN_OK) {
        rc = create(f, h5);
        crn_hdf5_unlock();
    }
    if (rc < 0)
        crn_obs_file_free(f);
    else
        *ret = f;
    return rc;
}

static cairn_status put(crn_obs_file *f, const crn_h5 *h5, const char *name, int ndims,
                        const uint64_t *dims, const double *data)
{
    hsize_t n[CRN_DIMS_MAX];
    for (int d = 0; d < ndims; d++)
        n[d] = dims[d];
    hid_t space = h5->H5Screate_simple(ndims, n, NULL);
    hid_t set = space < 0 ? -1
                          : h5->H5Dcreate2(f->id, name, h5->H5T_NATIVE_DOUBLE_g, space, f->links,
                                           H5P_DEFAULT, H5P_DEFAULT);
    cairn_status rc = CAIRN_OK;
    if (set < 0 ||
        h5->H5Dwrite(set, h5->H5T_NATIVE_DOUBLE_g, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)
        rc = crn_hdf5_fail(h5, "cannot write '%s' to '%s'", name, f->path);
    if (set >= 0)
        h5->H5Dclose(set);
    if (space >= 0)
        h5->H5Sclose(space);
    return rc;
}

cairn_status crn_obs_file_put(crn_obs_file *f, const char *name, int ndims, const uint64_t *dims,
                              const double *data)
{
    const crn_h5 *h5;
    CRN_TRY(crn_hdf5_lock(&h5));
    cairn_status rc = put(f, h5, name, ndims, dims, data);
    crn_hdf5_unlock();
    return rc;
}

static bool close_file(crn_obs_file *f)
{
    const crn_h5 *h5;
    bool good = true;
    if (f->id < 0 || crn_hdf5_lock(&h5) < 0)
        return true;
    if (f->links >= 0)
        h5->H5Pclose(f->links);
    good = h5->H5Fclose(f->id) >= 0;
    f->id = -1;
    crn_hdf5_unlock();
    return good;
}

cairn_status crn_obs_file_close(crn_obs_file *f)
{
    cairn_status rc = CAIRN_OK;
    if (!close_file(f))
        rc = crn_fail(CAIRN_EIO, "cannot write '%s'", f->path);
    else if (rename(f->temporary, f->path) < 0)
        rc = crn_fail_sys(errno, "cannot write '%s'", f->path);
    crn_obs_file_free(f);
    return rc;
}

void crn_obs_file_free(crn_obs_file *f)
{
    if (!f)
        return;
    (void)close_file(f);
    if (f->temporary)
        (void)unlink(f->temporary); /* nothing, once it has its name */
    free(f->path);
    free(f->temporary);
    free(f);
}

/* --- back ----------------------------------------------------------------------------------- */

static cairn_status get(const crn_h5 *h5, hid_t file, const char *name, crn_obs_array *ret)
{
    H5L_info_t info;
    hsize_t dims[H5S_MAX_RANK];
    if (h5->H5Lget_info(file, name, &info, H5P_DEFAULT) < 0)
        return CAIRN_NOTHING;
    hid_t set = h5->H5Oopen(file, name, H5P_DEFAULT);
    hid_t space = set > 0 && h5->H5Iget_type(set) == H5I_DATASET ? h5->H5Dget_space(set) : -1;
    int ndims = space > 0 ? h5->H5Sget_simple_extent_dims(space, dims, NULL) : -1;
    uint64_t n = 1;
    bool fits = ndims >= 0 && ndims <= CRN_DIMS_MAX;
    for (int d = 0; fits && d < ndims; d++) {
        ret->dims[d] = dims[d];
        fits = !__builtin_mul_overflow(n, (uint64_t)dims[d], &n) && n < UINT64_C(1) << 40;
    }
    cairn_status rc = CAIRN_OK;
    if (!fits)
        rc = crn_fail(CAIRN_EINVAL, "'%s' is no array of numbers", name);
    else
        rc = crn_alloc(&ret->data, n);
    if (rc == CAIRN_OK && n > 0 &&
        h5->H5Dread(set, h5->H5T_NATIVE_DOUBLE_g, H5S_ALL, H5S_ALL, H5P_DEFAULT, ret->data) < 0)
        rc = crn_hdf5_fail(h5, "cannot read '%s'", name);
    ret->ndims = ndims;
    ret->n = n;
    if (space > 0)
        h5->H5Sclose(space);
    if (set > 0)
        h5->H5Oclose(set);
    return rc;
}

cairn_status crn_obs_file_get(const char *path, const char *name, crn_obs_array *ret)
{
    const crn_h5 *h5;
    hid_t file;
    *ret = (crn_obs_array){0};
    CRN_TRY(crn_hdf5_lock(&h5));
    cairn_status rc = crn_hdf5_open(h5, path, &file);
    if (rc == CAIRN_OK) {
        rc = get(h5, file, name, ret);
        h5->H5Fclose(file);
    }
    crn_hdf5_unlock();
    if (rc != CAIRN_OK) {
        free(ret->data);
        ret->data = NULL;
    }
    return rc;
}

static cairn_status list(const crn_h5 *h5, hid_t file, const char *group, crn_obs_names *ret)
{
    H5G_info_t info;
    hid_t id = h5->H5Oopen(file, group, H5P_DEFAULT);
    if (id < 0 || h5->H5Gget_info(id, &info) < 0)
        return crn_hdf5_fail(h5, "there is no group '%s'", group);
    cairn_status rc = CAIRN_OK;
    for (hsize_t i = 0; rc == CAIRN_OK && i < info.nlinks && i < 4096; i++) {
        crn_obs_name name;
        ssize_t n = h5->H5Lget_name_by_idx(id, ".", H5_INDEX_NAME, H5_ITER_INC, i, name.text,
                                           sizeof name.text, H5P_DEFAULT);
        if (n > 0 && (size_t)n < sizeof name.text)
            rc = crn_vec_push(ret, name);
    }
    h5->H5Oclose(id);
    return rc;
}

cairn_status crn_obs_file_names(const char *path, const char *group, crn_obs_names *ret)
{
    const crn_h5 *h5;
    hid_t file;
    CRN_TRY(crn_hdf5_lock(&h5));
    cairn_status rc = crn_hdf5_open(h5, path, &file);
    if (rc == CAIRN_OK) {
        rc = list(h5, file, group, ret);
        h5->H5Fclose(file);
    }
    crn_hdf5_unlock();
    return rc;
}
