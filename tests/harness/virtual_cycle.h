/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The real schedule of a particle filter under a virtual clock: runners that propagate, load, store
 * and die at set times, with caches of their own that are held against what the schedule believes.
 * Durations and weights depend on cycle and member alone, so results must not depend on anything
 * else.
 */
#ifndef CAIRN_TESTS_VIRTUAL_CYCLE_H
#define CAIRN_TESTS_VIRTUAL_CYCLE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "particle/particle.h"

/* An invariant that does not hold ends the program: benches use this file, too. */
#define vc_check(cond)                                                                             \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                             \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

typedef struct vc_options {
    uint32_t nmembers, nrunners;
    uint64_t ncycles, seed;
    crn_sched_options sched;
    crn_resampling scheme;
    double lo, hi;  /* seconds of a propagation, uniform; or, with sigma, lo is the median */
    double sigma;   /* of a lognormal duration; 0: uniform */
    double doubled; /* share of tasks that take twice as long */
    double load, store;
    double spread;  /* of log-weights: 0 to -spread */
    double crashes; /* chance that a task kills its runner half-way; it is seen detect later */
    double detect, rejoin;
    uint32_t nlate; /* runners that join at random times of the first cycle */
    bool lists;     /* compute vc_result.list */
} vc_options;

typedef struct vc_result {
    double seconds, busy; /* of all cycles but the first, in which every cache is empty; of
                             the propagations that counted in them */
    double list;          /* what list scheduling would take if loads and stores took no time */
    double tail;          /* longest wait for the last member beyond all others, in cycles with
                             a crash */
    /* Of all cycles but the first, but for crashes: */
    uint64_t nloads, nahead, nsteals, nagain, ntasks, nhits, bound, planned, ncrashes, nparents;
    uint64_t digest; /* of all states and parents: the same for any layout */
} vc_result;

enum { VC_END, VC_SAFE, VC_LOADED, VC_LEAVE, VC_JOIN, VC_DUE };

typedef struct vc_event {
    double at;
    uint64_t order; /* of making: ties are broken the same way each time */
    int kind;
    uint32_t runner, member;
    uint64_t cycle;
} vc_event;

typedef struct vc_runner {
    bool alive, loading, working;
    uint32_t number; /* in the schedule */
    crn_task task;
    crn_particle wanted; /* being loaded, */
    bool ahead;          /* as a state that the next cycle will need */
    double store_free;
    CRN_VEC(crn_particle) cache;
} vc_runner;

typedef struct vc {
    const vc_options *o;
    crn_sched *s;
    double now;
    uint64_t cycle, order;
    CRN_VEC(vc_event) heap;
    CRN_VEC(vc_runner) runner;
    uint64_t *value, *parent_value;  /* what a state is: a hash of its ancestry */
    bool *counted, *deadly, crashed; /* deadly: a member that has killed its runner, once */
    double last_end, second_end;
    double warm;    /* when the first cycle was complete */
    uint32_t nlate; /* loads ahead that came when the next cycle had begun */
    vc_result r;
} vc;

static inline void vc_push(vc *v, vc_event e)
{
    e.order = v->order++;
    vc_check(crn_vec_push(&v->heap, e) == CAIRN_OK);
    size_t i = v->heap.n - 1;
    for (; i > 0; i = (i - 1) / 2) {
        vc_event *up = &v->heap.at[(i - 1) / 2];
        if (up->at < e.at || (up->at == e.at && up->order < e.order))
            break;
        v->heap.at[i] = *up;
    }
    v->heap.at[i] = e;
}

static inline bool vc_before(const vc_event *a, const vc_event *b)
{
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static inline vc_event vc_pop(vc *v)
{
    vc_event top = v->heap.at[0], e = v->heap.at[--v->heap.n];
    size_t i = 0, n = v->heap.n;
    for (;;) {
        size_t c = 2 * i + 1;
        if (c >= n)
            break;
        if (c + 1 < n && vc_before(&v->heap.at[c + 1], &v->heap.at[c]))
            c++;
        if (vc_before(&e, &v->heap.at[c]))
            break;
        v->heap.at[i] = v->heap.at[c];
        i = c;
    }
    if (n > 0)
        v->heap.at[i] = e;
    return top;
}

static inline crn_rng vc_rng(const vc *v, uint64_t purpose, uint64_t member)
{
    return crn_rng_of(v->o->seed * 16 + purpose, v->cycle << 32 | member);
}

static inline double vc_duration(const vc *v, uint32_t member)
{
    crn_rng rng = vc_rng(v, 1, member);
    double u = crn_rng_unit(&rng), w = crn_rng_unit(&rng);
    double d =
        v->o->sigma > 0
            ? v->o->lo * exp(v->o->sigma * sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * w))
            : v->o->lo + (v->o->hi - v->o->lo) * u;
    return crn_rng_unit(&rng) < v->o->doubled ? 2 * d : d;
}

