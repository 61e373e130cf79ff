/* SPDX-License-Identifier: BSD-3-Clause */
#include "ensemble/ensemble_observing.h"

#include <inttypes.h>
#include <math.h>

enum { NUMBERS = 4096, WORDS = 8 };

static cairn_status fail_key(const crn_study *s, crn_study_opt id, const char *name,
                             const char *text, const char *want)
{
    const crn_opt *row = &crn_study_table[id];
    return crn_fail(CAIRN_EINVAL, "'%s': [%s%s%s] %s is '%.60s', not %s", s->file, row->section,
                    name[0] ? " " : "", name, row->key, text, want);
}

static const char *text_of(const crn_study *s, crn_study_opt id, const char *name)
{
    return crn_config_for_variable(s->config, (crn_opt_id)id, name);
}

/* Numbers between blanks or commas, at most most of them; 'inf' where it is allowed. */
static cairn_status numbers_of(const crn_study *s, crn_study_opt id, const char *name, size_t most,
                               double *ret, size_t *ret_n)
{
    const char *text = text_of(s, id, name), *at = text;
    char word[64];
    size_t n = 0;
    for (;;) {
        at += strspn(at, " \t,");
        size_t length = strcspn(at, " \t,");
        if (length == 0)
            break;
        if (n == most || length >= sizeof word)
            return fail_key(s, id, name, text, "a list of numbers of that length");
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        if (strcmp(word, "inf") == 0)
            ret[n] = INFINITY;
        else if (crn_parse_real(word, &ret[n]) < 0)
            return fail_key(s, id, name, text, "a list of numbers");
        n++;
        at += length;
    }
    *ret_n = n;
    return CAIRN_OK;
}

static cairn_status real_of(const crn_study *s, crn_study_opt id, const char *name, double low,
                            double *ret)
{
    size_t n;
    double x;
    CRN_TRY(numbers_of(s, id, name, 1, &x, &n));
    if (n == 1 && x >= low)
        *ret = x;
    else if (n > 0 || text_of(s, id, name)[0])
        return fail_key(s, id, name, text_of(s, id, name),
                        low >= 0 ? "a number from 0 on" : "a number");
    return CAIRN_OK;
}

/* --- space ---------------------------------------------------------------------------------- */

static cairn_status read_space(crn_observing *g, const crn_study *s)
{
    crn_obs_space *p = &g->setup.space;
    size_t n;
    p->ndims = (int)crn_config_count(s->config, (crn_opt_id)CRN_STUDY_SPACE_DIMS);
    CRN_TRY(numbers_of(s, CRN_STUDY_SPACE_PERIOD, "", CRN_OBS_DIMS, p->period, &n));
    for (size_t d = 0; d < n; d++)
        if (!(p->period[d] >= 0 && isfinite(p->period[d])))
            return fail_key(s, CRN_STUDY_SPACE_PERIOD, "", text_of(s, CRN_STUDY_SPACE_PERIOD, ""),
                            "a period for each coordinate, 0 for none");
    CRN_TRY(real_of(s, CRN_STUDY_SPACE_SPHERE, "", 0, &p->sphere));
    CRN_TRY(real_of(s, CRN_STUDY_SPACE_VERTICAL, "", 0, &p->vertical));
    if (p->sphere > 0 && p->ndims == 0)
        p->ndims = 2;
    return CAIRN_OK;
}

/* --- fields --------------------------------------------------------------------------------- */

