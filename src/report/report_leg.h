/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A leg of a run, as the files of this module share it: the events between two beginnings.
 */
#ifndef CAIRN_REPORT_LEG_H
#define CAIRN_REPORT_LEG_H

#include "report/report.h"

typedef struct report_leg {
    json_t *launch, *open, *resume, *close, *ended; /* NULL: there was none */
    json_t *mark;                                   /* the last one, likewise */
    json_t *teller; /* the first event after it that says when it was seen last, likewise */
    json_t *events; /* all of them, an array */
    size_t nmarks, nfailed, nlost;
    bool stopped;
    double last; /* the time of its own last event */
} report_leg;

typedef CRN_VEC(report_leg) report_leg_list;

/* Cut events into legs; crn_legs_done is due whatever the result. */
cairn_status crn_legs_split(json_t *events, report_leg_list *ret);
void crn_legs_done(report_leg_list *legs);

static inline double crn_event_time(json_t *event)
{
    return crn_event_number(event, "time");
}

/* When the state of a "mark" event was captured. */
static inline double crn_event_captured(json_t *mark)
{
    return crn_event_time(mark) - crn_event_number(mark, "stored");
}

#endif
