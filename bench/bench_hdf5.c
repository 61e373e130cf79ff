/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What do global marks as HDF5 cost: the one file that all ranks write against the same write by a
 * minimal program with parallel HDF5, a file of each rank against part files on the same disk, and
 * how long is the program held? Node-local storage is memory here, as on a machine with a RAM disk;
 * the trail lies below the working directory. All ranks work at once, and the slowest counts.
 *
 *     bench_hdf5 [MiB of state of a rank]
 *
 * BENCH: ranks 4
 */
#include <hdf5.h>

#include "bench_mpi.h"

#include <cairn/cairn.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COLUMNS = 4096, TURNS = 5, HOLDS = 16 }; /* holds: an even number */

#define TRAIL  "bench_hdf5.trail"
#define DISK   "bench_hdf5.local"
#define MEMORY "/dev/shm/bench_hdf5.local"
#define PLAIN  "bench_hdf5.h5"

typedef struct state {
    int rank, size;
    double *data;
    uint64_t rows; /* of this rank; each has COLUMNS */
    size_t nbytes;
    uint64_t word; /* the next of the pseudo-random content */
} state;

static void need_h5(long long result, const char *what)
{
    if (result < 0) {
        fprintf(stderr, "bench_hdf5: HDF5 cannot %s\n", what);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

/* Let every block differ from what it was. */
static void change(state *s)
{
    for (size_t i = 0; i < s->nbytes / sizeof *s->data; i++) {
        s->word = s->word * 6364136223846793005u + 1442695040888963407u;
        s->data[i] = (double)(s->word >> 11);
    }
}

/* Collective: an empty place, with nothing left to be written by the kernel. */
static void clean_up(const state *s)
{
    static const char *const place[] = {TRAIL, DISK, MEMORY, PLAIN};
    MPI_Barrier(MPI_COMM_WORLD);
    if (s->rank == 0) {
        for (size_t i = 0; i < sizeof place / sizeof *place; i++)
            bench_remove(place[i]);
        sync();
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* --- the peer ------------------------------------------------------------------------------- */

static void write_slab(const state *s, hid_t file)
{
    const hsize_t whole[] = {s->rows * (hsize_t)s->size, COLUMNS}, slab[] = {s->rows, COLUMNS};
    const hsize_t at[] = {s->rows * (hsize_t)s->rank, 0};
    hid_t there = H5Screate_simple(2, whole, NULL), here = H5Screate_simple(2, slab, NULL);
    hid_t set =
        H5Dcreate2(file, "state", H5T_NATIVE_DOUBLE, there, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
    need_h5(set, "make a dataset");
    need_h5(H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE), "write together");
    need_h5(H5Sselect_hyperslab(there, H5S_SELECT_SET, at, NULL, slab, NULL), "select");
    need_h5(H5Dwrite(set, H5T_NATIVE_DOUBLE, here, there, transfer, s->data), "write");
    H5Pclose(transfer);
    H5Dclose(set);
    H5Sclose(here);
    H5Sclose(there);
}

/* A parallel HDF5 program as one writes it by hand, and durable like a mark. */
static double time_plain(const state *s)
{
    clean_up(s);
    double start = bench_begin();
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    need_h5(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL), "use MPI");
    hid_t file = H5Fcreate(PLAIN, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    need_h5(file, "make a file");
    write_slab(s, file);
    need_h5(H5Fclose(file), "close the file");
    H5Pclose(access);
    int fd = open(PLAIN, O_RDWR);
    if (fd < 0 || fdatasync(fd) < 0)
        need_h5(-1, "make the file last");
    close(fd);
    return bench_since(start);
}

/* --- sessions ------------------------------------------------------------------------------- */

static cairn *open_session(state *s, const char *mode, const char *format, const char *local)
{
    const uint64_t global[] = {s->rows * (uint64_t)s->size, COLUMNS}, count[] = {s->rows, COLUMNS};
    const uint64_t offset[] = {s->rows * (uint64_t)s->rank, 0};
    cairn *c;
    setenv("CAIRN_RUN_TRAIL", TRAIL, 1);
    setenv("CAIRN_LEVEL_LOCAL", local, 1);
    setenv("CAIRN_LEVEL_PARTNER", "0", 1);
    setenv("CAIRN_LEVEL_GLOBAL", "0", 1);
    setenv("CAIRN_KEEP_LOCAL", "1", 1);
    setenv("CAIRN_KEEP_GLOBAL", "1", 1);
    setenv("CAIRN_MARK_STAGING", "64GiB", 1);
    setenv("CAIRN_MARK_MODE", mode, 1);
    setenv("CAIRN_GLOBAL_FORMAT", format, 1);
    bench_need_call(NULL, cairn_open(MPI_COMM_WORLD, NULL, &c));
    bench_need_call(
        c, cairn_protect_part(c, "state", s->data, CAIRN_FLOAT64, 2, global, offset, count));
    return c;
}

/* A synchronous mark in a new run. */
static double time_mark(state *s, const char *format, const char *local, cairn_level level)
{
    clean_up(s);
    cairn *c = open_session(s, "synchronous", format, local);
    double start = bench_begin();
    bench_need_call(c, cairn_mark(c, 1, level));
    double took = bench_since(start);
    bench_need_call(NULL, cairn_close(c));
    return took;
}

/* What the log of the run says: seconds in which the mark was raised to the trail. */
static int find_raised(void *arg, const char *line)
{
    const char *seconds = strstr(line, "\"raised\"") ? strstr(line, "\"seconds\":") : NULL;
    if (seconds)
        *(double *)arg = strtod(seconds + strlen("\"seconds\":"), NULL);
    return seconds != NULL;
}

/* The same, of which only that counts that comes after the local mark. */
static double time_raise(state *s, const char *format)
{
    cairn_trail *t;
    double took = 0;
    (void)time_mark(s, format, MEMORY, CAIRN_LEVEL_GLOBAL);
    bench_need_call(NULL, cairn_trail_open(TRAIL, &t));
    bench_need_call(NULL, cairn_trail_events(t, 0, find_raised, &took));
    cairn_trail_close(t);
    return took;
}

static double total_gb(const state *s)
{
    return 1e-9 * (double)s->nbytes * s->size;
}

static void print_rate(const state *s, const char *name, double *ours, double *peer, double limit,
                       const char *note)
{
    if (s->rank == 0)
        bench_print(&(bench_result){.name = name,
                                    .unit = "GB/s",
                                    .bar = BENCH_AT_LEAST,
                                    .limit = limit,
                                    .ours = total_gb(s) / bench_median(ours, TURNS),
                                    .peer = total_gb(s) / bench_median(peer, TURNS),
                                    .note = note});
}

static void bench_shared(state *s)
{
    double ours[TURNS], peer[TURNS];
    (void)time_mark(s, "hdf5", MEMORY, CAIRN_LEVEL_GLOBAL); /* loads the library */
    for (int i = 0; i < TURNS; i++) {
        ours[i] = i % 2 ? 0 : time_mark(s, "hdf5", MEMORY, CAIRN_LEVEL_GLOBAL);
        peer[i] = time_plain(s);
        if (i % 2)
            ours[i] = time_mark(s, "hdf5", MEMORY, CAIRN_LEVEL_GLOBAL);
    }
    print_rate(s, "hdf5.shared", ours, peer, 0.9,
               "synchronous global mark of a new run as one file, local mark included; peer: the "
               "same array by a minimal program with parallel HDF5, fdatasync");
}

static void bench_virtual(state *s)
{
    double ours[TURNS], peer[TURNS];
    for (int i = 0; i < TURNS; i++) {
        ours[i] = i % 2 ? 0 : time_raise(s, "hdf5-virtual");
        peer[i] = time_mark(s, "parts", DISK, CAIRN_LEVEL_LOCAL);
        if (i % 2)
            ours[i] = time_raise(s, "hdf5-virtual");
    }
    print_rate(s, "hdf5.virtual", ours, peer, 0.7,
               "raising a mark of a new run to the trail as a file of each rank; peer: synchronous "
               "local mark of a new run, part files on the same disk");
}

/*
 * How long marks in the background hold the program, of both kinds by turns in one run: local,
 * local, global, global, and so on. So each kind follows each kind equally often, and what a mark
 * leaves behind in the kernel, or the machine does meanwhile, falls on both alike.
 */
static void time_holds(state *s, double local[HOLDS], double global[HOLDS])
{
    clean_up(s);
    cairn *c = open_session(s, "background", "hdf5", MEMORY);
    /* HDF5 is loaded and memory for staging is there from now on */
    bench_need_call(c, cairn_mark(c, 1, CAIRN_LEVEL_GLOBAL));
    for (unsigned i = 0; i < 2 * HOLDS; i++) {
        const bool is_global = i / 2 % 2;
        double *held = is_global ? global : local;
        bench_need_call(c, cairn_settle(c));
        change(s);
        double start = bench_begin();
        bench_need_call(c,
                        cairn_mark(c, i + 2, is_global ? CAIRN_LEVEL_GLOBAL : CAIRN_LEVEL_LOCAL));
        held[i / 4 * 2 + i % 2] = bench_since(start);
    }
    bench_need_call(NULL, cairn_close(c));
}

static void bench_hold(state *s)
{
    double ours[HOLDS], peer[HOLDS];
    time_holds(s, peer, ours);
    if (s->rank == 0)
        bench_print(&(bench_result){.name = "hdf5.hold",
                                    .unit = "s",
                                    .bar = BENCH_AT_MOST,
                                    .limit = 1.1,
                                    .ours = bench_median(ours, HOLDS),
                                    .peer = bench_median(peer, HOLDS),
                                    .note = "held by a global mark as one HDF5 file in the "
                                            "background, all blocks changed; peer: by a local "
                                            "mark, by turns in the same run; a tenth is noise"});
}

int main(int argc, char **argv)
{
    const size_t mib = argc > 1 ? strtoull(argv[1], NULL, 10) : 128;
    state s = {.rows = (mib << 20) / (COLUMNS * sizeof(double))};
    int given;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s.size);
    s.nbytes = s.rows * COLUMNS * sizeof(double);
    s.word = (uint64_t)s.rank + 1;
    bench_need(crn_alloc_aligned(&s.data, s.nbytes, 4096));
    change(&s);
    bench_shared(&s);
    bench_virtual(&s);
    bench_hold(&s);
    clean_up(&s);
    free(s.data);
    MPI_Finalize();
    return 0;
}