static cairn_status read_axes(const crn_study *s, const char *name, int ndims, crn_obs_field *f)
{
    double axes[CRN_OBS_DIMS], origin[CRN_OBS_DIMS] = {0}, step[CRN_OBS_DIMS] = {1, 1, 1};
    size_t n, norigin, nstep;
    CRN_TRY(numbers_of(s, CRN_STUDY_FIELD_AXES, name, CRN_OBS_DIMS, axes, &n));
    CRN_TRY(numbers_of(s, CRN_STUDY_FIELD_ORIGIN, name, CRN_OBS_DIMS, origin, &norigin));
    CRN_TRY(numbers_of(s, CRN_STUDY_FIELD_STEP, name, CRN_OBS_DIMS, step, &nstep));
    if (n == 0)
        return CAIRN_OK;
    if (n != (size_t)ndims || (norigin != 0 && norigin != n) || (nstep != 0 && nstep != n))
        return fail_key(s, CRN_STUDY_FIELD_AXES, name, text_of(s, CRN_STUDY_FIELD_AXES, name),
                        "a dimension (and an origin and a step) for each coordinate of [space]");
    f->placed = true;
    for (size_t c = 0; c < n; c++) {
        if (axes[c] != floor(axes[c]) || axes[c] < -1 || axes[c] >= f->ndims || step[c] == 0)
            return fail_key(s, CRN_STUDY_FIELD_AXES, name, text_of(s, CRN_STUDY_FIELD_AXES, name),
                            "dimensions of the field, from 0 on, with steps that are not 0");
        f->axis[c] = (crn_obs_axis){.dim = (int)axes[c], .origin = origin[c], .step = step[c]};
    }
    return CAIRN_OK;
}

static cairn_status read_coordinates(const crn_study *s, const char *name, int ndims,
                                     char coordinate[CRN_OBS_DIMS][CRN_OBS_NAME])
{
    const char *text = text_of(s, CRN_STUDY_FIELD_COORDINATES, name), *at = text;
    int n = 0;
    for (;; n++) {
        at += strspn(at, " \t,");
        size_t length = strcspn(at, " \t,");
        if (length == 0)
            break;
        if (n == CRN_OBS_DIMS || length >= CRN_OBS_NAME)
            return fail_key(s, CRN_STUDY_FIELD_COORDINATES, name, text, "a list of fields");
        snprintf(coordinate[n], CRN_OBS_NAME, "%.*s", (int)length, at);
        at += length;
    }
    if (n != 0 && n != ndims)
        return fail_key(s, CRN_STUDY_FIELD_COORDINATES, name, text,
                        "a field for each coordinate of [space]");
    return CAIRN_OK;
}

static bool is_real(const crn_state_field *f)
{
    return f->type == CAIRN_FLOAT32 || f->type == CAIRN_FLOAT64;
}

/* Sections of fields that there are not are mistakes. */
static cairn_status check_names(const crn_study *s, const crn_state_fields *fields)
{
    const char *name;
    for (size_t i = 0; (name = crn_config_name_at(s->config, "field", i)); i++) {
        crn_nearest near = crn_nearest_to(name);
        bool known = false;
        for (size_t k = 0; k < fields->n; k++) {
            known = known || strcmp(fields->at[k].name, name) == 0;
            crn_nearest_offer(&near, fields->at[k].name);
        }
        CRN_FAIL_IF(!known, CAIRN_EINVAL, "'%s': [field %s]: the model has no such field%s",
                    s->file, name, near.hint);
    }
    return CAIRN_OK;
}

static cairn_status read_fields(crn_observing *g, const crn_study *s,
                                const crn_state_fields *fields)
{
    CRN_TRY(check_names(s, fields));
    CRN_TRY(crn_alloc(&g->field, fields->n));
    CRN_TRY(crn_alloc(&g->coordinate, fields->n));
    CRN_TRY(crn_alloc(&g->whole, fields->n));
    CRN_TRY(crn_alloc(&g->deviation, fields->n));
    CRN_TRY(crn_alloc(&g->smooth, fields->n));
    for (size_t i = 0; i < fields->n; i++) {
        const crn_state_field *from = &fields->at[i];
        crn_obs_field *f = &g->field[i];
        *f = (crn_obs_field){.name = is_real(from) ? from->name : "", .ndims = from->ndims};
        memcpy(f->global, from->global, sizeof f->global);
        g->deviation[i] = s->spread;
        CRN_TRY(real_of(s, CRN_STUDY_FIELD_SPREAD, from->name, 0, &g->deviation[i]));
        g->smooth[i] =
            crn_config_variable(s->config, (crn_opt_id)CRN_STUDY_FIELD_SMOOTH, from->name).n;
        g->whole[i] =
            crn_config_variable(s->config, (crn_opt_id)CRN_STUDY_FIELD_GLOBAL, from->name).yes;
        CRN_TRY(read_axes(s, from->name, g->setup.space.ndims, f));
        CRN_TRY(read_coordinates(s, from->name, g->setup.space.ndims, g->coordinate[i]));
    }
    g->setup.field = g->field;
    g->setup.nfields = fields->n;
    return CAIRN_OK;
}

