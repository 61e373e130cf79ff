/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The end of a particle filter's cycle: weights, resampling, and the beginning of the next. All of
 * it follows from the journal: a server that dies in between computes it again, with the same bits.
 */
#include "ensemble/ensemble_particle_server.h"

#include <inttypes.h>
#include <math.h>

enum { SHIFT_NBYTES_MAX = 1 << 30 };

/* --- weights and resampling ----------------------------------------------------------------- */

typedef struct update {
    double *total, *w; /* log-weights with what was carried; normalised weights */
    crn_weight_sum sum;
    uint32_t nparents; /* with children in the next cycle */
} update;

static cairn_status weigh(crn_particles *p, update *u)
{
    const uint32_t n = p->s->nmembers;
    const double *logw = crn_sched_weights(p->sched);
    CRN_TRY(crn_alloc(&u->total, n));
    CRN_TRY(crn_alloc(&u->w, n));
    for (uint32_t i = 0; i < n; i++)
        u->total[i] = p->carried[p->parent[i]] + logw[i];
    if (crn_weights(u->total, n, u->w, &u->sum) < 0) {
        crn_err_prefix("cycle %u: no member can have made the observations, and nothing is left to "
                       "resample from (larger errors of observations, more members or a larger "
                       "spread may help): ",
                       p->s->cycle);
        return crn_err_peek()->code;
    }
    return CAIRN_OK;
}

static bool has_given_up(const crn_particles *p)
{
    for (uint32_t i = 0; i < p->s->nmembers; i++)
        if (p->row[i].gave_up)
            return true;
    return false;
}

/* Siblings of a model without noise are copies of each other for ever. */
static cairn_status check_copies(const crn_particles *p)
{
    const crn_study_particle *o = &p->s->study->particle;
    if (!p->resampled || o->jitter > 0 || o->perturb > 0)
        return CAIRN_OK;
    for (uint32_t i = 1; i < p->s->nmembers; i++)
        CRN_FAIL_IF(p->parent[i] == p->parent[i - 1] && p->row[i].has_digest &&
                        p->row[i - 1].has_digest &&
                        crn_digest_equal(&p->row[i].digest, &p->row[i - 1].digest),
                    CAIRN_EINVAL,
                    "members %u and %u of cycle %u have the same parent and the same state: the "
                    "model has no noise, and copies would stay copies; give particle.jitter or "
                    "particle.perturb",
                    i - 1, i, p->s->cycle);
    return CAIRN_OK;
}

/* What of the last cycle the next one needs: its digests. */
static void turn_over(crn_particles *p)
{
    for (uint32_t i = 0; i < p->s->nmembers; i++) {
        p->was[i] = p->row[i].digest;
        p->had[i] = p->row[i].has_digest;
        p->row[i] = (crn_particle_row){.weight = NAN};
    }
}

static cairn_status resample(crn_particles *p, update *u)
{
    const crn_study *study = p->s->study;
    const uint32_t n = p->s->nmembers;
    const crn_rng_key key = {study->seed, CRN_FOR_RESAMPLING, p->s->cycle, 0};
    p->resampled = study->particle.threshold >= 1 || u->sum.ess < study->particle.threshold * n ||
                   has_given_up(p);
    if (p->resampled) {
        crn_rng rng = crn_rng_of(crn_rng_at(&key, 0), crn_rng_at(&key, 1));
        CRN_TRY(crn_resample(study->particle.resampling, u->w, n, n, &rng, p->count));
    }
    for (uint32_t i = 0; i < n; i++) {
        p->count[i] = p->resampled ? p->count[i] : 1;
        p->carried[i] = p->resampled ? 0 : u->total[i] - u->sum.log_mean;
        u->nparents += p->count[i] > 0;
    }
    return CAIRN_OK;
}

void crn_particles_name_parents(crn_particles *p)
{
    for (uint32_t i = 0, child = 0; i < p->s->nmembers; i++)
        for (uint32_t k = 0; k < p->count[i] && child < p->s->nmembers; k++)
            p->parent[child++] = i;
}

/* --- regularisation ------------------------------------------------------------------------- */

/* The rows of a parent's state, from the shelf. */
static cairn_status read_rows(crn_particles *p, uint32_t member, unsigned char *state, double *row)
{
    char key[CRN_STATE_KEY];
    cairn_field field[CRN_MEMBER_FIELDS];
    const crn_state_layout *l = &p->s->layout;
    for (size_t i = 0; i < l->field.n; i++)
        field[i] = crn_layout_field(l, i, state);
    crn_helper_key(member, 0, 1, key);
    int rc = cairn_state_get(p->sweeper.shelf, key, p->s->cycle - 1, field, l->field.n);
    CRN_FAIL_IF(rc < 0, (cairn_status)rc,
                "%s (particle.jitter needs runners that are on one node each)", cairn_error_text());
    crn_rows_read(l, state, row);
    return CAIRN_OK;
}

