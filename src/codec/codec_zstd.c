/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Zstandard, one frame per block. Its contexts are built in the caller's scratch memory by calls
 * that the library exports but keeps the right to change; tests would notice.
 */
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#include <zstd_errors.h>

#include "codec/codec_ops.h"

enum { LEVEL = 1 }; /* fast, because a mark is taken more often than it is read */

size_t crn_zstd_work(size_t nbytes, int level)
{
    return ZSTD_estimateCCtxSize_usingCParams(ZSTD_getCParams(level, nbytes, 0));
}

cairn_status crn_zstd_encode(int level, const void *src, size_t nbytes, void *dst, size_t cap,
                             void *work, size_t *ret_n)
{
    ZSTD_CCtx *ctx = ZSTD_initStaticCCtx(work, crn_zstd_work(nbytes, level));
    CRN_FAIL_IF(!ctx, CAIRN_EINTERNAL, "zstd refuses its workspace");
    size_t n = ZSTD_compressCCtx(ctx, dst, CRN_MIN(cap, nbytes), src, nbytes, level);
    if (ZSTD_getErrorCode(n) == ZSTD_error_dstSize_tooSmall)
        return CAIRN_NOTHING;
    CRN_FAIL_IF(ZSTD_isError(n), CAIRN_EINTERNAL, "zstd failed: %s", ZSTD_getErrorName(n));
    *ret_n = n;
    return CAIRN_OK;
}

static size_t encode_work(size_t nbytes)
{
    return crn_zstd_work(nbytes, LEVEL);
}

static cairn_status encode(crn_elem elem, const void *src, size_t nbytes, void *dst, size_t cap,
                           void *work, size_t *ret_n)
{
    (void)elem;
    return crn_zstd_encode(LEVEL, src, nbytes, dst, cap, work, ret_n);
}

static bool decode(crn_elem elem, const void *src, size_t n, void *dst, size_t nbytes, void *work)
{
    (void)elem;
    ZSTD_DCtx *ctx = ZSTD_initStaticDCtx(work, ZSTD_estimateDCtxSize());
    return ctx && ZSTD_decompressDCtx(ctx, dst, nbytes, src, n) == nbytes;
}

const crn_codec_ops crn_codec_zstd = {
    .name = "zstd",
    .id = 2,
    .elems = CRN_ELEMS_ALL,
    .encode_work = encode_work,
    .decode_work = ZSTD_estimateDCtxSize,
    .encode = encode,
    .decode = decode,
};
