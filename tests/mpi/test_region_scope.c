/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Scopes, in which not all work is declared, lists of data, short names: programs that are left at
 * any step end bit for bit as undisturbed ones; and what contradicts itself is refused.
 *
 * TEST: ranks self 2
 * NEEDS: inih
 */
#define CAIRN_SHORT_NAMES
#include "harness/session.h"

#include <cairn/region.h>

enum { CELLS = 200, STEPS = 30, INNER = 5 };

typedef struct options {
    bool nested, list, init;
    const char *place;
} options;

typedef struct program {
    options how;
    cairn *c;
    cairn_var state, table, work;
    double fstate[CELLS], ftable[CELLS], fwork[CELLS];
    double dt;
    uint64_t step, nscopes;
    char sentence[400];
} program;

static const char config[] = "[mark]\ninterval = 1000h\n[level]\nlocal = trail\n";

static void open_program(program *p, const place *at, options how)
{
    memset(p, 0, sizeof *p);
    p->how = how;
    assert_ok(cairn_open(at->mpi, at->config, &p->c));
    assert_ok(cairn_protect(p->c, "state", p->fstate, CAIRN_FLOAT64, CELLS));
    assert_ok(cairn_protect(p->c, "table", p->ftable, CAIRN_FLOAT64, CELLS));
    assert_ok(cairn_protect(p->c, "work", p->fwork, CAIRN_FLOAT64, CELLS));
    p->state = cairn_variable(p->c, "state");
    p->table = cairn_variable(p->c, "table");
    p->work = cairn_variable(p->c, "work");
}

static bool is_on(program *p, int rc)
{
    if (rc < 0)
        snprintf(p->sentence, sizeof p->sentence, "%s", cairn_last_error(p->c));
    return rc > 0;
}

/* Some rounds of work on state and work, each with a value that steers the rounds alone. */
static void iterate(program *p)
{
    double rest = 1;
    for (int k = 0; k < INNER && rest > 0.1; k++) {
        if (is_on(p, cairn_region(p->c, SITE("apply"), R(p->state), W(p->work))))
            for (int i = 0; i < CELLS; i++)
                p->fwork[i] = p->fstate[(i + 1) % CELLS] * 0.5 + k;
        if (is_on(p, cairn_region(p->c, "update", R(p->work), RW(p->state))))
            for (int i = 0; i < CELLS; i++)
                p->fstate[i] += 0.01 * p->fwork[i];
        rest = 1 / (1 + p->fwork[0] * p->fwork[0]) + 1 / (k + 1.0);
        (void)is_on(p, cairn_value(p->c, &rest, sizeof rest));
    }
}

/* The table is changed, and nobody says so. */
static void undeclared(program *p)
{
    for (int i = 0; i < CELLS; i++)
        p->ftable[i] = 0.9 * p->ftable[i] + p->step;
    p->nscopes++;
}

static void do_scope(program *p)
{
    if (!is_on(p, cairn_scope(p->c, "chemistry")))
        return;
    undeclared(p);
    if (p->how.nested) {
        if (is_on(p, cairn_scope(p->c, "solver", R(p->table)))) {
            iterate(p);
            assert_ok(cairn_scope_end(p->c));
        }
    } else {
        iterate(p);
    }
    undeclared(p);
    assert_ok(cairn_scope_end(p->c));
}

static void run(program *p, uint64_t end)
{
    const cairn_var keep[] = {p->state, p->table};
    const cairn_region_options o = {.struct_bytes = sizeof o,
                                    .place = p->how.place,
                                    .keep = p->how.list ? keep : NULL,
                                    .nkeep = p->how.list ? 2 : 0};
    assert_true(cairn_regions(p->c, &o) >= 0);
    if (is_on(p, cairn_region(p->c, "start", W(p->state), W(p->table))))
        for (int i = 0; i < CELLS; i++)
            p->fstate[i] = p->ftable[i] = 1 + i * 0.25;
    if (p->how.init)
        assert_ok(cairn_initialised(p->c));
    for (p->step = 0; p->step < end && !p->sentence[0]; p->step++) {
        if (p->step == 9 || p->step == 17)
            assert_ok(cairn_trigger(p->c));
        do_scope(p);
        if (is_on(p, cairn_region(p->c, "time", R(p->state), R(p->table))))
            p->dt = p->fstate[3] + p->ftable[5];
        (void)is_on(p, cairn_value(p->c, &p->dt, sizeof p->dt));
        if (is_on(p, cairn_region(p->c, "advance", RW(p->state))))
            for (int i = 0; i < CELLS; i++)
                p->fstate[i] /= 1 + 1e-3 * p->dt;
        (void)cairn_due(p->c);
    }
}

