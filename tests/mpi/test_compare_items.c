/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Items in cells and items with numbers, of runs whose ranks have other ones: what belongs together
 * is compared wherever it lies, and what is missing is told.
 *
 * TEST: ranks 2 4
 * NEEDS: inih random123
 */
#include "harness/session.h"

enum { CELLS = 40, PER_CELL = 9, ITEMS = CELLS * PER_CELL };

typedef struct item {
    double x[2];
    uint32_t kind, gid;
} item;

/* The state of a run, whoever has which of it. */
typedef struct atoms {
    uint64_t nitems[CELLS];
    item at[CELLS][PER_CELL];
} atoms;

/* How it is declared. */
typedef enum way { BY_CELL, BY_CELL_AND_ID, LIST_WITH_ID, LISTS_WITH_ID, NWAYS } way;

/* A run, and how it shares the state out. */
typedef struct run {
    const char *name;
    int nranks;
    uint64_t turn;  /* which rank has which cell */
    bool backwards; /* the items of a cell lie in another order */
    atoms s;
} run;

static atoms state_of(uint64_t seed)
{
    crn_rng rng = crn_rng_of(seed, 0);
    atoms s = {.nitems = {0}};
    uint32_t gid = 0;
    for (int c = 0; c < CELLS; c++) {
        s.nitems[c] = crn_rng_below(&rng, PER_CELL);
        for (uint64_t i = 0; i < s.nitems[c]; i++, gid += 3)
            s.at[c][i] = (item){{crn_rng_unit(&rng), c}, 1, gid};
    }
    return s;
}

/* The cells and items of a rank. */
typedef struct share {
    uint64_t cell[CELLS], nitems[CELLS], gid[ITEMS];
    size_t ncells, n;
    item at[ITEMS];
    double x[ITEMS];
} share;

static void deal(const run *r, int rank, share *to)
{
    to->ncells = to->n = 0;
    for (uint64_t c = 0; c < CELLS; c++) {
        if ((c / (1 + r->turn) + r->turn) % (uint64_t)r->nranks != (uint64_t)rank)
            continue;
        const uint64_t n = r->s.nitems[c];
        to->cell[to->ncells] = c;
        to->nitems[to->ncells++] = n;
        for (uint64_t i = 0; i < n; i++)
            to->at[to->n++] = r->s.at[c][r->backwards ? n - 1 - i : i];
    }
    for (size_t i = 0; i < to->n; i++) {
        to->gid[i] = to->at[i].gid;
        to->x[i] = to->at[i].x[0];
    }
}

static void protect_structures(cairn *c, way w, share *s)
{
    static const cairn_member member[] = {CAIRN_MEMBER(item, x, CAIRN_FLOAT64),
                                          CAIRN_MEMBER(item, kind, CAIRN_UINT32),
                                          CAIRN_MEMBER(item, gid, CAIRN_UINT32)};
    cairn_type type;
    assert_ok(cairn_define_type(c, sizeof(item), member, 3, &type));
    if (w == LIST_WITH_ID)
        assert_ok(cairn_protect_list(c, "atoms", s->at, type, s->n));
    else
        assert_ok(
            cairn_protect_ragged(c, "atoms", s->at, type, CELLS, s->ncells, s->cell, s->nitems));
    if (w != BY_CELL)
        assert_ok(cairn_describe(c, "atoms", "id", "gid"));
}

static void protect(cairn *c, way w, share *s)
{
    if (w != LISTS_WITH_ID) {
        protect_structures(c, w, s);
        return;
    }
    assert_ok(cairn_protect_list(c, "atoms", s->x, CAIRN_FLOAT64, s->n));
    assert_ok(cairn_protect_list(c, "gid", s->gid, CAIRN_UINT64, s->n));
    assert_ok(cairn_describe(c, "atoms", "id", "gid"));
    assert_ok(cairn_describe(c, "gid", "id", "gid"));
}

