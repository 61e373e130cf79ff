/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A schedule's members, runners and caches. Inside of particle.
 */
#ifndef CAIRN_PARTICLE_SCHED_H
#define CAIRN_PARTICLE_SCHED_H

#include "particle/particle.h"

enum { CRN_NOBODY = UINT32_MAX };

typedef enum crn_progress { CRN_WAITING, CRN_RUNNING, CRN_FINISHED } crn_progress;

typedef struct crn_member {
    uint32_t parent;
    uint32_t runner; /* who propagates it, or has finished it first; CRN_NOBODY while it waits */
    uint32_t prev, next; /* in a runner's queue while it waits */
    crn_progress progress;
    bool weighted, safe;
    bool overdue;   /* running, and may be begun again */
    bool queued;    /* waits in a runner's queue */
    uint32_t ahead; /* caches that have loaded its state before the next cycle */
    uint32_t avoid; /* the runner on which it failed last, + 1; 0: none */
    bool stolen;    /* in the queue of a runner that it was not planned for */
} crn_member;

typedef struct crn_runner {
    bool here;
    uint32_t task;        /* the member that it propagates, or CRN_NOBODY */
    uint32_t first, last; /* its queue */
    uint32_t nqueued;
    uint32_t last_parent; /* of its last task: strict schedules go on with it */
    CRN_VEC(crn_particle) cache;
    CRN_VEC(uint32_t) taken; /* parents that it has begun in this cycle: strict only */
    crn_index taken_at;      /* by their numbers */
} crn_runner;

struct crn_sched {
    crn_sched_options o;
    uint64_t cycle;
    bool idle; /* no cycle was begun yet */
    uint32_t n;
    uint32_t nwaiting, nweighted, nsafe, noverdue;
    size_t nrunners; /* when the cycle was planned first: budgets of a strict schedule */
    crn_member *member;
    double *logw;        /* of members; NaN: not there yet */
    uint32_t *count;     /* children of a parent in this cycle */
    uint32_t *left;      /* children that are not finished */
    uint32_t *takers;    /* runners that have begun children of it: strict only */
    uint32_t *extra;     /* returned children: each lets one more runner in; strict only */
    uint32_t *untaken;   /* no child before it waits for a taker: strict only */
    uint32_t open;       /* no parent before it has both budget and such children: strict only */
    uint32_t *first;     /* the first child of a parent */
    bool stale;          /* what waits has to be planned before it is handed out */
    double certain;      /* log-weight from which resampling keeps a member, as of certain_at */
    uint32_t certain_at; /* nweighted when that was computed; 0: never */
    CRN_VEC(crn_runner) runner;
    crn_sched_counts counts;
};

bool crn_cache_has(const crn_runner *r, crn_particle p);

/* Is there room for n more states beside those that may not go? */
bool crn_cache_fits(const crn_sched *s, const crn_runner *r, size_t n);

/* A runner's own tasks, current or queued, need a parent. */
bool crn_sched_needs(const crn_sched *s, const crn_runner *r, uint32_t parent);

/* Another runner with the longest queue, of at least so many tasks, 1 or more; NULL if there is
 * none. Of equal ones the first, or one whose last task's parent the thief has in its cache. */
crn_runner *crn_sched_longest(crn_sched *s, const crn_runner *thief, uint32_t least);

/* Move the last task of a queue to another one. */
void crn_sched_steal(crn_sched *s, crn_runner *from, crn_runner *to);

void crn_sched_enqueue(crn_sched *s, crn_runner *r, uint32_t member);

/* What a strict schedule knows of a runner: at the start of a cycle, when it leaves, at the end;
 * and a child that waits again. */
void crn_strict_clear(crn_runner *r);
void crn_strict_leave(crn_sched *s, crn_runner *r);
void crn_strict_done(crn_runner *r);
void crn_strict_return(crn_sched *s, uint32_t member);

/* Reserve the next task of a runner in a strict schedule: its queue has it then, if there is one.
 */
cairn_status crn_sched_reserve(crn_sched *s, crn_runner *r);

#endif
