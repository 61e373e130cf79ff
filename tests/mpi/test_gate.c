/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A golden file and a run that was taken in another way: each way has its verdict and a sentence
 * that names it, and what cannot be told is never taken for a difference, nor for the same.
 *
 * TEST: ranks self 2
 * NEEDS: inih
 */
#include "harness/session.h"

#include <math.h>

enum { N = 3000, MARKS = 2 };

/* How a run is taken. */
typedef struct way {
    const char *block, *leaf, *bound; /* NULL: as the golden one */
    uint64_t n;                       /* values of the array; 0: N */
    size_t own;                       /* values of each rank; 0: 100 */
    uint64_t nmarks;                  /* 0: MARKS */
    uint64_t cut;                     /* where the last rank's piece begins; 0: pieces are equal */
    double delta;                     /* that is added to the array */
    bool edge;                        /* all values lie on edges of the cells of a tree */
    double own_delta;                 /* that is added to a single one of each rank's own values */
    bool single, bare;                /* float32; without the ranks' own values */
    bool alone;                       /* by the first rank alone */
} way;

static void protect_array(cairn *c, const way *w, int rank, int nranks, double *x, float *y)
{
    const uint64_t n = w->n > 0 ? w->n : N, cut = w->cut > 0 ? w->cut : n / (uint64_t)nranks;
    const bool last = rank == nranks - 1;
    const uint64_t first = last && nranks > 1 ? cut * (uint64_t)rank : 0;
    const uint64_t count = last ? n - first : cut;
    for (uint64_t i = 0; i < count; i++) {
        x[i] = (double)(first + i) + w->delta + (w->edge ? 0x1p-21 : 0);
        y[i] = (float)x[i];
    }
    void *const data = w->single ? (void *)y : (void *)x;
    assert_ok(cairn_protect_part(c, "x", data, w->single ? CAIRN_FLOAT32 : CAIRN_FLOAT64, 1, &n,
                                 &first, &count));
}

static void take_marks(const way *w, MPI_Comm comm, int rank, int nranks, const char *config)
{
    static double x[2 * N], own[2 * N];
    static float y[2 * N];
    cairn *c;
    assert_ok(cairn_open(comm, config, &c));
    protect_array(c, w, rank, nranks, x, y);
    own[7] = w->own_delta;
    if (!w->bare)
        assert_ok(cairn_protect(c, "own", own, CAIRN_FLOAT64, w->own > 0 ? w->own : 100));
    for (uint64_t mark = 1; mark <= (w->nmarks > 0 ? w->nmarks : MARKS); mark++)
        assert_ok(cairn_mark(c, mark, CAIRN_AUTO));
    assert_ok(cairn_close(c));
}

static void make_run(place *p, const char *name, const way *w)
{
    setenv("CAIRN_RUN_NAME", name, 1);
    setenv("CAIRN_VARIABLE_BLOCK", w->block ? w->block : "1KiB", 1);
    setenv("CAIRN_COMPARE_LEAF", w->leaf ? w->leaf : "1KiB", 1);
    setenv("CAIRN_VARIABLE_BOUND", w->bound ? w->bound : "1e-6", 1);
    if (!w->alone)
        take_marks(w, p->mpi, p->rank, p->nranks, p->config);
    else if (p->rank == 0)
        take_marks(w, MPI_COMM_SELF, 0, 1, p->config);
    unsetenv("CAIRN_RUN_NAME");
    unsetenv("CAIRN_VARIABLE_BLOCK");
    unsetenv("CAIRN_COMPARE_LEAF");
    unsetenv("CAIRN_VARIABLE_BOUND");
    assert_ok(crn_comm_barrier(p->comm));
}

/* Hold such a run against the golden file, with a bound if one is given. */
static void check(place *p, const way *w, const char *bound, cairn_verdict verdict,
                  const char *words)
{
    char golden[96], run[96];
    cairn_comparison r = {.struct_bytes = sizeof r};
    const cairn_comparison_options how = {.struct_bytes = sizeof how, .bound = bound};
    snprintf(golden, sizeof golden, "%s/golden", p->dir);
    snprintf(run, sizeof run, "%s/trail/run", p->dir);
    make_run(p, "run", w);
    assert_ok(cairn_gate(p->mpi, golden, run, &how, &r));
    if (r.verdict != verdict)
        fail_msg("%d instead of %d: %s", (int)r.verdict, (int)verdict,
                 r.verdict > 0 ? r.first.text : "");
    if (words && !strstr(r.first.text, words))
        fail_msg("'%s' does not say '%s'", r.first.text, words);
    assert_ok(crn_comm_barrier(p->comm));
    if (p->rank == 0)
        remove_tree(run);
    assert_ok(crn_comm_barrier(p->comm));
}

