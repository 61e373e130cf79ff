/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Operators: from an observation to the entries of its row. Entries stand in the order of the
 * array's dimensions, the last fastest, or in that of a plug-in's stencil.
 */
#include "observe/observe_read.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <math.h>

/* What of one dimension of the array goes into the row. */
typedef struct choice {
    size_t n;
    uint64_t index[2]; /* of the first two, */
    double weight[2];
    const double *all; /* or of a column: weights of all, NULL for 1 each */
    bool column;
} choice;

static const double EDGE = 1e-9; /* of a step: rounding of coordinates at the rim is not outside */

/* --- along an axis -------------------------------------------------------------------------- */

/* Where x lies between elements: i and i + 1 (which may be 0 around a period), and how far. */
static bool cell_uniform(const crn_obs_axis *a, uint64_t n, double period, double x, choice *ret)
{
    double t = (x - a->origin) / a->step, last = (double)(n - 1);
    double around = period > 0 ? period / fabs(a->step) : 0;
    bool closed = around > 0 && fabs(around - (double)n) < 1e-6 * (double)n;
    if (around > 0)
        t -= around * floor((t + EDGE) / around);
    if (!(t >= -EDGE && t <= (closed ? around : last) + EDGE))
        return false;
    t = fmax(t, 0);
    if (!closed)
        t = fmin(t, last);
    double low = floor(t);
    ret->n = 2;
    ret->index[0] = (uint64_t)low % n;
    ret->index[1] = closed ? (ret->index[0] + 1) % n : CRN_MIN(ret->index[0] + 1, n - 1);
    ret->weight[1] = t - low;
    ret->weight[0] = 1 - ret->weight[1];
    return true;
}

/* The gap around a period, from the last element to the first; 0 where the grid is open. */
static double gap_of(const crn_obs_axis *a, uint64_t n, double period)
{
    double extent = fabs(a->at[n - 1] - a->at[0]), gap = period - extent;
    return period > 0 && n > 1 && gap > 0 && gap <= 2 * extent / (double)(n - 1) ? gap : 0;
}

static bool cell_listed(const crn_obs_axis *a, uint64_t n, double period, double x, choice *ret)
{
    const double sign = n > 1 && a->at[n - 1] < a->at[0] ? -1 : 1; /* falling axes are mirrored */
    const double first = sign * a->at[0], last = sign * a->at[n - 1];
    const double room = n > 1 ? EDGE * (last - first) / (double)(n - 1) : EDGE;
    const double gap = gap_of(a, n, period);
    x *= sign;
    if (period > 0)
        x -= period * floor((x - first + room) / period);
    if (!(x >= first - room && x <= (gap > 0 ? last + gap : last) + room))
        return false;
    uint64_t low = 0, high = n - 1;
    while (high - low > 1) {
        uint64_t mid = low + (high - low) / 2;
        *(sign * a->at[mid] <= x ? &low : &high) = mid;
    }
    bool beyond = gap > 0 && x > last;
    double from = beyond ? last : sign * a->at[low];
    double width = beyond ? gap : sign * a->at[high] - from;
    double t = width > 0 ? fmin(fmax((x - from) / width, 0), 1) : 0;
    *ret =
        (choice){.n = 2, .index = {beyond ? n - 1 : low, beyond ? 0 : high}, .weight = {1 - t, t}};
    return true;
}

static bool choose_along(const crn_obs_axis *a, uint64_t n, double period, double x, choice *ret)
{
    if (n == 1 && !a->at && period == 0) { /* a layer */
        *ret = (choice){.n = 1, .weight = {1}};
        return fabs(x - a->origin) <= 0.5 * fabs(a->step);
    }
    return a->at ? cell_listed(a, n, period, x, ret) : cell_uniform(a, n, period, x, ret);
}

/* --- rows ----------------------------------------------------------------------------------- */

static double weight_of(const choice *c, size_t k)
{
    return !c->column ? c->weight[k] : c->all ? c->all[k] : 1;
}

/* The product of the choices of all dimensions. */
static cairn_status multiply(const crn_obs_field *f, uint32_t field, const choice *c,
                             crn_obs_entries *list)
{
    size_t at[CRN_DIMS_MAX] = {0};
    for (;;) {
        crn_obs_entry e = {.field = field, .weight = 1};
        for (int d = 0; d < f->ndims; d++) {
            e.index = e.index * f->global[d] + (c[d].column ? at[d] : c[d].index[at[d]]);
            e.weight *= weight_of(&c[d], at[d]);
        }
        if (e.weight != 0)
            CRN_TRY(crn_vec_push(list, e));
        int d = f->ndims - 1;
        while (d >= 0 && ++at[d] == c[d].n)
            at[d--] = 0;
        if (d < 0)
            return CAIRN_OK;
    }
}

