/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The server, inside. One thread of rank 0 runs the loop; a second one, behind it, puts the
 * analysis on the shelf while members propagate, and shares nothing with the loop but what
 * crn_keeper says.
 */
#ifndef CAIRN_ENSEMBLE_SERVER_H
#define CAIRN_ENSEMBLE_SERVER_H

#include <pthread.h>
#include <stdatomic.h>

#include <cairn/state.h>

#include "ensemble/ensemble.h"
#include "ensemble/ensemble_layout.h"
#include "ensemble/ensemble_observing.h"
#include "ensemble/ensemble_ranks.h"
#include "ensemble/ensemble_revival.h"

/* --- members -------------------------------------------------------------------------------- */

typedef enum crn_member_state {
    CRN_MEMBER_TODO,
    CRN_MEMBER_RUNNING, /* on one runner or more */
    CRN_MEMBER_DONE,    /* its background is here */
    CRN_MEMBER_FAILED,  /* no attempt is left; waits for the end of the cycle */
    CRN_MEMBER_DROPPED
} crn_member_state;

enum { CRN_AVOID = 4 };

typedef struct crn_member_row {
    crn_member_state state;
    uint32_t attempt;          /* of the last task */
    bool recorded;             /* the state that failed is on its shelf */
    uint32_t burned;           /* attempts that count against it in this cycle */
    uint32_t losses;           /* runners that were lost or hung with it */
    uint32_t copies;           /* runners that have it now */
    bool overdue;              /* it may be started once more */
    uint32_t avoid[CRN_AVOID]; /* runners on which it failed last */
} crn_member_row;

/* --- runners -------------------------------------------------------------------------------- */

typedef struct crn_runner_rank {
    bool known;
    crn_state_fields piece;
    uint64_t came[CRN_MEMBER_FIELDS / 64]; /* whose pieces of the result are here, by bits */
} crn_runner_rank;

typedef struct crn_runner_row {
    crn_cause cause;   /* why it is gone, while a method's lose looks at it */
    uint64_t until_ns; /* when its job ends; 0: not known */
    uint32_t ntasks;   /* that it was given */
    uint32_t number;   /* of its job */
    uint32_t nranks, nknown;
    crn_runner_rank *rank;
    uint32_t nready; /* other ranks of the server that know all of its pieces */
    bool idle, busy;
    bool waits;    /* its result is announced, but pieces of other ranks are still to come */
    crn_wire task; /* the one that it has, while it is busy */
    crn_wire done; /* the announcement */
    uint64_t begun_ns, heard_ns;
    uint64_t ask_ns;                /* processor time that its request has taken until now */
    unsigned char *incoming;        /* the state that comes, piece by piece, */
    uint32_t in_member, in_attempt; /* and of which task it is the result */
    size_t ncame, nwanted;          /* pieces */
    uint32_t nwhole;                /* other ranks of the server whose part of a result is there, */
    uint32_t share_member, share_attempt; /* of this task; */
    uint32_t bad_rank;                    /* the lowest that has found something wrong, */
    char bad[160];                        /* and what; "": nothing */
    void *mine;                           /* the method's */
} crn_runner_row;

/* --- observations --------------------------------------------------------------------------- */

/* Adaptive inflation, as of a cycle; value 0: not known. */
typedef struct crn_adapted {
    uint32_t cycle;
    double value, variance;
} crn_adapted;

/* Members whose cycle is cut at the times of observations. */
typedef struct crn_async_row {
    uint64_t reached; /* steps of the cycle */
    uint32_t stale;   /* attempts up to this one are of earlier stretches */
    double *entry;    /* what observations have seen of it so far */
} crn_async_row;

typedef struct crn_async {
    uint32_t cycle;
    crn_obs_set *set;
    crn_async_row *row; /* of each member */
} crn_async;

/* --- the keeper of states ------------------------------------------------------------------- */

/* All ranks put; one after the other writes what is exported; rank 0 drops: each step when all have
 * done what comes before. */
typedef enum crn_keeper_step {
    CRN_KEEPER_RESTS,
    CRN_KEEPER_PUTS,
    CRN_KEEPER_EXPORTS,
    CRN_KEEPER_DROPS
} crn_keeper_step;

