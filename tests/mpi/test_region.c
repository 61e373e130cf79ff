/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program with regions: what its marks keep, and that it ends bit for bit as an undisturbed one
 * when it is left at any step and started again, with every option; and what is refused.
 *
 * TEST: ranks self 1 2
 * NEEDS: inih
 */
#include "harness/session.h"

#include <cairn/region.h>

enum { ROWS = 40, COLS = 30, STEPS = 40 };

typedef struct options {
    bool init, forward, box, reduce;
    const char *place;
    const char *other_site; /* the program has changed */
    size_t value_bytes;     /* likewise */
    uint64_t log_bytes;     /* of rank 0's log, at most; 0: the default */
    uint64_t forward_at;    /* a forward point at this step alone; 0: none */
} options;

typedef struct field {
    double at[ROWS][COLS];
} field;

typedef struct program {
    place place;
    options how;
    cairn *c;
    cairn_var a, flux, work, fixed;
    field fa, fflux, fwork, ffixed;
    double dt;
    uint64_t step;
    uint64_t nbodies;   /* that were done */
    int status;         /* the first failure, */
    char sentence[400]; /* and what was said of it */
} program;

static const char config[] = "[mark]\ninterval = 1000h\n[level]\nlocal = trail\n";

static void open_program(program *p, const place *at, options how)
{
    const uint64_t extent[2] = {ROWS, COLS};
    memset(p, 0, sizeof *p);
    p->place = *at;
    p->how = how;
    assert_ok(cairn_open(at->mpi, at->config, &p->c));
    assert_ok(cairn_protect(p->c, "a", &p->fa, CAIRN_FLOAT64, (size_t)ROWS * COLS));
    assert_ok(cairn_protect(p->c, "flux", &p->fflux, CAIRN_FLOAT64, (size_t)ROWS * COLS));
    assert_ok(cairn_protect(p->c, "work", &p->fwork, CAIRN_FLOAT64, (size_t)ROWS * COLS));
    assert_ok(cairn_protect(p->c, "fixed", &p->ffixed, CAIRN_FLOAT64, (size_t)ROWS * COLS));
    p->a = cairn_variable_shaped(p->c, "a", 2, extent);
    p->flux = cairn_variable_shaped(p->c, "flux", 2, extent);
    p->work = cairn_variable_shaped(p->c, "work", 2, extent);
    p->fixed = cairn_variable_shaped(p->c, "fixed", 2, extent);
    assert_true(p->a && p->flux && p->work && p->fixed);
}

static bool is_on(program *p, int rc)
{
    if (rc < 0 && p->status == 0) {
        p->status = rc;
        snprintf(p->sentence, sizeof p->sentence, "%s", cairn_last_error(p->c));
    }
    p->nbodies += rc == 1;
    return rc > 0;
}

static void initialise(program *p)
{
    if (is_on(p, cairn_region(p->c, "start", CAIRN_W(p->a), CAIRN_W(p->fixed))))
        for (int i = 0; i < ROWS; i++)
            for (int k = 0; k < COLS; k++) {
                p->fa.at[i][k] = 1 + i * 0.1 + k * 0.01 + p->place.rank;
                p->ffixed.at[i][k] = 0.5 + (i + k) % 3;
            }
    if (p->how.init)
        assert_ok(cairn_initialised(p->c));
}

static void fill_flux(program *p, int first, int end)
{
    for (int i = first; i < end; i++)
        for (int k = 0; k < COLS; k++)
            p->fflux.at[i][k] = p->fa.at[i][k] * p->ffixed.at[i][k];
}

