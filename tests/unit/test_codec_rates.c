/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Outside figures: the compression rates of Lorenz-96 states (F = 6, dt 0.01, after 10 units of
 * time) that seed 003 prints in its Table 9.2. Once with one call for the whole state, within 0.5%,
 * once in blocks of 64 KiB, within 1%, and by the bytes of a file, within 4%. And what becomes of
 * the rate of whole arrays when they are cut into blocks.
 *
 * NEEDS: lz4 zstd zfp fpzip random123
 */
#include "harness/encode.h"
#include "harness/model.h"
#include "harness/scratch.h"

#include <math.h>

enum { N = 250000, BLOCK = 64 << 10 };

/* --- Lorenz-96 ------------------------------------------------------------------------------ */

/* dx_i / dt = (x_{i+1} - x_{i-2}) x_{i-1} - x_i + F */
static void slope(const double *x, double *dx)
{
    const double force = 6;
    dx[0] = (x[1] - x[N - 2]) * x[N - 1] - x[0] + force;
    dx[1] = (x[2] - x[N - 1]) * x[0] - x[1] + force;
    for (size_t i = 2; i < N - 1; i++)
        dx[i] = (x[i + 1] - x[i - 2]) * x[i - 1] - x[i] + force;
    dx[N - 1] = (x[0] - x[N - 3]) * x[N - 2] - x[N - 1] + force;
}

/* A step of the classical Runge-Kutta method. */
static void step(double *x, double (*k)[N], double *y, double dt)
{
    static const double at[] = {0.5, 0.5, 1};
    slope(x, k[0]);
    for (int s = 0; s < 3; s++) {
        for (size_t i = 0; i < N; i++)
            y[i] = x[i] + at[s] * dt * k[s][i];
        slope(y, k[s + 1]);
    }
    for (size_t i = 0; i < N; i++)
        x[i] += dt / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]);
}

static double state_x[N];

static void spin_up(void)
{
    static double k[4][N], y[N];
    crn_rng r = crn_rng_of(7, 96); /* rates do not depend on it */
    for (size_t i = 0; i < N; i++)
        state_x[i] = 6 + 0.01 * (crn_rng_unit(&r) - 0.5);
    for (int n = 0; n < 1000; n++)
        step(state_x, k, y, 0.01);
}

/* --- rates ---------------------------------------------------------------------------------- */

static double rate_in(const char *codec, const double *x, size_t nbytes, size_t block,
                      crn_codec_shape shape)
{
    unsigned char *dst, *work;
    crn_codec_setting s;
    size_t sum = 0;
    assert_ok(crn_codec_parse(codec, "", &s));
    assert_ok(crn_alloc(&dst, crn_codec_store_bound(block)));
    assert_ok(crn_alloc_aligned(
        &work, CRN_ROUND_UP(crn_codec_store_scratch(&s, block), (size_t)CRN_CODEC_ALIGN),
        CRN_CODEC_ALIGN));
    for (size_t at = 0; at < nbytes; at += block) {
        crn_codec_values v = {CRN_ELEM_F64, (const unsigned char *)x + at,
                              CRN_MIN(block, nbytes - at), shape};
        crn_codec_result r;
        v.shape.first = at / sizeof *x;
        assert_ok(crn_codec_store(&s, &v, dst, work, &r));
        assert_int_equal(r.fallback, CRN_FALLBACK_NONE);
        sum += r.codec ? r.n : v.nbytes;
    }
    free(dst);
    free(work);
    return (double)nbytes / (double)sum;
}

/* The rate by the bytes of a part file with some states, which has a head, tables and padding. */
static double rate_of_file(const char *codec)
{
    enum { STATES = 4 };
    crn_part *part;
    crn_part_info info;
    crn_draft *d;
    assert_ok(crn_part_create(dir, "rates", &model_id, &model_options, &part));
    assert_ok(crn_draft_begin(part, 1, &d));
    for (int k = 0; k < STATES; k++) {
        char name[16];
        size_t v;
        snprintf(name, sizeof name, "state %d", k);
        const crn_var_spec spec = {
            .name = name, .type = "float64", .item = 8, .block = BLOCK, .nbytes = sizeof state_x};
        assert_ok(crn_draft_add(d, &spec, &v));
        test_encode(d, v, codec, "");
        assert_ok(crn_draft_put_all(d, v, state_x));
    }
    assert_ok(crn_draft_commit(d, 1, NULL));
    crn_part_describe(part, &info);
    crn_part_close(part);
    assert_int_equal(unlinkat(dir, "rates", 0), 0);
    return STATES * (double)sizeof state_x / (double)info.file_bytes;
}

