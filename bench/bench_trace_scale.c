/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Traces at scale: virtual ranks record what programs of four kinds do, and are merged by the code
 * that merges at MPI_Finalize, two at a time up the tree: bench_trace_scale [RANKS], from 64 on by
 * fours. A rank's time is that of its own way up the tree: the longest merge of each step.
 *
 * NEEDS: zstd
 */
#include "bench.h"

#include <string.h>
#include <time.h>

#include "tracefmt/tracefmt.h"

enum { STEPS_MAX = 32, TURNS = 50, WIDTH = 8 };

typedef struct virtual_rank {
    uint32_t rank, nranks;
    crn_tables tables;
    crn_build build;
    uint64_t now;
} virtual_rank;

static bool failed;

static void check(cairn_status rc)
{
    failed |= rc < 0;
}

static void event(virtual_rank *x, uint32_t call, uint32_t site, const int64_t *value)
{
    crn_record r = {.call = call, .comm_rank = x->rank, .comm_size = x->nranks};
    r.ncolumns = crn_call_row(call)->ncolumns;
    memcpy(r.value, value, (size_t)r.ncolumns * sizeof *value);
    check(crn_tables_site(&x->tables, (crn_site){.module = 1, .off = site}, &r.site));
    r.start = x->now + 1000;
    r.end = x->now = r.start + 500;
    crn_build_add(&x->build, &r);
}

static void send_to(virtual_rank *x, uint32_t site, int64_t peer, int64_t count)
{
    event(x, CRN_CALL_MPI_Send, site, (int64_t[]){count, 0, peer % x->nranks, 1, 0});
}

static void reduce(virtual_rank *x)
{
    event(x, CRN_CALL_MPI_Allreduce, 90, (int64_t[]){0, 1, 0, CRN_OP_SUM, 0});
}

/* The same for all ranks if they ask with rank 0. */
static int64_t about(uint32_t rank, int turn, int64_t v, double part)
{
    crn_rng rng = crn_rng_of(26, (uint64_t)rank << 32 | (uint64_t)turn);
    return v + (int64_t)((2 * crn_rng_unit(&rng) - 1) * part * (double)v);
}

/* A halo on a torus, and a solver whose iterations differ from step to step. */
static void pop(virtual_rank *x)
{
    for (int i = 0; i < TURNS; i++) {
        send_to(x, 10, x->rank + 1, about(x->rank, i, 2000, 0.03));
        send_to(x, 11, x->rank + WIDTH, about(x->rank, i + TURNS, 900, 0.03));
        for (int64_t k = about(0, i, 40, 0.1); k > 0; k--)
            reduce(x);
    }
}

/* Blocks with guard cells, and a file for all ranks every tenth step. */
static void flash(virtual_rank *x)
{
    for (int i = 0; i < TURNS; i++) {
        for (int k = 0; k < 3; k++)
            send_to(x, 20 + (uint32_t)k, x->rank + (1 << 2 * k), 4096);
        reduce(x);
        for (int v = 0; i % 10 == 0 && v < 24; v++)
            event(x, CRN_CALL_pwrite, 30,
                  (int64_t[]){3, 65536, (int64_t)(v * x->nranks + x->rank) << 16, 65536});
    }
}

/* Sums along a row by halves: one more partner for twice the ranks. */
static void cg(virtual_rank *x)
{
    for (int i = 0; i < TURNS; i++) {
        for (uint32_t bit = 1; bit < x->nranks; bit *= 2)
            send_to(x, 40, x->rank ^ bit, 1400);
        reduce(x);
    }
}

/* Neighbours and sizes change as the mesh is refined. */
static void amr(virtual_rank *x)
{
    for (int i = 0; i < TURNS; i++) {
        for (int64_t k = about(x->rank, i / 10, 6, 0.5); k > 0; k--)
            send_to(x, 50, x->rank + 1 + about(x->rank, 1000 + i / 10 * 8 + (int)k, 20, 0.9),
                    about(x->rank, 2000 + i, 3000, 0.5));
        reduce(x);
    }
}

