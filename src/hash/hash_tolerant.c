/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tolerant digest. Each value x is replaced by a key, a number r(x) near it, and the keys are
 * digested. Equal keys must prove that values do not differ (hash.h has the formula), with the
 * absolute part of the bound A and the relative part R:
 *
 *   Claim. For all finite x there is a w(x) <= max(A, R |x|) with |x - r(x)| <= w(x) / 2.
 *   Then r(x) = r(y) gives
 *       |x - y| <= |x - r| + |r - y| <= (w(x) + w(y)) / 2 <= max(w(x), w(y))
 *               <= max(A, R max(|x|, |y|)),
 *   so x and y do not differ. It does not matter which rule made a key, nor whether keys of
 *   different rules coincide: a key is a number, and only its distance counts.
 *
 * Three rules make keys; each satisfies the claim:
 *
 *   1. Below a limit |x| < T, the nearest multiple of w = 2^floor(log2 A), a power of two so that
 *      all steps are exact but one: r = (x + M) - M with M = 1.5 * 2^p * w, where p is the number
 *      of stored mantissa bits (23 or 52). With T <= 2^(p-1) w the sum lies in [2^p w, 2^(p+1) w],
 *      where numbers are w apart: the addition rounds x to the nearest multiple of w, by at most
 *      w / 2, and the subtraction is exact. w <= A. Zeros of both signs give M - M = +0.
 *      Without an absolute bound M = 0: then r = x, and both zeros +0.
 *   2. From T on, x with its mantissa rounded to m bits, 2^-m <= R: with 2^E <= |x| < 2^(E+1) that
 *      is the nearest multiple of w(x) = 2^(E-m) <= R |x|. It is done on the bits as an integer,
 *      where a carry into the exponent is right, too. Only normal numbers come here (T is at least
 *      the smallest); what would be rounded up to infinity stays as it is, by rule 3.
 *   3. r = x, where R is 0, or too small for a mantissa bit to go: w(x) = 0. Infinities are their
 *      own keys, and no other value has one of them. Any NaN has the one key quiet NaN.
 *
 * Widths only get smaller by clamping, which is always safe: w to what leaves M finite; A below
 * twice the smallest normal number to 0, since some processors are set to take subnormal numbers
 * for 0; R to at most 1/2. The floating-point modes are set to the standard ones here (a program
 * may round upwards, trap on invalid operations, or flush to zero), so that equal data has equal
 * digests in all programs. No file here must be compiled with -ffast-math, which would remove M.
 *
 * The comparison of two values in double rounds |a - b| once more; rounding is monotonic and the
 * right side is not rounded down below w, so it never calls two values with equal keys different.
 */
#include "hash/hash.h"

#include "hash/hash_rules.h"
#include "hash/hash_xxh3.h"

#include <assert.h>
#include <fenv.h>
#include <float.h>
#include <math.h>

/* Bytes whose keys are made before they are digested: both fit the first-level cache, with room for
 * the next piece, which is fetched meanwhile. Larger ones measured up to a third slower. */
enum { PIECE = 4096 };

/* Make the keys of nbytes (a multiple of VECTOR_MAX) at src; is there a NaN? */
typedef bool key_function(const crn_rules *r, const unsigned char *src, unsigned char *dst,
                          size_t nbytes);

struct crn_tolerant {
    size_t n;
    crn_rules rule[CRN_BOUNDS_MAX];
    key_function *keys[CRN_BOUNDS_MAX];
    XXH3_state_t *exact, *state[CRN_BOUNDS_MAX];
    unsigned char piece[PIECE]; /* keys */
    unsigned char tail[PIECE];  /* values of a last piece that is not a whole number of vectors */
};

/* --- keys ------------------------------------------------------------------------------------
 *
 * NaNs are rare: a first pass only notices them, and a second one, where there are any, gives them
 * their key.
 */

#define DEFINE_KEYS(name, width, real, uint, SIGN, EXPONENT, QUIET_NAN)                            \
    static inline __attribute__((always_inline)) bool name(const crn_rules *r, bool relative,      \
                                                           bool nans, const unsigned char *src,    \
                                                           unsigned char *dst, size_t n)           \
    {                                                                                              \
        typedef real v_real __attribute__((vector_size(width)));                                   \
        typedef uint v_uint __attribute__((vector_size(width)));                                   \
        const v_real limit = ALL(v_real, (real)r->limit), magic = ALL(v_real, (real)r->magic);     \
        const v_uint half = ALL(v_uint, (uint)r->half), keep = ALL(v_uint, (uint)r->keep);         \
        v_uint top = {0}; /* its sign bits: a value beyond infinity was seen */                    \
        for (size_t i = 0; i < n; i += (width)) {                                                  \
            v_real x;                                                                              \
            __builtin_prefetch(src + i + PIECE, 0, 2);                                             \
            memcpy(&x, src + i, (width));                                                          \
            const v_uint bits = (v_uint)x, size = bits & (uint) ~(uint)(SIGN);                     \
            v_uint key = bits;                                                                     \
            if (relative) {                                                                        \
                key = (bits + half) & keep;                                                        \
                key = PICK((v_uint)((key & (uint)(EXPONENT)) == (uint)(EXPONENT)), bits, key);     \
            }                                                                                      \
            key = PICK((v_uint)((v_real)size < limit), (v_uint)((x + magic) - magic), key);        \
            if (nans)                                                                              \
                key = PICK((v_uint)(x != x), ALL(v_uint, (uint)(QUIET_NAN)), key);                 \
            top |= size + ((uint)(SIGN)-1 - (uint)(EXPONENT));                                     \
            memcpy(dst + i, &key, (width));                                                        \
        }                                                                                          \
        uint all = 0;                                                                              \
        for (size_t i = 0; i < (width) / sizeof all; i++)                                          \
            all |= top[i];                                                                         \
        return (all & (uint)(SIGN)) != 0;                                                          \
    }

