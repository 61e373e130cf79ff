/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Items in states: lists and items in cells, put by a group, got by one process of any stretch and
 * any cells, against what a plain loop over all ranks says.
 *
 * TEST: ranks 1 2 3
 */
#include <cairn/state_mpi.h>

#include "harness/mpi.h"

enum { CELLS = 61, ITEMS_MAX = CELLS * 900 };

static char path[256];
static int rank, size;

/* Items of a cell of a version: some have none, some more than a block has. */
static uint64_t items_of(uint64_t cell, uint64_t version)
{
    return cell % 7 == 0 ? 0 : (cell * cell * 37 + 5 * version) % 900;
}

static double item_of(uint64_t cell, uint64_t k, uint64_t version)
{
    return (double)(cell * 100000 + k * 10 + version);
}

/* Cells are dealt out: nobody's lie together. */
static int owner_of(uint64_t cell)
{
    return (int)((cell * 5 + cell / 3) % (uint64_t)size);
}

typedef struct cells {
    uint64_t number[CELLS], nitems[CELLS];
    size_t n;
    uint64_t total;
    double data[ITEMS_MAX];
} cells;

static void add_cell(cells *c, uint64_t cell, uint64_t version)
{
    c->number[c->n] = cell;
    c->nitems[c->n++] = items_of(cell, version);
    for (uint64_t k = 0; k < items_of(cell, version); k++)
        c->data[c->total++] = item_of(cell, k, version);
}

static cairn_field field_of(cells *c)
{
    return (cairn_field){.name = "particles",
                         .data = c->data,
                         .type = CAIRN_FLOAT64,
                         .kind = CAIRN_FIELD_CELLS,
                         .global = {CELLS},
                         .ncells = c->n,
                         .cell = c->number,
                         .nitems = c->nitems};
}

/* What rank r has of a list: 1000 r + version + k. */
static uint64_t list_of(int r, uint64_t version)
{
    return 3000 + 7000 * (uint64_t)r + version;
}

static int32_t list_item(int r, uint64_t k)
{
    return r * 1000000 + (int32_t)k;
}

static void put(cairn_shelf *s, uint64_t version)
{
    static cells mine;
    static int32_t list[60000];
    mine.n = mine.total = 0;
    for (uint64_t c = 0; c < CELLS; c++)
        if (owner_of(c) == rank)
            add_cell(&mine, c, version);
    const uint64_t n = list_of(rank, version);
    for (uint64_t k = 0; k < n; k++)
        list[k] = list_item(rank, k);
    const cairn_field f[] = {field_of(&mine),
                             {.name = "list",
                              .data = list,
                              .type = CAIRN_INT32,
                              .kind = CAIRN_FIELD_LIST,
                              .count = {n}}};
    assert_ok(cairn_state_put(s, "p", version, NULL, f, 2));
}

static void check_cells(cairn_shelf *s, uint64_t version, uint64_t first, uint64_t step)
{
    static cells want, got;
    want.n = want.total = 0;
    for (uint64_t c = first; c < CELLS; c += step)
        add_cell(&want, c, version);
    got = want;
    memset(got.data, 0, sizeof got.data);
    memset(got.nitems, 0, sizeof got.nitems);
    assert_ok(cairn_state_cells(s, "p", version, "particles", got.n, got.number, got.nitems));
    assert_memory_equal(got.nitems, want.nitems, want.n * sizeof *want.nitems);
    const cairn_field f = field_of(&got);
    assert_ok(cairn_state_get(s, "p", version, &f, 1));
    assert_memory_equal(got.data, want.data, want.total * sizeof *want.data);
}

static void check_list(cairn_shelf *s, uint64_t version, uint64_t first, uint64_t n)
{
    static int32_t got[60000];
    const cairn_field f = {.name = "list",
                           .data = got,
                           .type = CAIRN_INT32,
                           .kind = CAIRN_FIELD_LIST,
                           .offset = {first},
                           .count = {n}};
    uint64_t at = 0, k = 0;
    assert_ok(cairn_state_get(s, "p", version, &f, 1));
    for (int r = 0; r < size; r++)
        for (uint64_t i = 0; i < list_of(r, version); i++, at++)
            if (at >= first && at < first + n)
                assert_int_equal(got[k++], list_item(r, i));
    assert_int_equal(k, n);
}

