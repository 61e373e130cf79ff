/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Below 100 per cent: values of a column that differ by less than the margin share a histogram,
 * over time and over ranks (seed 004, chapter 4). A column then holds, instead of values, numbers
 * of histograms; at 0 per cent there is one, and the sequence of its numbers is a constant.
 *
 * What all ranks of a communicator must do the same number of times stays exact: turns and repeats
 * of what holds a collective are never drawn, so that the replay's ranks meet, and what one loop
 * opens, another one closes.
 */
#include "tracefmt/tracefmt_merge_impl.h"

enum { LONG = 64 }; /* bytes of items beyond which a column is drawn in the end */

/* A column that is being drawn: the histograms, and ranks by their sequence of numbers. */
typedef struct drawing {
    uint32_t precision;
    CRN_VEC(crn_hist) hist;
    crn_group *group; /* base and value: numbers of hist; ranks are filled in at the end */
    size_t ngroups;
    CRN_VEC(struct member {
        int64_t rank;
        size_t group;
    }) member;
} drawing;

static void drawing_done(drawing *d)
{
    crn_groups_free(d->group, d->ngroups);
    crn_vec_done(&d->hist);
    crn_vec_done(&d->member);
}

/* The number of the histogram for values from low to high, made if there is none yet. */
static cairn_status pick(drawing *d, int64_t low, int64_t high, size_t *ret)
{
    size_t i = crn_hist_pick(d->hist.at, d->hist.n, low, high, d->precision);
    if (i == d->hist.n)
        CRN_TRY(crn_vec_push(&d->hist, (crn_hist){0}));
    *ret = i;
    return CAIRN_OK;
}

static cairn_status draw_value(drawing *d, crn_seq_build *b, int64_t v, uint64_t n, int32_t rank)
{
    size_t i;
    CRN_TRY(pick(d, v, v, &i));
    crn_hist_add(&d->hist.at[i], v, n, rank);
    crn_seq_add_run(b, (int64_t)i, 0, n);
    return CAIRN_OK;
}

/* One rank's exact values; reads: how many, which a constant does not know. */
static cairn_status draw_exact(drawing *d, crn_seq_build *b, const crn_group *g, int64_t base,
                               int32_t rank, uint64_t reads)
{
    crn_seq_iter it;
    int64_t v, stride;
    uint64_t got, left = g->value.n > 0 ? crn_seq_count(&g->value) : reads;
    crn_seq_iter_init(&it, &g->value);
    for (; left > 0 && crn_seq_next_run(&it, left, &v, &stride, &got); left -= got) {
        uint64_t first = (uint64_t)base + (uint64_t)v; /* as sequences do, it may wrap */
        if (stride == 0)
            CRN_TRY(draw_value(d, b, (int64_t)first, got, rank));
        for (uint64_t i = 0; stride != 0 && i < got; i++)
            CRN_TRY(draw_value(d, b, (int64_t)(first + i * (uint64_t)stride), 1, rank));
    }
    return CAIRN_OK;
}

/* The histograms of a group that was drawn before join ours; number[i] says which. */
static cairn_status join_hists(drawing *d, const crn_group *g, size_t *number)
{
    for (size_t i = 0; i < g->nhists; i++) {
        const crn_hist *h = &g->hist[i];
        CRN_TRY(pick(d, h->bin[0].min, h->bin[h->nbins - 1].max, &number[i]));
        crn_hist_merge(&d->hist.at[number[i]], &g->hist[i]);
    }
    return CAIRN_OK;
}

static cairn_status draw_again(drawing *d, crn_seq_build *b, const crn_group *g, int64_t base)
{
    crn_seq_iter it;
    int64_t v, stride;
    uint64_t got, left = CRN_MAX(crn_seq_count(&g->value), 1);
    size_t *number;
    CRN_TRY(crn_alloc(&number, g->nhists));
    cairn_status rc = join_hists(d, g, number);
    crn_seq_iter_init(&it, &g->value);
    for (; rc == CAIRN_OK && left > 0 && crn_seq_next_run(&it, left, &v, &stride, &got);
         left -= got) {
        for (uint64_t i = 0; i < (stride == 0 ? 1 : got); i++) {
            size_t old = (size_t)(base + v + (int64_t)i * stride);
            crn_seq_add_run(b, (int64_t)number[old < g->nhists ? old : 0], 0,
                            stride == 0 ? got : 1);
        }
    }
    free(number);
    return rc;
}

