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

/* A state as a whole, and the slice of it that this process has in memory: bytes first to end. */
typedef struct crn_state_layout {
    crn_state_fields field; /* offset 0 and count global */
    uint64_t nbytes, nrows;
    uint64_t first, end; /* all of it, but for ranks of a server */
} crn_state_layout;

cairn_status crn_layout_init(crn_state_layout *l, const crn_state_fields *f);
void crn_layout_done(crn_state_layout *l);

/* Do the fields of a rank belong to this layout? CAIRN_EMISMATCH says which does not, and why. */
cairn_status crn_layout_check(const crn_state_layout *l, const crn_state_fields *f);

uint64_t crn_field_nbytes(const crn_state_field *f); /* of the piece */

/* --- slices --------------------------------------------------------------------------------- */

/*
 * Each rank of a server has one slice of every state. Fields are cut into stretches of
 * CRN_LAYOUT_STRETCH elements (the last one of a field may be shorter), numbered through all
 * fields; of T stretches, rank k of n has those from k T / n to (k + 1) T / n, rounded down. An
 * update goes by stretches, so that its bits do not depend on the number of ranks.
 */
enum { CRN_LAYOUT_STRETCH = 4096 };

void crn_layout_slice(crn_state_layout *l, uint32_t rank, uint32_t nranks);
uint64_t crn_slice_nbytes(const crn_state_layout *l);

/* The elements of a field that are in the slice: *ret_first to *ret_end. */
void crn_slice_range(const crn_state_layout *l, size_t field, uint64_t *ret_first,
                     uint64_t *ret_end);

/* Where an element of the slice is, in bytes from the slice's beginning. */
uint64_t crn_slice_at(const crn_state_layout *l, size_t field, uint64_t element);

/* The slice of a field as boxes of the global array, at most CRN_SLICE_BOXES; each box's data lies
 * in the slice one behind the other. */
enum { CRN_SLICE_BOXES = 15 };
size_t crn_slice_boxes(const crn_state_layout *l, size_t field, const unsigned char *slice,
                       cairn_field *box);

/* What of a rank's piece of a field is in the slice: elements *ret_first to *ret_end of the piece,
 * in its own order. */
void crn_part_range(const crn_state_layout *l, size_t field, const crn_state_field *piece,
                    uint64_t *ret_first, uint64_t *ret_end);
uint64_t crn_part_nbytes(const crn_state_layout *l, size_t field, const crn_state_field *piece);

/* That part, out of the slice or into it; data has crn_part_nbytes. */
void crn_part_read(const crn_state_layout *l, size_t field, const crn_state_field *piece,
                   const unsigned char *slice, void *data);
void crn_part_write(const crn_state_layout *l, size_t field, const crn_state_field *piece,
                    const void *data, unsigned char *slice);

/* Element i of an array of float32 or float64. */
double crn_element(const unsigned char *at, cairn_type type, uint64_t i);

/* The rows of a state, and back. */
void crn_rows_read(const crn_state_layout *l, const unsigned char *state, double *row);
void crn_rows_write(const crn_state_layout *l, const double *row, unsigned char *state);

/* The first row of the slice that is not finite or out of its range: a sentence into name; false:
 * none is. */
bool crn_rows_find_bad(const crn_state_layout *l, const unsigned char *slice, char *name,
                       size_t cap);

/* The row of an element of a field; false: there is none. */
bool crn_row_of(const crn_state_layout *l, const char *field, uint64_t index, uint64_t *ret);

/* For the calls of <cairn/state.h>: field i of a state. */
cairn_field crn_layout_field(const crn_state_layout *l, size_t i, const unsigned char *state);

#endif
