/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Statistics of two arrays, each against a reference of another make: sums in quadruple precision,
 * a similarity by the plain sum over each window, all orders of two small samples, and figures that
 * numpy gave for the same numbers.
 */
#include <float.h>
#include <math.h>

#include "harness/harness.h"
#include "validate/validate.h"

enum { N = 50000 };

/* What numpy 1.24 gave, sums in long double. */
#define NUMPY_MAX         0.00049998381780103074
#define NUMPY_RMS         0.00028832639543377827
#define NUMPY_PSNR        50.80164793395452
#define NUMPY_RHO         4.9497384118306407e-05
#define NUMPY_INFORMATION 7.2303210101591358
#define NUMPY_BITS        9

static double x_all[N], y_all[N];

/* Numbers in [0, 1) that are easily made by another program, too. */
static double next_number(uint64_t *s)
{
    *s = *s * 6364136223846793005ULL + 1442695040888963407ULL;
    return (double)(*s >> 11) * 0x1p-53;
}

static void make_noise(double mean, double size, double error)
{
    uint64_t s = 42;
    for (size_t i = 0; i < N; i++) {
        x_all[i] = mean + size * sin(0.001 * (double)i) + size * 0.1 * next_number(&s);
        y_all[i] = x_all[i] + error * (next_number(&s) - 0.5);
    }
}

/* 1 - rho in quadruple precision, in two passes over all. */
static double plain_decorrelation(const double *x, const double *y, size_t n)
{
    __float128 mx = 0, my = 0, xx = 0, yy = 0, xy = 0;
    for (size_t i = 0; i < n; i++) {
        mx += x[i];
        my += y[i];
    }
    mx /= n;
    my /= n;
    for (size_t i = 0; i < n; i++) {
        xx += (x[i] - mx) * (x[i] - mx);
        yy += (y[i] - my) * (y[i] - my);
        xy += (x[i] - mx) * (y[i] - my);
    }
    const __float128 r = (xx * yy - xy * xy) / (xx * yy); /* 1 - rho^2 */
    return (double)r / (1 + sqrt(1 - (double)r));
}

static double plain_rms(const double *x, const double *y, size_t n)
{
    __float128 sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += ((__float128)y[i] - x[i]) * ((__float128)y[i] - x[i]);
    return sqrt((double)(sum / n));
}

static bool is_close(double a, double b, double by)
{
    return fabs(a - b) <= by * fabs(b);
}

static void test_pair_agrees_with_wide_sums(void **state)
{
    (void)state;
    static const double mean[] = {0, 1, 1e6, -1e12}, error[] = {1e-1, 1e-5, 1e-3, 1e-2};
    for (size_t i = 0; i < 4; i++) {
        crn_deviation p = {0};
        make_noise(mean[i], 1, error[i]);
        crn_deviation_add(&p, x_all, y_all, N);
        assert_int_equal(p.n, N);
        const double want = plain_decorrelation(x_all, y_all, N);
        if (!is_close(crn_deviation_decorrelation(&p), want, i == 3 ? 1e-7 : 1e-9))
            fail_msg("1 - rho with mean %g: %.17g, not %.17g", mean[i],
                     crn_deviation_decorrelation(&p), want);
        assert_true(is_close(crn_deviation_rms(&p), plain_rms(x_all, y_all, N), 1e-12));
    }
}

/* As numpy has it for the same numbers: max(abs(d)), sqrt(mean(d**2)), and 20 log10(ptp(x) / rms),
 * with x = 1 + 0.1 u and y = x + 1e-3 (u - 0.5) of the numbers above, from the seed 42. */
static void test_pair_agrees_with_numpy(void **state)
{
    (void)state;
    crn_deviation p = {0};
    uint64_t s = 42;
    for (size_t i = 0; i < N; i++) {
        x_all[i] = 1 + 0.1 * next_number(&s);
        y_all[i] = x_all[i] + 1e-3 * (next_number(&s) - 0.5);
    }
    crn_deviation_add(&p, x_all, y_all, N);
    assert_true(is_close(crn_deviation_error(&p), NUMPY_MAX, 1e-12));
    assert_true(is_close(crn_deviation_rms(&p), NUMPY_RMS, 1e-12));
    assert_true(is_close(crn_deviation_psnr(&p), NUMPY_PSNR, 1e-12));
    assert_true(is_close(crn_deviation_decorrelation(&p), NUMPY_RHO, 1e-9));
}