static inline double vc_weight(const vc *v, uint32_t member)
{
    crn_rng rng = crn_rng_of(v->value[member], 7);
    return -v->o->spread * crn_rng_unit(&rng);
}

static inline size_t vc_find(const vc_runner *r, crn_particle p)
{
    for (size_t i = 0; i < r->cache.n; i++)
        if (r->cache.at[i].cycle == p.cycle && r->cache.at[i].member == p.member)
            return i;
    return SIZE_MAX;
}

static inline void vc_put(vc_runner *r, crn_particle p)
{
    if (vc_find(r, p) == SIZE_MAX)
        vc_check(crn_vec_push(&r->cache, p) == CAIRN_OK);
}

static inline void vc_evict(vc *v, vc_runner *r)
{
    crn_particle p;
    while (crn_sched_evict(v->s, r->number, &p)) {
        size_t at = vc_find(r, p);
        vc_check(at != SIZE_MAX);
        if (r->working && p.cycle == v->cycle - 1 && p.member == r->task.parent)
            vc_check(v->counted[r->task.member]); /* by another runner */
        r->cache.at[at] = r->cache.at[--r->cache.n];
    }
    vc_check(r->cache.n <= v->o->sched.capacity);
}

static inline void vc_begin_task(vc *v, vc_runner *r, uint32_t index)
{
    uint32_t m = r->task.member;
    vc_check(vc_find(r, (crn_particle){v->cycle - 1, r->task.parent}) != SIZE_MAX);
    r->working = true;
    crn_rng rng = vc_rng(v, 2, m);
    double d = vc_duration(v, m);
    if (!v->deadly[m] && v->o->crashes > 0 && crn_rng_unit(&rng) < v->o->crashes) {
        v->deadly[m] = true;
        vc_push(v, (vc_event){v->now + d / 2 + v->o->detect, 0, VC_LEAVE, index, m, v->cycle});
        v->crashed = true;
    } else {
        vc_push(v, (vc_event){v->now + d, 0, VC_END, index, m, v->cycle});
    }
    vc_push(v, (vc_event){v->now + 2 * (v->o->sigma > 0 ? v->o->lo : v->o->hi), 0, VC_DUE, index, m,
                          v->cycle});
}

static inline void vc_foretell(vc *v, vc_runner *r, uint32_t index)
{
    crn_particle p;
    if (r->loading || !crn_sched_foretell(v->s, r->number, &p))
        return;
    vc_check(vc_find(r, p) == SIZE_MAX);
    r->loading = true;
    r->wanted = p;
    r->ahead = p.cycle == v->cycle;
    vc_push(v, (vc_event){v->now + v->o->load, 0, VC_LOADED, index, p.member, p.cycle});
}

static inline void vc_start(vc *v, uint32_t index)
{
    vc_runner *r = &v->runner.at[index];
    if (!r->alive || r->working || r->task.load)
        return;
    cairn_status rc = crn_sched_next(v->s, r->number, &r->task);
    vc_check(rc == CAIRN_OK || rc == CAIRN_NOTHING);
    if (rc == CAIRN_NOTHING) {
        r->task.load = false;
        vc_foretell(v, r, index);
        return;
    }
    if (!r->task.load) {
        vc_begin_task(v, r, index);
        vc_foretell(v, r, index);
    } else if (!(r->loading && r->wanted.cycle == v->cycle - 1 &&
                 r->wanted.member == r->task.parent)) {
        r->loading = true; /* at once; a prefetch of something else is given up */
        r->wanted = (crn_particle){v->cycle - 1, r->task.parent};
        r->ahead = false;
        vc_push(v,
                (vc_event){v->now + v->o->load, 0, VC_LOADED, index, r->task.parent, v->cycle - 1});
    }
}

static inline void vc_start_all(vc *v)
{
    for (uint32_t i = 0; i < v->runner.n; i++)
        vc_start(v, i);
}

static inline void vc_join(vc *v)
{
    vc_runner r = {.alive = true};
    vc_check(crn_sched_join(v->s, &r.number) == CAIRN_OK);
    vc_check(crn_vec_push(&v->runner, r) == CAIRN_OK);
}

