/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory that a piece of a program must not read: whole pages of it are made unreadable, and the
 * first read of each range is noted, after which the range is as it was. One guard at a time in a
 * process.
 */
#ifndef CAIRN_REGION_GUARD_H
#define CAIRN_REGION_GUARD_H

#include "base/base.h"

/* Whole pages of memory that belong to one variable. */
typedef struct crn_guarded {
    size_t var;
    unsigned char *at;
    size_t nbytes;
    _Atomic uintptr_t read;  /* the address that was read first; 0: none */
    _Atomic unsigned access; /* that is allowed now */
} crn_guarded;

typedef struct crn_guard {
    CRN_VEC(crn_guarded) range; /* by address, once it is on */
    bool on, refused;           /* refused: another guard is on, or there is no handler */
} crn_guard;

/* Add the whole pages of some memory, while the guard is off. */
cairn_status crn_guard_add(crn_guard *g, size_t var, unsigned char *at, size_t nbytes);

/* From now on; and no more, after which the ranges say what was read, until the guard is cleared.
 */
void crn_guard_on(crn_guard *g);
void crn_guard_off(crn_guard *g);
void crn_guard_clear(crn_guard *g);
void crn_guard_done(crn_guard *g);

#endif
