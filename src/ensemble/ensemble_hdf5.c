/* SPDX-License-Identifier: BSD-3-Clause */
#include "ensemble/ensemble_hdf5.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "hdf5/hdf5.h"

void crn_datasets_done(crn_datasets *d)
{
    for (size_t i = 0; i < d->n; i++)
        free(d->at[i].data);
    crn_vec_done(d);
}

/* --- finding -------------------------------------------------------------------------------- */

typedef struct search {
    const crn_h5 *h5;
    const char *file, *list[CAIRN_PARAMETER + 1]; /* by role */
    crn_datasets *found;
} search;

/* Is the name one of those between spaces and commas? */
static bool lists(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *p = list; *p;) {
        p += strspn(p, " ,\t");
        size_t word = strcspn(p, " ,\t");
        const size_t skip = word > 0 && *p == '/';
        if (word - skip == n && memcmp(p + skip, name, n) == 0)
            return true;
        p += word;
    }
    return false;
}

static bool role_of(const search *s, const char *name, cairn_role *ret, bool *ret_named)
{
    for (int role = CAIRN_ASSIMILATED; role <= CAIRN_PARAMETER; role++)
        if (lists(s->list[role], name)) {
            *ret = (cairn_role)role;
            *ret_named = true;
            return true;
        }
    *ret = CAIRN_CARRIED;
    *ret_named = false;
    return lists(s->list[CAIRN_CARRIED], "*");
}

static cairn_status shape_of(const search *s, hid_t dataset, crn_state_field *f)
{
    hsize_t dims[H5S_MAX_RANK];
    hid_t space = s->h5->H5Dget_space(dataset);
    int n = s->h5->H5Sget_simple_extent_ndims(space);
    if (n >= 0 && n <= 8)
        n = s->h5->H5Sget_simple_extent_dims(space, dims, NULL);
    s->h5->H5Sclose(space);
    CRN_FAIL_IF(n < 0 || n > 8, CAIRN_EINVAL, "it has %d dimensions, 0 to 8 are possible", n);
    f->ndims = CRN_MAX(n, 1);
    f->global[0] = 1; /* a number alone */
    for (int d = 0; d < n; d++)
        f->global[d] = dims[d];
    for (int d = 0; d < f->ndims; d++)
        CRN_FAIL_IF(f->global[d] == 0, CAIRN_EINVAL, "it is empty");
    memcpy(f->count, f->global, sizeof f->count);
    return CAIRN_OK;
}

static cairn_status type_of(const search *s, hid_t dataset, crn_state_field *f)
{
    crn_hdf5_form *form;
    hid_t type = s->h5->H5Dget_type(dataset);
    cairn_status rc = crn_hdf5_form_of(s->h5, type, &form);
    s->h5->H5Tclose(type);
    CRN_TRY(rc);
    f->type = 0;
    for (cairn_type t = 1; t < 32 && form->kind == CRN_FORM_NUMBER; t++)
        if (cairn_type_bytes(t) > 0 && strcmp(cairn_type_name(t), form->number) == 0)
            f->type = t;
    crn_hdf5_form_free(form);
    CRN_FAIL_IF(f->type == 0, CAIRN_EINVAL, "its elements are no numbers");
    CRN_FAIL_IF(f->role != CAIRN_CARRIED && f->type != CAIRN_FLOAT32 && f->type != CAIRN_FLOAT64,
                CAIRN_EINVAL,
                "its elements are of type %s; observations change float32 and float64",
                cairn_type_name(f->type));
    return CAIRN_OK;
}

/* Fields have names without slashes. */
static void name_field(const char *path, crn_state_field *f)
{
    snprintf(f->name, sizeof f->name, "%.63s", path);
    for (char *c = f->name; *c; c++)
        if (*c == '/')
            *c = '.';
}

static cairn_status describe(search *s, const crn_hdf5_entry *entry, cairn_role role)
{
    crn_dataset d = {.field.role = role};
    snprintf(d.path, sizeof d.path, "%s", entry->name);
    name_field(entry->name, &d.field);
    CRN_FAIL_IF(strlen(entry->name) > 63 || !crn_name_is_safe(d.field.name), CAIRN_EINVAL,
                "its name is not 1 to 63 letters, digits, '.', '_', '-' and '/'");
    CRN_TRY(shape_of(s, entry->id, &d.field));
    CRN_TRY(type_of(s, entry->id, &d.field));
    CRN_TRY(crn_alloc(&d.data, crn_field_nbytes(&d.field)));
    cairn_status rc = crn_vec_push(s->found, d);
    if (rc < 0)
        free(d.data);
    return rc;
}

