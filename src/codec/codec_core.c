/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What all codecs share; see codec_ops.h. The encoded form is the codec's own, after a guard for
 * those whose decoder trusts its input:
 *
 *     u64 XXH3 of the rest, seeded with the kind of values and the decoded length | the codec's own
 */
#include "codec/codec_ops.h"

#include <xxhash.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "encoded values are little-endian");

enum { GUARD = sizeof(uint64_t) };

size_t crn_elem_nbytes(crn_elem elem)
{
    static const size_t nbytes[CRN_NELEMS] = {1, sizeof(float), sizeof(double)};
    return nbytes[elem];
}

const char *crn_codec_name(const crn_codec_ops *codec)
{
    return codec->name;
}

uint32_t crn_codec_id(const crn_codec_ops *codec)
{
    return codec->id;
}

cairn_status crn_codec_ready(const crn_codec_ops *codec)
{
    return codec->ready ? codec->ready() : CAIRN_OK;
}

bool crn_codec_accepts(const crn_codec_ops *codec, crn_elem elem)
{
    return codec->elems & CRN_ELEM_BIT(elem);
}

/* Codecs that interpret values are not believed: they are checked by decoding. */
static bool is_verified(const crn_codec_ops *codec)
{
    return !(codec->elems & CRN_ELEM_BIT(CRN_ELEM_BYTES));
}

size_t crn_codec_guard(const crn_codec_ops *codec)
{
    return codec->trusting ? GUARD : 0;
}

static uint64_t guard_value(crn_elem elem, size_t nbytes, const void *data, size_t n)
{
    return XXH3_64bits_withSeed(data, n, (uint64_t)nbytes << 8 | (uint64_t)elem);
}

size_t crn_codec_bound(const crn_codec_ops *codec, size_t nbytes)
{
    return crn_codec_guard(codec) + (codec->bound ? codec->bound(nbytes) : nbytes);
}

size_t crn_codec_decode_scratch(const crn_codec_ops *codec)
{
    return codec->decode_work ? CRN_ROUND_UP(codec->decode_work(), (size_t)CRN_CODEC_ALIGN) : 0;
}

/* Workspace of encode, which decode takes its turn with, and room to decode to. */
static size_t encode_work(const crn_codec_ops *codec, size_t nbytes)
{
    const size_t work = codec->encode_work ? codec->encode_work(nbytes) : 0;
    return CRN_MAX(CRN_ROUND_UP(work, (size_t)CRN_CODEC_ALIGN), crn_codec_decode_scratch(codec));
}

size_t crn_codec_encode_scratch(const crn_codec_ops *codec, size_t nbytes)
{
    return encode_work(codec, nbytes) + (is_verified(codec) ? nbytes : 0);
}

static bool survives(const crn_codec_ops *codec, crn_elem elem, const void *src, size_t nbytes,
                     const void *made, size_t n, unsigned char *scratch)
{
    unsigned char *again = scratch + encode_work(codec, nbytes);
    return codec->decode(elem, made, n, again, nbytes, scratch) && memcmp(src, again, nbytes) == 0;
}

cairn_status crn_codec_encode(const crn_codec_ops *codec, crn_elem elem, const void *src,
                              size_t nbytes, void *dst, void *scratch, size_t *ret_n)
{
    if (!codec->encode || !crn_codec_accepts(codec, elem) || nbytes % crn_elem_nbytes(elem) != 0)
        return CAIRN_NOTHING; /* those of shared objects encode by crn_foreign_encode */
    if (nbytes == 0) {
        *ret_n = 0;
        return CAIRN_OK;
    }
    CRN_TRY(crn_codec_ready(codec));
    size_t guard = crn_codec_guard(codec), n;
    unsigned char *own = (unsigned char *)dst + guard;
    cairn_status rc =
        codec->encode(elem, src, nbytes, own, crn_codec_bound(codec, nbytes) - guard, scratch, &n);
    if (rc != CAIRN_OK)
        return rc;
    if (n + guard > nbytes)
        return CAIRN_NOTHING;
    if (is_verified(codec) && !survives(codec, elem, src, nbytes, own, n, scratch))
        return CAIRN_NOTHING;
    *ret_n = crn_codec_seal(codec, elem, nbytes, dst, n);
    return CAIRN_OK;
}

size_t crn_codec_seal(const crn_codec_ops *codec, crn_elem elem, size_t nbytes, void *dst, size_t n)
{
    if (!codec->trusting)
        return n;
    const uint64_t value = guard_value(elem, nbytes, (unsigned char *)dst + GUARD, n);
    memcpy(dst, &value, GUARD);
    return n + GUARD;
}

bool crn_codec_is_sound(const crn_codec_ops *codec, crn_elem elem, const void *src, size_t n,
                        size_t nbytes)
{
    if (n == 0 || nbytes == 0 || !crn_codec_accepts(codec, elem) ||
        nbytes % crn_elem_nbytes(elem) != 0)
        return false;
    if (!codec->trusting)
        return true;
    uint64_t stated;
    if (n < GUARD)
        return false;
    memcpy(&stated, src, GUARD);
    return stated == guard_value(elem, nbytes, (const unsigned char *)src + GUARD, n - GUARD);
}

cairn_status crn_codec_decode(const crn_codec_ops *codec, crn_elem elem, const void *src, size_t n,
                              void *dst, size_t nbytes, void *scratch)
{
    if (n == 0 && nbytes == 0)
        return CAIRN_OK;
    CRN_TRY(crn_codec_ready(codec));
    size_t guard = crn_codec_guard(codec);
    const unsigned char *from = src;
    const bool sound = crn_codec_is_sound(codec, elem, src, n, nbytes);
    if (sound && codec->known)
        CRN_TRY(codec->known(from + guard, n - guard));
    bool good = sound && codec->decode(elem, from + guard, n - guard, dst, nbytes, scratch);
    CRN_FAIL_IF(!good, CAIRN_ECORRUPT, "%zu bytes are not what '%s' makes of %zu: damaged", n,
                codec->name, nbytes);
    return CAIRN_OK;
}
