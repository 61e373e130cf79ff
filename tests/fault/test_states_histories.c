/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Seeded histories of several processes' worth of writers and readers on two shelves, interleaved
 * call by call, against a plain model in memory: puts, also of what is there, puts and copies in
 * the background that are waited for much later, drops by anybody, pins, gets of boxes, adoption
 * of what was closed, operations on files that fail, a shelf that vanishes, an index that is lost,
 * and clocks that differ by hours. CAIRN_SEED gives others, and an argument another number of
 * histories; tests/fault/test_states_killed.c has real processes that are killed.
 *
 * NEEDS: inih random123
 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cairn/state.h>

#include "harness/scratch.h"
#include "io/io_fault.h"

enum {
    NODE,
    SHARED,
    SHELVES,
    HANDLES = 4,
    KEYS = 5,
    VERSIONS = 3,
    ROWS = 30,
    COLUMNS = 50,
    STEPS = 40,
    HISTORIES = 60
};

/* --- clocks -------------------------------------------------------------------------------- */

static long skew; /* of the clock of whoever is at work, in seconds */

int clock_gettime(clockid_t id, struct timespec *ret)
{
    const int rc = (int)syscall(SYS_clock_gettime, id, ret);
    if (id == CLOCK_REALTIME)
        ret->tv_sec += __atomic_load_n(&skew, __ATOMIC_RELAXED);
    return rc;
}

/* --- the model ----------------------------------------------------------------------------- */

typedef struct model_state {
    uint64_t seed; /* of its values; 0: not there */
    unsigned pins;
    bool busy;        /* on its way, there or from there */
    unsigned residue; /* bits: calls that failed may have left these in parts, where nobody looks */
} model_state;

typedef model_state model_shelf[KEYS][VERSIONS];

/* What stands for a process: both shelves, and one transfer that it has begun. */
typedef struct handle {
    cairn_shelf *s[SHELVES];
    long skew;
    cairn_transfer *t;
    bool copy;
    size_t shelf, k, v; /* where it goes */
    uint64_t seed;
} handle;

typedef struct world {
    crn_rng rng;
    model_shelf state[SHELVES];
    handle h[HANDLES];
    char path[SHELVES][160], config[160];
} world;

static uint64_t histories = HISTORIES, ncalls, nrefused, nfaults;

static size_t below(world *w, size_t n)
{
    return (size_t)crn_rng_below(&w->rng, n);
}

static void fill(double *x, uint64_t seed)
{
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        x[i] = (double)(i < 3 * COLUMNS ? seed : i / 400); /* most blocks are those of all */
}

static cairn_field whole_of(double *x)
{
    return (cairn_field){.name = "x",
                         .data = x,
                         .type = CAIRN_FLOAT64,
                         .ndims = 2,
                         .global = {ROWS, COLUMNS},
                         .count = {ROWS, COLUMNS}};
}

static const char *key_of(size_t k)
{
    static const char *const name[KEYS] = {"a", "b", "m0001", "m0002", "x.y-z"};
    return name[k];
}

/* --- processes ----------------------------------------------------------------------------- */

static handle *pick(world *w)
{
    handle *h = &w->h[below(w, HANDLES)];
    __atomic_store_n(&skew, h->skew, __ATOMIC_RELAXED);
    ncalls++;
    return h;
}

static void open_handle(world *w, handle *h)
{
    for (size_t i = 0; i < SHELVES; i++)
        if (!h->s[i])
            assert_ok(cairn_shelf_open(w->path[i], w->config, &h->s[i]));
}

/* What was begun has ended: the model learns what became of it. */
static void learn(world *w, handle *h, int rc)
{
    model_state *m = &w->state[h->shelf][h->k][h->v];
    m->busy = false;
    if (h->copy)
        w->state[1 - h->shelf][h->k][h->v].busy = false;
    h->t = NULL;
    if (rc == CAIRN_OK)
        m->seed = h->seed;
    else if (!(h->copy && rc == CAIRN_ECANCELED))
        fail_msg("transfer of %s %zu: %d: %s", key_of(h->k), h->v, rc, cairn_error_text());
}

static void wait_for(world *w, handle *h)
{
    if (h->t)
        learn(w, h, cairn_transfer_wait(h->t));
}

/* Closed, also with a transfer under way; what it has put is adopted by whoever puts next. */
static void reopen(world *w, handle *h)
{
    for (size_t i = 0; i < SHELVES; i++) {
        cairn_shelf_close(h->s[i]);
        h->s[i] = NULL;
    }
    wait_for(w, h);
    open_handle(w, h);
}

