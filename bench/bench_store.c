/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a part file costs against plain files of the same bytes, in the working directory and on
 * /dev/shm, and what a mark with few changes writes.
 *
 *     bench_store [MiB [turns]]        the size of the state; 1024 unless given
 *
 * A plain file is written by large pwrite and fdatasync and read by large pread, as anybody would.
 * Both sides start from the same state: nothing dirty in the page cache, a fresh file for writes,
 * the same file for reads, wholly in the cache (warm) or not at all (cold).
 */
#include "bench.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { PLAIN_BYTES = 8 << 20, TURNS_MAX = 99, DEFAULT_BLOCK = 1 << 16 };

typedef struct state {
    unsigned char *data, *back; /* what is written, and where it is read to */
    size_t nbytes;
    uint32_t block;
    size_t turns;
} state;

/* A place where files are written. */
typedef struct place {
    const char *name, *path;
    int fd;
    bool cold; /* can its files be thrown out of the page cache? */
} place;

/* Stop when a system call that prepares or makes a measurement fails. */
static void need_sys(bool good, const char *what)
{
    if (!good)
        bench_need(crn_fail_sys(errno, "%s", what));
}

static void make_state(state *s, size_t mib)
{
    s->nbytes = mib << 20;
    bench_need(crn_alloc_aligned(&s->data, s->nbytes, 4096));
    bench_need(crn_alloc_aligned(&s->back, s->nbytes, 4096));
    uint64_t word = 1;
    for (size_t i = 0; i < s->nbytes; i += sizeof word) {
        word = word * 6364136223846793005u + 1442695040888963407u;
        memcpy(s->data + i, &word, sizeof word);
    }
    memset(s->back, 1, s->nbytes); /* pages are there before the clock runs */
}

/* --- a part file and a plain one ------------------------------------------------------------ */

static const crn_part_id owner = {.run = "bench", .series = 1, .rank = 0, .nranks = 1};
static const crn_part_options options = {CRN_IO_AUTO, 32, true};

static void mark(crn_part *part, const state *s, uint64_t version, crn_draft_stats *ret)
{
    crn_var_spec spec = {
        .name = "state", .type = "uint8", .item = 1, .block = s->block, .nbytes = s->nbytes};
    crn_draft *d;
    size_t v;
    bench_need(crn_draft_begin(part, version, &d));
    bench_need(crn_draft_add(d, &spec, &v));
    bench_need(crn_draft_put_all(d, v, s->data));
    bench_need(crn_draft_commit(d, 1, ret));
}

static void write_part(const state *s, int dirfd)
{
    crn_part *part;
    bench_need(crn_part_create(dirfd, "bench.part", &owner, &options, &part));
    mark(part, s, 1, NULL);
    crn_part_close(part);
}

static void read_part(const state *s, int dirfd)
{
    crn_part *part;
    crn_mark *m;
    bench_need(crn_part_open(dirfd, "bench.part", &owner, false, &options, &part));
    bench_need(crn_part_load(part, crn_part_version(part, 0), &m));
    crn_var *v = &m->var[0];
    bench_need(crn_mark_read(part, m, v, 0, v->nblocks, s->back, NULL));
    crn_mark_free(m);
    crn_part_close(part);
}

static void write_plain(const state *s, int dirfd)
{
    int fd = openat(dirfd, "bench.plain", O_WRONLY | O_CREAT | O_EXCL, 0600);
    need_sys(fd >= 0, "cannot create 'bench.plain'");
    for (size_t at = 0; at < s->nbytes; at += PLAIN_BYTES) {
        size_t n = CRN_MIN((size_t)PLAIN_BYTES, s->nbytes - at);
        need_sys(pwrite(fd, s->data + at, n, (off_t)at) == (ssize_t)n, "cannot write");
    }
    need_sys(fdatasync(fd) == 0, "cannot sync");
    close(fd);
}

/* The same file as read_part: all of its bytes, but for what follows the state's number. */
static void read_plain(const state *s, int dirfd)
{
    int fd = openat(dirfd, "bench.part", O_RDONLY);
    need_sys(fd >= 0, "cannot open 'bench.part'");
    for (size_t at = 0; at < s->nbytes; at += PLAIN_BYTES) {
        size_t n = CRN_MIN((size_t)PLAIN_BYTES, s->nbytes - at);
        need_sys(pread(fd, s->back + at, n, (off_t)at) == (ssize_t)n, "cannot read");
    }
    close(fd);
}

