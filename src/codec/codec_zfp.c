/* SPDX-License-Identifier: BSD-3-Clause
 *
 * zfp's streams, in whole 64-bit words: reversible mode over one-dimensional data, and boxes of 1
 * to 4 dimensions in any mode, whose parameter is zfp's own 64-bit description of a mode. The
 * library writes and reads without looking at the end of memory.
 */
#include <zfp.h>

#include "codec/codec_ops.h"

/* In the decoder's own process they are linked; elsewhere they are loaded. */
#define ZFP_CALLS(X)                                                                               \
    X(stream_open)                                                                                 \
    X(stream_close)                                                                                \
    X(zfp_stream_open)                                                                             \
    X(zfp_stream_close) X(zfp_field_1d) X(zfp_field_free) X(zfp_field_2d) X(zfp_field_3d)          \
        X(zfp_field_4d) X(zfp_stream_set_reversible) X(zfp_stream_set_accuracy)                    \
            X(zfp_stream_set_precision) X(zfp_stream_set_rate) X(zfp_stream_mode)                  \
                X(zfp_stream_set_mode) X(zfp_stream_maximum_size) X(zfp_compress)                  \
                    X(zfp_decompress) X(zfp_stream_params) X(zfp_stream_set_params)
#define MEMBER(name) __typeof__(name) *name;
static struct {
    ZFP_CALLS(MEMBER)
} lib
#ifdef CRN_CODEC_LINKED
#define ADDRESS(name) name,
    = {ZFP_CALLS(ADDRESS)};
#define READY NULL
#else
    ;
#define NAME(name) #name,
static const char *const names[] = {ZFP_CALLS(NAME) NULL};
static crn_library library = {CRN_ZFP_LIBRARY, names, (void **)&lib, PTHREAD_MUTEX_INITIALIZER,
                              false};

static cairn_status ready(void)
{
    return crn_library_load(&library);
}
#define READY      ready
#endif

typedef struct session {
    zfp_stream *zfp;
    zfp_field *field;
    bitstream *bits;
} session;

static void session_done(session *s)
{
    if (s->field)
        lib.zfp_field_free(s->field);
    if (s->zfp)
        lib.zfp_stream_close(s->zfp);
    if (s->bits)
        lib.stream_close(s->bits);
}

static zfp_field *field_of(zfp_type type, const crn_codec_box *b, void *data)
{
    const size_t *e = b->extent; /* zfp has the fastest first */
    switch (b->ndims) {
    case 1:
        return lib.zfp_field_1d(data, type, e[0]);
    case 2:
        return lib.zfp_field_2d(data, type, e[1], e[0]);
    case 3:
        return lib.zfp_field_3d(data, type, e[2], e[1], e[0]);
    default:
        return lib.zfp_field_4d(data, type, e[3], e[2], e[1], e[0]);
    }
}

/* A fixed rate is stated in bits of zfp's blocks, which have a quarter of the values with each
 * dimension less; never below the exponent of a value. */
static bool keep_rate(zfp_stream *z, crn_elem elem, uint32_t missing)
{
    const unsigned least = elem == CRN_ELEM_F64 ? 1 + 11 : 1 + 8;
    unsigned minbits, maxbits, maxprec;
    int minexp;
    lib.zfp_stream_params(z, &minbits, &maxbits, &maxprec, &minexp);
    if (missing == 0 || minbits != maxbits)
        return true;
    maxbits = CRN_MAX(maxbits >> 2 * missing, least);
    return lib.zfp_stream_set_params(z, maxbits, maxbits, maxprec, minexp);
}

