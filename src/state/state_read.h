/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A state on its way into memory.
 */
#ifndef CAIRN_STATE_READ_H
#define CAIRN_STATE_READ_H

#include "state/state_shelf.h"

enum { STATE_WINDOW = CRN_BLOCK_MAX }; /* bytes of memory: one block of any size at least */

typedef struct getting {
    cairn_shelf *shelf;
    crn_state_name name;
    state_entry entry;
    const cairn_field *field;
    size_t n;
    crn_var_spec *spec;    /* of the fields */
    bool *found;           /* some process has put it */
    uint64_t *got;         /* bytes of it so far */
    unsigned char *window; /* blocks of which parts are wanted */
    crn_err why;           /* the last try failed */
} getting;

/* Get what a process's piece v has of the box that field i asks for. */
cairn_status crn_get_box(getting *g, crn_part *part, const crn_mark *m, crn_var *v, size_t i);

#endif
