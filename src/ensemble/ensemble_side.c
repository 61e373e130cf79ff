/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The server of ensembles side by side: the first members, the update of ensemble 0 applied to all,
 * coding, and what validators must know. States are coded by a few threads, each state by one; what
 * comes out depends on the state and its setting alone.
 */
#include "ensemble/ensemble_side.h"

#include <inttypes.h>
#include <math.h>
#include <unistd.h>

#include "ensemble/ensemble_update.h"

enum { MOST_THREADS = 16 };

/* --- coding --------------------------------------------------------------------------------- */

/* DESIGN: threads take members by an atomic counter; each touches only its states and their
 * rates. */
typedef struct coders {
    crn_server *s;
    uint32_t cycle; /* that was updated last */
    double *rate;   /* [state * fields + field] */
    _Atomic uint32_t next;
    _Atomic int failed;
} coders;

/* What is added to the rows of a member: the same in all ensembles, and in the noise test what is
 * an ensemble's own. */
static void add_normal(const coders *c, crn_purpose purpose, uint64_t member, double deviation,
                       double *row)
{
    const crn_rng_key key = {c->s->study->seed, purpose, c->cycle, member};
    for (uint64_t i = 0; deviation > 0 && i < c->s->layout.nrows; i++)
        row[i] += deviation * crn_rng_normal_at(&key, i);
}

static cairn_status code_state(const coders *c, uint32_t state)
{
    const crn_server *s = c->s;
    const crn_side *side = s->study->side;
    const crn_codec_setting *setting = &side->coding.at[state / s->study->members].setting;
    const size_t n = s->layout.field.n;
    for (size_t f = 0; f < n; f++) {
        const crn_state_field *field = &s->layout.field.at[f];
        double *rate = &c->rate[state * n + f];
        *rate = 1;
        if (crn_codec_is_lossy(setting) && crn_side_takes(side, field))
            CRN_TRY(crn_field_code(setting, field, s->analysis[state] + field->at, rate));
    }
    return CAIRN_OK;
}

/* Code a member of all ensembles, then perturb it as its propagation begins. row and common have
 * room for the rows of a state. */
static cairn_status prepare(const coders *c, uint32_t member, double *row, double *common)
{
    const crn_server *s = c->s;
    const crn_side *side = s->study->side;
    memset(common, 0, s->layout.nrows * sizeof *common);
    add_normal(c, CRN_FOR_MODEL, member, side->perturb, common);
    for (uint32_t e = 0; e < side->coding.n; e++) {
        unsigned char *at = s->analysis[e * s->study->members + member];
        CRN_TRY(code_state(c, e * s->study->members + member));
        crn_rows_read(&s->layout, at, row);
        for (uint64_t i = 0; i < s->layout.nrows; i++)
            row[i] += common[i];
        if (side->noisy)
            add_normal(c, CRN_FOR_NOISE, (uint64_t)(e + 1) << 32 | member, side->noise, row);
        crn_rows_write(&s->layout, row, at);
    }
    return CAIRN_OK;
}

static void *coder(void *arg)
{
    coders *c = arg;
    uint32_t member;
    double *row = NULL, *common = NULL;
    if (crn_alloc(&row, c->s->layout.nrows) < 0 || crn_alloc(&common, c->s->layout.nrows) < 0)
        atomic_store(&c->failed, 1);
    while (!atomic_load(&c->failed) &&
           (member = atomic_fetch_add(&c->next, 1)) < c->s->study->members)
        if (prepare(c, member, row, common) < 0)
            atomic_store(&c->failed, 1);
    free(row);
    free(common);
    return NULL;
}

static cairn_status run_coders(coders *c)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const int want = (int)CRN_MIN(CRN_MAX(cores, 1), (long)MOST_THREADS) - 1;
    pthread_t thread[MOST_THREADS];
    int n = 0;
    while (n < want && pthread_create(&thread[n], NULL, coder, c) == 0)
        n++;
    (void)coder(c);
    while (n > 0)
        pthread_join(thread[--n], NULL);
    CRN_FAIL_IF(atomic_load(&c->failed), CAIRN_EINTERNAL,
                "a state of cycle %u could not be coded: no memory, or a codec failed", c->cycle);
    return CAIRN_OK;
}

static cairn_status write_rates(const crn_server *s, uint32_t cycle, const double *rate)
{
    char name[48];
    crn_buf b = {0};
    const size_t n = s->layout.field.n;
    for (uint32_t m = 0; m < s->nmembers; m++)
        for (size_t f = 0; f < n; f++)
            if (crn_side_takes(s->study->side, &s->layout.field.at[f]))
                crn_put_text(&b, "%.17g\n", rate[m * n + f]);
    return crn_study_write_buf(s->study, crn_side_name(cycle, "rates", name), &b);
}

