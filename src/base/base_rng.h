/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counter-based random numbers (Random123's Philox): the n-th number of a stream is a pure function
 * of seed, stream and n, so any rank can draw any other rank's numbers without communication.
 */
#ifndef CAIRN_BASE_RNG_H
#define CAIRN_BASE_RNG_H

#include <stdint.h>

#include "base/base_err.h"

/* CAIRN_EUNSUPPORTED in a build without Random123, with a sentence about what needs it: "a study".
 * Asked before anything is drawn. */
cairn_status crn_rng_present(const char *what);

typedef struct crn_rng {
    uint64_t seed, stream, n; /* n: the next draw */
} crn_rng;

crn_rng crn_rng_of(uint64_t seed, uint64_t stream);
uint64_t crn_rng_u64(crn_rng *r);
uint64_t crn_rng_below(crn_rng *r, uint64_t bound); /* 0 <= result < bound; bound > 0; unbiased */
double crn_rng_unit(crn_rng *r);                    /* 0 <= result < 1 */

/* Numbers of an ensemble, named by what they are for: never by who draws them, or when. */
typedef struct crn_rng_key {
    uint64_t study, purpose, cycle, member;
} crn_rng_key;

uint64_t crn_rng_at(const crn_rng_key *key, uint64_t element);
double crn_rng_unit_at(const crn_rng_key *key, uint64_t element);   /* 0 <= result < 1 */
double crn_rng_normal_at(const crn_rng_key *key, uint64_t element); /* mean 0, variance 1 */

#endif
