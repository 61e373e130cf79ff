/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A particle filter for ensembles side by side: states are on the server, and the weights and the
 * resampling of ensemble 0 are those of all. They are the numbers that the particle filter of an
 * ordinary study would find, by the same keys; what is carried over cycles without resampling is in
 * a file, so that a new server goes on with it.
 */
#include "ensemble/ensemble_side.h"

#include <math.h>

#include "ensemble/ensemble_rows.h"
#include "ensemble/ensemble_update.h"
#include "particle/particle.h"

typedef struct side_weights {
    crn_server *s;
    uint32_t n;
    double *carried, *total, *w; /* log-weights; normalised */
    uint32_t *count, *parent;    /* of the next cycle */
    bool resampled;
    double *shift; /* rows, by child; NULL: none */
    crn_weight_sum sum;
} side_weights;

/* --- weights -------------------------------------------------------------------------------- */

/* The log-likelihood of a state that the server has. */
static cairn_status weigh_state(crn_server *s, const crn_obs_set *set, const unsigned char *state,
                                double *entry, double *y, double *ret)
{
    memset(entry, 0, set->nentries * sizeof *entry);
    for (size_t f = 0; f < s->layout.field.n; f++) {
        const cairn_field piece = crn_layout_field(&s->layout, f, state);
        if (piece.type == CAIRN_FLOAT32 || piece.type == CAIRN_FLOAT64)
            CRN_TRY(crn_obs_pick(set, 0, (uint32_t)f, &piece, entry));
    }
    crn_obs_apply(set, entry, y);
    *ret = crn_obs_loglik(set, y);
    return CAIRN_OK;
}

static cairn_status weigh_members(side_weights *u)
{
    crn_server *s = u->s;
    crn_obs_set *set = NULL;
    double *entry = NULL, *y = NULL;
    cairn_status rc = s->obs ? crn_obs_cycle(s->obs, s->cycle, &set) : CAIRN_OK;
    if (rc == CAIRN_OK && set)
        rc = crn_alloc(&entry, set->nentries);
    if (rc == CAIRN_OK && set)
        rc = crn_alloc(&y, set->n);
    for (uint32_t p = 0; rc == CAIRN_OK && p < u->n; p++) {
        double logw = 0;
        if (set && set->n > 0)
            rc = weigh_state(s, set, s->background[p], entry, y, &logw);
        u->total[p] = u->carried[p] + logw;
    }
    free(entry);
    free(y);
    crn_obs_set_free(set);
    return rc;
}

/* --- what is carried ------------------------------------------------------------------------ */

static cairn_status read_carried(side_weights *u)
{
    char name[48], *text, *at;
    cairn_status rc =
        crn_study_read(u->s->study->dir, crn_side_name(u->s->cycle, "carried", name), &text);
    if (rc == CAIRN_ENOTFOUND) /* nothing is, after each resampling */
        return CAIRN_OK;
    CRN_TRY(rc);
    at = text;
    for (uint32_t p = 0; p < u->n && *at; p++)
        u->carried[p] = strtod(at, &at);
    free(text);
    return CAIRN_OK;
}

static cairn_status write_carried(const side_weights *u)
{
    char name[48];
    crn_buf b = {0};
    for (uint32_t p = 0; p < u->n; p++)
        crn_put_text(&b, "%a\n", u->resampled ? 0. : u->total[p] - u->sum.log_mean);
    return crn_study_write_buf(u->s->study, crn_side_name(u->s->cycle + 1, "carried", name), &b);
}

/* --- resampling ----------------------------------------------------------------------------- */

static cairn_status resample(side_weights *u)
{
    const crn_study *study = u->s->study;
    const crn_rng_key key = {study->seed, CRN_FOR_RESAMPLING, u->s->cycle, 0};
    uint32_t child = 0;
    u->resampled = study->particle.threshold >= 1 || u->sum.ess < study->particle.threshold * u->n;
    if (u->resampled) {
        crn_rng rng = crn_rng_of(crn_rng_at(&key, 0), crn_rng_at(&key, 1));
        CRN_TRY(crn_resample(study->particle.resampling, u->w, u->n, u->n, &rng, u->count));
    }
    for (uint32_t p = 0; p < u->n; p++)
        for (uint32_t k = 0; k < (u->resampled ? u->count[p] : 1); k++)
            u->parent[child++] = p;
    return CAIRN_OK;
}

