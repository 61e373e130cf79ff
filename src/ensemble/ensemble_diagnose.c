/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Diagnostics of a cycle: innovations against what the members expect, by type and region; scores
 * against a truth; the list of observations that were left out; whether the filter has diverged.
 * All go to tables in the study's directory, a cycle at a time and each cycle once, whatever a
 * server that died had written.
 */
#include "ensemble/ensemble_table.h"
#include "ensemble/ensemble_update.h"

#include <inttypes.h>
#include <math.h>
#include <unistd.h>

/* --- one type and region -------------------------------------------------------------------- */

typedef struct part {
    size_t n;
    size_t *of; /* observations of the whole */
    double *y, *value, *variance;
    crn_filter_block *block;
    size_t nblocks;
} part;

static void part_done(part *p)
{
    for (size_t k = 0; k < p->nblocks; k++)
        free((double *)p->block[k].covariance);
    free(p->of);
    free(p->y);
    free(p->value);
    free(p->variance);
    free(p->block);
}

static bool belongs(const crn_update *u, size_t i, uint32_t type, const crn_region *region)
{
    const crn_obs_item *item = &u->set->item[i];
    if (type != CRN_OBS_NONE && item->type != type)
        return false;
    return !region || (item->placed && crn_region_has(region, u->l.ndims, item->place));
}

/* What is left of the blocks. */
static cairn_status cut_blocks(const crn_update *u, part *p)
{
    size_t at = 0;
    CRN_TRY(crn_alloc(&p->block, u->c.nblocks));
    for (size_t k = 0; k < u->c.nblocks; k++) {
        const crn_filter_block *b = &u->c.block[k];
        double *v;
        size_t n = 0;
        while (at < p->n && p->of[at] < b->first)
            at++;
        while (at + n < p->n && p->of[at + n] < b->first + b->n)
            n++;
        if (n == 0)
            continue;
        CRN_TRY(crn_alloc(&v, n * n));
        for (size_t i = 0; i < n; i++)
            for (size_t m = 0; m < n; m++)
                v[i + m * n] =
                    b->covariance[(p->of[at + i] - b->first) + (p->of[at + m] - b->first) * b->n];
        p->block[p->nblocks++] = (crn_filter_block){at, n, v};
    }
    return CAIRN_OK;
}

static cairn_status cut(const crn_update *u, uint32_t type, const crn_region *region, part *p)
{
    CRN_TRY(crn_alloc(&p->of, u->c.nobs));
    for (size_t i = 0; i < u->c.nobs; i++)
        if (belongs(u, i, type, region))
            p->of[p->n++] = i;
    CRN_TRY(crn_alloc(&p->y, p->n * u->n));
    CRN_TRY(crn_alloc(&p->value, p->n));
    CRN_TRY(crn_alloc(&p->variance, p->n));
    for (size_t i = 0; i < p->n; i++) {
        p->value[i] = u->value[p->of[i]];
        p->variance[i] = u->variance[p->of[i]];
        for (uint32_t j = 0; j < u->n; j++)
            p->y[i + j * p->n] = u->y[p->of[i] + j * u->c.nobs];
    }
    return cut_blocks(u, p);
}

/* Where a value ranks among the members, which get errors as the observation has. */
static uint32_t rank_of(const crn_update *u, const part *p, size_t i)
{
    uint32_t rank = 0;
    const double deviation = sqrt(p->variance[i]);
    for (uint32_t j = 0; j < u->n; j++) {
        const crn_rng_key key = {u->c.study, CRN_FOR_RANK, u->c.cycle, j};
        double error = deviation * crn_rng_normal_at(&key, u->number[p->of[i]]);
        rank += p->y[i + j * p->n] + error < p->value[i];
    }
    return rank;
}

static void sum_up(const crn_update *u, const part *p, double *sorted, crn_innovations *r)
{
    const double n = (double)p->n;
    for (size_t i = 0; i < p->n; i++) {
        double mean = 0, square = 0;
        for (uint32_t j = 0; j < u->n; j++)
            mean += sorted[j] = p->y[i + j * p->n];
        mean /= u->n;
        for (uint32_t j = 0; j < u->n; j++)
            square += (sorted[j] - mean) * (sorted[j] - mean);
        r->bias += (p->value[i] - mean) / n;
        r->rms += (p->value[i] - mean) * (p->value[i] - mean) / n;
        r->spread += square / (u->n - 1) / n;
        r->error += p->variance[i] / n;
        r->crps += crn_filter_crps(sorted, u->n, p->value[i]) / n;
        r->histogram[rank_of(u, p, i)]++;
    }
    r->rms = sqrt(r->rms);
    r->spread = sqrt(r->spread);
    r->error = sqrt(r->error);
}

