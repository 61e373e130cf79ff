/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ckpt: what modules above the public line may use of it besides <cairn/ckpt.h>. Row 4.
 */
#ifndef CAIRN_CKPT_CKPT_H
#define CAIRN_CKPT_CKPT_H

#include <cairn/ckpt.h>

#include "base/base.h"
#include "comm/comm.h"
#include "event/event.h"
#include "store/store.h"

/* What such a module keeps with a session, zeroed at first. */
typedef struct crn_guest {
    void *self;
    void (*done)(void *self);  /* the session is closed */
    bool (*due)(void *self);   /* answers cairn_due, which is collective; NULL: the session does */
    bool (*holds)(void *self); /* the program is not to leave yet; NULL: it may */
    void (*leave)(void *self); /* the session is about to be closed, all ranks are here; or NULL */
} crn_guest;

crn_guest *crn_ckpt_guest(cairn *c);

crn_comm *crn_ckpt_comm(const cairn *c); /* spoken on by the program's thread */
const crn_log *crn_ckpt_log(const cairn *c);

/* Errors of the public line: keep the thread's record in the session and return the code. */
int crn_ckpt_result(cairn *c, cairn_status rc);

/* A line for the run's event log; rank 0 writes, all ranks release the JSON members of e. */
void crn_ckpt_event(cairn *c, crn_event *e);

/* Are declarations to be checked (region.check)? */
bool crn_ckpt_checks(const cairn *c);

/* Where a variable's elements are: the piece of a global array within larger memory; of another
 * variable both have no dimensions, and memory is just that. CAIRN_ENOTFOUND. */
cairn_status crn_ckpt_memory(cairn *c, const char *name, unsigned char **ret_data,
                             crn_box *ret_piece, crn_box *ret_memory);

/* Is a mark due, as the session sees it? Collective. */
bool crn_ckpt_ask_due(cairn *c);

/* Is the program to leave, and no mark has been taken since that was known? */
bool crn_ckpt_wants_last(const cairn *c);

/* The next variable that the program has protected, or NULL; *i is 0 at first. */
const char *crn_ckpt_next_var(const cairn *c, size_t *i);

/* The elements of a variable: of a piece of a global array the piece, else of one dimension.
 * CAIRN_ENOTFOUND. */
cairn_status crn_ckpt_shape(cairn *c, const char *name, crn_box *ret, uint64_t *ret_item);

#endif
