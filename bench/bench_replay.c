/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How long does a replay take against the run that it repeats? The examples are recorded and
 * replayed in turns, on two ranks, which most machines have cores for: a rank that waits for a core
 * waits in a call, and a replay has no calls that wait for cores. Lossless, and at 0 per cent.
 *
 * NEEDS: zstd jansson
 */
#include <limits.h>
#include <unistd.h>

#include "bench.h"

enum { TURNS = 5 };

static char scratch[PATH_MAX];

/* Seconds that the run took, and its replay; NAN when something failed. */
typedef struct times {
    double run, replay;
} times;

static bool done(const char *command)
{
    if (system(command) == 0)
        return true;
    fprintf(stderr, "failed: %s\n", command);
    return false;
}

static times read_times(const char *path)
{
    json_t *j = json_load_file(path, 0, NULL);
    times t = {NAN, NAN};
    if (j)
        t = (times){json_number_value(json_object_get(j, "recorded")),
                    json_number_value(json_object_get(j, "seconds"))};
    json_decref(j);
    return t;
}

static times measure(const char *example, int precision)
{
    char command[4 * PATH_MAX], path[PATH_MAX + 16];
    const char *start = CAIRN_SOURCE "/tools/mpi-test " CAIRN_MPI " 2";
    snprintf(command, sizeof command,
             "cd '%s' && export MPI_TEST_TAGS=no && '%s' trace record -p %d -o t.ctr -- "
             "%s '%s'/examples/%s > output 2>&1 && %s '%s' trace replay --json t.ctr > times",
             scratch, CAIRN_COMMAND, precision, start, CAIRN_BINARY, example, start, CAIRN_COMMAND);
    snprintf(path, sizeof path, "%s/times", scratch);
    return done(command) ? read_times(path) : (times){NAN, NAN};
}

static void compare(const char *name, const char *example, int precision)
{
    double apart[TURNS], run[TURNS];
    char full[64];
    for (size_t i = 0; i < TURNS; i++) {
        times t = measure(example, precision);
        apart[i] = fabs(t.replay - t.run);
        run[i] = t.run;
        printf("  %s, %d%%: run %.3f s, replay %.3f s\n", example, precision, t.run, t.replay);
    }
    snprintf(full, sizeof full, "replay.apart.%s%s", name, precision < 100 ? ".0%" : "");
    bench_print(&(bench_result){.name = full,
                                .ours = bench_median(apart, TURNS),
                                .peer = bench_median(run, TURNS),
                                .unit = "s",
                                .bar = BENCH_AT_MOST,
                                .limit = 0.1,
                                .note = "how far the times of run and replay are apart, against "
                                        "the run's; on two ranks"});
}

int main(void)
{
    const struct {
        const char *name, *example;
    } runs[] = {
        {"cg", "cg 100 15"},
        {"mg", "mg 40 64"},
        {"amr", "amr 1000 8"},
        {"heat2d", "heat2d --size 1024 --steps 400"},
    };
    snprintf(scratch, sizeof scratch, "%s/bench/replay-%d", CAIRN_BINARY, (int)getpid());
    if (mkdir(scratch, 0700) != 0)
        return 2;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        compare(runs[i].name, runs[i].example, 100);
        compare(runs[i].name, runs[i].example, 0);
    }
    bench_remove(scratch);
    return 0;
}
