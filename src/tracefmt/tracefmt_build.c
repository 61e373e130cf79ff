/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Taking events: find the place, add to its columns, fold. Nothing here is slower for a long run
 * than for a short one.
 */
#include "tracefmt/tracefmt.h"

#include <math.h>

enum {
    DRAW_NBYTES = 8192, /* below 100 per cent, a column that needs more becomes a histogram */
    DRAW_LISTS = 64     /* and no column has more lists */
};

cairn_status crn_build_init(crn_build *b, uint32_t rank, uint32_t precision, bool times)
{
    memset(b, 0, sizeof *b);
    b->rank = rank;
    b->precision = precision;
    b->times = times;
    b->last = CRN_NO_SYMBOL;
    CRN_TRY(crn_alloc(&b->recent, CRN_RECENT_LISTS));
    return crn_fold_init(&b->fold);
}

static void column_done(crn_column_build *c)
{
    crn_seq_build_done(&c->value);
    crn_seq_build_done(&c->other);
    for (size_t i = 0; i < c->list.n; i++)
        crn_seq_done(&c->list.at[i]);
    crn_vec_done(&c->list);
    crn_index_done(&c->list_index);
    crn_vec_done(&c->hist);
}

void crn_build_done(crn_build *b)
{
    for (size_t i = 0; i < b->place.n; i++) {
        for (size_t k = 0; k < b->place.at[i].ncolumns; k++)
            column_done(&b->place.at[i].column[k]);
        free(b->place.at[i].column);
    }
    crn_vec_done(&b->place);
    crn_vec_done(&b->gap);
    crn_vec_done(&b->gap_next);
    free(b->slot);
    free(b->recent);
    crn_fold_done(&b->fold);
}

/* ---- places ---- */

static uint64_t place_hash(uint32_t call, uint32_t within, uint32_t site, uint32_t name)
{
    const uint64_t h = crn_hash_mix(0, (uint64_t)site << 32 | name);
    return crn_hash_mix(h, (uint64_t)call << 16 | within);
}

static inline bool place_is(const crn_place_build *p, uint32_t call, uint32_t within, uint32_t site,
                            uint32_t name)
{
    return p->call == call && p->site == site && p->name == name && p->within == within;
}

static uint32_t *place_slot(const crn_build *b, uint32_t call, uint32_t within, uint32_t site,
                            uint32_t name)
{
    size_t i = place_hash(call, within, site, name) & (b->nslots - 1);
    while (b->slot[i] && !place_is(&b->place.at[b->slot[i] - 1], call, within, site, name))
        i = (i + 1) & (b->nslots - 1);
    return &b->slot[i];
}

static cairn_status grow_slots(crn_build *b)
{
    if ((b->place.n + 1) * 2 < b->nslots)
        return CAIRN_OK;
    size_t n = CRN_MAX(b->nslots * 2, 256);
    uint32_t *slot;
    CRN_TRY(crn_alloc(&slot, n));
    free(b->slot);
    b->slot = slot;
    b->nslots = n;
    for (uint32_t i = 0; i < b->place.n; i++) {
        const crn_place_build *p = &b->place.at[i];
        *place_slot(b, p->call, p->within, p->site, p->name) = i + 1;
    }
    return CAIRN_OK;
}

static cairn_status new_place(crn_build *b, const crn_record *r, uint32_t *slot)
{
    crn_place_build p = {.call = r->call, .within = r->within, .site = r->site, .name = r->name};
    const crn_call *call = crn_call_row(r->call);
    p.ncolumns = (size_t)r->ncolumns;
    CRN_TRY(crn_vec_reserve(&b->place, 1));
    CRN_TRY(crn_alloc(&p.column, p.ncolumns));
    for (size_t i = 0; i < p.ncolumns; i++) {
        crn_column_build *c = &p.column[i];
        c->kind = i < (size_t)call->ncolumns ? call->kind[i] : CRN_KIND_NUMBER;
        c->plain = c->kind != CRN_KIND_PEER && !crn_kind_is_list(c->kind);
    }
    if (crn_fold_new_place(&b->fold, &p.symbol) < 0) {
        free(p.column);
        return CAIRN_ENOMEM;
    }
    b->place.at[b->place.n++] = p;
    b->fresh += sizeof p + p.ncolumns * sizeof *p.column + sizeof *b->fold.symbol.at;
    *slot = (uint32_t)b->place.n;
    return CAIRN_OK;
}

