/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plan: how often to mark, and at which level. Pure arithmetic: numbers in, numbers out; no clock,
 * no files, no messages, no memory of its own. Row 1: stands on base only.
 *
 * In the order in which one needs it:
 *
 *   Intervals    Young's and Daly's answers for one level whose marks always cost the same
 *   Model        levels, costs that grow with the changed data, and the failures that each covers
 *   Prediction   the efficiency of a schedule: the Markov model, solved exactly
 *   Optimum      the best schedule: closed forms, and a bounded search that is never worse
 *   Marks        when writing only what changed pays; the overhead of marks and restarts
 *   Blocks       which size of blocks writes least
 *   Fit          the model's curves from measurements
 *   Tuner        a state machine: fed with what marks cost, it says how to go on
 *   Revival      what the death of an ensemble's server costs, by what is kept
 *   Simulator    random or recorded failures against a schedule, to check all of the above
 *
 * Units are seconds, bytes, failures per second. Numbers in comments are equations: (1) to (10) of
 * Amrizal, Hirasawa, Takizawa and Kobayashi, "Automatic Parameter Tuning of Hierarchical
 * Incremental Checkpointing", (5.x) and (6.x) of K. Keller's thesis "Resilience for Large Ensemble
 * Computations" (2022). docs/design/planner.md derives what goes beyond them.
 *
 * Every function that returns a status fails with CAIRN_EINVAL and a sentence when a number makes
 * no sense (not finite, negative, a bandwidth of nothing); no result is ever NaN.
 */
#ifndef CAIRN_PLAN_H
#define CAIRN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/planner.h>

#include "base/base.h"

/* Intervals: computing time between two marks, for one level and a constant cost */

/*
 * cost: of a mark; mtbf: mean time between failures; restart: of one. A cost that is not below the
 * mtbf is refused: no interval would let such a run end in reasonable time, and none of these
 * formulas holds there.
 */
cairn_status crn_plan_young(double cost, double mtbf, double *ret);                 /* (5) */
cairn_status crn_plan_daly1(double cost, double restart, double mtbf, double *ret); /* 2003 */
cairn_status crn_plan_daly(double cost, double mtbf, double *ret); /* 2006, higher order */

/* Model: levels, what their marks cost, and the order of marks. */

enum {
    CRN_PLAN_LEVELS = CAIRN_PLAN_LEVELS, /* a model may have fewer */
    CRN_PLAN_RATIO_MAX = 10000           /* of one level to the next: more is "never" */
};

/*
 * Bytes that differ from a mark after t seconds of computing: floor + span * (1 - exp(-t / theta)).
 * What each step writes anew is in floor; what is reached little by little in span, with the pace
 * theta. It rises, ever slower, to the size of what the program writes at all.
 */
typedef struct crn_plan_growth {
    double floor, span, theta; /* theta > 0 */
} crn_plan_growth;

double crn_plan_growth_at(const crn_plan_growth *g, double t);

/*
 * Levels are ordered: a mark at one is also there on all below it. A failure of class l (which
 * destroys what lies below level l) needs a mark of level l or higher, and a restart from one puts
 * the mark back on the levels below.
 */
typedef struct crn_plan_model {
    size_t nlevels; /* 1 to CRN_PLAN_LEVELS, the cheapest first */
    crn_plan_growth changed;
    cairn_plan_level level[CRN_PLAN_LEVELS];
} crn_plan_model;

cairn_status crn_plan_model_check(const crn_plan_model *m);

/*
 * Seconds that a mark at a level holds the program, t seconds of computing after the last mark of
 * that level or a higher one: (10), with a fixed part. Each level holds its own copy of the state
 * and needs what changed since its own last mark: hence the time since that, not since any mark.
 */
double crn_plan_cost(const crn_plan_model *m, size_t level, double t);

/*
 * A mark after every interval seconds of computing. ratio[l], for l > 0, marks of level l - 1 or
 * higher make one of level l; ratio[0] is 1. "Two local marks to one global" is ratio {1, 3}; a
 * ratio of 1 leaves the level below unused.
 */
/* One mark of at least this level in how many. */
uint64_t crn_plan_period(const cairn_plan_schedule *s, size_t level);

/* Level of the n-th mark, n from 1. */
size_t crn_plan_level_of(const cairn_plan_schedule *s, size_t nlevels, uint64_t n);

/* Prediction: the Markov model. */

/* Transitions of the Markov model for a stretch of d seconds under failures at a rate. */
double crn_plan_success(double rate, double d); /* (1): no failure */
double crn_plan_failure(double rate_of_class, double rate,
                        double d);                   /* (3): one of a class first */
double crn_plan_failure_time(double rate, double d); /* (4): until it, given there is one */

