/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A state on its way into memory.
 */
#ifndef CAIRN_STATE_READ_H
#define CAIRN_STATE_READ_H

#include "redist/redist.h"
#include "state/state_shelf.h"

#define STATE_NO_FIELD SIZE_MAX

typedef struct getting {
    cairn_shelf *shelf;
    crn_state_name name;
    state_entry entry;
    const cairn_field *field;
    size_t n;
    crn_var_spec *spec; /* of the fields */
    size_t *next;       /* the next field of the same name, or STATE_NO_FIELD */
    bool *follows;      /* it is the next of another one */
    bool *found;        /* some process has put it */
    uint64_t *got;      /* bytes of it so far */
    crn_claims *claim;  /* boxes of it so far */
    uint64_t *before;   /* items of a list that the shares before have; cells that were found */

    /* Of cairn_state_cells: */
    const char *cells_of;
    size_t ncells, ncounted;
    const uint64_t *cell;
    uint64_t *nitems;

    unsigned char *window; /* of verifying */
    crn_err why;           /* the last try failed */
} getting;

/* Do what get does with a state; when that fails, see whether it is still the one that was found.
 */
cairn_status crn_get_or_gone(getting *g, cairn_status (*get)(getting *g));

/* Get what a process's variable v has of what is asked for: of an array, boxes of field first and
 * those of the same name; items of a list; items of cells. */
cairn_status crn_get_boxes(getting *g, crn_part *part, const crn_mark *m, crn_var *v, size_t first);
cairn_status crn_get_list(getting *g, crn_part *part, const crn_mark *m, crn_var *v, size_t i);
cairn_status crn_get_cells(getting *g, crn_part *part, const crn_mark *m, crn_var *v, size_t i);

/* Note how many items those of the cells have that are v's. */
cairn_status crn_count_cells(getting *g, crn_part *part, const crn_mark *m, crn_var *v);

#endif
