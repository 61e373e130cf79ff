/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Regions at their edges: values whose size changes, a region inside of another, variables without
 * elements, variables that move or are released while a mark looks ahead, a program that ends then.
 * What comes back is right, or there is a sentence and the mark before stands.
 *
 * TEST: ranks self 2
 * NEEDS: inih
 */
#include "harness/session.h"

#include <cairn/region.h>

enum { N = 50, STEPS = 20, FIRST = 5, SECOND = 11, LEAVE = 15 };

typedef enum edge {
    PLAIN,
    SIZES,    /* a value has another size in each step */
    MOVES,    /* a variable moves behind the second place, before it is decided */
    RELEASES, /* a variable that nothing needs any more is released there, for good */
    EMPTY,    /* one rank has no elements of a variable */
    NESTS,    /* a region stands in another's body */
    ENDS,     /* the program is over before the second mark is */
    NEDGES
} edge;

static const char config[] = "[mark]\ninterval = 1000h\n[level]\nlocal = trail\n";

typedef struct program {
    const place *at;
    cairn *c;
    edge how;
    double a[N], b[N], other[N], *work, *spare, list[STEPS];
    cairn_var va, vb, vwork, vspare;
    size_t nspare;
    uint64_t step;
    char sentence[600];
} program;

static bool is_on(program *p, int rc)
{
    if (rc < 0 && !p->sentence[0])
        snprintf(p->sentence, sizeof p->sentence, "%s", cairn_last_error(p->c));
    return rc > 0;
}

static void open_program(program *p, const place *at, edge how)
{
    const cairn_region_options o = {.struct_bytes = sizeof o, .place = "one", .regions = 9};
    memset(p, 0, sizeof *p);
    p->at = at;
    p->how = how;
    p->nspare = how == EMPTY && at->rank == 0 ? 0 : N;
    assert_ok(crn_alloc(&p->work, N));
    assert_ok(crn_alloc(&p->spare, N));
    assert_ok(cairn_open(at->mpi, at->config, &p->c));
    assert_ok(cairn_protect(p->c, "a", p->a, CAIRN_FLOAT64, N));
    assert_ok(cairn_protect(p->c, "b", p->b, CAIRN_FLOAT64, N));
    assert_ok(cairn_protect(p->c, "work", p->work, CAIRN_FLOAT64, N));
    assert_ok(cairn_protect(p->c, "spare", p->spare, CAIRN_FLOAT64, p->nspare));
    p->va = cairn_variable(p->c, "a");
    p->vb = cairn_variable(p->c, "b");
    p->vwork = cairn_variable(p->c, "work");
    p->vspare = cairn_variable(p->c, "spare");
    assert_true(p->va && p->vb && p->vwork && p->vspare);
    assert_true(cairn_regions(p->c, &o) >= 0);
}

static void close_program(program *p)
{
    assert_ok(cairn_close(p->c));
    free(p->work);
    free(p->spare);
}

/* The second mark has begun, and is not over. */
static void disturb(program *p)
{
    if (p->how == MOVES) {
        double *now;
        assert_ok(crn_alloc(&now, N));
        memcpy(now, p->work, N * sizeof *now);
        memset(p->work, 0x7f, N * sizeof *now);
        free(p->work);
        p->work = now;
        assert_ok(cairn_protect(p->c, "work", p->work, CAIRN_FLOAT64, N));
    }
    if (p->how == RELEASES)
        assert_ok(cairn_release(p->c, "spare"));
}

static void do_two(program *p)
{
    const bool released = p->how == RELEASES && p->step >= SECOND;
    if (is_on(p, cairn_region(p->c, "two", CAIRN_R(p->vb), CAIRN_RW(p->vwork))))
        for (int i = 0; i < N; i++)
            p->work[i] = p->work[i] * 0.5 + p->b[(i + 1) % N];
    if (!released && is_on(p, cairn_region(p->c, "spare", CAIRN_RW(p->vspare))))
        for (size_t i = 0; i < p->nspare; i++)
            p->spare[i] += (double)i + 1;
}

