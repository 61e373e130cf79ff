/* SPDX-License-Identifier: BSD-3-Clause
 *
 * From backgrounds to analyses: members are observed, observations that cannot be used are left
 * out, and fields are updated a stretch of elements at a time, so that the server needs no third
 * ensemble. A stretch begins at a multiple of its length within its field and sums run by index:
 * nothing depends on who computed what. Each rank of the server updates the stretches of its slice;
 * what observations see of a member is put together from all ranks.
 */
#include "ensemble/ensemble_update.h"

#include <inttypes.h>
#include <math.h>

enum { STRETCH = CRN_LAYOUT_STRETCH };
_Static_assert(STRETCH % CRN_FILTER_ROWS == 0, "blocks of the filter begin with stretches");

/* --- observing ------------------------------------------------------------------------------ */

cairn_status crn_observe_slice(const crn_server *s, const crn_obs_set *set, uint64_t step,
                               const unsigned char *slice, double *entry)
{
    cairn_field box[CRN_SLICE_BOXES];
    for (uint32_t f = 0; f < s->layout.field.n; f++) {
        if (!s->observing.field[f].name[0])
            continue;
        const size_t n = crn_slice_boxes(&s->layout, f, slice, box);
        for (size_t i = 0; i < n; i++)
            CRN_TRY(crn_obs_pick(set, step, f, &box[i], entry));
    }
    return CAIRN_OK;
}

/* Is there a coordinate that is a field of the model, and was not looked at yet? */
static bool lacks_places(const crn_server *s)
{
    const crn_observing *g = &s->observing;
    for (size_t f = 0; g->coordinate && f < s->layout.field.n; f++)
        if (g->coordinate[f][0][0] && !g->field[f].placed)
            return true;
    return false;
}

cairn_status crn_observe_place(crn_server *s, const unsigned char *slice)
{
    crn_gathered whole = {0};
    if (!lacks_places(s))
        return CAIRN_OK;
    CRN_TRY(crn_ranks_collect(s, slice, CRN_COMM_ALL, &whole));
    cairn_status rc = crn_observing_place(&s->observing, &s->layout, whole.data);
    crn_gathered_done(&whole);
    return crn_comm_agree(s->ranks.comm, rc);
}

static cairn_status observe_member(crn_update *u, uint32_t j, double *entry)
{
    crn_comm *comm = u->s->ranks.comm;
    cairn_status rc = CAIRN_OK;
    memset(entry, 0, u->set->nentries * sizeof *entry);
    if (u->seen) /* at their times */
        memcpy(entry, u->seen[j], u->set->nentries * sizeof *entry);
    else
        rc = crn_observe_slice(u->s, u->set, 0, u->from[j], entry);
    CRN_TRY(crn_comm_agree(comm, rc));
    CRN_TRY(crn_comm_allreduce_f64(comm, CRN_REDUCE_SUM, entry, u->set->nentries));
    for (size_t k = 0; k < u->set->nentries; k++)
        entry[k] += 0.; /* no entry is -0, which a sum over ranks would not be */
    crn_obs_apply(u->set, entry, u->y + j * u->set->n);
    return CAIRN_OK;
}

