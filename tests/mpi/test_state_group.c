/* SPDX-License-Identifier: BSD-3-Clause
 *
 * States of groups: put by all ranks in pieces, got by any rank in others; several groups at once.
 *
 * TEST: ranks 1 2 4
 */
#include <dirent.h>

#include <cairn/state_mpi.h>

#include "harness/mpi.h"

enum { ROWS = 97, COLUMNS = 64 };

static char path[256];
static int rank, size;

static int32_t value(uint64_t row, uint64_t column, int32_t seed)
{
    return (int32_t)(row * COLUMNS + column) + seed;
}

/* This rank's rows, of size ranks. */
static cairn_field rows_of(int32_t *data, int r, int n)
{
    const uint64_t lo = (uint64_t)(ROWS * r / n), hi = (uint64_t)(ROWS * (r + 1) / n);
    return (cairn_field){.name = "grid",
                         .data = data,
                         .type = CAIRN_INT32,
                         .ndims = 2,
                         .global = {ROWS, COLUMNS},
                         .offset = {lo, 0},
                         .count = {hi - lo, COLUMNS}};
}

static void fill(const cairn_field *f, int32_t seed)
{
    int32_t *x = f->data;
    for (uint64_t i = 0; i < f->count[0] * f->count[1]; i++)
        x[i] = value(f->offset[0] + i / f->count[1], f->offset[1] + i % f->count[1], seed);
}

static void check(cairn_shelf *s, const char *key, uint64_t version, cairn_field f, int32_t seed)
{
    int32_t *x = f.data;
    memset(x, 0, f.count[0] * f.count[1] * sizeof *x);
    assert_ok(cairn_state_get(s, key, version, &f, 1));
    for (uint64_t i = 0; i < f.count[0] * f.count[1]; i++)
        assert_int_equal(x[i],
                         value(f.offset[0] + i / f.count[1], f.offset[1] + i % f.count[1], seed));
}

static void check_other_pieces(void)
{
    cairn_shelf *group, *alone;
    static int32_t data[ROWS * COLUMNS];
    assert_ok(cairn_shelf_open_group(MPI_COMM_WORLD, path, NULL, &group));
    for (int32_t v = 0; v < 5; v++) {
        cairn_field f = rows_of(data, rank, size);
        fill(&f, v);
        assert_ok(cairn_state_put(group, "m1", (uint64_t)v, NULL, &f, 1));
    }
    assert_ok(cairn_shelf_open(path, NULL, &alone));
    check(alone, "m1", 3, rows_of(data, 0, 1), 3);                  /* all of it */
    check(alone, "m1", 4, rows_of(data, rank, size), 4);            /* as it was put */
    check(alone, "m1", 2, rows_of(data, size - 1 - rank, size), 2); /* another rank's */
    cairn_field columns = rows_of(data, 0, 1);
    columns.offset[1] = (uint64_t)rank;
    columns.count[1] = 7;
    check(group, "m1", 1, columns, 1);
    cairn_field f = rows_of(data, rank, size);
    fill(&f, 1);
    assert_int_equal(cairn_state_put(group, "m1", 1, NULL, &f, 1), CAIRN_NOTHING);
    fill(&f, 9);
    assert_fails(cairn_state_put(group, "m1", 1, NULL, &f, 1), CAIRN_EMISMATCH, "digest");
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        assert_ok(cairn_state_drop(alone, "m1", 1));
    MPI_Barrier(MPI_COMM_WORLD);
    assert_int_equal(cairn_state_has(group, "m1", 1), CAIRN_NOTHING);
    assert_ok(cairn_state_put(group, "m1", 1, NULL, &f, 1)); /* the other one may be put now */
    check(alone, "m1", 1, rows_of(data, 0, 1), 9);
    MPI_Barrier(MPI_COMM_WORLD);
    cairn_shelf_close(alone);
    cairn_shelf_close(group);
}

