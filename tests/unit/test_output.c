/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files that people name: whole or as they were, and nobody else's are written to.
 */
#include "harness/harness.h"

typedef struct world {
    char dir[64], path[96], temp[96];
} world;

static int begin(void **state)
{
    world *w;
    assert_ok(crn_alloc(&w, 1));
    make_scratch(w->dir, sizeof w->dir, "output");
    snprintf(w->path, sizeof w->path, "%s/page", w->dir);
    snprintf(w->temp, sizeof w->temp, "%s/page.new", w->dir);
    *state = w;
    return 0;
}

static int end(void **state)
{
    const world *w = *state;
    remove_tree(w->dir);
    free(*state);
    return 0;
}

static void check_content(const char *path, const char *words)
{
    char text[64] = "";
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    (void)fread(text, 1, sizeof text - 1, f);
    fclose(f);
    assert_string_equal(text, words);
}

static void test_output_is_replaced(void **state)
{
    const world *w = *state;
    struct stat st;
    const mode_t was = umask(027);
    assert_ok(crn_output_write(w->path, "a long page", 11));
    check_content(w->path, "a long page");
    assert_ok(crn_output_write(w->path, "short", 5));
    check_content(w->path, "short");
    assert_int_equal(stat(w->path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    umask(was);
    assert_int_equal(access(w->temp, F_OK), -1);
    assert_ok(crn_output_write(w->path, NULL, 0));
    check_content(w->path, "");
}

/* Someone else may have put a link where the new file is written. */
static void test_output_follows_no_link(void **state)
{
    const world *w = *state;
    char other[96];
    snprintf(other, sizeof other, "%s/other", w->dir);
    assert_ok(crn_output_write(other, "precious", 8));
    assert_ok(crn_output_write(w->path, "old", 3));
    assert_int_equal(symlink("other", w->temp), 0);
    assert_fails(crn_output_write(w->path, "new", 3), CAIRN_EIO, "page.new'");
    check_content(w->path, "old");
    check_content(other, "precious");
}

static void test_output_into_a_pipe(void **state)
{
    const world *w = *state;
    char text[8] = "";
    struct stat st;
    assert_int_equal(mkfifo(w->path, 0600), 0);
    const int fd = open(w->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_ok(crn_output_write(w->path, "page", 4));
    assert_int_equal(read(fd, text, sizeof text), 4);
    close(fd);
    assert_string_equal(text, "page");
    assert_int_equal(stat(w->path, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
}

static void test_output_that_cannot_be(void **state)
{
    const world *w = *state;
    char inside[112];
    snprintf(inside, sizeof inside, "%s/no/page", w->dir);
    assert_fails(crn_output_write(inside, "page", 4), CAIRN_ENOTFOUND, "cannot write '");
    assert_fails(crn_output_write(w->dir, "page", 4), CAIRN_EIO, "Is a directory");
    if (access("/dev/full", W_OK) == 0)
        assert_fails(crn_output_write("/dev/full", "page", 4), CAIRN_ENOSPC, "/dev/full");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_output_is_replaced, begin, end),
        cmocka_unit_test_setup_teardown(test_output_follows_no_link, begin, end),
        cmocka_unit_test_setup_teardown(test_output_into_a_pipe, begin, end),
        cmocka_unit_test_setup_teardown(test_output_that_cannot_be, begin, end),
    };
    return cmocka_run_group_tests_name("output", tests, NULL, NULL);
}
