/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Trees have leaves of their own: runs of equal data are proven equal by them whatever the size of
 * blocks, also where only some blocks of a leaf are written, in marks for comparing only, after a
 * restart, and for pieces that lie in larger memory. Of runs that differ only the neighbourhood of
 * what differs is read.
 *
 * TEST: ranks self 2
 * NEEDS: inih random123
 */
#include "harness/session.h"

#include <cairn/compare.h>
#include <math.h>

enum { N = 80000, ROWS = 300, COLUMNS = 100, AROUND = 3, STEPS = 6, LEAF = 64 << 10 };

static const char *const block[] = {"1KiB", "16KiB", "64KiB", "512KiB", "auto"};
enum { NBLOCKS = sizeof block / sizeof *block };

typedef struct values {
    double x[N];                                                /* with bounds */
    int32_t plain[N];                                           /* without */
    double field[(ROWS + 2 * AROUND) * (COLUMNS + 2 * AROUND)]; /* a piece in larger memory */
} values;

static void protect(cairn *c, const place *p, values *s)
{
    const cairn_piece piece = {.struct_bytes = sizeof piece,
                               .ndims = 2,
                               .global = {ROWS * (uint64_t)p->nranks, COLUMNS},
                               .offset = {ROWS * (uint64_t)p->rank, 0},
                               .count = {ROWS, COLUMNS},
                               .before = {AROUND, AROUND},
                               .after = {AROUND, AROUND}};
    assert_ok(cairn_protect(c, "x", s->x, CAIRN_FLOAT64, N));
    assert_ok(cairn_protect(c, "plain", s->plain, CAIRN_INT32, N));
    assert_ok(cairn_protect_piece(c, "field", s->field, CAIRN_FLOAT64, &piece));
}

/* The state of a step follows from that of the step before: few values change, some become NaN. */
static void advance(values *s, uint64_t step, double away)
{
    crn_rng rng = crn_rng_of(step, 7);
    for (int i = 0; i < 9; i++) {
        s->x[crn_rng_below(&rng, N)] += (double)step;
        s->plain[crn_rng_below(&rng, N)] += (int32_t)step;
        s->field[crn_rng_below(&rng, sizeof s->field / sizeof *s->field)] += 0.25 * (double)step;
    }
    if (step == 2)
        s->x[N / 3] = NAN;
    if (step == 4)
        s->x[N / 2] += away;
}

static void set_up(const char *name, const char *size, const char *trees)
{
    setenv("CAIRN_RUN_NAME", name, 1);
    setenv("CAIRN_VARIABLE_BLOCK", size, 1);
    setenv("CAIRN_COMPARE_LEAF", trees, 1);
}

static void clear_up(void)
{
    unsetenv("CAIRN_RUN_NAME");
    unsetenv("CAIRN_VARIABLE_BLOCK");
    unsetenv("CAIRN_COMPARE_LEAF");
}

/* Steps 1 to STEPS: the third is marked for comparing only, and before the fifth the program is
 * started again. away: how far a value is off from the fourth on. */
static void make_run(const place *p, const char *name, const char *size, const char *leaf,
                     double away)
{
    values *s;
    cairn *c;
    uint64_t version;
    assert_ok(crn_alloc(&s, 1));
    set_up(name, size, leaf);
    assert_ok(cairn_open(p->mpi, p->config, &c));
    protect(c, p, s);
    for (uint64_t step = 1; step <= STEPS; step++) {
        if (step == 5) {
            assert_ok(cairn_settle(c));
            leave_session(c);
            assert_ok(cairn_open(p->mpi, p->config, &c));
            protect(c, p, s);
            assert_ok(cairn_resume(c, &version));
            assert_int_equal(version, 4);
        }
        advance(s, step, away);
        assert_ok(step == 3 ? cairn_mark_trees(c, step) : cairn_mark(c, step, CAIRN_LEVEL_GLOBAL));
    }
    assert_ok(cairn_close(c));
    clear_up();
    free(s);
}

static cairn_comparison compare(const place *p, const char *a, const char *b)
{
    char run[2][96];
    cairn_comparison r = {.struct_bytes = sizeof r};
    const cairn_comparison_options how = {.struct_bytes = sizeof how, .all = true, .nthreads = 2};
    snprintf(run[0], sizeof run[0], "%s/trail/%s", p->dir, a);
    snprintf(run[1], sizeof run[1], "%s/trail/%s", p->dir, b);
    assert_ok(cairn_compare(p->mpi, run[0], run[1], &how, &r));
    return r;
}

