/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Many small variables, which marks take together: whatever changes between marks, in values or in
 * what is declared, each mark has exactly what the program had; a mark with one of them changed
 * writes one block; what storage loses comes back with a later mark; and the run can be resumed.
 *
 * TEST: ranks self 2
 * NEEDS: inih
 */
#include "harness/session.h"

#include "io/io_fault.h"

enum { NVARS = 300, WORDS = 900, LARGE = 40000, NMARKS = 16 };

static const char *const settings = "[level]\nlocal = trail\n[keep]\nglobal = all\n"
                                    "[variable v7*]\ncodec = lz4\n[compare]\nleaf = 1KiB\n";

/* The program: odd variables are larger than a sector, and than a leaf. */
typedef struct program {
    uint64_t value[NVARS][WORDS], moved[WORDS], large[LARGE];
} program;

typedef struct job {
    place p;
    cairn *c;
    program *now, *at; /* and as it was at each mark */
    bool moves;        /* the ninth lies elsewhere */
} job;

static char name_of[NVARS][8];

static size_t words_of(size_t v)
{
    return v % 2 ? WORDS - v : 1 + v % 5;
}

static void protect(job *j, size_t v, uint64_t *data)
{
    snprintf(name_of[v], sizeof name_of[v], "v%zu", v);
    assert_ok(cairn_protect(j->c, name_of[v], data, CAIRN_UINT64, words_of(v)));
}

static void set_up(job *j, crn_comm *comm, const char *more)
{
    memset(j, 0, sizeof *j);
    place_init(&j->p, comm, more);
    assert_ok(crn_alloc(&j->now, 1));
    assert_ok(crn_alloc(&j->at, NMARKS));
    for (size_t v = 0; v < NVARS; v++)
        for (size_t i = 0; i < WORDS; i++)
            j->now->value[v][i] = v * 1000003 + i * 101 + (uint64_t)j->p.rank;
    assert_ok(cairn_open(j->p.mpi, j->p.config, &j->c));
    for (size_t v = 0; v < NVARS; v++)
        protect(j, v, j->now->value[v]);
    assert_ok(cairn_protect(j->c, "large", j->now->large, CAIRN_UINT64, LARGE));
}

static void tear_down(job *j)
{
    free(j->now);
    free(j->at);
    place_done(&j->p);
}

/* Take the n-th mark, from 0, and let the program go on before that is stored. */
static void mark(job *j, size_t n, bool settle)
{
    assert_ok(cairn_mark(j->c, n + 1, CAIRN_LEVEL_LOCAL));
    j->at[n] = *j->now;
    if (j->moves)
        memcpy(j->at[n].value[9], j->now->moved, sizeof j->now->moved);
    j->now->value[n][0] += 7;
    if (settle)
        assert_ok(cairn_settle(j->c));
    j->now->value[n][0] -= 7;
}

static void assert_mark(job *j, cairn_trail *t, size_t n)
{
    uint64_t data[WORDS];
    for (size_t v = 0; v < NVARS; v++) {
        assert_ok(cairn_trail_read(t, 0, n, (uint32_t)j->p.rank, name_of[v], data,
                                   words_of(v) * sizeof *data));
        if (memcmp(data, j->at[n].value[v], words_of(v) * sizeof *data) != 0)
            fail_msg("mark %zu, variable '%s' is not as it was", n + 1, name_of[v]);
    }
}

static void assert_marks(job *j, size_t nmarks)
{
    char path[96];
    cairn_trail *t;
    snprintf(path, sizeof path, "%s/trail", j->p.dir);
    assert_ok(cairn_trail_open(path, &t));
    for (size_t n = 0; n < nmarks; n++)
        assert_mark(j, t, n);
    cairn_trail_close(t);
}

/* Blocks that the n-th mark has written on this rank. */
static uint64_t count_written(const job *j, size_t n)
{
    char path[96];
    cairn_trail *t;
    cairn_part_info part = {.struct_bytes = sizeof part};
    uint64_t sum = 0;
    snprintf(path, sizeof path, "%s/trail", j->p.dir);
    assert_ok(cairn_trail_open(path, &t));
    assert_ok(cairn_trail_part(t, 0, n, (uint32_t)j->p.rank, &part));
    for (size_t v = 0; v < part.nvars; v++) {
        cairn_variable_info info = {.struct_bytes = sizeof info};
        assert_ok(cairn_trail_variable(t, 0, n, (uint32_t)j->p.rank, v, &info));
        sum += info.nchanged;
    }
    cairn_trail_close(t);
    return sum;
}

