/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of a member: fields, where they lie in the server's memory, and which pieces of them
 * the ranks of a runner have. On the server a state is one stretch of bytes, field after field,
 * each a whole global array. Its rows are the elements of assimilated fields and parameters, in the
 * order of their declaration, as the filter sees them.
 */
#ifndef CAIRN_ENSEMBLE_LAYOUT_H
#define CAIRN_ENSEMBLE_LAYOUT_H

#include <cairn/ensemble.h>

#include "base/base.h"

enum { CRN_MEMBER_FIELDS = 256 };

typedef struct crn_state_field {
    char name[64];
    cairn_role role;
    cairn_type type;
    int ndims; /* 1 to 8 */
    uint64_t global[8];
    uint64_t offset[8], count[8]; /* of a rank's piece */
    uint64_t at;                  /* of a layout: where its bytes begin in a state, */
    double low, high;             /* and what its values may be */
} crn_state_field;

typedef CRN_VEC(crn_state_field) crn_state_fields;

/* Fields on the wire. What others say is checked; false: it is not what crn_fields_put makes. */
void crn_fields_put(crn_buf *b, const crn_state_fields *f);
cairn_status crn_fields_get(const void *data, size_t n, crn_state_fields *ret);

/* A state as a whole. */
typedef struct crn_state_layout {
    crn_state_fields field; /* offset 0 and count global */
    uint64_t nbytes, nrows;
} crn_state_layout;

cairn_status crn_layout_init(crn_state_layout *l, const crn_state_fields *f);
void crn_layout_done(crn_state_layout *l);

/* Do the fields of a rank belong to this layout? CAIRN_EMISMATCH says which does not, and why. */
cairn_status crn_layout_check(const crn_state_layout *l, const crn_state_fields *f);

uint64_t crn_field_nbytes(const crn_state_field *f); /* of the piece */

/* A rank's piece of a field, out of a state or into it; data has crn_field_nbytes. */
void crn_piece_read(const crn_state_layout *l, size_t field, const crn_state_field *piece,
                    const unsigned char *state, void *data);
void crn_piece_write(const crn_state_layout *l, size_t field, const crn_state_field *piece,
                     const void *data, unsigned char *state);

/* Element i of an array of float32 or float64. */
double crn_element(const unsigned char *at, cairn_type type, uint64_t i);

/* The rows of a state, and back. */
void crn_rows_read(const crn_state_layout *l, const unsigned char *state, double *row);
void crn_rows_write(const crn_state_layout *l, const double *row, unsigned char *state);

/* The first row that is not finite or out of its range: a sentence into name; false: none is. */
bool crn_rows_find_bad(const crn_state_layout *l, const unsigned char *state, char *name,
                       size_t cap);

/* The row of an element of a field; false: there is none. */
bool crn_row_of(const crn_state_layout *l, const char *field, uint64_t index, uint64_t *ret);

/* For the calls of <cairn/state.h>: field i of a state. */
cairn_field crn_layout_field(const crn_state_layout *l, size_t i, const unsigned char *state);

#endif
