/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sketches. No false negatives: where a block has the reference's digest, no two values differ, for
 * any bound and the nastiest values. No false positives: noise below w/4 with bits, and below a
 * hundredth of the bound with bytes, gives the reference's digest, always. Distances are taken in
 * long double. The source is included, so that the kernels for other processors can be called.
 *
 * NEEDS: random123
 */
#include "harness/harness.h"
#include "hash/hash_sketch.c" // NOLINT(bugprone-suspicious-include)

enum { CASES = 10000, VALUES = 200 };

static const crn_bound fixed[] = {
    {1e-3, 0},  {1e-6, 0},        {1, 0},         {3, 0},         {1e30, 0},    {1e300, 0},
    {1e-36, 0}, {FLT_MIN * 2, 0}, {DBL_MAX, 0},   {0, 1e-3},      {0, 1e-6},    {0, 1e-12},
    {0, 0.5},   {0, 0.3},         {0, 1},         {1e-6, 1e-3},   {1e-3, 1e-6}, {1e3, 0.3},
    {0, 0},     {1e-30, 1e-6},    {1e-300, 1e-2}, {FLT_MAX, 0.1}, {0, 0.0019},  {0.9, 0.0078},
};

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

/* Values of either type, as doubles that the type can hold. */
typedef struct block {
    size_t item, n;
    double x[VALUES];
} block;

static double rounded(size_t item, double x)
{
    return item == 4 ? (double)(float)x : x;
}

static const void *bytes_of(const block *b, float *room)
{
    for (size_t i = 0; i < b->n; i++)
        room[i] = (float)b->x[i];
    return b->item == 4 ? (const void *)room : (const void *)b->x;
}

typedef struct sketch {
    crn_sketcher *s;
    crn_sketch_kind kind;
    crn_buf buf;
    crn_digest own;
} sketch;

static void make(sketch *k, const crn_bound *bound, crn_sketch_kind wanted, const block *b)
{
    float room[VALUES];
    *k = (sketch){0};
    assert_ok(crn_sketcher_create(b->item, bound, &k->s));
    k->kind = crn_sketch_make(k->s, wanted, bytes_of(b, room), b->n * b->item, &k->buf, &k->own);
    assert_ok(crn_buf_status(&k->buf));
}

static bool proves(sketch *k, const block *b)
{
    float room[VALUES];
    crn_digest d;
    assert_true(crn_sketch_digest(k->s, k->kind, k->buf.at, k->buf.n, bytes_of(b, room),
                                  b->n * b->item, &d));
    return crn_digest_equal(&d, &k->own);
}

static void done(sketch *k)
{
    crn_sketcher_free(k->s);
    crn_buf_done(&k->buf);
}

/* --- random values --------------------------------------------------------------------------- */

static crn_bound random_bound(crn_rng *rng, size_t item)
{
    crn_bound b = {0, 0};
    const int span = item == 4 ? 60 : 400;
    if (crn_rng_below(rng, 3) == 0)
        return fixed[crn_rng_below(rng, sizeof fixed / sizeof *fixed)];
    const uint64_t kind = crn_rng_below(rng, 3);
    if (kind != 1)
        b.absolute =
            ldexp(1 + crn_rng_unit(rng), (int)crn_rng_below(rng, 2 * (uint64_t)span) - span);
    if (kind != 0)
        b.relative = ldexp(1 + crn_rng_unit(rng), -2 - (int)crn_rng_below(rng, 40));
    return b;
}

/* The width of x's cell, by the definition in hash.h. */
static double width_at(const crn_bound *b, size_t item, double x)
{
    const crn_rules r = crn_rules_of(b, item);
    const double least = item == 4 ? (double)FLT_MIN : DBL_MIN;
    if (fabs(x) < r.limit)
        return r.width;
    if (r.only_absolute || fabs(x) < least)
        return 0;
    int e, m;
    (void)frexp(x, &e);
    (void)frexp(CRN_MIN(b->relative, 0.5), &m);
    return ldexp(1, e - 1 + m - 1);
}

static double special(crn_rng *rng, size_t item)
{
    const double least = item == 4 ? (double)FLT_MIN : DBL_MIN;
    const double most = item == 4 ? (double)FLT_MAX : DBL_MAX;
    const double list[] = {0.0,
                           -0.0,
                           (double)NAN,
                           (double)INFINITY,
                           -(double)INFINITY,
                           least,
                           -least,
                           most,
                           -most,
                           least / 4,
                           1,
                           -1,
                           least * (1 - DBL_EPSILON),
                           most / 2};
    return list[crn_rng_below(rng, sizeof list / sizeof *list)];
}

