/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Merging lanes: first every symbol of b finds the symbol of a that it is, or becomes a new one;
 * then the bodies of rules that were paired for being alike are aligned; then columns and times
 * follow.
 *
 * Rules are paired only at the same level (loops within loops below them). Whatever alignment puts
 * into a body is then of a lower level than the rule, so no rule comes to hold itself.
 */
#include "tracefmt/tracefmt_merge_impl.h"
#include "tracefmt/tracefmt_lane.h"

enum { COLLECTIVE = 1000, ALIKE_MAX = 4096 };

typedef struct merging {
    crn_lane *a, *b;
    const crn_table_map *tables;
    size_t na;       /* symbols that a had before */
    uint32_t *map;   /* of b: symbol of a, or CRN_NO_SYMBOL */
    bool *moved;     /* of b: it became a new symbol of a */
    bool *used;      /* of a, below na: b has it as well */
    bool *same_body; /* of b: nothing to align */
    uint32_t *level_a, *level_b;
    uint64_t *set_a, *set_b; /* places below each rule, as bits by a's numbers */
    size_t words;
} merging;

static bool is_rule(const crn_symbol *s)
{
    return s->call == CRN_CALL_NONE;
}

/* ---- symbols ---- */

/* Make *s a new symbol of a. */
static cairn_status append(crn_lane *a, crn_symbol *s, uint32_t *ret)
{
    CRN_TRY(crn_realloc(&a->symbol, a->nsymbols + 1));
    if (a->took) {
        CRN_TRY(crn_realloc(&a->took, a->nsymbols + 1));
        memset(&a->took[a->nsymbols], 0, sizeof *a->took);
    }
    a->symbol[a->nsymbols] = *s;
    memset(s, 0, sizeof *s);
    *ret = (uint32_t)a->nsymbols++;
    return CAIRN_OK;
}

static cairn_status move_symbol(merging *m, uint32_t k)
{
    CRN_TRY(append(m->a, &m->b->symbol[k], &m->map[k]));
    m->moved[k] = true;
    return CAIRN_OK;
}

static bool same_place(const crn_symbol *x, const crn_symbol *y)
{
    return x->call == y->call && x->site == y->site && x->name == y->name &&
           x->within == y->within && x->ncolumns == y->ncolumns;
}

static cairn_status map_places(merging *m)
{
    size_t next = 0; /* mostly the places of a come in the same order */
    for (uint32_t k = 0; k < m->b->nsymbols; k++) {
        crn_symbol *s = &m->b->symbol[k];
        if (is_rule(s))
            continue;
        s->site = m->tables->site[s->site];
        s->name = m->tables->string[s->name];
        for (size_t i = 0; i < m->na && m->map[k] == CRN_NO_SYMBOL; i++) {
            size_t at = (next + i) % m->na;
            if (!m->used[at] && same_place(&m->a->symbol[at], s)) {
                m->map[k] = (uint32_t)at;
                m->used[at] = true;
                next = at + 1;
            }
        }
    }
    for (uint32_t k = 0; k < m->b->nsymbols; k++) {
        if (!is_rule(&m->b->symbol[k]) && m->map[k] == CRN_NO_SYMBOL)
            CRN_TRY(move_symbol(m, k));
    }
    return CAIRN_OK;
}

static bool body_maps_to(const merging *m, const crn_symbol *b, const crn_symbol *a)
{
    if (!is_rule(a) || a->optional || a->nbody != b->nbody)
        return false;
    for (size_t i = 0; i < b->nbody; i++) {
        if (m->map[b->body[i]] != a->body[i])
            return false;
    }
    return true;
}

static void map_equal_rules(merging *m)
{
    size_t next = 0;
    for (uint32_t k = 0; k < m->b->nsymbols; k++) {
        const crn_symbol *s = &m->b->symbol[k];
        if (m->moved[k] || !is_rule(s) || s->optional || k == m->b->root)
            continue;
        for (size_t i = 0; i < m->na && m->map[k] == CRN_NO_SYMBOL; i++) {
            size_t at = (next + i) % m->na;
            if (at != m->a->root && !m->used[at] && body_maps_to(m, s, &m->a->symbol[at])) {
                m->map[k] = (uint32_t)at;
                m->used[at] = m->same_body[k] = true;
                next = at + 1;
            }
        }
    }
}

