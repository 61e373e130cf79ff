/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The pace of a replay, on a clock that the test moves: times of computing are drawn alike on all
 * ranks, and still the replay comes to its end when the run did.
 */
#include "harness/harness.h"
#include "replay/replay.h"

enum { TURNS = 1000 };

/* A turn of a program: it computes, and calls. In milliseconds. */
typedef struct turn {
    double drawn[2];      /* in turns */
    double least, waited; /* the call, as recorded */
    double takes;         /* in the replay */
    double itself;        /* what the replay does between calls */
} turn;

static double play(turn t)
{
    crn_pace c = {0};
    double now = 0;
    for (int i = 0; i < TURNS; i++) {
        crn_pace_compute(&c, t.drawn[i % 2], now);
        now += c.owed;
        crn_pace_spend(&c, now);
        now += t.takes;
        crn_pace_call(&c, t.least, t.waited, now);
        now += t.itself;
    }
    return now / TURNS;
}

static void expect_near(double a, double b)
{
    if (a < 0.99 * b || a > 1.01 * b)
        fail_msg("%g ms instead of %g in each turn", a, b);
}

/* One rank computes for 2 ms, the other for 6, and the first one waits: mean values of 4 and 2. */
static void test_ranks_that_wait_for_one_another(void **state)
{
    (void)state;
    expect_near(play((turn){{2, 6}, 0.1, 2, 0.1, 0}), 6.1);
    expect_near(play((turn){{6, 2}, 0.1, 2, 0.1, 0}), 6.1);
}

/* All are slow in the same turns: nobody waits, and nothing is added. */
static void test_turns_that_differ(void **state)
{
    (void)state;
    expect_near(play((turn){{2, 6}, 0.1, 0, 0.1, 0}), 4.1);
}

/* What a rank waits for in the replay, too, is not added once more. */
static void test_structure_waits_by_itself(void **state)
{
    (void)state;
    expect_near(play((turn){{4, 4}, 0.1, 2, 2.1, 0}), 6.1);
}

static void test_a_faster_network_is_faster(void **state)
{
    (void)state;
    expect_near(play((turn){{4, 4}, 3, 0, 0.5, 0}), 4.5);
    expect_near(play((turn){{4, 4}, 0.5, 0, 3, 0}), 7); /* and a slower one slower */
}

/* What the replay does for itself between calls is not added to what it waits for. */
static void test_the_replay_itself(void **state)
{
    (void)state;
    expect_near(play((turn){{4, 4}, 0.5, 0, 0.5, 1}), 4.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_that_wait_for_one_another),
        cmocka_unit_test(test_turns_that_differ),
        cmocka_unit_test(test_structure_waits_by_itself),
        cmocka_unit_test(test_a_faster_network_is_faster),
        cmocka_unit_test(test_the_replay_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
