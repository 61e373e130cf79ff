/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Marks that have less than all of a variable: what is captured in boxes, at different moments,
 * comes back; what was left out is not touched, on as many ranks and on others; the next mark may
 * have all again; comparing does not look at what is not there.
 *
 * TEST: ranks self 1 2 4
 * NEEDS: inih
 */
#include "harness/session.h"

enum { N = 96, ROWS = 64, COLS = 48 };

typedef struct program {
    place place;
    cairn *c;
    double whole[N], none[N];
    double grid[ROWS][COLS]; /* a piece per rank, of rows of a global array */
    uint64_t first, nrows;
} program;

static cairn_box box_of(uint64_t nrows, uint64_t lo0, uint64_t hi0, uint64_t lo1, uint64_t hi1)
{
    return (cairn_box){.struct_bytes = sizeof(cairn_box),
                       .ndims = 2,
                       .extent = {nrows, COLS},
                       .lo = {lo0, lo1},
                       .hi = {hi0, hi1}};
}

static double value_at(uint64_t row, uint64_t col)
{
    return (double)(row * COLS + col) + 0.5;
}

static void fill(program *p)
{
    for (int i = 0; i < N; i++) {
        p->whole[i] = i + 1;
        p->none[i] = -i - 1;
    }
    for (uint64_t i = 0; i < p->nrows; i++)
        for (uint64_t k = 0; k < COLS; k++)
            p->grid[i][k] = value_at(p->first + i, k);
}

static void poison(program *p)
{
    for (int i = 0; i < N; i++)
        p->whole[i] = p->none[i] = 777;
    for (uint64_t i = 0; i < ROWS; i++)
        for (uint64_t k = 0; k < COLS; k++)
            p->grid[i][k] = 777;
}

/* Rows are shared out from the start or from the end, so that a restart finds other pieces. */
static void share_rows(program *p, bool turned, int nranks)
{
    const uint64_t rank = (uint64_t)(turned ? nranks - 1 - p->place.rank : p->place.rank);
    p->first = ROWS * rank / (uint64_t)nranks;
    p->nrows = ROWS * (rank + 1) / (uint64_t)nranks - p->first;
}

static void open_program(program *p, bool turned)
{
    const uint64_t zero = 0;
    assert_ok(cairn_open(p->place.mpi, p->place.config, &p->c));
    share_rows(p, turned, p->place.nranks);
    const uint64_t global[2] = {ROWS, COLS}, offset[2] = {p->first, zero};
    const uint64_t count[2] = {p->nrows, COLS};
    assert_ok(cairn_protect(p->c, "whole", p->whole, CAIRN_FLOAT64, N));
    assert_ok(cairn_protect(p->c, "none", p->none, CAIRN_FLOAT64, N));
    assert_ok(cairn_protect_part(p->c, "grid", p->grid, CAIRN_FLOAT64, 2, global, offset, count));
}

/* Columns 0 to 7 are captured at first; 16 to 31 later, after others were overwritten. */
static void mark_boxes(program *p, uint64_t version)
{
    assert_ok(cairn_begin(p->c, version, CAIRN_LEVEL_GLOBAL));
    const cairn_box left = box_of(p->nrows, 0, p->nrows, 0, 8);
    const cairn_box middle = box_of(p->nrows, 0, p->nrows, 16, 32);
    assert_ok(cairn_capture_box(p->c, "grid", &left));
    for (uint64_t i = 0; i < p->nrows; i++)
        for (uint64_t k = 0; k < COLS; k++)
            if (k < 8 || k >= 32)
                p->grid[i][k] = -1;
    assert_ok(cairn_capture_box(p->c, "grid", &middle));
    for (uint64_t i = 0; i < p->nrows; i++)
        for (uint64_t k = 16; k < 32; k++)
            p->grid[i][k] = -2;
    assert_ok(cairn_omit(p->c, "none"));
    assert_ok(cairn_commit(p->c));
    assert_ok(cairn_settle(p->c));
}

static void check_restored(const program *p)
{
    for (int i = 0; i < N; i++) {
        assert_true(p->whole[i] == i + 1);
        assert_true(p->none[i] == 777);
    }
    for (uint64_t i = 0; i < p->nrows; i++)
        for (uint64_t k = 0; k < COLS; k++) {
            const bool kept = k < 8 || (k >= 16 && k < 32);
            assert_true(p->grid[i][k] == (kept ? value_at(p->first + i, k) : 777));
        }
}

static void test_boxes_come_back(void **state)
{
    for (int turned = 0; turned < 2; turned++) {
        program p = {0};
        place_init(&p.place, *state, "");
        open_program(&p, false);
        fill(&p);
        mark_boxes(&p, 1);
        leave_session(p.c);
        poison(&p);
        open_program(&p, turned);
        assert_ok(cairn_resume(p.c, NULL));
        check_restored(&p);
        fill(&p);
        assert_ok(cairn_mark(p.c, 2, CAIRN_LEVEL_GLOBAL)); /* with all again */
        leave_session(p.c);
        poison(&p);
        open_program(&p, turned);
        assert_ok(cairn_resume(p.c, NULL));
        for (uint64_t k = 0; k < COLS && p.nrows > 0; k++)
            assert_true(p.grid[0][k] == value_at(p.first, k));
        assert_true(p.none[3] == -4);
        assert_ok(cairn_close(p.c));
        place_done(&p.place);
    }
}

