/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading a trace (docs/format/trace.md). The file may be hostile: every number that counts or
 * points is checked against what it counts or points into, and a budget bounds what the reader
 * allocates and checks, whatever the file says.
 */
#include "tracefmt/tracefmt.h"
#include "tracefmt/tracefmt_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct reader {
    crn_cursor c;
    crn_trace *t;
    unsigned version;
    const unsigned char **column; /* the distinct columns */
    size_t *column_n;
    size_t ncolumns;
    uint64_t budget; /* bytes and ranks that may still be spent */
} reader;

static void spend(reader *r, uint64_t n)
{
    crn_cursor_expect(&r->c, n <= r->budget);
    r->budget -= CRN_MIN(n, r->budget);
}

/* How many follow: each takes at least one byte of what is left. */
static size_t get_count(reader *r)
{
    return (size_t)crn_get_var_max(&r->c, r->c.n);
}

static cairn_status get_items(reader *r, crn_cursor *c, crn_seq *s)
{
    uint64_t n = crn_get_var_max(c, c->n);
    const void *bytes = crn_get_view(c, n);
    spend(r, n + 1);
    CRN_TRY(crn_cursor_status(c, "a sequence"));
    CRN_TRY(crn_cursor_status(&r->c, "a trace"));
    if (n > 0) {
        CRN_TRY(crn_alloc(&s->at, n));
        memcpy(s->at, bytes, n);
        s->n = n;
        CRN_TRY(crn_seq_check(s));
    }
    return CAIRN_OK;
}

static cairn_status get_seq(reader *r, crn_cursor *c, crn_seq *s)
{
    s->base = crn_get_svar(c);
    return get_items(r, c, s);
}

/* Ranks: ascending, below nranks. */
static cairn_status check_ranks(reader *r, const crn_seq *s, uint64_t *ret_n)
{
    uint64_t n = crn_seq_count(s);
    int64_t before = -1, v;
    crn_seq_iter it;
    CRN_FAIL_IF(n > r->t->nranks, CAIRN_ECORRUPT, "a trace names %llu of its %u ranks",
                (unsigned long long)n, r->t->nranks);
    spend(r, n);
    CRN_TRY(crn_cursor_status(&r->c, "a trace"));
    crn_seq_iter_init(&it, s);
    for (uint64_t i = 0; i < n && crn_seq_next(&it, &v); i++) {
        CRN_FAIL_IF(v <= before || v >= r->t->nranks, CAIRN_ECORRUPT,
                    "a trace names rank %lld after rank %lld, of %u ranks", (long long)v,
                    (long long)before, r->t->nranks);
        before = v;
    }
    *ret_n = n;
    return CAIRN_OK;
}

static cairn_status get_lists(reader *r, crn_cursor *c, crn_group *g)
{
    size_t n = (size_t)crn_get_var_max(c, c->n);
    spend(r, n * sizeof *g->list);
    CRN_TRY(crn_cursor_status(&r->c, "a trace"));
    CRN_TRY(crn_alloc(&g->list, n));
    g->nlists = n;
    for (size_t i = 0; i < n; i++) {
        CRN_TRY(get_seq(r, c, &g->list[i]));
        CRN_FAIL_IF(crn_seq_count(&g->list[i]) > CRN_TRACE_RANKS, CAIRN_ECORRUPT,
                    "a list in a trace is longer than any writer makes one");
    }
    return CAIRN_OK;
}

static cairn_status get_hists(reader *r, crn_cursor *c, crn_group *g)
{
    size_t n = (size_t)crn_get_var_max(c, c->n);
    spend(r, n * sizeof *g->hist);
    CRN_TRY(crn_cursor_status(&r->c, "a trace"));
    CRN_TRY(crn_alloc(&g->hist, n));
    g->nhists = n;
    for (size_t i = 0; i < n; i++)
        CRN_TRY(crn_hist_get(c, &g->hist[i]));
    return CAIRN_OK;
}

