/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Every codec's decoder on any bytes: it gives exactly as many bytes as were asked for, or refuses.
 * The input is a codec, a kind of values, the length to decode to, and what is to be decoded: as it
 * is, and with the guard that a forger would give it. The same bytes are also encoded, and must
 * come back.
 */
#include "codec/codec_ops.h"

#include <assert.h>
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static void *room(size_t n)
{
    unsigned char *at;
    cairn_status rc = crn_alloc_aligned(&at, CRN_ROUND_UP(n, (size_t)64), 64);
    assert(rc == CAIRN_OK);
    return at;
}

static void decode(const crn_codec_ops *codec, crn_elem elem, const uint8_t *data, size_t n,
                   size_t nbytes)
{
    void *work = room(crn_codec_decode_scratch(codec)), *dst = malloc(nbytes + !nbytes);
    cairn_status rc = crn_codec_decode_apart(codec, elem, data, n, dst, nbytes, work);
    assert(rc == CAIRN_OK || rc == CAIRN_ECORRUPT || rc == CAIRN_EUNSUPPORTED);
    free(dst);
    free(work);
}

/* The guard is checked here, the rest in another process. */
static void decode_forged(const crn_codec_ops *codec, crn_elem elem, const uint8_t *data, size_t n,
                          size_t nbytes)
{
    uint8_t *copy = malloc(n + 8);
    const uint64_t guard = XXH3_64bits_withSeed(data, n, (uint64_t)nbytes << 8 | (uint64_t)elem);
    assert(copy);
    memcpy(copy, &guard, 8);
    memcpy(copy + 8, data, n);
    decode(codec, elem, copy, n + 8, nbytes);
    free(copy);
}

static void encode(const crn_codec_ops *codec, crn_elem elem, const uint8_t *data, size_t nbytes)
{
    void *work = room(crn_codec_encode_scratch(codec, nbytes));
    void *dst = malloc(crn_codec_bound(codec, nbytes) + 1), *back = malloc(nbytes + 1);
    size_t n;
    cairn_status rc = crn_codec_encode(codec, elem, data, nbytes, dst, work, &n);
    assert(rc == CAIRN_OK || rc == CAIRN_NOTHING);
    if (rc == CAIRN_OK) {
        rc = crn_codec_decode(codec, elem, dst, n, back, nbytes, work);
        assert(rc == CAIRN_OK);
        assert(memcmp(data, back, nbytes) == 0);
    }
    free(back);
    free(dst);
    free(work);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    crn_cursor in = crn_cursor_of(data, nbytes);
    const crn_codec_ops *codec = crn_codec_of_id(crn_get_u8(&in) % 16);
    crn_elem elem = (crn_elem)(crn_get_u8(&in) % CRN_NELEMS);
    size_t decoded = crn_get_u16(&in);
    if (in.failed || !codec)
        return 0;
    decode(codec, elem, in.at, in.n, decoded);
    if (codec->trusting && crn_codec_accepts(codec, elem))
        decode_forged(codec, elem, in.at, in.n, decoded);
    encode(codec, elem, in.at, in.n);
    return 0;
}
