/* SPDX-License-Identifier: BSD-3-Clause
 *
 * From events to legs.
 */
#include "report/report_leg.h"

/* A leg begins when it is launched, or when the run is opened by a program that was not. */
static bool begins(json_t *event, const report_leg *now)
{
    if (crn_event_is(event, "launch"))
        return true;
    return crn_event_is(event, "open") && (!now || !now->launch || now->open || now->ended);
}

static cairn_status add_event(report_leg *l, json_t *event)
{
    const struct {
        const char *kind;
        json_t **place;
    } row[] = {{"launch", &l->launch}, {"open", &l->open},   {"resume", &l->resume},
               {"mark", &l->mark},     {"close", &l->close}, {"ended", &l->ended}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (crn_event_is(event, row[i].kind))
            *row[i].place = event;
    if (l->ended)
        l->teller = l->ended;
    l->nmarks += crn_event_is(event, "mark");
    l->nfailed += crn_event_is(event, "failed");
    l->nlost += crn_event_is(event, "lost");
    l->stopped |= crn_event_is(event, "stop");
    if (!crn_event_is(event, "drained") && !crn_event_is(event, "pruned") &&
        !crn_event_is(event, "ended"))
        l->last = crn_event_time(event);
    CRN_FAIL_IF(json_array_append(l->events, event) != 0, CAIRN_ENOMEM, "no memory for legs");
    return CAIRN_OK;
}

cairn_status crn_legs_split(json_t *events, report_leg_list *ret)
{
    size_t i;
    json_t *event;
    json_array_foreach(events, i, event)
    {
        report_leg *now = ret->n > 0 ? &ret->at[ret->n - 1] : NULL;
        if (begins(event, now)) {
            if (now && !now->teller)
                now->teller = event;
            CRN_TRY(crn_vec_push(ret, (report_leg){.events = json_array()}));
        }
        if (ret->n > 0)
            CRN_TRY(add_event(&ret->at[ret->n - 1], event));
    }
    return CAIRN_OK;
}

void crn_legs_done(report_leg_list *legs)
{
    for (size_t i = 0; i < legs->n; i++)
        json_decref(legs->at[i].events);
    crn_vec_done(legs);
}
