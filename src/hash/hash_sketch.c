/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The sketch of a reference's block, and the digest of another block on the reference's grid.
 *
 * The tolerant digest puts values into cells of width w. Two values that are much nearer than that
 * have different keys all the same where an edge lies between them, and in a block of thousands of
 * values one pair does. But where one of the two blocks is known beforehand, the reference, its
 * cells can be moved away from its values: the sketch says by how much, and whoever has the other
 * block puts its values into the same, moved cells. A shift s of 0 to 255 moves them by (s/256 -
 * 1/2) w, so that edges lie at (k + s/256) w. One bit for each value selects shift 128 or 0:
 * one of the two has every value at least w/4 away from all edges. Or one byte is the shift of 64
 * values; hash_sketch_make.c chooses.
 *
 * Equal digests, with the same sketch, prove that no values differ, whatever the sketch says: it is
 * an argument of the key, the same for both values of a pair. With sigma = s/256, the rules of
 * hash_tolerant.c become:
 *
 *   1. Below T: r is the nearest multiple of w, e = x - r, which is exact, and the key is r + w
 * where e > sigma w, r - w where e < (sigma - 1) w, and r otherwise, all of which are exact. The
 *      values of key k lie in the closed interval from k - (1 - sigma) w to k + sigma w: two of
 * them are no more than w <= A apart.
 *   2. From T on, with the bits of |x| as an integer i and cells of C = 2^(p-m) integers, the key
 * is i + a rounded down to a multiple of C, where a = C - floor(sigma C) for x > 0 and floor(sigma
 * C) for x < 0 (which moves edges the same way as rule 1 does). So the values of a key are at most
 * C - 1 integers apart. Within a binade an integer is 2^(E-p), and they are less than 2^(E-m) <= R
 * |x| apart; across the end of one they are less than C steps of the upper binade apart, whose w is
 * R times its least value at most. What is carried over the largest exponent gets a key that no
 * number has, EXPONENT | 1. Without an absolute bound the rule begins C/4 integers below the
 * smallest normal number, so that values on both sides of that are near: there |x| >= (1 -
 * 2^-(m+2)) times that number, and the C - 1 integers are still less than R |x|.
 *   3. As before: x itself, infinities, one NaN.
 *
 *   Keys of different rules that coincide: only T (and -T) is a key of rule 1 and of another. At T
 *   rule 1 has values from T - (1 - sigma) w on, and rule 2 up to T + sigma w', where w' is w or 2
 * w and at most R |x|: at most (1 - sigma) w + sigma w' <= w' apart. At -T it is sigma w and (1 -
 * sigma) w'. Rule 3 has T itself.
 *
 * The converse, which is what the sketch is for: values that are less apart than the reference's is
 * from the next edge have equal keys. A reference above the end of a binade, or above T, whose cell
 * reaches below it, is half as far from that edge as its own binade's steps say.
 */
#include "hash/hash_sketch.h"

#include <assert.h>
#include <fenv.h>
#include <float.h>
#include <math.h>

/* The cells of one vector: by a value's bit, or all by the first. */
typedef struct grid {
    double above[2], below[2];  /* rule 1: sigma w and (sigma - 1) w */
    uint64_t plus[2], minus[2]; /* rule 2: a, by the sign */
} grid;

/* Make the keys of nbytes (a multiple of VECTOR_MAX) at src; bits: one for each value, or unused.
 */
typedef void key_function(const crn_rules *r, const grid *g, const unsigned char *bits,
                          const unsigned char *src, unsigned char *dst, size_t nbytes);

/* --- keys ------------------------------------------------------------------------------------ */

