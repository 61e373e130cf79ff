/* SPDX-License-Identifier: BSD-3-Clause
 *
 * supervise: start programs, watch them, and end all that they started. Row 4: uses base alone, and
 * knows nothing of trails. Not part of libcairn: the command links it, and so does the ensemble's
 * launcher.
 *
 *     supervise_leg.c        one leg: start, watch, end
 *     supervise_signals.c    signals to this process, and waiting for them
 *     supervise_proc.c       the processes of this machine
 *     supervise_offspring.c  those that descend from this one
 *     supervise_orphans.c    those that a supervisor that was killed has left behind
 *     supervise_ranks.c      the ranks of a launcher: when the first of them died
 *     supervise_shell.c      commands whose result is needed
 *     supervise_tail.c       the last lines of output
 *     supervise_launcher.c   the launcher's line: how many ranks, and what it hands on
 *
 * Nothing here prints: output of programs goes to the descriptors that the caller names, and
 * sentences about what goes on to the caller's function.
 */
#ifndef CAIRN_SUPERVISE_H
#define CAIRN_SUPERVISE_H

#include <poll.h>
#include <signal.h>
#include <sys/types.h>

#include "base/base.h"

/* Takes a sentence about what goes on: no "cairn: " before it, no line end after it. */
typedef void crn_say_fn(const char *sentence);

/* --- signals ------------------------------------------------------------------------------ */

typedef struct crn_signals {
    int fd;       /* where they arrive: a signalfd */
    sigset_t was; /* the mask that programs are to start with */
    int nleave;   /* how many asked this process to leave */
} crn_signals;

cairn_status crn_signals_start(crn_signals *s); /* CAIRN_EIO */
void crn_signals_end(crn_signals *s);

/* The next signal that has come, or 0. Those that ask to leave are counted. */
int crn_signals_next(crn_signals *s);

/* Sleep until the time is over; sooner when asked to leave, and then false. */
bool crn_signals_pause(crn_signals *s, double seconds);

/* --- processes ---------------------------------------------------------------------------- */

typedef struct crn_proc {
    pid_t pid, parent;
    uint64_t born; /* clock ticks after the machine's start: distinguishes it from others with its
                      number */
    bool ended;    /* and waits for its parent to take notice */
    bool ours;     /* for the owner of a list */
} crn_proc;

typedef CRN_VEC(crn_proc) crn_procs;

void crn_proc_list(crn_procs *ret); /* all of this machine that there is memory for */
bool crn_proc_self(crn_proc *ret);  /* false where there is no /proc */
bool crn_proc_is_alive(pid_t pid, uint64_t born);

/* The environment that a process was started with, to be freed: strings, one after the other. NULL:
 * it is not ours to read, or gone. */
char *crn_proc_environment(pid_t pid, size_t *ret_n);

/* The value of a variable there; "" where it has none. */
const char *crn_environment_find(const char *text, size_t n, const char *name);

/* The processes of the programs: all that descend from this one, but for those that were there
 * before. Those that lose their parent become children of this one, so that none gets away. */
typedef struct crn_offspring {
    crn_procs spared;
    crn_say_fn *say; /* NULL: nobody listens */
} crn_offspring;

void crn_offspring_start(crn_offspring *o, crn_say_fn *say);
void crn_offspring_done(crn_offspring *o);

/* Reap what has ended; the status of pid if that was among it, else -1. */
int crn_offspring_reap(pid_t pid);

/* Kill all of them and wait, within reason, until they are gone; the same result. */
int crn_offspring_kill(const crn_offspring *o, pid_t pid);

/* Has pid children, all of which have ended without its taking notice? */
bool crn_offspring_is_stuck(pid_t pid);

/*
 * The ranks that a launcher has started on this machine. Launchers take seconds to end once a rank
 * has died; the ranks are none of our children, but the kernel lets anyone wait for them.
 */
typedef struct crn_rank_watch {
    CRN_VEC(struct pollfd) process; /* that are alive: a pidfd each */
    CRN_VEC(pid_t) known;           /* all that were found */
    CRN_VEC(uint64_t) died;         /* when others did, wall clock, in that order */
    uint64_t look_ns, pause_ns;     /* when they were looked for, and for how long not again */
} crn_rank_watch;

void crn_rank_watch_look(crn_rank_watch *r,
                         pid_t launcher); /* for new ones, now and then; and for deaths */
