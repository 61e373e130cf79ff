/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a twin experiment observes of its truth: each so many-th element, by its index; or, with
 * twin.places, so many places of each type of observation, scattered over the domain, other ones in
 * each cycle, by the type's operator. Errors are keyed by cycle and number.
 */
#include "ensemble/ensemble_update.h"

#include <inttypes.h>
#include <math.h>

/* --- elements ------------------------------------------------------------------------------- */

static cairn_status observe_elements(crn_server *s)
{
    const crn_rng_key key = {s->study->seed, CRN_FOR_OBSERVATION, s->cycle, 0};
    const double deviation = sqrt(s->study->twin_variance);
    double *row, *at;
    uint64_t k = 0;
    CRN_TRY(crn_alloc(&row, s->layout.nrows));
    crn_rows_read(&s->layout, s->background[0], row);
    at = row;
    for (size_t f = 0; f < s->layout.field.n; f++) {
        const crn_state_field *x = &s->layout.field.at[f];
        const uint64_t all = crn_field_nbytes(x) / cairn_type_bytes(x->type);
        const uint64_t n = x->role == CAIRN_CARRIED ? 0 : all;
        for (uint64_t i = 0; i < n; i++, k++, at++)
            if (k % s->study->twin_every == 0)
                fprintf(s->twin_file, "%u %s %" PRIu64 " %.17g %.17g\n", s->cycle, x->name, i,
                        *at + deviation * crn_rng_normal_at(&key, k), s->study->twin_variance);
    }
    free(row);
    return CAIRN_OK;
}

/* --- places --------------------------------------------------------------------------------- */

static double unit_at(const crn_rng_key *key, uint64_t i)
{
    return (double)(crn_rng_at(key, i) >> 11) * 0x1p-53;
}

/* A place within the axes of a field. */
static void draw_place(const crn_obs_space *space, const crn_obs_field *f, const crn_rng_key *key,
                       uint64_t number, double *place)
{
    for (int c = 0; c < space->ndims; c++) {
        const crn_obs_axis *a = &f->axis[c];
        const uint64_t n = a->dim < 0 ? 1 : f->global[a->dim];
        const double first = a->at ? a->at[0] : a->origin;
        double extent = a->at ? a->at[n - 1] - first : a->step * (double)(n - 1);
        if (space->period[c] > 0)
            extent = space->period[c];
        place[c] = first + (a->dim < 0 ? 0 : extent) * unit_at(key, 3 * number + (uint64_t)c);
    }
}

static cairn_status field_of(const crn_observing *g, const crn_obs_type *t,
                             const crn_obs_field **ret)
{
    const char *name = t->field ? t->field : t->name;
    for (size_t i = 0; i < g->setup.nfields; i++)
        if (strcmp(g->field[i].name, name) == 0 && g->field[i].placed && !g->field[i].point) {
            *ret = &g->field[i];
            return CAIRN_OK;
        }
    return crn_fail(CAIRN_EINVAL,
                    "[observation %s]: twin.places needs a field with axes; '%s' has none", t->name,
                    name);
}

static cairn_status scatter(crn_server *s, crn_obs *o)
{
    const crn_observing *g = &s->observing;
    for (uint32_t t = 0; t < g->setup.ntypes; t++) {
        const crn_rng_key key = {s->study->seed, CRN_FOR_PLACE, s->cycle, t};
        const crn_obs_type *type = &g->type[t];
        const crn_obs_field *f = NULL;
        CRN_TRY(field_of(g, type, &f));
        for (uint64_t k = 0; k < s->study->twin_places; k++) {
            double place[CRN_OBS_DIMS];
            draw_place(&g->setup.space, f, &key, k, place);
            CRN_TRY(crn_obs_invent(o, t, s->cycle, place,
                                   type->variance > 0 ? type->variance : s->study->twin_variance));
        }
    }
    return CAIRN_OK;
}

static void write_places(crn_server *s, const crn_obs_set *set, const double *y)
{
    const crn_rng_key key = {s->study->seed, CRN_FOR_OBSERVATION, s->cycle, 0};
    for (size_t i = 0; i < set->n; i++) {
        const crn_obs_item *item = &set->item[i];
        const double error = sqrt(item->variance) * crn_rng_normal_at(&key, item->number);
        fprintf(s->twin_file, "%u %s", s->cycle, crn_obs_type_at(set->obs, item->type)->name);
        for (int c = 0; c < s->observing.setup.space.ndims; c++)
            fprintf(s->twin_file, " %.17g", item->place[c]);
        fprintf(s->twin_file, " %.17g %.17g\n", y[i] + error, item->variance);
    }
}

static cairn_status observe_set(crn_server *s, const crn_obs_set *set)
{
    double *entry = NULL, *y = NULL;
    cairn_status rc;
    CRN_TRY_OUT(rc, crn_alloc(&entry, set->nentries));
    CRN_TRY_OUT(rc, crn_alloc(&y, set->n));
    for (uint32_t f = 0; f < s->layout.field.n; f++) {
        const cairn_field piece = crn_layout_field(&s->layout, f, s->background[0]);
        if (s->observing.field[f].name[0])
            CRN_TRY_OUT(rc, crn_obs_pick(set, 0, f, &piece, entry));
    }
    crn_obs_apply(set, entry, y);
    write_places(s, set, y);
out:
    free(entry);
    free(y);
    return rc;
}

static cairn_status observe_places(crn_server *s)
{
    crn_obs_setup setup = s->observing.setup;
    crn_obs_set *set = NULL;
    crn_obs *o;
    cairn_status rc;
    CRN_FAIL_IF(setup.space.ndims == 0 || setup.ntypes == 0, CAIRN_EINVAL,
                "'%s': twin.places needs [space] dims and an [observation TYPE]", s->study->file);
    CRN_TRY(crn_observing_place(&s->observing, &s->layout, s->background[0]));
    setup.path = "";
    CRN_TRY(crn_obs_open(&setup, &o));
    CRN_TRY_OUT(rc, scatter(s, o));
    CRN_TRY_OUT(rc, crn_obs_cycle(o, s->cycle, &set));
    if (s->cycle == 1)
        fprintf(s->twin_file, "columns cycle type %s value variance\n",
                setup.space.ndims == 1   ? "x"
                : setup.space.ndims == 2 ? "x y"
                                         : "x y z");
    CRN_TRY_OUT(rc, observe_set(s, set));
out:
    crn_obs_set_free(set);
    crn_obs_close(o);
    return rc;
}

cairn_status crn_twin_observe(crn_server *s)
{
    memcpy(s->analysis[0], s->background[0], s->layout.nbytes);
    CRN_TRY(s->study->twin_places > 0 ? observe_places(s) : observe_elements(s));
    CRN_FAIL_IF(ferror(s->twin_file), CAIRN_EIO, "cannot write the observations");
    return crn_truth_put(s);
}
