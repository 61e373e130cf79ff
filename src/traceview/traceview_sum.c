/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sums of events by any of their properties: a table of rows, hashed by key, filled from runs.
 * Times are known for each place over all ranks together, so a rank's share is an estimate.
 */
#include "traceview/traceview.h"

#include <math.h>

enum { PATTERN_EVENTS = 1 << 20 }; /* of a rank */

/* Strings are those of the trace and of the table of calls: one address for one text. */
typedef struct key {
    const char *layer, *call, *within, *file;
    uint32_t site, rank;
    int64_t peer;
    uint64_t size;
} key;

typedef struct entry {
    key k;
    cairn_trace_row row;
    double shortest; /* seconds; HUGE_VAL before the first */
} entry;

typedef struct table {
    cairn_trace *trace;
    const crn_trace *t;
    unsigned by;
    CRN_VEC(entry) entry;
    uint32_t *slot; /* index + 1, or 0 */
    size_t nslots;
    cairn_status rc;
} table;

static uint64_t key_hash(const key *k)
{
    uint64_t h = crn_hash_mix((uintptr_t)k->layer, (uintptr_t)k->call);
    h = crn_hash_mix(crn_hash_mix(h, (uintptr_t)k->within), (uintptr_t)k->file);
    h = crn_hash_mix(crn_hash_mix(h, (uint64_t)k->site << 32 | k->rank), (uint64_t)k->peer);
    return crn_hash_mix(h, k->size) ^ h >> 32;
}

static bool same_key(const key *a, const key *b)
{
    return a->layer == b->layer && a->call == b->call && a->within == b->within &&
           a->file == b->file && a->site == b->site && a->rank == b->rank && a->peer == b->peer &&
           a->size == b->size;
}

static uint32_t *slot_of(const table *t, const key *k)
{
    size_t i = key_hash(k) & (t->nslots - 1);
    while (t->slot[i] && !same_key(&t->entry.at[t->slot[i] - 1].k, k))
        i = (i + 1) & (t->nslots - 1);
    return &t->slot[i];
}

static cairn_status grow(table *t)
{
    if ((t->entry.n + 1) * 2 < t->nslots)
        return CAIRN_OK;
    size_t n = CRN_MAX(2 * t->nslots, 256);
    uint32_t *slot;
    CRN_TRY(crn_alloc(&slot, n));
    free(t->slot);
    t->slot = slot;
    t->nslots = n;
    for (uint32_t i = 0; i < t->entry.n; i++)
        *slot_of(t, &t->entry.at[i].k) = i + 1;
    return CAIRN_OK;
}

static cairn_status find(table *t, const key *k, entry **ret)
{
    CRN_TRY(grow(t));
    uint32_t *slot = slot_of(t, k);
    if (!*slot) {
        cairn_trace_row row = {.struct_bytes = sizeof row,
                               .layer = k->layer,
                               .call = k->call,
                               .within = k->within,
                               .file = k->file,
                               .site = k->site,
                               .rank = k->rank,
                               .peer = k->peer,
                               .size = k->size};
        CRN_TRY(crn_vec_push(&t->entry, (entry){*k, row, HUGE_VAL}));
        *slot = (uint32_t)t->entry.n;
    }
    *ret = &t->entry.at[*slot - 1];
    return CAIRN_OK;
}

/* The pattern, of which there is one text even where the name itself is known. */
static const char *pattern_of(const table *t, const crn_view *v)
{
    const char *file = crn_trace_file(t->trace, v->file);
    return file ? file : v->event->file;
}

static key key_of(const table *t, const crn_view *v)
{
    const cairn_trace_event *e = v->event;
    return (key){.layer = t->by & CAIRN_TRACE_BY_LAYER ? e->layer : NULL,
                 .call = t->by & CAIRN_TRACE_BY_CALL ? e->call : NULL,
                 .within = t->by & CAIRN_TRACE_BY_CALL ? e->within : NULL,
                 .file = t->by & CAIRN_TRACE_BY_FILE ? pattern_of(t, v) : NULL,
                 .site = t->by & CAIRN_TRACE_BY_SITE ? e->site : 0,
                 .rank = t->by & CAIRN_TRACE_BY_RANK ? e->rank : 0};
}

