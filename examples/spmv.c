/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A sparse matrix times a vector, again and again, protected by Cairn: the power method for the
 * largest eigenvalue. Each rank has the entries of its rows and adds them up one after the other;
 * after each product all ranks get the whole vector.
 *
 *     mpirun -n 2 spmv --kernel random --size 100000 --steps 1000 --output vector
 *
 * Two kernels, which differ in the order of entries only, and change memory in two ways between
 * marks. 'diagonal': five diagonals, one after the other. What changed grows evenly until a
 * diagonal is through. 'random': entries in no order. At first each one spoils another block, later
 * most hit a block that was hit before. Cairn's planner measures this by itself.
 *
 * Marks are taken in the middle of products, so it has to go on with as many ranks as it began.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <cairn/cairn.h>

#include "example.h"

enum { DIAGONALS = 5 };

typedef struct entry {
    uint32_t row, column; /* row: of this rank's */
    double value;
} entry;

typedef struct problem {
    int rank, nranks;
    uint64_t size;        /* of the matrix */
    uint64_t first, rows; /* of this rank */
    uint64_t nentries;    /* likewise */
    entry *entries;
    double *x; /* the whole vector; this rank's piece is protected */
    double *y; /* this rank's piece of the product */
    struct {
        uint64_t step, entry; /* that come next */
        double eigenvalue;
    } at;
} problem;

typedef struct options {
    bool random;
    uint64_t size, steps, batch; /* batch: entries of a step, after which a mark may be taken */
    uint64_t every;              /* steps from mark to mark, 0: when Cairn thinks best */
    uint64_t pause_us;
    const char *output, *config;
} options;

/* --- the matrix --------------------------------------------------------------------------- */

/* Numbers that look random, the same on every machine (splitmix64). */
static uint64_t scramble(uint64_t n)
{
    n += UINT64_C(0x9e3779b97f4a7c15);
    n = (n ^ n >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    n = (n ^ n >> 27) * UINT64_C(0x94d049bb133111eb);
    return n ^ n >> 31;
}

static entry make_entry(const problem *p, bool random, uint64_t i)
{
    const uint64_t r = scramble(2 * (p->first * DIAGONALS + i));
    const uint64_t row = random ? r % p->rows : i % p->rows;
    const uint64_t column = random ? scramble(r) % p->size : p->first + row + i / p->rows;
    return (entry){.row = (uint32_t)row,
                   .column = (uint32_t)(column % p->size),
                   .value = 1 + (double)(r >> 32) / UINT32_MAX};
}

static void problem_init(problem *p, const options *o)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &p->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &p->nranks);
    const uint64_t rank = (uint64_t)p->rank, n = (uint64_t)p->nranks;
    if (o->size < n || o->size > INT32_MAX || o->batch == 0)
        die("a rank needs at least one row, and a step one entry");
    p->size = o->size;
    p->first = p->size * rank / n;
    p->rows = p->size * (rank + 1) / n - p->first;
    p->nentries = DIAGONALS * p->rows;
    p->entries = calloc(p->nentries, sizeof *p->entries);
    p->x = calloc(p->size, sizeof *p->x);
    p->y = calloc(p->rows, sizeof *p->y);
    if (!p->entries || !p->x || !p->y)
        die("no memory for the matrix");
    for (uint64_t i = 0; i < p->nentries; i++)
        p->entries[i] = make_entry(p, o->random, i);
    for (uint64_t i = 0; i < p->size; i++)
        p->x[i] = 1;
}

/* Every rank has its piece of x: let all have all of it. */
static void share_vector(problem *p)
{
    int counts[p->nranks], firsts[p->nranks];
    for (int r = 0; r < p->nranks; r++) {
        const uint64_t rank = (uint64_t)r, n = (uint64_t)p->nranks;
        firsts[r] = (int)(p->size * rank / n);
        counts[r] = (int)(p->size * (rank + 1) / n) - firsts[r];
    }
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, p->x, counts, firsts, MPI_DOUBLE,
                   MPI_COMM_WORLD);
}

/* --- the computation ---------------------------------------------------------------------- */

