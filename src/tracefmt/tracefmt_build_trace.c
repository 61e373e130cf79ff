/* SPDX-License-Identifier: BSD-3-Clause
 *
 * From builders to a trace of one rank.
 */
#include "tracefmt/tracefmt.h"
#include "tracefmt/tracefmt_lane.h"

/* A group of this one rank: the base apart, the items as they are. Takes s over. */
static cairn_status group_of(const crn_build *b, crn_seq *s, uint64_t reads, crn_group *g)
{
    int64_t self = b->rank;
    g->reads = b->precision < 100 ? reads : 0;
    g->base.base = s->base;
    g->value = (crn_seq){.at = s->at, .n = s->n};
    return crn_seq_of(&self, 1, &g->ranks);
}

static cairn_status encode_group(const crn_build *build, crn_seq_build *b, crn_group **ret,
                                 size_t *ret_n)
{
    crn_seq s;
    CRN_TRY(crn_alloc(ret, 1));
    *ret_n = 1;
    CRN_TRY(crn_seq_encode(b, NULL, true, &s));
    return group_of(build, &s, b->count, *ret);
}

/* Lists are kept relative to the first element of the first one. */
static cairn_status copy_lists(const crn_column_build *c, crn_group *g)
{
    CRN_TRY(crn_alloc(&g->list, c->list.n));
    g->nlists = c->list.n;
    g->base.base = c->list.at[0].base;
    for (size_t i = 0; i < c->list.n; i++) {
        CRN_TRY(crn_seq_copy(&c->list.at[i], &g->list[i]));
        g->list[i].base = (int64_t)((uint64_t)g->list[i].base - (uint64_t)g->base.base);
    }
    return CAIRN_OK;
}

static cairn_status copy_hists(const crn_column_build *c, crn_group *g)
{
    CRN_TRY(crn_alloc(&g->hist, c->hist.n));
    g->nhists = c->hist.n;
    memcpy(g->hist, c->hist.at, c->hist.n * sizeof *g->hist);
    return CAIRN_OK;
}

static cairn_status encode_column(const crn_build *build, crn_column_build *b, crn_column *c)
{
    CRN_TRY(encode_group(build, &b->value, &c->group, &c->ngroups));
    if (b->list.n > 0)
        CRN_TRY(copy_lists(b, c->group));
    if (b->hist.n > 0)
        CRN_TRY(copy_hists(b, c->group));
    if (b->kind != CRN_KIND_PEER)
        return CAIRN_OK;
    c->enc = CRN_ENC_REL;
    return b->hist.n > 0 ? CAIRN_OK : encode_group(build, &b->other, &c->other, &c->nothers);
}

static cairn_status encode_count(const crn_build *b, uint32_t symbol, crn_column *c)
{
    crn_seq s;
    uint64_t reads;
    CRN_TRY(crn_alloc(&c->group, 1));
    c->ngroups = 1;
    CRN_TRY(crn_fold_count(&b->fold, symbol, &s, &reads));
    return group_of(b, &s, reads, c->group);
}

static cairn_status encode_place(const crn_build *b, const crn_place_build *p, crn_symbol *s)
{
    s->call = p->call;
    s->within = p->within;
    s->site = p->site;
    s->name = p->name;
    CRN_TRY(crn_alloc(&s->column, p->ncolumns + 1));
    s->ncolumns = p->ncolumns + 1;
    CRN_TRY(encode_count(b, p->symbol, &s->column[0]));
    for (size_t i = 0; i < p->ncolumns; i++)
        CRN_TRY(encode_column(b, &p->column[i], &s->column[i + 1]));
    return CAIRN_OK;
}

static cairn_status encode_rule(const crn_build *b, uint32_t rule, crn_symbol *s)
{
    const crn_fold_symbol *f = &b->fold.symbol.at[rule];
    CRN_TRY(crn_alloc(&s->body, f->nbody));
    s->nbody = f->nbody;
    memcpy(s->body, f->body, f->nbody * sizeof *s->body);
    CRN_TRY(crn_alloc(&s->column, 1));
    s->ncolumns = 1;
    return encode_count(b, rule, s->column);
}

/* The root is one more rule, met once. */
static cairn_status encode_root(const crn_build *b, crn_lane *l)
{
    crn_seq once = {.base = 1};
    crn_symbol *s = &l->symbol[l->nsymbols - 1];
    l->root = (uint32_t)l->nsymbols - 1;
    CRN_TRY(crn_fold_root(&b->fold, &s->body, &s->nbody));
    CRN_TRY(crn_alloc(&s->column, 1));
    s->ncolumns = 1;
    CRN_TRY(crn_alloc(&s->column->group, 1));
    s->column->ngroups = 1;
    return group_of(b, &once, 1, s->column->group);
}