/* --- calls --------------------------------------------------------------------------------- */

typedef struct name {
    size_t shelf, k, v;
    model_state *m;
} name;

static name choose(world *w)
{
    name n = {below(w, SHELVES), below(w, KEYS), below(w, VERSIONS), NULL};
    n.m = &w->state[n.shelf][n.k][n.v];
    return n;
}

static int call_put(handle *h, name n, uint64_t seed, const char *parent)
{
    double x[ROWS * COLUMNS];
    const cairn_field f = whole_of(x);
    fill(x, seed);
    return cairn_state_put(h->s[n.shelf], key_of(n.k), n.v, parent, &f, 1);
}

static void put(world *w)
{
    handle *h = pick(w);
    const name n = choose(w);
    const uint64_t seed = 1 + below(w, 5);
    if (n.m->busy)
        return;
    const int rc = call_put(h, n, seed, below(w, 2) ? key_of(below(w, KEYS)) : NULL);
    if (n.m->seed == 0) {
        assert_ok(rc);
        n.m->seed = seed;
    } else if (n.m->seed == seed) {
        assert_int_equal(rc, CAIRN_NOTHING);
    } else {
        assert_fails(rc, CAIRN_EMISMATCH, "digest");
        nrefused++;
    }
}

static void put_behind(world *w)
{
    handle *h = pick(w);
    const name n = choose(w);
    double x[ROWS * COLUMNS];
    const cairn_field f = whole_of(x);
    if (n.m->busy || n.m->seed > 0 || h->t)
        return;
    h->copy = false;
    h->shelf = n.shelf;
    h->k = n.k;
    h->v = n.v;
    h->seed = 1 + below(w, 5);
    fill(x, h->seed);
    assert_ok(cairn_state_put_begin(h->s[n.shelf], key_of(n.k), n.v, NULL, &f, 1, &h->t));
    memset(x, 0, sizeof x);
    n.m->busy = true;
}

static void copy(world *w)
{
    handle *h = pick(w);
    const name n = choose(w);
    model_state *from = &w->state[1 - n.shelf][n.k][n.v];
    if (n.m->busy || from->busy || n.m->seed > 0 || from->seed == 0 || h->t)
        return;
    *h = (handle){.s = {h->s[NODE], h->s[SHARED]},
                  .skew = h->skew,
                  .copy = true,
                  .shelf = n.shelf,
                  .k = n.k,
                  .v = n.v,
                  .seed = from->seed};
    cairn_shelf *here = h->s[1 - n.shelf], *there = h->s[n.shelf];
    if (below(w, 2))
        assert_ok(cairn_state_push(here, key_of(n.k), n.v, there, 0, &h->t));
    else
        assert_ok(cairn_state_fetch(there, key_of(n.k), n.v, here, 0, &h->t));
    n.m->busy = from->busy = true;
    if (below(w, 6) == 0)
        cairn_transfer_cancel(h->t);
}

static void end_transfer(world *w)
{
    handle *h = pick(w);
    wait_for(w, h);
}

static void drop(world *w)
{
    handle *h = pick(w);
    const name n = choose(w);
    if (n.m->busy)
        return;
    const int rc = cairn_state_drop(h->s[n.shelf], key_of(n.k), n.v);
    if (n.m->seed == 0)
        assert_int_equal(rc, CAIRN_NOTHING);
    else if (n.m->pins > 0)
        assert_int_equal(rc, CAIRN_EBUSY);
    else {
        assert_ok(rc);
        n.m->seed = 0;
    }
}

static void pin(world *w)
{
    handle *h = pick(w);
    const name n = choose(w);
    if (n.m->busy || n.m->seed == 0)
        return;
    if (n.m->pins > 0 && below(w, 3) > 0) {
        assert_ok(cairn_state_unpin(h->s[n.shelf], key_of(n.k), n.v));
        n.m->pins--;
    } else {
        assert_ok(cairn_state_pin(h->s[n.shelf], key_of(n.k), n.v));
        n.m->pins++;
    }
}

