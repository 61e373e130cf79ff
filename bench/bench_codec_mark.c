/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What do codecs do for marks: how long is the program held, and how soon is a mark safe, against
 * the same without? Storage of 50 MB/s is this machine's, throttled by a control group that the
 * program makes (as root, cgroup v1 or v2; else those rows are left out). Files go below the
 * working directory.
 *
 *     bench_codec_mark [MiB of state]        64 unless given
 *     bench_codec_mark table                 store and load of 16 to 128 MiB, each setting
 *
 * BENCH: ranks 1
 *
 * NEEDS: lz4 zstd zfp fpzip
 */
#include "bench_mpi.h"

#include <cairn/cairn.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define TRAIL "bench_codec.trail"
#define LOCAL "bench_codec.local"

enum { SLOW = 50000000 };

typedef struct state {
    size_t n;
    double *value;
    uint64_t step;
} state;

/* A smooth field that moves, with noise in the seventh digit: all of it, or one block of 64. */
static void change(state *s, bool all)
{
    crn_rng r = crn_rng_of(1, ++s->step);
    for (size_t i = 0; i < s->n; i++)
        if (all || i / 8192 % 64 == s->step % 64)
            s->value[i] = 100 * sin((double)(i + 97 * s->step) / 900) + 1e-5 * crn_rng_unit(&r);
}

static void clean_up(void)
{
    bench_remove(TRAIL);
    bench_remove(LOCAL);
    bench_need_sys(mkdir(LOCAL, 0700) == 0, "mkdir");
    sync();
}

static cairn *open_session(const state *s, const char *codec)
{
    cairn *c;
    clean_up();
    setenv("CAIRN_RUN_TRAIL", TRAIL, 1);
    setenv("CAIRN_LEVEL_LOCAL", LOCAL, 1);
    setenv("CAIRN_LEVEL_PARTNER", "0", 1);
    setenv("CAIRN_LEVEL_GLOBAL", "0", 1);
    setenv("CAIRN_KEEP_LOCAL", "1", 1);
    setenv("CAIRN_MARK_STAGING", "64GiB", 1);
    setenv("CAIRN_VARIABLE_BLOCK", "64KiB", 1);
    setenv("CAIRN_VARIABLE_CODEC", codec, 1);
    bench_need_call(NULL, cairn_open(MPI_COMM_WORLD, NULL, &c));
    bench_need_call(c, cairn_protect(c, "state", s->value, CAIRN_FLOAT64, s->n));
    bench_need_call(c, cairn_mark(c, ++((state *)(uintptr_t)s)->step, CAIRN_LEVEL_LOCAL));
    bench_need_call(c, cairn_settle(c)); /* memory for staging is there from now on */
    return c;
}

/* Leave a run that can be resumed, as a program does that is told to stop. */
static void leave(cairn *c)
{
    raise(SIGUSR1);
    cairn_should_stop(c);
    bench_need_call(NULL, cairn_close(c));
}

typedef struct times {
    double held[BENCH_TURNS], safe[BENCH_TURNS]; /* from the mark's begin on */
} times;

static void time_marks(state *s, const char *codec, bool all, unsigned nturns, times *ret)
{
    cairn *c = open_session(s, codec);
    for (unsigned i = 0; i < nturns; i++) {
        change(s, all);
        const double start = bench_seconds();
        bench_need_call(c, cairn_mark(c, s->step, CAIRN_LEVEL_LOCAL));
        ret->held[i] = bench_seconds() - start;
        bench_need_call(c, cairn_settle(c));
        ret->safe[i] = bench_seconds() - start;
    }
    leave(c);
}

/* Bytes that the newest mark wrote, as the log says. */
static double written_bytes(void)
{
    double bytes = NAN;
    char line[4096];
    FILE *f = fopen(TRAIL "/run-1/events", "r");
    bench_need_sys(f != NULL, "events");
    while (fgets(line, sizeof line, f)) {
        const char *at = strstr(line, "\"written\":");
        if (at)
            bytes = strtod(at + strlen("\"written\":"), NULL);
    }
    fclose(f);
    return bytes;
}