typedef struct crn_plan_prediction {
    double efficiency; /* computing time by expected time; 0 when the run would never end */
    double work;       /* computing time between two marks of the highest level, */
    double expected;   /* and the time that it takes on average; HUGE_VAL for never */
} crn_plan_prediction;

/*
 * The steady state of the Markov model, equations (1) to (4), for any number of levels. Exact: the
 * model's equations have a closed solution (docs/design/planner.md, "The model, solved").
 */
cairn_status crn_plan_predict(const crn_plan_model *m, const cairn_plan_schedule *s,
                              crn_plan_prediction *ret);

/* Optimum: the best schedule. */

typedef struct crn_plan_limits {
    double interval_min, interval_max;
    unsigned ratio_max; /* at most CRN_PLAN_RATIO_MAX */
} crn_plan_limits;

crn_plan_limits crn_plan_limits_default(void);

/*
 * (7) to (9) with costs from the curves, solved from the highest level down: for two levels these
 * are the equations themselves. Fails when a mark would cost more than its class's mean time
 * between failures.
 */
cairn_status crn_plan_closed(const crn_plan_model *m, const crn_plan_limits *lim,
                             cairn_plan_schedule *ret);

/*
 * The best schedule within the limits, by the prediction. Never worse than crn_plan_closed; takes
 * a bounded number of predictions. A model for which every run would last for ever gives some
 * schedule with efficiency 0. ret_prediction may be NULL.
 */
cairn_status crn_plan_best(const crn_plan_model *m, const crn_plan_limits *lim,
                           cairn_plan_schedule *ret, crn_plan_prediction *ret_prediction);

/* The best interval for given ratios. */
cairn_status crn_plan_best_interval(const crn_plan_model *m, const crn_plan_limits *lim,
                                    cairn_plan_schedule *s, crn_plan_prediction *ret_prediction);

/* Marks: differential or full, and their overhead */

typedef enum crn_plan_hashing {
    CRN_PLAN_HASH_TWICE, /* (5.3): changed blocks are hashed again after they were written */
    CRN_PLAN_HASH_ONCE   /* new digests are kept aside until the mark is safe, as Cairn does */
} crn_plan_hashing;

/*
 * The share of changed blocks below which a differential mark is faster than a full one, from the
 * times to hash and to write a block: (5.5), or 1 - hash / write when hashed once. 0: never.
 */
cairn_status crn_plan_diff_threshold(double hash, double write, crn_plan_hashing h, double *ret);

/*
 * Time of a differential mark beyond that of a full one, by that of a full one: (5.2) to (5.4),
 * (5.6), (5.7). Below 0 is a gain. share: of the blocks, that changed, 0 to 1.
 */
cairn_status crn_plan_diff_gain(double hash, double write, double share, crn_plan_hashing h,
                                double *ret);

/* Writes that the kernel tracks between two marks of a variable, and what else it would cost. */
typedef struct crn_plan_track {
    double hash;    /* seconds per byte, to find by digests what changed */
    double nbytes;  /* of the variable */
    double looked;  /* of those, that must be digested although writes are tracked */
    double nfaults; /* pages that the program writes to for the first time since the mark, */
    double fault;   /* and the seconds that each of these writes takes longer */
    double scan;    /* seconds to ask the kernel */
} crn_plan_track;

/* Seconds of a mark that tracking saves, the program's own faults counted in; below 0 is a loss. */
cairn_status crn_plan_track_gain(const crn_plan_track *t, double *ret);

typedef struct crn_plan_run {
    double mark;     /* seconds that a mark holds the program */
    double recovery; /* seconds to recover, without downtime and recomputation */
    double mtbf;
    double work;      /* run time without marks and failures */
    double recompute; /* mean recomputation after a failure: (6.7) assumes mtbf / 2 */
    double downtime;  /* mean time between a failure and the start of recovery */
} crn_plan_run;

typedef struct crn_plan_overhead {
    double mark_share, recovery_share;           /* (6.1), (6.2): of the work */
    double marks, recoveries, correction, total; /* seconds: (6.4), (6.5), (6.7), (6.3) = (6.6) */
    bool valid; /* (6.8): the overhead is short enough to hit no failures of its own */
} crn_plan_overhead;

/* The overhead of marks at Young's interval and of recoveries: (6.1) to (6.8). */
cairn_status crn_plan_overhead_of(const crn_plan_run *run, crn_plan_overhead *ret);

/* Fit: curves from measurements, following changes */

/* A line y = at0 + slope * x, neither negative, through samples that count ever less. */
typedef struct crn_plan_line {
    double w, x, y, xx, xy; /* weighted sums */
} crn_plan_line;

void crn_plan_line_add(crn_plan_line *f, double x, double y);
void crn_plan_line_solve(const crn_plan_line *f, double *ret_at0, double *ret_slope);

