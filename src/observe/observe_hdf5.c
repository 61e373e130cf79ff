/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Observations from HDF5, which netCDF-4 is: a group for each type, with a dataset for each column;
 * or datasets in the first group, whose attribute 'type' names the type. Packed and missing values
 * are read by netCDF's conventions (scale_factor, add_offset, _FillValue, missing_value).
 */
#include "hdf5/hdf5.h"
#include "observe/observe_read.h"

#include <math.h>

enum { RECORDS_MAX = 1 << 30 };

typedef struct reader {
    const crn_h5 *h5;
    crn_obs *o;
    hid_t file;
    char group[CRN_OBS_NAME]; /* "" is the first one */
    char type[CRN_OBS_NAME];
    size_t n; /* observations of the group */
} reader;

/* A dataset of the group, to be closed; 0: there is none. */
static hid_t open_column(const reader *r, const char *name)
{
    char path[2 * CRN_OBS_NAME + 2];
    H5L_info_t info;
    snprintf(path, sizeof path, "%s%s%s", r->group, r->group[0] ? "/" : "", name);
    if (r->h5->H5Lget_info(r->file, path, &info, H5P_DEFAULT) < 0)
        return 0;
    hid_t id = r->h5->H5Oopen(r->file, path, H5P_DEFAULT);
    if (id > 0 && r->h5->H5Iget_type(id) == H5I_DATASET)
        return id;
    if (id > 0)
        r->h5->H5Oclose(id);
    return 0;
}

static cairn_status extent_of(const reader *r, hid_t dataset, const char *name, size_t *ret)
{
    hid_t space = r->h5->H5Dget_space(dataset);
    hssize_t n = space > 0 ? r->h5->H5Sget_simple_extent_npoints(space) : -1;
    if (space > 0)
        r->h5->H5Sclose(space);
    if (n < 0)
        return crn_hdf5_fail(r->h5, "'%s': cannot look at '%s/%s'", r->o->setup.path, r->group,
                             name);
    CRN_FAIL_IF(n > RECORDS_MAX, CAIRN_EINVAL, "'%s': '%s/%s' has %lld elements", r->o->setup.path,
                r->group, name, (long long)n);
    *ret = (size_t)n;
    return CAIRN_OK;
}

/* An attribute that is one number. */
static bool attribute(const reader *r, hid_t id, const char *name, double *ret)
{
    if (r->h5->H5Aexists(id, name) <= 0)
        return false;
    hid_t a = r->h5->H5Aopen(id, name, H5P_DEFAULT);
    hid_t space = a > 0 ? r->h5->H5Aget_space(a) : 0;
    bool good = space > 0 && r->h5->H5Sget_simple_extent_npoints(space) == 1 &&
                r->h5->H5Aread(a, r->h5->H5T_NATIVE_DOUBLE_g, ret) >= 0;
    if (space > 0)
        r->h5->H5Sclose(space);
    if (a > 0)
        r->h5->H5Aclose(a);
    return good;
}

static void unpack(const reader *r, hid_t dataset, double *v, size_t n)
{
    double fill = NAN, missing = NAN, scale = 1, offset = 0;
    (void)attribute(r, dataset, "_FillValue", &fill);
    (void)attribute(r, dataset, "missing_value", &missing);
    bool packed = attribute(r, dataset, "scale_factor", &scale);
    packed = attribute(r, dataset, "add_offset", &offset) || packed;
    for (size_t i = 0; i < n; i++)
        v[i] = v[i] == fill || v[i] == missing ? NAN : packed ? v[i] * scale + offset : v[i];
}

/* A column of numbers, the caller's to free; *ret stays NULL where there is none. expect: its
 * length, or SIZE_MAX for any. */
static cairn_status read_reals(const reader *r, const char *name, size_t expect, double **ret,
                               size_t *ret_n)
{
    size_t n = 0;
    double *v = NULL;
    hid_t d = open_column(r, name);
    if (d <= 0)
        return CAIRN_OK;
    cairn_status rc = extent_of(r, d, name, &n);
    if (rc == CAIRN_OK && expect != SIZE_MAX && n != expect)
        rc = crn_fail(CAIRN_EINVAL, "'%s': '%s/%s' has %zu elements, %zu are needed",
                      r->o->setup.path, r->group, name, n, expect);
    if (rc == CAIRN_OK)
        rc = crn_alloc(&v, n);
    if (rc == CAIRN_OK && n > 0 &&
        r->h5->H5Dread(d, r->h5->H5T_NATIVE_DOUBLE_g, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) < 0)
        rc = crn_hdf5_fail(r->h5, "'%s': cannot read '%s/%s'", r->o->setup.path, r->group, name);
    if (rc == CAIRN_OK)
        unpack(r, d, v, n);
    r->h5->H5Oclose(d);
    if (rc < 0) {
        free(v);
        return rc;
    }
    *ret = v;
    if (ret_n)
        *ret_n = n;
    return CAIRN_OK;
}

