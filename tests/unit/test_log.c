/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The log is silent until asked, and then speaks with the right voice.
 */
#include "harness/harness.h"

typedef struct heard {
    int nlines, rank;
    crn_log_level level;
    char line[64];
} heard;

static void listen(void *arg, crn_log_level level, int rank, const char *line)
{
    heard *h = arg;
    h->nlines++;
    h->rank = rank;
    h->level = level;
    snprintf(h->line, sizeof h->line, "%s", line);
}

static void test_init_is_silent_by_default(void **state)
{
    (void)state;
    crn_log log;
    heard h = {0};
    unsetenv("CAIRN_LOG");
    assert_ok(crn_log_init(&log, 0));
    log.sink = listen;
    log.arg = &h;
    crn_log_write(&log, CRN_LOG_ERROR, CRN_LOG_EACH, "lost");
    assert_int_equal(h.nlines, 0);
}

static void test_init_takes_level_from_environment(void **state)
{
    (void)state;
    crn_log log;
    setenv("CAIRN_LOG", "stat", 1);
    assert_ok(crn_log_init(&log, 3));
    assert_int_equal(log.level, CRN_LOG_STAT);
    assert_int_equal(log.rank, 3);
    setenv("CAIRN_LOG", "loud", 1);
    assert_fails(crn_log_init(&log, 0), CAIRN_EINVAL, "'CAIRN_LOG': no level 'loud'");
    unsetenv("CAIRN_LOG");
}

static void test_write_obeys_level_and_scope(void **state)
{
    (void)state;
    heard h = {0};
    crn_log log = {.level = CRN_LOG_INFO, .rank = 2, .sink = listen, .arg = &h};
    crn_log_write(&log, CRN_LOG_STAT, CRN_LOG_EACH, "n=1");
    crn_log_write(&log, CRN_LOG_INFO, CRN_LOG_ROOT, "rank 0 says this");
    assert_int_equal(h.nlines, 0);
    crn_log_write(&log, CRN_LOG_WARN, CRN_LOG_EACH, "mark %d skipped", 12);
    assert_int_equal(h.nlines, 1);
    assert_int_equal(h.rank, 2);
    assert_int_equal(h.level, CRN_LOG_WARN);
    assert_string_equal(h.line, "mark 12 skipped");
    log.rank = 0;
    crn_log_write(&log, CRN_LOG_INFO, CRN_LOG_ROOT, "opened");
    assert_string_equal(h.line, "opened");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_init_is_silent_by_default),
        cmocka_unit_test(test_init_takes_level_from_environment),
        cmocka_unit_test(test_write_obeys_level_and_scope),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
