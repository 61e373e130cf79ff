/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The plan of a cycle: against an exhaustive search where that is possible, against its own bounds
 * everywhere.
 *
 * NEEDS: random123
 */
#include <math.h>

#include "harness/harness.h"
#include "particle/particle.h"

enum { MOST_RUNNERS = 4, MOST_TASKS = 12 };

/* A cycle with room for its arrays. */
typedef struct problem {
    crn_cycle c;
    uint32_t *count, *busy;
    crn_cached *cached;
} problem;

static void problem_init(problem *x, size_t nparents, size_t nrunners)
{
    *x = (problem){.c = {.nparents = nparents, .nrunners = nrunners}};
    assert_ok(crn_alloc(&x->count, nparents));
    assert_ok(crn_alloc(&x->busy, nrunners));
    assert_ok(crn_alloc(&x->cached, nparents * nrunners));
    x->c.count = x->count;
    x->c.cached = x->cached;
}

static void problem_done(problem *x)
{
    free(x->count);
    free(x->busy);
    free(x->cached);
}

static bool is_cached(const crn_cycle *c, uint32_t parent, uint32_t runner)
{
    for (size_t i = 0; i < c->ncached; i++)
        if (c->cached[i].parent == parent && c->cached[i].runner == runner)
            return true;
    return false;
}

/* Random counts; every parent in one cache with this chance, in further ones with half of it. */
static void problem_draw(problem *x, crn_rng *rng, size_t ntasks, double chance, bool several)
{
    memset(x->count, 0, x->c.nparents * sizeof *x->count);
    for (size_t i = 0; i < ntasks; i++)
        x->count[crn_rng_below(rng, x->c.nparents)]++;
    x->c.ncached = 0;
    for (uint32_t i = 0; i < x->c.nparents; i++) {
        uint32_t home = (uint32_t)crn_rng_below(rng, x->c.nrunners);
        if (crn_rng_unit(rng) < chance)
            x->cached[x->c.ncached++] = (crn_cached){i, home};
        for (uint32_t r = 0; several && r < x->c.nrunners; r++)
            if (r != home && crn_rng_unit(rng) < chance / 4)
                x->cached[x->c.ncached++] = (crn_cached){i, r};
    }
}

/* All children assigned, targets even, loads marked where the cache lacks the parent, bounds. */
static void check_plan(const crn_cycle *c, const crn_cycle_plan *p)
{
    uint64_t *given, *tasks, lo = UINT64_MAX, hi = 0;
    uint32_t nloads = 0;
    assert_ok(crn_alloc(&given, c->nparents));
    assert_ok(crn_alloc(&tasks, c->nrunners));
    for (size_t i = 0; i < p->nbatches; i++) {
        const crn_cycle_batch *b = &p->batch[i];
        assert_true(b->count > 0 && b->parent < c->nparents && b->runner < c->nrunners);
        given[b->parent] += b->count;
        tasks[b->runner] += b->count;
        assert_int_equal(b->load, !is_cached(c, b->parent, b->runner));
        nloads += b->load;
        if (i > 0 && b[-1].runner == b->runner) {
            assert_true(b[-1].load <= b->load);
            assert_true(b[-1].parent != b->parent || b[-1].load != b->load);
        }
    }
    for (size_t i = 0; i < c->nparents; i++)
        assert_int_equal(given[i], c->count[i]);
    for (size_t r = 0; r < c->nrunners; r++) {
        uint64_t busy = c->busy ? c->busy[r] : 0;
        if (tasks[r] > 0)
            hi = CRN_MAX(hi, tasks[r] + busy);
        lo = CRN_MIN(lo, tasks[r] + busy);
    }
    assert_true(hi <= lo + 1);
    assert_int_equal(p->nloads, nloads);
    assert_true(p->nloads >= p->bound);
    if (p->nloads > 0) {
        assert_true(p->nloads <= p->nsupplies + p->ndeficits - 1);
        assert_true(p->nloads <= p->nparents + c->nrunners - 1);
    }
    free(given);
    free(tasks);
}

/* The fewest loads of a balanced plan, by trying everything: parent after parent, all ways to
 * spread its children over the room that the runners have left. */
