/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Comparing runs gives what a plain comparison of all values gives: random data, bounds,
 * differences and ways of capture, on the same and on other numbers of ranks. Every value is a
 * function of run, mark, variable and index, so that any rank knows all of them.
 *
 * TEST: ranks self 2 4
 * NEEDS: inih random123
 */
#include "harness/session.h"

#include "hash/hash.h"

#include <inttypes.h>
#include <math.h>

enum { ROWS = 24, COLUMNS = 70, LINE = 3001, OWN = 700, MARKS = 3 };

typedef struct cell { /* values that lie across the ends of blocks */
    int32_t n;
    float x[2];
    int32_t m[2];
} cell;

enum { GRID, SINGLE, PRIVATE, CELLS, STEP, NVARS };

static const struct {
    const char *name, *type;
    size_t item;
} vars[NVARS] = {{"grid", "float64", 8},
                 {"line", "float32", 4},
                 {"own", "int32", 4},
                 {"cells", "", sizeof(cell)},
                 {"step", "uint64", 8}};

/* What is random about a turn; the same on all ranks. */
typedef struct turn {
    uint64_t seed;
    int rarity;          /* one of so many values differs; 0: none */
    uint64_t from;       /* the first mark that does */
    const char *capture; /* bounds of the configuration */
    const char *ask;     /* bound of the comparison; NULL: as captured */
    crn_bound bound;     /* that must then hold for floats */
    int nranks[2];
    const char *block[2];
    bool trees[2], nan_differs, direct;
} turn;

/* --- values --------------------------------------------------------------------------------- */

static crn_rng rng_of(const turn *t, int var, uint64_t mark, uint64_t i, int purpose)
{
    crn_rng r = crn_rng_of(t->seed + (uint64_t)purpose, mark * 16 + (uint64_t)var);
    r.n = i * 16;
    return r;
}

static double base_value(crn_rng *r)
{
    switch (crn_rng_below(r, 400)) {
    case 0:
        return (double)NAN;
    case 1:
        return (double)INFINITY;
    case 2:
        return -0.0;
    default:
        return 200 * crn_rng_unit(r) - 100;
    }
}

static double disturbed(crn_rng *r, double x, const turn *t)
{
    switch (crn_rng_below(r, 7)) {
    case 0:
        return nextafter(x, 1e9);
    case 1:
        return x + t->bound.absolute * 0.999;
    case 2:
        return x + t->bound.absolute * 1.001;
    case 3:
        return x * (1 + t->bound.relative * 1.001);
    case 4:
        return x + 1e-3 * crn_rng_unit(r);
    case 5:
        return 1e30;
    default:
        return (double)NAN;
    }
}

static bool is_disturbed(const turn *t, int run, int var, uint64_t mark, uint64_t i)
{
    crn_rng r = rng_of(t, var, mark, i, 1);
    return run == 1 && t->rarity > 0 && mark >= t->from && var != STEP &&
           crn_rng_below(&r, (uint64_t)t->rarity) == 0;
}

/* Value i of a variable, all ranks' together, into dst. */
static void value(const turn *t, int run, int var, uint64_t mark, uint64_t i, void *dst)
{
    crn_rng r = rng_of(t, var, mark, i, 0);
    const bool other = is_disturbed(t, run, var, mark, i);
    double x = base_value(&r);
    if (other)
        x = disturbed(&r, x, t);
    const float f = (float)x;
    const int32_t n = (int32_t)(crn_rng_u64(&r) >> 40) + other;
    const cell c = {.n = n, .x = {(float)n, 0}, .m = {other, 7}};
    const void *src[NVARS] = {&x, &f, &n, &c, &mark};
    memcpy(dst, src[var], vars[var].item);
}

/* --- runs ----------------------------------------------------------------------------------- */

/* The share of a rank in n things. */
static uint64_t share(uint64_t n, int rank, int nranks)
{
    return n * (uint64_t)rank / (uint64_t)nranks;
}

typedef struct memory {
    double grid[ROWS * COLUMNS];
    float line[LINE];
    int32_t own[OWN];
    cell cells[OWN];
    uint64_t step;
} memory;

