/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Observations of a study: read, given their types and cycles, and sorted. A file in HDF5 is known
 * by its first bytes.
 */
#include "observe/observe_read.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>

static const crn_obs_field *field_named(const crn_obs *o, const char *name)
{
    for (size_t i = 0; i < o->setup.nfields; i++)
        if (strcmp(o->setup.field[i].name, name) == 0)
            return &o->setup.field[i];
    return NULL;
}

static cairn_status add_type(crn_obs *o, const crn_obs_type *t)
{
    CRN_TRY(crn_vec_push(&o->type, *t));
    CRN_TRY(crn_vec_push(&o->plugin, NULL));
    return CAIRN_OK;
}

/* A type without a declaration is its field. */
static cairn_status undeclared(crn_obs *o, const char *name)
{
    crn_obs_type t = {.radius = o->setup.radius};
    const crn_obs_field *f = field_named(o, name);
    if (!f) {
        crn_nearest near = crn_nearest_to(name);
        for (size_t i = 0; i < o->type.n; i++)
            crn_nearest_offer(&near, o->type.at[i].name);
        for (size_t i = 0; i < o->setup.nfields; i++)
            crn_nearest_offer(&near, o->setup.field[i].name);
        return crn_fail(CAIRN_EINVAL,
                        "'%.63s' is neither a type of observation nor a field of the model%s", name,
                        near.hint);
    }
    snprintf(t.name, sizeof t.name, "%s", name);
    return add_type(o, &t);
}

cairn_status crn_obs_type_of(crn_obs *o, const char *name, uint32_t *ret)
{
    for (size_t pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < o->type.n; i++)
            if (strcmp(o->type.at[i].name, name) == 0) {
                *ret = (uint32_t)i;
                return CAIRN_OK;
            }
        if (pass == 0)
            CRN_TRY(undeclared(o, name));
    }
    return CAIRN_EINTERNAL;
}

/* --- cycles and times ----------------------------------------------------------------------- */

/* The step of the study, from 1 on, that is nearest to a time. */
static double step_of(const crn_obs_setup *s, double time)
{
    return fmax(1, floor((time - s->start) / s->step + 0.5));
}

static cairn_status place_in_time(const crn_obs *o, const char *where, bool has_cycle,
                                  crn_obs_record *r)
{
    const crn_obs_setup *s = &o->setup;
    if (isnan(r->time)) {
        CRN_FAIL_IF(!has_cycle, CAIRN_EINVAL, "%s: neither a cycle nor a time", where);
        r->time = s->start + (double)r->cycle * (double)s->steps * s->step;
    } else {
        double step = step_of(s, r->time);
        CRN_FAIL_IF(!(step < 9e15), CAIRN_EINVAL, "%s: the time %g is out of reach", where,
                    r->time);
        uint64_t cycle = ((uint64_t)step - 1) / s->steps + 1;
        CRN_FAIL_IF(has_cycle && cycle != r->cycle, CAIRN_EINVAL,
                    "%s: the time %g is in cycle %" PRIu64 ", not in cycle %" PRIu64, where,
                    r->time, cycle, r->cycle);
        CRN_FAIL_IF(r->time < s->start, CAIRN_EINVAL,
                    "%s: the time %g lies before the study's start, %g", where, r->time, s->start);
        r->cycle = cycle;
    }
    return CAIRN_OK;
}

cairn_status crn_obs_add(crn_obs *o, const char *where, bool has_cycle, crn_obs_record *r)
{
    const crn_obs_type *t = &o->type.at[r->type];
    if (isnan(r->variance) && t->variance > 0)
        r->variance = t->variance;
    CRN_FAIL_IF(isfinite(r->variance) && r->variance <= 0, CAIRN_EINVAL,
                "%s: the variance %g is not above 0", where, r->variance);
    CRN_FAIL_IF(r->ncoords > 0 && r->ncoords != o->setup.space.ndims, CAIRN_EINVAL,
                "%s: a place of %d coordinates in a space of %d; [space] says how many", where,
                r->ncoords, o->setup.space.ndims);
    CRN_TRY(place_in_time(o, where, has_cycle, r));
    r->order = o->record.n;
    return crn_vec_push(&o->record, *r);
}

