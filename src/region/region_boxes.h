/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sets of elements of one array, as boxes that do not overlap.
 */
#ifndef CAIRN_REGION_BOXES_H
#define CAIRN_REGION_BOXES_H

#include "ckpt/ckpt.h"

typedef CRN_VEC(crn_box) crn_boxes;

/* Add what the set does not have yet. On failure the set has all of it, or none. */
cairn_status crn_boxes_add(crn_boxes *s, const crn_box *b);

/* Remove; what the set had of b is appended to *cut, unless that is NULL. On failure the set is as
 * it was. */
cairn_status crn_boxes_remove(crn_boxes *s, const crn_box *b, crn_boxes *cut);

/* Let to be what from is. */
cairn_status crn_boxes_copy(crn_boxes *to, const crn_boxes *from);

uint64_t crn_boxes_volume(const crn_boxes *s); /* in elements */

#endif
