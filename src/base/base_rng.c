/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base.h"

#include <math.h>

#if CRN_WITH_RANDOM123

#include <Random123/philox.h>

static uint64_t next(crn_rng *r)
{
    philox2x64_ctr_t ctr = {{r->n++, r->stream}};
    philox2x64_key_t key = {{r->seed}};
    return philox2x64(ctr, key).v[0];
}

static philox4x64_ctr_t draw_at(const crn_rng_key *k, uint64_t element)
{
    philox4x64_ctr_t ctr = {{element, k->member, k->cycle, 0}};
    philox4x64_key_t key = {{k->study, k->purpose}};
    return philox4x64(ctr, key);
}

#else

#include <assert.h>

typedef struct philox4x64_ctr_t {
    uint64_t v[4];
} philox4x64_ctr_t;

static uint64_t next(crn_rng *r)
{
    (void)r;
    assert(!"crn_rng_present was not asked");
    return 0;
}

static philox4x64_ctr_t draw_at(const crn_rng_key *k, uint64_t element)
{
    (void)k, (void)element;
    assert(!"crn_rng_present was not asked");
    return (philox4x64_ctr_t){{0}};
}

#endif

cairn_status crn_rng_present(const char *what)
{
    CRN_FAIL_IF(!CRN_WITH_RANDOM123, CAIRN_EUNSUPPORTED,
                "this Cairn was built without Random123, which %s needs", what);
    return CAIRN_OK;
}

crn_rng crn_rng_of(uint64_t seed, uint64_t stream)
{
    return (crn_rng){.seed = seed, .stream = stream};
}

uint64_t crn_rng_u64(crn_rng *r)
{
    return next(r);
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

uint64_t crn_rng_at(const crn_rng_key *key, uint64_t element)
{
    return draw_at(key, element).v[0];
}

double crn_rng_unit_at(const crn_rng_key *key, uint64_t element)
{
    return (double)(crn_rng_at(key, element) >> 11) * 0x1p-53;
}

/* Box and Muller's, from two words of one draw; the first is never 0, whose logarithm is none. */
double crn_rng_normal_at(const crn_rng_key *key, uint64_t element)
{
    philox4x64_ctr_t v = draw_at(key, element);
    double u = ((double)(v.v[0] >> 11) + 0.5) * 0x1p-53, angle = (double)(v.v[1] >> 11) * 0x1p-53;
    return sqrt(-2 * log(u)) * cos(6.283185307179586477 * angle);
}