static inline void vc_cycle(vc *v)
{
    uint32_t n = v->o->nmembers;
    uint32_t *count;
    double *w;
    vc_check(crn_alloc(&count, n) == CAIRN_OK && crn_alloc(&w, n) == CAIRN_OK);
    if (v->cycle == 0) {
        for (uint32_t i = 0; i < n; i++)
            count[i] = 1;
    } else {
        crn_weight_sum sum;
        crn_rng rng = vc_rng(v, 3, 0);
        vc_check(crn_weights(crn_sched_weights(v->s), n, w, &sum) == CAIRN_OK);
        vc_check(crn_resample(v->o->scheme, w, n, n, &rng, count) == CAIRN_OK);
    }
    memcpy(v->parent_value, v->value, n * sizeof *v->value);
    vc_check(crn_sched_begin(v->s, count) == CAIRN_OK);
    v->cycle++;
    memset(v->counted, 0, n * sizeof *v->counted);
    memset(v->deadly, 0, n * sizeof *v->deadly);
    v->crashed = false;
    for (uint32_t i = 0; i < v->runner.n; i++) {
        v->runner.at[i].working = false; /* second runs of members that are complete */
        v->runner.at[i].task.load = false;
        if (v->runner.at[i].wanted.cycle + 1 < v->cycle)
            v->runner.at[i].loading = false;
        vc_evict(v, &v->runner.at[i]);
    }
    free(count);
    free(w);
    vc_start_all(v);
}

static inline void vc_end(vc *v, const vc_event *e)
{
    vc_runner *r = &v->runner.at[e->runner];
    uint32_t m = e->member;
    if (!r->alive || e->cycle != v->cycle || !r->working || r->task.member != m)
        return;
    r->working = false;
    uint64_t id[3] = {v->parent_value[r->task.parent], v->cycle, m};
    uint64_t value = crn_hash_bytes(id, sizeof id);
    cairn_status rc = crn_sched_finished(v->s, r->number, m);
    vc_check(rc == (v->counted[m] ? CAIRN_NOTHING : CAIRN_OK) || v->o->crashes > 0);
    vc_check(!v->counted[m] || v->value[m] == value);
    if (!v->counted[m])
        v->r.busy += vc_duration(v, m);
    v->counted[m] = true;
    v->value[m] = value;
    vc_put(r, (crn_particle){v->cycle, m});
    vc_evict(v, r);
    r->store_free = CRN_MAX(r->store_free, v->now) + v->o->store;
    vc_push(v, (vc_event){r->store_free, 0, VC_SAFE, e->runner, m, v->cycle});
    v->second_end = v->last_end;
    v->last_end = v->now;
    vc_start(v, e->runner);
}

static inline void vc_leave(vc *v, const vc_event *e)
{
    vc_runner *r = &v->runner.at[e->runner];
    if (!r->alive)
        return;
    r->alive = false;
    v->r.ncrashes++;
    vc_check(crn_sched_leave(v->s, r->number) == CAIRN_OK);
    if (v->o->rejoin > 0 || v->r.ncrashes + 1 >= v->runner.n)
        vc_push(v, (vc_event){v->now + v->o->rejoin, 0, VC_JOIN, 0, 0, 0});
    vc_start_all(v);
}

static inline void vc_safe(vc *v, const vc_event *e)
{
    if (!v->runner.at[e->runner].alive || e->cycle != v->cycle)
        return;
    vc_check(crn_sched_safe(v->s, e->member) >= 0);
    vc_check(crn_sched_weight(v->s, e->member, vc_weight(v, e->member)) >= 0);
    vc_evict(v, &v->runner.at[e->runner]);
    vc_start(v, e->runner); /* its cache may have been full */
    for (uint32_t i = 0; v->o->sched.certain && i < v->runner.n; i++)
        if (v->runner.at[i].alive && !v->runner.at[i].working && !v->runner.at[i].task.load)
            vc_foretell(v, &v->runner.at[i], i);
}

static inline void vc_loaded(vc *v, const vc_event *e)
{
    vc_runner *r = &v->runner.at[e->runner];
    crn_particle p = {e->cycle, e->member};
    if (!r->alive || !r->loading || r->wanted.cycle != p.cycle || r->wanted.member != p.member)
        return;
    r->loading = false;
    vc_put(r, p);
    v->nlate += r->ahead && p.cycle != v->cycle;
    vc_check(crn_sched_loaded(v->s, r->number, p) >= 0);
    if (!r->working && r->task.load && p.cycle == v->cycle - 1 && p.member == r->task.parent) {
        r->task.load = false;
        vc_begin_task(v, r, e->runner);
    }
    vc_evict(v, r);
    vc_foretell(v, r, e->runner);
}

/* The makespan of list scheduling in the order of members: each goes to the runner that is free
 * first. */
