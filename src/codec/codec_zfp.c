/* SPDX-License-Identifier: BSD-3-Clause
 *
 * zfp over one-dimensional data: a number of bits per value, an absolute error, or reversible. The
 * library writes and reads without looking at the end of memory, and makes nonsense of infinities.
 *
 *     u64 zfp's own code of its mode | its stream, whole 64-bit words
 */
#include <zfp.h>

#include "codec/codec_ops.h"

enum { MODE = sizeof(uint64_t) };

typedef struct session {
    zfp_stream *zfp;
    zfp_field *field;
    bitstream *bits;
} session;

static void session_done(session *s)
{
    if (s->field)
        zfp_field_free(s->field);
    if (s->zfp)
        zfp_stream_close(s->zfp);
    if (s->bits)
        stream_close(s->bits);
}

static bool session_init(session *s, crn_elem elem, const void *data, size_t nbytes, void *stream,
                         size_t stream_nbytes)
{
    zfp_type type = elem == CRN_ELEM_F64 ? zfp_type_double : zfp_type_float;
    s->bits = stream_open(stream, stream_nbytes);
    s->zfp = zfp_stream_open(s->bits);
    s->field = zfp_field_1d((void *)data, type, nbytes / crn_elem_nbytes(elem));
    if (s->bits && s->zfp && s->field)
        return true;
    session_done(s);
    return false;
}

static cairn_status check(const crn_codec_params *p)
{
    int max = 8 * (int)crn_elem_nbytes(p->elem);
    CRN_FAIL_IF(p->precision < 0 || (p->elem != CRN_ELEM_BYTES && p->precision > max), CAIRN_EINVAL,
                "zfp keeps from 1 to %d bits, not %d", max, p->precision);
    return CAIRN_OK;
}

static bool is_lossy(const crn_codec_params *p)
{
    return p->precision > 0 || p->tolerance > 0;
}

/* Beyond the raw bytes: at most 15 bits of overhead per 4 values, an exponent each, and a word. */
static size_t bound(size_t nbytes)
{
    return MODE + nbytes + nbytes / 4 + 64;
}

static void set_mode(zfp_stream *zfp, const crn_codec_params *p)
{
    if (p->precision > 0)
        zfp_stream_set_precision(zfp, (unsigned)p->precision);
    else if (p->tolerance > 0)
        zfp_stream_set_accuracy(zfp, p->tolerance);
    else
        zfp_stream_set_reversible(zfp);
}

static cairn_status encode(const crn_codec_params *p, const void *src, size_t nbytes, void *dst,
                           size_t cap, void *work, size_t *ret_n)
{
    (void)work;
    session s;
    unsigned char *to = dst;
    CRN_FAIL_IF(!session_init(&s, p->elem, src, nbytes, to + MODE, cap - MODE), CAIRN_ENOMEM,
                "no memory for zfp");
    set_mode(s.zfp, p);
    uint64_t mode = zfp_stream_mode(s.zfp);
    size_t n = 0;
    if (zfp_stream_maximum_size(s.zfp, s.field) <= cap - MODE)
        n = zfp_compress(s.zfp, s.field);
    session_done(&s);
    if (n == 0)
        return CAIRN_NOTHING;
    memcpy(to, &mode, MODE);
    *ret_n = MODE + n;
    return CAIRN_OK;
}

static bool decode(crn_elem elem, const void *src, size_t n, void *dst, size_t nbytes, void *work)
{
    (void)work;
    session s;
    const unsigned char *from = src;
    uint64_t mode;
    if (n <= MODE || !session_init(&s, elem, dst, nbytes, (void *)(from + MODE), n - MODE))
        return false;
    memcpy(&mode, from, MODE);
    bool good = zfp_stream_set_mode(s.zfp, mode) != zfp_mode_null &&
                zfp_decompress(s.zfp, s.field) == n - MODE;
    session_done(&s);
    return good;
}

const crn_codec_ops crn_codec_zfp = {
    .name = "zfp",
    .id = 3,
    .elems = CRN_ELEMS_FLOAT,
    .trusting = true,
    .check = check,
    .is_lossy = is_lossy,
    .bound = bound,
    .encode = encode,
    .decode = decode,
};
