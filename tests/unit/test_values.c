/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values are compared as the formula says, whatever the sieve thinks of them; and blocks with equal
 * tolerant digests never have values that differ.
 *
 * NEEDS: random123
 */
#include "harness/harness.h"
#include "hash/hash.h"

#include <inttypes.h>
#include <float.h>
#include <math.h>

enum { N = 700 };

/* The formula, as it stands. */
static bool plain_differs(const crn_value_rule *r, double a, double b)
{
    if (isnan(a) || isnan(b))
        return !(isnan(a) && isnan(b)) || r->nan_differs;
    if (a == b)
        return false;
    if (isinf(a) || isinf(b))
        return true;
    return fabs(a - b) > fmax(r->bound.absolute, r->bound.relative * fmax(fabs(a), fabs(b)));
}

typedef struct seen {
    bool at[N];
    uint64_t n;
} seen;

static void on_stretch(void *arg, uint64_t first, uint64_t n)
{
    seen *s = arg;
    assert_true(n > 0);
    for (uint64_t i = first; i < first + n; i++) {
        assert_false(s->at[i]);
        s->at[i] = true;
    }
    s->n += n;
}

static double some_value(crn_rng *r)
{
    switch (crn_rng_below(r, 20)) {
    case 0:
        return 0;
    case 1:
        return -0.0;
    case 2:
        return (double)INFINITY;
    case 3:
        return (double)-INFINITY;
    case 4:
        return (double)NAN;
    default:
        return ldexp(crn_rng_unit(r) - 0.5, (int)crn_rng_below(r, 60) - 30);
    }
}

/* Another value near x: from one ulp, by the bound's own size, to anything. */
static double neighbour(crn_rng *r, double x, const crn_value_rule *rule)
{
    const double sign = crn_rng_below(r, 2) ? 1 : -1;
    switch (crn_rng_below(r, 6)) {
    case 0:
        if (rule->kind == CRN_VALUE_F32)
            return (double)nextafterf((float)x, 1e30f);
        return nextafter(x, 1e300);
    case 1:
        return x + sign * rule->bound.absolute;
    case 2:
        return x * (1 + sign * rule->bound.relative);
    case 3:
        return x + sign * rule->bound.absolute * crn_rng_unit(r) * 2;
    case 4:
        return some_value(r);
    default:
        return x;
    }
}

static void store(const crn_value_rule *rule, unsigned char *p, double x)
{
    const float f = (float)x;
    memcpy(p, rule->kind == CRN_VALUE_F32 ? (const void *)&f : (const void *)&x, rule->item);
}

static double load(const crn_value_rule *rule, const unsigned char *p)
{
    float f;
    double x;
    memcpy(&f, p, sizeof f);
    memcpy(&x, p, rule->item == 8 ? 8 : 4);
    return rule->kind == CRN_VALUE_F32 ? (double)f : x;
}

static void compare_once(crn_rng *r, const crn_value_rule *rule, bool dense)
{
    static unsigned char a[8 * N], b[8 * N];
    const uint64_t n = crn_rng_below(r, N + 1);
    uint64_t want = 0;
    seen s = {0};
    crn_value_delta delta = {0};
    for (uint64_t i = 0; i < n; i++) {
        double x = some_value(r);
        store(rule, a + i * rule->item, x);
        x = load(rule, a + i * rule->item);
        store(rule, b + i * rule->item,
              dense || crn_rng_below(r, 100) == 0 ? neighbour(r, x, rule) : x);
    }
    crn_values_compare(rule, a, b, n, &delta, on_stretch, &s);
    for (uint64_t i = 0; i < n; i++) {
        const double x = load(rule, a + i * rule->item), y = load(rule, b + i * rule->item);
        if (plain_differs(rule, x, y) != s.at[i])
            fail_msg("%.17g and %.17g: %s (bound %g, %g)", x, y, s.at[i] ? "differ" : "agree",
                     rule->bound.absolute, rule->bound.relative);
        want += s.at[i];
    }
    assert_true(delta.n == want && s.n == want);
    crn_tolerant *t;
    crn_digest da, db;
    assert_ok(crn_tolerant_create(rule->item, &rule->bound, 1, &t));
    const bool nan = crn_tolerant_digest(t, a, n * rule->item, NULL, &da);
    (void)crn_tolerant_digest(t, b, n * rule->item, NULL, &db);
    if (crn_digest_equal(&da, &db) && !(nan && rule->nan_differs))
        assert_int_equal(delta.n, 0);
    crn_tolerant_free(t);
}

static void test_random_values(void **state)
{
    (void)state;
    static const crn_bound bound[] = {{0, 0},    {1e-3, 0}, {1e-9, 0},    {0, 1e-3},
                                      {0, 1e-7}, {0, 0.5},  {1e-6, 1e-3}, {1e30, 0}};
    crn_rng r = crn_rng_of(test_seed(), 1);
    for (int turn = 0; turn < 2000; turn++) {
        const bool single = crn_rng_below(&r, 2);
        const crn_value_rule rule = {.kind = single ? CRN_VALUE_F32 : CRN_VALUE_F64,
                                     .item = single ? 4 : 8,
                                     .bound = bound[crn_rng_below(&r, 8)],
                                     .nan_differs = crn_rng_below(&r, 2)};
        compare_once(&r, &rule, turn % 2);
    }
}