typedef struct crn_keeper {
    cairn_shelf *shelf; /* the keeper's while it works, else the loop's */
    pthread_t thread;
    bool works;         /* the loop's: the step is to be joined, */
    bool threaded;      /* and its thread, if it has one */
    _Atomic bool ended; /* set last by the thread */
    uint32_t cycle;     /* what it keeps: set before it starts */
    bool put;
    crn_keeper_step step; /* what it does: that, too */
    uint32_t validated;   /* backgrounds of later cycles are still to be read */
    cairn_status rc;      /* the thread's until ended */
    char text[CRN_ERR_TEXT];
    uint64_t begun_ns;
    double seconds;       /* that it took; the thread's until ended */
    unsigned char **copy; /* of the background, where that is written as HDF5, too */
} crn_keeper;

/* --- the server ----------------------------------------------------------------------------- */

typedef enum crn_phase {
    CRN_PHASE_FIELDS,
    CRN_PHASE_FIRST,
    CRN_PHASE_CYCLE,
    CRN_PHASE_OVER
} crn_phase;

typedef struct crn_server crn_server;

/*
 * What depends on the kind of study: where states are, what a task and a result are, when and how a
 * cycle ends. The loop calls these, one at a time; a failure ends the study with its sentence.
 */
typedef struct crn_method {
    cairn_status (*open)(crn_server *s);  /* before anybody can talk to the server */
    cairn_status (*begin)(crn_server *s); /* the layout is known: go on where the study stands, or
                                             ask for the model's first state; sets the phase */
    cairn_status (*join)(crn_server *s, crn_runner_row *r); /* all its ranks are known */
    cairn_status (*give)(crn_server *s,
                         crn_runner_row *r); /* it is idle: a task, if there is one */
    cairn_status (*letter)(crn_server *s, crn_runner_row *r, const crn_letter *m); /* of results */
    cairn_status (*lose)(crn_server *s, crn_runner_row *r, const char *why);       /* it is gone */
    cairn_status (*gone)(crn_server *s, uint32_t number,
                         const char *why); /* one that has not registered; NULL is allowed */
    void (*overdue)(crn_server *s, uint32_t member);
    cairn_status (*advance)(crn_server *s); /* if the cycle is complete: update, next cycle */
    cairn_status (*tick)(crn_server *s);    /* in each turn of the loop: what goes on behind it */
    cairn_status (*close)(crn_server *s, cairn_status rc); /* after the loop, which ended with rc */
    void (*free)(crn_server *s);
} crn_method;

extern const crn_method crn_method_particle;
extern const crn_method crn_method_kalman, crn_method_check, crn_method_try;

typedef struct crn_check crn_check;

struct crn_server {
    crn_study *study;
    const crn_method *method;
    bool twin;
    uint32_t incarnation;
    crn_link *hub, *launcher; /* launcher: rank 0's */
    crn_link *head;           /* of other ranks: to rank 0 */
    crn_server_ranks ranks;
    crn_phase phase;
    uint32_t cycle; /* that is being propagated */
    crn_state_layout layout;
    unsigned char **analysis, **background; /* slices of a state for each member */
    unsigned char **whole; /* analyses of members at home here; of one rank analysis itself */
    crn_member_row *member;
    uint32_t nmembers, nactive, ndone;
    CRN_VEC(crn_runner_row *) runner;
    CRN_VEC(double) seconds; /* durations of tasks, the last ones, by index modulo */
    uint64_t nseconds;
    crn_observing observing;
    crn_obs *obs; /* NULL: a free run */
    crn_adapted adapted;
    crn_async async;
    uint32_t ndiverged; /* cycles in a row whose innovations are too large, */
    bool judged;        /* by this server, too */
    FILE *twin_file;
    char *twin_path;
    crn_keeper keeper;
    crn_revival revival;
    CRN_VEC(double) request; /* seconds of processor time from requests to replies, the last */
    uint64_t nrequests;
    uint32_t nlimits; /* tasks in a row that ended with their job's time */
    uint64_t nbad, nstale, nfailures, nrepeated, beat_ns, cycle_ns, moved_ns;
    bool stopping;                 /* the launcher asked */
    crn_check *check;              /* NULL: it is none */
    struct crn_dynamics *dynamics; /* NULL: not yet, or no dynamic mode */
    uint32_t validated; /* of ensembles side by side: cycles, and is the next one waited for? */
    bool waiting;
    CRN_VEC(uint32_t) gone; /* runners whose jobs are over, or that were given up */
    void *mine;             /* the method's own */
};

