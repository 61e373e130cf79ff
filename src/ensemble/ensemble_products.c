/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a study makes for others to look at: mean and spread of the members, in a file of HDF5 for
 * each cycle, products/cycleNNNNNN.h5, with the observations beside them, or as states on the
 * study's shelf; and the truth of a twin experiment, which is on a shelf of its own.
 */
#include "ensemble/ensemble_update.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const product_names[] = {"background/mean", "background/spread", "analysis/mean",
                                            "analysis/spread"};

static cairn_status shelf_failed(int rc)
{
    return crn_fail((cairn_status)rc, "%s", cairn_error_text());
}

/* --- states --------------------------------------------------------------------------------- */

/* Rows as a state of the assimilated fields, all of float64. */
static cairn_status put_state(crn_update *u, const char *key, double *row)
{
    const crn_state_layout *l = &u->s->layout;
    cairn_field field[CRN_MEMBER_FIELDS];
    size_t n = 0;
    for (size_t f = 0; f < l->field.n; f++) {
        if (l->field.at[f].role == CAIRN_CARRIED)
            continue;
        field[n] = crn_layout_field(l, f, (const unsigned char *)row);
        field[n].data = row;
        field[n].type = CAIRN_FLOAT64;
        row += crn_field_nbytes(&l->field.at[f]) / cairn_type_bytes(l->field.at[f].type);
        n++;
    }
    int rc = cairn_state_put(u->s->keeper.shelf, key, u->s->cycle, NULL, field, n);
    return rc < 0 ? shelf_failed(rc) : CAIRN_OK;
}

static cairn_status put_states(crn_update *u)
{
    static const char *const key[] = {"mean.background", "spread.background", "mean.analysis",
                                      "spread.analysis"};
    for (int k = 0; k < 4; k++)
        CRN_TRY(put_state(u, key[k], u->product[k]));
    return CAIRN_OK;
}

/* --- files ---------------------------------------------------------------------------------- */

static cairn_status put_rows(crn_update *u, crn_obs_file *file, const char *group,
                             const double *row)
{
    const crn_state_layout *l = &u->s->layout;
    char name[128];
    for (size_t f = 0; f < l->field.n; f++) {
        const crn_state_field *x = &l->field.at[f];
        if (x->role == CAIRN_CARRIED)
            continue;
        snprintf(name, sizeof name, "%s/%s", group, x->name);
        CRN_TRY(crn_obs_file_put(file, name, x->ndims, x->global, row));
        row += crn_field_nbytes(x) / cairn_type_bytes(x->type);
    }
    return CAIRN_OK;
}

static cairn_status put_truth(crn_update *u, crn_obs_file *file)
{
    double *row;
    CRN_TRY(crn_alloc(&row, u->s->layout.nrows));
    crn_rows_read(&u->s->layout, u->truth, row);
    cairn_status rc = put_rows(u, file, "truth", row);
    free(row);
    return rc;
}

/* Observations that were used: a column each of what, where, and how far from the members. */
typedef enum column { VALUE, VARIANCE, MEAN, SPREAD, TYPE, X, Y, Z, COLUMNS } column;

static void fill_columns(const crn_update *u, double *v)
{
    const size_t n = u->set->n;
    for (size_t i = 0; i < n; i++) {
        const crn_obs_item *item = &u->set->item[i];
        double mean = 0, square = 0;
        for (uint32_t j = 0; j < u->n; j++)
            mean += u->y[i + j * n] / u->n;
        for (uint32_t j = 0; j < u->n; j++)
            square += (u->y[i + j * n] - mean) * (u->y[i + j * n] - mean) / (u->n - 1);
        v[i + VALUE * n] = item->value;
        v[i + VARIANCE * n] = item->variance;
        v[i + MEAN * n] = mean;
        v[i + SPREAD * n] = sqrt(square);
        v[i + TYPE * n] = item->type;
        for (int d = 0; d < CRN_OBS_DIMS; d++)
            v[i + (size_t)(X + d) * n] = item->placed && d < u->l.ndims ? item->place[d] : NAN;
    }
}

static cairn_status put_observations(crn_update *u, crn_obs_file *file)
{
    static const char *const name[COLUMNS] = {"value", "variance", "mean", "spread",
                                              "type",  "x",        "y",    "z"};
    const uint64_t n = u->set->n;
    double *v;
    char path[64];
    CRN_TRY(crn_alloc(&v, n * COLUMNS));
    fill_columns(u, v);
    cairn_status rc = CAIRN_OK;
    for (int k = 0; rc == CAIRN_OK && k < COLUMNS; k++) {
        snprintf(path, sizeof path, "observations/%s", name[k]);
        rc = crn_obs_file_put(file, path, 1, &n, v + (uint64_t)k * n);
    }
    free(v);
    return rc;
}