static cairn_status get_group(reader *r, crn_cursor *c, const crn_seq *all, crn_group *g)
{
    uint64_t nranks, nbases;
    uint8_t flags = crn_get_u8(c);
    if (flags & CRN_GROUP_ALL) {
        spend(r, all->n);
        CRN_TRY(crn_seq_copy(all, &g->ranks));
        nranks = crn_seq_count(all);
    } else {
        CRN_TRY(get_seq(r, c, &g->ranks));
        CRN_TRY(check_ranks(r, &g->ranks, &nranks));
    }
    CRN_TRY(get_seq(r, c, &g->base));
    nbases = crn_seq_count(&g->base);
    CRN_FAIL_IF(nranks == 0 || (nbases > 0 && nbases != nranks), CAIRN_ECORRUPT,
                "a column of a trace has %llu bases for %llu ranks", (unsigned long long)nbases,
                (unsigned long long)nranks);
    CRN_TRY(get_items(r, c, &g->value));
    if (flags & CRN_GROUP_READS)
        g->reads = crn_get_var_max(c, CRN_SEQ_MAX);
    if (flags & CRN_GROUP_LISTS)
        CRN_TRY(get_lists(r, c, g));
    if (flags & CRN_GROUP_HISTS)
        CRN_TRY(get_hists(r, c, g));
    return crn_cursor_status(c, "a column of a trace");
}

/* n groups; freed by the caller, whatever happens. */
static cairn_status get_groups(reader *r, crn_cursor *c, const crn_seq *all, size_t n,
                               crn_group **ret, size_t *ret_n)
{
    crn_cursor_expect(c, n <= c->n);
    CRN_TRY(crn_cursor_status(c, "a column of a trace"));
    spend(r, (n + 1) * sizeof **ret);
    CRN_TRY(crn_cursor_status(&r->c, "a trace"));
    CRN_TRY(crn_alloc(ret, n));
    *ret_n = n;
    for (size_t i = 0; i < n; i++)
        CRN_TRY(get_group(r, c, all, &(*ret)[i]));
    return CAIRN_OK;
}

static cairn_status get_constant(reader *r, crn_cursor *c, const crn_seq *all, crn_column *ret)
{
    spend(r, all->n + sizeof *ret->group);
    CRN_TRY(crn_cursor_status(&r->c, "a trace"));
    CRN_TRY(crn_alloc(&ret->group, 1));
    ret->ngroups = 1;
    ret->group->base.base = crn_get_svar(c);
    CRN_TRY(crn_seq_copy(all, &ret->group->ranks));
    return crn_cursor_status(c, "a column of a trace");
}

static cairn_status get_grid(crn_cursor *c, crn_grid *g)
{
    uint64_t size = 1;
    g->ndims = (uint32_t)crn_get_var_max(c, CRN_GRID_DIMS);
    crn_cursor_expect(c, g->ndims > 0);
    for (uint32_t i = 0; i < g->ndims; i++) {
        g->dim[i] = (uint32_t)crn_get_var_max(c, CRN_TRACE_RANKS);
        size = CRN_MIN(size * g->dim[i], CRN_TRACE_RANKS + 1); /* cannot wrap */
        crn_cursor_expect(c, size > 0 && size <= CRN_TRACE_RANKS);
    }
    return crn_cursor_status(c, "a grid of a trace");
}

static cairn_status get_column(reader *r, crn_cursor c, const crn_seq *all, crn_column *ret)
{
    static const crn_enc memory_enc[CRN_FILE_ENCS] = {[CRN_FILE_REL] = CRN_ENC_REL,
                                                      [CRN_FILE_XOR] = CRN_ENC_XOR,
                                                      [CRN_FILE_BOTH] = CRN_ENC_REL,
                                                      [CRN_FILE_GRID] = CRN_ENC_GRID};
    uint64_t key = crn_get_var(&c);
    if (key == 0)
        return get_constant(r, &c, all, ret);
    unsigned bits = r->version == 1 ? 2 : CRN_FILE_ENC_BITS;
    unsigned enc = (unsigned)((key - 1) & ((1u << bits) - 1));
    crn_cursor_expect(&c, enc < CRN_FILE_ENCS);
    ret->enc = enc < CRN_FILE_ENCS ? memory_enc[enc] : CRN_ENC_PLAIN;
    if (ret->enc == CRN_ENC_GRID)
        CRN_TRY(get_grid(&c, &ret->grid));
    CRN_TRY(get_groups(r, &c, all, (size_t)((key - 1) >> bits), &ret->group, &ret->ngroups));
    if (enc == CRN_FILE_BOTH)
        CRN_TRY(get_groups(r, &c, all, (size_t)crn_get_var(&c), &ret->other, &ret->nothers));
    return crn_cursor_status(&c, "a column of a trace");
}