static inline double vc_list(const vc *v)
{
    double *free_at, end = 0;
    vc_check(crn_alloc(&free_at, v->o->nrunners) == CAIRN_OK);
    for (uint32_t i = 0; i < v->o->nmembers; i++) {
        uint32_t best = 0;
        for (uint32_t k = 1; k < v->o->nrunners; k++)
            if (free_at[k] < free_at[best])
                best = k;
        free_at[best] += vc_duration(v, i);
        end = CRN_MAX(end, free_at[best]);
    }
    free(free_at);
    return end;
}

static inline void vc_sum_up(vc *v, const crn_sched_counts *c)
{
    if (v->cycle == 1) {
        v->warm = v->now;
        v->r.busy = 0;
        return;
    }
    v->r.nloads += c->nloads;
    v->r.nahead += c->nahead;
    v->r.nsteals += c->nsteals;
    v->r.nagain += c->nagain;
    v->r.ntasks += c->ntasks;
    v->r.nhits += c->nhits;
    v->r.bound += c->first.bound;
    v->r.planned += c->first.nloads;
    v->r.nparents += c->first.nparents;
    v->r.list += v->o->lists ? vc_list(v) : 0;
}

/* A complete cycle. Returns whether there is another one. */
static inline bool vc_close(vc *v)
{
    crn_sched_counts c = crn_sched_count(v->s);
    vc_sum_up(v, &c);
    v->r.digest = crn_hash_bytes(v->value, v->o->nmembers * sizeof *v->value) ^ v->r.digest * 31;
    if (v->crashed)
        v->r.tail = CRN_MAX(v->r.tail, v->last_end - v->second_end);
    if (v->o->crashes == 0 && v->o->nlate == 0 && !v->o->sched.strict)
        vc_check(c.nloads <= c.first.nloads + c.nsteals + c.nagain + v->nlate);
    if (v->o->sched.strict && v->o->crashes == 0 && v->o->nlate == 0)
        vc_check(c.nloads <= c.first.nparents + v->o->nrunners - 1 + c.nagain + v->nlate);
    v->nlate = 0;
    for (uint32_t i = 0; i < v->o->nmembers; i++)
        vc_check(v->counted[i]);
    return v->cycle < v->o->ncycles;
}

static inline void vc_handle(vc *v, const vc_event *e)
{
    switch (e->kind) {
    case VC_END:
        vc_end(v, e);
        break;
    case VC_SAFE:
        vc_safe(v, e);
        break;
    case VC_LOADED:
        vc_loaded(v, e);
        break;
    case VC_LEAVE:
        vc_leave(v, e);
        break;
    case VC_JOIN:
        vc_join(v);
        vc_start_all(v);
        break;
    case VC_DUE:
        if (e->cycle == v->cycle && crn_sched_overdue(v->s, e->member) == CAIRN_OK)
            vc_start_all(v);
        break;
    }
}

static inline vc_result vc_run(const vc_options *o)
{
    vc v = {.o = o};
    vc_check(crn_sched_create(o->nmembers, &o->sched, &v.s) == CAIRN_OK);
    vc_check(crn_alloc(&v.value, o->nmembers) == CAIRN_OK);
    vc_check(crn_alloc(&v.parent_value, o->nmembers) == CAIRN_OK);
    vc_check(crn_alloc(&v.counted, o->nmembers) == CAIRN_OK);
    vc_check(crn_alloc(&v.deadly, o->nmembers) == CAIRN_OK);
    for (uint32_t i = 0; i < o->nmembers; i++)
        v.value[i] = i;
    for (uint32_t i = 0; i < o->nrunners; i++)
        vc_join(&v);
    crn_rng rng = crn_rng_of(o->seed, 99);
    for (uint32_t i = 0; i < o->nlate; i++)
        vc_push(&v, (vc_event){crn_rng_unit(&rng) * o->hi * 4, 0, VC_JOIN, 0, 0, 0});
    vc_cycle(&v);
    for (;;) {
        vc_check(v.heap.n > 0); /* else somebody starves */
        vc_event e = vc_pop(&v);
        v.now = e.at;
        vc_handle(&v, &e);
        if (!crn_sched_complete(v.s))
            continue;
        if (!vc_close(&v))
            break;
        vc_cycle(&v);
    }
    v.r.seconds = v.now - v.warm;
    for (size_t i = 0; i < v.runner.n; i++)
        crn_vec_done(&v.runner.at[i].cache);
    crn_vec_done(&v.runner);
    crn_vec_done(&v.heap);
    free(v.value);
    free(v.parent_value);
    free(v.counted);
    free(v.deadly);
    crn_sched_free(v.s);
    return v.r;
}

#endif
