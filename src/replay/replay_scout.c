/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The scout walks ahead of the player and learns whom wildcard receives met. A receive that takes
 * any source or tag is followed, when it completes, by a remark of the recorder (@match); for a
 * non-blocking one that may be much later than the player must ask. Meetings are kept in the order
 * in which receives were posted, from the oldest that the player has not asked for. One that was
 * cancelled in time has met nobody, and no remark.
 */
#include "replay/replay.h"

typedef struct meeting {
    bool known, cancelled;
    int source, tag; /* source < 0: nobody */
} meeting;

struct crn_scout {
    crn_walk *walk;
    CRN_VEC(meeting) meeting;
    size_t asked;             /* meetings that the player has taken */
    CRN_VEC(int64_t) pending; /* by number of a request: its meeting + 1, or 0 */
    CRN_VEC(bool) persistent; /* by number: a receive that takes any, to be started */
    CRN_VEC(size_t) due;      /* meetings that the next remarks are about */
    CRN_VEC(meeting) remark;  /* what they say; until the next event we cannot know how many */
    crn_numbers done;
};

cairn_status crn_scout_create(const crn_trace *t, uint32_t rank, uint64_t seed, crn_scout **ret)
{
    crn_scout *s;
    CRN_TRY(crn_alloc(&s, 1));
    cairn_status rc = crn_walk_open(t, 0, rank, seed, &s->walk);
    if (rc < 0) {
        free(s);
        return rc;
    }
    *ret = s;
    return CAIRN_OK;
}

void crn_scout_free(crn_scout *s)
{
    if (!s)
        return;
    crn_walk_close(s->walk);
    crn_vec_done(&s->meeting);
    crn_vec_done(&s->pending);
    crn_vec_done(&s->persistent);
    crn_vec_done(&s->due);
    crn_vec_done(&s->remark);
    crn_vec_done(&s->done);
    free(s);
}

static bool has(const crn_traced_event *e, unsigned kind)
{
    return crn_event_find(e, kind, 0) >= 0;
}

static int64_t value_of(const crn_traced_event *e, unsigned kind)
{
    int i = crn_event_find(e, kind, 0);
    return i < 0 ? -1 : e->value[i];
}

static crn_list list_of(const crn_traced_event *e, unsigned kind)
{
    int i = crn_event_find(e, kind, 0);
    return i < 0 ? (crn_list){NULL, 0} : e->list[i];
}

/* In the order of the requests, as the recorder makes its remarks. */
static cairn_status completed_some(crn_list reqs, crn_list some, crn_numbers *done)
{
    for (size_t i = 0; i < reqs.n; i++) {
        bool listed = false;
        for (size_t k = 0; k < some.n; k++)
            listed |= some.at[k] == (int64_t)i;
        if (listed)
            CRN_TRY(crn_vec_push(done, reqs.at[i]));
    }
    return CAIRN_OK;
}

cairn_status crn_completed_of(const crn_traced_event *e, crn_numbers *done)
{
    crn_list reqs = list_of(e, CRN_KIND_REQS), some = list_of(e, CRN_KIND_LIST);
    int64_t index = value_of(e, CRN_KIND_INDEX);
    bool not_yet = has(e, CRN_KIND_FLAG) && value_of(e, CRN_KIND_FLAG) == 0;
    done->n = 0;
    if (not_yet || !crn_call_has(e->place->call, CRN_TRAIT_COMPLETES))
        return CAIRN_OK;
    if (has(e, CRN_KIND_REQ))
        return crn_vec_push(done, value_of(e, CRN_KIND_REQ));
    if (has(e, CRN_KIND_INDEX))
        return index >= 0 && (size_t)index < reqs.n ? crn_vec_push(done, reqs.at[index]) : CAIRN_OK;
    if (has(e, CRN_KIND_LIST))
        return completed_some(reqs, some, done);
    for (size_t i = 0; i < reqs.n; i++)
        CRN_TRY(crn_vec_push(done, reqs.at[i]));
    return CAIRN_OK;
}

/* Does the receiving side of the event take any source or any tag? */
static bool is_wild(const crn_traced_event *e)
{
    int peer = crn_event_find(e, CRN_KIND_PEER, 0), tag = crn_event_find(e, CRN_KIND_TAG, 0);
    if (crn_call_has(e->place->call, CRN_TRAIT_SENDS)) { /* the first are those of the send */
        peer = crn_event_find(e, CRN_KIND_PEER, peer + 1);
        tag = crn_event_find(e, CRN_KIND_TAG, tag + 1);
    }
    return peer >= 0 && tag >= 0 && e->value[peer] != CRN_PEER_NULL &&
           (e->value[peer] == CRN_PEER_ANY || e->value[tag] == CRN_TAG_ANY);
}