static void test_other_types(void **state)
{
    (void)state;
    unsigned char a[999] = {0}, b[999] = {0};
    seen s = {0};
    crn_value_delta delta = {0};
    const crn_value_rule rule = {.kind = crn_value_kind_of("a structure"), .item = 3};
    b[5] = 1, b[6] = 1, b[998] = 1;
    crn_values_compare(&rule, a, b, 333, &delta, on_stretch, &s);
    assert_true(delta.n == 3 && s.at[1] && s.at[2] && s.at[332]);
    assert_true(delta.max == 0 && delta.squares[1] == 0); /* of what is no number */
}

static void check_distance(const char *type, size_t item, const void *a, const void *b, double want)
{
    crn_value_delta delta = {0};
    const crn_value_rule rule = {.kind = crn_value_kind_of(type), .item = item};
    crn_values_compare(&rule, a, b, 1, &delta, NULL, NULL);
    if (delta.n != (want > 0) || delta.max != want || delta.squares[1] != want * want)
        fail_msg("%s: %" PRIu64 " differ, by %g and not %g", type, delta.n, delta.max, want);
}

static void test_integers_are_apart(void **state)
{
    (void)state;
    check_distance("int8", 1, &(int8_t){-128}, &(int8_t){127}, 255);
    check_distance("uint8", 1, &(uint8_t){3}, &(uint8_t){255}, 252);
    check_distance("int16", 2, &(int16_t){5}, &(int16_t){-5}, 10);
    check_distance("uint16", 2, &(uint16_t){65535}, &(uint16_t){0}, 65535);
    check_distance("int32", 4, &(int32_t){INT32_MIN}, &(int32_t){INT32_MAX}, 4294967295.0);
    check_distance("uint32", 4, &(uint32_t){25}, &(uint32_t){26}, 1);
    check_distance("int64", 8, &(int64_t){INT64_MIN}, &(int64_t){INT64_MAX}, 0x1p64);
    check_distance("uint64", 8, &(uint64_t){UINT64_MAX}, &(uint64_t){UINT64_MAX - 1}, 1);
    check_distance("int64", 8, &(int64_t){-7}, &(int64_t){-7}, 0);
}

/* Squares of distances that have none, and pairs that have no distance. */
static void test_extreme_distances(void **state)
{
    (void)state;
    const double a[] = {1e200, 1e-200, 3, (double)NAN, (double)INFINITY, DBL_MAX};
    const double b[] = {3e200, 3e-200, 5, 1, -(double)INFINITY, -DBL_MAX};
    const crn_value_rule rule = {.kind = CRN_VALUE_F64, .item = 8};
    crn_value_delta delta = {0};
    crn_values_compare(&rule, a, b, 5, &delta, NULL, NULL);
    assert_true(delta.n == 5 && delta.nnonfinite == 2 && delta.max == 2e200);
    assert_true(sqrt(delta.squares[2]) == ldexp(2e200, -CRN_SQUARES_SCALE / 2));
    assert_true(sqrt(delta.squares[0]) == ldexp(2e-200, CRN_SQUARES_SCALE / 2));
    assert_true(delta.squares[1] == 4);
    crn_values_compare(&rule, &a[5], &b[5], 1, &delta, NULL, NULL);
    assert_true(delta.max == DBL_MAX && delta.nnonfinite == 2 && isfinite(delta.squares[2]));
}

static void test_bounds_in_words(void **state)
{
    (void)state;
    crn_bound b[CRN_BOUNDS_MAX];
    char text[CRN_BOUND_TEXT];
    size_t n = 9;
    assert_ok(crn_bounds_parse("", b, &n));
    assert_int_equal(n, 0);
    assert_ok(crn_bounds_parse(" 1e-9, 1e-6 rel 1e-4 ,rel 0.5, 1e-9", b, &n));
    assert_int_equal(n, 3);
    assert_true(b[0].absolute == 1e-6 && b[0].relative == 1e-4 && b[1].absolute == 1e-9);
    assert_string_equal(crn_bound_format(&b[0], text), "1e-06 rel 0.0001");
    assert_string_equal(crn_bound_format(&b[2], text), "rel 0.5");
    assert_true(crn_bound_implies(&b[1], &b[0]) && !crn_bound_implies(&b[2], &b[0]));
    assert_fails(crn_bounds_parse("1e-6,", b, &n), CAIRN_EINVAL, "is no bound");
    assert_fails(crn_bounds_parse("-1", b, &n), CAIRN_EINVAL, "at least 0");
    assert_fails(crn_bounds_parse("1 2", b, &n), CAIRN_EINVAL, "is no bound");
    assert_fails(crn_bounds_parse("1 rel 2 3", b, &n), CAIRN_EINVAL, "comma");
    assert_fails(crn_bounds_parse("x", b, &n), CAIRN_EINVAL, "x");
    assert_fails(crn_bounds_parse("1,2,3,4,5,6,7,8,9", b, &n), CAIRN_EINVAL, "more than 8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_values),      cmocka_unit_test(test_other_types),
        cmocka_unit_test(test_integers_are_apart), cmocka_unit_test(test_extreme_distances),
        cmocka_unit_test(test_bounds_in_words),
    };
    return cmocka_run_group_tests_name("values", tests, NULL, NULL);
}
