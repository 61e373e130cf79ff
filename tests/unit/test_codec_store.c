/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Settings, and what they promise: every setting goes through the same values, in 1 to 4
 * dimensions, and each value that a reader gets is judged in long arithmetic of the test's own.
 *
 * NEEDS: lz4 zstd zfp fpzip random123
 */
#include "codec/codec.h"
#include "harness/harness.h"

#include <float.h>
#include <math.h>

enum { NMAX = 6000 };

static unsigned char dst[2 * NMAX * 8 + 4096];
static _Alignas(CRN_CODEC_ALIGN) unsigned char scratch[4 << 20];
static _Alignas(CRN_CODEC_ALIGN) unsigned char work[1 << 20];

typedef struct trial {
    const char *codec, *loss;
} trial;

static const trial trials[] = {
    {"none", ""},
    {"lz4", ""},
    {"lz4:shuffle", ""},
    {"zstd", ""},
    {"zstd:9", ""},
    {"zstd:level=3,shuffle", ""},
    {"zfp", ""},
    {"fpzip", ""},
    {"auto", ""},
    {"zfp:accuracy=1e-3", ""},
    {"zfp:accuracy=1e-3,zeros", ""},
    {"zfp:accuracy=1e-18", ""},
    {"zfp:precision=20", ""},
    {"zfp:rate=12", ""},
    {"zfp:rate=8", "abs 1e-4"},
    {"zfp:precision=16", "rel 1e-6"},
    {"zfp", "abs 1e-6"},
    {"zfp", "abs 1e-3 rel 1e-5"},
    {"fpzip:precision=24", ""},
    {"fpzip:precision=4", ""},
    {"fpzip:precision=20", "rel 1e-6"},
    {"fpzip", "rel 1e-4"},
    {"fpzip", "abs 1e-4"},
    {"round:bits=12", ""},
    {"round", "abs 1e-5"},
    {"round:bits=3", "rel 1e-6"},
    {"f32", ""},
    {"f16", ""},
    {"f16", "abs 1e-3"},
    {"auto", "abs 1e-5"},
    {"auto", "rel 1e-5"},
};
enum { NTRIALS = sizeof trials / sizeof *trials };

/* --- values --------------------------------------------------------------------------------- */

typedef double value_at(crn_rng *r, size_t i);

static double constant(crn_rng *r, size_t i)
{
    (void)r, (void)i;
    return 42.125;
}

static double smooth(crn_rng *r, size_t i)
{
    (void)r;
    return 100 * sin((double)i / 50) + 3;
}

static double noise(crn_rng *r, size_t i)
{
    (void)i;
    return crn_rng_unit(r) - 0.5;
}

static double subnormal(crn_rng *r, size_t i)
{
    return (i % 2 ? -1 : 1) * crn_rng_unit(r) * FLT_MIN / 4;
}

static double huge_range(crn_rng *r, size_t i)
{
    (void)i;
    return ldexp(crn_rng_unit(r) - 0.5, (int)crn_rng_below(r, 250) - 125);
}

static double zeros(crn_rng *r, size_t i)
{
    return i % 5 ? 0.0 : i % 7 ? -0.0 : crn_rng_unit(r);
}

static double mostly_nan(crn_rng *r, size_t i)
{
    return i % 3 ? NAN : crn_rng_unit(r);
}

static double few_specials(crn_rng *r, size_t i)
{
    return i % 97 == 5 ? NAN : i % 101 == 0 ? -INFINITY : smooth(r, i);
}

/* Neighbours of which some are beyond half precision, or float32. */
static double few_large(crn_rng *r, size_t i)
{
    return i % 89 == 7 ? 1e30 : smooth(r, i);
}

static value_at *const kinds[] = {constant, smooth,     noise,        subnormal, huge_range,
                                  zeros,    mostly_nan, few_specials, few_large};
enum { NKINDS = sizeof kinds / sizeof *kinds };

static void set(unsigned char *to, crn_elem elem, size_t i, double x)
{
    const float single = (float)x;
    if (elem == CRN_ELEM_F64)
        memcpy(to + i * 8, &x, 8);
    else if (elem == CRN_ELEM_F32)
        memcpy(to + i * 4, &single, 4);
    else
        to[i] = isfinite(x) ? (unsigned char)(int)fmod(x, 128) : 255;
}

static void fill(unsigned char *to, crn_elem elem, size_t n, value_at *value)
{
    crn_rng r = crn_rng_of(test_seed(), n);
    for (size_t i = 0; i < n; i++)
        set(to, elem, i, value(&r, i));
}