static cairn_status look(void *arg, const crn_hdf5_entry *entry)
{
    search *s = arg;
    cairn_role role;
    bool named;
    if (entry->kind != CRN_HDF5_DATASET)
        return CAIRN_OK;
    cairn_status rc = CAIRN_OK;
    if (role_of(s, entry->name, &role, &named)) {
        rc = describe(s, entry, role);
        if (rc < 0 && named)
            crn_err_prefix("'%s', dataset '%s': ", s->file, entry->name);
        else if (rc == CAIRN_EINVAL || rc == CAIRN_EUNSUPPORTED) {
            crn_err_take(&(crn_err){0}); /* '*' means those that can be carried */
            rc = CAIRN_OK;
        }
    }
    s->h5->H5Dclose(entry->id);
    return rc;
}

static cairn_status all_were_found(const search *s)
{
    for (int role = CAIRN_ASSIMILATED; role <= CAIRN_PARAMETER; role++)
        for (const char *p = s->list[role]; *p;) {
            char name[256];
            p += strspn(p, " ,\t/");
            size_t n = strcspn(p, " ,\t");
            bool found = n == 0 || (n == 1 && *p == '*');
            snprintf(name, sizeof name, "%.*s", (int)n, p);
            for (size_t i = 0; !found && i < s->found->n; i++)
                found = strcmp(s->found->at[i].path, name) == 0;
            CRN_FAIL_IF(!found, CAIRN_EINVAL, "'%s' has no dataset '%s'", s->file, name);
            p += n;
        }
    CRN_FAIL_IF(s->found->n == 0, CAIRN_EINVAL, "'%s': no dataset of it is a field", s->file);
    CRN_FAIL_IF(s->found->n > CRN_MEMBER_FIELDS, CAIRN_EINVAL, "'%s': more than %d fields", s->file,
                CRN_MEMBER_FIELDS);
    return CAIRN_OK;
}

cairn_status crn_datasets_find(const char *file, const char *assimilated, const char *carried,
                               const char *parameter, crn_datasets *ret)
{
    crn_datasets found = {0};
    search s = {.file = file, .list = {"", assimilated, carried, parameter}, .found = &found};
    hid_t id;
    CRN_TRY(crn_hdf5_lock(&s.h5));
    cairn_status rc = crn_hdf5_open(s.h5, file, &id);
    if (rc == CAIRN_OK) {
        rc = crn_hdf5_visit(s.h5, id, 0, look, &s);
        s.h5->H5Fclose(id);
    }
    crn_hdf5_unlock();
    if (rc == CAIRN_OK)
        rc = all_were_found(&s);
    if (rc < 0)
        crn_datasets_done(&found);
    else
        *ret = found;
    return rc;
}

/* --- reading and writing -------------------------------------------------------------------- */

/* Its shape must be that of the field: a model that writes another one has another state. */
static cairn_status check_shape(const crn_h5 *h5, hid_t dataset, const crn_dataset *d)
{
    crn_state_field is = d->field;
    const search s = {.h5 = h5};
    CRN_TRY(shape_of(&s, dataset, &is));
    CRN_FAIL_IF(is.ndims != d->field.ndims ||
                    memcmp(is.global, d->field.global, sizeof is.global) != 0,
                CAIRN_EMISMATCH, "it has another shape than in the first state");
    return CAIRN_OK;
}

static cairn_status move(const crn_h5 *h5, hid_t file, const crn_dataset *d, bool write)
{
    hid_t memory, dataset = h5->H5Oopen(file, d->path, H5P_DEFAULT);
    if (dataset < 0)
        return crn_hdf5_fail(h5, "it cannot be opened");
    cairn_status rc = check_shape(h5, dataset, d);
    if (rc == CAIRN_OK)
        rc = crn_hdf5_type(h5, cairn_type_name(d->field.type), &memory);
    if (rc == CAIRN_OK) {
        if (write ? h5->H5Dwrite(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, d->data) < 0
                  : h5->H5Dread(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, d->data) < 0)
            rc = crn_hdf5_fail(h5, "it cannot be %s", write ? "written" : "read");
        h5->H5Tclose(memory);
    }
    h5->H5Oclose(dataset);
    return rc;
}

static cairn_status move_all(const char *file, const crn_datasets *d, bool write)
{
    const crn_h5 *h5;
    CRN_TRY(crn_hdf5_lock(&h5));
    hid_t id = h5->H5Fopen(file, write ? H5F_ACC_RDWR : H5F_ACC_RDONLY, H5P_DEFAULT);
    cairn_status rc = id < 0 ? crn_hdf5_fail(h5, "cannot open '%s'", file) : CAIRN_OK;
    for (size_t i = 0; rc == CAIRN_OK && i < d->n; i++) {
        rc = move(h5, id, &d->at[i], write);
        if (rc < 0)
            crn_err_prefix("'%s', dataset '%s': ", file, d->at[i].path);
    }
    if (id >= 0 && h5->H5Fclose(id) < 0 && rc == CAIRN_OK)
        rc = crn_hdf5_fail(h5, "cannot close '%s'", file);
    crn_hdf5_unlock();
    return rc;
}