static void fill(memory *m, const turn *t, int run, uint64_t mark, int rank)
{
    const int n = t->nranks[run];
    const uint64_t row = share(ROWS, rank, n), from = share(LINE, rank, n);
    for (uint64_t i = 0; i < (share(ROWS, rank + 1, n) - row) * COLUMNS; i++)
        value(t, run, GRID, mark, row * COLUMNS + i, &m->grid[i]);
    for (uint64_t i = 0; i < share(LINE, rank + 1, n) - from; i++)
        value(t, run, SINGLE, mark, from + i, &m->line[i]);
    for (uint64_t i = 0; i < OWN; i++) {
        value(t, run, PRIVATE, mark, (uint64_t)rank * OWN + i, &m->own[i]);
        value(t, run, CELLS, mark, (uint64_t)rank * OWN + i, &m->cells[i]);
    }
    m->step = mark;
}

static void protect(cairn *c, memory *m, const turn *t, int run, int rank)
{
    const int n = t->nranks[run];
    const uint64_t shape[2] = {ROWS, COLUMNS}, offset[2] = {share(ROWS, rank, n), 0};
    const uint64_t count[2] = {share(ROWS, rank + 1, n) - offset[0], COLUMNS};
    const uint64_t line = LINE, from = share(LINE, rank, n), some = share(LINE, rank + 1, n) - from;
    const cairn_member member[] = {CAIRN_MEMBER(cell, n, CAIRN_INT32),
                                   CAIRN_MEMBER(cell, x, CAIRN_FLOAT32),
                                   CAIRN_MEMBER(cell, m, CAIRN_INT32)};
    cairn_type type = 0;
    assert_ok(cairn_define_type(c, sizeof(cell), member, 3, &type));
    assert_ok(cairn_protect_part(c, "grid", m->grid, CAIRN_FLOAT64, 2, shape, offset, count));
    assert_ok(cairn_protect_part(c, "line", m->line, CAIRN_FLOAT32, 1, &line, &from, &some));
    assert_ok(cairn_protect(c, "own", m->own, CAIRN_INT32, OWN));
    assert_ok(cairn_protect(c, "cells", m->cells, type, OWN));
    assert_ok(cairn_protect(c, "step", &m->step, CAIRN_UINT64, 1));
}

static void write_config(place *p, const turn *t, int run)
{
    if (p->rank == 0) {
        FILE *f = fopen(p->config, "w");
        assert_non_null(f);
        fprintf(f,
                "[run]\ntrail = %s/trail\nname = run-%d\n[level]\nlocal = trail\n[keep]\nglobal = "
                "all\n[variable]\nblock = %s\nbound = %s\n[compare]\ntrees = %s\n",
                p->dir, run, t->block[run], t->capture, t->trees[run] ? "yes" : "no");
        fclose(f);
    }
    assert_ok(crn_comm_barrier(p->comm));
}

/* Take the marks of a run on the first ranks. Collective over all. */
static void take_marks(place *p, const turn *t, int run)
{
    static memory m;
    cairn *c;
    MPI_Comm some = MPI_COMM_SELF;
    const bool part = p->rank < t->nranks[run];
    write_config(p, t, run);
    if (p->nranks > 1)
        MPI_Comm_split(MPI_COMM_WORLD, part ? 0 : MPI_UNDEFINED, p->rank, &some);
    if (part) {
        assert_ok(cairn_open(some, p->config, &c));
        protect(c, &m, t, run, p->rank);
        for (uint64_t mark = 1; mark <= MARKS; mark++) {
            fill(&m, t, run, mark, p->rank);
            assert_ok(cairn_mark(c, mark, CAIRN_AUTO));
        }
        assert_ok(cairn_close(c));
        if (p->nranks > 1)
            MPI_Comm_free(&some);
    }
    assert_ok(crn_comm_barrier(p->comm));
}

/* --- the plain comparison ------------------------------------------------------------------- */

static bool floats_differ(const turn *t, double a, double b)
{
    if (isnan(a) || isnan(b))
        return !(isnan(a) && isnan(b)) || t->nan_differs;
    if (a == b || isinf(a) || isinf(b))
        return a != b;
    return fabs(a - b) > fmax(t->bound.absolute, t->bound.relative * fmax(fabs(a), fabs(b)));
}

typedef struct expected {
    uint64_t n, nonfinite, first, low, high; /* of values, all ranks' together */
    uint64_t slice[CAIRN_SLICES];
    double max;
} expected;

