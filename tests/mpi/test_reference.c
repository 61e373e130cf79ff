/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A run that names a reference: the program is told, on all ranks at the same call, where the two
 * part; what cannot be compared is said in the event log and harms nothing.
 *
 * TEST: ranks self 2 3
 * NEEDS: jansson
 */
#include "harness/session.h"

#include <inttypes.h>

enum { ROWS = 36, COLUMNS = 50, MARKS = 5, KICKED = 3 };

/* What is different about a run. */
typedef struct story {
    int nranks;         /* the first so many take part; 0: all */
    double kick;        /* of the value at the very end but one, from mark KICKED on */
    double edge;        /* that all values are larger by */
    bool extra;         /* it has a variable that the other has not */
    uint64_t first;     /* mark */
    const char *config; /* more lines */
} story;

typedef struct memory {
    double grid[ROWS * COLUMNS];
    uint64_t step;
} memory;

static void write_config(place *p, const char *name, const char *more)
{
    if (p->rank == 0) {
        FILE *f = fopen(p->config, "w");
        assert_non_null(f);
        fprintf(f,
                "[run]\ntrail = %s/trail\nname = %s\n[level]\nlocal = %s/local\nglobal = 1\n"
                "node_size = 8\n[keep]\nglobal = all\n[variable]\nblock = 1KiB\nbound = 1e-6\n%s",
                p->dir, name, p->dir, more);
        fclose(f);
    }
    assert_ok(crn_comm_barrier(p->comm));
}

static void fill(memory *m, const story *s, uint64_t mark, uint64_t row, uint64_t nrows)
{
    for (uint64_t i = 0; i < nrows * COLUMNS; i++) {
        const uint64_t k = row * COLUMNS + i;
        m->grid[i] = 0.25 * (double)k + (double)mark + s->edge;
        if (mark >= KICKED && k == ROWS * COLUMNS - 2)
            m->grid[i] += s->kick;
    }
    m->step = mark;
}

static cairn *open_session(place *p, const story *s, MPI_Comm comm, memory *m, uint64_t *row,
                           uint64_t *nrows)
{
    const uint64_t n = (uint64_t)(s->nranks > 0 ? s->nranks : p->nranks), r = (uint64_t)p->rank;
    const uint64_t global[2] = {ROWS, COLUMNS}, offset[2] = {ROWS * r / n, 0};
    const uint64_t count[2] = {ROWS * (r + 1) / n - offset[0], COLUMNS};
    cairn *c;
    assert_ok(cairn_open(comm, p->config, &c));
    assert_ok(cairn_protect_part(c, "grid", m->grid, CAIRN_FLOAT64, 2, global, offset, count));
    assert_ok(cairn_protect(c, "step", &m->step, CAIRN_UINT64, 1));
    if (s->extra)
        assert_ok(cairn_protect(c, "extra", &m->step, CAIRN_UINT64, 1));
    *row = offset[0];
    *nrows = count[0];
    return c;
}

/* Has the run parted from its reference where this story says, and does everybody know? */
static void check_answer(cairn *c, const story *s, uint64_t mark)
{
    cairn_divergence where = {.struct_bytes = sizeof where};
    const bool parted = s->kick > 1e-6 && mark >= KICKED;
    assert_int_equal(cairn_diverged(c, &where), parted);
    assert_int_equal(cairn_diverged(c, NULL), parted);
    if (!parted)
        return;
    if (s->edge > 0) { /* the reference has no values */
        assert_int_equal(where.ndims, 0);
        assert_non_null(strstr(where.text, "values of block"));
        return;
    }
    char value[CAIRN_VALUE_TEXT];
    snprintf(value, sizeof value, "%.17g", 0.25 * (ROWS * COLUMNS - 2) + KICKED);
    assert_int_equal(where.version, KICKED);
    assert_string_equal(where.variable, "grid");
    assert_int_equal(where.ndims, 2);
    assert_int_equal(where.index[0] * COLUMNS + where.index[1], ROWS * COLUMNS - 2);
    assert_string_equal(where.there, value);
    assert_string_not_equal(where.here, value);
    assert_non_null(strstr(where.text, value));
}