/* Be this rank of the server; comm is freed. A study that ends well is CAIRN_OK on rank 0. */
cairn_status crn_server_run(crn_study *study, crn_study_mode mode, crn_comm *comm);

/* the loop, for methods */
crn_wire crn_server_wire(const crn_server *s, crn_wire_kind kind); /* of this cycle */
void crn_server_to_rank(crn_server *s, const crn_runner_row *r, uint32_t rank, const crn_wire *w,
                        const void *data, size_t nbytes);
void crn_server_clear(crn_runner_row *r); /* nothing of a result is here */
void crn_server_task_with(crn_server *s, crn_runner_row *r, const crn_wire *task, const void *data,
                          size_t nbytes);
void crn_server_task(crn_server *s, crn_runner_row *r, const crn_wire *task);
void crn_server_beat(crn_server *s, const char *text); /* to the launcher */
void crn_server_next_cycle(crn_server *s);

/* gather: states between the server and all ranks of a runner, for methods whose server has them */
typedef cairn_status crn_take_fn(crn_server *s, crn_runner_row *r, const crn_wire *done);
cairn_status crn_gather_begin(crn_server *s); /* memory for the states of all members */
void crn_gather_done(crn_server *s);
cairn_status crn_gather_join(crn_server *s, crn_runner_row *r);
bool crn_gather_knows(const crn_server *s, const crn_runner_row *r); /* all pieces in the slice */
void crn_gather_send(crn_server *s, const crn_runner_row *r, const crn_wire *task,
                     const unsigned char *state);
/* A message about a result; when all of it is in r->incoming, or there is none, take is called. */
cairn_status crn_gather_letter(crn_server *s, crn_runner_row *r, const crn_letter *m,
                               crn_take_fn *take);
/* The same of another rank of the server, which has its part of a result. */
cairn_status crn_gather_share(crn_server *s, crn_runner_row *r, const crn_wire *w,
                              crn_take_fn *take);
void crn_gather_swap(crn_server *s, crn_runner_row *r, uint32_t member); /* it is its state */

/* the loop, for other ranks */
crn_runner_row *crn_server_runner(const crn_server *s, uint32_t number); /* NULL */
void crn_server_forget(crn_server *s, crn_runner_row *r);
cairn_status crn_server_fields(crn_server *s, const crn_letter *m);
cairn_status crn_server_begin(crn_server *s, const crn_state_fields *fields); /* collective */

/* follower: the loop of other ranks than 0 */
cairn_status crn_follower_run(crn_server *s);
cairn_status crn_follower_runner(crn_server *s,
                                 crn_runner_row *r); /* a rank of it has registered */

/* kalman: steps of all ranks. Collective. */
cairn_status crn_kalman_first(crn_server *s);
cairn_status crn_kalman_analyse(crn_server *s);

/* check */
cairn_status crn_check_lost(crn_server *s, uint32_t runner, const char *why);
void crn_check_say(const crn_server *s, const char *what, int ok, const char *fmt, ...)
    CAIRN_PRINTF(4); /* ok: 1, 0: a fault, -1: it was not tried */
void crn_needs_report(crn_server *s, uint32_t nranks, double task_s); /* by crn_check_say */

/* revival */
void crn_revival_begin(crn_server *s);  /* a study was taken up */
void crn_revival_look(crn_server *s);   /* is what there was there again? */
void crn_revival_report(crn_server *s); /* in the end: model and measurement */

