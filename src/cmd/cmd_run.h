/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the parts of 'cairn run' share:
 *
 *   cmd_run.c           options, and the loop from leg to leg
 *   cmd_run_trail.c     the run that is supervised, and its log
 *
 * Starting, watching and ending programs is the work of src/supervise.
 */
#ifndef CAIRN_CMD_RUN_H
#define CAIRN_CMD_RUN_H

#include "cmd/cmd.h"
#include "event/event.h"
#include "supervise/supervise.h"

/* "cairn: " and a sentence about what goes on, to standard error. */
void cmd_run_say(const char *fmt, ...) CAIRN_PRINTF(1);

/* --- the run ------------------------------------------------------------------------------ */

typedef struct run_place {
    char *trail, *name;
} run_place;

/* Find the run that a program would continue, or the name of a new one, and let the environment
 * name it. trail NULL: as the configuration says. */
int cmd_run_place_find(run_place *p, const char *trail);
void cmd_run_place_done(run_place *p);

/* What the trail knows now. */
typedef struct run_state {
    bool exists, finished, stopped, opened; /* the last two: of the last leg */
    bool marked;
    uint64_t newest; /* mark, if marked */
    bool resumed;    /* the last leg came back to a mark, */
    uint64_t from;   /* this one */
    int nnodes;      /* of the last leg that opened the run */
    double lost_s;   /* with the last leg */
    char end[64];    /* of the last leg, in words */
} run_state;

int cmd_run_state(const run_place *p, run_state *ret);

/*
 * Write an event, which is released, into the run's log. A run that another process still has is
 * waited for. CMD_YES, also without a run; CMD_NO when it is not to be had, after saying who has
 * it; CMD_UNKNOWN when the log cannot be written, after saying why.
 */
int cmd_run_note(const run_place *p, crn_signals *s, crn_event *event);

/* Is there no room left where the trail is? */
bool cmd_run_disk_is_full(const run_place *p);

#endif
