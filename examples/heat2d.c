/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The heat equation on a square plate, protected by Cairn. Each rank has a slab of rows, exchanges
 * the rows at its edges with its neighbours, and all agree by a reduction how much has changed.
 *
 *     mpirun -n 4 heat2d --size 512 --steps 1000 --output field
 *
 * Kill it at any time and start it again, on as many ranks or on others: it goes on from its last
 * mark, and the field that it writes in the end is the same, bit for bit. With --leave STEP the
 * last rank leaves there, without a word to Cairn, and the others go on in the same job, as they
 * would with an MPI that survives the loss of a rank. Everything that Cairn needs is marked CAIRN
 * below.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <cairn/cairn.h>

#include "example.h"

typedef struct plate {
    MPI_Comm comm; /* of those who compute */
    int rank, nranks;
    uint64_t size;        /* rows and columns of the whole plate */
    uint64_t first, rows; /* of this rank */
    double *now, *next;   /* rows + 2 halos, of size columns each */
} plate;

typedef struct options {
    uint64_t size, steps, every; /* every: steps from mark to mark, 0: when Cairn thinks best */
    uint64_t nudge, leave;       /* steps at which a value is disturbed, a rank leaves; 0: never */
    uint64_t pause_ms;
    double tolerance, flow; /* flow: how much heat goes from a cell to the next in a step */
    bool single; /* let only one thread use MPI: Cairn then works in calls of the program */
    const char *output, *config;
} options;

/* --- the computation ---------------------------------------------------------------------- */

static void plate_init(plate *p, MPI_Comm comm, uint64_t size)
{
    p->comm = comm;
    MPI_Comm_rank(comm, &p->rank);
    MPI_Comm_size(comm, &p->nranks);
    const uint64_t rank = (uint64_t)p->rank, n = (uint64_t)p->nranks;
    if (size < n)
        die("the plate needs at least one row for each rank");
    p->size = size;
    p->first = size * rank / n;
    p->rows = size * (rank + 1) / n - p->first;
    p->now = calloc((p->rows + 2) * size, sizeof *p->now);
    p->next = calloc((p->rows + 2) * size, sizeof *p->next);
    if (!p->now || !p->next)
        die("no memory for the plate");
    for (uint64_t i = 0; i < p->rows; i++) /* a hot square in the middle of a cold plate */
        for (uint64_t j = 0; j < size; j++)
            if (p->first + i >= size / 4 && p->first + i < 3 * size / 4 && j >= size / 4 &&
                j < 3 * size / 4)
                p->now[(i + 1) * size + j] = 1;
}

static void plate_done(plate *p)
{
    free(p->now);
    free(p->next);
}

