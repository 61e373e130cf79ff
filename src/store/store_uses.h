/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Who needs which piece of a part with states. Marks are a chain, in which the next one tells what
 * the one before alone needed. States come and go in any order and share blocks with any other, so
 * a writer counts, for each piece, how often the retained states refer to it: what nobody refers to
 * any more is free, without a look at the others. The counts are made when the part is opened to
 * write and never stored. They also know blocks by their digests, so that equal ones are stored
 * once.
 */
#ifndef CAIRN_STORE_USES_H
#define CAIRN_STORE_USES_H

#include "store/store_part.h"

typedef struct crn_uses crn_uses;

/* Begin to count anew, in a part with states; others have no counts. */
cairn_status crn_uses_renew(crn_part *part);
void crn_uses_free(crn_uses *u); /* NULL is allowed */

/* A mark refers to n pieces, those of crn_mark_extents; its tables are loaded. */
cairn_status crn_uses_add(crn_uses *u, const crn_extent *piece, size_t n, const crn_mark *m);

/* It does so no longer: what is free now is appended to *ret. */
cairn_status crn_uses_remove(crn_uses *u, const crn_extent *piece, size_t n, crn_extents *ret);

/* A block of so many bytes in memory with this digest, or NULL. Crumbs are not known, nor what only
 * a decoder that knows the kind of values can read. */
const crn_block *crn_uses_find(const crn_uses *u, const crn_digest *origin, uint32_t nbytes);

/* The block that lies at off is damaged: nobody is to share it any more. */
void crn_uses_distrust(crn_uses *u, uint64_t off);

#endif
