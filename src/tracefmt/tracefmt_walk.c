/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Walking: a stack of rules, and for each column of each symbol the place where it is read.
 */
#include "tracefmt/tracefmt.h"

/* Reading one column as one rank. */
typedef struct reading {
    const crn_group *group; /* NULL: the rank has no part in it */
    int64_t base;
    crn_seq_iter *it; /* NULL for a constant */
    int64_t *list;    /* the list that was decoded last */
    size_t nlist, list_cap;
    int64_t list_index; /* which; -1 before the first */
} reading;

typedef struct meeting {
    reading *column; /* made when the symbol is first met */
    uint64_t met;    /* times that it was met: values of column 0 that were read */
    uint64_t n;      /* events of a place: values of the other columns that were read */
} meeting;

typedef struct level {
    const crn_symbol *rule;
    size_t at; /* the next symbol of the body */
} level;

typedef struct comm_entry {
    crn_comm_view view;
    int64_t *world;
    bool asked; /* whether another thread made it */
} comm_entry;

struct crn_walk {
    const crn_trace *t;
    const crn_lane *lane;
    uint64_t lane_index;
    uint32_t rank;
    uint64_t seed;
    meeting *symbol;
    CRN_VEC(level) stack;
    CRN_VEC(crn_walk_level) shown; /* beside stack */
    CRN_VEC(comm_entry) comm;      /* by number */
    uint32_t place;                /* the place that repeats */
    uint64_t repeat;               /* events of it that are still to come */
    unsigned idle;                 /* turns since the last event */
    uint32_t from;
    bool failed;
};

/*
 * A turn may be without events: what is passed over while folding is part of later rules. But only
 * a damaged trace has many in a row, and would keep us for ever.
 */
enum { COMMS_MAX = 1 << 20, IDLE_MAX = 4096 };

static void reading_done(reading *r)
{
    free(r->it);
    free(r->list);
}

void crn_walk_close(crn_walk *w)
{
    if (!w)
        return;
    for (size_t i = 0; w->symbol && i < w->lane->nsymbols; i++) {
        for (size_t k = 0; w->symbol[i].column && k < w->lane->symbol[i].ncolumns; k++)
            reading_done(&w->symbol[i].column[k]);
        free(w->symbol[i].column);
    }
    for (size_t i = 0; i < w->comm.n; i++)
        free(w->comm.at[i].world);
    free(w->symbol);
    crn_vec_done(&w->stack);
    crn_vec_done(&w->shown);
    crn_vec_done(&w->comm);
    free(w);
}

static cairn_status open_reading(const crn_column *c, uint32_t rank, reading *r)
{
    r->list_index = -1;
    r->group = crn_column_group(c, rank, &r->base);
    if (!r->group || r->group->value.n == 0)
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&r->it, 1));
    crn_seq_iter_init(r->it, &r->group->value);
    return CAIRN_OK;
}

static cairn_status meet(crn_walk *w, uint32_t symbol)
{
    const crn_symbol *s = &w->lane->symbol[symbol];
    meeting *m = &w->symbol[symbol];
    if (m->column)
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&m->column, s->ncolumns));
    for (size_t i = 0; i < s->ncolumns; i++)
        CRN_TRY(open_reading(&s->column[i], w->rank, &m->column[i]));
    return CAIRN_OK;
}

/* The next value or index of a column; one that ends starts over. */
static int64_t read_next(reading *r)
{
    int64_t v = 0;
    if (r->it && !crn_seq_next(r->it, &v)) {
        crn_seq_iter_init(r->it, &r->group->value);
        crn_seq_next(r->it, &v);
    }
    return v;
}

static int64_t draw(const crn_walk *w, uint32_t symbol, size_t column, uint64_t n,
                    const crn_hist *hist)
{
    crn_rng rng = crn_rng_of(w->seed, w->lane_index << 48 ^ (uint64_t)symbol << 8 ^ column);
    rng.n = n;
    return crn_hist_draw(hist, crn_rng_u64(&rng));
}

static bool read_list(reading *r, int64_t index)
{
    const crn_group *g = r->group;
    int64_t v;
    crn_seq_iter it;
    if (index == r->list_index)
        return true;
    r->nlist = 0;
    r->list_index = index;
    if ((uint64_t)index >= g->nlists)
        return true;
    uint64_t n = crn_seq_count(&g->list[index]);
    if (crn_vec_grow((void **)&r->list, &r->list_cap, 0, n, sizeof *r->list) < 0)
        return false;
    crn_seq_iter_init(&it, &g->list[index]);
    while (r->nlist < n && crn_seq_next(&it, &v))
        r->list[r->nlist++] = (int64_t)((uint64_t)v + (uint64_t)r->base);
    return true;
}

