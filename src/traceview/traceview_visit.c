/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Events of a rank: without order, as runs of equal ones straight from the columns of each place;
 * in order, one by one, by walking. The first needs to know what handles stand for before it
 * starts; where numbers stand for several things in turn, the second takes its place.
 */
#include "traceview/traceview.h"

#include <math.h>

enum { NUMBERS_MAX = 1 << 20 }; /* of files; a damaged trace may say anything */

/* Names of files by their numbers; NULL where none is known. Owned. */
typedef CRN_VEC(char *) names;

typedef struct visit {
    const crn_trace *t;
    const crn_lane *lane;
    uint32_t rank, thread;
    crn_bind bind;
    bool ordered;
    bool walks; /* for the public, event by event: files have their full names */
    names file_name, fd_name;
    crn_view_fn *fn;
    void *arg;
    int stop; /* what fn returned */
    crn_traced_event e;
    int64_t step[CRN_COLUMNS];
    double owed[CRN_COLUMNS]; /* of sizes that are known by distribution, to the place's events */
    struct {
        int64_t *at;
        size_t cap;
    } list[CRN_COLUMNS];
    cairn_trace_value value[CRN_COLUMNS];
    crn_meaning meaning;
    char name[4096];
} visit;

static void names_done(names *n)
{
    for (size_t i = 0; i < n->n; i++)
        free(n->at[i]);
    crn_vec_done(n);
}

static void visit_done(visit *v)
{
    for (size_t i = 0; i < CRN_COLUMNS; i++)
        free(v->list[i].at);
    names_done(&v->file_name);
    names_done(&v->fd_name);
    crn_meaning_done(&v->meaning);
    crn_bind_done(&v->bind);
}

/* ---- giving an event ---- */

static void set_values(visit *v)
{
    for (int i = 0; i < v->e.ncolumns; i++) {
        bool list = crn_kind_is_list(v->e.kind[i]);
        v->value[i] = (cairn_trace_value){.kind = crn_kind_name(v->e.kind[i]),
                                          .value = v->e.value[i],
                                          .step = v->step[i],
                                          .list = list ? v->e.list[i].at : NULL,
                                          .nlist = list ? v->e.list[i].n : 0,
                                          .drawn = v->e.hist[i] != NULL};
    }
}

/* What the file was called when it was opened. */
static const char *opened_as(const visit *v)
{
    int file = crn_event_find(&v->e, CRN_KIND_FILE, 0), fd = crn_event_find(&v->e, CRN_KIND_FD, 0);
    const names *n = file >= 0 ? &v->file_name : &v->fd_name;
    int at = file >= 0 ? file : fd;
    return at >= 0 && (uint64_t)v->e.value[at] < n->n ? n->at[v->e.value[at]] : NULL;
}

/* In order a file that is opened has its numbers; otherwise the pattern must do. */
static const char *file_of(visit *v)
{
    uint32_t name = crn_bind_file(&v->bind, &v->e);
    int first = v->e.call->ncolumns, n = v->e.ncolumns - first;
    const char *opened = v->walks && !v->e.place->name ? opened_as(v) : NULL;
    if (opened || name == 0 || name >= v->t->nstrings)
        return opened;
    if (v->ordered && name == v->e.place->name &&
        crn_pattern_join(v->t->string[name], v->e.value + first, n, v->name, sizeof v->name))
        return v->name;
    return v->t->string[name];
}

/* A number that the event gives to a file stands for its name from now on. */
static cairn_status keep_name(visit *v)
{
    int file = crn_event_find(&v->e, CRN_KIND_FILE_NEW, 0);
    int at = file >= 0 ? file : crn_event_find(&v->e, CRN_KIND_FD_NEW, 0);
    names *n = file >= 0 ? &v->file_name : &v->fd_name;
    const char *name = at < 0 ? NULL : file_of(v);
    char *copy = NULL;
    if (at < 0 || v->e.value[at] < 0 || v->e.value[at] >= NUMBERS_MAX)
        return CAIRN_OK;
    const size_t number = (size_t)v->e.value[at];
    while (n->n <= number)
        CRN_TRY(crn_vec_push(n, NULL));
    if (name)
        CRN_TRY(crn_strdup(name, &copy));
    free(n->at[number]);
    n->at[number] = copy;
    return CAIRN_OK;
}

