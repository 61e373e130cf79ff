/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Times of a place or a gap over ranks: one histogram of all, and classes of ranks where some
 * differ from the rest. A program whose ranks are alike has no classes and pays nothing for them;
 * a slow rank is a class of its own.
 *
 * The test. Two classes differ if all of this holds:
 *   - the means of their times, without the tenth that is shortest and the tenth that is longest,
 *     differ by a ratio of at least crn_bar.ratio;
 *   - the difference is not the noise of repetitions: Yuen's t for trimmed means, with the noise
 *     that one rank's own repetitions have, however many ranks the class has, gives a probability
 *     of at most crn_bar.p;
 *   - the difference matters: over all repetitions of a rank it is at least crn_bar.more.
 * With fewer than CRN_REPETITIONS of each rank there is no noise to compare with: then classes
 * differ by crn_bar.few_ratio and crn_bar.few_more, which keeps the pace of a rank that read the
 * input, and nobody is called slow for it.
 *
 * While ranks are merged a weaker bar holds, since few ranks know little of the rest, one that lets
 * few ranks pass by chance however many there are; crn_trace_finish then applies the one that
 * counts. Classes that do not differ are united, those with the least ratio first.
 */
#ifndef CAIRN_TRACEFMT_TIMING_H
#define CAIRN_TRACEFMT_TIMING_H

#include "tracefmt/tracefmt_call.h"
#include "tracefmt/tracefmt_hist.h"
#include "tracefmt/tracefmt_seq.h"

enum { CRN_CLASSES = 8, CRN_REPETITIONS = 5 };

typedef struct crn_class {
    crn_seq ranks;   /* ascending; without items, of the first class only: all other ranks. Ranks
                      * without such times may be among them */
    uint64_t nranks; /* that have such times */
    crn_hist hist;   /* nanoseconds */
} crn_class;

typedef struct crn_timing {
    crn_hist all;     /* nanoseconds */
    uint64_t nranks;  /* that have such times; 0: not kept, since nothing is to be merged */
    crn_class *class; /* the first has most ranks; the others ascend by their means */
    size_t nclasses;  /* 0: the ranks are alike; else 2 to CRN_CLASSES */
} crn_timing;

void crn_timing_done(crn_timing *t);

/* The times of a rank: of its class, or of all. */
const crn_hist *crn_timing_of(const crn_timing *t, uint32_t rank);

typedef struct crn_contrast {
    double ratio; /* of the longer times to the shorter ones */
    double p;     /* that noise alone makes such a difference, two-sided */
    double more;  /* nanoseconds of difference over the repetitions of one rank */
    double repetitions;
} crn_contrast;

crn_contrast crn_class_contrast(const crn_class *a, const crn_class *b);

typedef struct crn_bar {
    double ratio, p, more;
    double few_ratio, few_more;
} crn_bar;

/*
 * The bar for times of a call, or for computing if call is CRN_CALL_NONE: of nranks ranks and
 * ntimings such things, in a run of lasted nanoseconds. last: of crn_trace_finish.
 */
crn_bar crn_bar_of(uint32_t call, uint64_t nranks, size_t ntimings, uint64_t lasted, bool last);

bool crn_contrast_passes(const crn_contrast *c, const crn_bar *bar);

/* Does a call of this kind end when another rank does something? */
bool crn_call_waits(uint32_t call);

/* Unite *b, of the ranks rb, with *a, of the ranks ra, which are below them. *b is left empty. */
cairn_status crn_timing_unite(crn_timing *a, const crn_seq *ra, crn_timing *b, const crn_seq *rb,
                              const crn_bar *bar);

/* After the last merge: the classes that differ by bar; for ranks of a lane. */
cairn_status crn_timing_finish(crn_timing *t, const crn_seq *ranks, const crn_bar *bar);

#endif
