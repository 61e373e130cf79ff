/* SPDX-License-Identifier: BSD-3-Clause */
#include "ensemble/ensemble_weigh.h"

#include <math.h>

#include "ensemble/ensemble_observing.h"

struct crn_weigher {
    const crn_state_fields *piece;
    crn_state_layout layout;
    crn_observing observing;
    crn_obs *obs; /* NULL: there are none */
};

/* Coordinates that are fields of the model are on all ranks, and in no place whole. */
static cairn_status check_places(const crn_observing *g, size_t nfields)
{
    for (size_t f = 0; f < nfields; f++)
        for (int d = 0; d < CRN_OBS_DIMS; d++)
            CRN_FAIL_IF(g->coordinate && g->coordinate[f][d][0], CAIRN_EINVAL,
                        "[field %s]: a particle filter has no state in one place to take "
                        "coordinates from '%s'; give axes, origin and step",
                        g->field[f].name, g->coordinate[f][d]);
    return CAIRN_OK;
}

static cairn_status open_observations(crn_weigher *w, const crn_study *study)
{
    CRN_TRY(crn_layout_init(&w->layout, w->piece));
    CRN_TRY(crn_observing_init(&w->observing, study, &w->layout.field));
    if (!study->observations[0])
        return CAIRN_OK;
    CRN_TRY(check_places(&w->observing, w->piece->n));
    return crn_obs_open(&w->observing.setup, &w->obs);
}

cairn_status crn_weigher_create(const crn_study *study, const crn_state_fields *pieces,
                                crn_weigher **ret)
{
    crn_weigher *w;
    CRN_TRY(crn_alloc(&w, 1));
    w->piece = pieces;
    cairn_status rc = open_observations(w, study);
    if (rc < 0)
        crn_weigher_free(w);
    else
        *ret = w;
    return rc;
}

void crn_weigher_free(crn_weigher *w)
{
    if (!w)
        return;
    crn_obs_close(w->obs);
    crn_observing_done(&w->observing);
    crn_layout_done(&w->layout);
    free(w);
}

/* The values of entries whose elements this rank has. */
static cairn_status pick(const crn_weigher *w, const cairn_ensemble *e, const crn_obs_set *set,
                         double *entry)
{
    for (size_t i = 0; i < w->piece->n; i++) {
        const crn_state_field *f = &w->piece->at[i];
        cairn_field piece = e->field.at[i]->piece;
        if (f->type != CAIRN_FLOAT32 && f->type != CAIRN_FLOAT64)
            continue;
        piece.ndims = f->ndims;
        memcpy(piece.global, f->global, sizeof f->global);
        memcpy(piece.offset, f->offset, sizeof f->offset);
        memcpy(piece.count, f->count, sizeof f->count);
        CRN_TRY(crn_obs_pick(set, 0, (uint32_t)i, &piece, entry));
    }
    return CAIRN_OK;
}

/* Each entry is picked by one rank and 0 on the others: their sum has no rounding. Collective. */
static cairn_status weigh(const crn_weigher *w, const cairn_ensemble *e, const crn_obs_set *set,
                          double *entry, double *y, double *ret)
{
    CRN_TRY(crn_comm_agree(e->comm, pick(w, e, set, entry)));
    CRN_TRY(crn_comm_allreduce_f64(e->comm, CRN_REDUCE_SUM, entry, set->nentries));
    crn_obs_apply(set, entry, y);
    *ret = crn_obs_loglik(set, y);
    for (size_t i = 0; i < set->n; i++)
        if (isnan(y[i])) /* not impossible, but unknown */
            *ret = NAN;
    return CAIRN_OK;
}

cairn_status crn_weigh(crn_weigher *w, const cairn_ensemble *e, uint32_t cycle, double *ret)
{
    crn_obs_set *set = NULL;
    double *entry = NULL, *y = NULL;
    *ret = 0;
    if (!w->obs)
        return CAIRN_OK;
    cairn_status rc = crn_obs_cycle(w->obs, cycle, &set);
    if (rc == CAIRN_OK)
        rc = crn_alloc(&entry, set->nentries);
    if (rc == CAIRN_OK)
        rc = crn_alloc(&y, set->n);
    rc = crn_comm_agree(e->comm, rc);
    if (rc == CAIRN_OK && set->n > 0)
        rc = weigh(w, e, set, entry, y, ret);
    free(entry);
    free(y);
    crn_obs_set_free(set);
    return rc;
}
