/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The codec that changes nothing, and the template for others. Copy it and go through the fields:
 *
 *   name, id    the next free id of codec.h's table
 *   elems       CRN_ELEMS_ALL, or the kinds of values that it understands; a codec that does not
 *               take plain bytes has its results decoded and compared before they count
 *   trusting    if its decoder can read or write out of bounds on damaged input
 *   bound, encode_work, decode_work
 *               only if it needs room beyond nbytes, or workspace
 */
#include "codec/codec_ops.h"

static cairn_status encode(crn_elem elem, const void *src, size_t nbytes, void *dst, size_t cap,
                           void *work, size_t *ret_n)
{
    (void)elem, (void)work;
    if (nbytes > cap) /* never write beyond cap; a result that is not worth having is no error */
        return CAIRN_NOTHING;
    memcpy(dst, src, nbytes);
    *ret_n = nbytes;
    return CAIRN_OK;
}

static bool decode(crn_elem elem, const void *src, size_t n, void *dst, size_t nbytes, void *work)
{
    (void)elem, (void)work;
    if (n != nbytes) /* check every length before it is used; produce exactly nbytes */
        return false;
    memcpy(dst, src, n);
    return true;
}

const crn_codec_ops crn_codec_none = {
    .name = "none",
    .id = 0,
    .elems = CRN_ELEMS_ALL,
    .encode = encode,
    .decode = decode,
};