/* --- storage that is slow ------------------------------------------------------------------- */

static bool put_text(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY);
    const bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return good;
}

static char limit_file[128], limit_text[64], group[96];

/* Put this process into a group whose writes are limited; false: this machine has none, or not for
 * this user. */
static bool begin_slow(void)
{
    static const char *const place[2] = {"/sys/fs/cgroup/blkio", "/sys/fs/cgroup"};
    static const char *const file[2] = {"blkio.throttle.write_bps_device", "io.max"};
    char path[128], text[64];
    struct stat st;
    if (stat(".", &st) < 0)
        return false;
    for (int v = 0; v < 2; v++) {
        snprintf(group, sizeof group, "%s/cairn-bench-%d", place[v], (int)getpid());
        snprintf(limit_file, sizeof limit_file, "%s/%s", group, file[v]);
        snprintf(limit_text, sizeof limit_text, v ? "%u:%u wbps=%d" : "%u:%u %d", major(st.st_dev),
                 minor(st.st_dev), SLOW);
        snprintf(path, sizeof path, "%s/%s", group, "cgroup.procs");
        snprintf(text, sizeof text, "%d", (int)getpid());
        if (mkdir(group, 0755) < 0)
            continue;
        if (put_text(limit_file, limit_text) && put_text(path, text))
            return true;
        rmdir(group);
    }
    return false;
}

static void end_slow(void)
{
    char *last = strrchr(limit_text, ' ');
    snprintf(last, sizeof limit_text - (size_t)(last - limit_text), "%s",
             strchr(limit_text, '=') ? " wbps=max" : " 0");
    (void)put_text(limit_file, limit_text);
    for (int v = 0; v < 2; v++) { /* back to where groups begin */
        char text[32];
        snprintf(text, sizeof text, "%d", (int)getpid());
        (void)put_text(v ? "/sys/fs/cgroup/cgroup.procs" : "/sys/fs/cgroup/blkio/cgroup.procs",
                       text);
    }
    rmdir(group);
}

/* --- rows ----------------------------------------------------------------------------------- */

static void bench_hold(state *s)
{
    static const char *const codec[] = {"lz4:shuffle",        "zstd:shuffle", "zfp:accuracy=1e-6",
                                        "fpzip:precision=40", "f32",          "auto"};
    for (size_t k = 0; k < sizeof codec / sizeof *codec; k++) {
        times ours, plain;
        char name[64];
        time_marks(s, "none", true, BENCH_TURNS, &plain);
        time_marks(s, codec[k], true, BENCH_TURNS, &ours);
        snprintf(name, sizeof name, "codec.hold.%.*s", (int)strcspn(codec[k], ":"), codec[k]);
        bench_print(&(bench_result){.name = name,
                                    .unit = "s",
                                    .bar = BENCH_AT_MOST,
                                    .limit = 1.05,
                                    .ours = bench_median(ours.held, BENCH_TURNS),
                                    .peer = bench_median(plain.held, BENCH_TURNS),
                                    .note =
                                        "held by a mark with a codec, all blocks changed; peer: "
                                        "without"});
    }
}

