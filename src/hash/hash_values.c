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

/* What two values are to each other. */
typedef enum outcome {
    ALIKE,
    UNLIKE, /* by no number, as bytes */
    APART,  /* by a number */
    SPECIAL /* one of them is not finite */
} outcome;

/* How numbers, or bytes, are compared. */
typedef struct measure {
    crn_value_kind kind;
    bool is_complex, nan_differs;
    size_t item;
    crn_bound bound;
} measure;

static double real_at(crn_value_kind kind, const unsigned char *p)
{
    double x;
    float y;
    if (kind == CRN_VALUE_F64) {
        memcpy(&x, p, sizeof x);
        return x;
    }
    memcpy(&y, p, sizeof y);
    return (double)y;
}

static double limit_of(const crn_bound *b, double size)
{
    return fmax(b->absolute, b->relative * size);
}

static outcome compare_reals(const measure *m, const unsigned char *a, const unsigned char *b,
                             double *far)
{
    const double x = real_at(m->kind, a), y = real_at(m->kind, b);
    if (x == y)
        return ALIKE;
    if (isnan(x) && isnan(y))
        return m->nan_differs ? SPECIAL : ALIKE;
    if (!isfinite(x) || !isfinite(y))
        return SPECIAL;
    *far = fmin(fabs(x - y), DBL_MAX);
    return fabs(x - y) > limit_of(&m->bound, fmax(fabs(x), fabs(y))) ? APART : ALIKE;
}

/* Parts that are not finite are compared one by one. */
static outcome compare_complex(const measure *m, const unsigned char *a, const unsigned char *b,
                               double *far)
{
    const size_t half = m->item / 2;
    const double x[2] = {real_at(m->kind, a), real_at(m->kind, a + half)};
    const double y[2] = {real_at(m->kind, b), real_at(m->kind, b + half)};
    const measure exact = {.kind = m->kind, .nan_differs = m->nan_differs};
    if (!isfinite(x[0]) || !isfinite(x[1]) || !isfinite(y[0]) || !isfinite(y[1])) {
        const bool same = compare_reals(&exact, a, b, far) == ALIKE &&
                          compare_reals(&exact, a + half, b + half, far) == ALIKE;
        return same ? ALIKE : SPECIAL;
    }
    *far = fmin(hypot(x[0] - y[0], x[1] - y[1]), DBL_MAX);
    const double size = fmax(hypot(x[0], x[1]), hypot(y[0], y[1]));
    return *far > limit_of(&m->bound, size) ? APART : ALIKE;
}

uint64_t crn_value_order(crn_value_kind kind, size_t item, const void *p)
{
    union {
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
    } x = {0};
    const size_t size = CRN_MIN(item, sizeof x); /* whatever a damaged file says of its item */
    memcpy(&x, p, size);
    const uint64_t bits = size == 1 ? x.u8 : size == 2 ? x.u16 : size == 4 ? x.u32 : x.u64;
    return kind == CRN_VALUE_INT ? bits ^ UINT64_C(1) << (8 * size - 1) : bits;
}

/* |x| of an integer, from its order. */
static double size_of_integer(const measure *m, uint64_t order)
{
    const uint64_t zero = m->kind == CRN_VALUE_INT ? UINT64_C(1) << (8 * m->item - 1) : 0;
    return (double)(order > zero ? order - zero : zero - order);
}

static outcome compare_integers(const measure *m, const unsigned char *a, const unsigned char *b,
                                double *far)
{
    const uint64_t x = crn_value_order(m->kind, m->item, a);
    const uint64_t y = crn_value_order(m->kind, m->item, b);
    const uint64_t apart = x > y ? x - y : y - x;
    if (apart == 0)
        return ALIKE;
    const double limit = limit_of(&m->bound, fmax(size_of_integer(m, x), size_of_integer(m, y)));
    *far = (double)apart;
    return limit < 0x1p64 && apart > (uint64_t)limit ? APART : ALIKE;
}

static outcome compare_one(const measure *m, const unsigned char *a, const unsigned char *b,
                           double *far)
{
    if (m->kind == CRN_VALUE_OTHER)
        return memcmp(a, b, m->item) == 0 ? ALIKE : UNLIKE;
    if (!is_float(m->kind))
        return m->item > 8 ? UNLIKE : compare_integers(m, a, b, far);
    return m->is_complex ? compare_complex(m, a, b, far) : compare_reals(m, a, b, far);
}

/* The gravest of all fields, and the largest distance of those that are apart. */
static outcome compare_fields(const crn_value_rule *rule, const unsigned char *a,
                              const unsigned char *b, double *far)
{
    outcome worst = ALIKE;
    double one;
    for (size_t i = 0; i < rule->fields->n; i++) {
        const crn_field *f = &rule->fields->at[i];
        const measure m = {f->kind, f->is_complex, rule->nan_differs, f->item, f->bound};
        for (uint32_t k = 0; k < f->count; k++) {
            const size_t at = f->offset + (size_t)k * f->item;
            const outcome o = compare_one(&m, a + at, b + at, &one);
            if (o == APART)
                *far = fmax(*far, one);
            worst = CRN_MAX(worst, o);
        }
    }
    return worst;
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

static bool differs(const crn_value_rule *rule, const unsigned char *a, const unsigned char *b,
                    crn_value_delta *delta)
{
    const measure m = {rule->kind, false, rule->nan_differs, rule->item, rule->bound};
    double far = 0;
    const outcome o = rule->fields ? compare_fields(rule, a, b, &far) : compare_one(&m, a, b, &far);
    if (o == APART)
        add_distance(delta, far);
    delta->nnonfinite += o == SPECIAL;
    return o != ALIKE;
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
    if (rule->fields && rule->nan_differs)
        return true; /* NaNs have the same bytes, perhaps */
    if (rule->fields || !is_float(rule->kind))
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