enum { CRN_PLAN_SAMPLES = 16 };

/*
 * A growth curve through samples of (seconds of computing, bytes changed). The last ones of each
 * level are kept, in a ring, so that many local marks do not drive out the few global ones.
 */
typedef struct crn_plan_growth_fit {
    size_t n[CRN_PLAN_LEVELS]; /* ever added */
    double t[CRN_PLAN_LEVELS][CRN_PLAN_SAMPLES];
    double nbytes[CRN_PLAN_LEVELS][CRN_PLAN_SAMPLES];
} crn_plan_growth_fit;

void crn_plan_growth_add(crn_plan_growth_fit *f, size_t level, double t, double nbytes);

/* The curve, which never exceeds total bytes. With no samples: everything changes at once. */
crn_plan_growth crn_plan_growth_solve(const crn_plan_growth_fit *f, double total);

/* Tuner: the schedule of a running program. */

typedef enum crn_plan_mode {
    CRN_PLAN_AUTO,   /* measure and set the schedule anew after each mark of the highest level */
    CRN_PLAN_FROZEN, /* measure, and report what would be better, but keep the schedule */
    CRN_PLAN_OFF     /* keep the schedule; measurements are ignored */
} crn_plan_mode;

typedef struct crn_plan_options {
    crn_plan_mode mode;
    size_t nlevels;
    double rate[CRN_PLAN_LEVELS]; /* expected failures per second of each class */
    double trust;                 /* the rates count like this many observed failures; > 0 */
    crn_plan_limits limits;
    cairn_plan_schedule start; /* interval 0: the neutral start, crn_plan_neutral */
} crn_plan_options;

/* The start of Amrizal et al.: 100 s, two marks of the level below to one of the highest. */
cairn_plan_schedule crn_plan_neutral(size_t nlevels);

typedef struct crn_plan_measure {
    size_t level;      /* that the mark reached */
    bool full;         /* the first mark of a leg: says nothing about what changed */
    double elapsed;    /* computing time since the last mark of that level or a higher one */
    double nbytes;     /* that the level took */
    double total;      /* bytes of the whole state */
    double held;       /* seconds that the program stood still */
    double background; /* further seconds until the mark was safe */
} crn_plan_measure;

/*
 * Plain values: may be copied and sent. Given the same calls with the same numbers it makes the
 * same decisions, so ranks that feed it agreed numbers (the largest over all) need no message to
 * agree on the schedule.
 */
typedef struct crn_plan_tuner {
    crn_plan_options opt;
    cairn_plan_schedule schedule;   /* to be followed now */
    crn_plan_prediction prediction; /* of the schedule, by the last retuning; zeros before */
    cairn_plan_schedule better;     /* what the last retuning found best */
    uint64_t nretuned, nchanged;    /* decisions made, and those that changed the schedule */
    uint64_t nmarks, since[CRN_PLAN_LEVELS]; /* marks, and those since one of at least a level */
    double total;                            /* bytes of the whole state, last seen */
    double observed;                         /* seconds under observation, and failures in them */
    double nfailures[CRN_PLAN_LEVELS];
    uint64_t nsamples; /* of what changed */
    crn_plan_growth_fit growth;
    crn_plan_line held[CRN_PLAN_LEVELS]; /* seconds held over bytes */
    crn_plan_line safe[CRN_PLAN_LEVELS]; /* seconds until safe over bytes */
    double restart[CRN_PLAN_LEVELS];     /* measured, or 0 */
} crn_plan_tuner;

cairn_status crn_plan_tuner_init(crn_plan_tuner *t, const crn_plan_options *opt);

/* Level of the next mark. The first is of the highest: there is nothing to build on before it. */
size_t crn_plan_tuner_level(const crn_plan_tuner *t);

/* A mark was made; after one of the highest level the schedule may be another. */
cairn_status crn_plan_tuner_mark(crn_plan_tuner *t, const crn_plan_measure *measured);

/* A mark of an earlier leg: it is learnt from and counts for the pattern, and nothing is decided.
 */
cairn_status crn_plan_tuner_recall(crn_plan_tuner *t, const crn_plan_measure *measured);

/* Set the schedule anew from what is known, as after a mark of the highest level; from nothing but
 * full marks also, which are then taken for what all marks cost. Nothing measured: nothing done. */
cairn_status crn_plan_tuner_retune(crn_plan_tuner *t);

/* A restart from a level took so many seconds. */
cairn_status crn_plan_tuner_restart(crn_plan_tuner *t, size_t level, double seconds);

/* So many failures of each class were seen in so many seconds, in this leg or earlier ones. */
cairn_status crn_plan_tuner_observe(crn_plan_tuner *t, double seconds,
                                    const unsigned nfailures[CRN_PLAN_LEVELS]);

