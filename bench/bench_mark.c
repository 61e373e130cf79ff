/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What does a mark cost a program, and what does coming back cost, against what the machine can do:
 * copying the state in memory, writing it with large pwrite and fdatasync, reading it with large
 * pread? And asking whether to stop, against a small reduction? All ranks work at once, and the
 * slowest counts. Files go below the working directory.
 *
 *     bench_mark [MiB of state of a rank]
 *
 * BENCH: ranks 4
 */
#include "bench_mpi.h"

#include <cairn/cairn.h>

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLAIN_BYTES = 8 << 20 };

#define TRAIL "bench_mark.trail"
#define LOCAL "bench_mark.local"

typedef struct state {
    int rank, size;
    unsigned char *data, *copy;
    size_t nbytes;
    uint64_t word; /* the next of the pseudo-random content */
} state;

/* Let every block differ from what it was. */
static void change(state *s)
{
    for (size_t i = 0; i < s->nbytes; i += sizeof s->word) {
        s->word = s->word * 6364136223846793005u + 1442695040888963407u;
        memcpy(s->data + i, &s->word, sizeof s->word);
    }
}

/* --- files ---------------------------------------------------------------------------------- */

/* Collective: an empty place, with nothing left to be written by the kernel. */
static void clean_up(const state *s)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (s->rank == 0) {
        bench_remove(TRAIL);
        bench_remove(LOCAL);
        bench_need_sys(mkdir(LOCAL, 0700) == 0, "mkdir");
        sync();
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void plain_name(const state *s, char name[64])
{
    snprintf(name, 64, LOCAL "/plain-%d", s->rank);
}

static double time_plain_write(const state *s)
{
    char name[64];
    plain_name(s, name);
    clean_up(s);
    double start = bench_begin();
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    bench_need_sys(fd >= 0, name);
    for (size_t at = 0; at < s->nbytes; at += PLAIN_BYTES) {
        size_t n = CRN_MIN((size_t)PLAIN_BYTES, s->nbytes - at);
        bench_need_sys(pwrite(fd, s->data + at, n, (off_t)at) == (ssize_t)n, name);
    }
    bench_need_sys(fdatasync(fd) == 0, name);
    close(fd);
    return bench_since(start);
}

/* Read the file that time_plain_write has left. */
static double time_plain_read(state *s)
{
    char name[64];
    plain_name(s, name);
    int fd = open(name, O_RDONLY);
    bench_need_sys(fd >= 0, name);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    double start = bench_begin();
    for (size_t at = 0; at < s->nbytes; at += PLAIN_BYTES) {
        size_t n = CRN_MIN((size_t)PLAIN_BYTES, s->nbytes - at);
        bench_need_sys(pread(fd, s->copy + at, n, (off_t)at) == (ssize_t)n, name);
    }
    double took = bench_since(start);
    close(fd);
    return took;
}

static int evict_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)ftw;
    int fd = kind == FTW_F ? open(path, O_RDONLY) : -1;
    if (fd >= 0) {
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
    return 0;
}

/* --- sessions ------------------------------------------------------------------------------- */

static void configure(const char *mode)
{
    setenv("CAIRN_RUN_TRAIL", TRAIL, 1);
    setenv("CAIRN_LEVEL_LOCAL", LOCAL, 1);
    setenv("CAIRN_LEVEL_PARTNER", "0", 1);
    setenv("CAIRN_LEVEL_GLOBAL", "0", 1);
    setenv("CAIRN_KEEP_LOCAL", "1", 1);
    setenv("CAIRN_MARK_STAGING", "64GiB", 1);
    setenv("CAIRN_MARK_MODE", mode, 1);
}

static cairn *open_session(state *s, const char *mode)
{
    cairn *c;
    configure(mode);
    bench_need_call(NULL, cairn_open(MPI_COMM_WORLD, NULL, &c));
    bench_need_call(c, cairn_protect(c, "state", s->data, CAIRN_BYTES, s->nbytes));
    return c;
}

/* Held by a mark in the background, all blocks changed, against a copy. */
static void bench_hold(state *s)
{
    double ours[BENCH_TURNS], peer[BENCH_TURNS];
    clean_up(s);
    cairn *c = open_session(s, "background");
    bench_need_call(
        c, cairn_mark(c, 1, CAIRN_LEVEL_LOCAL)); /* memory for staging is there from now on */
    for (unsigned i = 0; i < BENCH_TURNS; i++) {
        bench_need_call(c, cairn_settle(c));
        change(s);
        double start = bench_begin();
        bench_need_call(c, cairn_mark(c, i + 2, CAIRN_LEVEL_LOCAL));
        ours[i] = bench_since(start);
        bench_need_call(c, cairn_settle(c));
        start = bench_begin();
        memcpy(s->copy, s->data, s->nbytes);
        peer[i] = bench_since(start);
    }
    bench_need_call(NULL, cairn_close(c));
    if (s->rank == 0)
        bench_print(&(bench_result){.name = "mark.hold",
                                    .unit = "s",
                                    .bar = BENCH_AT_MOST,
                                    .limit = 1.35,
                                    .ours = bench_median(ours, BENCH_TURNS),
                                    .peer = bench_median(peer, BENCH_TURNS),
                                    .note = "held by a mark in the background, all blocks changed; "
                                            "peer: memcpy of the state"});
}

