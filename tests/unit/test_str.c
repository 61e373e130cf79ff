/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Quantities, safe names and the nearest word.
 *
 * NEEDS: random123
 */
#include "harness/harness.h"

#include <locale.h>
#include <math.h>

static void test_parse_nbytes_accepts_what_people_write(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t nbytes;
    } cases[] = {
        {"0", 0},
        {"4096", 4096},
        {"64KiB", 65536},
        {"64k", 65536},
        {"1.5 GiB", 3ull << 29},
        {"10MB", 10000000},
        {"0.5K", 512},
        {".5K", 512},
        {"2T", 2ull << 40},
        {"1P", 1ull << 50},
        {"18446744073709551615", UINT64_MAX},
        {"9007199254740993", 9007199254740993}, /* 2^53 + 1: not a double */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t v;
        assert_ok(crn_parse_nbytes(cases[i].text, &v));
        assert_true(v == cases[i].nbytes);
    }
}

static void test_parse_nbytes_refuses_with_a_reason(void **state)
{
    (void)state;
    uint64_t v = 7;
    assert_fails(crn_parse_nbytes("", &v), CAIRN_EINVAL, "not a byte size");
    assert_fails(crn_parse_nbytes("-1", &v), CAIRN_EINVAL, "not a byte size");
    assert_fails(crn_parse_nbytes(".", &v), CAIRN_EINVAL, "not a byte size");
    assert_fails(crn_parse_nbytes("KiB", &v), CAIRN_EINVAL, "not a byte size");
    assert_fails(crn_parse_nbytes("12Q", &v), CAIRN_EINVAL, "no unit 'Q'");
    assert_fails(crn_parse_nbytes("1.2.3", &v), CAIRN_EINVAL, "no unit '.3'");
    assert_fails(crn_parse_nbytes("0x10", &v), CAIRN_EINVAL, "no unit 'x10'");
    assert_fails(crn_parse_nbytes("18446744073709551616", &v), CAIRN_EINVAL, "too large");
    assert_fails(crn_parse_nbytes("16384P", &v), CAIRN_EINVAL, "too large");
    assert_fails(crn_parse_nbytes("16384.0P", &v), CAIRN_EINVAL, "too large");
    assert_true(v == 7);
}

static void test_parse_seconds(void **state)
{
    (void)state;
    double v;
    assert_ok(crn_parse_seconds("90", &v));
    assert_true(v == 90);
    assert_ok(crn_parse_seconds("500ms", &v));
    assert_true(v == 0.5);
    assert_ok(crn_parse_seconds("5m", &v));
    assert_true(v == 300);
    assert_ok(crn_parse_seconds("1.5h", &v));
    assert_true(v == 5400);
    assert_ok(crn_parse_seconds("2 d", &v));
    assert_true(v == 172800);
    assert_fails(crn_parse_seconds("-1s", &v), CAIRN_EINVAL, "not a duration");
    assert_fails(crn_parse_seconds("inf", &v), CAIRN_EINVAL, "not a duration");
    assert_fails(crn_parse_seconds("5 weeks", &v), CAIRN_EINVAL, "no unit 'weeks'");
    assert_fails(crn_parse_seconds("1h30m", &v), CAIRN_EINVAL, "no unit 'h30m'");
}

static void test_parse_count_and_real(void **state)
{
    (void)state;
    uint64_t n;
    double x;
    assert_ok(crn_parse_count("18446744073709551615", &n));
    assert_true(n == UINT64_MAX);
    assert_fails(crn_parse_count("18446744073709551616", &n), CAIRN_EINVAL, "too large");
    assert_fails(crn_parse_count("", &n), CAIRN_EINVAL, "not a whole number");
    assert_fails(crn_parse_count("+1", &n), CAIRN_EINVAL, "not a whole number");
    assert_fails(crn_parse_count("1 ", &n), CAIRN_EINVAL, "not a whole number");
    assert_ok(crn_parse_real("-1.5e-3", &x));
    assert_true(x == -1.5e-3);
    assert_ok(crn_parse_real("+.5E+1", &x));
    assert_true(x == 5);
    assert_fails(crn_parse_real("nan", &x), CAIRN_EINVAL, "not a number");
    assert_fails(crn_parse_real("0x1p3", &x), CAIRN_EINVAL, "not a number");
    assert_fails(crn_parse_real("1e", &x), CAIRN_EINVAL, "not a number");
    assert_fails(crn_parse_real("1,5", &x), CAIRN_EINVAL, "not a number");
    assert_fails(crn_parse_real("1e999", &x), CAIRN_EINVAL, "too large");
}

