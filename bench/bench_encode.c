/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What does encoding cost, storage excluded, against moving the same bytes with plain MPI and
 * encoding them, one after the other? A set of four ranks, two of every four units parity. Ours
 * copies the units from memory where it would read them from a part, which is counted, and leaves
 * the parity where a part would take it; the peer sends from where the data lies.
 *
 *     bench_encode [MiB of state of a rank]
 *
 * BENCH: ranks 4
 */
#include "bench_mpi.h"
#include "level/level_encoded.h"

enum { NRANKS = 4, NPARITY = 2, NDATA = NRANKS - NPARITY, MESSAGE = 1 << 20 };

typedef struct state {
    crn_comm *comm;
    int rank;
    uint64_t nunits;                         /* of data; as many of parity */
    unsigned char *data;                     /* of this rank */
    unsigned char *parity;                   /* of this rank, at the end */
    unsigned char *in[NDATA], *out[NPARITY]; /* the peer's: of the stripes that it encodes */
    crn_erasure *code;
    uint64_t moved; /* bytes that ours sent */
} state;

/* --- ours --------------------------------------------------------------------------------- */

static cairn_status read_units(void *arg, uint64_t first, uint64_t n, unsigned char *dst)
{
    const state *s = arg;
    memcpy(dst, s->data + first * CRN_UNIT, n * CRN_UNIT);
    return CAIRN_OK;
}

static cairn_status put_unit(void *arg, uint64_t unit, const unsigned char *data)
{
    (void)arg, (void)unit, (void)data;
    return CAIRN_OK;
}

static double time_ours(state *s)
{
    const int rank[NRANKS] = {0, 1, 2, 3};
    const uint64_t nunits[NRANKS] = {s->nunits, s->nunits, s->nunits, s->nunits};
    crn_parity_job e = {.stripes = {.nseats = NRANKS, .nparity = NPARITY},
                        .rank = rank,
                        .nunits = nunits,
                        .seat = (uint32_t)s->rank,
                        .read = read_units,
                        .put = put_unit,
                        .arg = s};
    e.stripes.chunk = crn_stripes_chunk(NRANKS, NPARITY, s->nunits);
    e.nstripes = crn_stripes_count(&e.stripes, nunits);
    unsigned char *needed;
    crn_encoder *enc;
    bench_need(crn_alloc(&needed, e.nstripes / 8 + 1));
    memset(needed, 0xff, e.nstripes / 8 + 1);
    e.needed = needed;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = bench_seconds();
    s->moved = 0;
    bench_need(crn_encoder_create(&e, &enc));
    bench_need(crn_encoder_run(enc, s->comm, &s->moved));
    crn_encoder_free(enc);
    double seconds = bench_longest(bench_seconds() - start);
    free(needed);
    return seconds;
}

/* --- the peer ----------------------------------------------------------------------------- */

/* Send half of the data to each of two ranks and receive as much, then pass one parity on. */
static void exchange(state *s, unsigned char *const *from, unsigned char *const *to, int n)
{
    size_t half = s->nunits * CRN_UNIT / NDATA, nmsgs = half / MESSAGE, k = 0;
    MPI_Request *req;
    bench_need(crn_alloc(&req, 2 * (size_t)n * nmsgs));
    for (int i = 0; i < n; i++) {
        for (size_t m = 0; m < nmsgs; m++)
            MPI_Irecv(to[i] + m * MESSAGE, MESSAGE, MPI_BYTE, (s->rank + NRANKS - 1 - i) % NRANKS,
                      0, MPI_COMM_WORLD, &req[k++]);
    }
    for (int i = 0; i < n; i++) {
        for (size_t m = 0; m < nmsgs; m++)
            MPI_Isend(from[i] + m * MESSAGE, MESSAGE, MPI_BYTE, (s->rank + 1 + i) % NRANKS, 0,
                      MPI_COMM_WORLD, &req[k++]);
    }
    MPI_Waitall((int)k, req, MPI_STATUSES_IGNORE);
    free(req);
}

