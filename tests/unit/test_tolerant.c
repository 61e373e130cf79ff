/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tolerant digest has no false negatives: values with equal digests never differ by more than
 * the bound. Keys are seen through the digest of a single value: sorted values with equal digests
 * form cells, and the two ends of a cell must not differ. Distances are taken in long double, which
 * has more bits than the values. The source is included, so that the kernels for other processors
 * can be called.
 *
 * NEEDS: random123
 */
#include "harness/harness.h"
#include "hash/hash_tolerant.c" // NOLINT(bugprone-suspicious-include)

static const crn_bound bounds[] = {
    {0, 0},        {1e-3, 0},      {1e-7, 0},      {1, 0},       {3, 0},           {0.75, 0},
    {1e-30, 0},    {1e30, 0},      {1e300, 0},     {FLT_MIN, 0}, {FLT_MIN * 2, 0}, {DBL_MIN, 0},
    {DBL_MAX, 0},  {1e-320, 0},    {0, 1e-3},      {0, 1e-6},    {0, 1e-12},       {0, 0.5},
    {0, 1},        {0, 1e6},       {0, 1e-310},    {1e-6, 1e-3}, {1e-3, 1e-6},     {1e3, 0.3},
    {1e-30, 1e-6}, {1e-300, 1e-2}, {FLT_MAX, 0.1},
};

enum { NBOUNDS = sizeof bounds / sizeof *bounds };

/* Do two values differ, by the formula of hash.h? */
static bool differ(double a, double b, crn_bound bound)
{
    if (a == b || (isnan(a) && isnan(b)))
        return false;
    if (!isfinite(a) || !isfinite(b))
        return true;
    const long double far = fabsl((long double)a - (long double)b);
    const long double large = fmaxl(fabsl((long double)a), fabsl((long double)b));
    return far > fmaxl(bound.absolute, (long double)bound.relative * large);
}

static crn_digest digest_f32(crn_tolerant *t, float x)
{
    crn_digest d;
    crn_tolerant_digest(t, &x, sizeof x, NULL, &d);
    return d;
}

static crn_digest digest_f64(crn_tolerant *t, double x)
{
    crn_digest d;
    crn_tolerant_digest(t, &x, sizeof x, NULL, &d);
    return d;
}

/* Ascending values: remembers where the cell of the last one began. */
typedef struct cells {
    crn_tolerant *t;
    crn_bound bound;
    size_t item;
    crn_digest last;
    double first; /* of the cell */
    size_t n, ncells;
} cells;

static void see(cells *c, double x)
{
    const crn_digest d = c->item == 4 ? digest_f32(c->t, (float)x) : digest_f64(c->t, x);
    if (c->n++ == 0 || !crn_digest_equal(&d, &c->last)) {
        c->first = x;
        c->ncells++;
    } else if (differ(c->first, x, c->bound)) {
        fail_msg("%.17g and %.17g have one digest (float%zu) with bound %g, %g", c->first, x,
                 8 * c->item, c->bound.absolute, c->bound.relative);
    }
    c->last = d;
}

static double next_up(double x, size_t item)
{
    return item == 4 ? (double)nextafterf((float)x, INFINITY) : nextafter(x, INFINITY);
}

static double next_down(double x, size_t item)
{
    return item == 4 ? (double)nextafterf((float)x, -INFINITY) : nextafter(x, -INFINITY);
}

/* The values around x, ascending, all neighbours: a few ulps to both sides. */
static void see_around(cells *c, double x, int ulps)
{
    for (int i = 0; i < ulps; i++)
        x = next_down(x, c->item);
    c->n = 0;
    for (int i = 0; i <= 2 * ulps && isfinite(x); i++, x = next_up(x, c->item))
        see(c, x);
}

static void each_bound(size_t item, void (*fn)(cells *c))
{
    for (size_t i = 0; i < NBOUNDS; i++) {
        cells c = {.bound = bounds[i], .item = item};
        assert_ok(crn_tolerant_create(item, &bounds[i], 1, &c.t));
        fn(&c);
        crn_tolerant_free(c.t);
    }
}

/* Edges of cells are odd multiples of half a width, which is a power of two: all of them near zero,
 * and those at the places where a rule gives way to another. */
