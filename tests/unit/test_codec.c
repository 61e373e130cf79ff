/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Every codec of the table goes through the same cases. All memory that a codec gets ends at a page
 * that cannot be touched, so that one byte too far ends the test, also inside a library.
 */
#include "codec/codec.h"
#include "harness/harness.h"

#include <float.h>
#include <math.h>
#include <sys/mman.h>

enum { MAX = 16 << 10, AREA = 16 << 20 };

/* Memory that ends at a forbidden page. */
typedef struct fence {
    unsigned char *at;
} fence;

static fence fence_make(void)
{
    fence f = {mmap(NULL, AREA + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};
    assert_true(f.at != MAP_FAILED);
    assert_int_equal(mprotect(f.at + AREA, 4096, PROT_NONE), 0);
    return f;
}

static void fence_done(fence f)
{
    munmap(f.at, AREA + 4096);
}

/* The last n bytes before the forbidden page; with align, rounded so that they begin aligned. */
static void *fence_end(fence f, size_t n, size_t align)
{
    assert_in_range(n, 0, AREA);
    return f.at + AREA - CRN_ROUND_UP(n, align);
}

static fence src_area, dst_area, back_area, work_area;

static int make_areas(void **state)
{
    (void)state;
    src_area = fence_make();
    dst_area = fence_make();
    back_area = fence_make();
    work_area = fence_make();
    return 0;
}

static int free_areas(void **state)
{
    (void)state;
    fence_done(src_area);
    fence_done(dst_area);
    fence_done(back_area);
    fence_done(work_area);
    return 0;
}

/* --- data ----------------------------------------------------------------------------------- */

typedef double value_at(crn_rng *r, size_t i);

static double zero(crn_rng *r, size_t i)
{
    (void)r, (void)i;
    return 0;
}

static double smooth(crn_rng *r, size_t i)
{
    (void)r;
    return 100 * sin((double)i / 50) + 3;
}

static double noisy(crn_rng *r, size_t i)
{
    return smooth(r, i) + crn_rng_unit(r);
}

static double tiny(crn_rng *r, size_t i)
{
    return (i % 2 ? -1 : 1) * crn_rng_unit(r) * FLT_MIN / 4;
}

static double any_size(crn_rng *r, size_t i)
{
    (void)i;
    return ldexp(crn_rng_unit(r) - 0.5, (int)crn_rng_below(r, 250) - 125);
}

static double negative_zero(crn_rng *r, size_t i)
{
    (void)r;
    return i % 3 ? 0.0 : -0.0;
}

static double infinite(crn_rng *r, size_t i)
{
    return i == 2 ? INFINITY : smooth(r, i);
}

static double not_a_number(crn_rng *r, size_t i)
{
    return i == 1 ? -NAN : noisy(r, i);
}

static value_at *const kinds[] = {zero,     smooth,        noisy,    tiny,
                                  any_size, negative_zero, infinite, not_a_number};
enum { NKINDS = sizeof kinds / sizeof *kinds, FIRST_NOT_FINITE = 6 };

static void fill(void *data, crn_elem elem, size_t nbytes, value_at *value)
{
    crn_rng r = crn_rng_of(test_seed(), nbytes);
    unsigned char *to = data;
    for (size_t i = 0; i < nbytes / crn_elem_nbytes(elem); i++) {
        double v = value(&r, i);
        float single = (float)v;
        if (elem == CRN_ELEM_BYTES)
            to[i] = isfinite(v) ? (unsigned char)(int)fmod(v, 128) : 255;
        else if (elem == CRN_ELEM_F32)
            memcpy(to + i * sizeof single, &single, sizeof single);
        else
            memcpy(to + i * sizeof v, &v, sizeof v);
    }
}

static double load(crn_elem elem, const unsigned char *data, size_t i)
{
    float single = 0;
    double v = 0;
    if (elem == CRN_ELEM_F32)
        memcpy(&single, data + i * sizeof single, sizeof single);
    else
        memcpy(&v, data + i * sizeof v, sizeof v);
    return elem == CRN_ELEM_F32 ? single : v;
}

/* --- one round trip ------------------------------------------------------------------------- */

static cairn_status encode(const crn_codec_ops *codec, const crn_codec_params *p, const void *src,
                           size_t nbytes, void **ret_dst, size_t *ret_n)
{
    void *dst = fence_end(dst_area, crn_codec_bound(codec, nbytes), 1);
    void *work = fence_end(work_area, crn_codec_scratch(codec, p, nbytes), 64);
    *ret_dst = dst;
    return crn_codec_encode(codec, p, src, nbytes, dst, work, ret_n);
}

static cairn_status decode(const crn_codec_ops *codec, crn_elem elem, const void *src, size_t n,
                           void *dst, size_t nbytes)
{
    void *work = fence_end(work_area, crn_codec_scratch(codec, NULL, nbytes), 64);
    return crn_codec_decode(codec, elem, src, n, dst, nbytes, work);
}

static void assert_kept(const crn_codec_ops *codec, const crn_codec_params *p,
                        const unsigned char *src, const unsigned char *back, size_t nbytes)
{
    if (!crn_codec_is_lossy(codec, p)) {
        assert_memory_equal(src, back, nbytes);
        return;
    }
    for (size_t i = 0; i < nbytes / crn_elem_nbytes(p->elem); i++) {
        double a = load(p->elem, src, i), b = load(p->elem, back, i);
        if (!isfinite(b) || (p->tolerance > 0 && !(fabs(a - b) <= p->tolerance)))
            fail_msg("%s: %g became %g", crn_codec_name(codec), a, b);
    }
}

/* True if it could be encoded; then it must come back, from memory that ends right behind it. */
static bool round_trip(const crn_codec_ops *codec, const crn_codec_params *p, size_t nbytes,
                       value_at *value)
{
    unsigned char *src = fence_end(src_area, nbytes, 1), *back = fence_end(back_area, nbytes, 1);
    void *made;
    size_t n = SIZE_MAX;
    fill(src, p->elem, nbytes, value);
    cairn_status rc = encode(codec, p, src, nbytes, &made, &n);
    if (rc == CAIRN_NOTHING) {
        assert_true(n == SIZE_MAX);
        return false;
    }
    assert_ok(rc);
    assert_in_range(n, 0, nbytes);
    /* to the end of its area, where reading too far is noticed */
    memmove(fence_end(dst_area, n, 1), made, n);
    memset(back, 0x5a, nbytes);
    assert_ok(decode(codec, p->elem, fence_end(dst_area, n, 1), n, back, nbytes));
    assert_kept(codec, p, src, back, nbytes);
    return true;
}

static const crn_codec_params asked[] = {
    {.effort = 0},         {.effort = 3},      {.precision = 8},
    {.precision = 16},     {.precision = 32},  {.tolerance = 1e-6},
    {.tolerance = 0.0625}, {.tolerance = 1e6}, {.precision = 20, .tolerance = 1e-3},
};
enum { NASKED = sizeof asked / sizeof *asked };

/* Call each for every codec, kind of values that it takes, and parameters. */
static void for_all(void each(const crn_codec_ops *codec, const crn_codec_params *p))
{
    const crn_codec_ops *codec;
    for (size_t i = 0; (codec = crn_codec_at(i)); i++)
        for (int k = 0; k < NASKED * CRN_NELEMS; k++) {
            crn_codec_params p = asked[k / CRN_NELEMS];
            p.elem = (crn_elem)(k % CRN_NELEMS);
            if (crn_codec_accepts(codec, p.elem))
                each(codec, &p);
        }
}

/* --- cases ---------------------------------------------------------------------------------- */

static void test_table_pins_names_and_ids(void **state)
{
    (void)state;
    static const char *const names[] = {"none", "lz4", "zstd", "zfp", "fpzip", "f32", "f16"};
    const size_t n = sizeof names / sizeof *names;
    for (size_t id = 0; id < n; id++) {
        const crn_codec_ops *codec = crn_codec_of_id((uint32_t)id);
        assert_non_null(codec);
        assert_string_equal(crn_codec_name(codec), names[id]);
        assert_int_equal(crn_codec_id(codec), id);
        assert_ptr_equal(crn_codec_of_name(names[id]), codec);
    }
    assert_null(crn_codec_at(n));
    assert_null(crn_codec_of_id((uint32_t)n));
    assert_null(crn_codec_of_name("gzip"));
}

static void each_kind_and_size(const crn_codec_ops *codec, const crn_codec_params *p)
{
    static const size_t counts[] = {1, 2, 3, 4, 5, 63, 1000, MAX / sizeof(double)};
    for (int k = 0; k < NKINDS; k++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            bool done = round_trip(codec, p, counts[i] * crn_elem_nbytes(p->elem), kinds[k]);
            if (k >= FIRST_NOT_FINITE && counts[i] > 2 && crn_codec_is_lossy(codec, p))
                assert_false(done);
        }
}

static void test_round_trip(void **state)
{
    (void)state;
    for_all(each_kind_and_size);
}

/* The smallest tolerance with which each codec must take the smooth values; others may not pay. */
static const struct {
    const char *name;
    double tolerance;
} takes_smooth[] = {{"none", 0}, {"zfp", 0}, {"fpzip", 0}, {"f32", 1e-5}, {"f16", 0.0625}};

static void each_smooth(const crn_codec_ops *codec, const crn_codec_params *p)
{
    assert_true(round_trip(codec, p, MAX, zero));
    for (size_t i = 0; i < sizeof takes_smooth / sizeof *takes_smooth; i++)
        if (strcmp(takes_smooth[i].name, crn_codec_name(codec)) == 0 && p->precision == 0)
            assert_int_equal(round_trip(codec, p, MAX, smooth),
                             p->tolerance == 0 || p->tolerance >= takes_smooth[i].tolerance);
}

/* "Store it as it is" must not be the answer to everything. */
static void test_what_can_be_encoded_is(void **state)
{
    (void)state;
    for_all(each_smooth);
}

static void each_empty(const crn_codec_ops *codec, const crn_codec_params *p)
{
    void *made;
    size_t n = 7;
    assert_ok(encode(codec, p, NULL, 0, &made, &n));
    assert_int_equal(n, 0);
    assert_ok(decode(codec, p->elem, NULL, 0, NULL, 0));
    assert_int_equal(decode(codec, p->elem, "x", 1, NULL, 0), CAIRN_ECORRUPT);
    assert_int_equal(decode(codec, p->elem, NULL, 0, fence_end(back_area, 8, 1), 8),
                     CAIRN_ECORRUPT);
}

static void test_no_bytes(void **state)
{
    (void)state;
    for_all(each_empty);
}

static void test_other_values_are_stored_as_they_are(void **state)
{
    (void)state;
    const crn_codec_ops *codec;
    void *made;
    size_t n;
    for (size_t i = 0; (codec = crn_codec_at(i)); i++)
        for (crn_elem elem = 0; elem < CRN_NELEMS; elem++) {
            crn_codec_params p = {.elem = elem};
            if (!crn_codec_accepts(codec, elem)) {
                assert_int_equal(encode(codec, &p, src_area.at, 64, &made, &n), CAIRN_NOTHING);
                assert_fails(decode(codec, elem, src_area.at, 64, back_area.at, 64), CAIRN_ECORRUPT,
                             "damaged");
            }
            if (elem != CRN_ELEM_BYTES) /* not a whole number of values */
                assert_int_equal(encode(codec, &p, src_area.at, 63, &made, &n), CAIRN_NOTHING);
        }
}

static void each_damage(const crn_codec_ops *codec, const crn_codec_params *p)
{
    const size_t nbytes = 4096;
    unsigned char *src = fence_end(src_area, nbytes, 1), *back = fence_end(back_area, nbytes, 1);
    void *made;
    size_t n;
    fill(src, p->elem, nbytes, smooth);
    if (encode(codec, p, src, nbytes, &made, &n) != CAIRN_OK)
        return;
    unsigned char *good = memcpy(malloc(n), made, n), *bad;
    for (size_t cut = 0; cut < n; cut += 1 + cut / 16) {
        bad = memcpy(fence_end(dst_area, cut, 1), good, cut);
        assert_int_equal(decode(codec, p->elem, bad, cut, back, nbytes), CAIRN_ECORRUPT);
    }
    crn_rng r = crn_rng_of(test_seed(), n);
    for (int i = 0; i < 300; i++) {
        bad = memcpy(fence_end(dst_area, n, 1), good, n);
        for (int flips = 1 + i % 3; flips > 0; flips--)
            bad[crn_rng_below(&r, n)] ^= (unsigned char)(1 << crn_rng_below(&r, 8));
        cairn_status rc = decode(codec, p->elem, bad, n, back, nbytes);
        assert_true(rc == CAIRN_OK || rc == CAIRN_ECORRUPT);
    }
    bad = memcpy(fence_end(dst_area, n, 1), good, n);
    size_t less = nbytes - crn_elem_nbytes(p->elem);
    assert_int_equal(decode(codec, p->elem, bad, n, fence_end(back_area, less, 1), less),
                     CAIRN_ECORRUPT);
    size_t more = nbytes + crn_elem_nbytes(p->elem);
    assert_int_equal(decode(codec, p->elem, bad, n, fence_end(back_area, more, 1), more),
                     CAIRN_ECORRUPT);
    free(good);
}

static void test_damage_is_found_or_harmless(void **state)
{
    (void)state;
    for_all(each_damage);
}

static void assert_refused(const char *name, crn_codec_params p, const char *words)
{
    const crn_codec_ops *codec = crn_codec_of_name(name);
    void *made;
    size_t n;
    assert_fails(crn_codec_check(codec, &p), CAIRN_EINVAL, words);
    assert_fails(encode(codec, &p, src_area.at, 64, &made, &n), CAIRN_EINVAL, words);
}

static void test_impossible_parameters_get_a_sentence(void **state)
{
    (void)state;
    assert_refused("fpzip", (crn_codec_params){.elem = CRN_ELEM_F64, .precision = 33},
                   "an even number from 4 to 64 bits");
    assert_refused("fpzip", (crn_codec_params){.elem = CRN_ELEM_F64, .precision = 2}, "not 2");
    assert_refused("fpzip", (crn_codec_params){.elem = CRN_ELEM_F32, .precision = 33}, "not 33");
    assert_refused("zfp", (crn_codec_params){.elem = CRN_ELEM_F32, .precision = 33}, "1 to 32");
    assert_refused("zfp", (crn_codec_params){.elem = CRN_ELEM_F32, .precision = -1}, "not -1");
    assert_refused("zstd", (crn_codec_params){.effort = 20}, "1 to 19");
    assert_refused("lz4", (crn_codec_params){.effort = -1}, "not -1");
    assert_refused("none", (crn_codec_params){.tolerance = NAN}, "tolerance");
    assert_refused("zfp", (crn_codec_params){.elem = CRN_ELEM_F64, .tolerance = -1}, "tolerance");
}

/* Every precision that is not refused must really work: fpzip answers others with silence. */
static void test_all_precisions(void **state)
{
    (void)state;
    for (int i = 0; i < 4 * 64; i++) {
        const crn_codec_ops *codec = crn_codec_of_name(i % 2 ? "zfp" : "fpzip");
        crn_codec_params p = {.elem = i / 2 % 2 ? CRN_ELEM_F64 : CRN_ELEM_F32,
                              .precision = 1 + i / 4};
        if (crn_codec_check(codec, &p) == CAIRN_OK)
            assert_true(round_trip(codec, &p, 8000, smooth));
    }
}

static cairn_status encode_one(const char *name, const crn_codec_params *p, double v, void **made)
{
    size_t n, nbytes = crn_elem_nbytes(p->elem);
    unsigned char *src = fence_end(src_area, nbytes, 1);
    float single = (float)v;
    memcpy(src, p->elem == CRN_ELEM_F32 ? (void *)&single : (void *)&v, nbytes);
    return encode(crn_codec_of_name(name), p, src, nbytes, made, &n);
}

static void test_values_out_of_range(void **state)
{
    (void)state;
    const crn_codec_params p = {.elem = CRN_ELEM_F64};
    void *made;
    assert_ok(encode_one("f16", &p, 65504, &made));
    assert_ok(encode_one("f16", &p, -65519.99, &made)); /* rounds down to the largest */
    assert_int_equal(encode_one("f16", &p, 65520, &made), CAIRN_NOTHING);
    assert_int_equal(encode_one("f16", &p, -1e300, &made), CAIRN_NOTHING);
    assert_ok(encode_one("f32", &p, FLT_MAX, &made));
    assert_int_equal(encode_one("f32", &p, 3.5e38, &made), CAIRN_NOTHING);
}

static uint16_t half_bits(crn_elem elem, double v)
{
    const crn_codec_params p = {.elem = elem};
    void *made;
    uint16_t half;
    assert_ok(encode_one("f16", &p, v, &made));
    memcpy(&half, made, sizeof half);
    return half;
}

/* The value of a half, straight from the definition. */
static double half_value(unsigned half)
{
    unsigned exponent = half >> 10 & 31, mantissa = half & 1023;
    double v = exponent ? ldexp(1024 + mantissa, (int)exponent - 25) : ldexp(mantissa, -24);
    return half & 0x8000 ? -v : v;
}

/* All halves, and the points half-way to the next and just beside those. */
static void test_half_rounds_to_nearest_even(void **state)
{
    (void)state;
    for (unsigned half = 0; half < 0x7bff; half++) {
        double low = half_value(half), high = half_value(half + 1), mid = (low + high) / 2;
        assert_int_equal(half_bits(CRN_ELEM_F64, low), half);
        assert_int_equal(half_bits(CRN_ELEM_F64, -low), half | 0x8000);
        assert_int_equal(half_bits(CRN_ELEM_F32, mid), half + half % 2);
        assert_int_equal(half_bits(CRN_ELEM_F64, mid), half + half % 2);
        assert_int_equal(half_bits(CRN_ELEM_F64, nextafter(mid, 0)), half);
        assert_int_equal(half_bits(CRN_ELEM_F64, nextafter(mid, 1e9)), half + 1);
    }
}

/* What seed 003 (section 9.3) does with states: doubles cut to 40 bits shrink, and stay close. */
static void test_fpzip_keeps_leading_bits(void **state)
{
    (void)state;
    const crn_codec_params p = {.elem = CRN_ELEM_F64, .precision = 40};
    double src[1000], back[1000];
    void *made;
    size_t n;
    fill(src, CRN_ELEM_F64, sizeof src, noisy);
    assert_ok(encode(crn_codec_of_name("fpzip"), &p, src, sizeof src, &made, &n));
    assert_in_range(n, sizeof src / 4, sizeof src * 3 / 4);
    assert_ok(decode(crn_codec_of_name("fpzip"), CRN_ELEM_F64, made, n, back, sizeof back));
    for (int i = 0; i < 1000; i++) /* 40 bits: sign, 11 of exponent, 28 of mantissa */
        assert_true(fabs(src[i] - back[i]) <= ldexp(fabs(src[i]), -28));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_pins_names_and_ids),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_what_can_be_encoded_is),
        cmocka_unit_test(test_no_bytes),
        cmocka_unit_test(test_other_values_are_stored_as_they_are),
        cmocka_unit_test(test_damage_is_found_or_harmless),
        cmocka_unit_test(test_impossible_parameters_get_a_sentence),
        cmocka_unit_test(test_all_precisions),
        cmocka_unit_test(test_values_out_of_range),
        cmocka_unit_test(test_half_rounds_to_nearest_even),
        cmocka_unit_test(test_fpzip_keeps_leading_bits),
    };
    return cmocka_run_group_tests(tests, make_areas, free_areas);
}
