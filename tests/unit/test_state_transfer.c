/* SPDX-License-Identifier: BSD-3-Clause
 *
 * States on their way in the background: puts that return after the copy, and copies from shelf to
 * shelf.
 *
 * NEEDS: zstd
 */
#include <cairn/state.h>

#include "harness/scratch.h"
#include "io/io_fault.h"
#include "state/state_shelf.h"

enum { N = 100000 };

static cairn_shelf *open_shelf(const char *name)
{
    char path[128];
    cairn_shelf *s;
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    assert_ok(cairn_shelf_open(path, NULL, &s));
    return s;
}

static double *values(uint64_t seed)
{
    static double x[N];
    for (size_t i = 0; i < N; i++)
        x[i] = (double)(seed * 1000003 + i);
    return x;
}

static cairn_field field_of(double *x)
{
    return (cairn_field){.name = "x", .data = x, .type = CAIRN_FLOAT64, .count = {N}};
}

static cairn_transfer *begin(cairn_shelf *s, const char *key, uint64_t version, uint64_t seed)
{
    double *x = values(seed);
    const cairn_field f = field_of(x);
    cairn_transfer *t;
    assert_ok(cairn_state_put_begin(s, key, version, NULL, &f, 1, &t));
    memset(x, 0, N * sizeof *x); /* it is the program's again */
    return t;
}

static void put(cairn_shelf *s, const char *key, uint64_t version, uint64_t seed)
{
    const cairn_field f = field_of(values(seed));
    assert_ok(cairn_state_put(s, key, version, NULL, &f, 1));
}

static void check(cairn_shelf *s, const char *key, uint64_t version, uint64_t seed)
{
    static double y[N];
    const cairn_field f = field_of(y);
    assert_ok(cairn_state_get(s, key, version, &f, 1));
    assert_memory_equal(values(seed), y, sizeof y);
}

static void test_put_in_the_background(void **state)
{
    (void)state;
    cairn_shelf *s = open_shelf("puts"), *other = open_shelf("puts");
    for (uint64_t v = 0; v < 20; v++) {
        cairn_transfer *t = begin(s, "m", v, v);
        if (v > 0)
            check(s, "m", v - 1, v - 1); /* while the engine has the part */
        assert_ok(cairn_transfer_wait(t));
        assert_ok(cairn_state_has(other, "m", v));
        check(other, "m", v, v);
    }
    cairn_transfer *a = begin(s, "m", 100, 1), *b = begin(s, "m", 101, 2);
    assert_true(cairn_transfer_done(a, NULL)); /* the second waited for it */
    assert_ok(cairn_state_drop(s, "m", 101));  /* and this for the second */
    assert_ok(cairn_transfer_wait(b));
    assert_ok(cairn_transfer_wait(a));
    a = begin(s, "m", 102, 3);
    cairn_shelf_close(s);
    assert_ok(cairn_transfer_wait(a)); /* which the shelf has waited for */
    check(other, "m", 102, 3);
    cairn_shelf_close(other);
}

/* Put by a second writer while the first may not have ended: what becomes of it. */
static int put_beside(cairn_shelf *s, uint64_t version, uint64_t seed)
{
    const cairn_field f = field_of(values(seed));
    cairn_transfer *t;
    const int rc = cairn_state_put_begin(s, "m", version, NULL, &f, 1, &t);
    return rc == CAIRN_OK ? cairn_transfer_wait(t) : rc;
}

/* Two that put the same state at the same time: one is first, the other learns of it, if only when
 * it waits. */
static void test_two_in_the_background(void **state)
{
    (void)state;
    cairn_shelf *s = open_shelf("both"), *other = open_shelf("both");
    cairn_transfer *t = begin(s, "m", 1, 1);
    int b = put_beside(other, 1, 1), a = cairn_transfer_wait(t);
    assert_true((a == CAIRN_OK && b == CAIRN_NOTHING) || (a == CAIRN_NOTHING && b == CAIRN_OK));
    t = begin(s, "m", 2, 1);
    b = put_beside(other, 2, 2);
    a = cairn_transfer_wait(t);
    assert_true((a == CAIRN_OK && b == CAIRN_EMISMATCH) || (a == CAIRN_EMISMATCH && b == CAIRN_OK));
    check(other, "m", 2, a == CAIRN_OK ? 1 : 2);
    cairn_shelf_close(s);
    cairn_shelf_close(other);
}