typedef struct search {
    const crn_cycle *c;
    bool cached[MOST_TASKS][MOST_RUNNERS];
    uint8_t memo[MOST_TASKS + 1]
                [(MOST_TASKS + 1) * (MOST_TASKS + 1) * (MOST_TASKS + 1) * (MOST_TASKS + 1)];
} search;

enum { UNKNOWN = 255, IMPOSSIBLE = 254 };

static uint32_t fewest(search *s, size_t parent, uint32_t room[MOST_RUNNERS]);

static uint32_t spread_parent(search *s, size_t parent, size_t runner, uint32_t left,
                              uint32_t room[MOST_RUNNERS])
{
    if (runner == s->c->nrunners)
        return left == 0 ? fewest(s, parent + 1, room) : IMPOSSIBLE;
    uint32_t best = IMPOSSIBLE;
    for (uint32_t take = 0; take <= CRN_MIN(left, room[runner]); take++) {
        room[runner] -= take;
        uint32_t rest = spread_parent(s, parent, runner + 1, left - take, room);
        room[runner] += take;
        best = CRN_MIN(best,
                       rest == IMPOSSIBLE ? rest : rest + (take > 0 && !s->cached[parent][runner]));
    }
    return best;
}

static uint32_t fewest(search *s, size_t parent, uint32_t room[MOST_RUNNERS])
{
    if (parent == s->c->nparents)
        return 0;
    size_t key = 0;
    for (size_t r = 0; r < s->c->nrunners; r++)
        key = key * (MOST_TASKS + 1) + room[r];
    uint8_t *memo = &s->memo[parent][key];
    if (*memo == UNKNOWN)
        *memo = (uint8_t)spread_parent(s, parent, 0, s->c->count[parent], room);
    return *memo;
}

static uint32_t exhaustive(search *s, const crn_cycle *c, uint32_t ntasks)
{
    s->c = c;
    for (uint32_t i = 0; i < c->nparents; i++)
        for (uint32_t r = 0; r < c->nrunners; r++)
            s->cached[i][r] = is_cached(c, i, r);
    uint32_t best = IMPOSSIBLE;
    memset(s->memo, UNKNOWN, sizeof s->memo);
    for (uint32_t extra = 0; extra < 1u << c->nrunners; extra++) {
        uint32_t room[MOST_RUNNERS] = {0};
        if ((uint32_t)__builtin_popcount(extra) != ntasks % c->nrunners)
            continue;
        for (size_t r = 0; r < c->nrunners; r++)
            room[r] = ntasks / (uint32_t)c->nrunners + (extra >> r & 1);
        best = CRN_MIN(best, fewest(s, 0, room));
    }
    return best;
}

static void against_exhaustive(size_t ncases, bool several, double share_at_optimum)
{
    static search s;
    size_t optimal = 0, tight = 0;
    for (size_t i = 0; i < ncases; i++) {
        crn_rng rng = crn_rng_of(24, i + (several ? 1000000 : 0));
        size_t nrunners = 1 + crn_rng_below(&rng, MOST_RUNNERS);
        size_t ntasks = 1 + crn_rng_below(&rng, MOST_TASKS);
        problem x;
        problem_init(&x, 1 + crn_rng_below(&rng, ntasks), nrunners);
        problem_draw(&x, &rng, ntasks, crn_rng_unit(&rng), several);
        crn_cycle_plan p;
        assert_ok(crn_cycle_plan_make(&x.c, &p));
        check_plan(&x.c, &p);
        uint32_t best = exhaustive(&s, &x.c, (uint32_t)ntasks);
        assert_true(p.nloads >= best && best >= p.bound);
        optimal += p.nloads == best;
        tight += p.bound == best;
        crn_cycle_plan_done(&p);
        problem_done(&x);
    }
    print_message("optimal in %zu, bound tight in %zu of %zu\n", optimal, tight, ncases);
    assert_true((double)optimal >= share_at_optimum * (double)ncases);
}

static void test_plans_are_optimal(void **state)
{
    (void)state;
    against_exhaustive(2000, false, 0.99);
}

