/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sums over the folded form: how often each symbol is met, and the events of a place in runs.
 */
#include "tracefmt/tracefmt.h"

enum { LOOKS = 1 << 20 }; /* values of a drawn column that are looked at */

/* The means of the histograms that the first n values of a drawn column name, summed. */
static double sum_drawn(const crn_group *g, int64_t base, uint64_t n)
{
    if (n > LOOKS)
        return sum_drawn(g, base, LOOKS) * ((double)n / LOOKS);
    double sum = 0;
    crn_seq_iter it;
    int64_t v, stride;
    uint64_t got;
    crn_seq_iter_init(&it, &g->value);
    while (n > 0) {
        if (!crn_seq_next_run(&it, n, &v, &stride, &got)) {
            crn_seq_iter_init(&it, &g->value);
            continue;
        }
        for (uint64_t i = 0; i < (stride == 0 ? 1 : got); i++) {
            uint64_t index = (uint64_t)base + (uint64_t)v + i * (uint64_t)stride;
            double mean = crn_hist_mean(&g->hist[index < g->nhists ? index : 0]);
            sum += mean * (stride == 0 ? (double)got : 1);
        }
        n -= got;
    }
    return sum;
}

/*
 * What a symbol's column 0 adds up to for a rank that meets the symbol n times. Below a rule whose
 * turns are drawn, n is an expected number, and an exact column that has another length stands for
 * its mean.
 */
static double sum_of(const crn_symbol *s, uint32_t rank, double n)
{
    int64_t base;
    const crn_group *g = crn_column_group(&s->column[0], rank, &base);
    if (!g || !(n > 0 && n < 1e15))
        return 0;
    uint64_t there = crn_seq_count(&g->value), whole = (uint64_t)CRN_MAX(n + 0.5, 1);
    if (there > 0 && g->nhists == 0)
        whole = there;
    double sum = g->nhists > 0 ? sum_drawn(g, base, whole) : (double)crn_seq_sum(&g->value, whole);
    return sum * (n / (double)whole) + (g->nhists > 0 ? 0 : n * (double)base);
}

/* Only a damaged trace has counts beyond all bounds. */
static uint64_t rounded(double n)
{
    return n > 0 && n < 1e18 ? (uint64_t)(n + 0.5) : 0;
}

cairn_status crn_lane_counts(const crn_trace *t, size_t lane, uint32_t rank, uint64_t *count)
{
    CRN_FAIL_IF(lane >= t->nlanes, CAIRN_ENOTFOUND, "the trace has no thread %zu", lane);
    const crn_lane *l = &t->lane[lane];
    double *met, turns; /* times that a symbol is met; rules are met by rules of larger numbers */
    CRN_TRY(crn_alloc(&met, l->nsymbols));
    met[l->root] = 1;
    for (size_t i = l->nsymbols; i-- > 0;) {
        const crn_symbol *s = &l->symbol[i];
        if (s->call != CRN_CALL_NONE)
            continue;
        turns = sum_of(s, rank, met[i]);
        count[i] = rounded(turns);
        for (size_t k = 0; k < s->nbody; k++)
            met[s->body[k]] += turns;
    }
    for (size_t i = 0; i < l->nsymbols; i++) {
        if (l->symbol[i].call == CRN_CALL_NONE)
            continue;
        count[i] = rounded(sum_of(&l->symbol[i], rank, met[i]));
    }
    free(met);
    return CAIRN_OK;
}

bool crn_runs_init(crn_runs *r, const crn_symbol *place, uint32_t rank, uint64_t n)
{
    r->place = place;
    r->left = n;
    for (size_t i = 1; i < place->ncolumns; i++) {
        r->group[i - 1] = crn_column_group(&place->column[i], rank, &r->base[i - 1]);
        if (!r->group[i - 1])
            return false;
        crn_seq_iter_init(&r->it[i - 1], &r->group[i - 1]->value);
    }
    return n > 0;
}

/* How many of the next events lie on this column's current run: at most max, at least one. */
static uint64_t reach(crn_seq_iter it, uint64_t max)
{
    int64_t v, stride;
    uint64_t n;
    if (!crn_seq_next_run(&it, max, &v, &stride, &n)) {
        crn_seq_iter_init(&it, it.seq);
        crn_seq_next_run(&it, max, &v, &stride, &n);
    }
    return n;
}

bool crn_runs_next(crn_runs *r, crn_site_run *ret)
{
    if (r->left == 0)
        return false;
    ret->n = r->left;
    ret->ncolumns = (int)r->place->ncolumns - 1;
    for (int i = 0; i < ret->ncolumns; i++)
        ret->n = reach(r->it[i], ret->n);
    for (int i = 0; i < ret->ncolumns; i++) {
        uint64_t n;
        if (!crn_seq_next_run(&r->it[i], ret->n, &ret->value[i], &ret->stride[i], &n)) {
            crn_seq_iter_init(&r->it[i], &r->group[i]->value);
            crn_seq_next_run(&r->it[i], ret->n, &ret->value[i], &ret->stride[i], &n);
        }
        if (r->group[i]->nlists == 0)
            ret->value[i] = (int64_t)((uint64_t)ret->value[i] + (uint64_t)r->base[i]);
    }
    r->left -= ret->n;
    return true;
}