/* What happens between two marks. */
static void change(job *j, size_t n)
{
    program *s = j->now;
    switch (n) {
    case 2: /* one */
        s->value[77][3]++;
        break;
    case 3: /* many */
        for (size_t v = 0; v < NVARS; v += 3)
            s->value[v][0] ^= n;
        break;
    case 4: /* one lies elsewhere, with other values */
        memcpy(s->moved, s->value[9], sizeof s->moved);
        s->moved[1]++;
        protect(j, 9, s->moved);
        j->moves = true;
        break;
    case 6: /* a word more about one */
        assert_ok(cairn_describe(j->c, name_of[8], "unit", "m"));
        break;
    case 7:
        s->large[17]++;
        s->value[0][0]++;
        break;
    case 8: /* a mark that is not taken */
        s->value[10][0]++;
        assert_ok(cairn_begin(j->c, 100, CAIRN_LEVEL_LOCAL));
        assert_ok(cairn_capture(j->c, name_of[10]));
        assert_ok(cairn_cancel(j->c));
        s->value[10][0]++;
        break;
    case 10: /* bounds, by which one is compared */
        assert_ok(cairn_set_bounds(j->c, name_of[12], "0"));
        s->value[12][0]++;
        break;
    case 13: /* a mark that fails on one rank, and is taken again */
        s->value[40][0]++;
        if (j->p.rank == 0)
            crn_fault_arm(&(crn_fault){CRN_FAULT_WRITE, CRN_FAULT_ENOSPC, 1, 0});
        assert_ok(cairn_mark(j->c, n + 1, CAIRN_LEVEL_LOCAL));
        assert_true(cairn_settle(j->c) < 0);
        crn_fault_arm(NULL);
        break;
    default:
        s->value[n][0] += n;
    }
}

static void test_marks_are_exact(void **state)
{
    job j;
    uint64_t version = 0;
    set_up(&j, *state, settings);
    assert_int_equal(cairn_resume(j.c, NULL), CAIRN_NOTHING);
    mark(&j, 0, true);
    for (size_t n = 1; n < NMARKS; n++) {
        if (n > 1)
            change(&j, n);
        mark(&j, n, n % 3 == 0);
    }
    assert_ok(cairn_settle(j.c));
    assert_marks(&j, NMARKS);
    assert_int_equal(count_written(&j, 1), 0);
    assert_int_equal(count_written(&j, 2), 1);
    assert_int_equal(count_written(&j, 3), NVARS / 3);
    assert_int_equal(count_written(&j, 7), 2);
    assert_int_equal(count_written(&j, NMARKS - 1), 1);
    leave_session(j.c);
    assert_ok(cairn_open(j.p.mpi, j.p.config, &j.c));
    for (size_t v = 0; v < NVARS; v++)
        protect(&j, v, j.now->value[v]);
    assert_ok(cairn_protect(j.c, "large", j.now->large, CAIRN_UINT64, LARGE));
    memset(j.now, 0, sizeof *j.now);
    assert_ok(cairn_resume(j.c, &version));
    assert_int_equal(version, NMARKS);
    for (size_t v = 0; v < NVARS; v++)
        assert_memory_equal(j.now->value[v], j.at[NMARKS - 1].value[v], words_of(v) * 8);
    assert_ok(cairn_close(j.c));
    tear_down(&j);
}

/* In a mark of its own way: one is captured early, and changes again before the commit. */
static void test_one_is_captured_early(void **state)
{
    job j;
    set_up(&j, *state, settings);
    mark(&j, 0, true);
    mark(&j, 1, true);
    assert_ok(cairn_begin(j.c, 3, CAIRN_LEVEL_LOCAL));
    j.now->value[20][0]++;
    assert_ok(cairn_capture(j.c, name_of[20]));
    j.at[2] = *j.now;
    j.now->value[20][0]++;
    assert_ok(cairn_commit(j.c));
    mark(&j, 3, false);
    mark(&j, 4, true);
    assert_marks(&j, 5);
    assert_int_equal(count_written(&j, 2), 1);
    assert_int_equal(count_written(&j, 3), 1);
    assert_int_equal(count_written(&j, 4), 0);
    assert_ok(cairn_close(j.c));
    tear_down(&j);
}

/* Of a variable that does not change, storage loses what it has: some later mark puts it again. */
static void test_losses_are_healed(void **state)
{
    job j;
    uint64_t lost;
    set_up(&j, *state, "[level]\nlocal = trail\n[keep]\nglobal = 1\n");
    lost = j.now->value[251][5];
    mark(&j, 0, true);
    mark(&j, 1, true);
    double as_value;
    memcpy(&as_value, &lost, sizeof lost);
    place_damage(&j.p, "run-1", j.p.rank, as_value);
    for (size_t n = 2; n < 2 + 2 * 64; n++) { /* each mark looks at another share */
        assert_ok(cairn_mark(j.c, n + 1, CAIRN_LEVEL_LOCAL));
        assert_ok(cairn_settle(j.c));
    }
    char path[96];
    cairn_trail *t;
    uint64_t data[WORDS];
    snprintf(path, sizeof path, "%s/trail", j.p.dir);
    assert_ok(cairn_trail_open(path, &t));
    assert_ok(cairn_trail_read(t, 0, 0, (uint32_t)j.p.rank, name_of[251], data,
                               words_of(251) * sizeof *data));
    assert_int_equal(data[5], lost);
    cairn_trail_close(t);
    assert_ok(cairn_close(j.c));
    tear_down(&j);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marks_are_exact),
        cmocka_unit_test(test_one_is_captured_early),
        cmocka_unit_test(test_losses_are_healed),
    };
    return run_mpi_tests(argc, argv, tests);
}