static void run_and_leave(program *p, const place *at, options how, uint64_t end)
{
    open_program(p, at, how);
    run(p, end);
    assert_string_equal(p->sentence, "");
    assert_int_equal(raise(SIGUSR1), 0);
    (void)cairn_should_stop(p->c);
    assert_ok(cairn_close(p->c));
}

/* Left after the first mark, and, resumed, after the second. */
static void check_restart(crn_comm *comm, options how, const program *whole, uint64_t left)
{
    static program p;
    place at;
    place_init(&at, comm, config);
    run_and_leave(&p, &at, how, left);
    run_and_leave(&p, &at, how, left + 8);
    open_program(&p, &at, how);
    run(&p, STEPS);
    assert_string_equal(p.sentence, "");
    assert_memory_equal(p.fstate, whole->fstate, sizeof p.fstate);
    assert_memory_equal(p.ftable, whole->ftable, sizeof p.ftable);
    assert_true(p.dt == whole->dt);
    assert_true(p.nscopes < 2 * STEPS); /* some were skipped as a whole */
    assert_ok(cairn_close(p.c));
    place_done(&at);
}

/* Marks begin at a scope, inside of one, behind one. */
static void test_scopes(void **state)
{
    static program whole;
    static const options all[] = {{0},
                                  {.place = "chemistry"},
                                  {.place = "update"},
                                  {.nested = true, .place = "update"},
                                  {.nested = true, .place = "time"},
                                  {.list = true, .place = "time"},
                                  {.init = true, .place = "time"},
                                  {.init = true, .nested = true, .place = "advance"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        place at;
        place_init(&at, *state, config);
        open_program(&whole, &at, all[i]);
        run(&whole, STEPS);
        assert_string_equal(whole.sentence, "");
        assert_ok(cairn_close(whole.c));
        place_done(&at);
        check_restart(*state, all[i], &whole, 12 + i);
    }
}

/* A log of 1 KiB is enough for a program whose values stay in its scopes: 30 steps of five rounds
 * have 1,500 bytes of values. */
static void test_log_of_scopes(void **state)
{
    static program p;
    place at;
    place_init(&at, *state, config);
    open_program(&p, &at, (options){0});
    const cairn_region_options o = {.struct_bytes = sizeof o, .log_bytes = 1024};
    assert_true(cairn_regions(p.c, &o) >= 0);
    for (p.step = 0; p.step < STEPS; p.step++)
        do_scope(&p);
    assert_ok(cairn_trigger(p.c));
    do_scope(&p);
    (void)cairn_due(p.c);
    do_scope(&p);
    (void)cairn_due(p.c);
    assert_string_equal(p.sentence, "");
    assert_ok(cairn_settle(p.c));
    uint64_t version;
    assert_int_equal(cairn_probe(p.c, &version), CAIRN_OK);
    assert_ok(cairn_close(p.c));
    place_done(&at);
}

static void refuse(int rc, const program *p, const char *word)
{
    assert_int_equal(rc, CAIRN_EINVAL);
    if (!strstr(cairn_last_error(p->c), word))
        fail_msg("no '%s' in: %s", word, cairn_last_error(p->c));
}

static void test_refused(void **state)
{
    static program p;
    place at;
    uint64_t payload = 0;
    place_init(&at, *state, config);
    open_program(&p, &at, (options){0});
    cairn_region_options o = {.struct_bytes = sizeof o, .keep = &p.state, .nkeep = 1};
    assert_ok(cairn_always(p.c, p.work));
    refuse(cairn_never(p.c, p.work), &p, "always and never");
    refuse(cairn_regions(p.c, &o), &p, "place");
    o.place = "update";
    refuse(cairn_regions(p.c, &o), &p, "always or never");
    assert_ok(cairn_close(p.c));
    open_program(&p, &at, (options){0});
    assert_int_equal(cairn_regions(p.c, NULL), CAIRN_NOTHING);
    refuse(cairn_scope_end(p.c), &p, "no scope is open");
    assert_ok(cairn_close(p.c));
    open_program(&p, &at, (options){0});
    assert_int_equal(cairn_regions(p.c, NULL), CAIRN_NOTHING);
    assert_int_equal(cairn_scope(p.c, "outer"), 1);
    refuse(cairn_initialised(p.c), &p, "outside of scopes");
    refuse(cairn_forward(p.c, &payload, sizeof payload), &p, "outside of scopes");
    assert_ok(cairn_close(p.c));
    place_done(&at);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_scopes),
                                       cmocka_unit_test(test_log_of_scopes),
                                       cmocka_unit_test(test_refused)};
    return run_mpi_tests(argc, argv, tests);
}
