/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bytes of collectives by one rule, whichever call gives the same data away; the names of files,
 * and calls of Cairn's own.
 *
 * NEEDS: random123
 */
#include "harness/small_trace.h"
#include "traceview/traceview.h"

enum { RANKS = 4, COUNT = 25, EACH = 8 * COUNT };

/* Columns are those of calls.table; a list follows its total. */
static void lists(small_rank *x, uint32_t call, const int64_t *value, int first, int second,
                  const int64_t *counts)
{
    crn_record r = {.call = call, .comm_rank = x->rank, .comm_size = x->nranks};
    r.ncolumns = crn_call_row(call)->ncolumns;
    memcpy(r.value, value, (size_t)r.ncolumns * sizeof *value);
    if (first >= 0)
        r.list[first] = (crn_list){counts, RANKS};
    if (second >= 0)
        r.list[second] = (crn_list){counts, RANKS};
    small_add(x, &r, 1, 500);
}

static void program(small_rank *x)
{
    const int64_t counts[RANKS] = {COUNT, COUNT, COUNT, COUNT}, all = RANKS * COUNT;
    const int64_t place = x->rank == 1; /* one rank gives what it gives in place */
    const bool root = x->rank == 0;
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    small_event(x, CRN_CALL_MPI_Alltoall, 2, (int64_t[]){place, place ? 0 : COUNT, 0, COUNT, 0, 0});
    lists(x, CRN_CALL_MPI_Alltoallv, (int64_t[]){place, place ? 0 : all, 0, 0, all, 0, 0, 0},
          place ? -1 : 2, 5, counts);
    small_event(x, CRN_CALL_MPI_Alltoallw, 2,
                (int64_t[]){place, place ? 0 : RANKS * EACH, RANKS * EACH, 0});
    small_event(x, CRN_CALL_MPI_Allgather, 2,
                (int64_t[]){place, place ? 0 : COUNT, 0, COUNT, 0, 0});
    lists(x, CRN_CALL_MPI_Allgatherv, (int64_t[]){place, place ? 0 : COUNT, 0, all, 0, 0, 0}, 4, -1,
          counts);
    small_event(x, CRN_CALL_MPI_Gather, 2,
                (int64_t[]){root, root ? 0 : COUNT, 0, root ? COUNT : 0, 0, 0, 0});
    small_event(x, CRN_CALL_MPI_Scatter, 2,
                (int64_t[]){root ? COUNT : 0, 0, root, root ? 0 : COUNT, 0, 0, 0});
    small_event(x, CRN_CALL_MPI_Reduce_scatter_block, 2, (int64_t[]){0, COUNT, 0, CRN_OP_SUM, 0});
    lists(x, CRN_CALL_MPI_Reduce_scatter, (int64_t[]){0, all, 0, 0, CRN_OP_SUM, 0}, 2, -1, counts);
    small_event(x, CRN_CALL_MPI_Allreduce, 2, (int64_t[]){place, COUNT, 0, CRN_OP_SUM, 0});
    small_open(x, x->rank % 2 ? "run03/out-1" : "run03/out-2", 3);
    small_event(x, CRN_CALL_write, 3, (int64_t[]){3, 10, 10});
    small_event(x, CRN_CALL_close, 3, (int64_t[]){3});
    small_event(x, CRN_CALL_MPI_Finalize, 1, NULL);
}

static cairn_trace small(void (*what)(small_rank *x))
{
    return (cairn_trace){.t = small_merged(RANKS, 100, true, what)};
}

static void done(cairn_trace *t)
{
    crn_trace_files_done(t);
    crn_trace_free(t->t);
}

static int on_row(void *arg, const cairn_trace_row *r)
{
    static const struct {
        const char *call;
        uint64_t nbytes; /* of a rank */
    } want[] = {{"MPI_Alltoall", RANKS * EACH},
                {"MPI_Alltoallv", RANKS * EACH},
                {"MPI_Alltoallw", RANKS * EACH},
                {"MPI_Allgather", EACH},
                {"MPI_Allgatherv", EACH},
                {"MPI_Gather", EACH},
                {"MPI_Scatter", EACH},
                {"MPI_Reduce_scatter_block", RANKS * EACH},
                {"MPI_Reduce_scatter", RANKS * EACH},
                {"MPI_Allreduce", EACH}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        if (strcmp(r->call, want[i].call) != 0)
            continue;
        if (r->nbytes != want[i].nbytes)
            fail_msg("%s of rank %u: %llu bytes instead of %llu", r->call, r->rank,
                     (unsigned long long)r->nbytes, (unsigned long long)want[i].nbytes);
        ++*(int *)arg;
    }
    return 0;
}

