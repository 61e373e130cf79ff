/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Storing values under a promise. Libraries are trusted with nothing: whatever they make is decoded
 * and held against what the program had before it counts.
 *
 *     aside      values that a codec cannot hold are replaced by their neighbours, and kept
 *     encode     with the setting, then up to RETRIES stricter ones
 *     check      crn_loss_holds over all values, those aside put back
 *     otherwise  shuffle and zstd, without loss; or the bytes as they are
 */
#include "codec/codec_ops.h"

#include <float.h>
#include <math.h>

enum { RETRIES = 4, ASIDE_SHARE = 16, SAMPLE = 8 << 10 }; /* at most one of 16 values is aside */

/* A block on its way, and the memory for it. */
typedef struct task {
    const crn_codec_setting *setting;
    const crn_codec_values *values;
    size_t n, width;
    unsigned char *dst, *work, *reads, *clean;
    uint32_t *aside;
    size_t naside;
    const void *src;    /* clean where some are aside, else the program's */
    double least, most; /* magnitudes of the finite values but 0 */
    crn_codec_result *ret;
} task;

const char *crn_fallback_name(crn_fallback f)
{
    static const char *const names[CRN_NFALLBACKS] = {"none", "stricter", "bound", "special",
                                                      "size"};
    return names[f];
}

void crn_codec_count(crn_codec_counts *c, const crn_codec_result *r, size_t nbytes)
{
    c->nblocks++;
    c->fallback[r->fallback]++;
    c->naside += r->naside;
    c->nbytes += nbytes;
    c->stored += r->codec != 0 ? r->n : nbytes;
    c->error = fmax(c->error, r->error);
}

void crn_codec_add_counts(crn_codec_counts *c, const crn_codec_counts *other)
{
    c->nblocks += other->nblocks;
    for (int f = 0; f < CRN_NFALLBACKS; f++)
        c->fallback[f] += other->fallback[f];
    c->naside += other->naside;
    c->nbytes += other->nbytes;
    c->stored += other->stored;
    c->took_ns += other->took_ns;
    c->error = fmax(c->error, other->error);
}

/* --- memory --------------------------------------------------------------------------------- */

size_t crn_codec_store_bound(size_t nbytes)
{
    return 2 * nbytes + 4096;
}

static size_t work_bytes(const crn_codec_setting *s, size_t nbytes)
{
    const size_t most =
        CRN_MAX(crn_shuffle_work(nbytes, s->level), crn_codec_decode_scratch(&crn_codec_shuffle));
    return CRN_ROUND_UP(most, (size_t)CRN_CODEC_ALIGN);
}

static size_t aside_bytes(size_t nbytes)
{
    return CRN_ROUND_UP((nbytes / ASIDE_SHARE + 1) * sizeof(uint32_t), (size_t)CRN_CODEC_ALIGN);
}

size_t crn_codec_store_scratch(const crn_codec_setting *s, size_t nbytes)
{
    return work_bytes(s, nbytes) + 2 * CRN_ROUND_UP(nbytes, (size_t)CRN_CODEC_ALIGN) +
           aside_bytes(nbytes);
}

static task task_of(const crn_codec_setting *s, const crn_codec_values *v, void *dst, void *scratch,
                    crn_codec_result *ret)
{
    const size_t width = crn_elem_nbytes(v->elem);
    const size_t room = CRN_ROUND_UP(v->nbytes, (size_t)CRN_CODEC_ALIGN);
    unsigned char *reads = (unsigned char *)scratch + work_bytes(s, v->nbytes);
    return (task){.setting = s,
                  .values = v,
                  .n = v->nbytes / width,
                  .width = width,
                  .dst = dst,
                  .work = scratch,
                  .reads = reads,
                  .clean = reads + room,
                  .aside = (uint32_t *)(void *)(reads + 2 * room),
                  .src = v->at,
                  .least = INFINITY,
                  .ret = ret};
}

static double value_at(const task *t, const void *from, size_t i)
{
    const unsigned char *at = (const unsigned char *)from + i * t->width;
    double x;
    float single;
    if (t->values->elem == CRN_ELEM_F64) {
        memcpy(&x, at, sizeof x);
        return x;
    }
    memcpy(&single, at, sizeof single);
    return single;
}

typedef struct boxed_codec {
    const crn_codec_ops *codec;
    const crn_box_ops *ops;
} boxed_codec;

