/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Verdicts: tools against published and hand-made figures, findings from histories whose answer is
 * known.
 */
#include <math.h>

#include "harness/harness.h"
#include "validate/validate.h"

/* Benjamini and Hochberg (1995), section 4: of these 15, four are rejected at 0.05. */
static void test_discoveries_of_the_paper(void **state)
{
    (void)state;
    const double p[] = {0.4262, 0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298,
                        0.0344, 0.0459, 0.3240, NAN,    0.5719, 0.6528, 0.7590, 1.0};
    bool found[16];
    size_t n;
    assert_ok(crn_discoveries(p, 16, 0.05, found, &n));
    assert_int_equal(n, 4);
    for (size_t i = 0; i < 16; i++)
        assert_int_equal(found[i], i >= 1 && i <= 4);
    assert_ok(crn_discoveries(p, 0, 0.05, found, &n));
    assert_int_equal(n, 0);
    assert_ok(crn_discoveries((double[]){0.04, 0.045}, 2, 0.05, found, &n));
    assert_int_equal(n, 2); /* the second lets the first in */
}

static void test_line(void **state)
{
    (void)state;
    const double x[] = {1, 2, 3, 4}, y[] = {6, 5, 7, 10};
    crn_line line = crn_line_fit(x, y, 4);
    assert_true(fabs(line.slope - 1.4) < 1e-15 && fabs(line.intercept - 3.5) < 1e-14);
    assert_true(fabs(line.error - sqrt(4.2 / 2 / 5)) < 1e-15);
    assert_true(isnan(crn_line_fit(x, y, 1).slope));
    assert_true(isnan(crn_line_fit((double[]){2, 2}, y, 2).slope));
    line = crn_line_fit(x, y, 2);
    assert_true(line.slope == -1 && isnan(line.error));
}

static void test_slopes(void **state)
{
    (void)state;
    const double v[] = {1, 2, 3, 1, 2, 3, 1, 3, 5}; /* members 0 and 1 are alike, 2 is steeper */
    const crn_slopes s = crn_slopes_of(v, 3, 3);
    assert_int_equal(s.npairs, 3); /* 1, 2, 2 */
    assert_true(fabs(s.mean - 5. / 3) < 1e-15 && fabs(s.deviation - sqrt(2. / 9)) < 1e-15);
    assert_true(isnan(crn_slopes_of(v, 1, 3).mean));
}

/* --- verdicts ------------------------------------------------------------------------------- */

enum { CYCLES = 5, MEMBERS = 8 };

typedef struct story {
    crn_spread_stats stats[CYCLES * MEMBERS], lossless[CYCLES * MEMBERS];
    double noisy[CYCLES * MEMBERS], pair[CYCLES * MEMBERS], ssim[CYCLES * MEMBERS];
} story;

static crn_history begin(story *s)
{
    *s = (story){0};
    for (size_t i = 0; i < CYCLES * MEMBERS; i++) {
        const double grown =
            pow(10, (double)(i / MEMBERS)) * (1 + 1e-3 * (double)(i % MEMBERS * 5 % 8));
        s->stats[i] = (crn_spread_stats){.delta = 0.01, .decorrelation = 1e-7, .share = 0.01};
        s->noisy[i] = s->pair[i] = 1e-8 * grown;
        s->ssim[i] = 1;
    }
    return (crn_history){.ncycles = CYCLES,
                         .nmembers = MEMBERS,
                         .stats = s->stats,
                         .lossless = s->lossless,
                         .noisy = s->noisy,
                         .pair = s->pair,
                         .ssim = s->ssim};
}

static crn_verdict judge(const crn_history *h, uint32_t cycles)
{
    crn_verdict v;
    crn_thresholds t = crn_thresholds_default();
    t.cycles = cycles;
    assert_ok(crn_judge(h, &t, 1, &v));
    return v;
}

static void test_judge_passes(void **state)
{
    (void)state;
    story s;
    crn_history h = begin(&s);
    crn_verdict v = judge(&h, 0);
    assert_int_equal(v.all, CRN_FINDING_PASS);
    for (crn_criterion c = 0; c < CRN_NCRITERIA; c++)
        assert_int_equal(v.finding[c], CRN_FINDING_PASS);
    assert_int_equal(v.strict, CRN_FINDING_PASS);
    assert_true(fabs(v.line.slope - 1) < 1e-12);
    h.noisy = h.ssim = NULL;
    v = judge(&h, 0);
    assert_int_equal(v.finding[CRN_CRITERION_SLOPE], CRN_FINDING_NONE);
    assert_int_equal(v.finding[CRN_CRITERION_SSIM], CRN_FINDING_NONE);
    assert_int_equal(v.all, CRN_FINDING_PASS);
}