/* All states of the analysis, for the cycle after s->cycle. */
static cairn_status prepare_all(crn_server *s)
{
    const uint64_t begun = crn_now_ns();
    coders c = {.s = s, .cycle = s->cycle};
    CRN_TRY(crn_alloc(&c.rate, s->nmembers * s->layout.field.n));
    cairn_status rc = run_coders(&c);
    if (rc == CAIRN_OK)
        rc = write_rates(s, s->cycle + 1, c.rate);
    free(c.rate);
    crn_study_event(s->study, "coded", "{s:i,s:i,s:f}", "cycle", (int)s->cycle + 1, "states",
                    (int)s->nmembers, "seconds", (double)(crn_now_ns() - begun) / 1e9);
    return rc;
}

/* --- the first members ---------------------------------------------------------------------- */

cairn_status crn_side_first(crn_server *s)
{
    const uint32_t members = s->study->members;
    for (uint32_t p = 0; p < members; p++)
        CRN_TRY(crn_perturb(s, CRN_FOR_INITIAL, 0, p, 1, s->background[0], s->analysis[p]));
    for (uint32_t m = members; m < s->nmembers; m++)
        memcpy(s->analysis[m], s->analysis[m % members], s->layout.nbytes);
    return prepare_all(s);
}

/* --- the update ----------------------------------------------------------------------------- */

static void choose(crn_update *u, uint32_t ensemble)
{
    for (uint32_t p = 0; p < u->n; p++) {
        u->from[p] = u->s->background[ensemble * u->n + p];
        u->to[p] = u->s->analysis[ensemble * u->n + p];
    }
}

/* What is observed of ensemble 0 updates all. */
static cairn_status update_each(crn_update *u)
{
    CRN_TRY(crn_alloc(&u->from, u->n));
    CRN_TRY(crn_alloc(&u->to, u->n));
    choose(u, 0);
    CRN_TRY(crn_update_observe(u));
    CRN_TRY(crn_adapt(u));
    for (uint32_t e = 0; e < u->s->study->side->coding.n; e++) {
        choose(u, e);
        CRN_TRY(crn_update_fields(u));
    }
    return CAIRN_OK;
}

static cairn_status update_all(crn_server *s, size_t *ret_nobs)
{
    crn_update u = {.s = s, .n = s->study->members};
    cairn_status rc = update_each(&u);
    *ret_nobs = u.set ? u.set->n : 0;
    crn_update_done(&u);
    return rc;
}

/* Weights: equal ones, as Kalman filters and free runs have them, or those of a particle filter. */
static cairn_status write_ready(const crn_server *s, const double *weight)
{
    char name[48];
    crn_buf b = {0};
    for (uint32_t p = 0; p < s->study->members; p++)
        crn_put_text(&b, "%.17g\n", weight ? weight[p] : 1.);
    return crn_study_write_buf(s->study, crn_side_name(s->cycle, "ready", name), &b);
}

/* The members of the next cycle, from their parents; before the validators may begin, since a new
 * server must find the same. */
static cairn_status update_particles(crn_server *s, bool more)
{
    double *weight;
    CRN_TRY(crn_alloc(&weight, s->study->members));
    cairn_status rc = crn_side_weigh(s, more, weight);
    if (rc == CAIRN_OK)
        rc = write_ready(s, weight);
    free(weight);
    return rc;
}

static cairn_status update_members(crn_server *s, size_t *ret_nobs)
{
    for (uint32_t m = 0; m < s->nmembers; m++)
        memcpy(s->analysis[m], s->background[m], s->layout.nbytes);
    if (s->obs && !crn_filter_is_free(s->study->filter))
        CRN_TRY(update_all(s, ret_nobs));
    return CAIRN_OK;
}

cairn_status crn_side_update(crn_server *s)
{
    const bool particles = s->study->particle.on, more = s->cycle < s->study->cycles;
    size_t nobs = 0;
    crn_keeper_join(s);
    /* all backgrounds are on the shelf */
    CRN_TRY(particles ? update_particles(s, more) : write_ready(s, NULL));
    if (!more)
        return CAIRN_OK;
    if (!particles)
        CRN_TRY(update_members(s, &nobs));
    crn_study_event(s->study, "analysis", "{s:i,s:i,s:I}", "cycle", s->cycle, "members",
                    (int)s->nmembers, "observations", (json_int_t)nobs);
    return prepare_all(s);
}

/* --- validators that do not keep up ---------------------------------------------------------- */

uint32_t crn_side_validated(const crn_study *s, uint32_t from)
{
    while (from < s->cycles && crn_side_has(s, from + 1, "csv"))
        from++;
    return from;
}

/* Backgrounds stay until they are validated: so many cycles of them, and no more. */
bool crn_side_must_wait(crn_server *s)
{
    crn_side *side = s->study->side;
    s->validated = crn_side_validated(s->study, s->validated);
    const bool late = s->cycle > s->validated + side->lag;
    if (late && !s->waiting)
        crn_study_event(s->study, "validators_late", "{s:i,s:i}", "cycle", s->cycle, "validated",
                        (int)s->validated);
    s->waiting = late;
    return late;
}
