/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The schedule of a cycle: the plan, followed as list scheduling. Every runner has a queue, tasks
 * from its cache first; a runner whose queue is empty steals from the end of the longest. Joins and
 * leaves make the plan stale, and the next request plans what still waits anew. A strict schedule
 * has no plan (particle_strict.c). Caches are in particle_cache.c.
 */
#include <math.h>
#include <string.h>

#include "particle/particle_sched.h"

cairn_status crn_sched_create(uint32_t nmembers, const crn_sched_options *o, crn_sched **ret)
{
    CRN_FAIL_IF(nmembers == 0 || nmembers > INT32_MAX, CAIRN_EINVAL, "an ensemble of %u members",
                nmembers);
    CRN_FAIL_IF(o->capacity < 3, CAIRN_EINVAL,
                "a cache of %u states: it needs 3 at least, one besides the state under way and "
                "the next",
                o->capacity);
    crn_sched *s;
    CRN_TRY(crn_alloc(&s, 1));
    cairn_status rc;
    *s = (crn_sched){.o = *o, .n = nmembers, .cycle = o->cycle, .idle = true};
    CRN_TRY_OUT(rc, crn_alloc(&s->member, nmembers));
    CRN_TRY_OUT(rc, crn_alloc(&s->logw, nmembers));
    CRN_TRY_OUT(rc, crn_alloc(&s->count, nmembers));
    CRN_TRY_OUT(rc, crn_alloc(&s->left, nmembers));
    CRN_TRY_OUT(rc, crn_alloc(&s->takers, nmembers));
    CRN_TRY_OUT(rc, crn_alloc(&s->extra, nmembers));
    CRN_TRY_OUT(rc, crn_alloc(&s->untaken, nmembers));
    CRN_TRY_OUT(rc, crn_alloc(&s->first, nmembers));
    *ret = s;
    return CAIRN_OK;
out:
    crn_sched_free(s);
    return rc;
}

void crn_sched_free(crn_sched *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->runner.n; i++) {
        crn_vec_done(&s->runner.at[i].cache);
        crn_strict_done(&s->runner.at[i]);
    }
    crn_vec_done(&s->runner);
    free(s->member);
    free(s->logw);
    free(s->count);
    free(s->left);
    free(s->takers);
    free(s->extra);
    free(s->untaken);
    free(s->first);
    free(s);
}

static cairn_status find_runner(crn_sched *s, uint32_t number, crn_runner **ret)
{
    CRN_FAIL_IF(number >= s->runner.n || !s->runner.at[number].here, CAIRN_EINVAL,
                "there is no runner %u", number);
    *ret = &s->runner.at[number];
    return CAIRN_OK;
}

static cairn_status find_member(crn_sched *s, uint32_t number, crn_member **ret)
{
    CRN_FAIL_IF(number >= s->n || s->idle, CAIRN_EINVAL, "there is no member %u", number);
    *ret = &s->member[number];
    return CAIRN_OK;
}

/* Queues */

static void empty_queue(crn_sched *s, crn_runner *r)
{
    for (uint32_t i = r->first; i != CRN_NOBODY; i = s->member[i].next) {
        uint32_t *untaken = &s->untaken[s->member[i].parent];
        *untaken = CRN_MIN(*untaken, i);
        s->member[i].queued = false;
    }
    r->first = r->last = CRN_NOBODY;
    r->nqueued = 0;
}

void crn_sched_enqueue(crn_sched *s, crn_runner *r, uint32_t member)
{
    crn_member *m = &s->member[member];
    m->prev = r->last;
    m->next = CRN_NOBODY;
    if (r->last == CRN_NOBODY)
        r->first = member;
    else
        s->member[r->last].next = member;
    r->last = member;
    r->nqueued++;
    m->queued = true;
}

static uint32_t dequeue_first(crn_sched *s, crn_runner *r)
{
    uint32_t member = r->first;
    r->first = s->member[member].next;
    if (r->first == CRN_NOBODY)
        r->last = CRN_NOBODY;
    else
        s->member[r->first].prev = CRN_NOBODY;
    r->nqueued--;
    s->member[member].queued = false;
    return member;
}

