/* SPDX-License-Identifier: BSD-3-Clause
 *
 * When to mark and when to leave. Both are decided on rank 0, or by whichever rank a signal
 * reached, and told to all, so that all ranks do the same.
 */
#include "ckpt/ckpt_session.h"

/* --- time --------------------------------------------------------------------------------- */

/*
 * The end of the job by our own clock, which nobody sets: configured, or from Slurm, which gives it
 * in seconds since 1970. UINT64_MAX: nobody says. One rank that knows is enough, as for signals.
 */
static uint64_t job_end(const cairn *c)
{
    const double limit = crn_config_seconds(c->held.cfg, CRN_OPT_STOP_LIMIT);
    if (limit > 0)
        return crn_now_ns() + (uint64_t)(CRN_MIN(limit, 1e9) * 1e9);
    const uint64_t seconds = crn_slurm_end_s(crn_comm_rank(c->held.comm) == 0);
    if (seconds == 0)
        return UINT64_MAX;
    const uint64_t now = crn_now_ns(), wall = crn_wall_ns(), then = seconds * 1000000000u;
    return then > wall ? now + (then - wall) : now;
}

cairn_status crn_stop_init(cairn *c)
{
    c->last_mark_ns = crn_now_ns();
    if (c->end_ns == 0) /* with other ranks it is the same job */
        c->end_ns = job_end(c);
    c->poll = (ckpt_poll){0};
    return crn_signals_init(c);
}

/* Is only the time left that a last mark in the trail needs? Its cost is known once there was one;
 * twice that, since the last hour of a job is not the time to be surprised. */
static bool time_is_up(const cairn *c)
{
    const double left = ((double)c->end_ns - (double)crn_now_ns()) * 1e-9;
    return left < crn_config_seconds(c->held.cfg, CRN_OPT_STOP_MARGIN) +
                      2 * CRN_MAX(c->trail_s, c->cost_s);
}

/* A program may act upon a signal by itself, and never ask. */
void crn_stop_ask(cairn *c)
{
    uint64_t told = c->stopping || crn_signals_came(c);
    if (crn_comm_allreduce_u64(c->held.comm, CRN_REDUCE_MAX, &told, 1) == CAIRN_OK)
        c->stopping = told;
}

void crn_stop_begin(cairn *c)
{
    if (c->stopping)
        return;
    c->stopping = true;
    c->marked_since_stop = false;
    crn_log_write(&c->held.log, CRN_LOG_INFO, CRN_LOG_ROOT, "told to stop");
    crn_holding_event(&c->held, &(crn_event){.kind = CRN_EVENT_STOP});
}

void crn_stop_leave(cairn *c)
{
    if (!c->stopping || !c->marked_since_stop || c->asks || c->poll.asks)
        return;
    crn_engine_finish(c);
    crn_signals_obey(c);
}

/* --- one look at everything ------------------------------------------------------------------- */

/* Of a mark, rank 0 decides. */
static bool is_due(const cairn *c)
{
    if (crn_comm_rank(c->held.comm) != 0)
        return false;
    return (double)(crn_now_ns() - c->last_mark_ns) * 1e-9 >= crn_tune_interval(c);
}

/*
 * Is a mark due, is it time to leave, and can a mark under way be shared? One reduction answers all
 * three. Of a signal any rank may know; of a divergence all shall, so that all can say where it is.
 * Of its time limit a program hears that asks: another would only find its run unfinished.
 */
static cairn_status look(cairn *c, bool asks)
{
    ckpt_poll *p = &c->poll;
    const bool waits = crn_engine_waits(c), root = crn_comm_rank(c->held.comm) == 0;
    enum { STOP, GO_ON, DUE, BUSY, ASKS, STOP_NEAR, DUE_NEAR, N };
    uint64_t max[N] = {
        [STOP] = c->stopping || crn_signals_came(c) || ((asks || c->asks) && time_is_up(c)),
        [GO_ON] = !crn_reference_stops(c),
        [DUE] = is_due(c),
        [BUSY] = !crn_engine_is_ready(c),
        [ASKS] = asks || crn_signals_are_asked_for(),
        [STOP_NEAR] = root && p->whether_stop.near,
        [DUE_NEAR] = root && p->whether_due.near,
    };
    CRN_TRY(crn_comm_allreduce_u64(c->held.comm, CRN_REDUCE_MAX, max, N));
    if (max[STOP] || !max[GO_ON])
        crn_stop_begin(c);
    p->due = max[DUE] || (c->stopping && !c->marked_since_stop);
    p->asks = max[ASKS];
    p->whether_stop.reuse = max[STOP_NEAR];
    p->whether_due.reuse = max[DUE_NEAR];
    p->look_ns = crn_now_ns();
    p->whether_stop.known = p->whether_due.known = true;
    if (waits && !max[BUSY])
        crn_engine_finish(c);
    return CAIRN_OK;
}

/*
 * Programs ask both questions in a row, in either order. The second is answered by the look for the
 * first, if there was next to nothing between them the time before, which rank 0 has seen and told
 * all: what happens in a step that lies between is not to be noticed a step later.
 */
static bool is_answered(const ckpt_poll *p, ckpt_question *q)
{
    enum { NEAR_NS = 1000000 };
    if (!q->known)
        return false;
    q->known = false;
    q->near = crn_now_ns() - p->look_ns < NEAR_NS;
    return q->reuse;
}

bool cairn_should_stop(cairn *c)
{
    if (crn_ckpt_check_usable(c, __func__) < 0)
        return false;
    crn_ckpt_beat(c);
    if (!is_answered(&c->poll, &c->poll.whether_stop))
        (void)look(c, true); /* when it fails, a peer is gone, and the next mark will say so */
    c->poll.whether_stop.known = false;
    c->asks = true;
    const bool leaves = c->stopping && !(c->guest.holds && c->guest.holds(c->guest.self));
    crn_signals_asked(leaves);
    return leaves;
}

bool cairn_due(cairn *c)
{
    if (crn_ckpt_check_usable(c, __func__) < 0)
        return false;
    crn_ckpt_beat(c);
    return c->guest.due ? c->guest.due(c->guest.self) : crn_ckpt_ask_due(c);
}

bool crn_ckpt_ask_due(cairn *c)
{
    if (c->leg.open)
        return false;
    crn_stop_leave(c);
    if (!is_answered(&c->poll, &c->poll.whether_due) && look(c, false) < 0)
        return false;
    c->poll.whether_due.known = false;
    return c->poll.due;
}

/* --- signs of life -------------------------------------------------------------------------- */

/* Who watches for hangs looks rarely, and steps may be microseconds short. But the last sign is
 * also what tells how much work died with a leg that nobody saw die, which should be right to a
 * tenth: 24 signs while that grows tenfold, and one a second in the end. */
static uint64_t beat_after(const cairn *c, uint64_t now)
{
    enum { LEAST_NS = 10000000, MOST_NS = 1000000000 };
    return CRN_MIN(CRN_MAX((now - c->last_mark_ns) / 10, LEAST_NS), MOST_NS);
}

void crn_ckpt_beat(cairn *c)
{
    const uint64_t now = crn_now_ns();
    crn_signals_called(now);
    if (crn_comm_rank(c->held.comm) != 0 || now - c->beat_ns < beat_after(c, now))
        return;
    c->beat_ns = now;
    crn_run_beat(c->held.run);
}
