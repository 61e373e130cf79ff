/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is known of a run after one pass over its log, as the files of this module share it: of each
 * leg the events that began and ended it, of each mark some numbers. All else of a long log is not
 * kept in memory.
 */
#ifndef CAIRN_REPORT_LOG_H
#define CAIRN_REPORT_LOG_H

#include "report/report.h"

/* Events that there were none of have the kind CRN_EVENT_OTHER. */
typedef struct report_leg {
    crn_event launch, open, resume, close, ended;
    size_t first, nmarks; /* its marks, by their number in the log */
    size_t next;          /* the leg after it that opened the run; 0: none did */
    size_t nfailed, nlost;
    bool stopped;
    bool seen_last; /* a later event has its last sign of life: */
    double seen;    /* then */
    double last;    /* the time of its own last event */
} report_leg;

struct crn_report_log {
    CRN_VEC(report_leg) leg;
    CRN_VEC(crn_logged_mark) mark;
    crn_index newest; /* the last mark of each version */
    uint64_t nlines;  /* that were read */
    uint64_t ntuned;
};

static inline bool crn_has(const crn_event *e)
{
    return e->kind != CRN_EVENT_OTHER;
}

/* The number of the last mark of a version; false: there is none. */
bool crn_report_find(const crn_report_log *log, uint64_t version, size_t *ret);

/* Hand out the lines of a run's log. 0: go on; else the reading ends with CAIRN_ENOMEM. */
cairn_status crn_report_lines(cairn_trail *trail, size_t run, cairn_event_fn *fn, void *arg);

/* --- what marks changed -------------------------------------------------------------------- */

/* Keep a line of the log in *last if it has what a mark changed: later marks may refer to it. */
cairn_status crn_report_note_changes(crn_buf *last, const char *line);

/* Let an event that refers to that line have what it has. */
void crn_report_resolve_changes(const crn_buf *last, crn_event *e);

/* --- what is shown ------------------------------------------------------------------------- */

/* Of a run with very many marks and thoughts of the planner a report shows some (report_choose.c).
 */
typedef struct report_choice {
    bool *mark; /* shown? by its number in the log */
    size_t nmarks, nfailed, ntuned;
} report_choice;

cairn_status crn_report_choose(const crn_report_log *log, report_choice *ret);
bool crn_report_shows_tuned(const crn_report_log *log, uint64_t number);

/* Those that were chosen, as cairn-report(1) describes them: two arrays, from a second pass. */
cairn_status crn_report_details(cairn_trail *trail, size_t run, const crn_report_log *log,
                                const report_choice *choice, json_t **ret_marks,
                                json_t **ret_tuned);

/* What the planner of a run thought, and what would have been best for it, likewise. tuned is taken
 * over. */
json_t *crn_report_plan(cairn_trail *trail, size_t run, json_t *tuned);

#endif