static void around_edges(cells *c)
{
    const int low = c->item == 4 ? FLT_MIN_EXP - FLT_MANT_DIG : DBL_MIN_EXP - DBL_MANT_DIG;
    const int high = c->item == 4 ? FLT_MAX_EXP : DBL_MAX_EXP;
    for (int e = low - 2; e < high; e++) {
        see_around(c, ldexp(1, e), 6);
        see_around(c, -ldexp(1, e), 6);
        see_around(c, ldexp(1.5, e), 3);
        see_around(c, -ldexp(1.75, e), 3);
    }
    const double w = ldexp(1, (int)floor(log2(c->bound.absolute > 0 ? c->bound.absolute : 1)));
    for (int k = -40; k <= 40; k++)
        see_around(c, (k + 0.5) * w, 6);
    see_around(c, 0, 40);
    see_around(c, c->item == 4 ? FLT_MAX : DBL_MAX, 40);
    see_around(c, c->item == 4 ? -FLT_MAX : -DBL_MAX, 40);
}

static void test_cell_edges_float32(void **state)
{
    (void)state;
    each_bound(4, around_edges);
}

static void test_cell_edges_float64(void **state)
{
    (void)state;
    each_bound(8, around_edges);
}

/* Cells along the line, in steps that are neither ulps nor widths. */
static void along_the_line(cells *c)
{
    crn_rng rng = crn_rng_of(6, c->item);
    for (int run = 0; run < 60; run++) {
        const int span = c->item == 4 ? 250 : 2000;
        double x =
            ldexp(1 + crn_rng_unit(&rng), (int)crn_rng_below(&rng, (uint64_t)span) - span / 2);
        const double step = x * ldexp(1, -(int)crn_rng_below(&rng, c->item == 4 ? 23 : 52));
        c->n = 0;
        for (int i = 0; i < 300 && isfinite((float)x * (c->item == 4)); i++, x += step)
            see(c, c->item == 4 ? (double)(float)x : x);
    }
}

static void test_random_lines(void **state)
{
    (void)state;
    each_bound(4, along_the_line);
    each_bound(8, along_the_line);
}

/* Stretches of all float32 values between 1/128 and 1/32, none left out. */
static void test_every_float32(void **state)
{
    (void)state;
    const crn_bound some[] = {{1e-3, 0}, {0, 1e-4}, {1e-5, 1e-3}};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        cells c = {.bound = some[i], .item = 4};
        assert_ok(crn_tolerant_create(4, &some[i], 1, &c.t));
        for (float from = 0.0078f; from < 0.0315f; from += 1e-4f) {
            float x = from;
            c.n = 0;
            for (int k = 0; k < 4096; k++, x = nextafterf(x, 1))
                see(&c, (double)x);
        }
        assert_true(c.ncells > 10);
        crn_tolerant_free(c.t);
    }
}

/* A cell is no smaller than half the bound, or else reading would be spared for nothing. */
static void test_cells_are_wide(void **state)
{
    (void)state;
    crn_tolerant *t;
    const crn_bound b = {1e-3, 0}, r = {0, 1e-3};
    assert_ok(crn_tolerant_create(8, &b, 1, &t));
    crn_digest d = digest_f64(t, 5e-4), e = digest_f64(t, 5.1e-4), f = digest_f64(t, -0.0);
    assert_true(crn_digest_equal(&d, &e));
    e = digest_f64(t, 2e-4);
    assert_true(crn_digest_equal(&f, &e));
    crn_tolerant_free(t);
    assert_ok(crn_tolerant_create(8, &r, 1, &t));
    d = digest_f64(t, 1000), e = digest_f64(t, 1000.2);
    assert_true(crn_digest_equal(&d, &e));
    crn_tolerant_free(t);
}

static void test_special_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < NBOUNDS; i++) {
        crn_tolerant *t;
        assert_ok(crn_tolerant_create(8, &bounds[i], 1, &t));
        crn_digest zero = digest_f64(t, 0.0), minus = digest_f64(t, -0.0);
        assert_true(crn_digest_equal(&zero, &minus));
        crn_digest inf = digest_f64(t, INFINITY), other = digest_f64(t, -INFINITY);
        crn_digest nan = digest_f64(t, NAN), max = digest_f64(t, DBL_MAX);
        assert_false(crn_digest_equal(&inf, &other));
        assert_false(crn_digest_equal(&inf, &max));
        assert_false(crn_digest_equal(&inf, &nan));
        assert_false(crn_digest_equal(&nan, &zero));
        const uint64_t odd = 0xfff0000000000123u; /* a signalling NaN with a sign */
        double x;
        memcpy(&x, &odd, sizeof x);
        crn_digest d, e;
        assert_true(crn_tolerant_digest(t, &x, sizeof x, &e, &d));
        assert_true(crn_digest_equal(&d, &nan));
        crn_tolerant_free(t);
    }
}