static void test_table_of_seed_003(void **state)
{
    (void)state;
    static const struct {
        const char *codec;
        double rate;
    } row[] = {
        {"fpzip:precision=32", 2.332},
        {"fpzip:precision=40", 1.806},
        {"fpzip:precision=48", 1.473},
        {"zfp:precision=32", 1.898},
        {"zfp:precision=40", 1.534},
        {"zfp:precision=48", 1.287},
        {"zfp:accuracy=1e-6", 2.240},
        {"zfp:accuracy=1e-8", 1.799},
        {"zfp:accuracy=1e-10", 1.504},
        {"f32", 2},
        {"f16", 4},
    };
    spin_up();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const double whole =
            rate_in(row[i].codec, state_x, sizeof state_x, sizeof state_x, (crn_codec_shape){0});
        const double blocks =
            rate_in(row[i].codec, state_x, sizeof state_x, BLOCK, (crn_codec_shape){0});
        const double file = rate_of_file(row[i].codec);
        print_message("%-20s %.3f whole %.3f in blocks %.3f file %.3f\n", row[i].codec, row[i].rate,
                      whole, blocks, file);
        assert_true(fabs(file / row[i].rate - 1) <= 0.04);
        assert_true(fabs(whole / row[i].rate - 1) <= 0.005);
        assert_true(fabs(blocks / row[i].rate - 1) <= 0.01);
    }
}

/* --- arrays in blocks ----------------------------------------------------------------------- */

/* Waves in all directions and a little noise. */
static double *make_field(const uint64_t *extent, uint32_t ndims)
{
    const size_t nz = ndims > 2 ? extent[0] : 1, ny = extent[ndims - 2], nx = extent[ndims - 1];
    crn_rng r = crn_rng_of(21, ndims);
    double *x, wave[3][4096];
    assert_ok(crn_alloc(&x, nx * ny * nz));
    for (int d = 0; d < 3; d++) {
        const double n = (double)(d == 0 ? nz : d == 1 ? ny : nx);
        for (size_t i = 0; i < (size_t)n; i++)
            wave[d][i] = sin(6.28 * (double)i / n * 3) + 0.3 * cos(6.28 * (double)i / n * 11 + d);
    }
    for (size_t i = 0; i < nx * ny * nz; i++)
        x[i] = wave[0][i / nx / ny] * wave[1][i / nx % ny] * wave[2][i % nx] +
               wave[2][i % nx] * wave[1][i / nx % ny] + 1e-4 * crn_rng_unit(&r);
    return x;
}

static void test_arrays_in_blocks(void **state)
{
    (void)state;
    static const struct {
        uint32_t ndims;
        uint64_t extent[3];
        const char *codec;
    } c[] = {{2, {960, 960}, "zfp:accuracy=1e-4"},
             {3, {192, 192, 192}, "zfp:accuracy=1e-4"},
             {2, {960, 960}, "fpzip:precision=40"}};
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        const crn_codec_shape shape = crn_codec_shape_of(c[i].ndims, c[i].extent);
        size_t nbytes = sizeof(double);
        crn_codec_setting s;
        for (uint32_t d = 0; d < c[i].ndims; d++)
            nbytes *= c[i].extent[d];
        double *x = make_field(c[i].extent, c[i].ndims);
        assert_ok(crn_codec_parse(c[i].codec, "", &s));
        const uint32_t block = crn_codec_block(&s, CRN_ELEM_F64, &shape);
        const double whole = rate_in(c[i].codec, x, nbytes, nbytes, shape);
        const double cut = rate_in(c[i].codec, x, nbytes, block, shape);
        print_message("%ud %s: whole %.3f, blocks of %u KiB %.3f of it\n", c[i].ndims, c[i].codec,
                      whole, block >> 10, cut / whole);
        assert_true(cut >= 0.95 * whole);
        free(x);
    }
}

/* A fixed rate is that rate, also in boxes with fewer dimensions than the array. */
static void test_a_fixed_rate_is_kept(void **state)
{
    (void)state;
    static const crn_codec_shape shape[] = {
        {1, {100000}, 0}, {2, {250, 400}, 0}, {3, {40, 50, 50}, 0}, {4, {10, 10, 20, 50}, 0}};
    double *x;
    assert_ok(crn_alloc(&x, 100000));
    for (size_t i = 0; i < 100000; i++)
        x[i] = sin((double)i / 50) + 0.1 * cos((double)i);
    for (size_t i = 0; i < 4; i++) {
        const double rate = rate_in("zfp:rate=16", x, 800000, BLOCK, shape[i]);
        if (rate < 3.8 || rate > 4.01)
            fail_msg("%u dimensions: %g values of 64 bits in 16 bits each", shape[i].ndims, rate);
    }
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_fixed_rate_is_kept),
        cmocka_unit_test(test_table_of_seed_003),
        cmocka_unit_test(test_arrays_in_blocks),
    };
    return cmocka_run_group_tests_name("codec_rates", tests, scratch_begin, scratch_end);
}