static cairn_status fill_file(crn_update *u, crn_obs_file *file)
{
    for (int k = 0; k < 4; k++)
        CRN_TRY(put_rows(u, file, product_names[k], u->product[k]));
    if (u->truth)
        CRN_TRY(put_truth(u, file));
    return u->set ? put_observations(u, file) : CAIRN_OK;
}

static cairn_status put_file(crn_update *u)
{
    char name[64], *path;
    crn_obs_file *file;
    CRN_TRY(crn_study_path(u->s->study, "products", &path));
    const bool failed = mkdir(path, 0700) < 0 && errno != EEXIST;
    cairn_status rc = failed ? crn_fail_sys(errno, "cannot make '%s'", path) : CAIRN_OK;
    free(path);
    CRN_TRY(rc);
    snprintf(name, sizeof name, "products/cycle%06u.h5", u->s->cycle);
    CRN_TRY(crn_study_path(u->s->study, name, &path));
    rc = crn_obs_file_create(path, &file);
    free(path);
    CRN_TRY(rc);
    rc = fill_file(u, file);
    if (rc == CAIRN_OK)
        return crn_obs_file_close(file);
    crn_obs_file_free(file);
    return rc;
}

cairn_status crn_products_put(crn_update *u)
{
    const crn_products_as as = u->s->study->products_as;
    if (as != CRN_PRODUCTS_HDF5)
        CRN_TRY(put_states(u));
    return as != CRN_PRODUCTS_SHELF ? put_file(u) : CAIRN_OK;
}

/* --- truth ---------------------------------------------------------------------------------- */

static cairn_status open_truth(crn_server *s, bool make, cairn_shelf **ret)
{
    char *path;
    *ret = NULL;
    CRN_TRY(crn_study_path(s->study, "truth", &path));
    int rc = CAIRN_OK;
    if (make || access(path, F_OK) == 0)
        rc = cairn_shelf_open(path, NULL, ret);
    free(path);
    return rc < 0 ? shelf_failed(rc) : CAIRN_OK;
}

static size_t name_fields(const crn_server *s, const unsigned char *state, cairn_field *field)
{
    for (size_t i = 0; i < s->layout.field.n; i++)
        field[i] = crn_layout_field(&s->layout, i, state);
    return s->layout.field.n;
}

cairn_status crn_truth_put(crn_server *s)
{
    cairn_field field[CRN_MEMBER_FIELDS];
    cairn_shelf *shelf;
    size_t n = name_fields(s, s->background[0], field);
    CRN_TRY(open_truth(s, true, &shelf));
    int rc = cairn_state_drop(shelf, "truth", s->cycle); /* of an earlier twin */
    rc = cairn_state_put(shelf, "truth", s->cycle, NULL, field, n);
    cairn_status status = rc < 0 ? shelf_failed(rc) : CAIRN_OK;
    cairn_shelf_close(shelf);
    return status;
}

static cairn_status read_truth(crn_update *u)
{
    cairn_field field[CRN_MEMBER_FIELDS];
    cairn_shelf *shelf;
    CRN_TRY(open_truth(u->s, false, &shelf));
    if (!shelf)
        return CAIRN_OK;
    cairn_status rc = crn_alloc(&u->truth, u->s->layout.nbytes);
    if (rc == CAIRN_OK) {
        size_t n = name_fields(u->s, u->truth, field);
        u->scored = cairn_state_get(shelf, "truth", u->s->cycle, field, n) == CAIRN_OK;
    }
    cairn_shelf_close(shelf);
    return rc;
}

/* A study that has no truth, or none of this cycle, is not scored; nor where one rank cannot read
 * it. */
cairn_status crn_truth_get(crn_update *u)
{
    cairn_status rc = read_truth(u);
    uint64_t all = u->scored;
    CRN_TRY(crn_comm_agree(u->s->ranks.comm, rc));
    CRN_TRY(crn_comm_allreduce_u64(u->s->ranks.comm, CRN_REDUCE_MIN, &all, 1));
    u->scored = all != 0;
    if (!u->scored) {
        free(u->truth);
        u->truth = NULL;
    }
    return CAIRN_OK;
}
