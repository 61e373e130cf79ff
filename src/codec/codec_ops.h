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

    /* Can what encode made be decoded here? n bytes, of any content. NULL: all can.
     * CAIRN_EUNSUPPORTED. */
    cairn_status (*known)(const void *own, size_t n);

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

/* --- boxes ---------------------------------------------------------------------------------- */

/* Values that lie one behind the other and form a box, the last index fastest. */
typedef struct crn_codec_box {
    uint32_t ndims;   /* at least 1 */
    uint32_t missing; /* dimensions of the shape that it is cut from, and does not have */
    size_t extent[CRN_CODEC_DIMS];
    size_t first, n; /* in the block */
} crn_codec_box;

enum { CRN_CODEC_BOXES = 3 * CRN_CODEC_DIMS };

/* Cut n values of a shape into boxes, in order. Returns how many; at most CRN_CODEC_BOXES. */
size_t crn_codec_boxes(const crn_codec_shape *shape, size_t n, crn_codec_box *ret);

/* The same array with as many dimensions as are worth it; fields that need not be 32 bits make it
 * flat. */
crn_codec_shape crn_codec_normal_shape(const crn_codec_shape *shape);

/* All of a block, in one dimension. */
static inline crn_codec_box crn_codec_line(crn_elem elem, size_t nbytes)
{
    const size_t n = nbytes / crn_elem_nbytes(elem);
    return (crn_codec_box){.ndims = 1, .extent = {n}, .n = n};
}

/* What a codec of boxes does; codec_boxed.c does the rest. */
typedef struct crn_box_ops {
    /* As crn_codec_ops; param is the codec's own, and on disk. */
    cairn_status (*encode)(crn_elem elem, const crn_codec_box *box, uint64_t param, const void *src,
                           void *dst, size_t cap, size_t *ret_n);
    /* How many of n bytes did it take? 0: these are not what encode makes. */
    size_t (*decode)(crn_elem elem, const crn_codec_box *box, uint64_t param, const void *src,
                     size_t n, void *dst);
    bool flat; /* it sees one dimension only */
} crn_box_ops;

/* What is to be encoded besides the values: those at ascending positions are kept aside, as they
 * are in original. */
typedef struct crn_boxed {
    uint64_t param;
    crn_codec_shape shape;
    const void *original;
    const uint32_t *aside;
    size_t naside;
} crn_boxed;

cairn_status crn_boxed_encode(const crn_box_ops *ops, crn_elem elem, const crn_boxed *what,
                              const void *src, size_t nbytes, void *dst, size_t cap, size_t *ret_n);
bool crn_boxed_decode(const crn_box_ops *ops, crn_elem elem, const void *src, size_t n, void *dst,
                      size_t nbytes);

/* Codecs of shared objects: as crn_boxed_encode; loss is NULL-free, of zeros where nothing may be
 * lost. */
cairn_status crn_foreign_find(const char *file, const char *options, const crn_foreign **ret);
cairn_status crn_foreign_encode(const crn_foreign *f, crn_elem elem, const crn_boxed *what,
                                const crn_loss *loss, const void *src, size_t nbytes, void *dst,
                                size_t cap, size_t *ret_n);
const char *crn_foreign_text(const crn_foreign *f, const char **ret_options);

/* A boxed codec's parameter for a mode, for values of this kind. */
uint64_t crn_zfp_param(crn_elem elem, uint32_t ndims, crn_mode mode, double value);
uint64_t crn_fpzip_param(crn_elem elem, uint32_t ndims, crn_mode mode, double value);

/* Bytes of one significance side by side, then lz4 (1) or zstd (2) of this level. The encoder needs
 * a workspace of crn_shuffle_work and nbytes more. */
size_t crn_shuffle_work(size_t nbytes, int level);
cairn_status crn_shuffle_encode(size_t width, uint32_t inner, int level, const void *src,
                                size_t nbytes, void *dst, size_t cap, void *work, size_t *ret_n);

/* Zstandard with another level than the usual one. */
size_t crn_zstd_work(size_t nbytes, int level);
cairn_status crn_zstd_encode(int level, const void *src, size_t nbytes, void *dst, size_t cap,
                             void *work, size_t *ret_n);

/* Bytes that stand before what the codec itself made. */
size_t crn_codec_guard(const crn_codec_ops *codec);

/* May the codec's decoder see these bytes? */
bool crn_codec_is_sound(const crn_codec_ops *codec, crn_elem elem, const void *src, size_t n,
                        size_t nbytes);

extern const crn_codec_ops crn_codec_none, crn_codec_lz4, crn_codec_zstd, crn_codec_zfp,
    crn_codec_fpzip, crn_codec_zfp_box, crn_codec_fpzip_box, crn_codec_shuffle, crn_codec_f32,
    crn_codec_f16, crn_codec_foreign;
extern const crn_box_ops crn_zfp_boxes, crn_fpzip_boxes, crn_f32_boxes, crn_f16_boxes;

/* The codec's own bytes, with the guard before them where it is trusting. */
size_t crn_codec_seal(const crn_codec_ops *codec, crn_elem elem, size_t nbytes, void *dst,
                      size_t n);

#endif
