/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What does it take to compare two runs by their trees, against reading all of both (Direct, our
 * own best), and what is Direct against plain reading; and what do numpy's allclose, cmp and h5diff
 * take for plain files, where they are installed? And the tables of the paper that tolerant trees
 * come from (Figures 5 and 7): throughput, share of the data read and false alarms, by bound and
 * block size; and throughput by the share of blocks that differ as well. Caches are dropped before
 * each measurement, and that is checked. Files go below the working directory.
 *
 *     bench_compare [MiB of state of a run [MiB for the tables]]
 *
 * Sizes are also taken from BENCH_COMPARE_MIB, for a quick look. Where the disk has no room for
 * them, they are halved until it has.
 */
#include "bench.h"
#include "io/io.h"

#include <cairn/cairn.h>

#include <fcntl.h>
#include <ftw.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define TRAIL "bench_compare.trail"
#define FILES "bench_compare.files"

enum { TURNS = 5, READ_BYTES = 1 << 20, READS = 32 };
enum { MIB = 2048, PEERS_MIB = 512, TABLES_MIB = 256 };

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

static void remove_run(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", TRAIL, name);
    bench_remove(path);
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
    const size_t per_block = CRN_MAX(s->block / sizeof *s->at, 1);
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
    nftw(FILES, evict_one, 16, FTW_PHYS);
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

/* Plain reading of both runs' parts. */
static double read_plainly(const state *s)
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
    (void)s;
    return 1e-9 * (double)nbytes / seconds;
}

static double gigabytes(const state *s)
{
    return 2e-9 * (double)(s->n * sizeof *s->at);
}

static double by_trees(const state *s)
{
    cairn_comparison r;
    return gigabytes(s) / compare("1e-6", false, &r);
}

static double directly(const state *s)
{
    cairn_comparison r;
    return gigabytes(s) / compare("1e-6", true, &r);
}

typedef double speed_fn(const state *s);
typedef struct pair {
    double ours, peer;
} pair;

static int by_ratio(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    const double rx = x->ours / x->peer, ry = y->ours / y->peer;
    return (rx > ry) - (rx < ry);
}

/*
 * Two speeds by turns: ours, peer, peer, ours is one turn, so that a drift of the disk within it
 * falls out. A disk of many users may be three times slower for some seconds: such a turn says
 * nothing of either, and of the turns the one with the median ratio is told.
 */
static pair measure(const state *s, speed_fn *ours, speed_fn *peer)
{
    pair turn[TURNS];
    for (int i = 0; i < TURNS; i++) {
        const double first = ours(s), second = peer(s), third = peer(s), fourth = ours(s);
        turn[i] = (pair){(first + fourth) / 2, (second + third) / 2};
    }
    qsort(turn, TURNS, sizeof *turn, by_ratio);
    return turn[TURNS / 2];
}

static void measure_share(state *s, size_t per_mille, double bar)
{
    char name[64], note[200];
    reset(s);
    disturb(s, per_mille);
    make_run(s, "b");
    const pair p = measure(s, by_trees, directly);
    snprintf(name, sizeof name, "compare.share_%g", (double)per_mille / 10);
    snprintf(note, sizeof note,
             "%g%% of blocks of %zu KiB differ, cold, bound 1e-6; peer is Direct",
             (double)per_mille / 10, s->block / 1024);
    bench_print(&(bench_result){.name = name,
                                .ours = p.ours,
                                .peer = p.peer,
                                .unit = "GB/s",
                                .bar = bar > 0 ? BENCH_AT_LEAST : BENCH_NO_BAR,
                                .limit = bar,
                                .note = note});
}

static void measure_direct(const state *s)
{
    const pair p = measure(s, directly, read_plainly);
    bench_print(&(bench_result){.name = "compare.direct",
                                .ours = p.ours,
                                .peer = p.peer,
                                .unit = "GB/s",
                                .bar = BENCH_AT_LEAST,
                                .limit = 0.85,
                                .note =
                                    "all values of both runs read, verified and compared, cold; "
                                    "peer is plain direct reading of both parts"});
}

/* --- other programs --------------------------------------------------------------------------- */

static const char *const numpy =
    "-c 'import numpy as n, sys\n"
    "a, b = (n.fromfile(p, n.float32) for p in sys.argv[1:3])\n"
    "sys.exit(not n.allclose(a, b, rtol=0, atol=1e-6))' " FILES "/a.bin " FILES "/b.bin";

/* Does a command succeed, which it must not say? */
static bool succeeds(const char *words, const char *more)
{
    char line[600];
    snprintf(line, sizeof line, "%s %s >/dev/null 2>&1", words, more);
    return system(line) == 0;
}

