/* SPDX-License-Identifier: BSD-3-Clause
 *
 * From backgrounds to analyses: members are observed, observations that cannot be used are left
 * out, and fields are updated a stretch of elements at a time, so that the server needs no third
 * ensemble. A stretch begins at a multiple of its length within its field and sums run by index:
 * nothing depends on who computed what.
 */
#include "ensemble/ensemble_update.h"

#include <inttypes.h>
#include <math.h>

enum { STRETCH = 4 * CRN_FILTER_ROWS };

/* --- observing ------------------------------------------------------------------------------ */

static cairn_status observe_member(crn_update *u, uint32_t j, double *entry)
{
    const crn_state_layout *l = &u->s->layout;
    memset(entry, 0, u->set->nentries * sizeof *entry);
    for (uint32_t f = 0; !u->seen && f < l->field.n; f++) {
        if (!u->s->observing.field[f].name[0])
            continue;
        const cairn_field piece = crn_layout_field(l, f, u->from[j]);
        CRN_TRY(crn_obs_pick(u->set, 0, f, &piece, entry));
    }
    if (u->seen) /* at their times */
        entry = u->seen[j];
    crn_obs_apply(u->set, entry, u->y + j * u->set->n);
    return CAIRN_OK;
}

static cairn_status observe_members(crn_update *u)
{
    double *entry;
    CRN_TRY(crn_alloc(&u->y, u->set->n * u->n));
    CRN_TRY(crn_alloc(&entry, u->set->nentries));
    cairn_status rc = CAIRN_OK;
    for (uint32_t j = 0; rc == CAIRN_OK && j < u->n; j++)
        rc = observe_member(u, j, entry);
    free(entry);
    return rc;
}

/* Mean and variance over the members of observation i. */
static void moments(const crn_update *u, size_t i, double *ret_mean, double *ret_variance)
{
    const size_t nobs = u->set->n;
    double mean = 0, square = 0;
    for (uint32_t j = 0; j < u->n; j++)
        mean += u->y[i + j * nobs];
    mean /= u->n;
    for (uint32_t j = 0; j < u->n; j++)
        square += (u->y[i + j * nobs] - mean) * (u->y[i + j * nobs] - mean);
    *ret_mean = mean;
    *ret_variance = square / (u->n - 1);
}

/* --- quality -------------------------------------------------------------------------------- */

/* Values of members that are kept, without those that are left out. */
static void compact(crn_update *u, size_t nobs, const crn_obs_flag *flag)
{
    double *to = u->y;
    for (uint32_t j = 0; j < u->n; j++)
        for (size_t i = 0; i < nobs; i++)
            if (flag[i] == CRN_OBS_USED)
                *to++ = u->y[i + j * nobs];
}

/* Which are too far from what the members expect, or not to be computed from them? */
static cairn_status judge(crn_update *u, crn_obs_flag *flag, double *innovation, double *bound)
{
    const double far = u->s->study->far;
    double sum = 0;
    size_t n = 0, nleft = 0;
    for (size_t i = 0; i < u->set->n; i++) {
        double mean, variance;
        moments(u, i, &mean, &variance);
        innovation[i] = u->set->item[i].value - mean;
        bound[i] = sqrt(variance + u->set->item[i].variance);
        if (!isfinite(mean) || !isfinite(variance)) {
            flag[i] = CRN_OBS_NOT_FINITE;
            nleft++;
            continue;
        }
        sum += innovation[i] * innovation[i] / (bound[i] * bound[i]);
        n++;
        bound[i] *= far;
        if (far > 0 && fabs(innovation[i]) > bound[i]) {
            flag[i] = CRN_OBS_FAR;
            u->nfar++;
            nleft++;
        }
    }
    u->normal = n > 0 ? sqrt(sum / (double)n) : 0;
    if (nleft == 0)
        return CAIRN_OK;
    compact(u, u->set->n, flag);
    return crn_obs_reject(u->set, flag, innovation, bound);
}

static cairn_status sort_out(crn_update *u)
{
    crn_obs_flag *flag = NULL;
    double *innovation = NULL, *bound = NULL;
    cairn_status rc;
    CRN_TRY_OUT(rc, crn_alloc(&flag, u->set->n));
    CRN_TRY_OUT(rc, crn_alloc(&innovation, u->set->n));
    CRN_TRY_OUT(rc, crn_alloc(&bound, u->set->n));
    CRN_TRY_OUT(rc, judge(u, flag, innovation, bound));
out:
    free(flag);
    free(innovation);
    free(bound);
    return rc;
}

/* --- the filter's case ---------------------------------------------------------------------- */