static boxed_codec codec_of(crn_family family)
{
    switch (family) {
    case CRN_FAMILY_ZFP:
        return (boxed_codec){&crn_codec_zfp_box, &crn_zfp_boxes};
    case CRN_FAMILY_FPZIP:
        return (boxed_codec){&crn_codec_fpzip_box, &crn_fpzip_boxes};
    case CRN_FAMILY_F32:
        return (boxed_codec){&crn_codec_f32, &crn_f32_boxes};
    default:
        return (boxed_codec){&crn_codec_f16, &crn_f16_boxes};
    }
}

/* --- without loss --------------------------------------------------------------------------- */

static void store_raw(const task *t)
{
    *t->ret =
        (crn_codec_result){.reads = t->values->at, .exact = true, .fallback = t->ret->fallback};
}

/* By a codec of the table, as it would be without settings; NOTHING: it is no smaller. */
static cairn_status encode_plain(const task *t, const crn_codec_ops *codec, size_t *ret_n)
{
    const crn_codec_values *v = t->values;
    if (codec->elems & CRN_ELEM_BIT(CRN_ELEM_BYTES))
        return crn_codec_encode(codec, v->elem, v->at, v->nbytes, t->dst, t->work, ret_n);
    /* those that are checked decode to memory behind their workspace: they have none */
    return crn_codec_encode(codec, v->elem, v->at, v->nbytes, t->dst, t->reads, ret_n);
}

/* Boxes without loss: checked by comparing bytes. */
static cairn_status encode_exact_boxes(const task *t, const boxed_codec *b, size_t *ret_n)
{
    const crn_codec_ops *codec = b->codec;
    const crn_box_ops *ops = b->ops;
    const crn_codec_values *v = t->values;
    const size_t guard = crn_codec_guard(codec);
    const crn_boxed what = {.shape = v->shape};
    size_t n;
    CRN_TRY(crn_codec_ready(codec));
    cairn_status rc = crn_boxed_encode(ops, v->elem, &what, v->at, v->nbytes, t->dst + guard,
                                       crn_codec_store_bound(v->nbytes) - guard, &n);
    if (rc != CAIRN_OK)
        return rc;
    if (n + guard >= v->nbytes ||
        !crn_boxed_decode(ops, v->elem, t->dst + guard, n, t->reads, v->nbytes) ||
        memcmp(t->reads, v->at, v->nbytes) != 0)
        return CAIRN_NOTHING;
    *ret_n = crn_codec_seal(codec, v->elem, v->nbytes, t->dst, n);
    return CAIRN_OK;
}

static cairn_status encode_shuffled(const task *t, uint32_t inner, size_t *ret_n)
{
    const size_t width = t->values->elem == CRN_ELEM_BYTES ? 8 : t->width;
    return crn_shuffle_encode(width, inner, t->setting->level, t->values->at, t->values->nbytes,
                              t->dst, t->values->nbytes, t->work, ret_n);
}

static bool has_dims(const task *t)
{
    return t->values->shape.ndims > 1 && !t->setting->flat;
}

/* zfp or fpzip, in boxes where there are dimensions. */
static cairn_status encode_exact_values(const task *t, const crn_codec_ops *line,
                                        const boxed_codec *boxes, const crn_codec_ops **ret,
                                        size_t *ret_n)
{
    if (has_dims(t)) {
        *ret = boxes->codec;
        return encode_exact_boxes(t, boxes, ret_n);
    }
    *ret = line;
    return encode_plain(t, line, ret_n);
}

static cairn_status encode_exact(const task *t, const crn_codec_ops **ret, size_t *ret_n)
{
    const crn_codec_setting *s = t->setting;
    const boxed_codec boxes = codec_of(s->family);
    switch (s->family) {
    case CRN_FAMILY_LZ4:
        *ret = s->shuffle ? &crn_codec_shuffle : &crn_codec_lz4;
        return s->shuffle ? encode_shuffled(t, 1, ret_n) : encode_plain(t, *ret, ret_n);
    case CRN_FAMILY_ZSTD:
        *ret = s->shuffle ? &crn_codec_shuffle : &crn_codec_zstd;
        if (s->shuffle)
            return encode_shuffled(t, 2, ret_n);
        CRN_TRY(crn_codec_ready(*ret));
        return crn_zstd_encode(s->level, t->values->at, t->values->nbytes, t->dst,
                               t->values->nbytes, t->work, ret_n);
    case CRN_FAMILY_ZFP:
        return encode_exact_values(t, &crn_codec_zfp, &boxes, ret, ret_n);
    case CRN_FAMILY_FPZIP:
        return encode_exact_values(t, &crn_codec_fpzip, &boxes, ret, ret_n);
    default:
        *ret = &crn_codec_shuffle;
        return encode_shuffled(t, crn_codec_zstd.encode ? 2 : 1, ret_n);
    }
}

