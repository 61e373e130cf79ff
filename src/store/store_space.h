/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Free space of a part file. It is derived from what the retained marks refer to, never stored.
 *
 * Writes want large extents; retention leaves small holes. A request is served, in this order, by a
 * hole that takes all of it, by the end of the file while the file stays below a limit, by the next
 * hole that takes at least one block, and by the end of the file again. So small scattered changes
 * become large writes until the file is 1/16 over its contents, and fill holes from then on.
 */
#ifndef CAIRN_STORE_SPACE_H
#define CAIRN_STORE_SPACE_H

#include "base/base.h"

typedef struct crn_extent {
    uint64_t off, nbytes;
} crn_extent;

typedef CRN_VEC(crn_extent) crn_extents;

typedef struct crn_space {
    crn_extents hole; /* sorted, disjoint, below end; emptied ones stay until the next give */
    crn_extents left; /* free, and known as such from the next give on */
    uint64_t end;     /* the file may be extended from here */
    uint64_t used;    /* bytes between the start and end that are in no hole */
    size_t cursor;    /* where the search for the next hole goes on */
    uint64_t largest; /* no hole is larger */
} crn_space;

/* Make all of [start, end of the last extent) free but for the extents in used, which is sorted on
 * the way; overlapping extents (blocks that several marks share) are fine. */
cairn_status crn_space_derive(crn_space *s, uint64_t start, crn_extents *used);

/* Take at least min and at most want bytes (all multiples of align, a power of two). */
crn_extent crn_space_take(crn_space *s, uint64_t want, uint64_t min, uint64_t align);

/* Give extents back. The list is sorted, and may grow, on the way. */
cairn_status crn_space_give(crn_space *s, crn_extents *list);

/* Give one extent back, later: with the next give. Never fails; without memory the next derive
 * finds it. */
void crn_space_leave(crn_space *s, uint64_t off, uint64_t nbytes);

void crn_space_done(crn_space *s);

#endif