static cairn_status by_index(const crn_obs *o, uint32_t field, crn_obs_item *item,
                             crn_obs_entries *list, crn_obs_flag *ret_flag)
{
    const crn_obs_field *f = &o->setup.field[field];
    uint64_t n = 1;
    for (int d = 0; d < f->ndims; d++)
        n *= f->global[d];
    CRN_FAIL_IF(item->index == CRN_OBS_NO_INDEX, CAIRN_EINVAL,
                "observations of type '%s' are made by index, and one of them has none",
                o->type.at[item->type].name);
    if (item->index >= n) {
        *ret_flag = CRN_OBS_OUTSIDE;
        return CAIRN_OK;
    }
    if (!item->placed)
        item->placed = crn_obs_place_of(&o->setup.space, f, item->index, item->place);
    return crn_vec_push(list, (crn_obs_entry){.field = field, .index = item->index, .weight = 1});
}

static cairn_status check_axes(const crn_obs *o, const crn_obs_type *t, const crn_obs_field *f,
                               const crn_obs_item *item)
{
    CRN_FAIL_IF(!item->placed, CAIRN_EINVAL,
                "observations of type '%s' are interpolated, and one of them has no place",
                t->name);
    CRN_FAIL_IF(!f->placed || f->point, CAIRN_EINVAL,
                "observations of type '%s' are interpolated, and field '%s' has no axes; give them "
                "in [field %s], or observe by index or plug-in",
                t->name, f->name, f->name);
    for (int c = 0; c < o->setup.space.ndims; c++)
        CRN_FAIL_IF(f->axis[c].dim >= f->ndims, CAIRN_EINVAL,
                    "field '%s': axis %d runs along dimension %d, and there are %d", f->name, c,
                    f->axis[c].dim, f->ndims);
    CRN_FAIL_IF(t->kind == CRN_OBS_COLUMN && (t->along < 0 || t->along >= f->ndims), CAIRN_EINVAL,
                "observations of type '%s' sum along dimension %d of field '%s', which has %d",
                t->name, t->along, f->name, f->ndims);
    CRN_FAIL_IF(t->kind == CRN_OBS_COLUMN && t->weight && t->nweights != f->global[t->along],
                CAIRN_EINVAL, "observations of type '%s' have %zu weights for %" PRIu64 " elements",
                t->name, t->nweights, f->global[t->along]);
    return CAIRN_OK;
}

static cairn_status interpolate(const crn_obs *o, uint32_t field, const crn_obs_item *item,
                                crn_obs_entries *list, crn_obs_flag *ret_flag)
{
    const crn_obs_type *t = &o->type.at[item->type];
    const crn_obs_field *f = &o->setup.field[field];
    choice c[CRN_DIMS_MAX] = {0};
    CRN_TRY(check_axes(o, t, f, item));
    for (int d = 0; d < f->ndims; d++) {
        c[d] = (choice){.n = 1, .index = {t->fixed[d]}, .weight = {1}};
        CRN_FAIL_IF(t->fixed[d] >= f->global[d], CAIRN_EINVAL,
                    "observations of type '%s' are at %" PRIu64 " in dimension %d of field '%s'",
                    t->name, t->fixed[d], d, f->name);
    }
    bool inside = true;
    for (int k = 0; k < o->setup.space.ndims; k++)
        if (f->axis[k].dim >= 0)
            inside = inside &&
                     choose_along(&f->axis[k], f->global[f->axis[k].dim], o->setup.space.period[k],
                                  item->place[k], &c[f->axis[k].dim]);
    if (t->kind == CRN_OBS_COLUMN)
        c[t->along] = (choice){.n = f->global[t->along], .all = t->weight, .column = true};
    *ret_flag = inside ? CRN_OBS_USED : CRN_OBS_OUTSIDE;
    return inside ? multiply(f, field, c, list) : CAIRN_OK;
}

/* --- plug-ins ------------------------------------------------------------------------------- */

typedef struct stencil {
    cairn_stencil call; /* first: what the plug-in gets */
    const crn_obs *o;
    crn_obs_entries *list;
} stencil;

static cairn_status find_field(const crn_obs *o, const char *name, uint32_t *ret)
{
    for (size_t i = 0; i < o->setup.nfields; i++)
        if (strcmp(o->setup.field[i].name, name) == 0) {
            *ret = (uint32_t)i;
            return CAIRN_OK;
        }
    return crn_fail(CAIRN_EINVAL, "the model has no field '%.63s' that could be observed", name);
}

