/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Traces: how large, how dear, how fast to merge. The examples are recorded at several numbers of
 * ranks; the peers' figures are those of PEERS for the programs that the examples imitate.
 *
 *     bench_trace [most ranks]
 *
 * NEEDS: zstd
 */
#include "bench.h"

#include <dirent.h>
#include <stdarg.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include "tracefmt/tracefmt.h"

enum { FEW = 4, EVENTS = 2000000, RANKS = 1024 };

static char scratch[PATH_MAX];

/* ---- running programs ---- */

static int run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static int run(const char *fmt, ...)
{
    char command[4 * PATH_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(command, sizeof command, fmt, ap);
    va_end(ap);
    int rc = system(command);
    if (rc != 0)
        printf("failed: %s\n", command);
    return rc;
}

static double file_nbytes(const char *name)
{
    char path[PATH_MAX + 64];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    return stat(path, &st) == 0 ? (double)st.st_size : NAN;
}

/* Record an example: its name and arguments, ranks, precision, whether with times. */
static double record(const char *example, int ranks, int precision, int times)
{
    run("cd '%s' && rm -rf plain && mkdir plain && '%s/tools/mpi-test' %s %d env LD_PRELOAD='%s' "
        "CAIRN_TRACE_OUT='%s/t.ctr' CAIRN_TRACE_PLAIN='%s/plain' CAIRN_TRACE_PRECISION=%d "
        "CAIRN_TRACE_TIMES=%d '%s'/examples/%s > output 2>&1",
        scratch, CAIRN_SOURCE, CAIRN_MPI, ranks, CAIRN_RECORDER, scratch, scratch, precision, times,
        CAIRN_BINARY, example);
    return file_nbytes("t.ctr");
}

/* The plain logs of the last recording: their bytes, and those of zstd of all of them. */
static void log_nbytes(double *ret_plain, double *ret_zstd)
{
    crn_buf all = {0};
    char path[PATH_MAX + 300];
    struct dirent *entry;
    snprintf(path, sizeof path, "%s/plain", scratch);
    DIR *d = opendir(path);
    while (d && (entry = readdir(d))) {
        snprintf(path, sizeof path, "%s/plain/%s", scratch, entry->d_name);
        FILE *f = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
        char piece[65536];
        for (size_t n; f && (n = fread(piece, 1, sizeof piece, f)) > 0;)
            crn_put_bytes(&all, piece, n);
        if (f)
            fclose(f);
    }
    if (d)
        closedir(d);
    size_t cap = ZSTD_compressBound(all.n);
    void *room = malloc(cap);
    *ret_plain = (double)all.n;
    *ret_zstd = room ? (double)ZSTD_compress(room, cap, all.at, all.n, 19) : NAN;
    free(room);
    crn_buf_done(&all);
}

/* ---- sizes ---- */

typedef struct subject {
    const char *name, *example;
    int precision;
    double growth; /* what is allowed from FEW to the most ranks; 0: as the logarithm */
    double pilgrim, scalatrace; /* at 16 ranks: structure; with times and gzip. 0: none */
} subject;

static const subject subjects[] = {
    {"cg", "cg 25 15", 100, 0, 4772, 8153},   {"torus", "mg 10 8 1", 100, 1.2, 0, 0},
    {"mg", "mg 10 8", 100, -1, 16332, 39591}, {"flashio", "flashio 3 8", 100, -1, 0, 0},
    {"amr", "amr 100 4", 100, -1, 0, 236001}, {"amr.0", "amr 100 4", 0, 1.5, 0, 0},
};

static void print_size(const subject *s, int ranks, double size)
{
    char name[64], note[128];
    double plain, zstd;
    log_nbytes(&plain, &zstd);
    snprintf(name, sizeof name, "trace.size.%s.%d", s->name, ranks);
    snprintf(note, sizeof note, "against zstd -19 of the plain log of %.0f bytes; without times",
             plain);
    bench_print(
        &(bench_result){.name = name, .ours = size, .peer = zstd, .unit = "bytes", .note = note});
}

static void print_growth(const subject *s, int most, double few, double many)
{
    char name[64];
    double limit = s->growth > 0 ? s->growth : log2(most) / log2(FEW);
    snprintf(name, sizeof name, "trace.growth.%s", s->name);
    bench_print(&(bench_result){.name = name,
                                .ours = many,
                                .peer = few,
                                .unit = "bytes",
                                .bar = s->growth < 0 ? BENCH_NO_BAR : BENCH_AT_MOST,
                                .limit = limit,
                                .note = "most ranks against 4, without times"});
}

static void print_peers(const subject *s, double bare)
{
    char name[64];
    snprintf(name, sizeof name, "trace.pilgrim.%s", s->name);
    if (s->pilgrim > 0)
        bench_print(&(bench_result){.name = name,
                                    .ours = bare,
                                    .peer = s->pilgrim,
                                    .unit = "bytes",
                                    .bar = BENCH_AT_MOST,
                                    .limit = 1,
                                    .note = "16 ranks, no times; Pilgrim on the program imitated"});
    snprintf(name, sizeof name, "trace.scalatrace.%s", s->name);
    if (s->scalatrace > 0)
        bench_print(&(bench_result){.name = name,
                                    .ours = record(s->example, 16, 100, 1),
                                    .peer = s->scalatrace,
                                    .unit = "bytes",
                                    .bar = BENCH_AT_MOST,
                                    .limit = 1,
                                    .note = "16 ranks with times; gzipped ScalaTrace, as above"});
}

static void measure_sizes(int most)
{
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        const subject *s = &subjects[i];
        double few = NAN, size = NAN, at16 = NAN;
        for (int ranks = FEW; ranks <= most; ranks *= 4) {
            size = record(s->example, ranks, s->precision, 0);
            print_size(s, ranks, size);
            few = ranks == FEW ? size : few;
            at16 = ranks == 16 ? size : at16;
        }
        print_growth(s, most, few, size);
        print_peers(s, at16);
    }
    double size = record("cg 2000 1 64", FEW, 100, 0), plain, zstd;
    log_nbytes(&plain, &zstd);
    bench_print(&(bench_result){.name = "trace.loop",
                                .ours = plain,
                                .peer = size,
                                .unit = "bytes",
                                .bar = BENCH_AT_LEAST,
                                .limit = 100,
                                .note = "plain log over trace, a loop of 2000 turns"});
}