/* Which slice is value i in? Arrays are cut along their rows, what is each rank's own on each. */
static uint64_t slice_of(int var, uint64_t i)
{
    const uint64_t extent = var == GRID ? ROWS : var == SINGLE ? LINE : OWN;
    const uint64_t at = var == GRID ? i / COLUMNS : i % extent;
    return at / ((extent + CAIRN_SLICES - 1) / CAIRN_SLICES);
}

static int32_t whole(const unsigned char *p)
{
    int32_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static expected compare_plainly(const turn *t, int var, uint64_t mark, uint64_t n)
{
    expected e = {.first = UINT64_MAX, .low = UINT64_MAX};
    for (uint64_t i = 0; i < n; i++) {
        unsigned char a[sizeof(cell)] = {0}, b[sizeof(cell)] = {0};
        double x = 0, y = 0;
        float f = 0, g = 0;
        value(t, 0, var, mark, i, a);
        value(t, 1, var, mark, i, b);
        memcpy(&x, a, sizeof x), memcpy(&y, b, sizeof y);
        memcpy(&f, a, sizeof f), memcpy(&g, b, sizeof g);
        if (var == SINGLE)
            x = (double)f, y = (double)g;
        if (var == PRIVATE)
            x = (double)whole(a), y = (double)whole(b);
        bool differs = memcmp(a, b, vars[var].item) != 0;
        if (var == GRID || var == SINGLE || var == PRIVATE)
            differs = floats_differ(t, x, y);
        if (var == CELLS) { /* the first three members are one number, and one more is 0 or 1 */
            x = (double)whole(a), y = (double)whole(b);
            if (!floats_differ(t, x, y))
                x = (double)whole(a + 12), y = (double)whole(b + 12);
            differs = floats_differ(t, x, y);
        }
        if (!differs)
            continue;
        e.n++;
        e.slice[slice_of(var, i)]++;
        e.first = CRN_MIN(e.first, i);
        e.low = CRN_MIN(e.low, i);
        e.high = i;
        if (isfinite(x) && isfinite(y))
            e.max = fmax(e.max, fabs(x - y));
        e.nonfinite += !(isfinite(x) && isfinite(y)) && (var == GRID || var == SINGLE);
    }
    return e;
}

/* --- checking ------------------------------------------------------------------------------- */

typedef struct check {
    const turn *t;
    uint64_t nrows;
    bool seen[MARKS + 1][NVARS];
} check;

static void check_place(const turn *t, int var, const expected *e, const cairn_comparison_row *r)
{
    assert_memory_equal(r->slice, e->slice, sizeof e->slice);
    if (var == GRID) {
        assert_int_equal(r->index[0] * COLUMNS + r->index[1], e->first);
        assert_int_equal(r->low[0], e->low / COLUMNS);
        assert_int_equal(r->high[0], e->high / COLUMNS);
        assert_true(e->first / COLUMNS >= share(ROWS, (int)r->rank, t->nranks[0]) &&
                    e->first / COLUMNS < share(ROWS, (int)r->rank + 1, t->nranks[0]));
    } else if (var == SINGLE) {
        assert_int_equal(r->index[0], e->first);
        assert_true(r->low[0] == e->low && r->high[0] == e->high);
    } else {
        assert_int_equal(r->rank * (uint64_t)OWN + r->index[0], e->first);
    }
}

static int on_row(void *arg, const cairn_comparison_row *r)
{
    check *c = arg;
    const turn *t = c->t;
    int var = 0;
    c->nrows++;
    assert_non_null(r->variable);
    while (strcmp(vars[var].name, r->variable) != 0)
        var++;
    assert_true(r->version >= 1 && r->version <= MARKS && !c->seen[r->version][var]);
    c->seen[r->version][var] = true;
    const uint64_t total[NVARS] = {ROWS * COLUMNS, LINE, (uint64_t)OWN * (uint64_t)t->nranks[0],
                                   (uint64_t)OWN * (uint64_t)t->nranks[0], (uint64_t)t->nranks[0]};
    if (t->nranks[0] != t->nranks[1] && (var == PRIVATE || var == CELLS)) {
        assert_int_equal(r->verdict, CAIRN_INCONCLUSIVE);
        return 0;
    }
    if (var == STEP) {
        assert_int_equal(r->verdict, CAIRN_SAME);
        return 0;
    }
    const expected e = compare_plainly(t, var, r->version, total[var]);
    if (r->ndiffering != e.n || (r->verdict == CAIRN_DIFFERENT) != (e.n > 0))
        fail_msg("mark %" PRIu64 ", '%s': %" PRIu64 " differ, not %" PRIu64 " (%s)", r->version,
                 r->variable, e.n, r->ndiffering, r->text);
    assert_int_equal(r->nvalues, total[var]);
    if (e.n > 0) {
        check_place(t, var, &e, r);
        assert_true(r->max == e.max && r->nnonfinite == e.nonfinite);
    }
    return 0;
}

static void check_turn(place *p, const turn *t)
{
    char run[2][96];
    check c = {.t = t};
    cairn_comparison result = {.struct_bytes = sizeof result}, again = result;
    cairn_comparison_options how = {.struct_bytes = sizeof how,
                                    .bound = t->ask,
                                    .all = true,
                                    .nan_differs = t->nan_differs,
                                    .direct = t->direct,
                                    .nthreads = 2,
                                    .row = on_row,
                                    .arg = &c};
    for (int k = 0; k < 2; k++)
        snprintf(run[k], sizeof run[k], "%s/trail/run-%d", p->dir, k);
    assert_ok(cairn_compare(p->mpi, run[0], run[1], &how, &result));
    assert_int_equal(result.nmarks, MARKS);
    if (p->rank > 0) {
        assert_int_equal(c.nrows, 0);
        return;
    }
    assert_int_equal(c.nrows, MARKS * NVARS);
    /* up to the first difference, by this process alone: it must be the same one */
    how.all = false;
    how.row = NULL;
    assert_ok(cairn_compare(MPI_COMM_SELF, run[0], run[1], &how, &again));
    if (result.verdict == CAIRN_DIFFERENT) {
        assert_int_equal(again.first.version, result.first.version);
        assert_string_equal(again.first.variable, result.first.variable);
        assert_memory_equal(again.first.index, result.first.index, sizeof again.first.index);
        assert_string_equal(again.first.first, result.first.first);
    }
}

static turn random_turn(crn_rng *r, int nranks)
{
    static const struct {
        const char *capture, *ask;
        crn_bound bound;
    } how[] = {{"", NULL, {0, 0}},
               {"1e-4", NULL, {1e-4, 0}},
               {"1e-4, 1e-9", "1e-6", {1e-6, 0}},
               {"rel 1e-5", NULL, {0, 1e-5}},
               {"1e-6 rel 1e-3", NULL, {1e-6, 1e-3}},
               {"1e-3", "1e-5", {1e-5, 0}},
               {"1e-5", "1e-2 rel 1e-3", {1e-2, 1e-3}}};
    static const char *const block[] = {"1KiB", "4KiB", "64KiB"};
    static const int rarity[] = {0, 3000, 40, 1};
    const size_t k = crn_rng_below(r, sizeof how / sizeof *how);
    turn t = {.seed = crn_rng_u64(r),
              .rarity = rarity[crn_rng_below(r, 4)],
              .from = 1 + crn_rng_below(r, MARKS),
              .capture = how[k].capture,
              .ask = how[k].ask,
              .bound = how[k].bound,
              .nranks = {nranks, nranks},
              .trees = {crn_rng_below(r, 5) > 0, crn_rng_below(r, 5) > 0},
              .nan_differs = crn_rng_below(r, 4) == 0,
              .direct = crn_rng_below(r, 6) == 0};
    t.block[0] = t.block[1] = block[crn_rng_below(r, 3)];
    if (crn_rng_below(r, 6) == 0)
        t.block[1] = block[crn_rng_below(r, 3)];
    if (crn_rng_below(r, 3) == 0)
        t.nranks[crn_rng_below(r, 2)] = 1 + (int)crn_rng_below(r, (uint64_t)nranks);
    /* without the trees of both, nobody knows the bound that was captured with */
    if (!t.ask && !(t.trees[0] && t.trees[1]))
        t.ask = t.capture[0] ? t.capture : NULL;
    return t;
}

static void test_as_plain_comparison(void **state)
{
    crn_rng r = crn_rng_of(test_seed(), 6);
    const int nturns = crn_comm_size(*state) > 1 ? 16 : 40;
    for (int i = 0; i < nturns; i++) {
        place p;
        place_init(&p, *state, "");
        const turn t = random_turn(&r, p.nranks);
        take_marks(&p, &t, 0);
        take_marks(&p, &t, 1);
        check_turn(&p, &t);
        place_done(&p);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_plain_comparison)};
    return run_mpi_tests(argc, argv, tests);
}
