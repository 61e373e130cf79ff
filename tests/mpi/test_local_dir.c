/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Node-local directories that Cairn chooses itself: what another user has prepared is not used.
 *
 * TEST: ranks self
 * NEEDS: inih
 */
#include "harness/session.h"

#include <errno.h>
#include <sys/stat.h>

#include "io/io.h"

static void below(const place *p, const char *name, char path[160])
{
    char here[96];
    assert_non_null(realpath(p->dir, here));
    snprintf(path, 160, "%s/%s", here, name);
}

static void make_dir(const char *path, mode_t mode)
{
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void test_who_could_have_made_it(void **state)
{
    place p;
    char path[160], inner[160];
    place_init(&p, *state, "");
    below(&p, "own", path);
    assert_int_equal(crn_dir_check_private(path), CAIRN_ENOTFOUND);
    make_dir(path, 0700);
    assert_ok(crn_dir_check_private(path));
    below(&p, "link", inner);
    assert_int_equal(symlink("own", inner), 0);
    assert_fails(crn_dir_check_private(inner), CAIRN_EMISMATCH, "link");
    below(&p, "own/inner", inner);
    make_dir(inner, 0700);
    assert_ok(crn_dir_check_private(inner));
    below(&p, "link/inner", inner);
    assert_fails(crn_dir_check_private(inner), CAIRN_EMISMATCH, "link");
    below(&p, "own/inner", inner);
    assert_int_equal(chmod(inner, 0720), 0);
    assert_fails(crn_dir_check_private(inner), CAIRN_EMISMATCH, "may write");
    assert_int_equal(chmod(inner, 0700), 0);
    assert_int_equal(chmod(path, 0777), 0);
    assert_fails(crn_dir_check_private(inner), CAIRN_EMISMATCH, "replace");
    assert_int_equal(chmod(path, 01777), 0); /* as /tmp */
    assert_ok(crn_dir_check_private(inner));
    place_done(&p);
}

static bool has_part(const place *p, const char *name)
{
    char line[300];
    snprintf(line, sizeof line, "test -n \"$(find '%s/tmp/%s/' -name own-0)\"", p->dir, name);
    return system(line) == 0;
}

static void take_mark(const place *p, uint64_t version, uint64_t before)
{
    static uint64_t field[100];
    uint64_t found = 0;
    cairn *c;
    assert_ok(cairn_open(MPI_COMM_SELF, p->config, &c));
    assert_ok(cairn_protect(c, "field", field, CAIRN_UINT64, 100));
    assert_int_equal(cairn_resume(c, &found), before ? CAIRN_OK : CAIRN_NOTHING);
    assert_int_equal(found, before);
    assert_ok(cairn_mark(c, version, CAIRN_LEVEL_LOCAL));
    leave_session(c);
}

/* The name that all can guess is taken: a directory that all may write to, and a link to one that
 * is fine. Marks go to another directory, and are found there again, even when the first name is
 * free. */
static void test_prepared_by_another(void **state)
{
    place p;
    char tmp[160], name[64], path[160];
    place_init(&p, *state, "[level]\nlocal = auto\n");
    below(&p, "tmp", tmp);
    make_dir(tmp, 01777);
    snprintf(name, sizeof name, "tmp/cairn-%ld", (long)geteuid());
    below(&p, name, path);
    make_dir(path, 0777);
    snprintf(name, sizeof name, "tmp/cairn-%ld-1", (long)geteuid());
    char link[160];
    below(&p, name, link);
    assert_int_equal(symlink("/tmp", link), 0);
    setenv("TMPDIR", tmp, 1);
    take_mark(&p, 1, 0);
    snprintf(name, sizeof name, "cairn-%ld-2", (long)geteuid());
    assert_true(has_part(&p, name));
    snprintf(name, sizeof name, "cairn-%ld", (long)geteuid());
    assert_false(has_part(&p, name));
    assert_int_equal(rmdir(path), 0);
    take_mark(&p, 2, 1);
    unsetenv("TMPDIR");
    place_done(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_could_have_made_it),
        cmocka_unit_test(test_prepared_by_another),
    };
    return run_mpi_tests(argc, argv, tests);
}