/* A synchronous mark in a new run, every other turn before and after the plain write. */
static double time_mark(state *s)
{
    clean_up(s);
    cairn *c = open_session(s, "synchronous");
    double start = bench_begin();
    bench_need_call(c, cairn_mark(c, 1, CAIRN_LEVEL_LOCAL));
    double took = bench_since(start);
    bench_need_call(NULL, cairn_close(c));
    return took;
}

static double total_gb(const state *s)
{
    return 1e-9 * (double)s->nbytes * s->size;
}

static void bench_write(state *s)
{
    double ours[BENCH_TURNS], peer[BENCH_TURNS];
    for (int i = 0; i < BENCH_TURNS; i++) {
        ours[i] = i % 2 ? 0 : time_mark(s);
        peer[i] = time_plain_write(s);
        if (i % 2)
            ours[i] = time_mark(s);
    }
    if (s->rank == 0)
        bench_print(&(bench_result){.name = "mark.local",
                                    .unit = "GB/s",
                                    .bar = BENCH_AT_LEAST,
                                    .limit = 0.85,
                                    .ours = total_gb(s) / bench_median(ours, BENCH_TURNS),
                                    .peer = total_gb(s) / bench_median(peer, BENCH_TURNS),
                                    .note = "synchronous local mark of a new run; peer: pwrite and "
                                            "fdatasync of the same bytes by all ranks"});
}

/* Leave a run that can be resumed, as a program does that is told to stop. */
static void leave_run(state *s)
{
    clean_up(s);
    cairn *c = open_session(s, "synchronous");
    bench_need_call(c, cairn_mark(c, 1, CAIRN_LEVEL_LOCAL));
    raise(SIGUSR1);
    cairn_should_stop(c);
    bench_need_call(NULL, cairn_close(c));
}

static double time_resume(state *s)
{
    leave_run(s);
    nftw(LOCAL, evict_one, 16, FTW_PHYS);
    cairn *c = open_session(s, "synchronous");
    double start = bench_begin();
    bench_need_call(c, cairn_resume(c, NULL));
    double took = bench_since(start);
    bench_need_call(NULL, cairn_close(c));
    return took;
}

static void bench_resume(state *s)
{
    double ours[BENCH_TURNS], peer[BENCH_TURNS];
    for (int i = 0; i < BENCH_TURNS; i++) {
        ours[i] = time_resume(s);
        (void)time_plain_write(s);
        peer[i] = time_plain_read(s);
    }
    if (s->rank == 0)
        bench_print(&(bench_result){.name = "mark.resume",
                                    .unit = "GB/s",
                                    .bar = BENCH_AT_LEAST,
                                    .limit = 0.8,
                                    .ours = total_gb(s) / bench_median(ours, BENCH_TURNS),
                                    .peer = total_gb(s) / bench_median(peer, BENCH_TURNS),
                                    .note = "from local storage, not cached, verified; peer: large "
                                            "pread of the same bytes by all ranks"});
}

/* Seconds of one of many calls in a row, as a program makes them in its steps. */
enum { CALLS = 2000 };

static double time_stop(cairn *c)
{
    double start = bench_begin();
    for (int i = 0; i < CALLS; i++)
        if (cairn_should_stop(c))
            MPI_Abort(MPI_COMM_WORLD, 2);
    return bench_since(start) / CALLS;
}

static double time_reduction(void)
{
    uint64_t word = 0;
    double start = bench_begin();
    for (int i = 0; i < CALLS; i++)
        MPI_Allreduce(MPI_IN_PLACE, &word, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    return bench_since(start) / CALLS;
}

static void bench_stop(state *s)
{
    double ours[BENCH_TURNS], peer[BENCH_TURNS];
    clean_up(s);
    cairn *c = open_session(s, "background");
    for (int i = 0; i < BENCH_TURNS; i++) {
        ours[i] = time_stop(c);
        peer[i] = time_reduction();
    }
    bench_need_call(NULL, cairn_close(c));
    if (s->rank == 0)
        bench_print(&(bench_result){.name = "stop.cost",
                                    .unit = "s",
                                    .bar = BENCH_AT_MOST,
                                    .limit = 1.5,
                                    .ours = bench_median(ours, BENCH_TURNS),
                                    .peer = bench_median(peer, BENCH_TURNS),
                                    .note = "cairn_should_stop; peer: MPI_Allreduce of 8 bytes"});
}

int main(int argc, char **argv)
{
    const size_t mib = argc > 1 ? strtoull(argv[1], NULL, 10) : 128;
    state s = {.nbytes = mib << 20};
    int given;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s.size);
    s.word = (uint64_t)s.rank + 1;
    bench_need(crn_alloc_aligned(&s.data, s.nbytes, 4096));
    bench_need(crn_alloc_aligned(&s.copy, s.nbytes, 4096));
    memset(s.copy, 1, s.nbytes); /* pages are there before the clock runs */
    change(&s);
    bench_hold(&s);
    bench_write(&s);
    bench_resume(&s);
    bench_stop(&s);
    clean_up(&s);
    free(s.data);
    free(s.copy);
    MPI_Finalize();
    return 0;
}
