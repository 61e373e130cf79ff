/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Variables that are no piece of an array, of runs on different numbers of ranks: what all ranks of
 * each run hold alike is compared value by value, within bounds and as NaNs are asked for; of
 * anything else nobody knows what belongs to what.
 *
 * TEST: ranks 2 3
 * NEEDS: inih
 */
#include "harness/session.h"

#include <math.h>

enum { N = 300 };

/* What the ranks of a run hold. */
typedef struct held {
    double x[N];
    size_t n;       /* of them */
    double more;    /* that the last rank has at x[0] */
    bool only_last; /* has it */
} held;

static held ones(void)
{
    held h = {.n = N};
    for (int i = 0; i < N; i++)
        h.x[i] = 1;
    return h;
}

/* Take a mark on the first n ranks. */
static void take_mark(place *p, const char *name, int n, const held *h)
{
    MPI_Comm some;
    double x[N];
    memcpy(x, h->x, sizeof x);
    if (p->rank == n - 1)
        x[0] += h->more;
    MPI_Comm_split(MPI_COMM_WORLD, p->rank < n ? 0 : MPI_UNDEFINED, p->rank, &some);
    setenv("CAIRN_RUN_NAME", name, 1);
    if (p->rank < n) {
        cairn *c;
        assert_ok(cairn_open(some, p->config, &c));
        if (!h->only_last || p->rank == n - 1)
            assert_ok(cairn_protect(c, "x", x, CAIRN_FLOAT64, h->n));
        assert_ok(cairn_mark(c, 1, CAIRN_AUTO));
        assert_ok(cairn_close(c));
        MPI_Comm_free(&some);
    }
    unsetenv("CAIRN_RUN_NAME");
    assert_ok(crn_comm_barrier(p->comm));
}

typedef struct result {
    cairn_comparison sum;
    int nrows;
    cairn_comparison_row row;
    char text[CRN_ERR_TEXT];
} result;

static int on_row(void *arg, const cairn_comparison_row *r)
{
    result *res = arg;
    res->nrows++;
    res->row = *r;
    snprintf(res->text, sizeof res->text, "%s", r->text);
    return 0;
}

static result compare(place *p, const char *a, const char *b, cairn_comparison_options how)
{
    char run[2][96];
    result r = {.sum = {.struct_bytes = sizeof r.sum}};
    how.struct_bytes = sizeof how;
    how.nthreads = 2;
    how.row = on_row;
    how.arg = &r;
    snprintf(run[0], sizeof run[0], "%s/trail/%s", p->dir, a);
    snprintf(run[1], sizeof run[1], "%s/trail/%s", p->dir, b);
    assert_ok(cairn_compare(p->mpi, run[0], run[1], &how, &r.sum));
    return r;
}

/* Both ways, with trees and without. */
static void check(place *p, cairn_comparison_options how, cairn_verdict expected, const char *words)
{
    for (int i = 0; i < 4; i++) {
        how.direct = i % 2;
        const result r = compare(p, i < 2 ? "one" : "all", i < 2 ? "all" : "one", how);
        assert_int_equal(r.sum.verdict, expected);
        if (p->rank > 0)
            continue;
        assert_int_equal(r.nrows, 1);
        assert_non_null(strstr(r.text, words));
        if (expected == CAIRN_DIFFERENT)
            assert_true(r.row.ndiffering == 1 && r.row.nvalues == N && r.row.rank == 0);
    }
}

static void check_pair(void **state, const held *one, const held *all, cairn_comparison_options how,
                       cairn_verdict expected, const char *words)
{
    static const char *const settings[] = {
        "[level]\nlocal = trail\n[variable]\nblock = 1KiB\nbound = 1e-6\n",
        "[level]\nlocal = trail\n[variable]\nblock = 1KiB\n",
        "[level]\nlocal = trail\n[variable]\nblock = 1KiB\n[compare]\ntrees = no\n"};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        place p;
        place_init(&p, *state, settings[i]);
        take_mark(&p, "one", 1, one);
        take_mark(&p, "all", p.nranks, all);
        check(&p, how, expected, words);
        place_done(&p);
    }
}

static void test_equal(void **state)
{
    const held one = ones();
    check_pair(state, &one, &one, (cairn_comparison_options){0}, CAIRN_SAME, "");
}

static void test_within_a_bound(void **state)
{
    const held one = ones();
    held all = one;
    all.x[N - 1] += 1e-9;
    check_pair(state, &one, &all, (cairn_comparison_options){.bound = "1e-6"}, CAIRN_SAME, "");
    check_pair(state, &one, &all, (cairn_comparison_options){.bound = "1e-10"}, CAIRN_DIFFERENT,
               "values differ");
}