static void test_pair_may_be_cut_anywhere(void **state)
{
    (void)state;
    crn_deviation all = {0}, cut = {0}, merged = {0};
    make_noise(3, 2, 1e-4);
    crn_deviation_add(&all, x_all, y_all, N);
    for (size_t at = 0, n = 1; at < N; at += n, n = n * 3 % 977 + 1) {
        crn_deviation piece = {0};
        n = CRN_MIN(n, (size_t)N - at);
        crn_deviation_add(&cut, x_all + at, y_all + at, n);
        crn_deviation_add(&piece, x_all + at, y_all + at, n);
        crn_deviation_merge(&merged, &piece);
    }
    const crn_deviation *each[] = {&cut, &merged};
    for (size_t i = 0; i < 2; i++) {
        assert_true(each[i]->n == N && each[i]->error == all.error && each[i]->min == all.min);
        assert_true(is_close(crn_deviation_rms(each[i]), crn_deviation_rms(&all), 1e-12));
        assert_true(is_close(crn_deviation_decorrelation(each[i]),
                             crn_deviation_decorrelation(&all), 1e-9));
    }
}

static crn_deviation pair_of(const double *x, const double *y, size_t n)
{
    crn_deviation p = {0};
    crn_deviation_add(&p, x, y, n);
    return p;
}

static void test_pair_special_cases(void **state)
{
    (void)state;
    crn_deviation p = {0};
    assert_true(crn_deviation_error(&p) == 0 && crn_deviation_rms(&p) == 0 &&
                isinf(crn_deviation_psnr(&p)));
    assert_true(crn_deviation_decorrelation(&p) == 0);
    p = pair_of((double[]){2, 2, 2}, (double[]){2, 2, 2}, 3); /* constant, and the same */
    assert_true(crn_deviation_decorrelation(&p) == 0 && crn_deviation_psnr(&p) == INFINITY);
    p = pair_of((double[]){2, 2, 2}, (double[]){3, 3, 3}, 3); /* both constant */
    assert_true(crn_deviation_decorrelation(&p) == 1 && crn_deviation_psnr(&p) == -INFINITY);
    p = pair_of((double[]){1, 2, 3}, (double[]){2, 2, 2}, 3); /* one of them */
    assert_true(crn_deviation_decorrelation(&p) == 1 && crn_deviation_error(&p) == 1);
    p = pair_of((double[]){1, 2, 3}, (double[]){3, 2, 1}, 3); /* the other way round */
    assert_true(is_close(crn_deviation_decorrelation(&p), 2, 1e-15));
    p = pair_of((double[]){1, NAN, INFINITY}, (double[]){1.5, -NAN, INFINITY}, 3);
    assert_true(p.n == 1 && p.nspecial == 2 && crn_deviation_error(&p) == 0.5);
    p = pair_of((double[]){1, 2, INFINITY}, (double[]){1, NAN, -INFINITY}, 3);
    assert_true(p.nbroken == 2 && crn_deviation_error(&p) == INFINITY &&
                crn_deviation_rms(&p) == INFINITY);
    assert_true(crn_deviation_decorrelation(&p) == 1 && crn_deviation_psnr(&p) == -INFINITY);
}

static void test_pair_of_any_scale(void **state)
{
    (void)state;
    static const double scale[] = {1, 0x1p1000, 0x1p-1040};
    double want = 0;
    for (size_t i = 0; i < 3; i++) {
        make_noise(0, 8, 0.25);
        for (size_t k = 0; k < N; k++) { /* no digits are lost where numbers are subnormal */
            x_all[k] = rint(x_all[k] * 0x1p20) * 0x1p-20 * scale[i];
            y_all[k] = rint(y_all[k] * 0x1p20) * 0x1p-20 * scale[i];
        }
        const crn_deviation p = pair_of(x_all, y_all, N);
        want = i == 0 ? crn_deviation_decorrelation(&p) : want;
        assert_true(want > 0 && is_close(crn_deviation_decorrelation(&p), want, 1e-9));
    }
}

/* --- structure ------------------------------------------------------------------------------ */

enum { ROWS = 37, COLUMNS = 29 };

