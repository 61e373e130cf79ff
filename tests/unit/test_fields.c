/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Numbers of all types within bounds: integers exactly, complex numbers by modulus, structures
 * member by member; and their tolerant digests, which never call equal what differs.
 *
 * NEEDS: random123
 */
#include "harness/harness.h"
#include "hash/hash.h"

#include <math.h>

enum { N = 64, BLOCK = 256 };

/* 24 bytes, which no block is a multiple of; 4 of them belong to no member. */
typedef struct thing {
    int32_t id;
    struct {
        float re, im;
    } z;
    double x;
} thing;

static const char *const thing_type =
    "{24:id@0:int32,z@4:{8:re@0:float32,im@4:float32},x@16:float64}";

static crn_bound bound_of(const void *arg, const char *path)
{
    const crn_bound *b = arg;
    return b[strcmp(path, "id") == 0 ? 0 : strcmp(path, "z") == 0 ? 1 : 2];
}

static bool plain_differs(const thing *a, const thing *b, const crn_bound *k)
{
    const double far = hypot((double)a->z.re - (double)b->z.re, (double)a->z.im - (double)b->z.im);
    const double size =
        fmax(hypot((double)a->z.re, (double)a->z.im), hypot((double)b->z.re, (double)b->z.im));
    return fabs((double)a->id - (double)b->id) >
               fmax(k[0].absolute,
                    k[0].relative * fmax(fabs((double)a->id), fabs((double)b->id))) ||
           far > fmax(k[1].absolute, k[1].relative * size) ||
           fabs(a->x - b->x) > fmax(k[2].absolute, k[2].relative * fmax(fabs(a->x), fabs(b->x)));
}

static void fill(crn_rng *r, thing *a, thing *b)
{
    const double noise = pow(10, -1 - (double)crn_rng_below(r, 8));
    for (int i = 0; i < N; i++) {
        memset(&a[i], (int)crn_rng_below(r, 256), sizeof *a); /* also what is no member */
        memset(&b[i], (int)crn_rng_below(r, 256), sizeof *b);
        a[i].id = (int32_t)crn_rng_below(r, 200) - 100;
        b[i].id = a[i].id + (int32_t)crn_rng_below(r, 3);
        a[i].z.re = (float)(crn_rng_unit(r) - 0.5), a[i].z.im = (float)(crn_rng_unit(r) - 0.5);
        b[i].z.re = a[i].z.re + (float)(noise * crn_rng_unit(r));
        b[i].z.im = a[i].z.im - (float)(noise * crn_rng_unit(r));
        a[i].x = crn_rng_unit(r), b[i].x = a[i].x + noise * (crn_rng_unit(r) - 0.5);
    }
}

static void test_structures(void **state)
{
    (void)state;
    crn_rng r = crn_rng_of(test_seed(), 1);
    static thing a[N], b[N];
    for (int turn = 0; turn < 500; turn++) {
        const crn_bound k[] = {{(double)crn_rng_below(&r, 4), 0},
                               {pow(10, -(double)crn_rng_below(&r, 6)), 0},
                               {0, pow(10, -(double)crn_rng_below(&r, 6))}};
        crn_fields f = {0};
        crn_value_delta delta = {0};
        uint64_t want = 0;
        fill(&r, a, b);
        assert_ok(crn_fields_read(thing_type, bound_of, k, &f));
        assert_true(f.n == 3 && f.at[1].is_complex && f.at[1].item == 8);
        const crn_value_rule rule = {.item = sizeof *a, .fields = &f};
        crn_values_compare(&rule, a, b, N, &delta, NULL, NULL);
        for (int i = 0; i < N; i++)
            want += plain_differs(&a[i], &b[i], k);
        assert_int_equal(delta.n, want);
        crn_vec_done(&f);
    }
}