/* A failed write shows when it is waited for, and leaves nothing. */
static void test_put_that_fails(void **state)
{
    (void)state;
    cairn_shelf *s = open_shelf("fails");
    put(s, "m", 1, 1);
    crn_fault_arm(&(crn_fault){CRN_FAULT_WRITE, CRN_FAULT_ENOSPC, 1, 0});
    cairn_transfer *t = begin(s, "m", 2, 2);
    assert_int_equal(cairn_transfer_wait(t), CAIRN_ENOSPC);
    crn_fault_arm(NULL);
    assert_int_equal(cairn_state_has(s, "m", 2), CAIRN_NOTHING);
    assert_ok(cairn_transfer_wait(begin(s, "m", 2, 2)));
    check(s, "m", 1, 1);
    check(s, "m", 2, 2);
    cairn_shelf_close(s);
}

static void test_push_and_fetch(void **state)
{
    (void)state;
    cairn_shelf *node = open_shelf("node"), *shared = open_shelf("shared");
    cairn_state_info here = {.struct_bytes = sizeof here}, there = here;
    cairn_transfer *t[5];
    uint64_t nbytes;
    for (uint64_t v = 0; v < 5; v++)
        put(node, "m", v, v);
    for (uint64_t v = 0; v < 5; v++)
        assert_ok(cairn_state_push(node, "m", v, shared, 0, &t[v]));
    for (uint64_t v = 0; v < 5; v++)
        assert_ok(cairn_transfer_wait(t[v]));
    for (uint64_t v = 0; v < 5; v++)
        check(shared, "m", v, v);
    assert_ok(cairn_state_describe(node, "m", 3, &here, NULL, NULL));
    assert_ok(cairn_state_describe(shared, "m", 3, &there, NULL, NULL));
    assert_string_equal(here.digest, there.digest);
    assert_int_equal(here.put_ns, there.put_ns);
    assert_ok(cairn_state_push(node, "m", 3, shared, 0, t));
    assert_int_equal(cairn_transfer_wait(t[0]), CAIRN_NOTHING);
    assert_ok(cairn_state_push(node, "m", 77, shared, 0, t));
    assert_fails(cairn_transfer_wait(t[0]), CAIRN_ENOTFOUND, "no such state");
    assert_ok(cairn_state_drop(node, "m", 3));
    put(node, "m", 3, 99);
    assert_ok(cairn_state_push(node, "m", 3, shared, 0, t));
    assert_fails(cairn_transfer_wait(t[0]), CAIRN_EMISMATCH, there.digest);
    assert_ok(cairn_state_drop(node, "m", 3));
    assert_ok(cairn_state_fetch(node, "m", 3, shared, 0, t));
    assert_ok(cairn_transfer_wait(t[0]));
    check(node, "m", 3, 3);
    assert_fails(cairn_state_push(node, "m", 3, node, 0, t), CAIRN_EINVAL,
                 "the shelf that it is on");
    put(node, "m", 10, 4); /* what another state has is not copied again */
    assert_ok(cairn_state_push(node, "m", 10, shared, 0, t));
    while (!cairn_transfer_done(t[0], &nbytes))
        usleep(100);
    assert_true(cairn_transfer_done(t[0], &nbytes));
    assert_int_equal(nbytes, 0);
    assert_ok(cairn_transfer_wait(t[0]));
    check(shared, "m", 10, 4);
    cairn_shelf_close(node);
    cairn_shelf_close(shared);
}

