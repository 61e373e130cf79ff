/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Named states on a shelf in memory (/dev/shm): what finding, putting, getting and dropping cost,
 * with many of them and many writers. An argument gives another number of states; 0: only what
 * needs few.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cairn/state.h>

#include "bench.h"
#include "state/state.h"

enum { WRITERS = 64, SMALL = 1 << 10, LARGE = 64 << 20, BLOCK = 1 << 16, KEPT = 20, PUTS = 5000 };

static char path[128];
static unsigned char *data, *other;

static cairn_shelf *open_shelf(void)
{
    cairn_shelf *s;
    bench_need((cairn_status)cairn_shelf_open(path, NULL, &s));
    return s;
}

static cairn_field field_of(void *at, size_t nbytes)
{
    return (cairn_field){.name = "x", .data = at, .type = CAIRN_BYTES, .count = {nbytes}};
}

static double put(cairn_shelf *s, uint64_t version, size_t nbytes)
{
    const cairn_field f = field_of(data, nbytes);
    const double start = bench_seconds();
    bench_need((cairn_status)cairn_state_put(s, "m", version, NULL, &f, 1));
    return bench_seconds() - start;
}

/* Bytes that the files of the shelf take, but for the index. */
static uint64_t total;

static int add_part(const char *name, const struct stat *st, int kind, struct FTW *ftw)
{
    if (kind == FTW_F && strncmp(name + ftw->base, "part-", 5) == 0)
        total += (uint64_t)st->st_blocks * 512;
    return 0;
}

static uint64_t part_bytes(void)
{
    total = 0;
    (void)nftw(path, add_part, 16, FTW_PHYS);
    return total;
}

/* --- many --------------------------------------------------------------------------------- */

static int count_one(void *arg, const cairn_state_info *info)
{
    (void)info;
    ++*(uint64_t *)arg;
    return 0;
}

static void put_many(uint64_t nstates)
{
    static cairn_shelf *writer[WRITERS];
    for (size_t w = 0; w < WRITERS; w++)
        writer[w] = open_shelf();
    for (uint64_t v = 0; v < nstates; v++) {
        memcpy(data, &v, sizeof v);
        (void)put(writer[v % WRITERS], v, SMALL);
    }
    for (size_t w = 0; w < WRITERS; w++)
        cairn_shelf_close(writer[w]);
}

/* So many more states by other writers than these few puts make, as far as the index is concerned.
 */
static void list_many(uint64_t nstates, uint32_t nwriters)
{
    cairn_shelf *s = open_shelf();
    for (uint64_t v = 0; v < nstates; v++) {
        const crn_digest d = {{0}};
        const state_entry e = {.key = "w",
                               .version = v,
                               .digest = d,
                               .series = (uint32_t)(1000 + v % nwriters),
                               .nranks = 1};
        bench_need(crn_state_index_put(s->index, &e));
    }
    cairn_shelf_close(s);
}

static double time_has(cairn_shelf *s, const char *key, uint64_t nstates)
{
    enum { ASKED = 1000 };
    const double start = bench_seconds();
    for (uint64_t i = 0; i < ASKED; i++)
        bench_need((cairn_status)cairn_state_has(s, key, i * 7919 % (2 * nstates)));
    return (bench_seconds() - start) / ASKED;
}

static void bench_has_of_many_writers(uint64_t nstates)
{
    double has[BENCH_TURNS];
    list_many(nstates, 2000);
    cairn_shelf *s = open_shelf();
    for (size_t t = 0; t < BENCH_TURNS; t++)
        has[t] = time_has(s, "w", nstates);
    bench_print(
        &(bench_result){.name = "state.has.2000",
                        .unit = "s",
                        .bar = BENCH_AT_MOST,
                        .limit = 1,
                        .ours = bench_median(has, BENCH_TURNS),
                        .peer = 20e-6,
                        .note = "as many states again, listed for 2,000 writers; peer: 20 us"});
    cairn_shelf_close(s);
}