/* ---- cost ---- */

/* Processor time of what ran so far, without the system's. */
static double child_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_CHILDREN, &u);
    return (double)u.ru_utime.tv_sec + 1e-6 * (double)u.ru_utime.tv_usec;
}

/* Seconds of processor time of an example on one rank; it starts without mpiexec. */
static double cpu_seconds(const char *example, bool traced)
{
    double before = child_seconds();
    run("cd '%s' && env LD_PRELOAD='%s' CAIRN_TRACE_OUT='%s/t.ctr' '%s'/examples/%s > output 2>&1",
        scratch, traced ? CAIRN_RECORDER : "", scratch, CAIRN_BINARY, example);
    return child_seconds() - before;
}

/*
 * Instructions of an example, as callgrind counts them; on several ranks without those of MPI: a
 * rank that waits for another spends as many as it has time for.
 */
static double instructions(const char *example, int ranks, bool traced)
{
    double n = 0;
    char line[PATH_MAX + 64];
    snprintf(line, sizeof line, "%s/output", scratch);
    run("cd '%s' && '%s/tools/mpi-test' %s %d env LD_PRELOAD='%s' CAIRN_TRACE_KEEP=0 "
        "CAIRN_TRACE_OUT='%s/t.ctr' valgrind --tool=callgrind --callgrind-out-file=/dev/null "
        "%s '%s'/examples/%s > output 2>&1",
        scratch, CAIRN_SOURCE, CAIRN_MPI, ranks, traced ? CAIRN_RECORDER : "", scratch,
        ranks > 1 ? "--toggle-collect='PMPI_*' --collect-atstart=yes" : "", CAIRN_BINARY, example);
    FILE *f = fopen(line, "r");
    while (f && fgets(line, sizeof line, f)) {
        const char *at = strstr(line, "Collected : ");
        if (at)
            n += strtod(at + strlen("Collected : "), NULL);
    }
    if (f)
        fclose(f);
    return n;
}

/* The one that writes HDF5 needs that library. */
static bool is_built(const char *example)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/examples/%.*s", CAIRN_BINARY, (int)strcspn(example, " "),
             example);
    return access(path, X_OK) == 0;
}

/* A long run less a short one: what start and end cost comes once, however long a program runs. */
static void measure_instructions(void)
{
    static const struct {
        const char *name, *few, *many;
        int ranks;
        bench_bar bar;
        const char *note;
    } of[] = {
        {"cg", "cg 25 2", "cg 25 6", 2, BENCH_AT_MOST, "7000 unknowns on each of two ranks"},
        {"mg", "mg 2 64 1", "mg 6 64 1", 2, BENCH_AT_MOST, "64^3 points on each of two ranks"},
        {"mg.32", "mg 10 32 1", "mg 40 32 1", 2, BENCH_NO_BAR, "32^3 points on each of two ranks"},
        {"amr", "amr 20", "amr 60", 2, BENCH_AT_MOST, "64 patches of 64 to 1024 cells on each"},
        {"flashio", "flashio 20", "flashio 60", 1, BENCH_AT_MOST,
         "80 blocks; all but the kernel's"},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char name[64], note[128];
        int ranks = of[i].ranks;
        if (!is_built(of[i].few))
            continue;
        snprintf(name, sizeof name, "trace.instructions.%s", of[i].name);
        snprintf(note, sizeof note, "%s%s", of[i].note, ranks > 1 ? "; without MPI's own" : "");
        bench_print(&(bench_result){
            .name = name,
            .ours = instructions(of[i].many, ranks, true) - instructions(of[i].few, ranks, true),
            .peer = instructions(of[i].many, ranks, false) - instructions(of[i].few, ranks, false),
            .unit = "instructions",
            .bar = of[i].bar,
            .limit = 1.03,
            .note = note});
    }
}

