/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Looking through a file that somebody else wrote.
 */
#include "hdf5/hdf5.h"

#include <errno.h>
#include <unistd.h>

enum { GROUPS_MAX = 64, TARGET_MAX = 600 };

/* Which group of which file, and by which path it was met. */
typedef struct group_id {
    unsigned long file;
    haddr_t addr;
    char *path;
} group_id;

typedef struct walk {
    const crn_h5 *h5;
    hid_t file;
    unsigned flags;
    crn_hdf5_fn *fn;
    void *arg;
    uint64_t nentries;
    CRN_VEC(group_id) met; /* ALL: the groups that the walk is in; otherwise those that several
                              links lead to */
} walk;

static cairn_status visit_group(walk *w, hid_t group, const char *path, int depth);

static cairn_status report(walk *w, const char *name, crn_hdf5_kind kind, hid_t id,
                           const char *text)
{
    const crn_hdf5_entry e = {.name = name, .kind = kind, .id = id, .text = text};
    CRN_FAIL_IF(++w->nentries > CRN_HDF5_ENTRIES, CAIRN_EUNSUPPORTED,
                "links lead to more than %d groups and datasets", CRN_HDF5_ENTRIES);
    return w->fn(w->arg, &e);
}

/* Takes the dataset. */
static cairn_status visit_dataset(walk *w, const char *name, hid_t dataset)
{
    bool near = false;
    cairn_status rc = crn_hdf5_is_near(w->h5, w->file, name, dataset, w->flags, &near);
    if (rc == CAIRN_OK && near) {
        const bool within = crn_hdf5_is_within(w->h5, w->file, dataset);
        const crn_hdf5_entry e = {
            .name = name, .kind = CRN_HDF5_DATASET, .id = dataset, .within = within};
        return w->fn(w->arg, &e);
    }
    w->h5->H5Dclose(dataset);
    if (rc == CAIRN_OK)
        return report(w, name, CRN_HDF5_FAR, 0, "its data lies in other files");
    const bool missing = rc == CAIRN_ENOTFOUND || rc == CAIRN_EUNSUPPORTED;
    if (!(w->flags & CRN_HDF5_ALL) || !missing)
        return rc;
    char why[CRN_ERR_TEXT];
    snprintf(why, sizeof why, "%s", crn_err_peek()->text);
    return report(w, name, CRN_HDF5_FAR, 0, why);
}

/*
 * Was the group met before, and where? One that lies within itself would never end; without ALL
 * those count, too, that lie in each other by two links each, which would take longer than anybody
 * lives (with ALL, entries are counted).
 */
static cairn_status meet(walk *w, hid_t group, const char *path, const char **ret_met)
{
    H5O_info_t info;
    char *copy;
    *ret_met = NULL;
    if (w->h5->H5Oget_info2(group, &info, H5O_INFO_BASIC) < 0)
        return crn_hdf5_fail(w->h5, "cannot read a group");
    if (info.rc < 2 && !(w->flags & CRN_HDF5_ALL))
        return CAIRN_OK;
    for (size_t i = 0; i < w->met.n; i++) {
        const group_id *g = &w->met.at[i];
        if (g->file == info.fileno && g->addr == info.addr) {
            *ret_met = g->path;
            return CAIRN_OK;
        }
    }
    CRN_TRY(crn_strdup(path, &copy));
    cairn_status rc = crn_vec_push(&w->met, ((group_id){info.fileno, info.addr, copy}));
    if (rc < 0)
        free(copy);
    return rc;
}

/* Leave a group that the walk is in no longer. */
static void leave(walk *w, size_t nmet)
{
    while ((w->flags & CRN_HDF5_ALL) && w->met.n > nmet)
        free(w->met.at[--w->met.n].path);
}

static cairn_status enter(walk *w, hid_t group, const char *path, int depth)
{
    const size_t nmet = w->met.n;
    const char *met;
    CRN_TRY(meet(w, group, path, &met));
    if (met)
        return report(w, path, CRN_HDF5_AGAIN, 0, met);
    cairn_status rc = report(w, path, CRN_HDF5_GROUP, group, NULL);
    if (rc == CAIRN_OK)
        rc = visit_group(w, group, path, depth);
    leave(w, nmet);
    return rc;
}

/* Takes the object. A group to which a soft link leads has a place of its own, which is enough
 * without ALL. */
