/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Doubles as single precision, rounded to nearest. Values beyond its range become infinite, which
 * the check after encoding finds.
 */
#include "codec/codec_ops.h"

static bool is_lossy(const crn_codec_params *p)
{
    (void)p;
    return true;
}

static cairn_status encode(const crn_codec_params *p, const void *src, size_t nbytes, void *dst,
                           size_t cap, void *work, size_t *ret_n)
{
    (void)p, (void)work;
    size_t n = nbytes / sizeof(double);
    if (n * sizeof(float) > cap)
        return CAIRN_NOTHING;
    for (size_t i = 0; i < n; i++)
        crn_codec_store(CRN_ELEM_F32, dst, i, crn_codec_load(CRN_ELEM_F64, src, i));
    *ret_n = n * sizeof(float);
    return CAIRN_OK;
}

static bool decode(crn_elem elem, const void *src, size_t n, void *dst, size_t nbytes, void *work)
{
    (void)work;
    if (n % sizeof(float) != 0 || n / sizeof(float) != nbytes / sizeof(double))
        return false;
    for (size_t i = 0; i < n / sizeof(float); i++)
        crn_codec_store(elem, dst, i, crn_codec_load(CRN_ELEM_F32, src, i));
    return crn_codec_all_finite(elem, dst, nbytes);
}

const crn_codec_ops crn_codec_f32 = {
    .name = "f32",
    .id = 5,
    .elems = CRN_ELEM_BIT(CRN_ELEM_F64),
    .is_lossy = is_lossy,
    .encode = encode,
    .decode = decode,
};
