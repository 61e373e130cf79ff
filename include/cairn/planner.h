/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Planning: how often to mark, at which level, and what share of its time a program then spends on
 * computing. Numbers in, numbers out: no trail and no MPI is needed, nothing is measured. A program
 * that marks needs none of this, since a session plans for itself; this is for those who buy a
 * machine, write a proposal or doubt a setting. 'cairn plan' is made of these calls.
 *
 *     cairn_plan_input in = {.struct_bytes = sizeof in, .nlevels = 2,
 *                            .changed_at_once = 2.5e9, .change_pace = 1};
 *     in.level[0] = (cairn_plan_level){.rate = 1 / 600., .bandwidth = 780e6, .restart = 3};
 *     in.level[1] = (cairn_plan_level){.rate = 1 / 56e3, .bandwidth = 16e6, .restart = 160};
 *     cairn_plan_schedule s = {.struct_bytes = sizeof s};
 *     if (cairn_plan_best(&in, &s) == CAIRN_OK)
 *         printf("a mark every %g s, %.0f %% efficient\n", s.interval, 100 * s.efficiency);
 *
 * Units are seconds, bytes, and failures per second. Each structure begins with its own size, set
 * by the caller, so that it can grow. Every call returns CAIRN_OK, or CAIRN_EINVAL when a number
 * makes no sense; cairn_error_text says which. No result is ever NaN. Calls may be made by any
 * thread.
 */
#ifndef CAIRN_PLANNER_H
#define CAIRN_PLANNER_H

#include <stddef.h>
#include <stdint.h>

#include <cairn/error.h>

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
    double work;    /* computing time of each run */
    unsigned nruns; /* at least 2 */
    uint64_t seed;  /* the same seed gives the same result */
    double
        shape[CAIRN_PLAN_LEVELS]; /* of the Weibull distribution of failures; 0: 1, exponential */
    double efficiency, error;     /* results: the mean, and its standard error */
} cairn_plan_trial;

/*
 * The efficiency of a schedule by simulating runs under random failures. A run is given up after a
 * thousand times its work. Not collective.
 */
CAIRN_API CAIRN_CHECK int cairn_plan_simulate(const cairn_plan_input *in,
                                              const cairn_plan_schedule *s,
                                              cairn_plan_trial *trial);

#ifdef __cplusplus
}
#endif
#endif