/* The group with this sequence of numbers. */
static cairn_status group_of(drawing *d, crn_seq_build *b, size_t *ret)
{
    crn_seq s;
    CRN_TRY(crn_seq_encode(b, NULL, true, &s));
    for (size_t i = 0; i < d->ngroups; i++) {
        if (d->group[i].base.base == s.base && crn_seq_same_items(&d->group[i].value, &s)) {
            crn_seq_done(&s);
            *ret = i;
            return CAIRN_OK;
        }
    }
    if (crn_realloc(&d->group, d->ngroups + 1) < 0) {
        crn_seq_done(&s);
        return CAIRN_ENOMEM;
    }
    d->group[d->ngroups] = (crn_group){.base = {.base = s.base}, .value = {.at = s.at, .n = s.n}};
    *ret = d->ngroups++;
    return CAIRN_OK;
}

static cairn_status add_member(drawing *d, int64_t rank, size_t group)
{
    return crn_vec_push(&d->member, (struct member){rank, group});
}

/* The group of one rank of g, for its share of the values. */
static cairn_status draw_rank(drawing *d, const crn_group *g, int64_t rank, int64_t base,
                              uint64_t reads, size_t *ret)
{
    crn_seq_build b = {0};
    cairn_status rc;
    if (g->nhists > 0)
        rc = draw_again(d, &b, g, base);
    else
        rc = draw_exact(d, &b, g, base, (int32_t)rank, reads);
    if (rc == CAIRN_OK)
        rc = group_of(d, &b, ret);
    crn_seq_build_done(&b);
    return rc;
}

static cairn_status draw_group(drawing *d, const crn_group *g)
{
    crn_seq_iter ranks, bases;
    int64_t rank, base;
    size_t group = SIZE_MAX;
    uint64_t n = crn_seq_count(&g->ranks), reads = g->reads, share;
    crn_seq_iter_init(&ranks, &g->ranks);
    crn_seq_iter_init(&bases, &g->base);
    for (; n > 0 && crn_seq_next(&ranks, &rank) && crn_seq_next(&bases, &base); n--) {
        share = reads / n;
        reads -= share;
        if (share == 0) /* it never comes here */
            continue;
        /* the ranks of a group that was drawn before are all alike */
        if (g->nhists == 0 || group == SIZE_MAX)
            CRN_TRY(draw_rank(d, g, rank, base, share, &group));
        CRN_TRY(add_member(d, rank, group));
        d->group[group].reads += share;
    }
    return CAIRN_OK;
}

static int by_rank(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Give each group its ranks and its copy of the histograms. */
static cairn_status finish(drawing *d)
{
    qsort(d->member.at, d->member.n, sizeof *d->member.at, by_rank);
    for (size_t i = 0; i < d->ngroups; i++) {
        crn_group *g = &d->group[i];
        crn_seq_build b = {0};
        for (size_t k = 0; k < d->member.n; k++) {
            if (d->member.at[k].group == i)
                crn_seq_add(&b, d->member.at[k].rank);
        }
        cairn_status rc = crn_seq_encode(&b, NULL, false, &g->ranks);
        crn_seq_build_done(&b);
        CRN_TRY(rc);
        if (d->hist.n == 0)
            continue;
        CRN_TRY(crn_alloc(&g->hist, d->hist.n));
        g->nhists = d->hist.n;
        memcpy(g->hist, d->hist.at, d->hist.n * sizeof *g->hist);
    }
    return CAIRN_OK;
}

/* Is it worth it? Bytes of histograms are harder to compress than those of values. */
static bool is_smaller(const crn_column *drawn, const crn_column *exact, const crn_seq *all)
{
    const size_t now = crn_column_size(drawn, all), before = crn_column_size(exact, all);
    return now > 0 && now + now / 2 < before;
}

/* Draw the groups of a column together, of the ranks of a lane, unless that takes more room. */
static cairn_status draw_groups(crn_column *c, uint32_t precision, const crn_seq *all)
{
    drawing d = {.precision = precision};
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; i < c->ngroups; i++)
        CRN_TRY_OUT(rc, draw_group(&d, &c->group[i]));
    if (d.ngroups == 0)
        goto out;
    CRN_TRY_OUT(rc, finish(&d));
    crn_column drawn = {.enc = c->enc, .group = d.group, .ngroups = d.ngroups};
    if (!is_smaller(&drawn, c, all))
        goto out;
    crn_column_done(c);
    *c = drawn;
    d.group = NULL;
    d.ngroups = 0;
out:
    drawing_done(&d);
    return rc;
}