static crn_trace *record(uint32_t rank, uint32_t nranks, uint32_t precision,
                         void (*program)(virtual_rank *x), size_t *ret_nbytes)
{
    virtual_rank x = {.rank = rank, .nranks = nranks};
    crn_build *build = &x.build;
    crn_trace *t = NULL;
    uint32_t number;
    check(crn_tables_init(&x.tables));
    check(crn_tables_string(&x.tables, "virtual", &number));
    check(crn_tables_type(&x.tables, &(crn_type){.name = 1, .nbytes = 8, .extent = 8}, &number));
    check(crn_build_init(&x.build, rank, precision, true));
    program(&x);
    *ret_nbytes = CRN_MAX(*ret_nbytes, crn_build_nbytes(&x.build) + crn_tables_nbytes(&x.tables));
    check(crn_build_trace(&build, 1, &x.tables, rank, nranks, &t));
    if (t) {
        t->precision = precision;
        t->lasted = x.now;
    }
    crn_tables_done(&x.tables);
    crn_build_done(&x.build);
    return t;
}

/* Of this thread alone: merges are a few milliseconds, and machines have other things to do. */
static double seconds_used(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct figures {
    size_t nbytes, memory, payload; /* of the file; a recording rank; the whole, uncompressed */
    double way; /* seconds of processor time, of the longest merge of each step together */
} figures;

static bool merge(crn_trace **a, crn_trace *b, double *longest)
{
    const double start = seconds_used();
    check(crn_trace_merge(*a, b));
    *longest = CRN_MAX(*longest, seconds_used() - start);
    return !failed;
}

/* As a counter counts: two traces of as many ranks are merged as soon as they are there. */
static figures measure(uint32_t nranks, uint32_t precision, void (*program)(virtual_rank *x))
{
    crn_trace *waiting[STEPS_MAX] = {NULL};
    double longest[STEPS_MAX] = {0};
    figures f = {0};
    crn_buf b = {0};
    int step = 0;
    for (uint32_t r = 0; r < nranks && !failed; r++) {
        crn_trace *t = record(r, nranks, precision, program, &f.memory);
        for (step = 0; waiting[step] && !failed; step++) {
            merge(&waiting[step], t, &longest[step]);
            t = waiting[step];
            waiting[step] = NULL;
        }
        waiting[step] = t;
    }
    const double start = seconds_used();
    check(crn_trace_finish(waiting[step]));
    check(crn_trace_encode(waiting[step], CRN_TRACE_BEST, &b));
    f.way = seconds_used() - start;
    for (int i = 0; i < step; i++)
        f.way += longest[i];
    f.nbytes = b.n;
    f.payload = (size_t)(b.n > 24 ? *(const uint64_t *)(const void *)(b.at + 16) : 0);
    crn_buf_done(&b);
    crn_trace_free(waiting[step]);
    return f;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*program)(virtual_rank *x);
        uint32_t precision;
        double limit; /* of the size over that of 64 ranks; 0: by the logarithm */
    } kinds[] = {{"flash", flash, 100, 1.2}, {"cg", cg, 100, 0},    {"pop95", pop, 95, 1.2},
                 {"pop", pop, 100, -1},      {"amr0", amr, 0, 1.5}, {"amr", amr, 100, -1}};
    const uint32_t most = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 4096;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const figures first = measure(64, kinds[i].precision, kinds[i].program);
        /* what is not folded at all grows with the ranks; a few of them show it */
        const uint32_t last = kinds[i].limit < 0 ? CRN_MIN(most, 1024) : most;
        for (uint32_t n = 64; n <= last && !failed; n *= 4) {
            const figures f = measure(n, kinds[i].precision, kinds[i].program);
            const double limit = kinds[i].limit == 0 ? log2(n) / 6 * 1.2 : kinds[i].limit;
            char name[64], note[200];
            snprintf(name, sizeof name, "trace.scale.%s.%u", kinds[i].name, n);
            snprintf(note, sizeof note,
                     "bytes against 64 ranks; a rank's way up the tree %.1f ms (64: %.1f), "
                     "recording %zu KiB, whole trace %zu KiB",
                     1e3 * f.way, 1e3 * first.way, f.memory >> 10, f.payload >> 10);
            bench_print(&(bench_result){.name = name,
                                        .ours = (double)f.nbytes,
                                        .peer = (double)first.nbytes,
                                        .unit = "bytes",
                                        .bar = limit > 0 ? BENCH_AT_MOST : BENCH_NO_BAR,
                                        .limit = CRN_MAX(limit, 0),
                                        .note = note});
        }
    }
    return failed;
}
