/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What decoding in a process of its own costs, against decoding in place.
 *
 *     bench_codec [MiB]       the size of the state; 64 unless given
 */
#include "bench.h"
#include "codec/codec.h"

enum { BLOCK = 65536, VALUES = BLOCK / sizeof(double) };

typedef struct state {
    size_t nblocks;
    size_t *n;             /* bytes of each block, encoded */
    unsigned char *stored; /* BLOCK for each */
    unsigned char *back;   /* one block */
    unsigned char *work;
} state;

typedef cairn_status decode_fn(const crn_codec_ops *, crn_elem, const void *, size_t, void *,
                               size_t, void *);

/* A smooth field with a little noise, as codecs of values like it. */
static void make_state(state *s, const crn_codec_ops *codec)
{
    static double value[VALUES];
    static unsigned char made[2 * BLOCK];
    crn_rng r = crn_rng_of(1, 0);
    for (size_t b = 0; b < s->nblocks; b++) {
        for (size_t i = 0; i < VALUES; i++)
            value[i] = sin((double)(b * VALUES + i) / 500) + 1e-9 * crn_rng_unit(&r);
        bench_need(crn_codec_encode(codec, CRN_ELEM_F64, value, BLOCK, made, s->work, &s->n[b]));
        memcpy(s->stored + b * BLOCK, made, s->n[b]);
    }
}

static double rate(const state *s, const crn_codec_ops *codec, decode_fn *decode)
{
    const double start = bench_seconds();
    for (size_t b = 0; b < s->nblocks; b++)
        bench_need(
            decode(codec, CRN_ELEM_F64, s->stored + b * BLOCK, s->n[b], s->back, BLOCK, s->work));
    return (double)s->nblocks * BLOCK * 1e-9 / (bench_seconds() - start);
}

static void measure(state *s, const char *name, const char *codec_name)
{
    const crn_codec_ops *codec = crn_codec_of_name(codec_name);
    double apart[BENCH_TURNS], here[BENCH_TURNS];
    make_state(s, codec);
    for (size_t i = 0; i < BENCH_TURNS; i++) {
        apart[i] = rate(s, codec, crn_codec_decode_apart);
        here[i] = rate(s, codec, crn_codec_decode);
    }
    bench_print(&(bench_result){.name = name,
                                .unit = "GB/s",
                                .bar = BENCH_NO_BAR,
                                .ours = bench_median(apart, BENCH_TURNS),
                                .peer = bench_median(here, BENCH_TURNS),
                                .note = "64 KiB blocks decoded in a process of its own; the peer "
                                        "decodes in place"});
}

int main(int argc, char **argv)
{
    const size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 64;
    state s = {.nblocks = CRN_MAX(mib, (size_t)1) * ((1 << 20) / BLOCK)};
    bench_need(crn_alloc(&s.n, s.nblocks));
    bench_need(crn_alloc(&s.stored, s.nblocks * BLOCK));
    bench_need(crn_alloc(&s.back, BLOCK));
    bench_need(crn_alloc_aligned(&s.work, 4 * (size_t)BLOCK, CRN_CODEC_ALIGN));
    measure(&s, "codec.sandbox.zfp", "zfp");
    measure(&s, "codec.sandbox.fpzip", "fpzip");
    free(s.n);
    free(s.stored);
    free(s.back);
    free(s.work);
    return 0;
}