static void exchange_halos(plate *p)
{
    const int n = (int)p->size;
    const int up = p->rank > 0 ? p->rank - 1 : MPI_PROC_NULL;
    const int down = p->rank + 1 < p->nranks ? p->rank + 1 : MPI_PROC_NULL;
    double *top = p->now + p->size, *bottom = p->now + p->rows * p->size;
    MPI_Sendrecv(top, n, MPI_DOUBLE, up, 0, bottom + n, n, MPI_DOUBLE, down, 0, p->comm,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(bottom, n, MPI_DOUBLE, down, 1, p->now, n, MPI_DOUBLE, up, 1, p->comm,
                 MPI_STATUS_IGNORE);
}

/* Disturb the value in the middle of the plate by next to nothing, for 'cairn diff' to find. */
static void nudge(plate *p)
{
    const uint64_t middle = p->size / 2;
    if (middle >= p->first && middle < p->first + p->rows)
        p->now[(middle - p->first + 1) * p->size + middle] += 1e-9;
}

/* One step; the largest change anywhere on the plate. A maximum does not depend on the order of the
 * ranks, so that the result is the same on any number of them. */
static double advance(plate *p, double flow)
{
    const uint64_t n = p->size;
    double change = 0, largest;
    exchange_halos(p);
    for (uint64_t i = 1; i <= p->rows; i++) {
        const double *row = p->now + i * n, *above = row - n, *below = row + n;
        double *out = p->next + i * n;
        for (uint64_t j = 1; j + 1 < n; j++) { /* the left and right edges stay cold */
            out[j] = row[j] + flow * (above[j] + below[j] + row[j - 1] + row[j + 1] - 4 * row[j]);
            change = fmax(change, fabs(out[j] - row[j]));
        }
    }
    /* copied, not swapped: the protected memory must stay where it is */
    memcpy(p->now + n, p->next + n, p->rows * n * sizeof *p->now);
    MPI_Allreduce(&change, &largest, 1, MPI_DOUBLE, MPI_MAX, p->comm);
    return largest;
}

/* The whole field into one file, rows in order: the ranks append theirs in turn. */
static void write_field(const plate *p, const char *path)
{
    const size_t n = p->rows * p->size;
    for (int r = 0; r < p->nranks; r++) {
        if (r == p->rank) {
            FILE *f = fopen(path, r == 0 ? "wb" : "ab");
            if (!f || fwrite(p->now + p->size, sizeof *p->now, n, f) != n || fclose(f) != 0)
                die("cannot write the field");
        }
        MPI_Barrier(p->comm);
    }
}

/* --- CAIRN: what protects it -------------------------------------------------------------- */

/* Say what is ours, and get it back if there is a mark. */
static void protect(plate *p, cairn *c, uint64_t *step)
{
    const uint64_t global[] = {p->size, p->size}, offset[] = {p->first, 0};
    const uint64_t count[] = {p->rows, p->size};
    if (cairn_protect(c, "step", step, CAIRN_UINT64, 1) < 0 ||
        cairn_protect_part(c, "field", p->now + p->size, CAIRN_FLOAT64, 2, global, offset, count) <
            0)
        give_up(p->rank, cairn_last_error(c));
    const int found = cairn_resume(c, NULL);
    if (found < 0)
        give_up(p->rank, cairn_last_error(c));
    if (p->rank == 0 && found == CAIRN_OK)
        printf("resumed at step %" PRIu64 "\n", *step);
}

static cairn *begin(plate *p, uint64_t *step, const char *config)
{
    cairn *c;
    if (cairn_open(p->comm, config, &c) < 0)
        give_up(p->rank, cairn_last_error(NULL));
    protect(p, c, step);
    return c;
}

/* The last rank is gone: the others divide the plate anew and go back to the last mark. */
static bool shrink(plate *p, cairn *c, uint64_t *step)
{
    MPI_Comm fewer;
    MPI_Comm_split(p->comm, p->rank + 1 < p->nranks ? 0 : MPI_UNDEFINED, p->rank, &fewer);
    if (fewer == MPI_COMM_NULL)
        return false;
    plate_done(p);
    plate_init(p, fewer, p->size);
    if (cairn_reopen(c, fewer) < 0)
        give_up(p->rank, cairn_last_error(c));
    protect(p, c, step);
    return true;
}

/* A mark that fails is a pity, but no reason to stop: earlier ones stand. */
static void mark(cairn *c, const plate *p, uint64_t step)
{
    if (cairn_mark(c, step, CAIRN_AUTO) < 0 && p->rank == 0)
        fprintf(stderr, "heat2d: %s\n", cairn_last_error(c));
}

/* --- the program -------------------------------------------------------------------------- */

typedef enum result { DONE, STOPPED, LEFT } result;

/* Compute until all steps are done or nothing changes any more. */
static result compute(plate *p, cairn *c, uint64_t *step, const options *o)
{
    const uint64_t begun = *step; /* marked already, unless it is the very beginning */
    const int whole = p->nranks;
    double change = HUGE_VAL;
    while (*step < o->steps && change > o->tolerance) {
        const bool stop = cairn_should_stop(c); /* CAIRN */
        const bool due = o->every > 0 ? *step % o->every == 0 : cairn_due(c);
        if (*step > begun && (due || stop))
            mark(c, p, *step);
        if (stop)
            return STOPPED;
        if (o->leave > 0 && *step == o->leave && p->nranks == whole && !shrink(p, c, step))
            return LEFT; /* CAIRN */
        if (o->nudge > 0 && *step == o->nudge)
            nudge(p);
        change = advance(p, o->flow);
        ++*step;
        pause_us(1000 * o->pause_ms);
    }
    return DONE;
}

static options parse(int argc, char **argv)
{
    options o = {.size = 256, .steps = 1000, .flow = 0.2};
    const example_option option[] = {{"size", NUMBER, &o.size},   {"steps", NUMBER, &o.steps},
                                     {"every", NUMBER, &o.every}, {"tolerance", REAL, &o.tolerance},
                                     {"flow", REAL, &o.flow},     {"nudge", NUMBER, &o.nudge},
                                     {"leave", NUMBER, &o.leave}, {"pause", NUMBER, &o.pause_ms},
                                     {"single", FLAG, &o.single}, {"output", TEXT, &o.output},
                                     {"config", TEXT, &o.config}, {0}};
    example_parse(argc, argv, option);
    return o;
}

int main(int argc, char **argv)
{
    plate p = {0};
    uint64_t step = 0;
    int given;
    const options o = parse(argc, argv);
    MPI_Init_thread(NULL, NULL, o.single ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &given);
    plate_init(&p, MPI_COMM_WORLD, o.size);
    cairn *c = begin(&p, &step, o.config); /* CAIRN */
    const result end = compute(&p, c, &step, &o);
    if (end == DONE && o.output)
        write_field(&p, o.output);
    if (end != LEFT && p.rank == 0)
        printf("%s at step %" PRIu64 "\n", end == DONE ? "done" : "stopped", step);
    if (end != LEFT && cairn_close(c) < 0 && p.rank == 0) /* CAIRN */
        fprintf(stderr, "heat2d: %s\n", cairn_error_text());
    plate_done(&p);
    MPI_Finalize();
    return 0;
}
