/* SPDX-License-Identifier: BSD-3-Clause
 *
 * particle: the arithmetic of a particle filter whose states stay where they are. Numbers in,
 * numbers out; no clock, no files, no messages. Row 3: stands on base only.
 *
 *   Weights      from logarithms of likelihoods to normalised weights, effective sample size
 *   Resampling   how often each member becomes a parent, by four schemes
 *   Plan         which runner propagates which parents, with as few loads as possible, and a lower
 *                bound that proves how few are possible
 *   Schedule     the plan followed: who gets the next task, what is foretold, what a cache evicts
 *
 * Words: a cycle propagates M members; each has a parent, a member of the cycle before. D parents
 * are distinct, and parent i has a_i children. R runners propagate. A load is a parent's state that
 * a runner has to get from global storage because its cache lacks it.
 *
 * No result depends on time: a plan depends on counts and caches alone, and no weight or member
 * depends on a plan. docs/design/particle.md derives the bounds.
 */
#ifndef CAIRN_PARTICLE_H
#define CAIRN_PARTICLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* Weights */

typedef struct crn_weight_sum {
    double log_mean; /* logarithm of the mean likelihood: the evidence of the observations */
    double ess;      /* effective sample size, 1 / sum of squared weights: 1 to n */
    size_t nzero;    /* members with likelihood 0 */
} crn_weight_sum;

/*
 * Normalised weights w[n] of members with log-likelihoods logw[n] (-INFINITY: impossible), by
 * log-sum-exp, summed in the order of members. CAIRN_EINVAL, with the member, for NaN and
 * +INFINITY, and when every likelihood is 0: no weights could be meant then.
 */
cairn_status crn_weights(const double *logw, size_t n, double *w, crn_weight_sum *ret);

/* Resampling */

typedef enum crn_resampling {
    CRN_RESAMPLE_SYSTEMATIC, /* one random offset for all: counts are floor or ceil of m w */
    CRN_RESAMPLE_MULTINOMIAL,
    CRN_RESAMPLE_STRATIFIED, /* one random offset in each of m strata */
    CRN_RESAMPLE_RESIDUAL    /* floor of m w for certain, the rest multinomial */
} crn_resampling;

/* The scheme with this name, CAIRN_EINVAL if there is none; and the name of a scheme. */
cairn_status crn_resampling_of(const char *name, crn_resampling *ret);
const char *crn_resampling_name(crn_resampling scheme);

/*
 * How often each of n members becomes a parent of m children: count[n], which sum up to m. w[n]
 * need not be normalised; each count has the expectation m w / sum of w. Exact integer arithmetic
 * decides, so that the same weights give the same counts on every machine. CAIRN_EINVAL: a weight
 * is negative or not finite, or all are 0; m or n is 0 or above 2^31.
 */
cairn_status crn_resample(crn_resampling scheme, const double *w, size_t n, size_t m, crn_rng *rng,
                          uint32_t *count);

/*
 * The least log-weight with which systematic resampling to m children keeps a member whatever the
 * missing weights are, if none exceeds log_max. Members whose weight is missing have NaN in logw.
 */
double crn_resample_certain(const double *logw, size_t n, size_t m, double log_max);

/* Plan */

/* A runner has the state of a parent in its cache. */
typedef struct crn_cached {
    uint32_t parent, runner;
} crn_cached;

typedef struct crn_cycle {
    const uint32_t *count; /* children of each parent that are still to be assigned */
    size_t nparents;
    const uint32_t *busy; /* tasks that each runner has besides; NULL: none has any */
    size_t nrunners;
    const crn_cached *cached; /* in any order, each pair at most once */
    size_t ncached;
} crn_cycle;

/* So many children of a parent for a runner. */
typedef struct crn_cycle_batch {
    uint32_t runner, parent, count;
    bool load; /* the runner's cache lacks the parent */
} crn_cycle_batch;

typedef struct crn_cycle_plan {
    crn_cycle_batch *batch; /* by runner; those from the cache first; by parent */
    size_t nbatches;
    uint32_t nparents;  /* D: parents with children */
    uint32_t nloads;    /* batches with load set */
    uint32_t nsupplies; /* S: parents, or pieces of them, that go to another runner than a home */
    uint32_t ndeficits; /* B: runners that their cache cannot keep busy */
    uint32_t bound;     /* LB: no balanced plan has fewer loads */
} crn_cycle_plan;

/*
 * Plan a cycle: every runner gets the same number of tasks, give or take one, counting those that
 * it has. A parent stays with runners that have it cached as far as it fits; what is left over is
 * matched with runners that lack tasks such that nloads <= max(S + B - 1, 0) <= D + R - 1. Equal
 * choices keep neighbouring members together. CAIRN_EINVAL: there are children and no runner, or
 * an index is out of range. CAIRN_ENOMEM. Free it with crn_cycle_plan_done.
 */
cairn_status crn_cycle_plan_make(const crn_cycle *c, crn_cycle_plan *ret);
void crn_cycle_plan_done(crn_cycle_plan *p);

/* Schedule */

typedef struct crn_sched crn_sched;