/* Nothing is made global because a coordinate is missing: known before the first member runs. */
static cairn_status check_local(const crn_observing *g, const crn_study *s,
                                const crn_state_fields *fields)
{
    CRN_FAIL_IF(g->setup.space.ndims == 0, CAIRN_EINVAL,
                "'%s': a local filter needs [space] dims, the number of coordinates of a place",
                s->file);
    for (size_t i = 0; i < fields->n; i++)
        CRN_FAIL_IF(fields->at[i].role != CAIRN_CARRIED && !g->field[i].placed &&
                        !g->coordinate[i][0][0] && !g->whole[i],
                    CAIRN_EINVAL,
                    "'%s': field '%s' has no coordinates, which a local filter needs: [field %s] "
                    "axes or coordinates; or global = yes, to update it by all observations",
                    s->file, fields->at[i].name, fields->at[i].name);
    return CAIRN_OK;
}

/* --- types ---------------------------------------------------------------------------------- */

static cairn_status read_weights(crn_observing *g, const crn_study *s, crn_obs_type *t)
{
    double *list;
    CRN_TRY(crn_alloc(&list, NUMBERS));
    cairn_status rc = crn_vec_push(&g->owned, list);
    if (rc < 0)
        free(list);
    CRN_TRY(rc);
    CRN_TRY(numbers_of(s, CRN_STUDY_OBS_WEIGHTS, t->name, NUMBERS, list, &t->nweights));
    t->weight = t->nweights > 0 ? list : NULL;
    return CAIRN_OK;
}

static cairn_status read_fixed(const crn_study *s, crn_obs_type *t)
{
    double fixed[CRN_DIMS_MAX] = {0};
    size_t n;
    CRN_TRY(numbers_of(s, CRN_STUDY_OBS_FIXED, t->name, CRN_DIMS_MAX, fixed, &n));
    for (size_t d = 0; d < n; d++) {
        if (!(fixed[d] >= 0 && fixed[d] < 9e15))
            return fail_key(s, CRN_STUDY_OBS_FIXED, t->name,
                            text_of(s, CRN_STUDY_OBS_FIXED, t->name),
                            "an index for each dimension");
        t->fixed[d] = (uint64_t)fixed[d];
    }
    return CAIRN_OK;
}

static cairn_status read_type(crn_observing *g, const crn_study *s, const char *name,
                              crn_obs_type *t)
{
    const crn_config *c = s->config;
    double along = 0;
    CRN_FAIL_IF(strlen(name) >= sizeof t->name, CAIRN_EINVAL, "'%s': [observation %s]: a long name",
                s->file, name);
    snprintf(t->name, sizeof t->name, "%s", name);
    const char *field = text_of(s, CRN_STUDY_OBS_FIELD, name);
    t->field = field[0] ? field : NULL;
    t->kind = (crn_obs_kind)crn_config_variable(c, (crn_opt_id)CRN_STUDY_OBS_OPERATOR, name).word;
    t->plugin = text_of(s, CRN_STUDY_OBS_PLUGIN, name);
    if (t->plugin[0] && t->kind == CRN_OBS_AUTO)
        t->kind = CRN_OBS_PLUGIN;
    CRN_TRY(real_of(s, CRN_STUDY_OBS_RADIUS, name, 0, &t->radius));
    CRN_TRY(real_of(s, CRN_STUDY_OBS_VARIANCE, name, 0, &t->variance));
    CRN_TRY(real_of(s, CRN_STUDY_OBS_CORRELATION, name, 0, &t->correlation));
    CRN_TRY(real_of(s, CRN_STUDY_OBS_ALONG, name, 0, &along));
    t->along = (int)fmin(along, CRN_DIMS_MAX);
    CRN_TRY(read_fixed(s, t));
    return read_weights(g, s, t);
}