/* The similarity by its definition: each window by itself. */
static double plain_ssim(const double *x, const double *y, size_t nrows, size_t ncolumns)
{
    double low = INFINITY, high = -INFINITY, sum = 0, w[11][11], all = 0;
    size_t n = 0;
    for (size_t i = 0; i < nrows * ncolumns; i++) {
        low = fmin(low, fmin(x[i], y[i]));
        high = fmax(high, fmax(x[i], y[i]));
    }
    for (int i = 0; i < 11; i++)
        for (int j = 0; j < 11; j++)
            all += w[i][j] = exp(-((i - 5) * (i - 5) + (j - 5) * (j - 5)) / (2 * 1.5 * 1.5));
    for (size_t r = 0; r + 11 <= nrows; r++)
        for (size_t c = 0; c + 11 <= ncolumns; c++, n++) {
            double a = 0, b = 0, aa = 0, bb = 0, ab = 0;
            for (size_t i = 0; i < 121; i++) {
                const size_t at = (r + i / 11) * ncolumns + c + i % 11;
                const double u = rint((x[at] - low) / (high - low) * 255) / 255;
                const double v = rint((y[at] - low) / (high - low) * 255) / 255;
                const double weight = w[i / 11][i % 11] / all;
                a += weight * u;
                b += weight * v;
                aa += weight * u * u;
                bb += weight * v * v;
                ab += weight * u * v;
            }
            sum += (2 * a * b + 1e-8) * (2 * (ab - a * b) + 1e-8) /
                   ((a * a + b * b + 1e-8) * (aa - a * a + bb - b * b + 1e-8));
        }
    return sum / (double)n;
}

static double ssim_of(size_t nrows, size_t ncolumns)
{
    double s;
    assert_ok(crn_ssim(x_all, y_all, nrows, ncolumns, &s));
    return s;
}

static void test_ssim_agrees_with_its_definition(void **state)
{
    (void)state;
    static const double error[] = {1e-4, 1e-2, 0.3, 5};
    double before = 1;
    for (size_t i = 0; i < 4; i++) {
        make_noise(1, 1, error[i]);
        const double s = ssim_of(ROWS, COLUMNS);
        assert_true(is_close(s, plain_ssim(x_all, y_all, ROWS, COLUMNS), 1e-9));
        assert_true(s <= before);
        before = s;
    }
    assert_true(before < 0.5);
}

static void test_ssim_special_cases(void **state)
{
    (void)state;
    make_noise(1, 1, 0);
    assert_true(is_close(ssim_of(ROWS, COLUMNS), 1, 1e-12));
    assert_true(ssim_of(0, 5) == 1 && ssim_of(1, 1) == 1);
    assert_true(is_close(ssim_of(4, 300), 1, 1e-12) && is_close(ssim_of(300, 2), 1, 1e-12));
    x_all[536] = y_all[536] = NAN;
    assert_true(is_close(ssim_of(ROWS, COLUMNS), 1, 1e-12));
    y_all[536] = 1; /* broken windows count 0, the others 1 */
    assert_true(ssim_of(ROWS, COLUMNS) < 0.95);
    for (size_t i = 0; i < N; i++)
        x_all[i] = y_all[i] = 3;
    assert_true(is_close(ssim_of(ROWS, COLUMNS), 1, 1e-12));
    for (size_t i = 0; i < N; i++)
        x_all[i] = y_all[i] = i % 2 ? DBL_MAX : -DBL_MAX;
    assert_true(is_close(ssim_of(ROWS, COLUMNS), 1, 1e-12));
}

/* --- distribution --------------------------------------------------------------------------- */

/* The share of all orders of n values of one sample (bits that are set) and n of another that are
 * as far apart as k / n. */
static double plain_probability(unsigned n, int k)
{
    unsigned far = 0, all = 0;
    for (unsigned order = 0; order < 1U << 2 * n; order++) {
        int gap = 0, most = 0;
        if ((unsigned)__builtin_popcount(order) != n)
            continue;
        for (unsigned i = 0; i < 2 * n; i++) {
            gap += order >> i & 1 ? 1 : -1;
            most = CRN_MAX(most, abs(gap));
        }
        all++;
        far += most >= k;
    }
    return (double)far / all;
}

static void test_ks_counts_all_orders(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= 8; n++)
        for (unsigned k = 0; k <= n; k++) {
            double x[8], y[8];
            for (unsigned i = 0; i < n; i++) { /* y is k values behind */
                x[i] = 2 * (n - i);
                y[i] = x[i] + 2 * k + 1 - (k == 0);
            }
            const crn_ks t = crn_ks_test(x, y, n);
            const unsigned gap = k == 0 ? 0 : k == n ? n : k + 1;
            assert_true(is_close(t.distance, (double)CRN_MIN(gap, n) / n, 1e-14));
            const double want = plain_probability(n, (int)CRN_MIN(gap, n));
            if (!is_close(t.p, want, 1e-12))
                fail_msg("%u of %u: %.17g, not %.17g", k, n, t.p, want);
        }
}

/* Large samples come to Kolmogorov's limit: 2 sum (-1)^(j+1) exp(-j^2 k^2 / n). */
static void test_ks_of_large_samples(void **state)
{
    (void)state;
    for (size_t k = 100; k <= 600; k += 100) {
        double limit = 0;
        for (size_t i = 0; i < N; i++) {
            x_all[i] = (double)i;
            y_all[i] = (double)i + (double)k - 0.5; /* 50000 and k: a gap of k */
        }
        for (int j = 1; j < 20; j++)
            limit += (j % 2 ? 2 : -2) * exp(-(double)(j * j * k * k) / N);
        const crn_ks t = crn_ks_test(x_all, y_all, N);
        assert_true(is_close(t.distance, (double)k / N, 1e-12));
        assert_true(is_close(t.p, limit, 2e-3));
    }
}