/* Anything: near edges of cells, where rules meet, at ends of binades, huge, tiny, subnormal. */
static double random_value(crn_rng *rng, size_t item, const crn_bound *b)
{
    const crn_rules r = crn_rules_of(b, item);
    const double sign = crn_rng_below(rng, 2) ? 1 : -1, unit = crn_rng_unit(rng);
    const int span = item == 4 ? 276 : 2096, low = item == 4 ? -149 : -1074;
    const int e = (int)crn_rng_below(rng, (uint64_t)span) + low;
    const double quarter = ldexp((double)crn_rng_below(rng, 4096), -2);
    switch (crn_rng_below(rng, 9)) {
    case 0:
        return special(rng, item);
    case 1:
        return sign * ldexp(1 + unit, e);
    case 2: /* edges of moved and unmoved cells */
        return sign * quarter * r.width;
    case 3:
        return sign * (quarter + (unit - 0.5) * 1e-9) * r.width;
    case 4:
        return isfinite(r.limit) ? sign * r.limit * (1 + (unit - 0.5) * ldexp(1, -(e & 31))) : sign;
    case 5: /* ends of binades */
        return sign * ldexp(1 + (unit - 0.5) * ldexp(1, -(e & 31)), e / 2);
    case 6:
        return sign * unit * ldexp(1, low + 24);
    default:
        return sign * unit * 1000 * (r.width > 0 ? r.width : 1);
    }
}

static void random_block(crn_rng *rng, const crn_bound *bound, block *b)
{
    b->n = 1 + crn_rng_below(rng, VALUES);
    for (size_t i = 0; i < b->n; i++) {
        b->x[i] = rounded(b->item, random_value(rng, b->item, bound));
        if (isinf(b->x[i]) && crn_rng_below(rng, 20) > 0)
            b->x[i] = 1;
    }
}

/* A value whose distance from x is below limit, and as near to it as the type allows. */
static double with_noise(crn_rng *rng, size_t item, double x, double limit)
{
    const double part = crn_rng_below(rng, 3) ? crn_rng_unit(rng) : 1 - 0x1p-40;
    double y = rounded(item, crn_rng_below(rng, 2) ? x + limit * part : x - limit * part);
    while (isfinite(x) && !(fabsl((long double)x - (long double)y) < (long double)limit) && y != x)
        y = item == 4 ? (double)nextafterf((float)y, (float)x) : nextafter(y, x);
    return isfinite(y) ? y : x;
}

static double noise_limit(const crn_bound *b, crn_sketch_kind wanted, size_t item, double x)
{
    const double w = width_at(b, item, x);
    if (wanted == CRN_SKETCH_BITS || w == 0)
        return w / 4;
    const crn_rules r = crn_rules_of(b, item);
    const double a = r.width > 0 ? CRN_MIN(b->absolute, 2 * r.width) : 0;
    return CRN_MAX(a, CRN_MIN(b->relative, 0.5) * fabs(x)) / 100;
}

static void test_noise_is_nothing(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < CASES; i++) {
        crn_rng rng = crn_rng_of(16, i);
        block x = {.item = i % 2 ? 4 : 8}, y;
        const crn_sketch_kind wanted = i / 2 % 2 ? CRN_SKETCH_BITS : CRN_SKETCH_BYTES;
        const crn_bound bound = random_bound(&rng, x.item);
        sketch k;
        random_block(&rng, &bound, &x);
        y = x;
        for (size_t v = 0; v < x.n; v++)
            y.x[v] = with_noise(&rng, x.item, x.x[v], noise_limit(&bound, wanted, x.item, x.x[v]));
        make(&k, &bound, wanted, &x);
        if (!proves(&k, &y))
            fail_msg("case %llu: noise makes a difference, bound %g, %g, float%zu, kind %d",
                     (unsigned long long)i, bound.absolute, bound.relative, 8 * x.item,
                     (int)k.kind);
        done(&k);
    }
}

