/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The constants of the rules that make keys of values; hash_tolerant.c explains them.
 */
#include "hash/hash_rules.h"

#include <float.h>
#include <math.h>

/* floor(log2 x) of a positive normal number. */
static int log2_floor(double x)
{
    int e;
    (void)frexp(x, &e);
    return e - 1;
}

crn_rules crn_rules_of(const crn_bound *b, size_t item)
{
    const int p = item == 4 ? FLT_MANT_DIG - 1 : DBL_MANT_DIG - 1;
    const int lowest = item == 4 ? FLT_MIN_EXP - 1 : DBL_MIN_EXP - 1; /* of a normal number */
    const int highest = item == 4 ? FLT_MAX_EXP - 1 : DBL_MAX_EXP - 1;
    crn_rules r = {.keep = UINT64_MAX, .only_absolute = true};
    int m = p; /* mantissa bits that stay */
    if (b->relative >= DBL_MIN)
        m = CRN_MIN(CRN_MAX(-log2_floor(b->relative), 1), p);
    if (m < p) {
        r.half = (uint64_t)1 << (p - m - 1);
        r.keep = ~(((uint64_t)1 << (p - m)) - 1);
        r.only_absolute = false;
    }
    if (b->absolute < ldexp(1, lowest + 1)) {
        r.limit = r.only_absolute ? (double)INFINITY : ldexp(1, lowest);
        return r;
    }
    /* from E = log2 w + m + 1 on, the cells of rule 2 are wider than those of rule 1 */
    const int w = CRN_MIN(log2_floor(b->absolute), highest - p - 1);
    r.width = ldexp(1, w);
    r.magic = ldexp(1.5, p + w);
    r.limit = ldexp(1, w + (r.only_absolute ? p - 1 : CRN_MIN(p - 1, m + 1)));
    return r;
}
