/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What does it take to compare two runs by their trees, against reading all of both (Direct, our
 * own best), and what is Direct against plain reading? And the two tables of the paper that
 * tolerant trees come from (Figures 5 and 7): throughput, share of the data read and false alarms,
 * by bound and block size. Caches are dropped before each measurement, and that is checked. Files
 * go below the working directory.
 *
 *     bench_compare [MiB of state of a run [MiB for the tables]]
 */
#include "bench.h"
#include "io/io.h"

#include <cairn/cairn.h>

#include <fcntl.h>
#include <ftw.h>
#include <unistd.h>

#define TRAIL "bench_compare.trail"

enum { TURNS = 3, READ_BYTES = 1 << 20, READS = 16 };

static const char *const bounds[] = {"1e-3", "1e-4", "1e-5", "1e-6", "1e-7"};

typedef struct state {
    float *at;
    size_t n, block; /* values, bytes of a block */
} state;

static void need(int rc, const cairn *c)
{
    if (rc < 0) {
        fprintf(stderr, "bench_compare: %s\n", cairn_last_error(c));
        exit(2);
    }
}

/* --- runs ------------------------------------------------------------------------------------ */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

static void remove_run(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", TRAIL, name);
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void make_run(const state *s, const char *name)
{
    char block[32];
    cairn *c;
    snprintf(block, sizeof block, "%zu", s->block);
    setenv("CAIRN_RUN_TRAIL", TRAIL, 1);
    setenv("CAIRN_RUN_NAME", name, 1);
    setenv("CAIRN_LEVEL_LOCAL", "trail", 1);
    setenv("CAIRN_MARK_MODE", "synchronous", 1);
    setenv("CAIRN_VARIABLE_BLOCK", block, 1);
    setenv("CAIRN_VARIABLE_BOUND", "1e-3, 1e-4, 1e-5, 1e-6, 1e-7", 1);
    remove_run(name);
    need(cairn_open(MPI_COMM_SELF, NULL, &c), NULL);
    need(cairn_protect(c, "field", s->at, CAIRN_FLOAT32, s->n), c);
    need(cairn_mark(c, 1, CAIRN_AUTO), c);
    need(cairn_close(c), NULL);
}

static float value_of(size_t i)
{
    return (float)(i % 1000003) * 1e-6f;
}

static void reset(state *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->at[i] = value_of(i);
}

/* Let one value differ by 1 in so many per mille of the blocks, scattered evenly. */
static void disturb(state *s, size_t per_mille)
{
    const size_t per_block = s->block / sizeof *s->at;
    for (size_t b = 0; b * per_block < s->n; b++)
        if (b * per_mille / 1000 != (b + 1) * per_mille / 1000)
            s->at[b * per_block + b % per_block] += 1;
}

/* --- cold caches ------------------------------------------------------------------------------ */

static int evict_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)ftw;
    if (kind != FTW_F || st->st_size == 0)
        return 0;
    crn_file *f;
    bench_need(crn_file_open(AT_FDCWD, path, CRN_READ, &f));
    const int rc = posix_fadvise(crn_file_fd(f), 0, 0, POSIX_FADV_DONTNEED);
    if (rc != 0 || crn_file_is_cached(f, 0, (uint64_t)st->st_size)) {
        fprintf(stderr, "bench_compare: '%s' stays in the cache\n", path);
        exit(2);
    }
    crn_file_close(f);
    return 0;
}

static void evict(void)
{
    sync();
    nftw(TRAIL, evict_one, 16, FTW_PHYS);
}

/* --- measuring -------------------------------------------------------------------------------- */

static cairn_comparison_row last;

static int on_row(void *arg, const cairn_comparison_row *row)
{
    (void)arg;
    last = *row;
    return 0;
}

/* Seconds to compare runs a and b, cold. */
static double compare(const char *bound, bool direct, cairn_comparison *ret)
{
    const cairn_comparison_options how = {
        .struct_bytes = sizeof how, .bound = bound, .direct = direct, .all = true, .row = on_row};
    *ret = (cairn_comparison){.struct_bytes = sizeof *ret};
    evict();
    const double start = bench_seconds();
    need(cairn_compare(MPI_COMM_SELF, TRAIL "/a", TRAIL "/b", &how, ret), NULL);
    return bench_seconds() - start;
}

/* Read a whole file with large direct reads, several in flight. */
static uint64_t read_file(crn_io *io, const char *path, unsigned char *memory)
{
    crn_file *f;
    crn_op op[READS], *done;
    struct iovec iov[READS];
    uint64_t nbytes, off = 0, left = 0;
    bench_need(crn_file_open(AT_FDCWD, path, CRN_READ | CRN_DIRECT, &f));
    bench_need(crn_file_nbytes(f, &nbytes));
    nbytes -= nbytes % READ_BYTES;
    for (size_t i = 0; i < READS || left > 0;) {
        crn_op *o = i < READS ? &op[i] : NULL;
        if (!o) {
            bench_need(crn_io_wait(io, &done));
            bench_need(done->status);
            left--;
            o = done;
        }
        const size_t k = (size_t)(o - op);
        i += i < READS;
        if (off == nbytes)
            continue;
        iov[k] = (struct iovec){memory + k * READ_BYTES, READ_BYTES};
        *o = (crn_op){.kind = CRN_OP_READ, .file = f, .iov = &iov[k], .niov = 1, .off = off};
        off += READ_BYTES;
        left++;
        bench_need(crn_io_submit(io, o));
    }
    crn_file_close(f);
    return nbytes;
}

