/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bodies that attract each other in a box, protected by Cairn. The box is cut into strips, each
 * rank has some of them and the bodies in them; bodies that leave them move to another rank, so
 * that the protected array moves and changes its size from mark to mark.
 *
 *     mpirun -n 4 nbody --bodies 2000 --steps 500 --output bodies
 *
 * Bodies are kept in the order of strips, whoever has them, and forces are added up in that order:
 * a run gives the same result each time, and goes on to the same result when it is started again on
 * another number of ranks. With --arrival they are added up in the order in which messages come, as
 * many programs do, and two runs may part; with --shuffle SEED in one that a seed makes up, step by
 * step, so that runs with different seeds surely do. Everything that Cairn needs is marked CAIRN
 * below.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <cairn/cairn.h>

#include "example.h"

/* A body is a row of numbers, so that its array can be protected, and compared, as one of a type.
 */
enum { ID, X, Y, VX, VY, NVALUES };
typedef double body[NVALUES];

enum { STRIPS = 96 }; /* no more ranks than that */

typedef struct bodies {
    size_t n;
    body *at;
} bodies;

typedef struct options {
    uint64_t nbodies, steps, every, pause_ms;
    bool arrival;
    uint64_t shuffle; /* seed; 0: forces are added up in the order of ranks */
    const char *output, *config;
} options;

static const double STEP = 1e-3; /* of time */
static int rank, nranks;

static void bodies_resize(bodies *b, size_t n)
{
    b->at = realloc(b->at, (n + 1) * sizeof *b->at);
    if (!b->at)
        die("no memory for bodies");
    b->n = n;
}

static void bodies_add(bodies *b, const double *one)
{
    bodies_resize(b, b->n + 1);
    memcpy(b->at[b->n - 1], one, sizeof *b->at);
}