static void do_step(program *p)
{
    size_t n = p->how == SIZES ? 1 + p->step % STEPS : 1;
    if (is_on(p, cairn_region(p->c, "one", CAIRN_R(p->va), CAIRN_W(p->vb)))) {
        for (int i = 0; i < N; i++)
            p->b[i] = 0.75 * p->a[i] + 1;
        if (p->how == NESTS && is_on(p, cairn_region(p->c, "inner", CAIRN_RW(p->vb))))
            p->b[0] += 1;
    }
    if (p->step == SECOND && !cairn_replaying(p->c))
        disturb(p);
    do_two(p);
    for (size_t i = 0; i < n; i++)
        p->list[i] = p->work[i % N] + (double)i;
    (void)is_on(p, cairn_value(p->c, p->list, n * sizeof *p->list));
    if (is_on(p, cairn_region(p->c, "three", CAIRN_R(p->vwork), CAIRN_RW(p->va))))
        for (int i = 0; i < N; i++)
            p->a[i] += 0.01 * p->work[i] + 1e-3 * p->list[n - 1];
}

static void run(program *p, uint64_t end)
{
    if (is_on(p,
              cairn_region(p->c, "start", CAIRN_W(p->va), CAIRN_W(p->vwork), CAIRN_W(p->vspare))))
        for (int i = 0; i < N; i++) {
            p->a[i] = i;
            p->work[i] = p->spare[i] = 1;
        }
    assert_ok(cairn_initialised(p->c));
    for (p->step = 0; p->step < end && !p->sentence[0]; p->step++) {
        if (p->step == FIRST || p->step == SECOND)
            (void)is_on(p, cairn_trigger(p->c));
        do_step(p);
        if (p->how == ENDS && p->step == SECOND)
            return;
        (void)cairn_due(p->c);
    }
}

/* The version of the newest mark of the run, 0: none. */
static uint64_t newest(const place *at)
{
    cairn_trail *t;
    cairn_run_info info = {.struct_bytes = sizeof info};
    char path[128];
    snprintf(path, sizeof path, "%s/trail", at->dir);
    assert_ok(cairn_trail_open(path, &t));
    assert_ok(cairn_trail_run(t, 0, &info));
    cairn_mark_info mark = {.struct_bytes = sizeof mark};
    if (info.nmarks > 0)
        assert_ok(cairn_trail_mark(t, 0, info.nmarks - 1, &mark));
    cairn_trail_close(t);
    return mark.version;
}

/* Left, resumed to the end: as an undisturbed program of the same kind. */
static void check_edge(crn_comm *comm, edge how)
{
    static program whole, p;
    place at;
    place_init(&at, comm, config);
    open_program(&whole, &at, how);
    run(&whole, STEPS);
    assert_string_equal(whole.sentence, "");
    close_program(&whole);
    place_done(&at);
    place_init(&at, comm, config);
    open_program(&p, &at, how);
    run(&p, LEAVE);
    assert_string_equal(p.sentence, "");
    assert_int_equal(raise(SIGUSR1), 0);
    (void)cairn_should_stop(p.c);
    close_program(&p);
    open_program(&p, &at, how);
    assert_true(cairn_replaying(p.c));
    run(&p, STEPS);
    assert_string_equal(p.sentence, "");
    assert_false(cairn_replaying(p.c));
    assert_memory_equal(p.a, whole.a, sizeof p.a);
    assert_memory_equal(p.b, whole.b, sizeof p.b);
    close_program(&p);
    place_done(&at);
}

static void test_right(void **state)
{
    static const edge right[] = {PLAIN, SIZES, MOVES, RELEASES, EMPTY};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        check_edge(*state, right[i]);
}

/* Regions do not nest: what is skipped with the outer one is missed on the way back. */
static void test_nested(void **state)
{
    static program p;
    place at;
    place_init(&at, *state, config);
    open_program(&p, &at, NESTS);
    run(&p, LEAVE);
    assert_int_equal(raise(SIGUSR1), 0);
    (void)cairn_should_stop(p.c);
    close_program(&p);
    open_program(&p, &at, NESTS);
    run(&p, STEPS);
    assert_non_null(strstr(p.sentence, "two(R b, RW work)"));
    assert_non_null(strstr(p.sentence, "inner(RW b)"));
    assert_non_null(strstr(p.sentence, "cairn_scope"));
    close_program(&p);
    place_done(&at);
}

/* A program that ends while a mark looks ahead has the mark before. */
static void test_ends(void **state)
{
    static program p;
    place at;
    place_init(&at, *state, config);
    open_program(&p, &at, ENDS);
    run(&p, STEPS);
    assert_int_equal(p.step, SECOND);
    assert_int_equal(raise(SIGUSR1), 0);
    (void)cairn_should_stop(p.c);
    close_program(&p);
    if (at.rank == 0)
        assert_int_equal(newest(&at), 1 + 4 * FIRST);
    place_done(&at);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_right), cmocka_unit_test(test_nested),
                                       cmocka_unit_test(test_ends)};
    return run_mpi_tests(argc, argv, tests);
}