static cairn_status read_parents(crn_particles *p, const double *w, double *x)
{
    const uint64_t dim = p->s->layout.nrows;
    const uint32_t n = p->s->nmembers;
    unsigned char *state;
    uint32_t heaviest = 0;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_alloc(&state, p->s->layout.nbytes));
    crn_sweeper_join(p);
    for (uint32_t i = 0; rc == CAIRN_OK && i < n; i++) {
        heaviest = w[i] > w[heaviest] ? i : heaviest;
        if (w[i] > 0)
            rc = read_rows(p, i, state, x + i * dim);
    }
    for (uint32_t i = 0; rc == CAIRN_OK && i < n; i++)
        if (!(w[i] > 0)) /* it counts for nothing, and may have no state */
            memcpy(x + i * dim, x + heaviest * dim, dim * sizeof *x);
    free(state);
    return rc;
}

cairn_status crn_particles_shift(crn_particles *p)
{
    const uint64_t dim = p->s->layout.nrows;
    const uint32_t n = p->s->nmembers;
    const crn_jitter o = {p->s->study->seed, p->s->cycle - 1, p->s->study->particle.jitter};
    double *x = NULL;
    cairn_status rc;
    free(p->shift);
    p->shift = NULL;
    CRN_FAIL_IF(dim > SHIFT_NBYTES_MAX / sizeof(double) / n, CAIRN_EINVAL,
                "particle.jitter needs the whole ensemble on the server, and %u states of %" PRIu64
                " rows are too much for it: perturb copies (particle.perturb), or have noise in "
                "the model",
                n, dim);
    CRN_TRY_OUT(rc, crn_alloc(&x, n * dim));
    CRN_TRY_OUT(rc, crn_alloc(&p->shift, n * dim));
    CRN_TRY_OUT(rc, read_parents(p, p->weight, x));
    CRN_TRY_OUT(rc, crn_filter_jitter(&o, x, p->weight, n, dim, p->count, p->shift));
    for (uint32_t m = 0; m < n; m++)
        for (uint64_t i = 0; i < dim; i++)
            p->shift[m * dim + i] -= x[p->parent[m] * dim + i];
out:
    free(x);
    return rc;
}

/* --- what is not needed any more ------------------------------------------------------------ */

typedef struct spent {
    const crn_sweeper *w;
    CRN_VEC(cairn_state_info) state;
} spent;

static int find_spent(void *arg, const cairn_state_info *info)
{
    spent *x = arg;
    const unsigned long member = strtoul(info->key + 1, NULL, 10);
    const bool childless =
        x->w->count && info->version == x->w->cycle && member < x->w->n && x->w->count[member] == 0;
    if (info->version < x->w->cycle || childless)
        return crn_vec_push(&x->state, *info) < 0;
    return 0;
}

static void *sweep(void *arg)
{
    crn_sweeper *w = arg;
    spent x = {.w = w};
    (void)!cairn_state_list(w->shelf, "p", true, 0, find_spent, &x);
    for (size_t i = 0; i < x.state.n; i++)
        (void)!cairn_state_drop(w->shelf, x.state.at[i].key, x.state.at[i].version);
    crn_vec_done(&x.state);
    atomic_store(&w->ended, true);
    return NULL;
}

void crn_sweeper_join(crn_particles *p)
{
    if (p->sweeper.works)
        pthread_join(p->sweeper.thread, NULL);
    p->sweeper.works = false;
}

/* States before the parents, and parents without children, unless their spread is needed. */
void crn_sweeper_start(crn_particles *p)
{
    crn_sweeper *w = &p->sweeper;
    const uint32_t n = p->s->nmembers;
    crn_sweeper_join(p);
    w->cycle = p->s->cycle - 1;
    w->n = n;
    free(w->count);
    w->count = NULL;
    if (p->s->study->particle.jitter == 0 && crn_alloc(&w->count, n) == CAIRN_OK)
        memcpy(w->count, p->count, n * sizeof *w->count);
    atomic_store(&w->ended, false);
    w->works = pthread_create(&w->thread, NULL, sweep, w) == 0;
}

/* --- cycles --------------------------------------------------------------------------------- */

