/* SPDX-License-Identifier: BSD-3-Clause
 *
 * zfp's reversible mode over one-dimensional data: its stream, in whole 64-bit words. The library
 * writes and reads without looking at the end of memory.
 */
#include <zfp.h>

#include "codec/codec_ops.h"

/* In the decoder's own process they are linked; elsewhere they are loaded. */
#define ZFP_CALLS(X)                                                                               \
    X(stream_open)                                                                                 \
    X(stream_close)                                                                                \
    X(zfp_stream_open) X(zfp_stream_close) X(zfp_field_1d) X(zfp_field_free)                       \
        X(zfp_stream_set_reversible) X(zfp_stream_maximum_size) X(zfp_compress) X(zfp_decompress)
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

static bool session_init(session *s, crn_elem elem, const void *data, size_t nbytes, void *stream,
                         size_t stream_nbytes)
{
    zfp_type type = elem == CRN_ELEM_F64 ? zfp_type_double : zfp_type_float;
    s->bits = lib.stream_open(stream, stream_nbytes);
    s->zfp = lib.zfp_stream_open(s->bits);
    s->field = lib.zfp_field_1d((void *)data, type, nbytes / crn_elem_nbytes(elem));
    if (!s->bits || !s->zfp || !s->field) {
        session_done(s);
        return false;
    }
    lib.zfp_stream_set_reversible(s->zfp);
    return true;
}

/* Beyond the raw bytes: at most 15 bits of overhead per 4 values, an exponent each, and a word. */
static size_t bound(size_t nbytes)
{
    return nbytes + nbytes / 4 + 64;
}

static cairn_status encode(crn_elem elem, const void *src, size_t nbytes, void *dst, size_t cap,
                           void *work, size_t *ret_n)
{
    (void)work;
    session s;
    CRN_FAIL_IF(!session_init(&s, elem, src, nbytes, dst, cap), CAIRN_ENOMEM, "no memory for zfp");
    size_t n = 0;
    if (lib.zfp_stream_maximum_size(s.zfp, s.field) <= cap)
        n = lib.zfp_compress(s.zfp, s.field);
    session_done(&s);
    if (n == 0)
        return CAIRN_NOTHING;
    *ret_n = n;
    return CAIRN_OK;
}

static bool decode(crn_elem elem, const void *src, size_t n, void *dst, size_t nbytes, void *work)
{
    (void)work;
    session s;
    if (!session_init(&s, elem, dst, nbytes, (void *)src, n))
        return false;
    bool good = lib.zfp_decompress(s.zfp, s.field) == n;
    session_done(&s);
    return good;
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
