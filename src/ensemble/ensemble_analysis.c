/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The first members, the update of a cycle, and what a twin experiment observes. All random numbers
 * are keyed by member and element, and all sums run by index: nothing depends on who computed what,
 * or when.
 */
#include "ensemble/ensemble_server.h"

#include <inttypes.h>
#include <math.h>

#include "hash/hash.h"

static cairn_status perturb(crn_server *s, crn_purpose purpose, uint32_t cycle, uint32_t member,
                            double deviation, const unsigned char *from, unsigned char *to)
{
    const crn_rng_key key = {s->study->seed, purpose, cycle, member};
    double *row;
    memcpy(to, from, s->layout.nbytes);
    CRN_TRY(crn_alloc(&row, s->layout.nrows));
    crn_rows_read(&s->layout, from, row);
    for (uint64_t i = 0; i < s->layout.nrows; i++)
        row[i] += deviation * crn_rng_normal_at(&key, i);
    crn_rows_write(&s->layout, row, to);
    free(row);
    return CAIRN_OK;
}

cairn_status crn_analysis_first(crn_server *s)
{
    crn_purpose purpose = s->twin ? CRN_FOR_TRUTH : CRN_FOR_INITIAL;
    for (uint32_t m = 0; m < s->nmembers; m++)
        CRN_TRY(perturb(s, purpose, 0, m, s->study->spread, s->background[0], s->analysis[m]));
    return CAIRN_OK;
}

/* --- a member that has failed --------------------------------------------------------------- */

/* Another member's background, with a perturbation of its own, in its place. */
static cairn_status donate(crn_server *s, uint32_t member)
{
    const crn_rng_key key = {s->study->seed, CRN_FOR_DONOR, s->cycle, member};
    uint64_t nth = crn_rng_at(&key, UINT64_MAX) % s->ndone;
    uint32_t donor = 0;
    for (uint32_t m = 0; m < s->nmembers; m++)
        if (s->member[m].state == CRN_MEMBER_DONE && nth-- == 0)
            donor = m;
    CRN_TRY(crn_study_append(s->study, "ledger", "donor %u %u %u", s->cycle, member, donor));
    CRN_TRY(perturb(s, CRN_FOR_DONOR, s->cycle, member, s->study->spread * 0.1,
                    s->background[donor], s->background[member]));
    crn_study_event(s->study, "donor", "{s:i,s:i,s:i}", "cycle", s->cycle, "member", member,
                    "donor", donor);
    return crn_states_put_background(s, member);
}

static cairn_status drop(crn_server *s, uint32_t member)
{
    CRN_FAIL_IF(s->nactive - 1 < s->study->min_members, CAIRN_EPEER,
                "member %u has failed, and without it there are fewer than min_members (%u)",
                member, s->study->min_members);
    CRN_TRY(crn_study_append(s->study, "ledger", "dropped %u %u", s->cycle, member));
    s->member[member].state = CRN_MEMBER_DROPPED;
    s->nactive--;
    crn_study_event(s->study, "dropped", "{s:i,s:i}", "cycle", s->cycle, "member", member);
    return CAIRN_OK;
}

/* Donors are those that are done by themselves: so all are replaced before any counts. */
static cairn_status settle_failed(crn_server *s)
{
    for (uint32_t m = 0; m < s->nmembers; m++) {
        if (s->member[m].state != CRN_MEMBER_FAILED)
            continue;
        if (s->study->failing == CRN_FAILING_DROP || s->ndone == 0)
            CRN_TRY(drop(s, m));
        else
            CRN_TRY(donate(s, m));
    }
    for (uint32_t m = 0; m < s->nmembers; m++)
        if (s->member[m].state == CRN_MEMBER_FAILED) {
            s->member[m].state = CRN_MEMBER_DONE;
            s->ndone++;
        }
    return CAIRN_OK;
}

/* --- the update ----------------------------------------------------------------------------- */

typedef struct update {
    crn_filter_case c;
    double **x; /* rows of each active member */
    double *y, *value, *variance, *w;
    uint32_t n;
    double innovation, spread; /* root mean squares over the observations */
} update;

static void update_done(update *u)
{
    for (uint32_t j = 0; u->x && j < u->n; j++)
        free(u->x[j]);
    free(u->x);
    free(u->y);
    free(u->value);
    free(u->variance);
    free(u->w);
}

static cairn_status read_ensemble(crn_server *s, update *u)
{
    CRN_TRY(crn_alloc(&u->x, s->nactive));
    CRN_TRY(crn_alloc(&u->w, (size_t)s->nactive * s->nactive));
    for (uint32_t m = 0; m < s->nmembers; m++) {
        if (s->member[m].state != CRN_MEMBER_DONE)
            continue;
        CRN_TRY(crn_alloc(&u->x[u->n], s->layout.nrows));
        crn_rows_read(&s->layout, s->background[m], u->x[u->n++]);
    }
    return CAIRN_OK;
}