static cairn_status store_exact(const task *t)
{
    const crn_codec_values *v = t->values;
    const crn_codec_ops *codec = NULL;
    size_t n = 0;
    const bool takes = v->elem != CRN_ELEM_BYTES || t->setting->family <= CRN_FAMILY_ZSTD ||
                       t->setting->family == CRN_FAMILY_AUTO;
    cairn_status rc = takes ? encode_exact(t, &codec, &n) : CAIRN_NOTHING;
    if (rc < 0)
        return rc;
    store_raw(t);
    if (rc == CAIRN_OK && n < v->nbytes) {
        t->ret->codec = codec->id;
        t->ret->n = n;
    }
    return CAIRN_OK;
}

/* The setting did not do. */
static cairn_status fall_back(const task *t, crn_fallback why)
{
    crn_codec_setting lossless = *t->setting;
    task exact = *t;
    lossless.family = CRN_FAMILY_AUTO;
    exact.setting = &lossless;
    CRN_TRY(store_exact(&exact));
    t->ret->fallback = why;
    return CAIRN_OK;
}

/* --- values aside --------------------------------------------------------------------------- */

static bool is_special(const task *t, double x)
{
    return !isfinite(x) || (t->setting->zeros && x == 0 && signbit(x));
}

/* Find the values that go aside, and how large the others are; false: there are too many. */
static bool find_specials(task *t)
{
    const size_t most = t->n / ASIDE_SHARE;
    for (size_t i = 0; i < t->n; i++) {
        const double x = value_at(t, t->values->at, i), size = fabs(x);
        if (is_special(t, x)) {
            if (t->naside == most)
                return false;
            t->aside[t->naside++] = (uint32_t)i;
        } else if (size > 0) { /* none is NaN: no call for that */
            t->least = size < t->least ? size : t->least;
            t->most = size > t->most ? size : t->most;
        }
    }
    return true;
}

/* The same values with each one aside replaced by the one before it, so that codecs see nothing
 * that sticks out; at the beginning by the first that is not aside. */
static void clean(task *t)
{
    const unsigned char *from = t->values->at;
    size_t first = 0;
    if (t->naside == 0)
        return;
    memcpy(t->clean, from, t->values->nbytes);
    while (first < t->naside && t->aside[first] == first)
        first++;
    for (size_t k = 0; k < t->naside; k++) {
        const size_t at = t->aside[k];
        memcpy(t->clean + at * t->width,
               at > 0 ? t->clean + (at - 1) * t->width : from + first * t->width, t->width);
    }
    t->src = t->clean;
}

/* --- the modes ------------------------------------------------------------------------------ */

/* Bits of mantissa that keep the loss of every value, by rounding to the nearest. */
static double bits_for(const task *t)
{
    const crn_loss *l = &t->setting->loss;
    double error = l->relative; /* relative to any value; */
    if (l->absolute > 0 && t->most > 0)
        error = fmax(error, l->absolute / t->most); /* and to the largest */
    if (error <= 0)
        return DBL_MANT_DIG - 1;
    return fmin(fmax(ceil(-log2(error)) - 1, 1), DBL_MANT_DIG - 1);
}

/* The mode and value that a loss asks for. */
static void derive(const task *t, crn_codec_setting *s)
{
    const double head = t->values->elem == CRN_ELEM_F64 ? 12 : 9; /* bits of sign and exponent */
    if (s->mode != CRN_MODE_BY_LOSS)
        return;
    if (s->family == CRN_FAMILY_ZFP && s->loss.absolute > 0) {
        s->mode = CRN_MODE_ACCURACY;
        s->value = fmax(s->loss.absolute, s->loss.relative * (isfinite(t->least) ? t->least : 0));
    } else if (s->family == CRN_FAMILY_ZFP) {
        s->mode = CRN_MODE_ACCURACY;
        s->value = s->loss.relative * (isfinite(t->least) ? t->least : 1);
    } else if (s->family == CRN_FAMILY_FPZIP) {
        s->mode = CRN_MODE_PRECISION; /* it cuts, where rounding has one bit less */
        s->value = fmax(2 * ceil((head + bits_for(t) + 1) / 2), 4);
    } else {
        s->mode = CRN_MODE_BITS;
        s->value = bits_for(t);
    }
}

