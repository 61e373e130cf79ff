/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Looking through a file that somebody else wrote.
 */
#include "hdf5/hdf5.h"

#include <errno.h>
#include <unistd.h>

enum { GROUPS_MAX = 64 };

/* Which group of which file. */
typedef struct group_id {
    unsigned long file;
    haddr_t addr;
} group_id;

typedef struct walk {
    const crn_h5 *h5;
    hid_t file;
    crn_hdf5_fn *fn;
    void *arg;
    uint64_t *nskipped;
    CRN_VEC(group_id) met; /* groups that several links lead to */
} walk;

static cairn_status visit_group(walk *w, hid_t group, const char *path, int depth);

/* Takes the dataset. */
static cairn_status visit_dataset(walk *w, const char *name, hid_t dataset)
{
    bool near;
    cairn_status rc = crn_hdf5_is_near(w->h5, w->file, name, dataset, &near);
    if (rc == CAIRN_OK && near)
        return w->fn(w->arg, name, dataset);
    *w->nskipped += rc == CAIRN_OK;
    w->h5->H5Dclose(dataset);
    return rc;
}

/* Was the group met before? One that lies within itself would never end, and those that lie in each
 * other by two links each would take longer than anybody lives. */
static cairn_status meet(walk *w, hid_t group, bool *ret_new)
{
    H5O_info_t info;
    *ret_new = true;
    if (w->h5->H5Oget_info2(group, &info, H5O_INFO_BASIC) < 0)
        return crn_hdf5_fail(w->h5, "cannot read a group");
    if (info.rc < 2)
        return CAIRN_OK;
    for (size_t i = 0; i < w->met.n && *ret_new; i++)
        *ret_new = w->met.at[i].file != info.fileno || w->met.at[i].addr != info.addr;
    return *ret_new ? crn_vec_push(&w->met, ((group_id){info.fileno, info.addr})) : CAIRN_OK;
}

/* Takes the object. A group to which a link leads from elsewhere has a place of its own. */
static cairn_status visit_opened(walk *w, const char *name, hid_t o, bool own, int depth)
{
    const H5I_type_t kind = w->h5->H5Iget_type(o);
    bool new = own;
    if (kind == H5I_DATASET)
        return visit_dataset(w, name, o);
    cairn_status rc = kind == H5I_GROUP && own ? meet(w, o, &new) : CAIRN_OK;
    if (rc == CAIRN_OK && kind == H5I_GROUP && new)
        rc = visit_group(w, o, name, depth + 1);
    else
        *w->nskipped += kind == H5I_GROUP;
    w->h5->H5Oclose(o);
    return rc;
}

/* An object of a group: a dataset, or a group again. */
static cairn_status visit_object(walk *w, hid_t group, const char *path, const char *link,
                                 int depth)
{
    char name[CRN_HDF5_NAME + 1];
    H5L_info_t info = {.type = H5L_TYPE_ERROR};
    int n = snprintf(name, sizeof name, "%s%s%s", path, *path ? "/" : "", link);
    CRN_FAIL_IF(n < 0 || (size_t)n >= sizeof name, CAIRN_EINVAL,
                "'%s...': a variable's name has at most %d bytes", name, CRN_HDF5_NAME);
    (void)w->h5->H5Lget_info(group, link, &info, H5P_DEFAULT);
    const bool here = info.type == H5L_TYPE_HARD || info.type == H5L_TYPE_SOFT;
    hid_t o = here ? w->h5->H5Oopen(group, link, H5P_DEFAULT) : -1;
    if (o >= 0)
        return visit_opened(w, name, o, info.type == H5L_TYPE_HARD, depth);
    w->h5->H5Eclear2(H5E_DEFAULT);
    ++*w->nskipped;
    return CAIRN_OK;
}

static cairn_status visit_group(walk *w, hid_t group, const char *path, int depth)
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
    walk w = {.h5 = h5, .file = file, .fn = fn, .arg = arg, .nskipped = nskipped};
    bool new;
    hid_t root = h5->H5Oopen(file, "/", H5P_DEFAULT);
    if (root < 0)
        return crn_hdf5_fail(h5, "cannot read its first group");
    cairn_status rc = meet(&w, root, &new);
    if (rc == CAIRN_OK)
        rc = visit_group(&w, root, "", 0);
    h5->H5Oclose(root);
    crn_vec_done(&w.met);
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
