/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program whose configuration names codecs: its marks take less, at every level, and whatever
 * else a mark is good for goes on as before.
 *
 * TEST: ranks self 2 4
 *
 * NEEDS: lz4 zstd zfp fpzip
 */
#include "harness/session.h"

#include <math.h>

enum { N = 60000, STEPS = 6 };

typedef struct memory {
    double smooth[N]; /* what fpzip is made for */
    int32_t few[N];   /* few are not 0 */
    uint8_t raw[4096];
    uint64_t step;
} memory;

static memory now;

/* Part of it changes from step to step. */
static void compute(int rank, uint64_t step)
{
    now.step = step;
    for (size_t i = 0; i < N; i++)
        if (step == 1 || i / 5000 == step % 12)
            now.smooth[i] = (double)step + 100 * sin((double)(i + (size_t)rank * N) / 3000);
    now.few[step * 977 % N] = (int32_t)step;
    now.raw[step] = (uint8_t)rank;
}

static cairn *open_session(const place *p)
{
    cairn *c;
    assert_ok(cairn_open(p->mpi, p->config, &c));
    assert_ok(cairn_protect(c, "smooth", now.smooth, CAIRN_FLOAT64, N));
    assert_ok(cairn_protect(c, "few", now.few, CAIRN_INT32, N));
    assert_ok(cairn_protect(c, "raw", now.raw, CAIRN_UINT8, sizeof now.raw));
    assert_ok(cairn_protect(c, "step", &now.step, CAIRN_UINT64, 1));
    return c;
}

static void take_marks(const place *p, const char *name, bool leaves)
{
    setenv("CAIRN_RUN_NAME", name, 1);
    memset(&now, 0, sizeof now);
    cairn *c = open_session(p);
    for (uint64_t step = 1; step <= STEPS; step++) {
        compute(p->rank, step);
        assert_ok(cairn_mark(c, step, step == STEPS ? CAIRN_LEVEL_GLOBAL : CAIRN_AUTO));
    }
    if (leaves)
        leave_session(c);
    else
        assert_ok(cairn_close(c));
    unsetenv("CAIRN_RUN_NAME");
}

/* All levels that there are nodes for are used. */
static void begin(place *p, crn_comm *comm)
{
    char text[1024];
    snprintf(text, sizeof text,
             "[level]\nlocal = @/local\nnode_size = 1\npartner = %d\nglobal = 3\n"
             "[keep]\nlocal = all\nglobal = all\n[variable]\nblock = 16KiB\ncodec = zstd\n"
             "[variable smooth]\ncodec = fpzip\n[variable raw]\ncodec = none\n"
             "[variable few]\ncodec = auto:space\n[codec]\nthreads = 3\n",
             crn_comm_size(comm) > 1 ? 2 : 0);
    place_init(p, comm, text);
}

/* The first mark that is in the trail, where it has all of its blocks. */
static size_t first_in_trail(cairn_trail *t, size_t run)
{
    for (size_t i = 0;; i++) {
        cairn_mark_info m = {.struct_bytes = sizeof m};
        assert_ok(cairn_trail_mark(t, run, i, &m));
        if (m.levels & 8)
            return i;
    }
}

/* The share of its bytes that a variable of rank 0 took there. */
static double stored_share(const place *p, const char *run, const char *variable)
{
    char path[96];
    cairn_trail *t;
    size_t r;
    double share = -1;
    snprintf(path, sizeof path, "%s/trail", p->dir);
    assert_ok(cairn_trail_open(path, &t));
    assert_ok(cairn_trail_find_run(t, run, &r));
    const size_t mark = first_in_trail(t, r);
    for (size_t i = 0; i < 4; i++) {
        cairn_variable_info v = {.struct_bytes = sizeof v};
        assert_ok(cairn_trail_variable(t, r, mark, 0, i, &v));
        if (strcmp(v.name, variable) == 0)
            share = (double)v.stored_bytes / (double)v.nbytes;
    }
    assert_ok(cairn_trail_verify(t, r, CAIRN_ALL_MARKS, NULL, NULL));
    cairn_trail_close(t);
    return share;
}

static void check_memory(int rank)
{
    static memory found;
    found = now;
    memset(&now, 0, sizeof now);
    for (uint64_t step = 1; step <= STEPS; step++)
        compute(rank, step);
    assert_memory_equal(&found, &now, sizeof now);
}

static void resume(const place *p)
{
    uint64_t version;
    memset(&now, 0x77, sizeof now);
    cairn *c = open_session(p);
    assert_ok(cairn_resume(c, &version));
    assert_int_equal(version, STEPS);
    check_memory(p->rank);
    leave_session(c);
    assert_ok(crn_comm_barrier(p->comm));
}

static void remove_below(const place *p, const char *name)
{
    char path[128];
    assert_ok(crn_comm_barrier(p->comm));
    snprintf(path, sizeof path, "%s/%s", p->dir, name);
    if (p->rank == 0)
        remove_tree(path);
    assert_ok(crn_comm_barrier(p->comm));
}

static void test_resume_from_each_level(void **state)
{
    place p;
    begin(&p, *state);
    take_marks(&p, "run-1", true);
    if (p.rank == 0) {
        assert_true(stored_share(&p, "run-1", "smooth") < 0.9);
        assert_true(stored_share(&p, "run-1", "few") < 0.1);
        assert_true(stored_share(&p, "run-1", "raw") == 1);
    }
    resume(&p);
    if (p.nranks > 1)
        remove_below(&p, "local/node-1"); /* the partner has it */
    resume(&p);
    remove_below(&p, "local");
    resume(&p);
    place_done(&p);
}

/* One that stores blocks as they are, and one that does not: the same, for trees and for values. */
static void test_comparing_does_not_notice(void **state)
{
    for (int direct = 0; direct < 2; direct++) {
        place p;
        char run[2][96];
        place_init(&p, *state, "[level]\nlocal = trail\n[keep]\nglobal = all\n");
        take_marks(&p, "a", false);
        assert_int_equal(setenv("CAIRN_VARIABLE_CODEC", "zstd", 1), 0);
        take_marks(&p, "b", false);
        unsetenv("CAIRN_VARIABLE_CODEC");
        const cairn_comparison_options how = {
            .struct_bytes = sizeof how, .all = true, .direct = direct};
        cairn_comparison result = {.struct_bytes = sizeof result};
        snprintf(run[0], sizeof run[0], "%s/trail/a", p.dir);
        snprintf(run[1], sizeof run[1], "%s/trail/b", p.dir);
        assert_ok(cairn_compare(p.mpi, run[0], run[1], &how, &result));
        assert_int_equal(result.verdict, CAIRN_SAME);
        assert_int_equal(result.nmarks, STEPS);
        place_done(&p);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_resume_from_each_level),
                                       cmocka_unit_test(test_comparing_does_not_notice)};
    return run_mpi_tests(argc, argv, tests);
}