static int by_cycle(const void *a, const void *b)
{
    const crn_obs_record *x = a, *y = b;
    if (x->cycle != y->cycle)
        return x->cycle < y->cycle ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* The rank of each record in its group of a cycle: what covariances count by. */
static int by_group(const void *a, const void *b)
{
    const crn_obs_record *x = *(crn_obs_record *const *)a, *y = *(crn_obs_record *const *)b;
    if (x->cycle != y->cycle)
        return x->cycle < y->cycle ? -1 : 1;
    if (x->type != y->type)
        return x->type < y->type ? -1 : 1;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static cairn_status rank_groups(crn_obs *o)
{
    CRN_VEC(crn_obs_record *) list = {0};
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; rc == CAIRN_OK && i < o->record.n; i++)
        if (o->record.at[i].group != CRN_OBS_NONE)
            rc = crn_vec_push(&list, &o->record.at[i]);
    if (rc == CAIRN_OK && list.n > 1)
        qsort(list.at, list.n, sizeof *list.at, by_group);
    for (size_t i = 1; rc == CAIRN_OK && i < list.n; i++) {
        const crn_obs_record *a = list.at[i - 1], *b = list.at[i];
        if (a->cycle == b->cycle && a->type == b->type && a->group == b->group)
            list.at[i]->rank = a->rank + 1;
    }
    crn_vec_done(&list);
    return rc;
}

/* --- files ---------------------------------------------------------------------------------- */

static cairn_status read_file(crn_obs *o)
{
    static const unsigned char hdf5[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    unsigned char head[sizeof hdf5];
    FILE *f = fopen(o->setup.path, "re");
    if (!f)
        return crn_fail_sys(errno, "cannot read the observations '%s'", o->setup.path);
    size_t n = fread(head, 1, sizeof head, f);
    cairn_status rc;
    if (n == sizeof head && memcmp(head, hdf5, sizeof hdf5) == 0)
        rc = crn_obs_read_hdf5(o);
    else if (fseek(f, 0, SEEK_SET) < 0)
        rc = crn_fail_sys(errno, "cannot read the observations '%s'", o->setup.path);
    else
        rc = crn_obs_read_text(o, f);
    fclose(f);
    return rc;
}

static cairn_status check_setup(const crn_obs_setup *s)
{
    CRN_FAIL_IF(s->steps == 0 || !(s->step > 0) || !isfinite(s->start), CAIRN_EINVAL,
                "observations: a cycle of %" PRIu64 " steps of %g", s->steps, s->step);
    CRN_FAIL_IF(s->space.ndims < 0 || s->space.ndims > CRN_OBS_DIMS, CAIRN_EINVAL,
                "observations: places of %d dimensions: 0 to %d", s->space.ndims, CRN_OBS_DIMS);
    CRN_FAIL_IF(s->space.sphere > 0 && s->space.ndims < 2, CAIRN_EINVAL,
                "observations: places on a sphere have 2 or 3 coordinates");
    return CAIRN_OK;
}

cairn_status crn_obs_settle(crn_obs *o)
{
    if (o->record.n > 1)
        qsort(o->record.at, o->record.n, sizeof *o->record.at, by_cycle);
    if (o->matrix.n > 1)
        qsort(o->matrix.at, o->matrix.n, sizeof *o->matrix.at, crn_obs_matrix_order);
    return rank_groups(o);
}

static cairn_status open_all(crn_obs *o, const crn_obs_setup *setup)
{
    CRN_TRY(check_setup(setup));
    o->setup = *setup;
    if (o->setup.space.sphere > 0 && o->setup.space.period[0] == 0)
        o->setup.space.period[0] = 360;
    for (size_t i = 0; i < setup->ntypes; i++)
        CRN_TRY(add_type(o, &setup->type[i]));
    if (setup->path[0])
        CRN_TRY(read_file(o));
    CRN_TRY(crn_obs_settle(o));
    for (uint32_t i = 0; i < o->type.n; i++)
        if (o->type.at[i].kind == CRN_OBS_PLUGIN)
            CRN_TRY(crn_obs_plugin_load(o, i));
    return CAIRN_OK;
}

cairn_status crn_obs_open(const crn_obs_setup *setup, crn_obs **ret)
{
    crn_obs *o;
    CRN_TRY(crn_alloc(&o, 1));
    cairn_status rc = open_all(o, setup);
    if (rc < 0)
        crn_obs_close(o);
    else
        *ret = o;
    return rc;
}

void crn_obs_close(crn_obs *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->matrix.n; i++)
        free(o->matrix.at[i].value);
    for (size_t i = 0; i < o->library.n; i++)
        dlclose(o->library.at[i]);
    crn_vec_done(&o->type);
    crn_vec_done(&o->record);
    crn_vec_done(&o->matrix);
    crn_vec_done(&o->plugin);
    crn_vec_done(&o->library);
    free(o);
}

uint64_t crn_obs_count(const crn_obs *o)
{
    return o->record.n;
}

cairn_status crn_obs_invent(crn_obs *o, uint32_t type, uint64_t cycle, const double *place,
                            double variance)
{
    crn_obs_record r = {.cycle = cycle,
                        .index = CRN_OBS_NO_INDEX,
                        .time = NAN,
                        .variance = variance,
                        .type = type,
                        .group = CRN_OBS_NONE,
                        .ncoords = o->setup.space.ndims};
    memcpy(r.place, place, (size_t)o->setup.space.ndims * sizeof *place);
    return crn_obs_add(o, "an observation", true, &r);
}

void crn_obs_cover(const crn_obs *o, uint64_t ncycles, uint64_t *ret_with, uint64_t *ret_late)
{
    *ret_with = *ret_late = 0;
    for (size_t i = 0; i < o->record.n; i++) {
        const uint64_t cycle = o->record.at[i].cycle;
        const bool in = cycle >= 1 && cycle <= ncycles;
        *ret_late += !in;
        *ret_with += in && (i == 0 || cycle != o->record.at[i - 1].cycle);
    }
}

size_t crn_obs_ntypes(const crn_obs *o)
{
    return o->type.n;
}

const crn_obs_type *crn_obs_type_at(const crn_obs *o, size_t i)
{
    return &o->type.at[i];
}