static void find_levels(const crn_lane *l, size_t n, uint32_t *level)
{
    for (size_t i = 0; i < n; i++) {
        const crn_symbol *s = &l->symbol[i];
        for (size_t k = 0; k < s->nbody; k++)
            level[i] = CRN_MAX(level[i], level[s->body[k]] + !s->optional);
    }
}

static void find_sets(const crn_lane *l, size_t n, size_t words, const uint32_t *map, uint64_t *set)
{
    for (size_t i = 0; i < n; i++) {
        const crn_symbol *s = &l->symbol[i];
        if (s->nbody == 0) {
            uint32_t number = map ? map[i] : (uint32_t)i;
            if (number != CRN_NO_SYMBOL)
                set[i * words + number / 64] |= (uint64_t)1 << number % 64;
        }
        for (size_t k = 0; k < s->nbody; k++) {
            for (size_t w = 0; w < words; w++)
                set[i * words + w] |= set[s->body[k] * words + w];
        }
    }
}

/* Places that both have, in parts of 1024 of the places that either has. */
static unsigned alike(const merging *m, size_t a, size_t b)
{
    unsigned both = 0, either = 0;
    for (size_t w = 0; w < m->words; w++) {
        uint64_t x = m->set_a[a * m->words + w], y = m->set_b[b * m->words + w];
        both += (unsigned)__builtin_popcountll(x & y);
        either += (unsigned)__builtin_popcountll(x | y);
    }
    return either > 0 ? both * 1024u / either : 0;
}

static void map_alike(merging *m, uint32_t k)
{
    unsigned best = 255; /* a quarter at least */
    uint32_t found = CRN_NO_SYMBOL;
    for (uint32_t i = 0; i < m->na; i++) {
        const crn_symbol *s = &m->a->symbol[i];
        if (!is_rule(s) || s->optional || m->used[i] || i == m->a->root ||
            m->level_a[i] != m->level_b[k])
            continue;
        unsigned share = alike(m, i, k);
        if (share > best) {
            best = share;
            found = i;
        }
    }
    if (found != CRN_NO_SYMBOL) {
        m->map[k] = found;
        m->used[found] = true;
    }
}

static bool is_unmapped_rule(const merging *m, uint32_t k)
{
    const crn_symbol *s = &m->b->symbol[k];
    return !m->moved[k] && m->map[k] == CRN_NO_SYMBOL && is_rule(s) && !s->optional &&
           k != m->b->root;
}

static cairn_status map_alike_rules(merging *m)
{
    size_t left = 0;
    for (uint32_t k = 0; k < m->b->nsymbols; k++)
        left += is_unmapped_rule(m, k);
    if (left == 0 || left > ALIKE_MAX)
        return CAIRN_OK;
    m->words = (m->a->nsymbols + 63) / 64;
    CRN_TRY(crn_alloc(&m->level_a, m->na));
    CRN_TRY(crn_alloc(&m->level_b, m->b->nsymbols));
    CRN_TRY(crn_alloc(&m->set_a, m->na * m->words));
    CRN_TRY(crn_alloc(&m->set_b, m->b->nsymbols * m->words));
    find_levels(m->a, m->na, m->level_a);
    find_levels(m->b, m->b->nsymbols, m->level_b);
    find_sets(m->a, m->na, m->words, NULL, m->set_a);
    find_sets(m->b, m->b->nsymbols, m->words, m->map, m->set_b);
    for (uint32_t k = 0; k < m->b->nsymbols; k++) {
        if (is_unmapped_rule(m, k))
            map_alike(m, k);
    }
    return CAIRN_OK;
}

/* The symbol of a for an element of a body of b; optional rules move when they are met. */
static cairn_status mapped(merging *m, uint32_t k, uint32_t *ret)
{
    if (m->map[k] == CRN_NO_SYMBOL) {
        uint32_t core;
        CRN_TRY(mapped(m, m->b->symbol[k].body[0], &core));
        m->b->symbol[k].body[0] = core;
        CRN_TRY(move_symbol(m, k));
    }
    *ret = m->map[k];
    return CAIRN_OK;
}

static cairn_status move_other_rules(merging *m)
{
    for (uint32_t k = 0; k < m->b->nsymbols; k++) {
        if (!is_unmapped_rule(m, k))
            continue;
        crn_symbol *s = &m->b->symbol[k];
        for (size_t i = 0; i < s->nbody; i++)
            CRN_TRY(mapped(m, s->body[i], &s->body[i]));
        CRN_TRY(move_symbol(m, k));
    }
    return CAIRN_OK;
}

/* ---- bodies ---- */

