/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The result of a comparison does not depend on how many threads and processes made it: every
 * number to the last bit, and every sentence. Variables are large enough to be shared by threads,
 * and values differ on both sides of where they are cut.
 *
 * TEST: ranks self 2
 * NEEDS: inih random123
 */
#include "harness/session.h"

#include <inttypes.h>
#include <math.h>

enum {
    MIB = 1 << 20,
    BATCH = MIB / sizeof(double), /* values that a thread takes together */
    VALUES = 9 * BATCH + 77,      /* more than one of them at once; the last block is not full */
    NOISY = 500,                  /* one of so many values differs */
    ROWS = 8
};

static const char *const settings = "[level]\nlocal = trail\n[mark]\nmode = synchronous\n"
                                    "[variable]\nbound = 1e-6\n";

/* What belongs to a rank; one value after the other is part of a global array, too. */
typedef struct memory {
    double *whole, *own, *hurt;
} memory;

static uint64_t offset_of(int rank)
{
    return (uint64_t)rank * VALUES;
}

/* A number below 1 that follows from i; quick, as there are millions. */
static double some_value(uint64_t seed, uint64_t i)
{
    return (double)((seed + i) * 0x9e3779b97f4a7c15 >> 11) * 0x1p-53;
}

static void memory_init(memory *m, int rank)
{
    static const double scale[] = {1e-300, 1e-20, 1, 1e20, 1e120};
    const uint64_t seed = test_seed();
    assert_ok(crn_alloc(&m->whole, VALUES));
    assert_ok(crn_alloc(&m->own, VALUES));
    assert_ok(crn_alloc(&m->hurt, VALUES));
    for (size_t i = 0; i < VALUES; i++) {
        m->hurt[i] = (double)(offset_of(rank) + i) + 0.25;
        m->whole[i] = some_value(seed, offset_of(rank) + i);
        m->own[i] = m->whole[i] * scale[i % 5];
    }
}

static void memory_done(memory *m)
{
    free(m->whole);
    free(m->own);
    free(m->hurt);
}

/* Differences of all sizes anywhere, and a stretch of them across each cut. */
static void disturb(memory *m, int rank)
{
    crn_rng r = crn_rng_of(test_seed() + 1, (uint64_t)rank);
    for (size_t i = 10 + crn_rng_below(&r, NOISY); i < VALUES; i += crn_rng_below(&r, NOISY)) {
        m->whole[i] += ldexp(crn_rng_unit(&r), (int)crn_rng_below(&r, 60) - 50);
        m->own[i] *= 1 + crn_rng_unit(&r);
    }
    for (size_t cut = BATCH; cut < VALUES; cut += BATCH)
        for (size_t i = cut - 3; i < cut + 3; i++)
            m->whole[i] += 0.1;
}

/* --- runs ----------------------------------------------------------------------------------- */

static void take_mark(place *p, memory *m, const char *name)
{
    cairn *c;
    const uint64_t global = (uint64_t)p->nranks * VALUES, offset = offset_of(p->rank);
    const uint64_t count = VALUES;
    setenv("CAIRN_RUN_NAME", name, 1);
    assert_ok(cairn_open(p->mpi, p->config, &c));
    assert_ok(cairn_protect_part(c, "whole", m->whole, CAIRN_FLOAT64, 1, &global, &offset, &count));
    assert_ok(cairn_protect(c, "own", m->own, CAIRN_FLOAT64, VALUES));
    assert_ok(cairn_protect(c, "hurt", m->hurt, CAIRN_FLOAT64, VALUES));
    assert_ok(cairn_mark(c, 1, CAIRN_AUTO));
    assert_ok(cairn_close(c));
    unsetenv("CAIRN_RUN_NAME");
}

/* --- results -------------------------------------------------------------------------------- */

/* A row, and all that it says as a line: doubles to the last bit. */
typedef struct kept_row {
    cairn_comparison_row row;
    char line[1000];
} kept_row;

typedef struct result {
    size_t n;
    kept_row at[ROWS];
} result;

static int on_row(void *arg, const cairn_comparison_row *r)
{
    result *res = arg;
    assert_true(res->n < ROWS);
    kept_row *k = &res->at[res->n++];
    k->row = *r;
    k->row.variable = k->row.type = k->row.bound = k->row.text = NULL; /* they do not last */
    snprintf(k->line, sizeof k->line,
             "%s %s %s %d '%s' %" PRIu64 "/%" PRIu64 " max %a rms %a at %d %u [%" PRIu64
             "] %s %s from %" PRIu64 " to %" PRIu64 " of %" PRIu64 ", blocks %" PRIu64 " %" PRIu64
             " %" PRIu64 " %" PRIu64,
             r->variable, r->type, r->bound, (int)r->verdict, r->text, r->ndiffering, r->nvalues,
             r->max, r->rms, r->placed, r->rank, r->index[0], r->first, r->second, r->low[0],
             r->high[0], r->shape[0], r->nblocks, r->nflagged, r->nfalse, r->read_bytes);
    return 0;
}

