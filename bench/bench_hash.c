/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What digests cost, one thread, against what the memory and XXH3 itself can do.
 *
 *     bench_hash [MiB]        the size of the state; 1024 unless given
 */
#include "bench.h"
#include "hash/hash.h"

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

enum { BLOCK = 65536 };

typedef struct state {
    unsigned char *data, *copy;
    size_t nbytes, nblocks;
    crn_digest *leaf;
    crn_sketch_kind kind; /* of sketch, which is of a block of values between 0 and 1 */
    crn_buf sketch;
} state;

/* Results go here, so that no measured work can be left out. */
static volatile uint64_t sink;

static void make_state(state *s, size_t mib)
{
    s->nblocks = mib * ((1 << 20) / BLOCK);
    s->nbytes = s->nblocks * BLOCK;
    bench_need(crn_alloc_aligned(&s->data, s->nbytes, 4096));
    bench_need(crn_alloc_aligned(&s->copy, s->nbytes, 4096));
    bench_need(crn_alloc(&s->leaf, s->nblocks));
    uint64_t word = 1;
    for (size_t i = 0; i < s->nbytes; i += sizeof word) {
        word = word * 6364136223846793005u + 1442695040888963407u;
        memcpy(s->data + i, &word, sizeof word);
    }
    memset(s->copy, 1, s->nbytes); /* pages are there before the clock runs */
}

static void free_state(state *s)
{
    free(s->data);
    free(s->copy);
    free(s->leaf);
    crn_buf_done(&s->sketch);
}

/* Digests of all blocks and the tree over them. */
static void digest_and_tree(state *s)
{
    for (size_t i = 0; i < s->nblocks; i++)
        s->leaf[i] = crn_digest_of(s->data + i * BLOCK, BLOCK);
    crn_tree t;
    bench_need(crn_tree_build(s->leaf, s->nblocks, &t));
    sink += crn_tree_root(&t).b[0];
    crn_tree_done(&t);
}

/* Read bandwidth: as little work per byte as reading allows, in sums that need not wait. */
static void sum(state *s)
{
    typedef uint64_t lanes __attribute__((vector_size(16)));
    const lanes *v = (const lanes *)(const void *)s->data;
    lanes a = {0}, b = {0}, c = {0}, d = {0};
    for (size_t i = 0; i < s->nbytes / sizeof *v; i += 4) {
        a += v[i];
        b += v[i + 1];
        c += v[i + 2];
        d += v[i + 3];
    }
    a += b + c + d;
    sink += a[0] + a[1];
}

static void xxh3(state *s)
{
    sink += XXH3_128bits(s->data, s->nbytes).low64;
}

/* The exact digest and one tolerant digest of each block of float64 values, in one pass. */
static void digest_both(state *s)
{
    const crn_bound bound = {.absolute = 1e-6};
    crn_tolerant *t;
    crn_digest tolerant;
    bench_need(crn_tolerant_create(sizeof(double), &bound, 1, &t));
    for (size_t i = 0; i < s->nblocks; i++) {
        crn_tolerant_digest(t, s->data + i * BLOCK, BLOCK, &s->leaf[i], &tolerant);
        sink += tolerant.b[0];
    }
    crn_tolerant_free(t);
}

/* The tolerant digest alone, and the digest on a reference's cells, which this state is, too. */
static void digest_tolerant(state *s)
{
    const crn_bound bound = {.absolute = 1e-6};
    crn_tolerant *t;
    crn_digest d;
    bench_need(crn_tolerant_create(sizeof(double), &bound, 1, &t));
    for (size_t i = 0; i < s->nblocks; i++) {
        crn_tolerant_digest(t, s->data + i * BLOCK, BLOCK, NULL, &d);
        sink += d.b[0];
    }
    crn_tolerant_free(t);
}

static void digest_sketched(state *s)
{
    const crn_bound bound = {.absolute = 1e-6};
    crn_sketcher *k;
    crn_digest d;
    bench_need(crn_sketcher_create(sizeof(double), &bound, &k));
    for (size_t i = 0; i < s->nblocks; i++) {
        if (!crn_sketch_digest(k, s->kind, s->sketch.at, s->sketch.n, s->data + i * BLOCK, BLOCK,
                               &d))
            exit(1);
        sink += d.b[0];
    }
    crn_sketcher_free(k);
}

static void digest_and_copy(state *s)
{
    for (size_t i = 0; i < s->nblocks; i++)
        s->leaf[i] = crn_digest_copy(s->copy + i * BLOCK, s->data + i * BLOCK, BLOCK);
    sink += s->leaf[0].b[0];
}

static void copy(state *s)
{
    memcpy(s->copy, s->data, s->nbytes);
    sink += s->copy[s->nbytes - 1];
}

static double seconds(void (*work)(state *), state *s)
{
    double start = bench_seconds();
    work(s);
    return bench_seconds() - start;
}