static cairn_status search_place(crn_build *b, const crn_record *r, uint32_t *ret) CRN_RARE;

static cairn_status search_place(crn_build *b, const crn_record *r, uint32_t *ret)
{
    CRN_TRY(grow_slots(b));
    uint32_t *slot = place_slot(b, r->call, r->within, r->site, r->name);
    if (!*slot)
        CRN_TRY(new_place(b, r, slot));
    *ret = *slot - 1;
    return CAIRN_OK;
}

/* Most often what comes next is what came next before. */
static cairn_status find_place(crn_build *b, const crn_record *r, uint32_t *ret)
{
    uint32_t none = 0, *then = b->last == CRN_NO_SYMBOL ? &none : &b->place.at[b->last].then;
    if (*then < b->place.n && place_is(&b->place.at[*then], r->call, r->within, r->site, r->name)) {
        *ret = *then;
        return CAIRN_OK;
    }
    CRN_TRY(search_place(b, r, ret));
    if (b->last != CRN_NO_SYMBOL)
        b->place.at[b->last].then = *ret; /* the places may have moved */
    return CAIRN_OK;
}

/* ---- columns ---- */

bool crn_kind_is_drawn(unsigned kind, uint32_t precision)
{
    switch (kind) {
    case CRN_KIND_PEER:
        return precision == 0;
    case CRN_KIND_COUNT:
    case CRN_KIND_TAG:
    case CRN_KIND_TOTAL:
    case CRN_KIND_BYTES:
    case CRN_KIND_MOVED:
    case CRN_KIND_OFFSET:
    case CRN_KIND_INDEX:
    case CRN_KIND_FLAG:
    case CRN_KIND_REQ:
    case CRN_KIND_REPEAT:
        return true;
    default: /* handles and names must stay what they are */
        return false;
    }
}

size_t crn_hist_pick(const crn_hist *hist, size_t n, int64_t low, int64_t high, uint32_t precision)
{
    const double margin = 1 - precision / 100.0;
    for (size_t i = 0; i < n; i++) {
        const crn_hist *h = &hist[i];
        const double first = h->nbins ? (double)CRN_MIN(h->bin[0].min, low) : (double)low;
        const double last =
            h->nbins ? (double)CRN_MAX(h->bin[h->nbins - 1].max, high) : (double)high;
        const double middle = fabs(first + last) / 2;
        if (precision == 0 || (last - first) / 2 <= margin * middle)
            return i;
    }
    return n;
}

static void add_drawn(crn_build *b, crn_column_build *c, int64_t v, uint64_t n)
{
    size_t i = crn_hist_pick(c->hist.at, c->hist.n, v, v, b->precision);
    if (i == c->hist.n && crn_vec_push(&c->hist, (crn_hist){0}) < 0) {
        b->failed = true;
        return;
    }
    crn_hist_add(&c->hist.at[i], v, n, (int32_t)b->rank);
    crn_seq_add_run(&c->value, (int64_t)i, 0, n);
}

/* A column has become too long to be kept exactly: turn it into histograms. */
static void start_drawing(crn_build *b, crn_column_build *c)
{
    crn_seq exact;
    crn_seq_iter it;
    int64_t v, stride;
    uint64_t n;
    if (crn_seq_encode(&c->value, NULL, false, &exact) < 0) {
        b->failed = true;
        return;
    }
    c->plain = false;
    crn_seq_build_done(&c->value);
    crn_seq_build_done(&c->other);
    crn_seq_iter_init(&it, &exact);
    while (crn_seq_next_run(&it, UINT64_MAX, &v, &stride, &n)) {
        for (uint64_t i = 0; stride != 0 && i < n; i++)
            add_drawn(b, c, (int64_t)((uint64_t)v + i * (uint64_t)stride), 1);
        if (stride == 0)
            add_drawn(b, c, v, n);
    }
    crn_seq_done(&exact);
}