/* The first of some Pythons that has numpy; NULL: none has. */
static const char *find_python(void)
{
    static const char *const python[] = {"python3", "/usr/bin/python3"};
    for (size_t i = 0; i < sizeof python / sizeof *python; i++)
        if (succeeds(python[i], "-c 'import numpy'"))
            return python[i];
    return NULL;
}

static void write_raw(const state *s, const char *path)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(s->at, sizeof *s->at, s->n, f) != s->n || fclose(f) != 0) {
        fprintf(stderr, "bench_compare: cannot write '%s'\n", path);
        exit(2);
    }
}

static void write_hdf5(const char *run, const char *path)
{
    cairn_export_options what = {
        .struct_bytes = sizeof what, .trail = TRAIL, .run = run, .version = 1, .path = path};
    need(cairn_export(&what, NULL), NULL);
}

/* Seconds that we take for two files, cold. */
static double compare_files(const char *a, const char *b, const char *raw)
{
    const cairn_comparison_options how = {.struct_bytes = sizeof how, .bound = "1e-6", .raw = raw};
    cairn_comparison r = {.struct_bytes = sizeof r};
    evict();
    const double start = bench_seconds();
    need(cairn_compare_files(MPI_COMM_SELF, a, b, &how, &r), NULL);
    const double took = bench_seconds() - start;
    if (r.verdict != CAIRN_SAME) {
        fprintf(stderr, "bench_compare: '%s' and '%s' should be the same\n", a, b);
        exit(2);
    }
    return took;
}

/* A peer that compares two files, which are the same, so that it must look at all of them. */
static void measure_peer(const state *s, const char *name, const char *program, const char *args,
                         bool hdf5, const char *note)
{
    double ours[TURNS], peer[TURNS];
    const double gb = gigabytes(s);
    if (!program || !succeeds("command -v", program)) {
        printf("%s is left out: it is not installed\n", name);
        return;
    }
    for (int i = 0; i < TURNS; i++) {
        ours[i] = gb / (hdf5 ? compare_files(FILES "/a.h5", FILES "/b.h5", NULL)
                             : compare_files(FILES "/a.bin", FILES "/b.bin", "float32"));
        evict();
        const double start = bench_seconds();
        if (!succeeds(program, args)) {
            fprintf(stderr, "bench_compare: '%s' failed\n", program);
            exit(2);
        }
        peer[i] = gb / (bench_seconds() - start);
    }
    bench_print(&(bench_result){.name = name,
                                .ours = bench_median(ours, TURNS),
                                .peer = bench_median(peer, TURNS),
                                .unit = "GB/s",
                                .note = note});
}

static void measure_peers(state *s)
{
    if (mkdir(FILES, 0700) < 0)
        bench_remove(FILES), mkdir(FILES, 0700);
    reset(s);
    make_run(s, "a");
    write_hdf5("a", FILES "/a.h5");
    write_hdf5("a", FILES "/b.h5");
    write_raw(s, FILES "/a.bin");
    write_raw(s, FILES "/b.bin");
    measure_peer(
        s, "compare.allclose", find_python(), numpy, false,
        "two raw files of the same float32 values, cold; peer is numpy: fromfile, allclose");
    measure_peer(s, "compare.cmp", "cmp", FILES "/a.bin " FILES "/b.bin", false,
                 "the same files; peer is cmp, which compares bytes");
    measure_peer(s, "compare.h5diff", "h5diff", "-d 1e-6 " FILES "/a.h5 " FILES "/b.h5", true,
                 "the same values in HDF5 files, contiguous; peer is h5diff");
    bench_remove(FILES);
}

/* --- tables ----------------------------------------------------------------------------------- */

static const size_t block_kib[] = {4, 8, 16, 32, 64, 128, 256, 512};
enum { NBOUNDS = sizeof bounds / sizeof *bounds, NBLOCKS = sizeof block_kib / sizeof *block_kib };

/* Noise as of sums in another order: most values the same, some far apart, sizes over decades. */
static void add_noise(state *s)
{
    crn_rng r = crn_rng_of(5, 0);
    for (size_t i = 0; i < s->n; i += 1 + crn_rng_below(&r, 4000))
        s->at[i] += (float)pow(10, -8 + 5 * crn_rng_unit(&r));
}

/* What the paper's figures show of one bound and block size. */
typedef struct cell {
    double speed, read, flagged, alarms; /* GB/s; shares */
} cell;

