/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a codec must do. codec_none.c is the annotated template. codec_core.c does once what all
 * need: it checks arguments, looks for values that a codec would lose, guards decoders that trust
 * their input, and decodes and compares what was encoded.
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

    /* Its decoder does not survive damaged input: it is shown only what carries the right digest.
     */
    bool trusting;

    /* Can the parameters be followed at all? CAIRN_EINVAL with a sentence. NULL: always. */
    cairn_status (*check)(const crn_codec_params *p);

    /* Would values be changed? Then infinities and NaN are kept away. NULL: never. */
    bool (*is_lossy)(const crn_codec_params *p);

    /* Room for encode in dst, where it is more than nbytes. NULL: nbytes. */
    size_t (*bound)(size_t nbytes);

    /* Workspace for encode, or, if p is NULL, for decode. NULL: none. */
    size_t (*scratch)(const crn_codec_params *p, size_t nbytes);

    /*
     * Encode nbytes (not 0, a multiple of the value's size) from src into dst of cap bytes, with
     * scratch bytes of workspace at work. CAIRN_NOTHING when it does not fit or cannot be.
     */
    cairn_status (*encode)(const crn_codec_params *p, const void *src, size_t nbytes, void *dst,
                           size_t cap, void *work, size_t *ret_n);

    /*
     * Decode n bytes from src into exactly nbytes (not 0) at dst. False when src is not what
     * encode makes; unless trusting, for any bytes at all, without reading or writing elsewhere.
     */
    bool (*decode)(crn_elem elem, const void *src, size_t n, void *dst, size_t nbytes, void *work);
};

extern const crn_codec_ops crn_codec_none, crn_codec_lz4, crn_codec_zstd, crn_codec_zfp,
    crn_codec_fpzip, crn_codec_f32, crn_codec_f16;

/* Are all values finite? nbytes is a multiple of the value's size. Bytes always are. */
bool crn_codec_all_finite(crn_elem elem, const void *data, size_t nbytes);

/* Are all values of b finite and within tolerance (0: any) of those of a? */
bool crn_codec_all_close(crn_elem elem, const void *a, const void *b, size_t nbytes,
                         double tolerance);

/* The i-th value of data, which need not be aligned, and its replacement by v. */
static inline double crn_codec_load(crn_elem elem, const void *data, size_t i)
{
    const unsigned char *at = data;
    float single;
    double value;
    if (elem == CRN_ELEM_F64) {
        memcpy(&value, at + i * sizeof value, sizeof value);
        return value;
    }
    memcpy(&single, at + i * sizeof single, sizeof single);
    return single;
}

static inline void crn_codec_store(crn_elem elem, void *data, size_t i, double v)
{
    unsigned char *at = data;
    float single = (float)v;
    if (elem == CRN_ELEM_F64)
        memcpy(at + i * sizeof v, &v, sizeof v);
    else
        memcpy(at + i * sizeof single, &single, sizeof single);
}

#endif
