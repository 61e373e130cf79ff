/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What runners have at home: the parents in their caches, and what each keeps of them. Inside of
 * particle.
 */
#ifndef CAIRN_PARTICLE_HOME_H
#define CAIRN_PARTICLE_HOME_H

#include "particle/particle_match.h"

typedef struct crn_homes {
    const crn_cycle *c;
    uint32_t *nhomes; /* of a parent: caches that have it */
    size_t *first;    /* of a runner: its piles; [nrunners + 1] */
    crn_pile *pile;   /* parent and tasks of a runner's cache, smallest first */
    bool several;     /* a parent has more than one home */
} crn_homes;

/* Find the homes of all parents. CAIRN_EINVAL: an index is out of range. CAIRN_ENOMEM. Half-made
 * homes may be done, too. */
cairn_status crn_homes_init(crn_homes *h, const crn_cycle *c);
void crn_homes_done(crn_homes *h);

/* Tasks that a runner's cache could keep it busy with. */
uint64_t crn_homes_tasks(const crn_homes *h, size_t runner);

/* How many parents a runner has to give away, at least in part, to come down to a target; only
 * those with no other home count if sole is set. */
uint32_t crn_homes_above(const crn_homes *h, size_t runner, uint32_t target, bool sole);

/* Divide each parent with several homes among them, by the room that their targets leave. */
cairn_status crn_homes_divide(crn_homes *h, const uint32_t *target);

/* Lists of a plan under construction. */
typedef struct crn_drafts {
    CRN_VEC(crn_pile) supply, deficit;
    CRN_VEC(crn_cycle_batch) batch;
} crn_drafts;

void crn_drafts_done(crn_drafts *d);

/*
 * What runners keep up to their targets, what they lack, and what has to go away. Which parents go
 * away in part is free; fitted: in pieces that equal deficits, else as few tasks of the smallest as
 * possible. CAIRN_ENOMEM.
 */
cairn_status crn_homes_keep(const crn_homes *h, const uint32_t *target, bool fitted, crn_drafts *d);

#endif
