/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Codecs of shared objects: nothing of what they make is believed (bad_codec.c lies in every way),
 * what is stored comes back, and a reader who lacks the file gets a sentence.
 *
 * NEEDS: lz4 zstd zfp fpzip random123
 */
#include <math.h>

#include "codec/codec_ops.h"
#include "harness/harness.h"

enum { N = 3001 };

static double x[N], y[N];
static unsigned char *dst, *scratch;

static void make_values(void)
{
    for (size_t i = 0; i < N; i++)
        x[i] = 10 + sin((double)i / 30);
}

static crn_codec_result store(const char *codec, const char *loss, crn_codec_setting *s)
{
    const crn_codec_values v = {CRN_ELEM_F64, x, sizeof x, {2, {N / 50, 50}, 0}};
    crn_codec_result r;
    assert_ok(crn_codec_parse(codec, loss, s));
    free(dst);
    free(scratch);
    assert_ok(crn_alloc(&dst, crn_codec_store_bound(sizeof x)));
    assert_ok(crn_alloc_aligned(
        &scratch, CRN_ROUND_UP(crn_codec_store_scratch(s, sizeof x), (size_t)CRN_CODEC_ALIGN),
        CRN_CODEC_ALIGN));
    assert_ok(crn_codec_store(s, &v, dst, scratch, &r));
    return r;
}

static void read_back(const crn_codec_result *r)
{
    memset(y, 0, sizeof y);
    if (r->codec == 0)
        memcpy(y, x, sizeof x);
    else
        assert_ok(crn_codec_decode_apart(crn_codec_of_id(r->codec), CRN_ELEM_F64, dst, r->n, y,
                                         sizeof y, scratch));
}

static void test_an_honest_one_is_used(void **state)
{
    (void)state;
    crn_codec_setting s;
    char text[CRN_CODEC_TEXT];
    make_values();
    x[7] = NAN;
    x[1700] = -INFINITY;
    const crn_codec_result r = store("./bad_codec.so:good", "abs 1e-4", &s);
    assert_int_equal(r.codec, 10);
    assert_int_equal(r.fallback, CRN_FALLBACK_NONE);
    assert_true(r.naside == 2 && r.n < sizeof x / 2 + 512 && r.error > 0 && r.error <= 1e-4);
    read_back(&r);
    assert_true(isnan(y[7]) && y[1700] == -INFINITY);
    for (size_t i = 0; i < N; i++)
        assert_true(i == 7 || i == 1700 || fabs(x[i] - y[i]) <= 1e-4);
    assert_string_equal(crn_codec_print(&s, text), "bad_codec.so:good");
    assert_true(crn_codec_is_lossy(&s));
}

static void test_others_are_not_believed(void **state)
{
    (void)state;
    static const struct {
        const char *options;
        crn_fallback why;
    } bad[] = {{"lie", CRN_FALLBACK_BOUND}, {"bound", CRN_FALLBACK_BOUND},
               {"nan", CRN_FALLBACK_BOUND}, {"fail", CRN_FALLBACK_BOUND},
               {"much", CRN_FALLBACK_SIZE}, {"none", CRN_FALLBACK_SIZE},
               {"all", CRN_FALLBACK_BOUND}};
    make_values();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char codec[64];
        crn_codec_setting s;
        snprintf(codec, sizeof codec, "./bad_codec.so:%s", bad[i].options);
        const crn_codec_result r = store(codec, "abs 1e-4", &s);
        if (r.fallback != bad[i].why || r.codec == 10 || !r.exact)
            fail_msg("%s: codec %u, fallback %s", codec, r.codec, crn_fallback_name(r.fallback));
        read_back(&r);
        assert_memory_equal(x, y, sizeof x);
    }
    crn_codec_setting s; /* nothing may be lost, and half of each value is */
    assert_int_equal(store("./bad_codec.so:good", "", &s).fallback, CRN_FALLBACK_BOUND);
}

static void test_damage_is_no_sight_for_it(void **state)
{
    (void)state;
    crn_codec_setting s;
    make_values();
    const crn_codec_result r = store("./bad_codec.so:good", "abs 1e-4", &s);
    const crn_codec_ops *codec = crn_codec_of_id(10);
    for (size_t i = 0; i < r.n; i += i < 300 ? 1 : 97) {
        dst[i] ^= 0x40;
        assert_int_equal(crn_codec_decode(codec, CRN_ELEM_F64, dst, r.n, y, sizeof y, scratch),
                         CAIRN_ECORRUPT);
        dst[i] ^= 0x40;
        assert_int_equal(crn_codec_decode(codec, CRN_ELEM_F64, dst, i, y, sizeof y, scratch),
                         CAIRN_ECORRUPT);
    }
    assert_ok(crn_codec_decode(codec, CRN_ELEM_F64, dst, r.n, y, sizeof y, scratch));
    memcpy(dst + 8, "other", 6); /* a codec that nobody has named a file for */
    (void)crn_codec_seal(codec, CRN_ELEM_F64, sizeof x, dst, r.n - 8);
    assert_fails(crn_codec_decode(codec, CRN_ELEM_F64, dst, r.n, y, sizeof y, scratch),
                 CAIRN_EUNSUPPORTED, "codec 'other'");
}

/* Heads that a forger has made, with the right guard. */
static void test_forged_heads(void **state)
{
    (void)state;
    crn_codec_setting s;
    crn_rng rng = crn_rng_of(4, 4);
    make_values();
    const crn_codec_result r = store("./bad_codec.so:good", "abs 1e-4", &s);
    unsigned char *copy;
    assert_ok(crn_alloc(&copy, r.n));
    memcpy(copy, dst, r.n);
    for (int i = 0; i < 2000; i++) {
        const size_t n = 8 + (i % 4 ? r.n - 8 : (size_t)crn_rng_below(&rng, r.n - 8));
        memcpy(dst, copy, r.n);
        for (int k = 0; k < 4; k++)
            dst[40 + crn_rng_below(&rng, 120)] = (unsigned char)crn_rng_u64(&rng);
        (void)crn_codec_seal(crn_codec_of_id(10), CRN_ELEM_F64, sizeof x, dst, n - 8);
        cairn_status rc =
            crn_codec_decode(crn_codec_of_id(10), CRN_ELEM_F64, dst, n, y, sizeof y, scratch);
        assert_true(rc == CAIRN_OK || rc == CAIRN_ECORRUPT);
    }
    free(copy);
}

static void test_wrong_files_are_refused(void **state)
{
    (void)state;
    crn_codec_setting s;
    assert_fails(crn_codec_parse("./no_such.so", "", &s), CAIRN_EINVAL, "cannot load codec");
    assert_fails(crn_codec_parse("./bad_codec.so:level=3", "", &s), CAIRN_EINVAL,
                 "does not take 'level=3'");
    assert_fails(crn_codec_parse("libm.so.6", "", &s), CAIRN_EINVAL, "it is no codec");
    assert_fails(crn_foreign_load("./bad_codec.so ./no_such.so"), CAIRN_EINVAL, "no_such");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_an_honest_one_is_used),
                                       cmocka_unit_test(test_others_are_not_believed),
                                       cmocka_unit_test(test_damage_is_no_sight_for_it),
                                       cmocka_unit_test(test_forged_heads),
                                       cmocka_unit_test(test_wrong_files_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