static uint32_t core_of(const crn_lane *l, uint32_t symbol)
{
    while (l->symbol[symbol].optional)
        symbol = l->symbol[symbol].body[0];
    return symbol;
}

/* Wrap a symbol of a; the groups of *count, which is taken over, say who takes it. */
static cairn_status wrap(merging *m, uint32_t symbol, crn_column *count, uint32_t *ret)
{
    crn_symbol s = {.optional = true, .nbody = 1, .ncolumns = 1};
    cairn_status rc;
    CRN_TRY_OUT(rc, crn_alloc(&s.body, 1));
    CRN_TRY_OUT(rc, crn_alloc(&s.column, 1));
    s.body[0] = symbol;
    s.column[0] = *count;
    memset(count, 0, sizeof *count);
    CRN_TRY_OUT(rc, append(m->a, &s, ret));
    return CAIRN_OK;
out:
    crn_column_done(count);
    crn_symbol_done(&s);
    return rc;
}

static cairn_status always(const crn_seq *ranks, crn_column *ret)
{
    *ret = (crn_column){.ngroups = 1};
    CRN_TRY(crn_alloc(&ret->group, 1));
    return crn_group_constant(ranks, 1, ret->group);
}

static cairn_status wrap_for(merging *m, uint32_t symbol, const crn_seq *ranks, uint32_t *ret)
{
    crn_column count;
    CRN_TRY(always(ranks, &count));
    return wrap(m, symbol, &count, ret);
}

/* An element that only a has. */
static cairn_status keep_a(merging *m, uint32_t x, uint32_t *ret)
{
    *ret = x;
    if (m->a->symbol[x].optional || x >= m->na || !m->used[x])
        return CAIRN_OK;
    return wrap_for(m, x, &m->a->ranks, ret);
}

/* An element that only b has. */
static cairn_status keep_b(merging *m, uint32_t y, uint32_t *ret)
{
    bool optional = m->b->symbol[y].optional;
    CRN_TRY(mapped(m, y, ret));
    if (optional || *ret >= m->na) /* a has it nowhere */
        return CAIRN_OK;
    return wrap_for(m, *ret, &m->b->ranks, ret);
}

/* An element that both have, either of them perhaps not on all its ranks. */
static cairn_status keep_both(merging *m, uint32_t x, uint32_t y, uint32_t *ret)
{
    crn_column count;
    crn_symbol *sb = m->moved[y] ? NULL : &m->b->symbol[y];
    bool b_optional = sb && sb->optional;
    *ret = x;
    if (!m->a->symbol[x].optional && !b_optional)
        return CAIRN_OK;
    if (m->a->symbol[x].optional && b_optional)
        return crn_merge_column(m->a->symbol[x].column, sb->column);
    if (m->a->symbol[x].optional) {
        CRN_TRY(always(&m->b->ranks, &count));
        cairn_status rc = crn_merge_column(m->a->symbol[x].column, &count);
        crn_column_done(&count);
        return rc;
    }
    CRN_TRY(always(&m->a->ranks, &count));
    cairn_status rc = crn_merge_column(&count, sb->column);
    if (rc < 0) {
        crn_column_done(&count);
        return rc;
    }
    return wrap(m, x, &count, ret);
}

/* Collectives, and rules that hold some, weigh more than all else. */
static cairn_status find_weights(const crn_lane *a, uint32_t **ret)
{
    uint32_t *weight;
    CRN_TRY(crn_alloc(&weight, a->nsymbols));
    for (size_t i = 0; i < a->nsymbols; i++) {
        const crn_symbol *s = &a->symbol[i];
        crn_layer layer = crn_call_row(s->call)->layer;
        weight[i] =
            is_rule(s) || (layer != CRN_LAYER_COLL && layer != CRN_LAYER_COMM) ? 1 : COLLECTIVE;
        for (size_t k = 0; k < s->nbody; k++)
            weight[i] = s->body[k] < i ? CRN_MAX(weight[i], weight[s->body[k]]) : weight[i];
    }
    *ret = weight;
    return CAIRN_OK;
}