void crn_rank_watch_done(crn_rank_watch *r);

/* When the leg was over that came to its end at this time: when a rank died shortly before. */
uint64_t crn_rank_watch_first(const crn_rank_watch *r, uint64_t end_ns);

/* A variable of the environment. */
typedef struct crn_variable {
    const char *name, *value;
} crn_variable;

/* Mark programs, in their environment, as belonging to this process. CAIRN_ENOMEM. */
cairn_status crn_orphans_sign(void);

/*
 * End what a supervisor that was killed has left on this machine, of programs whose environment has
 * these n variables: by the signal that asks them to leave, first.
 */
void crn_orphans_end(const crn_variable *has, size_t n, crn_signals *s, int leave, crn_say_fn *say);

/* Signal all processes of this machine, but for this one, whose environment has these variables
 * (0: none is sent); how many there are. */
size_t crn_marked_signal(const crn_variable *has, size_t nvariables, int number);

/* --- commands ----------------------------------------------------------------------------- */

/*
 * Run a shell command with the signal mask of programs: its status, and what it prints, its lines
 * as one. When a signal that asks to leave comes meanwhile, it is ended, unless we are patient. -1
 * then, and when it could not be started.
 */
int crn_shell_run(const char *command, const crn_offspring *o, crn_signals *s, bool patient,
                  char *text, size_t cap);

/* --- output ------------------------------------------------------------------------------- */

/* The last lines that passed. */
typedef struct crn_tail {
    char at[4096];
    size_t n;
} crn_tail;

void crn_tail_add(crn_tail *t, const char *data, size_t n);
const char *crn_tail_text(crn_tail *t); /* whole lines only, if there are any; ends the adding */

/* --- the launcher's line ------------------------------------------------------------------ */

typedef struct crn_launcher {
    char **words;    /* as executed; ended by NULL */
    uint64_t nranks; /* 0: the line does not have it, or this is no launcher that we know */
    size_t at;       /* the word that says */
    bool known;      /* it is a launcher of ranks, not the program itself */
    char *number;    /* its new text; NULL: as it was given */
} crn_launcher;

/* Take the line as given; words stay the caller's. CAIRN_ENOMEM. */
cairn_status crn_launcher_init(crn_launcher *l, char **words, size_t nwords);
void crn_launcher_done(crn_launcher *l);

/* Set another number of ranks in the line. CAIRN_ENOMEM. */
cairn_status crn_launcher_set_ranks(crn_launcher *l, uint64_t nranks);

/* The signal that has killed a rank, as the launcher says; 0: it says nothing of the kind. */
int crn_launcher_signal(int code, const char *output);

/* Let Open MPI hand all CAIRN_ variables of the environment to other machines; others do anyway.
 * CAIRN_ENOMEM. */
cairn_status crn_launcher_hand_on(const crn_launcher *l);

/* --- a leg -------------------------------------------------------------------------------- */

typedef enum crn_leg_end {
    CRN_LEG_EXIT,
    CRN_LEG_SIGNAL,
    CRN_LEG_HANG,
    CRN_LEG_LIMIT,
    CRN_LEG_ASKED,
    CRN_LEG_UNSTARTED,
} crn_leg_end;

typedef struct crn_leg {
    const crn_offspring *offspring;
    char **words;
    int out, err;  /* where its output goes */
    double hang_s; /* without a new pulse for so long, it hangs; 0: watch for none */
    bool (*pulse)(void *arg, uint64_t *ret); /* a number that changes while the program lives; */
    void *pulse_arg;                         /* false: not known now */
    double grace_s;                          /* from the request to leave until it is killed */
    uint64_t until_ns;                       /* when to ask it to leave, by crn_now_ns; 0: never */
    int leave;                               /* the signal that asks it to */
    bool launcher; /* it is one that has nothing to do once its children have ended */
    /* results */
    crn_leg_end why;
    int code, signal;     /* of the launcher; code -1: it was killed, or never was */
    bool asked;           /* to leave */
    uint64_t launched_ns; /* wall clock, as below */
    uint64_t worked_ns;   /* when it ended, or had to; 0: it hung, since nobody knows when */
    crn_tail tail;
} crn_leg;

/* Start it and stay with it until all of it is gone. CAIRN_EIO: it could not be started. */
cairn_status crn_leg_run(crn_leg *leg, crn_signals *s);

#endif
