/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bounds of members that a run is taken with: they count when runs are compared, and trees for them
 * prove what agrees, so that it is not read; also against a golden file, and while a run goes on.
 *
 * TEST: ranks self 2
 * NEEDS: inih
 */
#include "harness/session.h"

enum { N = 5000 };

typedef struct atom {
    double x[2];
    int32_t n;
    float q;
} atom;

/* How a run differs from the first. */
typedef struct way {
    double dx, dq;
    int32_t dn;
    const char *bound; /* NULL: as the first */
} way;

/* Values lie in the middle of cells: what is added does not carry them over an edge. */
static void fill(atom *a, const way *w)
{
    for (int i = 0; i < N; i++)
        a[i] = (atom){{i + w->dx, 2.0 * i}, i % 7 * 3 + 1 + w->dn, (float)(i % 9 + w->dq)};
}

/* Take the run's mark; has it diverged from its reference, if that is set? */
static bool take_mark(place *p, const char *name, const way *w)
{
    static atom a[N];
    static const cairn_member member[] = {CAIRN_MEMBER(atom, x, CAIRN_FLOAT64),
                                          CAIRN_MEMBER(atom, n, CAIRN_INT32),
                                          CAIRN_MEMBER(atom, q, CAIRN_FLOAT32)};
    cairn_type type;
    cairn *c;
    setenv("CAIRN_RUN_NAME", name, 1);
    assert_ok(cairn_open(p->mpi, p->config, &c));
    assert_ok(cairn_define_type(c, sizeof(atom), member, 3, &type));
    assert_ok(cairn_protect(c, "atoms", a, type, N));
    if (w->bound)
        assert_ok(cairn_set_bounds(c, "atoms", w->bound));
    fill(a, w);
    assert_ok(cairn_mark(c, 1, CAIRN_LEVEL_GLOBAL));
    assert_ok(cairn_settle(c));
    const bool diverged = cairn_diverged(c, NULL);
    assert_ok(cairn_close(c));
    unsetenv("CAIRN_RUN_NAME");
    return diverged;
}

static cairn_comparison compare(place *p, const char *bound, bool golden)
{
    char path[2][96];
    cairn_comparison r = {.struct_bytes = sizeof r};
    const cairn_comparison_options how = {.struct_bytes = sizeof how, .bound = bound};
    snprintf(path[0], sizeof path[0], golden ? "%s/golden" : "%s/trail/a", p->dir);
    snprintf(path[1], sizeof path[1], "%s/trail/b", p->dir);
    assert_ok((golden ? cairn_gate : cairn_compare)(p->mpi, path[0], path[1], &how, &r));
    return r;
}

/* pruned: nothing is read. */
static void check(place *p, const way *w, const char *bound, bool differs, bool pruned)
{
    char path[96];
    snprintf(path, sizeof path, "%s/trail/b", p->dir);
    take_mark(p, "b", w);
    const cairn_comparison r = compare(p, bound, false);
    assert_int_equal(r.verdict, differs ? CAIRN_DIFFERENT : CAIRN_SAME);
    assert_int_equal(r.read_bytes == 0, pruned);
    if (pruned)
        assert_int_equal(compare(p, bound, true).verdict, CAIRN_SAME);
    assert_ok(crn_comm_barrier(p->comm));
    if (p->rank == 0)
        remove_tree(path);
    assert_ok(crn_comm_barrier(p->comm));
}

static void place_with_golden(place *p, crn_comm *comm)
{
    char golden[96], path[96];
    place_init(p, comm,
               "[level]\nlocal = trail\n[variable]\nblock = 4KiB\n[compare]\nleaf = 4KiB\n"
               "[variable atoms]\nbound = 1e-6, x = 0.25, n=2\n");
    take_mark(p, "a", &(way){0});
    snprintf(golden, sizeof golden, "%s/golden", p->dir);
    snprintf(path, sizeof path, "%s/trail/a", p->dir);
    assert_ok(crn_comm_agree(p->comm, p->rank == 0 ? cairn_bless(path, golden) : CAIRN_OK));
}

static void test_bounds_of_members(void **state)
{
    place p;
    place_with_golden(&p, *state);
    check(&p, &(way){.dx = 0.1}, NULL, false, true);
    check(&p, &(way){.dx = 0.1, .dn = 1}, NULL, false, true);
    check(&p, &(way){.dx = 0.1}, "atoms=1e-6, atoms.x=0.5, atoms.n=2", false, true);
    check(&p, &(way){.dx = 0.1}, "1", false, false); /* trees let n differ by 2 */
    check(&p, &(way){.dx = 0.3}, NULL, true, false);
    check(&p, &(way){.dn = 3}, NULL, true, false);
    check(&p, &(way){.dq = 0.1}, NULL, true, false);
    check(&p, &(way){.dx = 0.1}, "1e-6", true, false);
    /* by call; without common bounds runs are compared exactly */
    check(&p, &(way){.dx = 0.1, .bound = "1e-6, n=2 , x=0.25"}, NULL, false, true);
    check(&p, &(way){.dx = 0.1, .bound = "1e-6, x=0.25"}, NULL, true, false);
    place_done(&p);
}

static void test_while_a_run_goes_on(void **state)
{
    static const char *const reference[] = {"%s/trail/a", "%s/golden"};
    for (size_t i = 0; i < 2; i++) {
        place p;
        char name[96];
        place_with_golden(&p, *state);
        snprintf(name, sizeof name, reference[i], p.dir);
        setenv("CAIRN_COMPARE_REFERENCE", name, 1);
        assert_false(take_mark(&p, "b", &(way){.dx = 0.1, .dn = 1}));
        if (i == 0) /* a golden file has no sketch of structures */
            assert_true(take_mark(&p, "c", &(way){.dx = 0.3}));
        unsetenv("CAIRN_COMPARE_REFERENCE");
        place_done(&p);
    }
}

static void test_what_is_wrong(void **state)
{
    static const struct {
        const char *bound, *words;
    } wrong[] = {{"1e-6, y=1", "has no member 'y'"},
                 {"x=1, x=2", "two bounds for 'x'"},
                 {"=1", "no name before '='"},
                 {"x=-1", "at least 0"}};
    place p;
    cairn *c;
    atom a[1];
    const cairn_member member[] = {CAIRN_MEMBER(atom, x, CAIRN_FLOAT64)};
    cairn_type type;
    place_init(&p, *state, "[level]\nlocal = trail\n");
    assert_ok(cairn_open(p.mpi, p.config, &c));
    assert_ok(cairn_define_type(c, sizeof *a, member, 1, &type));
    assert_ok(cairn_protect(c, "atoms", a, type, 1));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(cairn_set_bounds(c, "atoms", wrong[i].bound), CAIRN_EINVAL);
        assert_non_null(strstr(cairn_last_error(c), wrong[i].words));
    }
    assert_ok(cairn_protect(c, "plain", a, CAIRN_FLOAT64, 1));
    assert_int_equal(cairn_set_bounds(c, "plain", "1e-6, x=1"), CAIRN_EINVAL);
    assert_ok(cairn_close(c));
    place_done(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bounds_of_members),
                                       cmocka_unit_test(test_while_a_run_goes_on),
                                       cmocka_unit_test(test_what_is_wrong)};
    return run_mpi_tests(argc, argv, tests);
}
