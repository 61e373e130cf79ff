/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Who may read a shelf, what is not followed, and what is no key.
 *
 * NEEDS: inih
 */
#include <sys/stat.h>
#include <unistd.h>

#include <cairn/state.h>

#include "harness/scratch.h"

static double x = 7;

static cairn_field field(void)
{
    return (cairn_field){.name = "x", .data = &x, .type = CAIRN_FLOAT64, .count = {1}};
}

/* A shelf with a state, made by a configuration with this mode. */
static cairn_shelf *make(const char *name, const char *mode)
{
    char path[160], config[160];
    const cairn_field f = field();
    cairn_shelf *s;
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    snprintf(config, sizeof config, "%s/%s.ini", scratch, name);
    FILE *file = fopen(config, "w");
    assert_non_null(file);
    fprintf(file, "[run]\nmode = %s\n", mode);
    fclose(file);
    assert_ok(cairn_shelf_open(path, config, &s));
    assert_ok(cairn_state_put(s, "m", 1, NULL, &f, 1));
    return s;
}

static unsigned mode_of(const char *name, const char *file)
{
    char path[256];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s/%s", scratch, name, file);
    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & 0777;
}

static void test_modes(void **state)
{
    (void)state;
    static const char *const file[] = {"shelf", "index", "writers-000/part-1-0"};
    const mode_t before = umask(0022);
    cairn_shelf_close(make("mine", "private"));
    cairn_shelf_close(make("ours", "group"));
    (void)umask(before);
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        assert_int_equal(mode_of("mine", file[i]), 0600);
        assert_int_equal(mode_of("ours", file[i]), 0640);
    }
    assert_int_equal(mode_of("mine", "writers-000"), 0700);
    assert_int_equal(mode_of("ours", "writers-000"), 0750);
}

/* Put a link in the place of a file or a directory of a shelf. */
static void replace_by_link(const char *name, const char *file)
{
    char path[256], away[256];
    snprintf(path, sizeof path, "%s/%s/%s", scratch, name, file);
    snprintf(away, sizeof away, "%s/%s-away", scratch, name);
    assert_int_equal(rename(path, away), 0);
    snprintf(away, sizeof away, "../%s%s-away", strchr(file, '/') ? "../" : "", name);
    assert_int_equal(symlink(away, path), 0);
}

static void test_links(void **state)
{
    (void)state;
    char path[160];
    cairn_shelf *s;
    const cairn_field f = field();
    cairn_shelf_close(make("part", "private"));
    replace_by_link("part", "writers-000/part-1-0");
    snprintf(path, sizeof path, "%s/part", scratch);
    assert_ok(cairn_shelf_open(path, NULL, &s));
    assert_true(cairn_state_get(s, "m", 1, &f, 1) < 0);
    cairn_shelf_close(s);
    cairn_shelf_close(make("folder", "private"));
    replace_by_link("folder", "writers-000");
    snprintf(path, sizeof path, "%s/folder", scratch);
    assert_ok(cairn_shelf_open(path, NULL, &s));
    assert_true(cairn_state_get(s, "m", 1, &f, 1) < 0);
    cairn_shelf_close(s);
    cairn_shelf_close(make("index", "private"));
    replace_by_link("index", "index");
    snprintf(path, sizeof path, "%s/index", scratch);
    assert_true(cairn_shelf_open(path, NULL, &s) < 0);
}

/* Nor is the shelf itself: whoever may make a link there would choose where states go. */
static void test_linked_shelf(void **state)
{
    (void)state;
    char link[160], slash[168], far[160];
    cairn_shelf *s;
    snprintf(far, sizeof far, "%s/elsewhere", scratch);
    snprintf(link, sizeof link, "%s/linked", scratch);
    snprintf(slash, sizeof slash, "%s//", link);
    assert_int_equal(mkdir(far, 0700), 0);
    assert_int_equal(symlink(far, link), 0);
    assert_fails(cairn_shelf_open(link, NULL, &s), CAIRN_EIO, "links are not followed");
    assert_fails(cairn_shelf_open(slash, NULL, &s), CAIRN_EIO, "links are not followed");
    assert_int_equal(rmdir(far), 0); /* nothing was made in it, and nothing is */
    assert_fails(cairn_shelf_open(link, NULL, &s), CAIRN_EIO, "links are not followed");
    assert_int_equal(unlink(link), 0);
    assert_ok(cairn_shelf_open(slash, NULL, &s));
    cairn_shelf_close(s);
}

static void test_keys(void **state)
{
    (void)state;
    static const char *const bad[] = {"",   "..", "../m", "a/b", ".m",
                                      "-m", "m ", "m\n",  "m@1", "\xc3\xbc"};
    char key[80];
    const cairn_field f = field();
    cairn_shelf *s = make("keys", "private");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(cairn_state_put(s, bad[i], 1, NULL, &f, 1), CAIRN_EINVAL);
        assert_int_equal(cairn_state_get(s, bad[i], 1, &f, 1), CAIRN_EINVAL);
        assert_int_equal(cairn_state_drop(s, bad[i], 1), CAIRN_EINVAL);
    }
    memset(key, 'k', sizeof key);
    key[64] = 0;
    assert_int_equal(cairn_state_put(s, key, 1, NULL, &f, 1), CAIRN_EINVAL);
    key[63] = 0;
    assert_ok(cairn_state_put(s, key, 1, NULL, &f, 1));
    cairn_shelf_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_modes), cmocka_unit_test(test_links),
                                       cmocka_unit_test(test_linked_shelf),
                                       cmocka_unit_test(test_keys)};
    return cmocka_run_group_tests_name("state_access", tests, scratch_begin, scratch_end);
}
