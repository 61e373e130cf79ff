/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The caches of a schedule: what each runner has, what it should load ahead, and what it evicts. A
 * cache has a few states, so they are looked through.
 */
#include <math.h>

#include "particle/particle_sched.h"

bool crn_cache_has(const crn_runner *r, crn_particle p)
{
    for (size_t i = 0; i < r->cache.n; i++)
        if (r->cache.at[i].member == p.member && r->cache.at[i].cycle == p.cycle)
            return true;
    return false;
}

/* A state comes into a cache; CAIRN_NOTHING: it is there. */
static cairn_status put(crn_sched *s, uint32_t number, crn_particle p)
{
    CRN_FAIL_IF(number >= s->runner.n || !s->runner.at[number].here, CAIRN_EINVAL,
                "there is no runner %u", number);
    CRN_FAIL_IF(p.member >= s->n || p.cycle > s->cycle, CAIRN_EINVAL,
                "there is no state of member %u in cycle %llu", p.member,
                (unsigned long long)p.cycle);
    crn_runner *r = &s->runner.at[number];
    if (crn_cache_has(r, p))
        return CAIRN_NOTHING;
    return crn_vec_push(&r->cache, p);
}

cairn_status crn_sched_loaded(crn_sched *s, uint32_t runner, crn_particle p)
{
    cairn_status rc = put(s, runner, p);
    CRN_TRY(rc);
    if (rc == CAIRN_OK && p.cycle == s->cycle) {
        s->counts.nahead++;
        s->member[p.member].ahead++;
    } else if (rc == CAIRN_OK && p.cycle + 1 == s->cycle) {
        s->counts.nloads++;
    }
    return rc;
}

cairn_status crn_sched_offer(crn_sched *s, uint32_t runner, crn_particle p)
{
    cairn_status rc = put(s, runner, p);
    CRN_TRY(rc);
    s->stale |= rc == CAIRN_OK;
    return rc;
}

/* Why a state may go, the better reasons first. */
typedef enum reason { DISCARDED, PROPAGATED, ELSEWHERE, WEIGHED, UNKNOWN, NEVER } reason;

static reason why(const crn_sched *s, const crn_runner *r, crn_particle p)
{
    if (p.cycle == s->cycle)
        return !s->member[p.member].safe ? NEVER : s->member[p.member].weighted ? WEIGHED : UNKNOWN;
    if (p.cycle + 1 < s->cycle || s->count[p.member] == 0)
        return DISCARDED;
    if (s->left[p.member] == 0)
        return PROPAGATED;
    return s->stale || crn_sched_needs(s, r, p.member) ? NEVER : ELSEWHERE;
}

static uint64_t chance(const crn_sched *s, crn_particle p)
{
    crn_rng rng = crn_rng_of(s->o.seed, p.cycle << 32 | p.member);
    return crn_rng_u64(&rng);
}

/* Should x go rather than y? Both for the same reason. */
static bool goes_first(const crn_sched *s, crn_particle x, crn_particle y, reason because)
{
    double wx = because == WEIGHED ? s->logw[x.member] : 0;
    double wy = because == WEIGHED ? s->logw[y.member] : 0;
    return wx != wy ? wx < wy : chance(s, x) < chance(s, y);
}

static bool crowded(const crn_sched *s, const crn_runner *r)
{
    return r->cache.n + 2 > s->o.capacity;
}

bool crn_sched_evict(crn_sched *s, uint32_t number, crn_particle *ret)
{
    if (number >= s->runner.n || !crowded(s, &s->runner.at[number]))
        return false;
    crn_runner *r = &s->runner.at[number];
    size_t best = 0;
    reason because = NEVER;
    for (size_t i = 0; i < r->cache.n; i++) {
        reason x = why(s, r, r->cache.at[i]);
        if (x < because ||
            (x == because && x != NEVER && goes_first(s, r->cache.at[i], r->cache.at[best], x))) {
            because = x;
            best = i;
        }
    }
    if (because == NEVER)
        return false;
    *ret = r->cache.at[best];
    r->cache.at[best] = r->cache.at[--r->cache.n];
    return true;
}

/* States of a cache that would stay if all went that may go for this or a better reason. */
static size_t staying(const crn_sched *s, const crn_runner *r, reason because)
{
    size_t n = 0;
    for (size_t i = 0; i < r->cache.n; i++)
        n += why(s, r, r->cache.at[i]) > because;
    return n;
}

bool crn_cache_fits(const crn_sched *s, const crn_runner *r, size_t n)
{
    return staying(s, r, UNKNOWN) + n <= s->o.capacity;
}

/* The next task in a runner's own queue. An empty one is filled by a theft, if another's is long,
 * or by a reservation: only then can a load hide behind the task at hand. */
static uint32_t next_own(crn_sched *s, crn_runner *r)
{
    if (s->stale && !s->o.strict)
        return CRN_NOBODY;
    bool fill = r->nqueued == 0 && r->task != CRN_NOBODY;
    if (fill && s->o.strict && crn_sched_reserve(s, r) < 0)
        return CRN_NOBODY; /* no memory: the load will not hide */
    crn_runner *victim = fill && !s->o.strict ? crn_sched_longest(s, r, 2) : NULL;
    if (victim)
        crn_sched_steal(s, victim, r);
    return r->first;
}

/* In the tail of a cycle: the member with the most children for each cache that has it, if
 * resampling is certain to give it at least one for each, this runner's included. */
static uint32_t find_certain(crn_sched *s, const crn_runner *r)
{
    if (!s->o.certain || s->nwaiting > 0 || s->nweighted == 0 ||
        staying(s, r, ELSEWHERE) + 1 + 2 > s->o.capacity)
        return CRN_NOBODY;
    if (s->certain_at != s->nweighted) {
        s->certain = crn_resample_certain(s->logw, s->n, s->n, s->o.log_max);
        s->certain_at = s->nweighted;
    }
    uint32_t best = CRN_NOBODY;
    double most = s->certain;
    for (uint32_t i = 0; i < s->n; i++) {
        if (!s->member[i].safe || !(s->logw[i] > most))
            continue;
        double each = s->logw[i] - log(s->member[i].ahead + 2.0);
        if (each >= most && !crn_cache_has(r, (crn_particle){s->cycle, i})) {
            best = i;
            most = each;
        }
    }
    return best;
}

bool crn_sched_foretell(crn_sched *s, uint32_t number, crn_particle *ret)
{
    if (number >= s->runner.n || !s->runner.at[number].here || s->idle)
        return false;
    crn_runner *r = &s->runner.at[number];
    uint32_t next = next_own(s, r);
    if (next != CRN_NOBODY) { /* one slot for it, one for the result of the task at hand */
        *ret = (crn_particle){s->cycle - 1, s->member[next].parent};
        return !crn_cache_has(r, *ret) && crn_cache_fits(s, r, 2);
    }
    uint32_t member = find_certain(s, r);
    *ret = (crn_particle){s->cycle, member};
    return member != CRN_NOBODY;
}

bool crn_sched_holder(const crn_sched *s, crn_particle p, uint32_t but, uint32_t *ret)
{
    for (uint32_t i = 0; i < s->runner.n; i++)
        if (i != but && s->runner.at[i].here && crn_cache_has(&s->runner.at[i], p)) {
            *ret = i;
            return true;
        }
    return false;
}
