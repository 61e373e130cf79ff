/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Named states in one process without MPI, which is never initialised here. Several open shelves
 * stand for several writers and readers.
 *
 * NEEDS: inih
 */
#include <cairn/state.h>

#include "harness/scratch.h"
#include "state/state_shelf.h"

enum { N = 3000 };

static char path[128];

static void fresh_path(void)
{
    static int k;
    snprintf(path, sizeof path, "%s/shelf-%d", scratch, k++);
}

static cairn_shelf *open_shelf(void)
{
    cairn_shelf *s;
    assert_ok(cairn_shelf_open(path, NULL, &s));
    return s;
}

static void fill(double *x, uint64_t seed)
{
    for (size_t i = 0; i < N; i++)
        x[i] = (double)(seed * 1000003 + i / 100);
}

static cairn_field field_of(double *x)
{
    return (cairn_field){.name = "x", .data = x, .type = CAIRN_FLOAT64, .count = {N}};
}

static int put(cairn_shelf *s, const char *key, uint64_t version, uint64_t seed)
{
    double x[N];
    fill(x, seed);
    const cairn_field f = field_of(x);
    return cairn_state_put(s, key, version, NULL, &f, 1);
}

static void check(cairn_shelf *s, const char *key, uint64_t version, uint64_t seed)
{
    double x[N], y[N];
    fill(x, seed);
    const cairn_field f = field_of(y);
    assert_ok(cairn_state_get(s, key, version, &f, 1));
    assert_memory_equal(x, y, sizeof x);
}

static int count_one(void *arg, const cairn_state_info *info)
{
    assert_int_equal(info->nbytes, N * sizeof(double));
    ++*(size_t *)arg;
    return 0;
}

static size_t count(cairn_shelf *s, bool any, uint64_t version)
{
    size_t n = 0;
    assert_ok(cairn_state_list(s, "m", any, version, count_one, &n));
    return n;
}

static int see_field(void *arg, const cairn_field *f)
{
    assert_string_equal(f->name, "x");
    assert_int_equal(f->count[0], N);
    ++*(int *)arg;
    return 0;
}

static void test_comes_and_goes(void **state)
{
    (void)state;
    fresh_path();
    cairn_shelf *s = open_shelf(), *other = open_shelf();
    cairn_state_info info = {.struct_bytes = sizeof info};
    int nfields = 0;
    assert_int_equal(cairn_state_has(other, "m1", 17), CAIRN_NOTHING);
    assert_ok(put(s, "m1", 17, 1));
    assert_ok(put(s, "m2", 17, 2));
    assert_ok(put(s, "m1", 3, 3));
    assert_ok(cairn_state_has(other, "m1", 17));
    check(other, "m1", 17, 1);
    check(s, "m1", 3, 3);
    assert_int_equal(count(other, false, 17), 2);
    assert_int_equal(count(other, true, 0), 3);
    assert_ok(cairn_state_describe(other, "m2", 17, &info, see_field, &nfields));
    assert_int_equal(nfields, 1);
    assert_int_equal(info.nprocesses, 1);
    assert_ok(cairn_state_pin(other, "m1", 17));
    assert_fails(cairn_state_drop(s, "m1", 17), CAIRN_EBUSY, "pinned");
    assert_ok(cairn_state_unpin(s, "m1", 17));
    assert_fails(cairn_state_unpin(s, "m1", 17), CAIRN_EINVAL, "not pinned");
    assert_ok(cairn_state_drop(s, "m1", 17));
    assert_int_equal(cairn_state_drop(s, "m1", 17), CAIRN_NOTHING);
    assert_int_equal(cairn_state_has(other, "m1", 17), CAIRN_NOTHING);
    double x[N];
    const cairn_field f = field_of(x);
    assert_fails(cairn_state_get(other, "m1", 17, &f, 1), CAIRN_ENOTFOUND, "no such state");
    assert_ok(put(s, "m1", 17, 9)); /* another one, now that the first is gone */
    check(other, "m1", 17, 9);
    assert_fails(put(s, "../m", 1, 1), CAIRN_EINVAL, "no key");
    cairn_shelf_close(s);
    cairn_shelf_close(other);
}

static void test_two_writers_of_one_state(void **state)
{
    (void)state;
    fresh_path();
    cairn_shelf *a = open_shelf(), *b = open_shelf();
    cairn_state_info info = {.struct_bytes = sizeof info};
    assert_ok(put(a, "m1", 1, 1));
    assert_int_equal(put(b, "m1", 1, 1), CAIRN_NOTHING);
    assert_ok(cairn_state_describe(a, "m1", 1, &info, NULL, NULL));
    assert_fails(put(b, "m1", 1, 2), CAIRN_EMISMATCH, info.digest);
    assert_fails(put(a, "m1", 1, 2), CAIRN_EMISMATCH, info.digest);
    check(b, "m1", 1, 1);
    cairn_shelf_close(a);
    cairn_shelf_close(b);
}

