/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a codec must do. codec_none.c is the annotated template. codec_core.c does once what all
 * need: it checks arguments, guards decoders that trust their input, and decodes and compares what
 * was encoded.
 */
#ifndef CAIRN_CODEC_OPS_H
#define CAIRN_CODEC_OPS_H

#include "codec/codec.h"

#define CRN_ELEM_BIT(elem) (1U << (elem))
#define CRN_ELEMS_FLOAT    (CRN_ELEM_BIT(CRN_ELEM_F32) | CRN_ELEM_BIT(CRN_ELEM_F64))
#define CRN_ELEMS_ALL      (CRN_ELEM_BIT(CRN_ELEM_BYTES) | CRN_ELEMS_FLOAT)

struct crn_codec_ops {
    const char *name; /* as in a configuration */
    uint32_t id;      /* on disk: never changed, never used again */
    unsigned elems;   /* CRN_ELEM_BIT of each kind of values that it takes */

    /* Make it usable, before anything below is called. NULL: it is. CAIRN_EUNSUPPORTED. */
    cairn_status (*ready)(void);

    /* Its decoder does not survive damaged input: it is shown only what carries the right digest.
     */
    bool trusting;

    /* Room for encode in dst, where it is more than nbytes. NULL: nbytes. */
    size_t (*bound)(size_t nbytes);

    /* Workspace for encode and for decode. NULL: none. */
    size_t (*encode_work)(size_t nbytes);
    size_t (*decode_work)(void);

    /*
     * Encode nbytes (not 0, a multiple of the value's size) from src into dst of cap bytes, with
     * workspace at work. CAIRN_NOTHING when it does not fit or cannot be.
     */
    cairn_status (*encode)(crn_elem elem, const void *src, size_t nbytes, void *dst, size_t cap,
                           void *work, size_t *ret_n);

    /*
     * Decode n bytes from src into exactly nbytes (not 0) at dst. False when src is not what
     * encode makes; unless trusting, for any bytes at all, without reading or writing elsewhere.
     */
    bool (*decode)(crn_elem elem, const void *src, size_t n, void *dst, size_t nbytes, void *work);
};

/* Bytes that stand before what the codec itself made. */
size_t crn_codec_guard(const crn_codec_ops *codec);

/* May the codec's decoder see these bytes? */
bool crn_codec_is_sound(const crn_codec_ops *codec, crn_elem elem, const void *src, size_t n,
                        size_t nbytes);

extern const crn_codec_ops crn_codec_none, crn_codec_lz4, crn_codec_zstd, crn_codec_zfp,
    crn_codec_fpzip;

#endif