static void measure_digest(state *s)
{
    double ours[BENCH_TURNS], read[BENCH_TURNS], own[BENCH_TURNS], gb = (double)s->nbytes * 1e-9;
    for (size_t i = 0; i < BENCH_TURNS; i++) {
        ours[i] = gb / seconds(digest_and_tree, s);
        read[i] = gb / seconds(sum, s);
        own[i] = gb / seconds(xxh3, s);
    }
    double reading = bench_median(read, BENCH_TURNS), hashing = bench_median(own, BENCH_TURNS);
    char note[160];
    snprintf(note, sizeof note,
             "digest and tree, 64 KiB blocks, one thread; peer is the lower of reading (%.1f GB/s) "
             "and plain XXH3 (%.1f GB/s)",
             reading, hashing);
    bench_print(&(bench_result){.name = "store.digest",
                                .ours = bench_median(ours, BENCH_TURNS),
                                .peer = CRN_MIN(reading, hashing),
                                .unit = "GB/s",
                                .bar = BENCH_AT_LEAST,
                                .limit = 0.6,
                                .note = note});
}

static void measure_digest_both(state *s)
{
    double ours[BENCH_TURNS], peer[BENCH_TURNS], gb = (double)s->nbytes * 1e-9;
    for (size_t i = 0; i < BENCH_TURNS; i++) {
        ours[i] = gb / seconds(digest_both, s);
        peer[i] = gb / seconds(xxh3, s);
    }
    bench_print(&(bench_result){.name = "compare.digest",
                                .ours = bench_median(ours, BENCH_TURNS),
                                .peer = bench_median(peer, BENCH_TURNS),
                                .unit = "GB/s",
                                .bar = BENCH_AT_LEAST,
                                .limit = 0.6,
                                .note = "exact and tolerant digest in one pass, 64 KiB blocks, one "
                                        "thread; peer is plain XXH3 over the same memory"});
}

static void make_sketch(state *s, crn_sketch_kind kind)
{
    static double value[BLOCK / sizeof(double)];
    const crn_bound bound = {.absolute = 1e-6};
    crn_rng rng = crn_rng_of(1, 1);
    crn_sketcher *k;
    crn_digest d;
    for (size_t i = 0; i < BLOCK / sizeof *value; i++)
        value[i] = crn_rng_unit(&rng);
    bench_need(crn_sketcher_create(sizeof *value, &bound, &k));
    s->sketch.n = 0;
    s->kind = crn_sketch_make(k, kind, value, BLOCK, &s->sketch, &d);
    bench_need(crn_buf_status(&s->sketch));
    crn_sketcher_free(k);
}

/* What a golden file's sketch costs whoever is checked. */
static void measure_sketch(state *s, crn_sketch_kind kind, const char *name)
{
    double ours[BENCH_TURNS], peer[BENCH_TURNS], gb = (double)s->nbytes * 1e-9;
    make_sketch(s, kind);
    for (size_t i = 0; i < BENCH_TURNS; i++) {
        ours[i] = gb / seconds(digest_sketched, s);
        peer[i] = gb / seconds(digest_tolerant, s);
    }
    bench_print(&(bench_result){.name = name,
                                .ours = bench_median(ours, BENCH_TURNS),
                                .peer = bench_median(peer, BENCH_TURNS),
                                .unit = "GB/s",
                                .bar = BENCH_AT_LEAST,
                                .limit = 0.5,
                                .note = "digest on a reference's cells, 64 KiB blocks, one thread; "
                                        "peer is the tolerant digest of the same memory"});
}

static void measure_digest_copy(state *s)
{
    double ours[BENCH_TURNS], peer[BENCH_TURNS];
    for (size_t i = 0; i < BENCH_TURNS; i++) {
        ours[i] = seconds(digest_and_copy, s);
        peer[i] = seconds(copy, s);
    }
    bench_print(&(bench_result){.name = "store.digest_copy",
                                .ours = bench_median(ours, BENCH_TURNS),
                                .peer = bench_median(peer, BENCH_TURNS),
                                .unit = "s",
                                .note = "digest and copy in one pass, 64 KiB blocks, one thread; "
                                        "peer is one memcpy of the whole state"});
}

int main(int argc, char **argv)
{
    size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 1024;
    if (argc > 2 || mib == 0) {
        fprintf(stderr, "usage: bench_hash [MiB]\n");
        return 2;
    }
    state s = {0};
    make_state(&s, mib);
    measure_digest(&s);
    measure_digest_copy(&s);
    measure_digest_both(&s);
    measure_sketch(&s, CRN_SKETCH_BITS, "gate.sketch.bits");
    measure_sketch(&s, CRN_SKETCH_BYTES, "gate.sketch.bytes");
    free_state(&s);
    return 0;
}