static cairn_status take_items(crn_update *u)
{
    const size_t n = u->set->n, nd = (size_t)u->l.ndims;
    CRN_TRY(crn_alloc(&u->value, n));
    CRN_TRY(crn_alloc(&u->variance, n));
    CRN_TRY(crn_alloc(&u->number, n));
    CRN_TRY(crn_alloc(&u->radius, n));
    CRN_TRY(crn_alloc(&u->place, n * nd));
    CRN_TRY(crn_alloc(&u->block, u->set->nblocks));
    for (size_t i = 0; i < n; i++) {
        const crn_obs_item *item = &u->set->item[i];
        u->value[i] = item->value;
        u->variance[i] = item->variance;
        u->number[i] = item->number;
        u->radius[i] = crn_obs_type_at(u->s->obs, item->type)->radius;
        for (size_t d = 0; d < nd; d++)
            u->place[i * nd + d] = item->placed ? item->place[d] : NAN;
    }
    for (size_t k = 0; k < u->set->nblocks; k++)
        u->block[k] = (crn_filter_block){u->set->block[k].first, u->set->block[k].n,
                                         u->set->block[k].covariance};
    return CAIRN_OK;
}

static void make_case(crn_update *u)
{
    const crn_study *t = u->s->study;
    u->c = (crn_filter_case){.study = t->seed,
                             .cycle = u->s->cycle,
                             .nmembers = u->n,
                             .nobs = u->set->n,
                             .y = u->y,
                             .value = u->value,
                             .variance = u->variance,
                             .number = u->number,
                             .block = u->block,
                             .nblocks = u->set->nblocks,
                             .inflation = t->inflation,
                             .rtpp = t->rtpp,
                             .rotate = t->rotate};
    u->l.place = u->place;
    u->l.radius = u->radius;
}

cairn_status crn_update_observe(crn_update *u)
{
    crn_server *s = u->s;
    const crn_obs_space *p = &s->observing.setup.space;
    u->l = (crn_locality){.ndims = p->ndims, .sphere = p->sphere, .vertical = p->vertical};
    memcpy(u->l.period, p->period, sizeof u->l.period);
    CRN_TRY(crn_observing_place(&s->observing, &s->layout, u->from[0]));
    if (s->async.cycle == s->cycle && s->async.set) {
        u->set = s->async.set;
        s->async.set = NULL;
    } else
        CRN_TRY(crn_obs_cycle(s->obs, s->cycle, &u->set));
    CRN_TRY(observe_members(u));
    CRN_TRY(sort_out(u));
    CRN_TRY(take_items(u));
    make_case(u);
    return CAIRN_OK;
}

/* --- stretches of fields -------------------------------------------------------------------- */

typedef struct stretch {
    crn_update *u;
    const double *w;  /* of global analyses; NULL: nothing is updated */
    crn_local *local; /* NULL: global */
    double **x;       /* rows of each member */
    double *spread, *point, *sorted;
    size_t field;
    uint64_t first, n; /* elements of the field */
    uint64_t row;      /* of the state */
} stretch;

static void copy_rows(const crn_state_field *f, uint64_t first, uint64_t n, unsigned char *state,
                      double *x, bool back)
{
    void *at = state + f->at;
    if (f->type == CAIRN_FLOAT64) {
        double *v = (double *)at + first;
        memcpy(back ? v : x, back ? x : v, n * sizeof *x);
        return;
    }
    float *v = (float *)at + first;
    for (uint64_t i = 0; i < n; i++)
        if (back)
            v[i] = (float)x[i];
        else
            x[i] = v[i];
}

/* when: 0 for the background, 1 for the analysis. */
static void note(stretch *t, int when)
{
    crn_update *u = t->u;
    double truth = 0;
    for (uint64_t i = 0; (u->products || u->scored) && i < t->n; i++) {
        double mean = 0, square = 0;
        for (uint32_t j = 0; j < u->n; j++)
            mean += t->x[j][i];
        mean /= u->n;
        for (uint32_t j = 0; j < u->n; j++)
            square += (t->x[j][i] - mean) * (t->x[j][i] - mean);
        square /= u->n - 1;
        if (u->products) {
            u->product[2 * when][t->row + i] = mean;
            u->product[2 * when + 1][t->row + i] = sqrt(square);
        }
        if (!u->scored)
            continue;
        crn_score *score = &u->score[t->field];
        copy_rows(&u->s->layout.field.at[t->field], t->first + i, 1, u->truth, &truth, false);
        for (uint32_t j = 0; j < u->n; j++)
            t->sorted[j] = t->x[j][i];
        score->n += when == 0;
        score->square[when] += (mean - truth) * (mean - truth);
        score->variance[when] += square;
        score->crps[when] += crn_filter_crps(t->sorted, u->n, truth);
    }
}

