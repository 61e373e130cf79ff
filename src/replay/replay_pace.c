/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Computing as waiting, at the pace of the recorded run.
 *
 * DESIGN. Times between calls are drawn from histograms over all ranks, on all ranks alike. Where
 * ranks computed unequally long, they waited for one another in calls; drawn alike they do not, and
 * the replay would come to its end too early. How long they waited is known on average: what calls
 * took beyond the least. So a rank knows when the run was here, on average, and what of that was
 * waiting. If it is ahead, it computes for longer, but for no longer in all than calls waited:
 * being ahead for other reasons, such as a faster network, is what a replay is to show. Waiting
 * that comes from the structure of the program happens by itself, and then no rank is ahead.
 */
#include "replay/replay_play.h"

#include <time.h>

/* Shorter waits are put together: a sleep takes that long by itself. When they are made up for goes
 * by what was drawn, so that all ranks sleep at the same call, and not one after the other. */
enum { SLEEP_NS = 200000 };

void crn_pace_compute(crn_pace *c, double mean, double drawn, double elapsed)
{
    c->recorded += mean;
    c->owed += drawn;
    c->drawn += drawn;
    const double ahead = c->recorded - elapsed - c->owed, more = CRN_MIN(ahead, c->waited);
    if (more > 0) {
        c->owed += more;
        c->waited -= more;
    }
}

void crn_pace_call(crn_pace *c, double least, double waited)
{
    c->recorded += least + waited;
    c->waited += waited;
}

static double speed_of(const crn_player *p)
{
    return p->opt->speed > 0 ? p->opt->speed : 1;
}

/* Time between two calls of the program; what MPI-IO did between its own calls is not. */
static const crn_hist *gap_before(const crn_player *p)
{
    const crn_lane *lane = &p->t->lane[0];
    if (p->opt->no_delay || p->e.place->call == CRN_CALL_match ||
        (p->e.from != CRN_NO_SYMBOL && lane->symbol[p->e.from].within != CRN_CALL_NONE))
        return NULL;
    return crn_lane_gap(lane, p->e.from, p->e.symbol);
}

static void add_gap(crn_player *p)
{
    const crn_hist *gap = gap_before(p);
    if (!gap)
        return;
    crn_rng rng = crn_rng_of(p->opt->seed, p->e.symbol); /* a slow turn is slow on all ranks */
    rng.n = p->e.index;
    crn_pace_compute(&p->pace, crn_hist_mean(gap) / speed_of(p),
                     (double)crn_hist_draw(gap, crn_rng_u64(&rng)) / speed_of(p),
                     (double)(crn_now_ns() - p->began));
}

/* Sleeping longer than asked is paid back by the waits that follow. */
void crn_play_compute(crn_player *p)
{
    add_gap(p);
    crn_watch_note(p->watch, p, p->pace.owed > 0 ? (uint64_t)p->pace.owed : 0);
    if (p->pace.drawn < SLEEP_NS)
        return;
    p->pace.drawn = 0;
    if (p->pace.owed <= 0)
        return;
    uint64_t start = crn_now_ns();
    struct timespec wait = {.tv_sec = (time_t)(p->pace.owed * 1e-9),
                            .tv_nsec = (long)((uint64_t)p->pace.owed % 1000000000)};
    nanosleep(&wait, NULL);
    p->pace.owed -= (double)(crn_now_ns() - start);
}

/* A call in which ranks wait for one another; the time that files take is the machine's. */
void crn_play_passed(crn_player *p, uint64_t took_ns)
{
    const crn_hist *took = p->t->lane[0].took ? &p->t->lane[0].took[p->e.symbol] : NULL;
    const crn_layer layer = p->e.call->layer;
    if (!took || took->nbins == 0 || layer < CRN_LAYER_P2P || layer > CRN_LAYER_RMA) {
        crn_pace_call(&p->pace, (double)took_ns, 0);
        return;
    }
    const double least = (double)took->bin[0].min;
    crn_pace_call(&p->pace, least, (crn_hist_mean(took) - least) / speed_of(p));
}
