/* SPDX-License-Identifier: BSD-3-Clause
 *
 * validate: statistics that say whether a loss is tolerable. Row 3. Numbers in, numbers out:
 * nothing here reads a file or a clock.
 *
 * Two arrays are compared, x as the program had it and y as a reader gets it:
 *
 *   validate_pair.c  largest and RMS error, PSNR, 1 - rho
 *   validate_ssim.c  structural similarity of two planes
 *   validate_ks.c    are both samples of one distribution?
 *   validate_bits.c  how many bits of a mantissa tell something of the neighbours
 *
 * Ensembles are compared in validate_spread.h, judged in validate_judge.h, and held against a truth
 * in validate_bound.h.
 *
 * Sums are made of stretches of CRN_PAIR_CHUNK values, each with its own mean, so that any number
 * of values and any mean give as many right digits as a sum in wider arithmetic.
 */
#ifndef CAIRN_VALIDATE_H
#define CAIRN_VALIDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* --- errors --------------------------------------------------------------------------------- */

enum { CRN_PAIR_CHUNK = 4096 };

/* What is known of pairs of values; a zeroed one has seen none. Only pairs of finite values count
 * in what follows n. */
typedef struct crn_deviation {
    uint64_t n;
    uint64_t nspecial; /* not finite, and the same: NaN is the same as NaN */
    uint64_t nbroken;  /* not finite, and not the same: one of them, or both */
    double min, max;   /* of x */
    double error;      /* the largest |y - x| */
    /* means (of x: about_x + mean_x, since one number may have too few digits), and sums over
     * products of deviations from them, of x and d = y - x */
    double about_x;
    long double mean_x, mean_d, xx, xd, dd;
} crn_deviation;

/* Add n pairs; how they are cut into calls changes the last digits only. */
void crn_deviation_add(crn_deviation *p, const double *x, const double *y, size_t n);

/* Add what another one has seen. */
void crn_deviation_merge(crn_deviation *p, const crn_deviation *other);

/* The largest error; infinite when a pair is broken. */
double crn_deviation_error(const crn_deviation *p);

/* The root of the mean square of d; infinite when a pair is broken, 0 without values. */
double crn_deviation_rms(const crn_deviation *p);

/* 20 log10 of the range of x over the RMS error, in dB: infinite without an error, minus infinity
 * where x is constant and y is not the same. */
double crn_deviation_psnr(const crn_deviation *p);

/*
 * 1 - rho, of Pearson's coefficient: 0 without an error, 1 where only one of x and y is constant,
 * or both are and differ. By the deviations d, so that it has all its digits where rho is close
 * to 1.
 */
double crn_deviation_decorrelation(const crn_deviation *p);

/* --- structure ------------------------------------------------------------------------------ */

/*
 * The structural similarity of floating-point data (Baker, Pinard and Hammerling 2022): both planes
 * are scaled to [0, 1] by the extremes of both, rounded to 256 levels, and compared in windows of
 * 11 x 11 with Gaussian weights (sigma 1.5); constants 1e-8; the mean over all windows that lie
 * inside. Smaller planes have smaller windows. A window with values that are not finite does not
 * count if both have the same there, and counts 0 if not. *ret is 1 when no window is left.
 * CAIRN_ENOMEM.
 */
cairn_status crn_ssim(const double *x, const double *y, size_t nrows, size_t ncolumns, double *ret);

/* --- distribution --------------------------------------------------------------------------- */

/* The Kolmogorov-Smirnov test of two samples. */
typedef struct crn_ks {
    double distance; /* the largest between the two distributions */
    double p;        /* of samples of one distribution, the share that is at least so far apart */
} crn_ks;

/* Of n values each, which are sorted in place; NaN is greater than all. p is exact for values that
 * are all different, and too large with equal ones. Without values it is 1. */
crn_ks crn_ks_test(double *x, double *y, size_t n);

/* --- bits ----------------------------------------------------------------------------------- */

/*
 * The information that a bit of a value has on the same bit of the next value, by its position
 * (Kloewer et al. 2021): information that the one has on the other is real, and what has none is
 * taken for noise. Counters of pairs of neighbours; a zeroed one, with width set, has seen none.
 */
typedef struct crn_bits {
    uint32_t width; /* bits of a value: 32 or 64 */
    uint64_t n;     /* pairs of neighbours */
    uint64_t first[64], next[64],
        both[64]; /* of these, that have the bit set; from the lowest on */
} crn_bits;

/* Add the neighbours in a row of n values. Pairs with a value that is not finite are left out. */
void crn_bits_add(crn_bits *b, const void *row, size_t n);

/* The mutual information of each bit, from the lowest on; 0 where chance would give as much with a
 * probability of 0.01. Returns the sum. */
double crn_bits_information(const crn_bits *b, double ret[64]);

/* The least number of bits of the mantissa that hold, with sign and exponent, this share of the
 * information; -1: there is none. */
int crn_bits_needed(const crn_bits *b, double share);

#include "validate/validate_bound.h"
#include "validate/validate_judge.h"
#include "validate/validate_spread.h"

#endif
