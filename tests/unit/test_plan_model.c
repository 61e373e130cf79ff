/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The prediction: its limits, and equality with the Markov chain solved state by state.
 *
 * NEEDS: random123
 */
#include <math.h>

#include "harness/harness.h"
#include "plan/plan.h"

static void assert_near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance * fabs(want)))
        fail_msg("%.12g instead of %.12g", got, want);
}

static crn_plan_prediction predict(const crn_plan_model *m, const cairn_plan_schedule *s)
{
    crn_plan_prediction p;
    assert_ok(crn_plan_predict(m, s, &p));
    return p;
}

/* A level whose marks always cost the same: nothing ever changes. */
static cairn_plan_level constant(double rate, double cost, double restart)
{
    return (cairn_plan_level){.rate = rate, .restart = restart, .fixed = cost, .bandwidth = 1};
}

static crn_plan_model two_levels(void)
{
    return (crn_plan_model){.nlevels = 2,
                            .changed = {.floor = 1e6, .span = 1e9, .theta = 200},
                            .level = {{.rate = 1e-3, .restart = 2, .fixed = 0.1, .bandwidth = 8e8},
                                      {.rate = 1e-4, .restart = 60, .fixed = 1, .bandwidth = 2e7}}};
}

static void test_transitions_are_a_distribution(void **state)
{
    (void)state;
    for (double d = 1e-6; d < 1e6; d *= 3) {
        double p = crn_plan_success(0.3, d);
        double f = crn_plan_failure(0.1, 0.3, d) + crn_plan_failure(0.2, 0.3, d);
        assert_near(p + f, 1, 1e-14);
        /* the mean of the earlier of d and the failure */
        assert_near(p * d + f * crn_plan_failure_time(0.3, d), f / 0.3, 1e-7);
    }
    assert_near(crn_plan_failure_time(1e-4, 1 - 1e-9), crn_plan_failure_time(1e-4, 1 + 1e-9), 1e-8);
    assert_near(crn_plan_failure_time(0, 10), 5, 1e-15);
    assert_true(crn_plan_failure(0, 0, 10) == 0);
}

static void test_growth_rises_to_its_limit(void **state)
{
    (void)state;
    crn_plan_growth g = {.floor = 10, .span = 100, .theta = 5};
    assert_near(crn_plan_growth_at(&g, 0), 10, 1e-15);
    assert_near(crn_plan_growth_at(&g, 5), 110 - 100 * exp(-1), 1e-15);
    assert_near(crn_plan_growth_at(&g, 1e9), 110, 1e-15);
}

static void test_period_and_level_agree(void **state)
{
    (void)state;
    cairn_plan_schedule s = {.interval = 1, .ratio = {1, 2, 1, 3}};
    for (uint64_t n = 1; n <= 36; n++) {
        size_t level = crn_plan_level_of(&s, 4, n);
        for (size_t l = 0; l < 4; l++)
            assert_true((n % crn_plan_period(&s, l) == 0) == (l <= level));
    }
    assert_int_equal(crn_plan_level_of(&s, 4, 6), 3);
    assert_int_equal(crn_plan_level_of(&s, 3, 6), 2);
    assert_int_equal(crn_plan_level_of(&s, 1, 6), 0);
}

/* One level: Daly's exact exp(rate r) (exp(rate (t + c)) - 1) / rate. */
static void test_one_level_is_the_known_formula(void **state)
{
    (void)state;
    const double rates[] = {1e-9, 1e-5, 1e-3, 1e-2};
    for (size_t i = 0; i < 4; i++) {
        crn_plan_model m = {
            .nlevels = 1, .changed = {.theta = 1}, .level = {constant(rates[i], 20, 30)}};
        cairn_plan_schedule s = {.interval = 100, .ratio = {1}};
        crn_plan_prediction p = predict(&m, &s);
        double want = exp(rates[i] * 30) * expm1(rates[i] * 120) / rates[i];
        assert_near(p.expected, want, 1e-12);
        assert_near(p.efficiency, 100 / want, 1e-12);
    }
}