/* At 0 per cent one list stands for all: the one that most ranks have. */
static cairn_status keep_one_list(crn_column *c)
{
    drawing all = {0};
    size_t best = 0;
    cairn_status rc = CAIRN_OK;
    for (size_t i = 0; i < c->ngroups; i++) {
        crn_seq_iter it;
        int64_t rank;
        if (crn_seq_count(&c->group[i].ranks) > crn_seq_count(&c->group[best].ranks))
            best = i;
        crn_seq_iter_init(&it, &c->group[i].ranks);
        while (crn_seq_next(&it, &rank))
            CRN_TRY_OUT(rc, add_member(&all, rank, 0));
    }
    CRN_TRY_OUT(rc, crn_alloc(&all.group, 1));
    all.ngroups = 1;
    CRN_TRY_OUT(rc, finish(&all));
    int64_t base = crn_seq_at(&c->group[best].base, 0);
    crn_seq_done(&c->group[best].ranks);
    crn_seq_done(&c->group[best].base);
    c->group[best].ranks = all.group->ranks;
    c->group[best].base.base = base;
    memset(&all.group->ranks, 0, sizeof all.group->ranks);
    for (size_t i = 0; i < c->ngroups; i++) {
        if (i != best)
            crn_group_done(&c->group[i]);
    }
    c->group[0] = c->group[best];
    c->ngroups = 1;
out:
    drawing_done(&all);
    return rc;
}

/* ---- which columns ---- */

/* Symbols at which ranks wait for one another, and the rules that hold them. */
static cairn_status find_meetings(const crn_lane *l, bool **ret)
{
    bool *meets;
    CRN_TRY(crn_alloc(&meets, l->nsymbols));
    for (size_t i = 0; i < l->nsymbols; i++) {
        const crn_symbol *s = &l->symbol[i];
        crn_layer layer = crn_call_row(s->call)->layer;
        meets[i] = s->call != CRN_CALL_NONE &&
                   (layer == CRN_LAYER_COLL || layer == CRN_LAYER_COMM || layer == CRN_LAYER_RMA ||
                    layer == CRN_LAYER_MPIIO || layer == CRN_LAYER_ENV);
        for (size_t k = 0; k < s->nbody; k++)
            meets[i] |= meets[s->body[k]];
    }
    *ret = meets;
    return CAIRN_OK;
}

static bool may_draw(const crn_symbol *s, size_t column, bool meets, uint32_t precision)
{
    if (column == 0)
        return !meets && !s->optional;
    return crn_kind_is_drawn(crn_symbol_kind(s, column), precision);
}

/* Longer than a histogram needs. */
static bool is_long(const crn_column *c)
{
    return c->ngroups == 1 && c->group->nhists == 0 && c->group->value.n > LONG;
}

static cairn_status draw_column(uint32_t precision, crn_symbol *s, size_t column, bool meets,
                                bool last, const crn_seq *all)
{
    crn_column *c = &s->column[column];
    unsigned kind = crn_symbol_kind(s, column);
    if (c->ngroups > 1 && precision == 0 && (kind == CRN_KIND_REQS || kind == CRN_KIND_LIST))
        return keep_one_list(c);
    if ((c->ngroups > 1 || (last && is_long(c))) && may_draw(s, column, meets, precision))
        CRN_TRY(draw_groups(c, precision, all));
    for (size_t i = 0; last && i < c->ngroups; i++)
        c->group[i].reads = 0; /* it was for the merge */
    return CAIRN_OK;
}

cairn_status crn_lane_draw(crn_lane *l, uint32_t precision, bool last)
{
    bool *meets;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(find_meetings(l, &meets));
    for (size_t i = 0; i < l->nsymbols; i++) {
        for (size_t k = 0; k < l->symbol[i].ncolumns; k++)
            CRN_TRY_OUT(rc, draw_column(precision, &l->symbol[i], k, meets[i], last, &l->ranks));
    }
out:
    free(meets);
    return rc;
}