static cairn_status update_local(stretch *t)
{
    const crn_observing *g = &t->u->s->observing;
    const int nd = g->setup.space.ndims;
    for (uint64_t i = 0; i < t->n; i++)
        (void)crn_obs_place_of(&g->setup.space, &g->field[t->field], t->first + i,
                               t->point + i * (uint64_t)nd);
    return crn_local_update(t->local, t->n, t->point, t->x);
}

static cairn_status update_stretch(stretch *t)
{
    crn_update *u = t->u;
    const crn_state_field *f = &u->s->layout.field.at[t->field];
    const double rtps = u->s->study->rtps;
    for (uint32_t j = 0; j < u->n; j++)
        copy_rows(f, t->first, t->n, u->from[j], t->x[j], false);
    note(t, 0);
    if (t->w && rtps > 0)
        crn_filter_spread(u->n, t->n, t->x, t->spread);
    if (t->local && !u->s->observing.whole[t->field])
        CRN_TRY(update_local(t));
    else if (t->w)
        CRN_TRY(crn_filter_update(t->w, u->n, t->n, t->x));
    if (t->w && rtps > 0)
        crn_filter_relax_spread(rtps, u->n, t->n, t->spread, t->x);
    note(t, 1);
    for (uint32_t j = 0; t->w && j < u->n; j++)
        copy_rows(f, t->first, t->n, u->to[j], t->x[j], true);
    return CAIRN_OK;
}

static cairn_status update_all(stretch *t)
{
    const crn_state_layout *l = &t->u->s->layout;
    for (t->field = 0; t->field < l->field.n; t->field++) {
        const crn_state_field *f = &l->field.at[t->field];
        const uint64_t n = crn_field_nbytes(f) / cairn_type_bytes(f->type);
        if (f->role == CAIRN_CARRIED)
            continue;
        for (t->first = 0; t->first < n; t->first += STRETCH, t->row += t->n) {
            t->n = CRN_MIN((uint64_t)STRETCH, n - t->first);
            CRN_TRY(update_stretch(t));
        }
    }
    return CAIRN_OK;
}

/* --- global and local ----------------------------------------------------------------------- */

/* Every observation has a place and a radius: fields were looked at before the first member ran. */
static cairn_status check_places(const crn_update *u)
{
    for (size_t i = 0; i < u->set->n; i++) {
        const crn_obs_type *t = crn_obs_type_at(u->s->obs, u->set->item[i].type);
        CRN_FAIL_IF(!u->set->item[i].placed, CAIRN_EINVAL,
                    "'%s': observation %" PRIu64
                    " of cycle %u, of type '%s', has no place, which a "
                    "local filter needs",
                    u->s->study->observations, u->set->item[i].number, u->s->cycle, t->name);
        CRN_FAIL_IF(!(t->radius > 0), CAIRN_EINVAL,
                    "'%s': a local filter needs the radius of observations of type '%s': "
                    "[observation %s] radius, 'inf' for no limit",
                    u->s->study->file, t->name, t->name);
    }
    return CAIRN_OK;
}

static cairn_status run(crn_update *u, stretch *t, double *w)
{
    const crn_study *study = u->s->study;
    if (u->s->obs && !crn_filter_is_free(study->filter)) {
        bool whole = !study->local;
        for (size_t f = 0; f < u->s->layout.field.n; f++)
            whole = whole || u->s->observing.whole[f];
        if (study->local) {
            CRN_TRY(check_places(u));
            CRN_TRY(crn_local_create(study->filter, &u->c, &u->l, &t->local));
        }
        if (whole)
            CRN_TRY(crn_filter_weights(study->filter, &u->c, w));
        t->w = w;
    }
    return update_all(t);
}

cairn_status crn_update_fields(crn_update *u)
{
    stretch t = {.u = u};
    double *w = NULL;
    cairn_status rc;
    CRN_TRY_OUT(rc, crn_alloc(&t.x, u->n));
    for (uint32_t j = 0; j < u->n; j++)
        CRN_TRY_OUT(rc, crn_alloc(&t.x[j], STRETCH));
    CRN_TRY_OUT(rc, crn_alloc(&t.spread, STRETCH));
    CRN_TRY_OUT(rc, crn_alloc(&t.point, STRETCH * CRN_OBS_DIMS));
    CRN_TRY_OUT(rc, crn_alloc(&t.sorted, u->n));
    CRN_TRY_OUT(rc, crn_alloc(&w, (size_t)u->n * u->n));
    CRN_TRY_OUT(rc, run(u, &t, w));
out:
    for (uint32_t j = 0; t.x && j < u->n; j++)
        free(t.x[j]);
    free(t.x);
    free(t.spread);
    free(t.point);
    free(t.sorted);
    free(w);
    crn_local_free(t.local);
    return rc;
}
