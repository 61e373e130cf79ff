/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Is a loss kept? Each value is judged exactly: a rounded difference decides where it is clearly on
 * one side, and the exact one where it is not.
 */
#include "codec/codec_ops.h"

#include <float.h>
#include <math.h>

bool crn_loss_implies(const crn_loss *a, const crn_loss *b)
{
    return a->absolute <= b->absolute && a->relative <= b->relative;
}

/* What rounding took from the difference d = x - y: it is d plus this, exactly. */
static double rest_of_difference(double x, double y, double d)
{
    const double back = x - d, lost = d + back;
    return (x - lost) - (y - back);
}

/*
 * |x - y| against limit, of which a * b is what rounding made it from. True only if it is surely
 * not larger. Rounding keeps order: where the rounded sides differ, so do the exact ones, the same
 * way round; where they are equal their remainders decide.
 */
static bool is_within(double x, double y, double limit, double limit_rest)
{
    const double d = x - y;
    double rest = rest_of_difference(x, y, d);
    if (d < 0)
        rest = -rest;
    return fabs(d) < limit || (fabs(d) == limit && rest <= limit_rest);
}

/* Where the product is so small that rounding may take all of it, only less than half counts. */
static bool keeps_relative(double x, double y, double relative)
{
    const double most = fmax(fabs(x), fabs(y)), limit = relative * most;
    if (limit < 0x1p-900)
        return fabs(x - y) < limit / 2;
    return is_within(x, y, limit, fma(relative, most, -limit));
}

static bool same_bits(double x, double y)
{
    return memcmp(&x, &y, sizeof x) == 0;
}

static bool keeps(double x, double y, const crn_loss *loss)
{
    if (same_bits(x, y))
        return true;
    if (!isfinite(x) || !isfinite(y))
        return false;
    if (!loss || x == y)
        return true;
    if (loss->absolute > 0 && is_within(x, y, loss->absolute, 0))
        return true;
    return loss->relative > 0 && keeps_relative(x, y, loss->relative);
}

/* Values of a chunk that is judged together: as many as stay in the nearest cache. */
enum { CHUNK = 512 };

/* Is all of the chunk clearly within loss? Not if any value is not finite. */
static bool chunk_is_clear(const double *x, const double *y, size_t n, const crn_loss *loss,
                           double *error)
{
    const double absolute = loss ? loss->absolute : DBL_MAX;
    const double relative = loss ? loss->relative * (1 - 0x1p-48) : 0;
    double most = *error;
    int unclear = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = fabs(x[i] - y[i]), a = fabs(x[i]), b = fabs(y[i]);
        const double scaled = relative * (a > b ? a : b);
        const double limit = scaled > absolute && scaled > 0x1p-900 ? scaled : absolute;
        unclear |= !(d < limit);
        most = d > most ? d : most;
    }
    *error = most;
    return !unclear;
}

static bool chunk_holds(const double *x, const double *y, size_t n, const crn_loss *loss,
                        double *error)
{
    double most = *error;
    if (chunk_is_clear(x, y, n, loss, &most)) {
        *error = most;
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        if (!keeps(x[i], y[i], loss))
            return false;
        if (isfinite(x[i]))
            *error = fmax(*error, fabs(x[i] - y[i]));
    }
    return true;
}

static void widen(const void *from, size_t at, size_t n, double *to)
{
    const unsigned char *bytes = (const unsigned char *)from + at * sizeof(float);
    for (size_t i = 0; i < n; i++) {
        float x;
        memcpy(&x, bytes + i * sizeof x, sizeof x);
        to[i] = x;
    }
}

bool crn_loss_holds(crn_elem elem, const void *x, const void *y, size_t n, const crn_loss *loss,
                    double *ret_error)
{
    double a[CHUNK], b[CHUNK], error = 0;
    for (size_t at = 0; at < n; at += CHUNK) {
        const size_t count = CRN_MIN(n - at, (size_t)CHUNK);
        if (elem == CRN_ELEM_F64) {
            memcpy(a, (const unsigned char *)x + at * sizeof *a, count * sizeof *a);
            memcpy(b, (const unsigned char *)y + at * sizeof *b, count * sizeof *b);
        } else {
            widen(x, at, count, a);
            widen(y, at, count, b);
        }
        if (!chunk_holds(a, b, count, loss, &error))
            return false;
    }
    *ret_error = error;
    return true;
}