/* --- the state that both sides begin with --------------------------------------------------- */

/* No files, and nothing left to write. */
static void begin_fresh(const state *s, const place *p)
{
    (void)s;
    (void)unlinkat(p->fd, "bench.part", 0);
    (void)unlinkat(p->fd, "bench.plain", 0);
    need_sys(syncfs(p->fd) == 0, "cannot sync the file system");
}

/* The part file in the page cache. */
static void begin_warm(const state *s, const place *p)
{
    read_plain(s, p->fd);
}

/* The part file on disk only. */
static void begin_cold(const state *s, const place *p)
{
    (void)s;
    int fd = openat(p->fd, "bench.part", O_RDONLY);
    need_sys(fd >= 0, "cannot open 'bench.part'");
    need_sys(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "cannot empty the cache");
    close(fd);
}

/* --- speed ---------------------------------------------------------------------------------- */

typedef void work(const state *s, int dirfd);

/* Something to measure on both sides, and the state in which each begins. */
typedef struct contest {
    const char *name;
    void (*begin)(const state *s, const place *p);
    work *ours, *peer;
    double bar;
    const char *note;
} contest;

static const contest writing = {
    "write",
    begin_fresh,
    write_part,
    write_plain,
    0.90,
    "full first mark with its syncs; peer is pwrite of 8 MiB pieces to a "
    "fresh file and fdatasync"};
static const contest reading_warm = {
    "read.warm",
    begin_warm,
    read_part,
    read_plain,
    0.85,
    "all blocks, verified, from the page cache; peer is pread of 8 MiB pieces of the same file"};
static const contest reading_cold = {
    "read.cold",
    begin_cold,
    read_part,
    read_plain,
    0.85,
    "all blocks, verified, none in the page cache; peer is pread of 8 MiB pieces of the same file"};

static double rate(const contest *c, work *w, const state *s, const place *p)
{
    c->begin(s, p);
    double start = bench_seconds();
    w(s, p->fd);
    return (double)s->nbytes * 1e-9 / (bench_seconds() - start);
}

/* A ratio between sides that vary more than this by themselves is to be read with care. */
static const double noisy = 1.5;

static void print_speed(const char *name, const contest *c, double *ours, double *peer, size_t n)
{
    char note[256];
    bench_result r = {.name = name,
                      .ours = bench_median(ours, n),
                      .peer = bench_median(peer, n),
                      .unit = "GB/s",
                      .bar = c->bar > 0 ? BENCH_AT_LEAST : BENCH_NO_BAR,
                      .limit = c->bar,
                      .note = note};
    bool calm = ours[n - 1] < noisy * ours[0] && peer[n - 1] < noisy * peer[0];
    int end = snprintf(note, sizeof note, "%s", c->note);
    if (!calm)
        snprintf(note + end, sizeof note - (size_t)end,
                 "; noisy machine: ours %.2f to %.2f, peer %.2f to %.2f", ours[0], ours[n - 1],
                 peer[0], peer[n - 1]);
    bench_print(&r);
}

static void hold(const contest *c, const state *s, const place *p)
{
    double ours[TURNS_MAX] = {0}, peer[TURNS_MAX] = {0};
    char name[64];
    for (size_t i = 0; i < s->turns;
         i++) { /* who goes first may find it harder, so they take turns */
        if (i % 2 == 0)
            ours[i] = rate(c, c->ours, s, p);
        peer[i] = rate(c, c->peer, s, p);
        if (i % 2 == 1)
            ours[i] = rate(c, c->ours, s, p);
    }
    snprintf(name, sizeof name, "store.%s.%s", c->name, p->name);
    print_speed(name, c, ours, peer, s->turns);
}

/* A part file to read, which gives back what was written. */
static void make_part(const state *s, const place *p)
{
    begin_fresh(s, p);
    write_part(s, p->fd);
    memset(s->back, 0, s->nbytes);
    read_part(s, p->fd);
    if (memcmp(s->data, s->back, s->nbytes) != 0)
        bench_need(crn_fail(CAIRN_ECORRUPT, "the store reads something else than it wrote"));
}

static void measure_speed(const state *s, const place *p)
{
    hold(&writing, s, p);
    make_part(s, p);
    hold(&reading_warm, s, p);
    if (p->cold)
        hold(&reading_cold, s, p);
    begin_fresh(s, p);
}

