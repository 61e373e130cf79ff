/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What do very many marks cost? Taking them, all kept, the last of them against the first; and then
 * listing, showing, comparing, blessing and reporting them by the command: processor time and
 * memory. Files go to memory, where there is some, so that the disk has no say.
 *
 *     bench_marks [marks]
 *
 * BENCH: ranks 1
 */
#include "bench_mpi.h"

#include <cairn/cairn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRAIL "bench_marks.trail"

enum { VALUES = 64, BAR_S = 2, BAR_MB = 200 };

static void print(const char *what, const char *unit, double ours, double peer, double limit,
                  const char *note)
{
    char name[64];
    snprintf(name, sizeof name, "marks.%s", what);
    bench_print(&(bench_result){.name = name,
                                .unit = unit,
                                .bar = limit > 0 ? BENCH_AT_MOST : BENCH_NO_BAR,
                                .limit = limit,
                                .ours = ours,
                                .peer = peer,
                                .note = note});
}

static double processor_seconds(int who, long *ret_kb)
{
    struct rusage u;
    getrusage(who, &u);
    *ret_kb = u.ru_maxrss;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static void mark_some(cairn *c, double *values, uint64_t first, uint64_t end, double *ret)
{
    long kb;
    const double start = processor_seconds(RUSAGE_SELF, &kb);
    for (uint64_t v = first; v < end; v++) {
        values[v % VALUES] += 1;
        bench_need_call(c, cairn_mark(c, v + 1, CAIRN_LEVEL_GLOBAL));
    }
    *ret = processor_seconds(RUSAGE_SELF, &kb) - start;
}

/* A run of n marks with all of them kept; the processor time of its first and its last tenth. */
static void take_run(uint64_t n, double *ret_first, double *ret_last)
{
    double values[VALUES] = {0}, middle;
    cairn *c;
    bench_need_call(NULL, cairn_open(MPI_COMM_SELF, NULL, &c));
    bench_need_call(c, cairn_protect(c, "values", values, CAIRN_FLOAT64, VALUES));
    mark_some(c, values, 0, n / 10, ret_first);
    mark_some(c, values, n / 10, n - n / 10, &middle);
    mark_some(c, values, n - n / 10, n, ret_last);
    bench_need_call(NULL, cairn_close(c));
}

/* Run the command with these words; its processor time and memory. */
static double run_command(char *const words[], double *ret_mb)
{
    struct rusage u;
    int status;
    fflush(stdout);
    const pid_t pid = fork();
    bench_need_sys(pid >= 0, "fork");
    if (pid == 0) {
        const int nothing = open("/dev/null", O_WRONLY);
        dup2(nothing, STDOUT_FILENO);
        execv(CAIRN_COMMAND, words);
        _exit(127);
    }
    bench_need_sys(wait4(pid, &status, 0, &u) == pid, "wait4");
    bench_need_sys(WIFEXITED(status) && WEXITSTATUS(status) < 2, words[1]);
    *ret_mb = (double)u.ru_maxrss / 1024;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static void bench_command(const char *name, char *const words[])
{
    char what[32];
    double mb;
    const double seconds = run_command(words, &mb);
    print(name, "s", seconds, BAR_S, 1, "processor time; peer: the bar");
    snprintf(what, sizeof what, "%s.memory", name);
    print(what, "MB", mb, BAR_MB, 1, "peer: the bar");
}

static void bench_commands(void)
{
    char *const run[] = {TRAIL "/run-1", TRAIL "/run-2"};
    char *const golden = TRAIL "/golden", *const page = TRAIL "/page.html";
    const struct {
        const char *name;
        char *const *words;
    } row[] = {
        {"ls", (char *[]){"cairn", "ls", run[0], NULL}},
        {"show", (char *[]){"cairn", "show", run[0], NULL}},
        {"show-json", (char *[]){"cairn", "show", "--json", run[0], NULL}},
        {"report", (char *[]){"cairn", "report", "-o", page, run[0], NULL}},
        {"diff", (char *[]){"cairn", "diff", run[0], run[1], NULL}},
        {"bless", (char *[]){"cairn", "gate", "--bless", golden, run[0], NULL}},
        {"gate", (char *[]){"cairn", "gate", golden, run[1], NULL}},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        bench_command(row[i].name, row[i].words);
}

int main(int argc, char **argv)
{
    const uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000;
    double first, last;
    int given;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    bench_remove(TRAIL);
    setenv("CAIRN_RUN_TRAIL", TRAIL, 1);
    setenv("CAIRN_LEVEL_LOCAL", "trail", 1);
    setenv("CAIRN_KEEP_GLOBAL", "all", 1);
    setenv("CAIRN_MARK_MODE", "synchronous", 1);
    for (int run = 0; run < 2; run++)
        take_run(n, &first, &last);
    print("growth", "s", last, first, 2,
          "processor time of the last tenth of the marks; peer: of the first");
    bench_commands();
    bench_remove(TRAIL);
    MPI_Finalize();
    return 0;
}