/* Any length, any alignment; the exact digest is crn_digest_of's; several bounds at once give what
 * each gives alone; a NaN is noticed wherever it is, and nothing else is. */
static void test_one_pass(void **state)
{
    (void)state;
    enum { N = 5000 };
    static double at[N + 1];
    unsigned char *raw = (unsigned char *)at;
    crn_rng rng = crn_rng_of(7, 0);
    crn_tolerant *all, *one[3];
    const crn_bound b[3] = {{1e-3, 0}, {0, 0}, {1e-9, 1e-3}};
    assert_ok(crn_tolerant_create(8, b, 3, &all));
    for (int k = 0; k < 3; k++)
        assert_ok(crn_tolerant_create(8, &b[k], 1, &one[k]));
    for (int turn = 0; turn < 200; turn++) {
        const size_t n = crn_rng_below(&rng, N), shift = crn_rng_below(&rng, 8);
        for (size_t i = 0; i <= N; i++)
            at[i] = ldexp(crn_rng_unit(&rng), (int)crn_rng_below(&rng, 40) - 20);
        const bool put = n > 0 && turn % 2 == 0;
        const double nan = NAN;
        if (put)
            memcpy(raw + shift + 8 * crn_rng_below(&rng, n), &nan, sizeof nan);
        crn_digest exact, d[3], alone;
        const crn_digest want = crn_digest_of(raw + shift, 8 * n);
        const bool found = crn_tolerant_digest(all, raw + shift, 8 * n, &exact, d);
        assert_true(crn_digest_equal(&exact, &want));
        for (int k = 0; k < 3; k++) {
            assert_int_equal(crn_tolerant_digest(one[k], raw + shift, 8 * n, NULL, &alone), found);
            assert_true(crn_digest_equal(&alone, &d[k]));
        }
        if (shift == 0) /* otherwise values are cut, and may be anything */
            assert_int_equal(found, put);
    }
    crn_tolerant_free(all);
    for (int k = 0; k < 3; k++)
        crn_tolerant_free(one[k]);
}

/* All processors get the same keys. */
static void test_kernels_agree(void **state)
{
    (void)state;
    enum { N = 4096 };
    static unsigned char src[N], want[N], got[N];
    const key_set *set[] = {best_set(), &set_plain};
    crn_rng rng = crn_rng_of(8, 0);
    for (size_t turn = 0; turn < 4 * NBOUNDS; turn++) {
        const size_t item = turn % 2 ? 4 : 8;
        const crn_rules r = crn_rules_of(&bounds[turn / 4], item);
        for (size_t i = 0; i < N; i += 8) { /* any bits: NaNs and all magnitudes among them */
            const uint64_t bits = crn_rng_u64(&rng);
            memcpy(src + i, &bits, sizeof bits);
        }
        bool nan = (item == 4 ? set[0]->f32 : set[0]->f64)[!r.only_absolute](&r, src, want, N);
        assert_int_equal((item == 4 ? set[1]->f32 : set[1]->f64)[!r.only_absolute](&r, src, got, N),
                         nan);
        assert_memory_equal(got, want, N);
    }
}

/* The program's floating-point modes neither matter nor change. */
static void test_modes(void **state)
{
    (void)state;
    crn_tolerant *t;
    const crn_bound b = {1e-3, 1e-5};
    assert_ok(crn_tolerant_create(8, &b, 1, &t));
    for (double x = -3; x < 3; x += 0.01037) {
        const crn_digest want = digest_f64(t, x);
        fesetround(FE_UPWARD);
        crn_digest d = digest_f64(t, x);
        assert_int_equal(fegetround(), FE_UPWARD);
        fesetround(FE_TOWARDZERO);
        crn_digest e = digest_f64(t, x);
        fesetround(FE_TONEAREST);
        assert_true(crn_digest_equal(&d, &want) && crn_digest_equal(&e, &want));
    }
    crn_tolerant_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cell_edges_float32),
        cmocka_unit_test(test_cell_edges_float64),
        cmocka_unit_test(test_random_lines),
        cmocka_unit_test(test_every_float32),
        cmocka_unit_test(test_cells_are_wide),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_one_pass),
        cmocka_unit_test(test_kernels_agree),
        cmocka_unit_test(test_modes),
    };
    return cmocka_run_group_tests_name("tolerant", tests, NULL, NULL);
}
