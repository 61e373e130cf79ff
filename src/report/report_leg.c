/* SPDX-License-Identifier: BSD-3-Clause
 *
 * From events to legs.
 */
#include "report/report_leg.h"

/* A leg begins when it is launched, or when the run is opened by a program that was not. */
static bool begins(const crn_event *e, const report_leg *now)
{
    if (e->kind == CRN_EVENT_LAUNCH)
        return true;
    return e->kind == CRN_EVENT_OPEN && (!now || !now->launch || now->open || now->ended);
}

static void add_event(report_leg *l, const crn_event *e)
{
    const crn_event **const place[CRN_NEVENTS] = {
        [CRN_EVENT_LAUNCH] = &l->launch, [CRN_EVENT_OPEN] = &l->open,
        [CRN_EVENT_RESUME] = &l->resume, [CRN_EVENT_MARK] = &l->mark,
        [CRN_EVENT_CLOSE] = &l->close,   [CRN_EVENT_ENDED] = &l->ended};
    if (place[e->kind])
        *place[e->kind] = e;
    if (l->ended)
        l->teller = l->ended;
    l->nmarks += e->kind == CRN_EVENT_MARK;
    l->nfailed += e->kind == CRN_EVENT_FAILED;
    l->nlost += e->kind == CRN_EVENT_LOST;
    l->stopped |= e->kind == CRN_EVENT_STOP;
    if (e->kind != CRN_EVENT_DRAINED && e->kind != CRN_EVENT_PRUNED && e->kind != CRN_EVENT_ENDED)
        l->last = e->time;
    l->nevents++;
}

cairn_status crn_legs_split(const crn_event_list *events, report_leg_list *ret)
{
    for (size_t i = 0; i < events->n; i++) {
        const crn_event *e = &events->at[i];
        report_leg *now = ret->n > 0 ? &ret->at[ret->n - 1] : NULL;
        if (begins(e, now)) {
            if (now && !now->teller)
                now->teller = e;
            CRN_TRY(crn_vec_push(ret, (report_leg){.events = e}));
        }
        if (ret->n > 0)
            add_event(&ret->at[ret->n - 1], e);
    }
    return CAIRN_OK;
}