/* Each rank a group of its own: nobody waits, and all find what all have put. */
static void check_groups_at_once(void)
{
    cairn_shelf *s;
    static int32_t data[ROWS * COLUMNS];
    char key[16];
    assert_ok(cairn_shelf_open(path, NULL, &s));
    snprintf(key, sizeof key, "r%d", rank);
    for (int32_t v = 0; v < 20; v++) {
        cairn_field f = rows_of(data, 0, 1);
        fill(&f, 100 * rank + v);
        assert_ok(cairn_state_put(s, key, (uint64_t)v, NULL, &f, 1));
        if (v >= 5)
            assert_ok(cairn_state_drop(s, key, (uint64_t)v - 5));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int r = 0; r < size; r++) {
        snprintf(key, sizeof key, "r%d", r);
        for (int32_t v = 15; v < 20; v++)
            check(s, key, (uint64_t)v, rows_of(data, rank, size), 100 * r + v);
        assert_int_equal(cairn_state_has(s, key, 14), CAIRN_NOTHING);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    cairn_shelf_close(s);
}

/* Put in the background by the group; copied to another shelf by one process alone. */
static void check_background(void)
{
    static int32_t data[ROWS * COLUMNS];
    char far[280];
    cairn_shelf *group, *alone, *shared;
    cairn_transfer *t;
    cairn_state_info here = {.struct_bytes = sizeof here}, there = here;
    snprintf(far, sizeof far, "%s-far", path);
    assert_ok(cairn_shelf_open_group(MPI_COMM_WORLD, path, NULL, &group));
    assert_ok(cairn_shelf_open(path, NULL, &alone));
    assert_ok(cairn_shelf_open(far, NULL, &shared));
    for (int32_t v = 0; v < 6; v++) {
        cairn_field f = rows_of(data, rank, size);
        fill(&f, v);
        assert_ok(cairn_state_put_begin(group, "m1", (uint64_t)v, NULL, &f, 1, &t));
        memset(data, 0, sizeof data);
        assert_ok(cairn_transfer_wait(t));
        check(alone, "m1", (uint64_t)v, rows_of(data, rank, size), v);
    }
    for (int32_t v = rank; v < 6; v += size) {
        assert_ok(cairn_state_push(alone, "m1", (uint64_t)v, shared, 0, &t));
        assert_ok(cairn_transfer_wait(t));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (uint64_t v = 0; v < 6; v++) {
        check(shared, "m1", v, rows_of(data, size - 1 - rank, size), (int32_t)v);
        assert_ok(cairn_state_describe(alone, "m1", v, &here, NULL, NULL));
        assert_ok(cairn_state_describe(shared, "m1", v, &there, NULL, NULL));
        assert_string_equal(here.digest, there.digest);
        assert_int_equal(there.nprocesses, size);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) { /* of whoever has copied it, who lives */
        assert_ok(cairn_state_drop(shared, "m1", 5));
        assert_ok(cairn_state_push(group, "m1", 5, shared, 0, &t));
        assert_ok(cairn_transfer_wait(t));
        check(shared, "m1", 5, rows_of(data, 0, 1), 5);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    cairn_shelf_close(group);
    cairn_shelf_close(alone);
    cairn_shelf_close(shared);
}

static size_t count_parts(const char *shelf)
{
    char dir[400];
    size_t n = 0;
    snprintf(dir, sizeof dir, "%s/writers-000", shelf);
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        n += strncmp(e->d_name, "part-", 5) == 0;
    closedir(d);
    return n;
}

/* Groups that come and go, and processes that copy their states, go on with the parts of those
 * before them: files do not grow with the times that a program was started. */
static void check_adoption(void)
{
    static int32_t data[ROWS * COLUMNS];
    char far[280];
    cairn_shelf *group, *shared;
    cairn_transfer *t;
    snprintf(far, sizeof far, "%s-far", path);
    for (int32_t v = 0; v < 5; v++) {
        cairn_field f = rows_of(data, rank, size);
        fill(&f, v);
        assert_ok(cairn_shelf_open_group(MPI_COMM_WORLD, path, NULL, &group));
        assert_ok(cairn_state_put(group, "m1", (uint64_t)v, NULL, &f, 1));
        if (rank == 0) {
            assert_ok(cairn_shelf_open(far, NULL, &shared));
            assert_ok(cairn_state_push(group, "m1", (uint64_t)v, shared, 0, &t));
            assert_ok(cairn_transfer_wait(t));
            cairn_shelf_close(shared);
        }
        cairn_shelf_close(group);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    assert_int_equal(count_parts(path), size);
    assert_int_equal(count_parts(far), size);
    assert_ok(cairn_shelf_open(path, NULL, &group));
    assert_ok(cairn_shelf_open(far, NULL, &shared));
    for (int32_t v = 0; v < 5; v++) {
        check(group, "m1", (uint64_t)v, rows_of(data, 0, 1), v);
        check(shared, "m1", (uint64_t)v, rows_of(data, 0, 1), v);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    cairn_shelf_close(group);
    cairn_shelf_close(shared);
}

/* All ranks put the first half, as many elements as the array has on two ranks. */
static void check_overlap(void)
{
    cairn_shelf *s;
    double x[10] = {0};
    if (size != 2)
        return;
    cairn_field f = {.name = "x",
                     .data = x,
                     .type = CAIRN_FLOAT64,
                     .ndims = 1,
                     .global = {10},
                     .offset = {0},
                     .count = {5}};
    assert_ok(cairn_shelf_open_group(MPI_COMM_WORLD, path, NULL, &s));
    assert_ok(cairn_state_put(s, "overlap", 1, NULL, &f, 1));
    f.count[0] = 10;
    assert_int_equal(cairn_state_get(s, "overlap", 1, &f, 1), CAIRN_EMISMATCH);
    MPI_Barrier(MPI_COMM_WORLD);
    cairn_shelf_close(s);
}

/* The last rank means something else than the others: all are told, and nothing is put. */
static void check_one_differs(void)
{
    static int32_t data[ROWS * COLUMNS];
    cairn_shelf *s;
    const bool last = rank == size - 1;
    if (size == 1)
        return;
    assert_ok(cairn_shelf_open_group(MPI_COMM_WORLD, path, NULL, &s));
    cairn_field good = rows_of(data, rank, size), f = good;
    fill(&good, 1);
    assert_fails(cairn_state_put(s, last ? "m2" : "m1", 1, NULL, &f, 1), CAIRN_EMISMATCH, "'m2'");
    assert_fails(cairn_state_put(s, "m1", last ? 2 : 1, NULL, &f, 1), CAIRN_EMISMATCH, "'m1' 2");
    f.global[1] += last;
    assert_fails(cairn_state_put(s, "m1", 1, NULL, &f, 1), CAIRN_EMISMATCH, "dimension 1");
    f = good;
    f.type = last ? CAIRN_FLOAT32 : CAIRN_INT32;
    assert_fails(cairn_state_put(s, "m1", 1, NULL, &f, 1), CAIRN_EMISMATCH, "float32");
    f = good;
    f.kind = last ? CAIRN_FIELD_LIST : CAIRN_FIELD_ARRAY;
    f.ndims = last ? 0 : 2;
    assert_fails(cairn_state_put(s, "m1", 1, NULL, &f, 1), CAIRN_EMISMATCH, "another kind");
    assert_int_equal(cairn_state_has(s, "m1", 1), CAIRN_NOTHING);
    int32_t own = rank;
    const cairn_field two[] = {good,
                               {.name = "own", .data = &own, .type = CAIRN_INT32, .count = {1}}};
    assert_ok(cairn_state_put(s, "m1", 1, NULL, two, last ? 1 : 2)); /* who has none, names none */
    check(s, "m1", 1, rows_of(data, 0, 1), 1);
    MPI_Barrier(MPI_COMM_WORLD);
    cairn_shelf_close(s);
}

static void test_states_of_groups(void **state)
{
    (void)state;
    char dir[64] = "";
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0)
        make_scratch(dir, sizeof dir, "states");
    MPI_Bcast(dir, sizeof dir, MPI_CHAR, 0, MPI_COMM_WORLD);
    snprintf(path, sizeof path, "%s/pieces", dir);
    check_other_pieces();
    snprintf(path, sizeof path, "%s/groups", dir);
    check_groups_at_once();
    snprintf(path, sizeof path, "%s/background", dir);
    check_background();
    snprintf(path, sizeof path, "%s/adopted", dir);
    check_adoption();
    snprintf(path, sizeof path, "%s/overlap", dir);
    check_overlap();
    snprintf(path, sizeof path, "%s/differs", dir);
    check_one_differs();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        remove_tree(dir);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_states_of_groups)};
    return run_mpi_tests(argc, argv, tests);
}
