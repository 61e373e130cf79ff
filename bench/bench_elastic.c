/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What does a restart on another number of ranks cost, against one of the same bytes on as many
 * ranks as wrote them? A plate of numbers in slabs of rows, marked by 4 ranks and read by 3, and
 * the other way round; then the worst that can be asked for: rows read as columns. The slowest rank
 * counts. Files go below the working directory.
 *
 *     bench_elastic [MiB of state in all]
 *
 * BENCH: ranks 4
 */
#include "bench_mpi.h"

#include <cairn/cairn.h>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COLUMNS = 3072 };

#define TRAIL  "bench_elastic.trail"
#define LOCAL  "bench_elastic.local"
#define CONFIG "bench_elastic.ini"

/* How a group of ranks has the plate. */
typedef struct group {
    MPI_Comm comm; /* MPI_COMM_NULL on ranks that are not in it */
    int size;
    bool columns; /* instead of rows */
} group;

static uint64_t rows;
static double *data; /* room for the largest share */

/* Begin anew, on all ranks of the job. */
static void clear(int rank)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        bench_remove(TRAIL);
        bench_remove(LOCAL);
        FILE *f = fopen(CONFIG, "w");
        if (!f || fprintf(f, "[run]\ntrail = " TRAIL "\n[level]\nlocal = " LOCAL "\n") < 0 ||
            fclose(f) != 0)
            MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static uint64_t protect(cairn *c, const group *g)
{
    int rank;
    MPI_Comm_rank(g->comm, &rank);
    const uint64_t global[] = {rows, COLUMNS}, whole = g->columns ? COLUMNS : rows;
    const uint64_t r = (uint64_t)rank, n = (uint64_t)g->size;
    const uint64_t first = whole * r / n, mine = whole * (r + 1) / n - first;
    const uint64_t offset[] = {g->columns ? 0 : first, g->columns ? first : 0};
    const uint64_t count[] = {g->columns ? rows : mine, g->columns ? mine : COLUMNS};
    bench_need_call(c,
                    cairn_protect_part(c, "plate", data, CAIRN_FLOAT64, 2, global, offset, count));
    return count[0] * count[1];
}

/* As a program that was told to stop: its run can be resumed. */
static void leave(cairn *c)
{
    raise(SIGUSR1);
    if (cairn_should_stop(c))
        bench_need_call(NULL, cairn_close(c));
}

static void write_plate(const group *g)
{
    cairn *c;
    if (g->comm == MPI_COMM_NULL)
        return;
    bench_need_call(NULL, cairn_open(g->comm, CONFIG, &c));
    const uint64_t n = protect(c, g);
    for (uint64_t i = 0; i < n; i++)
        data[i] = (double)i * 1.25;
    bench_need_call(c, cairn_mark(c, 1, CAIRN_LEVEL_LOCAL));
    leave(c);
}

/* Seconds until all ranks of the group have it back; 0 on the others. */
static double time_resume(const group *g)
{
    cairn *c;
    double seconds = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (g->comm != MPI_COMM_NULL) {
        bench_need_call(NULL, cairn_open(g->comm, CONFIG, &c));
        (void)protect(c, g);
        MPI_Barrier(g->comm);
        const double start = bench_seconds();
        bench_need_call(c, cairn_resume(c, NULL));
        seconds = bench_seconds() - start;
        leave(c);
    }
    return bench_longest(seconds);
}

/* What writers wrote, read by themselves and by others in turns. */
static void measure(int rank, const char *name, const group *writers, const group *readers,
                    bench_bar bar, const char *note)
{
    double ours[BENCH_TURNS], peer[BENCH_TURNS];
    clear(rank);
    write_plate(writers);
    for (int i = -1; i < BENCH_TURNS; i++) { /* the first time warms the cache */
        const double plain = time_resume(writers), other = time_resume(readers);
        if (i >= 0) {
            peer[i] = plain;
            ours[i] = other;
        }
    }
    if (rank == 0)
        bench_print(&(bench_result){.name = name,
                                    .ours = bench_median(ours, BENCH_TURNS),
                                    .peer = bench_median(peer, BENCH_TURNS),
                                    .unit = "s",
                                    .bar = bar,
                                    .limit = 1.3,
                                    .note = note});
}

int main(int argc, char **argv)
{
    int rank, given;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const uint64_t mib = argc > 1 ? strtoull(argv[1], NULL, 10) : 256;
    rows = (mib << 20) / (COLUMNS * sizeof *data);
    data = calloc((rows / 3 + 1) * (COLUMNS + 3), sizeof *data);
    if (!data)
        MPI_Abort(MPI_COMM_WORLD, 2);
    group four = {.size = 4}, three = {.size = 3};
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &four.comm);
    MPI_Comm_split(MPI_COMM_WORLD, rank < 3 ? 0 : MPI_UNDEFINED, rank, &three.comm);
    group columns = four;
    columns.columns = true;
    measure(rank, "elastic.four_to_three", &four, &three, BENCH_AT_MOST,
            "peer: a restart of the same bytes by the 4 ranks that wrote them");
    measure(rank, "elastic.three_to_four", &three, &four, BENCH_AT_MOST,
            "peer: a restart of the same bytes by the 3 ranks that wrote them");
    measure(rank, "elastic.rows_to_columns", &four, &columns, BENCH_NO_BAR,
            "every rank needs a part of each row; peer: the same ranks, rows as they were");
    clear(rank);
    if (rank == 0)
        unlink(CONFIG);
    free(data);
    MPI_Comm_free(&four.comm);
    if (three.comm != MPI_COMM_NULL)
        MPI_Comm_free(&three.comm);
    MPI_Finalize();
    return 0;
}
