/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base.h"

#include <Random123/philox.h>

crn_rng crn_rng_of(uint64_t seed, uint64_t stream)
{
    return (crn_rng){.seed = seed, .stream = stream};
}

uint64_t crn_rng_u64(crn_rng *r)
{
    philox2x64_ctr_t ctr = {{r->n++, r->stream}};
    philox2x64_key_t key = {{r->seed}};
    return philox2x64(ctr, key).v[0];
}

uint64_t crn_rng_below(crn_rng *r, uint64_t bound)
{
    /* Values of the last, incomplete period are drawn again: each result is equally likely. */
    uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
    uint64_t v;
    do
        v = crn_rng_u64(r);
    while (v >= limit);
    return v % bound;
}

double crn_rng_unit(crn_rng *r)
{
    return (double)(crn_rng_u64(r) >> 11) * 0x1p-53;
}
