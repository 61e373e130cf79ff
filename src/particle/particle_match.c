/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Matching supplies with deficits in few pieces: a fixed-charge transport problem. A group of x
 * supplies that fills y deficits exactly takes x + y - 1 pieces, so the fewest pieces come from the
 * most groups; to find these is NP-hard. Here, in this order:
 *
 *   1. groups of two: a supply that equals a deficit;
 *   2. groups of three: two supplies that fill a deficit, a supply that fills two deficits;
 *   3. a supply that fits into a deficit goes into the smallest such, largest supplies first;
 *      one that is larger than every deficit fills the largest, and its rest goes on as before.
 *
 * Step 2 begins with either kind, and step 3 cuts large supplies before or after the others have
 * found their place: four runs, of which the best counts. Both sides lie in bins by amount, with a
 * bit set of the bins that are in use, so a step costs little however many runners there are.
 */
#include <string.h>

#include "particle/particle_match.h"

enum { NONE = UINT32_MAX };

typedef struct bins {
    crn_pile *pile;
    uint32_t *next;  /* of a pile, in its bin */
    uint32_t *first; /* of a bin: the piles of exactly this amount */
    uint64_t *used;  /* bit b: bin b is not empty */
    size_t nwords;
} bins;

static void bins_done(bins *b)
{
    free(b->pile);
    free(b->next);
    free(b->first);
    free(b->used);
}

static void bins_put(bins *b, uint32_t at)
{
    uint32_t amount = b->pile[at].amount;
    if (amount == 0)
        return;
    b->next[at] = b->first[amount];
    b->first[amount] = at;
    b->used[amount / 64] |= (uint64_t)1 << amount % 64;
}

static uint32_t bins_take(bins *b, uint32_t amount)
{
    uint32_t at = b->first[amount];
    b->first[amount] = b->next[at];
    if (b->first[amount] == NONE)
        b->used[amount / 64] &= ~((uint64_t)1 << amount % 64);
    return at;
}

static bool bins_has(const bins *b, uint32_t amount)
{
    return amount / 64 < b->nwords && (b->used[amount / 64] >> amount % 64 & 1);
}

/* The smallest bin in use from amount on, or NONE. */
static uint32_t bins_at_least(const bins *b, uint32_t amount)
{
    size_t i = amount / 64;
    if (i >= b->nwords)
        return NONE;
    uint64_t word = b->used[i] & (UINT64_MAX << amount % 64);
    while (!word && ++i < b->nwords)
        word = b->used[i];
    return word ? (uint32_t)(i * 64) + (uint32_t)__builtin_ctzll(word) : NONE;
}

/* The largest bin in use up to amount, or NONE. */
static uint32_t bins_at_most(const bins *b, uint32_t amount)
{
    size_t i = CRN_MIN(amount / 64, b->nwords - 1);
    uint64_t word = b->used[i];
    if (i == amount / 64)
        word &= UINT64_MAX >> (63 - amount % 64);
    while (!word && i-- > 0)
        word = b->used[i];
    return word ? (uint32_t)(i * 64) + 63 - (uint32_t)__builtin_clzll(word) : NONE;
}

static cairn_status bins_init(bins *b, const crn_pile *pile, size_t n)
{
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++)
        most = CRN_MAX(most, pile[i].amount);
    b->nwords = most / 64 + 1;
    CRN_TRY(crn_alloc(&b->pile, n));
    CRN_TRY(crn_alloc(&b->next, n));
    CRN_TRY(crn_alloc(&b->first, (size_t)most + 1));
    CRN_TRY(crn_alloc(&b->used, b->nwords));
    memcpy(b->pile, pile, n * sizeof *pile);
    memset(b->first, 0xff, ((size_t)most + 1) * sizeof *b->first);
    for (size_t i = n; i-- > 0;) /* the first pile of a bin is taken first */
        bins_put(b, (uint32_t)i);
    return CAIRN_OK;
}

typedef struct matching {
    bins supply, deficit;
    crn_cycle_batch *out;
    size_t n;
} matching;

/* Pour what fits of a supply from bin s into a deficit from bin d; what is left of either goes to
 * another bin. Returns what is left of the supply. */
