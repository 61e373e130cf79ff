/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the trace knows of a rank's times: computing before calls, drawn; calls, on average.
 *
 * DESIGN, drawing. A histogram of N times is drawn from by walking through all N in strides: any
 * piece of that walk has slow and fast ones in their proportion, and all of it adds up to what was
 * recorded. Independent draws would not, for the places that are met a few times only. Ranks walk
 * alike, also at places of their own: a slow turn is slow on all of them, so that they do not wait
 * for one another where the program's ranks did not.
 *
 * DESIGN, waiting. What calls took is known over all ranks together. A rank that computes for
 * longer than others at places of its own waited less than they did, and must not be made to wait
 * as if it were one of them: all ranks are there from the start to the end of the run, so that what
 * is neither computing nor the least that its calls take is the waiting of this rank in all.
 */
#include "replay/replay.h"

#define GOLDEN 0.6180339887498949

void crn_times_done(crn_times *t)
{
    free(t->walk);
}

static bool is_within(const crn_lane *l, uint32_t symbol)
{
    return l->symbol[symbol].within != CRN_CALL_NONE;
}

/* ---- drawing ---- */

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b > 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* A stride that comes to all of n numbers, and soon to all regions of them. */
static uint64_t stride_of(uint64_t n)
{
    uint64_t stride = (uint64_t)((double)n * GOLDEN);
    while (stride > 1 && common_divisor(stride, n) > 1)
        stride--;
    return CRN_MAX(stride, 1);
}

/* Time between two calls of the program; what MPI-IO did between its own calls is not. */
const crn_gap *crn_times_gap(const crn_times *t, const crn_traced_event *e)
{
    if (e->place->call == CRN_CALL_match ||
        (e->from != CRN_NO_SYMBOL && is_within(t->lane, e->from)))
        return NULL;
    return crn_lane_gap(t->lane, e->from, e->symbol);
}

double crn_times_draw(crn_times *t, const crn_gap *gap)
{
    crn_time_walk *w = &t->walk[gap - t->lane->gap];
    const crn_hist *own = crn_timing_of(&gap->time, t->rank);
    const uint64_t n = crn_hist_count(own);
    if (n == 0)
        return 0;
    if (w->stride == 0)
        *w = (crn_time_walk){.stride = stride_of(n)};
    const int64_t v = crn_hist_draw(own, w->at);
    w->at = (w->at + w->stride) % n;
    return (double)v;
}

/* ---- what calls took ---- */

crn_passing crn_times_passing(const crn_times *t, uint32_t symbol)
{
    const crn_timing *time = t->lane->took ? &t->lane->took[symbol] : NULL;
    if (!time || time->all.nbins == 0 || is_within(t->lane, symbol)) /* the call around it has it */
        return (crn_passing){.known = false};
    const double mean = crn_hist_mean(crn_timing_of(time, t->rank));
    const double least = (double)time->all.bin[0].min;
    if (!crn_call_waits(t->lane->symbol[symbol].call)) /* nobody waits for another in it */
        return (crn_passing){.least = mean};
    return (crn_passing){true, least, (mean - least) * t->waiting};
}

/* ---- how much of the waiting is this rank's ---- */

/* Places that a rank comes to, and how often. */
typedef struct sums {
    const crn_lane *lane;
    uint32_t rank;
    uint64_t *count;
    double *gaps, *gap_sum; /* by place: how many times before it, and their sum */
} sums;

/* Gaps on the way from where the rank never is are other ranks'. */
static void add_gaps(sums *s)
{
    for (size_t i = 0; i < s->lane->ngaps; i++) {
        const crn_gap *g = &s->lane->gap[i];
        if (g->from != CRN_NO_SYMBOL && (s->count[g->from] == 0 || is_within(s->lane, g->from)))
            continue;
        const double n = (double)crn_hist_count(&g->time.all);
        s->gaps[g->to] += n;
        s->gap_sum[g->to] += n * crn_hist_mean(crn_timing_of(&g->time, s->rank));
    }
}

/* Waiting that is left to this rank, as a part of what its calls waited on average over all. */
static double waiting_of(const crn_times *t, const sums *s, double lasted)
{
    double left = lasted, waited = 0;
    for (uint32_t i = 0; i < s->lane->nsymbols; i++) {
        const double n = (double)s->count[i];
        if (s->lane->symbol[i].call == CRN_CALL_NONE || n == 0)
            continue;
        if (s->gaps[i] > 0)
            left -= n * s->gap_sum[i] / s->gaps[i];
        const crn_passing call = crn_times_passing(t, i);
        left -= n * call.least;
        waited += n * call.waited;
    }
    return waited > 0 ? CRN_MAX(left, 0) / waited : 1;
}

cairn_status crn_times_init(crn_times *t, const crn_trace *trace, size_t lane, uint32_t rank)
{
    sums s = {.lane = &trace->lane[lane], .rank = rank};
    cairn_status rc;
    *t = (crn_times){.lane = s.lane, .rank = rank, .waiting = 1};
    CRN_TRY_OUT(rc, crn_alloc(&t->walk, s.lane->ngaps));
    CRN_TRY_OUT(rc, crn_alloc(&s.count, s.lane->nsymbols));
    CRN_TRY_OUT(rc, crn_alloc(&s.gaps, s.lane->nsymbols));
    CRN_TRY_OUT(rc, crn_alloc(&s.gap_sum, s.lane->nsymbols));
    CRN_TRY_OUT(rc, crn_lane_counts(trace, lane, rank, s.count));
    add_gaps(&s);
    if (lane == 0) /* other threads come and go */
        t->waiting = waiting_of(t, &s, (double)trace->lasted);
out:
    free(s.count);
    free(s.gaps);
    free(s.gap_sum);
    return rc;
}