/* A program with a decimal comma must read the same file in the same way. */
static void test_parse_ignores_locale(void **state)
{
    (void)state;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "fr_FR.UTF-8"))
        skip(); /* no such locale on this machine */
    double x;
    uint64_t n;
    assert_ok(crn_parse_real("1.5", &x));
    assert_ok(crn_parse_nbytes("1.5K", &n));
    setlocale(LC_NUMERIC, "C");
    assert_true(x == 1.5);
    assert_int_equal(n, 1536);
}

static void test_format_nbytes(void **state)
{
    (void)state;
    char buf[CRN_NUMBER_TEXT];
    assert_string_equal(crn_format_nbytes(0, buf, sizeof buf), "0 B");
    assert_string_equal(crn_format_nbytes(1023, buf, sizeof buf), "1023 B");
    assert_string_equal(crn_format_nbytes(1024, buf, sizeof buf), "1.00 KiB");
    assert_string_equal(crn_format_nbytes(65536, buf, sizeof buf), "64.0 KiB");
    assert_string_equal(crn_format_nbytes(1ull << 30, buf, sizeof buf), "1.00 GiB");
    assert_string_equal(crn_format_nbytes(UINT64_MAX, buf, sizeof buf), "16.0 EiB");
}

static void test_format_seconds(void **state)
{
    (void)state;
    char buf[CRN_NUMBER_TEXT];
    assert_string_equal(crn_format_seconds(0, buf, sizeof buf), "0.00 s");
    assert_string_equal(crn_format_seconds(5400, buf, sizeof buf), "1.50 h");
    assert_string_equal(crn_format_seconds(0.012, buf, sizeof buf), "12.0 ms");
    assert_string_equal(crn_format_seconds(59, buf, sizeof buf), "59.0 s");
    assert_string_equal(crn_format_seconds(3e-10, buf, sizeof buf), "0.30 ns");
    assert_string_equal(crn_format_seconds(1e7, buf, sizeof buf), "116 d");
}

/* What is printed can be typed in again. */
static void test_format_parses_back(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 1);
    char buf[CRN_NUMBER_TEXT];
    for (int i = 0; i < 2000; i++) {
        uint64_t n = crn_rng_u64(&rng) >> (crn_rng_below(&rng, 54) + 10), back;
        assert_ok(crn_parse_nbytes(crn_format_nbytes(n, buf, sizeof buf), &back));
        assert_true(fabs((double)back - (double)n) <= 0.006 * (double)n);
        double x = ldexp(crn_rng_unit(&rng), (int)crn_rng_below(&rng, 40) - 15), y;
        assert_ok(crn_parse_seconds(crn_format_seconds(x, buf, sizeof buf), &y));
        assert_true(fabs(y - x) <= 0.006 * x);
    }
}

