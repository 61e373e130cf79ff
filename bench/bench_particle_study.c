/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A particle filter on real processes: four runners that sleep three seconds a propagation, states
 * of 64 MiB, and global storage that gives 200 MB/s to all of them together. For which part of its
 * time does the model wait for storage? Against a model that stores its state there and loads the
 * next one from there itself, in each task. Of the first cycle, in which all caches are cold,
 * nothing counts.
 *
 * NEEDS: zmq jansson
 *
 *     bench_particle_study [model]   model: be a runner
 */
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mpi.h>

#include <cairn/ensemble.h>
#include <cairn/state.h>

#include "bench.h"

enum { WORDS = 8 << 20, RUNNERS = 4, MEMBERS = 12, CYCLES = 3, LIMIT = 50000000, SLEEP_S = 3 };

/* --- the model ------------------------------------------------------------------------------ */

/* All of the state changes in each task, as that of a real model does. */
static void advance(double *x, const cairn_task *t)
{
    for (size_t i = 0; i < WORDS; i++)
        x[i] += 1e-3 * (double)((i + 31 * t->member + 17 * t->cycle) % 1009);
    sleep(SLEEP_S);
}

static int be_model(void)
{
    cairn_ensemble *e;
    cairn_task t = {.struct_bytes = sizeof t};
    double *x = calloc(WORDS, sizeof *x);
    MPI_Init(NULL, NULL);
    const cairn_field f = {.name = "x", .data = x, .type = CAIRN_FLOAT64, .count = {WORDS}};
    if (!x || cairn_member_open(MPI_COMM_WORLD, 0, &e) < 0 ||
        cairn_member_field(e, CAIRN_ASSIMILATED, &f) < 0)
        return 1;
    int more;
    while ((more = cairn_member_next(e, &t)) > 0)
        if (t.cycle > 0)
            advance(x, &t);
    if (more < 0)
        fprintf(stderr, "%s\n", cairn_member_error());
    cairn_member_close(e);
    MPI_Finalize();
    free(x);
    return more < 0;
}

/* --- the study ------------------------------------------------------------------------------ */

/* Observations that make some members' weights small: parents move between runners. */
static void write_observations(const char *dir)
{
    char path[600];
    snprintf(path, sizeof path, "%s/obs", dir);
    FILE *f = fopen(path, "w");
    for (int cycle = 1; cycle <= CYCLES; cycle++)
        fprintf(f, "%d x 0 %g 0.02\n", cycle, 0.2 * cycle);
    fclose(f);
}

static void write_study(const char *dir, const char *self)
{
    char path[600];
    write_observations(dir);
    snprintf(path, sizeof path, "%s/s.ini", dir);
    FILE *f = fopen(path, "w");
    fprintf(f,
            "[study]\nmembers = %d\ncycles = %d\nspread = 0\n[filter]\nname = particle\n"
            "observations = %s/obs\n[particle]\nlimit = %d\ncapacity = 7\ncache = %s/cache\n"
            "[runner]\ncommand = %s model\nnumber = %d\n",
            MEMBERS, CYCLES, dir, LIMIT, dir, self, RUNNERS);
    fclose(f);
}

typedef struct sums {
    double busy, waited, idle, loads, bound;
} sums;

static double member_of(const json_t *event, const char *key)
{
    return json_number_value(json_object_get(event, key));
}

static sums read_events(const char *dir)
{
    char path[600], *line = NULL;
    size_t cap = 0;
    sums s = {0};
    snprintf(path, sizeof path, "%s/s/events.jsonl", dir);
    FILE *f = fopen(path, "r");
    while (f && getline(&line, &cap, f) >= 0) {
        json_t *e = json_loads(line, 0, NULL);
        const char *kind = json_string_value(json_object_get(e, "event"));
        if (kind && strcmp(kind, "schedule") == 0 && member_of(e, "cycle") > 1) {
            s.busy += member_of(e, "busy");
            s.waited += member_of(e, "waited");
            s.idle += member_of(e, "idle");
            s.loads += member_of(e, "loads");
            s.bound += member_of(e, "bound");
        }
        json_decref(e);
    }
    free(line);
    if (f)
        fclose(f);
    return s;
}

/* --- storage by hand ------------------------------------------------------------------------ */

static void must(int rc)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "%s\n", cairn_error_text());
    exit(1);
}

/* Seconds to store a state on the shelf and to load another one, at a runner's share of it. */
static double direct(const char *dir)
{
    char near[600], far[600];
    cairn_shelf *a, *b;
    cairn_transfer *t;
    double *x = calloc(WORDS, sizeof *x);
    snprintf(near, sizeof near, "%s/near", dir);
    snprintf(far, sizeof far, "%s/far", dir);
    for (size_t i = 0; i < WORDS; i++)
        x[i] = (double)i;
    const cairn_field f = {.name = "x", .data = x, .type = CAIRN_FLOAT64, .count = {WORDS}};
    must(cairn_shelf_open(near, NULL, &a));
    must(cairn_shelf_open(far, NULL, &b));
    must(cairn_state_put(a, "x", 1, NULL, &f, 1));
    const double start = bench_seconds();
    must(cairn_state_push(a, "x", 1, b, LIMIT, &t));
    must(cairn_transfer_wait(t));
    const double pushed = bench_seconds();
    must(cairn_state_drop(a, "x", 1));
    const double again = bench_seconds();
    must(cairn_state_fetch(a, "x", 1, b, LIMIT, &t));
    must(cairn_transfer_wait(t));
    must(cairn_state_get(a, "x", 1, &f, 1));
    const double end = bench_seconds();
    cairn_shelf_close(a);
    cairn_shelf_close(b);
    free(x);
    return pushed - start + end - again;
}

static void run(const char *dir)
{
    char command[700];
    snprintf(command, sizeof command, "%s ensemble run %s/s.ini > %s/out 2>&1", CAIRN_COMMAND, dir,
             dir);
    if (system(command) != 0) {
        fprintf(stderr, "the study failed: see %s/out\n", dir);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    char dir[] = "/var/tmp/bench-particles-XXXXXX", self[512];
    if (argc > 1 && strcmp(argv[1], "model") == 0)
        return be_model();
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0 || !mkdtemp(dir))
        return 1;
    self[n] = 0;
    write_study(dir, self);
    const double by_hand = direct(dir);
    run(dir);
    const sums s = read_events(dir);
    bench_print(&(bench_result){.name = "particle.study.wait",
                                .unit = "of the model's time",
                                .bar = BENCH_AT_MOST,
                                .limit = 0.03,
                                .ours = s.waited / (s.busy + s.waited),
                                .peer = 1,
                                .note = "4 runners, 3 s tasks, 64 MiB, 200 MB/s; waits for cache "
                                        "and shelf, against 1"});
    bench_print(&(bench_result){.name = "particle.study.direct",
                                .unit = "of the model's time",
                                .bar = BENCH_NO_BAR,
                                .ours = s.waited / (s.busy + s.waited),
                                .peer = by_hand / (SLEEP_S + by_hand),
                                .note = "against a model that stores and loads by itself"});
    bench_print(&(bench_result){.name = "particle.study.idle",
                                .unit = "of the runners' time",
                                .bar = BENCH_NO_BAR,
                                .ours = s.idle / (s.busy + s.waited + s.idle),
                                .peer = 1,
                                .note = "idle: the end of each cycle, until the last states are "
                                        "safe; against 1"});
    bench_remove(dir);
    return 0;
}