static cairn_status get_columns(reader *r, crn_symbol *s, size_t n, const crn_seq *all)
{
    spend(r, n * sizeof *s->column);
    CRN_TRY(crn_cursor_status(&r->c, "a symbol of a trace"));
    CRN_TRY(crn_alloc(&s->column, n));
    s->ncolumns = n;
    for (size_t i = 0; i < n; i++) {
        uint64_t k = crn_get_var(&r->c);
        crn_cursor_expect(&r->c, k < r->ncolumns);
        CRN_TRY(crn_cursor_status(&r->c, "a symbol of a trace"));
        CRN_TRY(get_column(r, crn_cursor_of(r->column[k], r->column_n[k]), all, &s->column[i]));
    }
    return CAIRN_OK;
}

static cairn_status get_rule(reader *r, crn_lane *l, crn_symbol *s)
{
    uint64_t self = (uint64_t)(s - l->symbol);
    uint64_t key = crn_get_var(&r->c);
    size_t n = (size_t)(key >> 1);
    s->optional = key & 1;
    crn_cursor_expect(&r->c, n <= r->c.n);
    spend(r, n * sizeof *s->body);
    CRN_TRY(crn_cursor_status(&r->c, "a rule of a trace"));
    CRN_TRY(crn_alloc(&s->body, n));
    s->nbody = n;
    for (size_t i = 0; i < n; i++) {
        uint64_t k = crn_get_var(&r->c);
        crn_cursor_expect(&r->c, k < self); /* so there are no cycles */
        s->body[i] = (uint32_t)(k < self ? k : 0);
        s->depth = CRN_MAX(s->depth, l->symbol[s->body[i]].depth + 1);
    }
    crn_cursor_expect(&r->c, s->depth <= CRN_TRACE_DEPTH);
    return get_columns(r, s, 1, &l->ranks);
}

static cairn_status get_place(reader *r, crn_lane *l, crn_symbol *s)
{
    crn_trace *t = r->t;
    const crn_call *call = crn_call_row(s->call);
    size_t n = 1 + (size_t)call->ncolumns;
    s->within = (uint32_t)crn_get_var_max(&r->c, CRN_CALLS - 1);
    s->site = (uint32_t)crn_get_var_max(&r->c, t->nsites - 1);
    if (call->named) {
        s->name = (uint32_t)crn_get_var_max(&r->c, t->nstrings - 1);
        n += (size_t)crn_pattern_numbers(t->string[s->name]);
    }
    crn_cursor_expect(&r->c, n <= CRN_COLUMNS);
    return get_columns(r, s, n, &l->ranks);
}

static cairn_status get_symbols(reader *r, crn_lane *l)
{
    size_t n = get_count(r);
    spend(r, n * sizeof *l->symbol);
    CRN_TRY(crn_cursor_status(&r->c, "a lane of a trace"));
    CRN_TRY(crn_alloc(&l->symbol, n));
    l->nsymbols = n;
    for (size_t i = 0; i < n; i++) {
        crn_symbol *s = &l->symbol[i];
        s->call = (uint32_t)crn_get_var_max(&r->c, CRN_CALLS - 1);
        CRN_TRY(s->call == CRN_CALL_NONE ? get_rule(r, l, s) : get_place(r, l, s));
    }
    return CAIRN_OK;
}

static cairn_status get_class(reader *r, crn_timing *t, crn_class *class)
{
    uint64_t n;
    CRN_TRY(get_seq(r, &r->c, &class->ranks));
    CRN_TRY(check_ranks(r, &class->ranks, &n));
    crn_cursor_expect(&r->c, (class == t->class) == (n == 0)); /* the first has all others */
    class->nranks = crn_get_var_max(&r->c, UINT32_MAX);
    const int fine = crn_get_u8(&r->c) - 128;
    CRN_TRY(crn_hist_get_time(&r->c, &class->hist));
    crn_cursor_expect(&r->c, class->hist.nbins > 0 && class->nranks > 0);
    crn_hist_scale(&class->hist, exp2((double)fine / CRN_FINE));
    crn_hist_merge(&t->all, &class->hist);
    t->nranks = CRN_MIN(t->nranks + class->nranks, UINT32_MAX);
    crn_cursor_expect(&r->c, crn_hist_count(&t->all) <= CRN_SEQ_MAX);
    return crn_cursor_status(&r->c, "a class of ranks of a trace");
}