/* With boxes, the first rows are written apart. */
static void do_flux(program *p)
{
    static const uint64_t top[2] = {0, 0}, top_end[2] = {4, COLS};
    static const uint64_t rest[2] = {4, 0}, end[2] = {ROWS, COLS};
    if (p->how.box) {
        if (is_on(p, cairn_region(p->c, "flux top", CAIRN_R(p->a), CAIRN_R(p->fixed),
                                  CAIRN_W_BOX(p->flux, top, top_end))))
            fill_flux(p, 0, 4);
        if (is_on(p, cairn_region(p->c, "flux rest", CAIRN_R(p->a), CAIRN_R(p->fixed),
                                  CAIRN_W_BOX(p->flux, rest, end))))
            fill_flux(p, 4, ROWS);
        return;
    }
    if (is_on(p, cairn_region(p->c, p->how.other_site ? p->how.other_site : "flux", CAIRN_R(p->a),
                              CAIRN_R(p->fixed), CAIRN_W(p->flux))))
        fill_flux(p, 0, ROWS);
}

static void do_work(program *p)
{
    if (is_on(p, cairn_region(p->c, "work", CAIRN_R(p->flux), CAIRN_W(p->work))))
        for (int i = 0; i < ROWS; i++)
            for (int k = 0; k < COLS; k++)
                p->fwork.at[i][k] = p->fflux.at[ROWS - 1 - i][k] + 0.25;
    if (is_on(p, cairn_region(p->c, "time", CAIRN_R(p->work)))) {
        p->dt = 0;
        for (int i = 0; i < ROWS; i++)
            for (int k = 0; k < COLS; k++)
                p->dt += p->fwork.at[i][k] * 1e-6;
        p->dt = 0.01 / (1 + p->dt);
    }
    char wrong[16] = "";
    if (p->how.value_bytes)
        (void)is_on(p, cairn_value(p->c, wrong, p->how.value_bytes));
    else if (p->how.reduce)
        (void)is_on(p, cairn_reduce(p->c, &p->dt, 1, CAIRN_MIN));
    else
        (void)is_on(p, cairn_value(p->c, &p->dt, sizeof p->dt));
    if (is_on(p, cairn_region(p->c, "update", CAIRN_R(p->work), CAIRN_RW(p->a))))
        for (int i = 0; i < ROWS; i++)
            for (int k = 0; k < COLS; k++)
                p->fa.at[i][k] += p->dt * p->fwork.at[i][k];
}

/* Marks are wanted at some steps; the program is left before step end. */
static void run(program *p, uint64_t end)
{
    const cairn_region_options o = {.struct_bytes = sizeof o,
                                    .place = p->how.place,
                                    .seconds = 1e6,
                                    .log_bytes = p->place.rank == 0 ? p->how.log_bytes : 0};
    assert_true(cairn_regions(p->c, &o) >= 0);
    initialise(p);
    for (p->step = 0; p->step < end && p->status == 0; p->step++) {
        if (p->how.forward || (p->how.forward_at && p->step == p->how.forward_at))
            (void)is_on(p, cairn_forward(p->c, &p->step, sizeof p->step));
        if (p->step == 12 || p->step == 25)
            assert_ok(cairn_trigger(p->c));
        do_flux(p);
        do_work(p);
        assert_false(cairn_due(p->c));
    }
}

/* As one does who is killed: the run can be resumed from its last mark. */
static void leave(program *p)
{
    assert_int_equal(raise(SIGUSR1), 0);
    (void)cairn_should_stop(p->c);
    assert_ok(cairn_close(p->c));
}

static void run_undisturbed(crn_comm *comm, options how, program *ret)
{
    place at;
    place_init(&at, comm, config);
    open_program(ret, &at, how);
    run(ret, STEPS);
    assert_int_equal(ret->status, 0);
    assert_ok(cairn_close(ret->c));
    place_done(&at);
}

static void check_same(const program *a, const program *b)
{
    assert_memory_equal(&a->fa, &b->fa, sizeof a->fa);
    assert_memory_equal(&a->fflux, &b->fflux, sizeof a->fflux);
    assert_memory_equal(&a->fwork, &b->fwork, sizeof a->fwork);
    assert_memory_equal(&a->ffixed, &b->ffixed, sizeof a->ffixed);
    assert_true(a->dt == b->dt);
}

