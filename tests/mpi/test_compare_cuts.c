/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Arrays that two runs have cut differently, in every dimension and with different block sizes, are
 * compared as a plain loop over the whole does it, to the last bit by any number of threads; so are
 * copies that all ranks have. Of damaged blocks the values are left out, and nothing else is.
 *
 * TEST: ranks self 2 4
 * NEEDS: inih random123
 */
#include "harness/session.h"

#include <inttypes.h>
#include <math.h>

enum { DIMS = 3, TURNS = 8 };

typedef struct cell { /* values that lie across the ends of blocks */
    int32_t n[5];
} cell;

/* How a run cuts the array: along each dimension into parts, of which some may be empty. */
typedef struct cutting {
    bool copies; /* each rank has all of it */
    int parts[DIMS];
    uint64_t at[DIMS][8]; /* where a part begins, and the end */
    const char *block;
} cutting;

typedef struct turn {
    uint64_t seed, shape[DIMS], nvalues;
    int rarity; /* one of so many values differs */
    int nranks[2];
    cutting cut[2];
} turn;

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15;
    return x ^ x >> 29;
}

static bool differs(const turn *t, uint64_t i)
{
    return mix(t->seed + i) % (uint64_t)t->rarity == 0;
}

static double number(const turn *t, int run, uint64_t i)
{
    const double x = (double)(mix(t->seed ^ i) >> 40);
    return run == 1 && differs(t, i) ? x + 1 + (double)(i % 7) : x;
}

static cell cell_of(const turn *t, int run, uint64_t i)
{
    cell c;
    for (int k = 0; k < 5; k++)
        c.n[k] = (int32_t)mix(i + (uint64_t)k);
    c.n[i % 5] += run == 1 && differs(t, i);
    return c;
}

/* --- turns ----------------------------------------------------------------------------------- */

static uint64_t below(crn_rng *r, uint64_t n)
{
    return crn_rng_below(r, n);
}

