/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Poison: what stands in an element whose value a program says it does not need. Words of eight
 * bytes become numbers that are none (quiet NaNs), with the variable and the index in their
 * payload: a sum, a product or a copy of one is such a NaN again, and tells what was read. Words of
 * four bytes have room for the variable and the lower bits of the index; shorter elements get bytes
 * that differ from region to region.
 */
#ifndef CAIRN_REGION_POISON_H
#define CAIRN_REGION_POISON_H

#include "base/base.h"

/* An element by its variable and its index, as of handles. */
typedef struct crn_poison {
    size_t var;
    uint64_t index;
} crn_poison;

/* Poison an element of so many bytes, or ask whether it still has the poison that it was given with
 * the same salt. */
void crn_poison_put(unsigned char *at, size_t nbytes, crn_poison p, uint64_t salt);
bool crn_poison_is_left(const unsigned char *at, size_t nbytes, crn_poison p, uint64_t salt);

/* How often elements of this size must have been found with their poison, each time another, before
 * they were surely not written. */
unsigned crn_poison_certain(size_t nbytes);

/* Was this made from a poisoned element? It may have several words. near: where it is itself, for
 * words that have not all of the index. */
bool crn_poison_find(const unsigned char *at, size_t nbytes, uint64_t near, crn_poison *ret);

#endif