cairn_status crn_datasets_read(const char *file, crn_datasets *d)
{
    return move_all(file, d, false);
}

cairn_status crn_datasets_write(const char *file, const crn_datasets *d)
{
    return move_all(file, d, true);
}

/* --- ensembles ------------------------------------------------------------------------------ */

static cairn_status write_rows(const crn_h5 *h5, hid_t dataset, hid_t type,
                               const crn_state_field *f, unsigned char *const *state, uint32_t n)
{
    hsize_t start[9] = {0}, count[9] = {1};
    const int ndims = f->ndims + 1;
    for (int d = 0; d < f->ndims; d++)
        count[d + 1] = f->global[d];
    hid_t file = h5->H5Dget_space(dataset), memory = h5->H5Screate_simple(ndims, count, NULL);
    bool ok = file >= 0 && memory >= 0;
    for (uint32_t j = 0; ok && j < n; j++) {
        if (!state[j])
            continue;
        start[0] = j;
        ok = h5->H5Sselect_hyperslab(file, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
             h5->H5Dwrite(dataset, type, memory, file, H5P_DEFAULT, state[j] + f->at) >= 0;
    }
    cairn_status rc = ok ? CAIRN_OK : crn_hdf5_fail(h5, "cannot write field '%s'", f->name);
    h5->H5Sclose(memory);
    h5->H5Sclose(file);
    return rc;
}

static cairn_status write_field(const crn_h5 *h5, hid_t file, const crn_state_field *f,
                                unsigned char *const *state, uint32_t n, bool first)
{
    hsize_t dims[9] = {n};
    hid_t type;
    for (int d = 0; d < f->ndims; d++)
        dims[d + 1] = f->global[d];
    CRN_TRY(crn_hdf5_type(h5, cairn_type_name(f->type), &type));
    hid_t space = h5->H5Screate_simple(f->ndims + 1, dims, NULL);
    hid_t dataset;
    if (first)
        dataset = h5->H5Dcreate2(file, f->name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    else
        dataset = h5->H5Oopen(file, f->name, H5P_DEFAULT);
    cairn_status rc;
    if (dataset < 0)
        rc = crn_hdf5_fail(h5, "cannot make dataset '%s'", f->name);
    else
        rc = write_rows(h5, dataset, type, f, state, n);
    if (dataset >= 0)
        h5->H5Oclose(dataset);
    h5->H5Sclose(space);
    h5->H5Tclose(type);
    return rc;
}

static cairn_status write_members(const crn_h5 *h5, hid_t file, const uint32_t *member, uint32_t n)
{
    const hsize_t dims[] = {n};
    hid_t space = h5->H5Screate_simple(1, dims, NULL), type = h5->H5T_NATIVE_UINT32_g;
    hid_t dataset =
        h5->H5Dcreate2(file, "member", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    cairn_status rc = CAIRN_OK;
    if (dataset < 0 || h5->H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, member) < 0)
        rc = crn_hdf5_fail(h5, "cannot write dataset 'member'");
    if (dataset >= 0)
        h5->H5Dclose(dataset);
    h5->H5Sclose(space);
    return rc;
}

static cairn_status write_file(const crn_h5 *h5, const char *path, const crn_state_layout *l,
                               unsigned char *const *state, const uint32_t *member, uint32_t n,
                               bool first)
{
    hid_t file;
    if (first)
        file = h5->H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    else
        file = h5->H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    if (file < 0)
        return crn_hdf5_fail(h5, "cannot make '%s'", path);
    cairn_status rc = first ? write_members(h5, file, member, n) : CAIRN_OK;
    for (size_t i = 0; rc == CAIRN_OK && i < l->field.n; i++)
        rc = write_field(h5, file, &l->field.at[i], state, n, first);
    if (h5->H5Fclose(file) < 0 && rc == CAIRN_OK)
        rc = crn_hdf5_fail(h5, "cannot close '%s'", path);
    return rc;
}

cairn_status crn_ensemble_write(const char *file, const crn_state_layout *l,
                                unsigned char *const *state, const uint32_t *member, uint32_t n,
                                crn_ensemble_turn turn)
{
    const crn_h5 *h5;
    char *path;
    CRN_FAIL_IF(asprintf(&path, "%s.new", file) < 0, CAIRN_ENOMEM, "no memory for a path");
    cairn_status rc = crn_hdf5_lock(&h5);
    if (rc == CAIRN_OK) {
        rc = write_file(h5, path, l, state, member, n, turn.first);
        crn_hdf5_unlock();
    }
    if (rc == CAIRN_OK && turn.last && rename(path, file) != 0)
        rc = crn_fail_sys(errno, "cannot write '%s'", file);
    free(path);
    return rc;
}