static void test_ks_special_cases(void **state)
{
    (void)state;
    double x[] = {1, 1, 2, NAN}, y[] = {NAN, 1, 2, 1};
    assert_true(crn_ks_test(x, y, 4).p == 1 && crn_ks_test(x, y, 0).p == 1);
    double a[] = {-0., 0.}, b[] = {0., 0.};
    assert_true(crn_ks_test(a, b, 2).distance == 0);
    double far[] = {1, NAN, 3, NAN}, near[] = {1, 2, 3, INFINITY};
    assert_true(crn_ks_test(far, near, 4).distance == 0.5);
}

/* --- bits ----------------------------------------------------------------------------------- */

/* Values whose upper bits of the mantissa tell of the neighbour, and whose lower ones are noise. */
static void test_bits_tell_noise(void **state)
{
    (void)state;
    static uint64_t bits[N];
    uint64_t s = 3;
    for (unsigned keep = 4; keep <= 20; keep += 8) {
        crn_bits b = {.width = 64};
        double each[64];
        for (size_t i = 0; i < N; i++) {
            const uint64_t slow = (i / 50 * 2654435761U) << 20 & ((1ULL << 52) - 1);
            const uint64_t noise = (uint64_t)(next_number(&s) * 0x1p52);
            const uint64_t low = (1ULL << (52 - keep)) - 1;
            bits[i] = 0x3ffULL << 52 | (slow & ~low) | (noise & low);
        }
        crn_bits_add(&b, bits, N);
        assert_int_equal(b.n, N - 1);
        assert_true(crn_bits_information(&b, each) > keep * 0.7);
        for (unsigned k = 0; k < 52 - keep; k++)
            assert_true(each[k] < 1e-3);
        assert_true(crn_bits_needed(&b, 0.99) >= (int)keep - 1 &&
                    crn_bits_needed(&b, 0.99) <= (int)keep);
    }
}

/* As numpy gives it: mutual information of each bit of neighbours of x = 1 + i / 4096 + noise. */
static void test_bits_agree_with_numpy(void **state)
{
    (void)state;
    crn_bits b = {.width = 64};
    double each[64];
    uint64_t s = 42;
    for (size_t i = 0; i < N; i++)
        x_all[i] = 1 + (double)(i % 4096) / 4096 * 0.99 + 0x1p-10 * next_number(&s);
    crn_bits_add(&b, x_all, N);
    const double sum = crn_bits_information(&b, each);
    assert_true(is_close(sum, NUMPY_INFORMATION, 1e-9));
    assert_int_equal(crn_bits_needed(&b, 0.99), NUMPY_BITS);
}

static void test_bits_special_cases(void **state)
{
    (void)state;
    float single[N];
    uint64_t s = 7;
    crn_bits none = {.width = 64}, constant = {.width = 32}, noise = {.width = 32};
    assert_int_equal(crn_bits_needed(&none, 0.99), -1);
    for (size_t i = 0; i < N; i++)
        single[i] = i % 100 == 5 ? NAN : 0.1F;
    crn_bits_add(&constant, single, N);
    assert_int_equal(constant.n, N - 1 - 2 * (N / 100));
    assert_int_equal(crn_bits_needed(&constant, 0.99), -1);
    for (size_t i = 0; i < N; i++)
        single[i] = (float)(1 + next_number(&s));
    crn_bits_add(&noise, single, N);
    double each[64];
    assert_true(crn_bits_information(&noise, each) < 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pair_agrees_with_wide_sums),
                                       cmocka_unit_test(test_pair_agrees_with_numpy),
                                       cmocka_unit_test(test_pair_may_be_cut_anywhere),
                                       cmocka_unit_test(test_pair_special_cases),
                                       cmocka_unit_test(test_pair_of_any_scale),
                                       cmocka_unit_test(test_ssim_agrees_with_its_definition),
                                       cmocka_unit_test(test_ssim_special_cases),
                                       cmocka_unit_test(test_ks_counts_all_orders),
                                       cmocka_unit_test(test_ks_of_large_samples),
                                       cmocka_unit_test(test_ks_special_cases),
                                       cmocka_unit_test(test_bits_tell_noise),
                                       cmocka_unit_test(test_bits_agree_with_numpy),
                                       cmocka_unit_test(test_bits_special_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