/* A grid that was put as a whole, got in boxes. */
static void test_boxes(void **state)
{
    (void)state;
    enum { ROWS = 60, COLUMNS = 50 };
    fresh_path();
    cairn_shelf *s = open_shelf(), *other = open_shelf();
    static int32_t grid[ROWS][COLUMNS], box[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        grid[i / COLUMNS][i % COLUMNS] = i;
    cairn_field f = {.name = "g",
                     .data = grid,
                     .type = CAIRN_INT32,
                     .ndims = 2,
                     .global = {ROWS, COLUMNS},
                     .count = {ROWS, COLUMNS}};
    assert_ok(cairn_state_put(s, "g", 1, NULL, &f, 1));
    f.data = box;
    for (uint64_t lo = 0; lo < 20; lo++) {
        f.offset[0] = 2 * lo;
        f.offset[1] = lo;
        f.count[0] = ROWS - 2 * lo;
        f.count[1] = COLUMNS - 2 * lo;
        assert_ok(cairn_state_get(other, "g", 1, &f, 1));
        for (uint64_t i = 0; i < f.count[0] * f.count[1]; i++)
            assert_int_equal(box[i], grid[2 * lo + i / f.count[1]][lo + i % f.count[1]]);
    }
    f.global[0]++;
    assert_fails(cairn_state_get(other, "g", 1, &f, 1), CAIRN_EMISMATCH, "60 elements");
    f.name = "h";
    assert_fails(cairn_state_get(other, "g", 1, &f, 1), CAIRN_ENOTFOUND, "no field 'h'");
    cairn_shelf_close(s);
    cairn_shelf_close(other);
}

/* What others drop leaves the index at once, and the writer's part with its next put. */
static void test_others_drop(void **state)
{
    (void)state;
    fresh_path();
    cairn_shelf *writer = open_shelf(), *server = open_shelf();
    crn_part_info info;
    for (uint64_t v = 0; v < 10; v++)
        assert_ok(put(writer, "m1", v, v));
    for (uint64_t v = 0; v < 9; v++)
        assert_ok(cairn_state_drop(server, "m1", v));
    assert_int_equal(count(writer, true, 0), 1);
    assert_ok(put(writer, "m1", 20, 20));
    crn_part_describe(writer->part, &info);
    assert_int_equal(info.nmarks, 2);
    const uint32_t series = writer->series;
    cairn_shelf_close(writer);
    check(server, "m1", 20, 20); /* of a writer that is gone */
    assert_ok(cairn_state_drop(server, "m1", 9));
    crn_part *part;
    assert_ok(crn_writer_part(server, series, 0, 1, false, &part));
    crn_part_describe(part, &info);
    assert_int_equal(info.nmarks, 1);
    crn_part_close(part);
    assert_ok(put(server, "m1", 21, 21)); /* goes on with its part */
    assert_int_equal(server->series, series);
    check(server, "m1", 20, 20);
    cairn_shelf_close(server);
}

static void test_lost_index(void **state)
{
    (void)state;
    char name[160];
    fresh_path();
    cairn_shelf *a = open_shelf(), *b = open_shelf();
    for (uint64_t v = 0; v < 20; v++)
        assert_ok(put(v % 2 ? a : b, "m1", v, v));
    assert_ok(cairn_state_drop(a, "m1", 5));
    cairn_state_info before = {.struct_bytes = sizeof before}, after = before;
    assert_ok(cairn_state_describe(a, "m1", 7, &before, NULL, NULL));
    snprintf(name, sizeof name, "%s/index", path);
    assert_int_equal(unlink(name), 0);
    assert_fails(cairn_state_has(a, "m1", 1), CAIRN_ENOTFOUND, "removed");
    assert_fails(put(a, "m1", 30, 1), CAIRN_ENOTFOUND, "removed");
    cairn_shelf_close(a);
    cairn_shelf_close(b);
    a = open_shelf();
    assert_int_equal(count(a, true, 0), 19);
    for (uint64_t v = 0; v < 20; v++)
        if (v != 5)
            check(a, "m1", v, v);
    assert_ok(cairn_state_describe(a, "m1", 7, &after, NULL, NULL));
    assert_string_equal(before.digest, after.digest);
    assert_int_equal(put(a, "m1", 7, 7), CAIRN_NOTHING);
    cairn_shelf_close(a);
}

static void test_limits(void **state)
{
    (void)state;
    char config[160];
    cairn_shelf *s;
    fresh_path();
    snprintf(config, sizeof config, "%s/limits.ini", scratch);
    FILE *f = fopen(config, "w");
    assert_non_null(f);
    fputs("[state]\nmax_states = 3\nmax_bytes = 60000\n", f);
    fclose(f);
    assert_ok(cairn_shelf_open(path, config, &s));
    assert_ok(put(s, "m1", 1, 1));
    assert_ok(put(s, "m1", 2, 1));
    assert_fails(put(s, "m1", 3, 1), CAIRN_ENOSPC, "max_bytes");
    assert_ok(cairn_state_drop(s, "m1", 1));
    assert_ok(put(s, "m1", 3, 1));
    cairn_shelf_close(s);
}

/* Both have looked at the limit before either has put its state: one is too many all the same. */
static void test_limits_at_once(void **state)
{
    (void)state;
    fresh_path();
    char config[160];
    cairn_shelf *s[2];
    state_putting *p[2];
    double x[N];
    const cairn_field field = field_of(x);
    snprintf(config, sizeof config, "%s/once.ini", scratch);
    FILE *f = fopen(config, "w");
    assert_non_null(f);
    fputs("[state]\nmax_states = 1\n", f);
    fclose(f);
    fill(x, 1);
    for (uint64_t i = 0; i < 2; i++) {
        assert_ok(cairn_shelf_open(path, config, &s[i]));
        assert_ok(crn_put_capture(s[i], (crn_state_name){"m", i}, NULL, &field, 1, 0, &p[i]));
    }
    assert_ok(crn_put_finish(p[0], crn_put_store(p[0])));
    assert_fails(crn_put_finish(p[1], crn_put_store(p[1])), CAIRN_ENOSPC, "max_states");
    assert_int_equal(count(s[0], true, 0), 1);
    assert_int_equal(put(s[1], "m", 0, 1), CAIRN_NOTHING); /* what is there is no more */
    cairn_shelf_close(s[0]);
    cairn_shelf_close(s[1]);
}

/* Two have begun to put the same state: the second learns of the first, and leaves nothing. */
static void test_same_at_once(void **state)
{
    (void)state;
    fresh_path();
    cairn_shelf *s[2];
    state_putting *p[2];
    double x[N];
    crn_part_info info;
    const cairn_field field = field_of(x);
    fill(x, 1);
    for (uint64_t i = 0; i < 2; i++) {
        s[i] = open_shelf();
        assert_ok(crn_put_capture(s[i], (crn_state_name){"m", 1}, NULL, &field, 1, 0, &p[i]));
    }
    assert_ok(crn_put_finish(p[0], crn_put_store(p[0])));
    assert_int_equal(crn_put_finish(p[1], crn_put_store(p[1])), CAIRN_NOTHING);
    crn_part_describe(s[1]->part, &info);
    assert_int_equal(info.nmarks, 0);
    cairn_shelf_close(s[0]);
    cairn_shelf_close(s[1]);
}

/* More states than a page of the index has: the buckets run over. */
static void test_many(void **state)
{
    (void)state;
    enum { MANY = 500 };
    fresh_path();
    cairn_shelf *s = open_shelf();
    state_entry e = {.nranks = 1, .series = 1};
    size_t n = 0;
    const crn_state_name first = {"k", 0};
    for (uint64_t v = 0; n < MANY; v++) { /* all in one bucket */
        const crn_state_name name = {"k", v};
        if (crn_state_index_bucket(name) != crn_state_index_bucket(first))
            continue;
        snprintf(e.key, sizeof e.key, "k");
        e.version = v;
        e.nbytes = N * sizeof(double);
        assert_ok(crn_state_index_put(s->index, &e));
        n++;
        assert_ok(cairn_state_has(s, "k", v));
    }
    assert_ok(cairn_state_has(s, "k", 0));
    size_t seen = 0;
    assert_ok(cairn_state_list(s, "k", true, 0, count_one, &seen));
    assert_int_equal(seen, MANY);
    assert_ok(crn_state_index_remove(s->index, first));
    assert_int_equal(cairn_state_has(s, "k", 0), CAIRN_NOTHING);
    cairn_shelf_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comes_and_goes), cmocka_unit_test(test_two_writers_of_one_state),
        cmocka_unit_test(test_boxes),          cmocka_unit_test(test_others_drop),
        cmocka_unit_test(test_lost_index),     cmocka_unit_test(test_limits),
        cmocka_unit_test(test_many),           cmocka_unit_test(test_limits_at_once),
        cmocka_unit_test(test_same_at_once),
    };
    return cmocka_run_group_tests_name("state", tests, scratch_begin, scratch_end);
}
