/* SPDX-License-Identifier: BSD-3-Clause
 *
 * report: facts about the runs of a trail, for programs and for people. Part of
 * the command, not of the library: it stands on the public headers, base and event.
 */
#ifndef CAIRN_REPORT_H
#define CAIRN_REPORT_H

#include <cairn/planner.h>
#include <cairn/trail.h>
#include <jansson.h>

#include "base/base.h"
#include "event/event.h"

/* What marks did with each variable is most of a long log: of which marks is it wanted? */
typedef enum crn_detail {
    CRN_DETAIL_NONE,
    CRN_DETAIL_MARK, /* of one version */
    CRN_DETAIL_ALL
} crn_detail;

/* The events of a run, oldest first, for crn_events_done; lines that are not events are left out.
 * version counts for CRN_DETAIL_MARK only. After an error there are none. */
cairn_status crn_report_events(cairn_trail *trail, size_t run, crn_detail detail, uint64_t version,
                               crn_event_list *ret);

/*
 * The legs of a run from its events, oldest first: a JSON array as cairn-show(1) describes it.
 * NULL when there is no memory, as with json_pack.
 */
json_t *crn_report_legs(const crn_event_list *events);

/*
 * All marks that were taken, likewise, oldest first: as cairn-report(1) describes them.
 */
json_t *crn_report_marks(const crn_event_list *events);

/* What the planner of a run thought, and what would have been best for it, likewise: as
 * cairn-report(1) describes it. */
json_t *crn_report_plan(cairn_trail *trail, size_t run, const crn_event_list *events);

/*
 * Does the model describe what became of a run? It predicts the mean over a long time: a run of
 * a few seconds, or one that failed once early, may have gone quite differently. expected: the
 * efficiency that the model gives for what the run did; took: the seconds that the model needs
 * through the failures that it had, or 0 when it does not come to an end.
 */
bool crn_report_fits(const cairn_plan_past *past, double expected, double took);

/* Runs [first, end) of a trail, as cairn-report(1) describes them, appended to the array runs. */
cairn_status crn_report_runs(cairn_trail *trail, const char *name, size_t first, size_t end,
                             json_t *runs);

/* Compare two runs, TRAIL/RUN each, within a bound (NULL: as they were captured with): an object as
 * cairn-report(1) describes it. */
cairn_status crn_report_compare(const char *first, const char *second, const char *bound,
                                json_t **ret);

/* A page that shows data, an object as cairn-report(1) describes it, of which details of old marks
 * are dropped; behind what page has. */
cairn_status crn_report_page(json_t *data, crn_buf *page);

#endif