static void bench_many(uint64_t nstates)
{
    double opened[BENCH_TURNS], has[BENCH_TURNS], list[BENCH_TURNS];
    put_many(nstates);
    for (size_t t = 0; t < BENCH_TURNS; t++) {
        uint64_t n = 0;
        double start = bench_seconds();
        cairn_shelf *s = open_shelf();
        opened[t] = bench_seconds() - start;
        has[t] = time_has(s, "m", nstates);
        start = bench_seconds();
        bench_need((cairn_status)cairn_state_list(s, "m", false, 17, count_one, &n));
        list[t] = bench_seconds() - start;
        cairn_shelf_close(s);
    }
    bench_print(
        &(bench_result){.name = "state.has",
                        .unit = "s",
                        .bar = BENCH_AT_MOST,
                        .limit = 1,
                        .ours = bench_median(has, BENCH_TURNS),
                        .peer = 20e-6,
                        .note = "a shelf of 64 writers, asked by none of them; peer: 20 us"});
    bench_print(&(bench_result){.name = "state.open",
                                .unit = "s",
                                .bar = BENCH_AT_MOST,
                                .limit = 1,
                                .ours = bench_median(opened, BENCH_TURNS),
                                .peer = 20e-3,
                                .note = "the same shelf; peer: 20 ms"});
    bench_print(&(bench_result){.name = "state.list",
                                .unit = "s",
                                .ours = bench_median(list, BENCH_TURNS),
                                .peer = 1,
                                .note = "which states of a version are there; peer: a second"});
    bench_has_of_many_writers(nstates);
    bench_remove(path);
}

/* --- one writer --------------------------------------------------------------------------- */

static void bench_puts(void)
{
    enum { SOME = 99 };
    cairn_shelf *s = open_shelf();
    double early[SOME], late[SOME];
    for (uint64_t v = 0; v < PUTS; v++) {
        memcpy(data, &v, sizeof v);
        const double t = put(s, v, 4 * BLOCK);
        if (v >= 100 - SOME / 2 && v < 100 - SOME / 2 + SOME)
            early[v - (100 - SOME / 2)] = t;
        if (v >= PUTS - SOME)
            late[v - (PUTS - SOME)] = t;
    }
    bench_print(&(bench_result){.name = "state.put.5000th",
                                .unit = "s",
                                .bar = BENCH_AT_MOST,
                                .limit = 1.5,
                                .ours = bench_median(late, SOME),
                                .peer = bench_median(early, SOME),
                                .note = "256 KiB, one block new; peer: the writer's 100th put"});
    cairn_shelf_close(s);
    bench_remove(path);
}

static void bench_space(void)
{
    cairn_shelf *s = open_shelf();
    crn_rng rng = crn_rng_of(1, 1);
    const size_t nbytes = 16 * BLOCK;
    for (uint64_t v = 0; v < 10000; v++) {
        for (size_t i = 0; i < nbytes; i += BLOCK)
            memcpy(data + i, &(uint64_t){crn_rng_u64(&rng)}, sizeof(uint64_t));
        (void)put(s, v, nbytes);
        if (v >= KEPT)
            bench_need((cairn_status)cairn_state_drop(s, "m", v - KEPT));
    }
    bench_print(&(bench_result){.name = "state.space",
                                .unit = "bytes",
                                .bar = BENCH_AT_MOST,
                                .limit = 1.2,
                                .ours = (double)part_bytes(),
                                .peer = (double)(KEPT * nbytes),
                                .note = "after 10,000 puts and drops; peer: what is kept"});
    cairn_shelf_close(s);
    bench_remove(path);
}