static cairn_status read_counts(const reader *r, const char *name, uint64_t **ret)
{
    double *v = NULL;
    uint64_t *u = NULL;
    CRN_TRY(read_reals(r, name, r->n, &v, NULL));
    if (!v)
        return CAIRN_OK;
    cairn_status rc = crn_alloc(&u, r->n);
    for (size_t i = 0; rc == CAIRN_OK && i < r->n; i++) {
        if (!(v[i] >= 0 && v[i] <= 9007199254740992.0) || v[i] != floor(v[i]))
            rc = crn_fail(CAIRN_EINVAL, "'%s': '%s/%s' has %g where a count is needed",
                          r->o->setup.path, r->group, name, v[i]);
        else
            u[i] = (uint64_t)v[i];
    }
    free(v);
    if (rc < 0)
        free(u);
    else
        *ret = u;
    return rc;
}

/* --- one type ------------------------------------------------------------------------------- */

typedef struct columns {
    double *value, *variance, *time, *place[CRN_OBS_DIMS], *covariance;
    uint64_t *cycle, *index, *block;
    size_t ncovariance;
    int ncoords;
} columns;

static void columns_done(columns *c)
{
    free(c->value);
    free(c->variance);
    free(c->time);
    for (int d = 0; d < CRN_OBS_DIMS; d++)
        free(c->place[d]);
    free(c->covariance);
    free(c->cycle);
    free(c->index);
    free(c->block);
}

static cairn_status read_place(const reader *r, columns *c)
{
    static const char *const name[CRN_OBS_DIMS][2] = {{"x", "lon"}, {"y", "lat"}, {"z", "height"}};
    for (int d = 0; d < CRN_OBS_DIMS; d++) {
        for (int k = 0; k < 2 && !c->place[d]; k++)
            CRN_TRY(read_reals(r, name[d][k], r->n, &c->place[d], NULL));
        if (!c->place[d])
            break;
        c->ncoords = d + 1;
    }
    return CAIRN_OK;
}

static cairn_status read_columns(reader *r, columns *c)
{
    CRN_TRY(read_reals(r, "value", SIZE_MAX, &c->value, &r->n));
    CRN_TRY(read_reals(r, "variance", r->n, &c->variance, NULL));
    CRN_TRY(read_reals(r, "time", r->n, &c->time, NULL));
    CRN_TRY(read_reals(r, "covariance", SIZE_MAX, &c->covariance, &c->ncovariance));
    CRN_TRY(read_counts(r, "cycle", &c->cycle));
    CRN_TRY(read_counts(r, "index", &c->index));
    CRN_TRY(read_counts(r, "block", &c->block));
    CRN_TRY(read_place(r, c));
    CRN_FAIL_IF(!c->index && c->ncoords == 0, CAIRN_EINVAL,
                "'%s': '%s' has neither 'index' nor 'x' (or 'lon'): where was it observed?",
                r->o->setup.path, r->type);
    return CAIRN_OK;
}

static cairn_status add_records(reader *r, const columns *c, uint32_t type)
{
    char where[256];
    CRN_FAIL_IF(!c->variance && !c->covariance && !(r->o->type.at[type].variance > 0), CAIRN_EINVAL,
                "'%s': '%s' has no 'variance', nor has [observation %s]", r->o->setup.path, r->type,
                r->type);
    for (size_t i = 0; i < r->n; i++) {
        crn_obs_record x = {.type = type,
                            .cycle = c->cycle ? c->cycle[i] : 0,
                            .index = c->index ? c->index[i] : CRN_OBS_NO_INDEX,
                            .time = c->time ? c->time[i] : NAN,
                            .value = c->value[i],
                            .variance = c->variance     ? c->variance[i]
                                        : c->covariance ? 1 /* the block's diagonal comes */
                                                        : NAN,
                            .group = c->block ? (uint32_t)c->block[i] : CRN_OBS_NONE,
                            .ncoords = c->ncoords};
        for (int d = 0; d < c->ncoords; d++)
            x.place[d] = c->place[d][i];
        snprintf(where, sizeof where, "'%.120s', %s %zu", r->o->setup.path, r->type, i);
        CRN_TRY(crn_obs_add(r->o, where, c->cycle != NULL, &x));
    }
    return CAIRN_OK;
}

/* How many observations of its block and cycle there are from record at on, and where the block
 * begins: only there are covariances read. */
static size_t block_length(const crn_obs_record *all, size_t n, size_t at)
{
    size_t length = 0;
    for (size_t i = at; i < n && all[i].cycle == all[at].cycle && all[i].group == all[at].group;
         i++)
        length++;
    return length;
}

/* Square matrices one after the other, in the order of the blocks, whose observations must follow
 * one another. */
