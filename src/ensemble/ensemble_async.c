/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Observations at their own times (a 4-D ensemble): where a study says that its model may stop at
 * any step, a member's cycle is cut at the steps at which something was observed. The server
 * observes the state that comes back there, keeps what it saw, and gives the member out again from
 * that state; the update then has what each observation saw of the member at its time.
 *
 * A result counts for the stretch that it is of: attempts are numbered on and on, and those up to
 * the end of the last stretch, or of another server, are stale. What was seen dies with the server:
 * the next one begins the cycle again from its analysis.
 */
#include "ensemble/ensemble_update.h"

static void forget(crn_async *a, uint32_t nmembers)
{
    for (uint32_t m = 0; a->row && m < nmembers; m++)
        free(a->row[m].entry);
    free(a->row);
    crn_obs_set_free(a->set);
    *a = (crn_async){0};
}

void crn_async_done(crn_server *s)
{
    forget(&s->async, s->nmembers);
}

/* Of the cycle that is being propagated. */
static cairn_status begin(crn_server *s)
{
    crn_async *a = &s->async;
    if (a->cycle == s->cycle)
        return CAIRN_OK;
    forget(a, s->nmembers);
    CRN_TRY(crn_obs_cycle(s->obs, s->cycle, &a->set));
    CRN_TRY(crn_alloc(&a->row, s->nmembers));
    for (uint32_t m = 0; m < s->nmembers; m++) {
        CRN_TRY(crn_alloc(&a->row[m].entry, a->set->nentries));
        a->row[m].stale = s->member[m].attempt = s->incarnation << 16;
    }
    a->cycle = s->cycle;
    return CAIRN_OK;
}

static bool is_wanted(const crn_server *s)
{
    return s->study->asynchronous && s->obs && !s->twin;
}

cairn_status crn_async_task(crn_server *s, uint32_t member, uint64_t *ret_from, uint64_t *ret_to)
{
    *ret_from = 0;
    *ret_to = s->study->steps;
    if (!is_wanted(s))
        return CAIRN_OK;
    CRN_TRY(begin(s));
    *ret_from = s->async.row[member].reached;
    const uint64_t next = crn_obs_next_step(s->async.set, *ret_from);
    if (next > 0)
        *ret_to = next;
    return CAIRN_OK;
}

bool crn_async_is_stale(const crn_server *s, uint32_t member, uint32_t attempt)
{
    return is_wanted(s) && (s->async.cycle != s->cycle || attempt <= s->async.row[member].stale);
}

cairn_status crn_async_reached(crn_server *s, uint32_t member, const unsigned char *state,
                               bool *ret_whole)
{
    uint64_t from, to;
    *ret_whole = true;
    if (!is_wanted(s))
        return CAIRN_OK;
    CRN_TRY(crn_async_task(s, member, &from, &to));
    crn_async_row *row = &s->async.row[member];
    row->reached = to;
    row->stale = s->member[member].attempt;
    *ret_whole = to == s->study->steps;
    return crn_observe_slice(s, s->async.set, row->reached, state, row->entry);
}