static void test_name_is_safe(void **state)
{
    (void)state;
    char name[130];
    memset(name, 'a', sizeof name);
    name[128] = 0;
    assert_true(crn_name_is_safe(name));
    memset(name, 'a', sizeof name);
    name[129] = 0;
    assert_false(crn_name_is_safe(name));
    assert_true(crn_name_is_safe("Run_1.leg-2"));
    static const char *const bad[] = {"",    ".",   "..",  ".hidden",  "-rf",
                                      "a/b", "a b", "a\n", "\xc3\xa4", "a\\b"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(crn_name_is_safe(bad[i]));
}

static void test_edit_distance(void **state)
{
    (void)state;
    assert_int_equal(crn_edit_distance("", ""), 0);
    assert_int_equal(crn_edit_distance("", "abc"), 3);
    assert_int_equal(crn_edit_distance("verify", "verify"), 0);
    assert_int_equal(crn_edit_distance("verfy", "verify"), 1);
    assert_int_equal(crn_edit_distance("vreify", "verify"), 1);
    assert_int_equal(crn_edit_distance("kitten", "sitting"), 3);
    char word[CRN_WORD_MAX + 2];
    memset(word, 'w', sizeof word);
    word[CRN_WORD_MAX + 1] = 0;
    assert_int_equal(crn_edit_distance(word, word), 0);
    assert_int_equal(crn_edit_distance(word, "w"), CRN_WORD_MAX + 1);
}

static void test_nearest_hints_at_slips_only(void **state)
{
    (void)state;
    crn_nearest near = crn_nearest_to("verfy");
    assert_string_equal(near.hint, "");
    crn_nearest_offer(&near, "show");
    assert_string_equal(near.hint, "");
    crn_nearest_offer(&near, "very");
    crn_nearest_offer(&near, "verify");
    assert_string_equal(near.hint, "; did you mean 'very'?");
    near = crn_nearest_to("x");
    crn_nearest_offer(&near, "l");
    assert_string_equal(near.hint, "");
}

static void assert_clean(const char *text, const char *want)
{
    char copy[64];
    snprintf(copy, sizeof copy, "%s", text);
    crn_text_clean(copy);
    assert_string_equal(copy, want);
}

static void test_clean(void **state)
{
    (void)state;
    assert_clean("", "");
    assert_clean("plain, gr\xc3\xb6\xc3\x9f"
                 "er, \xe6\xb8\xa9\xe5\xba\xa6, \xf0\x9f\x8c\xa1",
                 "plain, gr\xc3\xb6\xc3\x9f"
                 "er, \xe6\xb8\xa9\xe5\xba\xa6, \xf0\x9f\x8c\xa1");
    assert_clean("\x1b[2J\n\x7f.", "?[2J??.");
    assert_clean("\xc2\x80.\xc2\x9b.\xc2\x9f.\xc2\xa0", "?.?.?.\xc2\xa0");    /* C1 */
    assert_clean("\xe2\x80\x8e\xe2\x80\x8f.\xe2\x80\x8d", "??.\xe2\x80\x8d"); /* directions */
    assert_clean("\xe2\x80\xaa\xe2\x80\xae.\xe2\x80\xaf", "??.\xe2\x80\xaf");
    assert_clean("\xe2\x81\xa6\xe2\x81\xa9.\xe2\x81\xaa", "??.\xe2\x81\xaa");
    assert_clean("\xe2\x80\xa8\xe2\x80\xa9.\xd8\x9c", "??.?"); /* lines */
    assert_clean("\x80.\xff.\xc0\xaf.\xed\xa0\x80.\xf4\x90\x80\x80", "?.?.??.???.????");
    assert_clean("cut \xe2\x80", "cut ??");
    assert_clean("cut \xf0\x9f\x8c", "cut ???");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_nbytes_accepts_what_people_write),
        cmocka_unit_test(test_parse_nbytes_refuses_with_a_reason),
        cmocka_unit_test(test_parse_seconds),
        cmocka_unit_test(test_parse_count_and_real),
        cmocka_unit_test(test_parse_ignores_locale),
        cmocka_unit_test(test_format_nbytes),
        cmocka_unit_test(test_format_seconds),
        cmocka_unit_test(test_format_parses_back),
        cmocka_unit_test(test_name_is_safe),
        cmocka_unit_test(test_edit_distance),
        cmocka_unit_test(test_clean),
        cmocka_unit_test(test_nearest_hints_at_slips_only),
    };
    return cmocka_run_group_tests_name("str", tests, NULL, NULL);
}
