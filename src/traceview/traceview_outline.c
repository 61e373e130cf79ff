/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The structure of a trace for people: loops and places, who takes part, how often, and what their
 * parameters look like over all ranks.
 */
#include "traceview/traceview.h"

typedef struct outline {
    cairn_trace *trace;
    const crn_trace *t;
    const crn_lane *lane;
    uint32_t thread;
    uint64_t *met, *total; /* of each symbol, over all ranks */
    bool *shown;
    uint32_t nesting; /* rules within rules, also those that are not shown */
    cairn_trace_piece_fn *fn;
    void *arg;
    crn_buf ranks, values; /* texts of the piece */
} outline;

enum { NESTING_MAX = 1000 }; /* no program has that; the stack of this process bears it */

/* ---- how often ---- */

static cairn_status add_rank(outline *o, uint32_t rank, uint64_t *count)
{
    CRN_TRY(crn_lane_counts(o->t, o->thread, rank, count));
    for (size_t i = 0; i < o->lane->nsymbols; i++) {
        const crn_symbol *s = &o->lane->symbol[i];
        o->total[i] += count[i];
        for (size_t k = 0; k < s->nbody; k++)
            o->met[s->body[k]] += count[i];
    }
    return CAIRN_OK;
}

static cairn_status add_ranks(outline *o)
{
    crn_seq_iter it;
    int64_t rank;
    uint64_t *count;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_alloc(&count, o->lane->nsymbols));
    crn_seq_iter_init(&it, &o->lane->ranks);
    while (rc == CAIRN_OK && o->lane->ranks.n > 0 && crn_seq_next(&it, &rank))
        if (crn_limit_rank(o->trace, (uint32_t)rank))
            rc = add_rank(o, (uint32_t)rank, count);
    free(count);
    return rc;
}

/* ---- who ---- */

/* The ranks of a symbol's groups together, ascending. */
static cairn_status set_ranks(outline *o, const crn_symbol *s, uint32_t *ret_n)
{
    const crn_column *c = &s->column[0];
    crn_seq_build all = {0};
    crn_seq_iter it;
    crn_seq ranks = {0};
    int64_t rank, base;
    cairn_status rc = CAIRN_OK;
    crn_seq_iter_init(&it, &o->lane->ranks);
    while (o->lane->ranks.n > 0 && crn_seq_next(&it, &rank))
        if (crn_limit_rank(o->trace, (uint32_t)rank) && crn_column_group(c, (uint32_t)rank, &base))
            crn_seq_add(&all, rank);
    if (all.count > 0)
        rc = crn_seq_encode(&all, NULL, false, &ranks);
    crn_seq_build_done(&all);
    CRN_TRY(rc);
    o->ranks.n = 0;
    *ret_n = crn_put_ranks(&o->ranks, &ranks);
    crn_seq_done(&ranks);
    crn_buf_text(&o->ranks);
    return crn_buf_status(&o->ranks);
}

/* ---- with which parameters ---- */

typedef struct span {
    int64_t min, max;
    bool drawn, any, varies; /* varies: from event to event, not only between ranks */
} span;

static void widen(span *s, int64_t v)
{
    s->min = s->any ? CRN_MIN(s->min, v) : v;
    s->max = s->any ? CRN_MAX(s->max, v) : v;
    s->any = true;
}

/* Bases cover the ranks; the first run of the items shows whether there is more than one value. */
static span span_of(const crn_column *c)
{
    span s = {0};
    for (size_t i = 0; i < c->ngroups; i++) {
        const crn_group *g = &c->group[i];
        crn_seq_iter it;
        int64_t base, v, stride;
        uint64_t n;
        s.drawn |= g->nhists > 0;
        for (size_t h = 0; h < g->nhists; h++) {
            widen(&s, g->hist[h].bin[0].min);
            widen(&s, g->hist[h].bin[g->hist[h].nbins - 1].max);
        }
        crn_seq_iter_init(&it, &g->base);
        while (g->nhists == 0 && crn_seq_next_run(&it, UINT32_MAX, &base, &stride, &n)) {
            widen(&s, base);
            widen(&s, (int64_t)((uint64_t)base + (n - 1) * (uint64_t)stride));
            if (g->base.n == 0)
                break; /* one base for all */
        }
        crn_seq_iter_init(&it, &g->value);
        s.varies |= g->value.n > 0 && crn_seq_next_run(&it, UINT64_MAX, &v, &stride, &n) &&
                    (stride != 0 || crn_seq_count(&g->value) > n || v != 0);
    }
    return s;
}

/* A shift on a grid: the step in each dimension, the shorter way round. */
static void put_shift(crn_buf *b, const crn_grid *g, int64_t shift)
{
    int64_t step[CRN_GRID_DIMS] = {0};
    for (uint32_t i = g->ndims; i-- > 0; shift /= g->dim[i]) {
        step[i] = shift % g->dim[i];
        step[i] -= step[i] > g->dim[i] / 2 ? g->dim[i] : 0;
    }
    for (uint32_t i = 0; i < g->ndims; i++)
        crn_put_text(b, "%s%lld%s", i == 0 ? "(" : ",", (long long)step[i],
                     i + 1 == g->ndims ? ")" : "");
}

static void put_value(crn_buf *b, const crn_column *c, unsigned kind, int64_t v)
{
    static const char *const sign[] = {
        [CRN_ENC_PLAIN] = "", [CRN_ENC_REL] = "+", [CRN_ENC_XOR] = "^", [CRN_ENC_GRID] = "+"};
    if (kind == CRN_KIND_PEER && v >= 0 && c->enc == CRN_ENC_GRID)
        put_shift(b, &c->grid, v);
    else
        crn_put_text(b, "%s%lld", kind == CRN_KIND_PEER && v >= 0 ? sign[c->enc] : "",
                     (long long)v);
}

