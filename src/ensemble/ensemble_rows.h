/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rows of a state where it is: on the ranks of a runner, each of which has pieces of its fields.
 * A row has the same number on any layout (ensemble_layout.h).
 */
#ifndef CAIRN_ENSEMBLE_ROWS_H
#define CAIRN_ENSEMBLE_ROWS_H

#include "ensemble/ensemble_layout.h"

/* Called for an element of a piece that is a row: where it is in the piece. */
typedef void crn_row_fn(void *arg, uint64_t row, size_t at);

/* Go through the rows of a piece, whose field's first row is given. */
void crn_piece_rows(const crn_state_field *piece, uint64_t first, crn_row_fn *fn, void *arg);

/* The first row of each field of a layout; fields that are carried have none: UINT64_MAX. */
cairn_status crn_layout_first_rows(const crn_state_layout *l, uint64_t **ret);

double crn_element_get(cairn_type type, const void *data, size_t at);
void crn_element_set(cairn_type type, void *data, size_t at, double value);

#endif