/* How the block size decides: not judged, but the reason for the default. */
static void measure_blocks(const state *s, const place *p)
{
    for (uint32_t block = 4 << 10; block <= 1 << 20; block *= 4) {
        char name[32];
        contest c = writing;
        state t = *s;
        t.block = block;
        c.name = name;
        c.bar = 0;
        c.note = "as store.write, with this block size";
        snprintf(name, sizeof name, "block.%uk.write", block >> 10);
        hold(&c, &t, p);
        make_part(&t, p);
        c = p->cold ? reading_cold : reading_warm;
        c.name = name;
        c.bar = 0;
        c.note = p->cold ? "as store.read.cold, with this block size"
                         : "as store.read.warm, with this block size";
        snprintf(name, sizeof name, "block.%uk.read", block >> 10);
        hold(&c, &t, p);
    }
    begin_fresh(s, p);
}

/* --- few changes ---------------------------------------------------------------------------- */

/* Change one byte in each of 1% of the blocks, scattered. */
static void change_some(state *s, crn_rng *rng)
{
    size_t nblocks = s->nbytes / s->block, n = nblocks / 100;
    for (size_t i = 0; i < n; i++) {
        size_t stratum = nblocks / n;
        size_t block = i * stratum + crn_rng_below(rng, stratum);
        s->data[block * s->block + crn_rng_below(rng, s->block)] += 1;
    }
}

static void print_change(const char *what, const place *p, double ours, double peer, double limit,
                         const char *note)
{
    char name[64];
    snprintf(name, sizeof name, "store.change.%s.%s", what, p->name);
    bench_print(&(bench_result){.name = name,
                                .ours = ours,
                                .peer = peer,
                                .unit = "bytes",
                                .bar = BENCH_AT_MOST,
                                .limit = limit,
                                .note = note});
}

/* 100 marks with 1% of the blocks changed: the worst of them counts. */
static void measure_change(state *s, const place *p)
{
    crn_part *part;
    crn_draft_stats stats;
    crn_rng rng = crn_rng_of(2, 0);
    uint64_t written = 0, catalogue = 0, file = 0;
    bench_need(crn_part_create(p->fd, "bench.part", &owner, &options, &part));
    mark(part, s, 1, NULL);
    for (uint64_t version = 2; version <= 101; version++) {
        crn_part_info info;
        change_some(s, &rng);
        mark(part, s, version, &stats);
        crn_part_describe(part, &info);
        written = CRN_MAX(written, stats.data_bytes);
        catalogue = CRN_MAX(catalogue, stats.meta_bytes);
        file = CRN_MAX(file, info.file_bytes);
    }
    crn_part_close(part);
    begin_fresh(s, p);
    char note[160];
    snprintf(note, sizeof note,
             "blocks written by a mark with 1%% of them changed, the most of 100 marks, beside "
             "%.3f%% for tables and catalogue; peer is the state",
             100.0 * (double)catalogue / (double)s->nbytes);
    print_change("written", p, (double)written, (double)s->nbytes, 0.012, note);
    print_change("file", p, (double)file, (double)s->nbytes, 1.1,
                 "length of the file with keep = 1, the most within 100 such marks; peer is the "
                 "state");
}

static void measure(state *s, place *p)
{
    p->fd = open(p->path, O_RDONLY | O_DIRECTORY);
    need_sys(p->fd >= 0, p->path);
    begin_fresh(s, p);
    sync(); /* what was left to be written must not run beside this */
    measure_speed(s, p);
    measure_blocks(s, p);
    measure_change(s, p);
    close(p->fd);
}

int main(int argc, char **argv)
{
    size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 1024;
    size_t turns = argc > 2 ? strtoul(argv[2], NULL, 10) : BENCH_TURNS;
    if (argc > 3 || mib < 8 || turns == 0 || turns > TURNS_MAX) {
        fprintf(stderr, "usage: bench_store [MiB (at least 8) [turns]]\n");
        return 2;
    }
    state s = {.block = DEFAULT_BLOCK, .turns = turns};
    place places[] = {
        {.name = "disk", .path = ".", .cold = true},
        {.name = "shm", .path = "/dev/shm", .cold = false},
    };
    make_state(&s, mib);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        measure(&s, &places[i]);
    free(s.data);
    free(s.back);
    return 0;
}