void crn_sched_steal(crn_sched *s, crn_runner *from, crn_runner *to)
{
    uint32_t member = from->last;
    from->last = s->member[member].prev;
    if (from->last == CRN_NOBODY)
        from->first = CRN_NOBODY;
    else
        s->member[from->last].next = CRN_NOBODY;
    from->nqueued--;
    s->member[member].stolen = true;
    s->counts.nsteals++;
    crn_sched_enqueue(s, to, member);
}

crn_runner *crn_sched_longest(crn_sched *s, const crn_runner *thief, uint32_t least)
{
    crn_runner *best = NULL;
    bool best_hits = false;
    for (size_t i = 0; i < s->runner.n; i++) {
        crn_runner *r = &s->runner.at[i];
        if (r->nqueued < least || r == thief || (best && r->nqueued < best->nqueued))
            continue;
        bool longer = !best || r->nqueued > best->nqueued;
        bool hits = (longer || !best_hits) &&
                    crn_cache_has(thief, (crn_particle){s->cycle - 1, s->member[r->last].parent});
        if (longer || hits) {
            best = r;
            best_hits = hits;
        }
    }
    return best;
}

/* Planning */

/* What waits, who is busy, and what caches have, of the runners that are here. */
typedef struct scene {
    crn_cycle c;
    uint32_t *count, *busy, *number; /* number: a runner of the plan, in the schedule */
    CRN_VEC(crn_cached) cached;
} scene;

static void scene_done(scene *x)
{
    free(x->count);
    free(x->busy);
    free(x->number);
    crn_vec_done(&x->cached);
}

static cairn_status scene_init(const crn_sched *s, scene *x)
{
    CRN_TRY(crn_alloc(&x->count, s->n));
    CRN_TRY(crn_alloc(&x->busy, s->runner.n));
    CRN_TRY(crn_alloc(&x->number, s->runner.n));
    for (uint32_t i = 0; i < s->n; i++)
        if (s->member[i].progress == CRN_WAITING)
            x->count[s->member[i].parent]++;
    uint32_t nrunners = 0;
    for (uint32_t i = 0; i < s->runner.n; i++) {
        const crn_runner *r = &s->runner.at[i];
        if (!r->here)
            continue;
        for (size_t k = 0; k < r->cache.n; k++)
            if (r->cache.at[k].cycle == s->cycle - 1)
                CRN_TRY(crn_vec_push(&x->cached, (crn_cached){r->cache.at[k].member, nrunners}));
        x->busy[nrunners] = r->task != CRN_NOBODY;
        x->number[nrunners++] = i;
    }
    x->c = (crn_cycle){.count = x->count,
                       .nparents = s->n,
                       .busy = x->busy,
                       .nrunners = nrunners,
                       .cached = x->cached.at,
                       .ncached = x->cached.n};
    return CAIRN_OK;
}

/* The runner of the plan; the next one if the member has failed on that and there are others. */
static crn_runner *chosen(crn_sched *s, const scene *x, uint32_t runner, uint32_t member)
{
    if (s->member[member].avoid == x->number[runner] + 1)
        runner = (runner + 1) % (uint32_t)x->c.nrunners;
    return &s->runner.at[x->number[runner]];
}

/* Waiting children of parents to the queues of the plan, in order. */
static void fill_queues(crn_sched *s, const scene *x, const crn_cycle_plan *p)
{
    uint32_t *next = x->count; /* the next child to hand out; counts are no longer needed */
    memcpy(next, s->first, s->n * sizeof *next);
    for (size_t i = 0; i < s->runner.n; i++)
        empty_queue(s, &s->runner.at[i]);
    for (size_t i = 0; i < p->nbatches; i++) {
        const crn_cycle_batch *b = &p->batch[i];
        for (uint32_t k = 0; k < b->count; k++) {
            while (s->member[next[b->parent]].progress != CRN_WAITING)
                next[b->parent]++;
            s->member[next[b->parent]].stolen = false;
            crn_sched_enqueue(s, chosen(s, x, b->runner, next[b->parent]), next[b->parent]);
            next[b->parent]++;
        }
    }
}

