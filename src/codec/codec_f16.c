/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values as IEEE half precision, rounded to nearest, ties to even. Not every compiler here has the
 * type, so bits are moved by hand, always from and to double, so that nothing is rounded twice:
 *
 *     double   s eeeeeeeeeee mmmmmmmmmm mmm...    11 exponent bits, bias 1023, 52 of mantissa
 *     half     s       eeeee mmmmmmmmmm            5 exponent bits, bias 15, 10 of mantissa
 */
#include "codec/codec_ops.h"

#include <math.h>

#define REBIAS     ((uint64_t)(1023 - 15) << 10) /* between the exponents, in a half's place */
#define SHIFT      42                            /* between the mantissas */
#define INFINITE   0x7c00U                       /* from here on: infinities and NaN */
#define NORMAL_MIN 0x1p-14                       /* the smallest normal half */

static uint16_t half_of(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
    if (fabs(v) < NORMAL_MIN) /* steps of 2^-24; the last one rounds up to the first normal */
        return sign | (uint16_t)rint(fabs(v) * 0x1p24);
    bits &= INT64_MAX;
    /* just under half of the last place, or half if that makes it even; may carry all the way */
    bits += (UINT64_C(1) << (SHIFT - 1)) - 1 + (bits >> SHIFT & 1);
    uint64_t half = (bits >> SHIFT) - REBIAS;
    return sign | (uint16_t)CRN_MIN(half, INFINITE);
}

static double value_of(uint16_t half)
{
    uint64_t magnitude = half & 0x7fff, bits = (magnitude + REBIAS) << SHIFT;
    double v;
    memcpy(&v, &bits, sizeof v);
    if (magnitude < 1 << 10)
        v = (double)magnitude * 0x1p-24;
    return half & 0x8000 ? -v : v;
}

static bool is_lossy(const crn_codec_params *p)
{
    (void)p;
    return true;
}

static cairn_status encode(const crn_codec_params *p, const void *src, size_t nbytes, void *dst,
                           size_t cap, void *work, size_t *ret_n)
{
    (void)work;
    unsigned char *to = dst;
    size_t n = nbytes / crn_elem_nbytes(p->elem);
    bool fits = n * sizeof(uint16_t) <= cap;
    for (size_t i = 0; fits && i < n; i++) {
        uint16_t half = half_of(crn_codec_load(p->elem, src, i));
        fits = (half & INFINITE) != INFINITE; /* else beyond 65504 */
        memcpy(to + i * sizeof half, &half, sizeof half);
    }
    if (!fits)
        return CAIRN_NOTHING;
    *ret_n = n * sizeof(uint16_t);
    return CAIRN_OK;
}

static bool decode(crn_elem elem, const void *src, size_t n, void *dst, size_t nbytes, void *work)
{
    (void)work;
    const unsigned char *from = src;
    if (n % sizeof(uint16_t) != 0 || n / sizeof(uint16_t) != nbytes / crn_elem_nbytes(elem))
        return false;
    for (size_t i = 0; i < n / sizeof(uint16_t); i++) {
        uint16_t half;
        memcpy(&half, from + i * sizeof half, sizeof half);
        if ((half & INFINITE) == INFINITE) /* never made by encode */
            return false;
        crn_codec_store(elem, dst, i, value_of(half));
    }
    return true;
}

const crn_codec_ops crn_codec_f16 = {
    .name = "f16",
    .id = 6,
    .elems = CRN_ELEMS_FLOAT,
    .is_lossy = is_lossy,
    .encode = encode,
    .decode = decode,
};