/* The next stricter setting; false: there is none. */
static bool make_stricter(const task *t, crn_codec_setting *s)
{
    const double all = 8 * (double)t->width;
    if (s->mode == CRN_MODE_ACCURACY) {
        s->value /= 4;
        return s->value > DBL_MIN;
    }
    if (s->mode != CRN_MODE_PRECISION && s->mode != CRN_MODE_RATE)
        return false;
    s->value += s->family == CRN_FAMILY_FPZIP ? 2 : 4;
    return s->value < all;
}

/* --- boxes ---------------------------------------------------------------------------------- */

static uint64_t param_of(const task *t, const crn_codec_setting *s, const crn_codec_shape *shape)
{
    const crn_codec_shape norm = crn_codec_normal_shape(shape);
    if (s->family == CRN_FAMILY_ZFP)
        return crn_zfp_param(t->values->elem, norm.ndims, s->mode, s->value);
    if (s->family == CRN_FAMILY_FPZIP)
        return crn_fpzip_param(t->values->elem, norm.ndims, s->mode, s->value);
    return 0;
}

/* Encode with one setting; NOTHING: it does not fit. */
static cairn_status encode_boxes(const task *t, const crn_codec_setting *s, bool flat,
                                 size_t *ret_n)
{
    const boxed_codec b = codec_of(s->family);
    const crn_codec_values *v = t->values;
    const size_t guard = crn_codec_guard(b.codec);
    crn_boxed what = {.original = v->at, .aside = t->aside, .naside = t->naside};
    size_t n;
    if (!flat)
        what.shape = v->shape;
    what.param = param_of(t, s, &what.shape);
    cairn_status rc = crn_boxed_encode(b.ops, v->elem, &what, t->src, v->nbytes, t->dst + guard,
                                       crn_codec_store_bound(v->nbytes) - guard, &n);
    if (rc == CAIRN_OK)
        *ret_n = crn_codec_seal(b.codec, v->elem, v->nbytes, t->dst, n);
    return rc;
}

static bool decode_boxes(const task *t, const boxed_codec *b, size_t n)
{
    const size_t guard = crn_codec_guard(b->codec);
    return crn_boxed_decode(b->ops, t->values->elem, t->dst + guard, n - guard, t->reads,
                            t->values->nbytes);
}

static bool is_kept(const task *t, double *ret_error)
{
    const crn_loss *loss = t->setting->bounded ? &t->setting->loss : NULL;
    return crn_loss_holds(t->values->elem, t->values->at, t->reads, t->n, loss, ret_error);
}

static void accept(const task *t, uint32_t codec, size_t n, double error, crn_fallback how)
{
    *t->ret = (crn_codec_result){.codec = codec,
                                 .n = n,
                                 .reads = t->reads,
                                 .exact = memcmp(t->reads, t->values->at, t->values->nbytes) == 0,
                                 .error = error,
                                 .naside = t->naside,
                                 .fallback = how};
}

/* zfp and fpzip: from the setting to ever stricter ones. */
static cairn_status store_boxes(task *t)
{
    crn_codec_setting s = *t->setting;
    const boxed_codec b = codec_of(s.family);
    bool flat = !has_dims(t);
    derive(t, &s);
    CRN_TRY(crn_codec_ready(b.codec));
    for (int tried = 0; tried < RETRIES; tried++) {
        double error;
        size_t n;
        cairn_status rc = encode_boxes(t, &s, flat, &n);
        if (rc == CAIRN_NOTHING && !flat) { /* small boxes take the room of larger ones */
            flat = true;
            rc = encode_boxes(t, &s, flat, &n);
        }
        if (rc < 0)
            return rc;
        if (rc == CAIRN_NOTHING || n >= t->values->nbytes)
            return fall_back(t, CRN_FALLBACK_SIZE);
        if (decode_boxes(t, &b, n) && is_kept(t, &error)) {
            accept(t, b.codec->id, n, error, tried ? CRN_FALLBACK_STRICTER : CRN_FALLBACK_NONE);
            return CAIRN_OK;
        }
        if (!make_stricter(t, &s))
            break;
    }
    return fall_back(t, CRN_FALLBACK_BOUND);
}

/* --- value by value ------------------------------------------------------------------------- */

