/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A hash index of an array: from a hash to the positions of the items that may have it. Whoever
 * asks compares the items.
 *
 *     size_t probe = 0;
 *     uint32_t at;
 *     while (crn_index_next(&x, hash, &probe, &at))
 *         if (item[at] is the one)
 *             return at;
 */
#ifndef CAIRN_BASE_INDEX_H
#define CAIRN_BASE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/base_err.h"

typedef struct crn_index {
    struct crn_index_slot {
        uint32_t hash;
        uint32_t at; /* + 1; 0: free */
    } * slot;
    size_t nslots, n;
} crn_index;

/* Hashes for an index, XXH3: the same on all machines, and never stored. */
uint64_t crn_hash_bytes(const void *data, size_t nbytes);
uint64_t crn_hash_text(const char *text);

/* A hash and one number more, for keys of a few numbers. */
static inline uint64_t crn_hash_mix(uint64_t hash, uint64_t number)
{
    hash = (hash ^ number) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* An item with this hash is at a position. CAIRN_ENOMEM. */
cairn_status crn_index_add(crn_index *x, uint64_t hash, size_t at);

/* The item with this hash at a position has left it; or it went to another one. It must be there.
 */
void crn_index_remove(crn_index *x, uint64_t hash, size_t at);
void crn_index_move(crn_index *x, uint64_t hash, size_t from, size_t to);

/* The next position that may have it; false: there are no more. *probe is 0 at first. */
bool crn_index_next(const crn_index *x, uint64_t hash, size_t *probe, uint32_t *ret);

/* Forget the items and keep the memory. */
void crn_index_clear(crn_index *x);

static inline void crn_index_done(crn_index *x)
{
    free(x->slot);
    *x = (crn_index){0};
}

static inline size_t crn_index_nbytes(const crn_index *x)
{
    return x->nslots * sizeof *x->slot;
}

#endif