static cairn_status align(merging *m, const crn_symbol *a, const crn_symbol *b, crn_pairs *pairs)
{
    uint32_t *x = NULL, *y = NULL, *weight = NULL;
    cairn_status rc;
    CRN_TRY_OUT(rc, find_weights(m->a, &weight));
    CRN_TRY_OUT(rc, crn_alloc(&x, a->nbody));
    CRN_TRY_OUT(rc, crn_alloc(&y, b->nbody));
    for (size_t i = 0; i < a->nbody; i++)
        x[i] = core_of(m->a, a->body[i]);
    for (size_t i = 0; i < b->nbody; i++) {
        uint32_t k = b->body[i];
        while (!m->moved[k] && m->b->symbol[k].optional)
            k = m->b->symbol[k].body[0];
        y[i] = m->map[k];
    }
    CRN_TRY_OUT(rc, crn_align(x, a->nbody, y, b->nbody, weight, pairs));
out:
    free(x);
    free(y);
    free(weight);
    return rc;
}

static cairn_status merge_bodies(merging *m, uint32_t a, uint32_t b)
{
    crn_pairs pairs = {0};
    uint32_t *body = NULL;
    cairn_status rc;
    CRN_TRY_OUT(rc, align(m, &m->a->symbol[a], &m->b->symbol[b], &pairs));
    CRN_TRY_OUT(rc, crn_alloc(&body, pairs.n));
    for (size_t i = 0; i < pairs.n; i++) {
        const crn_pair *p = &pairs.at[i];
        if (p->b == SIZE_MAX)
            CRN_TRY_OUT(rc, keep_a(m, m->a->symbol[a].body[p->a], &body[i]));
        else if (p->a == SIZE_MAX)
            CRN_TRY_OUT(rc, keep_b(m, m->b->symbol[b].body[p->b], &body[i]));
        else
            CRN_TRY_OUT(
                rc, keep_both(m, m->a->symbol[a].body[p->a], m->b->symbol[b].body[p->b], &body[i]));
    }
    free(m->a->symbol[a].body);
    m->a->symbol[a].body = body;
    m->a->symbol[a].nbody = pairs.n;
    body = NULL;
out:
    free(body);
    crn_vec_done(&pairs);
    return rc;
}

static cairn_status merge_structure(merging *m)
{
    CRN_TRY(map_places(m));
    map_equal_rules(m);
    CRN_TRY(map_alike_rules(m));
    CRN_TRY(move_other_rules(m));
    m->map[m->b->root] = m->a->root;
    m->used[m->a->root] = true;
    for (uint32_t k = 0; k < m->b->nsymbols; k++) {
        const crn_symbol *s = &m->b->symbol[k];
        if (!m->moved[k] && is_rule(s) && !s->optional && !m->same_body[k])
            CRN_TRY(merge_bodies(m, m->map[k], k));
    }
    return CAIRN_OK;
}

/* ---- what the symbols carry ---- */

static cairn_status renumber_datatypes(merging *m, size_t ntypes)
{
    for (size_t k = 0; k < m->b->nsymbols && !m->tables->same_types; k++) {
        crn_symbol *s = &m->b->symbol[k];
        for (size_t i = 1; i < s->ncolumns; i++) {
            if (crn_symbol_kind(s, i) == CRN_KIND_TYPE)
                CRN_TRY(crn_column_renumber(&s->column[i], m->tables->type, ntypes));
        }
    }
    return CAIRN_OK;
}

static cairn_status merge_columns(merging *m)
{
    for (size_t k = 0; k < m->b->nsymbols; k++) {
        crn_symbol *s = &m->b->symbol[k];
        if (m->moved[k] || s->optional)
            continue;
        for (size_t i = 0; i < s->ncolumns; i++)
            CRN_TRY(crn_merge_column(&m->a->symbol[m->map[k]].column[i], &s->column[i]));
    }
    return CAIRN_OK;
}

static cairn_status start(merging *m)
{
    size_t nb = m->b->nsymbols;
    m->na = m->a->nsymbols;
    CRN_TRY(crn_alloc(&m->map, nb));
    CRN_TRY(crn_alloc(&m->moved, nb));
    CRN_TRY(crn_alloc(&m->same_body, nb));
    CRN_TRY(crn_alloc(&m->used, m->na));
    for (size_t i = 0; i < nb; i++)
        m->map[i] = CRN_NO_SYMBOL;
    return CAIRN_OK;
}

static cairn_status unite_ranks(crn_seq *a, const crn_seq *b)
{
    crn_seq ranks;
    CRN_TRY(crn_seq_concat(a, crn_seq_count(a), b, crn_seq_count(b), false, &ranks));
    crn_seq_done(a);
    *a = ranks;
    return CAIRN_OK;
}

