/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Supplies and deficits of a plan, matched with few pieces. Inside of particle.
 */
#ifndef CAIRN_PARTICLE_MATCH_H
#define CAIRN_PARTICLE_MATCH_H

#include "particle/particle.h"

/* So many tasks of a parent that go away from home, or that a runner lacks; who is the parent or
 * the runner. */
typedef struct crn_pile {
    uint32_t who, amount;
} crn_pile;

/*
 * Move all supplies into deficits; both amounts have the same sum, and none is 0. Pieces are
 * appended to out, which has room for nsupplies + ndeficits - 1: every piece uses up a supply or
 * fills a deficit, the last one both. Returns how many pieces there are. CAIRN_ENOMEM.
 */
cairn_status crn_match(const crn_pile *supply, size_t nsupplies, const crn_pile *deficit,
                       size_t ndeficits, crn_cycle_batch *out, size_t *ret_n);

#endif
