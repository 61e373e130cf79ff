/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fpzip over one-dimensional data: the leading bits of each value, or all. The library's decoder
 * has no notion of the end of its input, and its encoder answers a precision that it does not have
 * with silence.
 *
 *     u8 bits kept, 0 for all | its stream
 */
#include <fpzip.h>

#include "codec/codec_ops.h"

#include <limits.h>

static cairn_status check(const crn_codec_params *p)
{
    int max = 8 * (int)crn_elem_nbytes(p->elem);
    int step = p->elem == CRN_ELEM_F64 ? 2 : 1; /* doubles go in steps of two bits, from 4 on */
    bool known = p->precision == 0 ||
                 (p->precision >= 2 * step && p->precision <= max && p->precision % step == 0);
    CRN_FAIL_IF(p->elem != CRN_ELEM_BYTES && !known, CAIRN_EINVAL,
                "fpzip keeps %s from %d to %d bits of these values, not %d",
                step == 2 ? "an even number" : "any number", 2 * step, max, p->precision);
    return CAIRN_OK;
}

static bool is_lossy(const crn_codec_params *p)
{
    return p->precision > 0 && p->precision < 8 * (int)crn_elem_nbytes(p->elem);
}

static void describe(FPZ *fpz, crn_elem elem, int precision, size_t nbytes)
{
    fpz->type = elem == CRN_ELEM_F64 ? FPZIP_TYPE_DOUBLE : FPZIP_TYPE_FLOAT;
    fpz->prec = precision;
    fpz->nx = (int)(nbytes / crn_elem_nbytes(elem));
    fpz->ny = fpz->nz = fpz->nf = 1;
}

static cairn_status encode(const crn_codec_params *p, const void *src, size_t nbytes, void *dst,
                           size_t cap, void *work, size_t *ret_n)
{
    (void)work;
    unsigned char *to = dst;
    if (nbytes > INT_MAX)
        return CAIRN_NOTHING;
    FPZ *fpz = fpzip_write_to_buffer(to + 1, cap - 1);
    CRN_FAIL_IF(!fpz, CAIRN_ENOMEM, "no memory for fpzip");
    describe(fpz, p->elem, p->precision, nbytes);
    size_t n = fpzip_write(fpz, src);
    fpzip_write_close(fpz);
    if (n == 0) /* most likely more than cap */
        return CAIRN_NOTHING;
    *to = (unsigned char)p->precision;
    *ret_n = 1 + n;
    return CAIRN_OK;
}

static bool decode(crn_elem elem, const void *src, size_t n, void *dst, size_t nbytes, void *work)
{
    (void)work;
    const unsigned char *from = src;
    if (n < 2 || nbytes > INT_MAX)
        return false;
    FPZ *fpz = fpzip_read_from_buffer(from + 1);
    if (!fpz)
        return false;
    describe(fpz, elem, *from, nbytes);
    bool good = fpzip_read(fpz, dst) == n - 1;
    fpzip_read_close(fpz);
    return good;
}

const crn_codec_ops crn_codec_fpzip = {
    .name = "fpzip",
    .id = 4,
    .elems = CRN_ELEMS_FLOAT,
    .trusting = true,
    .check = check,
    .is_lossy = is_lossy,
    .encode = encode,
    .decode = decode,
};
