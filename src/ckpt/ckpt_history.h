/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the log of a run tells the planner: its legs, its marks, and what the planner said last. A
 * session learns from it what earlier legs had measured, and <cairn/planner.h> what was done.
 */
#ifndef CAIRN_CKPT_HISTORY_H
#define CAIRN_CKPT_HISTORY_H

#include "base/base.h"
#include "event/event.h"
#include "level/level.h"
#include "plan/plan.h"

/* The levels that the planner has to choose from, by its own numbers, cheapest first. */
typedef struct ckpt_ladder {
    size_t n;
    crn_level level[CRN_NLEVELS];
} ckpt_ladder;

/* The number of the cheapest level that survives what destroys all below level; and of the highest
 * one that a mark at level is at. */
size_t crn_ladder_needed(const ckpt_ladder *ladder, crn_level level);
size_t crn_ladder_reached(const ckpt_ladder *ladder, crn_level level);

/* The marks of a leg so far, for the times between those of each level. */
typedef struct ckpt_pace {
    double held;                      /* seconds that they held the program */
    double computed[CRN_PLAN_LEVELS]; /* until the last one of at least a level */
    uint64_t nmarks[CRN_PLAN_LEVELS]; /* of at least a level */
} ckpt_pace;

/* A mark at measured->level began so many seconds after its leg did: sets full and elapsed. */
void crn_pace_mark(ckpt_pace *pace, double since_leg, crn_plan_measure *measured);

/* Times are seconds since 1970. */
typedef struct ckpt_past_leg {
    size_t first;              /* its first mark, if it has any */
    double opened, ready, end; /* ready: to compute, having come back if it did */
    bool closed;               /* it left in order */
    bool ended;                /* someone saw its end */
    bool told;                 /* someone has said when it was seen last */
    bool resumed;              /* it came back to a mark, */
    uint64_t version;          /* this one, */
    crn_level from;            /* and this is the safest level that blocks had to come from */
} ckpt_past_leg;

typedef struct ckpt_past_mark {
    size_t leg;
    uint64_t version;
    crn_level level;      /* the highest that it got to */
    double begun;         /* when its state was captured */
    double held, safe;    /* seconds that the program stood still, and until it was at its level */
    double nbytes, total; /* that the level took, and of the state */
} ckpt_past_mark;

typedef struct ckpt_history {
    CRN_VEC(ckpt_past_leg) leg;
    CRN_VEC(ckpt_past_mark) mark;
    crn_event tuned; /* the last event of this kind; none: all is 0 */
    bool failed;     /* no memory */
} ckpt_history;

/* Takes a line of the log; a cairn_event_fn, of which arg is the history. */
int crn_history_take(void *arg, const char *line);
void crn_history_done(ckpt_history *h);

/* The configured failure rates count like so many failures seen: a handful of real ones outweighs
 * them. */
enum { CKPT_TRUST = 2 };

/* Did this leg fail, and what did that destroy? The last one only when its end was seen. */
bool crn_history_failed(const ckpt_history *h, size_t leg, crn_level *ret_needed);

/* The end of the marks of a leg. */
size_t crn_history_end(const ckpt_history *h, size_t leg);

/* Seconds of all legs, and their failures by the planner's numbers; the last leg's not. */
double crn_history_observe(const ckpt_history *h, const ckpt_ladder *ladder,
                           unsigned nfailures[CRN_PLAN_LEVELS]);

/* Let the tuner learn from all marks, as if it had seen them. */
cairn_status crn_history_teach(const ckpt_history *h, const ckpt_ladder *ladder, crn_plan_tuner *t);

/* The schedule that was in force last; false when nothing is known for just these levels. */
bool crn_history_schedule(const ckpt_history *h, const ckpt_ladder *ladder,
                          cairn_plan_schedule *ret);

#endif