/* --- the oracle ----------------------------------------------------------------------------- */

static double get(const unsigned char *from, crn_elem elem, size_t i)
{
    double x = 0;
    float single;
    if (elem == CRN_ELEM_F64) {
        memcpy(&x, from + i * 8, 8);
        return x;
    }
    memcpy(&single, from + i * 4, 4);
    return single;
}

/* In arithmetic with 64 bits of mantissa: enough for what these values can differ by. */
static void assert_kept(const crn_codec_setting *s, crn_elem elem, const unsigned char *x,
                        const unsigned char *y, size_t n)
{
    const size_t width = crn_elem_nbytes(elem);
    for (size_t i = 0; i < n; i++) {
        if (memcmp(x + i * width, y + i * width, width) == 0)
            continue;
        const long double a = get(x, elem, i), b = get(y, elem, i);
        assert_true(isfinite((double)a) && isfinite((double)b));
        if (s->zeros && a == 0)
            assert_false(signbit((double)a));
        if (!s->bounded)
            continue;
        const long double most = fabsl(a) > fabsl(b) ? fabsl(a) : fabsl(b);
        const long double limit = fmaxl(s->loss.absolute, s->loss.relative * most);
        assert_true(fabsl(a - b) <= limit);
    }
}

static crn_codec_result store_and_read(const crn_codec_setting *s, const crn_codec_values *v)
{
    static unsigned char back[NMAX * 8];
    crn_codec_result r;
    assert_true(crn_codec_store_scratch(s, v->nbytes) <= sizeof scratch);
    assert_ok(crn_codec_store(s, v, dst, scratch, &r));
    if (r.codec == 0) {
        assert_ptr_equal(r.reads, v->at);
        assert_true(r.exact);
        return r;
    }
    assert_in_range(r.n, 1, v->nbytes - 1);
    memset(back, 0x5a, v->nbytes);
    assert_ok(crn_codec_decode(crn_codec_of_id(r.codec), v->elem, dst, r.n, back, v->nbytes, work));
    assert_memory_equal(back, r.reads, v->nbytes); /* what was said is what is got */
    assert_int_equal(r.exact, memcmp(back, v->at, v->nbytes) == 0);
    if (!crn_codec_is_lossy(s) || v->elem == CRN_ELEM_BYTES)
        assert_true(r.exact);
    else
        assert_kept(s, v->elem, v->at, back, v->nbytes / crn_elem_nbytes(v->elem));
    return r;
}

static crn_codec_setting setting_of(const trial *t)
{
    crn_codec_setting s;
    assert_ok(crn_codec_parse(t->codec, t->loss, &s));
    return s;
}

/* --- cases ---------------------------------------------------------------------------------- */

/* Stretches of arrays, from any place on. */
static const struct {
    crn_codec_shape shape;
    size_t n;
} stretches[] = {
    {{0}, 1},
    {{0}, 3},
    {{0}, 1000},
    {{2, {40, 25}, 0}, 1000},
    {{2, {100, 3}, 17}, 200},
    {{2, {9, 131}, 44}, 1021},
    {{3, {20, 17, 13}, 500}, 3001},
    {{3, {300, 4, 5}, 3}, 4000},
    {{4, {12, 5, 9, 11}, 77}, 5001},
    {{4, {6, 2, 3, 40}, 41}, 1200},
};

/* All stretches of values of one kind, with their dimensions and without. */
static void try_stretches(crn_codec_setting s, crn_elem elem, value_at *value)
{
    static unsigned char data[NMAX * 8];
    for (size_t i = 0; i < 2 * sizeof stretches / sizeof *stretches; i++) {
        const size_t n = stretches[i / 2].n;
        const crn_codec_values v = {elem, data, n * crn_elem_nbytes(elem), stretches[i / 2].shape};
        s.flat = i % 2;
        fill(data, elem, n, value);
        (void)store_and_read(&s, &v);
    }
}

static void test_every_setting_keeps_its_promise(void **state)
{
    (void)state;
    for (size_t t = 0; t < NTRIALS; t++)
        for (crn_elem elem = 0; elem < CRN_NELEMS; elem++)
            for (int k = 0; k < NKINDS; k++)
                try_stretches(setting_of(&trials[t]), elem, kinds[k]);
}

static void test_no_values(void **state)
{
    (void)state;
    for (size_t t = 0; t < NTRIALS; t++) {
        const crn_codec_setting s = setting_of(&trials[t]);
        crn_codec_result r;
        assert_ok(crn_codec_store(&s, &(crn_codec_values){.elem = CRN_ELEM_F64}, dst, scratch, &r));
        assert_int_equal(r.codec, 0);
    }
}

