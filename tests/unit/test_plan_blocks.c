/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The choice of a block size, against an oracle that compares the bytes of two states in blocks of
 * each size.
 *
 * NEEDS: random123
 */
#include <math.h>

#include "harness/harness.h"
#include "plan/plan.h"

enum { NBYTES = 3 * CRN_PLAN_STRETCH + 5 * CRN_PLAN_GRAIN + 77, ENTRY = 32 };
enum { NGRAINS = (NBYTES + CRN_PLAN_GRAIN - 1) / CRN_PLAN_GRAIN };

typedef struct states {
    unsigned char before[NBYTES], now[NBYTES];
} states;

/* --- the oracle ----------------------------------------------------------------------------- */

/* What a mark writes: blocks that changed, the last one as if it were whole grains, and a table. */
static double written(const states *s, uint64_t block)
{
    double sum = 0;
    for (uint64_t off = 0; off < NBYTES; off += block) {
        const uint64_t n = CRN_MIN(block, NBYTES - off);
        if (memcmp(s->before + off, s->now + off, n) != 0)
            sum += (double)CRN_ROUND_UP(n, (uint64_t)CRN_PLAN_GRAIN);
    }
    sum *= (double)NBYTES / ((double)NGRAINS * CRN_PLAN_GRAIN);
    return sum > 0 ? sum + ENTRY * (double)((NBYTES + block - 1) / block) : 0;
}

static uint64_t best_size(const states *s, uint64_t smallest, uint64_t now)
{
    double best = written(s, now);
    uint64_t choice = now;
    for (uint64_t b = smallest; b <= CRN_PLAN_STRETCH; b *= 2)
        best = CRN_MIN(best, written(s, b));
    for (uint64_t b = smallest; b <= CRN_PLAN_STRETCH; b *= 2)
        if (written(s, b) <= 1.1 * best)
            choice = b;
    const double gain = written(s, now) - written(s, choice);
    return gain > 0 && 16 * gain >= NBYTES ? choice : now;
}

/* --- what is tested ------------------------------------------------------------------------- */

static crn_plan_blocks look(const states *s)
{
    crn_plan_blocks seen = {0};
    for (size_t off = 0; off < NBYTES; off += CRN_PLAN_STRETCH) {
        bool changed[CRN_PLAN_STRETCH / CRN_PLAN_GRAIN];
        size_t n = 0;
        for (size_t at = off; at < CRN_MIN(off + CRN_PLAN_STRETCH, (size_t)NBYTES);
             at += CRN_PLAN_GRAIN)
            changed[n++] = memcmp(s->before + at, s->now + at,
                                  CRN_MIN((size_t)CRN_PLAN_GRAIN, NBYTES - at)) != 0;
        crn_plan_blocks_add(&seen, changed, n);
    }
    return seen;
}

/* Some stretches of some length, as programs write them. */
static void change(states *s, crn_rng *rng)
{
    const uint64_t n = crn_rng_below(rng, 200), length = (uint64_t)1 << crn_rng_below(rng, 20);
    memcpy(s->now, s->before, sizeof s->now);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t from = crn_rng_below(rng, NBYTES);
        for (uint64_t k = from; k < CRN_MIN(from + length, (uint64_t)NBYTES); k++)
            s->now[k]++;
    }
}

static void test_choice_is_the_oracles(void **state)
{
    (void)state;
    states *s;
    unsigned nmoved = 0;
    assert_ok(crn_alloc(&s, 1));
    crn_rng rng = crn_rng_of(test_seed(), 0);
    for (int i = 0; i < 400; i++) {
        const uint64_t smallest = (uint64_t)CRN_PLAN_GRAIN << crn_rng_below(&rng, 5);
        const uint64_t now = (uint64_t)CRN_PLAN_GRAIN << (4 + crn_rng_below(&rng, 5));
        change(s, &rng);
        const crn_plan_blocks seen = look(s);
        for (uint64_t b = CRN_PLAN_GRAIN; b <= CRN_PLAN_STRETCH; b *= 2)
            assert_true(fabs(crn_plan_blocks_cost(&seen, NBYTES, ENTRY, b) - written(s, b)) < 1);
        const uint64_t choice = crn_plan_blocks_choose(&seen, NBYTES, ENTRY, smallest, now);
        assert_true(choice == best_size(s, smallest, now));
        nmoved += choice != now;
    }
    assert_true(nmoved > 20);
    free(s);
}

/* A fifth of the grains, each alone, as a code on an unstructured mesh does; then nothing, all, and
 * too little for too long. */
static void test_cases(void **state)
{
    (void)state;
    enum { N = CRN_PLAN_STRETCH / CRN_PLAN_GRAIN };
    const uint64_t nbytes = 16 << 20, now = 64 << 10;
    bool changed[N];
    crn_plan_blocks scattered = {0}, none = {0}, all = {0}, one = {0};
    for (size_t i = 0; i < N; i++)
        changed[i] = i % 5 == 0;
    crn_plan_blocks_add(&scattered, changed, N);
    assert_true(crn_plan_blocks_choose(&scattered, nbytes, 32, CRN_PLAN_GRAIN, now) == 1 << 10);
    assert_true(crn_plan_blocks_choose(&scattered, nbytes, 32, 16 << 10, now) == now);
    memset(changed, 0, sizeof changed);
    crn_plan_blocks_add(&none, changed, N);
    assert_true(crn_plan_blocks_choose(&none, nbytes, 32, CRN_PLAN_GRAIN, now) == now);
    assert_true(crn_plan_blocks_choose(&(crn_plan_blocks){0}, nbytes, 32, CRN_PLAN_GRAIN, now) ==
                now);
    changed[7] = true;
    for (int i = 0; i < 30; i++)
        crn_plan_blocks_add(&one, changed + N / 2, N / 2);
    crn_plan_blocks_add(&one, changed, N / 2); /* a 250th in blocks of 64 KiB: no 16th of all */
    assert_true(crn_plan_blocks_choose(&one, nbytes, 32, CRN_PLAN_GRAIN, now) == now);
    memset(changed, 1, sizeof changed);
    crn_plan_blocks_add(&all, changed, N);
    assert_true(crn_plan_blocks_choose(&all, nbytes, 32, CRN_PLAN_GRAIN, now) == now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice_is_the_oracles),
        cmocka_unit_test(test_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