static void fail_from(story *s, crn_criterion c, uint32_t cycle)
{
    for (size_t i = (cycle - 1) * MEMBERS; i < CYCLES * MEMBERS; i++) {
        s->stats[i].delta = c == CRN_CRITERION_DELTA ? 0.2 : s->stats[i].delta;
        s->stats[i].share = c == CRN_CRITERION_SHARE ? 0.2 : s->stats[i].share;
        s->stats[i].decorrelation = c == CRN_CRITERION_RHO ? 0.01 : s->stats[i].decorrelation;
        s->stats[i].nbroken = c == CRN_CRITERION_FINITE;
        s->ssim[i] = c == CRN_CRITERION_SSIM ? 0.9 : 1;
        s->noisy[i] *= c == CRN_CRITERION_SLOPE ? 2 : 1;
    }
}

static void test_judge_names_what_fails(void **state)
{
    (void)state;
    story s;
    for (crn_criterion c = 0; c < CRN_NCRITERIA; c++) {
        crn_history h = begin(&s);
        fail_from(&s, c, 4);
        crn_verdict v = judge(&h, 0);
        assert_int_equal(v.all, CRN_FINDING_FAIL);
        for (crn_criterion k = 0; k < CRN_NCRITERIA; k++)
            assert_int_equal(v.finding[k], k == c ? CRN_FINDING_FAIL : CRN_FINDING_PASS);
        assert_int_equal(v.since[c], c == CRN_CRITERION_SLOPE ? 0 : 4);
        assert_int_equal(judge(&h, 3).all, CRN_FINDING_PASS); /* it holds for three cycles */
    }
}

/* One member of eight beyond the threshold: a third of the draws leave it out. */
static void test_judge_within_noise(void **state)
{
    (void)state;
    story s;
    crn_history h = begin(&s);
    s.stats[CYCLES * MEMBERS - 1].delta = 0.11;
    crn_verdict v = judge(&h, 0);
    assert_int_equal(v.finding[CRN_CRITERION_DELTA], CRN_FINDING_NOISE);
    assert_int_equal(v.all, CRN_FINDING_NOISE);
    for (size_t i = 0; i < MEMBERS; i++) /* the mean is at the threshold */
        s.stats[(CYCLES - 1) * MEMBERS + i].decorrelation = i % 2 ? 1.9e-4 : 0.2e-4;
    v = judge(&h, 0);
    assert_int_equal(v.finding[CRN_CRITERION_RHO], CRN_FINDING_NOISE);
    assert_int_equal(v.strict, CRN_FINDING_FAIL);
}

/* No value of a verdict decides by being NaN. */
static void test_judge_without_meaning(void **state)
{
    (void)state;
    story s;
    crn_history h = begin(&s);
    for (size_t i = 0; i < CYCLES * MEMBERS; i++) {
        s.stats[i].delta = s.stats[i].share = NAN; /* one member has no others */
        s.noisy[i] = s.pair[i] = 0;
    }
    crn_verdict v = judge(&h, 0);
    assert_int_equal(v.finding[CRN_CRITERION_DELTA], CRN_FINDING_NONE);
    assert_int_equal(v.finding[CRN_CRITERION_SHARE], CRN_FINDING_NONE);
    assert_int_equal(v.finding[CRN_CRITERION_SLOPE], CRN_FINDING_NONE);
    assert_int_equal(v.all, CRN_FINDING_PASS);
    s.stats[3].noutside = 7; /* and off where all agree, but so it is without loss */
    s.lossless[3].noutside = 7;
    assert_int_equal(judge(&h, 0).all, CRN_FINDING_PASS);
    s.stats[3].noutside = 8;
    assert_int_equal(judge(&h, 0).finding[CRN_CRITERION_FINITE], CRN_FINDING_FAIL);
    h.ncycles = 0;
    assert_int_equal(judge(&h, 0).all, CRN_FINDING_PASS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_discoveries_of_the_paper),
        cmocka_unit_test(test_line),
        cmocka_unit_test(test_slopes),
        cmocka_unit_test(test_judge_passes),
        cmocka_unit_test(test_judge_names_what_fails),
        cmocka_unit_test(test_judge_within_noise),
        cmocka_unit_test(test_judge_without_meaning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
