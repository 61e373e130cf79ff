/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What runs have left on node-local storage: who removes it, and what stays.
 *
 * TEST: ranks self
 * NEEDS: inih
 */
#include "harness/session.h"

#include <cairn/keep.h>

#include "io/io.h"

/* All runs of a test share one node-local directory.
 */
static const char settings[] = "[level]\nlocal = @/local\n[keep]\nlocal = all\n";

/* Open a session of a trail and take a mark. */
static cairn *begin(const place *p, const char *trail, bool global)
{
    static uint64_t field[100];
    uint64_t found = 0;
    char path[160];
    cairn *c;
    snprintf(path, sizeof path, "%s/%s", p->dir, trail);
    setenv("CAIRN_RUN_TRAIL", path, 1);
    setenv("CAIRN_LEVEL_GLOBAL", global ? "1" : "0", 1);
    assert_ok(cairn_open(MPI_COMM_SELF, p->config, &c));
    assert_ok(cairn_protect(c, "field", field, CAIRN_UINT64, 100));
    assert_true(cairn_resume(c, &found) >= 0);
    assert_ok(cairn_mark(c, found + 1, CAIRN_AUTO));
    assert_ok(cairn_settle(c));
    return c;
}

static void finish(const place *p, const char *trail, bool global)
{
    assert_ok(cairn_close(begin(p, trail, global)));
}

static void leave(const place *p, const char *trail)
{
    leave_session(begin(p, trail, false));
}

static void shell(const place *p, const char *command)
{
    char line[400];
    snprintf(line, sizeof line, "cd '%s' && %s", p->dir, command);
    assert_int_equal(system(line), 0);
}

/* Runs that have something on the node. */
static size_t count(const place *p)
{
    char path[160], **names;
    size_t n;
    int fd;
    snprintf(path, sizeof path, "%s/local", p->dir);
    assert_ok(crn_dir_open_path(path, false, &fd));
    assert_ok(crn_dir_list(fd, &names, &n));
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
    close(fd);
    return n;
}

typedef struct told {
    char text[4000];
    cairn_orphan_result sum;
} told;

static void tell(void *arg, const char *text, bool goes)
{
    told *t = arg;
    const size_t used = strlen(t->text);
    snprintf(t->text + used, sizeof t->text - used, "%s %s\n", goes ? "-" : "+", text);
}

static told prune(const place *p, bool dry)
{
    told t = {.text = ""};
    const cairn_orphan_options how = {
        .struct_bytes = sizeof how, .dry = dry, .report = tell, .arg = &t};
    t.sum.struct_bytes = sizeof t.sum;
    assert_ok(cairn_prune_orphans(MPI_COMM_SELF, p->config, &how, &t.sum));
    return t;
}

static void grow_old(const place *p)
{
    shell(p, "find local -exec touch -h -d '8 days ago' {} +");
}

static void test_only_what_nobody_needs_goes_at_once(void **state)
{
    place p;
    place_init(&p, *state, settings);
    leave(&p, "unfinished");
    finish(&p, "finished", true);
    finish(&p, "undrained", false);
    leave(&p, "removed");
    leave(&p, "emptied");
    shell(&p, "rm -r removed emptied/run-1");
    assert_int_equal(count(&p), 5);
    told t = prune(&p, true);
    assert_int_equal(t.sum.nruns, 3);
    assert_int_equal(count(&p), 5);
    t = prune(&p, false);
    assert_int_equal(t.sum.nruns, 3);
    assert_int_equal(t.sum.nkept, 2);
    assert_true(t.sum.nbytes > 0);
    assert_int_equal(count(&p), 2);
    assert_non_null(strstr(t.text, "/finished' is finished\n"));
    assert_non_null(strstr(t.text, "/removed' was removed\n"));
    assert_non_null(strstr(t.text, "/emptied' does not have its run any more\n"));
    assert_non_null(strstr(t.text, "/unfinished' is not finished\n"));
    assert_non_null(strstr(t.text, "its last mark is nowhere else"));
    grow_old(&p);
    t = prune(&p, false);
    assert_int_equal(t.sum.nruns, 1); /* finished is finished; but what can be resumed stays */
    assert_int_equal(count(&p), 1);
    leave(&p, "unfinished"); /* and is resumed */
    place_done(&p);
}

static void test_running_programs_keep_theirs(void **state)
{
    place p;
    place_init(&p, *state, settings);
    cairn *c = begin(&p, "trail", false);
    shell(&p, "mv trail away");
    grow_old(&p);
    told t = prune(&p, false);
    assert_int_equal(t.sum.nruns, 0);
    assert_non_null(strstr(t.text, "a running program has it"));
    assert_int_equal(count(&p), 1);
    shell(&p, "mv away trail");
    leave_session(c);
    place_done(&p);
}

/* As if the trail's file system were not mounted: what lies at its place is another one. */
static void test_trails_out_of_reach_are_not_gone(void **state)
{
    place p;
    place_init(&p, *state, settings);
    leave(&p, "trail");
    shell(&p, "mv trail away && sed -i '4s/.*/1 2/' local/*/home");
    told t = prune(&p, false);
    assert_int_equal(t.sum.nkept, 1);
    assert_non_null(strstr(t.text, "cannot be reached"));
    assert_non_null(strstr(t.text, "keep.orphans"));
    grow_old(&p);
    setenv("CAIRN_KEEP_ORPHANS", "0", 1);
    assert_int_equal(prune(&p, false).sum.nkept, 1);
    unsetenv("CAIRN_KEEP_ORPHANS");
    assert_int_equal(prune(&p, false).sum.nruns, 1);
    assert_int_equal(count(&p), 0);
    place_done(&p);
}

static void test_sessions_remove_what_is_old(void **state)
{
    place p;
    place_init(&p, *state, settings);
    leave(&p, "unfinished");
    leave(&p, "removed");
    shell(&p, "rm -r removed");
    leave(&p, "new");
    assert_int_equal(count(&p), 3); /* not old yet */
    shell(&p, "mkdir -p local/0123456789abcdef0123456789abcdef/series-1 local/others");
    grow_old(&p);
    setenv("CAIRN_KEEP_ORPHANS", "0", 1);
    leave(&p, "new");
    assert_int_equal(count(&p), 5);
    unsetenv("CAIRN_KEEP_ORPHANS");
    leave(&p, "new");
    assert_int_equal(count(&p), 3); /* both unfinished ones, and what is not ours */
    leave(&p, "unfinished");
    assert_int_equal(count(&p), 3);
    place_done(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_what_nobody_needs_goes_at_once),
        cmocka_unit_test(test_running_programs_keep_theirs),
        cmocka_unit_test(test_trails_out_of_reach_are_not_gone),
        cmocka_unit_test(test_sessions_remove_what_is_old),
    };
    return run_mpi_tests(argc, argv, tests);
}
