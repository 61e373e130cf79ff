/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The payload of a trace file in fewer bytes.
 */
#include "tracefmt/tracefmt.h"
#include "tracefmt/tracefmt_file.h"

#if CRN_WITH_ZSTD_TRACES
#include <zstd.h>

cairn_status crn_trace_pack(const void *data, size_t nbytes, int level, unsigned char **ret,
                            size_t *ret_n)
{
    cairn_status rc = CAIRN_OK;
    unsigned char *frame = NULL;
    const size_t cap = ZSTD_compressBound(nbytes);
    ZSTD_CCtx *z = ZSTD_createCCtx();
    if (!z)
        return crn_fail(CAIRN_ENOMEM, "cannot allocate a compressor");
    CRN_TRY_OUT(rc, crn_alloc(&frame, cap));
    ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
    const size_t n = ZSTD_compress2(z, frame, cap, data, nbytes);
    if (ZSTD_isError(n)) {
        rc = crn_fail(CAIRN_ENOMEM, "cannot compress a trace: %s", ZSTD_getErrorName(n));
        goto out;
    }
    *ret = frame;
    *ret_n = n;
    frame = NULL;
out:
    free(frame);
    ZSTD_freeCCtx(z);
    return rc;
}

cairn_status crn_trace_unpack(const void *packed, size_t n, size_t nbytes, unsigned char **ret)
{
    CRN_FAIL_IF(ZSTD_getFrameContentSize(packed, n) != nbytes, CAIRN_ECORRUPT,
                "the head of a trace does not fit what follows");
    unsigned char *raw;
    CRN_TRY(crn_alloc(&raw, nbytes));
    const size_t got = ZSTD_decompress(raw, nbytes, packed, n);
    if (ZSTD_isError(got) || got != nbytes) {
        free(raw);
        return crn_fail(CAIRN_ECORRUPT, "a trace does not decompress: %s", ZSTD_getErrorName(got));
    }
    *ret = raw;
    return CAIRN_OK;
}

#else

static cairn_status refuse(void)
{
    return crn_fail(CAIRN_EUNSUPPORTED, "this Cairn was built without traces: build it with zstd");
}

cairn_status crn_trace_pack(const void *data, size_t nbytes, int level, unsigned char **ret,
                            size_t *ret_n)
{
    (void)data, (void)nbytes, (void)level, (void)ret, (void)ret_n;
    return refuse();
}

cairn_status crn_trace_unpack(const void *packed, size_t n, size_t nbytes, unsigned char **ret)
{
    (void)packed, (void)n, (void)nbytes, (void)ret;
    return refuse();
}

#endif