/* x with bits of mantissa, to the nearest, ties to even; of a float32's in its own terms. */
static double round_value(const task *t, double x, int bits)
{
    const int drop = (t->values->elem == CRN_ELEM_F64 ? 52 : 23) - bits;
    uint64_t u = 0;
    float single = (float)x;
    if (drop <= 0)
        return x;
    if (t->values->elem == CRN_ELEM_F64)
        memcpy(&u, &x, sizeof x);
    else
        memcpy(&u, &single, sizeof single);
    u += (1ULL << (drop - 1)) - 1 + (u >> drop & 1);
    u &= ~((1ULL << drop) - 1);
    if (t->values->elem == CRN_ELEM_F64) {
        memcpy(&x, &u, sizeof x);
        return x;
    }
    memcpy(&single, &u, sizeof single);
    return single;
}

static void set_value(const task *t, unsigned char *to, size_t i, double x)
{
    const float single = (float)x;
    if (t->values->elem == CRN_ELEM_F64)
        memcpy(to + i * t->width, &x, sizeof x);
    else
        memcpy(to + i * t->width, &single, sizeof single);
}

/* A value whose rounded one does not keep the loss stays as it is: no other depends on it. */
static void round_values(const task *t, int bits)
{
    const unsigned char *from = t->values->at;
    double error;
    for (size_t i = 0; i < t->n; i++) {
        const double x = value_at(t, from, i);
        if (is_special(t, x))
            memcpy(t->reads + i * t->width, from + i * t->width, t->width);
        else
            set_value(t, t->reads, i, round_value(t, x, bits));
    }
    if (is_kept(t, &error))
        return;
    for (size_t i = 0; i < t->n; i++)
        if (!crn_loss_holds(t->values->elem, from + i * t->width, t->reads + i * t->width, 1,
                            &t->setting->loss, &error))
            memcpy(t->reads + i * t->width, from + i * t->width, t->width);
}

static cairn_status store_rounded(task *t)
{
    crn_codec_setting s = *t->setting;
    const crn_codec_values *v = t->values;
    double error;
    size_t n;
    derive(t, &s);
    round_values(t, (int)s.value);
    const uint32_t inner = crn_codec_zstd.encode ? 2 : 1;
    cairn_status rc = crn_shuffle_encode(t->width, inner, s.level, t->reads, v->nbytes, t->dst,
                                         v->nbytes, t->work, &n);
    if (rc < 0)
        return rc;
    if (rc == CAIRN_NOTHING || n >= v->nbytes)
        return fall_back(t, CRN_FALLBACK_SIZE);
    if (!is_kept(t, &error))
        return fall_back(t, CRN_FALLBACK_BOUND);
    t->naside = 0;
    accept(t, crn_codec_shuffle.id, n, error, CRN_FALLBACK_NONE);
    return CAIRN_OK;
}

/* Add the values that the narrow format does not keep to those aside; false: too many. */
static bool find_lost(task *t)
{
    const unsigned char *from = t->values->at;
    double error;
    t->naside = 0;
    for (size_t i = 0; i < t->n; i++) {
        if (!is_special(t, value_at(t, from, i)) &&
            crn_loss_holds(t->values->elem, from + i * t->width, t->reads + i * t->width, 1,
                           &t->setting->loss, &error))
            continue;
        if (t->naside == t->n / ASIDE_SHARE)
            return false;
        t->aside[t->naside++] = (uint32_t)i;
    }
    return true;
}

static cairn_status store_narrow(task *t)
{
    const boxed_codec b = codec_of(t->setting->family);
    double error;
    size_t n;
    if (!crn_codec_accepts(b.codec, t->values->elem)) /* it is that narrow already */
        return fall_back(t, CRN_FALLBACK_NONE);
    cairn_status rc = encode_boxes(t, t->setting, true, &n);
    if (rc == CAIRN_OK && decode_boxes(t, &b, n) && !is_kept(t, &error)) {
        if (!find_lost(t))
            return fall_back(t, CRN_FALLBACK_SPECIAL);
        clean(t);
        rc = encode_boxes(t, t->setting, true, &n);
    }
    if (rc < 0)
        return rc;
    if (rc == CAIRN_NOTHING || n >= t->values->nbytes)
        return fall_back(t, CRN_FALLBACK_SIZE);
    if (!decode_boxes(t, &b, n) || !is_kept(t, &error))
        return fall_back(t, CRN_FALLBACK_BOUND);
    accept(t, b.codec->id, n, error, CRN_FALLBACK_NONE);
    return CAIRN_OK;
}

