/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sums that do not depend on the order in which they are made. Rows are put together by whichever
 * thread or process is ready, and sums of rounded numbers would tell: so they are kept exactly, as
 * one long integer in units of the smallest double.
 */
#include "diff/diff.h"

#include <math.h>

/* Two to the power of this is the unit: the smallest double, times the smallest power. */
enum { LOWEST = -1074 - CRN_SQUARES_SCALE };

static void add_limb(diff_sum *s, size_t i, uint64_t x)
{
    for (; x > 0 && i < DIFF_SUM_LIMBS; i++) {
        s->limb[i] += x;
        x = s->limb[i] < x; /* what is carried over */
    }
}

void crn_diff_sum_add(diff_sum *s, double x, int scale)
{
    int exponent;
    const double part = frexp(x, &exponent); /* x = part * 2^exponent, part below 1 */
    exponent += scale - 53;                  /* an integer of 53 bits times 2^exponent */
    uint64_t bits = (uint64_t)ldexp(part, 53);
    if (exponent < LOWEST) { /* of a subnormal the lower bits are 0 */
        bits >>= CRN_MIN(LOWEST - exponent, 63);
        exponent = LOWEST;
    }
    const unsigned at = (unsigned)(exponent - LOWEST), shift = at % 64;
    add_limb(s, at / 64, bits << shift);
    if (shift > 0)
        add_limb(s, at / 64 + 1, bits >> (64 - shift));
}

void crn_diff_sum_merge(diff_sum *to, const diff_sum *s)
{
    for (size_t i = 0; i < DIFF_SUM_LIMBS; i++)
        add_limb(to, i, s->limb[i]);
}

double crn_diff_sum_rms(const diff_sum *s, uint64_t n)
{
    int top = DIFF_SUM_LIMBS - 1;
    double x = 0;
    while (top > 1 && s->limb[top] == 0)
        top--;
    for (int i = top - 2; n > 0 && i <= top; i++) /* from the smallest on: rounding loses least */
        if (i >= 0)
            x += ldexp((double)s->limb[i], 64 * (i - top));
    /* the unit of x, 2^(64 top + LOWEST), has a root: its exponent is even */
    return n > 0 ? ldexp(sqrt(x / (double)n), (64 * top + LOWEST) / 2) : 0;
}
