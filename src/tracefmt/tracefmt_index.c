/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A hash index: open addressing, at most half full.
 */
#include "tracefmt/tracefmt.h"

static void put(crn_index *x, struct crn_index_slot slot)
{
    size_t i = slot.hash & (x->nslots - 1);
    while (x->slot[i].at > 0)
        i = (i + 1) & (x->nslots - 1);
    x->slot[i] = slot;
}

static cairn_status grow(crn_index *x)
{
    if ((x->n + 1) * 2 <= x->nslots)
        return CAIRN_OK;
    crn_index bigger = {.nslots = CRN_MAX(x->nslots * 2, 8), .n = x->n};
    CRN_TRY(crn_alloc(&bigger.slot, bigger.nslots));
    for (size_t i = 0; i < x->nslots; i++) {
        if (x->slot[i].at > 0)
            put(&bigger, x->slot[i]);
    }
    free(x->slot);
    *x = bigger;
    return CAIRN_OK;
}

cairn_status crn_index_add(crn_index *x, uint64_t hash, size_t at)
{
    CRN_TRY(grow(x));
    put(x, (struct crn_index_slot){.hash = (uint32_t)hash, .at = (uint32_t)at + 1});
    x->n++;
    return CAIRN_OK;
}

bool crn_index_next(const crn_index *x, uint64_t hash, size_t *probe, uint32_t *ret)
{
    while (x->nslots > 0) {
        const struct crn_index_slot *s = &x->slot[((uint32_t)hash + (*probe)++) & (x->nslots - 1)];
        if (s->at == 0)
            return false;
        if (s->hash == (uint32_t)hash) {
            *ret = s->at - 1;
            return true;
        }
    }
    return false;
}
