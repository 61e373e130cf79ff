/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The schedule under a virtual clock: thousands of random ensembles, with crashes, late runners,
 * small caches and uneven tasks. tests/harness/virtual_cycle.h holds the schedule against caches of
 * its own; here results are held against each other.
 *
 * NEEDS: random123
 */
#include "harness/harness.h"
#include "harness/virtual_cycle.h"

static vc_options draw(crn_rng *rng)
{
    vc_options o = {.nmembers = 1 + (uint32_t)crn_rng_below(rng, 24),
                    .nrunners = 1 + (uint32_t)crn_rng_below(rng, 6),
                    .ncycles = 1 + crn_rng_below(rng, 4),
                    .seed = crn_rng_u64(rng) >> 8,
                    .sched = {.capacity = 3 + (uint32_t)crn_rng_below(rng, 7),
                              .strict = crn_rng_below(rng, 5) == 0,
                              .certain = crn_rng_below(rng, 2)},
                    .scheme = (crn_resampling)crn_rng_below(rng, 4),
                    .lo = 10,
                    .hi = 10 + 10 * crn_rng_unit(rng),
                    .sigma = crn_rng_below(rng, 2) ? 0 : crn_rng_unit(rng),
                    .doubled = crn_rng_below(rng, 2) ? 0 : 0.2,
                    .load = 5 * crn_rng_unit(rng),
                    .store = 5 * crn_rng_unit(rng),
                    .spread = 8 * crn_rng_unit(rng),
                    .detect = 3,
                    .rejoin = 7};
    o.crashes = crn_rng_below(rng, 3) ? 0 : 0.1;
    o.nlate = crn_rng_below(rng, 3) ? 0 : (uint32_t)crn_rng_below(rng, 3);
    return o;
}

/* The same study on one runner with a large cache gives the same states, whatever happened. */
static void test_results_do_not_depend_on_the_schedule(void **state)
{
    (void)state;
    uint64_t crashes = 0, steals = 0, again = 0, ahead = 0;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        crn_rng rng = crn_rng_of(24, seed);
        vc_options o = draw(&rng), plain = o;
        vc_result r = vc_run(&o);
        crashes += r.ncrashes;
        steals += r.nsteals;
        again += r.nagain;
        ahead += r.nahead;
        if (seed % 4)
            continue;
        plain.nrunners = 1;
        plain.nlate = 0;
        plain.crashes = plain.doubled = plain.sigma = 0;
        plain.sched = (crn_sched_options){.capacity = 100};
        vc_result one = vc_run(&plain);
        if (one.digest != r.digest)
            fail_msg("seed %llu: other states than one runner has", (unsigned long long)seed);
    }
    assert_true(crashes > 1000 && steals > 1000 && again > 100 && ahead > 100);
}

/* The source's case: 511 runners, 5 members each. */
static vc_options large(void)
{
    return (vc_options){.nmembers = 2555,
                        .nrunners = 511,
                        .ncycles = 4,
                        .seed = 3,
                        .sched = {.capacity = 7},
                        .scheme = CRN_RESAMPLE_MULTINOMIAL,
                        .lo = 24,
                        .hi = 26.5,
                        .load = 4.1,
                        .store = 2.3,
                        .spread = 0.3};
}

static void test_runners_stay_busy(void **state)
{
    (void)state;
    vc_options o = large();
    vc_result r = vc_run(&o);
    assert_true(r.busy / (r.seconds * o.nrunners) >= 0.94);
    assert_true((double)r.nloads <= 1.05 * (double)r.bound);
    assert_int_equal(r.nsteals, 0);
}

/* A crash on the last member of a cycle costs its propagation, and detection below twice the usual
 * task: members that are overdue start elsewhere before anybody knows of the crash. */
static void test_a_crash_at_the_end_costs_little(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        vc_options o = {.nmembers = 12,
                        .nrunners = 4,
                        .ncycles = 6,
                        .seed = seed,
                        .sched = {.capacity = 6},
                        .lo = 10,
                        .hi = 11,
                        .load = 1,
                        .store = 0.5,
                        .spread = 1,
                        .crashes = 0.05,
                        .detect = 600,
                        .rejoin = 1};
        vc_result r = vc_run(&o);
        assert_true(r.tail <= 2 * o.hi + o.hi + o.load + o.store);
    }
}