static void test_nans(void **state)
{
    held one = ones();
    one.x[7] = (double)NAN;
    check_pair(state, &one, &one, (cairn_comparison_options){.bound = "0"}, CAIRN_SAME, "");
    check_pair(state, &one, &one, (cairn_comparison_options){.nan_differs = true}, CAIRN_DIFFERENT,
               "values differ");
}

/* Ranks that do not agree among themselves, and sizes that depend on their number. */
static void test_not_alike(void **state)
{
    const held one = ones();
    held all = one;
    all.more = 1e-9;
    check_pair(state, &one, &all, (cairn_comparison_options){.bound = "1e-6"}, CAIRN_INCONCLUSIVE,
               "do not hold it alike");
    all.x[3] = 2; /* whatever the first ranks have */
    check_pair(state, &one, &all, (cairn_comparison_options){.bound = "1e-6"}, CAIRN_INCONCLUSIVE,
               "do not hold it alike");
    held fewer = one;
    fewer.n = N / 2;
    check_pair(state, &one, &fewer, (cairn_comparison_options){0}, CAIRN_INCONCLUSIVE, "values");
    held last = one;
    last.only_last = true;
    check_pair(state, &one, &last, (cairn_comparison_options){0}, CAIRN_INCONCLUSIVE,
               "does not have it");
}

/* --- while a run goes on --------------------------------------------------------------------- */

static bool diverges(place *p, int n, const held *h, cairn_divergence *ret)
{
    MPI_Comm some;
    char reference[160];
    double x[N];
    bool parted = false;
    memcpy(x, h->x, sizeof x);
    if (p->rank == n - 1)
        x[0] += h->more;
    *ret = (cairn_divergence){.struct_bytes = sizeof *ret};
    snprintf(reference, sizeof reference, "%s/trail/reference", p->dir);
    setenv("CAIRN_COMPARE_REFERENCE", reference, 1);
    setenv("CAIRN_RUN_NAME", "later", 1);
    MPI_Comm_split(MPI_COMM_WORLD, p->rank < n ? 0 : MPI_UNDEFINED, p->rank, &some);
    if (p->rank < n) {
        cairn *c;
        assert_ok(cairn_open(some, p->config, &c));
        assert_ok(cairn_protect(c, "x", x, CAIRN_FLOAT64, h->n));
        assert_ok(cairn_mark(c, 1, CAIRN_AUTO));
        assert_ok(cairn_settle(c));
        parted = cairn_diverged(c, ret);
        assert_ok(cairn_close(c));
        MPI_Comm_free(&some);
    }
    unsetenv("CAIRN_RUN_NAME");
    unsetenv("CAIRN_COMPARE_REFERENCE");
    assert_ok(crn_comm_barrier(p->comm));
    return parted;
}

/* Reference and run on one rank and all, or the other way round; rank 0 is in both. */
static bool diverges_from(void **state, bool swap, const held *then, const held *now)
{
    place p;
    cairn_divergence where;
    place_init(&p, *state, "[level]\nlocal = trail\n[variable]\nblock = 1KiB\nbound = 1e-6\n");
    take_mark(&p, "reference", swap ? p.nranks : 1, then);
    const bool parted = diverges(&p, swap ? 1 : p.nranks, now, &where);
    if (parted && p.rank == 0) {
        assert_string_equal(where.variable, "x");
        assert_int_equal(where.rank, 0);
        assert_int_equal(where.ndims, 1);
        assert_int_equal(where.index[0], 5);
        assert_string_equal(where.here, "2");
        assert_string_equal(where.there, "1");
    }
    int here = p.rank == 0 && parted, all = 0;
    MPI_Allreduce(&here, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    place_done(&p);
    return all;
}

static void test_reference(void **state)
{
    const held one = ones();
    held near = one, two = one, unlike = one;
    near.x[5] += 1e-9;
    two.x[5] = 2;
    unlike = two;
    unlike.more = 1;
    for (int swap = 0; swap < 2; swap++) {
        assert_false(diverges_from(state, swap, &one, &one));
        assert_false(diverges_from(state, swap, &one, &near));
        assert_true(diverges_from(state, swap, &one, &two));
    }
    assert_false(diverges_from(state, false, &one, &unlike)); /* the run's ranks do not agree */
    assert_false(diverges_from(state, true, &unlike, &one));  /* nor do the reference's */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal), cmocka_unit_test(test_within_a_bound),
        cmocka_unit_test(test_nans), cmocka_unit_test(test_not_alike),
        cmocka_unit_test(test_reference)};
    return run_mpi_tests(argc, argv, tests);
}