/* Blocks with equal digests have no numbers that differ, wherever elements are cut. */
static void test_digests_prove(void **state)
{
    (void)state;
    crn_rng r = crn_rng_of(test_seed(), 2);
    static thing a[N], b[N];
    size_t nequal = 0;
    for (int turn = 0; turn < 500; turn++) {
        const crn_bound k = {pow(10, 1 - (double)crn_rng_below(&r, 7)), 0};
        const crn_bound id = {(double)crn_rng_below(&r, 300), 0};
        const crn_bound z = {0, pow(10, -(double)crn_rng_below(&r, 5))};
        const bool named = crn_rng_below(&r, 2);
        const crn_bound all[] = {named ? id : k, named ? z : k, k};
        crn_named_bounds members = {0};
        crn_structured *s;
        bool differs[N] = {false};
        if (named) {
            assert_ok(crn_named_bounds_add(&members, "id", 2, id));
            assert_ok(crn_named_bounds_add(&members, "z", 1, z));
        }
        assert_ok(crn_structured_create(thing_type, sizeof *a, BLOCK, &k, 1, &members, &s));
        crn_named_bounds_done(&members);
        fill(&r, a, b);
        for (int i = 0; i < N; i++)
            differs[i] = plain_differs(&a[i], &b[i], all);
        for (size_t off = 0; off < sizeof a; off += BLOCK) {
            const uint32_t n = (uint32_t)CRN_MIN(sizeof a - off, (size_t)BLOCK);
            crn_digest d[2];
            crn_structured_digest(s, off, (unsigned char *)a + off, n, &d[0]);
            crn_structured_digest(s, off, (unsigned char *)b + off, n, &d[1]);
            if (!crn_digest_equal(&d[0], &d[1]))
                continue;
            nequal++;
            for (size_t i = (off + 23) / 24; (i + 1) * 24 <= off + n; i++)
                assert_false(differs[i]);
        }
        crn_structured_free(s);
    }
    assert_true(nequal > 100);
}

static bool digests_agree(const char *type, uint32_t item, double bound, const void *a,
                          const void *b)
{
    crn_structured *s;
    crn_digest d[2];
    assert_ok(crn_structured_create(type, item, BLOCK, &(crn_bound){bound, 0}, 1, NULL, &s));
    crn_structured_digest(s, 0, a, item, &d[0]);
    crn_structured_digest(s, 0, b, item, &d[1]);
    crn_structured_free(s);
    return crn_digest_equal(&d[0], &d[1]);
}

static bool values_agree(const char *type, size_t item, double bound, const void *a, const void *b)
{
    crn_value_delta delta = {0};
    const crn_value_rule rule = {
        .kind = crn_value_kind_of(type), .item = item, .bound = {bound, 0}};
    crn_values_compare(&rule, a, b, 1, &delta, NULL, NULL);
    return delta.n == 0;
}

static void check_bytes(int8_t a, int8_t b)
{
    for (int bound = 0; bound < 300; bound += 37) {
        const bool agree = abs(a - b) <= bound;
        assert_int_equal(values_agree("int8", 1, bound + 0.5, &a, &b), agree);
        if (digests_agree("int8", 1, bound, &a, &b))
            assert_true(agree);
    }
}

/* Pairs of bytes, and the ends of 64 bits, which no double holds. */
static void test_integers(void **state)
{
    (void)state;
    for (int i = 0; i < 256 * 256; i += 3)
        check_bytes((int8_t)(i / 256 - 128), (int8_t)(i % 256 - 128));
    const int64_t low = INT64_MIN, high = INT64_MAX, near = INT64_MAX - 1;
    assert_true(values_agree("int64", 8, 1, &high, &near));
    assert_false(values_agree("int64", 8, 0.99, &high, &near));
    assert_false(values_agree("int64", 8, 0x1p63, &high, &low));
    assert_true(values_agree("int64", 8, 0x1p64, &high, &low));
    assert_true(digests_agree("int64", 8, 0x1p64, &high, &low));
    assert_false(digests_agree("int64", 8, 0x1p63, &high, &low));
}

static void test_not_finite(void **state)
{
    (void)state;
    struct {
        double r, i;
    } a = {(double)NAN, 1}, b = {(double)NAN, 1}, c = {1, (double)INFINITY};
    crn_fields f = {0};
    crn_value_delta same = {0}, unlike = {0}, other = {0};
    assert_ok(crn_fields_read("{16:r@0:float64,i@8:float64}", NULL, NULL, &f));
    assert_true(f.n == 1 && f.at[0].is_complex);
    crn_value_rule rule = {.item = sizeof a, .fields = &f};
    crn_values_compare(&rule, &a, &b, 1, &same, NULL, NULL);
    crn_values_compare(&rule, &a, &c, 1, &other, NULL, NULL);
    rule.nan_differs = true;
    crn_values_compare(&rule, &a, &b, 1, &unlike, NULL, NULL);
    assert_int_equal(same.n, 0);
    assert_true(unlike.n == 1 && unlike.nnonfinite == 1 && unlike.max == 0);
    assert_true(other.n == 1 && other.nnonfinite == 1);
    crn_vec_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_structures), cmocka_unit_test(test_digests_prove),
        cmocka_unit_test(test_integers), cmocka_unit_test(test_not_finite)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