static void set_times(const visit *v, cairn_trace_event *event)
{
    const crn_timing *time = v->lane->took ? &v->lane->took[v->e.symbol] : NULL;
    const crn_gap *gap;
    if (time && time->all.nbins > 0) {
        const crn_hist *took = crn_timing_of(time, v->rank);
        event->seconds = crn_hist_mean(took) * 1e-9;
        event->seconds_min = (double)time->all.bin[0].min * 1e-9;
        event->seconds_max = (double)took->bin[took->nbins - 1].max * 1e-9;
    }
    if (v->ordered && (gap = crn_lane_gap(v->lane, v->e.from, v->e.symbol)))
        event->gap = crn_hist_mean(crn_timing_of(&gap->time, v->rank)) * 1e-9;
}

static cairn_status give(visit *v, uint64_t n)
{
    const crn_traced_event *e = &v->e;
    bool expected = false;
    cairn_trace_event event = {.struct_bytes = sizeof event,
                               .rank = v->rank,
                               .thread = v->thread,
                               .place = e->symbol,
                               .site = e->place->site,
                               .call = e->call->name,
                               .layer = crn_layer_name(e->call->layer),
                               .repeat = n,
                               .nvalues = (size_t)e->ncolumns,
                               .value = v->value};
    if (v->stop)
        return CAIRN_OK;
    if (e->place->within != CRN_CALL_NONE)
        event.within = crn_call_row(e->place->within)->name;
    CRN_TRY(crn_meaning_of(&v->meaning, &v->bind, e, &e->comm, v->step));
    event.nbytes = v->meaning.nbytes;
    event.nbytes_step = v->meaning.nbytes_step;
    event.nmessages = v->meaning.nmessages;
    event.message = v->meaning.many.n > 0 ? v->meaning.many.at : v->meaning.few;
    event.file = file_of(v);
    for (int i = 0; i < e->ncolumns; i++)
        expected |= e->hist[i] != NULL;
    set_values(v);
    set_times(v, &event);
    const crn_view view = {.e = e,
                           .event = &event,
                           .step = v->step,
                           .lane = v->lane,
                           .expected = expected,
                           .file = crn_bind_file(&v->bind, e),
                           .bind = &v->bind};
    v->stop = v->fn(v->arg, &view);
    return CAIRN_OK;
}

/* ---- without order ---- */

/* Columns that can change by a step within one run without changing what the events are. */
static bool is_plain_number(unsigned kind)
{
    switch (kind) {
    case CRN_KIND_INT:
    case CRN_KIND_COUNT:
    case CRN_KIND_TAG:
    case CRN_KIND_TOTAL:
    case CRN_KIND_BYTES:
    case CRN_KIND_OFFSET:
    case CRN_KIND_INDEX:
    case CRN_KIND_NUMBER:
        return true;
    default:
        return false;
    }
}

static cairn_status read_list(visit *v, const crn_runs *r, int column, int64_t index)
{
    const crn_group *g = r->group[column];
    crn_seq_iter it;
    int64_t x;
    size_t n = 0;
    v->e.list[column] = (crn_list){NULL, 0};
    if ((uint64_t)index >= g->nlists)
        return CAIRN_OK;
    uint64_t count = crn_seq_count(&g->list[index]);
    CRN_TRY(crn_vec_grow((void **)&v->list[column].at, &v->list[column].cap, 0, count,
                         sizeof *v->list[column].at));
    crn_seq_iter_init(&it, &g->list[index]);
    while (n < count && crn_seq_next(&it, &x))
        v->list[column].at[n++] = (int64_t)((uint64_t)x + (uint64_t)r->base[column]);
    v->e.list[column] = (crn_list){v->list[column].at, n};
    return CAIRN_OK;
}