/* mode 0: reversible. */
static bool session_init(session *s, crn_elem elem, const crn_codec_box *box, const void *data,
                         uint64_t mode, void *stream, size_t stream_nbytes)
{
    zfp_type type = elem == CRN_ELEM_F64 ? zfp_type_double : zfp_type_float;
    s->bits = lib.stream_open(stream, stream_nbytes);
    s->zfp = lib.zfp_stream_open(s->bits);
    s->field = field_of(type, box, (void *)data);
    bool good = s->bits && s->zfp && s->field;
    if (good && mode == 0)
        lib.zfp_stream_set_reversible(s->zfp);
    else if (good)
        good = lib.zfp_stream_set_mode(s->zfp, mode) != zfp_mode_null &&
               keep_rate(s->zfp, elem, box->missing);
    if (!good)
        session_done(s);
    return good;
}

/* Beyond the raw bytes: at most 15 bits of overhead per 4 values, an exponent each, and a word. */
static size_t bound(size_t nbytes)
{
    return nbytes + nbytes / 4 + 64;
}

static cairn_status encode_box(crn_elem elem, const crn_codec_box *box, uint64_t param,
                               const void *src, void *dst, size_t cap, size_t *ret_n)
{
    session s;
    CRN_FAIL_IF(!session_init(&s, elem, box, src, param, dst, cap), CAIRN_ENOMEM,
                "no memory for zfp");
    size_t n = 0;
    if (lib.zfp_stream_maximum_size(s.zfp, s.field) <= cap)
        n = lib.zfp_compress(s.zfp, s.field);
    session_done(&s);
    if (n == 0)
        return CAIRN_NOTHING;
    *ret_n = n;
    return CAIRN_OK;
}

static size_t decode_box(crn_elem elem, const crn_codec_box *box, uint64_t param, const void *src,
                         size_t n, void *dst)
{
    session s;
    if (!session_init(&s, elem, box, dst, param, (void *)src, n))
        return 0;
    const size_t took = lib.zfp_decompress(s.zfp, s.field);
    session_done(&s);
    return took;
}

uint64_t crn_zfp_param(crn_elem elem, uint32_t ndims, crn_mode mode, double value)
{
    uint64_t param = 0;
    zfp_stream *z = mode == CRN_MODE_EXACT ? NULL : lib.zfp_stream_open(NULL);
    if (!z)
        return 0; /* nothing is lost for lack of memory */
    if (mode == CRN_MODE_ACCURACY)
        (void)lib.zfp_stream_set_accuracy(z, value);
    else if (mode == CRN_MODE_PRECISION)
        (void)lib.zfp_stream_set_precision(z, (unsigned)value);
    else
        (void)lib.zfp_stream_set_rate(
            z, value, elem == CRN_ELEM_F64 ? zfp_type_double : zfp_type_float, ndims, zfp_false);
    param = lib.zfp_stream_mode(z);
    lib.zfp_stream_close(z);
    return param;
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

const crn_codec_ops crn_codec_zfp = {
    .name = "zfp",
    .id = 3,
    .elems = CRN_ELEMS_FLOAT,
    .trusting = true,
    .ready = READY,
    .bound = bound,
    .encode = encode,
    .decode = decode,
};

/* --- boxes ---------------------------------------------------------------------------------- */

const crn_box_ops crn_zfp_boxes = {.encode = encode_box, .decode = decode_box};

static cairn_status encode_boxed(crn_elem elem, const void *src, size_t nbytes, void *dst,
                                 size_t cap, void *work, size_t *ret_n)
{
    (void)work;
    return crn_boxed_encode(&crn_zfp_boxes, elem, &(crn_boxed){0}, src, nbytes, dst, cap, ret_n);
}

static bool decode_boxed(crn_elem elem, const void *src, size_t n, void *dst, size_t nbytes,
                         void *work)
{
    (void)work;
    return crn_boxed_decode(&crn_zfp_boxes, elem, src, n, dst, nbytes);
}

const crn_codec_ops crn_codec_zfp_box = {
    .name = "zfp-box",
    .id = 5,
    .elems = CRN_ELEMS_FLOAT,
    .trusting = true,
    .ready = READY,
    .bound = bound,
    .encode = encode_boxed,
    .decode = decode_boxed,
};