static void bench_child(void)
{
    cairn_shelf *s = open_shelf();
    for (size_t i = 0; i < LARGE; i += 8)
        memcpy(data + i, &i, sizeof i);
    (void)put(s, 0, LARGE);
    const uint64_t before = part_bytes();
    for (size_t i = 0; i < LARGE / BLOCK / 100; i++)
        data[100 * i * BLOCK] ^= 1;
    (void)put(s, 1, LARGE);
    bench_print(&(bench_result){.name = "state.child",
                                .unit = "bytes",
                                .bar = BENCH_AT_MOST,
                                .limit = 0.015,
                                .ours = (double)(part_bytes() - before),
                                .peer = LARGE,
                                .note = "written of a state with 1% new blocks; peer: its bytes"});
    cairn_shelf_close(s);
    bench_remove(path);
}

/* --- speed -------------------------------------------------------------------------------- */

static double time_copy(void)
{
    const double start = bench_seconds();
    memcpy(other, data, LARGE);
    return bench_seconds() - start;
}

/* As many bytes from there on, that is, those of the n-th state of this size. */
static double time_read(const char *file, uint64_t n)
{
    const int fd = open(file, O_RDONLY);
    const double start = bench_seconds();
    for (size_t at = 0; at < LARGE; at += 1 << 20)
        if (pread(fd, other + at, 1 << 20, (off_t)(n * LARGE + at)) != 1 << 20)
            exit(2);
    const double t = bench_seconds() - start;
    close(fd);
    return t;
}

static double time_write(const char *file)
{
    const int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const double start = bench_seconds();
    for (size_t at = 0; at < LARGE; at += 1 << 20)
        if (pwrite(fd, data + at, 1 << 20, (off_t)at) != 1 << 20)
            exit(2);
    (void)fdatasync(fd);
    const double t = bench_seconds() - start;
    close(fd);
    unlink(file);
    return t;
}

/* How long a put in the background holds the caller; and, beside, until it is durable. */
static double hold(cairn_shelf *s, uint64_t version, double *ret_all)
{
    const cairn_field f = field_of(data, LARGE);
    cairn_transfer *t;
    const double start = bench_seconds();
    bench_need((cairn_status)cairn_state_put_begin(s, "m", version, NULL, &f, 1, &t));
    const double held = bench_seconds() - start;
    bench_need((cairn_status)cairn_transfer_wait(t));
    *ret_all = bench_seconds() - start;
    return held;
}

static double push(cairn_shelf *s, uint64_t version, cairn_shelf *to)
{
    cairn_transfer *t;
    const double start = bench_seconds();
    bench_need((cairn_status)cairn_state_push(s, "m", version, to, 0, &t));
    bench_need((cairn_status)cairn_transfer_wait(t));
    return bench_seconds() - start;
}

static double get(cairn_shelf *s, uint64_t version)
{
    const cairn_field f = field_of(other, LARGE);
    const double start = bench_seconds();
    bench_need((cairn_status)cairn_state_get(s, "m", version, &f, 1));
    return bench_seconds() - start;
}

static void print_speed(const char *name, double *ours, double *peer, double limit,
                        const char *note)
{
    bench_print(&(bench_result){.name = name,
                                .unit = "GB/s",
                                .bar = BENCH_AT_LEAST,
                                .limit = limit,
                                .ours = LARGE * 1e-9 / bench_median(ours, BENCH_TURNS),
                                .peer = LARGE * 1e-9 / bench_median(peer, BENCH_TURNS),
                                .note = note});
}

