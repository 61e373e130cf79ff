/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Every codec of the table goes through the same cases. All memory that a codec gets ends at a page
 * that cannot be touched, so that one byte too far ends the test, also inside a library.
 *
 * NEEDS: lz4 zstd zfp fpzip random123
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
enum { NKINDS = sizeof kinds / sizeof *kinds };

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

/* --- one round trip ------------------------------------------------------------------------- */

static cairn_status encode(const crn_codec_ops *codec, crn_elem elem, const void *src,
                           size_t nbytes, void **ret_dst, size_t *ret_n)
{
    void *dst = fence_end(dst_area, crn_codec_bound(codec, nbytes), 1);
    void *work = fence_end(work_area, crn_codec_encode_scratch(codec, nbytes), CRN_CODEC_ALIGN);
    *ret_dst = dst;
    return crn_codec_encode(codec, elem, src, nbytes, dst, work, ret_n);
}

static cairn_status decode(const crn_codec_ops *codec, crn_elem elem, const void *src, size_t n,
                           void *dst, size_t nbytes)
{
    void *work = fence_end(work_area, crn_codec_decode_scratch(codec), CRN_CODEC_ALIGN);
    return crn_codec_decode(codec, elem, src, n, dst, nbytes, work);
}

/* True if it could be encoded; then it must come back, from memory that ends right behind it. */
static bool round_trip(const crn_codec_ops *codec, crn_elem elem, size_t nbytes, value_at *value)
{
    unsigned char *src = fence_end(src_area, nbytes, 1), *back = fence_end(back_area, nbytes, 1);
    void *made;
    size_t n = SIZE_MAX;
    fill(src, elem, nbytes, value);
    cairn_status rc = encode(codec, elem, src, nbytes, &made, &n);
    if (rc == CAIRN_NOTHING) {
        assert_true(n == SIZE_MAX);
        return false;
    }
    assert_ok(rc);
    assert_in_range(n, 0, nbytes);
    /* to the end of its area, where reading too far is noticed */
    memmove(fence_end(dst_area, n, 1), made, n);
    memset(back, 0x5a, nbytes);
    assert_ok(decode(codec, elem, fence_end(dst_area, n, 1), n, back, nbytes));
    assert_memory_equal(src, back, nbytes);
    return true;
}

/* Call each for every codec and kind of values that it takes. Codecs of shared objects have a test
 * of their own. */
static void for_all(void each(const crn_codec_ops *codec, crn_elem elem))
{
    const crn_codec_ops *codec;
    for (size_t i = 0; (codec = crn_codec_at(i)); i++)
        for (crn_elem elem = 0; elem < CRN_NELEMS; elem++)
            if (crn_codec_accepts(codec, elem) && codec != crn_codec_of_name("foreign"))
                each(codec, elem);
}

/* --- cases ---------------------------------------------------------------------------------- */

static void test_table_pins_names_and_ids(void **state)
{
    (void)state;
    static const char *const names[] = {"none",    "lz4",       "zstd",    "zfp", "fpzip",
                                        "zfp-box", "fpzip-box", "shuffle", "f32", "f16",
                                        "foreign"};
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

static void each_kind_and_size(const crn_codec_ops *codec, crn_elem elem)
{
    static const size_t counts[] = {1, 2, 3, 4, 5, 63, 1000, MAX / sizeof(double)};
    for (int k = 0; k < NKINDS; k++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            (void)round_trip(codec, elem, counts[i] * crn_elem_nbytes(elem), kinds[k]);
}

static void test_round_trip(void **state)
{
    (void)state;
    for_all(each_kind_and_size);
}

/* Codecs of bytes see nothing in smooth values that they could make smaller. */
static void each_smooth(const crn_codec_ops *codec, crn_elem elem)
{
    static const char *const narrow[] = {"f32", "f16"}; /* these must lose something */
    assert_true(round_trip(codec, elem, MAX, zero));
    for (size_t i = 0; i < 2; i++)
        if (strcmp(crn_codec_name(codec), narrow[i]) == 0)
            return;
    if (!crn_codec_accepts(codec, CRN_ELEM_BYTES))
        assert_true(round_trip(codec, elem, MAX, smooth));
}

/* "Store it as it is" must not be the answer to everything. */
static void test_what_can_be_encoded_is(void **state)
{
    (void)state;
    for_all(each_smooth);
}

static void each_empty(const crn_codec_ops *codec, crn_elem elem)
{
    void *made;
    size_t n = 7;
    assert_ok(encode(codec, elem, NULL, 0, &made, &n));
    assert_int_equal(n, 0);
    assert_ok(decode(codec, elem, NULL, 0, NULL, 0));
    assert_int_equal(decode(codec, elem, "x", 1, NULL, 0), CAIRN_ECORRUPT);
    assert_int_equal(decode(codec, elem, NULL, 0, fence_end(back_area, 8, 1), 8), CAIRN_ECORRUPT);
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
            if (!crn_codec_accepts(codec, elem)) {
                assert_int_equal(encode(codec, elem, src_area.at, 64, &made, &n), CAIRN_NOTHING);
                assert_fails(decode(codec, elem, src_area.at, 64, back_area.at, 64), CAIRN_ECORRUPT,
                             "damaged");
            }
            if (elem != CRN_ELEM_BYTES) /* not a whole number of values */
                assert_int_equal(encode(codec, elem, src_area.at, 63, &made, &n), CAIRN_NOTHING);
        }
}

static void each_damage(const crn_codec_ops *codec, crn_elem elem)
{
    const size_t nbytes = 4096;
    unsigned char *src = fence_end(src_area, nbytes, 1), *back = fence_end(back_area, nbytes, 1);
    void *made;
    size_t n;
    fill(src, elem, nbytes, smooth);
    if (encode(codec, elem, src, nbytes, &made, &n) != CAIRN_OK)
        return;
    unsigned char *good = memcpy(malloc(n), made, n), *bad;
    for (size_t cut = 0; cut < n; cut += 1 + cut / 16) {
        bad = memcpy(fence_end(dst_area, cut, 1), good, cut);
        assert_int_equal(decode(codec, elem, bad, cut, back, nbytes), CAIRN_ECORRUPT);
    }
    crn_rng r = crn_rng_of(test_seed(), n);
    for (int i = 0; i < 300; i++) {
        bad = memcpy(fence_end(dst_area, n, 1), good, n);
        for (int flips = 1 + i % 3; flips > 0; flips--)
            bad[crn_rng_below(&r, n)] ^= (unsigned char)(1 << crn_rng_below(&r, 8));
        cairn_status rc = decode(codec, elem, bad, n, back, nbytes);
        assert_true(rc == CAIRN_OK || rc == CAIRN_ECORRUPT);
    }
    bad = memcpy(fence_end(dst_area, n, 1), good, n);
    size_t less = nbytes - crn_elem_nbytes(elem);
    assert_int_equal(decode(codec, elem, bad, n, fence_end(back_area, less, 1), less),
                     CAIRN_ECORRUPT);
    size_t more = nbytes + crn_elem_nbytes(elem);
    assert_int_equal(decode(codec, elem, bad, n, fence_end(back_area, more, 1), more),
                     CAIRN_ECORRUPT);
    free(good);
}

static void test_damage_is_found_or_harmless(void **state)
{
    (void)state;
    for_all(each_damage);
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
    };
    return cmocka_run_group_tests(tests, make_areas, free_areas);
}