static void test_without_failures_only_marks_cost(void **state)
{
    (void)state;
    crn_plan_model m = two_levels();
    cairn_plan_schedule s = {.interval = 50, .ratio = {1, 4}};
    double want = 4 * 50 + 3 * crn_plan_cost(&m, 0, 50) + crn_plan_cost(&m, 1, 200);
    for (double scale = 1; scale >= 1e-12; scale *= 1e-4) {
        m.level[0].rate *= 1e-4, m.level[1].rate *= 1e-4;
        double got = predict(&m, &s).expected;
        assert_true(got >= want);
        if (scale < 1e-9)
            assert_near(got, want, 1e-9);
    }
    m.level[0].rate = m.level[1].rate = 0;
    assert_near(predict(&m, &s).expected, want, 1e-15);
}

/* Every mark at the highest level: the levels below are not there, whatever they would cost. */
static void test_ratio_one_is_one_level(void **state)
{
    (void)state;
    crn_plan_model two = {.nlevels = 2,
                          .changed = {.theta = 1},
                          .level = {constant(2e-3, 1e9, 30), constant(1e-3, 20, 30)}};
    crn_plan_model one = {.nlevels = 1, .changed = {.theta = 1}, .level = {constant(3e-3, 20, 30)}};
    cairn_plan_schedule s = {.interval = 100, .ratio = {1, 1}};
    assert_near(predict(&two, &s).expected, predict(&one, &s).expected, 1e-12);
}

/* The chain, state by state: a dense linear system, solved by elimination. */
enum { MAX_STATES = 400 };

typedef struct chain {
    size_t n;
    double a[MAX_STATES][MAX_STATES + 1]; /* the mean times X: a X = the last column */
} chain;

static void eliminate(chain *c)
{
    for (size_t k = 0; k < c->n; k++) {
        size_t pivot = k;
        for (size_t i = k + 1; i < c->n; i++)
            if (fabs(c->a[i][k]) > fabs(c->a[pivot][k]))
                pivot = i;
        for (size_t j = 0; j <= c->n; j++) {
            double v = c->a[k][j];
            c->a[k][j] = c->a[pivot][j], c->a[pivot][j] = v;
        }
        for (size_t i = 0; i < c->n; i++) {
            double f = i == k ? 0 : c->a[i][k] / c->a[k][k];
            for (size_t j = k; f != 0 && j <= c->n; j++)
                c->a[i][j] -= f * c->a[k][j];
        }
    }
}

/* State (s, 0): computing stretch s; (s, 1 + i): restarting from level i after a failure in s. */
static size_t state_of(const crn_plan_model *m, size_t s, size_t what)
{
    return s * (1 + m->nlevels) + what;
}

static void add_state(chain *c, const crn_plan_model *m, const cairn_plan_schedule *s, size_t at,
                      size_t what, double rate)
{
    size_t row = state_of(m, at, what), nsegments = crn_plan_period(s, m->nlevels - 1);
    size_t level = crn_plan_level_of(s, m->nlevels, at + 1), next = at + 1;
    double d = s->interval + crn_plan_cost(m, level, s->interval * crn_plan_period(s, level));
    if (what > 0) {
        d = m->level[what - 1].restart;
        next = at - at % crn_plan_period(s, what - 1);
    }
    c->a[row][row] += 1;
    c->a[row][c->n] += crn_plan_success(rate, d) * d;
    if (next < nsegments)
        c->a[row][state_of(m, next, 0)] -= crn_plan_success(rate, d);
    for (size_t i = 0; i < m->nlevels; i++) {
        double p = crn_plan_failure(m->level[i].rate, rate, d);
        size_t to = what > i + 1 ? what : i + 1;
        c->a[row][state_of(m, at, to)] -= p;
        c->a[row][c->n] += p * crn_plan_failure_time(rate, d);
    }
}

static double solve_chain(const crn_plan_model *m, const cairn_plan_schedule *s)
{
    static chain c;
    memset(&c, 0, sizeof c);
    size_t nsegments = crn_plan_period(s, m->nlevels - 1);
    double rate = 0;
    for (size_t l = 0; l < m->nlevels; l++)
        rate += m->level[l].rate;
    c.n = nsegments * (1 + m->nlevels);
    assert_true(c.n <= MAX_STATES);
    for (size_t at = 0; at < nsegments; at++)
        for (size_t what = 0; what <= m->nlevels; what++)
            add_state(&c, m, s, at, what, rate);
    eliminate(&c);
    return c.a[0][c.n] / c.a[0][0];
}

