/* SPDX-License-Identifier: BSD-3-Clause
 *
 * report: what a trail tells about its runs, as facts for other programs and for people. Part of
 * the command, not of the library: it stands on the public headers and base.
 */
#ifndef CAIRN_REPORT_H
#define CAIRN_REPORT_H

#include <cairn/planner.h>
#include <cairn/trail.h>
#include <jansson.h>

#include "base/base.h"

/* What marks did with each variable is most of a long log: of which marks is it wanted? */
typedef enum crn_detail {
    CRN_DETAIL_NONE,
    CRN_DETAIL_MARK, /* of one version */
    CRN_DETAIL_ALL
} crn_detail;

/* The events of a run, oldest first, as a JSON array (docs/format/events.md); lines that are not
 * events are left out. version counts for CRN_DETAIL_MARK only. */
cairn_status crn_report_events(cairn_trail *trail, size_t run, crn_detail detail, uint64_t version,
                               json_t **ret);

/*
 * The legs of a run from its events, oldest first: a JSON array as cairn-show(1) describes it.
 * NULL when there is no memory, as with json_pack.
 */
json_t *crn_report_legs(json_t *events);

/*
 * All marks that were taken, likewise, oldest first: as cairn-report(1) describes them.
 */
json_t *crn_report_marks(json_t *events);

/* What the planner of a run thought, and what would have been best for it, likewise: as
 * cairn-report(1) describes it. */
json_t *crn_report_plan(cairn_trail *trail, size_t run, json_t *events);

/*
 * Does the model describe what became of a run? It tells what to expect over a long time: a run of
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

/* Is this event of this kind? */
bool crn_event_is(json_t *event, const char *kind);

/* A number of an event, or of any object; 0 when it has none of this name, or one that cannot be:
 * a log may have been damaged. */
double crn_event_number(json_t *event, const char *name);

/* The same of things that are counted: at least 0. */
uint64_t crn_event_count(json_t *event, const char *name);

/* The version of the mark that an event tells of, which a double could not tell from its
 * neighbours; -1 when it has none. */
json_int_t crn_event_version(json_t *event);

#endif