/* One number for the ensemble and its history, whatever the layout: weights and parents. */
static void name_cycle(const crn_particles *p, const update *u, char text[CRN_DIGEST_TEXT])
{
    const uint32_t n = p->s->nmembers;
    const crn_digest all[] = {crn_digest_of(crn_sched_weights(p->sched), n * sizeof(double)),
                              crn_digest_of(u->w, n * sizeof(double)),
                              crn_digest_of(p->count, n * sizeof *p->count)};
    const crn_digest one = crn_digest_of(all, sizeof all);
    crn_digest_format(&one, text);
}

static void report(const crn_particles *p, const update *u, double seconds)
{
    const crn_server *s = p->s;
    const crn_sched_counts c = crn_sched_count(p->sched);
    char digest[CRN_DIGEST_TEXT];
    name_cycle(p, u, digest);
    crn_study_event(s->study, "schedule",
                    "{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:I,s:I,s:f,s:f,s:f}",
                    "cycle", s->cycle, "tasks", c.ntasks, "hits", c.nhits, "loads", c.nloads,
                    "ahead", c.nahead, "steals", c.nsteals, "again", c.nagain, "plans", c.nplans,
                    "planned", c.first.nloads, "bound", c.first.bound, "supplies",
                    c.first.nsupplies, "deficits", c.first.ndeficits, "parents", c.first.nparents,
                    "loaded_bytes", (json_int_t)p->loaded_nbytes, "from_peers",
                    (json_int_t)p->npeer_loads, "busy", p->busy_s, "waited",
                    (double)p->waited_ns / 1e9, "idle", (double)p->idle_ns / 1e9);
    crn_study_event(s->study, "analysis", "{s:i,s:i,s:o,s:o,s:b,s:i,s:I,s:i,s:f,s:s}", "cycle",
                    s->cycle, "members", (int)s->nmembers, "ess", crn_study_real(u->sum.ess),
                    "evidence", crn_study_real(u->sum.log_mean), "resampled", p->resampled,
                    "parents", (int)u->nparents, "zero", (json_int_t)u->sum.nzero, "runners",
                    (int)p->peer.n, "seconds", seconds, "digest", digest);
}

static cairn_status next_cycle(crn_particles *p)
{
    crn_server *s = p->s;
    turn_over(p);
    p->loaded_nbytes = p->waited_ns = p->idle_ns = p->npeer_loads = 0;
    p->busy_s = 0;
    for (size_t i = 0; i < p->peer.n; i++)
        p->peer.at[i]->loads = false;
    CRN_TRY(crn_particles_note_begin(p, s->cycle + 1)); /* now the resampling counts */
    crn_server_next_cycle(s);
    free(p->shift);
    p->shift = NULL;
    if (s->phase == CRN_PHASE_OVER)
        return CAIRN_OK;
    CRN_TRY(crn_sched_begin(p->sched, p->count));
    crn_particles_name_parents(p);
    if (p->resampled && s->study->particle.jitter > 0)
        CRN_TRY(crn_particles_shift(p));
    crn_sweeper_start(p);
    return CAIRN_OK;
}

static cairn_status compute(crn_particles *p, update *u)
{
    const uint64_t begun = crn_now_ns();
    CRN_TRY(check_copies(p));
    CRN_TRY(weigh(p, u));
    CRN_TRY(resample(p, u));
    memcpy(p->weight, u->w, p->s->nmembers * sizeof *u->w);
    report(p, u, (double)(crn_now_ns() - begun) / 1e9);
    return next_cycle(p);
}

cairn_status crn_particles_update(crn_server *s)
{
    crn_particles *p = crn_particles_of(s);
    update u = {0};
    crn_server_beat(s, "update");
    CRN_TRY(crn_journal_sync(&p->journal, false));
    cairn_status rc = compute(p, &u);
    free(u.total);
    free(u.w);
    return rc;
}

/* The model's first state is safe: all members of the first cycle are its children, and differ by
 * what is added to them. */
cairn_status crn_particles_first(crn_server *s, const crn_digest *digest)
{
    crn_particles *p = crn_particles_of(s);
    for (uint32_t i = 0; i < s->nmembers; i++)
        p->count[i] = i == 0 ? s->nmembers : 0;
    p->row[0].digest = *digest;
    p->row[0].has_digest = true;
    p->resampled = false;
    CRN_TRY(next_cycle(p));
    for (size_t i = 0; i < p->peer.n; i++) {
        crn_peer *peer = p->peer.at[i];
        if (peer->row && peer->number == p->first_runner) {
            CRN_TRY(crn_sched_offer(p->sched, peer->sched, (crn_particle){0, 0}));
            peer->row->busy = false;
        }
    }
    return CAIRN_OK;
}
