/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The Kolmogorov-Smirnov test of two samples of the same size n. The distance is k / n, and of all
 * orders in which the 2n values may come, the share with at least that distance is
 *
 *     2 sum over j >= 1 of (-1)^(j + 1) C(2n, n - jk) / C(2n, n)
 *
 * by reflection (Gnedenko and Korolyuk 1951).
 */
#include "validate/validate.h"

#include <math.h>
#include <stdlib.h>

/* By value, NaN behind all others and equal to itself. */
static int compare(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    if (isnan(x) || isnan(y))
        return (isnan(x) != 0) - (isnan(y) != 0);
    return (x > y) - (x < y);
}

/* The largest difference of the numbers of values in both that are not above a value. */
static size_t largest_gap(const double *x, const double *y, size_t n)
{
    size_t i = 0, j = 0, most = 0;
    while (i < n && j < n) {
        const int order = compare(&x[i], &y[j]);
        const double at = order <= 0 ? x[i] : y[j];
        while (order <= 0 && i < n && compare(&x[i], &at) == 0)
            i++;
        while (order >= 0 && j < n && compare(&y[j], &at) == 0)
            j++;
        most = CRN_MAX(most, i > j ? i - j : j - i);
    }
    return most;
}

/* ln of C(2n, n - m) / C(2n, n), a product of (n - i) / (n + m - i). Logarithms of factorials of
 * large numbers would leave no digits of their difference: Stirling's series is subtracted by hand.
 */
static double log_share(double n, double m)
{
    enum { FEW = 64 };
    double sum = 0;
    if (m > n)
        return -INFINITY;
    if (n - m < FEW || n < 4 * FEW) {
        for (double i = 0; i < m; i++)
            sum += log1p(-m / (n + m - i));
        return sum;
    }
    /* ln n!^2 / ((n - m)! (n + m)!) with ln k! = (k + 1/2) ln k - k + 1/(12k) - 1/(360k^3) + c */
    const double q = m / n, low = n - m, high = n + m;
    sum = -(low + 0.5) * log1p(-q) - (high + 0.5) * log1p(q);
    sum += (2 / n - 1 / low - 1 / high) / 12;
    return sum - (2 / (n * n * n) - 1 / (low * low * low) - 1 / (high * high * high)) / 360;
}

static double probability(size_t n, size_t k)
{
    double sum = 0;
    if (k == 0)
        return 1;
    for (size_t j = 1; j <= n / k; j++) {
        const double term = exp(log_share((double)n, (double)(j * k)));
        sum += j % 2 ? term : -term;
        if (term < 1e-18 * fabs(sum))
            break;
    }
    return fmin(1, fmax(0, 2 * sum));
}

crn_ks crn_ks_test(double *x, double *y, size_t n)
{
    if (n == 0)
        return (crn_ks){0, 1};
    qsort(x, n, sizeof *x, compare);
    qsort(y, n, sizeof *y, compare);
    const size_t k = largest_gap(x, y, n);
    return (crn_ks){(double)k / (double)n, probability(n, k)};
}