static cairn_status add_matrices(reader *r, const columns *c, uint32_t type, size_t first)
{
    size_t used = 0;
    const crn_obs_record *all = r->o->record.at + first;
    CRN_FAIL_IF(!c->block, CAIRN_EINVAL, "'%s': '%s' has 'covariance', but no 'block'",
                r->o->setup.path, r->type);
    for (size_t i = 0, n; i < r->n; i += n) {
        n = block_length(all, r->n, i);
        crn_obs_matrix m = {.cycle = all[i].cycle, .type = type, .group = all[i].group, .n = n};
        CRN_FAIL_IF(n > CRN_OBS_BLOCK || n * n > c->ncovariance - used, CAIRN_EINVAL,
                    "'%s': '%s/covariance' has too few elements, or block %u too many "
                    "observations (at most %d)",
                    r->o->setup.path, r->type, m.group, CRN_OBS_BLOCK);
        CRN_TRY(crn_alloc(&m.value, n * n));
        memcpy(m.value, c->covariance + used, n * n * sizeof *m.value);
        used += n * n;
        cairn_status rc = crn_vec_push(&r->o->matrix, m);
        if (rc < 0)
            free(m.value);
        CRN_TRY(rc);
    }
    CRN_FAIL_IF(used != c->ncovariance, CAIRN_EINVAL,
                "'%s': '%s/covariance' has %zu elements, its blocks need %zu", r->o->setup.path,
                r->type, c->ncovariance, used);
    return CAIRN_OK;
}

static cairn_status read_group(reader *r)
{
    columns c = {0};
    uint32_t type;
    cairn_status rc;
    const size_t first = r->o->record.n;
    CRN_TRY_OUT(rc, read_columns(r, &c));
    CRN_TRY_OUT(rc, crn_obs_type_of(r->o, r->type, &type));
    CRN_TRY_OUT(rc, add_records(r, &c, type));
    if (c.covariance)
        CRN_TRY_OUT(rc, add_matrices(r, &c, type, first));
out:
    columns_done(&c);
    return rc;
}

/* --- the file ------------------------------------------------------------------------------- */

/* The attribute 'type' of the file; else that of the only type that the study declares. */
static cairn_status name_root(reader *r)
{
    const crn_h5 *h5 = r->h5;
    r->type[0] = 0;
    if (h5->H5Aexists(r->file, "type") > 0) {
        hid_t a = h5->H5Aopen(r->file, "type", H5P_DEFAULT), t = h5->H5Aget_type(a);
        char *text = NULL;
        size_t n = h5->H5Tget_size(t);
        if (h5->H5Tis_variable_str(t) > 0 && h5->H5Aread(a, t, &text) >= 0 && text) {
            snprintf(r->type, sizeof r->type, "%.63s", text);
            h5->H5free_memory(text);
        } else if (h5->H5Tget_class(t) == H5T_STRING && n < sizeof r->type &&
                   h5->H5Aread(a, t, r->type) >= 0)
            r->type[n] = 0;
        h5->H5Tclose(t);
        h5->H5Aclose(a);
    } else if (r->o->type.n == 1)
        snprintf(r->type, sizeof r->type, "%s", r->o->type.at[0].name);
    CRN_FAIL_IF(!r->type[0], CAIRN_EINVAL,
                "'%s' has observations in its first group, and no attribute 'type' says of what",
                r->o->setup.path);
    return CAIRN_OK;
}

static bool has_values(const reader *r)
{
    hid_t d = open_column(r, "value");
    if (d > 0)
        r->h5->H5Oclose(d);
    return d > 0;
}

static cairn_status read_types(reader *r)
{
    H5G_info_t info;
    bool any = false;
    if (r->h5->H5Gget_info(r->file, &info) < 0)
        return crn_hdf5_fail(r->h5, "cannot look into '%s'", r->o->setup.path);
    if (has_values(r)) {
        any = true;
        CRN_TRY(name_root(r));
        CRN_TRY(read_group(r));
    }
    for (hsize_t i = 0; i < info.nlinks; i++) {
        ssize_t n = r->h5->H5Lget_name_by_idx(r->file, ".", H5_INDEX_NAME, H5_ITER_INC, i, r->group,
                                              sizeof r->group, H5P_DEFAULT);
        if (n <= 0 || (size_t)n >= sizeof r->group || !has_values(r))
            continue;
        any = true;
        memcpy(r->type, r->group, sizeof r->type);
        CRN_TRY(read_group(r));
    }
    CRN_FAIL_IF(!any, CAIRN_EINVAL, "'%s' has no observations: no group has a dataset 'value'",
                r->o->setup.path);
    return CAIRN_OK;
}

cairn_status crn_obs_read_hdf5(crn_obs *o)
{
    reader r = {.o = o};
    CRN_TRY(crn_hdf5_lock(&r.h5));
    cairn_status rc = crn_hdf5_open(r.h5, o->setup.path, &r.file);
    if (rc == CAIRN_OK) {
        rc = read_types(&r);
        r.h5->H5Fclose(r.file);
    }
    crn_hdf5_unlock();
    return rc;
}