/* "100", "100..": it varies; "1..4", "~1..4": between these, in part known by distribution only. */
static void put_number(crn_buf *b, const crn_trace *t, const crn_column *c, unsigned kind)
{
    const span s = span_of(c);
    if (kind == CRN_KIND_TYPE && s.min == s.max && !s.varies && (uint64_t)s.min < t->ntypes &&
        t->type[s.min].name) {
        crn_put_text(b, "%s", t->string[t->type[s.min].name]);
        return;
    }
    const bool open = s.varies && !s.drawn, range = !open && s.min != s.max;
    crn_put_text(b, "%s", range && s.drawn ? "~" : "");
    put_value(b, c, kind, s.min);
    crn_put_text(b, "%s", open || range ? ".." : "");
    if (range)
        put_value(b, c, kind, s.max);
}

static void set_values(outline *o, const crn_symbol *s)
{
    crn_buf *b = &o->values;
    for (size_t i = 1; i < s->ncolumns; i++) {
        unsigned kind = crn_symbol_kind(s, i);
        if (crn_kind_is_list(kind) || kind == CRN_KIND_NUMBER)
            continue;
        crn_put_text(b, "%s%s=", b->n ? " " : "", crn_kind_name(kind));
        put_number(b, o->t, &s->column[i], kind);
    }
}

/* ---- the pieces ---- */

static cairn_trace_piece piece_of(const outline *o, uint32_t symbol, uint32_t depth)
{
    const crn_symbol *s = &o->lane->symbol[symbol];
    const crn_call *call = crn_call_row(s->call);
    bool place = s->call != CRN_CALL_NONE;
    cairn_trace_piece p = {.struct_bytes = sizeof p,
                           .thread = o->thread,
                           .depth = depth,
                           .number = symbol,
                           .shown = o->shown[symbol],
                           .site = s->site,
                           .ranks = (const char *)o->ranks.at,
                           .values = (const char *)o->values.at,
                           .met = o->met[symbol],
                           .total = o->total[symbol]};
    if (place) {
        p.call = call->name;
        p.layer = crn_layer_name(call->layer);
        p.within = s->within ? crn_call_row(s->within)->name : NULL;
        p.file = s->name ? o->t->string[s->name] : NULL;
        p.seconds = o->lane->took ? crn_hist_mean(&o->lane->took[symbol].all) * 1e-9 : 0;
    }
    return p;
}

static cairn_status show(outline *o, uint32_t symbol, uint32_t depth);

static cairn_status show_body(outline *o, const crn_symbol *rule, uint32_t depth)
{
    cairn_status rc = CAIRN_OK;
    CRN_FAIL_IF(++o->nesting > NESTING_MAX, CAIRN_ECORRUPT, "the trace has loops %d deep",
                NESTING_MAX);
    for (size_t i = 0; i < rule->nbody && rc == CAIRN_OK; i++)
        rc = show(o, rule->body[i], depth);
    o->nesting--;
    return rc;
}

/* Each body is shown once. */
static cairn_status show(outline *o, uint32_t symbol, uint32_t depth)
{
    const crn_symbol *s = &o->lane->symbol[symbol];
    bool place = s->call != CRN_CALL_NONE, again = o->shown[symbol];
    uint32_t n;
    if (!crn_limit_symbol(o->trace, o->thread, symbol))
        return CAIRN_OK;
    o->values.n = 0;
    if (place)
        set_values(o, s);
    crn_buf_text(&o->values);
    CRN_TRY(crn_buf_status(&o->values));
    CRN_TRY(set_ranks(o, s, &n));
    cairn_trace_piece p = piece_of(o, symbol, depth);
    p.nranks = n;
    o->shown[symbol] = !place;
    if (!place && s->optional && !again) /* the merge's own: not a loop of the program */
        return show_body(o, s, depth);
    if (o->fn(o->arg, &p))
        return CAIRN_NOTHING;
    return place || again ? CAIRN_OK : show_body(o, s, depth + 1);
}

static cairn_status show_lane(outline *o)
{
    cairn_status rc;
    CRN_TRY_OUT(rc, crn_alloc(&o->met, o->lane->nsymbols));
    CRN_TRY_OUT(rc, crn_alloc(&o->total, o->lane->nsymbols));
    CRN_TRY_OUT(rc, crn_alloc(&o->shown, o->lane->nsymbols));
    CRN_TRY_OUT(rc, add_ranks(o));
    rc = show_body(o, &o->lane->symbol[o->lane->root], 0);
out:
    free(o->met);
    free(o->total);
    free(o->shown);
    o->met = o->total = NULL;
    o->shown = NULL;
    return rc;
}

int cairn_trace_outline(cairn_trace *trace, cairn_trace_piece_fn *fn, void *arg)
{
    outline o = {.trace = trace, .t = trace->t, .fn = fn, .arg = arg};
    cairn_status rc = crn_limit_symbols(trace);
    for (size_t i = 0; i < trace->t->nlanes && rc == CAIRN_OK; i++) {
        o.lane = &trace->t->lane[i];
        o.thread = (uint32_t)i;
        rc = show_lane(&o);
    }
    crn_buf_done(&o.ranks);
    crn_buf_done(&o.values);
    return rc;
}