static cairn_status plan_again(crn_sched *s)
{
    scene x = {0};
    crn_cycle_plan p = {0};
    cairn_status rc;
    CRN_TRY_OUT(rc, scene_init(s, &x));
    if (x.c.nrunners == 0)
        goto out;
    CRN_TRY_OUT(rc, crn_cycle_plan_make(&x.c, &p));
    if (!s->o.strict)
        fill_queues(s, &x, &p);
    if (s->counts.nplans++ == 0) {
        s->nrunners = x.c.nrunners;
        s->counts.first = p;
        s->counts.first.batch = NULL;
    }
    s->stale = false;
out:
    crn_cycle_plan_done(&p);
    scene_done(&x);
    return rc;
}

/* Runners */

cairn_status crn_sched_join(crn_sched *s, uint32_t *ret_runner)
{
    crn_runner r = {.here = true,
                    .task = CRN_NOBODY,
                    .first = CRN_NOBODY,
                    .last = CRN_NOBODY,
                    .last_parent = CRN_NOBODY};
    CRN_TRY(crn_vec_push(&s->runner, r));
    s->stale = true;
    *ret_runner = (uint32_t)s->runner.n - 1;
    return CAIRN_OK;
}

static void set_overdue(crn_sched *s, crn_member *m, bool overdue)
{
    s->noverdue += (uint32_t)overdue - (uint32_t)m->overdue;
    m->overdue = overdue;
}

static void wait_again(crn_sched *s, uint32_t member)
{
    crn_member *m = &s->member[member];
    if (m->progress == CRN_FINISHED)
        s->left[m->parent]++;
    m->progress = CRN_WAITING;
    m->runner = CRN_NOBODY;
    set_overdue(s, m, false);
    s->nwaiting++;
    s->stale = true;
    crn_strict_return(s, member);
}

/* Who else, of the runners that are here, has a member's state in its cache, or propagates it. */
typedef struct others {
    uint32_t *cached, *running; /* of members; CRN_NOBODY */
} others;

static cairn_status others_init(const crn_sched *s, others *o)
{
    CRN_TRY(crn_alloc(&o->cached, s->n));
    CRN_TRY(crn_alloc(&o->running, s->n));
    for (uint32_t i = 0; i < s->n; i++)
        o->cached[i] = o->running[i] = CRN_NOBODY;
    for (uint32_t i = 0; i < s->runner.n; i++) {
        const crn_runner *r = &s->runner.at[i];
        if (!r->here)
            continue;
        if (r->task != CRN_NOBODY)
            o->running[r->task] = i;
        for (size_t k = 0; k < r->cache.n; k++)
            if (r->cache.at[k].cycle == s->cycle)
                o->cached[r->cache.at[k].member] = i;
    }
    return CAIRN_OK;
}

static void others_done(others *o)
{
    free(o->cached);
    free(o->running);
}

/* A member's runner is gone, or has no result: another one goes on with it, or it waits. */
static void hand_on(crn_sched *s, uint32_t member, const others *o)
{
    crn_member *m = &s->member[member];
    if (m->progress == CRN_FINISHED && o->cached[member] != CRN_NOBODY) {
        m->runner = o->cached[member];
    } else if (o->running[member] != CRN_NOBODY) {
        s->left[m->parent] += m->progress == CRN_FINISHED;
        m->progress = CRN_RUNNING;
        m->runner = o->running[member];
    } else {
        wait_again(s, member);
    }
}

cairn_status crn_sched_leave(crn_sched *s, uint32_t number)
{
    crn_runner *r = NULL;
    others o = {0};
    CRN_TRY(find_runner(s, number, &r));
    r->here = false;
    r->task = CRN_NOBODY;
    empty_queue(s, r);
    cairn_status rc = s->idle ? CAIRN_OK : others_init(s, &o);
    for (uint32_t i = 0; rc == CAIRN_OK && i < s->n && !s->idle; i++) {
        const crn_member *m = &s->member[i];
        if (m->runner == number && !m->safe && m->progress != CRN_WAITING)
            hand_on(s, i, &o);
    }
    others_done(&o);
    crn_strict_leave(s, r);
    crn_vec_done(&r->cache);
    s->stale = true;
    return rc;
}

static void forget_state(const crn_sched *s, crn_runner *r, uint32_t member)
{
    for (size_t i = 0; i < r->cache.n; i++)
        if (r->cache.at[i].cycle == s->cycle && r->cache.at[i].member == member)
            r->cache.at[i] = r->cache.at[--r->cache.n];
}