/* The histogram of all ranks, or classes of ranks, of which a single one needs no ranks. */
static cairn_status get_timing(reader *r, crn_timing *t)
{
    if (r->version < 3 || r->c.n == 0 || r->c.at[0] <= CRN_TIMING_CLASSES)
        return crn_hist_get_time(&r->c, &t->all);
    const size_t n = (size_t)crn_get_u8(&r->c) - CRN_TIMING_CLASSES;
    crn_cursor_expect(&r->c, n <= CRN_CLASSES);
    spend(r, n * sizeof *t->class);
    CRN_TRY(crn_cursor_status(&r->c, "times of a trace"));
    CRN_TRY(crn_alloc(&t->class, n));
    t->nclasses = n;
    for (size_t i = 0; i < n; i++)
        CRN_TRY(get_class(r, t, &t->class[i]));
    if (n == 1) {
        free(t->class);
        t->class = NULL;
        t->nclasses = 0;
    }
    return CAIRN_OK;
}

static cairn_status get_times(reader *r, crn_lane *l)
{
    if (crn_get_var(&r->c) == 0)
        return crn_cursor_status(&r->c, "a lane of a trace");
    spend(r, l->nsymbols * sizeof *l->took);
    CRN_TRY(crn_cursor_status(&r->c, "a lane of a trace"));
    CRN_TRY(crn_alloc(&l->took, l->nsymbols));
    for (size_t i = 0; i < l->nsymbols; i++) {
        if (l->symbol[i].call != CRN_CALL_NONE)
            CRN_TRY(get_timing(r, &l->took[i]));
    }
    size_t n = get_count(r);
    spend(r, n * sizeof *l->gap);
    CRN_TRY(crn_cursor_status(&r->c, "a lane of a trace"));
    CRN_TRY(crn_alloc(&l->gap, n));
    l->ngaps = n;
    uint64_t before = 0;
    for (size_t i = 0; i < n; i++) {
        before += crn_get_var_max(&r->c, l->nsymbols);
        crn_cursor_expect(&r->c, before <= l->nsymbols);
        l->gap[i].from = (uint32_t)(before - 1);
        l->gap[i].to = (uint32_t)crn_get_var_max(&r->c, l->nsymbols - 1);
        CRN_TRY(get_timing(r, &l->gap[i].time));
    }
    return CAIRN_OK;
}

static cairn_status get_lane(reader *r, crn_lane *l)
{
    uint64_t n;
    CRN_TRY(get_seq(r, &r->c, &l->ranks));
    CRN_TRY(check_ranks(r, &l->ranks, &n));
    crn_cursor_expect(&r->c, n > 0);
    CRN_TRY(get_symbols(r, l));
    l->root = (uint32_t)crn_get_var(&r->c);
    crn_cursor_expect(&r->c, l->root < l->nsymbols && l->symbol[l->root].call == CRN_CALL_NONE);
    CRN_TRY(crn_cursor_status(&r->c, "a lane of a trace"));
    return get_times(r, l);
}

static cairn_status get_strings(reader *r)
{
    crn_trace *t = r->t;
    size_t n = get_count(r) + 1;
    spend(r, n * sizeof *t->string);
    CRN_TRY(crn_cursor_status(&r->c, "the strings of a trace"));
    CRN_TRY(crn_alloc(&t->string, n));
    t->nstrings = n;
    CRN_TRY(crn_strdup("", &t->string[0]));
    for (size_t i = 1; i < n; i++) {
        size_t len = get_count(r);
        const char *text = crn_get_view(&r->c, len);
        CRN_TRY(crn_cursor_status(&r->c, "the strings of a trace"));
        CRN_FAIL_IF(memchr(text, 0, len), CAIRN_ECORRUPT, "a string of a trace has a zero byte");
        CRN_TRY(crn_strndup(text, len, &t->string[i]));
    }
    return CAIRN_OK;
}

static cairn_status get_sites(reader *r)
{
    crn_trace *t = r->t;
    size_t n = get_count(r) + 1;
    spend(r, n * sizeof *t->site);
    CRN_TRY(crn_cursor_status(&r->c, "the call sites of a trace"));
    CRN_TRY(crn_alloc(&t->site, n));
    t->nsites = n;
    uint64_t off = 0;
    for (size_t i = 1; i < n; i++) {
        t->site[i].outer = (uint32_t)crn_get_var_max(&r->c, i - 1);
        t->site[i].module = (uint32_t)crn_get_var_max(&r->c, t->nstrings - 1);
        t->site[i].off = off += (uint64_t)crn_get_svar(&r->c);
    }
    return crn_cursor_status(&r->c, "the call sites of a trace");
}