/* What the tuner believes now. */
crn_plan_model crn_plan_tuner_model(const crn_plan_tuner *t);

/* Simulator: runs that happen. */

/*
 * One run of work seconds of computing against recorded failures, in order of time. It is given up,
 * unfinished, after wall_max seconds, and after ten million marks and failures. The model's rates
 * are not used.
 */
cairn_status crn_plan_replay(const crn_plan_model *m, const cairn_plan_schedule *s, double work,
                             double wall_max, const cairn_plan_failure *events, size_t nevents,
                             cairn_plan_outcome *ret);

typedef struct crn_plan_trial {
    double work;     /* of each run */
    double wall_max; /* after which a run is given up */
    unsigned nruns;  /* at least 2 */
    uint64_t seed;
    double shape[CRN_PLAN_LEVELS]; /* of the Weibull distribution per class; 1 is exponential */
} crn_plan_trial;

typedef struct crn_plan_result {
    double efficiency; /* work by mean time */
    double error;      /* its standard error: 95 % lie within 1.96 of it */
    unsigned nfinished;
    cairn_plan_outcome mean; /* of all runs; counts are totals */
} crn_plan_result;

/* Random failures with the model's rates. Runs differ only in the stream of random numbers. */
cairn_status crn_plan_simulate(const crn_plan_model *m, const cairn_plan_schedule *s,
                               const crn_plan_trial *trial, crn_plan_result *ret);

/* Blocks: which size writes least, by what changed between marks. */

enum {
    CRN_PLAN_GRAIN = 1 << 10, /* bytes: changes are looked at in pieces of this size, */
    CRN_PLAN_BLOCK_SIZES = 9, /* and blocks may have 1, 2, 4, ... 256 of them */
    CRN_PLAN_STRETCH = CRN_PLAN_GRAIN << (CRN_PLAN_BLOCK_SIZES - 1) /* bytes of the largest */
};

/* What was seen of a variable so far; begins as zeros. */
typedef struct crn_plan_blocks {
    uint64_t looked;                        /* bytes that two marks were compared in */
    uint64_t changed[CRN_PLAN_BLOCK_SIZES]; /* of those, bytes of blocks that changed, by size */
} crn_plan_blocks;

/* Add a stretch of n grains that begins at a block of any size: which differ from the mark before?
 */
void crn_plan_blocks_add(crn_plan_blocks *b, const bool *changed, size_t n);

/* Bytes that a mark of a variable of nbytes writes in blocks of a size (a power of two, at least a
 * grain; more than a stretch counts as a stretch), its table with entry bytes for a block included.
 */
double crn_plan_blocks_cost(const crn_plan_blocks *b, uint64_t nbytes, uint32_t entry,
                            uint64_t block);

/*
 * The size to go on with, which is now unless another one gains: the largest, of those that are at
 * least smallest, that writes at most a tenth more than the best; if what it gains over now repays
 * within 16 marks the full write of the variable that a change of size costs.
 */
uint64_t crn_plan_blocks_choose(const crn_plan_blocks *b, uint64_t nbytes, uint32_t entry,
                                uint64_t smallest, uint64_t now);

/* Revival: of an ensemble, after its server's death */

/* Seconds of a cycle, for all members together. */
typedef struct crn_revival_times {
    double propagate;                    /* T_for */
    double update;                       /* T_ana */
    double keep;                         /* T_cp: putting the analysis, behind the propagation */
    double get_analysis, get_background; /* T_rec,ana and T_rec,for: all of them */
    double repeat; /* T'_for: propagating again; delta is repeat / propagate */
} crn_revival_times;

/* What is kept. BOTH_ALL is BOTH as the thesis has it, which reads the previous analysis even where
 * only the background is needed. */
typedef enum crn_revival_mode {
    CRN_REVIVAL_BOTH,
    CRN_REVIVAL_BOTH_ALL,
    CRN_REVIVAL_ANALYSIS,
    CRN_REVIVAL_BACKGROUND
} crn_revival_mode;

/* The share of a cycle that region A is, in which the analysis is not safe: p_A (7.5). */
double crn_revival_share_a(const crn_revival_times *times, crn_revival_mode mode);

/* The cost of a failure at a place (0 to 1) of region A or B: (7.3), (7.4), (7.12), (7.13). */
cairn_status crn_revival_cost(const crn_revival_times *times, crn_revival_mode mode, bool in_a,
                              double alpha, double *ret);

/* Its mean over a cycle, (7.10), and the mode that has the smallest. */
cairn_status crn_revival_mean(const crn_revival_times *times, crn_revival_mode mode, double *ret);
cairn_status crn_revival_best(const crn_revival_times *times, crn_revival_mode *ret);

#endif