/* Encoded blocks are copied as they are, and shorter than they were. */
static void test_codec(void **state)
{
    (void)state;
    char config[160], path[160];
    cairn_shelf *node, *shared = open_shelf("encoded");
    cairn_transfer *t;
    uint64_t nbytes;
    snprintf(config, sizeof config, "%s/codec.ini", scratch);
    snprintf(path, sizeof path, "%s/codec", scratch);
    FILE *f = fopen(config, "w");
    assert_non_null(f);
    fputs("[variable]\ncodec = zstd\n", f);
    fclose(f);
    assert_ok(cairn_shelf_open(path, config, &node));
    assert_ok(cairn_transfer_wait(begin(node, "m", 1, 1)));
    put(node, "m", 2, 2);
    check(node, "m", 1, 1);
    for (uint64_t v = 1; v <= 2; v++) {
        assert_ok(cairn_state_push(node, "m", v, shared, 0, &t));
        while (!cairn_transfer_done(t, &nbytes))
            usleep(100);
        (void)cairn_transfer_done(t, &nbytes);
        assert_ok(cairn_transfer_wait(t));
        assert_true(nbytes > 0 && nbytes < N * sizeof(double) / 2);
        check(shared, "m", v, v);
        assert_ok(cairn_state_verify(shared, "m", v));
    }
    put(shared, "m", 3, 3); /* by no codec, and equal to one by another */
    put(node, "m", 3, 3);
    assert_ok(cairn_state_push(node, "m", 3, shared, 0, &t));
    assert_int_equal(cairn_transfer_wait(t), CAIRN_NOTHING);
    cairn_shelf_close(node);
    cairn_shelf_close(shared);
}

static int see(void *arg, size_t which, const cairn_state_info *info)
{
    int *n = arg;
    assert_int_equal(info->version, 5);
    n[which]++;
    return 0;
}

static void test_survey(void **state)
{
    (void)state;
    cairn_shelf *s[3] = {open_shelf("one"), NULL, open_shelf("two")};
    int n[3] = {0};
    put(s[0], "m1", 5, 1);
    put(s[0], "m2", 5, 1);
    put(s[0], "m2", 6, 1);
    put(s[2], "m1", 5, 1);
    put(s[2], "k1", 5, 1);
    assert_ok(cairn_state_survey(s, 3, "m", 5, see, n));
    assert_int_equal(n[0], 2);
    assert_int_equal(n[1], 0);
    assert_int_equal(n[2], 1);
    cairn_shelf_close(s[0]);
    cairn_shelf_close(s[2]);
}

/* At a byte a second it would take days; cancelled, it leaves nothing. */
static void test_cancel(void **state)
{
    (void)state;
    cairn_shelf *node = open_shelf("slow"), *shared = open_shelf("far");
    cairn_transfer *t, *u, *w;
    put(node, "m", 1, 1);
    put(node, "m", 2, 2);
    assert_ok(cairn_state_push(node, "m", 1, shared, 1, &t));
    assert_ok(cairn_state_push(node, "m", 2, shared, 0, &u));
    assert_false(cairn_transfer_done(u, NULL));
    cairn_transfer_cancel(t);
    assert_int_equal(cairn_transfer_wait(t), CAIRN_ECANCELED);
    assert_ok(cairn_transfer_wait(u));
    assert_int_equal(cairn_state_has(shared, "m", 1), CAIRN_NOTHING);
    check(shared, "m", 2, 2);
    assert_ok(cairn_state_push(node, "m", 1, shared, 1, &t));
    assert_ok(cairn_state_push(node, "m", 1, shared, 0, &w));
    cairn_shelf_close(shared); /* gives them up */
    assert_int_equal(cairn_transfer_wait(t), CAIRN_ECANCELED);
    assert_int_equal(cairn_transfer_wait(w), CAIRN_ECANCELED);
    shared = open_shelf("far");
    assert_int_equal(cairn_state_has(shared, "m", 1), CAIRN_NOTHING);
    check(shared, "m", 2, 2);
    cairn_shelf_close(shared);
    cairn_shelf_close(node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_in_the_background),
        cmocka_unit_test(test_two_in_the_background),
        cmocka_unit_test(test_put_that_fails),
        cmocka_unit_test(test_push_and_fetch),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_codec),
        cmocka_unit_test(test_survey),
    };
    return cmocka_run_group_tests_name("state_transfer", tests, scratch_begin, scratch_end);
}
