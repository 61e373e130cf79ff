/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Seeded histories of several writers of a shelf against a plain model in memory; writers are
 * killed at any operation on files. What was acknowledged is there, wholly, and what was not is
 * there wholly or not at all.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cairn/state.h>

#include "harness/scratch.h"
#include "io/io_fault.h"

enum { N = 700, KEYS = 6, VERSIONS = 4, LIVES = 60, STEPS = 12 };

/* What a state may be found as; shared with the processes that are killed. */
typedef struct model_state {
    uint64_t seed;    /* of its values; 0: not there */
    uint64_t pending; /* what a call that was under way would have made of it */
    bool unsure;      /* such a call was under way */
} model_state;

typedef model_state table[KEYS][VERSIONS];

static table *model;
static char path[128];

static void fill(double *x, uint64_t seed)
{
    for (size_t i = 0; i < N; i++)
        x[i] = (double)(seed + i / 200);
}

static const char *key_of(size_t k)
{
    static const char *const key[KEYS] = {"m0", "m1", "m2", "m3", "m4", "m5"};
    return key[k];
}

static cairn_field field_of(double *x)
{
    return (cairn_field){.name = "x", .data = x, .type = CAIRN_FLOAT64, .count = {N}};
}

/* One call, of which the model knows before it begins and when it has ended. */
static void step(cairn_shelf *s, crn_rng *rng)
{
    const size_t k = crn_rng_below(rng, KEYS), v = crn_rng_below(rng, VERSIONS);
    model_state *m = &(*model)[k][v];
    double x[N];
    const cairn_field f = field_of(x);
    m->pending = m->seed ? 0 : 1 + crn_rng_below(rng, 1000);
    m->unsure = true;
    if (m->pending > 0) {
        fill(x, m->pending);
        assert_ok(cairn_state_put(s, key_of(k), v, key_of((k + 1) % KEYS), &f, 1));
    } else {
        assert_ok(cairn_state_drop(s, key_of(k), v));
    }
    m->seed = m->pending;
    m->unsure = false;
}

/* A process that writes until it is killed, or has done its part. */
static void live(uint64_t life, uint64_t at)
{
    crn_rng rng = crn_rng_of(test_seed(), life);
    cairn_shelf *s;
    crn_fault_arm(&(crn_fault){CRN_FAULT_ANY, CRN_FAULT_KILL, at, 1});
    if (cairn_shelf_open(path, NULL, &s) < 0)
        _exit(3);
    for (int i = 0; i < STEPS; i++)
        step(s, &rng);
    cairn_shelf_close(s);
    _exit(0);
}

/* A state is as the model says; of one whose call was cut short, the model learns. */
static void check_state(cairn_shelf *s, size_t k, size_t v)
{
    model_state *m = &(*model)[k][v];
    double x[N], want[N];
    const cairn_field f = field_of(x);
    const cairn_status has = cairn_state_has(s, key_of(k), v);
    assert_true(has >= 0);
    if (m->unsure && (has == CAIRN_OK) == (m->pending > 0))
        m->seed = m->pending;
    m->unsure = false;
    assert_int_equal(has, m->seed > 0 ? CAIRN_OK : CAIRN_NOTHING);
    if (m->seed == 0)
        return;
    assert_ok(cairn_state_get(s, key_of(k), v, &f, 1));
    fill(want, m->seed);
    assert_memory_equal(x, want, sizeof x);
}

static void check(void)
{
    cairn_shelf *s;
    assert_ok(cairn_shelf_open(path, NULL, &s));
    for (size_t k = 0; k < KEYS; k++)
        for (size_t v = 0; v < VERSIONS; v++)
            check_state(s, k, v);
    cairn_shelf_close(s);
}

static void test_killed_anywhere(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 4711);
    int killed = 0;
    snprintf(path, sizeof path, "%s/shelf", scratch);
    for (uint64_t life = 0; life < LIVES; life++) {
        const uint64_t at = 1 + crn_rng_below(&rng, 220);
        const pid_t pid = fork();
        if (pid == 0)
            live(life, at);
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
                    (WIFEXITED(status) && WEXITSTATUS(status) == 0));
        killed += WIFSIGNALED(status);
        check();
    }
    assert_true(killed > LIVES / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_killed_anywhere)};
    model = mmap(NULL, sizeof *model, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (model == MAP_FAILED)
        return 1;
    return cmocka_run_group_tests_name("states_killed", tests, scratch_begin, scratch_end);
}
