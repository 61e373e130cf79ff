/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where the data of a dataset lies. A file that somebody else wrote does not choose which others
 * are read: a dataset may be made of such as lie in its file or below that file's directory, and
 * these of others again. HDF5 follows wherever that leads, so each step is looked at before.
 */
#include "hdf5/hdf5.h"

#include <limits.h>
#include <unistd.h>

enum { STEPS_MAX = 8, PIECES_MAX = 1 << 20 };

typedef struct look {
    const crn_h5 *h5;
    const char *name; /* of the dataset that all began with, for messages */
    bool follow;      /* wherever that leads */
    uint32_t npieces; /* looked at so far */
} look;

static cairn_status look_at(look *l, hid_t file, hid_t dataset, int step, bool *ret_near);

bool crn_hdf5_is_within(const crn_h5 *h5, hid_t file, hid_t object)
{
    H5O_info_t whole, one;
    hid_t root = h5->H5Oopen(file, "/", H5P_DEFAULT);
    const bool known = root >= 0 && h5->H5Oget_info2(root, &whole, H5O_INFO_BASIC) >= 0 &&
                       h5->H5Oget_info2(object, &one, H5O_INFO_BASIC) >= 0;
    if (root >= 0)
        h5->H5Oclose(root);
    return known && whole.fileno == one.fileno;
}

/* A dataset that others are made of: it must be there, since HDF5 shows zeros instead. */
static cairn_status look_at_source(look *l, hid_t file, const char *path, const char *source,
                                   int step, bool *ret_near)
{
    const crn_h5 *h5 = l->h5;
    hid_t o = h5->H5Oopen(file, source, H5P_DEFAULT);
    cairn_status rc = CAIRN_OK;
    if (o < 0 || h5->H5Iget_type(o) != H5I_DATASET)
        rc = crn_fail(CAIRN_ENOTFOUND, "dataset '%s' is made of '%s' in '%s', which has none",
                      l->name, source, path);
    else
        rc = look_at(l, file, o, step + 1, ret_near);
    if (o >= 0)
        h5->H5Oclose(o);
    return rc;
}

static bool is_itself(const char *name)
{
    return strcmp(name, ".") == 0;
}

/* The path of a file that a dataset of another one names, where HDF5 looks for it first. */
static bool place_file(const crn_h5 *h5, hid_t from, const char *name, char *ret, size_t cap)
{
    const ssize_t n = h5->H5Fget_name(from, ret, cap);
    if (n < 0 || (size_t)n >= cap || is_itself(name))
        return n >= 0 && (size_t)n < cap;
    if (name[0] == '/')
        return (size_t)snprintf(ret, cap, "%s", name) < cap;
    char *slash = strrchr(ret, '/');
    char *end = slash ? slash + 1 : ret;
    const size_t room = cap - (size_t)(end - ret);
    return (size_t)snprintf(end, room, "%s", name) < room;
}

/* A name as it is meant: "%%" is '%'. False: another '%' makes it stand for any number of names. */
static bool unescape(char *name)
{
    char *to = name;
    for (; *name; name++) {
        if (*name == '%' && *++name != '%')
            return false;
        *to++ = *name;
    }
    *to = 0;
    return true;
}

static bool is_below(const char *file)
{
    return file[0] != '/' && !strstr(file, "..");
}

static cairn_status look_at_piece(look *l, hid_t file, hid_t properties, size_t i, int step,
                                  bool *ret_near)
{
    const crn_h5 *h5 = l->h5;
    char name[PATH_MAX], source[PATH_MAX], path[PATH_MAX];
    const ssize_t n = h5->H5Pget_virtual_filename(properties, i, name, sizeof name);
    const ssize_t m = h5->H5Pget_virtual_dsetname(properties, i, source, sizeof source);
    hid_t other = file;
    *ret_near = n > 0 && n < (ssize_t)sizeof name && m > 0 && m < (ssize_t)sizeof source &&
                unescape(name) && (l->follow || is_below(name)) && unescape(source) &&
                place_file(h5, file, name, path, sizeof path);
    if (!*ret_near)
        return CAIRN_OK;
    CRN_FAIL_IF(++l->npieces > PIECES_MAX, CAIRN_EUNSUPPORTED,
                "dataset '%s' is made of more than %d pieces", l->name, PIECES_MAX);
    if (!is_itself(name)) {
        CRN_FAIL_IF(access(path, R_OK) < 0, CAIRN_ENOTFOUND,
                    "dataset '%s' is made of '%s', which is not there", l->name, path);
        CRN_TRY(crn_hdf5_open(h5, path, &other));
    }
    cairn_status rc = look_at_source(l, other, path, source, step, ret_near);
    if (other != file)
        h5->H5Fclose(other);
    return rc;
}

static cairn_status look_at(look *l, hid_t file, hid_t dataset, int step, bool *ret_near)
{
    const crn_h5 *h5 = l->h5;
    cairn_status rc = CAIRN_OK;
    size_t n = 0;
    CRN_FAIL_IF(step > STEPS_MAX, CAIRN_EUNSUPPORTED,
                "dataset '%s' is made of others, and these again, in more than %d steps", l->name,
                STEPS_MAX);
    hid_t properties = h5->H5Dget_create_plist(dataset);
    *ret_near = properties >= 0 && (l->follow || (crn_hdf5_is_within(h5, file, dataset) &&
                                                  h5->H5Pget_external_count(properties) <= 0));
    if (*ret_near && h5->H5Pget_layout(properties) == H5D_VIRTUAL)
        h5->H5Pget_virtual_count(properties, &n);
    for (size_t i = 0; i < n && *ret_near && rc == CAIRN_OK; i++)
        rc = look_at_piece(l, file, properties, i, step, ret_near);
    if (properties >= 0)
        h5->H5Pclose(properties);
    h5->H5Eclear2(H5E_DEFAULT); /* to ask for what a dataset does not have is a failure to HDF5 */
    return rc;
}

cairn_status crn_hdf5_is_near(const crn_h5 *h5, hid_t file, const char *name, hid_t dataset,
                              unsigned flags, bool *ret)
{
    look l = {.h5 = h5, .name = name, .follow = flags & CRN_HDF5_FOLLOW};
    bool near;
    hid_t own = l.follow ? h5->H5Iget_file_id(dataset) : -1; /* a link may have led to another */
    cairn_status rc = look_at(&l, own >= 0 ? own : file, dataset, 0, &near);
    if (own >= 0)
        h5->H5Fclose(own);
    if (rc == CAIRN_OK)
        *ret = near;
    return rc;
}
