/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A run is not another experiment's: what programs say of themselves, and tasks of job arrays.
 *
 * TEST: ranks self 2
 * NEEDS: inih
 */
#include "harness/session.h"

#include <cairn/keep.h>
#include <unistd.h>

static uint64_t x;

static cairn *open_as(const place *p, const char *text)
{
    cairn *c;
    assert_ok(cairn_open(p->mpi, p->config, &c));
    if (text)
        assert_ok(cairn_identify(c, text));
    assert_ok(cairn_protect(c, "x", &x, CAIRN_UINT64, 1));
    return c;
}

/* A leg that resumes the version (0: there is none), marks the next one, and leaves. */
static void go_on(const place *p, const char *text, uint64_t version)
{
    uint64_t found = 0;
    cairn *c = open_as(p, text);
    assert_int_equal(cairn_resume(c, &found), version > 0 ? CAIRN_OK : CAIRN_NOTHING);
    assert_int_equal(found, version);
    assert_ok(cairn_mark(c, version + 1, CAIRN_AUTO));
    leave_session(c);
}

static void test_another_experiment_is_refused(void **state)
{
    place p;
    uint64_t version;
    place_init(&p, *state, "[level]\nlocal = trail\n");
    go_on(&p, "grid 64, dt 0.1", 0);
    go_on(&p, "grid 64, dt 0.1", 1);
    cairn *c = open_as(&p, "grid 64, dt 0.2");
    assert_refused(c, cairn_probe(c, &version), CAIRN_EMISMATCH, "'grid 64, dt 0.1'");
    assert_refused(c, cairn_resume(c, NULL), CAIRN_EMISMATCH, "this program 'grid 64, dt 0.2'");
    assert_refused(c, cairn_resume(c, NULL), CAIRN_EMISMATCH, "CAIRN_RUN_NAME");
    assert_refused(c, cairn_resume(c, NULL), CAIRN_EMISMATCH, "CAIRN_RESUME_IDENTITY=any");
    assert_refused(c, cairn_mark(c, 9, CAIRN_AUTO), CAIRN_EMISMATCH, "another experiment's");
    assert_ok(cairn_close(c));
    /* both ways out */
    setenv("CAIRN_RUN_NAME", "other", 1);
    go_on(&p, "grid 64, dt 0.2", 0);
    unsetenv("CAIRN_RUN_NAME");
    setenv("CAIRN_RUN_NAME", "run-1", 1);
    setenv("CAIRN_RESUME_IDENTITY", "any", 1);
    go_on(&p, "grid 64, dt 0.2", 2);
    unsetenv("CAIRN_RESUME_IDENTITY");
    go_on(&p, "grid 64, dt 0.2", 3); /* whose run it is from now on */
    go_on(&p, NULL, 4);              /* says nothing: only a remark */
    c = open_as(&p, "grid 64, dt 0.1");
    assert_refused(c, cairn_resume_at(c, 5), CAIRN_EMISMATCH, "'grid 64, dt 0.2'");
    assert_ok(cairn_close(c));
    unsetenv("CAIRN_RUN_NAME");
    place_done(&p);
}

static void test_another_program_is_a_remark(void **state)
{
    place p;
    char trail[96];
    place_init(&p, *state, "[level]\nlocal = trail\n");
    go_on(&p, "a", 0);
    snprintf(trail, sizeof trail, "%s/trail", p.dir);
    if (p.rank == 0)
        assert_ok(cairn_note(trail, "run-1",
                             "{\"event\":\"identity\",\"program\":\"older\",\"text\":\"a\"}"));
    assert_ok(crn_comm_barrier(p.comm));
    go_on(&p, "a", 1);
    place_done(&p);
}

static void test_identify_has_its_time(void **state)
{
    place p;
    char long_text[5000];
    place_init(&p, *state, "");
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = 0;
    cairn *c = open_as(&p, NULL);
    assert_refused(c, cairn_identify(c, NULL), CAIRN_EINVAL, "NULL");
    assert_refused(c, cairn_identify(c, long_text), CAIRN_EINVAL, "at most");
    assert_refused(c, cairn_identify(c, "\xff"), CAIRN_EINVAL, "UTF-8");
    assert_ok(cairn_identify(c, "a"));
    assert_ok(cairn_identify(c, "b"));
    assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    assert_refused(c, cairn_identify(c, "c"), CAIRN_EINVAL, "before the run is resumed");
    assert_ok(cairn_close(c));
    place_done(&p);
}

static void be_task(const char *const variable[2], const char *job, const char *task)
{
    setenv(variable[0], job, 1);
    setenv(variable[1], task, 1);
}

static bool has_run(const place *p, const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "%s/trail/%s/manifest", p->dir, name);
    return access(path, F_OK) == 0;
}

static void test_tasks_of_an_array_have_runs_of_their_own(void **state)
{
    static const char *const scheduler[][2] = {{"SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID"},
                                               {"PBS_JOBID", "PBS_ARRAY_INDEX"},
                                               {"LSB_JOBID", "LSB_JOBINDEX"},
                                               {"JOB_ID", "SGE_TASK_ID"}};
    for (size_t i = 0; i < sizeof scheduler / sizeof *scheduler; i++) {
        place p;
        cairn *c;
        place_init(&p, *state, "[level]\nlocal = trail\n");
        be_task(scheduler[i], "77", "1");
        go_on(&p, NULL, 0);
        be_task(scheduler[i], "77", "2");
        go_on(&p, NULL, 0);
        be_task(scheduler[i], "77", "1"); /* requeued */
        go_on(&p, NULL, 1);
        be_task(scheduler[i], "78", "1"); /* the next array of a chain */
        c = open_as(&p, NULL);
        assert_ok(cairn_resume(c, NULL));
        assert_ok(cairn_close(c)); /* at its end */
        be_task(scheduler[i], "77", "1");
        go_on(&p, NULL, 0);
        assert_true(has_run(&p, "job-77-1") && has_run(&p, "job-77-2"));
        assert_true(has_run(&p, "job-77.2-1"));
        be_task(scheduler[i], "77", "undefined"); /* no array after all */
        c = open_as(&p, NULL);
        assert_ok(cairn_close(c));
        unsetenv(scheduler[i][0]);
        unsetenv(scheduler[i][1]);
        place_done(&p);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_experiment_is_refused),
        cmocka_unit_test(test_another_program_is_a_remark),
        cmocka_unit_test(test_identify_has_its_time),
        cmocka_unit_test(test_tasks_of_an_array_have_runs_of_their_own),
    };
    return run_mpi_tests(argc, argv, tests);
}