/* Take the marks of a run; with a reference, ask after each. Collective over all. */
static void take_marks(place *p, const char *name, const story *s)
{
    static memory m;
    const bool part = s->nranks == 0 || p->rank < s->nranks;
    MPI_Comm some = MPI_COMM_SELF;
    uint64_t row, nrows;
    write_config(p, name, s->config ? s->config : "");
    if (p->nranks > 1)
        MPI_Comm_split(MPI_COMM_WORLD, part ? 0 : MPI_UNDEFINED, p->rank, &some);
    if (part) {
        cairn *c = open_session(p, s, some, &m, &row, &nrows);
        for (uint64_t mark = s->first > 0 ? s->first : 1; mark <= MARKS; mark++) {
            fill(&m, s, mark, row, nrows);
            assert_ok(cairn_mark(c, mark, CAIRN_AUTO));
            assert_ok(cairn_settle(c));
            if (s->config)
                check_answer(c, s, mark);
            assert_false(cairn_should_stop(c));
        }
        assert_ok(cairn_close(c));
        if (p->nranks > 1)
            MPI_Comm_free(&some);
    }
    assert_ok(crn_comm_barrier(p->comm));
}

/* --- the event log -------------------------------------------------------------------------- */

static int take_event(void *arg, const char *line)
{
    json_t *event = json_loads(line, 0, NULL);
    assert_non_null(event);
    json_array_append_new(arg, event);
    return 0;
}

/* How many events of a kind the second run has, with a word in one of their texts. */
static size_t count_events(place *p, const char *kind, const char *key, const char *words)
{
    char trail[96];
    cairn_trail *t;
    json_t *all = json_array(), *event;
    size_t i, run, n = 0;
    snprintf(trail, sizeof trail, "%s/trail", p->dir);
    assert_ok(cairn_trail_open(trail, &t));
    assert_ok(cairn_trail_find_run(t, "b", &run));
    assert_ok(cairn_trail_events(t, run, take_event, all));
    json_array_foreach(all, i, event)
    {
        const char *text = json_string_value(json_object_get(event, key));
        n += strcmp(json_string_value(json_object_get(event, "event")), kind) == 0 && text &&
             strstr(text, words) != NULL;
    }
    json_decref(all);
    cairn_trail_close(t);
    return n;
}

static char *reference_config(place *p, char buf[160], const char *more)
{
    snprintf(buf, 160, "[compare]\nreference = %s/trail/a\n%s", p->dir, more);
    return buf;
}

/* --- tests ---------------------------------------------------------------------------------- */

static void test_divergence_is_told(void **state)
{
    static const char *const how[] = {"", "[mark]\nmode = synchronous\n"};
    for (size_t i = 0; i < 2; i++) {
        place p;
        char config[160];
        place_init(&p, *state, "");
        take_marks(&p, "a", &(story){0});
        take_marks(&p, "b", &(story){.kick = 0.5, .config = reference_config(&p, config, how[i])});
        if (p.rank == 0) {
            assert_int_equal(count_events(&p, "compared", "verdict", "same"), KICKED - 1);
            assert_int_equal(count_events(&p, "compared", "verdict", "different"), 1);
            assert_int_equal(count_events(&p, "diverged", "variable", "grid"), 1);
            assert_int_equal(count_events(&p, "diverged", "there", "452.5"), 1);
        }
        place_done(&p);
    }
}

static void test_within_the_bound(void **state)
{
    place p;
    char config[160];
    place_init(&p, *state, "");
    take_marks(&p, "a", &(story){0});
    take_marks(&p, "b", &(story){.kick = 0.99e-6, .config = reference_config(&p, config, "")});
    if (p.rank == 0) {
        assert_int_equal(count_events(&p, "compared", "verdict", "same"), MARKS);
        assert_int_equal(count_events(&p, "diverged", "event", ""), 0);
    }
    place_done(&p);
}

/* A golden file as the reference: its run need not be there, and noise across edges of cells does
 * not matter; what its facts prove is a divergence. */
static void test_golden_reference(void **state)
{
    static const double kick[] = {1e-9, 0.5};
    place p;
    char config[160], golden[96], run[96];
    place_init(&p, *state, "");
    snprintf(golden, sizeof golden, "%s/golden", p.dir);
    snprintf(run, sizeof run, "%s/trail/a", p.dir);
    snprintf(config, sizeof config, "[compare]\nreference = %s\n", golden);
    take_marks(&p, "a", &(story){.edge = 0x1p-21});
    if (p.rank == 0) {
        assert_ok(cairn_bless(run, golden));
        remove_tree(run);
    }
    for (size_t i = 0; i < 2; i++) {
        assert_ok(crn_comm_barrier(p.comm));
        take_marks(&p, "b", &(story){.edge = 0x1p-21, .kick = kick[i], .config = config});
        if (p.rank == 0) {
            assert_int_equal(count_events(&p, "compared", "verdict", "same"),
                             i == 0 ? MARKS : KICKED - 1);
            assert_int_equal(count_events(&p, "diverged", "variable", "grid"), i);
            snprintf(run, sizeof run, "%s/trail/b", p.dir);
            remove_tree(run);
        }
    }
    assert_ok(crn_comm_barrier(p.comm));
    place_done(&p);
}

