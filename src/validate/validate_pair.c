/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Errors of pairs of values. A stretch has its means and central sums in two passes, and stretches
 * are merged as Chan, Golub and LeVeque (1983) do. Values are scaled by a power of two within a
 * stretch, and merged in a type with a wider range, so that squares of values near the largest or
 * the smallest number stay what they are.
 */
#include "validate/validate.h"

#include <math.h>

/* A stretch of pairs of finite values, scaled. */
typedef struct stretch {
    double x[CRN_PAIR_CHUNK], d[CRN_PAIR_CHUNK];
    size_t n;
} stretch;

static bool is_same_special(double x, double y)
{
    return (isnan(x) && isnan(y)) || x == y;
}

/* Take the finite pairs, and note what they are like. */
static void collect(crn_deviation *p, stretch *s, const double *x, const double *y, size_t n)
{
    s->n = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]) || !isfinite(y[i])) {
            *(is_same_special(x[i], y[i]) ? &p->nspecial : &p->nbroken) += 1;
            continue;
        }
        const double d = y[i] - x[i];
        p->error = fmax(p->error, fabs(d));
        p->min = p->n + s->n == 0 ? x[i] : fmin(p->min, x[i]);
        p->max = p->n + s->n == 0 ? x[i] : fmax(p->max, x[i]);
        s->x[s->n] = x[i];
        s->d[s->n++] = isfinite(d) ? d : copysign(1.7976931348623157e308, d);
    }
}

/* Divide by the power of two above the largest magnitude, whose exponent is returned. */
static int scale(double *v, size_t n)
{
    double most = 0;
    int e = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(v[i]));
    (void)frexp(most, &e);
    for (size_t i = 0; i < n; i++)
        v[i] = ldexp(v[i], -e);
    return e;
}

/* Deviations from about the mean, in place of the values; the mean itself is returned, in two parts
 * since one number may have too few digits for it: about, and what the deviations have left. */
static double center(double *v, size_t n, double *ret_left)
{
    double sum = 0, left = 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i];
    const double about = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        left += v[i] -= about;
    *ret_left = left / (double)n;
    return about;
}

static double product(const double *a, double left_a, const double *b, double left_b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (a[i] - left_a) * (b[i] - left_b);
    return sum;
}

static void add_stretch(crn_deviation *p, stretch *s)
{
    double lx, ld;
    if (s->n == 0)
        return;
    const int ex = scale(s->x, s->n), ed = scale(s->d, s->n);
    const double mx = center(s->x, s->n, &lx);
    const long double md = center(s->d, s->n, &ld);
    const crn_deviation more = {.n = s->n,
                                .about_x = ldexp(mx, ex),
                                .mean_x = ldexpl(lx, ex),
                                .mean_d = ldexpl(md + ld, ed),
                                .xx = ldexpl(product(s->x, lx, s->x, lx, s->n), 2 * ex),
                                .xd = ldexpl(product(s->x, lx, s->d, ld, s->n), ex + ed),
                                .dd = ldexpl(product(s->d, ld, s->d, ld, s->n), 2 * ed),
                                .min = p->min,
                                .max = p->max};
    crn_deviation_merge(p, &more);
}

void crn_deviation_add(crn_deviation *p, const double *x, const double *y, size_t n)
{
    stretch s;
    for (size_t at = 0; at < n; at += CRN_PAIR_CHUNK) {
        collect(p, &s, x + at, y + at, CRN_MIN(n - at, (size_t)CRN_PAIR_CHUNK));
        add_stretch(p, &s);
    }
}

static void merge_sums(crn_deviation *p, const crn_deviation *o)
{
    const long double n = p->n, m = o->n, all = n + m;
    const long double bx = ((long double)o->about_x - p->about_x) + (o->mean_x - p->mean_x);
    const long double bd = o->mean_d - p->mean_d;
    const long double share = n / all * m;
    p->xx += o->xx + bx * bx * share;
    p->xd += o->xd + bx * bd * share;
    p->dd += o->dd + bd * bd * share;
    p->mean_x += bx * (m / all);
    p->mean_d += bd * (m / all);
}

void crn_deviation_merge(crn_deviation *p, const crn_deviation *o)
{
    if (o->n > 0) {
        p->min = p->n == 0 ? o->min : fmin(p->min, o->min);
        p->max = p->n == 0 ? o->max : fmax(p->max, o->max);
        p->about_x = p->n == 0 ? o->about_x : p->about_x;
        merge_sums(p, o);
    }
    p->n += o->n;
    p->nspecial += o->nspecial;
    p->nbroken += o->nbroken;
    p->error = fmax(p->error, o->error);
}

double crn_deviation_error(const crn_deviation *p)
{
    return p->nbroken > 0 ? INFINITY : p->error;
}

double crn_deviation_rms(const crn_deviation *p)
{
    if (p->nbroken > 0)
        return INFINITY;
    return p->n == 0 ? 0 : (double)sqrtl(p->dd / (long double)p->n + p->mean_d * p->mean_d);
}

double crn_deviation_psnr(const crn_deviation *p)
{
    const double rms = crn_deviation_rms(p);
    if (rms == 0)
        return INFINITY;
    return 20 * (double)log10l(((long double)p->max - p->min) / rms);
}

double crn_deviation_decorrelation(const crn_deviation *p)
{
    if (p->nbroken > 0)
        return 1;
    if (p->error == 0)
        return 0;
    const long double yy = p->xx + 2 * p->xd + p->dd; /* of y, as of x */
    if (p->xx <= 0 || yy <= 0)
        return 1;
    /* 1 - rho^2 = (xx dd - xd^2) / (xx yy): what is subtracted there is small already */
    const long double rho = (p->xx + p->xd) / (sqrtl(p->xx) * sqrtl(yy));
    const long double rest = fmaxl((p->dd - p->xd / p->xx * p->xd) / yy, 0);
    return (double)(rho > 0 ? rest / (1 + rho) : 1 - rho);
}