/* Medians of the processor time of an example with and without the recorder, by turns. */
static void compare_seconds(const char *example, double *ret_with, double *ret_without)
{
    double with[BENCH_TURNS], without[BENCH_TURNS];
    for (size_t i = 0; i < BENCH_TURNS; i++) {
        with[i] = cpu_seconds(example, true);
        without[i] = cpu_seconds(example, false);
    }
    *ret_with = bench_median(with, BENCH_TURNS);
    *ret_without = bench_median(without, BENCH_TURNS);
}

static void measure_cost(void)
{
    double with, without, events = 10 * 20000 * 3; /* a turn transposes with itself: three calls */
    compare_seconds("cg 20000 10 8", &with, &without);
    bench_print(
        &(bench_result){.name = "trace.event",
                        .ours = 1e9 * (with - without) / events,
                        .peer = 1000,
                        .unit = "ns",
                        .bar = BENCH_AT_MOST,
                        .limit = 1,
                        .note = "user time that recording adds to a call; the bar is 1 us"});
    compare_seconds("mg 40", &with, &without);
    bench_print(&(bench_result){.name = "trace.overhead.mg",
                                .ours = with,
                                .peer = without,
                                .unit = "s",
                                .bar = BENCH_AT_MOST,
                                .limit = 1.03,
                                .note = "user time of multigrid on one rank, with and without"});
}

/* ---- many ranks ---- */

/* A rank of a made-up program: neighbours on a grid, a butterfly, counts that depend on the rank.
 */
static crn_trace *make_rank(uint32_t rank)
{
    crn_build build, *lane = &build;
    crn_tables tables;
    crn_trace *t = NULL;
    if (crn_tables_init(&tables) < 0 || crn_build_init(&build, rank, 100, true) < 0)
        return NULL;
    for (uint32_t step = 0; step < 50; step++) {
        for (uint32_t call = 0; call < 20; call++) {
            crn_record r = {.call = call == 19 ? CRN_CALL_MPI_Barrier : CRN_CALL_MPI_Send,
                            .ncolumns = call == 19 ? 1 : 5,
                            .comm_rank = rank,
                            .comm_size = RANKS};
            r.value[0] = call % 5 == 0 ? rank % 7 : 100;
            r.value[2] = call % 2 ? (rank + call) % RANKS : rank ^ 1u << call % 10;
            r.value[2] = call == 19 ? 0 : r.value[2];
            r.start = step * 1000 + call * 40 + 1;
            r.end = r.start + 10;
            if (crn_tables_site(&tables, (crn_site){.off = call + 1}, &r.site) < 0)
                return NULL;
            if (rank % 32 > 0 || call % 3 > 0)
                crn_build_add(&build, &r);
        }
    }
    if (crn_build_trace(&lane, 1, &tables, rank, RANKS, &t) < 0)
        t = NULL;
    crn_build_done(&build);
    crn_tables_done(&tables);
    return t;
}

static void measure_merge(void)
{
    static crn_trace *t[RANKS];
    for (uint32_t i = 0; i < RANKS; i++)
        t[i] = make_rank(i);
    double start = bench_seconds();
    for (uint32_t step = 1; step < RANKS; step *= 2) {
        for (uint32_t i = 0; i + step < RANKS; i += 2 * step) {
            if (!t[i] || !t[i + step] || crn_trace_merge(t[i], t[i + step]) < 0)
                return;
        }
    }
    crn_buf b = {0};
    if (crn_trace_finish(t[0]) < 0 || crn_trace_encode(t[0], CRN_TRACE_BEST, &b) < 0)
        return;
    char note[96];
    snprintf(note, sizeof note, "merging 1024 ranks in one process; %zu bytes in the end", b.n);
    bench_print(&(bench_result){.name = "trace.merge",
                                .ours = bench_seconds() - start,
                                .peer = 10,
                                .unit = "s",
                                .bar = BENCH_AT_MOST,
                                .limit = 1,
                                .note = note});
    crn_buf_done(&b);
    crn_trace_free(t[0]);
}

int main(int argc, char **argv)
{
    int most = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 16;
    snprintf(scratch, sizeof scratch, "%s/bench/trace-XXXXXX", CAIRN_BINARY);
    if (!mkdtemp(scratch)) {
        fprintf(stderr, "bench_trace: cannot make '%s'\n", scratch);
        return 1;
    }
    measure_merge();
    measure_cost();
    if (system("valgrind --version > /dev/null 2>&1") == 0)
        measure_instructions();
    measure_sizes(most);
    run("rm -rf '%s'", scratch);
    return 0;
}
