/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Looking through a file that somebody else wrote.
 */
#include "hdf5/hdf5.h"

#include <errno.h>
#include <unistd.h>

enum { GROUPS_MAX = 64 };

typedef struct walk {
    const crn_h5 *h5;
    crn_hdf5_fn *fn;
    void *arg;
    uint64_t *nskipped;
} walk;

static cairn_status visit_group(const walk *w, hid_t group, const char *path, int depth);

/* An object of a group: a dataset, or a group again. */
static cairn_status visit_object(const walk *w, hid_t group, const char *path, const char *link,
                                 int depth)
{
    char name[CRN_HDF5_NAME + 1];
    int n = snprintf(name, sizeof name, "%s%s%s", path, *path ? "/" : "", link);
    CRN_FAIL_IF(n < 0 || (size_t)n >= sizeof name, CAIRN_EINVAL,
                "'%s...': a variable's name has at most %d bytes", name, CRN_HDF5_NAME);
    hid_t o = w->h5->H5Oopen(group, link, H5P_DEFAULT);
    if (o < 0) {
        w->h5->H5Eclear2(H5E_DEFAULT);
        ++*w->nskipped;
        return CAIRN_OK;
    }
    const H5I_type_t kind = w->h5->H5Iget_type(o);
    if (kind == H5I_DATASET)
        return w->fn(w->arg, name, o);
    cairn_status rc = kind == H5I_GROUP ? visit_group(w, o, name, depth + 1) : CAIRN_OK;
    w->h5->H5Oclose(o);
    return rc;
}

static cairn_status visit_group(const walk *w, hid_t group, const char *path, int depth)
{
    const crn_h5 *h5 = w->h5;
    H5G_info_t info;
    char link[CRN_HDF5_NAME + 1];
    cairn_status rc = CAIRN_OK;
    CRN_FAIL_IF(depth > GROUPS_MAX, CAIRN_EUNSUPPORTED, "'%s': more than %d groups in each other",
                path, GROUPS_MAX);
    if (h5->H5Gget_info(group, &info) < 0)
        return crn_hdf5_fail(h5, "cannot read group '/%s'", path);
    for (hsize_t i = 0; i < info.nlinks && rc == CAIRN_OK; i++) {
        ssize_t n = h5->H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, link,
                                           sizeof link, H5P_DEFAULT);
        if (n < 0)
            return crn_hdf5_fail(h5, "cannot read group '/%s'", path);
        CRN_FAIL_IF(n >= (ssize_t)sizeof link, CAIRN_EINVAL,
                    "'%s...': a variable's name has at most %d bytes", link, CRN_HDF5_NAME);
        rc = visit_object(w, group, path, link, depth);
    }
    return rc;
}

cairn_status crn_hdf5_visit(const crn_h5 *h5, hid_t file, crn_hdf5_fn *fn, void *arg,
                            uint64_t *nskipped)
{
    const walk w = {h5, fn, arg, nskipped};
    hid_t root = h5->H5Oopen(file, "/", H5P_DEFAULT);
    if (root < 0)
        return crn_hdf5_fail(h5, "cannot read its first group");
    cairn_status rc = visit_group(&w, root, "", 0);
    h5->H5Oclose(root);
    return rc;
}

cairn_status crn_hdf5_open(const crn_h5 *h5, const char *path, hid_t *ret)
{
    if (access(path, R_OK) < 0)
        return crn_fail_sys(errno, "cannot read '%s'", path);
    hid_t file = h5->H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file < 0)
        return crn_hdf5_fail(h5, "cannot open '%s' as HDF5", path);
    *ret = file;
    return CAIRN_OK;
}