/* Take the run's mark; has it diverged from its reference, if that is set? */
static bool take_mark(place *p, way w, const run *r)
{
    MPI_Comm some;
    static share s;
    bool diverged = false;
    MPI_Comm_split(MPI_COMM_WORLD, p->rank < r->nranks ? 0 : MPI_UNDEFINED, p->rank, &some);
    setenv("CAIRN_RUN_NAME", r->name, 1);
    if (p->rank < r->nranks) {
        cairn *c;
        deal(r, p->rank, &s);
        assert_ok(cairn_open(some, p->config, &c));
        protect(c, w, &s);
        assert_ok(cairn_mark(c, 1, CAIRN_AUTO));
        assert_ok(cairn_settle(c));
        diverged = cairn_diverged(c, NULL);
        assert_ok(cairn_close(c));
        MPI_Comm_free(&some);
    }
    unsetenv("CAIRN_RUN_NAME");
    assert_ok(crn_comm_bcast(p->comm, &diverged, sizeof diverged, 0));
    return diverged;
}

typedef struct result {
    cairn_comparison sum;
    uint64_t nvalues, ndiffering; /* of "atoms" */
    char text[CRN_ERR_TEXT];
} result;

static int on_row(void *arg, const cairn_comparison_row *r)
{
    result *res = arg;
    assert_null(strchr(r->variable, '#'));
    if (strcmp(r->variable, "atoms") != 0)
        return 0;
    res->nvalues = r->nvalues;
    res->ndiffering = r->ndiffering;
    snprintf(res->text, sizeof res->text, "%s", r->text);
    return 0;
}

static result compare(place *p, const char *a, const char *b, const char *bound, bool direct)
{
    char path[2][96];
    result r = {.sum = {.struct_bytes = sizeof r.sum}};
    const cairn_comparison_options how = {.struct_bytes = sizeof how,
                                          .nthreads = 2,
                                          .bound = bound,
                                          .direct = direct,
                                          .row = on_row,
                                          .arg = &r};
    snprintf(path[0], sizeof path[0], "%s/trail/%s", p->dir, a);
    snprintf(path[1], sizeof path[1], "%s/trail/%s", p->dir, b);
    assert_ok(cairn_compare(p->mpi, path[0], path[1], &how, &r.sum));
    return r;
}

/* Both ways, with trees and without; words may be NULL. */
static void check(place *p, const char *bound, cairn_verdict expected, uint64_t ndiffering,
                  const char *words)
{
    for (int i = 0; i < 4; i++) {
        const result r = compare(p, i < 2 ? "a" : "b", i < 2 ? "b" : "a", bound, i % 2);
        if (r.sum.verdict != expected)
            fail_msg("%d: verdict %d, not %d: %s", i, r.sum.verdict, expected, r.text);
        if (p->rank > 0)
            continue;
        assert_int_equal(r.ndiffering, ndiffering);
        if (words && !strstr(r.text, words))
            fail_msg("%d: '%s' is not in: %s", i, words, r.text);
    }
}

static void with_place(void **state, place *p, bool blocks)
{
    place_init(p, *state,
               blocks ? "[level]\nlocal = trail\n[variable]\nblock = 1KiB\n"
                      : "[level]\nlocal = trail\n[variable]\nbound = 1e-6\n");
}

/* One rank and all of them, or all twice with other cells. */
static void pair(const place *p, way w, bool same_ranks, run *a, run *b)
{
    *a = (run){.name = "a", .nranks = same_ranks ? p->nranks : 1};
    *b = (run){.name = "b", .nranks = p->nranks, .turn = 1, .backwards = w != BY_CELL};
}

/* What the two states have: values that differ as much. */
static uint64_t count_differing(const atoms *a, const atoms *b, double bound)
{
    uint64_t n = 0;
    for (int c = 0; c < CELLS; c++)
        for (uint64_t i = 0; i < a->nitems[c]; i++) {
            const double d = a->at[c][i].x[0] - b->at[c][i].x[0];
            n += d > bound || -d > bound;
        }
    return n;
}

/* Some items move a little, some more. */
static void disturb(atoms *s, uint64_t seed)
{
    crn_rng rng = crn_rng_of(seed, 1);
    for (int c = 0; c < CELLS; c++)
        for (uint64_t i = 0; i < s->nitems[c]; i++) {
            const uint64_t how = crn_rng_below(&rng, 8);
            s->at[c][i].x[0] += how == 0 ? 1e-9 : how == 1 ? 1e-3 : 0;
        }
}

