/* SPDX-License-Identifier: BSD-3-Clause
 *
 * report: facts about the runs of a trail, for programs and for people. Part of
 * the command, not of the library: it stands on the public headers, base and event.
 */
#ifndef CAIRN_REPORT_H
#define CAIRN_REPORT_H

#include <cairn/planner.h>
#include <cairn/trail.h>

#include "base/base.h"
#include "event/event.h"

/* What one pass over the log of a run leaves in memory: its legs, and of each mark this. */
typedef struct crn_report_log crn_report_log;

typedef struct crn_logged_mark {
    uint64_t version;
    uint64_t line;   /* of its event, from 0 */
    size_t leg;      /* from 1 */
    double captured; /* when, in seconds since 1970 */
    double since;    /* seconds after the mark before it in its leg, or after the leg could work */
    double held;
    uint64_t nbytes, blocks, changed, written;
    bool abandoned; /* the run went on from an earlier one */
    bool failed;    /* to get to some level */
} crn_logged_mark;

/* Read the log of a run; lines that are not events are left out. */
cairn_status crn_report_read(cairn_trail *trail, size_t run, crn_report_log **ret);
void crn_report_log_free(crn_report_log *log); /* NULL is allowed */

/* The last mark of a version in the log, or NULL. */
const crn_logged_mark *crn_report_mark(const crn_report_log *log, uint64_t version);

/*
 * The legs of a run, oldest first: a JSON array as cairn-show(1) describes it. NULL when there is
 * no memory, as with json_pack.
 */
json_t *crn_report_legs(const crn_report_log *log);

/* What the checks of a run's regions have found, in the order of the log, for crn_events_done. */
cairn_status crn_report_findings(cairn_trail *trail, size_t run, crn_event_list *ret);

/* Of a program with regions: where its newest mark began, what it keeps and why, and what the check
 * has found, as cairn-report(1) describes it. */
cairn_status crn_report_regions(cairn_trail *trail, size_t run, json_t **ret);

/* What codecs made of a run's variables over all marks, an array as cairn-report(1) describes it;
 * one variable of one event likewise, and its rate. */
cairn_status crn_report_codecs(cairn_trail *trail, size_t run, json_t **ret);
json_t *crn_report_coded(const crn_event_coded *c);
double crn_report_rate(const crn_event_coded *c);

/* The events about marks of one version, oldest first, for crn_events_done. After an error there
 * are none. */
cairn_status crn_report_events(cairn_trail *trail, size_t run, uint64_t version,
                               crn_event_list *ret);

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

/* What the events of an ensemble's study say, as cairn-report(1) describes it. */
cairn_status crn_report_study(const char *name, const char *events, json_t **ret);

/* A page that shows data, an object as cairn-report(1) describes it, behind what page has. */
cairn_status crn_report_page(json_t *data, crn_buf *page);

#endif
