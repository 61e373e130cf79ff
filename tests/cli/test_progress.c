/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The progress line, on a clock that the test turns.
 */
#include "harness/harness.h"

#include "cmd/cmd.h"

static uint64_t clock_ns;

static uint64_t turned_clock(void)
{
    return clock_ns;
}

/* A progress at time 0 that prints into *ret_text. */
static cmd_progress start(char **ret_text, size_t *ret_nbytes)
{
    cmd_progress p;
    cmd_progress_start(&p, "verifying 'x'");
    p.now = turned_clock;
    p.next_ns -= p.start_ns;
    p.start_ns = clock_ns = 0;
    p.to = open_memstream(ret_text, ret_nbytes);
    assert_non_null(p.to);
    return p;
}

static void test_quick_work_prints_nothing(void **state)
{
    (void)state;
    char *text;
    size_t n;
    cmd_progress p = start(&text, &n);
    clock_ns = 999999999;
    cmd_progress_update(&p, 1, 2);
    cmd_progress_end(&p);
    fclose(p.to);
    assert_string_equal(text, "");
    free(text);
}

static void test_long_work_prints_now_and_then(void **state)
{
    (void)state;
    char *text;
    size_t n;
    cmd_progress p = start(&text, &n);
    clock_ns = 2000000000;
    cmd_progress_update(&p, 1 << 20, 4 << 20);
    assert_string_equal(text, "\r\033[Kverifying 'x': 25% (1.00 MiB of 4.00 MiB), 512 KiB/s");
    clock_ns += 100000000;
    cmd_progress_update(&p, 2 << 20, 4 << 20);
    fflush(p.to);
    assert_null(strstr(text, "50%"));
    clock_ns += 100000000;
    cmd_progress_update(&p, 2 << 20, 4 << 20);
    assert_non_null(strstr(text, "50%"));
    cmd_progress_end(&p);
    fclose(p.to);
    assert_string_equal(text + n - 4, "\r\033[K");
    free(text);
}

static void test_no_terminal_no_line(void **state)
{
    (void)state;
    cmd_progress p;
    int saved = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);
    dup2(null, STDERR_FILENO);
    cmd_progress_start(&p, "x");
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(null);
    assert_null(p.to);
    cmd_progress_update(&p, 1, 1);
    cmd_progress_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quick_work_prints_nothing),
        cmocka_unit_test(test_long_work_prints_now_and_then),
        cmocka_unit_test(test_no_terminal_no_line),
    };
    return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