/* Values at all distances from the reference's: whatever has its digest does not differ. */
static void test_differences_are_never_missed(void **state)
{
    (void)state;
    size_t nequal = 0;
    for (uint64_t i = 0; i < CASES; i++) {
        crn_rng rng = crn_rng_of(17, i);
        block x = {.item = i % 2 ? 4 : 8}, y;
        const crn_bound bound = random_bound(&rng, x.item);
        sketch k;
        random_block(&rng, &bound, &x);
        make(&k, &bound, i / 2 % 2 ? CRN_SKETCH_BITS : CRN_SKETCH_BYTES, &x);
        for (int turn = 0; turn < 20; turn++) {
            const size_t at = crn_rng_below(&rng, x.n);
            const double w = width_at(&bound, x.item, x.x[at]);
            const double far = w * (4 * crn_rng_unit(&rng) - 2);
            const double any = turn == 0 ? random_value(&rng, x.item, &bound) : x.x[at] + far;
            y = x;
            y.x[at] = rounded(x.item, any);
            if (!proves(&k, &y))
                continue;
            nequal++;
            if (differ(x.x[at], y.x[at], bound))
                fail_msg("%.17g and %.17g have one digest (float%zu) with bound %g, %g", x.x[at],
                         y.x[at], 8 * x.item, bound.absolute, bound.relative);
        }
        done(&k);
    }
    assert_true(nequal > CASES); /* or nothing was tried */
}

/* --- every shift ----------------------------------------------------------------------------- */

/* The key of one value, by each kernel that this processor has; they agree. */
static uint64_t key_of(crn_sketcher *s, const grid *g, double x)
{
    const key_set *set[3] = {&set_plain};
    size_t n = 1;
    uint64_t key = 0;
    unsigned char src[VECTOR_MAX] = {0}, dst[VECTOR_MAX];
    const float f = (float)x;
    memcpy(src, s->item == 4 ? (const void *)&f : (const void *)&x, s->item);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        set[n++] = &set_avx2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
        set[n++] = &set_avx512;
#endif
    for (size_t i = 0; i < n; i++) {
        uint64_t found = 0;
        const bool relative = !s->rules.only_absolute;
        (s->item == 4 ? set[i]->f32 : set[i]->f64)[relative][0](&s->rules, g, NULL, src, dst,
                                                                VECTOR_MAX);
        memcpy(&found, dst, s->item);
        assert_true(i == 0 || found == key);
        key = found;
    }
    return key;
}

static double next(size_t item, double x)
{
    return item == 4 ? (double)nextafterf((float)x, INFINITY) : nextafter(x, INFINITY);
}

/* Along ascending values: the first and the last of a cell do not differ. */
static void see_around(crn_sketcher *s, const grid *g, const crn_bound *b, double x, double step)
{
    double first = x = rounded(s->item, x - 12 * step);
    uint64_t last = key_of(s, g, x);
    for (int i = 0; i < 24 && isfinite(x); i++) {
        x = step > 0 ? rounded(s->item, x + step) : next(s->item, x);
        if (!isfinite(x))
            return;
        const uint64_t key = key_of(s, g, x);
        if (key != last)
            first = x;
        else if (differ(first, x, *b))
            fail_msg("%.17g and %.17g have one key (float%zu) with bound %g, %g", first, x,
                     8 * s->item, b->absolute, b->relative);
        last = key;
    }
}

/* Cells of one shift, on both sides of zero, where rules meet and at the ends of the line. */
static void see_cells(crn_sketcher *s, const grid *g, const crn_bound *b)
{
    const double least = s->item == 4 ? (double)FLT_MIN : DBL_MIN;
    const double most = s->item == 4 ? (double)FLT_MAX : DBL_MAX;
    const double limit = isfinite(s->rules.limit) ? s->rules.limit : 1;
    const double at[] = {0, limit, least, 1, 8, most, 1e10, least / 8};
    for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
        const double w = CRN_MAX(width_at(b, s->item, at[k]), s->rules.width);
        const double step[] = {0, w / 7, w / 3};
        for (size_t i = 0; i < 3; i++) {
            see_around(s, g, b, at[k], step[i]);
            see_around(s, g, b, -at[k], step[i]);
        }
    }
}

static void test_cells_of_every_shift(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * sizeof fixed / sizeof *fixed; i++) {
        crn_sketcher *s;
        assert_ok(crn_sketcher_create(i % 2 ? 4 : 8, &fixed[i / 2], &s));
        for (unsigned shift = 0; shift < 255; shift += 5) {
            const grid g = grid_of_shift(&s->rules, shift);
            see_cells(s, &g, &fixed[i / 2]);
        }
        crn_sketcher_free(s);
    }
}

/* --- other things ---------------------------------------------------------------------------- */

