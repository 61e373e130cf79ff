/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Codecs tried on the marks of a program: what is found agrees with what a session would store, the
 * confidence of a sample is what it says, and wrong questions get a sentence.
 *
 * TEST: ranks self 2
 *
 * NEEDS: lz4 zstd zfp fpzip random123
 */
#include "harness/session.h"

#include <cairn/codecs.h>
#include <math.h>

enum { ROWS = 1200, COLUMNS = 512 }; /* of a rank */

static double field[ROWS][COLUMNS];
static float flat[70000];
static int64_t number[3000];

static void make_trail(place *p, crn_comm *comm)
{
    cairn *c;
    place_init(p, comm, "[level]\nglobal = 1\n[compare]\ntrees = no\n");
    const uint64_t rank = (uint64_t)p->rank, n = (uint64_t)crn_comm_size(comm);
    crn_rng r = crn_rng_of(5, rank);
    for (size_t i = 0; i < ROWS; i++) /* rougher and rougher */
        for (size_t k = 0; k < COLUMNS; k++)
            field[i][k] = sin((double)i / 40) * cos((double)k / 30) +
                          1e-6 * (double)(i * i / 4 + 100) / 1e3 * crn_rng_unit(&r);
    for (size_t i = 0; i < sizeof flat / sizeof *flat; i++)
        flat[i] = (float)i;
    flat[11] = NAN;
    assert_ok(cairn_open(p->mpi, p->config, &c));
    assert_ok(cairn_protect_part(c, "field", field, CAIRN_FLOAT64, 2,
                                 (uint64_t[]){ROWS * n, COLUMNS}, (uint64_t[]){ROWS * rank, 0},
                                 (uint64_t[]){ROWS, COLUMNS}));
    assert_ok(cairn_protect(c, "flat", flat, CAIRN_FLOAT32, sizeof flat / sizeof *flat));
    assert_ok(cairn_protect(c, "number", number, CAIRN_INT64, sizeof number / sizeof *number));
    assert_ok(cairn_protect(c, "none", number, CAIRN_INT64, 0));
    assert_ok(cairn_mark(c, 7, CAIRN_LEVEL_GLOBAL));
    assert_ok(cairn_close(c));
    assert_ok(crn_comm_barrier(comm));
}

static cairn_sample *sample_of(const place *p, const char *name, uint64_t nbytes, uint64_t seed)
{
    char trail[96];
    cairn_sample *s;
    snprintf(trail, sizeof trail, "%s/trail", p->dir);
    const cairn_sample_options of = {.struct_bytes = sizeof of,
                                     .trail = trail,
                                     .run = "run-1",
                                     .version = 7,
                                     .variable = name,
                                     .sample_bytes = nbytes,
                                     .seed = seed};
    assert_ok(cairn_sample_take(&of, &s));
    return s;
}

static cairn_trial try_it(cairn_sample *s, const char *codec, const char *loss)
{
    cairn_trial t = {.struct_bytes = sizeof t};
    assert_ok(cairn_sample_try(s, codec, loss, CAIRN_TRIAL_ALL, &t));
    return t;
}

static void test_trials_of_a_field(void **state)
{
    place p;
    cairn_sample_info info = {.struct_bytes = sizeof info};
    make_trail(&p, *state);
    cairn_sample *s = sample_of(&p, "field", UINT64_C(1) << 30, 0);
    assert_ok(cairn_sample_describe(s, &info));
    assert_string_equal(info.type, "float64");
    assert_true(info.nbytes == sizeof field * (uint64_t)crn_comm_size(p.comm) &&
                info.sample_bytes == info.nbytes && info.nsample == info.nstretches);
    assert_true(info.ndims == 2 && info.bits > 2 && info.bits < 30);
    cairn_trial t = try_it(s, "none", "");
    assert_true(t.rate == 1 && t.error == 0 && isinf(t.psnr) && t.ssim == 1 && t.ks_p == 1);
    t = try_it(s, "zstd:shuffle", "");
    assert_true(t.rate > 1 && t.error == 0 && !t.lossy && t.encode > 0 && t.decode > 0);
    t = try_it(s, "zfp", "abs 1e-3");
    assert_string_equal(t.loss, "abs 0.001");
    assert_true(t.lossy && t.error > 0 && t.error <= 1e-3 && t.rms <= t.error && t.rate > 5);
    assert_true(t.rate_low == t.rate && t.rate_high == t.rate && t.exceeding == 0);
    assert_true(t.ssim > 0.9 && t.ssim < 1 && t.decorrelation > 0 && t.decorrelation < 1e-5);
    const double rate = t.rate;
    t = try_it(s, "zfp", "abs 1e-6");
    assert_true(t.error <= 1e-6 && t.rate < rate && t.ssim > 0.999);
    t = try_it(s, "f16", "rel 1e-9"); /* no value keeps it: all blocks fall back */
    assert_true(t.error == 0 && t.nunbound + t.nspecial == t.nblocks);
    cairn_sample_free(s);
    place_done(&p);
}

