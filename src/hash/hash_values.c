/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Comparing values one by one, by the formula of crn_bound. Most values agree, even where blocks
 * were flagged: so strips of values are first sifted by a loop without branches, which may find a
 * strip suspicious that is not, but never the other way round; only suspicious strips are looked at
 * closely.
 */
#include "hash/hash.h"

#include <float.h>
#include <math.h>

enum { STRIP = 256, WIDTH = 16 }; /* values of a strip; bytes that every processor adds at once */

crn_value_kind crn_value_kind_of(const char *type)
{
    static const char *const integer[] = {"int8",  "uint8",  "int16", "uint16",
                                          "int32", "uint32", "int64", "uint64"};
    if (strcmp(type, "float32") == 0)
        return CRN_VALUE_F32;
    if (strcmp(type, "float64") == 0)
        return CRN_VALUE_F64;
    for (size_t i = 0; i < sizeof integer / sizeof *integer; i++)
        if (strcmp(type, integer[i]) == 0)
            return i % 2 ? CRN_VALUE_UINT : CRN_VALUE_INT;
    return CRN_VALUE_OTHER;
}

static bool is_float(crn_value_kind kind)
{
    return kind == CRN_VALUE_F32 || kind == CRN_VALUE_F64;
}

bool crn_value_is_float(const char *type)
{
    return is_float(crn_value_kind_of(type));
}

/* --- sifting ---------------------------------------------------------------------------------- */

/*
 * Is one of a strip's values suspicious? |a - b| is rounded, in single precision coarsely: so it is
 * held against limits that are a little lower, and the relative one is taken of one value only.
 * Comparisons with NaN fail, which is suspicious.
 */
#define DEFINE_SIFT(name, real, uint, SIGN)                                                        \
    static bool name(const crn_bound *low, const unsigned char *a, const unsigned char *b)         \
    {                                                                                              \
        typedef real v_real __attribute__((vector_size(WIDTH)));                                   \
        typedef uint v_uint __attribute__((vector_size(WIDTH)));                                   \
        const v_real absolute = (real)low->absolute - (v_real){0};                                 \
        const v_real relative = (real)low->relative - (v_real){0};                                 \
        v_uint fine = ~(v_uint){0};                                                                \
        for (size_t i = 0; i < STRIP * sizeof(real); i += WIDTH) {                                 \
            v_real x, y;                                                                           \
            memcpy(&x, a + i, WIDTH);                                                              \
            memcpy(&y, b + i, WIDTH);                                                              \
            const v_real far = (v_real)((v_uint)(x - y) & (uint) ~(uint)(SIGN));                   \
            const v_real size = (v_real)((v_uint)x & (uint) ~(uint)(SIGN));                        \
            fine &= (v_uint)(far <= absolute) | (v_uint)(far <= relative * size);                  \
        }                                                                                          \
        for (size_t i = 0; i < WIDTH / sizeof(real); i++)                                          \
            if (!fine[i])                                                                          \
                return true;                                                                       \
        return false;                                                                              \
    }

DEFINE_SIFT(sift_f32, float, uint32_t, 0x80000000u)
DEFINE_SIFT(sift_f64, double, uint64_t, 0x8000000000000000u)

/* Limits low enough for differences and products that were rounded to single precision; as such
 * numbers they must not be rounded up again. */
static crn_bound lowered(const crn_value_rule *rule)
{
    if (rule->kind != CRN_VALUE_F32)
        return (crn_bound){rule->bound.absolute * (1 - 0x1p-50),
                           rule->bound.relative * (1 - 0x1p-50)};
    const double down = 1 - 0x1p-21;
    return (crn_bound){fmin(rule->bound.absolute * down, 0x1p127),
                       fmin(rule->bound.relative * down, 1)};
}

/* --- looking closely -------------------------------------------------------------------------- */

static double value_at(const crn_value_rule *rule, const unsigned char *p)
{
    double x;
    float y;
    if (rule->kind == CRN_VALUE_F64) {
        memcpy(&x, p, sizeof x);
        return x;
    }
    memcpy(&y, p, sizeof y);
    return (double)y;
}

static bool floats_differ(const crn_value_rule *rule, double a, double b)
{
    if (a == b)
        return false;
    if (isnan(a) && isnan(b))
        return rule->nan_differs;
    if (!isfinite(a) || !isfinite(b))
        return true;
    const double limit = rule->bound.relative * fmax(fabs(a), fabs(b));
    return fabs(a - b) > fmax(rule->bound.absolute, limit);
}

