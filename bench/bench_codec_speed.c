/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What does storing a block cost, with its check, against the library's own encoding and decoding
 * and a comparison of the values; and reading one, with both digests, against the library's
 * decoding? On the same blocks of 64 KiB, one thread, back to back.
 *
 *     bench_codec_speed [MiB]       the size of the state; 64 unless given
 *
 * NEEDS: lz4 zstd zfp fpzip
 */
#include <fpzip.h>
#include <lz4.h>
#include <zfp.h>
#include <zstd.h>

#include "bench.h"
#include "codec/codec.h"
#include "hash/hash.h"

enum { BLOCK = 65536, VALUES = BLOCK / sizeof(double), ROOM = 2 * BLOCK + 4096 };

/* A library's own encoding and decoding of a block; setting as the row has it. */
typedef struct peer {
    const char *name, *codec, *loss;
    size_t (*encode)(double setting, const double *x, void *to);
    void (*decode)(double setting, const void *from, size_t n, double *to);
    double setting, bound, decoding; /* of the error that is compared with; the bar of decoding */
} peer;

typedef struct state {
    size_t nblocks, nfallbacks;
    double *value;
    unsigned char *stored, *made, *work;
    size_t *n;
    uint32_t *codec;
    crn_digest *before, *after;
    double *back;
} state;

/* --- the libraries -------------------------------------------------------------------------- */

static zfp_stream *zfp_of(double accuracy, void *data, size_t n, zfp_field **field, double *x)
{
    zfp_stream *z = zfp_stream_open(stream_open(data, n));
    *field = zfp_field_1d(x, zfp_type_double, VALUES);
    if (accuracy > 0)
        zfp_stream_set_accuracy(z, accuracy);
    else
        zfp_stream_set_reversible(z);
    return z;
}

static void zfp_end(zfp_stream *z, zfp_field *field)
{
    stream_close(zfp_stream_bit_stream(z));
    zfp_stream_close(z);
    zfp_field_free(field);
}

static size_t zfp_encode(double setting, const double *x, void *to)
{
    zfp_field *field;
    zfp_stream *z = zfp_of(setting, to, ROOM, &field, (double *)(uintptr_t)x);
    const size_t n = zfp_compress(z, field);
    zfp_end(z, field);
    return n;
}

static void zfp_decode(double setting, const void *from, size_t n, double *to)
{
    zfp_field *field;
    zfp_stream *z = zfp_of(setting, (void *)(uintptr_t)from, n, &field, to);
    zfp_decompress(z, field);
    zfp_end(z, field);
}

static void fpzip_describe(FPZ *f, double precision)
{
    f->type = FPZIP_TYPE_DOUBLE;
    f->prec = (int)precision;
    f->nx = VALUES;
    f->ny = f->nz = f->nf = 1;
}

static size_t fpzip_encode(double setting, const double *x, void *to)
{
    FPZ *f = fpzip_write_to_buffer(to, ROOM);
    fpzip_describe(f, setting);
    const size_t n = fpzip_write(f, x);
    fpzip_write_close(f);
    return n;
}

static void fpzip_decode(double setting, const void *from, size_t n, double *to)
{
    FPZ *f = fpzip_read_from_buffer(from);
    (void)n;
    fpzip_describe(f, setting);
    fpzip_read(f, to);
    fpzip_read_close(f);
}

static size_t lz4_encode(double setting, const double *x, void *to)
{
    (void)setting;
    return (size_t)LZ4_compress_default((const char *)x, to, BLOCK, ROOM);
}

static void lz4_decode(double setting, const void *from, size_t n, double *to)
{
    (void)setting;
    (void)LZ4_decompress_safe(from, (char *)to, (int)n, BLOCK);
}

static ZSTD_CCtx *zstd_encoder;
static ZSTD_DCtx *zstd_decoder;

static size_t zstd_encode(double setting, const double *x, void *to)
{
    return ZSTD_compressCCtx(zstd_encoder, to, ROOM, x, BLOCK, (int)setting);
}

static void zstd_decode(double setting, const void *from, size_t n, double *to)
{
    (void)setting;
    (void)ZSTD_decompressDCtx(zstd_decoder, to, BLOCK, from, n);
}

static const peer peers[] = {
    {"zfp6", "zfp:accuracy=1e-6", "", zfp_encode, zfp_decode, 1e-6, 1e-6, 0.95},
    {"zfp10", "zfp:accuracy=1e-10", "", zfp_encode, zfp_decode, 1e-10, 1e-10, 0.95},
    {"zfp", "zfp", "", zfp_encode, zfp_decode, 0, 0, 0.95},
    {"fpzip40", "fpzip:precision=40", "", fpzip_encode, fpzip_decode, 40, 1e-6, 0.95},
    {"fpzip", "fpzip", "", fpzip_encode, fpzip_decode, 0, 0, 0.95},
    {"lz4", "lz4", "", lz4_encode, lz4_decode, 0, 0, 0.85},
    {"zstd", "zstd", "", zstd_encode, zstd_decode, 1, 0, 0.85},
};

/* --- both ----------------------------------------------------------------------------------- */

/* A smooth field with noise in the seventh digit, of which every other block has the 24 bits of a
 * float32, as lz4 and zstd like it. */
static void make_state(state *s)
{
    crn_rng r = crn_rng_of(1, 0);
    for (size_t i = 0; i < s->nblocks * VALUES; i++) {
        const double x = sin((double)i / 500) + 1e-7 * crn_rng_unit(&r);
        s->value[i] = i / VALUES % 2 ? x : (double)(float)x;
    }
}