/* One special value at every position of a block: it comes back as it was, and its neighbours as
 * well as they would without it. */
static void plant(const crn_codec_setting *s, double special)
{
    enum { N = 64 };
    double x[N];
    const crn_codec_values v = {CRN_ELEM_F64, x, sizeof x, {2, {8, 8}, 0}};
    for (size_t i = 0; i < N; i++) {
        fill((unsigned char *)x, CRN_ELEM_F64, N, smooth);
        x[i] = special;
        const crn_codec_result r = store_and_read(s, &v);
        if (!isfinite(special))
            assert_memory_equal((const double *)r.reads + i, &x[i], sizeof *x);
    }
}

static void test_specials_touch_no_neighbour(void **state)
{
    (void)state;
    static const double special[] = {NAN, INFINITY, -INFINITY, 1e300};
    for (size_t t = 0; t < NTRIALS; t++) {
        const crn_codec_setting s = setting_of(&trials[t]);
        for (size_t k = 0; k < sizeof special / sizeof *special; k++)
            plant(&s, special[k]);
    }
}

static void test_few_specials_need_not_cost_the_rate(void **state)
{
    (void)state;
    static double x[4000];
    const crn_codec_setting s = setting_of(&(trial){"zfp:accuracy=1e-3", ""});
    const crn_codec_values v = {.elem = CRN_ELEM_F64, .at = x, .nbytes = sizeof x};
    fill((unsigned char *)x, CRN_ELEM_F64, 4000, few_specials);
    crn_codec_result r = store_and_read(&s, &v);
    assert_int_equal(r.codec, 5);
    assert_in_range(r.naside, 60, 90);
    assert_true(r.n < sizeof x / 2);
    fill((unsigned char *)x, CRN_ELEM_F64, 4000, mostly_nan);
    r = store_and_read(&s, &v);
    assert_int_equal(r.fallback, CRN_FALLBACK_SPECIAL);
    assert_true(r.exact);
}

/* A tolerance below the spacing of the values, where no lossy setting can keep it. */
static void test_tolerance_below_spacing(void **state)
{
    (void)state;
    static double x[4000];
    for (size_t i = 0; i < 4000; i++)
        x[i] = 1e15 + sin((double)i) * 1e14;
    const crn_codec_values v = {.elem = CRN_ELEM_F64, .at = x, .nbytes = sizeof x};
    static const char *const codec[] = {"zfp", "fpzip", "round", "auto"};
    for (size_t i = 0; i < 4; i++) {
        const crn_codec_setting s = setting_of(&(trial){codec[i], "abs 1e-3"});
        const crn_codec_result r = store_and_read(&s, &v);
        assert_true(r.exact);
    }
}

/* zfp's fixed rate has no bound of its own: with one it gets stricter until that holds. */
static void test_what_fails_gets_stricter(void **state)
{
    (void)state;
    static double x[4000];
    fill((unsigned char *)x, CRN_ELEM_F64, 4000, smooth);
    const crn_codec_setting s = setting_of(&(trial){"zfp:rate=8", "abs 0.05"});
    const crn_codec_values v = {.elem = CRN_ELEM_F64, .at = x, .nbytes = sizeof x};
    const crn_codec_result r = store_and_read(&s, &v);
    assert_int_equal(r.fallback, CRN_FALLBACK_STRICTER);
    assert_true(r.error > 0 && r.error <= 0.05);
}

/* The judge itself, at the very edge: neighbours of a bound, and differences that rounding hides.
 */
static void test_judge_is_exact(void **state)
{
    (void)state;
    double error;
    const crn_loss tenth = {.absolute = 0.1};
    double x = 1, y = 1 + 0.1; /* the difference of these doubles is a little more than 0.1 */
    assert_false(crn_loss_holds(CRN_ELEM_F64, &x, &y, 1, &tenth, &error));
    x = 0;
    y = 0.1;
    assert_true(crn_loss_holds(CRN_ELEM_F64, &x, &y, 1, &tenth, &error));
    y = nextafter(0.1, 1);
    assert_false(crn_loss_holds(CRN_ELEM_F64, &x, &y, 1, &tenth, &error));
    x = 0x1p-60; /* 1 + 2^-60 rounds to 1 */
    y = -1;
    const crn_loss one = {.absolute = 1};
    assert_false(crn_loss_holds(CRN_ELEM_F64, &x, &y, 1, &one, &error));
    x = -0x1p-60;
    assert_true(crn_loss_holds(CRN_ELEM_F64, &x, &y, 1, &one, &error));
    const crn_loss half = {.relative = 0.5};
    x = 3;
    y = 1.5;
    assert_true(crn_loss_holds(CRN_ELEM_F64, &x, &y, 1, &half, &error));
    y = nextafter(1.5, 0);
    assert_false(crn_loss_holds(CRN_ELEM_F64, &x, &y, 1, &half, &error));
}