static cairn_status merge_lane(crn_lane *a, crn_lane *b, const crn_table_map *tables, size_t ntypes,
                               uint64_t lasted)
{
    merging m = {.a = a, .b = b, .tables = tables};
    cairn_status rc;
    CRN_TRY_OUT(rc, start(&m));
    CRN_TRY_OUT(rc, renumber_datatypes(&m, ntypes));
    CRN_TRY_OUT(rc, merge_structure(&m));
    CRN_TRY_OUT(rc, merge_columns(&m));
    CRN_TRY_OUT(rc, crn_merge_times(a, b, m.map, lasted));
    CRN_TRY_OUT(rc, unite_ranks(&a->ranks, &b->ranks));
    CRN_TRY_OUT(rc, crn_lane_order(a));
out:
    free(m.map);
    free(m.moved);
    free(m.same_body);
    free(m.used);
    free(m.level_a);
    free(m.level_b);
    free(m.set_a);
    free(m.set_b);
    return rc;
}

/* Lane of b that a does not have: it moves, with its numbers mapped. */
static cairn_status move_lane(crn_trace *a, crn_lane *b, const crn_table_map *tables, size_t ntypes)
{
    merging m = {.b = b, .tables = tables};
    CRN_TRY(renumber_datatypes(&m, ntypes));
    for (size_t i = 0; i < b->nsymbols; i++) {
        b->symbol[i].site = tables->site[b->symbol[i].site];
        b->symbol[i].name = tables->string[b->symbol[i].name];
    }
    CRN_TRY(crn_realloc(&a->lane, a->nlanes + 1));
    a->lane[a->nlanes++] = *b;
    memset(b, 0, sizeof *b);
    return CAIRN_OK;
}

/* ---- traces ---- */

static int64_t last_rank(const crn_trace *t)
{
    int64_t last = -1;
    for (size_t i = 0; i < t->nlanes; i++) {
        const crn_seq *ranks = &t->lane[i].ranks;
        last = CRN_MAX(last, crn_seq_at(ranks, crn_seq_count(ranks) - 1));
    }
    return last;
}

static int64_t first_rank(const crn_trace *t)
{
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < t->nlanes; i++)
        first = CRN_MIN(first, crn_seq_at(&t->lane[i].ranks, 0));
    return first;
}

static cairn_status merge_head(crn_trace *a, const crn_trace *b, const crn_table_map *m)
{
    if (a->program == 0)
        a->program = m->string[b->program];
    a->nranks = CRN_MAX(a->nranks, b->nranks);
    a->precision = CRN_MIN(a->precision, b->precision);
    a->began = CRN_MIN(a->began, b->began);
    a->lasted = CRN_MAX(a->lasted, b->lasted);
    a->dropped += b->dropped;
    CRN_TRY(unite_ranks(&a->missing, &b->missing));
    return unite_ranks(&a->cut, &b->cut);
}

static cairn_status merge_traces(crn_trace *a, crn_trace *b, crn_table_map *m)
{
    CRN_FAIL_IF(last_rank(a) >= first_rank(b), CAIRN_EINVAL,
                "rank %lld is to be merged after rank %lld", (long long)first_rank(b),
                (long long)last_rank(a));
    CRN_TRY(crn_merge_tables(a, b, m));
    CRN_TRY(merge_head(a, b, m));
    for (size_t i = 0; i < b->nlanes; i++) {
        if (i >= a->nlanes) {
            CRN_TRY(move_lane(a, &b->lane[i], m, b->ntypes));
            continue;
        }
        CRN_TRY(merge_lane(&a->lane[i], &b->lane[i], m, b->ntypes, a->lasted));
    }
    for (size_t i = 0; i < a->nlanes && a->precision < 100; i++)
        CRN_TRY(crn_lane_draw(&a->lane[i], a->precision, false));
    return CAIRN_OK;
}

cairn_status crn_trace_merge(crn_trace *a, crn_trace *b)
{
    crn_table_map m = {0};
    cairn_status rc = merge_traces(a, b, &m);
    crn_table_map_done(&m);
    crn_trace_free(b);
    return rc;
}

cairn_status crn_trace_finish(crn_trace *t)
{
    for (size_t i = 0; i < t->nlanes; i++)
        CRN_TRY(crn_finish_times(&t->lane[i], t->lasted));
    for (size_t i = 0; i < t->nlanes && t->precision < 100; i++)
        CRN_TRY(crn_lane_draw(&t->lane[i], t->precision, true));
    return crn_trace_choose(t);
}