static int stencil_add(cairn_stencil *s, const char *field, uint64_t index, double weight)
{
    stencil *mine = (stencil *)s;
    crn_obs_entry e = {.index = index, .weight = weight};
    CRN_TRY(find_field(mine->o, field, &e.field));
    const crn_obs_field *f = &mine->o->setup.field[e.field];
    uint64_t n = 1;
    for (int d = 0; d < f->ndims; d++)
        n *= f->global[d];
    CRN_FAIL_IF(index >= n || !isfinite(weight), CAIRN_EINVAL,
                "a plug-in wants element %" PRIu64 " of field '%s' with the weight %g", index,
                f->name, weight);
    return crn_vec_push(mine->list, e);
}

cairn_observed crn_obs_observed(const crn_obs *o, uint64_t cycle, const crn_obs_item *item)
{
    return (cairn_observed){.type = o->type.at[item->type].name,
                            .cycle = cycle,
                            .index = item->index,
                            .time = item->time,
                            .ndims = item->placed ? o->setup.space.ndims : 0,
                            .place = item->place};
}

static cairn_status by_plugin(const crn_obs *o, uint64_t cycle, const crn_obs_item *item,
                              crn_obs_entries *list, crn_obs_flag *ret_flag)
{
    const cairn_operator *p = o->plugin.at[item->type];
    const cairn_observed seen = crn_obs_observed(o, cycle, item);
    stencil s = {.call = {.add = stencil_add}, .o = o, .list = list};
    for (size_t i = 0; !p->stencil && i < p->nsums; i++)
        CRN_TRY(crn_vec_push(list, (crn_obs_entry){.field = CRN_OBS_NONE, .weight = 1}));
    if (!p->stencil)
        return CAIRN_OK;
    int rc = p->stencil(&seen, &s.call);
    if (rc == CAIRN_NOTHING)
        *ret_flag = CRN_OBS_OUTSIDE;
    CRN_FAIL_IF(rc < 0, CAIRN_EINVAL, "the plug-in of observations '%s' fails with %d: %s",
                seen.type, rc, crn_err_peek()->text);
    return CAIRN_OK;
}

static cairn_status load_plugin(crn_obs *o, const char *text, const cairn_operator **ret)
{
    const char *colon = strrchr(text, ':');
    char *file;
    CRN_FAIL_IF(!colon || colon == text || !colon[1], CAIRN_EINVAL,
                "plug-in '%s' is not 'file.so:name'", text);
    CRN_TRY(crn_strndup(text, (size_t)(colon - text), &file));
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    free(file);
    CRN_FAIL_IF(!library, CAIRN_EINVAL, "cannot load plug-in '%s': %s", text, dlerror());
    cairn_status rc = crn_vec_push(&o->library, library);
    if (rc < 0)
        dlclose(library);
    CRN_TRY(rc);
    const cairn_operator *p = dlsym(library, colon + 1);
    CRN_FAIL_IF(!p, CAIRN_EINVAL, "plug-in '%s': the library has no '%s'", text, colon + 1);
    CRN_FAIL_IF(p->struct_bytes != sizeof *p, CAIRN_EINVAL,
                "plug-in '%s' is of another version of <cairn/observe.h>", text);
    CRN_FAIL_IF(!p->stencil == !p->local || (p->local && (p->nsums < 1 || p->nsums > 64)),
                CAIRN_EINVAL, "plug-in '%s' needs a stencil, or a local function and 1 to 64 sums",
                text);
    *ret = p;
    return CAIRN_OK;
}

cairn_status crn_obs_plugin_load(crn_obs *o, uint32_t type)
{
    const char *text = o->type.at[type].plugin;
    CRN_FAIL_IF(!text || !text[0], CAIRN_EINVAL, "observations of type '%s' name no plug-in",
                o->type.at[type].name);
    return load_plugin(o, text, &o->plugin.at[type]);
}

/* --- all ------------------------------------------------------------------------------------ */

cairn_status crn_obs_operate(const crn_obs *o, uint64_t cycle, crn_obs_item *item,
                             crn_obs_entries *list, crn_obs_flag *ret_flag)
{
    const crn_obs_type *t = &o->type.at[item->type];
    uint32_t field;
    for (int c = 0; item->placed && c < o->setup.space.ndims; c++)
        if (!isfinite(item->place[c])) {
            *ret_flag = CRN_OBS_OUTSIDE;
            return CAIRN_OK;
        }
    if (t->kind == CRN_OBS_PLUGIN)
        return by_plugin(o, cycle, item, list, ret_flag);
    CRN_TRY(find_field(o, t->field ? t->field : t->name, &field));
    if (t->kind == CRN_OBS_INDEX || (t->kind == CRN_OBS_AUTO && item->index != CRN_OBS_NO_INDEX))
        return by_index(o, field, item, list, ret_flag);
    return interpolate(o, field, item, list, ret_flag);
}
