/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Named states on a shelf in memory (/dev/shm): what finding, putting, getting and dropping cost,
 * with many of them and many writers. An argument gives another number of states.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cairn/state.h>

#include "bench.h"

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

static void bench_many(uint64_t nstates)
{
    static cairn_shelf *writer[WRITERS];
    double opened[BENCH_TURNS], has[BENCH_TURNS], list[BENCH_TURNS];
    for (size_t w = 0; w < WRITERS; w++)
        writer[w] = open_shelf();
    for (uint64_t v = 0; v < nstates; v++) {
        memcpy(data, &v, sizeof v);
        (void)put(writer[v % WRITERS], v, SMALL);
    }
    for (size_t t = 0; t < BENCH_TURNS; t++) {
        enum { ASKED = 1000 };
        uint64_t n = 0;
        double start = bench_seconds();
        cairn_shelf *s = open_shelf();
        opened[t] = bench_seconds() - start;
        start = bench_seconds();
        for (uint64_t i = 0; i < ASKED; i++)
            bench_need((cairn_status)cairn_state_has(s, "m", i * 7919 % (2 * nstates)));
        has[t] = (bench_seconds() - start) / ASKED;
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
    for (size_t w = 0; w < WRITERS; w++)
        cairn_shelf_close(writer[w]);
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

static double time_read(const char *file)
{
    const int fd = open(file, O_RDONLY);
    const double start = bench_seconds();
    for (size_t at = 0; at < LARGE; at += 1 << 20)
        if (pread(fd, other + at, 1 << 20, (off_t)at) != 1 << 20)
            exit(2);
    const double t = bench_seconds() - start;
    close(fd);
    return t;
}

static void bench_speed(void)
{
    double ours[BENCH_TURNS], copy[BENCH_TURNS], got[BENCH_TURNS], raw[BENCH_TURNS];
    char file[160];
    cairn_shelf *s = open_shelf(), *reader = open_shelf();
    const cairn_field f = field_of(other, LARGE);
    snprintf(file, sizeof file, "%s/writers-000/part-1-0", path);
    for (uint64_t t = 0; t < BENCH_TURNS; t++) {
        for (size_t i = 0; i < LARGE; i += BLOCK)
            memcpy(data + i, &(uint64_t){t * LARGE + i + 1}, sizeof(uint64_t));
        ours[t] = put(s, t, LARGE);
        copy[t] = time_copy();
        const double start = bench_seconds();
        bench_need((cairn_status)cairn_state_get(reader, "m", t, &f, 1));
        got[t] = bench_seconds() - start;
        raw[t] = time_read(file);
    }
    bench_print(&(bench_result){.name = "state.put",
                                .unit = "s",
                                .bar = BENCH_AT_MOST,
                                .limit = 1.35,
                                .ours = bench_median(ours, BENCH_TURNS),
                                .peer = bench_median(copy, BENCH_TURNS),
                                .note = "64 MiB to memory, all new, committed; peer: memcpy"});
    bench_print(&(bench_result){.name = "state.get",
                                .unit = "GB/s",
                                .bar = BENCH_AT_LEAST,
                                .limit = 0.85,
                                .ours = LARGE * 1e-9 / bench_median(got, BENCH_TURNS),
                                .peer = LARGE * 1e-9 / bench_median(raw, BENCH_TURNS),
                                .note = "64 MiB, verified; peer: pread of the same file"});
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
    bench_child();
    bench_space();
    bench_puts();
    bench_many(nstates);
    free(data);
    free(other);
    return 0;
}