static cairn_status post(crn_scout *s, int64_t request)
{
    CRN_TRY(crn_vec_push(&s->meeting, (meeting){.known = false}));
    if (request < 0) /* a blocking one: its remark comes next */
        return crn_vec_push(&s->due, s->meeting.n - 1);
    while (s->pending.n <= (size_t)request)
        CRN_TRY(crn_vec_push(&s->pending, 0));
    s->pending.at[request] = (int64_t)s->meeting.n;
    return CAIRN_OK;
}

static cairn_status note_persistent(crn_scout *s, int64_t request, bool wild)
{
    if (request < 0)
        return CAIRN_OK;
    while (s->persistent.n <= (size_t)request)
        CRN_TRY(crn_vec_push(&s->persistent, false));
    s->persistent.at[request] = wild;
    return CAIRN_OK;
}

static cairn_status start(crn_scout *s, int64_t request)
{
    bool wild = request >= 0 && (size_t)request < s->persistent.n && s->persistent.at[request];
    return wild ? post(s, request) : CAIRN_OK;
}

static cairn_status see_p2p(crn_scout *s, const crn_traced_event *e)
{
    uint32_t call = e->place->call;
    int64_t request = value_of(e, CRN_KIND_REQ);
    crn_list many = list_of(e, CRN_KIND_REQS);
    if (crn_call_has(call, CRN_TRAIT_STARTS) && has(e, CRN_KIND_REQ))
        return start(s, request);
    for (size_t i = 0; i < many.n; i++)
        CRN_TRY(start(s, many.at[i]));
    if (!crn_call_has(call, CRN_TRAIT_RECEIVES | CRN_TRAIT_PROBES))
        return CAIRN_OK;
    if (crn_call_has(call, CRN_TRAIT_PREPARES))
        return note_persistent(s, request, is_wild(e));
    if ((has(e, CRN_KIND_FLAG) && value_of(e, CRN_KIND_FLAG) == 0) || !is_wild(e))
        return CAIRN_OK;
    return post(s, has(e, CRN_KIND_REQ) ? request : -1);
}

/* The meeting that a request waits for, or NULL. */
static meeting *pending_of(crn_scout *s, int64_t request)
{
    if (request < 0 || (size_t)request >= s->pending.n || s->pending.at[request] == 0)
        return NULL;
    return &s->meeting.at[s->pending.at[request] - 1];
}

static void see_cancel(crn_scout *s, const crn_traced_event *e)
{
    meeting *m = pending_of(s, value_of(e, CRN_KIND_REQ));
    if (m)
        m->cancelled = true;
}

static cairn_status see_wait(crn_scout *s, const crn_traced_event *e)
{
    if (e->place->call == CRN_CALL_MPI_Cancel) {
        see_cancel(s, e);
        return CAIRN_OK;
    }
    CRN_TRY(crn_completed_of(e, &s->done));
    for (size_t i = 0; i < s->done.n; i++) {
        int64_t request = s->done.at[i];
        if (!pending_of(s, request))
            continue;
        CRN_TRY(crn_vec_push(&s->due, (size_t)s->pending.at[request] - 1));
        s->pending.at[request] = 0;
    }
    return CAIRN_OK;
}

/* Remarks that are missing are those of receives that were cancelled. */
static void hand_out_remarks(crn_scout *s)
{
    size_t next = 0, missing = s->due.n - CRN_MIN(s->due.n, s->remark.n);
    for (size_t i = 0; i < s->due.n; i++) {
        meeting *m = &s->meeting.at[s->due.at[i]];
        if (m->cancelled && missing > 0) {
            *m = (meeting){.known = true, .source = -1};
            missing--;
        } else if (next < s->remark.n) {
            *m = s->remark.at[next++];
        }
    }
    s->due.n = s->remark.n = 0;
}

static cairn_status see_match(crn_scout *s, const crn_traced_event *e)
{
    return crn_vec_push(&s->remark, (meeting){.known = true,
                                              .source = (int)value_of(e, CRN_KIND_ROOT),
                                              .tag = (int)value_of(e, CRN_KIND_TAG)});
}

static bool see(crn_scout *s)
{
    crn_traced_event e;
    bool more = crn_walk_next(s->walk, &e);
    if (more && e.place->call == CRN_CALL_match)
        return see_match(s, &e) == CAIRN_OK;
    if (more && e.place->call == CRN_CALL_mark) /* another thread's may come in between */
        return true;
    hand_out_remarks(s); /* they follow at once */
    if (!more)
        return false;
    if (e.call->layer == CRN_LAYER_P2P)
        return see_p2p(s, &e) == CAIRN_OK;
    return e.call->layer != CRN_LAYER_WAIT || see_wait(s, &e) == CAIRN_OK;
}

bool crn_scout_next(crn_scout *s, int *ret_source, int *ret_tag)
{
    size_t mine = s->asked++;
    while ((s->meeting.n <= mine || !s->meeting.at[mine].known) && see(s))
        continue;
    if (s->meeting.n <= mine || !s->meeting.at[mine].known)
        return false;
    *ret_source = s->meeting.at[mine].source;
    *ret_tag = s->meeting.at[mine].tag;
    return true;
}
