/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which codec a variable gets, on a machine that is made up: storage and codecs have the speeds of
 * a table, and after a few marks the choice is the one with the least time, or the fewest bytes.
 *
 * NEEDS: lz4 zstd zfp fpzip
 */
#include "codec/codec.h"
#include "harness/harness.h"

enum { NBYTES = 1 << 28 };

/* Nanoseconds that a byte takes to encode, and what is left of it. */
typedef struct machine {
    double encode[CRN_CHOICES], rate[CRN_CHOICES], device; /* likewise, of a stored byte */
    bool overlaps;                                         /* encoding and writing */
} machine;

static const machine usual = {{0, 0.5, 1.5, 6, 10}, {1, 0.8, 0.6, 0.5, 0.4}, 0, false};

/* A mark that stores all of a variable; returns whether another codec is taken. */
static bool mark(crn_choice *c, const machine *m)
{
    size_t trial[CRN_CHOICES];
    const size_t n = crn_choice_trials(c, trial);
    double encode = 0, stored = 0, share = 1. / 16;
    for (size_t k = 0; k <= n; k++) {
        const size_t i = k < n ? trial[k] : c->now;
        const double part = k < n ? share : 1 - (double)n * share, bytes = NBYTES * part;
        const double took = m->encode[i] * 1e-9 * bytes;
        crn_choice_saw(c, i, (uint64_t)bytes, (uint64_t)(m->rate[i] * bytes), took);
        encode += took;
        stored += m->rate[i] * bytes;
    }
    const double device = m->device * 1e-9 * stored;
    const double all = m->overlaps ? CRN_MAX(encode, device) : encode + device;
    crn_choice_saw_device(c, all - encode, (uint64_t)stored);
    crn_choice_saw_copy(c, 0.1e-9 * NBYTES, NBYTES);
    return crn_choice_decide(c);
}

static double cost(const machine *m, size_t i)
{
    return m->encode[i] + m->rate[i] * m->device;
}

/* Is none better by more than what a change must bring? */
static bool is_best(const machine *m, size_t now)
{
    for (size_t i = 0; i < 5; i++)
        if (cost(m, i) < 0.95 * cost(m, now))
            return false;
    return true;
}

static crn_choice begin(bool space)
{
    crn_codec_setting s;
    crn_choice c;
    assert_ok(crn_codec_parse(space ? "auto:space" : "auto", "", &s));
    assert_int_equal(s.space, space);
    crn_choice_init(&c, CRN_ELEM_F64, &s);
    assert_int_equal(c.n, 5);
    return c;
}

static void test_the_fastest_to_safety_is_kept(void **state)
{
    (void)state;
    static const double device[] = {0.1, 1, 3, 10, 20, 100};
    for (int overlaps = 0; overlaps < 2; overlaps++)
        for (size_t d = 0; d < sizeof device / sizeof *device; d++) {
            machine m = usual;
            crn_choice c = begin(false);
            int switches = 0;
            m.device = device[d];
            m.overlaps = overlaps;
            for (int i = 0; i < 200; i++)
                switches += mark(&c, &m);
            if (!overlaps && !is_best(&m, c.now))
                fail_msg("storage of %g ns: %zu is not the best", m.device, c.now);
            if (switches > (overlaps ? 12 : 2)) /* each is a line in the log */
                fail_msg("storage of %g ns: %d switches", m.device, switches);
        }
}

static void test_no_codec_where_storage_is_fast(void **state)
{
    (void)state;
    machine m = usual;
    crn_choice c = begin(false);
    m.device = 0.2;
    for (int i = 0; i < 20; i++)
        assert_false(mark(&c, &m));
    m.device = 100; /* and then slow: a codec comes, */
    for (int i = 0; i < 20; i++)
        mark(&c, &m);
    assert_int_equal(c.now, 4);
    m.device = 0.2; /* and goes again, when what was slow has been forgotten */
    for (int i = 0; i < 400; i++)
        mark(&c, &m);
    assert_int_equal(c.now, 0);
}

static void test_space_is_space(void **state)
{
    (void)state;
    machine m = usual;
    crn_choice c = begin(true);
    m.device = 0.01;
    m.rate[3] = 0.3; /* slow, and the smallest */
    for (int i = 0; i < 10; i++)
        mark(&c, &m);
    assert_int_equal(c.now, 3);
    m.rate[3] = 1; /* the values are others now */
    for (int i = 0; i < 20; i++)
        mark(&c, &m);
    assert_int_equal(c.now, 4);
}

/* What costs most is not tried for nothing: a sixteenth of a mark in four at most. */
static void test_trials_are_few(void **state)
{
    (void)state;
    machine m = usual;
    crn_choice c = begin(false);
    size_t trial[CRN_CHOICES], n = 0;
    bool tried[CRN_CHOICES] = {0};
    assert_int_equal(crn_choice_trials(&c, trial), 4);
    m.device = 0.2;
    mark(&c, &m);
    for (int i = 0; i < 40; i++) {
        const size_t now = crn_choice_trials(&c, trial);
        assert_true(now <= 1);
        n += now;
        if (now > 0)
            tried[trial[0]] = true;
        mark(&c, &m);
    }
    assert_in_range(n, 8, 11);
    assert_true(tried[1] && tried[2] && tried[3] && tried[4]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_fastest_to_safety_is_kept),
        cmocka_unit_test(test_no_codec_where_storage_is_fast),
        cmocka_unit_test(test_space_is_space),
        cmocka_unit_test(test_trials_are_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