/* Leave before step m, start again, compare. */
static void check_restart(crn_comm *comm, options how, const program *whole, uint64_t m)
{
    static program p;
    place at;
    place_init(&at, comm, config);
    open_program(&p, &at, how);
    run(&p, m);
    assert_int_equal(p.status, 0);
    if (m == 30) { /* between the place of a mark and its end */
        assert_ok(cairn_trigger(p.c));
        do_flux(&p);
    }
    leave(&p);
    if (m == 13) { /* and once more, from a mark of the second leg */
        open_program(&p, &at, how);
        run(&p, 29);
        assert_int_equal(p.status, 0);
        leave(&p);
    }
    open_program(&p, &at, how);
    run(&p, STEPS);
    if (p.status < 0)
        fail_msg("left before step %d: %s", (int)m, p.sentence);
    assert_false(cairn_replaying(p.c));
    if (m > 14)
        assert_true(p.nbodies < whole->nbodies);
    check_same(&p, whole);
    assert_ok(cairn_close(p.c));
    place_done(&at);
}

static void test_restarts(void **state)
{
    static program whole;
    static const options all[] = {{0},
                                  {.init = true},
                                  {.forward = true},
                                  {.init = true, .forward = true, .reduce = true},
                                  {.box = true, .init = true},
                                  {.place = "work"},
                                  {.place = "update", .forward = true}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        run_undisturbed(*state, all[i], &whole);
        static const uint64_t left[] = {13, 30, 5, 26};
        const size_t n = i == 0 ? 4 : 2; /* sessions take their time */
        for (size_t k = 0; k < n; k++)
            check_restart(*state, all[i], &whole, left[k]);
    }
}

/* --- what marks have -------------------------------------------------------------------------- */

static uint64_t kept_of(cairn_trail *t, const char *name)
{
    cairn_part_info part = {.struct_bytes = sizeof part};
    cairn_run_info run_info = {.struct_bytes = sizeof run_info};
    assert_ok(cairn_trail_run(t, 0, &run_info));
    assert_true(run_info.nmarks > 0);
    assert_ok(cairn_trail_part(t, 0, run_info.nmarks - 1, 0, &part));
    for (size_t i = 0; i < part.nvars; i++) {
        cairn_variable_info v = {.struct_bytes = sizeof v};
        assert_ok(cairn_trail_variable(t, 0, run_info.nmarks - 1, 0, i, &v));
        if (strcmp(v.name, name) == 0)
            return v.kept_bytes;
    }
    fail_msg("the mark has no '%s'", name);
    return 0;
}

static void check_kept(crn_comm *comm, options how, bool work)
{
    static program p;
    place at;
    char path[96];
    place_init(&at, comm, config);
    open_program(&p, &at, how);
    run(&p, STEPS);
    assert_int_equal(p.status, 0);
    assert_ok(cairn_close(p.c));
    if (at.rank == 0) {
        cairn_trail *t;
        snprintf(path, sizeof path, "%s/trail", at.dir);
        assert_ok(cairn_trail_open(path, &t));
        assert_int_equal(kept_of(t, "a"), sizeof p.fa);
        assert_int_equal(kept_of(t, "flux"), 0);
        assert_int_equal(kept_of(t, "work"), work ? sizeof p.fwork : 0);
        assert_int_equal(kept_of(t, "fixed"), how.init ? 0 : sizeof p.ffixed);
        cairn_trail_close(t);
    }
    place_done(&at);
}

/* Before 'flux' one field is live, before 'update' two: the choice finds the first. */
static void test_kept(void **state)
{
    check_kept(*state, (options){.init = true}, false);
    check_kept(*state, (options){0}, false);
    check_kept(*state, (options){.init = true, .box = true}, false);
    check_kept(*state, (options){.init = true, .place = "update"}, true);
}

/* --- a log that is full ----------------------------------------------------------------------- */