static uint32_t pour(matching *m, uint32_t s, uint32_t d)
{
    uint32_t from = bins_take(&m->supply, s), to = bins_take(&m->deficit, d);
    uint32_t amount = CRN_MIN(s, d);
    m->out[m->n++] = (crn_cycle_batch){.runner = m->deficit.pile[to].who,
                                       .parent = m->supply.pile[from].who,
                                       .count = amount,
                                       .load = true};
    m->supply.pile[from].amount -= amount;
    m->deficit.pile[to].amount -= amount;
    bins_put(&m->supply, from);
    bins_put(&m->deficit, to);
    return s - amount;
}

/* Step 1. */
static void pair_up(matching *m)
{
    for (uint32_t a = bins_at_least(&m->supply, 1); a != NONE; a = bins_at_least(&m->supply, a + 1))
        while (bins_has(&m->supply, a) && bins_has(&m->deficit, a))
            pour(m, a, a);
}

/* Two bins of b that sum up to whole, the larger one first; false if there are none. */
static bool find_two(const bins *b, uint32_t whole, uint32_t *ret)
{
    for (uint32_t x = bins_at_most(b, whole - 1); x != NONE && x >= whole - x;
         x = bins_at_most(b, x - 1)) {
        uint32_t y = whole - x;
        if (x == y ? b->next[b->first[x]] != NONE : bins_has(b, y)) {
            *ret = x;
            return true;
        }
    }
    return false;
}

/* Step 2: wholes of one side, largest first, each with two of the other. */
static void fill_by_two(matching *m, bool deficits)
{
    bins *one = deficits ? &m->deficit : &m->supply, *two = deficits ? &m->supply : &m->deficit;
    uint32_t x;
    for (uint32_t a = bins_at_most(one, NONE); a != NONE && a > 1; a = bins_at_most(one, a - 1))
        while (bins_has(one, a) && find_two(two, a, &x)) {
            pour(m, deficits ? x : a, deficits ? a : x);
            pour(m, a - x, a - x);
        }
}

/* Step 3. With whole set, leave a supply that is larger than every deficit; false if it is. */
static bool place(matching *m, uint32_t s, bool whole)
{
    while (s > 0) {
        uint32_t d = bins_at_least(&m->deficit, s);
        if (d == NONE && whole)
            return false;
        s = pour(m, s, d == NONE ? bins_at_most(&m->deficit, NONE) : d);
    }
    return true;
}

/* All supplies, largest first. A supply that is left over stays larger than all deficits. */
static void place_all(matching *m, bool whole)
{
    for (uint32_t a = bins_at_most(&m->supply, NONE); a != NONE; a = bins_at_most(&m->supply, a))
        if (!place(m, a, whole) && --a == 0)
            return;
}

static cairn_status match_once(const crn_pile *supply, size_t ns, const crn_pile *deficit,
                               size_t nd, unsigned way, crn_cycle_batch *out, size_t *ret_n)
{
    matching m = {.out = out};
    cairn_status rc;
    CRN_TRY_OUT(rc, bins_init(&m.supply, supply, ns));
    CRN_TRY_OUT(rc, bins_init(&m.deficit, deficit, nd));
    pair_up(&m);
    fill_by_two(&m, way & 1);
    fill_by_two(&m, !(way & 1));
    if (way & 2)
        place_all(&m, true);
    place_all(&m, false);
    *ret_n = m.n;
out:
    bins_done(&m.supply);
    bins_done(&m.deficit);
    return rc;
}

cairn_status crn_match(const crn_pile *supply, size_t nsupplies, const crn_pile *deficit,
                       size_t ndeficits, crn_cycle_batch *out, size_t *ret_n)
{
    enum { WAYS = 4 };
    crn_cycle_batch *way;
    size_t n = 0;
    cairn_status rc = CAIRN_OK;
    *ret_n = 0;
    if (nsupplies == 0)
        return CAIRN_OK;
    CRN_TRY(crn_alloc(&way, nsupplies + ndeficits));
    for (unsigned i = 0; i < WAYS; i++) {
        CRN_TRY_OUT(rc, match_once(supply, nsupplies, deficit, ndeficits, i, way, &n));
        if (i == 0 || n < *ret_n) {
            memcpy(out, way, n * sizeof *way);
            *ret_n = n;
        }
    }
out:
    free(way);
    return rc;
}