/* The i-th event of a run, as far as it does not depend on the communicator. */
static cairn_status take(visit *v, const crn_runs *r, const crn_site_run *run, uint64_t i)
{
    crn_traced_event *e = &v->e;
    e->ncolumns = run->ncolumns;
    for (int k = 0; k < run->ncolumns; k++) {
        const crn_group *g = r->group[k];
        int64_t x = (int64_t)((uint64_t)run->value[k] + i * (uint64_t)run->stride[k]);
        e->kind[k] = (uint8_t)crn_symbol_kind(e->place, (size_t)k + 1);
        e->hist[k] = NULL;
        e->list[k] = (crn_list){NULL, 0};
        e->value[k] = x;
        v->step[k] = run->stride[k];
        if (g->nhists > 0) {
            e->hist[k] = &g->hist[(uint64_t)x < g->nhists ? x : 0];
            e->value[k] = (int64_t)llround(crn_hist_mean(e->hist[k]));
            v->step[k] = 0;
        } else if (crn_kind_is_list(e->kind[k])) {
            CRN_TRY(read_list(v, r, k, x));
            v->step[k] = 0;
        }
    }
    return CAIRN_OK;
}

static void set_peers(visit *v, const int64_t *raw)
{
    for (int k = 0; k < v->e.ncolumns; k++)
        if (v->e.kind[k] == CRN_KIND_PEER)
            v->e.value[k] = crn_peer_rank(&v->e.place->column[k + 1], raw[k], &v->e.comm);
}

static bool is_size(unsigned kind)
{
    return kind == CRN_KIND_COUNT || kind == CRN_KIND_TOTAL || kind == CRN_KIND_BYTES ||
           kind == CRN_KIND_MOVED;
}

/*
 * Sizes that are known by distribution: some events have the whole number below the mean, the
 * others the one above, so that they add up to what was recorded. What is lost to rounding goes
 * over to the next events of the place.
 */
static cairn_status give_sizes(visit *v, uint64_t n)
{
    crn_traced_event *e = &v->e;
    int64_t below[CRN_COLUMNS];
    uint64_t more[CRN_COLUMNS], end; /* events that have the number above */
    for (int k = 0; k < e->ncolumns; k++) {
        if (!e->hist[k] || !is_size(e->kind[k]))
            continue;
        double mean = crn_hist_mean(e->hist[k]);
        below[k] = llround(floor(mean));
        v->owed[k] += (mean - floor(mean)) * (double)n;
        more[k] = (uint64_t)CRN_MIN(CRN_MAX(llround(v->owed[k]), 0), (long long)n);
        v->owed[k] -= (double)more[k];
    }
    for (uint64_t at = 0; at < n; at = end) {
        end = n;
        for (int k = 0; k < e->ncolumns; k++) {
            if (!e->hist[k] || !is_size(e->kind[k]))
                continue;
            e->value[k] = (int64_t)((uint64_t)below[k] + (at < more[k]));
            end = at < more[k] ? CRN_MIN(end, more[k]) : end;
        }
        CRN_TRY(give(v, end - at));
    }
    return CAIRN_OK;
}

/* A peer that is known by distribution: the events are shared out over its bins. */
static cairn_status give_drawn(visit *v, uint64_t n, int peer)
{
    const crn_hist *h = v->e.hist[peer];
    uint64_t all = crn_hist_count(h), sum = 0, given = 0;
    int64_t raw[CRN_COLUMNS];
    memcpy(raw, v->e.value, sizeof raw);
    for (int32_t i = 0; i < h->nbins; i++) {
        sum += h->bin[i].n;
        uint64_t upto = (uint64_t)((double)n * ((double)sum / (double)all) + 0.5);
        raw[peer] = (int64_t)llround(h->bin[i].mean);
        set_peers(v, raw);
        if (upto > given)
            CRN_TRY(give_sizes(v, upto - given));
        given = CRN_MAX(given, upto);
    }
    return CAIRN_OK;
}

static int drawn_peer(const crn_traced_event *e)
{
    for (int k = 0; k < e->ncolumns; k++)
        if (e->kind[k] == CRN_KIND_PEER && e->hist[k])
            return k;
    return -1;
}