static void bench_slow(state *s)
{
    static const char *const codec[] = {"zstd:shuffle", "zfp:accuracy=1e-6", "auto"};
    enum { TURNS = 3 };
    for (size_t k = 0; k < sizeof codec / sizeof *codec; k++) {
        times ours, plain;
        char name[64];
        const int n = (int)strcspn(codec[k], ":");
        time_marks(s, "none", true, TURNS, &plain);
        const double raw = written_bytes();
        time_marks(s, codec[k], true, TURNS, &ours);
        const double share = written_bytes() / raw;
        snprintf(name, sizeof name, "codec.slow.%.*s", n, codec[k]);
        bench_print(&(bench_result){.name = name,
                                    .unit = "s",
                                    .bar = BENCH_AT_MOST,
                                    .limit = 1.1,
                                    .ours = bench_median(ours.safe, TURNS),
                                    .peer = bench_median(plain.safe, TURNS) * share,
                                    .note = "until a mark is safe on storage of 50 MB/s; peer: "
                                            "without a codec, times the share of its bytes that "
                                            "were written"});
        time_marks(s, "none", false, BENCH_TURNS, &plain);
        time_marks(s, codec[k], false, BENCH_TURNS, &ours);
        snprintf(name, sizeof name, "codec.differential.%.*s", n, codec[k]);
        bench_print(&(bench_result){.name = name,
                                    .unit = "s",
                                    .bar = BENCH_AT_MOST,
                                    .limit = 1,
                                    .ours = bench_median(ours.safe, BENCH_TURNS),
                                    .peer = bench_median(plain.safe, BENCH_TURNS),
                                    .note = "until a mark of which one block of 64 changed is safe "
                                            "on storage of 50 MB/s; peer: without a codec"});
    }
}

/* --- table ---------------------------------------------------------------------------------- */

static double time_resume(const state *s)
{
    cairn *c;
    uint64_t version;
    bench_need_call(NULL, cairn_open(MPI_COMM_WORLD, NULL, &c));
    bench_need_call(c, cairn_protect(c, "state", s->value, CAIRN_FLOAT64, s->n));
    const double start = bench_seconds();
    const int rc = cairn_resume(c, &version);
    const double took = bench_seconds() - start;
    bench_need_call(c, rc);
    bench_need_sys(rc == CAIRN_OK, "no mark came back");
    leave(c);
    return took;
}

static void print_table(void)
{
    static const char *const codec[] = {"none",
                                        "f32",
                                        "f16",
                                        "lz4:shuffle",
                                        "zstd:shuffle",
                                        "fpzip:precision=32",
                                        "fpzip:precision=40",
                                        "fpzip:precision=48",
                                        "zfp:precision=32",
                                        "zfp:precision=40",
                                        "zfp:precision=48",
                                        "zfp:accuracy=1e-6",
                                        "zfp:accuracy=1e-8",
                                        "zfp:accuracy=1e-10"};
    printf("| setting | MiB | rate | store s | load s |\n| --- | --- | --- | --- | --- |\n");
    for (size_t k = 0; k < sizeof codec / sizeof *codec; k++)
        for (size_t mib = 16; mib <= 128; mib *= 2) {
            state s = {.n = mib << 17};
            times t;
            bench_need(crn_alloc(&s.value, s.n));
            change(&s, true);
            time_marks(&s, codec[k], true, 3, &t);
            const double back = time_resume(&s);
            printf("| `%s` | %zu | %.2f | %.3f | %.3f |\n", codec[k], mib,
                   8 * (double)s.n / written_bytes(), bench_median(t.safe, 3), back);
            fflush(stdout);
            free(s.value);
        }
}

int main(int argc, char **argv)
{
    const bool table = argc > 1 && strcmp(argv[1], "table") == 0;
    const size_t mib = argc > 1 && !table ? strtoul(argv[1], NULL, 10) : 64;
    state s = {.n = CRN_MAX(mib, (size_t)1) << 17};
    MPI_Init(&argc, &argv);
    if (table) {
        print_table();
    } else {
        bench_need(crn_alloc(&s.value, s.n));
        change(&s, true);
        bench_hold(&s);
        if (begin_slow()) {
            bench_slow(&s);
            end_slow();
        } else {
            fprintf(stderr, "bench: storage cannot be slowed down here: no codec.slow, no "
                            "codec.differential\n");
        }
    }
    bench_remove(TRAIL);
    bench_remove(LOCAL);
    MPI_Finalize();
    return 0;
}
