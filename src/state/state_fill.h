/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Filling memory with stretches of a variable, whose bytes come in blocks. Stretches come in
 * ascending order, so each block is read once, checked, and what is wanted of it is copied while
 * the processor's cache has it. Many whole blocks go straight to where they are wanted. Memory for
 * the others is bounded.
 */
#ifndef CAIRN_STATE_FILL_H
#define CAIRN_STATE_FILL_H

#include "state/state_shelf.h"

/* Consecutive blocks of the window; and a piece of it that is wanted elsewhere. */
typedef struct fill_run {
    uint64_t first, n;
} fill_run;

typedef struct fill_copy {
    uint64_t from; /* byte of the window */
    unsigned char *to;
    uint64_t nbytes;
} fill_copy;

typedef struct state_fill {
    const crn_part_options *opt;
    crn_part *part;
    const crn_mark *mark;
    crn_var *var;
    unsigned char *window;
    uint64_t room, nblocks; /* blocks that the window holds, and has */
    CRN_VEC(fill_run) run;
    CRN_VEC(fill_copy) copy;
} state_fill;

/* Begin with a variable of a mark, which must be declared as long as the fill lasts. */
cairn_status crn_fill_begin(state_fill *f, const cairn_shelf *s, crn_part *part, const crn_mark *m,
                            crn_var *v);

/* Let to have nbytes of the variable from byte from on; the last stretches may still be missing
 * until crn_fill_end. */
cairn_status crn_fill_add(state_fill *f, uint64_t from, unsigned char *to, uint64_t nbytes);

/* The end; rc is how it went so far, and is returned if it is a failure. */
cairn_status crn_fill_end(state_fill *f, cairn_status rc);

#endif