static cell look(const state *s, const char *bound, bool direct)
{
    cairn_comparison r;
    const double nbytes = 2 * (double)(s->n * sizeof *s->at);
    const double seconds = compare(bound, direct, &r);
    return (cell){.speed = 1e-9 * nbytes / seconds,
                  .read = (double)r.read_bytes / nbytes,
                  .flagged = (double)last.nflagged / CRN_MAX((double)last.nblocks, 1),
                  .alarms = (double)last.nfalse / CRN_MAX((double)last.nblocks, 1)};
}

static void print_head(const char *title)
{
    printf("\n%-20s", title);
    for (size_t k = 0; k < NBLOCKS; k++)
        printf("%5zu KiB", block_kib[k]);
    printf("\n");
}

enum { SPEED, READ, FLAGGED, ALARMS };

static void print_line(const char *name, const cell *at, int what)
{
    printf("%-20s", name);
    for (size_t k = 0; k < NBLOCKS; k++) {
        const double value[] = {at[k].speed, at[k].read, at[k].flagged, at[k].alarms};
        printf(what == SPEED ? "%9.2f" : "%8.2f%%", (what == SPEED ? 1 : 100) * value[what]);
    }
    printf("\n");
}

/* Figures 5 and 7: runs that differ by noise. More than what trees flag is read where that is the
 * faster way. */
static void print_noise_tables(state *s)
{
    static cell at[NBOUNDS + 1][NBLOCKS];
    static const char *const title[] = {"Figure 5: GB/s", "read", "Figure 7a: flagged",
                                        "Figure 7b: false"};
    for (size_t k = 0; k < NBLOCKS; k++) {
        s->block = block_kib[k] * 1024;
        reset(s);
        make_run(s, "a");
        add_noise(s);
        make_run(s, "b");
        for (size_t i = 0; i < NBOUNDS; i++)
            at[i][k] = look(s, bounds[i], false);
        at[NBOUNDS][k] = look(s, bounds[0], true);
    }
    for (int what = SPEED; what <= ALARMS; what++) {
        print_head(title[what]);
        for (size_t i = 0; i < NBOUNDS; i++)
            print_line(bounds[i], at[i], what);
        if (what == SPEED)
            print_line("Direct", at[NBOUNDS], what);
    }
}

/* One value of so many blocks is off by 1, which is more than any bound. */
static void print_share_tables(state *s)
{
    static const size_t per_mille[] = {0, 1, 10, 100, 500, 1000};
    enum { NSHARES = sizeof per_mille / sizeof *per_mille };
    static cell at[NSHARES][NBOUNDS][NBLOCKS];
    for (size_t k = 0; k < NBLOCKS; k++) {
        s->block = block_kib[k] * 1024;
        reset(s);
        make_run(s, "a");
        for (size_t n = 0; n < NSHARES; n++) {
            reset(s);
            disturb(s, per_mille[n]);
            make_run(s, "b");
            for (size_t i = 0; i < NBOUNDS; i++)
                at[n][i][k] = look(s, bounds[i], false);
        }
    }
    for (size_t n = 0; n < NSHARES; n++) {
        char title[40];
        snprintf(title, sizeof title, "%g%% differ: GB/s", (double)per_mille[n] / 10);
        print_head(title);
        for (size_t i = 0; i < NBOUNDS; i++)
            print_line(bounds[i], at[n][i], SPEED);
        print_line("read", at[n][0], READ);
    }
}

/* --- sizes ------------------------------------------------------------------------------------ */

static size_t size_of(int argc, char **argv, int i, const char *text, size_t normal)
{
    if (argc > i)
        return strtoul(argv[i], NULL, 10);
    return text ? CRN_MIN(strtoul(text, NULL, 10), normal) : normal;
}

/* Two runs, and what a mark needs besides. */
static size_t fit(size_t mib)
{
    struct statvfs st;
    if (statvfs(".", &st) < 0)
        return mib;
    const uint64_t room = (uint64_t)st.f_bavail * st.f_frsize >> 20;
    for (; mib > 64 && 3 * mib > room; mib /= 2)
        printf("no room for two runs of %zu MiB\n", mib);
    return mib;
}

int main(int argc, char **argv)
{
    const char *text = getenv("BENCH_COMPARE_MIB");
    const size_t mib = fit(size_of(argc, argv, 1, text, MIB));
    const size_t small = size_of(argc, argv, 2, text, TABLES_MIB);
    const size_t peers = CRN_MIN(mib, (size_t)PEERS_MIB);
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
    remove_run("b");
    s.n = peers * ((1 << 20) / sizeof(float));
    measure_peers(&s);
    s.n = small * ((1 << 20) / sizeof(float));
    print_noise_tables(&s);
    print_share_tables(&s);
    free(s.at);
    bench_remove(TRAIL);
    return 0;
}