/* A golden file of one rank, and of all, and a run on the others: leaves that a rank has all of are
 * compared. */
static void test_golden_of_other_ranks(void **state)
{
    for (int alone = 0; alone < 2; alone++) {
        const int n[2] = {alone ? 1 : 0, alone ? 0 : 1};
        place p;
        char config[160], golden[96], run[96];
        place_init(&p, *state, "");
        snprintf(golden, sizeof golden, "%s/golden", p.dir);
        snprintf(run, sizeof run, "%s/trail/a", p.dir);
        setenv("CAIRN_COMPARE_LEAF", "1KiB", 1);
        take_marks(&p, "a", &(story){.nranks = n[0], .edge = 0x1p-21});
        if (p.rank == 0)
            assert_ok(cairn_bless(run, golden));
        assert_ok(crn_comm_barrier(p.comm));
        snprintf(config, sizeof config, "[compare]\nreference = %s\n", golden);
        take_marks(&p, "b",
                   &(story){.nranks = n[1], .edge = 0x1p-21, .kick = 0.5, .config = config});
        unsetenv("CAIRN_COMPARE_LEAF");
        if (p.rank == 0)
            assert_int_equal(count_events(&p, "diverged", "variable", "grid"), 1);
        assert_ok(crn_comm_barrier(p.comm));
        place_done(&p);
    }
}

static void test_other_number_of_ranks(void **state)
{
    place p;
    char config[160];
    place_init(&p, *state, "");
    take_marks(&p, "a", &(story){.nranks = 1});
    take_marks(&p, "b", &(story){.kick = 0.5, .config = reference_config(&p, config, "")});
    place_done(&p);
}

static void test_missing_is_a_sentence(void **state)
{
    place p;
    char config[160];
    place_init(&p, *state, "");
    take_marks(&p, "a", &(story){.first = 3});
    take_marks(&p, "b", &(story){.extra = true, .config = reference_config(&p, config, "")});
    if (p.rank == 0) {
        assert_int_equal(count_events(&p, "compared", "text", "does not have it"), 2);
        assert_int_equal(count_events(&p, "compared", "text", "'extra'"), 3);
        assert_int_equal(count_events(&p, "diverged", "event", ""), 0);
        assert_int_equal(count_events(&p, "failed", "event", ""), 0);
    }
    place_done(&p);
}

/* With compare.stop the program is told to leave, and its run can go on. */
static void test_stop(void **state)
{
    static memory m;
    place p;
    char config[160];
    uint64_t row, nrows, mark = 0;
    const story s = {.kick = 0.5};
    place_init(&p, *state, "");
    take_marks(&p, "a", &(story){0});
    write_config(&p, "b", reference_config(&p, config, "stop = yes\n"));
    cairn *c = open_session(&p, &s, p.mpi, &m, &row, &nrows);
    while (!cairn_should_stop(c)) {
        fill(&m, &s, ++mark, row, nrows);
        assert_ok(cairn_mark(c, mark, CAIRN_AUTO));
        assert_ok(cairn_settle(c));
        assert_true(mark <= KICKED);
    }
    assert_int_equal(mark, KICKED);
    assert_true(cairn_diverged(c, NULL));
    assert_ok(cairn_close(c));
    place_done(&p);
}

static void test_no_such_reference(void **state)
{
    place p;
    char config[160];
    cairn *c;
    place_init(&p, *state, "");
    write_config(&p, "b", reference_config(&p, config, ""));
    assert_refused(NULL, cairn_open(p.mpi, p.config, &c), CAIRN_ENOTFOUND, "compare.reference");
    write_config(&p, "a", "");
    assert_ok(cairn_open(p.mpi, p.config, &c));
    leave_session(c);
    write_config(&p, "a", reference_config(&p, config, ""));
    assert_refused(NULL, cairn_open(p.mpi, p.config, &c), CAIRN_EINVAL, "its own reference");
    write_config(&p, "b", reference_config(&p, config, "trees = no\n"));
    assert_refused(NULL, cairn_open(p.mpi, p.config, &c), CAIRN_EINVAL, "compare.trees");
    place_done(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_divergence_is_told),
                                       cmocka_unit_test(test_within_the_bound),
                                       cmocka_unit_test(test_golden_reference),
                                       cmocka_unit_test(test_golden_of_other_ranks),
                                       cmocka_unit_test(test_other_number_of_ranks),
                                       cmocka_unit_test(test_missing_is_a_sentence),
                                       cmocka_unit_test(test_stop),
                                       cmocka_unit_test(test_no_such_reference)};
    return run_mpi_tests(argc, argv, tests);
}
