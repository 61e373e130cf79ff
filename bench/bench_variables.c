/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What do many variables cost? Protecting them, a mark with one of them changed against hashing the
 * same bytes one variable at a time, and what such a mark writes. Files go to memory, where there
 * is some, so that the disk has no say.
 *
 *     bench_variables [variables]
 *
 * BENCH: ranks 1
 */
#include "bench_mpi.h"

#include <cairn/cairn.h>

#include "hash/hash.h"

#include <sys/stat.h>
#include <unistd.h>

#define TRAIL "bench_variables.trail"

typedef struct state {
    size_t nvars, nbytes; /* of each */
    unsigned char *data;
    cairn *c;
    uint64_t version;
} state;

static double protect(state *s)
{
    char name[32];
    const double start = bench_seconds();
    for (size_t i = 0; i < s->nvars; i++) {
        snprintf(name, sizeof name, "v%zu", i);
        bench_need_call(s->c, cairn_protect(s->c, name, s->data + i * s->nbytes, CAIRN_FLOAT64,
                                            s->nbytes / sizeof(double)));
    }
    return bench_seconds() - start;
}

static double hash_all(const state *s)
{
    const double start = bench_seconds();
    crn_digest sum = {{0}};
    for (size_t i = 0; i < s->nvars; i++)
        sum.b[i % 16] ^= crn_digest_of(s->data + i * s->nbytes, s->nbytes).b[0];
    const double took = bench_seconds() - start;
    s->data[0] ^= sum.b[0] & 1; /* so that the sum is needed */
    return took;
}

static uint64_t file_bytes(void)
{
    struct stat st;
    bench_need_sys(stat(TRAIL "/run-1/series-1/000/part-000000", &st) == 0, TRAIL);
    return (uint64_t)st.st_blocks * 512;
}

static void open_session(state *s)
{
    bench_remove(TRAIL);
    setenv("CAIRN_RUN_TRAIL", TRAIL, 1);
    setenv("CAIRN_LEVEL_LOCAL", "trail", 1);
    setenv("CAIRN_COMPARE_TREES", "no", 1);
    bench_need_call(NULL, cairn_open(MPI_COMM_SELF, NULL, &s->c));
}

static void print(const state *s, const char *what, const char *unit, double ours, double peer,
                  double limit, const char *note)
{
    char name[64];
    snprintf(name, sizeof name, "variables.%s.%zu", what, s->nbytes);
    bench_print(&(bench_result){.name = name,
                                .unit = unit,
                                .bar = limit > 0 ? BENCH_AT_MOST : BENCH_NO_BAR,
                                .limit = limit,
                                .ours = ours,
                                .peer = peer,
                                .note = note});
}

/* Marks with one variable changed. */
static void mark_some(state *s, double *ret_hold, double *ret_hash, double *ret_settle)
{
    double hold[BENCH_TURNS], hash[BENCH_TURNS], settle[BENCH_TURNS];
    for (unsigned i = 0; i < BENCH_TURNS; i++) {
        s->data[s->nvars / 2 * s->nbytes]++;
        hash[i] = hash_all(s);
        double start = bench_seconds();
        bench_need_call(s->c, cairn_mark(s->c, ++s->version, CAIRN_LEVEL_LOCAL));
        hold[i] = bench_seconds() - start;
        bench_need_call(s->c, cairn_settle(s->c));
        settle[i] = bench_seconds() - start;
    }
    *ret_hold = bench_median(hold, BENCH_TURNS);
    *ret_hash = bench_median(hash, BENCH_TURNS);
    *ret_settle = bench_median(settle, BENCH_TURNS);
}

static void bench_size(size_t nvars, size_t nbytes)
{
    state s = {.nvars = nvars, .nbytes = nbytes};
    double hold, hash, settle;
    bench_need(crn_alloc(&s.data, nvars * nbytes));
    for (size_t i = 0; i < nvars * nbytes; i++)
        s.data[i] = (unsigned char)(i * 2654435761u >> 16);
    open_session(&s);
    const double protecting = protect(&s);
    bench_need_call(s.c, cairn_mark(s.c, ++s.version, CAIRN_LEVEL_LOCAL));
    bench_need_call(s.c, cairn_settle(s.c));
    const uint64_t first = file_bytes();
    mark_some(&s, &hold, &hash, &settle);
    const double written = (double)(file_bytes() - first) / BENCH_TURNS;
    bench_need_call(NULL, cairn_close(s.c));
    bench_remove(TRAIL);
    free(s.data);
    print(&s, "protect", "s", protecting, 0.2, 1, "all of them; peer: the bar");
    print(&s, "hold", "s", hold, nbytes == 64 ? 0.010 : hash, nbytes == 64 ? 1 : 1.5,
          nbytes == 64 ? "a mark with one changed; peer: the bar"
                       : "a mark with one changed; peer: hashing all of them");
    print(&s, "settle", "s", settle, hash, 0, "until that is stored; peer: hashing all of them");
    print(&s, "grow", "MiB", written / (1 << 20), 1, 1,
          "what the part grows by with such a mark, none dropped; peer: the bar");
}

int main(int argc, char **argv)
{
    const size_t nvars = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000;
    int given;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    bench_size(nvars, 64);
    bench_size(nvars, 1024);
    MPI_Finalize();
    return 0;
}