/* The times of the ranks that took least, or longest, on average. */
static const crn_hist *extreme(const crn_timing *t, bool longest)
{
    const crn_hist *best = t->nclasses > 0 ? &t->class[0].hist : &t->all;
    for (size_t i = 1; i < t->nclasses; i++) {
        const double apart = crn_hist_mean(&t->class[i].hist) - crn_hist_mean(best);
        if (longest ? apart > 0 : apart < 0)
            best = &t->class[i].hist;
    }
    return best;
}

static void add_times(entry *at, const crn_view *v, uint64_t n)
{
    const cairn_trace_event *e = v->event;
    const crn_timing *took = v->lane->took ? &v->lane->took[v->e->symbol] : NULL;
    if (!took || took->all.nbins == 0)
        return;
    at->row.seconds += (double)n * e->seconds;
    at->row.waited += (double)n * (e->seconds - e->seconds_min);
    if (e->seconds_min < at->shortest) {
        at->shortest = e->seconds_min;
        at->row.shortest_rank = (uint32_t)extreme(took, false)->min_rank;
    }
    if (e->seconds_max >= at->row.seconds_max) {
        at->row.seconds_max = e->seconds_max;
        at->row.longest_rank = (uint32_t)extreme(took, true)->max_rank;
    }
}

/* n events from nbytes on, each step more than the one before. */
static cairn_status add(table *t, const key *k, const crn_view *v, uint64_t n, uint64_t nbytes,
                        int64_t step)
{
    entry *at;
    CRN_TRY(find(t, k, &at));
    at->row.nevents += n;
    at->row.nbytes +=
        n * nbytes + (uint64_t)step * (n % 2 == 0 ? n / 2 * (n - 1) : (n - 1) / 2 * n);
    at->row.expected |= v->expected;
    at->row.unmodelled =
        t->by & CAIRN_TRACE_BY_CALL && crn_call_has(v->e->place->call, CRN_TRAIT_UNMODELLED);
    add_times(at, v, n);
    return CAIRN_OK;
}

static uint64_t power_below(uint64_t v)
{
    uint64_t p = 1;
    while (p <= v / 2)
        p *= 2;
    return v > 0 ? p : 0;
}

/* A run whose sizes change by a step is cut where they pass a power of two. */
static cairn_status add_by_size(table *t, key k, const crn_view *v)
{
    uint64_t left = v->event->repeat, nbytes = v->event->nbytes;
    int64_t step = v->event->nbytes_step;
    while (left > 0) {
        uint64_t n = left;
        k.size = power_below(nbytes);
        if (step > 0)
            n = ((k.size ? 2 * k.size : 1) - nbytes + (uint64_t)step - 1) / (uint64_t)step;
        else if (step < 0)
            n = (nbytes - k.size) / (uint64_t)-step + 1;
        n = CRN_MAX(CRN_MIN(n, left), 1);
        CRN_TRY(add(t, &k, v, n, nbytes, step));
        nbytes += n * (uint64_t)step;
        left -= n;
    }
    return CAIRN_OK;
}

static cairn_status add_by_peer(table *t, key k, const crn_view *v)
{
    for (size_t i = 0; i < v->event->nmessages; i++) {
        const cairn_trace_message *m = &v->event->message[i];
        if (!m->sent || m->peer < 0)
            continue;
        k.peer = m->peer;
        k.size = t->by & CAIRN_TRACE_BY_SIZE ? power_below(m->nbytes) : 0;
        CRN_TRY(add(t, &k, v, v->event->repeat, m->nbytes, m->nbytes_step));
    }
    return CAIRN_OK;
}

/* Was it made by the Cairn library, at work for the program? */
static bool is_own(const crn_trace *t, uint32_t site)
{
    static const char library[] = "libcairn.so";
    const char *module = site < t->nsites ? t->string[t->site[site].module] : "";
    const char *slash = strrchr(module, '/');
    return strncmp(slash ? slash + 1 : module, library, sizeof library - 1) == 0;
}

static int on_view(void *arg, const crn_view *v)
{
    table *t = arg;
    key k = key_of(t, v);
    if (!(t->by & CAIRN_TRACE_OWN) && is_own(t->t, v->e->place->site))
        return 0;
    if (!crn_limit_holds(t->trace, v))
        return 0;
    if (t->by & CAIRN_TRACE_BY_FILE && !v->event->file)
        return 0;
    if (t->by & CAIRN_TRACE_BY_PEER)
        t->rc = add_by_peer(t, k, v);
    else if (t->by & CAIRN_TRACE_BY_SIZE)
        t->rc = add_by_size(t, k, v);
    else
        t->rc = add(t, &k, v, v->event->repeat, v->event->nbytes, v->event->nbytes_step);
    return t->rc < 0;
}