static cairn_status observe(crn_server *s, update *u)
{
    size_t first = 0, end;
    while (first < s->obs.n && s->obs.at[first].cycle < s->cycle)
        first++;
    for (end = first; end < s->obs.n && s->obs.at[end].cycle == s->cycle; end++)
        ;
    const size_t n = end - first;
    CRN_TRY(crn_alloc(&u->y, n * u->n));
    CRN_TRY(crn_alloc(&u->value, n));
    CRN_TRY(crn_alloc(&u->variance, n));
    for (size_t i = 0; i < n; i++) {
        const crn_observation *o = &s->obs.at[first + i];
        u->value[i] = o->value;
        u->variance[i] = o->variance;
        for (uint32_t j = 0; j < u->n; j++)
            u->y[i + j * n] = u->x[j][o->row];
    }
    u->c = (crn_filter_case){.study = s->study->seed,
                             .cycle = s->cycle,
                             .nmembers = u->n,
                             .nobs = n,
                             .y = u->y,
                             .value = u->value,
                             .variance = u->variance,
                             .inflation = s->study->inflation,
                             .rotate = s->study->rotate};
    return CAIRN_OK;
}

static void diagnose(update *u)
{
    for (size_t i = 0; i < u->c.nobs; i++) {
        double mean = 0, square = 0;
        for (uint32_t j = 0; j < u->n; j++)
            mean += u->y[i + j * u->c.nobs] / u->n;
        for (uint32_t j = 0; j < u->n; j++)
            square += pow(u->y[i + j * u->c.nobs] - mean, 2) / (u->n - 1);
        u->innovation += pow(u->value[i] - mean, 2) / (double)u->c.nobs;
        u->spread += square / (double)u->c.nobs;
    }
    u->innovation = sqrt(u->innovation);
    u->spread = sqrt(u->spread);
}

static cairn_status compute(crn_server *s, update *u)
{
    CRN_TRY(read_ensemble(s, u));
    CRN_TRY(observe(s, u));
    diagnose(u);
    if (!crn_filter_is_free(s->study->filter)) {
        CRN_TRY(crn_filter_weights(s->study->filter, &u->c, u->w));
        CRN_TRY(crn_filter_update(u->w, u->n, s->layout.nrows, u->x));
    }
    uint32_t j = 0;
    for (uint32_t m = 0; m < s->nmembers; m++)
        if (s->member[m].state == CRN_MEMBER_DONE) {
            memcpy(s->analysis[m], s->background[m], s->layout.nbytes);
            if (!crn_filter_is_free(s->study->filter))
                crn_rows_write(&s->layout, u->x[j], s->analysis[m]);
            j++;
        }
    return CAIRN_OK;
}

/* One number for all of the analysis, by which two studies are compared. */
static void name_analysis(const crn_server *s, char text[CRN_DIGEST_TEXT])
{
    crn_digest all = {0};
    for (uint32_t m = 0; m < s->nmembers; m++)
        if (s->member[m].state == CRN_MEMBER_DONE) {
            const crn_digest both[] = {all, crn_digest_of(s->analysis[m], s->layout.nbytes)};
            all = crn_digest_of(both, sizeof both);
        }
    crn_digest_format(&all, text);
}

/* --- a twin experiment ---------------------------------------------------------------------- */

static cairn_status observe_truth(crn_server *s)
{
    const crn_rng_key key = {s->study->seed, CRN_FOR_OBSERVATION, s->cycle, 0};
    const double deviation = sqrt(s->study->twin_variance);
    double *row, *at;
    CRN_TRY(crn_alloc(&row, s->layout.nrows));
    crn_rows_read(&s->layout, s->background[0], row);
    memcpy(s->analysis[0], s->background[0], s->layout.nbytes);
    uint64_t k = 0;
    at = row;
    for (size_t f = 0; f < s->layout.field.n; f++) {
        const cairn_field field = crn_layout_field(&s->layout, f, s->background[0]);
        uint64_t n = s->layout.field.at[f].role == CAIRN_CARRIED ? 0 : 1;
        for (int d = 0; d < field.ndims; d++)
            n *= field.count[d];
        for (uint64_t i = 0; i < n; i++, k++, at++)
            if (k % s->study->twin_every == 0)
                fprintf(s->twin_file, "%u %s %" PRIu64 " %.17g %.17g\n", s->cycle, field.name, i,
                        *at + deviation * crn_rng_normal_at(&key, k), s->study->twin_variance);
    }
    free(row);
    CRN_FAIL_IF(ferror(s->twin_file), CAIRN_EIO, "cannot write the observations");
    return CAIRN_OK;
}

cairn_status crn_analysis_update(crn_server *s)
{
    update u = {0};
    char digest[CRN_DIGEST_TEXT];
    const uint64_t begun = crn_now_ns();
    if (s->twin)
        return observe_truth(s);
    CRN_TRY(settle_failed(s));
    crn_study_event(s->study, "update", "{s:i,s:i}", "cycle", s->cycle, "members", s->ndone);
    crn_keeper_join(s); /* it reads the analysis that is about to change */
    cairn_status rc = compute(s, &u);
    if (rc == CAIRN_OK) {
        name_analysis(s, digest);
        crn_study_event(s->study, "analysis", "{s:i,s:i,s:I,s:o,s:o,s:f,s:s}", "cycle", s->cycle,
                        "members", (int)u.n, "observations", (json_int_t)u.c.nobs, "innovation",
                        crn_study_real(u.innovation), "spread", crn_study_real(u.spread), "seconds",
                        (double)(crn_now_ns() - begun) / 1e9, "digest", digest);
    }
    update_done(&u);
    return rc;
}