/* A box of a state, by whoever: what the model says, or nothing. */
static void get(world *w)
{
    handle *h = pick(w);
    const name n = choose(w);
    static double x[ROWS * COLUMNS], want[ROWS * COLUMNS];
    cairn_field f = whole_of(x);
    if (n.m->busy)
        return;
    f.offset[0] = below(w, ROWS);
    f.offset[1] = below(w, COLUMNS);
    f.count[0] = 1 + below(w, ROWS - f.offset[0]);
    f.count[1] = 1 + below(w, COLUMNS - f.offset[1]);
    const int rc = cairn_state_get(h->s[n.shelf], key_of(n.k), n.v, &f, 1);
    assert_int_equal(cairn_state_has(h->s[n.shelf], key_of(n.k), n.v),
                     n.m->seed > 0 ? CAIRN_OK : CAIRN_NOTHING);
    assert_int_equal(rc, n.m->seed > 0 ? CAIRN_OK : CAIRN_ENOTFOUND);
    fill(want, n.m->seed);
    for (size_t i = 0; rc == CAIRN_OK && i < f.count[0] * f.count[1]; i++)
        assert_true(x[i] ==
                    want[(f.offset[0] + i / f.count[1]) * COLUMNS + f.offset[1] + i % f.count[1]]);
}

static int count_one(void *arg, const cairn_state_info *info)
{
    (void)info;
    ++*(size_t *)arg;
    return 0;
}

static void list(world *w)
{
    handle *h = pick(w);
    const size_t shelf = below(w, SHELVES), v = below(w, VERSIONS);
    size_t n = 0, least = 0, most = 0;
    for (size_t k = 0; k < KEYS; k++) {
        const model_state *m = &w->state[shelf][k][v];
        least += m->seed > 0;
        most += m->seed > 0 || m->busy;
    }
    assert_ok(cairn_state_list(h->s[shelf], NULL, false, v, count_one, &n));
    assert_true(n >= least && n <= most);
}

/* One operation on a file fails: what was acknowledged stays, what failed is not there. */
static void fault(world *w)
{
    static const crn_fault_how how[] = {CRN_FAULT_EIO, CRN_FAULT_ENOSPC, CRN_FAULT_TORN,
                                        CRN_FAULT_SHORT};
    handle *h = pick(w);
    const name n = choose(w);
    const uint64_t seed = 1 + below(w, 5);
    for (size_t i = 0; i < HANDLES; i++) /* what others do in the background goes well */
        wait_for(w, &w->h[i]);
    if (n.m->pins > 0)
        return;
    crn_fault_arm(&(crn_fault){below(w, 3) ? CRN_FAULT_WRITE : CRN_FAULT_SYNC, how[below(w, 4)],
                               1 + below(w, 8), 1});
    const bool drops = n.m->seed > 0;
    const int rc =
        drops ? cairn_state_drop(h->s[n.shelf], key_of(n.k), n.v) : call_put(h, n, seed, NULL);
    crn_fault_arm(NULL);
    nfaults += rc < 0;
    const int has = cairn_state_has(h->s[n.shelf], key_of(n.k), n.v);
    assert_true(has >= 0);
    if (rc < 0)
        n.m->residue |= 1u << (drops ? n.m->seed : seed);
    if (rc == CAIRN_OK || drops)
        n.m->seed = has == CAIRN_NOTHING ? 0 : drops ? n.m->seed : seed;
    assert_int_equal(has, n.m->seed > 0 ? CAIRN_OK : CAIRN_NOTHING);
    assert_true(rc != CAIRN_OK || (n.m->seed > 0) != drops);
}

/* --- what happens to shelves ---------------------------------------------------------------- */

static void for_all(world *w, void (*fn)(world *w, handle *h))
{
    for (size_t i = 0; i < HANDLES; i++)
        fn(w, &w->h[i]);
}

/* The node's shelf is deleted: calls say so, what was pushed is on the other one, and the node
 * begins with an empty one. */
static void vanish(world *w)
{
    for_all(w, wait_for);
    remove_tree(w->path[NODE]);
    for (int i = 0; i < 4; i++) {
        handle *h = pick(w);
        name n = choose(w);
        double x[ROWS * COLUMNS];
        const cairn_field f = whole_of(x);
        n.shelf = NODE;
        assert_int_equal(cairn_state_has(h->s[NODE], key_of(n.k), n.v), CAIRN_ENOTFOUND);
        assert_int_equal(cairn_state_get(h->s[NODE], key_of(n.k), n.v, &f, 1), CAIRN_ENOTFOUND);
        assert_int_equal(call_put(h, n, 1, NULL), CAIRN_ENOTFOUND);
    }
    memset(w->state[NODE], 0, sizeof w->state[NODE]);
    for_all(w, reopen);
}