/* ---- accesses to files, in order ---- */

typedef struct accesses {
    table *t;
    crn_positions positions;
    uint64_t left; /* events that may still be looked at */
} accesses;

static int on_access(void *arg, const crn_view *v)
{
    accesses *a = arg;
    const crn_step step = crn_positions_next(&a->positions, a->t->t, v);
    const key k = key_of(a->t, v);
    entry *at;
    if (step == CRN_STEP_NONE || !crn_limit_holds(a->t->trace, v) || !v->event->file ||
        slot_of(a->t, &k)[0] == 0)
        return --a->left == 0;
    at = &a->t->entry.at[*slot_of(a->t, &k) - 1];
    at->row.nsteps++;
    at->row.nconsecutive += step == CRN_STEP_CONSECUTIVE;
    at->row.nstrided += step == CRN_STEP_STRIDED;
    return --a->left == 0;
}

static bool has_files(const crn_trace *t)
{
    for (size_t l = 0; l < t->nlanes; l++)
        for (size_t i = 0; i < t->lane[l].nsymbols; i++)
            if (crn_call_has(t->lane[l].symbol[i].call, CRN_TRAIT_READS | CRN_TRAIT_WRITES))
                return true;
    return false;
}

/* Only an order shows where an access goes on; of very long runs their beginning shows it. */
static cairn_status add_patterns(table *t)
{
    cairn_status rc = CAIRN_OK;
    for (uint32_t r = 0; r < t->t->nranks && rc >= 0 && t->nslots > 0 && has_files(t->t); r++) {
        if (!crn_limit_rank(t->trace, r))
            continue;
        accesses a = {.t = t, .left = PATTERN_EVENTS};
        rc = crn_walk_rank(t->t, r, on_access, &a);
        crn_positions_done(&a.positions);
    }
    return rc < 0 ? rc : CAIRN_OK;
}

static int compare_text(const char *a, const char *b)
{
    return a == b ? 0 : strcmp(a ? a : "", b ? b : "");
}

static int by_key(const void *left, const void *right)
{
    const key *a = &((const entry *)left)->k, *b = &((const entry *)right)->k;
    int d = (a->rank > b->rank) - (a->rank < b->rank);
    d = d ? d : (a->peer > b->peer) - (a->peer < b->peer);
    d = d ? d : compare_text(a->file, b->file);
    d = d ? d : compare_text(a->layer, b->layer);
    d = d ? d : compare_text(a->call, b->call);
    d = d ? d : compare_text(a->within, b->within);
    d = d ? d : (a->site > b->site) - (a->site < b->site);
    return d ? d : (a->size > b->size) - (a->size < b->size);
}

int cairn_trace_sum(cairn_trace *trace, unsigned by, cairn_trace_row_fn *fn, void *arg)
{
    table t = {.trace = trace, .t = trace->t, .by = by};
    const char *program = strrchr(trace->t->string[trace->t->program], '/');
    program = program ? program + 1 : trace->t->string[trace->t->program];
    if (strcmp(program, "cairn") == 0) /* a replay, whose calls are the program's */
        t.by |= CAIRN_TRACE_OWN;
    cairn_status rc = CAIRN_OK;
    for (uint32_t r = 0; r < trace->t->nranks && rc == CAIRN_OK; r++) {
        if (!crn_limit_rank(trace, r))
            continue;
        rc = crn_visit_rank(trace->t, r, on_view, &t);
        rc = t.rc < 0 ? t.rc : rc;
    }
    if (rc == CAIRN_OK && by & CAIRN_TRACE_BY_FILE && !(by & CAIRN_TRACE_BY_SIZE))
        rc = add_patterns(&t);
    if (rc == CAIRN_OK && t.entry.n > 0)
        qsort(t.entry.at, t.entry.n, sizeof *t.entry.at, by_key);
    for (size_t i = 0; i < t.entry.n && rc == CAIRN_OK; i++)
        rc = fn(arg, &t.entry.at[i].row) ? CAIRN_NOTHING : CAIRN_OK;
    crn_vec_done(&t.entry);
    free(t.slot);
    return rc;
}

