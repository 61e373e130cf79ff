/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fpzip's streams: one-dimensional data with all bits of each value, and boxes with as many bits as
 * the parameter says (0: all). The fourth dimension is fpzip's number of fields. The library's
 * decoder has no notion of the end of its input.
 */
#include <fpzip.h>

#include "codec/codec_ops.h"

#include <limits.h>

/* In the decoder's own process they are linked; elsewhere they are loaded. */
#define FPZIP_CALLS(X)                                                                             \
    X(fpzip_write_to_buffer)                                                                       \
    X(fpzip_write) X(fpzip_write_close) X(fpzip_read_from_buffer) X(fpzip_read) X(fpzip_read_close)
#define MEMBER(name) __typeof__(name) *name;
static struct {
    FPZIP_CALLS(MEMBER)
} lib
#ifdef CRN_CODEC_LINKED
#define ADDRESS(name) name,
    = {FPZIP_CALLS(ADDRESS)};
#define READY NULL
#else
    ;
#define NAME(name) #name,
static const char *const names[] = {FPZIP_CALLS(NAME) NULL};
static crn_library library = {CRN_FPZIP_LIBRARY, names, (void **)&lib, PTHREAD_MUTEX_INITIALIZER,
                              false};

static cairn_status ready(void)
{
    return crn_library_load(&library);
}
#define READY      ready
#endif

static void describe(FPZ *fpz, crn_elem elem, const crn_codec_box *b, uint64_t precision)
{
    int extent[CRN_CODEC_DIMS] = {1, 1, 1, 1}; /* the fastest first */
    for (uint32_t d = 0; d < b->ndims; d++)
        extent[d] = (int)b->extent[b->ndims - 1 - d];
    fpz->type = elem == CRN_ELEM_F64 ? FPZIP_TYPE_DOUBLE : FPZIP_TYPE_FLOAT;
    fpz->prec = (int)precision;
    fpz->nx = extent[0];
    fpz->ny = extent[1];
    fpz->nz = extent[2];
    fpz->nf = extent[3];
}

/* fpzip makes nothing of other precisions, and does not say so. */
static bool is_precision(crn_elem elem, uint64_t precision)
{
    return precision % 2 == 0 && precision <= 8 * crn_elem_nbytes(elem) &&
           (precision == 0 || precision >= 4);
}

static cairn_status encode_box(crn_elem elem, const crn_codec_box *box, uint64_t param,
                               const void *src, void *dst, size_t cap, size_t *ret_n)
{
    if (box->n > INT_MAX || !is_precision(elem, param))
        return CAIRN_NOTHING;
    FPZ *fpz = lib.fpzip_write_to_buffer(dst, cap);
    CRN_FAIL_IF(!fpz, CAIRN_ENOMEM, "no memory for fpzip");
    describe(fpz, elem, box, param);
    size_t n = lib.fpzip_write(fpz, src);
    lib.fpzip_write_close(fpz);
    if (n == 0) /* most likely more than cap */
        return CAIRN_NOTHING;
    *ret_n = n;
    return CAIRN_OK;
}

static size_t decode_box(crn_elem elem, const crn_codec_box *box, uint64_t param, const void *src,
                         size_t n, void *dst)
{
    (void)n;
    if (box->n > INT_MAX || !is_precision(elem, param))
        return 0;
    FPZ *fpz = lib.fpzip_read_from_buffer(src);
    if (!fpz)
        return 0;
    describe(fpz, elem, box, param);
    const size_t took = lib.fpzip_read(fpz, dst);
    lib.fpzip_read_close(fpz);
    return took;
}

uint64_t crn_fpzip_param(crn_elem elem, uint32_t ndims, crn_mode mode, double value)
{
    (void)ndims;
    const bool all = mode == CRN_MODE_EXACT || value >= 8 * (double)crn_elem_nbytes(elem);
    return all ? 0 : (uint64_t)value;
}

static cairn_status encode(crn_elem elem, const void *src, size_t nbytes, void *dst, size_t cap,
                           void *work, size_t *ret_n)
{
    (void)work;
    const crn_codec_box line = crn_codec_line(elem, nbytes);
    return encode_box(elem, &line, 0, src, dst, cap, ret_n);
}

static bool decode(crn_elem elem, const void *src, size_t n, void *dst, size_t nbytes, void *work)
{
    (void)work;
    const crn_codec_box line = crn_codec_line(elem, nbytes);
    return decode_box(elem, &line, 0, src, n, dst) == n;
}

const crn_codec_ops crn_codec_fpzip = {
    .name = "fpzip",
    .id = 4,
    .elems = CRN_ELEMS_FLOAT,
    .trusting = true,
    .ready = READY,
    .encode = encode,
    .decode = decode,
};

/* --- boxes ---------------------------------------------------------------------------------- */

const crn_box_ops crn_fpzip_boxes = {.encode = encode_box, .decode = decode_box};

static cairn_status encode_boxed(crn_elem elem, const void *src, size_t nbytes, void *dst,
                                 size_t cap, void *work, size_t *ret_n)
{
    (void)work;
    return crn_boxed_encode(&crn_fpzip_boxes, elem, &(crn_boxed){0}, src, nbytes, dst, cap, ret_n);
}

static bool decode_boxed(crn_elem elem, const void *src, size_t n, void *dst, size_t nbytes,
                         void *work)
{
    (void)work;
    return crn_boxed_decode(&crn_fpzip_boxes, elem, src, n, dst, nbytes);
}

const crn_codec_ops crn_codec_fpzip_box = {
    .name = "fpzip-box",
    .id = 6,
    .elems = CRN_ELEMS_FLOAT,
    .trusting = true,
    .ready = READY,
    .encode = encode_boxed,
    .decode = decode_boxed,
};