/* --- shared objects ------------------------------------------------------------------------- */

/* Exact where nothing may be lost; else as the others. The codec may use as much memory as pays. */
static cairn_status store_foreign(task *t)
{
    const crn_codec_values *v = t->values;
    const bool lossy = crn_codec_is_lossy(t->setting) && v->elem != CRN_ELEM_BYTES;
    const crn_codec_ops *codec = &crn_codec_foreign;
    const size_t guard = crn_codec_guard(codec);
    const crn_loss none = {0};
    crn_boxed what = {.original = v->at, .aside = t->aside, .naside = t->naside};
    double error = 0;
    size_t n;
    if (has_dims(t))
        what.shape = v->shape;
    if (v->nbytes <= guard)
        return fall_back(t, CRN_FALLBACK_SIZE);
    cairn_status rc =
        crn_foreign_encode(t->setting->foreign, v->elem, &what, lossy ? &t->setting->loss : &none,
                           t->src, v->nbytes, t->dst + guard, v->nbytes - guard, &n);
    if (rc < 0)
        return rc;
    if (rc == CAIRN_NOTHING)
        return fall_back(t, CRN_FALLBACK_SIZE);
    if (!codec->decode(v->elem, t->dst + guard, n, t->reads, v->nbytes, NULL) ||
        (lossy ? !is_kept(t, &error) : memcmp(t->reads, v->at, v->nbytes) != 0))
        return fall_back(t, CRN_FALLBACK_BOUND);
    accept(t, codec->id, crn_codec_seal(codec, v->elem, v->nbytes, t->dst, n), error,
           CRN_FALLBACK_NONE);
    return CAIRN_OK;
}

/* --- all ------------------------------------------------------------------------------------ */

static cairn_status store_lossy(task *t)
{
    if (!find_specials(t) && t->setting->family != CRN_FAMILY_ROUND)
        return fall_back(t, CRN_FALLBACK_SPECIAL);
    switch (t->setting->family) {
    case CRN_FAMILY_ROUND:
        return store_rounded(t);
    case CRN_FAMILY_F32:
    case CRN_FAMILY_F16:
        clean(t);
        return store_narrow(t);
    case CRN_FAMILY_FOREIGN:
        clean(t);
        return store_foreign(t);
    default:
        clean(t);
        return store_boxes(t);
    }
}

/* Of the codecs that may keep a loss, the one that makes the fewest bytes of some of the values. */
static cairn_status choose(const task *t, crn_codec_setting *s)
{
    static const crn_family families[] = {CRN_FAMILY_ZFP, CRN_FAMILY_FPZIP, CRN_FAMILY_ROUND};
    const crn_codec_values all = *t->values;
    crn_codec_values some = all;
    size_t least = SIZE_MAX;
    crn_family best = CRN_FAMILY_ROUND;
    if (!has_dims(t))
        some.nbytes = CRN_MIN(all.nbytes, (size_t)SAMPLE);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        crn_codec_result r = {0};
        s->family = families[i];
        task one = task_of(s, &some, t->dst, t->work, &r);
        if (i < 2 && crn_codec_ready(codec_of(s->family).codec) < 0)
            continue;
        CRN_TRY(store_lossy(&one));
        if (r.codec != 0 && r.n < least) {
            least = r.n;
            best = s->family;
        }
    }
    s->family = best;
    return CAIRN_OK;
}

cairn_status crn_codec_store(const crn_codec_setting *s, const crn_codec_values *values, void *dst,
                             void *scratch, crn_codec_result *ret)
{
    crn_codec_setting chosen = *s;
    *ret = (crn_codec_result){.reads = values->at, .exact = true};
    task t = task_of(s, values, dst, scratch, ret);
    if (s->family == CRN_FAMILY_NONE || values->nbytes == 0 || values->nbytes % t.width != 0)
        return CAIRN_OK;
    if (s->family == CRN_FAMILY_FOREIGN &&
        (!crn_codec_is_lossy(s) || values->elem == CRN_ELEM_BYTES))
        return store_foreign(&t);
    if (!crn_codec_is_lossy(s) || values->elem == CRN_ELEM_BYTES)
        return store_exact(&t);
    if (s->family == CRN_FAMILY_AUTO) {
        CRN_TRY(choose(&t, &chosen));
        t = task_of(&chosen, values, dst, scratch, ret);
    }
    return store_lossy(&t);
}
