/* SPDX-License-Identifier: BSD-3-Clause
 *
 * At 0 per cent only the shape is kept, and distributions: sums over all ranks, call by call and
 * site by site, are still those of the lossless trace, up to what histograms lose.
 *
 * NEEDS: zstd random123
 */
#include "harness/opened_trace.h"

enum { NRANKS = 6, TURNS = 300, SIZES = 1000, SITES = 32, UNIT = 8 };

typedef struct sums {
    struct {
        char call[32], site[64];
        uint64_t nevents, nbytes;
        bool expected;
    } row[SITES];
    size_t n;
} sums;

/* Neither the sizes, the peers, the requests of a turn nor their number have any rule. */
static void irregular_program(small_rank *x)
{
    crn_rng rng = crn_rng_of(11, x->rank);
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    small_open(x, "out", 3);
    for (int i = 0; i < TURNS; i++) {
        for (uint64_t k = crn_rng_below(&rng, 5); k > 0; k--) {
            int64_t count = (int64_t)crn_rng_below(&rng, SIZES);
            int64_t to = (int64_t)crn_rng_below(&rng, x->nranks);
            small_event(x, CRN_CALL_MPI_Send, 5, (int64_t[]){count, 0, to, 1, 0});
            if (crn_rng_below(&rng, 2))
                small_event(x, CRN_CALL_MPI_Send, 6, (int64_t[]){2 * count, 0, to, 2, 0});
        }
        int64_t size = UNIT * (int64_t)crn_rng_below(&rng, SIZES);
        small_event(x, CRN_CALL_write, 7, (int64_t[]){3, size, size});
        small_event(x, CRN_CALL_MPI_Allreduce, 8, (int64_t[]){0, 1 + i % 3, 0, CRN_OP_SUM, 0});
    }
    small_event(x, CRN_CALL_close, 9, (int64_t[]){3});
    small_event(x, CRN_CALL_MPI_Finalize, 2, NULL);
}

typedef struct summing {
    cairn_trace *t;
    sums *into;
} summing;

static int add_row(void *arg, const cairn_trace_row *r)
{
    const summing *s = arg;
    size_t i = s->into->n++;
    assert_in_range(i, 0, SITES - 1);
    snprintf(s->into->row[i].call, sizeof s->into->row[i].call, "%s", r->call);
    cairn_trace_site(s->t, r->site, s->into->row[i].site, sizeof s->into->row[i].site);
    s->into->row[i].nevents = r->nevents;
    s->into->row[i].nbytes = r->nbytes;
    s->into->row[i].expected = r->expected;
    return 0;
}

static void sum_up(uint32_t precision, sums *ret)
{
    summing s = {opened_trace(NRANKS, precision, false, irregular_program), ret};
    assert_ok(cairn_trace_sum(s.t, CAIRN_TRACE_BY_CALL | CAIRN_TRACE_BY_SITE, add_row, &s));
    cairn_trace_close(s.t);
}

static void expect_near(uint64_t a, uint64_t b, double most)
{
    const double apart = (double)a - (double)b;
    if (apart > most || apart < -most)
        fail_msg("%llu and %llu are more than %g apart", (unsigned long long)a,
                 (unsigned long long)b, most);
}

/* A mean is kept to a 65535th of the width of its bin, and a value is a whole number. */
static void test_sums_at_no_precision(void **state)
{
    sums exact = {.n = 0}, lossy = {.n = 0};
    size_t drawn = 0;
    (void)state;
    sum_up(100, &exact);
    sum_up(0, &lossy);
    assert_int_equal(lossy.n, exact.n);
    for (size_t i = 0; i < exact.n; i++) {
        const double n = (double)exact.row[i].nevents, nbytes = (double)exact.row[i].nbytes;
        assert_string_equal(lossy.row[i].call, exact.row[i].call);
        assert_string_equal(lossy.row[i].site, exact.row[i].site);
        expect_near(lossy.row[i].nevents, exact.row[i].nevents, n / 1000 + 1);
        expect_near(lossy.row[i].nbytes, exact.row[i].nbytes,
                    n * UNIT * (0.5 + 2.0 * SIZES / 65535) + nbytes / 1000);
        drawn += lossy.row[i].expected;
    }
    assert_true(drawn >= 3); /* or it would prove nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums_at_no_precision)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
