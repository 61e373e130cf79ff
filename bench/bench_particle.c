/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The particle filter's schedule under a virtual clock, in the case of K. Keller's thesis (2022),
 * Table 8.1: 5 members a runner, propagations of 24 to 26.5 s, 4.1 s to load a state and 2.3 s to
 * store one, caches of 7 or 5 states. Seconds are virtual and exact, so these rows are no
 * measurements but results; what planning costs the server is measured.
 */
#include <math.h>

#include "bench.h"
#include "../tests/harness/virtual_cycle.h"

static vc_options source_case(uint32_t nrunners, uint32_t capacity, crn_resampling scheme)
{
    return (vc_options){.nmembers = 5 * nrunners,
                        .nrunners = nrunners,
                        .ncycles = 6,
                        .seed = 3,
                        .sched = {.capacity = capacity},
                        .scheme = scheme,
                        .lo = 24,
                        .hi = 26.5,
                        .load = 4.1,
                        .store = 2.3,
                        .spread = 0.3};
}

static void print_efficiency(const char *name, const vc_options *o, double limit)
{
    vc_result r = vc_run(o);
    bench_print(&(bench_result){
        .name = name,
        .unit = "s",
        .bar = BENCH_AT_LEAST,
        .limit = limit,
        .ours = r.busy,
        .peer = r.seconds * o->nrunners,
        .note = "propagating against all time of the runners (thesis: 0.87 to 0.92)"});
}

static void print_loads(const char *name, const vc_options *o, double peer, double limit,
                        const char *note)
{
    vc_result r = vc_run(o);
    bench_print(
        &(bench_result){.name = name,
                        .unit = "loads/cycle",
                        .bar = BENCH_AT_MOST,
                        .limit = limit,
                        .ours = (double)r.nloads / (double)(o->ncycles - 1),
                        .peer = peer > 0 ? peer : (double)r.bound / (double)(o->ncycles - 1),
                        .note = note});
}

static void scales(void)
{
    static const uint32_t runners[] = {63, 127, 255, 511, 4096};
    for (size_t i = 0; i < sizeof runners / sizeof *runners; i++) {
        char name[64];
        vc_options o = source_case(runners[i], 7, CRN_RESAMPLE_SYSTEMATIC);
        snprintf(name, sizeof name, "particle.efficiency.%u", runners[i]);
        print_efficiency(name, &o, 0.94);
        snprintf(name, sizeof name, "particle.efficiency.multinomial.%u", runners[i]);
        o.scheme = CRN_RESAMPLE_MULTINOMIAL;
        /* Of 4096 runners a few have no state that was drawn, and begin with a load. */
        print_efficiency(name, &o, runners[i] > 511 ? 0.915 : 0.94);
    }
}

/* Uneven tasks: lognormal, and every fiftieth takes twice as long. */
static void uneven(void)
{
    vc_options o = source_case(511, 7, CRN_RESAMPLE_MULTINOMIAL);
    o.lo = 25;
    o.sigma = 0.1;
    o.doubled = 0.02;
    o.lists = true;
    vc_result r = vc_run(&o);
    bench_print(&(bench_result){.name = "particle.uneven.loads",
                                .unit = "loads",
                                .bar = BENCH_AT_MOST,
                                .limit = 1.25,
                                .ours = (double)r.nloads,
                                .peer = (double)r.bound,
                                .note = "with steals, against the lower bound of plans"});
    bench_print(&(bench_result){.name = "particle.uneven.time",
                                .unit = "s",
                                .bar = BENCH_AT_MOST,
                                .limit = 1.03,
                                .ours = r.seconds,
                                .peer = r.list + (double)(o.ncycles - 1) * o.store,
                                .note = "against list scheduling with free loads"});
}