static double time_peer(state *s)
{
    size_t half = s->nunits * CRN_UNIT / NDATA;
    unsigned char *data[NDATA] = {s->data, s->data + half};
    MPI_Barrier(MPI_COMM_WORLD);
    double start = bench_seconds();
    exchange(s, data, s->in, NDATA);
    MPI_Barrier(MPI_COMM_WORLD);
    for (size_t off = 0; off < half; off += CRN_UNIT) {
        unsigned char *const in[NDATA] = {s->in[0] + off, s->in[1] + off};
        unsigned char *const out[NPARITY] = {s->out[0] + off, s->out[1] + off};
        crn_erasure_encode(s->code, CRN_UNIT, in, out);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    exchange(s, &s->out[1], s->in, 1);
    return bench_longest(bench_seconds() - start);
}

/* ------------------------------------------------------------------------------------------ */

static void prepare(state *s, uint64_t mib)
{
    /* whole periods of the longest chunk, so that both sides move the same */
    uint64_t period = (uint64_t)NDATA * crn_stripes_depth(NRANKS);
    s->nunits = CRN_MAX(mib * (1 << 20) / CRN_UNIT / period, 1) * period;
    size_t nbytes = s->nunits * CRN_UNIT;
    crn_rng rng = crn_rng_of(1, (uint64_t)s->rank);
    bench_need(crn_alloc_aligned(&s->data, nbytes, 4096));
    for (size_t i = 0; i < nbytes; i += sizeof(uint64_t)) {
        uint64_t random = crn_rng_u64(&rng);
        memcpy(s->data + i, &random, sizeof random);
    }
    for (int i = 0; i < NDATA; i++) {
        bench_need(crn_alloc_aligned(&s->in[i], nbytes / NDATA, 4096));
        memset(s->in[i], 0, nbytes / NDATA);
    }
    for (int i = 0; i < NPARITY; i++) {
        bench_need(crn_alloc_aligned(&s->out[i], nbytes / NDATA, 4096));
        memset(s->out[i], 0, nbytes / NDATA);
    }
    bench_need(crn_erasure_create(NDATA, NPARITY, &s->code));
}

static void finish(state *s)
{
    free(s->data);
    for (int i = 0; i < NDATA; i++)
        free(s->in[i]);
    for (int i = 0; i < NPARITY; i++)
        free(s->out[i]);
    crn_erasure_free(s->code);
    crn_comm_free(s->comm);
}

int main(int argc, char **argv)
{
    uint64_t mib = argc > 1 ? strtoull(argv[1], NULL, 10) : 64;
    double ours[BENCH_TURNS], peer[BENCH_TURNS];
    state s = {0};
    int size, given;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    if (size != NRANKS) {
        fprintf(stderr, "bench_encode: %d ranks, needs %d\n", size, NRANKS);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    bench_need(crn_comm_create(MPI_COMM_WORLD, &s.comm));
    prepare(&s, mib);
    for (int i = 0; i < BENCH_TURNS; i++) {
        ours[i] = time_ours(&s);
        peer[i] = time_peer(&s);
    }
    double gb = 1e-9 * (double)s.nunits * CRN_UNIT * NRANKS;
    if (s.rank == 0)
        bench_print(&(bench_result){
            .name = "mark.encode",
            .unit = "GB/s of state",
            .bar = BENCH_AT_LEAST,
            .limit = 0.6,
            .ours = gb / bench_median(ours, BENCH_TURNS),
            .peer = gb / bench_median(peer, BENCH_TURNS),
            .note = "4 ranks, 2 of 4 units parity, storage excluded; peer: plain MPI of the same "
                    "bytes, then ISA-L's encode"});
    uint64_t expected = s.nunits * CRN_UNIT * 3 / 2; /* data once, and one of two parities */
    if (s.moved != expected)
        fprintf(stderr, "bench_encode: moved %llu bytes, the peer %llu\n",
                (unsigned long long)s.moved, (unsigned long long)expected);
    finish(&s);
    MPI_Finalize();
    return s.moved != expected;
}