#define DEFINE_KEYS(name, vector, real, uint, SIGN, EXPONENT, QUIET_NAN)                           \
    static inline __attribute__((always_inline)) void name(                                        \
        const crn_rules *r, const grid *g, bool relative, bool mixed, const unsigned char *flags,  \
        const unsigned char *src, unsigned char *dst, size_t n)                                    \
    {                                                                                              \
        typedef real v_real __attribute__((vector_size(vector)));                                  \
        typedef uint v_uint __attribute__((vector_size(vector)));                                  \
        enum { LANES = (vector) / sizeof(real) };                                                  \
        const v_real limit = ALL(v_real, (real)r->limit), magic = ALL(v_real, (real)r->magic);     \
        const v_uint up = (v_uint)ALL(v_real, (real)r->width);                                     \
        const v_uint down = (v_uint)ALL(v_real, -(real)r->width);                                  \
        const v_uint keep = ALL(v_uint, (uint)r->keep), sign = ALL(v_uint, (uint)(SIGN));          \
        const v_uint infinite = ALL(v_uint, (uint)(EXPONENT));                                     \
        const v_uint above[2] = {(v_uint)ALL(v_real, (real)g->above[0]),                           \
                                 (v_uint)ALL(v_real, (real)g->above[1])};                          \
        const v_uint below[2] = {(v_uint)ALL(v_real, (real)g->below[0]),                           \
                                 (v_uint)ALL(v_real, (real)g->below[1])};                          \
        const v_uint plus[2] = {ALL(v_uint, (uint)g->plus[0]), ALL(v_uint, (uint)g->plus[1])};     \
        const v_uint minus[2] = {ALL(v_uint, (uint)g->minus[0]), ALL(v_uint, (uint)g->minus[1])};  \
        v_uint lane = {0};                                                                         \
        for (size_t i = 0; i < LANES; i++)                                                         \
            lane[i] = (uint)1 << i;                                                                \
        for (size_t i = 0; i < n; i += (vector)) {                                                 \
            v_real x;                                                                              \
            v_uint second = {0}; /* lanes whose bit is 1 */                                        \
            __builtin_prefetch(src + i + SKETCH_PIECE, 0, 2);                                      \
            memcpy(&x, src + i, (vector));                                                         \
            if (mixed) {                                                                           \
                const size_t at = i / sizeof(real);                                                \
                unsigned word = (unsigned)flags[at / 8] >> at % 8;                                 \
                if (LANES > 8)                                                                     \
                    word |= (unsigned)flags[at / 8 + 1] << 8;                                      \
                second = (v_uint)((ALL(v_uint, (uint)word) & lane) != 0);                          \
            }                                                                                      \
            const v_uint bits = (v_uint)x, size = bits & ~sign;                                    \
            const v_real nearest = (x + magic) - magic, rest = x - nearest;                        \
            const v_real high = (v_real)PICK(second, above[1], above[0]);                          \
            const v_real low = (v_real)PICK(second, below[1], below[0]);                           \
            const v_uint step = ((v_uint)(rest > high) & up) | ((v_uint)(rest < low) & down);      \
            v_uint key = bits;                                                                     \
            if (relative) {                                                                        \
                const v_uint negative = (v_uint)((bits & sign) != 0);                              \
                const v_uint add = PICK(negative, PICK(second, minus[1], minus[0]),                \
                                        PICK(second, plus[1], plus[0]));                           \
                const v_uint sum = (size + add) & keep;                                            \
                key = PICK((v_uint)(sum >= infinite), infinite | 1, sum) | (bits & sign);          \
                key = PICK((v_uint)(size >= infinite), bits, key);                                 \
            }                                                                                      \
            key = PICK((v_uint)((v_real)size < limit), (v_uint)(nearest + (v_real)step), key);     \
            key = PICK((v_uint)(size > infinite), ALL(v_uint, (uint)(QUIET_NAN)), key);            \
            memcpy(dst + i, &key, (vector));                                                       \
        }                                                                                          \
    }

/* The functions that a target has: by type, with rule 2 or without, and with bits or without. */
typedef struct key_set {
    key_function *f32[2][2], *f64[2][2];
} key_set;

#define DEFINE_CALL(name, keys, attribute, relative, mixed)                                        \
    attribute static void name(const crn_rules *r, const grid *g, const unsigned char *bits,       \
                               const unsigned char *src, unsigned char *dst, size_t n)             \
    {                                                                                              \
        keys(r, g, relative, mixed, bits, src, dst, n);                                            \
    }