static int by_size(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static cutting random_cutting(crn_rng *r, const turn *t, int nranks)
{
    static const char *const block[] = {"1KiB", "4KiB", "64KiB", "512KiB"};
    cutting c = {.copies = below(r, 6) == 0, .parts = {1, 1, 1}, .block = block[below(r, 4)]};
    for (int left = nranks; left > 1; left = left % 2 == 0 ? left / 2 : 1)
        c.parts[below(r, DIMS)] *= left % 2 == 0 ? 2 : left;
    for (int d = 0; d < DIMS; d++) {
        for (int k = 1; k < c.parts[d]; k++)
            c.at[d][k] = below(r, t->shape[d] + 1);
        c.at[d][c.parts[d]] = t->shape[d];
        qsort(c.at[d], (size_t)c.parts[d] + 1, sizeof *c.at[d], by_size);
    }
    return c;
}

static turn random_turn(crn_rng *r, int nranks, bool large)
{
    turn t = {.seed = crn_rng_u64(r), .nranks = {nranks, nranks}};
    t.nvalues = 1;
    for (int d = 0; d < DIMS; d++) {
        t.shape[d] = 1 + below(r, large ? 110 : 30);
        t.nvalues *= t.shape[d];
    }
    t.rarity = 1 + (int)below(r, t.nvalues / 8 + 1);
    t.nranks[below(r, 2)] = 1 + (int)below(r, (uint64_t)nranks);
    for (int k = 0; k < 2; k++)
        t.cut[k] = random_cutting(r, &t, t.nranks[k]);
    return t;
}

/* Narrow columns against whole rows: what belongs to a stretch lies far apart in the other run. */
static turn thin_turn(int nranks)
{
    turn t = {.seed = test_seed(), .rarity = 999, .shape = {6000, 1, 90}, .nvalues = 540000};
    for (int k = 0; k < 2; k++) {
        t.nranks[k] = nranks;
        t.cut[k] = (cutting){.parts = {1, 1, 1}, .block = k == 0 ? "4KiB" : "64KiB"};
        t.cut[k].parts[k == 0 ? 2 : 0] = nranks;
        for (int d = 0; d < DIMS; d++)
            for (int i = 0; i <= t.cut[k].parts[d]; i++)
                t.cut[k].at[d][i] = t.shape[d] * (uint64_t)i / (uint64_t)t.cut[k].parts[d];
    }
    return t;
}

/* --- runs ------------------------------------------------------------------------------------ */

static void piece_of(const turn *t, int run, int rank, uint64_t *offset, uint64_t *count)
{
    const cutting *c = &t->cut[run];
    for (int d = DIMS; d-- > 0; rank /= c->parts[d]) {
        const int k = rank % c->parts[d];
        offset[d] = c->copies ? 0 : c->at[d][k];
        count[d] = c->copies ? t->shape[d] : c->at[d][k + 1] - c->at[d][k];
    }
}

static void fill(const turn *t, int run, const uint64_t *offset, const uint64_t *count, double *x,
                 cell *c)
{
    for (uint64_t i = 0; i < count[0]; i++)
        for (uint64_t j = 0; j < count[1]; j++)
            for (uint64_t k = 0; k < count[2]; k++) {
                const uint64_t row = (offset[0] + i) * t->shape[1] + offset[1] + j;
                const uint64_t at = row * t->shape[2] + offset[2] + k;
                *x++ = number(t, run, at);
                *c++ = cell_of(t, run, at);
            }
}

static void take_mark(const turn *t, int run, int rank, MPI_Comm comm, const char *config)
{
    const cairn_member member[] = {CAIRN_MEMBER(cell, n, CAIRN_INT32)};
    uint64_t offset[DIMS], count[DIMS];
    cairn_type type = 0;
    cairn *c;
    double *x;
    cell *cells;
    piece_of(t, run, rank, offset, count);
    assert_ok(crn_alloc(&x, count[0] * count[1] * count[2]));
    assert_ok(crn_alloc(&cells, count[0] * count[1] * count[2]));
    fill(t, run, offset, count, x, cells);
    assert_ok(cairn_open(comm, config, &c));
    assert_ok(cairn_define_type(c, sizeof(cell), member, 1, &type));
    assert_ok(cairn_protect_part(c, "x", x, CAIRN_FLOAT64, DIMS, t->shape, offset, count));
    assert_ok(cairn_protect_part(c, "cells", cells, type, DIMS, t->shape, offset, count));
    assert_ok(cairn_mark(c, 1, CAIRN_AUTO));
    assert_ok(cairn_close(c));
    free(x);
    free(cells);
}

/* By the first ranks. Collective over all. */
static void make_run(place *p, const turn *t, int run)
{
    MPI_Comm some = MPI_COMM_SELF;
    const bool part = p->rank < t->nranks[run];
    setenv("CAIRN_RUN_NAME", run == 0 ? "a" : "b", 1);
    setenv("CAIRN_VARIABLE_BLOCK", t->cut[run].block, 1);
    if (p->nranks > 1)
        MPI_Comm_split(MPI_COMM_WORLD, part ? 0 : MPI_UNDEFINED, p->rank, &some);
    if (part)
        take_mark(t, run, p->rank, some, p->config);
    if (part && p->nranks > 1)
        MPI_Comm_free(&some);
    unsetenv("CAIRN_RUN_NAME");
    unsetenv("CAIRN_VARIABLE_BLOCK");
    assert_ok(crn_comm_barrier(p->comm));
}

/* --- results --------------------------------------------------------------------------------- */

typedef struct result {
    cairn_comparison_row row[2]; /* x, cells */
    char line[2][700];
    size_t n;
} result;

static int on_row(void *arg, const cairn_comparison_row *r)
{
    result *res = arg;
    const int k = strcmp(r->variable, "x") == 0 ? 0 : 1;
    res->n++;
    res->row[k] = *r;
    snprintf(res->line[k], sizeof res->line[k],
             "%d '%s' %" PRIu64 "/%" PRIu64 " max %a rms %a at %d %u %s %s blocks %" PRIu64
             " %" PRIu64 " %" PRIu64,
             (int)r->verdict, r->text, r->ndiffering, r->nvalues, r->max, r->rms, r->placed,
             r->rank, r->first, r->second, r->nblocks, r->nflagged, r->read_bytes);
    return 0;
}

static result compare(place *p, const char *second, MPI_Comm comm, unsigned nthreads)
{
    char run[2][96];
    result r = {.n = 0};
    cairn_comparison sum = {.struct_bytes = sizeof sum};
    const cairn_comparison_options how = {
        .struct_bytes = sizeof how, .all = true, .nthreads = nthreads, .row = on_row, .arg = &r};
    snprintf(run[0], sizeof run[0], "%s/trail/a", p->dir);
    snprintf(run[1], sizeof run[1], "%s/trail/%s", p->dir, second);
    assert_ok(cairn_compare(comm, run[0], run[1], &how, &sum));
    return r;
}

/* What a plain loop over the array finds. */
typedef struct expected {
    uint64_t n, first, low[DIMS], high[DIMS];
    double max;
} expected;

static expected compare_plainly(const turn *t)
{
    expected e = {.low = {UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    for (uint64_t i = t->nvalues; i-- > 0;) {
        const double far = fabs(number(t, 0, i) - number(t, 1, i));
        const uint64_t index[DIMS] = {i / (t->shape[1] * t->shape[2]),
                                      i / t->shape[2] % t->shape[1], i % t->shape[2]};
        if (far == 0)
            continue;
        e.n++;
        e.first = i;
        e.max = fmax(e.max, far);
        for (int d = 0; d < DIMS; d++) {
            e.low[d] = CRN_MIN(e.low[d], index[d]);
            e.high[d] = CRN_MAX(e.high[d], index[d]);
        }
    }
    return e;
}

static void check_row(const turn *t, const expected *e, const cairn_comparison_row *r)
{
    const uint64_t times = t->cut[0].copies ? (uint64_t)t->nranks[0] : 1;
    assert_int_equal(r->nvalues, t->nvalues * times);
    assert_int_equal(r->ndiffering, e->n * times);
    assert_int_equal(r->verdict, e->n > 0 ? CAIRN_DIFFERENT : CAIRN_SAME);
    if (e->n == 0)
        return;
    assert_int_equal((r->index[0] * t->shape[1] + r->index[1]) * t->shape[2] + r->index[2],
                     e->first);
    assert_memory_equal(r->low, e->low, sizeof e->low);
    assert_memory_equal(r->high, e->high, sizeof e->high);
}

static void check_same(const result *a, const result *b)
{
    assert_int_equal(a->n, b->n);
    for (int k = 0; k < 2; k++) {
        assert_string_equal(a->line[k], b->line[k]);
        assert_memory_equal(a->row[k].index, b->row[k].index, sizeof a->row[k].index);
        assert_memory_equal(a->row[k].low, b->row[k].low, sizeof a->row[k].low);
        assert_memory_equal(a->row[k].high, b->row[k].high, sizeof a->row[k].high);
    }
}

static void check_turn(place *p, const turn *t)
{
    const expected e = compare_plainly(t);
    const result one = compare(p, "b", MPI_COMM_SELF, 1), three = compare(p, "b", MPI_COMM_SELF, 3);
    const result all = compare(p, "b", p->mpi, 2);
    assert_int_equal(one.n, 2);
    check_row(t, &e, &one.row[0]);
    check_row(t, &e, &one.row[1]);
    assert_true(one.row[0].max == e.max);
    check_same(&one, &three);
    if (p->rank == 0)
        check_same(&one, &all);
}

static const char *const settings =
    "[level]\nlocal = trail\n[mark]\nmode = synchronous\n[variable]\nbound = 1e-6\n";

static void test_as_a_plain_loop(void **state)
{
    crn_rng r = crn_rng_of(test_seed(), 61);
    for (int i = 0; i < TURNS; i++) {
        place p;
        place_init(&p, *state, settings);
        turn t = i == 0 ? thin_turn(p.nranks) : random_turn(&r, p.nranks, i == 1);
        if (i == 2) {
            t.nranks[1] = p.nranks;
            t.cut[1].copies = true;
        }
        make_run(&p, &t, 0);
        make_run(&p, &t, 1);
        check_turn(&p, &t);
        place_done(&p);
    }
}

/* --- damage ---------------------------------------------------------------------------------- */

enum { LONG = 1 << 19, BLOCK = 1024 / sizeof(double) };

/* An array of doubles that are each their own index, but for one; cut differently in each run. */
static void make_long(const place *p, const char *name, const char *block, uint64_t cut,
                      uint64_t other)
{
    const uint64_t global = LONG, from = (uint64_t)p->rank * cut;
    const uint64_t count = p->rank == p->nranks - 1 ? LONG - from : cut;
    double *x;
    cairn *c;
    assert_ok(crn_alloc(&x, count));
    for (uint64_t k = 0; k < count; k++)
        x[k] = (double)(from + k) + (from + k == other ? 1.5 : 0.5);
    setenv("CAIRN_RUN_NAME", name, 1);
    setenv("CAIRN_VARIABLE_BLOCK", block, 1);
    setenv("CAIRN_COMPARE_TREES", "no", 1); /* they would keep damage from being read */
    assert_ok(cairn_open(p->mpi, p->config, &c));
    assert_ok(cairn_protect_part(c, "x", x, CAIRN_FLOAT64, 1, &global, &from, &count));
    assert_ok(cairn_mark(c, 1, CAIRN_AUTO));
    assert_ok(cairn_close(c));
    unsetenv("CAIRN_COMPARE_TREES");
    unsetenv("CAIRN_VARIABLE_BLOCK");
    unsetenv("CAIRN_RUN_NAME");
    free(x);
}

static void test_damaged_blocks_are_left_out(void **state)
{
    place p;
    place_init(&p, *state, settings);
    const uint64_t cut = LONG / (uint64_t)p.nranks;
    make_long(&p, "a", "1KiB", cut, LONG);
    make_long(&p, "b", "4KiB", cut - 3, 17 * BLOCK + 1); /* next to what is damaged */
    make_long(&p, "c", "4KiB", cut - 3, LONG);
    if (p.rank == 0) {
        place_damage(&p, "a", 0, 18 * BLOCK + 7.5);
        place_damage(&p, "a", 0, 300 * BLOCK + 0.5);
    }
    assert_ok(crn_comm_barrier(p.comm));
    const result one = compare(&p, "b", MPI_COMM_SELF, 1),
                 three = compare(&p, "b", MPI_COMM_SELF, 3);
    check_same(&one, &three);
    assert_int_equal(one.row[0].verdict, CAIRN_DIFFERENT);
    assert_int_equal(one.row[0].ndiffering, 1);
    assert_int_equal(one.row[0].index[0], 17 * BLOCK + 1);
    const result same = compare(&p, "c", MPI_COMM_SELF, 2);
    assert_int_equal(same.row[0].verdict, CAIRN_INCONCLUSIVE);
    assert_non_null(strstr(same.line[0], "block 18 of rank 0 is damaged or cannot be read"));
    place_done(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_a_plain_loop),
                                       cmocka_unit_test(test_damaged_blocks_are_left_out)};
    return run_mpi_tests(argc, argv, tests);
}