static void test_plans_with_several_homes(void **state)
{
    (void)state;
    against_exhaustive(500, true, 0.95);
}

/* Bounds hold for any size, and counting what runners are busy with. */
static void test_plans_keep_their_bounds(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3000; i++) {
        crn_rng rng = crn_rng_of(25, i);
        size_t nrunners = 1 + crn_rng_below(&rng, 40), ntasks = crn_rng_below(&rng, 200);
        problem x;
        problem_init(&x, 1 + crn_rng_below(&rng, 80), nrunners);
        problem_draw(&x, &rng, ntasks, crn_rng_unit(&rng), i % 3 == 0);
        for (size_t r = 0; r < nrunners; r++)
            x.busy[r] = (uint32_t)crn_rng_below(&rng, 3);
        x.c.busy = i % 2 ? x.busy : NULL;
        crn_cycle_plan p;
        assert_ok(crn_cycle_plan_make(&x.c, &p));
        uint64_t level = 0;
        for (size_t r = 0; r < nrunners; r++)
            level += x.c.busy ? x.busy[r] : 0;
        if (ntasks + level >= 3 * nrunners) /* else the busiest stand out */
            check_plan(&x.c, &p);
        crn_cycle_plan_done(&p);
        problem_done(&x);
    }
}

enum { MEMBERS = 2555, RUNNERS = 511, EACH = 5 };

/* A plan of MEMBERS for RUNNERS, each of which has so many of the five states that it made. */
static void plan_at_scale(problem *x, uint32_t held, crn_resampling scheme, int spread)
{
    static double w[MEMBERS];
    crn_rng rng = crn_rng_of(26, held * 100 + scheme * 10 + (uint64_t)spread);
    for (size_t i = 0; i < MEMBERS; i++)
        w[i] = exp(-(double)(spread * spread) * crn_rng_unit(&rng) * 2);
    assert_ok(crn_resample(scheme, w, MEMBERS, MEMBERS, &rng, x->count));
    x->c.ncached = 0;
    for (uint32_t i = 0; i < MEMBERS; i++)
        if (i % EACH < held)
            x->cached[x->c.ncached++] = (crn_cached){i, i / EACH};
    crn_cycle_plan p;
    assert_ok(crn_cycle_plan_make(&x->c, &p));
    if (p.nloads > 1.05 * p.bound)
        fail_msg("%u loads, bound %u (%u held, %s, spread %d)", p.nloads, p.bound, held,
                 crn_resampling_name(scheme), spread);
    crn_cycle_plan_done(&p);
}

static void test_plan_at_scale_is_near_its_bound(void **state)
{
    (void)state;
    problem x;
    problem_init(&x, MEMBERS, RUNNERS);
    for (uint32_t held = 0; held <= EACH; held++)
        for (crn_resampling s = CRN_RESAMPLE_SYSTEMATIC; s <= CRN_RESAMPLE_RESIDUAL; s++)
            for (int spread = 0; spread < 4; spread++)
                plan_at_scale(&x, held, s, spread);
    problem_done(&x);
}

static void test_plan_refuses(void **state)
{
    (void)state;
    uint32_t count[1] = {3};
    crn_cached outside = {.parent = 1, .runner = 0};
    crn_cycle_plan p;
    assert_fails(crn_cycle_plan_make(&(crn_cycle){.count = count, .nparents = 1}, &p), CAIRN_EINVAL,
                 "no runner for 3 tasks");
    assert_fails(
        crn_cycle_plan_make(
            &(crn_cycle){
                .count = count, .nparents = 1, .nrunners = 1, .cached = &outside, .ncached = 1},
            &p),
        CAIRN_EINVAL, "parent 1 in the cache of runner 0");
    assert_ok(crn_cycle_plan_make(&(crn_cycle){.nrunners = 2}, &p));
    assert_int_equal(p.nbatches, 0);
    crn_cycle_plan_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans_are_optimal),
        cmocka_unit_test(test_plans_with_several_homes),
        cmocka_unit_test(test_plans_keep_their_bounds),
        cmocka_unit_test(test_plan_at_scale_is_near_its_bound),
        cmocka_unit_test(test_plan_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
