/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Marks that have less than all of a variable: bringing back what they have.
 */
#ifndef CAIRN_CKPT_KEPT_H
#define CAIRN_CKPT_KEPT_H

#include "ckpt/ckpt_session.h"

/* The arrays that boxes lie in: what a rank has in the mark (piece, in far indices; NULL: what v
 * is), and the memory of v. */
void crn_kept_place(const ckpt_var *v, const crn_kept *k, const crn_box *piece, crn_box *ret_piece,
                    crn_box *ret_memory);

/* A box in the piece's indices; false: the boxes are not of an array of its extents. */
bool crn_kept_box_at(const crn_kept *k, const crn_kept_box *b, const crn_box *piece, crn_box *ret);

/* Pull what the mark of a rank has of v; of pieces, what lies in wanted (NULL: all). As above. */
cairn_status crn_kept_pull(crn_pulls *p, uint32_t rank, const ckpt_var *v, const crn_kept *k,
                           const crn_box *old_piece, const crn_box *wanted);

#endif