static void bench_speed(void)
{
    double held[BENCH_TURNS], all[BENCH_TURNS], copy[BENCH_TURNS], got[BENCH_TURNS];
    double raw[BENCH_TURNS], pushed[BENCH_TURNS], written[BENCH_TURNS];
    char file[160], far[160], plain[160];
    snprintf(file, sizeof file, "%s/writers-000/part-1-0", path);
    snprintf(far, sizeof far, "%s.far", path);
    snprintf(plain, sizeof plain, "%s.plain", path);
    cairn_shelf *s = open_shelf(), *reader = open_shelf(), *to;
    bench_need((cairn_status)cairn_shelf_open(far, NULL, &to));
    for (uint64_t t = 0; t < BENCH_TURNS; t++) {
        for (size_t i = 0; i < LARGE; i += BLOCK)
            memcpy(data + i, &(uint64_t){t * LARGE + i + 1}, sizeof(uint64_t));
        held[t] = hold(s, t, &all[t]);
        copy[t] = time_copy();
        /* who reads what was just written pays for that: each of the two in turn, the same bytes */
        if (t % 2 == 0)
            got[t] = get(reader, t);
        raw[t] = time_read(file, t);
        if (t % 2 == 1)
            got[t] = get(reader, t);
        pushed[t] = push(s, t, to);
        written[t] = time_write(plain);
    }
    bench_print(&(bench_result){.name = "state.put",
                                .unit = "s",
                                .bar = BENCH_AT_MOST,
                                .limit = 1.35,
                                .ours = bench_median(held, BENCH_TURNS),
                                .peer = bench_median(copy, BENCH_TURNS),
                                .note = "64 MiB to memory, all new, in the background: how long "
                                        "it holds the caller; peer: memcpy"});
    bench_print(&(bench_result){.name = "state.put.durable",
                                .unit = "s",
                                .ours = bench_median(all, BENCH_TURNS),
                                .peer = bench_median(copy, BENCH_TURNS),
                                .note = "the same until it counts; peer: memcpy"});
    print_speed("state.get", got, raw, 0.85, "64 MiB, verified; peer: pread of the same bytes");
    print_speed("state.push", pushed, written, 0.85,
                "64 MiB to another shelf in memory, verified; peer: pwrite of the same bytes");
    cairn_shelf_close(to);
    cairn_shelf_close(reader);
    cairn_shelf_close(s);
    bench_remove(far);
    bench_remove(path);
}

/* --- pieces ------------------------------------------------------------------------------- */

static const uint64_t shape[3] = {64, 128, LARGE / 8 / 64 / 128};

/* Piece number at of an array that is cut into by[0] x by[1] x by[2], got to its place behind those
 * before it. */
static cairn_field piece_of(const uint64_t by[3], uint64_t at, size_t *begin)
{
    cairn_field f = {.name = "x", .data = other + *begin * 8, .type = CAIRN_FLOAT64, .ndims = 3};
    size_t n = 1;
    for (int d = 2; d >= 0; at /= by[d--]) {
        f.global[d] = shape[d];
        f.offset[d] = shape[d] * (at % by[d]) / by[d];
        f.count[d] = shape[d] * (at % by[d] + 1) / by[d] - f.offset[d];
        n *= f.count[d];
    }
    *begin += n;
    return f;
}

/* As so many processes get their pieces, one after the other; or one that gets all in one call. */
static double time_pieces(cairn_shelf *s, const uint64_t by[3], bool together)
{
    cairn_field f[16];
    const size_t n = by[0] * by[1] * by[2];
    size_t begin = 0;
    for (size_t i = 0; i < n; i++)
        f[i] = piece_of(by, i, &begin);
    const double start = bench_seconds();
    for (size_t i = 0; i < (together ? 1 : n); i++)
        bench_need((cairn_status)cairn_state_get(s, "a", 1, &f[i], together ? n : 1));
    return bench_seconds() - start;
}

