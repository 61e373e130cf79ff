/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What do marks cost against those of FTI and VeloC, where they are installed? Ours and one peer at
 * a time take marks of the same state in turns, on the same ranks and virtual nodes, in
 * subdirectories of the same directory: the working directory, then /dev/shm.
 *
 * It is the cost within a run: each has taken one mark before the clock runs, and keeps one. Ours
 * then writes to the free space of its part files; the others write new files and remove the old.
 * Nobody finds anything of the others left to be written by the kernel.
 *
 *     bench_peers [MiB of state of a rank]
 *
 * BENCH: ranks 4
 */
#include "bench_mpi.h"
#include "peer.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

/* The largest power of two that FTI takes. */
enum { NRANKS = 4, BLOCK = 32 << 10 };

typedef struct state {
    int rank;
    unsigned char *data;
    size_t nbytes;
    crn_rng rng;
    int version; /* of the last mark */
} state;

typedef struct contest {
    const char *name;
    peer_kind kind;
    unsigned percent; /* of blocks that change between marks */
    bool in_memory;   /* on /dev/shm as well */
    double limit;     /* of the ratio of speeds; 0: none is demanded */
    const char *note;
} contest;

typedef struct place {
    const char *path, *suffix; /* of the names of results */
    bool memory;
    int fd;
} place;

