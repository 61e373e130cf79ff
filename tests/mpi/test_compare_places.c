/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Comparing runs whose ranks do not have the same variables: a global array is one array, whichever
 * ranks have its pieces; what only some ranks have of their own is told.
 *
 * TEST: ranks self 2 3
 * NEEDS: inih
 */
#include "harness/session.h"

enum { N = 3000, AWAY = 1777 };

/* Which ranks have pieces of the array. */
typedef enum spread { EVEN, FIRST, LAST } spread;

/* What the first row that is not the same says, and how many there are. */
typedef struct result {
    cairn_comparison sum;
    int nrows, nbad;
    cairn_comparison_row bad;
    char variable[32];
} result;

static int on_row(void *arg, const cairn_comparison_row *r)
{
    result *res = arg;
    res->nrows++;
    if (r->verdict == CAIRN_SAME || res->nbad++ > 0)
        return 0;
    res->bad = *r;
    snprintf(res->variable, sizeof res->variable, "%s", r->variable);
    return 0;
}

static void protect_array(cairn *c, double *x, spread how, int rank, int nranks)
{
    const uint64_t global = N;
    uint64_t first = N * (uint64_t)rank / (uint64_t)nranks;
    uint64_t n = N * (uint64_t)(rank + 1) / (uint64_t)nranks - first;
    if (how != EVEN) {
        if (rank != (how == FIRST ? 0 : nranks - 1))
            return;
        first = 0;
        n = N;
    }
    assert_ok(cairn_protect_part(c, "x", x + first, CAIRN_FLOAT64, 1, &global, &first, &n));
}

/* Take a mark; delta is added to one value, and a rank has a variable of its own, or none (-1). */
static void take_mark(place *p, const char *name, spread how, double delta, int owner)
{
    static double x[N];
    int32_t own[3] = {1, 2, 3};
    cairn *c;
    for (int i = 0; i < N; i++)
        x[i] = i;
    x[AWAY] += delta;
    setenv("CAIRN_RUN_NAME", name, 1);
    assert_ok(cairn_open(p->mpi, p->config, &c));
    protect_array(c, x, how, p->rank, p->nranks);
    if (p->rank == owner)
        assert_ok(cairn_protect(c, "own", own, CAIRN_INT32, 3));
    assert_ok(cairn_mark(c, 1, CAIRN_AUTO));
    assert_ok(cairn_close(c));
    unsetenv("CAIRN_RUN_NAME");
}

static result compare(place *p, const char *a, const char *b)
{
    char run[2][96];
    result r = {.sum = {.struct_bytes = sizeof r.sum}};
    const cairn_comparison_options how = {
        .struct_bytes = sizeof how, .all = true, .nthreads = 2, .row = on_row, .arg = &r};
    snprintf(run[0], sizeof run[0], "%s/trail/%s", p->dir, a);
    snprintf(run[1], sizeof run[1], "%s/trail/%s", p->dir, b);
    assert_ok(cairn_compare(p->mpi, run[0], run[1], &how, &r.sum));
    return r;
}

static const char *const settings = "[level]\nlocal = trail\n[mark]\nmode = synchronous\n"
                                    "[variable]\nblock = 1KiB\nbound = 1e-6\n";

static void test_array_of_any_ranks(void **state)
{
    static const char *const name[] = {"even", "first", "last"};
    place p;
    place_init(&p, *state, settings);
    for (int k = EVEN; k <= LAST; k++) {
        char other[32];
        snprintf(other, sizeof other, "%s-other", name[k]);
        take_mark(&p, name[k], (spread)k, 0, -1);
        take_mark(&p, other, (spread)k, 0.5, -1);
    }
    for (int i = 0; i < 9; i++) {
        char other[32];
        snprintf(other, sizeof other, "%s-other", name[i % 3]);
        const result same = compare(&p, name[i / 3], name[i % 3]);
        const result away = compare(&p, name[i / 3], other);
        assert_int_equal(same.sum.verdict, CAIRN_SAME);
        assert_int_equal(away.sum.verdict, CAIRN_DIFFERENT);
        if (p.rank > 0)
            continue;
        assert_true(same.nrows == 1 && away.nrows == 1);
        assert_true(away.bad.ndiffering == 1 && away.bad.nvalues == N);
        assert_true(away.bad.index[0] == AWAY && away.bad.max == 0.5);
    }
    place_done(&p);
}

/* A variable of its own that a rank has in one run only. */
static void test_own_of_one_rank(void **state)
{
    place p;
    place_init(&p, *state, settings);
    take_mark(&p, "with", EVEN, 0, p.nranks - 1);
    take_mark(&p, "without", LAST, 0, -1);
    const result first = compare(&p, "with", "without"), second = compare(&p, "without", "with");
    assert_int_equal(first.sum.verdict, CAIRN_ONLY_FIRST);
    assert_int_equal(second.sum.verdict, CAIRN_ONLY_SECOND);
    if (p.rank == 0) {
        assert_true(first.nbad == 1 && second.nbad == 1);
        assert_string_equal(first.variable, "own");
        assert_string_equal(second.variable, "own");
    }
    place_done(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_array_of_any_ranks),
                                       cmocka_unit_test(test_own_of_one_rank)};
    return run_mpi_tests(argc, argv, tests);
}