static void test_sizes(void **state)
{
    (void)state;
    const crn_bound bound = {1e-6, 0};
    crn_rng rng = crn_rng_of(18, 0);
    double x[8192];
    crn_sketcher *s;
    crn_digest own, other;
    for (size_t i = 0; i < 8192; i++)
        x[i] = crn_rng_unit(&rng);
    assert_ok(crn_sketcher_create(sizeof *x, &bound, &s));
    crn_buf bits = {0}, bytes = {0};
    assert_int_equal(crn_sketch_make(s, CRN_SKETCH_BITS, x, sizeof x, &bits, &own),
                     CRN_SKETCH_BITS);
    assert_int_equal(bits.n, 1024);
    assert_int_equal(crn_sketch_make(s, CRN_SKETCH_BYTES, x, sizeof x, &bytes, &own),
                     CRN_SKETCH_BYTES);
    assert_in_range(bytes.n, 128, 256);
    /* a sketch of another size is refused */
    assert_false(crn_sketch_digest(s, CRN_SKETCH_BITS, bits.at, 1023, x, sizeof x, &other));
    assert_false(crn_sketch_digest(s, CRN_SKETCH_BYTES, bytes.at, 127, x, sizeof x, &other));
    assert_false(crn_sketch_digest(s, CRN_SKETCH_NONE, bytes.at, 0, x, sizeof x, &other));
    crn_buf_done(&bits);
    crn_buf_done(&bytes);
    crn_sketcher_free(s);
}

static void facts(const block *b, crn_facts *ret)
{
    float room[VALUES];
    assert_ok(crn_facts_of(b->item, bytes_of(b, room), b->n * b->item, ret));
}

/* What facts call different is different; what differs by much is called so. */
static void test_facts(void **state)
{
    (void)state;
    size_t nproven = 0;
    for (uint64_t i = 0; i < CASES; i++) {
        crn_rng rng = crn_rng_of(19, i);
        block x = {.item = i % 2 ? 4 : 8}, y;
        const crn_bound bound = random_bound(&rng, x.item);
        crn_facts fx, fy;
        bool differs = false;
        random_block(&rng, &bound, &x);
        y = x;
        for (size_t v = 0; v < x.n && crn_rng_below(&rng, 4); v++) {
            const double limit = bound.absolute + bound.relative * fabs(x.x[v]);
            y.x[v] = rounded(x.item, x.x[v] + limit * (crn_rng_unit(&rng) - 0.5) *
                                                  (double)crn_rng_below(&rng, 6));
        }
        for (size_t v = 0; v < x.n; v++)
            differs |= differ(x.x[v], y.x[v], bound);
        facts(&x, &fx);
        facts(&y, &fy);
        if (crn_facts_differ(&fx, &fy, x.n, &bound, false)) {
            nproven++;
            if (!differs)
                fail_msg("case %llu: no values differ", (unsigned long long)i);
        }
    }
    assert_true(nproven > 100);
}

static void test_single_facts(void **state)
{
    (void)state;
    const crn_bound bound = {1e-6, 0}, exact = {0, 0};
    block x = {.item = 8, .n = 100}, y;
    crn_facts fx, fy;
    for (size_t i = 0; i < x.n; i++)
        x.x[i] = (double)(i % 10);
    y = x;
    y.x[50] = -0.0;
    facts(&x, &fx);
    facts(&y, &fy);
    assert_null(crn_facts_differ(&fx, &fy, x.n, &exact, false));
    y.x[55] += 1e-3; /* in the middle: found by the sum */
    facts(&y, &fy);
    assert_non_null(crn_facts_differ(&fx, &fy, x.n, &bound, false));
    y = x;
    y.x[55] += 1e-5; /* less than all bounds together */
    facts(&y, &fy);
    assert_null(crn_facts_differ(&fx, &fy, x.n, &bound, false));
    assert_non_null(crn_facts_differ(&fx, &fy, x.n, &exact, false));
    y = x;
    y.x[3] = (double)NAN;
    facts(&y, &fy);
    assert_non_null(crn_facts_differ(&fx, &fy, x.n, &bound, false));
    assert_null(crn_facts_differ(&fy, &fy, x.n, &bound, false));
    assert_non_null(crn_facts_differ(&fy, &fy, x.n, &bound, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_noise_is_nothing),
                                       cmocka_unit_test(test_differences_are_never_missed),
                                       cmocka_unit_test(test_cells_of_every_shift),
                                       cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_facts),
                                       cmocka_unit_test(test_single_facts)};
    return cmocka_run_group_tests_name("sketch", tests, NULL, NULL);
}
