/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Disks that fail, once, at each operation of a put, a put in the background, a copy and a drop:
 * the call says so, or it has done what it says; what was there before is there, and the same call
 * succeeds when it is made again. Shelves that vanish.
 */
#include <cairn/state.h>

#include "harness/scratch.h"
#include "io/io_fault.h"

enum { N = 3000, KEPT = 3, MOST = 200 };

static char near_path[128], far_path[128];

static cairn_shelf *open_at(const char *path)
{
    cairn_shelf *s;
    assert_ok(cairn_shelf_open(path, NULL, &s));
    return s;
}

static void fill(double *x, uint64_t seed)
{
    for (size_t i = 0; i < N; i++)
        x[i] = (double)(seed * 7919 + i / 300);
}

static cairn_field field_of(double *x)
{
    return (cairn_field){.name = "x", .data = x, .type = CAIRN_FLOAT64, .count = {N}};
}

static void check(cairn_shelf *s, uint64_t version)
{
    double x[N], want[N];
    const cairn_field f = field_of(x);
    assert_ok(cairn_state_get(s, "m", version, &f, 1));
    fill(want, version);
    assert_memory_equal(x, want, sizeof x);
}

static int put(cairn_shelf *s, cairn_shelf *far, uint64_t version)
{
    double x[N];
    const cairn_field f = field_of(x);
    (void)far;
    fill(x, version);
    return cairn_state_put(s, "m", version, NULL, &f, 1);
}

static int put_behind(cairn_shelf *s, cairn_shelf *far, uint64_t version)
{
    double x[N];
    const cairn_field f = field_of(x);
    cairn_transfer *t;
    (void)far;
    fill(x, version);
    const int rc = cairn_state_put_begin(s, "m", version, NULL, &f, 1, &t);
    return rc == CAIRN_OK ? cairn_transfer_wait(t) : rc;
}

/* The state is on the far shelf, and comes to this one. */
static int fetch(cairn_shelf *s, cairn_shelf *far, uint64_t version)
{
    cairn_transfer *t;
    const int rc = cairn_state_fetch(s, "m", version, far, 0, &t);
    return rc == CAIRN_OK ? cairn_transfer_wait(t) : rc;
}

static int drop(cairn_shelf *s, cairn_shelf *far, uint64_t version)
{
    (void)far;
    return cairn_state_drop(s, "m", version);
}

typedef int call_fn(cairn_shelf *s, cairn_shelf *far, uint64_t version);

/* One call of which operation at fails; *ret says whether there was such an operation. */
static void fail_once(call_fn *call, const crn_fault *plan, uint64_t version, bool *ret)
{
    cairn_shelf *s = open_at(near_path), *far = open_at(far_path);
    for (uint64_t v = 0; v < KEPT; v++) {
        const int rc = put(s, NULL, v);
        assert_true(rc == CAIRN_OK || rc == CAIRN_NOTHING);
    }
    if (call == fetch)
        assert_ok(put(far, NULL, version));
    if (call == drop)
        assert_ok(put(s, NULL, version));
    crn_fault_arm(plan);
    const int rc = call(s, far, version);
    *ret = crn_fault_seen() >= plan->at;
    crn_fault_arm(NULL);
    const int has = cairn_state_has(s, "m", version);
    if (call == drop) {
        assert_true(rc != CAIRN_OK || has == CAIRN_NOTHING);
        if (has == CAIRN_OK)
            assert_ok(cairn_state_drop(s, "m", version));
    } else {
        assert_int_equal(has, rc == CAIRN_OK ? CAIRN_OK : CAIRN_NOTHING);
        if (rc < 0)
            assert_ok(call(s, far, version));
        check(s, version);
    }
    for (uint64_t v = 0; v < KEPT; v++)
        check(s, v);
    cairn_shelf_close(s);
    cairn_shelf_close(far);
    s = open_at(near_path);
    for (uint64_t v = 0; v < KEPT; v++)
        check(s, v);
    assert_int_equal(cairn_state_has(s, "m", version), call == drop ? CAIRN_NOTHING : CAIRN_OK);
    cairn_shelf_close(s);
}

static void fail_everywhere(call_fn *call, crn_fault_where where, crn_fault_how how)
{
    static uint64_t version = 100;
    bool more = true;
    uint64_t at = 1;
    for (; more && at < MOST; at++)
        fail_once(call, &(crn_fault){where, how, at, 1}, version++, &more);
    assert_true(at > 2 && at < MOST);
}

static void test_writes_fail(void **state)
{
    (void)state;
    call_fn *const call[] = {put, put_behind, fetch, drop};
    for (size_t i = 0; i < sizeof call / sizeof *call; i++) {
        fail_everywhere(call[i], CRN_FAULT_WRITE, CRN_FAULT_ENOSPC);
        fail_everywhere(call[i], CRN_FAULT_WRITE, CRN_FAULT_TORN);
    }
}

static void test_syncs_fail(void **state)
{
    (void)state;
    call_fn *const call[] = {put, put_behind, fetch, drop};
    for (size_t i = 0; i < sizeof call / sizeof *call; i++)
        fail_everywhere(call[i], CRN_FAULT_SYNC, CRN_FAULT_EIO);
}

/* A node's shelf may be deleted at any time: calls say so, and what was pushed is got from the
 * other one. */
static void test_shelf_vanishes(void **state)
{
    (void)state;
    char node[128], shared[128];
    cairn_transfer *t;
    snprintf(node, sizeof node, "%s/node", scratch);
    snprintf(shared, sizeof shared, "%s/shared", scratch);
    cairn_shelf *s = open_at(node), *far = open_at(shared);
    assert_ok(put(s, NULL, 1));
    assert_ok(put(s, NULL, 2));
    assert_ok(cairn_state_push(s, "m", 1, far, 0, &t));
    assert_ok(cairn_transfer_wait(t));
    remove_tree(node);
    assert_int_equal(cairn_state_has(s, "m", 1), CAIRN_ENOTFOUND);
    assert_int_equal(put(s, NULL, 3), CAIRN_ENOTFOUND);
    assert_int_equal(cairn_state_drop(s, "m", 1), CAIRN_ENOTFOUND);
    assert_ok(cairn_state_push(s, "m", 2, far, 0, &t));
    assert_int_equal(cairn_transfer_wait(t), CAIRN_ENOTFOUND);
    check(far, 1);
    cairn_shelf_close(s);
    s = open_at(node);
    assert_ok(cairn_state_fetch(s, "m", 1, far, 0, &t));
    assert_ok(cairn_transfer_wait(t));
    check(s, 1);
    cairn_shelf_close(s);
    cairn_shelf_close(far);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writes_fail),
        cmocka_unit_test(test_syncs_fail),
        cmocka_unit_test(test_shelf_vanishes),
    };
    make_scratch(scratch, sizeof scratch, "errors");
    snprintf(near_path, sizeof near_path, "%s/near", scratch);
    snprintf(far_path, sizeof far_path, "%s/far", scratch);
    const int rc = cmocka_run_group_tests_name("states_errors", tests, NULL, NULL);
    remove_tree(scratch);
    return rc;
}