static cairn_status read_types(crn_observing *g, const crn_study *s)
{
    size_t n = 0;
    while (crn_config_name_at(s->config, "observation", n))
        n++;
    CRN_TRY(crn_alloc(&g->type, n));
    for (size_t i = 0; i < n; i++)
        CRN_TRY(read_type(g, s, crn_config_name_at(s->config, "observation", i), &g->type[i]));
    g->setup.type = g->type;
    g->setup.ntypes = n;
    return real_of(s, CRN_STUDY_OBS_RADIUS, "", 0, &g->setup.radius);
}

/* --- regions -------------------------------------------------------------------------------- */

static cairn_status read_regions(crn_observing *g, const crn_study *s)
{
    const size_t nd = (size_t)g->setup.space.ndims;
    double box[2 * CRN_OBS_DIMS];
    size_t n;
    while (crn_config_name_at(s->config, "region", g->nregions))
        g->nregions++;
    CRN_TRY(crn_alloc(&g->region, g->nregions));
    for (size_t i = 0; i < g->nregions; i++) {
        crn_region *r = &g->region[i];
        r->name = crn_config_name_at(s->config, "region", i);
        CRN_TRY(numbers_of(s, CRN_STUDY_REGION_BOX, r->name, 2 * nd, box, &n));
        if (n != 2 * nd || nd == 0)
            return fail_key(s, CRN_STUDY_REGION_BOX, r->name,
                            text_of(s, CRN_STUDY_REGION_BOX, r->name),
                            "two numbers, from and to, for each coordinate of [space]");
        for (size_t d = 0; d < nd; d++) {
            r->lo[d] = box[2 * d];
            r->hi[d] = box[2 * d + 1];
        }
    }
    return CAIRN_OK;
}

bool crn_region_has(const crn_region *r, int ndims, const double *place)
{
    for (int d = 0; d < ndims; d++)
        if (!(place[d] >= r->lo[d] && place[d] <= r->hi[d]))
            return false;
    return true;
}

/* --- all ------------------------------------------------------------------------------------ */

static cairn_status init(crn_observing *g, const crn_study *s, const crn_state_fields *fields)
{
    g->setup.path = s->observations;
    g->setup.steps = s->steps;
    g->setup.step = 1;
    CRN_TRY(real_of(s, CRN_STUDY_TIME_START, "", -HUGE_VAL, &g->setup.start));
    CRN_TRY(real_of(s, CRN_STUDY_TIME_STEP, "", 0, &g->setup.step));
    CRN_TRY(read_space(g, s));
    CRN_TRY(read_fields(g, s, fields));
    if (s->local && s->observations[0])
        CRN_TRY(check_local(g, s, fields));
    CRN_TRY(read_types(g, s));
    return read_regions(g, s);
}

cairn_status crn_observing_init(crn_observing *g, const crn_study *s,
                                const crn_state_fields *fields)
{
    *g = (crn_observing){0};
    cairn_status rc = init(g, s, fields);
    if (rc < 0)
        crn_observing_done(g);
    return rc;
}

void crn_observing_done(crn_observing *g)
{
    for (size_t i = 0; i < g->owned.n; i++)
        free(g->owned.at[i]);
    crn_vec_done(&g->owned);
    free(g->field);
    free(g->type);
    free(g->region);
    free(g->whole);
    free(g->deviation);
    free(g->smooth);
    free(g->coordinate);
    *g = (crn_observing){0};
}