/* Ranks of a lane that are looked at and come to a symbol. */
static uint64_t count_ranks(const cairn_trace *trace, const crn_lane *l, uint32_t symbol)
{
    crn_seq_iter it;
    int64_t rank, base;
    uint64_t n = 0;
    crn_seq_iter_init(&it, &l->ranks);
    while (l->ranks.n > 0 && crn_seq_next(&it, &rank))
        n += crn_limit_rank(trace, (uint32_t)rank) &&
             crn_column_group(l->symbol[symbol].column, (uint32_t)rank, &base);
    return n;
}

/* How many ranks' times a histogram of a gap holds. */
static uint64_t ranks_of(const crn_gap *g, const crn_hist *h, uint64_t nranks)
{
    for (size_t i = 0; i < g->time.nclasses; i++)
        if (h == &g->time.class[i].hist)
            return CRN_MAX(g->time.class[i].nranks, 1);
    return CRN_MAX(nranks, 1);
}

/* The times of the ranks that are looked at, those of a class being alike. */
static crn_hist hist_of(const cairn_trace *trace, const crn_lane *l, const crn_gap *g)
{
    const cairn_trace all = {.t = trace->t};
    crn_hist h = {0};
    crn_seq_iter it;
    int64_t rank, base;
    if (!crn_limit_names_ranks(trace))
        return g->time.all;
    const uint64_t nranks = count_ranks(&all, l, g->to);
    crn_seq_iter_init(&it, &l->ranks);
    while (l->ranks.n > 0 && crn_seq_next(&it, &rank)) {
        if (!crn_limit_rank(trace, (uint32_t)rank) ||
            !crn_column_group(l->symbol[g->to].column, (uint32_t)rank, &base))
            continue;
        crn_hist share = *crn_timing_of(&g->time, (uint32_t)rank);
        crn_hist_share(&share, ranks_of(g, crn_timing_of(&g->time, (uint32_t)rank), nranks));
        crn_hist_merge(&h, &share);
    }
    return h;
}

static cairn_trace_gap gap_of(const crn_lane *l, uint32_t thread, const crn_gap *g,
                              const crn_hist *h)
{
    const crn_symbol *from = g->from == CRN_NO_SYMBOL ? NULL : &l->symbol[g->from];
    const crn_symbol *to = &l->symbol[g->to];
    return (cairn_trace_gap){.struct_bytes = sizeof(cairn_trace_gap),
                             .thread = thread,
                             .from = from ? crn_call_row(from->call)->name : NULL,
                             .to = crn_call_row(to->call)->name,
                             .from_site = from ? from->site : 0,
                             .to_site = to->site,
                             .n = crn_hist_count(h),
                             .seconds = crn_hist_mean(h) * 1e-9,
                             .seconds_min = (double)h->bin[0].min * 1e-9,
                             .seconds_max = (double)h->bin[h->nbins - 1].max * 1e-9,
                             .deviation = sqrt(crn_hist_variance(h)) * 1e-9,
                             .shortest_rank = (uint32_t)h->min_rank,
                             .longest_rank = (uint32_t)h->max_rank};
}

/* Between a call and what was made within one, no program computes. */
static bool is_computing(const crn_lane *l, const crn_gap *g)
{
    return g->time.all.nbins > 0 &&
           (g->from == CRN_NO_SYMBOL || l->symbol[g->from].within == CRN_CALL_NONE);
}

int cairn_trace_gaps(cairn_trace *trace, cairn_trace_gap_fn *fn, void *arg)
{
    CRN_TRY(crn_limit_symbols(trace));
    for (size_t i = 0; i < trace->t->nlanes; i++) {
        const crn_lane *l = &trace->t->lane[i];
        for (size_t k = 0; k < l->ngaps; k++) {
            if (!is_computing(l, &l->gap[k]) || !crn_limit_symbol(trace, i, l->gap[k].to))
                continue;
            const crn_hist h = hist_of(trace, l, &l->gap[k]);
            if (h.nbins == 0)
                continue;
            cairn_trace_gap g = gap_of(l, (uint32_t)i, &l->gap[k], &h);
            if (fn(arg, &g))
                return CAIRN_NOTHING;
        }
    }
    return CAIRN_OK;
}
