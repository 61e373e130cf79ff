/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the event log of a run tells (docs/format/events.md).
 */
#ifndef CAIRN_CMD_EVENTS_H
#define CAIRN_CMD_EVENTS_H

#include "cmd/cmd_contents.h"
#include "report/report.h"

/* The events of a run, as crn_report_events; NULL after saying why they cannot be read. */
json_t *cmd_events_read(cairn_trail *trail, size_t run, crn_detail detail, uint64_t version);

/* The last event of this kind about a mark, or NULL; at level, unless that is NULL. */
json_t *cmd_events_find(json_t *events, const char *kind, uint64_t version, const char *level);

/* Blocks and bytes of a "mark" event. */
cmd_totals cmd_event_totals(json_t *event);

/* A table of the run's legs (crn_report_legs): when each began, where it came from, what it left,
 * how it ended and what that cost. In short: the last three. */
int cmd_print_legs(json_t *legs, int code);
int cmd_print_legs_short(json_t *legs, int code);

#endif
