/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Structural similarity of two planes. The window is a product of two one-dimensional ones: rows
 * are weighted along themselves as they come, and a ring of as many weighted rows as a window is
 * high is weighted across, so that memory is that of a few rows.
 */
#include "validate/validate.h"

#include <math.h>

enum { RADIUS = 5, WINDOW = 2 * RADIUS + 1, LEVELS = 255, NMOMENTS = 5 };

#define SIGMA    1.5
#define CONSTANT 1e-8

/* Weighted along a row, of each window in it: means of x, y, xx, yy, xy. Bad: the window has values
 * that are not finite; BROKEN: and not the same. */
typedef struct moments {
    double of[NMOMENTS];
    unsigned char bad;
} moments;

enum { SAME_SPECIAL = 1, BROKEN = 2 };

typedef struct plane {
    const double *x, *y;
    size_t nrows, ncolumns;
    double low, range;
    double weight_x[WINDOW], weight_y[WINDOW];
    size_t wide, high; /* of a window */
    moments *ring;     /* high rows of windows */
} plane;

static void make_weights(double *w, size_t n)
{
    const double middle = (double)(n - 1) / 2;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double off = ((double)i - middle) / SIGMA;
        sum += w[i] = exp(-off * off / 2);
    }
    for (size_t i = 0; i < n; i++)
        w[i] /= sum;
}

static void find_extremes(const double *v, size_t n, double *low, double *high)
{
    for (size_t i = 0; i < n; i++)
        if (isfinite(v[i])) {
            *low = fmin(*low, v[i]);
            *high = fmax(*high, v[i]);
        }
}

/* To [0, 1], in steps of 1/255; halves first, since a range may be beyond the largest number. */
static double level_of(const plane *p, double v)
{
    const double share = p->range > 0 ? (v / 2 - p->low) / p->range : 0;
    return rint(share * LEVELS) / LEVELS;
}

static void add_value(const plane *p, moments *m, double weight, double x, double y)
{
    if (!isfinite(x) || !isfinite(y)) {
        m->bad |= (isnan(x) && isnan(y)) || x == y ? SAME_SPECIAL : BROKEN;
        return;
    }
    const double a = level_of(p, x), b = level_of(p, y);
    const double of[NMOMENTS] = {a, b, a * a, b * b, a * b};
    for (int k = 0; k < NMOMENTS; k++)
        m->of[k] += weight * of[k];
}

static void weigh_row(const plane *p, size_t row, moments *to)
{
    const double *x = p->x + row * p->ncolumns, *y = p->y + row * p->ncolumns;
    for (size_t at = 0; at + p->wide <= p->ncolumns; at++) {
        to[at] = (moments){0};
        for (size_t i = 0; i < p->wide; i++)
            add_value(p, &to[at], p->weight_x[i], x[at + i], y[at + i]);
    }
}

static double similarity(const double *m)
{
    const double xx = m[2] - m[0] * m[0], yy = m[3] - m[1] * m[1], xy = m[4] - m[0] * m[1];
    return (2 * m[0] * m[1] + CONSTANT) * (2 * xy + CONSTANT) /
           ((m[0] * m[0] + m[1] * m[1] + CONSTANT) * (xx + yy + CONSTANT));
}

/* Weigh the ring across, its oldest row first: add up the windows that end in its newest row. */
static void add_windows(const plane *p, size_t row, double *sum, size_t *n)
{
    const size_t nwindows = p->ncolumns - p->wide + 1;
    for (size_t at = 0; at < nwindows; at++) {
        moments m = {0};
        for (size_t i = 0; i < p->high; i++) {
            const moments *r = &p->ring[(row + 1 + i) % p->high * nwindows + at];
            m.bad |= r->bad;
            for (int k = 0; k < NMOMENTS; k++)
                m.of[k] += p->weight_y[i] * r->of[k];
        }
        if (m.bad == SAME_SPECIAL)
            continue;
        *sum += m.bad ? 0 : similarity(m.of);
        (*n)++;
    }
}

/* The largest odd number of values that a window may have. */
static size_t window_of(size_t n)
{
    return CRN_MIN((size_t)WINDOW, n - (n % 2 == 0));
}

static cairn_status prepare(plane *p)
{
    const size_t n = p->nrows * p->ncolumns;
    double low = INFINITY, high = -INFINITY;
    find_extremes(p->x, n, &low, &high);
    find_extremes(p->y, n, &low, &high);
    p->low = low / 2;
    p->range = high / 2 - p->low;
    p->wide = window_of(p->ncolumns);
    p->high = window_of(p->nrows);
    make_weights(p->weight_x, p->wide);
    make_weights(p->weight_y, p->high);
    return crn_alloc(&p->ring, p->high * (p->ncolumns - p->wide + 1));
}

cairn_status crn_ssim(const double *x, const double *y, size_t nrows, size_t ncolumns, double *ret)
{
    plane p = {.x = x, .y = y, .nrows = nrows, .ncolumns = ncolumns};
    double sum = 0;
    size_t n = 0;
    if (nrows > 0 && ncolumns > 0) {
        CRN_TRY(prepare(&p));
        const size_t nwindows = ncolumns - p.wide + 1;
        for (size_t row = 0; row < nrows; row++) {
            weigh_row(&p, row, p.ring + row % p.high * nwindows);
            if (row + 1 >= p.high)
                add_windows(&p, row, &sum, &n);
        }
        free(p.ring);
    }
    *ret = n > 0 ? sum / (double)n : 1;
    return CAIRN_OK;
}