/* Bytes per second of plain reading of both runs' parts. */
static double read_plainly(void)
{
    static const char *const part[] = {TRAIL "/a/series-1/000/part-000000",
                                       TRAIL "/b/series-1/000/part-000000"};
    crn_io *io;
    unsigned char *memory;
    uint64_t nbytes = 0;
    bench_need(crn_io_create(CRN_IO_AUTO, READS, &io));
    bench_need(crn_io_memory(READS * READ_BYTES, &memory));
    evict();
    const double start = bench_seconds();
    for (int k = 0; k < 2; k++)
        nbytes += read_file(io, part[k], memory);
    const double seconds = bench_seconds() - start;
    free(memory);
    crn_io_free(io);
    return (double)nbytes / seconds;
}

static void measure_share(state *s, size_t per_mille, double bar)
{
    double trees[TURNS], direct[TURNS];
    cairn_comparison r;
    char name[64], note[200];
    reset(s);
    disturb(s, per_mille);
    make_run(s, "b");
    for (int i = 0; i < TURNS; i++) {
        trees[i] = 1 / compare("1e-6", false, &r);
        direct[i] = 1 / compare("1e-6", true, &r);
    }
    const double gb = 2e-9 * (double)(s->n * sizeof *s->at);
    snprintf(name, sizeof name, "compare.share_%g", (double)per_mille / 10);
    snprintf(note, sizeof note,
             "%g%% of blocks of %zu KiB differ, cold, bound 1e-6; peer is Direct",
             (double)per_mille / 10, s->block / 1024);
    bench_print(&(bench_result){.name = name,
                                .ours = gb * bench_median(trees, TURNS),
                                .peer = gb * bench_median(direct, TURNS),
                                .unit = "GB/s",
                                .bar = bar > 0 ? BENCH_AT_LEAST : BENCH_NO_BAR,
                                .limit = bar,
                                .note = note});
}

static void measure_direct(const state *s)
{
    double ours[TURNS], peer[TURNS];
    cairn_comparison r;
    for (int i = 0; i < TURNS; i++) {
        ours[i] = 2e-9 * (double)(s->n * sizeof *s->at) / compare("1e-6", true, &r);
        peer[i] = 1e-9 * read_plainly();
    }
    bench_print(&(bench_result){.name = "compare.direct",
                                .ours = bench_median(ours, TURNS),
                                .peer = bench_median(peer, TURNS),
                                .unit = "GB/s",
                                .bar = BENCH_AT_LEAST,
                                .limit = 0.85,
                                .note =
                                    "all values of both runs read, verified and compared, cold; "
                                    "peer is plain direct reading of both parts"});
}

/* --- tables ----------------------------------------------------------------------------------- */

/* Noise as of sums in another order: most values the same, some far apart, sizes over decades. */
static void add_noise(state *s)
{
    crn_rng r = crn_rng_of(5, 0);
    for (size_t i = 0; i < s->n; i += 1 + crn_rng_below(&r, 4000))
        s->at[i] += (float)pow(10, -8 + 5 * crn_rng_unit(&r));
}

static void print_tables(state *s)
{
    static const size_t kib[] = {4, 16, 64, 256, 512};
    printf("\n%-6s %8s %10s %10s %12s\n", "bound", "block", "GB/s", "read", "false alarms");
    for (size_t k = 0; k < sizeof kib / sizeof *kib; k++) {
        s->block = kib[k] * 1024;
        reset(s);
        make_run(s, "a");
        add_noise(s);
        make_run(s, "b");
        for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
            cairn_comparison r;
            const double seconds = compare(bounds[i], false, &r);
            const double nbytes = 2 * (double)(s->n * sizeof *s->at);
            printf("%-6s %4zu KiB %10.2f %9.1f%% %11.1f%%\n", bounds[i], kib[k],
                   1e-9 * nbytes / seconds, 100 * (double)r.read_bytes / nbytes,
                   100 * (double)last.nfalse / CRN_MAX((double)last.nflagged, 1));
        }
    }
}

int main(int argc, char **argv)
{
    const size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 2048;
    const size_t small = argc > 2 ? strtoul(argv[2], NULL, 10) : 256;
    if (argc > 3 || mib == 0 || small == 0) {
        fprintf(stderr, "usage: bench_compare [MiB of state of a run [MiB for the tables]]\n");
        return 2;
    }
    state s = {.n = CRN_MAX(mib, small) * ((1 << 20) / sizeof(float)), .block = 65536};
    bench_need(crn_alloc(&s.at, s.n));
    s.n = mib * ((1 << 20) / sizeof(float));
    reset(&s);
    make_run(&s, "a");
    measure_share(&s, 0, 50);
    measure_direct(&s);
    measure_share(&s, 1, 0);
    measure_share(&s, 10, 8);
    measure_share(&s, 100, 0);
    measure_share(&s, 500, 0);
    measure_share(&s, 1000, 0.95);
    s.n = small * ((1 << 20) / sizeof(float));
    print_tables(&s);
    free(s.at);
    nftw(TRAIL, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}