#define DEFINE_CALLS(name, keys, attribute)                                                        \
    DEFINE_CALL(name##_00, keys, attribute, false, false)                                          \
    DEFINE_CALL(name##_01, keys, attribute, false, true)                                           \
    DEFINE_CALL(name##_10, keys, attribute, true, false)                                           \
    DEFINE_CALL(name##_11, keys, attribute, true, true)

#define DEFINE_SET(target, width, attribute)                                                       \
    DEFINE_KEYS(f32_##target, width, float, uint32_t, 0x80000000u, 0x7f800000u, 0x7fc00000u)       \
    DEFINE_KEYS(f64_##target, width, double, uint64_t, 0x8000000000000000u, 0x7ff0000000000000u,   \
                0x7ff8000000000000u)                                                               \
    DEFINE_CALLS(f32_keys_##target, f32_##target, attribute)                                       \
    DEFINE_CALLS(f64_keys_##target, f64_##target, attribute)                                       \
    static const key_set set_##target = {{{f32_keys_##target##_00, f32_keys_##target##_01},        \
                                          {f32_keys_##target##_10, f32_keys_##target##_11}},       \
                                         {{f64_keys_##target##_00, f64_keys_##target##_01},        \
                                          {f64_keys_##target##_10, f64_keys_##target##_11}}};

#include "hash/hash_best.h"

/* --- cells ----------------------------------------------------------------------------------- */

static void set_shift(const crn_rules *r, unsigned shift, int which, grid *g)
{
    const uint64_t cell = 2 * r->half, moved = cell * shift / 256;
    g->above[which] = r->width * shift / 256;
    g->below[which] = r->width * shift / 256 - r->width;
    g->plus[which] = cell - moved;
    g->minus[which] = moved;
}

/* What one bit chooses between. */
static grid grid_of_bits(const crn_rules *r)
{
    grid g;
    set_shift(r, CRN_SHIFT_NONE, 0, &g);
    set_shift(r, 0, 1, &g);
    return g;
}

static grid grid_of_shift(const crn_rules *r, unsigned shift)
{
    grid g;
    set_shift(r, shift, 0, &g);
    set_shift(r, shift, 1, &g);
    return g;
}

/* --- digests --------------------------------------------------------------------------------- */

/* Without an absolute bound, rule 2 begins a quarter of a cell below the normal numbers. */
static void lower_limit(crn_rules *r, size_t item)
{
    const int lowest = item == 4 ? FLT_MIN_EXP - FLT_MANT_DIG : DBL_MIN_EXP - DBL_MANT_DIG;
    if (!r->only_absolute && r->width == 0)
        r->limit -= ldexp((double)(r->half / 2), lowest);
}

cairn_status crn_sketcher_create(size_t item, const crn_bound *bound, crn_sketcher **ret)
{
    crn_sketcher *s;
    assert(item == 4 || item == 8);
    CRN_TRY(crn_alloc(&s, 1));
    s->item = item;
    s->bound = *bound;
    s->rules = crn_rules_of(bound, item);
    lower_limit(&s->rules, item);
    s->state = XXH3_createState();
    if (!s->state) {
        free(s);
        return crn_fail(CAIRN_ENOMEM, "no memory for digests");
    }
    *ret = s;
    return CAIRN_OK;
}

void crn_sketcher_free(crn_sketcher *s)
{
    if (!s)
        return;
    XXH3_freeState(s->state);
    free(s);
}

/* A sketch that is being used up. */
typedef struct reading {
    const unsigned char *bits, *shift, *rest; /* rest: bits of groups that have no shift */
} reading;

static size_t count_groups(size_t nvalues)
{
    return nvalues / CRN_SKETCH_GROUP + (nvalues % CRN_SKETCH_GROUP != 0);
}

bool crn_sketch_fits(crn_sketch_kind kind, const unsigned char *sketch, size_t sketch_bytes,
                     size_t nvalues)
{
    const size_t ngroups = count_groups(nvalues);
    size_t nsplit = 0;
    if (kind == CRN_SKETCH_BITS)
        return sketch_bytes == nvalues / 8 + (nvalues % 8 != 0);
    if (kind != CRN_SKETCH_BYTES || sketch_bytes < ngroups)
        return false;
    for (size_t i = 0; i < ngroups; i++)
        nsplit += sketch[i] == CRN_SHIFT_SPLIT;
    return sketch_bytes == ngroups + nsplit * (CRN_SKETCH_GROUP / 8);
}

/* Keys of a piece whose values have a bit each. The bits of a last piece may end in the middle of
 * what a vector takes. */
static void keys_by_bits(crn_sketcher *s, reading *at, const unsigned char *src, size_t nbytes,
                         size_t whole)
{
    const grid g = grid_of_bits(&s->rules);
    const size_t n = (nbytes / s->item + 7) / 8;
    unsigned char padded[SKETCH_PIECE / 4 / 8 + 2] = {0};
    const unsigned char *bits = at->bits;
    if (whole != nbytes) {
        memcpy(padded, bits, n);
        bits = padded;
    }
    s->keys[1](&s->rules, &g, bits, src, s->piece, whole);
    at->bits += n;
}

/* The same for groups of values that have a shift, or, where none would do, bits. */
static void keys_by_bytes(crn_sketcher *s, reading *at, const unsigned char *src, size_t whole)
{
    const size_t group = CRN_SKETCH_GROUP * s->item;
    for (size_t i = 0; i < whole; i += group) {
        const size_t n = CRN_MIN(group, whole - i);
        const unsigned shift = *at->shift++;
        const bool split = shift == CRN_SHIFT_SPLIT;
        const grid g = split ? grid_of_bits(&s->rules) : grid_of_shift(&s->rules, shift);
        s->keys[split](&s->rules, &g, at->rest, src + i, s->piece + i, n);
        at->rest += split ? CRN_SKETCH_GROUP / 8 : 0;
    }
}

static void digest_piece(crn_sketcher *s, crn_sketch_kind kind, reading *at,
                         const unsigned char *src, size_t nbytes)
{
    const size_t whole = CRN_ROUND_UP(nbytes, (size_t)VECTOR_MAX);
    if (whole != nbytes) {
        memcpy(s->tail, src, nbytes);
        memset(s->tail + nbytes, 0, whole - nbytes);
        src = s->tail;
    }
    if (kind == CRN_SKETCH_BITS)
        keys_by_bits(s, at, src, nbytes, whole);
    else
        keys_by_bytes(s, at, src, whole);
    XXH3_128bits_update(s->state, s->piece, nbytes);
}

bool crn_sketch_digest(crn_sketcher *s, crn_sketch_kind kind, const unsigned char *sketch,
                       size_t sketch_bytes, const void *data, size_t nbytes, crn_digest *ret)
{
    const unsigned char *src = data;
    const key_set *set = best_set();
    XXH128_canonical_t bytes;
    fenv_t modes;
    assert(nbytes % s->item == 0);
    if (!crn_sketch_fits(kind, sketch, sketch_bytes, nbytes / s->item))
        return false;
    reading at = {sketch, sketch, sketch + count_groups(nbytes / s->item)};
    s->keys = (s->item == 4 ? set->f32 : set->f64)[!s->rules.only_absolute];
    fegetenv(&modes);
    fesetenv(FE_DFL_ENV);
    XXH3_128bits_reset(s->state);
    for (; nbytes > 0; src += CRN_MIN(nbytes, (size_t)SKETCH_PIECE),
                       nbytes -= CRN_MIN(nbytes, (size_t)SKETCH_PIECE))
        digest_piece(s, kind, &at, src, CRN_MIN(nbytes, (size_t)SKETCH_PIECE));
    XXH128_canonicalFromHash(&bytes, XXH3_128bits_digest(s->state));
    memcpy(ret->b, bytes.digest, sizeof ret->b);
    crn_xxh3_leave();
    fesetenv(&modes);
    return true;
}
