/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The size of blocks that writes least: small ones follow changes closely, large ones have short
 * tables.
 */
#include "plan/plan.h"

/* A size within so much of the best is as good, and of those the largest needs the least memory. */
static const double NEARLY = 1.1;
/* Marks within which a change of size has to repay the full write that it costs. */
static const double MARKS_TO_REPAY = 16;

static uint64_t bytes_of(size_t k)
{
    return (uint64_t)CRN_PLAN_GRAIN << k;
}

static bool any(const bool *changed, size_t n)
{
    size_t i = 0;
    while (i < n && !changed[i])
        i++;
    return i < n;
}

void crn_plan_blocks_add(crn_plan_blocks *b, const bool *changed, size_t n)
{
    b->looked += n * (uint64_t)CRN_PLAN_GRAIN;
    for (size_t k = 0; k < CRN_PLAN_BLOCK_SIZES; k++) {
        const size_t ngrains = (size_t)1 << k;
        for (size_t i = 0; i < n; i += ngrains) {
            const size_t part = CRN_MIN(ngrains, n - i);
            if (any(changed + i, part))
                b->changed[k] += part * (uint64_t)CRN_PLAN_GRAIN;
        }
    }
}

double crn_plan_blocks_cost(const crn_plan_blocks *b, uint64_t nbytes, uint32_t entry,
                            uint64_t block)
{
    size_t k = 0;
    while (k + 1 < CRN_PLAN_BLOCK_SIZES && bytes_of(k) < block)
        k++;
    if (b->looked == 0 || b->changed[k] == 0) /* a variable that did not change writes no table */
        return 0;
    const uint64_t nblocks = nbytes / bytes_of(k) + (nbytes % bytes_of(k) != 0);
    return (double)b->changed[k] / (double)b->looked * (double)nbytes +
           (double)nblocks * (double)entry;
}

uint64_t crn_plan_blocks_choose(const crn_plan_blocks *b, uint64_t nbytes, uint32_t entry,
                                uint64_t smallest, uint64_t now)
{
    double best = crn_plan_blocks_cost(b, nbytes, entry, now);
    uint64_t choice = now;
    for (size_t k = 0; k < CRN_PLAN_BLOCK_SIZES; k++) {
        const double cost = crn_plan_blocks_cost(b, nbytes, entry, bytes_of(k));
        if (bytes_of(k) >= smallest && cost < best)
            best = cost;
    }
    for (size_t k = 0; k < CRN_PLAN_BLOCK_SIZES; k++)
        if (bytes_of(k) >= smallest &&
            crn_plan_blocks_cost(b, nbytes, entry, bytes_of(k)) <= NEARLY * best)
            choice = bytes_of(k);
    const double gain = crn_plan_blocks_cost(b, nbytes, entry, now) -
                        crn_plan_blocks_cost(b, nbytes, entry, choice);
    return gain > 0 && gain * MARKS_TO_REPAY >= (double)nbytes ? choice : now;
}
