/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A hash index: open addressing, at most half full.
 */
#include "base/base.h"

#include <assert.h>
#include <string.h>

#define XXH_INLINE_ALL /* one short function: whoever links base need not link the library, too */
#include <xxhash.h>

uint64_t crn_hash_bytes(const void *data, size_t nbytes)
{
    return XXH3_64bits(data, nbytes);
}

uint64_t crn_hash_text(const char *text)
{
    return XXH3_64bits(text, strlen(text));
}

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

static size_t slot_of(const crn_index *x, uint64_t hash, size_t at)
{
    size_t i = (uint32_t)hash & (x->nslots - 1);
    while (x->slot[i].at != (uint32_t)at + 1) {
        assert(x->slot[i].at > 0);
        i = (i + 1) & (x->nslots - 1);
    }
    return i;
}

void crn_index_move(crn_index *x, uint64_t hash, size_t from, size_t to)
{
    x->slot[slot_of(x, hash, from)].at = (uint32_t)to + 1;
}

/* What stands behind the gap, and would not be found across it, moves up. */
void crn_index_remove(crn_index *x, uint64_t hash, size_t at)
{
    const size_t mask = x->nslots - 1;
    size_t gap = slot_of(x, hash, at);
    for (size_t i = (gap + 1) & mask; x->slot[i].at > 0; i = (i + 1) & mask) {
        const size_t want = x->slot[i].hash & mask;
        if (((i - want) & mask) >= ((i - gap) & mask)) {
            x->slot[gap] = x->slot[i];
            gap = i;
        }
    }
    x->slot[gap] = (struct crn_index_slot){0};
    x->n--;
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

void crn_index_clear(crn_index *x)
{
    if (x->nslots > 0)
        memset(x->slot, 0, crn_index_nbytes(x));
    x->n = 0;
}