static void test_other_types(void **state)
{
    place p;
    cairn_sample_info info = {.struct_bytes = sizeof info};
    make_trail(&p, *state);
    cairn_sample *s = sample_of(&p, "flat", 0, 0);
    assert_ok(cairn_sample_describe(s, &info));
    assert_true(info.nspecial == (uint64_t)crn_comm_size(p.comm) && info.min == 0);
    cairn_trial t = try_it(s, "fpzip:precision=20", "");
    assert_true(t.naside == info.nspecial && isnan(t.ssim) && t.error > 0 && isfinite(t.error));
    cairn_sample_free(s);
    s = sample_of(&p, "number", 0, 0);
    assert_ok(cairn_sample_describe(s, &info));
    assert_string_equal(info.type, "bytes");
    t = try_it(s, "lz4", "");
    assert_true(t.rate > 50 && t.error == 0 && info.bits == -1);
    t = try_it(s, "zfp", "abs 1"); /* these are no numbers to it: they lose nothing */
    assert_true(t.rate >= 1 && t.error == 0);
    cairn_sample_free(s);
    s = sample_of(&p, "none", 0, 0);
    t = try_it(s, "zfp", "abs 1");
    assert_true(t.nblocks == 0 && t.rate == 1);
    cairn_sample_free(s);
    place_done(&p);
}

/* The interval has the rate of the whole variable for about 95 of 100 samples. */
static void test_confidence_is_what_it_says(void **state)
{
    place p;
    enum { TIMES = 30 };
    int nright = 0, nnarrow = 0;
    make_trail(&p, *state);
    if (p.rank != 0) {
        place_done(&p);
        return;
    }
    cairn_sample *s = sample_of(&p, "field", UINT64_C(1) << 30, 0);
    const double truth = try_it(s, "zfp", "abs 1e-7").rate;
    cairn_sample_free(s);
    for (uint64_t seed = 1; seed <= TIMES; seed++) {
        s = sample_of(&p, "field", 3 << 20, seed);
        const cairn_trial t = try_it(s, "zfp", "abs 1e-7");
        nright += t.rate_low <= truth && truth <= t.rate_high;
        nnarrow += t.rate_high < 2 * t.rate_low;
        assert_true(t.rate_low <= t.rate && t.rate <= t.rate_high && t.exceeding > 0);
        cairn_sample_free(s);
    }
    if (nright < TIMES * 9 / 10 || nnarrow < TIMES / 2)
        fail_msg("%d of %d intervals are right, %d are narrow", nright, TIMES, nnarrow);
    place_done(&p);
}

static void test_wrong_questions(void **state)
{
    place p;
    cairn_sample *s;
    char trail[96];
    make_trail(&p, *state);
    snprintf(trail, sizeof trail, "%s/trail", p.dir);
    cairn_sample_options of = {
        .struct_bytes = sizeof of, .trail = trail, .run = "run-1", .version = 7};
    cairn_trial t = {.struct_bytes = sizeof t};
    assert_int_equal(cairn_sample_take(&of, &s), CAIRN_EINVAL);
    of.variable = "fields";
    assert_int_equal(cairn_sample_take(&of, &s), CAIRN_ENOTFOUND);
    assert_non_null(strstr(cairn_error_text(), "no variable 'fields'"));
    of.variable = "field";
    of.version = 8;
    assert_int_equal(cairn_sample_take(&of, &s), CAIRN_ENOTFOUND);
    of.version = 7;
    assert_ok(cairn_sample_take(&of, &s));
    assert_int_equal(cairn_sample_try(s, "zpf", "", 0, &t), CAIRN_EINVAL);
    assert_int_equal(cairn_sample_try(s, "fpzip:precision=7", "", 0, &t), CAIRN_EINVAL);
    cairn_sample_free(s);
    cairn_sample_free(NULL);
    place_done(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trials_of_a_field),
        cmocka_unit_test(test_other_types),
        cmocka_unit_test(test_confidence_is_what_it_says),
        cmocka_unit_test(test_wrong_questions),
    };
    return run_mpi_tests(argc, argv, tests);
}