static cairn_status encode_times(const crn_build *b, crn_lane *l)
{
    if (!b->times)
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&l->took, l->nsymbols));
    for (size_t i = 0; i < b->place.n; i++)
        l->took[b->place.at[i].symbol] = (crn_timing){.all = b->place.at[i].took, .nranks = 1};
    CRN_TRY(crn_alloc(&l->gap, b->gap.n));
    l->ngaps = b->gap.n;
    for (size_t i = 0; i < b->gap.n; i++) {
        const crn_gap *g = &b->gap.at[i];
        l->gap[i] = *g;
        l->gap[i].time.nranks = 1;
        l->gap[i].to = b->place.at[g->to].symbol;
        if (g->from != CRN_NO_SYMBOL)
            l->gap[i].from = b->place.at[g->from].symbol;
    }
    return CAIRN_OK;
}

static cairn_status encode_lane(const crn_build *b, crn_lane *l)
{
    int64_t self = b->rank;
    CRN_TRY(crn_seq_of(&self, 1, &l->ranks));
    CRN_TRY(crn_alloc(&l->symbol, b->fold.symbol.n + 1));
    l->nsymbols = b->fold.symbol.n + 1;
    for (size_t i = 0; i < b->place.n; i++)
        CRN_TRY(encode_place(b, &b->place.at[i], &l->symbol[b->place.at[i].symbol]));
    for (uint32_t i = 0; i < b->fold.symbol.n; i++) {
        if (b->fold.symbol.at[i].nbody > 0)
            CRN_TRY(encode_rule(b, i, &l->symbol[i]));
    }
    CRN_TRY(encode_root(b, l));
    CRN_TRY(encode_times(b, l));
    return crn_lane_order(l);
}

static cairn_status copy_strings(const crn_tables *tables, crn_trace *t)
{
    CRN_TRY(crn_alloc(&t->string, tables->string.n));
    t->nstrings = tables->string.n;
    for (size_t i = 0; i < t->nstrings; i++)
        CRN_TRY(crn_strdup(tables->string.at[i], &t->string[i]));
    return CAIRN_OK;
}

static cairn_status copy_types(const crn_tables *tables, crn_trace *t)
{
    CRN_TRY(crn_alloc(&t->type, tables->type.n));
    t->ntypes = tables->type.n;
    for (size_t i = 0; i < t->ntypes; i++) {
        const crn_type *from = &tables->type.at[i];
        crn_type *to = &t->type[i];
        *to = *from;
        to->ints = to->addrs = to->types = (crn_seq){0};
        CRN_TRY(crn_seq_copy(&from->ints, &to->ints));
        CRN_TRY(crn_seq_copy(&from->addrs, &to->addrs));
        CRN_TRY(crn_seq_copy(&from->types, &to->types));
    }
    return CAIRN_OK;
}

static cairn_status fill(crn_trace *t, crn_build *const *build, size_t nbuilds,
                         const crn_tables *tables)
{
    CRN_TRY(copy_strings(tables, t));
    CRN_TRY(crn_alloc(&t->site, tables->site.n));
    t->nsites = tables->site.n;
    memcpy(t->site, tables->site.at, t->nsites * sizeof *t->site);
    CRN_TRY(crn_alloc(&t->module, tables->module.n));
    t->nmodules = tables->module.n;
    if (t->nmodules > 0)
        memcpy(t->module, tables->module.at, t->nmodules * sizeof *t->module);
    CRN_TRY(copy_types(tables, t));
    CRN_TRY(crn_alloc(&t->lane, nbuilds));
    t->nlanes = nbuilds;
    for (size_t i = 0; i < nbuilds; i++) {
        CRN_TRY(encode_lane(build[i], &t->lane[i]));
        t->dropped += build[i]->fold.dropped;
        t->precision = build[i]->precision;
    }
    return CAIRN_OK;
}

cairn_status crn_build_trace(crn_build *const *build, size_t nbuilds, const crn_tables *tables,
                             uint32_t rank, uint32_t nranks, crn_trace **ret)
{
    crn_trace *t;
    CRN_TRY(crn_alloc(&t, 1));
    t->nranks = CRN_MAX(nranks, rank + 1);
    cairn_status rc = fill(t, build, nbuilds, tables);
    if (rc < 0) {
        crn_trace_free(t);
        return rc;
    }
    *ret = t;
    return CAIRN_OK;
}
