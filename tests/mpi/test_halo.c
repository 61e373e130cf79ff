/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What lies in memory around a piece comes back bit for bit on the same ranks in the same pieces:
 * neighbours that compute the same vertices hold them with other last bits. Elsewhere it comes from
 * the neighbours' pieces.
 *
 * TEST: ranks 2 4
 *
 * NEEDS: isal
 */
#include "ckpt/ckpt_session.h"
#include "harness/session.h"

#include <math.h>
#include <unistd.h>

enum { NX = 12, NY = 90, WIDTH = 3, MAX = (NX + 2 * WIDTH) * (NY + 2 * WIDTH) };

/* The rows that a rank owns of an array of NX x NY, with memory around them. */
typedef struct field {
    int rank, nranks;
    uint64_t first, nrows, before, after;
    size_t n; /* of all memory */
    double at[MAX];
} field;

static field cut(const place *p, uint64_t before, uint64_t after, uint64_t shift)
{
    field f = {.rank = p->rank, .nranks = p->nranks, .before = before, .after = after};
    const uint64_t n = (uint64_t)p->nranks, r = (uint64_t)p->rank;
    f.first = r == 0 ? 0 : NX * r / n + shift;
    f.nrows = (r + 1 == n ? NX : NX * (r + 1) / n + shift) - f.first;
    f.n = (before + f.nrows + after) * (before + NY + after);
    return f;
}

static bool is_own(const field *f, size_t i)
{
    const uint64_t wide = f->before + NY + f->after, x = i / wide, y = i % wide;
    return x >= f->before && x < f->before + f->nrows && y >= f->before && y < f->before + NY;
}

/* The owner's value of a place that is in the array; NAN elsewhere. */
static double owned(const field *f, size_t i, uint64_t step)
{
    const uint64_t wide = f->before + NY + f->after;
    const uint64_t x = f->first + i / wide - f->before, y = i % wide - f->before;
    return x < NX && y < NY ? sin((double)(x * NY + y + 1000 * step)) : (double)NAN;
}

/* What a rank computes itself: the owner's value, or, around its piece, one whose last bit is
 * other; something of its own where the array has ended. */
static double held(const field *f, size_t i, uint64_t step)
{
    const double v = owned(f, i, step);
    if (is_own(f, i))
        return v;
    return isnan(v) ? 1e6 * (f->rank + 1) + (double)i + (double)step : nextafter(v, 2);
}

static void fill(field *f, uint64_t step)
{
    for (size_t i = 0; i < f->n; i++)
        f->at[i] = held(f, i, step);
}

static void protect(cairn *c, field *f, bool halo)
{
    cairn_piece piece = {.struct_bytes = sizeof piece,
                         .ndims = 2,
                         .global = {NX, NY},
                         .offset = {f->first, 0},
                         .count = {f->nrows, NY},
                         .before = {f->before, f->before},
                         .after = {f->after, f->after},
                         .halo = halo};
    assert_ok(cairn_protect_piece(c, "field", f->at, CAIRN_FLOAT64, &piece));
}

/* Three marks, of which the second is captured by hand; the program goes on at once. */
static void write_marks(const place *p, field *f, cairn_level level)
{
    cairn *c;
    assert_ok(cairn_open(p->mpi, p->config, &c));
    for (uint64_t step = 1; step <= 3; step++) {
        fill(f, step);
        protect(c, f, true);
        assert_ok(cairn_begin(c, step, level));
        if (step == 2) {
            assert_ok(cairn_capture(c, "field"));
            fill(f, 99);
        }
        assert_ok(cairn_commit(c));
    }
    assert_int_equal(cairn_set_bounds(c, "field#halo", "1"), CAIRN_ENOTFOUND);
    assert_int_equal(cairn_release(c, "field#halo"), CAIRN_ENOTFOUND);
    assert_int_equal(cairn_protect(c, "a#halo", f->at, CAIRN_FLOAT64, 1), CAIRN_EINVAL);
    assert_ok(cairn_settle(c));
    leave_session(c);
}

static void clear(field *f)
{
    for (size_t i = 0; i < f->n; i++)
        f->at[i] = -1;
}

/* Bring back a mark; another variable, if wanted, is no part of it. */
static void resume(const place *p, field *f, bool halo, uint64_t version)
{
    cairn *c;
    clear(f);
    assert_ok(cairn_open(p->mpi, p->config, &c));
    protect(c, f, halo);
    if (cairn_resume_at(c, version) != CAIRN_OK)
        fail_msg("%s", cairn_last_error(c));
    leave_session(c);
}

static void assert_as_held(const field *f, uint64_t step)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->at[i] != held(f, i, step))
            fail_msg("rank %d: %zu is %.17g, not %.17g", f->rank, i, f->at[i], held(f, i, step));
}

/* Around the piece is what its owners had, where there is anything. */
static void assert_as_owned(const field *f, uint64_t step, bool halo)
{
    for (size_t i = 0; i < f->n; i++) {
        const double v = owned(f, i, step), want = isnan(v) || !(halo || is_own(f, i)) ? -1 : v;
        if (f->at[i] != want)
            fail_msg("rank %d: %zu is %.17g, not %.17g", f->rank, i, f->at[i], want);
    }
}

typedef struct way {
    const char *settings;
    cairn_level level;
} way;