/* Append what a rank, or any rank, sent. */
static void bodies_receive(bodies *b, int from, int tag)
{
    MPI_Status status;
    int n;
    MPI_Probe(from, tag, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_DOUBLE, &n);
    const size_t first = b->n;
    bodies_resize(b, first + (size_t)n / NVALUES);
    MPI_Recv(b->at + first, n, MPI_DOUBLE, status.MPI_SOURCE, tag, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
}

/* By hand: gcc takes MPICH's MPI_STATUSES_IGNORE for an array that is too short. */
static void wait_all(int n, MPI_Request *request)
{
    for (int i = 0; i < n; i++)
        MPI_Wait(&request[i], MPI_STATUS_IGNORE);
}

static void bodies_send(const bodies *b, int to, int tag, MPI_Request *ret)
{
    MPI_Isend(b->at, (int)(b->n * NVALUES), MPI_DOUBLE, to, tag, MPI_COMM_WORLD, ret);
}

/* --- the computation ---------------------------------------------------------------------- */

/* A number in [0, 1) that depends on i alone: the bodies are the same on any number of ranks. */
static double noise(uint64_t i)
{
    i = (i + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    i = (i ^ i >> 29) * 0x94d049bb133111ebu;
    return (double)(i >> 11) * 0x1p-53;
}

static int strip(const double *one)
{
    const int s = (int)(one[X] * STRIPS);
    return s < 0 ? 0 : s >= STRIPS ? STRIPS - 1 : s;
}

/* The first strip of a rank: it has those up to the next one's. */
static int first_strip(int r)
{
    return STRIPS * r / nranks;
}

static int owner(const double *one)
{
    int r = strip(one) * nranks / STRIPS;
    while (strip(one) >= first_strip(r + 1))
        r++;
    return r;
}

static int compare_bodies(const void *x, const void *y)
{
    const double *a = x, *b = y;
    const int s = strip(a) - strip(b);
    return s != 0 ? s : (a[ID] > b[ID]) - (a[ID] < b[ID]);
}

static void sort_bodies(bodies *b)
{
    qsort(b->at, b->n, sizeof *b->at, compare_bodies);
}

static void place_bodies(bodies *b, uint64_t total)
{
    for (uint64_t i = 0; i < total; i++) {
        const body one = {(double)i, noise(4 * i), noise(4 * i + 1), noise(4 * i + 2) - 0.5,
                          noise(4 * i + 3) - 0.5};
        if (owner(one) == rank)
            bodies_add(b, one);
    }
    sort_bodies(b);
}

/* Let others pull at ours: their speed changes. */
static void attract(bodies *ours, const bodies *others)
{
    for (size_t i = 0; i < ours->n; i++)
        for (size_t j = 0; j < others->n; j++) {
            double *a = ours->at[i];
            const double *b = others->at[j];
            const double dx = b[X] - a[X], dy = b[Y] - a[Y], r2 = dx * dx + dy * dy + 1e-3;
            const double pull = STEP * 1e-4 / (r2 * sqrt(r2));
            a[VX] += pull * dx;
            a[VY] += pull * dy;
        }
}

/* The order in which what ranks send is added up. */
static void choose_order(int *order, const options *o, uint64_t step)
{
    for (int r = 0; r < nranks; r++)
        order[r] = o->arrival ? MPI_ANY_SOURCE : r;
    for (int r = nranks - 1; r > 0 && o->shuffle > 0; r--) {
        const uint64_t draw = ((o->shuffle << 32) + step) * STRIPS + (uint64_t)r;
        const int other = (int)(noise(draw) * (r + 1)), swapped = order[r];
        order[r] = order[other];
        order[other] = swapped;
    }
}

/* Every rank sends its bodies to all, itself included. */
static void attract_all(bodies *b, const options *o, uint64_t step)
{
    MPI_Request sent[STRIPS];
    int order[STRIPS];
    bodies copy = {0}; /* ours change while they are sent */
    bodies_resize(&copy, b->n);
    memcpy(copy.at, b->at, b->n * sizeof *b->at);
    choose_order(order, o, step);
    for (int r = 0; r < nranks; r++)
        bodies_send(&copy, r, 0, &sent[r]);
    for (int r = 0; r < nranks; r++) {
        bodies others = {0};
        bodies_receive(&others, order[r], 0);
        attract(b, &others);
        free(others.at);
    }
    wait_all(nranks, sent);
    free(copy.at);
}

static void move(bodies *b)
{
    for (size_t i = 0; i < b->n; i++)
        for (int d = 0; d < 2; d++) {
            double *place = &b->at[i][X + d], *speed = &b->at[i][VX + d];
            *place += STEP * *speed;
            if ((*place < 0 && *speed < 0) || (*place >= 1 && *speed > 0))
                *speed = -*speed; /* walls throw bodies back */
        }
}

/* Bodies that left our strips go to their new rank: in the order of strips, those of a rank stand
 * together. */
static void migrate(bodies *b)
{
    MPI_Request sent[STRIPS];
    bodies in = {0};
    sort_bodies(b);
    size_t first = 0, end = 0;
    for (int r = 0; r < nranks; r++, first = end) {
        while (end < b->n && owner(b->at[end]) == r)
            end++;
        bodies_send(&(bodies){.at = b->at + first, .n = end - first}, r, 1, &sent[r]);
    }
    for (int r = 0; r < nranks; r++)
        bodies_receive(&in, r, 1);
    wait_all(nranks, sent);
    free(b->at);
    *b = in;
    sort_bodies(b);
}

/* All bodies in the order of their numbers; rank 0 writes. */
static void write_bodies(const bodies *b, uint64_t total, const char *path)
{
    body *all = calloc(total + 1, sizeof *all);
    if (!all)
        die("no memory for the result");
    for (size_t i = 0; i < b->n; i++)
        memcpy(all[(size_t)b->at[i][ID]], b->at[i], sizeof *all);
    /* each body is on one rank and 0 on all others: this sum moves, it does not add */
    MPI_Reduce(rank == 0 ? MPI_IN_PLACE : all, all, (int)(total * NVALUES), MPI_DOUBLE, MPI_SUM, 0,
               MPI_COMM_WORLD);
    FILE *f = rank == 0 ? fopen(path, "wb") : NULL;
    if (rank == 0 && (!f || fwrite(all, sizeof *all, total, f) != total || fclose(f) != 0))
        die("cannot write the result");
    free(all);
}

/* --- CAIRN: what protects it -------------------------------------------------------------- */

/* Our strips, and how many numbers the bodies in each have. */
typedef struct cells {
    size_t n;
    uint64_t number[STRIPS], nitems[STRIPS];
} cells;

static cells own_cells(void)
{
    cells c = {.n = (size_t)(first_strip(rank + 1) - first_strip(rank))};
    for (size_t i = 0; i < c.n; i++)
        c.number[i] = (uint64_t)first_strip(rank) + i;
    return c;
}

static void protect_cells(cairn *c, bodies *b, const cells *own)
{
    if (cairn_protect_ragged(c, "bodies", b->at, CAIRN_FLOAT64, STRIPS, own->n, own->number,
                             own->nitems) < 0)
        give_up(rank, cairn_last_error(c));
}

/* The array may have moved and changed its size: protecting a name again says where it is now, and
 * which bodies are in which strip. */
static void protect(cairn *c, bodies *b)
{
    cells own = own_cells();
    for (size_t i = 0; i < b->n; i++)
        own.nitems[strip(b->at[i]) - first_strip(rank)] += NVALUES;
    protect_cells(c, b, &own);
}

/* Room for the bodies is needed before they can come back, so ask how many there were in what are
 * our strips now. A mark that turns out to be damaged beyond repair leaves an older one to try. */
static int bring_back(cairn *c, bodies *b)
{
    cells own = own_cells();
    uint64_t version;
    int found;
    while ((found = cairn_probe(c, &version)) == CAIRN_OK) {
        size_t n = 0;
        if ((found = cairn_probe_cells(c, "bodies", own.n, own.number, own.nitems)) < 0)
            break;
        for (size_t i = 0; i < own.n; i++)
            n += own.nitems[i];
        bodies_resize(b, n / NVALUES);
        protect_cells(c, b, &own);
        if ((found = cairn_resume_at(c, version)) != CAIRN_ENOTFOUND)
            break;
    }
    return found;
}

static cairn *resume(bodies *b, uint64_t *step, const char *config)
{
    cairn *c;
    if (cairn_open(MPI_COMM_WORLD, config, &c) < 0)
        give_up(rank, cairn_last_error(NULL));
    if (cairn_protect(c, "step", step, CAIRN_UINT64, 1) < 0)
        give_up(rank, cairn_last_error(c));
    const int found = bring_back(c, b);
    if (found < 0)
        give_up(rank, cairn_last_error(c));
    if (rank == 0 && found == CAIRN_OK)
        printf("resumed at step %" PRIu64 "\n", *step);
    return c;
}

static void mark(cairn *c, bodies *b, uint64_t step)
{
    protect(c, b);
    if (cairn_mark(c, step, CAIRN_AUTO) < 0 && rank == 0)
        fprintf(stderr, "nbody: %s\n", cairn_last_error(c));
}

/* --- the program -------------------------------------------------------------------------- */

static bool compute(bodies *b, cairn *c, uint64_t *step, const options *o)
{
    for (; *step < o->steps; ++*step) {
        const bool stop = cairn_should_stop(c); /* CAIRN */
        const bool due = o->every > 0 ? *step % o->every == 0 : cairn_due(c);
        if (*step > 0 && (due || stop))
            mark(c, b, *step);
        if (stop)
            return false;
        attract_all(b, o, *step);
        move(b);
        migrate(b);
        pause_us(1000 * o->pause_ms);
    }
    return true;
}

static options parse(int argc, char **argv)
{
    options o = {.nbodies = 1000, .steps = 500};
    const example_option option[] = {{"bodies", NUMBER, &o.nbodies},
                                     {"steps", NUMBER, &o.steps},
                                     {"every", NUMBER, &o.every},
                                     {"pause", NUMBER, &o.pause_ms},
                                     {"arrival", FLAG, &o.arrival},
                                     {"shuffle", NUMBER, &o.shuffle},
                                     {"output", TEXT, &o.output},
                                     {"config", TEXT, &o.config},
                                     {0}};
    example_parse(argc, argv, option);
    return o;
}

int main(int argc, char **argv)
{
    bodies b = {0};
    uint64_t step = 0;
    int given;
    const options o = parse(argc, argv);
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    if (nranks > STRIPS)
        die("there are fewer strips than ranks");
    cairn *c = resume(&b, &step, o.config); /* CAIRN */
    if (step == 0)
        place_bodies(&b, o.nbodies);
    const bool done = compute(&b, c, &step, &o);
    if (done && o.output)
        write_bodies(&b, o.nbodies, o.output);
    if (rank == 0)
        printf("%s at step %" PRIu64 "\n", done ? "done" : "stopped", step);
    if (cairn_close(c) < 0 && rank == 0) /* CAIRN */
        fprintf(stderr, "nbody: %s\n", cairn_error_text());
    free(b.at);
    MPI_Finalize();
    return 0;
}