static void add_value(crn_build *b, crn_column_build *c, int64_t v)
{
    if (c->hist.n > 0) {
        add_drawn(b, c, v, 1);
        return;
    }
    crn_seq_add(&c->value, v);
    if (b->precision < 100 && crn_kind_is_drawn(c->kind, b->precision) &&
        crn_seq_build_irregular(&c->value) > DRAW_NBYTES)
        start_drawing(b, c);
}

/* Most peers are neighbours, so relative ones fold and merge; special values stay. */
static inline void add_peer(crn_build *b, crn_column_build *c, int64_t peer, const crn_record *r)
{
    int64_t rel = peer, other = peer;
    if (peer >= 0) {
        rel = peer - r->comm_rank;
        rel += rel < 0 ? r->comm_size : 0;
        other = peer ^ r->comm_rank;
    }
    if (c->hist.n > 0 || !crn_seq_continue(&c->value, rel))
        add_value(b, c, rel);
    if (c->hist.n == 0)
        crn_seq_add(&c->other, other);
}

/* Below 100 per cent the number of lists is bounded: the one of the nearest length stands in. */
static size_t nearest_list(const crn_column_build *c, size_t n)
{
    size_t best = 0;
    uint64_t best_apart = UINT64_MAX;
    for (size_t i = 0; i < c->list.n; i++) {
        uint64_t len = crn_seq_count(&c->list.at[i]), apart = len > n ? len - n : n - len;
        if (apart < best_apart) {
            best = i;
            best_apart = apart;
        }
    }
    return best;
}

static cairn_status new_list(crn_build *b, crn_column_build *c, crn_list l, uint64_t hash)
{
    crn_seq s;
    CRN_TRY(crn_vec_reserve(&c->list, 1));
    CRN_TRY(crn_seq_of(l.at, l.n, &s));
    if (crn_index_add(&c->list_index, hash, c->list.n) < 0) {
        crn_seq_done(&s);
        return CAIRN_ENOMEM;
    }
    c->list.at[c->list.n++] = s;
    c->list_nbytes += crn_mem_nbytes(s.n);
    b->fresh += crn_mem_nbytes(s.n) + sizeof s + 2 * sizeof *c->list_index.slot;
    return CAIRN_OK;
}

static size_t find_list(crn_build *b, crn_column_build *c, crn_list l, uint64_t hash) CRN_RARE;

static size_t find_list(crn_build *b, crn_column_build *c, crn_list l, uint64_t hash)
{
    uint32_t at;
    for (size_t probe = 0; crn_index_next(&c->list_index, hash, &probe, &at);) {
        if (crn_seq_is(&c->list.at[at], l.at, l.n))
            return at;
    }
    if (b->precision < 100 && c->list.n >= DRAW_LISTS)
        return nearest_list(c, l.n);
    if (new_list(b, c, l, hash) == CAIRN_OK)
        return c->list.n - 1;
    b->failed = true;
    return 0;
}

static bool is_recent(const crn_recent_list *recent, const crn_column_build *c, crn_list l)
{
    if (recent->column != c || recent->n != l.n)
        return false;
    for (size_t i = 0; i < l.n; i++) {
        if (recent->value[i] != l.at[i])
            return false;
    }
    return true;
}

static void add_list(crn_build *b, crn_column_build *c, crn_list l)
{
    uint64_t hash = crn_values_hash(l.at, l.n);
    crn_recent_list *recent = &b->recent[(hash ^ (uintptr_t)c >> 4) % CRN_RECENT_LISTS];
    if (!is_recent(recent, c, l)) {
        recent->column = l.n <= CRN_RECENT_VALUES ? c : NULL;
        recent->index = (uint32_t)find_list(b, c, l, hash);
        recent->n = (uint32_t)l.n;
        for (size_t i = 0; recent->column && i < l.n; i++)
            recent->value[i] = l.at[i];
    }
    crn_seq_add(&c->value, recent->index);
}

