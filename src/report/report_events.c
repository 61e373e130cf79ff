/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading the event log of a run.
 */
#include "report/report.h"

typedef struct reading {
    crn_event_list *events;
    crn_event_filter filter;
} reading;

static int take_line(void *arg, const char *line)
{
    const reading *r = arg;
    crn_event e;
    if (!crn_event_decode(line, &r->filter, &e))
        return 0; /* not wanted, or cut by a crash */
    if (crn_vec_push(r->events, e) == CAIRN_OK)
        return 0;
    crn_event_done(&e);
    return 1;
}

cairn_status crn_report_events(cairn_trail *trail, size_t run, crn_detail detail, uint64_t version,
                               crn_event_list *ret)
{
    const uint32_t changes = CRN_EVENT_BIT(CHANGES);
    const reading r = {.events = ret,
                       .filter = {.kinds = detail == CRN_DETAIL_ALL ? UINT32_MAX : ~changes,
                                  .of_version = detail == CRN_DETAIL_MARK ? changes : 0,
                                  .version = version}};
    *ret = (crn_event_list){0};
    const int rc = cairn_trail_events(trail, run, take_line, (void *)&r);
    if (rc == CAIRN_OK)
        return CAIRN_OK;
    crn_events_done(ret);
    if (rc == CAIRN_NOTHING)
        return crn_fail(CAIRN_ENOMEM, "no memory for the events of a run");
    return crn_fail((cairn_status)rc, "%s", cairn_error_text());
}