static const char *const settings = "[level]\nlocal = trail\n[keep]\nglobal = all\n"
                                    "[variable x]\nbound = 1e-3, 1e-9\n"
                                    "[variable field]\nbound = 1e-6\n";

static void test_other_blocks_prove_as_much(void **state)
{
    place p;
    place_init(&p, *state, settings);
    for (size_t i = 0; i < NBLOCKS; i++)
        make_run(&p, block[i], block[i], "64KiB", 0);
    for (size_t i = 0; i < NBLOCKS * NBLOCKS; i++) {
        const cairn_comparison r = compare(&p, block[i / NBLOCKS], block[i % NBLOCKS]);
        assert_int_equal(r.verdict, CAIRN_SAME);
        assert_int_equal(r.nmarks, STEPS);
        assert_int_equal(r.read_bytes, 0);
    }
    place_done(&p);
}

/* One value that differs: its leaf is read, in as many blocks as hold it. */
static void test_only_the_neighbourhood_is_read(void **state)
{
    place p;
    place_init(&p, *state, settings);
    for (size_t i = 0; i < NBLOCKS; i++) {
        char away[32];
        snprintf(away, sizeof away, "%s-away", block[i]);
        make_run(&p, block[i], block[i], "64KiB", 0);
        make_run(&p, away, block[i], "64KiB", 0.5);
    }
    for (size_t i = 0; i < NBLOCKS; i++) {
        const cairn_comparison r = compare(&p, block[i], "16KiB-away");
        const cairn_comparison back = compare(&p, "16KiB-away", block[i]);
        const uint64_t largest = i == 3 ? 512 << 10 : LEAF; /* of a leaf's blocks, in one run */
        assert_int_equal(r.verdict, CAIRN_DIFFERENT);
        assert_int_equal(r.first.version, 4);
        assert_int_equal(r.first.index[0], N / 2);
        assert_true(r.first.ndiffering == (uint64_t)p.nranks &&
                    r.first.nflagged == r.first.ndiffering);
        assert_int_equal(r.first.nfalse, 0);
        assert_int_equal(r.first.max, 0.5);
        assert_true(r.first.read_bytes > 0);
        assert_true(r.first.read_bytes <= (uint64_t)p.nranks * (largest + LEAF));
        assert_int_equal(back.first.read_bytes, r.first.read_bytes);
        assert_int_equal(back.first.index[0], r.first.index[0]);
    }
    place_done(&p);
}

/* Without trees of the same leaves the bound that both runs have counts all the same. Only of the
 * mark for comparing, which has no data, nothing is known. */
static void test_other_leaves_have_the_bound(void **state)
{
    place p;
    place_init(&p, *state, settings);
    make_run(&p, "coarse", "64KiB", "64KiB", 0);
    make_run(&p, "fine", "64KiB", "4KiB", 1e-4);
    const cairn_comparison r = compare(&p, "coarse", "fine");
    assert_int_equal(r.verdict, CAIRN_UNPROVEN);
    place_done(&p);
}

/* The reference says how its trees are cut. */
static void test_reference_dictates_leaves(void **state)
{
    place p;
    char reference[96];
    place_init(&p, *state, settings);
    make_run(&p, "fine", "1KiB", "4KiB", 0);
    snprintf(reference, sizeof reference, "%s/trail/fine", p.dir);
    setenv("CAIRN_COMPARE_REFERENCE", reference, 1);
    make_run(&p, "other", "16KiB", "64KiB", 0);
    unsetenv("CAIRN_COMPARE_REFERENCE");
    const cairn_comparison r = compare(&p, "fine", "other");
    assert_int_equal(r.verdict, CAIRN_SAME);
    assert_int_equal(r.read_bytes, 0);
    place_done(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_other_blocks_prove_as_much),
                                       cmocka_unit_test(test_only_the_neighbourhood_is_read),
                                       cmocka_unit_test(test_other_leaves_have_the_bound),
                                       cmocka_unit_test(test_reference_dictates_leaves)};
    return run_mpi_tests(argc, argv, tests);
}
