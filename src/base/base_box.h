/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Boxes of a global array: pure geometry, no communication and no files.
 *
 * An array's elements lie in memory with the last index fastest. A box is a range of indices in
 * each dimension; it is empty when one of the ranges is.
 */
#ifndef CAIRN_BASE_BOX_H
#define CAIRN_BASE_BOX_H

#include <stdbool.h>
#include <stdint.h>

enum { CRN_DIMS_MAX = 8 };

typedef struct crn_box {
    uint32_t ndims;
    uint64_t lo[CRN_DIMS_MAX], hi[CRN_DIMS_MAX]; /* from lo up to, not including, hi */
} crn_box;

/* What a piece at offset of count elements covers; offset NULL: from 0 on. */
crn_box crn_box_of(uint32_t ndims, const uint64_t *offset, const uint64_t *count);
uint64_t crn_box_volume(const crn_box *b);

/* What both have; false when that is nothing. */
bool crn_box_cut(const crn_box *a, const crn_box *b, crn_box *ret);

/* "[0:4, 6:8]"; as much of it as fits. Returns buf. */
enum { CRN_BOX_TEXT = 192 };
char *crn_box_format(const crn_box *b, char buf[CRN_BOX_TEXT]);

/* --- stretches ---------------------------------------------------------------------------- */

/*
 * A walk over a box that two arrays have in common, by stretches of elements that lie one behind
 * the other in both; in the order of the first array, so that places there ascend.
 */
typedef struct crn_stretches {
    uint64_t from, to; /* the stretch found: where it starts in each array, in elements, */
    uint64_t n;        /* and how many elements it has */
    uint32_t nouter;   /* dimensions that the walk counts through; the rest is in the stretches */
    uint64_t count[CRN_DIMS_MAX], at[CRN_DIMS_MAX];
    uint64_t from_stride[CRN_DIMS_MAX], to_stride[CRN_DIMS_MAX];
    bool begun;
} crn_stretches;

/* common, not empty, lies within both boxes, which the arrays fill. */
crn_stretches crn_stretches_of(const crn_box *common, const crn_box *from, const crn_box *to);
bool crn_stretches_next(crn_stretches *r); /* false: no more */

/* Without walking, of stretches that next was never called for: how many there are, and where the
 * k-th one, from 0 on, starts in each array. */
uint64_t crn_stretches_count(const crn_stretches *r);
void crn_stretches_at(const crn_stretches *r, uint64_t k, uint64_t *ret_from, uint64_t *ret_to);

#endif
