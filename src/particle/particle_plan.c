/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The plan of a cycle. Every runner has a target, the same for all give or take one. It keeps what
 * its cache has (particle_home.c); what goes away, and parents that no cache has, are supplies;
 * runners below their target have deficits; particle_match.c brings them together.
 *
 *        runner 0    a a a|b b     target 3: a stays, b goes away: a supply of 2
 *        runner 1    c|            target 3: a deficit of 2, filled by b: one load
 *
 * Where choices are free (who has one task more, how much of a parent goes away) a few are tried,
 * until the loads meet the lower bound. docs/design/particle.md has the proof of the bounds.
 */
#include <assert.h>
#include <string.h>

#include "particle/particle_home.h"

typedef struct planner {
    const crn_cycle *c;
    uint64_t ntasks;  /* M */
    uint32_t level;   /* tasks that every runner has in the end, those of the busiest apart */
    uint32_t nextra;  /* so many runners have one more */
    uint32_t *target; /* of a runner */
    crn_homes homes;
    uint32_t bound;
} planner;

static uint32_t busy(const planner *p, size_t runner)
{
    return p->c->busy ? p->c->busy[runner] : 0;
}

static uint64_t tasks_up_to(const planner *p, uint64_t level)
{
    uint64_t sum = 0;
    for (size_t r = 0; r < p->c->nrunners; r++)
        sum += level > busy(p, r) ? level - busy(p, r) : 0;
    return sum;
}

/* The highest level that the tasks reach on all runners, as water finds its level. */
static void find_level(planner *p)
{
    uint64_t lo = 0, hi = p->ntasks + 1;
    for (size_t r = 0; r < p->c->nrunners; r++)
        hi = CRN_MAX(hi, p->ntasks + 1 + busy(p, r));
    while (hi - lo > 1) {
        uint64_t mid = lo + (hi - lo) / 2;
        if (tasks_up_to(p, mid) <= p->ntasks)
            lo = mid;
        else
            hi = mid;
    }
    p->level = (uint32_t)lo;
    p->nextra = (uint32_t)(p->ntasks - tasks_up_to(p, lo));
}

static uint32_t least_target(const planner *p, size_t runner)
{
    return p->level > busy(p, runner) ? p->level - busy(p, runner) : 0;
}

/* May a runner be one of those with one task more than the level? */
static bool may_have_extra(const planner *p, size_t runner)
{
    return busy(p, runner) <= p->level;
}

/* Who should have one task more: 0 whom it saves a parent, 1 who has more than enough at home,
 * 2 who has too little anyway, 3 who has just enough. */
static uint32_t extra_class(const planner *p, size_t runner)
{
    uint32_t target = least_target(p, runner);
    uint64_t at_home = crn_homes_tasks(&p->homes, runner);
    if (at_home <= target)
        return at_home < target ? 2 : 3;
    uint32_t given = crn_homes_above(&p->homes, runner, target, false);
    return crn_homes_above(&p->homes, runner, target + 1, false) < given ? 0 : 1;
}

/* An order of runners by the class of extra tasks; among equals by index, or at random. */
typedef struct turn {
    uint32_t class, order, runner;
} turn;