/* Loads of plans against their lower bound: the worst of many weights and caches. */
static void plans(void)
{
    enum { CAPACITIES = 6, SPREADS = 9, SCHEMES = 4, CASES = CAPACITIES * SPREADS * SCHEMES };
    double worst = 0, ours = 0, peer = 1;
    for (uint32_t i = 0; i < CASES; i++) {
        double spread = 1 + i / SCHEMES % SPREADS;
        vc_options o = source_case(511, 4 + i / SCHEMES / SPREADS, (crn_resampling)(i % SCHEMES));
        o.ncycles = 2;
        o.spread = 0.1 * spread * spread * spread; /* ESS 0.99 to 0.03 */
        vc_result r = vc_run(&o);
        if ((double)r.planned / (double)r.bound > worst) {
            ours = (double)r.planned;
            peer = (double)r.bound;
            worst = ours / peer;
        }
    }
    bench_print(
        &(bench_result){.name = "particle.plan.bound",
                        .unit = "loads",
                        .bar = BENCH_AT_MOST,
                        .limit = 1.05,
                        .ours = ours,
                        .peer = peer,
                        .note = "the worst of 216 cycles: caches of 4 to 9, ESS 0.03 to 0.99"});
}

/* What an update costs the server: weights, resampling, plan; and a request. */
static void server_cost(void)
{
    enum { R = 511, M = 2555 };
    static double logw[M], w[M];
    static uint32_t count[M];
    double update[BENCH_TURNS], request[BENCH_TURNS];
    crn_rng rng = crn_rng_of(1, 1);
    for (size_t i = 0; i < M; i++)
        logw[i] = -2 * crn_rng_unit(&rng);
    for (size_t turn = 0; turn < BENCH_TURNS; turn++) {
        crn_sched *s;
        crn_weight_sum sum;
        crn_task t;
        uint32_t runner;
        bench_need(crn_sched_create(M, &(crn_sched_options){.capacity = 7}, &s));
        for (size_t i = 0; i < R; i++)
            bench_need(crn_sched_join(s, &runner));
        for (uint32_t i = 0; i < M; i++)
            bench_need(crn_sched_offer(s, i / 5, (crn_particle){0, i}));
        double start = bench_seconds();
        bench_need(crn_weights(logw, M, w, &sum));
        bench_need(crn_resample(CRN_RESAMPLE_MULTINOMIAL, w, M, M, &rng, count));
        bench_need(crn_sched_begin(s, count));
        bench_need(crn_sched_next(s, 0, &t)); /* plans */
        update[turn] = bench_seconds() - start;
        start = bench_seconds();
        for (uint32_t i = 1; i < R; i++)
            bench_need(crn_sched_next(s, i, &t));
        request[turn] = (bench_seconds() - start) / (R - 1);
        crn_sched_free(s);
    }
    bench_print(
        &(bench_result){.name = "particle.update",
                        .unit = "s",
                        .bar = BENCH_AT_MOST,
                        .limit = 1,
                        .ours = bench_median(update, BENCH_TURNS),
                        .peer = 0.010,
                        .note = "weights, resampling and plan of 2555 members, against 10 ms"});
    bench_print(&(bench_result){.name = "particle.request",
                                .unit = "s",
                                .bar = BENCH_AT_MOST,
                                .limit = 1,
                                .ours = bench_median(request, BENCH_TURNS),
                                .peer = 20e-6,
                                .note = "a request in the server, against 20 us"});
}

int main(void)
{
    scales();
    vc_options o = source_case(511, 7, CRN_RESAMPLE_MULTINOMIAL);
    print_loads("particle.loads", &o, 1040, 250. / 1040,
                "2555 members, cache of 7, against the fewest of the thesis (with 5)");
    o.sched.capacity = 5;
    print_loads("particle.loads.cache5", &o, 1040, 700. / 1040, "the same with a cache of 5");
    o.sched.strict = true;
    print_loads("particle.loads.strict", &o, 1040, 1, "split budgets, nobody steals");
    plans();
    uneven();
    server_cost();
    return 0;
}