/* An integer as one without sign, in the same order: the smallest is 0. */
static uint64_t order_of(const crn_value_rule *rule, const unsigned char *p)
{
    union {
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
    } x = {0};
    const size_t size =
        CRN_MIN(rule->item, sizeof x); /* whatever a damaged file says of its item */
    memcpy(&x, p, size);
    const uint64_t bits = size == 1 ? x.u8 : size == 2 ? x.u16 : size == 4 ? x.u32 : x.u64;
    return rule->kind == CRN_VALUE_INT ? bits ^ UINT64_C(1) << (8 * size - 1) : bits;
}

static void add_distance(crn_value_delta *delta, double far)
{
    const double huge = 0x1p480, tiny = 0x1p-500; /* their squares, and sums of many, are doubles */
    delta->max = fmax(delta->max, far);
    if (far > huge)
        delta->squares[2] +=
            ldexp(far, -CRN_SQUARES_SCALE / 2) * ldexp(far, -CRN_SQUARES_SCALE / 2);
    else if (far < tiny)
        delta->squares[0] += ldexp(far, CRN_SQUARES_SCALE / 2) * ldexp(far, CRN_SQUARES_SCALE / 2);
    else
        delta->squares[1] += far * far;
}

static bool bytes_differ(const crn_value_rule *rule, const unsigned char *a, const unsigned char *b,
                         crn_value_delta *delta)
{
    if (memcmp(a, b, rule->item) == 0)
        return false;
    if (rule->kind != CRN_VALUE_OTHER) {
        const uint64_t x = order_of(rule, a), y = order_of(rule, b);
        add_distance(delta, (double)(x > y ? x - y : y - x));
    }
    return true;
}

static bool differs(const crn_value_rule *rule, const unsigned char *a, const unsigned char *b,
                    crn_value_delta *delta)
{
    if (!is_float(rule->kind))
        return bytes_differ(rule, a, b, delta);
    const double x = value_at(rule, a), y = value_at(rule, b);
    if (!floats_differ(rule, x, y))
        return false;
    if (isfinite(x) && isfinite(y))
        add_distance(delta, fmin(fabs(x - y), DBL_MAX));
    else
        delta->nnonfinite++;
    return true;
}

/* A stretch of differing values that may still grow. */
typedef struct stretch {
    uint64_t first, n;
    crn_value_fn *fn;
    void *arg;
} stretch;

static void end_stretch(stretch *s)
{
    if (s->n > 0 && s->fn)
        s->fn(s->arg, s->first, s->n);
    s->n = 0;
}

static void look_closely(const crn_value_rule *rule, const unsigned char *a, const unsigned char *b,
                         uint64_t first, uint64_t n, crn_value_delta *delta, stretch *s)
{
    for (uint64_t i = first; i < first + n; i++) {
        if (!differs(rule, a + i * rule->item, b + i * rule->item, delta)) {
            end_stretch(s);
            continue;
        }
        delta->n++;
        if (s->n++ == 0)
            s->first = i;
    }
}

static bool is_suspicious(const crn_value_rule *rule, const crn_bound *low, const unsigned char *a,
                          const unsigned char *b, uint64_t n)
{
    if (!is_float(rule->kind))
        return memcmp(a, b, n * rule->item) != 0;
    if (n < STRIP)
        return true;
    return rule->kind == CRN_VALUE_F32 ? sift_f32(low, a, b) : sift_f64(low, a, b);
}

void crn_values_compare(const crn_value_rule *rule, const void *a, const void *b, uint64_t n,
                        crn_value_delta *delta, crn_value_fn *fn, void *arg)
{
    const unsigned char *x = a, *y = b;
    const crn_bound low = lowered(rule);
    stretch s = {.fn = fn, .arg = arg};
    for (uint64_t i = 0; i < n; i += STRIP) {
        const uint64_t m = CRN_MIN(n - i, (uint64_t)STRIP);
        if (is_suspicious(rule, &low, x + i * rule->item, y + i * rule->item, m))
            look_closely(rule, x, y, i, m, delta, &s);
        else
            end_stretch(&s);
    }
    end_stretch(&s);
}