static cairn_status give_run(visit *v, uint64_t n)
{
    int64_t raw[CRN_COLUMNS];
    v->e.comm = crn_bind_comm(&v->bind, &v->e);
    int peer = drawn_peer(&v->e);
    if (peer >= 0)
        return give_drawn(v, n, peer);
    memcpy(raw, v->e.value, sizeof raw);
    set_peers(v, raw);
    return give_sizes(v, n);
}

typedef cairn_status run_fn(visit *v, uint64_t n);

/* All runs of a place; those whose events differ in kind are taken one by one. */
static cairn_status each_run(visit *v, uint32_t symbol, uint64_t n, run_fn *fn)
{
    crn_runs r;
    crn_site_run run;
    v->e.symbol = symbol;
    v->e.place = &v->lane->symbol[symbol];
    v->e.call = crn_call_row(v->e.place->call);
    memset(v->owed, 0, sizeof v->owed);
    if (!crn_runs_init(&r, v->e.place, v->rank, n))
        return CAIRN_OK;
    while (!v->stop && crn_runs_next(&r, &run)) {
        bool one_by_one = false;
        for (int k = 0; k < run.ncolumns; k++)
            one_by_one |= run.stride[k] != 0 &&
                          (r.group[k]->nhists > 0 ||
                           !is_plain_number(crn_symbol_kind(v->e.place, (size_t)k + 1)));
        uint64_t calls = one_by_one ? run.n : 1;
        for (uint64_t i = 0; i < calls && !v->stop; i++) {
            CRN_TRY(take(v, &r, &run, i));
            if (one_by_one)
                memset(v->step, 0, sizeof v->step);
            CRN_TRY(fn(v, run.n / calls));
        }
    }
    return CAIRN_OK;
}

static cairn_status learn_run(visit *v, uint64_t n)
{
    int64_t raw[CRN_COLUMNS];
    (void)n;
    v->e.comm = crn_bind_comm(&v->bind, &v->e);
    memcpy(raw, v->e.value, sizeof raw);
    set_peers(v, raw);
    return crn_bind_learn(&v->bind, &v->e);
}

static bool makes_handles(const crn_symbol *s)
{
    const crn_call *call = crn_call_row(s->call);
    for (int i = 0; i < call->ncolumns; i++)
        if (call->kind[i] == CRN_KIND_COMM_NEW || call->kind[i] == CRN_KIND_FILE_NEW ||
            call->kind[i] == CRN_KIND_FD_NEW)
            return true;
    return crn_call_has(s->call, CRN_TRAIT_PREPARES);
}

static cairn_status each_place(visit *v, bool makers_only, run_fn *fn)
{
    uint64_t *count;
    cairn_status rc;
    CRN_TRY(crn_alloc(&count, v->lane->nsymbols));
    CRN_TRY_OUT(rc, crn_lane_counts(v->t, v->thread, v->rank, count));
    for (size_t i = 0; i < v->lane->nsymbols && !v->stop; i++) {
        const crn_symbol *s = &v->lane->symbol[i];
        if (s->call != CRN_CALL_NONE && count[i] > 0 && (!makers_only || makes_handles(s)))
            CRN_TRY_OUT(rc, each_run(v, (uint32_t)i, count[i], fn));
    }
out:
    free(count);
    return rc;
}

/* ---- in order ---- */

static cairn_status walk_lane(visit *v)
{
    crn_walk *w;
    cairn_status rc = CAIRN_OK;
    CRN_TRY(crn_walk_open(v->t, v->thread, v->rank, 0, &w));
    memset(v->step, 0, sizeof v->step);
    while (rc == CAIRN_OK && !v->stop && crn_walk_next(w, &v->e)) {
        rc = give(v, 1);
        if (rc == CAIRN_OK && v->walks)
            rc = keep_name(v);
        if (rc == CAIRN_OK)
            rc = crn_bind_learn(&v->bind, &v->e);
    }
    crn_walk_close(w);
    return rc;
}

/* ---- a rank ---- */

static bool on_lane(visit *v, size_t lane)
{
    uint64_t index;
    v->lane = &v->t->lane[lane];
    v->thread = (uint32_t)lane;
    return crn_seq_find(&v->lane->ranks, v->rank, &index);
}