static void test_prediction_solves_the_chain(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 1);
    for (int i = 0; i < 60; i++) {
        crn_plan_model m = {.nlevels = 1 + i % 4,
                            .changed = {.floor = 1e6 * crn_rng_unit(&rng),
                                        .span = 1e8 * crn_rng_unit(&rng),
                                        .theta = 1 + 200 * crn_rng_unit(&rng)}};
        cairn_plan_schedule s = {.interval = 1 + 50 * crn_rng_unit(&rng), .ratio = {1}};
        for (size_t l = 0; l < m.nlevels; l++) {
            m.level[l] = (cairn_plan_level){.rate = 4e-3 * crn_rng_unit(&rng),
                                            .restart = 60 * crn_rng_unit(&rng),
                                            .fixed = crn_rng_unit(&rng),
                                            .bandwidth = 1e7 + 1e8 * crn_rng_unit(&rng)};
            s.ratio[l] = l ? 1 + (unsigned)crn_rng_below(&rng, 4) : 1;
        }
        crn_plan_prediction p = predict(&m, &s);
        /* elimination loses digits as the run gets endless */
        assert_near(p.expected, solve_chain(&m, &s), fmax(1e-9, 1e-13 / p.efficiency));
    }
}

static void test_never_is_an_answer(void **state)
{
    (void)state;
    crn_plan_model m = two_levels();
    cairn_plan_schedule s = {.interval = 1e7, .ratio = {1, 3}};
    crn_plan_prediction p = predict(&m, &s);
    assert_true(p.efficiency == 0 && p.expected == HUGE_VAL);
    s.interval = 10;
    m.level[1].restart = 1e9; /* the restart never succeeds */
    p = predict(&m, &s);
    assert_true(p.efficiency == 0 && p.expected == HUGE_VAL);
    m.level[1].rate = 0; /* nor is it ever needed */
    assert_true(predict(&m, &s).efficiency > 0.5);
}

static void test_senseless_models_are_refused(void **state)
{
    (void)state;
    crn_plan_model m = two_levels();
    cairn_plan_schedule s = {.interval = 10, .ratio = {1, 3}};
    crn_plan_prediction p;
    m.level[1].rate = -1;
    assert_fails(crn_plan_predict(&m, &s, &p), CAIRN_EINVAL, "level 1: the failure rate is -1");
    m = two_levels(), m.level[0].bandwidth = 0;
    assert_fails(crn_plan_predict(&m, &s, &p), CAIRN_EINVAL, "level 0: the bandwidth is 0");
    m = two_levels(), m.changed.span = NAN;
    assert_fails(crn_plan_predict(&m, &s, &p), CAIRN_EINVAL, "changes with time");
    m = two_levels(), m.nlevels = 5;
    assert_fails(crn_plan_predict(&m, &s, &p), CAIRN_EINVAL, "1 to 4 levels");
    m = two_levels(), s.ratio[1] = 0;
    assert_fails(crn_plan_predict(&m, &s, &p), CAIRN_EINVAL, "the ratio of level 1 is 0");
    s.ratio[1] = 3, s.interval = INFINITY;
    assert_fails(crn_plan_predict(&m, &s, &p), CAIRN_EINVAL, "the interval is");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transitions_are_a_distribution),
        cmocka_unit_test(test_growth_rises_to_its_limit),
        cmocka_unit_test(test_period_and_level_agree),
        cmocka_unit_test(test_one_level_is_the_known_formula),
        cmocka_unit_test(test_without_failures_only_marks_cost),
        cmocka_unit_test(test_ratio_one_is_one_level),
        cmocka_unit_test(test_prediction_solves_the_chain),
        cmocka_unit_test(test_never_is_an_answer),
        cmocka_unit_test(test_senseless_models_are_refused),
    };
    return cmocka_run_group_tests_name("plan_model", tests, NULL, NULL);
}