static crn_sched *with_runner(uint32_t nmembers, uint32_t capacity, uint32_t *ret_runner)
{
    crn_sched *s;
    uint32_t count[8];
    for (uint32_t i = 0; i < 8; i++)
        count[i] = 1;
    assert_ok(crn_sched_create(nmembers, &(crn_sched_options){.capacity = capacity}, &s));
    assert_ok(crn_sched_join(s, ret_runner));
    assert_ok(crn_sched_begin(s, count));
    return s;
}

static void finish(crn_sched *s, uint32_t runner, double logw)
{
    crn_task t;
    assert_ok(crn_sched_next(s, runner, &t));
    assert_ok(crn_sched_loaded(s, runner, (crn_particle){0, t.parent}));
    assert_ok(crn_sched_finished(s, runner, t.member));
    assert_ok(crn_sched_weight(s, t.member, logw));
}

/* Parents whose children are done go before the lightest, and what is not safe stays. */
static void test_evictions_follow_their_order(void **state)
{
    (void)state;
    uint32_t r;
    crn_sched *s = with_runner(3, 4, &r);
    crn_particle p;
    finish(s, r, -1);
    finish(s, r, -5);
    assert_true(crn_sched_evict(s, r, &p) && p.cycle == 0);
    assert_true(crn_sched_evict(s, r, &p) && p.cycle == 0);
    assert_false(crn_sched_evict(s, r, &p)); /* two are left, and two slots free */
    finish(s, r, -3);
    assert_true(crn_sched_evict(s, r, &p) && p.cycle == 0 && p.member == 2);
    assert_false(crn_sched_evict(s, r, &p)); /* one too many, but none is safe */
    for (uint32_t i = 0; i < 3; i++)
        assert_ok(crn_sched_safe(s, i));
    assert_true(crn_sched_evict(s, r, &p) && p.cycle == 1 && p.member == 1);
    assert_false(crn_sched_evict(s, r, &p));
    crn_sched_free(s);
}

static void test_schedule_refuses(void **state)
{
    (void)state;
    crn_sched *s;
    uint32_t r;
    crn_task t;
    assert_fails(crn_sched_create(0, &(crn_sched_options){.capacity = 3}, &s), CAIRN_EINVAL,
                 "0 members");
    assert_fails(crn_sched_create(1, &(crn_sched_options){.capacity = 2}, &s), CAIRN_EINVAL,
                 "a cache of 2 states");
    s = with_runner(4, 4, &r);
    assert_fails(crn_sched_begin(s, (uint32_t[]){1, 1, 1, 1}), CAIRN_EINVAL, "not complete");
    assert_fails(crn_sched_next(s, 7, &t), CAIRN_EINVAL, "no runner 7");
    assert_ok(crn_sched_next(s, r, &t));
    assert_fails(crn_sched_next(s, r, &t), CAIRN_EINVAL, "propagates member");
    assert_fails(crn_sched_weight(s, 0, NAN), CAIRN_EINVAL, "not a number");
    assert_fails(crn_sched_weight(s, 4, 0), CAIRN_EINVAL, "no member 4");
    for (uint32_t i = 0; i < 4; i++) {
        assert_ok(crn_sched_safe(s, i));
        assert_ok(crn_sched_weight(s, i, 0));
        assert_int_equal(crn_sched_weight(s, i, 1), CAIRN_NOTHING);
    }
    assert_fails(crn_sched_begin(s, (uint32_t[]){1, 1, 1, 0}), CAIRN_EINVAL, "3 children");
    assert_ok(crn_sched_begin(s, (uint32_t[]){4, 0, 0, 0}));
    crn_sched_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results_do_not_depend_on_the_schedule),
        cmocka_unit_test(test_runners_stay_busy),
        cmocka_unit_test(test_a_crash_at_the_end_costs_little),
        cmocka_unit_test(test_evictions_follow_their_order),
        cmocka_unit_test(test_schedule_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