cairn_status crn_sched_failed(crn_sched *s, uint32_t number, uint32_t member)
{
    crn_runner *r = NULL;
    crn_member *m = NULL;
    others o = {0};
    CRN_TRY(find_member(s, member, &m));
    CRN_TRY(find_runner(s, number, &r));
    if (r->task == member)
        r->task = CRN_NOBODY;
    forget_state(s, r, member);
    if (m->safe || m->progress == CRN_WAITING || m->runner != number)
        return CAIRN_OK;
    m->avoid = number + 1;
    cairn_status rc = others_init(s, &o);
    if (rc == CAIRN_OK)
        hand_on(s, member, &o);
    others_done(&o);
    return rc;
}

cairn_status crn_sched_resume(crn_sched *s, uint32_t number, uint32_t member)
{
    crn_runner *r = NULL;
    crn_member *m = NULL;
    CRN_TRY(find_member(s, member, &m));
    CRN_TRY(find_runner(s, number, &r));
    if (m->safe || r->task != CRN_NOBODY || m->progress != CRN_WAITING)
        return CAIRN_NOTHING;
    m->progress = CRN_RUNNING;
    m->runner = number;
    s->nwaiting--;
    s->stale = true;
    r->task = member;
    r->last_parent = m->parent;
    return CAIRN_OK;
}

/* Cycles */

bool crn_sched_complete(const crn_sched *s)
{
    return s->idle || (s->nweighted == s->n && s->nsafe == s->n);
}

cairn_status crn_sched_begin(crn_sched *s, const uint32_t *count)
{
    CRN_FAIL_IF(!crn_sched_complete(s), CAIRN_EINVAL,
                "cycle %llu is not complete: %u of %u members have a weight, %u are safe",
                (unsigned long long)s->cycle, s->nweighted, s->n, s->nsafe);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->n; i++)
        sum += count[i];
    CRN_FAIL_IF(sum != s->n, CAIRN_EINVAL, "%llu children for %u members", (unsigned long long)sum,
                s->n);
    s->cycle++;
    s->idle = false;
    s->nwaiting = s->n;
    s->nweighted = s->nsafe = s->noverdue = s->certain_at = s->open = 0;
    s->counts = (crn_sched_counts){0};
    s->stale = true;
    for (uint32_t i = 0, child = 0; i < s->n; i++) {
        s->count[i] = s->left[i] = count[i];
        s->takers[i] = s->extra[i] = 0;
        s->first[i] = s->untaken[i] = child;
        s->logw[i] = NAN;
        for (uint32_t k = 0; k < count[i]; k++)
            s->member[child++] = (crn_member){.parent = i, .runner = CRN_NOBODY};
    }
    for (size_t i = 0; i < s->runner.n; i++) {
        crn_strict_clear(&s->runner.at[i]);
        s->runner.at[i].task = CRN_NOBODY; /* a second run of a member that is complete */
    }
    return CAIRN_OK;
}

/* Tasks */

/* A member that is overdue while nothing waits, or CRN_NOBODY. */
static uint32_t next_overdue(const crn_sched *s)
{
    for (uint32_t i = 0; i < s->n && s->nwaiting == 0 && s->noverdue > 0; i++)
        if (s->member[i].progress == CRN_RUNNING && s->member[i].overdue)
            return i;
    return CRN_NOBODY;
}

/* Is there room for the result of a runner's next task, and for its parent if that is not there? */
static bool has_room(const crn_sched *s, const crn_runner *r)
{
    bool hit = r->nqueued > 0 &&
               crn_cache_has(r, (crn_particle){s->cycle - 1, s->member[r->first].parent});
    return crn_cache_fits(s, r, hit ? 1 : 2);
}

static cairn_status next_member(crn_sched *s, crn_runner *r, uint32_t *ret)
{
    if (r->nqueued == 0 && s->o.strict)
        CRN_TRY(crn_sched_reserve(s, r));
    crn_runner *victim = r->nqueued == 0 && !s->o.strict ? crn_sched_longest(s, r, 1) : NULL;
    if (victim)
        crn_sched_steal(s, victim, r);
    *ret = r->nqueued > 0 ? dequeue_first(s, r) : CRN_NOBODY;
    return CAIRN_OK;
}

