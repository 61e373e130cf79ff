/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Histograms with a fixed number of bins whose ranges follow the values: each new value gets a bin
 * while there are bins left; then the two neighbours that lose least by it become one. Up to
 * CRN_HIST_BINS different values are thus kept exactly. Each bin has count, smallest, largest, mean
 * and variance; the histogram knows which ranks had the extremes (seed 004, section 4.4).
 */
#ifndef CAIRN_TRACEFMT_HIST_H
#define CAIRN_TRACEFMT_HIST_H

#include <stdbool.h>

#include "base/base.h"

enum { CRN_HIST_BINS = 8 };

typedef struct crn_bin {
    uint64_t n;
    int64_t min, max;
    double mean, m2; /* m2: sum of squared distances from the mean */
} crn_bin;

typedef struct crn_hist {
    int32_t nbins;
    int32_t min_rank, max_rank;
    int32_t recent; /* bin of the value before: where the next one is looked for first */
    crn_bin bin[CRN_HIST_BINS]; /* ascending, ranges disjoint */
} crn_hist;

/* Is v within a bin? */
static inline bool crn_bin_has(const crn_bin *bin, int64_t v)
{
    return v >= bin->min && v <= bin->max;
}

/*
 * Join n values v that lie within a bin: Welford's update, with one division. The mean takes part
 * of the step to v, so that it stays in the bin however it is rounded. Counts are below 2^63, and
 * the machine converts signed numbers in one instruction.
 */
static inline void crn_bin_add(crn_bin *bin, int64_t v, uint64_t n)
{
    bin->n += n;
    double d = (double)v - bin->mean, times = (double)(int64_t)n;
    bin->mean += d * (times / (double)(int64_t)bin->n);
    bin->m2 += d * ((double)v - bin->mean) * times;
}

void crn_hist_add_slow(crn_hist *h, int64_t v, uint64_t n, int32_t rank);

/* n values v of a rank. Values come in clusters: look where the one before was. */
static inline void crn_hist_add(crn_hist *h, int64_t v, uint64_t n, int32_t rank)
{
    crn_bin *bin = &h->bin[h->recent];
    if (h->nbins > 0 && crn_bin_has(bin, v))
        crn_bin_add(bin, v, n);
    else
        crn_hist_add_slow(h, v, n, rank);
}

void crn_hist_merge(crn_hist *h, const crn_hist *other);

/* What one of n ranks has of the values of all, at least one in each bin that any has. */
void crn_hist_share(crn_hist *h, uint64_t n);

uint64_t crn_hist_count(const crn_hist *h);
double crn_hist_mean(const crn_hist *h);
double crn_hist_variance(const crn_hist *h);

/*
 * What is left of the values without the tenth that is smallest and the tenth that is largest,
 * which a machine's hiccups are among. variance: of all values, those tenths being drawn in to
 * what is left ("winsorized"), as the noise of such a mean needs it.
 */
typedef struct crn_core {
    double n;    /* values, with the tenths */
    double kept; /* part of them that is left */
    double mean, variance;
} crn_core;

crn_core crn_hist_core(const crn_hist *h);

/*
 * A value for a random number: a bin in proportion to its count, its mean rounded (a bin of one
 * value gives that value). The same number gives the same value on every rank.
 */
int64_t crn_hist_draw(const crn_hist *h, uint64_t random);

/* For values of parameters: mean and deviation to a 65535th of a bin's width, the rest exactly. */
void crn_hist_put(crn_buf *b, const crn_hist *h);
cairn_status crn_hist_get(crn_cursor *c, crn_hist *ret);

/* For times in nanoseconds: at most CRN_TIME_BINS bins, values to about two per cent. */
enum { CRN_TIME_BINS = 5 };
void crn_hist_put_time(crn_buf *b, const crn_hist *h);
void crn_hist_scale(crn_hist *h, double by);
cairn_status crn_hist_get_time(crn_cursor *c, crn_hist *ret);

#endif
