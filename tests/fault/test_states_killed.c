/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Seeded histories of several writers and a reader at once, on two shelves, against a plain model
 * in memory; writers are killed at any operation on files: of puts, also in the background, of
 * copies from shelf to shelf, of drops, of taking over what a dead writer left. What was
 * acknowledged is there, wholly, and what was not is there wholly or not at all. CAIRN_SEED gives
 * others, and an argument another number of rounds.
 *
 * NEEDS: random123
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cairn/state.h>

#include "harness/scratch.h"
#include "io/io_fault.h"

enum { N = 700, SHELVES = 2, WRITERS = 3, KEYS = 4, VERSIONS = 3, STEPS = 12, ROUNDS = 16 };

/* What a state may be found as; shared with the processes that are killed. */
typedef struct model_state {
    uint64_t seed;    /* of its values; 0: not there */
    uint64_t pending; /* what a call that was under way would have made of it */
    bool unsure;      /* such a call was under way */
} model_state;

/* Each writer has keys of its own: what they do to each other is done by shelves, not by states. */
typedef model_state table[SHELVES][WRITERS][KEYS][VERSIONS];

typedef struct shared {
    table state;
    bool over; /* the reader may end */
} shared;

static shared *model;
static char path[SHELVES][128];
static uint64_t rounds = ROUNDS;

static void fill(double *x, uint64_t seed)
{
    for (size_t i = 0; i < N; i++)
        x[i] = (double)(seed + i / 200);
}

static cairn_field field_of(double *x)
{
    return (cairn_field){.name = "x", .data = x, .type = CAIRN_FLOAT64, .count = {N}};
}

static const char *key_of(size_t w, size_t k, char buf[16])
{
    snprintf(buf, 16, "w%zu-%zu", w, k);
    return buf;
}

static void open_both(cairn_shelf *s[SHELVES])
{
    for (int i = 0; i < SHELVES; i++)
        if (cairn_shelf_open(path[i], NULL, &s[i]) < 0)
            _exit(3);
}

/* --- writers ------------------------------------------------------------------------------ */

static int put(cairn_shelf *s, const char *key, uint64_t v, uint64_t seed, bool background)
{
    double x[N];
    const cairn_field f = field_of(x);
    cairn_transfer *t;
    fill(x, seed);
    if (!background)
        return cairn_state_put(s, key, v, "w0-0", &f, 1);
    const int rc = cairn_state_put_begin(s, key, v, "w0-0", &f, 1, &t);
    memset(x, 0, sizeof x);
    return rc == CAIRN_OK ? cairn_transfer_wait(t) : rc;
}

static int copy(cairn_shelf *from, const char *key, uint64_t v, cairn_shelf *to, bool push)
{
    cairn_transfer *t;
    int rc;
    if (push)
        rc = cairn_state_push(from, key, v, to, 0, &t);
    else
        rc = cairn_state_fetch(to, key, v, from, 0, &t);
    return rc == CAIRN_OK ? cairn_transfer_wait(t) : rc;
}

/* One call, of which the model knows before it begins and when it has ended. */
static void step(cairn_shelf *s[SHELVES], size_t w, crn_rng *rng)
{
    const size_t k = crn_rng_below(rng, KEYS), v = crn_rng_below(rng, VERSIONS);
    const size_t here = crn_rng_below(rng, SHELVES), there = 1 - here;
    model_state *m = &model->state[here][w][k][v];
    const uint64_t other = model->state[there][w][k][v].seed;
    const bool copied = other > 0 && crn_rng_below(rng, 2) > 0;
    const bool flag = crn_rng_below(rng, 2) > 0;
    char key[16];
    int rc;
    m->pending = m->seed ? 0 : copied ? other : 1 + crn_rng_below(rng, 1000);
    m->unsure = true;
    key_of(w, k, key);
    if (m->pending == 0)
        rc = cairn_state_drop(s[here], key, v);
    else if (copied)
        rc = copy(s[there], key, v, s[here], flag);
    else
        rc = put(s[here], key, v, m->pending, flag);
    if (rc != CAIRN_OK) {
        fprintf(stderr, "%s: %d: %s\n", key, rc, cairn_error_text());
        _exit(4);
    }
    m->seed = m->pending;
    m->unsure = false;
}

