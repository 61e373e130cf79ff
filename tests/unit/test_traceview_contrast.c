/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Who is slow, and where: in random programs on virtual ranks with a rank, a node or a site slowed
 * down by a fifth or more, the right one is named in 95 of 100, and nobody in 95 of 100 of those
 * whose ranks are alike, whose traces do not grow by it.
 *
 * NEEDS: zstd random123
 */
#include "harness/virtual_run.h"
#include "traceview/traceview.h"

enum { PROGRAMS = 200 };

static vr_run run;

/* What was named. */
typedef struct named {
    bool rank[VR_RANKS];
    size_t nranks, nsites;
    uint64_t site; /* the last one */
    const crn_trace *t;
} named;

static int on_contrast(void *arg, const cairn_trace_contrast *c)
{
    named *n = arg;
    assert_true(c->ratio > 0 && c->nranks > 0 && (c->more > 0) == (c->seconds > c->others));
    if (c->confidence < 0.99 || c->more <= 0)
        return 0;
    n->nsites++;
    n->site = n->t->site[c->to_site].off;
    for (uint32_t i = 0; i < c->nranks; i++) {
        n->nranks += !n->rank[c->rank[i]];
        n->rank[c->rank[i]] = true;
    }
    return 0;
}

static named name_slow(const crn_trace *t)
{
    cairn_trace trace = {.t = (crn_trace *)t};
    named n = {.t = t};
    assert_ok(cairn_trace_contrasts(&trace, on_contrast, &n));
    return n;
}

static bool is_right(const vr_program *p, const named *n)
{
    for (uint32_t i = p->first; i <= p->last; i++)
        if (!n->rank[i])
            return false;
    if (n->nranks != p->last - p->first + 1)
        return false;
    return p->plant != VR_SITE || (n->nsites == 1 && n->site == p->at + 2);
}

static void test_the_slow_are_named(void **state)
{
    crn_rng rng = crn_rng_of(test_seed(), 26);
    uint32_t right = 0;
    (void)state;
    for (uint32_t i = 0; i < PROGRAMS; i++) {
        const vr_plant plant = (vr_plant)(VR_RANK + i % (VR_PLANTS - VR_RANK));
        const vr_program p = vr_random_program(&rng, plant, 1.2);
        crn_trace *t = vr_record(&run, &p, crn_rng_u64(&rng));
        const named n = name_slow(t);
        right += is_right(&p, &n);
        crn_trace_free(t);
        vr_done(&run);
    }
    print_message("%u of %u\n", right, PROGRAMS);
    assert_true(right >= PROGRAMS * 95 / 100);
}

static size_t nbytes_of(const crn_trace *t)
{
    crn_buf b = {0};
    assert_ok(crn_trace_encode(t, CRN_TRACE_BEST, &b));
    const size_t n = b.n;
    crn_buf_done(&b);
    return n;
}

/* All ranks alike, whatever they were. */
static void drop_classes(crn_trace *t)
{
    for (size_t i = 0; i < t->lane[0].ngaps; i++) {
        const crn_hist all = t->lane[0].gap[i].time.all;
        crn_timing_done(&t->lane[0].gap[i].time);
        t->lane[0].gap[i].time.all = all;
    }
    for (size_t i = 0; i < t->lane[0].nsymbols; i++) {
        const crn_hist all = t->lane[0].took[i].all;
        crn_timing_done(&t->lane[0].took[i]);
        t->lane[0].took[i].all = all;
    }
}

static void test_nobody_is_named(void **state)
{
    crn_rng rng = crn_rng_of(test_seed(), 27);
    uint32_t right = 0;
    size_t with = 0, without = 0;
    (void)state;
    for (uint32_t i = 0; i < PROGRAMS; i++) {
        const vr_program p = vr_random_program(&rng, VR_BALANCED, 1);
        crn_trace *t = vr_record(&run, &p, crn_rng_u64(&rng));
        const named n = name_slow(t);
        right += n.nranks == 0;
        with += nbytes_of(t);
        drop_classes(t);
        without += nbytes_of(t);
        crn_trace_free(t);
        vr_done(&run);
    }
    print_message("%u of %u, %zu bytes instead of %zu\n", right, PROGRAMS, with, without);
    assert_true(right >= PROGRAMS * 95 / 100);
    assert_true((double)with <= 1.03 * (double)without);
}

/* A slow rank costs bytes: the same run without classes, and with them. */
static void test_a_slow_rank_costs_bytes(void **state)
{
    const vr_program p = {.nranks = 64,
                          .nsites = 1,
                          .turns = 50,
                          .site = {{1e6, 0.05, CRN_CALL_MPI_Barrier}},
                          .plant = VR_RANK,
                          .first = 17,
                          .last = 17,
                          .factor = 3};
    crn_trace *t = vr_record(&run, &p, 1);
    (void)state;
    const named n = name_slow(t);
    const size_t with = nbytes_of(t);
    drop_classes(t);
    const size_t without = nbytes_of(t);
    assert_true(n.nranks == 1 && n.rank[17]);
    assert_in_range(with - without, 1, 100);
    crn_trace_free(t);
    vr_done(&run);
}

/* Classes that are read back are those that were written, their means to a thousandth. */
static void test_classes_are_kept(void **state)
{
    crn_rng rng = crn_rng_of(test_seed(), 28);
    (void)state;
    for (int i = 0; i < 20; i++) {
        const vr_program p = vr_random_program(&rng, VR_NODE, 1.5);
        crn_trace *t = vr_record(&run, &p, crn_rng_u64(&rng));
        crn_buf b = {0};
        crn_trace *got;
        size_t nclasses = 0;
        assert_ok(crn_trace_encode(t, CRN_TRACE_BEST, &b));
        assert_ok(crn_trace_decode(b.at, b.n, &got));
        for (size_t k = 0; k < t->lane[0].ngaps; k++) {
            const crn_timing *x = &t->lane[0].gap[k].time, *y = &got->lane[0].gap[k].time;
            assert_int_equal(x->nclasses, y->nclasses);
            for (size_t c = 0; c < x->nclasses; c++, nclasses++) {
                assert_true(crn_seq_equal(&x->class[c].ranks, &y->class[c].ranks));
                assert_int_equal(x->class[c].nranks, y->class[c].nranks);
                assert_true(
                    fabs(crn_hist_mean(&x->class[c].hist) / crn_hist_mean(&y->class[c].hist) - 1) <
                    1e-3);
            }
        }
        assert_true(nclasses > 0);
        crn_buf_done(&b);
        crn_trace_free(got);
        crn_trace_free(t);
        vr_done(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_slow_are_named),
        cmocka_unit_test(test_nobody_is_named),
        cmocka_unit_test(test_a_slow_rank_costs_bytes),
        cmocka_unit_test(test_classes_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
