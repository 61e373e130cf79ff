/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The event log of a run (docs/format/events.md).
 */
#ifndef CAIRN_CMD_EVENTS_H
#define CAIRN_CMD_EVENTS_H

#include "cmd/cmd_contents.h"
#include "report/report.h"

/* The log of a run, as crn_report_read; CMD_UNKNOWN after saying why it cannot be read: then *ret
 * is NULL. */
int cmd_log_read(cairn_trail *trail, size_t run, crn_report_log **ret);

/* Its legs; none if log is NULL. */
json_t *cmd_log_legs(const crn_report_log *log);

/* The events about one mark, as crn_report_events, likewise. */
int cmd_events_read(cairn_trail *trail, size_t run, uint64_t version, crn_event_list *ret);

/* The last one of this kind, or NULL; of CRN_EVENT_RAISED to level, if given. */
const crn_event *cmd_events_find(const crn_event_list *events, crn_event_kind kind,
                                 const char *level);

/* A table of the run's legs (crn_report_legs): when each began, where it came from, what it left,
 * how it ended and what that cost. In short: the last three. */
int cmd_print_legs(json_t *legs, int code);
int cmd_print_legs_short(json_t *legs, int code);

#endif
