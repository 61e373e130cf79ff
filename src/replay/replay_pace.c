/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Computing as waiting, at the pace of the recorded run.
 *
 * DESIGN. Times between calls are drawn from histograms over ranks, on all of them alike. Where
 * ranks computed unequally long, they waited for one another in calls; drawn alike they do not, and
 * the replay would come to its end too early. How long they waited is known on average: what calls
 * took beyond the least. So a rank knows when the run was here, about, and what of that was
 * waiting. If it is ahead, it computes for longer, but for no longer in all than calls waited:
 * being ahead for other reasons, such as a faster network, is what a replay is to show. Waiting
 * that comes from the structure of the program happens by itself, and then no rank is ahead.
 *
 * All that passes between two calls is computing: what the replay needs for itself there, drawing
 * values and walking the shadows, is taken off what it sleeps, now or later.
 */
#include "replay/replay.h"

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/*
 * Shorter waits are put together: a sleep takes about as long by itself. When they are made up for
 * goes by what was drawn, so that all ranks sleep at the same call, and not one after the other. A
 * rank that sleeps too long pays that back later, but whoever waits for it does not: so sleeps end
 * early, and the rest is spent looking at the clock. Where each rank has a core, sleeps are for
 * long waits only: one that slept needs a while to be as fast as one that computed.
 */
enum { TOGETHER_NS = 200000, EARLY_NS = 60000, AWAKE_NS = 2000000 };

void crn_pace_spend(crn_pace *c, double elapsed)
{
    c->owed -= elapsed - c->spent;
    c->spent = elapsed;
}

void crn_pace_compute(crn_pace *c, double drawn, double elapsed)
{
    crn_pace_spend(c, elapsed);
    c->recorded += drawn;
    c->owed += drawn;
    c->drawn += drawn;
    const double ahead = c->recorded - elapsed - c->owed, more = CRN_MIN(ahead, c->waited);
    if (more > 0) {
        c->owed += more;
        c->waited -= more;
    }
}

void crn_pace_call(crn_pace *c, double least, double waited, double elapsed)
{
    c->spent = elapsed;
    c->recorded += least + waited;
    c->waited += waited;
}

double crn_play_speed(const crn_player *p)
{
    return p->opt->speed > 0 ? p->opt->speed : 1;
}

static double elapsed(const crn_player *p)
{
    return (double)(crn_now_ns() - p->began);
}

/* What was computed before the current event. */
static double add_gap(crn_player *p)
{
    const crn_gap *gap = crn_times_gap(&p->times, &p->e);
    const double drawn = gap ? crn_times_draw(&p->times, gap) : 0;
    if (gap && !p->opt->no_delay)
        crn_pace_compute(&p->pace, drawn / crn_play_speed(p), elapsed(p));
    return drawn;
}

/* The kernel may let a sleep end later than asked, by this many nanoseconds. */
int crn_play_set_slack(int ns)
{
    const int before = prctl(PR_GET_TIMERSLACK);
    (void)prctl(PR_SET_TIMERSLACK, (unsigned long)ns);
    return before;
}

cairn_status crn_play_find_cores(crn_player *p)
{
    MPI_Comm node;
    int nranks;
    CRN_TRY_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    CRN_TRY_MPI(MPI_Comm_size(node, &nranks));
    CRN_TRY_MPI(MPI_Comm_free(&node));
    p->awake_ns = nranks <= sysconf(_SC_NPROCESSORS_ONLN) ? AWAKE_NS : EARLY_NS;
    return CAIRN_OK;
}

void crn_play_sleep_until(const crn_player *p, uint64_t until)
{
    const uint64_t now = crn_now_ns(), ns = until - CRN_MIN(now, until);
    const uint64_t asleep = ns - CRN_MIN(ns, p->awake_ns);
    const struct timespec sleep = {.tv_sec = (time_t)(asleep / 1000000000),
                                   .tv_nsec = (long)(asleep % 1000000000)};
    if (asleep > 0)
        nanosleep(&sleep, NULL);
    while (crn_now_ns() < until)
        sched_yield(); /* to other ranks, if there are more than cores */
}

/* Computing of the first thread: the others go on. */
static cairn_status wait_for(crn_player *p, uint64_t ns)
{
    const uint64_t until = crn_now_ns() + ns;
    uint64_t next;
    do {
        CRN_TRY(crn_sides_play(p, &next));
        crn_play_sleep_until(p, CRN_MIN(until, next));
    } while (crn_now_ns() < until);
    crn_pace_spend(&p->pace, elapsed(p));
    return CAIRN_OK;
}

cairn_status crn_play_compute(crn_player *p)
{
    const double computed = add_gap(p);
    const uint64_t owed = p->pace.owed > 0 ? (uint64_t)p->pace.owed : 0;
    uint64_t next;
    crn_watch_note(p->watch, p, owed);
    if (p->pace.drawn >= TOGETHER_NS) {
        p->pace.drawn = 0;
        CRN_TRY(wait_for(p, owed));
    }
    p->clock += computed;
    return crn_sides_play(p, &next); /* what was before the current event is before it */
}

void crn_play_passed(crn_player *p, uint64_t took_ns)
{
    const crn_passing call = crn_times_passing(&p->times, p->e.symbol);
    p->clock += call.least + call.waited;
    if (call.known)
        crn_pace_call(&p->pace, call.least, call.waited / crn_play_speed(p), elapsed(p));
    else
        crn_pace_call(&p->pace, (double)took_ns, 0, elapsed(p));
}

uint64_t crn_play_expected_end(const crn_player *p)
{
    const crn_passing call = crn_times_passing(&p->times, p->e.symbol);
    if (p->opt->no_delay) /* who does not compute does not wait for those who did */
        return crn_now_ns() + (uint64_t)call.least;
    return p->began + (uint64_t)(p->pace.recorded + call.least + call.waited / crn_play_speed(p));
}
