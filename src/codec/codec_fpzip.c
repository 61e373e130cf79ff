/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fpzip over one-dimensional data, all bits of each value: its stream. The library's decoder has no
 * notion of the end of its input.
 */
#include <fpzip.h>

#include "codec/codec_ops.h"

#include <limits.h>

static void describe(FPZ *fpz, crn_elem elem, size_t nbytes)
{
    fpz->type = elem == CRN_ELEM_F64 ? FPZIP_TYPE_DOUBLE : FPZIP_TYPE_FLOAT;
    fpz->prec = 0; /* all */
    fpz->nx = (int)(nbytes / crn_elem_nbytes(elem));
    fpz->ny = fpz->nz = fpz->nf = 1;
}

static cairn_status encode(crn_elem elem, const void *src, size_t nbytes, void *dst, size_t cap,
                           void *work, size_t *ret_n)
{
    (void)work;
    if (nbytes > INT_MAX)
        return CAIRN_NOTHING;
    FPZ *fpz = fpzip_write_to_buffer(dst, cap);
    CRN_FAIL_IF(!fpz, CAIRN_ENOMEM, "no memory for fpzip");
    describe(fpz, elem, nbytes);
    size_t n = fpzip_write(fpz, src);
    fpzip_write_close(fpz);
    if (n == 0) /* most likely more than cap */
        return CAIRN_NOTHING;
    *ret_n = n;
    return CAIRN_OK;
}

static bool decode(crn_elem elem, const void *src, size_t n, void *dst, size_t nbytes, void *work)
{
    (void)work;
    if (nbytes > INT_MAX)
        return false;
    FPZ *fpz = fpzip_read_from_buffer(src);
    if (!fpz)
        return false;
    describe(fpz, elem, nbytes);
    bool good = fpzip_read(fpz, dst) == n;
    fpzip_read_close(fpz);
    return good;
}

const crn_codec_ops crn_codec_fpzip = {
    .name = "fpzip",
    .id = 4,
    .elems = CRN_ELEMS_FLOAT,
    .trusting = true,
    .encode = encode,
    .decode = decode,
};