/* schedule */
void crn_schedule_begin(crn_server *s); /* of a cycle: every active member is to do */
bool crn_schedule_choose(crn_server *s, const crn_runner_row *r, uint32_t *ret);
double crn_schedule_due_s(const crn_server *s); /* how long a task may take */
void crn_schedule_took(crn_server *s, double seconds);
double crn_schedule_need_s(const crn_server *s); /* how long a task takes, as far as is known */
cairn_status crn_schedule_failed(crn_server *s, uint32_t member, uint32_t runner, crn_cause cause,
                                 const char *why);

/* failed: the state that a task began with goes to a shelf, to be tried by hand; once for a cycle
 */
void crn_failed_keep(crn_server *s, uint32_t member);

/* What study.ranges says, into the layout. */
cairn_status crn_ranges_apply(const crn_study *study, crn_state_layout *l);

/* states */
cairn_status crn_states_open(crn_server *s);
cairn_status crn_states_take_up(crn_server *s, bool *ret_analyse); /* CAIRN_NOTHING: nothing kept */
bool crn_states_keep_background(const crn_server *s);
cairn_status crn_states_put_background(crn_server *s, uint32_t member, const unsigned char *whole);
cairn_status crn_states_refuse(crn_server *s, uint32_t member, uint32_t cycle); /* a background */
cairn_status crn_export_prepare(crn_server *s); /* before the keeper starts; collective */
cairn_status crn_export_write(crn_server *s);   /* by the keeper: what study.hdf5 asks for */
void crn_export_done(crn_server *s);
void crn_keeper_start(crn_server *s, uint32_t cycle); /* collective */
void crn_keeper_wait(crn_server *s);                  /* until the step of this rank has ended */
void crn_keeper_join(crn_server *s);
bool crn_keeper_works(const crn_server *s);  /* of some rank: rank 0 knows */
cairn_status crn_keeper_look(crn_server *s); /* has its step ended? Then the next one */
cairn_status crn_keeper_heard(crn_server *s, const crn_wire *w); /* that of another rank has */
void crn_keeper_export(crn_server *s);                           /* it is its turn */
void crn_states_close(crn_server *s);
cairn_status crn_ledger_read(crn_server *s);

/* side by side */
cairn_status crn_side_first(crn_server *s);  /* members of all ensembles from background[0] */
cairn_status crn_side_update(crn_server *s); /* the update of ensemble 0, applied to all */
bool crn_side_must_wait(crn_server *s);      /* validators do not keep up */
/* The normalised weights of a particle filter, of ensemble 0; update: resample all by them. */
cairn_status crn_side_weigh(crn_server *s, bool update, double *ret);

/* dynamic mode: before a task is given; what a member's put or push took, and a load of it; the end
 * of the study, which ended with rc */
cairn_status crn_dynamic_task(crn_server *s, crn_wire *w);
void crn_dynamic_stored(crn_server *s, uint32_t cycle, uint32_t member, double seconds);
void crn_dynamic_loaded(crn_server *s, uint32_t cycle, uint32_t member, double seconds);
cairn_status crn_dynamic_close(crn_server *s, cairn_status rc);

/* observations at their times: which steps of the cycle a member's next task has; whether a result
 * is of an earlier one; the state that it has reached, and whether that is the cycle's end */
cairn_status crn_async_task(crn_server *s, uint32_t member, uint64_t *ret_from, uint64_t *ret_to);
bool crn_async_is_stale(const crn_server *s, uint32_t member, uint32_t attempt);
cairn_status crn_async_reached(crn_server *s, uint32_t member, const unsigned char *state,
                               bool *ret_whole);
void crn_async_done(crn_server *s);

/* perturb: factor times the deviation of each field; from and to may be the same */
cairn_status crn_perturb(const crn_server *s, crn_purpose purpose, uint32_t cycle, uint64_t member,
                         double factor, const unsigned char *from, unsigned char *to);

/* analysis */
cairn_status crn_analysis_first(crn_server *s); /* members from background[0] */
cairn_status crn_analysis_update(crn_server *s);

/* --- the kernel ----------------------------------------------------------------------------- */

/* Write down for which kind of processor kernel the study's bits are promised from now on. */
cairn_status crn_kernel_record(crn_server *s);

#endif
