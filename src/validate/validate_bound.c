/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The largest bound that an analysis bears: runs with and without loss, paired by their seeds, and
 * a bisection over bounds.
 */
#include "validate/validate.h"

#include <math.h>

/* Student's t that 97.5% are below, by the expansion of Cornish and Fisher; to 0.1% from 5 on. */
static double student(double dof)
{
    const double z = 1.959963984540054, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
    return z + (z3 + z) / (4 * dof) + (5 * z5 + 16 * z3 + 3 * z) / (96 * dof * dof) +
           (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * dof * dof * dof);
}

crn_paired crn_paired_of(const double *without, const double *with, size_t n)
{
    long double mean = 0, square = 0;
    crn_paired p = {NAN, NAN, n};
    for (size_t i = 0; i < n; i++)
        mean += (with[i] / without[i] - 1) / (long double)n;
    for (size_t i = 0; i < n; i++) {
        const long double d = (with[i] / without[i] - 1) - mean;
        square += d * d;
    }
    if (n > 1) {
        p.change = (double)mean;
        p.half =
            student((double)n - 1) * (double)sqrtl(square / (long double)(n - 1) / (long double)n);
    }
    return p;
}

static cairn_status run_all(const crn_bound_case *c, double bound, double *rmse, double *ret_rate)
{
    double sum = 0;
    for (uint32_t i = 0; i < c->nseeds; i++) {
        double rate = 1;
        CRN_TRY(c->run(c->arg, c->seed + i, bound, &rmse[i], &rate));
        sum += rate;
    }
    *ret_rate = sum / c->nseeds;
    return CAIRN_OK;
}

static cairn_status try_bound(const crn_bound_case *c, uint32_t step, const double *without,
                              double *with, crn_bound_trial *ret)
{
    crn_bound_trial t = {.bound = c->low * pow(c->high / c->low, (double)step / c->nsteps)};
    CRN_TRY(run_all(c, t.bound, with, &t.rate));
    t.paired = crn_paired_of(without, with, c->nseeds);
    t.safe = t.paired.change + t.paired.half <= c->tolerance;
    if (c->tell)
        c->tell(c->arg, &t);
    *ret = t;
    return CAIRN_OK;
}

/* Of steps 0 to nsteps, the last that is safe: below lies what is, above what is not. */
static cairn_status bisect(const crn_bound_case *c, const double *without, double *with,
                           crn_bound_result *r)
{
    int64_t below = -1, above = (int64_t)c->nsteps + 1;
    while (above - below > 1) {
        const int64_t middle = below + (above - below) / 2;
        crn_bound_trial t;
        CRN_TRY(try_bound(c, (uint32_t)middle, without, with, &t));
        *(t.safe ? &below : &above) = middle;
        *(t.safe ? &r->best : &r->next) = t;
    }
    r->found = below >= 0;
    return CAIRN_OK;
}

cairn_status crn_bound_find(const crn_bound_case *c, crn_bound_result *ret)
{
    crn_bound_result r = {0};
    double *without, *with, rate;
    CRN_FAIL_IF(c->nseeds < 2 || c->nsteps < 1 || !(c->low > 0) || !(c->high > c->low),
                CAIRN_EINVAL, "a bound is looked for with two seeds or more, and a range");
    CRN_TRY(crn_alloc(&without, 2 * (size_t)c->nseeds));
    with = without + c->nseeds;
    cairn_status rc = run_all(c, 0, without, &rate);
    for (uint32_t i = 0; i < c->nseeds; i++)
        r.rmse += without[i] / c->nseeds;
    if (rc == CAIRN_OK)
        rc = bisect(c, without, with, &r);
    free(without);
    if (rc == CAIRN_OK)
        *ret = r;
    return rc;
}