static void check_values(void **state, way w, bool same_ranks, uint64_t seed)
{
    place p;
    run a, b;
    with_place(state, &p, seed % 2);
    pair(&p, w, same_ranks, &a, &b);
    a.s = b.s = state_of(seed);
    take_mark(&p, w, &a);
    take_mark(&p, w, &b);
    check(&p, NULL, CAIRN_SAME, 0, NULL);
    place_done(&p);
    with_place(state, &p, seed % 2);
    disturb(&b.s, seed);
    take_mark(&p, w, &a);
    take_mark(&p, w, &b);
    check(&p, "0", CAIRN_DIFFERENT, count_differing(&a.s, &b.s, 0), "values differ");
    check(&p, "1e-6", CAIRN_DIFFERENT, count_differing(&a.s, &b.s, 1e-6), "values differ");
    check(&p, "1e-2", CAIRN_SAME, 0, NULL);
    place_done(&p);
}

static void test_values(void **state)
{
    for (int w = 0; w < NWAYS; w++)
        for (uint64_t seed = 1; seed <= 2; seed++)
            check_values(state, (way)w, seed == 2 && w % 2, seed);
}

static void check_pair(void **state, way w, const run *a, const run *b, cairn_verdict expected,
                       const char *words)
{
    place p;
    with_place(state, &p, true);
    take_mark(&p, w, a);
    take_mark(&p, w, b);
    check(&p, NULL, expected, 0, words);
    place_done(&p);
}

/* An item that one of the two does not have. */
static void test_missing(void **state)
{
    static const char *const words[NWAYS] = {"cell 7 has ", "is not in", "is not in", "is not in"};
    for (int w = 0; w < NWAYS; w++) {
        place p;
        run a, b;
        with_place(state, &p, true);
        pair(&p, (way)w, false, &a, &b);
        a.s = b.s = state_of(5);
        a.s.nitems[7] = 3;
        b.s.nitems[7] = 2;
        for (uint32_t i = 0; i < 3; i++)
            a.s.at[7][i] = b.s.at[7][i] = (item){{i, 7}, 1, 1000000 + i};
        take_mark(&p, (way)w, &a);
        take_mark(&p, (way)w, &b);
        const result there = compare(&p, "a", "b", NULL, false);
        const result back = compare(&p, "b", "a", NULL, false);
        assert_int_equal(there.sum.verdict, CAIRN_DIFFERENT);
        assert_int_equal(back.sum.verdict, CAIRN_DIFFERENT);
        if (p.rank == 0 && !strstr(there.text, words[w]))
            fail_msg("%d: %s", w, there.text);
        if (p.rank == 0 && !strstr(back.text, w == BY_CELL ? words[w] : "there are "))
            fail_msg("%d: %s", w, back.text);
        place_done(&p);
    }
}

/* On the same ranks: all but the last have what they had, which must not hide that the last has an
 * item more, or one that another rank has, too, in the place of its own. */
static void test_others_agree(void **state)
{
    for (int w = BY_CELL_AND_ID; w < NWAYS; w++)
        for (int twice = 0; twice < 2; twice++) {
            place p;
            run a, b;
            char reference[96];
            with_place(state, &p, true);
            pair(&p, (way)w, true, &a, &b);
            b.turn = 0;
            b.backwards = false;
            a.s = b.s = state_of(10);
            const uint64_t last = CELLS - 1, n = a.s.nitems[last] = 3;
            b.s.nitems[last] = twice ? n : n + 1;
            a.s.nitems[0] = b.s.nitems[0] = 1;
            for (uint32_t i = 0; i <= n; i++)
                a.s.at[last][i] = b.s.at[last][i] = (item){{i, 7}, 1, 1000000 + i};
            if (twice) /* of the run that is asked about: all its items are in the other */
                a.s.at[last][0] = a.s.at[0][0];
            take_mark(&p, (way)w, &b);
            snprintf(reference, sizeof reference, "%s/trail/b", p.dir);
            setenv("CAIRN_COMPARE_REFERENCE", reference, 1);
            assert_true(take_mark(&p, (way)w, &a));
            unsetenv("CAIRN_COMPARE_REFERENCE");
            assert_int_equal(compare(&p, "a", "b", NULL, false).sum.verdict, CAIRN_DIFFERENT);
            assert_int_equal(compare(&p, "b", "a", NULL, false).sum.verdict, CAIRN_DIFFERENT);
            place_done(&p);
        }
}

