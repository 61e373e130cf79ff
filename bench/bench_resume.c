/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What does coming back cost, against a plain read of the same files in the same state of the
 * cache, which is warm: they lie in memory (/dev/shm)? A large state by its speed, a small one by
 * what it takes beyond the read. All ranks work at once, and the slowest counts.
 *
 *     bench_resume [MiB of the large state of a rank]
 *
 * BENCH: ranks 2
 */
#include "bench_mpi.h"

#include <cairn/cairn.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLAIN_BYTES = 8 << 20, TURNS = 31 };

typedef struct state {
    int rank, size;
    unsigned char *data;
    size_t nbytes;
    char top[64];   /* the directory of all files */
    char part[256]; /* where this rank's share lies */
} state;

/* --- plain files ---------------------------------------------------------------------------- */

static char wanted[32], found[256]; /* nftw hands nothing to its visitor */

static int visit(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    if (kind == FTW_F && strcmp(path + ftw->base, wanted) == 0)
        snprintf(found, sizeof found, "%s", path);
    return 0;
}

static void find_part(state *s)
{
    snprintf(wanted, sizeof wanted, "own-%d", s->rank);
    found[0] = 0;
    nftw(s->top, visit, 16, FTW_PHYS);
    bench_need_sys(found[0] != 0, wanted);
    snprintf(s->part, sizeof s->part, "%s", found);
}

/* Read the rank's file as it is, to the memory that a resume brings the state to. */
static double time_plain(const state *s)
{
    double start = bench_begin();
    int fd = open(s->part, O_RDONLY);
    bench_need_sys(fd >= 0, s->part);
    for (size_t at = 0; at < s->nbytes; at += PLAIN_BYTES) {
        size_t n = CRN_MIN((size_t)PLAIN_BYTES, s->nbytes - at);
        bench_need_sys(pread(fd, s->data + at, n, (off_t)at) == (ssize_t)n, s->part);
    }
    close(fd);
    return bench_since(start);
}

/* --- sessions ------------------------------------------------------------------------------- */

static cairn *open_session(state *s)
{
    cairn *c;
    char trail[96], local[96];
    snprintf(trail, sizeof trail, "%s/trail", s->top);
    snprintf(local, sizeof local, "%s/local", s->top);
    setenv("CAIRN_RUN_TRAIL", trail, 1);
    setenv("CAIRN_LEVEL_LOCAL", local, 1);
    setenv("CAIRN_LEVEL_PARTNER", "0", 1);
    setenv("CAIRN_LEVEL_GLOBAL", "0", 1);
    setenv("CAIRN_MARK_MODE", "synchronous", 1);
    bench_need_call(NULL, cairn_open(MPI_COMM_WORLD, NULL, &c));
    bench_need_call(c, cairn_protect(c, "state", s->data, CAIRN_BYTES, s->nbytes));
    return c;
}

/* As a program does that is told to stop: the run can be resumed. */
static void leave(cairn *c)
{
    raise(SIGUSR1);
    cairn_should_stop(c);
    bench_need_call(NULL, cairn_close(c));
}

/* Collective: an empty place with a run in it. */
static void leave_run(state *s)
{
    crn_rng rng = crn_rng_of(1, (uint64_t)s->rank);
    for (size_t i = 0; i < s->nbytes; i += sizeof(uint64_t)) {
        uint64_t word = crn_rng_u64(&rng);
        memcpy(s->data + i, &word, sizeof word);
    }
    bench_need_sys(s->rank != 0 || mkdir(s->top, 0700) == 0, s->top);
    MPI_Barrier(MPI_COMM_WORLD);
    cairn *c = open_session(s);
    bench_need_call(c, cairn_mark(c, 1, CAIRN_LEVEL_LOCAL));
    leave(c);
    find_part(s);
}

typedef struct times {
    double resume[TURNS], restart[TURNS], plain[TURNS];
} times;

static void time_resume(state *s, times *t, int turn)
{
    double start = bench_begin();
    cairn *c = open_session(s);
    double middle = bench_begin();
    bench_need_call(c, cairn_resume(c, NULL));
    t->resume[turn] = bench_since(middle);
    t->restart[turn] = bench_since(start);
    leave(c);
}

/* Every other turn before and after the plain read. */
static void measure(state *s, times *t)
{
    leave_run(s);
    (void)time_plain(s);
    for (int i = 0; i < TURNS; i++) {
        if (i % 2)
            t->plain[i] = time_plain(s);
        time_resume(s, t, i);
        if (i % 2 == 0)
            t->plain[i] = time_plain(s);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (s->rank == 0)
        bench_remove(s->top);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void bench_large(state *s)
{
    times t;
    const double gb = 1e-9 * (double)s->nbytes * s->size;
    measure(s, &t);
    if (s->rank == 0)
        bench_print(&(bench_result){.name = "mark.resume.shm",
                                    .unit = "GB/s",
                                    .bar = BENCH_AT_LEAST,
                                    .limit = 0.8,
                                    .ours = gb / bench_median(t.resume, TURNS),
                                    .peer = gb / bench_median(t.plain, TURNS),
                                    .note = "cairn_resume, verified, files in memory; peer: large "
                                            "pread of the same files to the same memory"});
}

static void bench_small(state *s)
{
    times t;
    s->nbytes = 64 << 10;
    measure(s, &t);
    if (s->rank == 0)
        bench_print(&(bench_result){.name = "mark.resume.small",
                                    .unit = "s",
                                    .bar = BENCH_AT_MOST,
                                    .limit = 1,
                                    .ours = bench_median(t.restart, TURNS),
                                    .peer = bench_median(t.plain, TURNS) + 5e-3,
                                    .note = "64 KiB a rank: cairn_open, cairn_protect and "
                                            "cairn_resume; peer: pread of the same files, and 5 "
                                            "ms"});
}

int main(int argc, char **argv)
{
    const size_t mib = argc > 1 ? strtoull(argv[1], NULL, 10) : 64;
    state s = {.nbytes = mib << 20};
    int given, pid = (int)getpid();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s.size);
    MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(s.top, sizeof s.top, "/dev/shm/bench_resume.%d", pid);
    bench_need(crn_alloc_aligned(&s.data, s.nbytes, 4096));
    bench_large(&s);
    bench_small(&s);
    free(s.data);
    MPI_Finalize();
    return 0;
}
