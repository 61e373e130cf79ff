/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Facts about a block that can prove that another block differs from it, without its values.
 *
 * Suppose that no two values of blocks x and y differ. Then
 *
 *   - both have as many NaNs and infinities of each sign, since these are the same as their like
 *     only, and, with a bound of 0, the same values but for the signs of zeros and the bits of
 * NaNs;
 *   - the largest finite values do not differ, nor do the smallest. Let max x > max y, at place i.
 *     Then y_i <= max y, and x_i - y_i - R max(|x_i|, |y_i|) does not become smaller when y_i falls
 *     further below x_i, if R <= 1: so max x and max y would not differ, either;
 *   - |sum x - sum y| <= sum of max(A, R max(|x_i|, |y_i|)) <= n A + R (sum |x| + sum |y|). A sum
 * of n numbers is rounded by less than n 2^-52 times the sum of their absolute values.
 *
 * Where one of these does not hold, values differ.
 */
#include "hash/hash.h"

#include <math.h>

static void add_value(crn_facts *f, double x, bool *first)
{
    if (!isfinite(x)) {
        f->nnan += isnan(x) != 0;
        f->nabove += x > 0;
        f->nbelow += x < 0;
        return;
    }
    f->min = *first ? x : fmin(f->min, x);
    f->max = *first ? x : fmax(f->max, x);
    *first = false;
    f->sum += x;
    f->size += fabs(x);
}

cairn_status crn_facts_of(size_t item, const void *data, size_t nbytes, crn_facts *ret)
{
    const unsigned char *p = data;
    const crn_bound exact = {0, 0};
    crn_tolerant *t;
    crn_facts f = {.nnan = 0};
    bool first = true;
    CRN_TRY(crn_tolerant_create(item, &exact, 1, &t));
    crn_tolerant_digest(t, data, nbytes, NULL, &f.plain);
    crn_tolerant_free(t);
    for (size_t i = 0; i < nbytes; i += item) {
        float single;
        double x;
        memcpy(&single, p + i, sizeof single);
        if (item == sizeof x)
            memcpy(&x, p + i, sizeof x);
        else
            x = (double)single;
        add_value(&f, x, &first);
    }
    *ret = f;
    return CAIRN_OK;
}

static bool ends_differ(double a, double b, const crn_bound *bound)
{
    const double limit = bound->relative * fmax(fabs(a), fabs(b));
    return bound->relative <= 1 && fabs(a - b) > fmax(bound->absolute, limit);
}

static bool sums_differ(const crn_facts *a, const crn_facts *b, uint64_t n, const crn_bound *bound)
{
    const double size = a->size + b->size, far = fabs(a->sum - b->sum);
    const double limit =
        (double)n * bound->absolute + (bound->relative + (double)n * 0x1p-52) * size;
    return isfinite(size) && far > limit * (1 + 0x1p-30);
}

const char *crn_facts_differ(const crn_facts *a, const crn_facts *b, uint64_t n,
                             const crn_bound *bound, bool nan_differs)
{
    const bool exact = bound->absolute == 0 && bound->relative == 0;
    if (a->nnan != b->nnan)
        return "they do not have as many NaNs";
    if (a->nabove != b->nabove || a->nbelow != b->nbelow)
        return "they do not have as many infinities";
    if (nan_differs && a->nnan > 0)
        return "they have NaNs";
    if (exact && !crn_digest_equal(&a->plain, &b->plain))
        return "they are not the same to the last bit";
    if (ends_differ(a->min, b->min, bound))
        return "their smallest ones do";
    if (ends_differ(a->max, b->max, bound))
        return "their largest ones do";
    return sums_differ(a, b, n, bound) ? "their sums are further apart than all bounds" : NULL;
}
