/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The planner in a session: which levels marks go to, what it learns, what it says. Nothing is
 * timed: what is checked holds whatever the machine takes for a mark.
 *
 * TEST: ranks self 2
 * NEEDS: jansson
 */
#include "harness/session.h"

#include <time.h>

enum { CELLS = 50000 };

typedef struct world {
    place at;
    char trail[96];
    uint64_t step;
    double field[CELLS];
} world;

static void world_init(world *w, crn_comm *comm, const char *settings)
{
    char all[512];
    memset(w, 0, sizeof *w);
    snprintf(all, sizeof all,
             "[level]\nlocal = @/local\nnode_size = 8\n[keep]\nlocal = all\nglobal = all\n%s",
             settings);
    place_init(&w->at, comm, all);
    snprintf(w->trail, sizeof w->trail, "%s/trail", w->at.dir);
}

static cairn *begin(world *w)
{
    cairn *c;
    assert_ok(cairn_open(w->at.mpi, w->at.config, &c));
    assert_ok(cairn_protect(c, "step", &w->step, CAIRN_UINT64, 1));
    assert_ok(cairn_protect(c, "field", w->field, CAIRN_FLOAT64, CELLS));
    assert_true(cairn_resume(c, NULL) >= 0);
    return c;
}

static void mark_some(world *w, cairn *c, int n)
{
    for (int i = 0; i < n; i++) {
        w->step++;
        for (size_t k = w->step % 7; k < CELLS; k += 7)
            w->field[k] += (double)w->step;
        assert_ok(cairn_mark(c, w->step, CAIRN_AUTO));
        assert_ok(cairn_settle(c));
    }
}

/* The levels of the newest run's marks, one letter each: l, or g for those in the trail. */
static void read_levels(const world *w, char *buf, size_t cap)
{
    cairn_trail *t;
    cairn_run_info run = {.struct_bytes = sizeof run};
    assert_ok(cairn_trail_open(w->trail, &t));
    const size_t r = cairn_trail_nruns(t) - 1;
    assert_ok(cairn_trail_run(t, r, &run));
    assert_true(run.nmarks < cap);
    for (size_t i = 0; i < run.nmarks; i++) {
        cairn_mark_info mark = {.struct_bytes = sizeof mark};
        assert_ok(cairn_trail_mark(t, r, i, &mark));
        buf[i] = mark.levels & 1 << 3 ? 'g' : 'l';
    }
    buf[run.nmarks] = 0;
    cairn_trail_close(t);
}

static int take_tuned(void *arg, const char *line)
{
    json_t **last = arg, *event = json_loads(line, 0, NULL);
    const char *kind = json_string_value(json_object_get(event, "event"));
    if (kind && strcmp(kind, "tuned") == 0) {
        json_decref(*last);
        *last = json_incref(event);
    }
    json_decref(event);
    return 0;
}

/* What the planner said last, or NULL. */
static json_t *read_tuned(const world *w)
{
    cairn_trail *t;
    json_t *last = NULL;
    assert_ok(cairn_trail_open(w->trail, &t));
    assert_ok(cairn_trail_events(t, cairn_trail_nruns(t) - 1, take_tuned, &last));
    cairn_trail_close(t);
    return last;
}

static double rate_of(json_t *tuned, size_t level)
{
    json_t *levels = json_object_get(tuned, "levels");
    return json_number_value(json_object_get(json_array_get(levels, level), "rate"));
}

static void expect_levels(world *w, const char *settings, int n, const char *levels)
{
    char found[64];
    world_init(w, w->at.comm, settings);
    cairn *c = begin(w);
    assert_true(cairn_due(c)); /* the first tells what marks cost */
    mark_some(w, c, n);
    assert_ok(cairn_close(c));
    if (w->at.rank == 0) {
        read_levels(w, found, sizeof found);
        assert_string_equal(found, levels);
    }
    place_done(&w->at);
}

/* The neutral start: the first mark in the trail, then two on the nodes to one in the trail. Where
 * it goes from there is the machine's matter; frozen, it stays. */
static void test_levels(void **state)
{
    world w = {.at.comm = *state};
    expect_levels(&w, "[plan]\ntune = frozen\n", 5, "lllll");
    expect_levels(&w, "[plan]\ntune = auto\n", 4, "gllg");
    expect_levels(&w, "[plan]\ntune = off\n", 4, "llll");
}