static void compare(place *p, MPI_Comm comm, unsigned nthreads, bool direct, result *ret)
{
    char run[2][96];
    ret->n = 0;
    cairn_comparison_options how = {.struct_bytes = sizeof how,
                                    .all = true,
                                    .direct = direct,
                                    .nthreads = nthreads,
                                    .row = on_row,
                                    .arg = ret};
    cairn_comparison sum = {.struct_bytes = sizeof sum};
    snprintf(run[0], sizeof run[0], "%s/trail/a", p->dir);
    snprintf(run[1], sizeof run[1], "%s/trail/b", p->dir);
    assert_ok(cairn_compare(comm, run[0], run[1], &how, &sum));
}

static const kept_row *find(const result *r, const char *variable)
{
    for (size_t i = 0; i < r->n; i++)
        if (strncmp(r->at[i].line, variable, strlen(variable)) == 0)
            return &r->at[i];
    fail_msg("there is no row of '%s'", variable);
    return NULL;
}

static void check_same(const result *a, const result *b)
{
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++)
        assert_string_equal(a->at[i].line, b->at[i].line);
}

/* The whole array of both runs, as a plain loop sees them. */
static void check_whole(place *p, const kept_row *k)
{
    uint64_t n = 0, first = UINT64_MAX, last = 0;
    double max = 0, squares = 0;
    for (int rank = 0; rank < p->nranks; rank++) {
        memory a, b;
        memory_init(&a, rank);
        memory_init(&b, rank);
        disturb(&b, rank);
        for (size_t i = 0; i < VALUES; i++) {
            const double far = fabs(a.whole[i] - b.whole[i]);
            if (far <= 1e-6)
                continue;
            n++;
            first = CRN_MIN(first, offset_of(rank) + i);
            last = offset_of(rank) + i;
            max = fmax(max, far);
            squares += far * far;
        }
        memory_done(&a);
        memory_done(&b);
    }
    assert_int_equal(k->row.verdict, CAIRN_DIFFERENT);
    assert_int_equal(k->row.ndiffering, n);
    assert_int_equal(k->row.index[0], first);
    assert_int_equal(k->row.low[0], first);
    assert_int_equal(k->row.high[0], last);
    assert_true(k->row.max == max);
    assert_true(fabs(k->row.rms / sqrt(squares / (double)n) - 1) < 1e-9);
}

/* The first damaged block is told, whoever came upon one first. */
static void check_hurt(const kept_row *k)
{
    assert_int_equal(k->row.verdict, CAIRN_INCONCLUSIVE);
    assert_non_null(strstr(k->line, "block 17 of rank 0 is damaged"));
}

static void make_runs(place *p)
{
    memory m;
    const uint64_t block = 65536 / sizeof(double);
    memory_init(&m, p->rank);
    take_mark(p, &m, "a");
    disturb(&m, p->rank);
    take_mark(p, &m, "b");
    place_damage(p, "a", p->rank, m.hurt[17 * block + 5]);
    place_damage(p, "b", p->rank, m.hurt[(VALUES - 1) / block * block]);
    place_damage(p, "b", p->rank, m.hurt[100 * block]);
    memory_done(&m);
    assert_ok(crn_comm_barrier(p->comm));
}

static void test_same_by_any_number_of_threads(void **state)
{
    static const unsigned nthreads[] = {1, 2, 7};
    place p;
    place_init(&p, *state, settings);
    make_runs(&p);
    for (int direct = 0; direct < 2; direct++) {
        static result first, other;
        for (int i = 0; i < 6; i++) {
            compare(&p, i % 2 ? p.mpi : MPI_COMM_SELF, nthreads[i / 2], direct, &other);
            if (i == 0)
                first = other;
            else if (i % 2 == 0 || p.rank == 0) /* otherwise only the first process is told */
                check_same(&first, &other);
        }
        assert_int_equal(first.n, 3);
        if (p.rank == 0)
            check_whole(&p, find(&first, "whole"));
        assert_true(find(&first, "own")->row.ndiffering > 0);
        if (direct)
            check_hurt(find(&first, "hurt"));
        else
            assert_int_equal(find(&first, "hurt")->row.verdict, CAIRN_SAME);
    }
    place_done(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_by_any_number_of_threads)};
    return run_mpi_tests(argc, argv, tests);
}
