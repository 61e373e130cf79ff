/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Paired runs and the search for a bound, where the answer is known.
 *
 * NEEDS: lapacke
 */
#include <math.h>

#include "harness/harness.h"
#include "validate/validate.h"

/* Mean and deviation are 0.02, and tables have 2.570582 for 5 degrees of freedom. */
static void test_paired(void **state)
{
    (void)state;
    const double without[] = {1, 2, 4, 1, 1, 10}, more[] = {0.01, 0.03, 0.02, 0.05, -0.01, 0.02};
    double with[6];
    for (size_t i = 0; i < 6; i++)
        with[i] = without[i] * (1 + more[i]);
    const crn_paired p = crn_paired_of(without, with, 6);
    assert_true(fabs(p.change - 0.02) < 1e-15);
    assert_true(fabs(p.half - 0.02 / sqrt(6) * 2.570582) < 5e-5);
    assert_true(isnan(crn_paired_of(without, with, 1).half));
}

typedef struct model {
    double limit; /* above it the error grows */
    unsigned nruns;
    double largest_told;
} model;

static cairn_status run(void *arg, uint64_t seed, double bound, double *ret_rmse, double *ret_rate)
{
    model *m = arg;
    m->nruns++;
    *ret_rmse = (1 + 0.1 * (double)(seed % 5)) *
                (1 + (bound > m->limit ? 0.05 : 0) + (bound > 0 ? 1e-4 * (double)(seed % 3) : 0));
    *ret_rate = bound > 0 ? 2 : 1;
    return CAIRN_OK;
}

static void tell(void *arg, const crn_bound_trial *t)
{
    model *m = arg;
    m->largest_told = fmax(m->largest_told, t->bound);
}

static void test_bound(void **state)
{
    (void)state;
    model m = {.limit = 0.02};
    crn_bound_result r;
    crn_bound_case c = {.nseeds = 20,
                        .tolerance = 0.01,
                        .low = 1e-4,
                        .high = 1,
                        .nsteps = 16,
                        .run = run,
                        .tell = tell,
                        .arg = &m};
    assert_ok(crn_bound_find(&c, &r));
    assert_true(r.found && r.best.safe && !r.next.safe);
    assert_true(fabs(r.best.bound / 0.017782794 - 1) < 1e-6); /* 10^-1.75 */
    assert_true(fabs(r.next.bound / 0.031622777 - 1) < 1e-6);
    assert_true(r.best.rate == 2 && fabs(r.rmse - 1.2) < 1e-12);
    assert_true(m.nruns <= 20 * 6 && m.largest_told < 1);
    m.limit = 1e-9;
    assert_ok(crn_bound_find(&c, &r));
    assert_false(r.found);
    m.limit = 10;
    assert_ok(crn_bound_find(&c, &r));
    assert_true(r.found && fabs(r.best.bound - 1) < 1e-12);
    c.nseeds = 1;
    assert_fails(crn_bound_find(&c, &r), CAIRN_EINVAL, "two seeds");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paired),
        cmocka_unit_test(test_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