/* What the user says about levels counts, whatever the planner thinks. */
static void test_configured_levels_are_obeyed(void **state)
{
    world w = {.at.comm = *state};
    expect_levels(&w, "[level]\nglobal = 2\n", 5, "lglgl");
}

static void test_says_what_it_believes(void **state)
{
    world w;
    world_init(&w, *state, "[plan]\nmtbf = 100\nmtbf_node = 1000\ninterval_max = 7\n");
    cairn *c = begin(&w);
    mark_some(&w, c, 8);
    assert_ok(cairn_close(c));
    if (w.at.rank == 0) {
        json_t *tuned = read_tuned(&w);
        assert_non_null(tuned);
        const double interval = json_number_value(json_object_get(tuned, "interval"));
        const double efficiency = json_number_value(json_object_get(tuned, "efficiency"));
        assert_true(interval > 0 && interval <= 7);
        assert_true(efficiency > 0 && efficiency < 1);
        assert_int_equal(json_array_size(json_object_get(tuned, "levels")), 2);
        assert_float_equal(rate_of(tuned, 0), 1 / 100., 1e-6);
        assert_true(rate_of(tuned, 1) > 1 / 1000.);
        json_decref(tuned);
    }
    place_done(&w.at);
}

/* Legs that were killed: the run has a line for the opening of each, and none for a close. */
static void test_learns_from_failures(void **state)
{
    world w;
    double before = 0, after = 0;
    world_init(&w, *state, "[plan]\nmtbf = 1000h\n");
    for (int leg = 0; leg < 2; leg++) {
        cairn *c = begin(&w);
        mark_some(&w, c, 8);
        leave_session(c);
        if (w.at.rank == 0) {
            json_t *tuned = read_tuned(&w);
            assert_non_null(tuned);
            *(leg == 0 ? &before : &after) = rate_of(tuned, 0);
            json_decref(tuned);
            for (int i = 0; leg == 0 && i < 6; i++)
                assert_ok(cairn_note(w.trail, "run-1", "{\"event\": \"open\", \"nranks\": 1}"));
        }
        assert_ok(crn_comm_barrier(w.at.comm));
    }
    if (w.at.rank == 0) /* six in less than some minutes, not one, against two in 2000 hours */
        assert_true(after > 5000 * before);
    place_done(&w.at);
}

typedef struct told {
    double interval;     /* that the last mark was taken with */
    double held, stored; /* of it */
    size_t ntuned;
    size_t nchanges,
        nfull;     /* events that say what a mark changed; those that name no earlier one */
    uint64_t full; /* the mark of the last one of these */
} told;

static void take_changes(told *t, json_t *event)
{
    json_t *as = json_object_get(event, "as");
    t->nchanges++;
    if (as) {
        assert_int_equal(json_integer_value(as), t->full);
        return;
    }
    t->nfull++;
    t->full = (uint64_t)json_integer_value(json_object_get(event, "version"));
    assert_int_equal(json_array_size(json_object_get(event, "variables")), 2);
}

static int take_told(void *arg, const char *line)
{
    told *t = arg;
    json_t *event = json_loads(line, 0, NULL);
    const char *kind = json_string_value(json_object_get(event, "event"));
    if (kind && strcmp(kind, "mark") == 0) {
        t->interval = json_number_value(json_object_get(event, "interval"));
        t->held = json_number_value(json_object_get(event, "held"));
        t->stored = json_number_value(json_object_get(event, "stored"));
    }
    t->ntuned += kind && strcmp(kind, "tuned") == 0;
    if (kind && strcmp(kind, "changes") == 0)
        take_changes(t, event);
    json_decref(event);
    return 0;
}

static told read_told(const world *w)
{
    cairn_trail *t;
    told found = {0};
    assert_ok(cairn_trail_open(w->trail, &t));
    assert_ok(cairn_trail_events(t, cairn_trail_nruns(t) - 1, take_told, &found));
    cairn_trail_close(t);
    return found;
}

/* A leg goes on with the setting that the run had, and with what earlier legs had measured: it
 * thinks again when it has come back, before it has taken a mark. */