static void need(bool good, const peer *p, const char *what)
{
    if (!good) {
        fprintf(stderr, "bench_peers: '%s' cannot %s\n", p->name, what);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

/* --- directories ---------------------------------------------------------------------------- */

/* Collective: nothing of a place is left to be written. */
static void calm(const state *s, const place *p)
{
    MPI_Barrier(MPI_COMM_WORLD);
    bench_need_sys(s->rank != 0 || syncfs(p->fd) == 0, p->path);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Collective. */
static void make_dir(const state *s, const char *path)
{
    bench_need_sys(s->rank != 0 || mkdir(path, 0700) == 0, path);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void remove_dir(const state *s, const char *path)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (s->rank == 0)
        bench_remove(path);
    MPI_Barrier(MPI_COMM_WORLD);
}

bool peer_configure(const peer_setup *setup, char path[PEER_PATH], const char *fmt, ...)
{
    bool written = true;
    snprintf(path, PEER_PATH, "%s/configuration", setup->dir);
    if (setup->rank == 0) {
        FILE *f = fopen(path, "w");
        va_list args;
        va_start(args, fmt);
        written = f && vfprintf(f, fmt, args) >= 0;
        va_end(args);
        written = f && fclose(f) == 0 && written;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return written;
}

/* --- turns ---------------------------------------------------------------------------------- */

/* Write so many percent of the blocks anew, scattered. */
static void change(state *s, unsigned percent)
{
    size_t nblocks = s->nbytes / BLOCK, n = nblocks * percent / 100;
    for (size_t i = 0; i < n; i++) {
        size_t first = i * nblocks / n, width = (i + 1) * nblocks / n - first;
        unsigned char *at = s->data + (first + crn_rng_below(&s->rng, width)) * BLOCK;
        for (size_t off = 0; off < BLOCK; off += sizeof(uint64_t)) {
            uint64_t word = crn_rng_u64(&s->rng);
            memcpy(at + off, &word, sizeof word);
        }
    }
}

/* Seconds of the slowest rank. */
static double time_mark(const state *s, const place *where, const peer *p, void *handle)
{
    calm(s, where);
    double start = bench_seconds();
    bool marked = p->mark(handle, s->version);
    double seconds = bench_seconds() - start;
    need(marked, p, "mark");
    return bench_longest(seconds);
}

/* The first mark of each is not in the result. */
static void take_turns(state *s, const contest *c, const place *where, const peer *const side[2],
                       void *const handle[2], double took[2][BENCH_TURNS])
{
    for (int turn = -1; turn < BENCH_TURNS; turn++) {
        change(s, turn < 0 ? 100 : c->percent);
        s->version++;
        for (int i = 0; i < 2; i++) {
            int who = (turn + 1 + i) % 2;
            double seconds = time_mark(s, where, side[who], handle[who]);
            if (turn >= 0)
                took[who][turn] = seconds;
        }
    }
}

static void print_result(const state *s, const contest *c, const place *where, const peer *p,
                         double took[2][BENCH_TURNS])
{
    const double gb = 1e-9 * (double)s->nbytes * NRANKS;
    char name[64], share[8] = "", note[400];
    if (c->kind == PEER_DIFFERENTIAL)
        snprintf(share, sizeof share, ".%u%%", c->percent);
    snprintf(name, sizeof name, "%s.%s%s%s", c->name, p->name, share, where->suffix);
    snprintf(note, sizeof note, "%s; ours: %s; peer: %s", c->note, peer_cairn.note, p->note);
    if (s->rank == 0)
        bench_print(&(bench_result){.name = name,
                                    .unit = "GB/s of state",
                                    .bar = c->limit > 0 ? BENCH_AT_LEAST : BENCH_NO_BAR,
                                    .limit = c->limit,
                                    .ours = gb / bench_median(took[0], BENCH_TURNS),
                                    .peer = gb / bench_median(took[1], BENCH_TURNS),
                                    .note = note});
}

static void duel(state *s, const contest *c, const place *where, const peer *p)
{
    const peer *const side[2] = {&peer_cairn, p};
    double took[2][BENCH_TURNS];
    char top[PEER_PATH], dir[2][PEER_PATH];
    void *handle[2];
    snprintf(top, sizeof top, "%s/bench_peers.tmp", where->path);
    remove_dir(s, top);
    make_dir(s, top);
    for (int i = 0; i < 2; i++) {
        snprintf(dir[i], sizeof dir[i], "%s/bench_peers.tmp/%d", where->path, i);
        make_dir(s, dir[i]);
        const peer_setup setup = {c->kind,   dir[i], s->rank,        s->data,
                                  s->nbytes, BLOCK,  BENCH_TURNS + 1};
        handle[i] = side[i]->open(&setup);
        need(handle[i] != NULL, side[i], "open");
    }
    take_turns(s, c, where, side, handle, took);
    for (int i = 0; i < 2; i++)
        need(side[i]->close(handle[i]), side[i], "close");
    remove_dir(s, top);
    print_result(s, c, where, p, took);
}

/* ------------------------------------------------------------------------------------------ */

#define PARTIAL "synchronous global marks, blocks of 32 KiB"

static const contest contests[] = {
    {"mark.local", PEER_LOCAL, 100, true, 1.5, "synchronous local marks, all blocks changed"},
    {"mark.encoded", PEER_ENCODED, 100, true, 3,
     "synchronous encoded marks, 2 of 4 nodes may vanish, all blocks changed"},
    {"differential", PEER_DIFFERENTIAL, 0, false, 0, PARTIAL},
    {"differential", PEER_DIFFERENTIAL, 1, false, 0, PARTIAL},
    {"differential", PEER_DIFFERENTIAL, 5, false, 0, PARTIAL},
    {"differential", PEER_DIFFERENTIAL, 50, false, 0, PARTIAL},
    {"differential", PEER_DIFFERENTIAL, 100, false, 0, PARTIAL},
};

static const peer *const peers[] = {
#if BENCH_FTI
    &peer_fti, &peer_fti_crc32,
#endif
#if BENCH_VELOC
    &peer_veloc, &peer_veloc_synced,
#endif
    NULL};

static void measure(state *s, place *where)
{
    where->fd = open(where->path, O_RDONLY | O_DIRECTORY);
    bench_need_sys(where->fd >= 0, where->path);
    for (size_t i = 0; peers[i]; i++) {
        for (size_t k = 0; k < sizeof contests / sizeof *contests; k++) {
            const contest *c = &contests[k];
            bool here = !where->memory || (c->in_memory && peers[i]->in_memory);
            if (here && peers[i]->kinds & 1u << c->kind)
                duel(s, c, where, peers[i]);
        }
    }
    close(where->fd);
}

static void tell_missing(const char *name, const char *variable)
{
    printf("bench_peers: %s was not found, no figures against it; if it is installed, configure "
           "with -D%s=<prefix>\n",
           name, variable);
}

int main(int argc, char **argv)
{
    const size_t mib = argc > 1 ? strtoull(argv[1], NULL, 10) : 128;
    place places[] = {{.path = ".", .suffix = ""},
                      {.path = "/dev/shm", .suffix = ".shm", .memory = true}};
    state s = {.nbytes = mib << 20};
    int size, given;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != NRANKS) {
        fprintf(stderr, "bench_peers: %d ranks, needs %d\n", size, NRANKS);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (s.rank == 0 && !BENCH_FTI)
        tell_missing("FTI", "FTI_ROOT");
    if (s.rank == 0 && !BENCH_VELOC)
        tell_missing("VeloC", "VELOC_ROOT");
    s.rng = crn_rng_of(1, (uint64_t)s.rank);
    bench_need(crn_alloc_aligned(&s.data, s.nbytes, 4096));
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        measure(&s, &places[i]);
    free(s.data);
    MPI_Finalize();
    return 0;
}