static cairn_status get_modules(reader *r)
{
    crn_trace *t = r->t;
    size_t n = r->version < 4 ? 0 : get_count(r);
    spend(r, n * sizeof *t->module);
    CRN_TRY(crn_cursor_status(&r->c, "the modules of a trace"));
    CRN_TRY(crn_alloc(&t->module, n));
    t->nmodules = n;
    for (size_t i = 0; i < n; i++) {
        crn_module *m = &t->module[i];
        m->name = (uint32_t)crn_get_var_max(&r->c, t->nstrings - 1);
        m->path = (uint32_t)crn_get_var_max(&r->c, t->nstrings - 1);
        m->nbuild = (uint8_t)crn_get_var_max(&r->c, CRN_BUILD_ID);
        const void *build = crn_get_view(&r->c, m->nbuild);
        CRN_TRY(crn_cursor_status(&r->c, "the modules of a trace"));
        memcpy(m->build, build, m->nbuild);
    }
    return CAIRN_OK;
}

static cairn_status get_numbers(reader *r, crn_seq *s, uint32_t *ret_n)
{
    *ret_n = (uint32_t)crn_get_var_max(&r->c, UINT32_MAX);
    CRN_TRY(get_seq(r, &r->c, s));
    crn_cursor_expect(&r->c, crn_seq_count(s) == *ret_n);
    return CAIRN_OK;
}

static cairn_status get_type(reader *r, size_t index, crn_type *type)
{
    int64_t v;
    crn_seq_iter it;
    type->name = (uint32_t)crn_get_var_max(&r->c, r->t->nstrings - 1);
    type->nbytes = crn_get_var_max(&r->c, INT64_MAX);
    type->lb = crn_get_svar(&r->c);
    type->extent = (int64_t)((uint64_t)crn_get_svar(&r->c) + type->nbytes);
    if (type->name != 0)
        return CAIRN_OK;
    type->combiner = (uint32_t)crn_get_var_max(&r->c, CRN_COMBINERS - 1);
    CRN_TRY(get_numbers(r, &type->ints, &type->nints));
    CRN_TRY(get_numbers(r, &type->addrs, &type->naddrs));
    CRN_TRY(get_numbers(r, &type->types, &type->ntypes));
    spend(r, type->ntypes);
    crn_seq_iter_init(&it, &type->types);
    for (uint32_t i = 0; i < type->ntypes && !r->c.failed && crn_seq_next(&it, &v); i++)
        crn_cursor_expect(&r->c, v >= 0 && (uint64_t)v < index); /* made of earlier ones */
    return crn_cursor_status(&r->c, "a datatype of a trace");
}

static cairn_status get_types(reader *r)
{
    crn_trace *t = r->t;
    size_t n = get_count(r);
    spend(r, n * sizeof *t->type);
    CRN_TRY(crn_cursor_status(&r->c, "the datatypes of a trace"));
    CRN_TRY(crn_alloc(&t->type, n));
    t->ntypes = n;
    for (size_t i = 0; i < n; i++)
        CRN_TRY(get_type(r, i, &t->type[i]));
    return CAIRN_OK;
}

static cairn_status get_column_set(reader *r)
{
    size_t n = get_count(r);
    CRN_TRY(crn_cursor_status(&r->c, "the columns of a trace"));
    CRN_TRY(crn_alloc(&r->column, n));
    CRN_TRY(crn_alloc(&r->column_n, n));
    r->ncolumns = n;
    for (size_t i = 0; i < n; i++)
        r->column_n[i] = get_count(r);
    for (size_t i = 0; i < n; i++)
        r->column[i] = crn_get_view(&r->c, r->column_n[i]);
    return crn_cursor_status(&r->c, "the columns of a trace");
}

static cairn_status get_head(reader *r)
{
    crn_trace *t = r->t;
    uint64_t n;
    t->nranks = (uint32_t)crn_get_var_max(&r->c, CRN_TRACE_RANKS);
    t->precision = (uint32_t)crn_get_var_max(&r->c, 100);
    t->began = crn_get_var(&r->c);
    t->lasted = crn_get_var(&r->c);
    t->dropped = crn_get_var(&r->c);
    CRN_TRY(get_seq(r, &r->c, &t->missing));
    CRN_TRY(check_ranks(r, &t->missing, &n));
    CRN_TRY(get_seq(r, &r->c, &t->cut));
    CRN_TRY(check_ranks(r, &t->cut, &n));
    t->program = (uint32_t)crn_get_var(&r->c);
    CRN_TRY(get_strings(r));
    crn_cursor_expect(&r->c, t->program < t->nstrings);
    return crn_cursor_status(&r->c, "a trace");
}