static cairn_status describe(const crn_update *u, const part *p, crn_innovations *r)
{
    crn_filter_case c = u->c;
    crn_filter_fit fit = {0};
    double *sorted;
    c.nobs = p->n;
    c.y = p->y;
    c.value = p->value;
    c.variance = p->variance;
    c.number = NULL;
    c.block = p->block;
    c.nblocks = p->nblocks;
    CRN_TRY(crn_filter_fit_of(&c, &fit));
    r->n = p->n;
    r->chi2 = fit.chi2 / (double)p->n;
    r->rank = fit.rank;
    CRN_TRY(crn_alloc(&r->histogram, u->n + 1));
    CRN_TRY(crn_alloc(&sorted, u->n));
    sum_up(u, p, sorted, r);
    free(sorted);
    return CAIRN_OK;
}

static cairn_status add_row(crn_update *u, uint32_t type, const crn_region *region)
{
    crn_innovations r = {.type =
                             type == CRN_OBS_NONE ? "all" : crn_obs_type_at(u->s->obs, type)->name,
                         .region = region ? region->name : "all"};
    part p = {0};
    cairn_status rc = cut(u, type, region, &p);
    if (rc == CAIRN_OK && p.n > 0)
        rc = describe(u, &p, &r);
    if (rc == CAIRN_OK && p.n > 0)
        rc = crn_vec_push(&u->row, r);
    if (rc < 0)
        free(r.histogram);
    part_done(&p);
    return rc;
}

cairn_status crn_diagnose(crn_update *u)
{
    const crn_observing *g = &u->s->observing;
    const size_t ntypes = crn_obs_ntypes(u->s->obs);
    for (size_t k = 0; k <= g->nregions; k++) {
        const crn_region *region = k > 0 ? &g->region[k - 1] : NULL;
        CRN_TRY(add_row(u, CRN_OBS_NONE, region));
        for (uint32_t t = 0; ntypes > 1 && t < ntypes; t++)
            CRN_TRY(add_row(u, t, region));
    }
    return CAIRN_OK;
}

void crn_diagnose_done(crn_update *u)
{
    for (size_t i = 0; i < u->row.n; i++)
        free(u->row.at[i].histogram);
    crn_vec_done(&u->row);
}

/* --- tables --------------------------------------------------------------------------------- */

/* The cycle of the last line that is whole; 0: there is none. */
static uint64_t last_cycle(const crn_study *s, const char *name)
{
    char *text, *line, *rest = NULL;
    uint64_t last = 0, cycle;
    if (crn_study_read_tail(s, name, &text) < 0) {
        crn_err_take(&(crn_err){0});
        return 0;
    }
    for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        line[strcspn(line, ",")] = 0;
        if (crn_parse_count(line, &cycle) == CAIRN_OK)
            last = cycle;
        else
            crn_err_take(&(crn_err){0});
    }
    free(text);
    return last;
}

static bool is_there(const crn_study *s, const char *name)
{
    char *path;
    bool there = crn_study_path(s, name, &path) == CAIRN_OK && access(path, F_OK) == 0;
    free(path);
    return there;
}

/* Lines of a cycle, at once, after the table's first line; nothing where the cycle is there. */
static cairn_status append(crn_update *u, int table, FILE *f, char **text, size_t *n)
{
    const char *const name = crn_tables[table].name;
    const bool failed = fclose(f) != 0;
    cairn_status rc = CAIRN_OK;
    CRN_FAIL_IF(failed, CAIRN_ENOMEM, "no memory for a table");
    if (*n > 0 && !is_there(u->s->study, name))
        rc = crn_study_note(u->s->study, name, crn_tables[table].head);
    if (rc == CAIRN_OK && *n > 0 && last_cycle(u->s->study, name) < u->s->cycle)
        rc = crn_study_note(u->s->study, name, *text);
    free(*text);
    return rc;
}

static cairn_status open_text(FILE **ret, char **text, size_t *n)
{
    *text = NULL;
    *n = 0;
    *ret = open_memstream(text, n);
    CRN_FAIL_IF(!*ret, CAIRN_ENOMEM, "no memory for a table");
    return CAIRN_OK;
}

static cairn_status write_innovations(crn_update *u)
{
    FILE *f;
    char *text;
    size_t n;
    CRN_TRY(open_text(&f, &text, &n));
    for (size_t i = 0; i < u->row.n; i++) {
        const crn_innovations *r = &u->row.at[i];
        fprintf(f, "%u,%s,%s,%zu,%.9g,%.9g,%.9g,%.9g,%.9g,%.6g,%.9g,", u->s->cycle, r->type,
                r->region, r->n, r->bias, r->rms, r->spread, r->error, r->chi2, r->rank, r->crps);
        for (uint32_t k = 0; k <= u->n; k++)
            fprintf(f, "%s%u", k ? " " : "", r->histogram[k]);
        fputc('\n', f);
    }
    return append(u, CRN_TABLE_INNOVATIONS, f, &text, &n);
}

