/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Traces of each format, kept so that every later version is held to reading them: one program on
 * six ranks, a ring, a split, files and a torus, as the functions below say. Written by this
 * program, called with --write and linked with the version in question.
 *
 *     good-trace-1    peers relative to the rank
 *     good-trace-2    peers on a grid
 *     good-trace-3    a slow rank
 *     good-trace-4    where the program lay, and its build id
 *
 * NEEDS: zstd
 */
#include "harness/small_trace.h"

#include <cairn/traces.h>

enum { RANKS = 6, WIDTH = 3, SLOW = 4 };

static void torus(small_rank *x)
{
    int64_t right = x->rank - x->rank % WIDTH + (x->rank + 1) % WIDTH;
    for (int64_t i = 0; i < 50; i++) {
        x->now += x->rank == SLOW ? 3000 + (uint64_t)i : 1000 + (uint64_t)i;
        small_event(x, CRN_CALL_MPI_Send, 40, (int64_t[]){10 + i, 0, right, 1, 0});
        small_event(x, CRN_CALL_MPI_Send, 40, (int64_t[]){10, 0, (x->rank + WIDTH) % RANKS, 2, 0});
        small_event(x, CRN_CALL_MPI_Barrier, 41, (int64_t[]){0});
    }
}

static void program(small_rank *x)
{
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    for (int i = 0; i < 10; i++)
        small_ring(x, 8 * (x->rank + 1));
    torus(x);
    small_split(x);
    small_write(x);
    small_event(x, CRN_CALL_MPI_Finalize, 2, NULL);
}

/* The same events, whatever the numbers of places. */
static void expect_same(const crn_trace *all, const crn_trace *one, uint32_t rank)
{
    crn_walk *a, *b;
    crn_traced_event x, y;
    crn_buf text = {0}, want = {0};
    crn_trace_texts names_a = crn_names_of_trace(all), names_b = crn_names_of_trace(one);
    size_t n = 0;
    assert_ok(crn_walk_open(all, 0, rank, 0, &a));
    assert_ok(crn_walk_open(one, 0, rank, 0, &b));
    for (; crn_walk_next(b, &y); n++) {
        assert_true(crn_walk_next(a, &x));
        text.n = want.n = 0;
        crn_text_event(&text, &names_a, &x);
        crn_text_event(&want, &names_b, &y);
        assert_int_equal(text.n, want.n);
        assert_memory_equal(text.at, want.at, want.n);
    }
    assert_false(crn_walk_next(a, &x));
    assert_int_equal(n, 10 * 3 + 50 * 3 + 3 + SMALL_WRITES + 4);
    crn_walk_close(a);
    crn_walk_close(b);
    crn_buf_done(&text);
    crn_buf_done(&want);
}

static void expect_trace(const char *name)
{
    crn_trace *all;
    char path[256];
    snprintf(path, sizeof path, "%s/golden/%s", TESTS_DIR, name);
    assert_ok(crn_trace_load(path, &all));
    assert_int_equal(all->nranks, RANKS);
    assert_true(crn_trace_complete(all));
    assert_true(all->lasted > 0 && all->lane[0].took != NULL);
    for (uint32_t r = 0; r < RANKS; r++) {
        crn_trace *one = small_record(r, RANKS, 100, true, program);
        expect_same(all, one, r);
        crn_trace_free(one);
    }
    crn_trace_free(all);
}

static int on_contrast(void *arg, const cairn_trace_contrast *c)
{
    assert_string_equal(c->ranks, "4");
    assert_string_equal(c->to, "MPI_Send");
    assert_true(c->ratio > 1.8 && c->ratio < 2.1 && c->confidence > 0.99);
    *(int *)arg += 1;
    return 0;
}

static void test_slow_rank(void **state)
{
    cairn_trace *t;
    int n = 0;
    (void)state;
    assert_ok(cairn_trace_open(TESTS_DIR "/golden/good-trace-3", &t));
    assert_ok(cairn_trace_contrasts(t, on_contrast, &n));
    assert_int_equal(n, 1);
    cairn_trace_close(t);
}

static void test_good_traces(void **state)
{
    (void)state;
    expect_trace("good-trace-4");
    expect_trace("good-trace-3");
    expect_trace("good-trace-1");
    expect_trace("good-trace-2");
}

static const uint8_t build[] = {0xca, 0x00, 0x17, 0x42};

static void test_modules(void **state)
{
    crn_trace *t;
    (void)state;
    assert_ok(crn_trace_load(TESTS_DIR "/golden/good-trace-4", &t));
    assert_int_equal(t->nmodules, 1);
    assert_string_equal(t->string[t->module[0].name], "small");
    assert_string_equal(t->string[t->module[0].path], "MPI_DOUBLE");
    assert_int_equal(t->module[0].nbuild, sizeof build);
    assert_memory_equal(t->module[0].build, build, sizeof build);
    crn_trace_free(t);
}

/* The program lies in a file that has the only other name that its trace knows. */
static void write_trace(void)
{
    char path[256];
    crn_trace *t = small_merged(RANKS, 100, true, program);
    snprintf(path, sizeof path, "%s/golden/good-trace-%d", TESTS_DIR, CAIRN_TRACE_FORMAT);
    assert_ok(crn_alloc(&t->module, 1));
    t->nmodules = 1;
    t->module[0] = (crn_module){.name = 1, .path = 2, .nbuild = sizeof build};
    memcpy(t->module[0].build, build, sizeof build);
    assert_ok(crn_trace_save(t, path));
    crn_trace_free(t);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_good_traces),
                                       cmocka_unit_test(test_slow_rank),
                                       cmocka_unit_test(test_modules)};
    if (argc > 1 && strcmp(argv[1], "--write") == 0) {
        write_trace();
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
