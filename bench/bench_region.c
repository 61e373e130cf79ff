/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What do regions cost: a call when nothing is due, and while the place of marks is looked for; a
 * mark, by the processor time of the program's thread, against a copy of what it keeps; and the way
 * back, against a plain resume and the calls that are skipped. For programs of 14 sites with 25
 * variables and of 141 with 45. Files go to memory, where there is some, so that the disk has no
 * say.
 *
 *     bench_region [MiB of a variable]
 *
 * BENCH: ranks 1
 */
#include "bench_mpi.h"

#include <cairn/cairn.h>

#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { NEEDED = 4, CALLS = 200000, REPLAYED = 4000000, TURNS = 5 };

typedef struct program {
    int nsites, nvars;
    size_t n; /* doubles of a variable */
    double *data[64];
    cairn_var var[64];
    char name[160][16], path[64], plain[64]; /* plain: of a run without regions */
    const char *place;
    cairn *c;
} program;

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- the program ------------------------------------------------------------------------------ */

static void make(program *p, int nsites, int nvars, size_t n)
{
    *p = (program){.nsites = nsites, .nvars = nvars, .n = n};
    const char *dir = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : ".";
    snprintf(p->path, sizeof p->path, "%s/bench_region.%ld", dir, (long)getpid());
    snprintf(p->plain, sizeof p->plain, "%s/bench_region.%ld.plain", dir, (long)getpid());
    for (int i = 0; i < nsites; i++)
        snprintf(p->name[i], sizeof p->name[i], "site %d", i);
    for (int i = 0; i < nvars; i++) {
        bench_need(crn_alloc(&p->data[i], n));
        for (size_t k = 0; k < n; k++)
            p->data[i][k] = (double)(k * 2654435761u % 1000003 + (size_t)i);
    }
}

static void unmake(program *p)
{
    for (int i = 0; i < p->nvars; i++)
        free(p->data[i]);
    bench_remove(p->path);
}

static void open_session(program *p, const char *path)
{
    setenv("CAIRN_RUN_TRAIL", path, 1);
    setenv("CAIRN_LEVEL_LOCAL", "trail", 1);
    setenv("CAIRN_MARK_INTERVAL", "1000h", 1);
    setenv("CAIRN_COMPARE_TREES", "no", 1);
    bench_need_call(NULL, cairn_open(MPI_COMM_SELF, NULL, &p->c));
}

static void open_regions(program *p)
{
    char name[16];
    const cairn_region_options o = {.struct_bytes = sizeof o, .place = p->place};
    for (int i = 0; i < p->nvars; i++) {
        snprintf(name, sizeof name, "v%d", i);
        bench_need_call(p->c, cairn_protect(p->c, name, p->data[i], CAIRN_FLOAT64, p->n));
        p->var[i] = cairn_variable(p->c, name);
    }
    bench_need_call(p->c, cairn_regions(p->c, &o));
}

/* As a program that is to stop does: the run can be resumed. */
static void leave(program *p)
{
    raise(SIGUSR1);
    (void)cairn_should_stop(p->c);
    bench_need_call(NULL, cairn_close(p->c));
}

/* Site 0 reads what is needed; each site overwrites some of the others and reads what came before;
 * the last one makes again what is needed. */
static int meet(const program *p, int site)
{
    const int rest = p->nvars - NEEDED;
    const cairn_var a = p->var[NEEDED + site % rest], b = p->var[NEEDED + (site + 1) % rest];
    const cairn_var *v = p->var;
    if (site == 0)
        return cairn_region(p->c, p->name[0], CAIRN_R(v[0]), CAIRN_R(v[1]), CAIRN_R(v[2]),
                            CAIRN_R(v[3]), CAIRN_W(a), CAIRN_W(b));
    if (site == p->nsites - 1)
        return cairn_region(p->c, p->name[site], CAIRN_R(a), CAIRN_W(v[0]), CAIRN_W(v[1]),
                            CAIRN_W(v[2]), CAIRN_W(v[3]));
    return cairn_region(p->c, p->name[site], CAIRN_R(a), CAIRN_W(b), CAIRN_R(v[site % NEEDED]));
}

/* One step; seconds of the thread's processor time that the calls take. */
static double do_step(const program *p)
{
    const double start = cpu_seconds();
    for (int k = 0; k < p->nsites; k++)
        bench_need_call(p->c, meet(p, k));
    return cpu_seconds() - start;
}

static double do_steps(const program *p, int calls)
{
    double sum = 0;
    for (int k = 0; k < calls; k += p->nsites)
        sum += do_step(p);
    return sum / (calls / p->nsites * p->nsites);
}

/* --- measurements ----------------------------------------------------------------------------- */

static void print(const program *p, const char *what, const char *unit, double ours, double peer,
                  bench_bar bar, double limit, const char *note)
{
    char name[64];
    snprintf(name, sizeof name, "region.%s.%d", what, p->nsites);
    bench_print(&(bench_result){.name = name,
                                .unit = unit,
                                .bar = bar,
                                .limit = limit,
                                .ours = ours,
                                .peer = peer,
                                .note = note});
}

static double time_calls(program *p, const char *place)
{
    double took[TURNS];
    p->place = place;
    open_session(p, p->path);
    open_regions(p);
    bench_need_call(p->c, cairn_initialised(p->c));
    (void)do_steps(p, CALLS / 4);
    for (int i = 0; i < TURNS; i++)
        took[i] = do_steps(p, CALLS);
    bench_need_call(NULL, cairn_close(p->c));
    bench_remove(p->path);
    return bench_median(took, TURNS) * 1e9;
}