/* One rank reads what several wrote. */
static void test_fewer_ranks(void **state)
{
    program p = {0};
    place_init(&p.place, *state, "");
    if (p.place.nranks == 1) {
        place_done(&p.place);
        return;
    }
    open_program(&p, false);
    fill(&p);
    mark_boxes(&p, 1);
    leave_session(p.c);
    poison(&p);
    assert_ok(crn_comm_barrier(p.place.comm));
    if (p.place.rank == 0) {
        program one = p;
        one.place.nranks = 1;
        one.place.mpi = MPI_COMM_SELF;
        open_program(&one, false);
        assert_int_equal(one.nrows, ROWS);
        assert_ok(cairn_resume(one.c, NULL));
        check_restored(&one);
        assert_ok(cairn_close(one.c));
    }
    place_done(&p.place);
}

static void test_read_one_variable(void **state)
{
    program p = {0};
    double copy[N] = {0};
    uint64_t version = 0;
    place_init(&p.place, *state, "");
    open_program(&p, false);
    assert_int_equal(cairn_probe_read(p.c, "whole", copy, CAIRN_FLOAT64, N), CAIRN_NOTHING);
    fill(&p);
    mark_boxes(&p, 5);
    leave_session(p.c);
    poison(&p);
    assert_ok(cairn_open(p.place.mpi, p.place.config, &p.c));
    assert_ok(cairn_probe(p.c, &version));
    assert_int_equal(version, 5);
    assert_ok(cairn_probe_read(p.c, "whole", copy, CAIRN_FLOAT64, N));
    for (int i = 0; i < N; i++)
        assert_true(copy[i] == i + 1);
    assert_refused(p.c, cairn_probe_read(p.c, "whole", copy, CAIRN_FLOAT64, N - 1), CAIRN_EMISMATCH,
                   "'whole'");
    assert_refused(p.c, cairn_probe_read(p.c, "other", copy, CAIRN_FLOAT64, N), CAIRN_EMISMATCH,
                   "'other'");
    leave_session(p.c);
    place_done(&p.place);
}

static void test_misuse(void **state)
{
    program p = {0};
    place_init(&p.place, *state, "");
    open_program(&p, false);
    fill(&p);
    const cairn_box a = box_of(p.nrows, 0, p.nrows, 0, 8), b = box_of(p.nrows, 0, p.nrows, 7, 9);
    const cairn_box wrong = box_of(p.nrows + 1, 0, p.nrows, 0, 8);
    assert_refused(p.c, cairn_capture_box(p.c, "grid", &a), CAIRN_EINVAL, "no mark is open");
    assert_refused(p.c, cairn_omit(p.c, "grid"), CAIRN_EINVAL, "no mark is open");
    assert_ok(cairn_begin(p.c, 1, CAIRN_LEVEL_GLOBAL));
    assert_refused(p.c, cairn_capture_box(p.c, "grid", &wrong), CAIRN_EINVAL, "elements");
    assert_ok(cairn_capture_box(p.c, "grid", &a));
    assert_refused(p.c, cairn_capture_box(p.c, "grid", &b), CAIRN_EINVAL, "overlap");
    assert_refused(p.c, cairn_capture(p.c, "grid"), CAIRN_EINVAL, "captured before");
    assert_refused(p.c, cairn_release(p.c, "grid"), CAIRN_EINVAL, "is open");
    assert_refused(p.c, cairn_omit(p.c, "other"), CAIRN_ENOTFOUND, "'other'");
    assert_ok(cairn_cancel(p.c));
    assert_ok(cairn_mark(p.c, 1, CAIRN_LEVEL_GLOBAL)); /* of all: what was given up is forgotten */
    assert_ok(cairn_begin(p.c, 2, CAIRN_LEVEL_GLOBAL));
    assert_ok(cairn_capture(p.c, "grid"));
    assert_refused(p.c, cairn_capture_box(p.c, "grid", &a), CAIRN_EINVAL, "captured before");
    assert_ok(cairn_commit(p.c));
    assert_ok(cairn_close(p.c));
    place_done(&p.place);
}

static void compare_runs(const program *p, const char *second, cairn_comparison *ret)
{
    char a[128], b[128];
    *ret = (cairn_comparison){.struct_bytes = sizeof *ret};
    const cairn_comparison_options how = {.struct_bytes = sizeof how, .all = true};
    snprintf(a, sizeof a, "%s/trail/run-1", p->place.dir);
    snprintf(b, sizeof b, "%s/trail/%s", p->place.dir, second);
    assert_ok(cairn_compare(p->place.mpi, a, b, &how, ret));
}

/* Runs whose memory differs only where neither mark has it are the same; one with all of it cannot
 * be told. */
static void test_compared(void **state)
{
    program p = {0};
    cairn_comparison r;
    place_init(&p.place, *state, "");
    for (int run = 0; run < 3; run++) {
        open_program(&p, false);
        fill(&p);
        p.none[7] = run;
        p.grid[0][40] = run;
        if (run < 2)
            mark_boxes(&p, 1);
        else
            assert_ok(cairn_mark(p.c, 1, CAIRN_LEVEL_GLOBAL));
        assert_ok(cairn_close(p.c));
    }
    compare_runs(&p, "run-2", &r);
    assert_int_equal(r.verdict, CAIRN_SAME);
    compare_runs(&p, "run-3", &r);
    assert_int_equal(r.verdict, CAIRN_INCONCLUSIVE);
    place_done(&p.place);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_boxes_come_back),   cmocka_unit_test(test_fewer_ranks),
        cmocka_unit_test(test_read_one_variable), cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_compared),
    };
    return run_mpi_tests(argc, argv, tests);
}