static bool is_copy(const side_weights *u, uint32_t child)
{
    return u->resampled && child > 0 && u->parent[child] == u->parent[child - 1];
}

/* Regularisation by the spread of ensemble 0: what moves a copy moves it in all. */
static cairn_status find_shift(side_weights *u)
{
    crn_server *s = u->s;
    const uint64_t dim = s->layout.nrows;
    const crn_jitter o = {s->study->seed, s->cycle, s->study->particle.jitter};
    double *x;
    if (!u->resampled || o.factor == 0)
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&x, u->n * dim));
    for (uint32_t p = 0; p < u->n; p++)
        crn_rows_read(&s->layout, s->background[p], x + p * dim);
    cairn_status rc = crn_alloc(&u->shift, u->n * dim);
    if (rc == CAIRN_OK)
        rc = crn_filter_jitter(&o, x, u->w, u->n, dim, u->count, u->shift);
    for (uint32_t m = 0; rc == CAIRN_OK && m < u->n; m++)
        for (uint64_t i = 0; i < dim; i++)
            u->shift[m * dim + i] -= x[u->parent[m] * dim + i];
    free(x);
    return rc;
}

/* Children of an ensemble, from its own parents. */
static void beget(const side_weights *u, uint32_t ensemble, uint32_t child, double *row)
{
    const crn_server *s = u->s;
    const uint32_t at = ensemble * u->n;
    const double deviation = s->study->particle.perturb;
    const crn_rng_key key = {s->study->seed, CRN_FOR_COPY, s->cycle, child};
    unsigned char *to = s->analysis[at + child];
    memcpy(to, s->background[at + u->parent[child]], s->layout.nbytes);
    if (!is_copy(u, child) || (!u->shift && deviation == 0))
        return;
    crn_rows_read(&s->layout, to, row);
    for (uint64_t i = 0; i < s->layout.nrows; i++)
        row[i] += u->shift ? u->shift[child * s->layout.nrows + i]
                           : deviation * crn_rng_normal_at(&key, i);
    crn_rows_write(&s->layout, row, to);
}

/* --- the update ----------------------------------------------------------------------------- */

static cairn_status find_weights(side_weights *u)
{
    CRN_TRY(crn_alloc(&u->carried, u->n));
    CRN_TRY(crn_alloc(&u->total, u->n));
    CRN_TRY(crn_alloc(&u->w, u->n));
    CRN_TRY(crn_alloc(&u->count, u->n));
    CRN_TRY(crn_alloc(&u->parent, u->n));
    CRN_TRY(read_carried(u));
    CRN_TRY(weigh_members(u));
    CRN_TRY(crn_weights(u->total, u->n, u->w, &u->sum));
    return CAIRN_OK;
}

static cairn_status beget_all(side_weights *u)
{
    double *row;
    CRN_TRY(resample(u));
    CRN_TRY(find_shift(u));
    CRN_TRY(crn_alloc(&row, u->s->layout.nrows));
    for (uint32_t e = 0; e < u->s->study->side->coding.n; e++)
        for (uint32_t c = 0; c < u->n; c++)
            beget(u, e, c, row);
    free(row);
    return write_carried(u);
}

static void report(const side_weights *u)
{
    uint32_t nparents = 0;
    for (uint32_t c = 0; c < u->n; c++)
        nparents += c == 0 || u->parent[c] != u->parent[c - 1];
    crn_study_event(u->s->study, "resampling", "{s:i,s:o,s:o,s:b,s:i}", "cycle", (int)u->s->cycle,
                    "ess", crn_study_real(u->sum.ess), "evidence", crn_study_real(u->sum.log_mean),
                    "resampled", u->resampled, "parents", (int)nparents);
}

cairn_status crn_side_weigh(crn_server *s, bool update, double *ret)
{
    side_weights u = {.s = s, .n = s->study->members};
    cairn_status rc = find_weights(&u);
    if (rc == CAIRN_OK)
        memcpy(ret, u.w, u.n * sizeof *ret);
    if (rc == CAIRN_OK && update && (rc = beget_all(&u)) == CAIRN_OK)
        report(&u);
    free(u.carried);
    free(u.total);
    free(u.w);
    free(u.count);
    free(u.parent);
    free(u.shift);
    return rc;
}