static cairn_status observe_members(crn_update *u)
{
    double *entry = NULL;
    cairn_status rc = crn_alloc(&u->y, u->set->n * u->n);
    if (rc == CAIRN_OK)
        rc = crn_alloc(&entry, u->set->nentries);
    rc = crn_comm_agree(u->s->ranks.comm, rc);
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

static cairn_status take_set(crn_update *u)
{
    crn_server *s = u->s;
    const crn_obs_space *p = &s->observing.setup.space;
    u->l = (crn_locality){.ndims = p->ndims, .sphere = p->sphere, .vertical = p->vertical};
    memcpy(u->l.period, p->period, sizeof u->l.period);
    if (s->async.cycle == s->cycle && s->async.set) {
        u->set = s->async.set;
        s->async.set = NULL;
        return CAIRN_OK;
    }
    return crn_obs_cycle(s->obs, s->cycle, &u->set);
}

cairn_status crn_update_observe(crn_update *u)
{
    crn_comm *comm = u->s->ranks.comm;
    CRN_TRY(crn_observe_place(u->s, u->from[0]));
    CRN_TRY(crn_comm_agree(comm, take_set(u)));
    CRN_TRY(observe_members(u));
    cairn_status rc = sort_out(u);
    if (rc == CAIRN_OK)
        rc = take_items(u);
    make_case(u);
    return crn_comm_agree(comm, rc);
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
    uint64_t row;      /* of the slice's rows */
    crn_score score;   /* of this stretch alone: fields are summed up in their order */
} stretch;

static void copy_rows(cairn_type type, void *at, uint64_t n, double *x, bool back)
{
    if (type == CAIRN_FLOAT64) {
        memcpy(back ? at : x, back ? x : at, n * sizeof *x);
        return;
    }
    float *v = at;
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
    const crn_state_field *f = &u->s->layout.field.at[t->field];
    crn_score *score = &t->score;
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
        const double truth = crn_element(u->truth + f->at, f->type, t->first + i);
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
    const cairn_type type = u->s->layout.field.at[t->field].type;
    const uint64_t at = crn_slice_at(&u->s->layout, t->field, t->first);
    const double rtps = u->s->study->rtps;
    for (uint32_t j = 0; j < u->n; j++)
        copy_rows(type, u->from[j] + at, t->n, t->x[j], false);
    t->score = (crn_score){.field = (uint32_t)t->field};
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
        copy_rows(type, u->to[j] + at, t->n, t->x[j], true);
    return u->scored ? crn_vec_push(&u->stretch, t->score) : CAIRN_OK;
}

static cairn_status update_all(stretch *t)
{
    const crn_state_layout *l = &t->u->s->layout;
    for (t->field = 0; t->field < l->field.n; t->field++) {
        uint64_t end;
        crn_slice_range(l, t->field, &t->first, &end);
        if (l->field.at[t->field].role == CAIRN_CARRIED)
            continue;
        for (; t->first < end; t->first += STRETCH, t->row += t->n) {
            t->n = CRN_MIN((uint64_t)STRETCH, end - t->first);
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

static cairn_status prepare_filter(crn_update *u, stretch *t, double *w)
{
    const crn_study *study = u->s->study;
    bool whole = !study->local;
    for (size_t f = 0; f < u->s->layout.field.n; f++)
        whole = whole || u->s->observing.whole[f];
    if (study->local) {
        CRN_TRY(check_places(u));
        CRN_TRY(crn_local_create(study->filter, &u->c, &u->l, &t->local));
    }
    if (whole && u->s->ranks.rank == 0)
        CRN_TRY(crn_filter_weights(study->filter, &u->c, w));
    t->w = w;
    return CAIRN_OK;
}

static cairn_status run(crn_update *u, stretch *t, double *w)
{
    cairn_status rc = CAIRN_OK;
    if (u->s->obs && !crn_filter_is_free(u->s->study->filter)) {
        rc = prepare_filter(u, t, w);
        CRN_TRY(crn_ranks_share(u->s, rc, w, (size_t)u->n * u->n * sizeof *w));
    }
    return crn_comm_agree(u->s->ranks.comm, update_all(t));
}

static cairn_status make_room(stretch *t, double **w)
{
    const uint32_t n = t->u->n;
    CRN_TRY(crn_alloc(&t->x, n));
    for (uint32_t j = 0; j < n; j++)
        CRN_TRY(crn_alloc(&t->x[j], STRETCH));
    CRN_TRY(crn_alloc(&t->spread, STRETCH));
    CRN_TRY(crn_alloc(&t->point, STRETCH * CRN_OBS_DIMS));
    CRN_TRY(crn_alloc(&t->sorted, n));
    return crn_alloc(w, (size_t)n * n);
}

cairn_status crn_update_fields(crn_update *u)
{
    stretch t = {.u = u};
    double *w = NULL;
    cairn_status rc = crn_comm_agree(u->s->ranks.comm, make_room(&t, &w));
    if (rc == CAIRN_OK)
        rc = run(u, &t, w);
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

/* --- results of all ranks ------------------------------------------------------------------- */

cairn_status crn_update_rows(crn_update *u)
{
    const crn_state_layout *l = &u->s->layout;
    uint64_t n = 0, first, end;
    for (size_t f = 0; f < l->field.n; f++) {
        crn_slice_range(l, f, &first, &end);
        n += l->field.at[f].role == CAIRN_CARRIED ? 0 : end - first;
    }
    u->nrows = n;
    for (int k = 0; u->products && k < 4; k++)
        CRN_TRY(crn_alloc(&u->product[k], n));
    return CAIRN_OK;
}

/* Slices lie in the order of ranks, and so do their rows and stretches. */
static cairn_status collect_products(crn_update *u)
{
    for (int k = 0; k < 4; k++) {
        crn_gathered all = {0};
        CRN_TRY(
            crn_comm_gatherv(u->s->ranks.comm, u->product[k], u->nrows * sizeof(double), 0, &all));
        if (u->s->ranks.rank == 0) {
            free(u->product[k]);
            u->product[k] = (double *)(void *)all.data;
            all.data = NULL;
        }
        crn_gathered_done(&all);
    }
    return CAIRN_OK;
}

static void sum_up(crn_update *u, const crn_score *part, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        crn_score *to = &u->score[part[i].field];
        to->n += part[i].n;
        for (int when = 0; when < 2; when++) {
            to->square[when] += part[i].square[when];
            to->variance[when] += part[i].variance[when];
            to->crps[when] += part[i].crps[when];
        }
    }
}

cairn_status crn_update_collect(crn_update *u)
{
    crn_gathered all = {0};
    if (u->products && u->s->ranks.size > 1)
        CRN_TRY(collect_products(u));
    if (!u->scored)
        return CAIRN_OK;
    CRN_TRY(crn_comm_gatherv(u->s->ranks.comm, u->stretch.at, u->stretch.n * sizeof(crn_score), 0,
                             &all));
    if (u->s->ranks.rank == 0)
        sum_up(u, (const crn_score *)(const void *)all.data,
               all.off[u->s->ranks.size] / sizeof(crn_score));
    crn_gathered_done(&all);
    return CAIRN_OK;
}