cairn_status crn_sched_next(crn_sched *s, uint32_t number, crn_task *ret)
{
    crn_runner *r = NULL;
    CRN_TRY(find_runner(s, number, &r));
    CRN_FAIL_IF(r->task != CRN_NOBODY, CAIRN_EINVAL, "runner %u propagates member %u", number,
                r->task);
    if (s->idle)
        return CAIRN_NOTHING;
    if (s->stale && s->nwaiting > 0)
        CRN_TRY(plan_again(s));
    if (!has_room(s, r))
        return CAIRN_NOTHING;
    uint32_t member = next_overdue(s);
    if (s->nwaiting > 0)
        CRN_TRY(next_member(s, r, &member));
    if (member == CRN_NOBODY)
        return CAIRN_NOTHING;
    crn_member *m = &s->member[member];
    bool again = m->progress == CRN_RUNNING;
    *ret = (crn_task){.member = member,
                      .parent = m->parent,
                      .load = !crn_cache_has(r, (crn_particle){s->cycle - 1, m->parent}),
                      .stolen = m->stolen && !again,
                      .again = again};
    set_overdue(s, m, false);
    if (!again) {
        m->progress = CRN_RUNNING;
        m->runner = number;
        s->nwaiting--;
    }
    r->task = member;
    r->last_parent = m->parent;
    s->counts.ntasks++;
    s->counts.nhits += !ret->load;
    s->counts.nagain += again;
    return CAIRN_OK;
}

bool crn_sched_needs(const crn_sched *s, const crn_runner *r, uint32_t parent)
{
    if (r->task != CRN_NOBODY && s->member[r->task].parent == parent)
        return true;
    for (uint32_t i = r->first; i != CRN_NOBODY; i = s->member[i].next)
        if (s->member[i].parent == parent)
            return true;
    return false;
}

cairn_status crn_sched_finished(crn_sched *s, uint32_t number, uint32_t member)
{
    crn_runner *r = NULL;
    crn_member *m = NULL;
    CRN_TRY(find_member(s, member, &m));
    CRN_TRY(find_runner(s, number, &r));
    if (r->task == member)
        r->task = CRN_NOBODY;
    crn_particle p = {s->cycle, member};
    if (!crn_cache_has(r, p))
        CRN_TRY(crn_vec_push(&r->cache, p));
    if (m->progress == CRN_FINISHED)
        return CAIRN_NOTHING;
    if (m->progress == CRN_WAITING) { /* it came back after its runner was given up */
        s->nwaiting--;
        s->stale = true;
    }
    set_overdue(s, m, false);
    m->progress = CRN_FINISHED;
    m->runner = number;
    s->left[m->parent]--;
    return CAIRN_OK;
}

cairn_status crn_sched_weight(crn_sched *s, uint32_t member, double logw)
{
    crn_member *m = NULL;
    CRN_TRY(find_member(s, member, &m));
    CRN_FAIL_IF(isnan(logw), CAIRN_EINVAL, "the weight of member %u is not a number", member);
    if (m->weighted)
        return CAIRN_NOTHING;
    m->weighted = true;
    s->logw[member] = logw;
    s->nweighted++;
    return CAIRN_OK;
}

cairn_status crn_sched_safe(crn_sched *s, uint32_t member)
{
    crn_member *m = NULL;
    CRN_TRY(find_member(s, member, &m));
    if (m->safe)
        return CAIRN_NOTHING;
    if (m->progress != CRN_FINISHED) {
        s->nwaiting -= m->progress == CRN_WAITING;
        s->stale |= m->progress == CRN_WAITING;
        s->left[m->parent]--;
        set_overdue(s, m, false);
        m->progress = CRN_FINISHED;
    }
    m->safe = true;
    s->nsafe++;
    return CAIRN_OK;
}

cairn_status crn_sched_overdue(crn_sched *s, uint32_t member)
{
    crn_member *m = NULL;
    CRN_TRY(find_member(s, member, &m));
    set_overdue(s, m, m->progress == CRN_RUNNING);
    return m->overdue ? CAIRN_OK : CAIRN_NOTHING;
}

const double *crn_sched_weights(const crn_sched *s)
{
    return s->logw;
}

crn_sched_counts crn_sched_count(const crn_sched *s)
{
    return s->counts;
}