static void add_columns(crn_build *b, crn_place_build *p, const crn_record *r)
{
    const int64_t *v = r->value;
    for (crn_column_build *c = p->column, *end = c + p->ncolumns; c < end; c++, v++) {
        if (c->plain && crn_seq_continue(&c->value, *v))
            continue;
        if (c->kind == CRN_KIND_PEER)
            add_peer(b, c, *v, r);
        else if (crn_kind_is_list(c->kind))
            add_list(b, c, r->list[v - r->value]);
        else
            add_value(b, c, *v);
    }
}

/* ---- times ---- */

static uint32_t new_gap(crn_build *b, uint32_t from, uint32_t to) CRN_RARE;

/* The index of a new gap, + 1; 0 if there is no memory for it. */
static uint32_t new_gap(crn_build *b, uint32_t from, uint32_t to)
{
    uint32_t none = 0, *first = from == CRN_NO_SYMBOL ? &none : &b->place.at[from].gap;
    if (crn_vec_reserve(&b->gap_next, 1) < 0 ||
        crn_vec_push(&b->gap, (crn_gap){.from = from, .to = to}) < 0)
        return 0;
    b->gap_next.at[b->gap_next.n++] = *first;
    *first = (uint32_t)b->gap.n;
    b->fresh += sizeof(crn_gap);
    return *first;
}

/* A place has few successors: their gaps form a chain. */
static inline uint32_t find_gap(crn_build *b, uint32_t from, uint32_t to)
{
    uint32_t i = from == CRN_NO_SYMBOL ? 0 : b->place.at[from].gap;
    while (i > 0 && b->gap.at[i - 1].to != to)
        i = b->gap_next.at[i - 1];
    return i > 0 ? i : new_gap(b, from, to);
}

static inline void add_times(crn_build *b, uint32_t place, const crn_record *r)
{
    uint32_t gap = find_gap(b, b->last, place);
    if (gap == 0) {
        b->failed = true;
        return;
    }
    uint64_t before = b->last_end > 0 && r->start > b->last_end ? r->start - b->last_end : 0;
    crn_hist_add(&b->gap.at[gap - 1].time.all, (int64_t)before, 1, (int32_t)b->rank);
    crn_hist_add(&b->place.at[place].took, (int64_t)(r->end - r->start), 1, (int32_t)b->rank);
    b->last_end = r->end;
}

void crn_build_add(crn_build *b, const crn_record *r)
{
    uint32_t place;
    b->events++;
    if (b->failed || b->fold.failed || find_place(b, r, &place) < 0) {
        b->failed = true;
        b->fold.dropped++;
        return;
    }
    add_columns(b, &b->place.at[place], r);
    crn_fold_event(&b->fold, b->place.at[place].symbol);
    if (b->times)
        add_times(b, place, r);
    b->last = place;
}

static size_t column_nbytes(const crn_column_build *c)
{
    return sizeof *c + crn_seq_build_nbytes(&c->value) + crn_seq_build_nbytes(&c->other) +
           c->hist.cap * sizeof *c->hist.at + c->list.cap * sizeof *c->list.at +
           crn_index_nbytes(&c->list_index) + c->list_nbytes;
}

size_t crn_build_nbytes(const crn_build *b)
{
    size_t n = crn_fold_nbytes(&b->fold) + b->gap.cap * sizeof *b->gap.at +
               b->gap_next.cap * sizeof *b->gap_next.at + b->place.cap * sizeof *b->place.at +
               b->nslots * sizeof *b->slot + CRN_RECENT_LISTS * sizeof *b->recent;
    for (size_t i = 0; i < b->place.n; i++) {
        for (size_t k = 0; k < b->place.at[i].ncolumns; k++)
            n += column_nbytes(&b->place.at[i].column[k]);
    }
    return n;
}