/* The dearest step of the thread that has the mark, less one without. */
static void time_hold(program *p, double *ret_hold, double *ret_copy)
{
    double hold[TURNS], copy[TURNS], *to;
    bench_need(crn_alloc(&to, NEEDED * p->n));
    memset(to, 1, NEEDED * p->n * sizeof *to);
    p->place = p->name[0];
    open_session(p, p->path);
    open_regions(p);
    for (int i = -1; i < TURNS; i++) { /* the first mark takes memory that later ones have */
        for (int k = 0; k < p->nvars; k++)
            for (size_t e = 0; e < p->n; e += 8)
                p->data[k][e] += 1;
        const double plain = do_step(p);
        const double start = cpu_seconds();
        bench_need_call(p->c, cairn_trigger(p->c));
        for (int s = 0; s < 2; s++) {
            (void)do_step(p);
            (void)cairn_due(p->c);
        }
        const double took = cpu_seconds() - start - 2 * plain;
        bench_need_call(p->c, cairn_settle(p->c));
        const double before = cpu_seconds();
        for (int k = 0; k < NEEDED; k++)
            memcpy(to + (size_t)k * p->n, p->data[k], p->n * sizeof *to);
        if (i >= 0) {
            copy[i] = cpu_seconds() - before;
            hold[i] = took;
        }
    }
    bench_need_call(NULL, cairn_close(p->c));
    bench_remove(p->path);
    free(to);
    *ret_hold = bench_median(hold, TURNS);
    *ret_copy = bench_median(copy, TURNS);
}

/* A run with a mark behind so many regions. */
static void leave_run(program *p, int regions)
{
    p->place = p->name[0];
    open_session(p, p->path);
    open_regions(p);
    for (int k = 0; k < regions; k += p->nsites)
        (void)do_step(p);
    bench_need_call(p->c, cairn_trigger(p->c));
    for (int s = 0; s < 2; s++) {
        (void)do_step(p);
        (void)cairn_due(p->c);
    }
    bench_need_call(p->c, cairn_settle(p->c));
    leave(p);
}

/* Seconds of the whole way back, and of the calls that were skipped. */
static void time_back(program *p, double *ret_all, double *ret_skip)
{
    double skip = 0;
    open_session(p, p->path);
    const double start = bench_seconds();
    open_regions(p);
    const double middle = bench_seconds();
    for (bool back = true; back;)
        for (int k = 0; k < p->nsites && back; k++) {
            if (k == 0)
                skip = bench_seconds();
            bench_need_call(p->c, meet(p, k));
            back = cairn_replaying(p->c);
        }
    *ret_all = bench_seconds() - start;
    *ret_skip = skip - middle;
    leave(p);
}

/* The same bytes by a program without regions. */
static void plain_session(program *p)
{
    open_session(p, p->plain);
    bench_need_call(p->c, cairn_protect(p->c, "v0", p->data[0], CAIRN_FLOAT64, p->n));
    bench_need_call(p->c, cairn_protect(p->c, "v1", p->data[1], CAIRN_FLOAT64, p->n));
    bench_need_call(p->c, cairn_protect(p->c, "v2", p->data[2], CAIRN_FLOAT64, p->n));
    bench_need_call(p->c, cairn_protect(p->c, "v3", p->data[3], CAIRN_FLOAT64, p->n));
}

static double time_plain(program *p)
{
    plain_session(p);
    const double start = bench_seconds();
    bench_need_call(p->c, cairn_resume(p->c, NULL));
    const double took = bench_seconds() - start;
    leave(p);
    return took;
}

static void bench_back(program *p)
{
    double all[TURNS], skip[TURNS], plain[TURNS], sum[TURNS];
    leave_run(p, REPLAYED);
    plain_session(p);
    bench_need_call(p->c, cairn_mark(p->c, 1, CAIRN_LEVEL_LOCAL));
    leave(p);
    for (int i = 0; i < TURNS; i++) {
        time_back(p, &all[i], &skip[i]);
        plain[i] = time_plain(p);
        sum[i] = plain[i] + skip[i];
    }
    bench_remove(p->path);
    bench_remove(p->plain);
    print(p, "replay", "1/s", REPLAYED / bench_median(skip, TURNS), 5e6, BENCH_AT_LEAST, 1,
          "regions skipped on the way back; peer: the bar");
    print(p, "restore", "s", bench_median(all, TURNS), bench_median(sum, TURNS), BENCH_AT_MOST, 1.1,
          "the way back; peer: a plain resume of the same bytes and the skipping");
}

static void bench_program(int nsites, int nvars, size_t n)
{
    program p;
    double hold, copy;
    make(&p, nsites, nvars, 1000);
    print(&p, "call", "ns", time_calls(&p, "none"), 200, BENCH_AT_MOST, 1,
          "a region when nothing is due; peer: the bar");
    print(&p, "gather", "ns", time_calls(&p, NULL), 1000, BENCH_AT_MOST, 1,
          "a region while the place is looked for; peer: the bar");
    unmake(&p);
    make(&p, nsites, nvars, n);
    time_hold(&p, &hold, &copy);
    print(&p, "hold", "s", hold, copy, BENCH_AT_MOST, 1.35,
          "processor time of the program's thread for a mark; peer: memcpy of what it keeps");
    bench_back(&p);
    unmake(&p);
}

int main(int argc, char **argv)
{
    const size_t mib = argc > 1 ? strtoull(argv[1], NULL, 10) : 8;
    int given;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    bench_program(14, 25, (mib << 20) / sizeof(double));
    bench_program(141, 45, (mib << 20) / sizeof(double));
    MPI_Finalize();
    return 0;
}