static cairn_status write_rejected(crn_update *u)
{
    FILE *f;
    char *text;
    size_t n;
    CRN_TRY(open_text(&f, &text, &n));
    for (size_t i = 0; i < u->set->rejected.n; i++) {
        const crn_obs_rejected *r = &u->set->rejected.at[i];
        fprintf(f, "%u,%" PRIu64 ",%s,%s,%.17g,%.17g,", u->s->cycle, r->item.number,
                crn_obs_type_at(u->s->obs, r->item.type)->name, crn_obs_flag_name(r->flag),
                r->item.value, r->item.variance);
        if (r->item.index != UINT64_MAX)
            fprintf(f, "%" PRIu64, r->item.index);
        for (int d = 0; d < CRN_OBS_DIMS; d++) {
            fputc(',', f);
            if (r->item.placed && d < u->l.ndims)
                fprintf(f, "%.17g", r->item.place[d]);
        }
        if (r->flag == CRN_OBS_FAR)
            fprintf(f, ",%.9g,%.9g\n", r->innovation, r->bound);
        else
            fputs(",,\n", f);
    }
    return append(u, CRN_TABLE_REJECTED, f, &text, &n);
}

static cairn_status write_scores(crn_update *u)
{
    const crn_state_layout *l = &u->s->layout;
    FILE *f;
    char *text;
    size_t n;
    CRN_TRY(open_text(&f, &text, &n));
    for (size_t k = 0; u->scored && k < l->field.n; k++) {
        const crn_score *r = &u->score[k];
        if (r->n == 0)
            continue;
        fprintf(f, "%u,%s", u->s->cycle, l->field.at[k].name);
        for (int when = 0; when < 2; when++)
            fprintf(f, ",%.9g,%.9g,%.9g", sqrt(r->square[when] / (double)r->n),
                    sqrt(r->variance[when] / (double)r->n), r->crps[when] / (double)r->n);
        fputc('\n', f);
    }
    return append(u, CRN_TABLE_TRUTH, f, &text, &n);
}

cairn_status crn_diagnose_write(crn_update *u)
{
    CRN_TRY(write_innovations(u));
    CRN_TRY(write_rejected(u));
    return write_scores(u);
}

/* --- divergence ----------------------------------------------------------------------------- */

#define STREAK "divergence.csv" /* cycle, cycles in a row that were too far off */

/* What an earlier server of the study has counted. */
static void recall(crn_server *s)
{
    char *text, *rest = NULL;
    unsigned cycle, count;
    s->judged = true;
    if (crn_study_read_tail(s->study, STREAK, &text) < 0) {
        crn_err_take(&(crn_err){0}); /* there is none yet */
        return;
    }
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (sscanf(line, "%u,%u", &cycle, &count) == 2 && cycle + 1 == s->cycle)
            s->ndiverged = count;
    free(text);
}

static cairn_status count(crn_update *u)
{
    crn_server *s = u->s;
    char line[64];
    if (!s->judged)
        recall(s);
    s->ndiverged = u->normal > s->study->diverged ? s->ndiverged + 1 : 0;
    if (s->ndiverged == 0)
        return CAIRN_OK;
    snprintf(line, sizeof line, "%u,%u\n", s->cycle, s->ndiverged);
    return crn_study_note(s->study, STREAK, line);
}

cairn_status crn_diagnose_judge(crn_update *u)
{
    crn_server *s = u->s;
    const crn_study *t = s->study;
    if (!(t->diverged > 0))
        return CAIRN_OK;
    CRN_TRY(count(u));
    if (s->ndiverged == t->diverged_cycles)
        crn_study_event(t, "diverged", "{s:i,s:i,s:o,s:f}", "cycle", s->cycle, "cycles",
                        s->ndiverged, "innovation", crn_study_real(u->normal), "bound",
                        t->diverged);
    CRN_FAIL_IF(
        s->ndiverged >= t->diverged_cycles && t->stop_diverged, CAIRN_EINVAL,
        "the filter has diverged: for %u cycles, up to cycle %u, innovations were more than "
        "%g times what ensemble and errors explain (now %.3g); more spread or inflation, "
        "larger errors or [filter] stop_diverged = no",
        s->ndiverged, s->cycle, t->diverged, u->normal);
    return CAIRN_OK;
}
