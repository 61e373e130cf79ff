/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A run that keeps one mark is compared while it takes the next ones: the mark is dropped, and its
 * blocks are written over, when some have been read and others have not. That is no damage.
 *
 * TEST: ranks self
 * NEEDS: inih
 */
#include "harness/session.h"

enum { VALUES = 24 << 17 }; /* 24 MiB: more than a comparison has in memory at once */

typedef struct world {
    cairn *c; /* of the run that goes on */
    double *x;
    uint64_t version;
    char said[512];
    cairn_verdict verdict;
} world;

static void take_mark(world *w)
{
    for (size_t i = 0; i < VALUES; i++)
        w->x[i] = (double)(w->version * VALUES + i);
    assert_ok(cairn_mark(w->c, ++w->version, CAIRN_AUTO));
}

static void open_run(place *p, world *w, const char *name, const char *block)
{
    setenv("CAIRN_RUN_NAME", name, 1);
    setenv("CAIRN_VARIABLE_BLOCK", block, 1);
    assert_ok(cairn_open(p->mpi, p->config, &w->c));
    unsetenv("CAIRN_RUN_NAME");
    unsetenv("CAIRN_VARIABLE_BLOCK");
    w->version = 0;
    assert_ok(cairn_protect(w->c, "x", w->x, CAIRN_FLOAT64, VALUES));
    take_mark(w);
}

static void go_on(void *arg, uint64_t done_bytes, uint64_t total_bytes)
{
    world *w = arg;
    (void)total_bytes;
    while (done_bytes > 0 && w->version < 4)
        take_mark(w);
}

static int keep_row(void *arg, const cairn_comparison_row *row)
{
    world *w = arg;
    w->verdict = row->verdict;
    snprintf(w->said, sizeof w->said, "%s", row->text);
    return 0;
}

static void check_dropped(void **state, const char *block)
{
    place p;
    world w = {0};
    char run[2][96];
    cairn_comparison sum = {.struct_bytes = sizeof sum};
    const cairn_comparison_options how = {.struct_bytes = sizeof how,
                                          .direct = true,
                                          .nthreads = 1,
                                          .progress = go_on,
                                          .row = keep_row,
                                          .arg = &w};
    place_init(&p, *state,
               "[level]\nlocal = trail\n[keep]\nglobal = 1\n[mark]\nmode = synchronous\n");
    for (int k = 0; k < 2; k++)
        snprintf(run[k], sizeof run[k], "%s/trail/%c", p.dir, "ab"[k]);
    assert_ok(crn_alloc(&w.x, VALUES));
    open_run(&p, &w, "b", block);
    assert_ok(cairn_close(w.c));
    open_run(&p, &w, "a", "64KiB");
    assert_ok(cairn_compare(MPI_COMM_SELF, run[0], run[1], &how, &sum));
    assert_int_equal(w.verdict, CAIRN_UNPROVEN);
    if (!strstr(w.said, "went while it was read"))
        fail_msg("'%s'", w.said);
    assert_ok(cairn_close(w.c));
    free(w.x);
    place_done(&p);
}

static void test_same_cut(void **state)
{
    check_dropped(state, "64KiB");
}

static void test_other_cut(void **state)
{
    check_dropped(state, "4KiB");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_cut),
                                       cmocka_unit_test(test_other_cut)};
    return run_mpi_tests(argc, argv, tests);
}