static int note_field(void *arg, const cairn_field *f)
{
    uint64_t *seen = arg;
    if (f->kind == CAIRN_FIELD_CELLS) {
        assert_string_equal(f->name, "particles");
        assert_int_equal(f->global[0], CELLS);
        seen[0] = f->count[0];
    } else {
        assert_string_equal(f->name, "list");
        assert_int_equal(f->kind, CAIRN_FIELD_LIST);
        assert_int_equal(f->global[0], f->count[0]);
        seen[1] = f->count[0];
    }
    return 0;
}

static void check_described(cairn_shelf *s, uint64_t version)
{
    cairn_state_info info = {.struct_bytes = sizeof info};
    uint64_t seen[2] = {0}, want[2] = {0};
    for (uint64_t c = 0; c < CELLS; c++)
        want[0] += items_of(c, version);
    for (int r = 0; r < size; r++)
        want[1] += list_of(r, version);
    assert_ok(cairn_state_describe(s, "p", version, &info, note_field, seen));
    assert_memory_equal(seen, want, sizeof seen);
    assert_int_equal(info.nbytes, want[0] * 8 + want[1] * 4);
}

/* What is asked for and is not so. */
static void check_refusals(cairn_shelf *group, cairn_shelf *s)
{
    static double x[60000];
    uint64_t cell[] = {1, CELLS}, nitems[2];
    assert_fails(cairn_state_cells(s, "p", 0, "particles", 2, cell, nitems), CAIRN_EMISMATCH,
                 "1 of 2 cells");
    assert_fails(cairn_state_cells(s, "p", 0, "list", 1, cell, nitems), CAIRN_EMISMATCH, "a list");
    nitems[0] = items_of(1, 0) + 1;
    cairn_field f = {.name = "particles",
                     .data = x,
                     .type = CAIRN_FLOAT64,
                     .kind = CAIRN_FIELD_CELLS,
                     .global = {CELLS},
                     .ncells = 1,
                     .cell = cell,
                     .nitems = nitems};
    assert_fails(cairn_state_get(s, "p", 0, &f, 1), CAIRN_EMISMATCH, "there are");
    f.kind = CAIRN_FIELD_ARRAY;
    assert_fails(cairn_state_get(s, "p", 0, &f, 1), CAIRN_EMISMATCH, "items in cells");
    const cairn_field beyond = {.name = "list",
                                .data = x,
                                .type = CAIRN_INT32,
                                .kind = CAIRN_FIELD_LIST,
                                .offset = {list_of(0, 0) + 100000},
                                .count = {1}};
    assert_fails(cairn_state_get(s, "p", 0, &beyond, 1), CAIRN_EMISMATCH, "the list has");
    /* a cell that nobody has */
    f.kind = CAIRN_FIELD_CELLS;
    f.global[0] = 2 * (uint64_t)size + 1;
    cell[0] = (uint64_t)rank;
    nitems[0] = 1;
    const int rc = cairn_state_put(group, "bad", 0, NULL, &f, 1);
    assert_int_equal(rc, CAIRN_EINVAL);
    assert_int_equal(cairn_state_has(s, "bad", 0), CAIRN_NOTHING);
}

static void test_items(void **state)
{
    (void)state;
    char dir[64] = "";
    cairn_shelf *group, *alone;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0)
        make_scratch(dir, sizeof dir, "items");
    MPI_Bcast(dir, sizeof dir, MPI_CHAR, 0, MPI_COMM_WORLD);
    snprintf(path, sizeof path, "%s/shelf", dir);
    assert_ok(cairn_shelf_open_group(MPI_COMM_WORLD, path, NULL, &group));
    for (uint64_t v = 0; v < 4; v++)
        put(group, v);

    assert_ok(cairn_shelf_open(path, NULL, &alone));
    for (uint64_t v = 0; v < 4; v++) {
        check_described(alone, v);
        check_cells(alone, v, 0, 1);
        check_cells(alone, v, (uint64_t)rank, 3);
        check_list(alone, v, 0, list_of(0, v));
        check_list(alone, v, list_of(0, v) - (size > 1 ? 9 : 17), 17);
        assert_ok(cairn_state_verify(alone, "p", v));
    }
    check_refusals(group, alone);
    MPI_Barrier(MPI_COMM_WORLD);
    cairn_shelf_close(alone);
    cairn_shelf_close(group);
    if (rank == 0)
        remove_tree(dir);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_items)};
    return run_mpi_tests(argc, argv, tests);
}
