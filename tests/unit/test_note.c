/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Watching a run from outside: its signs of life, and what others add to its log.
 *
 * NEEDS: jansson
 */
#include "harness/small_trail.h"

#include <sys/stat.h>

#include <cairn/keep.h>
#include <cairn/trail.h>

static char scratch[64], path[128];

static int setup(void **state)
{
    (void)state;
    make_scratch(scratch, sizeof scratch, "note");
    snprintf(path, sizeof path, "%s/trail", scratch);
    assert_ok(small_trail(path, NULL, 1, 1, 1));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    remove_tree(scratch);
    return 0;
}

static crn_run *open_run(crn_trail **ret_trail)
{
    crn_run *run;
    assert_ok(crn_trail_open(path, false, ret_trail));
    assert_ok(crn_run_open(*ret_trail, "run-1", true, &run));
    return run;
}

/* Let the lock's time be long ago. */
static void age_lock(void)
{
    char lock[160];
    const struct timespec then[2] = {{1000, 5}, {1000, 5}};
    snprintf(lock, sizeof lock, "%s/run-1/lock", path);
    assert_int_equal(utimensat(AT_FDCWD, lock, then, 0), 0);
}

static void test_beat_is_seen(void **state)
{
    (void)state;
    crn_trail *t;
    uint64_t before, after;
    crn_run *run = open_run(&t);
    age_lock();
    assert_ok(cairn_trail_pulse(path, "run-1", &before));
    assert_int_equal(before, 1000000000005u);
    crn_run_beat(run);
    assert_ok(cairn_trail_pulse(path, "run-1", &after));
    assert_true(after > before);
    crn_run_close(run);
    crn_trail_close(t);
}

static void test_last_sign_is_known_to_the_next(void **state)
{
    (void)state;
    crn_trail *t;
    age_lock();
    crn_run *run = open_run(&t);
    assert_int_equal(crn_run_seen(run), 1000000000005u);
    crn_run_close(run);
    assert_ok(crn_run_create(t, NULL, &run));
    assert_int_equal(crn_run_seen(run), 0);
    crn_run_close(run);
    crn_trail_close(t);
}

static void test_no_pulse_without_a_run(void **state)
{
    (void)state;
    uint64_t ns;
    assert_int_equal(cairn_trail_pulse("no-such-trail", "run-1", &ns), CAIRN_ENOTFOUND);
    assert_int_equal(cairn_trail_pulse(path, "run-77", &ns), CAIRN_ENOTFOUND);
    assert_int_equal(cairn_trail_pulse(path, "../trail", &ns), CAIRN_EINVAL);
}

static int keep_line(void *arg, const char *line)
{
    snprintf(arg, 256, "%s", line);
    return 0;
}

static void last_event(char line[256])
{
    cairn_trail *t;
    size_t run;
    line[0] = 0;
    assert_ok(cairn_trail_open(path, &t));
    assert_ok(cairn_trail_find_run(t, "run-1", &run));
    assert_ok(cairn_trail_events(t, run, keep_line, line));
    cairn_trail_close(t);
}

static void test_note_is_logged(void **state)
{
    (void)state;
    char line[256];
    assert_ok(cairn_note(path, "run-1", "{\"event\":\n \"ended\", \"code\": 3}"));
    last_event(line);
    assert_ptr_equal(strstr(line, "{\"event\":\"ended\",\"code\":3,\"seen\":"), line);
    assert_non_null(strstr(line, ",\"time\":"));
}

static void test_note_is_refused(void **state)
{
    (void)state;
    crn_trail *t;
    assert_int_equal(cairn_note(path, "run-1", "no JSON"), CAIRN_EINVAL);
    assert_int_equal(cairn_note(path, "run-1", "{\"kind\": \"ended\"}"), CAIRN_EINVAL);
    assert_int_equal(cairn_note(path, "run-77", "{\"event\": \"ended\"}"), CAIRN_ENOTFOUND);
    crn_run *run = open_run(&t);
    assert_int_equal(cairn_note(path, "run-1", "{\"event\": \"ended\"}"), CAIRN_EBUSY);
    crn_run_close(run);
    crn_trail_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_beat_is_seen),
        cmocka_unit_test(test_last_sign_is_known_to_the_next),
        cmocka_unit_test(test_no_pulse_without_a_run),
        cmocka_unit_test(test_note_is_logged),
        cmocka_unit_test(test_note_is_refused),
    };
    return cmocka_run_group_tests_name("note", tests, setup, teardown);
}