/* Handles belong to the process: events of all threads define them. Twice, for copies of files. */
static cairn_status learn_all(visit *v)
{
    for (int round = 0; round < 2 && !v->bind.conflict; round++)
        for (size_t l = 0; l < v->t->nlanes; l++)
            if (on_lane(v, l))
                CRN_TRY(each_place(v, true, learn_run));
    return CAIRN_OK;
}

typedef enum order { ANY_ORDER, IN_ORDER, IN_ORDER_NAMED } order;

static cairn_status visit_rank(const crn_trace *t, uint32_t rank, order how, crn_view_fn *fn,
                               void *arg)
{
    const bool ordered = how != ANY_ORDER;
    visit *v;
    cairn_status rc;
    CRN_TRY(crn_alloc(&v, 1));
    v->t = t;
    v->rank = rank;
    v->walks = how == IN_ORDER_NAMED;
    v->fn = fn;
    v->arg = arg;
    CRN_TRY_OUT(rc, crn_bind_init(&v->bind, t, rank));
    if (!ordered)
        CRN_TRY_OUT(rc, learn_all(v));
    v->ordered = ordered || v->bind.conflict;
    for (size_t l = 0; l < t->nlanes && !v->stop; l++)
        if (on_lane(v, l))
            CRN_TRY_OUT(rc, v->ordered ? walk_lane(v) : each_place(v, false, give_run));
    rc = v->stop ? CAIRN_NOTHING : CAIRN_OK;
out:
    visit_done(v);
    free(v);
    return rc;
}

cairn_status crn_visit_rank(const crn_trace *t, uint32_t rank, crn_view_fn *fn, void *arg)
{
    return visit_rank(t, rank, ANY_ORDER, fn, arg);
}

cairn_status crn_walk_rank(const crn_trace *t, uint32_t rank, crn_view_fn *fn, void *arg)
{
    return visit_rank(t, rank, IN_ORDER, fn, arg);
}

cairn_status crn_walk_named(const crn_trace *t, uint32_t rank, crn_view_fn *fn, void *arg)
{
    return visit_rank(t, rank, IN_ORDER_NAMED, fn, arg);
}

/* ---- the public line ---- */

typedef struct outside {
    cairn_trace *trace;
    cairn_trace_event_fn *fn;
    void *arg;
} outside;

static int give_outside(void *arg, const crn_view *v)
{
    const outside *o = arg;
    return crn_limit_holds(o->trace, v) ? o->fn(o->arg, v->event) : 0;
}

int cairn_trace_visit(cairn_trace *trace, uint32_t rank, cairn_trace_event_fn *fn, void *arg)
{
    outside o = {trace, fn, arg};
    CRN_FAIL_IF(rank >= trace->t->nranks, CAIRN_EINVAL, "'%s' has ranks 0 to %u, not %u",
                trace->path, trace->t->nranks - 1, rank);
    if (!crn_limit_rank(trace, rank))
        return CAIRN_OK;
    return crn_visit_rank(trace->t, rank, give_outside, &o);
}

int cairn_trace_walk(cairn_trace *trace, uint32_t rank, uint32_t thread, cairn_trace_event_fn *fn,
                     void *arg)
{
    outside o = {trace, fn, arg};
    visit *v;
    cairn_status rc;
    CRN_FAIL_IF(rank >= trace->t->nranks, CAIRN_EINVAL, "'%s' has ranks 0 to %u, not %u",
                trace->path, trace->t->nranks - 1, rank);
    if (thread >= trace->t->nlanes)
        return CAIRN_NOTHING;
    CRN_TRY(crn_alloc(&v, 1));
    v->t = trace->t;
    v->rank = rank;
    v->ordered = v->walks = true;
    v->fn = give_outside;
    v->arg = &o;
    rc = crn_bind_init(&v->bind, trace->t, rank);
    if (rc == CAIRN_OK)
        rc = on_lane(v, thread) ? walk_lane(v) : CAIRN_NOTHING;
    if (rc == CAIRN_OK && v->stop)
        rc = CAIRN_NOTHING;
    visit_done(v);
    free(v);
    return rc;
}
