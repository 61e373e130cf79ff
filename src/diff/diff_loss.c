/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values that a codec may have changed: what is read differs from what the program had by at most
 * so much on either side, d1 and d2. So they are the same only if |a - b| <= bound - d1 - d2, and
 * different only if |a - b| > bound + d1 + d2. Between these nothing is proven.
 */
#include "diff/diff.h"

#include <math.h>

/* What the attributes of a variable say; infinite: it may have lost anything. */
crn_loss crn_diff_loss_of(const crn_var_spec *spec)
{
    crn_loss l = {0};
    if (crn_var_attribute(spec, CRN_LOSS_KEY) && !crn_var_loss(spec, &l))
        l.absolute = INFINITY;
    return l;
}

bool crn_diff_losses_of(const crn_var_spec *a, const crn_var_spec *b, diff_losses *ret)
{
    ret->side[0] = crn_diff_loss_of(a);
    ret->side[1] = crn_diff_loss_of(b);
    for (int k = 0; k < 2; k++)
        if (ret->side[k].absolute > 0 || ret->side[k].relative > 0)
            return true;
    return false;
}

/* The largest magnitude of n values. */
static double largest(size_t item, const unsigned char *at, uint64_t n)
{
    double most = 0;
    for (uint64_t i = 0; i < n; i++) {
        double x;
        float single;
        if (item == sizeof x) {
            memcpy(&x, at + i * item, sizeof x);
        } else {
            memcpy(&single, at + i * item, sizeof single);
            x = single;
        }
        if (isfinite(x))
            most = fmax(most, fabs(x));
    }
    return most;
}

/* By how much any of n values may differ from what the program had: a relative loss is one of the
 * larger value, which may be the one that was lost. */
static double shift_of(const crn_loss *l, double most)
{
    return fmax(l->absolute, l->relative > 0 ? l->relative / (1 - l->relative) * most : 0);
}

bool crn_diff_compare_lossy(const crn_value_rule *rule, const diff_losses *losses, const void *a,
                            const void *b, uint64_t n, crn_value_delta *delta, crn_value_fn *fn,
                            void *arg)
{
    const double most[2] = {largest(rule->item, a, n), largest(rule->item, b, n)};
    const double shift =
        (shift_of(&losses->side[0], most[0]) + shift_of(&losses->side[1], most[1])) *
        (1 + 1e-9); /* sums are rounded */
    const crn_bound asked = rule->bound;
    const uint64_t before = delta->n;
    crn_value_rule wide = *rule, narrow = *rule;
    crn_value_delta between = {0};
    wide.bound.absolute =
        asked.absolute + shift + asked.relative * (fmax(most[0], most[1]) + shift);
    wide.bound.relative = narrow.bound.relative = 0;
    narrow.bound.absolute = asked.absolute - shift;
    if (isfinite(wide.bound.absolute))
        crn_values_compare(&wide, a, b, n, delta, fn, arg);
    if (delta->n > before)
        return true;
    if (!(narrow.bound.absolute >= 0))
        return false;
    crn_values_compare(&narrow, a, b, n, &between, NULL, NULL);
    return between.n == 0;
}
