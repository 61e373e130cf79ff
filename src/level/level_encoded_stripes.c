/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which seat has which unit of which stripe. Pure arithmetic; the drawing is in level_encoded.h.
 *
 * The stripes of a chunk have the same roles; the turn of a chunk is the seat of its first parity.
 * A period is one turn of each seat: nseats chunks, of which a seat has data in ndata and parity in
 * nparity. The turns in which it has parity are [seat - nparity + 1, seat], modulo nseats.
 */
#include "level/level_encoded.h"

static uint32_t ndata_of(const crn_stripes *s)
{
    return s->nseats - s->nparity;
}

void crn_group_of(int nnodes, int group, int node, int *ret_first, int *ret_n)
{
    int64_t n = nnodes, ngroups = nnodes / group;
    int64_t g = ((node + 1) * ngroups - 1) / n;
    *ret_first = (int)(g * n / ngroups);
    *ret_n = (int)((g + 1) * n / ngroups) - *ret_first;
}

uint32_t crn_stripes_depth(uint32_t nseats)
{
    enum { DEPTH_MAX = 4, ROUND = 64 }; /* messages of 256 KiB, which stay in caches */
    return CRN_MIN(CRN_MAX(ROUND / nseats, 1), (uint32_t)DEPTH_MAX);
}

uint32_t crn_stripes_chunk(uint32_t nseats, uint32_t nparity, uint64_t nunits)
{
    enum { PERIODS = 8 }; /* a period that is not filled wastes up to an eighth */
    uint32_t chunk = 1;
    while (2 * chunk <= crn_stripes_depth(nseats) &&
           (uint64_t)chunk * 2 * PERIODS * (nseats - nparity) <= nunits)
        chunk *= 2;
    return chunk;
}

static uint32_t turn_of(const crn_stripes *s, uint64_t stripe)
{
    return (uint32_t)(stripe / s->chunk % s->nseats);
}

int crn_stripe_role(const crn_stripes *s, uint64_t stripe, uint32_t seat)
{
    uint32_t after = (seat + s->nseats - turn_of(s, stripe)) % s->nseats;
    return (int)(after < s->nparity ? ndata_of(s) + after : after - s->nparity);
}

uint32_t crn_stripe_seat(const crn_stripes *s, uint64_t stripe, int role)
{
    uint32_t ndata = ndata_of(s), r = (uint32_t)role;
    uint32_t after = r < ndata ? r + s->nparity : r - ndata;
    return (turn_of(s, stripe) + after) % s->nseats;
}

bool crn_stripe_is_data(const crn_stripes *s, uint64_t stripe, uint32_t seat)
{
    return crn_stripe_role(s, stripe, seat) < (int)ndata_of(s);
}

/* Turns below turn in which the seat has parity. */
static uint32_t parity_turns_before(const crn_stripes *s, uint32_t seat, uint32_t turn)
{
    uint32_t m = s->nparity;
    if (seat + 1 >= m) {
        uint32_t first = seat + 1 - m;
        return turn <= first ? 0 : CRN_MIN(turn - first, m);
    }
    uint32_t second = s->nseats + seat + 1 - m; /* [0, seat] and [second, nseats) */
    return CRN_MIN(turn, seat + 1) + (turn > second ? turn - second : 0);
}

uint64_t crn_stripe_unit(const crn_stripes *s, uint64_t stripe, uint32_t seat)
{
    uint64_t period = stripe / s->chunk / s->nseats;
    uint32_t turn = turn_of(s, stripe);
    uint32_t parity = parity_turns_before(s, seat, turn);
    bool data = crn_stripe_is_data(s, stripe, seat);
    uint64_t before = data ? turn - parity : parity; /* turns of the period with such a unit */
    uint64_t nth = period * (data ? ndata_of(s) : s->nparity) + before;
    return nth * s->chunk + stripe % s->chunk;
}

uint64_t crn_stripe_of(const crn_stripes *s, uint32_t seat, uint64_t unit)
{
    uint64_t nth = unit / s->chunk, period = nth / ndata_of(s);
    uint32_t turn = (uint32_t)(nth % ndata_of(s)); /* were there no turns with parity before it */
    if (seat + 1 >= s->nparity)
        turn += turn < seat + 1 - s->nparity ? 0 : s->nparity;
    else
        turn += seat + 1;
    return (period * s->nseats + turn) * s->chunk + unit % s->chunk;
}

uint64_t crn_stripes_count(const crn_stripes *s, const uint64_t *nunits)
{
    uint64_t n = 0;
    for (uint32_t seat = 0; seat < s->nseats; seat++)
        if (nunits[seat] > 0)
            n = CRN_MAX(n, crn_stripe_of(s, seat, nunits[seat] - 1) + 1);
    return n;
}

uint64_t crn_stripes_nparity(const crn_stripes *s, uint64_t nstripes, uint32_t seat)
{
    uint64_t period = nstripes / s->chunk / s->nseats;
    uint32_t turn = turn_of(s, nstripes);
    uint64_t n = (period * s->nparity + parity_turns_before(s, seat, turn)) * s->chunk;
    return n + (crn_stripe_is_data(s, nstripes, seat) ? 0 : nstripes % s->chunk);
}