/* The four functions that a target has: by type, and with rule 2 or without. */
typedef struct key_set {
    key_function *f32[2], *f64[2];
} key_set;

#define DEFINE_CALL(name, keys, attribute, relative)                                               \
    attribute static bool name(const crn_rules *r, const unsigned char *src, unsigned char *dst,   \
                               size_t n)                                                           \
    {                                                                                              \
        return keys(r, relative, false, src, dst, n) && keys(r, relative, true, src, dst, n);      \
    }

#define DEFINE_SET(target, width, attribute)                                                       \
    DEFINE_KEYS(f32_##target, width, float, uint32_t, 0x80000000u, 0x7f800000u, 0x7fc00000u)       \
    DEFINE_KEYS(f64_##target, width, double, uint64_t, 0x8000000000000000u, 0x7ff0000000000000u,   \
                0x7ff8000000000000u)                                                               \
    DEFINE_CALL(f32_absolute_##target, f32_##target, attribute, false)                             \
    DEFINE_CALL(f32_relative_##target, f32_##target, attribute, true)                              \
    DEFINE_CALL(f64_absolute_##target, f64_##target, attribute, false)                             \
    DEFINE_CALL(f64_relative_##target, f64_##target, attribute, true)                              \
    static const key_set set_##target = {{f32_absolute_##target, f32_relative_##target},           \
                                         {f64_absolute_##target, f64_relative_##target}};

#include "hash/hash_best.h"

/* --- digests --------------------------------------------------------------------------------- */

cairn_status crn_tolerant_create(size_t item, const crn_bound *bound, size_t n, crn_tolerant **ret)
{
    crn_tolerant *t;
    assert((item == 4 || item == 8) && n <= CRN_BOUNDS_MAX);
    CRN_TRY(crn_alloc(&t, 1));
    const key_set *set = best_set();
    bool whole = (t->exact = XXH3_createState()) != NULL;
    for (t->n = 0; t->n < n; t->n++) {
        crn_rules *r = &t->rule[t->n];
        *r = crn_rules_of(&bound[t->n], item);
        t->keys[t->n] = (item == 4 ? set->f32 : set->f64)[!r->only_absolute];
        t->state[t->n] = XXH3_createState();
        whole &= t->state[t->n] != NULL;
    }
    if (!whole) {
        crn_tolerant_free(t);
        return crn_fail(CAIRN_ENOMEM, "no memory for digests");
    }
    *ret = t;
    return CAIRN_OK;
}

void crn_tolerant_free(crn_tolerant *t)
{
    if (!t)
        return;
    XXH3_freeState(t->exact);
    for (size_t i = 0; i < t->n; i++)
        XXH3_freeState(t->state[i]);
    free(t);
}

static crn_digest digest_of_state(const XXH3_state_t *state)
{
    XXH128_canonical_t bytes;
    crn_digest d;
    XXH128_canonicalFromHash(&bytes, XXH3_128bits_digest(state));
    memcpy(d.b, bytes.digest, sizeof d.b);
    return d;
}

/* Keys of a piece for every bound, digested while they are in the cache. */
static bool digest_piece(crn_tolerant *t, const unsigned char *src, size_t nbytes)
{
    bool nan = false;
    const size_t whole = CRN_ROUND_UP(nbytes, (size_t)VECTOR_MAX);
    if (whole != nbytes) {
        memcpy(t->tail, src, nbytes);
        memset(t->tail + nbytes, 0, whole - nbytes);
        src = t->tail;
    }
    for (size_t i = 0; i < t->n; i++) {
        nan |= t->keys[i](&t->rule[i], src, t->piece, whole);
        XXH3_128bits_update(t->state[i], t->piece, nbytes);
    }
    return nan;
}

bool crn_tolerant_keys(crn_tolerant *t, size_t k, const void *src, void *dst, size_t nbytes)
{
    bool nan = false;
    fenv_t modes;
    fegetenv(&modes);
    fesetenv(FE_DFL_ENV);
    for (size_t at = 0; at < nbytes; at += PIECE) {
        const size_t n = CRN_MIN(nbytes - at, (size_t)PIECE);
        memset(t->tail, 0, sizeof t->tail);
        memcpy(t->tail, (const unsigned char *)src + at, n);
        nan |= t->keys[k](&t->rule[k], t->tail, t->piece, CRN_ROUND_UP(n, (size_t)VECTOR_MAX));
        memcpy((unsigned char *)dst + at, t->piece, n);
    }
    fesetenv(&modes);
    return nan;
}

bool crn_tolerant_digest(crn_tolerant *t, const void *data, size_t nbytes, crn_digest *exact,
                         crn_digest *tolerant)
{
    const unsigned char *src = data;
    bool nan = false;
    fenv_t modes;
    fegetenv(&modes);
    fesetenv(FE_DFL_ENV);
    XXH3_128bits_reset(t->exact);
    for (size_t i = 0; i < t->n; i++)
        XXH3_128bits_reset(t->state[i]);
    while (nbytes > 0) {
        const size_t n = CRN_MIN(nbytes, (size_t)PIECE);
        if (exact)
            XXH3_128bits_update(t->exact, src, n);
        nan |= digest_piece(t, src, n);
        src += n, nbytes -= n;
    }
    if (exact)
        *exact = digest_of_state(t->exact);
    for (size_t i = 0; i < t->n; i++)
        tolerant[i] = digest_of_state(t->state[i]);
    crn_xxh3_leave();
    fesetenv(&modes);
    return nan;
}
