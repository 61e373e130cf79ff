/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The trace in memory: its parts given back, small questions answered.
 */
#include "tracefmt/tracefmt.h"

void crn_group_done(crn_group *g)
{
    crn_seq_done(&g->ranks);
    crn_seq_done(&g->base);
    crn_seq_done(&g->value);
    for (size_t i = 0; i < g->nlists; i++)
        crn_seq_done(&g->list[i]);
    free(g->list);
    free(g->hist);
    memset(g, 0, sizeof *g);
}

void crn_groups_free(crn_group *g, size_t n)
{
    for (size_t i = 0; g && i < n; i++)
        crn_group_done(&g[i]);
    free(g);
}

void crn_column_done(crn_column *c)
{
    crn_groups_free(c->group, c->ngroups);
    crn_groups_free(c->other, c->nothers);
    memset(c, 0, sizeof *c);
}

void crn_symbol_done(crn_symbol *s)
{
    for (size_t i = 0; s->column && i < s->ncolumns; i++)
        crn_column_done(&s->column[i]);
    free(s->column);
    free(s->body);
}

static void lane_done(crn_lane *l)
{
    for (size_t i = 0; l->symbol && i < l->nsymbols; i++)
        crn_symbol_done(&l->symbol[i]);
    free(l->symbol);
    for (size_t i = 0; l->gap && i < l->ngaps; i++)
        crn_timing_done(&l->gap[i].time);
    free(l->gap);
    for (size_t i = 0; l->took && i < l->nsymbols; i++)
        crn_timing_done(&l->took[i]);
    free(l->took);
    crn_seq_done(&l->ranks);
}

void crn_trace_free(crn_trace *t)
{
    if (!t)
        return;
    for (size_t i = 0; t->string && i < t->nstrings; i++)
        free(t->string[i]);
    for (size_t i = 0; t->type && i < t->ntypes; i++) {
        crn_seq_done(&t->type[i].ints);
        crn_seq_done(&t->type[i].addrs);
        crn_seq_done(&t->type[i].types);
    }
    for (size_t i = 0; t->lane && i < t->nlanes; i++)
        lane_done(&t->lane[i]);
    crn_seq_done(&t->missing);
    crn_seq_done(&t->cut);
    free(t->string);
    free(t->site);
    free(t->module);
    free(t->type);
    free(t->lane);
    free(t);
}

bool crn_trace_complete(const crn_trace *t)
{
    return t->missing.n == 0 && t->cut.n == 0 && t->dropped == 0;
}

unsigned crn_symbol_kind(const crn_symbol *s, size_t column)
{
    const crn_call *call = crn_call_row(s->call);
    if (column == 0)
        return CRN_KIND_REPEAT;
    return column <= (size_t)call->ncolumns ? call->kind[column - 1] : CRN_KIND_NUMBER;
}

const crn_group *crn_column_group(const crn_column *c, uint32_t rank, int64_t *ret_base)
{
    uint64_t index;
    for (size_t i = 0; i < c->ngroups; i++) {
        const crn_group *g = &c->group[i];
        if (crn_seq_find(&g->ranks, rank, &index)) {
            *ret_base = crn_seq_at(&g->base, index);
            return g;
        }
    }
    return NULL;
}
