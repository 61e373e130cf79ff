/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Byte shuffling: the first bytes of all values, then all second ones and so on, so that lz4 or
 * zstd sees signs and exponents side by side. What is left of a value at the end stays there.
 *
 *     u8 bytes of a value, 2 to 8 | u8 codec of the rest: 1 lz4, 2 zstd | its bytes
 */
#include "codec/codec_ops.h"

enum { HEAD = 2, WIDTH_MAX = 8, LZ4 = 1, ZSTD = 2 };

static void shuffle(size_t width, const unsigned char *src, size_t nbytes, unsigned char *dst)
{
    const size_t n = nbytes / width;
    for (size_t b = 0; b < width; b++)
        for (size_t i = 0; i < n; i++)
            dst[b * n + i] = src[i * width + b];
    memcpy(dst + n * width, src + n * width, nbytes - n * width);
}

static void unshuffle(size_t width, const unsigned char *src, size_t nbytes, unsigned char *dst)
{
    const size_t n = nbytes / width;
    for (size_t i = 0; i < n; i++)
        for (size_t b = 0; b < width; b++)
            dst[i * width + b] = src[b * n + i];
    memcpy(dst + n * width, src + n * width, nbytes - n * width);
}

static size_t inner_work(size_t nbytes, int level)
{
    const size_t lz4 = crn_codec_lz4.encode_work ? crn_codec_lz4.encode_work(nbytes) : 0;
    return CRN_ROUND_UP(CRN_MAX(lz4, crn_zstd_work(nbytes, level)), (size_t)CRN_CODEC_ALIGN);
}

size_t crn_shuffle_work(size_t nbytes, int level)
{
    return inner_work(nbytes, level) + nbytes;
}

cairn_status crn_shuffle_encode(size_t width, uint32_t inner, int level, const void *src,
                                size_t nbytes, void *dst, size_t cap, void *work, size_t *ret_n)
{
    unsigned char *to = dst, *mixed = (unsigned char *)work + inner_work(nbytes, level);
    size_t n;
    if (cap <= HEAD || width < 2 || width > WIDTH_MAX)
        return CAIRN_NOTHING;
    shuffle(width, src, nbytes, mixed);
    to[0] = (unsigned char)width;
    to[1] = (unsigned char)inner;
    cairn_status rc = CAIRN_NOTHING;
    if (inner == ZSTD)
        rc = crn_zstd_encode(level, mixed, nbytes, to + HEAD, cap - HEAD, work, &n);
    else if (crn_codec_lz4.encode)
        rc = crn_codec_lz4.encode(CRN_ELEM_BYTES, mixed, nbytes, to + HEAD, cap - HEAD, work, &n);
    if (rc == CAIRN_OK)
        *ret_n = n + HEAD;
    return rc;
}

/* --- by the table --------------------------------------------------------------------------- */

enum { LEVEL = 1, USUAL = 8 };

static size_t encode_work(size_t nbytes)
{
    return crn_shuffle_work(nbytes, LEVEL);
}

static cairn_status encode(crn_elem elem, const void *src, size_t nbytes, void *dst, size_t cap,
                           void *work, size_t *ret_n)
{
    const size_t width = elem == CRN_ELEM_BYTES ? USUAL : crn_elem_nbytes(elem);
    return crn_shuffle_encode(width, crn_codec_zstd.encode ? ZSTD : LZ4, LEVEL, src, nbytes, dst,
                              cap, work, ret_n);
}

/* Decoding needs room for what is shuffled: a part of a block at a time would be another format. So
 * it is on the heap, as this signature has no length in its workspace. */
static bool decode(crn_elem elem, const void *src, size_t n, void *dst, size_t nbytes, void *work)
{
    const unsigned char *from = src;
    unsigned char *mixed;
    if (n <= HEAD || from[0] < 2 || from[0] > WIDTH_MAX)
        return false;
    const crn_codec_ops *inner = from[1] == LZ4    ? &crn_codec_lz4
                                 : from[1] == ZSTD ? &crn_codec_zstd
                                                   : NULL;
    if (!inner || !inner->decode || crn_alloc(&mixed, nbytes) < 0)
        return false;
    const bool good = inner->decode(elem, from + HEAD, n - HEAD, mixed, nbytes, work);
    if (good)
        unshuffle(from[0], mixed, nbytes, dst);
    free(mixed);
    return good;
}

static size_t decode_work(void)
{
    return crn_codec_zstd.decode_work ? crn_codec_zstd.decode_work() : 0;
}

/* It can be used as long as one of the two is there, and says so like the other. */
static cairn_status ready(void)
{
    if (crn_codec_zstd.encode || crn_codec_lz4.encode)
        return CAIRN_OK;
    return crn_codec_zstd.ready();
}

const crn_codec_ops crn_codec_shuffle = {
    .name = "shuffle",
    .id = 7,
    .elems = CRN_ELEMS_ALL,
    .ready = ready,
    .encode_work = encode_work,
    .decode_work = decode_work,
    .encode = encode,
    .decode = decode,
};