/* The version of the newest mark: how many regions came before it. */
static uint64_t newest_mark(crn_comm *comm, options how)
{
    static program p;
    place at;
    char path[96];
    uint64_t version = 0;
    place_init(&at, comm, config);
    open_program(&p, &at, how);
    run(&p, STEPS);
    assert_int_equal(p.status, 0);
    assert_ok(cairn_close(p.c));
    if (at.rank == 0) {
        cairn_trail *t;
        cairn_run_info run_info = {.struct_bytes = sizeof run_info};
        cairn_mark_info mark = {.struct_bytes = sizeof mark};
        snprintf(path, sizeof path, "%s/trail", at.dir);
        assert_ok(cairn_trail_open(path, &t));
        assert_ok(cairn_trail_run(t, 0, &run_info));
        assert_true(run_info.nmarks > 0);
        assert_ok(cairn_trail_mark(t, 0, run_info.nmarks - 1, &mark));
        version = mark.version;
        cairn_trail_close(t);
    }
    assert_ok(crn_comm_bcast(at.comm, &version, sizeof version, 0));
    place_done(&at);
    return version;
}

/* A full log of one rank is no failure: no mark is taken until a forward point. */
static void test_full_log(void **state)
{
    enum { REGIONS = 4, SOME = 220 }; /* a step has four regions, and 14 bytes of log */
    assert_true(newest_mark(*state, (options){0}) > (uint64_t)25 * REGIONS);
    const uint64_t full = newest_mark(*state, (options){.log_bytes = SOME});
    assert_true(full < (uint64_t)20 * REGIONS);
    const uint64_t emptied = newest_mark(*state, (options){.log_bytes = SOME, .forward_at = 20});
    assert_true(emptied > (uint64_t)25 * REGIONS);
}

/* --- what is refused ----------------------------------------------------------------------------
 */

static void check_changed(crn_comm *comm, options now, const char *first, const char *second)
{
    static program p;
    place at;
    place_init(&at, comm, config);
    open_program(&p, &at, (options){0});
    run(&p, 20);
    leave(&p);
    open_program(&p, &at, now);
    run(&p, STEPS);
    assert_int_equal(p.status, CAIRN_EMISMATCH);
    if (!strstr(p.sentence, first) || !strstr(p.sentence, second))
        fail_msg("'%s' does not name '%s' and '%s'", p.sentence, first, second);
    leave(&p);
    place_done(&at);
}

static void test_changed_programs(void **state)
{
    check_changed(*state, (options){.other_site = "fluxes"}, "fluxes(R a, R fixed, W flux)",
                  "flux(R a, R fixed, W flux)");
    check_changed(*state, (options){.value_bytes = 4}, "a value of 4 bytes", "a value of 8 bytes");
}

static void test_misuse(void **state)
{
    static program p;
    place at;
    const uint64_t lo[2] = {0, 0}, hi[2] = {ROWS + 1, 1};
    place_init(&at, *state, config);
    open_program(&p, &at, (options){0});
    assert_int_equal(cairn_variable(p.c, "other"), 0);
    assert_non_null(strstr(cairn_last_error(p.c), "'other'"));
    assert_refused(p.c, cairn_region(p.c, "early", CAIRN_R(p.a)), CAIRN_EINVAL, "cairn_regions");
    assert_refused(p.c, cairn_value(p.c, &p.dt, 8), CAIRN_EINVAL, "cairn_regions");
    assert_ok(cairn_always(p.c, p.a));
    assert_refused(p.c, cairn_never(p.c, p.a), CAIRN_EINVAL, "always and never");
    assert_int_equal(cairn_regions(p.c, NULL), CAIRN_NOTHING);
    assert_refused(p.c, cairn_regions(p.c, NULL), CAIRN_EINVAL, "before");
    assert_refused(p.c, cairn_region(p.c, "x", CAIRN_R(99)), CAIRN_EINVAL, "no variable");
    assert_refused(p.c, cairn_region(p.c, "x", CAIRN_R_BOX(p.a, lo, hi)), CAIRN_EINVAL, "no such");
    assert_ok(cairn_initialised(p.c));
    assert_refused(p.c, cairn_initialised(p.c), CAIRN_EINVAL, "once");
    assert_ok(cairn_close(p.c));
    place_done(&at);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_restarts), cmocka_unit_test(test_kept),
        cmocka_unit_test(test_full_log), cmocka_unit_test(test_changed_programs),
        cmocka_unit_test(test_misuse),
    };
    return run_mpi_tests(argc, argv, tests);
}