static void place_with_golden(place *p, crn_comm *comm, const way *w, cairn_sketch sketch)
{
    char golden[96], run[96];
    const cairn_bless_options how = {.struct_bytes = sizeof how, .sketch = sketch};
    cairn_bless_result made = {.struct_bytes = sizeof made};
    place_init(p, comm,
               "[level]\nlocal = trail\n[mark]\nmode = synchronous\n[keep]\nglobal = all\n");
    snprintf(golden, sizeof golden, "%s/golden", p->dir);
    snprintf(run, sizeof run, "%s/trail/first", p->dir);
    make_run(p, "first", w);
    if (p->rank == 0) {
        assert_ok(cairn_bless_as(run, golden, &how, &made));
        assert_int_equal(made.nmarks, MARKS);
        assert_int_equal(made.nsketched, sketch == CAIRN_SKETCH_NONE ? 0 : MARKS);
        assert_int_equal(made.sketch_bytes > 0, sketch != CAIRN_SKETCH_NONE);
        assert_true(made.file_bytes > made.sketch_bytes && made.nbytes > 0);
    }
    assert_ok(crn_comm_barrier(p->comm));
}

/* Trees alone: noise that crosses an edge is not proven equal, and never called a difference. */
static void test_trees_that_can_be_compared(void **state)
{
    place p;
    place_with_golden(&p, *state, &(way){.delta = 0}, CAIRN_SKETCH_NONE);
    check(&p, &(way){.delta = 0}, NULL, CAIRN_SAME, NULL);
    check(&p, &(way){.delta = 1e-12}, NULL, CAIRN_SAME, NULL);
    check(&p, &(way){.delta = 0.5}, NULL, CAIRN_UNPROVEN, "not proven equal");
    check(&p, &(way){.delta = 1e-12}, "0", CAIRN_UNPROVEN, "not proven equal");
    check(&p, &(way){.delta = 1e-12}, "1e-3", CAIRN_SAME, NULL);
    check(&p, &(way){.bound = "1e-2, 1e-6", .delta = 1e-12}, NULL, CAIRN_SAME, NULL);
    check(&p, &(way){.bound = "1e-3"}, NULL, CAIRN_SAME, NULL);
    check(&p, &(way){.edge = true}, NULL, CAIRN_SAME, NULL); /* rounded to even: the same cells */
    check(&p, &(way){.edge = true, .delta = 1e-12}, NULL, CAIRN_UNPROVEN, "no values to look at");
    check(&p, &(way){.block = "4KiB"}, NULL, CAIRN_SAME, NULL);
    /* the golden file dictates its leaves: the run's data is cut into them */
    check(&p, &(way){.leaf = "4KiB", .delta = 1e-12}, NULL, CAIRN_SAME, NULL);
    check(&p, &(way){.leaf = "4KiB", .block = "16KiB"}, NULL, CAIRN_SAME, NULL);
    check(&p, &(way){.leaf = "4KiB", .delta = 0.5}, NULL, CAIRN_UNPROVEN, "not proven equal");
    place_done(&p);
}

/* With a sketch noise does not matter, nor which bounds the run has; and much can be proven. */
static void test_sketches(void **state)
{
    static const cairn_sketch kind[] = {CAIRN_SKETCH_BYTES, CAIRN_SKETCH_BITS};
    for (size_t i = 0; i < 2; i++) {
        place p;
        place_with_golden(&p, *state, &(way){.edge = true}, kind[i]);
        check(&p, &(way){.edge = true}, NULL, CAIRN_SAME, NULL);
        check(&p, &(way){.edge = true, .delta = 1e-12}, NULL, CAIRN_SAME, NULL);
        check(&p, &(way){.edge = true, .delta = -1e-8}, NULL, CAIRN_SAME, NULL);
        check(&p, &(way){.edge = true, .delta = 1e-12}, "1e-3", CAIRN_SAME, NULL);
        check(&p, &(way){.edge = true, .bound = "1e-3", .delta = 1e-12}, NULL, CAIRN_SAME, NULL);
        check(&p, &(way){.edge = true, .bound = "", .delta = 1e-12}, NULL, CAIRN_SAME, NULL);
        check(&p, &(way){.edge = true, .delta = 0.9e-6}, NULL, CAIRN_UNPROVEN, "not proven equal");
        check(&p, &(way){.edge = true, .delta = 1e-12}, "1e-9", CAIRN_INCONCLUSIVE, "within 1e-09");
        check(&p, &(way){.edge = true, .delta = 0.5}, NULL, CAIRN_DIFFERENT, "smallest ones do");
        check(&p, &(way){.edge = true, .delta = 1e-12}, "0", CAIRN_DIFFERENT, "the last bit");
        check(&p, &(way){.edge = true, .own_delta = (double)NAN}, NULL, CAIRN_DIFFERENT, "NaNs");
        check(&p, &(way){.edge = true, .own_delta = -0.0}, "0", CAIRN_SAME, NULL);
        place_done(&p);
    }
}