static bool is_within(const double *x, const double *y, double bound)
{
    bool good = true;
    for (size_t i = 0; i < VALUES; i++)
        good &= fabs(x[i] - y[i]) <= bound;
    return good;
}

static double peer_encode(state *s, const peer *p)
{
    const double start = bench_seconds();
    for (size_t b = 0; b < s->nblocks; b++) {
        const double *x = s->value + b * VALUES;
        const size_t n = p->encode(p->setting, x, s->made);
        p->decode(p->setting, s->made, n, s->back);
        if (!is_within(x, s->back, p->bound) && p->bound > 0)
            fprintf(stderr, "bench: %s is off\n", p->name);
    }
    return (double)s->nblocks * BLOCK * 1e-9 / (bench_seconds() - start);
}

static double our_encode(state *s, const crn_codec_setting *setting, bool keep)
{
    const double start = bench_seconds();
    for (size_t b = 0; b < s->nblocks; b++) {
        const crn_codec_values v = {
            .elem = CRN_ELEM_F64, .at = s->value + b * VALUES, .nbytes = BLOCK};
        crn_codec_result r;
        bench_need(crn_codec_store(setting, &v, s->made, s->work, &r));
        s->nfallbacks += r.fallback != CRN_FALLBACK_NONE;
        if (!keep)
            continue;
        s->codec[b] = r.codec;
        s->n[b] = r.codec ? r.n : BLOCK;
        memcpy(s->stored + b * ROOM, r.codec ? s->made : v.at, s->n[b]);
        s->before[b] = crn_digest_of(s->stored + b * ROOM, s->n[b]);
        s->after[b] = crn_digest_of(r.reads, BLOCK);
    }
    return (double)s->nblocks * BLOCK * 1e-9 / (bench_seconds() - start);
}

/* As blocks are read: judged, decoded, judged again. */
static double our_decode(state *s)
{
    const double start = bench_seconds();
    for (size_t b = 0; b < s->nblocks; b++) {
        const unsigned char *from = s->stored + b * ROOM;
        crn_digest d = crn_digest_of(from, s->n[b]);
        bool good = crn_digest_equal(&d, &s->before[b]);
        bench_need(crn_codec_decode(crn_codec_of_id(s->codec[b]), CRN_ELEM_F64, from, s->n[b],
                                    s->back, BLOCK, s->work));
        d = crn_digest_of(s->back, BLOCK);
        good &= crn_digest_equal(&d, &s->after[b]);
        if (!good)
            fprintf(stderr, "bench: block %zu is off\n", b);
    }
    return (double)s->nblocks * BLOCK * 1e-9 / (bench_seconds() - start);
}

static double peer_decode(state *s, const peer *p)
{
    for (size_t b = 0; b < s->nblocks; b++)
        s->n[b] = p->encode(p->setting, s->value + b * VALUES, s->stored + b * ROOM);
    const double start = bench_seconds();
    for (size_t b = 0; b < s->nblocks; b++)
        p->decode(p->setting, s->stored + b * ROOM, s->n[b], s->back);
    return (double)s->nblocks * BLOCK * 1e-9 / (bench_seconds() - start);
}

static void measure(state *s, const peer *p)
{
    crn_codec_setting setting;
    double ours[2][BENCH_TURNS], theirs[2][BENCH_TURNS];
    char name[64];
    bench_need(crn_codec_parse(p->codec, p->loss, &setting));
    free(s->work);
    bench_need(crn_alloc_aligned(
        &s->work, CRN_ROUND_UP(crn_codec_store_scratch(&setting, BLOCK), (size_t)CRN_CODEC_ALIGN),
        CRN_CODEC_ALIGN));
    for (size_t i = 0; i < BENCH_TURNS; i++) {
        ours[0][i] = our_encode(s, &setting, false);
        theirs[0][i] = peer_encode(s, p);
        (void)our_encode(s, &setting, true);
        ours[1][i] = our_decode(s);
        theirs[1][i] = peer_decode(s, p);
    }
    if (s->nfallbacks > 0)
        fprintf(stderr, "bench: %s: %zu blocks fell back\n", p->name, s->nfallbacks);
    s->nfallbacks = 0;
    for (int k = 0; k < 2; k++) {
        snprintf(name, sizeof name, "codec.%s.%s", k ? "decode" : "encode", p->name);
        bench_print(&(bench_result){
            .name = name,
            .unit = "GB/s",
            .bar = BENCH_AT_LEAST,
            .limit = k ? p->decoding : 0.9,
            .ours = bench_median(ours[k], BENCH_TURNS),
            .peer = bench_median(theirs[k], BENCH_TURNS),
            .note =
                k ? "64 KiB blocks decoded, with both digests; peer: the library alone"
                  : "64 KiB blocks encoded and checked; peer: the library's encode, decode and a "
                    "comparison"});
    }
}

int main(int argc, char **argv)
{
    const size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 64;
    state s = {.nblocks = CRN_MAX(mib, (size_t)1) * ((1 << 20) / BLOCK)};
    bench_need(crn_alloc(&s.value, s.nblocks * VALUES));
    bench_need(crn_alloc(&s.stored, s.nblocks * ROOM));
    bench_need(crn_alloc(&s.made, (size_t)ROOM));
    bench_need(crn_alloc(&s.n, s.nblocks));
    bench_need(crn_alloc(&s.codec, s.nblocks));
    bench_need(crn_alloc(&s.before, s.nblocks));
    bench_need(crn_alloc(&s.after, s.nblocks));
    bench_need(crn_alloc(&s.back, (size_t)VALUES));
    zstd_encoder = ZSTD_createCCtx();
    zstd_decoder = ZSTD_createDCtx();
    make_state(&s);
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++)
        measure(&s, &peers[i]);
    return 0;
}