static cairn_status get_payload(reader *r)
{
    crn_trace *t = r->t;
    CRN_TRY(get_head(r));
    CRN_TRY(get_sites(r));
    CRN_TRY(get_modules(r));
    CRN_TRY(get_types(r));
    CRN_TRY(get_column_set(r));
    size_t n = get_count(r);
    spend(r, n * sizeof *t->lane);
    CRN_TRY(crn_cursor_status(&r->c, "a trace"));
    CRN_TRY(crn_alloc(&t->lane, n));
    t->nlanes = n;
    for (size_t i = 0; i < n; i++)
        CRN_TRY(get_lane(r, &t->lane[i]));
    CRN_FAIL_IF(r->c.n > 0, CAIRN_ECORRUPT, "a trace has %zu bytes too many", r->c.n);
    return CAIRN_OK;
}

cairn_status crn_trace_parse(unsigned version, const void *raw, size_t n, crn_trace **ret)
{
    reader r = {.c = crn_cursor_of(raw, n), .version = version, .budget = CRN_TRACE_MAX};
    CRN_TRY(crn_alloc(&r.t, 1));
    cairn_status rc = get_payload(&r);
    free(r.column);
    free(r.column_n);
    if (rc < 0) {
        crn_trace_free(r.t);
        return rc;
    }
    *ret = r.t;
    return CAIRN_OK;
}

cairn_status crn_trace_decode(const void *data, size_t nbytes, crn_trace **ret)
{
    crn_cursor c = crn_cursor_of(data, nbytes);
    const void *magic = crn_get_view(&c, 8);
    CRN_FAIL_IF(!magic || memcmp(magic, CRN_TRACE_MAGIC, 8) != 0, CAIRN_ECORRUPT,
                "this is not a trace");
    unsigned version = crn_get_u16(&c), flags = crn_get_u16(&c);
    uint64_t stored = crn_get_u32(&c), n = crn_get_u64(&c);
    CRN_TRY(crn_cursor_status(&c, "the head of a trace"));
    CRN_FAIL_IF(version > CAIRN_TRACE_FORMAT, CAIRN_EUNSUPPORTED,
                "the trace has format %u, this Cairn reads up to %u", version, CAIRN_TRACE_FORMAT);
    CRN_FAIL_IF(version == 0 || flags != 0 || n > CRN_TRACE_MAX, CAIRN_ECORRUPT,
                "the head of a trace is damaged");
    CRN_FAIL_IF(stored != c.n, CAIRN_ECORRUPT, "a trace of %llu bytes has %zu: it is cut short",
                (unsigned long long)stored, c.n);
    unsigned char *raw;
    CRN_TRY(crn_trace_unpack(c.at, c.n, n, &raw));
    cairn_status rc = crn_trace_parse(version, raw, n, ret);
    free(raw);
    return rc;
}

static cairn_status read_all(int fd, const char *path, crn_buf *b)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return crn_fail_sys(errno, "cannot look at '%s'", path);
    CRN_FAIL_IF(!S_ISREG(st.st_mode) || (uint64_t)st.st_size > CRN_TRACE_MAX, CAIRN_EINVAL,
                "'%s' is not a trace: not a file, or too large", path);
    crn_put_zeros(b, (size_t)st.st_size);
    CRN_TRY(crn_buf_status(b));
    for (size_t done = 0; done < b->n;) {
        ssize_t n = read(fd, b->at + done, b->n - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return crn_fail_sys(errno, "cannot read '%s'", path);
        CRN_FAIL_IF(n == 0, CAIRN_ECORRUPT, "'%s' became shorter while it was read", path);
        done += (size_t)n;
    }
    return CAIRN_OK;
}

cairn_status crn_trace_load(const char *path, crn_trace **ret)
{
    crn_buf b = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return crn_fail_sys(errno, "cannot open '%s'", path);
    cairn_status rc = read_all(fd, path, &b);
    close(fd);
    if (rc == CAIRN_OK) {
        rc = crn_trace_decode(b.at, b.n, ret);
        if (rc < 0)
            crn_err_prefix("'%s': ", path);
    }
    crn_buf_done(&b);
    return rc;
}