static cairn_status visit_opened(walk *w, const char *name, hid_t o, bool own, int depth)
{
    const H5I_type_t kind = w->h5->H5Iget_type(o);
    cairn_status rc = CAIRN_OK;
    if (kind == H5I_DATASET)
        return visit_dataset(w, name, o);
    if (kind == H5I_DATATYPE)
        rc = report(w, name, CRN_HDF5_TYPE, o, NULL);
    else if (kind == H5I_GROUP && (own || (w->flags & CRN_HDF5_ALL)))
        rc = enter(w, o, name, depth + 1);
    else
        rc = report(w, name, CRN_HDF5_AGAIN, 0, "");
    w->h5->H5Oclose(o);
    return rc;
}

/* Where a link leads, in words. */
static void describe_target(const crn_h5 *h5, hid_t group, const char *link, const H5L_info_t *info,
                            char *buf, size_t cap)
{
    char value[TARGET_MAX];
    const char *file = NULL, *path = NULL;
    unsigned flags;
    snprintf(buf, cap, "its place is not known");
    if (info->type < H5L_TYPE_SOFT || info->u.val_size >= sizeof value ||
        h5->H5Lget_val(group, link, value, sizeof value, H5P_DEFAULT) < 0)
        return;
    value[info->u.val_size] = 0;
    if (info->type == H5L_TYPE_SOFT)
        snprintf(buf, cap, "'%s'", value);
    else if (info->type == H5L_TYPE_EXTERNAL &&
             h5->H5Lunpack_elink_val(value, info->u.val_size, &flags, &file, &path) >= 0)
        snprintf(buf, cap, "'%s' in '%s'", path, file);
}

/* What a link leads to, if it may be followed; negative: it may not, or leads nowhere. */
static hid_t open_target(const walk *w, hid_t group, const char *link, H5L_type_t type,
                         crn_hdf5_kind *ret_instead)
{
    const crn_h5 *h5 = w->h5;
    const bool far = type != H5L_TYPE_HARD && type != H5L_TYPE_SOFT;
    const bool follow = w->flags & CRN_HDF5_FOLLOW;
    *ret_instead = far ? CRN_HDF5_OUTWARD : CRN_HDF5_LOST;
    if (far && !follow)
        return -1;
    hid_t o = h5->H5Oopen(group, link, H5P_DEFAULT);
    if (o < 0 || type == H5L_TYPE_HARD || follow || crn_hdf5_is_within(h5, w->file, o))
        return o;
    h5->H5Oclose(o);
    *ret_instead = CRN_HDF5_OUTWARD; /* a soft one, through another */
    return -1;
}

/* An object of a group: a dataset, or a group again. */
static cairn_status visit_object(walk *w, hid_t group, const char *path, const char *link,
                                 int depth)
{
    char name[CRN_HDF5_NAME + 1], target[2 * TARGET_MAX];
    H5L_info_t info = {.type = H5L_TYPE_ERROR};
    crn_hdf5_kind instead;
    int n = snprintf(name, sizeof name, "%s%s%s", path, *path ? "/" : "", link);
    CRN_FAIL_IF(n < 0 || (size_t)n >= sizeof name, CAIRN_EINVAL,
                "'%s...': a variable's name has at most %d bytes", name, CRN_HDF5_NAME);
    (void)w->h5->H5Lget_info(group, link, &info, H5P_DEFAULT);
    hid_t o = open_target(w, group, link, info.type, &instead);
    if (o >= 0)
        return visit_opened(w, name, o, info.type == H5L_TYPE_HARD, depth);
    w->h5->H5Eclear2(H5E_DEFAULT);
    describe_target(w->h5, group, link, &info, target, sizeof target);
    return report(w, name, instead, 0, target);
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

cairn_status crn_hdf5_visit(const crn_h5 *h5, hid_t file, unsigned flags, crn_hdf5_fn *fn,
                            void *arg)
{
    walk w = {.h5 = h5, .file = file, .flags = flags, .fn = fn, .arg = arg};
    hid_t root = h5->H5Oopen(file, "/", H5P_DEFAULT);
    if (root < 0)
        return crn_hdf5_fail(h5, "cannot read its first group");
    cairn_status rc = enter(&w, root, "", 0);
    h5->H5Oclose(root);
    for (size_t i = 0; i < w.met.n; i++)
        free(w.met.at[i].path);
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
