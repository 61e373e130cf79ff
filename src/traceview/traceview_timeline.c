/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The course of a whole run as it is expected: events of each rank one after the other, by the mean
 * times of their places and of the gaps between them. Such clocks run apart, since means are those
 * of many ranks and turns. They are set right where all ranks meet: the k-th collective of all of
 * them ends at one moment, the mean of what they say, and what lies between two meetings is
 * stretched.
 */
#include "traceview/traceview.h"

enum { MEETINGS_MAX = 1 << 16 }; /* of a rank; of more, every second, fourth, ... is kept */

/* Where a rank's own clock stood when all met. */
typedef struct meetings {
    CRN_VEC(double) at;
    uint64_t n, stride; /* that there were; of which every stride-th is kept */
} meetings;

/* A thread, from its first event on. */
typedef struct course {
    double now;         /* by its own clock, seconds */
    double inner_start; /* of the first event within the call to come; below 0: none */
    uint32_t thread;
} course;

typedef struct timeline {
    cairn_trace *trace;
    meetings *of; /* each rank */
    CRN_VEC(double) agreed;
    uint32_t rank;
    course course;
    size_t next; /* the meeting that comes next */
    crn_flows *flows;
    cairn_trace_moment_fn *fn;
    void *arg;
    cairn_status rc;
} timeline;

/* ---- a rank's own clock ---- */

/* What was made within a call comes before the call itself, which then began no later. */
static double start_of(course *c, const cairn_trace_event *e, double *ret_end)
{
    if (e->thread != c->thread)
        *c = (course){.inner_start = -1, .thread = e->thread};
    double start = c->now + e->gap;
    if (e->within && c->inner_start < 0)
        c->inner_start = start;
    if (!e->within && c->inner_start >= 0) {
        start = c->inner_start;
        c->inner_start = -1;
    }
    *ret_end = CRN_MAX(start + e->seconds, c->now);
    c->now = *ret_end;
    return start;
}

static bool is_meeting(const timeline *l, const crn_view *v)
{
    return v->event->thread == 0 && v->e->call->layer == CRN_LAYER_COLL &&
           v->e->comm.size == (int64_t)l->trace->t->nranks &&
           crn_event_find(v->e, CRN_KIND_REQ, 0) < 0 &&
           !crn_call_has(v->e->place->call, CRN_TRAIT_NEIGHBORS);
}

static void thin_out(meetings *m, uint64_t stride)
{
    for (; m->stride < stride; m->stride *= 2) {
        size_t n = 0;
        for (size_t i = 1; i < m->at.n; i += 2) /* the second, the fourth, ... */
            m->at.at[n++] = m->at.at[i];
        m->at.n = n;
    }
}

static int note_meeting(void *arg, const crn_view *v)
{
    timeline *l = arg;
    meetings *m = &l->of[l->rank];
    double end;
    start_of(&l->course, v->event, &end);
    if (!is_meeting(l, v) || ++m->n % m->stride != 0)
        return 0;
    l->rc = crn_vec_push(&m->at, end);
    if (m->at.n == MEETINGS_MAX)
        thin_out(m, 2 * m->stride);
    return l->rc < 0;
}

/* ---- all clocks ---- */

/* Ranks that end early, or draw their turns, may come to fewer meetings: those in common count. */
static cairn_status agree(timeline *l)
{
    const uint32_t nranks = l->trace->t->nranks;
    uint64_t stride = 1;
    size_t n = SIZE_MAX;
    for (uint32_t r = 0; r < nranks; r++)
        stride = CRN_MAX(stride, l->of[r].stride);
    for (uint32_t r = 0; r < nranks; r++) {
        thin_out(&l->of[r], stride);
        n = CRN_MIN(n, l->of[r].at.n);
    }
    for (size_t i = 0; i < n && n != SIZE_MAX; i++) {
        double sum = 0;
        for (uint32_t r = 0; r < nranks; r++)
            sum += l->of[r].at.at[i];
        CRN_TRY(crn_vec_push(&l->agreed, sum / nranks));
    }
    return CAIRN_OK;
}

/* A rank's own moment by the clock of all; moments come in order, for each thread anew. */
static double corrected(timeline *l, double own)
{
    const double *at = l->of[l->rank].at.at, *agreed = l->agreed.at;
    while (l->next > 0 && own < at[l->next - 1])
        l->next--;
    while (l->next < l->agreed.n && own > at[l->next])
        l->next++;
    const double left = l->next > 0 ? at[l->next - 1] : 0;
    const double to = l->next > 0 ? agreed[l->next - 1] : 0;
    if (l->next == l->agreed.n)
        return to + (own - left);
    const double length = at[l->next] - left;
    return length > 0 ? to + (own - left) * (agreed[l->next] - to) / length : to;
}

static int give_moment(void *arg, const crn_view *v)
{
    timeline *l = arg;
    cairn_trace_moment m = {.struct_bytes = sizeof m, .event = v->event};
    double end;
    const double own = start_of(&l->course, v->event, &end);
    m.start = corrected(l, own);
    m.seconds = corrected(l, end) - m.start;
    l->rc = crn_flows_next(l->flows, v, &m.flow, &m.nflows);
    if (l->rc < 0)
        return 1;
    return crn_limit_holds(l->trace, v) ? l->fn(l->arg, &m) : 0;
}

static cairn_status each_rank(timeline *l, bool limited, crn_view_fn *fn)
{
    cairn_status rc = CAIRN_OK;
    for (l->rank = 0; l->rank < l->trace->t->nranks && rc == CAIRN_OK; l->rank++) {
        if (limited && !crn_limit_rank(l->trace, l->rank))
            continue;
        l->course = (course){.inner_start = -1};
        l->next = 0;
        crn_flows_begin(l->flows);
        rc = crn_walk_named(l->trace->t, l->rank, fn, l);
        rc = l->rc < 0 ? l->rc : rc;
    }
    return rc;
}

int cairn_trace_timeline(cairn_trace *trace, cairn_trace_moment_fn *fn, void *arg)
{
    timeline l = {.trace = trace, .fn = fn, .arg = arg};
    const uint32_t nranks = trace->t->nranks;
    cairn_status rc;
    CRN_TRY_OUT(rc, crn_alloc(&l.of, nranks));
    CRN_TRY_OUT(rc, crn_flows_open(trace->t, &l.flows));
    for (uint32_t r = 0; r < nranks; r++)
        l.of[r].stride = 1;
    CRN_TRY_OUT(rc, each_rank(&l, false, note_meeting));
    CRN_TRY_OUT(rc, agree(&l));
    rc = each_rank(&l, true, give_moment);
out:
    for (uint32_t r = 0; l.of && r < nranks; r++)
        crn_vec_done(&l.of[r].at);
    free(l.of);
    crn_vec_done(&l.agreed);
    crn_flows_close(l.flows);
    return rc;
}