/* Read a column: the value, and where it comes from. n: how often the column was read before. */
static int64_t read_value(crn_walk *w, uint32_t symbol, size_t column, uint64_t n,
                          const crn_hist **ret_hist)
{
    reading *r = &w->symbol[symbol].column[column];
    *ret_hist = NULL;
    if (!r->group)
        return 0;
    int64_t v = read_next(r);
    if (r->group->nlists > 0) {
        w->failed |= !read_list(r, v);
        return v;
    }
    v = (int64_t)((uint64_t)r->base + (uint64_t)v);
    if (r->group->nhists == 0)
        return v;
    *ret_hist = &r->group->hist[(uint64_t)v < r->group->nhists ? v : 0];
    return draw(w, symbol, column, n, *ret_hist);
}

/* Turns of a rule, or repeat of a place, that is met now. */
static uint64_t read_repeat(crn_walk *w, uint32_t symbol)
{
    const crn_hist *hist;
    if (meet(w, symbol) < 0) {
        w->failed = true;
        return 0;
    }
    int64_t v = read_value(w, symbol, 0, w->symbol[symbol].met++, &hist);
    return v > 0 ? (uint64_t)v : 0;
}

static void enter(crn_walk *w, uint32_t symbol)
{
    const crn_symbol *s = &w->lane->symbol[symbol];
    uint64_t n = read_repeat(w, symbol);
    if (n == 0)
        return;
    if (s->call != CRN_CALL_NONE) {
        w->place = symbol;
        w->repeat = n;
        return;
    }
    level l = {.rule = s};
    crn_walk_level shown = {.rule = symbol, .turns = n};
    if (crn_vec_push(&w->stack, l) < 0 || crn_vec_push(&w->shown, shown) < 0)
        w->failed = true;
}

/* Move on until a place is met; false at the end. */
static bool to_place(crn_walk *w)
{
    while (w->repeat == 0) {
        if (w->failed || w->stack.n == 0 || w->shown.n < w->stack.n)
            return false;
        level *top = &w->stack.at[w->stack.n - 1];
        crn_walk_level *shown = &w->shown.at[w->stack.n - 1];
        if (top->at < top->rule->nbody) {
            enter(w, top->rule->body[top->at++]);
        } else if (shown->turn + 1 < shown->turns && w->idle < IDLE_MAX) {
            shown->turn++;
            top->at = 0;
            w->idle++;
        } else {
            w->stack.n--;
            w->shown.n--;
        }
    }
    return true;
}

static cairn_status comm_entry_of(crn_walk *w, int64_t number, comm_entry **ret)
{
    while (w->comm.n <= (size_t)number)
        CRN_TRY(crn_vec_push(&w->comm, (comm_entry){{0}, NULL, false}));
    *ret = &w->comm.at[number];
    return CAIRN_OK;
}

static cairn_status add_comm(crn_walk *w, int64_t number, const int64_t *world, size_t n)
{
    comm_entry *entry;
    int64_t *copy;
    if (number < 0 || number >= COMMS_MAX)
        return CAIRN_OK;
    CRN_TRY(comm_entry_of(w, number, &entry));
    CRN_TRY(crn_alloc(&copy, n));
    free(entry->world);
    *entry = (comm_entry){.view = {.rank = -1, .size = (int64_t)n, .world = copy}, .world = copy};
    for (size_t i = 0; i < n; i++) {
        copy[i] = world[i];
        if (world[i] == w->rank)
            entry->view.rank = (int64_t)i;
    }
    return CAIRN_OK;
}

static void note_new_comm(crn_walk *w, const crn_traced_event *e)
{
    for (int i = 0; i + 1 < e->ncolumns; i++) {
        if (e->kind[i] == CRN_KIND_COMM_NEW && e->kind[i + 1] == CRN_KIND_GROUP &&
            add_comm(w, e->value[i], e->list[i + 1].at, e->list[i + 1].n) < 0)
            w->failed = true;
    }
}

/* A communicator that this thread did not make: the first one of the process mostly did. */
static cairn_status ask_others(crn_walk *w, int64_t number)
{
    comm_entry *entry;
    crn_comm_group group;
    crn_seq_iter it;
    int64_t *world, v;
    CRN_TRY(comm_entry_of(w, number, &entry));
    if (entry->view.size > 0 || entry->asked)
        return CAIRN_OK;
    entry->asked = true;
    if (!crn_trace_comm(w->t, w->rank, number, &group))
        return CAIRN_OK;
    uint64_t n = crn_seq_count(group.list), i = 0;
    CRN_TRY(crn_alloc(&world, n));
    crn_seq_iter_init(&it, group.list);
    while (i < n && crn_seq_next(&it, &v))
        world[i++] = (int64_t)((uint64_t)group.base + (uint64_t)v);
    cairn_status rc = add_comm(w, number, world, i);
    free(world);
    return rc;
}