static void test_collectives_have_one_rule(void **state)
{
    cairn_trace t = small(program);
    int n = 0;
    (void)state;
    assert_ok(cairn_trace_sum(&t, CAIRN_TRACE_BY_CALL | CAIRN_TRACE_BY_RANK, on_row, &n));
    assert_int_equal(n, 10 * RANKS);
    done(&t);
}

static int on_file(void *arg, const cairn_trace_row *r)
{
    assert_string_equal(r->file, "run03/out-%d");
    *(uint64_t *)arg += r->nbytes;
    return 0;
}

static void test_digits_that_never_vary_stay(void **state)
{
    cairn_trace t = small(program);
    uint64_t nbytes = 0;
    (void)state;
    assert_ok(cairn_trace_sum(&t, CAIRN_TRACE_BY_FILE, on_file, &nbytes));
    assert_int_equal(nbytes, 10 * RANKS);
    done(&t);
}

/* Plain writes go on; so do those at offsets, from places of their own; lseek leaves gaps. */
static void writing_program(small_rank *x)
{
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    small_open(x, "plain", 3);
    small_open(x, "sought", 4);
    small_open(x, "placed", 5);
    for (int64_t i = 0; i < 10; i++) {
        small_event(x, CRN_CALL_write, 2, (int64_t[]){3, 100, 100});
        small_event(x, CRN_CALL_lseek, 3, (int64_t[]){4, 500 * i, 0, 500 * i});
        small_event(x, CRN_CALL_write, 4, (int64_t[]){4, 100, 100});
        small_event(x, CRN_CALL_pwrite, 5, (int64_t[]){5, 100, 200 * i, 100});
        small_event(x, CRN_CALL_pwrite, 6, (int64_t[]){5, 100, 200 * i + 100, 100});
    }
    small_event(x, CRN_CALL_MPI_Finalize, 1, NULL);
}

static int on_steps(void *arg, const cairn_trace_row *r)
{
    const bool sought = strcmp(r->file, "sought") == 0;
    const uint64_t n = RANKS * (strcmp(r->file, "placed") == 0 ? 19 : 9);
    assert_int_equal(r->nsteps, n);
    assert_int_equal(r->nconsecutive, sought ? 0 : n);
    assert_int_equal(r->nstrided, sought ? n : 0);
    ++*(int *)arg;
    return 0;
}

static void test_patterns_of_accesses(void **state)
{
    cairn_trace t = small(writing_program);
    int n = 0;
    (void)state;
    assert_ok(cairn_trace_sum(&t, CAIRN_TRACE_BY_FILE, on_steps, &n));
    assert_int_equal(n, 3);
    done(&t);
}

/* The first string of small traces is their module, too. */
static void rename_module(cairn_trace *t, const char *name, uint32_t program)
{
    free(t->t->string[1]);
    assert_ok(crn_strdup(name, &t->t->string[1]));
    t->t->program = program;
}

static int count(void *arg, const cairn_trace_row *r)
{
    *(uint64_t *)arg = r->nevents;
    return 0;
}

static uint64_t events_of(cairn_trace *t, unsigned by)
{
    uint64_t n = 0;
    assert_ok(cairn_trace_sum(t, by, count, &n));
    return n;
}

static void test_own_calls_are_left_out(void **state)
{
    cairn_trace t = small(program);
    (void)state;
    const uint64_t all = events_of(&t, 0);
    assert_true(all > 0);
    rename_module(&t, "/usr/lib/libcairn.so.0.1", 0);
    assert_int_equal(events_of(&t, CAIRN_TRACE_OWN), all);
    assert_int_equal(events_of(&t, 0), RANKS); /* opening a file has no site here */
    rename_module(&t, "cairn", 1);             /* a replay */
    assert_int_equal(events_of(&t, 0), all);
    done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collectives_have_one_rule),
        cmocka_unit_test(test_digits_that_never_vary_stay),
        cmocka_unit_test(test_patterns_of_accesses),
        cmocka_unit_test(test_own_calls_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
