/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values in narrower formats: float64 as float32, either as half precision, each rounded to the
 * nearest, ties to even. What is out of range becomes infinite, and is the caller's to keep aside.
 */
#include "codec/codec_ops.h"

/* --- half precision ------------------------------------------------------------------------- */

enum { HALF_BIAS = 15, DOUBLE_BIAS = 1023, HALF_BITS = 10, DOUBLE_BITS = 52 };

/* m shifted right by shift (1 to 63), to the nearest. */
static uint64_t shift_nearest(uint64_t m, int shift)
{
    const uint64_t half = 1ULL << (shift - 1), rest = m & ((half << 1) - 1);
    const uint64_t down = m >> shift;
    return down + (rest > half || (rest == half && (down & 1)));
}

static uint16_t half_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
    const int exponent = (int)(bits >> DOUBLE_BITS & 0x7ff) - DOUBLE_BIAS;
    const uint64_t mantissa = bits & ((1ULL << DOUBLE_BITS) - 1);
    if (exponent == DOUBLE_BIAS + 1)
        return sign | 0x7c00 | (mantissa ? 0x200 : 0);
    if (exponent < -HALF_BIAS - HALF_BITS)
        return sign;
    if (exponent > HALF_BIAS)
        return sign | 0x7c00;
    const int normal = exponent > -HALF_BIAS; /* else it is subnormal */
    const int shift = DOUBLE_BITS - HALF_BITS + (normal ? 0 : 1 - HALF_BIAS - exponent);
    const uint64_t m = shift_nearest(mantissa | 1ULL << DOUBLE_BITS, shift);
    /* the mantissa's leading bit adds one to the exponent, as a carry out of it does */
    return (uint16_t)(sign |
                      (m + ((uint64_t)(normal ? exponent + HALF_BIAS - 1 : 0) << HALF_BITS)));
}

static double double_of(uint16_t half)
{
    const uint64_t sign = (uint64_t)(half & 0x8000) << 48, mantissa = half & 0x3ff;
    const unsigned exponent = half >> HALF_BITS & 0x1f;
    uint64_t bits = sign;
    double x;
    if (exponent == 0) { /* a whole number of the smallest subnormal, 2^-24 */
        x = (double)mantissa * 0x1p-24;
        return sign ? -x : x;
    }
    if (exponent == 0x1f)
        bits |= 0x7ffULL << DOUBLE_BITS;
    else
        bits |= (uint64_t)(exponent + DOUBLE_BIAS - HALF_BIAS) << DOUBLE_BITS;
    bits |= mantissa << (DOUBLE_BITS - HALF_BITS);
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* --- boxes ---------------------------------------------------------------------------------- */

static double value_at(crn_elem elem, const unsigned char *src, size_t i)
{
    float single;
    double x;
    if (elem == CRN_ELEM_F64) {
        memcpy(&x, src + i * sizeof x, sizeof x);
        return x;
    }
    memcpy(&single, src + i * sizeof single, sizeof single);
    return single;
}

static void set_value(crn_elem elem, unsigned char *dst, size_t i, double x)
{
    const float single = (float)x;
    if (elem == CRN_ELEM_F64)
        memcpy(dst + i * sizeof x, &x, sizeof x);
    else
        memcpy(dst + i * sizeof single, &single, sizeof single);
}

static cairn_status encode_f16(crn_elem elem, const crn_codec_box *box, uint64_t param,
                               const void *src, void *dst, size_t cap, size_t *ret_n)
{
    (void)param;
    if (box->n > cap / sizeof(uint16_t))
        return CAIRN_NOTHING;
    for (size_t i = 0; i < box->n; i++) {
        const uint16_t half = half_of(value_at(elem, src, i));
        memcpy((unsigned char *)dst + i * sizeof half, &half, sizeof half);
    }
    *ret_n = box->n * sizeof(uint16_t);
    return CAIRN_OK;
}

static size_t decode_f16(crn_elem elem, const crn_codec_box *box, uint64_t param, const void *src,
                         size_t n, void *dst)
{
    (void)param;
    if (box->n > n / sizeof(uint16_t))
        return 0;
    for (size_t i = 0; i < box->n; i++) {
        uint16_t half;
        memcpy(&half, (const unsigned char *)src + i * sizeof half, sizeof half);
        set_value(elem, dst, i, double_of(half));
    }
    return box->n * sizeof(uint16_t);
}

static cairn_status encode_f32(crn_elem elem, const crn_codec_box *box, uint64_t param,
                               const void *src, void *dst, size_t cap, size_t *ret_n)
{
    (void)param, (void)elem;
    if (box->n > cap / sizeof(float))
        return CAIRN_NOTHING;
    for (size_t i = 0; i < box->n; i++)
        set_value(CRN_ELEM_F32, dst, i, value_at(CRN_ELEM_F64, src, i));
    *ret_n = box->n * sizeof(float);
    return CAIRN_OK;
}

static size_t decode_f32(crn_elem elem, const crn_codec_box *box, uint64_t param, const void *src,
                         size_t n, void *dst)
{
    (void)param, (void)elem;
    if (box->n > n / sizeof(float))
        return 0;
    for (size_t i = 0; i < box->n; i++)
        set_value(CRN_ELEM_F64, dst, i, value_at(CRN_ELEM_F32, src, i));
    return box->n * sizeof(float);
}

const crn_box_ops crn_f32_boxes = {.encode = encode_f32, .decode = decode_f32, .flat = true};
const crn_box_ops crn_f16_boxes = {.encode = encode_f16, .decode = decode_f16, .flat = true};

/* --- by the table --------------------------------------------------------------------------- */

#define NARROW(codec, number, kinds)                                                               \
    static cairn_status encode_all_##codec(crn_elem elem, const void *src, size_t nbytes,          \
                                           void *dst, size_t cap, void *work, size_t *ret_n)       \
    {                                                                                              \
        (void)work;                                                                                \
        return crn_boxed_encode(&crn_##codec##_boxes, elem, &(crn_boxed){0}, src, nbytes, dst,     \
                                cap, ret_n);                                                       \
    }                                                                                              \
    static bool decode_all_##codec(crn_elem elem, const void *src, size_t n, void *dst,            \
                                   size_t nbytes, void *work)                                      \
    {                                                                                              \
        (void)work;                                                                                \
        return crn_boxed_decode(&crn_##codec##_boxes, elem, src, n, dst, nbytes);                  \
    }                                                                                              \
    const crn_codec_ops crn_codec_##codec = {.name = #codec,                                       \
                                             .id = (number),                                       \
                                             .elems = (kinds),                                     \
                                             .encode = encode_all_##codec,                         \
                                             .decode = decode_all_##codec}

NARROW(f32, 8, CRN_ELEM_BIT(CRN_ELEM_F64));
NARROW(f16, 9, CRN_ELEMS_FLOAT);
