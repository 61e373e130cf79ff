/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A leg of a run, as the files of this module share it: the events between two beginnings.
 */
#ifndef CAIRN_REPORT_LEG_H
#define CAIRN_REPORT_LEG_H

#include "report/report.h"

typedef struct report_leg {
    const crn_event *launch, *open, *resume, *close, *ended; /* NULL: there was none */
    const crn_event *mark;                                   /* the last one, likewise */
    const crn_event *teller; /* the first after it that says when it was seen last, likewise */
    const crn_event *events; /* all of them, */
    size_t nevents;          /* so many */
    size_t nmarks, nfailed, nlost;
    bool stopped;
    double last; /* the time of its own last event */
} report_leg;

typedef CRN_VEC(report_leg) report_leg_list;

/* Cut events into legs, which refer to them; crn_vec_done is due whatever the result. */
cairn_status crn_legs_split(const crn_event_list *events, report_leg_list *ret);

/* 0 where there is no event. */
static inline double crn_time_of(const crn_event *e)
{
    return e ? e->time : 0;
}

/* When the state of a mark was captured. */
static inline double crn_captured_at(const crn_event *mark)
{
    return mark->time - mark->mark.stored;
}

#endif