/* Items with the same number are not to be told apart, and those of a cell not without numbers. */
static void test_unclear(void **state)
{
    place p;
    run a, b;
    with_place(state, &p, true);
    pair(&p, LIST_WITH_ID, false, &a, &b);
    place_done(&p);
    a.s = b.s = state_of(6);
    a.s.nitems[3] = b.s.nitems[3] = 2;
    a.s.at[3][0].gid = a.s.at[3][1].gid = b.s.at[3][0].gid = b.s.at[3][1].gid = 77777;
    check_pair(state, LIST_WITH_ID, &a, &b, CAIRN_INCONCLUSIVE, "77777 is there twice");
}

/* While a run goes on. */
static bool diverges(void **state, way w, bool swap, double by)
{
    place p;
    run a, b;
    char reference[96];
    with_place(state, &p, true);
    pair(&p, w, false, &a, &b);
    a.s = b.s = state_of(8);
    b.s.nitems[CELLS - 1] = a.s.nitems[CELLS - 1] = 1;
    b.s.at[CELLS - 1][0] = a.s.at[CELLS - 1][0] = (item){{1, 2}, 3, 4000000};
    b.s.at[CELLS - 1][0].x[0] += by;
    take_mark(&p, w, swap ? &b : &a);
    snprintf(reference, sizeof reference, "%s/trail/%s", p.dir, swap ? "b" : "a");
    setenv("CAIRN_COMPARE_REFERENCE", reference, 1);
    const bool diverged = take_mark(&p, w, swap ? &a : &b);
    unsetenv("CAIRN_COMPARE_REFERENCE");
    place_done(&p);
    return diverged;
}

static void test_reference(void **state)
{
    for (int w = 0; w < NWAYS; w++)
        for (int swap = 0; swap < 2; swap++) {
            assert_false(diverges(state, (way)w, swap, 0));
            assert_true(diverges(state, (way)w, swap, 0.5));
        }
}

/* Hold run b against a golden file of run a. */
static cairn_verdict gate(place *p)
{
    char golden[96], path[96];
    cairn_comparison r = {.struct_bytes = sizeof r};
    snprintf(golden, sizeof golden, "%s/golden", p->dir);
    snprintf(path, sizeof path, "%s/trail/a", p->dir);
    assert_ok(crn_comm_agree(p->comm, p->rank == 0 ? cairn_bless(path, golden) : CAIRN_OK));
    snprintf(path, sizeof path, "%s/trail/b", p->dir);
    assert_ok(cairn_gate(p->mpi, golden, path, NULL, &r));
    return r.verdict;
}

/* A golden file does not say which items it has of a rank: others are no difference, but for how
 * many there are. turn: cells lie on other ranks; more: there is an item more. */
static void check_golden(void **state, way w, uint64_t turn, bool more, cairn_verdict expected)
{
    place p;
    run a, b;
    char golden[96];
    with_place(state, &p, false);
    pair(&p, w, true, &a, &b);
    a.s = b.s = state_of(9);
    b.turn = turn;
    b.backwards = false;
    b.s.nitems[0] = a.s.nitems[0] = 3;
    b.s.nitems[0] += more;
    b.s.at[0][3] = (item){{1, 2}, 3, 4000000};
    take_mark(&p, w, &a);
    take_mark(&p, w, &b);
    assert_int_equal(gate(&p), expected);
    snprintf(golden, sizeof golden, "%s/golden", p.dir);
    setenv("CAIRN_COMPARE_REFERENCE", golden, 1);
    b.name = "c";
    assert_int_equal(take_mark(&p, w, &b), false);
    unsetenv("CAIRN_COMPARE_REFERENCE");
    place_done(&p);
}

static void test_golden(void **state)
{
    for (int w = 0; w < NWAYS; w++) {
        check_golden(state, (way)w, 0, false, CAIRN_SAME);
        check_golden(state, (way)w, 1, false, CAIRN_INCONCLUSIVE);
        check_golden(state, (way)w, 1, true, CAIRN_DIFFERENT);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),       cmocka_unit_test(test_missing),
        cmocka_unit_test(test_others_agree), cmocka_unit_test(test_unclear),
        cmocka_unit_test(test_reference),    cmocka_unit_test(test_golden)};
    return run_mpi_tests(argc, argv, tests);
}
