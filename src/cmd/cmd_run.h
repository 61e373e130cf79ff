/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the parts of 'cairn run' share:
 *
 *   cmd_run.c           options, and the loop from leg to leg
 *   cmd_run_leg.c       one leg: start, watch, end
 *   cmd_run_signals.c   signals to this process, and waiting for them
 *   cmd_run_proc.c      the processes of this machine
 *   cmd_run_tree.c      those that descend from this one
 *   cmd_run_orphans.c   those that a 'cairn run' that was killed has left behind
 *   cmd_run_tail.c      the last lines of output
 *   cmd_run_launcher.c  the launcher's line: how many ranks, and what it hands on
 *   cmd_run_trail.c     the run that is supervised, and its log
 */
#ifndef CAIRN_CMD_RUN_H
#define CAIRN_CMD_RUN_H

#include <sys/types.h>

#include "cmd/cmd.h"

/* "cairn: " and a sentence about what goes on, to standard error. */
void cmd_run_say(const char *fmt, ...) CAIRN_PRINTF(1);

/* --- signals ------------------------------------------------------------------------------ */

typedef struct run_signals {
    int fd;       /* where they arrive: a signalfd */
    sigset_t was; /* the mask that programs are to start with */
    int nleave;   /* how many said: leave */
} run_signals;

int cmd_signals_start(run_signals *s); /* CMD_YES, or CMD_UNKNOWN after saying why */
void cmd_signals_end(run_signals *s);

/* The next signal that has come, or 0. Those that say leave are counted. */
int cmd_signals_next(run_signals *s);

/* Sleep until the time is over; sooner when told to leave, and then false. */
bool cmd_signals_pause(run_signals *s, double seconds);

/* --- processes ---------------------------------------------------------------------------- */

typedef struct run_process {
    pid_t pid, parent;
    uint64_t born; /* clock ticks after the machine's start: tells it from others of its number */
    bool ended;    /* and waits for its parent to take notice */
    bool ours;     /* for whoever looks at a list */
} run_process;

typedef CRN_VEC(run_process) run_processes;

void cmd_proc_list(run_processes *ret); /* all of this machine that there is memory for */
bool cmd_proc_self(run_process *ret);   /* false where there is no /proc */
bool cmd_proc_is_alive(pid_t pid, uint64_t born);

/* The processes of the program: all that descend from this one, but for those that were there
 * before. Those that lose their parent become children of this one, so that none gets away. */
typedef struct run_tree {
    run_processes spared;
} run_tree;

void cmd_tree_start(run_tree *t);
void cmd_tree_done(run_tree *t);

/* Reap what has ended; the status of pid if that was among it, else -1. */
int cmd_tree_reap(pid_t pid);

/* Kill all of them and wait, within reason, until they are gone; the same result. */
int cmd_tree_kill(const run_tree *t, pid_t pid);

/* Has pid children, all of which have ended without its taking notice? */
bool cmd_tree_is_stuck(pid_t pid);

/* --- commands ----------------------------------------------------------------------------- */

/*
 * Run a shell command with the program's signal mask: its status, and what it prints, its lines as
 * one. When a signal that means to leave comes meanwhile, it is ended, unless we are patient. -1
 * then, and when it could not be started.
 */
int cmd_shell_run(const char *command, const run_tree *tree, run_signals *s, bool patient,
                  char *text, size_t cap);

/* --- output ------------------------------------------------------------------------------- */

/* The last lines that passed. */
typedef struct run_tail {
    char at[4096];
    size_t n;
} run_tail;

void cmd_tail_add(run_tail *t, const char *data, size_t n);
const char *cmd_tail_text(run_tail *t); /* whole lines only, if there are any; ends the adding */

/* --- the launcher's line ------------------------------------------------------------------ */

typedef struct run_launcher {
    char **words;    /* as executed; ended by NULL */
    uint64_t nranks; /* 0: the line does not say, or this is no launcher that we know */
    size_t at;       /* the word that says */
    bool known;      /* it is a launcher of ranks, not the program itself */
    char *number;    /* its new text; NULL: as it was given */
} run_launcher;

/* Take the line as given; words stay the caller's. CMD_YES, or CMD_UNKNOWN without memory. */
int cmd_launcher_init(run_launcher *l, char **words, size_t nwords);
void cmd_launcher_done(run_launcher *l);

/* Let the line say another number of ranks. */
int cmd_launcher_set_ranks(run_launcher *l, uint64_t nranks);

/* The signal that has killed a rank, as the launcher says; 0: it says nothing of the kind. */
int cmd_launcher_signal(int code, const char *output);

/* Let Open MPI hand all CAIRN_ variables of the environment to other machines; others do anyway. */
int cmd_launcher_hand_on(const run_launcher *l);

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
int cmd_run_note(const run_place *p, run_signals *s, json_t *event);

/* Let the environment of the program say that it belongs to this 'cairn run'. */
int cmd_orphans_sign(void);

/* End what a 'cairn run' that was killed has left of this run on this machine; by the signal that
 * says leave, first. */
void cmd_orphans_end(const run_place *p, run_signals *s, int leave);

/* Is there no room left where the trail is? */
bool cmd_run_disk_is_full(const run_place *p);

/* --- a leg -------------------------------------------------------------------------------- */

typedef enum run_why {
    RUN_EXIT,
    RUN_SIGNAL,
    RUN_HANG,
    RUN_LIMIT,
    RUN_TOLD,
    RUN_UNSTARTED,
} run_why;

typedef struct run_leg {
    const run_place *place;
    const run_tree *tree;
    char **words;
    double hang_s;     /* 0: watch for none */
    double grace_s;    /* to leave in, once told */
    uint64_t until_ns; /* when to tell it, by crn_now_ns; 0: never */
    int leave;         /* the signal that tells it */
    bool launcher;     /* it is one that has nothing to do once its children have ended */
    /* results */
    run_why why;
    int code, signal; /* of the launcher; code -1: it was killed, or never was */
    bool told;
    uint64_t launched_ns; /* wall clock */
    run_tail tail;
} run_leg;

/* Start it and stay with it until all of it is gone. CMD_UNKNOWN: it could not be started. */
int cmd_leg_run(run_leg *leg, run_signals *s);

#endif