static crn_comm_view comm_of(crn_walk *w, const crn_traced_event *e)
{
    for (int i = 0; i < e->ncolumns; i++) {
        if (e->kind[i] != CRN_KIND_COMM || e->value[i] < 0 || e->value[i] >= COMMS_MAX)
            continue;
        if (w->lane_index > 0 && ask_others(w, e->value[i]) < 0)
            w->failed = true;
        if ((size_t)e->value[i] < w->comm.n)
            return w->comm.at[e->value[i]].view;
    }
    return (crn_comm_view){0};
}

int64_t crn_peer_rank(const crn_column *c, int64_t value, const crn_comm_view *comm)
{
    int64_t size = comm->size;
    if (value < 0 || comm->rank < 0) /* between groups ranks are absolute */
        return value;
    switch (c->enc) {
    case CRN_ENC_XOR:
        return value ^ comm->rank;
    case CRN_ENC_REL:
        return size > 0 ? (value % size + comm->rank) % size : value;
    case CRN_ENC_GRID: /* of other communicators only a damaged trace says so */
        return crn_grid_size(&c->grid) == size ? crn_grid_peer(&c->grid, comm->rank, value) : value;
    default:
        return value;
    }
}

static void read_columns(crn_walk *w, crn_traced_event *e)
{
    meeting *m = &w->symbol[e->symbol];
    for (int i = 0; i < e->ncolumns; i++) {
        size_t column = (size_t)i + 1;
        e->kind[i] = (uint8_t)crn_symbol_kind(e->place, column);
        e->value[i] = read_value(w, e->symbol, column, m->n, &e->hist[i]);
        e->list[i] = (crn_list){0};
        if (crn_kind_is_list(e->kind[i]))
            e->list[i] = (crn_list){m->column[column].list, m->column[column].nlist};
    }
    e->comm = comm_of(w, e);
    for (int i = 0; i < e->ncolumns; i++) {
        if (e->kind[i] == CRN_KIND_PEER)
            e->value[i] = crn_peer_rank(&e->place->column[i + 1], e->value[i], &e->comm);
    }
}

bool crn_walk_next(crn_walk *w, crn_traced_event *e)
{
    if (!to_place(w))
        return false;
    w->repeat--;
    w->idle = 0;
    e->symbol = w->place;
    e->place = &w->lane->symbol[w->place];
    e->call = crn_call_row(e->place->call);
    e->index = w->symbol[w->place].n;
    e->from = w->from;
    e->ncolumns = (int)e->place->ncolumns - 1;
    read_columns(w, e);
    note_new_comm(w, e);
    w->symbol[w->place].n++;
    w->from = w->place;
    return !w->failed;
}

size_t crn_walk_levels(const crn_walk *w, const crn_walk_level **ret)
{
    *ret = w->shown.at;
    return w->shown.n;
}

/* World and self are there from the start. */
static cairn_status add_first_comms(crn_walk *w)
{
    int64_t self = w->rank;
    comm_entry world = {.view = {.rank = self, .size = w->t->nranks}};
    CRN_TRY(crn_vec_push(&w->comm, world));
    return add_comm(w, CRN_COMM_SELF, &self, 1);
}

cairn_status crn_walk_open(const crn_trace *t, size_t lane, uint32_t rank, uint64_t seed,
                           crn_walk **ret)
{
    uint64_t index;
    CRN_FAIL_IF(lane >= t->nlanes || !crn_seq_find(&t->lane[lane].ranks, rank, &index),
                CAIRN_ENOTFOUND, "the trace has no thread %zu of rank %u", lane, rank);
    crn_walk *w;
    cairn_status rc;
    CRN_TRY(crn_rng_present("reading events of a trace"));
    CRN_TRY(crn_alloc(&w, 1));
    w->t = t;
    w->lane = &t->lane[lane];
    w->lane_index = lane;
    w->rank = rank;
    w->seed = seed;
    w->from = CRN_NO_SYMBOL;
    CRN_TRY_OUT(rc, crn_alloc(&w->symbol, w->lane->nsymbols));
    CRN_TRY_OUT(rc, add_first_comms(w));
    enter(w, w->lane->root);
    *ret = w;
    return CAIRN_OK;
out:
    crn_walk_close(w);
    return rc;
}

const crn_gap *crn_lane_gap(const crn_lane *lane, uint32_t from, uint32_t to)
{
    size_t lo = 0, hi = lane->ngaps;
    uint64_t key = (uint64_t)(from + 1) << 32 | to; /* the start of the lane sorts first */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        uint64_t at = (uint64_t)(lane->gap[mid].from + 1) << 32 | lane->gap[mid].to;
        if (at == key)
            return &lane->gap[mid];
        if (at < key)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}