/* The product is there: the next one begins with it, scaled by its largest element. */
static void finish_product(problem *p)
{
    double largest = 0;
    for (uint64_t i = 0; i < p->rows; i++)
        largest = fmax(largest, p->y[i]);
    MPI_Allreduce(&largest, &p->at.eigenvalue, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    for (uint64_t i = 0; i < p->rows; i++)
        p->x[p->first + i] = p->y[i] / p->at.eigenvalue;
    memset(p->y, 0, p->rows * sizeof *p->y);
    share_vector(p);
    p->at.entry = 0;
}

/* A batch of entries. Ranks may have one more row than others: the product ends when all are
 * through the longest list. */
static void advance(problem *p, uint64_t batch)
{
    const uint64_t most = DIAGONALS * ((p->size + (uint64_t)p->nranks - 1) / (uint64_t)p->nranks);
    const uint64_t end = p->at.entry + batch;
    for (uint64_t i = p->at.entry; i < end && i < p->nentries; i++)
        p->y[p->entries[i].row] += p->entries[i].value * p->x[p->entries[i].column];
    p->at.entry = end;
    p->at.step++;
    if (end >= most)
        finish_product(p);
}

/* The last product that is whole; all ranks have it. */
static void write_vector(const problem *p, const char *path)
{
    if (p->rank > 0)
        return;
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(p->x, sizeof *p->x, p->size, f) != p->size || fclose(f) != 0)
        die("cannot write the vector");
}

/* --- CAIRN: what protects it -------------------------------------------------------------- */

static cairn *protect(problem *p, const char *config)
{
    cairn *c;
    if (cairn_open(MPI_COMM_WORLD, config, &c) < 0)
        die(cairn_last_error(NULL));
    if (cairn_protect(c, "at", &p->at, CAIRN_BYTES, sizeof p->at) < 0 ||
        cairn_protect(c, "x", p->x + p->first, CAIRN_FLOAT64, p->rows) < 0 ||
        cairn_protect(c, "y", p->y, CAIRN_FLOAT64, p->rows) < 0)
        die(cairn_last_error(c));
    const int found = cairn_resume(c, NULL);
    if (found < 0)
        die(cairn_last_error(c));
    if (found == CAIRN_OK) {
        share_vector(p);
        if (p->rank == 0)
            printf("resumed at step %" PRIu64 "\n", p->at.step);
    }
    return c;
}

/* Until all steps are done; false: told to stop before. */
static bool compute(problem *p, cairn *c, const options *o)
{
    const uint64_t begun = p->at.step;
    while (p->at.step < o->steps) {
        const bool stop = cairn_should_stop(c); /* CAIRN */
        const bool due = o->every > 0 ? p->at.step % o->every == 0 : cairn_due(c);
        if (p->at.step > begun && (due || stop) && cairn_mark(c, p->at.step, CAIRN_AUTO) < 0 &&
            p->rank == 0)
            fprintf(stderr, "spmv: %s\n", cairn_last_error(c)); /* a pity; earlier ones stand */
        if (stop)
            return false;
        advance(p, o->batch);
        pause_us(o->pause_us);
    }
    return true;
}

/* --- the program -------------------------------------------------------------------------- */

static options parse(int argc, char **argv)
{
    options o = {.size = 100000, .steps = 1000, .batch = 10000};
    const char *kernel = "diagonal";
    const example_option option[] = {
        {"kernel", TEXT, &kernel},   {"size", NUMBER, &o.size},   {"steps", NUMBER, &o.steps},
        {"batch", NUMBER, &o.batch}, {"every", NUMBER, &o.every}, {"pause", NUMBER, &o.pause_us},
        {"output", TEXT, &o.output}, {"config", TEXT, &o.config}, {0}};
    example_parse(argc, argv, option);
    o.random = strcmp(kernel, "random") == 0;
    if (!o.random && strcmp(kernel, "diagonal") != 0)
        die("a kernel is 'diagonal' or 'random'");
    return o;
}

int main(int argc, char **argv)
{
    problem p = {0};
    int given;
    const options o = parse(argc, argv);
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &given);
    problem_init(&p, &o);
    cairn *c = protect(&p, o.config); /* CAIRN */
    const bool done = compute(&p, c, &o);
    if (done && o.output)
        write_vector(&p, o.output);
    if (p.rank == 0)
        printf("%s at step %" PRIu64 ": eigenvalue %.12g\n", done ? "done" : "stopped", p.at.step,
               p.at.eigenvalue);
    if (cairn_close(c) < 0 && p.rank == 0) /* CAIRN */
        fprintf(stderr, "spmv: %s\n", cairn_error_text());
    free(p.entries);
    free(p.x);
    free(p.y);
    MPI_Finalize();
    return 0;
}