static int by_turn(const void *a, const void *b)
{
    const turn *x = a, *y = b;
    if (x->class != y->class)
        return x->class < y->class ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* Targets, the way-th choice: way 0 follows classes and indices, odd ways classes and chance, even
 * ways let only runners that have just enough come last. */
static cairn_status set_targets(planner *p, unsigned way)
{
    turn *t;
    size_t n = 0;
    crn_rng rng = crn_rng_of(way, 0);
    CRN_TRY(crn_alloc(&t, p->c->nrunners));
    for (uint32_t r = 0; r < p->c->nrunners; r++) {
        p->target[r] = least_target(p, r);
        if (p->nextra == 0 || !may_have_extra(p, r))
            continue;
        uint32_t class = extra_class(p, r);
        t[n++] = (turn){.class = way > 0 && way % 2 == 0 ? class == 3 : class,
                        .order = way == 0 ? r : (uint32_t)crn_rng_u64(&rng),
                        .runner = r};
    }
    qsort(t, n, sizeof *t, by_turn);
    for (size_t i = 0; i < p->nextra; i++)
        p->target[t[i].runner]++;
    free(t);
    return CAIRN_OK;
}

static cairn_status draw_up(planner *p, bool fitted, crn_drafts *d)
{
    size_t n;
    CRN_TRY(crn_homes_keep(&p->homes, p->target, fitted, d));
    for (uint32_t i = 0; i < p->c->nparents; i++)
        if (p->c->count[i] > 0 && p->homes.nhomes[i] == 0)
            CRN_TRY(crn_vec_push(&d->supply, (crn_pile){i, p->c->count[i]}));
    CRN_TRY(crn_vec_reserve(&d->batch, d->supply.n + d->deficit.n + 1));
    CRN_TRY(crn_match(d->supply.at, d->supply.n, d->deficit.at, d->deficit.n,
                      d->batch.at + d->batch.n, &n));
    d->batch.n += n;
    return CAIRN_OK;
}

/*
 * The lower bound on loads of every balanced plan. Each parent without a home is loaded by as many
 * runners as its tasks fill; a runner gives away at least the fewest parents that bring it down to
 * its target, and each is loaded elsewhere; and whoever lacks tasks loads something. Parents with
 * several homes count for nobody's surplus and for everybody's supply, which keeps the bound true.
 */
static uint32_t lower_bound(const planner *p)
{
    const crn_cycle *c = p->c;
    uint64_t supplies = 0, deficits = 0, satisfied = 0, most = 1, extra = p->nextra > 0;
    for (size_t r = 0; r < c->nrunners; r++)
        most = CRN_MAX(most, least_target(p, r) + (may_have_extra(p, r) ? extra : 0));
    for (size_t i = 0; i < c->nparents; i++)
        if (p->homes.nhomes[i] == 0)
            supplies += (c->count[i] + most - 1) / most;
    for (size_t r = 0; r < c->nrunners; r++) {
        uint64_t low = least_target(p, r), high = low + (may_have_extra(p, r) ? extra : 0);
        uint64_t sole = 0, all = 0;
        for (size_t i = p->homes.first[r]; i < p->homes.first[r + 1]; i++) {
            uint32_t parent = p->homes.pile[i].who;
            all += c->count[parent];
            sole += p->homes.nhomes[parent] == 1 ? c->count[parent] : 0;
        }
        if (sole > high)
            supplies += CRN_MAX(crn_homes_above(&p->homes, r, (uint32_t)high, true),
                                (sole - high + most - 1) / most);
        deficits += all < low;
        satisfied += may_have_extra(p, r) && (all < low || all >= high);
    }
    if (p->nextra > satisfied)
        deficits += p->nextra - satisfied;
    return (uint32_t)CRN_MAX(supplies, deficits);
}

static int by_runner(const void *a, const void *b)
{
    const crn_cycle_batch *x = a, *y = b;
    if (x->runner != y->runner)
        return x->runner < y->runner ? -1 : 1;
    if (x->load != y->load)
        return x->load ? 1 : -1;
    return (x->parent > y->parent) - (x->parent < y->parent);
}

/* Make a plan of the lists, which it takes. What was matched with a runner that has the parent, as
 * one of several homes, is no load; pieces of a parent for one runner become one. */
static crn_cycle_plan finish(const planner *p, crn_drafts *d)
{
    crn_cycle_plan plan = {.batch = d->batch.at,
                           .nsupplies = (uint32_t)d->supply.n,
                           .ndeficits = (uint32_t)d->deficit.n,
                           .bound = p->bound};
    const crn_homes *h = &p->homes;
    for (size_t i = 0; i < d->batch.n; i++) {
        crn_cycle_batch *b = &plan.batch[i];
        for (size_t k = h->first[b->runner]; b->load && k < h->first[b->runner + 1]; k++)
            b->load = h->pile[k].who != b->parent;
    }
    qsort(plan.batch, d->batch.n, sizeof *plan.batch, by_runner);
    for (size_t i = 0; i < d->batch.n; i++) {
        crn_cycle_batch b = plan.batch[i], *last = i > 0 ? &plan.batch[plan.nbatches - 1] : NULL;
        if (last && last->runner == b.runner && last->parent == b.parent) {
            last->count += b.count;
        } else {
            plan.batch[plan.nbatches++] = b;
            plan.nloads += b.load;
        }
    }
    d->batch.at = NULL;
    assert(plan.nloads == 0 || plan.nloads <= plan.nsupplies + plan.ndeficits - 1);
    assert(plan.nloads >= plan.bound);
    return plan;
}

/* The best of a few plans; at most two where nobody has an extra task. */
static cairn_status make(planner *p, crn_cycle_plan *ret)
{
    enum { WAYS = 24 };
    unsigned nways = p->nextra > 0 ? WAYS : 1;
    crn_cycle_plan best = {0};
    cairn_status rc = CAIRN_OK;
    for (unsigned way = 0; way < 2 * nways && rc == CAIRN_OK; way++) {
        crn_drafts d = {0};
        if ((rc = set_targets(p, way / 2)) == CAIRN_OK &&
            (rc = crn_homes_divide(&p->homes, p->target)) == CAIRN_OK &&
            (rc = draw_up(p, way % 2 == 0, &d)) == CAIRN_OK) {
            crn_cycle_plan plan = finish(p, &d);
            bool better = way == 0 || plan.nloads < best.nloads;
            crn_cycle_plan_done(better ? &best : &plan);
            if (better)
                best = plan;
        }
        crn_drafts_done(&d);
        if (best.nloads == p->bound)
            break;
    }
    if (rc == CAIRN_OK)
        *ret = best;
    else
        crn_cycle_plan_done(&best);
    return rc;
}

static cairn_status prepare(planner *p)
{
    const crn_cycle *c = p->c;
    for (size_t i = 0; i < c->nparents; i++)
        p->ntasks += c->count[i];
    CRN_FAIL_IF(p->ntasks > 0 && c->nrunners == 0, CAIRN_EINVAL, "no runner for %llu tasks",
                (unsigned long long)p->ntasks);
    CRN_FAIL_IF(p->ntasks > INT32_MAX, CAIRN_EINVAL, "a cycle of %llu tasks is too large",
                (unsigned long long)p->ntasks);
    CRN_TRY(crn_alloc(&p->target, c->nrunners));
    CRN_TRY(crn_homes_init(&p->homes, c));
    find_level(p);
    p->bound = lower_bound(p);
    return CAIRN_OK;
}

cairn_status crn_cycle_plan_make(const crn_cycle *c, crn_cycle_plan *ret)
{
    planner p = {.c = c};
    cairn_status rc;
    CRN_TRY_OUT(rc, prepare(&p));
    CRN_TRY_OUT(rc, make(&p, ret));
    for (size_t i = 0; i < c->nparents; i++)
        ret->nparents += c->count[i] > 0;
out:
    crn_homes_done(&p.homes);
    free(p.target);
    return rc;
}

void crn_cycle_plan_done(crn_cycle_plan *p)
{
    free(p->batch);
    *p = (crn_cycle_plan){0};
}
