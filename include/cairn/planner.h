/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Planning: how often to mark, at which level, and what share of its time a program then spends on
 * computing. Numbers in, numbers out: no MPI is needed, nothing is measured; only cairn_plan_recall
 * looks into a trail, for the numbers of a run. A program that marks needs none of this, since a
 * session plans for itself; this is for those who buy a machine, write a proposal or doubt a
 * setting. 'cairn plan' is made of these calls.
 *
 *     cairn_plan_input in = {.struct_bytes = sizeof in, .nlevels = 2,
 *                            .changed_at_once = 2.5e9, .change_pace = 1};
 *     in.level[0] = (cairn_plan_level){.rate = 1 / 600., .bandwidth = 780e6, .restart = 3};
 *     in.level[1] = (cairn_plan_level){.rate = 1 / 56e3, .bandwidth = 16e6, .restart = 160};
 *     cairn_plan_schedule s = {.struct_bytes = sizeof s};
 *     if (cairn_plan_best(&in, &s) == CAIRN_OK)
 *         printf("a mark every %g s, %.0f %% efficient\n", s.interval, 100 * s.efficiency);
 *
 * Units are seconds, bytes, and failures per second. struct_bytes of the structures is explained in
 * <cairn/version.h>. Every call returns CAIRN_OK, or CAIRN_EINVAL when a number makes no sense;
 * cairn_error_text says which. No result is ever NaN.
 */
#ifndef CAIRN_PLANNER_H
#define CAIRN_PLANNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/error.h>
#include <cairn/trail.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CAIRN_PLAN_LEVELS 4

/*
 * One level of safety. Levels are ordered, the cheapest first; a mark at one is also on those below
 * it, and a failure that destroys all below a level needs a mark of that level or higher.
 */
typedef struct cairn_plan_level {
    double rate;       /* of failures that need this level */
    double restart;    /* time that a restart from it takes */
    double fixed;      /* time that a mark holds the program whatever has changed, */
    double bandwidth;  /* and changed bytes per second on top; above 0 */
    double background; /* time until a mark is safe; its next one does not come earlier */
} cairn_plan_level;

/*
 * What is known. Bytes changed t seconds of computing after a mark:
 *     changed_at_once + changed_in_time * (1 - exp(-t / change_pace))
 */
typedef struct cairn_plan_input {
    size_t struct_bytes;
    double changed_at_once, changed_in_time, change_pace; /* change_pace above 0 */
    double interval_min, interval_max;                    /* 0: 1 s, a day */
    unsigned ratio_max;                                   /* 0: 1000; at most 10000 */
    size_t nlevels;                                       /* 1 to CAIRN_PLAN_LEVELS */
    cairn_plan_level level[CAIRN_PLAN_LEVELS];
} cairn_plan_input;

/*
 * A mark after every interval seconds of computing. ratio[l] marks of level l - 1 or higher make
 * one of level l; ratio[0] is 1. Two local marks to one global are {1, 3}; a ratio of 1 leaves the
 * level below unused.
 */
typedef struct cairn_plan_schedule {
    size_t struct_bytes;
    double interval;
    unsigned ratio[CAIRN_PLAN_LEVELS];
    double efficiency; /* computing time by time; 0 when such a run would never end */
} cairn_plan_schedule;

/* The best schedule. Not collective. */
CAIRN_API CAIRN_CHECK int cairn_plan_best(const cairn_plan_input *in, cairn_plan_schedule *ret);

/* The efficiency of a schedule, into s->efficiency. Not collective. */
CAIRN_API CAIRN_CHECK int cairn_plan_predict(const cairn_plan_input *in, cairn_plan_schedule *s);

typedef struct cairn_plan_trial {
    size_t struct_bytes;
    double work;                     /* computing time of each run */
    unsigned nruns;                  /* at least 2 */
    uint64_t seed;                   /* the same seed gives the same result */
    double shape[CAIRN_PLAN_LEVELS]; /* Weibull's, of failures; 0: 1, the exponential one */
    double efficiency, error;        /* results: the mean, and its standard error */
} cairn_plan_trial;

/*
 * The efficiency of a schedule by simulating runs under random failures. A run is given up after a
 * thousand times its work. Not collective.
 */
CAIRN_API CAIRN_CHECK int cairn_plan_simulate(const cairn_plan_input *in,
                                              const cairn_plan_schedule *s,
                                              cairn_plan_trial *trial);

/* A failure that happened. */
typedef struct cairn_plan_failure {
    double at;    /* seconds since the run began */
    size_t level; /* the number of the lowest level that survived it */
} cairn_plan_failure;

/* What a run would have cost. work + held + lost + restarting = wall. */
typedef struct cairn_plan_outcome {
    size_t struct_bytes;
    bool finished;
    double work, wall;             /* computing that lasts, and the time that it took */
    double held, lost, restarting; /* where the difference went */
    uint64_t nmarks[CAIRN_PLAN_LEVELS];
    uint64_t nfailures[CAIRN_PLAN_LEVELS];
} cairn_plan_outcome;

/*
 * One run of work seconds of computing against failures, in order of time; after the last of them
 * there are none. The rates of in are not used. A run is given up after a thousand times its work.
 * Not collective. CAIRN_EINVAL, CAIRN_ENOMEM.
 */
CAIRN_API CAIRN_CHECK int cairn_plan_replay(const cairn_plan_input *in,
                                            const cairn_plan_schedule *s, double work,
                                            const cairn_plan_failure *failures, size_t nfailures,
                                            cairn_plan_outcome *ret);

/* What became of a run. Its time is that of its legs and of coming back after failures; how long it
 * lay still between legs that left in order does not count. */
typedef struct cairn_plan_past {
    size_t struct_bytes;
    cairn_plan_input in; /* measured: growth, costs, failures; restart: from a failure to computing
                            again, where that happened */
    const char *name[CAIRN_PLAN_LEVELS]; /* of the levels of in: "local" and so on */
    bool tuned;                          /* the run's own planner said so; else its marks did, and
                                            failure rates are defaults and what was seen */
    cairn_plan_schedule done; /* on average: what its marks were; efficiency: that of the run */
    cairn_plan_outcome outcome;
    size_t nlegs;
    size_t nfailures;
    cairn_plan_failure *failures; /* in order of time; until cairn_plan_forget */
} cairn_plan_past;

/*
 * What the log of a run tells: for cairn_plan_best, to know what would have been best, and for
 * cairn_plan_replay, to know what that would have gained. Not collective. CAIRN_ENOTFOUND: its
 * marks do not tell what marks cost; and as cairn_trail_events.
 */
CAIRN_API CAIRN_CHECK int cairn_plan_recall(cairn_trail *trail, size_t run, cairn_plan_past *ret);

/* Free what cairn_plan_recall has made. */
CAIRN_API void cairn_plan_forget(cairn_plan_past *past);

#ifdef __cplusplus
}
#endif
#endif
