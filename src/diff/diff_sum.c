/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sums that do not depend on the order in which they are made. Rows are put together by whichever
 * thread or process is ready, and sums of rounded numbers would tell: so they are kept exactly, as
 * one long integer in units of the smallest double.
 */
#include "diff/diff.h"

#include <math.h>

enum { LOWEST = -1074 }; /* the smallest double is two to the power of this */

static void add_limb(diff_sum *s, size_t i, uint64_t x)
{
    for (; x > 0 && i < DIFF_SUM_LIMBS; i++) {
        s->limb[i] += x;
        x = s->limb[i] < x; /* what is carried over */
    }
}

void crn_diff_sum_add(diff_sum *s, double x)
{
    int exponent;
    if (!isfinite(x)) {
        s->infinite = true;
        return;
    }
    const double part = frexp(x, &exponent); /* x = part * 2^exponent, part below 1 */
    exponent -= 53;                          /* an integer of 53 bits times 2^exponent */
    uint64_t bits = (uint64_t)ldexp(part, 53);
    if (exponent < LOWEST) { /* of a subnormal the lower bits are 0 */
        bits >>= LOWEST - exponent;
        exponent = LOWEST;
    }
    const unsigned at = (unsigned)(exponent - LOWEST), shift = at % 64;
    add_limb(s, at / 64, bits << shift);
    if (shift > 0)
        add_limb(s, at / 64 + 1, bits >> (64 - shift));
}

void crn_diff_sum_merge(diff_sum *to, const diff_sum *s)
{
    to->infinite |= s->infinite;
    for (size_t i = 0; i < DIFF_SUM_LIMBS; i++)
        add_limb(to, i, s->limb[i]);
}

double crn_diff_sum_value(const diff_sum *s)
{
    double x = 0;
    for (size_t i = 0; i < DIFF_SUM_LIMBS; i++) /* from the smallest on: rounding loses least */
        x += ldexp((double)s->limb[i], 64 * (int)i + LOWEST);
    return s->infinite ? (double)INFINITY : x;
}