/* --- coordinates that the model has --------------------------------------------------------- */

static const crn_state_field *find(const crn_state_layout *l, const char *name)
{
    for (size_t i = 0; i < l->field.n; i++)
        if (strcmp(l->field.at[i].name, name) == 0 && is_real(&l->field.at[i]))
            return &l->field.at[i];
    return NULL;
}

static uint64_t volume(const crn_state_field *f)
{
    return crn_field_nbytes(f) / cairn_type_bytes(f->type);
}

static cairn_status copy_values(crn_observing *g, const crn_state_field *f,
                                const unsigned char *state, double **ret)
{
    const uint64_t n = volume(f);
    const void *at = state + f->at;
    double *v;
    CRN_TRY(crn_alloc(&v, n));
    cairn_status rc = crn_vec_push(&g->owned, v);
    if (rc < 0)
        free(v);
    CRN_TRY(rc);
    for (uint64_t i = 0; i < n; i++)
        v[i] = f->type == CAIRN_FLOAT64 ? ((const double *)at)[i] : ((const float *)at)[i];
    *ret = v;
    return CAIRN_OK;
}

/* A dimension of the field that is as long as the axis, and that no other axis has. */
static int dim_for(const crn_obs_field *f, int c, uint64_t length)
{
    for (int d = f->ndims - 1; d >= 0; d--) {
        bool taken = false;
        for (int k = 0; k < c; k++)
            taken = taken || f->axis[k].dim == d;
        if (f->global[d] == length && !taken)
            return d;
    }
    return -1;
}

static cairn_status place_points(crn_observing *g, const crn_state_layout *l, size_t field,
                                 const unsigned char *state)
{
    const size_t nd = (size_t)g->setup.space.ndims;
    const uint64_t n = volume(&l->field.at[field]);
    double *point, *v = NULL;
    CRN_TRY(crn_alloc(&point, n * nd));
    cairn_status rc = crn_vec_push(&g->owned, point);
    if (rc < 0)
        free(point);
    CRN_TRY(rc);
    for (size_t c = 0; c < nd; c++) {
        CRN_TRY(copy_values(g, find(l, g->coordinate[field][c]), state, &v));
        for (uint64_t i = 0; i < n; i++)
            point[i * nd + c] = v[i];
    }
    g->field[field].point = point;
    return CAIRN_OK;
}

static cairn_status place_field(crn_observing *g, const crn_state_layout *l, size_t field,
                                const unsigned char *state)
{
    crn_obs_field *f = &g->field[field];
    bool points = true, axes = true;
    for (int c = 0; c < g->setup.space.ndims; c++) {
        const char *name = g->coordinate[field][c];
        const crn_state_field *k = find(l, name);
        CRN_FAIL_IF(!k, CAIRN_EINVAL,
                    "[field %s] coordinates: the model has no field '%s' of float32 or float64",
                    l->field.at[field].name, name);
        points = points && volume(k) == volume(&l->field.at[field]);
        double *at = NULL;
        int dim = k->ndims == 1 ? dim_for(f, c, k->global[0]) : -1;
        axes = axes && dim >= 0;
        if (dim >= 0)
            CRN_TRY(copy_values(g, k, state, &at));
        f->axis[c] = (crn_obs_axis){.dim = dim, .at = at};
    }
    CRN_FAIL_IF(!axes && !points, CAIRN_EINVAL,
                "[field %s] coordinates: they have neither the lengths of its dimensions nor its "
                "number of elements",
                l->field.at[field].name);
    f->placed = true;
    return axes ? CAIRN_OK : place_points(g, l, field, state);
}

cairn_status crn_observing_place(crn_observing *g, const crn_state_layout *layout,
                                 const unsigned char *state)
{
    for (size_t i = 0; i < layout->field.n; i++)
        if (g->coordinate[i][0][0] && !g->field[i].placed)
            CRN_TRY(place_field(g, layout, i, state));
    return CAIRN_OK;
}
