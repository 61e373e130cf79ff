/* SPDX-License-Identifier: BSD-3-Clause
 *
 * LZ4, one block without frame. Its decoder is made for hostile input.
 */
#include "codec/codec_ops.h"

#include <limits.h>

#include <lz4.h>

static size_t encode_work(size_t nbytes)
{
    (void)nbytes;
    return (size_t)LZ4_sizeofState();
}

static cairn_status encode(crn_elem elem, const void *src, size_t nbytes, void *dst, size_t cap,
                           void *work, size_t *ret_n)
{
    (void)elem;
    if (nbytes > LZ4_MAX_INPUT_SIZE)
        return CAIRN_NOTHING;
    int n = LZ4_compress_fast_extState(work, src, dst, (int)nbytes, (int)CRN_MIN(cap, nbytes), 1);
    if (n <= 0)
        return CAIRN_NOTHING;
    *ret_n = (size_t)n;
    return CAIRN_OK;
}

static bool decode(crn_elem elem, const void *src, size_t n, void *dst, size_t nbytes, void *work)
{
    (void)elem, (void)work;
    if (n > INT_MAX || nbytes > INT_MAX)
        return false;
    return LZ4_decompress_safe(src, dst, (int)n, (int)nbytes) == (int)nbytes;
}

const crn_codec_ops crn_codec_lz4 = {
    .name = "lz4",
    .id = 1,
    .elems = CRN_ELEMS_ALL,
    .encode_work = encode_work,
    .encode = encode,
    .decode = decode,
};