/* An array that was put as a whole, got as that and in the pieces of others. */
static void bench_pieces(void)
{
    static const struct {
        const char *name;
        uint64_t by[3];
        bool together;
        bench_bar bar;
        const char *note;
    } cut[] = {
        {"state.get.slabs", {3, 1, 1}, false, BENCH_AT_MOST, "64 MiB got in 3 slabs"},
        {"state.get.pencils", {2, 4, 1}, false, BENCH_AT_MOST, "64 MiB got in 2 x 4 pencils"},
        {"state.get.columns",
         {1, 1, 4},
         true,
         BENCH_AT_MOST,
         "64 MiB got in 4 bands of columns by one call"},
        {"state.get.columns.apart",
         {1, 1, 4},
         false,
         BENCH_AT_MOST,
         "the same by a call each: all blocks have something for all of them"},
        {"state.get.tiles",
         {1, 2, 2},
         false,
         BENCH_AT_MOST,
         "64 MiB got in 2 x 2 tiles by a call each: half of all blocks for each of them"},
    };
    enum { CUTS = sizeof cut / sizeof *cut };
    static const uint64_t whole[3] = {1, 1, 1};
    double same[CUTS][BENCH_TURNS], others[CUTS][BENCH_TURNS];
    cairn_shelf *s = open_shelf(), *reader = open_shelf();
    cairn_field f = piece_of(whole, 0, &(size_t){0});
    f.data = data;
    bench_need((cairn_status)cairn_state_put(s, "a", 1, NULL, &f, 1));
    for (size_t t = 0; t < BENCH_TURNS; t++)
        for (size_t c = 0; c < CUTS; c++) {
            same[c][t] = time_pieces(reader, whole, false);
            others[c][t] = time_pieces(reader, cut[c].by, cut[c].together);
        }
    for (size_t c = 0; c < CUTS; c++) {
        char note[160];
        snprintf(note, sizeof note, "%s; peer: as it was put", cut[c].note);
        bench_print(&(bench_result){.name = cut[c].name,
                                    .unit = "s",
                                    .bar = cut[c].bar,
                                    .limit = 1.3,
                                    .ours = bench_median(others[c], BENCH_TURNS),
                                    .peer = bench_median(same[c], BENCH_TURNS),
                                    .note = note});
    }
    cairn_shelf_close(reader);
    cairn_shelf_close(s);
    bench_remove(path);
}

static long peak_bytes(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return r.ru_maxrss * 1024;
}

/* A state of 10 GB, which takes little room since its blocks are the same, got in small boxes. */
static void bench_huge(void)
{
    const uint64_t nbytes = (uint64_t)10 << 30;
    unsigned char *zeros =
        mmap(NULL, nbytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cairn_shelf *s = open_shelf(), *reader = open_shelf();
    if (zeros == MAP_FAILED)
        return;
    cairn_field f = {.name = "x",
                     .data = zeros,
                     .type = CAIRN_BYTES,
                     .ndims = 1,
                     .global = {nbytes},
                     .count = {nbytes}};
    bench_need((cairn_status)cairn_state_put(s, "a", 1, NULL, &f, 1));
    munmap(zeros, nbytes);
    const long before = peak_bytes();
    f.data = other;
    f.count[0] = LARGE / 2 + 4096; /* not where a block ends */
    for (f.offset[0] = 0; f.offset[0] + f.count[0] <= nbytes; f.offset[0] += nbytes / 16)
        bench_need((cairn_status)cairn_state_get(reader, "a", 1, &f, 1));
    bench_print(&(bench_result){.name = "state.get.memory",
                                .unit = "bytes",
                                .bar = BENCH_AT_MOST,
                                .limit = 1,
                                .ours = (double)(peak_bytes() - before),
                                .peer = 64 << 20,
                                .note =
                                    "that getting boxes of a state of 10 GiB takes beside them; "
                                    "peer: 64 MiB"});
    cairn_shelf_close(reader);
    cairn_shelf_close(s);
    bench_remove(path);
}

int main(int argc, char **argv)
{
    const uint64_t nstates = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000;
    snprintf(path, sizeof path, "/dev/shm/bench_state.%d", (int)getpid());
    bench_need(crn_alloc_aligned(&data, LARGE, 4096));
    bench_need(crn_alloc_aligned(&other, LARGE, 4096));
    memset(data, 1, LARGE);
    memset(other, 1, LARGE);
    bench_speed();
    bench_pieces();
    bench_huge();
    bench_child();
    if (nstates > 0) {
        bench_space();
        bench_puts();
        bench_many(nstates);
    }
    free(data);
    free(other);
    return 0;
}
