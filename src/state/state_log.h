/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The log of a shelf.
 */
#ifndef CAIRN_STATE_LOG_H
#define CAIRN_STATE_LOG_H

#include "event/event.h"
#include "state/state_shelf.h"

cairn_status crn_state_log_create(state_log **ret);
void crn_state_log_free(state_log *l); /* NULL is allowed */

/* Append a line to a file that several processes append to. */
cairn_status crn_append_line(int dirfd, const char *name, const char *line);

/* A state was put, copied here or dropped, or was not: rc, and the thread's record has why. Only
 * failures are notable. */
void crn_log_state(cairn_shelf *s, const state_entry *e, const char *what, double seconds,
                   cairn_status rc);

/* Parts were adopted, or the index was made anew; both are notable. */
void crn_log_shelf(cairn_shelf *s, const char *what, uint32_t writer, uint64_t nstates);

#endif