/* After a failure and the loss of the index, a state that failed to be put or dropped may count. */
static void look_again(world *w, size_t shelf)
{
    for (size_t i = 0; i < KEYS * VERSIONS; i++) {
        model_state *m = &w->state[shelf][i / VERSIONS][i % VERSIONS];
        double x[ROWS * COLUMNS];
        const cairn_field f = whole_of(x);
        m->pins = 0;
        if (m->residue == 0)
            continue;
        const int rc = cairn_state_get(w->h[0].s[shelf], key_of(i / VERSIONS), i % VERSIONS, &f, 1);
        assert_true(rc == CAIRN_OK || (rc == CAIRN_ENOTFOUND && m->seed == 0));
        const uint64_t seed = rc == CAIRN_OK ? (uint64_t)x[0] : 0;
        assert_true(seed == m->seed || (m->residue & 1u << seed) != 0);
        m->seed = seed;
    }
}

/* The index is made anew from the parts; it knows no pins. */
static void lose_index(world *w)
{
    char path[192];
    const size_t shelf = below(w, SHELVES);
    for_all(w, wait_for);
    snprintf(path, sizeof path, "%s/index", w->path[shelf]);
    assert_int_equal(unlink(path), 0);
    for_all(w, reopen);
    look_again(w, shelf);
}

static void restart(world *w)
{
    reopen(w, pick(w));
}

/* --- histories ------------------------------------------------------------------------------ */

/* Everything is as the model says, by one who was not there. */
static void check(world *w)
{
    handle fresh = {.skew = 0};
    open_handle(w, &fresh);
    for (size_t i = 0; i < SHELVES * KEYS * VERSIONS; i++) {
        const size_t shelf = i % SHELVES, k = i / SHELVES % KEYS, v = i / SHELVES / KEYS;
        const model_state *m = &w->state[shelf][k][v];
        double x[ROWS * COLUMNS], want[ROWS * COLUMNS];
        const cairn_field f = whole_of(x);
        assert_int_equal(cairn_state_has(fresh.s[shelf], key_of(k), v),
                         m->seed > 0 ? CAIRN_OK : CAIRN_NOTHING);
        if (m->seed == 0)
            continue;
        fill(want, m->seed);
        assert_ok(cairn_state_get(fresh.s[shelf], key_of(k), v, &f, 1));
        assert_memory_equal(x, want, sizeof x);
        assert_ok(cairn_state_verify(fresh.s[shelf], key_of(k), v));
    }
    for (size_t i = 0; i < SHELVES; i++)
        cairn_shelf_close(fresh.s[i]);
}

static void play(uint64_t number)
{
    static void (*const step[])(world * w) = {
        put,  put,  put,          put_behind,   put_behind, copy,  copy,  copy, end_transfer, drop,
        drop, pin,  get,          get,          get,        list,  fault, get,  end_transfer, drop,
        put,  copy, end_transfer, end_transfer, restart,    fault, get};
    world w = {.rng = crn_rng_of(test_seed(), number)};
    static const char *const codec[] = {"none", "lz4", "zstd"};
    for (size_t i = 0; i < SHELVES; i++)
        snprintf(w.path[i], sizeof w.path[i], "%s/%" PRIu64 "-%zu", scratch, number, i);
    snprintf(w.config, sizeof w.config, "%s/%" PRIu64 ".ini", scratch, number);
    FILE *f = fopen(w.config, "w");
    assert_non_null(f);
    fprintf(f, "[variable]\nblock = 4k\ncodec = %s\n", codec[number % 3]);
    fclose(f);
    for (size_t i = 0; i < HANDLES; i++) {
        w.h[i].skew = (long)below(&w, 7200) - 3600;
        open_handle(&w, &w.h[i]);
    }
    for (int i = 0; i < STEPS; i++) {
        const size_t at = below(&w, 80);
        if (at == 78)
            vanish(&w);
        else if (at == 79)
            lose_index(&w);
        else
            step[at % (sizeof step / sizeof *step)](&w);
    }
    for_all(&w, wait_for);
    check(&w);
    for (size_t i = 0; i < HANDLES * SHELVES; i++)
        cairn_shelf_close(w.h[i / SHELVES].s[i % SHELVES]);
    check(&w);
    for (size_t i = 0; i < SHELVES; i++)
        remove_tree(w.path[i]);
}

static void test_histories(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < histories; i++) {
        crn_fault_arm(NULL);
        play(i);
    }
    print_message("%" PRIu64 " histories, %" PRIu64 " calls, %" PRIu64 " refused, %" PRIu64
                  " failed on purpose\n",
                  histories, ncalls, nrefused, nfaults);
    assert_true(nrefused > 0 && nfaults > 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_histories)};
    if (chdir("/dev/shm") < 0) /* faults are made above the file system: a fast one will do */
        fprintf(stderr, "no /dev/shm: this takes longer\n");
    if (argc > 1)
        histories = strtoull(argv[1], NULL, 10);
    return cmocka_run_group_tests_name("states_histories", tests, scratch_begin, scratch_end);
}