static void test_trees_that_cannot(void **state)
{
    place p;
    place_with_golden(&p, *state, &(way){.delta = 0}, CAIRN_SKETCH_NONE);
    check(&p, &(way){.bound = "1e-3", .delta = 1e-12}, NULL, CAIRN_INCONCLUSIVE,
          "no trees of a common");
    check(&p, &(way){.bound = "", .delta = 1e-12}, NULL, CAIRN_INCONCLUSIVE,
          "has none; set variable.b");
    check(&p, &(way){.delta = 1e-12}, "1e-9", CAIRN_INCONCLUSIVE, "common bound within 1e-09");
    if (p.nranks > 1) {
        setenv("CAIRN_KEEP_GLOBAL", "1", 1); /* of the first mark there are trees alone */
        check(&p, &(way){.alone = true}, NULL, CAIRN_INCONCLUSIVE, "numbers of ranks");
        check(&p, &(way){.cut = 700}, NULL, CAIRN_INCONCLUSIVE, "other pieces of it");
        unsetenv("CAIRN_KEEP_GLOBAL");
    }
    place_done(&p);
}

/* On other ranks, or in other pieces, the run's values are put together as the golden file's are:
 * all that can be proven on the same ones can be here. */
static void check_elsewhere(place *p, way w, cairn_sketch sketch)
{
    const bool sketched = sketch != CAIRN_SKETCH_NONE;
    check(p, &w, NULL, CAIRN_SAME, NULL);
    w.delta = 1e-12;
    check(p, &w, NULL, sketched ? CAIRN_SAME : CAIRN_UNPROVEN, NULL);
    check(p, &w, "1e-3", sketched ? CAIRN_SAME : CAIRN_UNPROVEN, NULL);
    check(p, &w, "0", sketched ? CAIRN_DIFFERENT : CAIRN_UNPROVEN, NULL);
    w.delta = 0.5;
    check(p, &w, NULL, sketched ? CAIRN_DIFFERENT : CAIRN_UNPROVEN, NULL);
    w.delta = 0;
    w.own_delta = 1;
    check(p, &w, NULL, sketched ? CAIRN_DIFFERENT : CAIRN_UNPROVEN, NULL);
}

static void test_other_ranks_and_pieces(void **state)
{
    static const cairn_sketch kind[] = {CAIRN_SKETCH_BYTES, CAIRN_SKETCH_BITS, CAIRN_SKETCH_NONE};
    for (size_t i = 0; i < 3; i++) {
        place p;
        place_with_golden(&p, *state, &(way){.edge = true}, kind[i]);
        check_elsewhere(&p, (way){.edge = true, .alone = true}, kind[i]);
        check_elsewhere(&p, (way){.edge = true, .alone = true, .block = "4KiB"}, kind[i]);
        if (p.nranks > 1)
            check_elsewhere(&p, (way){.edge = true, .cut = 701, .leaf = "4KiB"}, kind[i]);
        place_done(&p);
        place_with_golden(&p, *state, &(way){.edge = true, .alone = true}, kind[i]);
        check_elsewhere(&p, (way){.edge = true, .cut = 701}, kind[i]);
        place_done(&p);
    }
}

static void test_programs_that_changed(void **state)
{
    place p;
    place_with_golden(&p, *state, &(way){.delta = 0}, CAIRN_SKETCH_NONE);
    check(&p, &(way){.n = N + 2}, NULL, CAIRN_DIFFERENT, "it is an array of 3000 in");
    check(&p, &(way){.own = 99}, NULL, CAIRN_DIFFERENT, "rank 0 has 100 values in");
    check(&p, &(way){.single = true}, NULL, CAIRN_DIFFERENT, "its type is float64 in");
    check(&p, &(way){.bare = true}, NULL, CAIRN_ONLY_FIRST, "rank 0 has it in");
    check(&p, &(way){.nmarks = 1}, NULL, CAIRN_ONLY_FIRST, "does not have it");
    check(&p, &(way){.nmarks = 3}, NULL, CAIRN_ONLY_SECOND, "does not have it");
    place_done(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trees_that_can_be_compared), cmocka_unit_test(test_sketches),
        cmocka_unit_test(test_trees_that_cannot), cmocka_unit_test(test_other_ranks_and_pieces),
        cmocka_unit_test(test_programs_that_changed)};
    return run_mpi_tests(argc, argv, tests);
}