/* A process that writes until it is killed, or has done its part. */
static void live(uint64_t life, size_t w, uint64_t at)
{
    crn_rng rng = crn_rng_of(test_seed(), life);
    cairn_shelf *s[SHELVES];
    crn_fault_arm(&(crn_fault){CRN_FAULT_ANY, CRN_FAULT_KILL, at, 1});
    open_both(s);
    for (int i = 0; i < STEPS; i++)
        step(s, w, &rng);
    for (int i = 0; i < SHELVES; i++)
        cairn_shelf_close(s[i]);
    _exit(0);
}

/* --- the reader ---------------------------------------------------------------------------- */

/* Whatever is got while others write and drop is whole: the values of one seed. */
static void read_on(uint64_t life)
{
    crn_rng rng = crn_rng_of(test_seed(), life);
    cairn_shelf *s[SHELVES];
    open_both(s);
    while (!__atomic_load_n(&model->over, __ATOMIC_RELAXED)) {
        double x[N], want[N];
        const cairn_field f = field_of(x);
        char key[16];
        key_of(crn_rng_below(&rng, WRITERS), crn_rng_below(&rng, KEYS), key);
        const int rc = cairn_state_get(s[crn_rng_below(&rng, SHELVES)], key,
                                       crn_rng_below(&rng, VERSIONS), &f, 1);
        if (rc != CAIRN_OK && rc != CAIRN_ENOTFOUND) {
            fprintf(stderr, "reader: %d: %s\n", rc, cairn_error_text());
            _exit(5);
        }
        if (rc == CAIRN_OK) {
            fill(want, (uint64_t)x[0]);
            if (memcmp(x, want, sizeof x) != 0)
                _exit(6);
        }
    }
    _exit(0);
}

/* --- afterwards ---------------------------------------------------------------------------- */

/* A state is as the model says; of one whose call was cut short, the model learns. */
static void check_state(cairn_shelf *s, const char *key, size_t v, model_state *m)
{
    double x[N], want[N];
    const cairn_field f = field_of(x);
    const int has = cairn_state_has(s, key, v);
    assert_true(has >= 0);
    if (m->unsure && (has == CAIRN_OK) == (m->pending > 0))
        m->seed = m->pending;
    m->unsure = false;
    assert_int_equal(has, m->seed > 0 ? CAIRN_OK : CAIRN_NOTHING);
    if (m->seed == 0)
        return;
    assert_ok(cairn_state_get(s, key, v, &f, 1));
    fill(want, m->seed);
    assert_memory_equal(x, want, sizeof x);
}

static void check(void)
{
    cairn_shelf *s[SHELVES];
    char key[16];
    open_both(s);
    for (size_t i = 0; i < SHELVES; i++) {
        for (size_t w = 0; w < WRITERS; w++)
            for (size_t k = 0; k < KEYS * VERSIONS; k++)
                check_state(s[i], key_of(w, k / VERSIONS, key), k % VERSIONS,
                            &model->state[i][w][k / VERSIONS][k % VERSIONS]);
        cairn_shelf_close(s[i]);
    }
}

/* Wait for a process; was it killed? Else it came to its end. */
static bool was_killed(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return true;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    return false;
}

static pid_t start_reader(uint64_t round)
{
    __atomic_store_n(&model->over, false, __ATOMIC_RELAXED);
    const pid_t pid = fork();
    if (pid == 0)
        read_on(1000000 + round);
    return pid;
}

static void test_killed_anywhere(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 4711);
    uint64_t killed = 0;
    for (int i = 0; i < SHELVES; i++)
        snprintf(path[i], sizeof path[i], "%s/shelf-%d", scratch, i);
    check();
    for (uint64_t round = 0; round < rounds; round++) {
        pid_t writer[WRITERS];
        const pid_t reader = start_reader(round);
        for (size_t w = 0; w < WRITERS; w++) {
            const uint64_t at = 1 + crn_rng_below(&rng, 400);
            writer[w] = fork();
            if (writer[w] == 0)
                live(round * WRITERS + w, w, at);
        }
        for (size_t w = 0; w < WRITERS; w++)
            killed += was_killed(writer[w]);
        __atomic_store_n(&model->over, true, __ATOMIC_RELAXED);
        assert_false(was_killed(reader));
        check();
    }
    assert_true(killed > rounds * WRITERS / 4);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_killed_anywhere)};
    model = mmap(NULL, sizeof *model, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (model == MAP_FAILED)
        return 1;
    if (argc > 1)
        rounds = strtoull(argv[1], NULL, 10);
    return cmocka_run_group_tests_name("states_killed", tests, scratch_begin, scratch_end);
}