typedef struct crn_sched_options {
    uint32_t capacity; /* states that a cache holds: 3 or more, of which 2 stay free for the state
                          under way and the one that is foretold */
    bool strict;       /* nobody steals; parents go to at most ceil(a R / M) runners */
    bool certain;      /* foretell parents that resampling is certain to keep (systematic only) */
    double log_max;    /* no log-weight exceeds it; for certain */
    uint64_t seed;     /* of the study: keys random evictions */
    uint64_t cycle;    /* that is complete: the first one to begin is the next; 0 */
} crn_sched_options;

/* A schedule of cycles of n members. CAIRN_EINVAL, CAIRN_ENOMEM. */
cairn_status crn_sched_create(uint32_t nmembers, const crn_sched_options *o, crn_sched **ret);
void crn_sched_free(crn_sched *s);

/* The state of a member at the end of a cycle. Those of the cycle before are the parents. */
typedef struct crn_particle {
    uint64_t cycle;
    uint32_t member;
} crn_particle;

/*
 * A runner joins and gets the next number; it may offer states that its cache has already. A runner
 * leaves or dies: what it had not finished goes to others, and members of which only it had the
 * state are propagated anew. What was planned is planned again. CAIRN_EINVAL, CAIRN_ENOMEM.
 */
cairn_status crn_sched_join(crn_sched *s, uint32_t *ret_runner);
cairn_status crn_sched_leave(crn_sched *s, uint32_t runner);

/*
 * Begin the next cycle: parent i has count[i] children, nmembers in all. Members are numbered in
 * the order of their parents. The first cycle is number 1, or what the options
 * say; its parents are states of the one before.
 * CAIRN_EINVAL: the last cycle is not complete, or the counts do not sum up to the members.
 */
cairn_status crn_sched_begin(crn_sched *s, const uint32_t *count);

typedef struct crn_task {
    uint32_t member, parent;
    bool load;   /* the runner's cache lacks the parent */
    bool stolen; /* planned for another runner */
    bool again;  /* another runner propagates this member, too, and is overdue */
} crn_task;

/* The next task of a runner that has none. CAIRN_NOTHING: there is none, or its cache is full of
 * states that are not safe yet; ask again when another call has changed that. CAIRN_EINVAL,
 * CAIRN_ENOMEM. */
cairn_status crn_sched_next(crn_sched *s, uint32_t runner, crn_task *ret);

/* A state that a runner should load while it propagates, because its next task needs it or because
 * resampling is certain to keep it. False: none, or there is no room in its cache. */
bool crn_sched_foretell(crn_sched *s, uint32_t runner, crn_particle *ret);

/* A state has come into a runner's cache by a load; or a runner that joined has it there. */
cairn_status crn_sched_loaded(crn_sched *s, uint32_t runner, crn_particle p);
cairn_status crn_sched_offer(crn_sched *s, uint32_t runner, crn_particle p);

/*
 * A runner that joined has propagated a member since an earlier schedule, of a server that has
 * died: CAIRN_NOTHING if the member needs nobody. A runner has no result of a member, or has lost
 * its state: it waits for another one, unless there is a state elsewhere.
 */
cairn_status crn_sched_resume(crn_sched *s, uint32_t runner, uint32_t member);
cairn_status crn_sched_failed(crn_sched *s, uint32_t runner, uint32_t member);

/*
 * A runner has finished a member and has its state in the cache; the weight has arrived; the state
 * is safe on global storage. The weight and safety may come in any order; the first report of each
 * counts, CAIRN_NOTHING for others. CAIRN_EINVAL: no such member or runner, or the weight is NaN.
 */
cairn_status crn_sched_finished(crn_sched *s, uint32_t runner, uint32_t member);
cairn_status crn_sched_weight(crn_sched *s, uint32_t member, double logw);
cairn_status crn_sched_safe(crn_sched *s, uint32_t member);

/* A member that is being propagated is overdue: idle runners may propagate it, too. */
cairn_status crn_sched_overdue(crn_sched *s, uint32_t member);

/*
 * A state to remove from a runner's cache so that two slots are free; the caller removes it, and
 * asks until there is none whenever a state has come or has become safe. In
 * this order: discarded by the last update; all children done; children at other runners only;
 * lowest weight; random by key. Never one that is not safe, or that the runner's own tasks need.
 * False: nothing has to go, or nothing may.
 */
bool crn_sched_evict(crn_sched *s, uint32_t runner, crn_particle *ret);

/* Another runner than but whose cache has a state. */
bool crn_sched_holder(const crn_sched *s, crn_particle p, uint32_t but, uint32_t *ret);

/* All members have their weight and are safe. */
bool crn_sched_complete(const crn_sched *s);

/* Log-weights of the cycle's members, by member; NaN where none has come. */
const double *crn_sched_weights(const crn_sched *s);

/* What the cycle has cost so far, and what its first plan promised. */
typedef struct crn_sched_counts {
    uint32_t ntasks;  /* handed out */
    uint32_t nhits;   /* tasks whose parent was in the cache when they were handed out */
    uint32_t nloads;  /* parents loaded into caches */
    uint32_t nahead;  /* states of this cycle loaded because resampling is certain to keep them */
    uint32_t nsteals; /* thefts; each costs one load at most */
    uint32_t nagain;  /* tasks begun a second time */
    uint32_t nplans;
    crn_cycle_plan first; /* without batches */
} crn_sched_counts;

crn_sched_counts crn_sched_count(const crn_sched *s);

#endif
