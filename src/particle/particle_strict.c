/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Strict schedules: nobody steals, and children of a parent go to at most ceil(a R / M) runners. A
 * queue has at most the task that was foretold. A request looks at the parent at hand, at the few
 * of the cache, and from the first parent on that is still open: within a cycle that one only moves
 * forward, unless a runner is lost.
 */
#include "particle/particle_sched.h"

static uint64_t hash_of(uint32_t parent)
{
    return crn_hash_bytes(&parent, sizeof parent);
}

static bool has_taken(const crn_runner *r, uint32_t parent)
{
    size_t probe = 0;
    uint32_t at;
    while (crn_index_next(&r->taken_at, hash_of(parent), &probe, &at))
        if (r->taken.at[at] == parent)
            return true;
    return false;
}

static cairn_status take(crn_sched *s, crn_runner *r, uint32_t parent)
{
    if (has_taken(r, parent))
        return CAIRN_OK;
    CRN_TRY(crn_index_add(&r->taken_at, hash_of(parent), r->taken.n));
    CRN_TRY(crn_vec_push(&r->taken, parent));
    s->takers[parent]++;
    return CAIRN_OK;
}

void crn_strict_clear(crn_runner *r)
{
    r->taken.n = 0;
    crn_index_clear(&r->taken_at);
}

void crn_strict_done(crn_runner *r)
{
    crn_vec_done(&r->taken);
    crn_index_done(&r->taken_at);
}

void crn_strict_leave(crn_sched *s, crn_runner *r)
{
    for (size_t i = 0; i < r->taken.n; i++)
        s->takers[r->taken.at[i]]--;
    crn_strict_done(r);
    s->open = 0;
}

void crn_strict_return(crn_sched *s, uint32_t member)
{
    const uint32_t parent = s->member[member].parent;
    s->extra[parent]++; /* whoever comes first may take it: those who had it may be gone */
    s->untaken[parent] = CRN_MIN(s->untaken[parent], member);
    s->open = CRN_MIN(s->open, parent);
}

/* A child of a parent that waits and is in no queue, or CRN_NOBODY. */
static uint32_t waiting_child(crn_sched *s, uint32_t parent)
{
    const uint32_t end = s->first[parent] + s->count[parent];
    uint32_t *at = &s->untaken[parent];
    while (*at < end && (s->member[*at].progress != CRN_WAITING || s->member[*at].queued))
        ++*at;
    return *at < end ? *at : CRN_NOBODY;
}

/* May another runner begin with children of a parent? Budgets are those of the start of the cycle:
 * recomputed ones would let more runners in than D + R - 1 loads allow. */
static bool has_budget(const crn_sched *s, uint32_t parent)
{
    uint64_t budget = ((uint64_t)s->count[parent] * s->nrunners + s->n - 1) / s->n;
    return s->takers[parent] < budget + s->extra[parent];
}

/* A child of the first parent that a runner which has nothing of it may begin with. */
static uint32_t open_child(crn_sched *s)
{
    for (; s->open < s->n; s->open++) {
        uint32_t child = has_budget(s, s->open) ? waiting_child(s, s->open) : CRN_NOBODY;
        if (child != CRN_NOBODY)
            return child;
    }
    return CRN_NOBODY;
}

/* The next task: the parent at hand, one of the cache, any. */
static uint32_t next_strict(crn_sched *s, const crn_runner *r)
{
    uint32_t child = CRN_NOBODY;
    if (r->last_parent != CRN_NOBODY && has_taken(r, r->last_parent))
        child = waiting_child(s, r->last_parent);
    for (size_t i = 0; i < r->cache.n && child == CRN_NOBODY; i++) {
        const crn_particle p = r->cache.at[i];
        if (p.cycle + 1 == s->cycle && (has_budget(s, p.member) || has_taken(r, p.member)))
            child = waiting_child(s, p.member);
    }
    return child == CRN_NOBODY ? open_child(s) : child;
}

cairn_status crn_sched_reserve(crn_sched *s, crn_runner *r)
{
    uint32_t member = next_strict(s, r);
    if (member == CRN_NOBODY)
        return CAIRN_NOTHING;
    CRN_TRY(take(s, r, s->member[member].parent));
    crn_sched_enqueue(s, r, member);
    return CAIRN_OK;
}