static void test_goes_on_over_legs(void **state)
{
    world w;
    world_init(&w, *state, "[plan]\ntune = frozen\n[level]\nglobal = 3\n");
    cairn *c = begin(&w);
    mark_some(&w, c, 6);
    leave_session(c);
    size_t before = 0;
    if (w.at.rank == 0) {
        assert_true(read_told(&w).interval == 100);
        before = read_told(&w).ntuned;
        assert_true(before > 0);
        assert_ok(cairn_note(w.trail, "run-1",
                             "{\"event\": \"tuned\", \"interval\": 42.5, "
                             "\"every\": {\"local\": 1, \"global\": 6}}"));
    }
    assert_ok(crn_comm_barrier(w.at.comm));
    c = begin(&w);
    if (w.at.rank == 0)
        assert_int_equal(read_told(&w).ntuned, before + 2);
    mark_some(&w, c, 1);
    leave_session(c);
    if (w.at.rank == 0)
        assert_true(read_told(&w).interval == 42.5);
    place_done(&w.at);
}

/* Is a mark due, and do all ranks think so? */
static bool ask_all(world *w, cairn *c)
{
    uint64_t due[2] = {cairn_due(c)};
    due[1] = !due[0];
    assert_ok(crn_comm_allreduce_u64(w->at.comm, CRN_REDUCE_MAX, due, 2));
    assert_true(due[0] + due[1] == 1);
    return due[0];
}

/* What cairn_due says is the planner's interval, and the same on all ranks, also where these come
 * to ask at different times. */
static void test_due_obeys_and_is_agreed(void **state)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    world w;
    world_init(&w, *state, "[plan]\ntune = frozen\ninterval_min = 0.001\n");
    cairn *c = begin(&w);
    assert_true(ask_all(&w, c));
    mark_some(&w, c, 1);
    assert_false(ask_all(&w, c)); /* in 100 s */
    leave_session(c);
    if (w.at.rank == 0)
        assert_ok(cairn_note(w.trail, "run-1",
                             "{\"event\": \"tuned\", \"interval\": 0.05, "
                             "\"every\": {\"local\": 1, \"global\": 3}}"));
    assert_ok(crn_comm_barrier(w.at.comm));
    c = begin(&w);
    for (int i = 0; i < 3; i++) {
        int patience = 10000;
        while (!ask_all(&w, c) && patience-- > 0)
            for (int k = 0; k <= w.at.rank; k++)
                nanosleep(&moment, NULL);
        assert_true(patience > 0);
        mark_some(&w, c, 1);
    }
    assert_ok(cairn_close(c));
    place_done(&w.at);
}

/* The log says what a mark cost the program: with synchronous ones, all of it. */
static void test_synchronous_marks_hold_the_program(void **state)
{
    world w;
    world_init(&w, *state, "[mark]\nmode = synchronous\n");
    cairn *c = begin(&w);
    mark_some(&w, c, 2);
    assert_ok(cairn_close(c));
    if (w.at.rank == 0)
        assert_true(read_told(&w).held >= read_told(&w).stored);
    place_done(&w.at);
}

/* The log of a run that marks often stays small: what repeats is written once. */
static void test_says_what_is_new(void **state)
{
    enum { MARKS = 80 };
    world w;
    world_init(&w, *state, "[plan]\ntune = frozen\n[level]\nglobal = 1\n");
    cairn *c = begin(&w);
    mark_some(&w, c, MARKS);
    assert_ok(cairn_close(c));
    if (w.at.rank == 0) {
        const told t = read_told(&w);
        assert_in_range(t.ntuned, 1, 16 + MARKS / 16 + 1);
        assert_int_equal(t.nchanges, MARKS);
        assert_in_range(t.nfull, 1, MARKS / 4);
    }
    place_done(&w.at);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_says_what_is_new),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_configured_levels_are_obeyed),
        cmocka_unit_test(test_says_what_it_believes),
        cmocka_unit_test(test_learns_from_failures),
        cmocka_unit_test(test_goes_on_over_legs),
        cmocka_unit_test(test_due_obeys_and_is_agreed),
        cmocka_unit_test(test_synchronous_marks_hold_the_program),
    };
    return run_mpi_tests(argc, argv, tests);
}