static void test_bad_settings_get_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *codec, *loss, *says;
    } bad[] = {
        {"fpzip:precision=41", "", "even"},
        {"fpzip:precision=2", "", "from 4 to 64"},
        {"fpzip:precision=66", "", "from 4 to 64"},
        {"fpzip:precision=40.5", "", "whole"},
        {"zfp:accuracy=0", "", "accuracy"},
        {"zfp:accuracy=x", "", "x"},
        {"zfp:rate=70", "", "rate"},
        {"zfp:rate=8,precision=20", "", "one of its parameters"},
        {"zfp:bits=3", "", "no parameter"},
        {"zfp:", "", "no parameter"},
        {"round", "", "bits="},
        {"round:bits=53", "", "from 1 to 52"},
        {"zstd:level=20", "", "levels"},
        {"gzip", "", "no codec"},
        {"zstd", "abs 1e-3", "loses nothing"},
        {"zfp", "abs -1", "above 0"},
        {"zfp", "rel 2", "below 1"},
        {"zfp", "1e-3", "no loss"},
        {"zfp", "abs 1 abs 2", "both"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        crn_codec_setting s;
        assert_fails(crn_codec_parse(bad[i].codec, bad[i].loss, &s), CAIRN_EINVAL, bad[i].says);
    }
}

static void test_settings_are_printed_as_they_are_read(void **state)
{
    (void)state;
    static const char *const same[] = {"none",
                                       "zstd:level=3,shuffle",
                                       "lz4:shuffle",
                                       "zfp:accuracy=1e-08",
                                       "fpzip:precision=40",
                                       "round:bits=12",
                                       "zfp:rate=16,zeros",
                                       "f16"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        char text[CRN_CODEC_TEXT];
        crn_codec_setting s;
        assert_ok(crn_codec_parse(same[i], "", &s));
        assert_string_equal(crn_codec_print(&s, text), same[i]);
    }
    char text[CRN_CODEC_TEXT];
    crn_codec_setting s;
    assert_ok(crn_codec_parse("zfp", "rel 1e-4, abs 0.5", &s));
    assert_string_equal(crn_loss_print(&s.loss, text), "abs 0.5 rel 0.0001");
}

/* Every byte damaged, every length: refused, or harmless within the block, without a crash. */
static void test_damage_does_no_harm(void **state)
{
    (void)state;
    static double x[256], back[256];
    static unsigned char bad[sizeof dst];
    fill((unsigned char *)x, CRN_ELEM_F64, 256, smooth);
    for (size_t t = 0; t < NTRIALS; t++) {
        const crn_codec_setting s = setting_of(&trials[t]);
        const crn_codec_values v = {CRN_ELEM_F64, x, sizeof x, {2, {16, 16}, 5}};
        const crn_codec_result r = store_and_read(&s, &v);
        if (r.codec == 0)
            continue;
        const crn_codec_ops *codec = crn_codec_of_id(r.codec);
        for (size_t i = 0; i < r.n; i++) {
            memcpy(bad, dst, r.n);
            bad[i] ^= 0x41;
            const cairn_status rc =
                crn_codec_decode(codec, CRN_ELEM_F64, bad, r.n, back, sizeof back, work);
            assert_true(rc == CAIRN_ECORRUPT || rc == CAIRN_OK);
            assert_int_equal(crn_codec_decode(codec, CRN_ELEM_F64, dst, i, back, sizeof back, work),
                             CAIRN_ECORRUPT);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_setting_keeps_its_promise),
        cmocka_unit_test(test_no_values),
        cmocka_unit_test(test_specials_touch_no_neighbour),
        cmocka_unit_test(test_few_specials_need_not_cost_the_rate),
        cmocka_unit_test(test_tolerance_below_spacing),
        cmocka_unit_test(test_what_fails_gets_stricter),
        cmocka_unit_test(test_judge_is_exact),
        cmocka_unit_test(test_bad_settings_get_a_sentence),
        cmocka_unit_test(test_settings_are_printed_as_they_are_read),
        cmocka_unit_test(test_damage_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