static const way ways[] = {
    {"[keep]\nlocal = 3\nglobal = 3\n[level]\nlocal = trail\n", CAIRN_LEVEL_LOCAL},
    {"[keep]\nlocal = 3\nglobal = 3\n[level]\nlocal = trail\n[variable]\nblock = "
     "1KiB\n[compare]\ntrees = no\n",
     CAIRN_LEVEL_LOCAL},
    {"[keep]\nlocal = 3\nglobal = 3\n[level]\nlocal = @/local\n[global]\nformat = "
     "hdf5\n[mark]\nmode = synchronous\n",
     CAIRN_LEVEL_GLOBAL},
};

static void check(const place *p, cairn_level level)
{
    field f = cut(p, 1, 2, 0);
    write_marks(p, &f, level);
    const field wider = cut(p, 2, 2, 0), moved = cut(p, 1, 2, 1);
    field now = f;
    for (uint64_t step = 1; step <= 3; step++) {
        resume(p, &now, true, step);
        assert_as_held(&now, step);
    }
    resume(p, &now, false, 3); /* not asked for any more */
    assert_as_owned(&now, 3, false);
    now = wider;
    resume(p, &now, true, 3);
    assert_as_owned(&now, 3, true);
    now = moved;
    resume(p, &now, true, 3);
    assert_as_owned(&now, 3, true);
}

static void test_same_and_other_pieces(void **state)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        place p;
        place_init(&p, *state, ways[i].settings);
        check(&p, ways[i].level);
        place_done(&p);
    }
}

/* Some ranks have their old piece and others do not, or not everything in the mark is wanted: who
 * has its piece goes on with what it held. */
static void test_some_move(void **state)
{
    place p;
    place_init(&p, *state, ways[0].settings);
    field f = cut(&p, 1, 1, 0);
    write_marks(&p, &f, CAIRN_LEVEL_LOCAL);
    field now = p.rank + 1 == p.nranks ? cut(&p, 2, 1, 0) : f;
    resume(&p, &now, true, 3);
    if (p.rank + 1 == p.nranks)
        assert_as_owned(&now, 3, true);
    else
        assert_as_held(&now, 3);
    place_done(&p);
}

/* On fewer ranks there is nothing but the pieces. */
static void test_other_ranks(void **state)
{
    place p;
    MPI_Comm one;
    place_init(&p, *state, ways[0].settings);
    field f = cut(&p, 1, 1, 0);
    write_marks(&p, &f, CAIRN_LEVEL_LOCAL);
    MPI_Comm_split(MPI_COMM_WORLD, p.rank == 0 ? 0 : MPI_UNDEFINED, p.rank, &one);
    if (p.rank == 0) {
        const place alone = {.nranks = 1};
        place q = p;
        q.mpi = one;
        field whole = cut(&alone, 1, 1, 0);
        resume(&q, &whole, true, 3);
        assert_as_owned(&whole, 3, true);
        MPI_Comm_free(&one);
    }
    assert_ok(crn_comm_barrier(p.comm));
    place_done(&p);
}

static int count_rows(void *arg, const cairn_comparison_row *r)
{
    ++*(int *)arg;
    assert_string_equal(r->variable, "field");
    return 0;
}

/* Runs whose pieces are equal are the same, whatever lies around these. */
static void test_compared(void **state)
{
    static const char *const name[] = {"a", "b"};
    char run[2][96];
    place p;
    place_init(&p, *state, ways[0].settings);
    for (int k = 0; k < 2; k++) {
        cairn *c;
        field f = cut(&p, 1, 1, 0);
        setenv("CAIRN_RUN_NAME", name[k], 1);
        assert_ok(cairn_open(p.mpi, p.config, &c));
        fill(&f, 1);
        f.at[0] += k;
        protect(c, &f, true);
        assert_ok(cairn_mark(c, 1, CAIRN_AUTO));
        assert_ok(cairn_close(c));
        snprintf(run[k], sizeof run[k], "%s/trail/%s", p.dir, name[k]);
    }
    unsetenv("CAIRN_RUN_NAME");
    for (int direct = 0; direct < 2; direct++) {
        int nrows = 0;
        cairn_comparison sum = {.struct_bytes = sizeof sum};
        const cairn_comparison_options how = {
            .struct_bytes = sizeof how, .direct = direct, .row = count_rows, .arg = &nrows};
        assert_ok(cairn_compare(p.mpi, run[0], run[1], &how, &sum));
        assert_int_equal(sum.verdict, CAIRN_SAME);
        assert_int_equal(nrows, p.rank == 0);
    }
    place_done(&p);
}

/* Protected again in other ways, a piece takes what lies around it along. */
static void test_declared_anew(void **state)
{
    place p;
    cairn *c;
    place_init(&p, *state, ways[0].settings);
    field f = cut(&p, 1, 1, 0), g = cut(&p, 2, 1, 0);
    assert_ok(cairn_open(p.mpi, p.config, &c));
    protect(c, &f, true);
    protect(c, &g, true);
    assert_int_equal(c->var.n, 2);
    assert_int_equal(c->var.at[1].nbytes, (g.n - g.nrows * NY) * sizeof(double));
    protect(c, &g, false);
    assert_int_equal(c->var.n, 1);
    protect(c, &g, true);
    assert_ok(cairn_protect(c, "field", f.at, CAIRN_FLOAT64, 1));
    assert_int_equal(c->var.n, 1);
    protect(c, &g, true);
    assert_ok(cairn_release(c, "field"));
    assert_int_equal(c->var.n, 0);
    leave_session(c);
    place_done(&p);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_and_other_pieces), cmocka_unit_test(test_some_move),
        cmocka_unit_test(test_other_ranks),           cmocka_unit_test(test_compared),
        cmocka_unit_test(test_declared_anew),
    };
    return run_mpi_tests(argc, argv, tests);
}
