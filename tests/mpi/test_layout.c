/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What variables may be besides plain arrays: structures, items in cells and in no order, pieces in
 * larger memory.
 *
 * TEST: ranks self 2
 * NEEDS: inih
 */
#include "harness/session.h"

typedef struct pair {
    int32_t i, j;
} pair;

typedef struct particle {
    uint64_t id;
    double x[3];
    pair cell;
} particle;

enum { ITEMS = 5000 };

static cairn_type define_particle(cairn *c)
{
    const cairn_member pair_member[] = {CAIRN_MEMBER(pair, i, CAIRN_INT32),
                                        CAIRN_MEMBER(pair, j, CAIRN_INT32)};
    cairn_type pair_type = 0, type = 0;
    assert_ok(cairn_define_type(c, sizeof(pair), pair_member, 2, &pair_type));
    const cairn_member member[] = {CAIRN_MEMBER(particle, id, CAIRN_UINT64),
                                   CAIRN_MEMBER(particle, x, CAIRN_FLOAT64),
                                   CAIRN_MEMBER(particle, cell, pair_type)};
    assert_ok(cairn_define_type(c, sizeof(particle), member, 3, &type));
    return type;
}

static particle particle_of(int rank, int i)
{
    return (particle){.id = (uint64_t)(rank * ITEMS + i), .x = {i, 0.5, rank}, .cell = {i % 7, -i}};
}

static void test_structures_come_back(void **state)
{
    place p;
    cairn *c;
    static particle items[ITEMS];
    place_init(&p, *state, "[level]\nlocal = trail\n");
    for (int i = 0; i < ITEMS; i++)
        items[i] = particle_of(p.rank, i);
    assert_ok(cairn_open(p.mpi, p.config, &c));
    assert_ok(cairn_protect(c, "particles", items, define_particle(c), ITEMS));
    assert_int_equal(cairn_resume(c, NULL), CAIRN_NOTHING);
    assert_ok(cairn_mark(c, 1, CAIRN_AUTO));
    leave_session(c);

    memset(items, 0, sizeof items);
    assert_ok(cairn_open(p.mpi, p.config, &c));
    assert_ok(cairn_protect(c, "particles", items, define_particle(c), ITEMS));
    assert_ok(cairn_resume(c, NULL));
    for (int i = 0; i < ITEMS; i++) {
        const particle want = particle_of(p.rank, i);
        assert_memory_equal(&items[i], &want, sizeof want);
    }
    assert_ok(cairn_close(c));
    place_done(&p);
}

/* The sentence shows both types where they differ. */
static void test_another_structure_is_refused(void **state)
{
    place p;
    cairn *c;
    static particle items[10];
    cairn_type type;
    const cairn_member other[] = {CAIRN_MEMBER(particle, id, CAIRN_UINT64),
                                  CAIRN_MEMBER(particle, x, CAIRN_FLOAT32),
                                  CAIRN_MEMBER(particle, cell, CAIRN_INT32)};
    place_init(&p, *state, "[level]\nlocal = trail\n");
    assert_ok(cairn_open(p.mpi, p.config, &c));
    assert_ok(cairn_protect(c, "particles", items, define_particle(c), 10));
    assert_ok(cairn_mark(c, 1, CAIRN_AUTO));
    leave_session(c);
    assert_ok(cairn_open(p.mpi, p.config, &c));
    assert_ok(cairn_define_type(c, sizeof(particle), other, 3, &type));
    assert_ok(cairn_protect(c, "particles", items, type, 10));
    assert_refused(c, cairn_resume(c, NULL), CAIRN_EMISMATCH, "x@8:float32[6],cell@32:int32[2]");
    assert_refused(c, cairn_resume(c, NULL), CAIRN_EMISMATCH,
                   "x@8:float64[3],cell@32:{8:i@0:int32,j@4:int32}");
    assert_ok(cairn_close(c));
    place_done(&p);
}

static void test_bad_structures_are_refused(void **state)
{
    place p;
    cairn *c;
    cairn_type type = 7;
    const cairn_member odd = {"x", 0, 12, CAIRN_FLOAT64}, far = {"x", 40, 8, CAIRN_FLOAT64};
    const cairn_member unknown = {"x", 0, 8, 99};
    place_init(&p, *state, "[level]\nlocal = trail\n");
    assert_ok(cairn_open(p.mpi, p.config, &c));
    assert_refused(c, cairn_define_type(c, 40, &odd, 1, &type), CAIRN_EINVAL, "no whole number");
    assert_refused(c, cairn_define_type(c, 40, &far, 1, &type), CAIRN_EINVAL, "ends at byte 48");
    assert_refused(c, cairn_define_type(c, 40, &unknown, 1, &type), CAIRN_EINVAL, "no type 99");
    assert_refused(c, cairn_define_type(c, 40, NULL, 0, &type), CAIRN_EINVAL, "needs members");
    assert_refused(c, cairn_protect(c, "x", &type, 1 << 16, 1), CAIRN_EINVAL, "no type 65536");
    assert_int_equal(type, 7);
    assert_true(define_particle(c) == define_particle(c));
    assert_ok(cairn_close(c));
    place_done(&p);
}

/* Memory around a piece counts, too. */
static void test_pieces_beyond_all_memory_are_refused(void **state)
{
    place p;
    cairn *c;
    uint64_t item = 0;
    const uint64_t one[8] = {1};
    cairn_piece huge = {.struct_bytes = sizeof huge,
                        .ndims = 2,
                        .global = {4, 4},
                        .count = {4, 4},
                        .before = {UINT64_C(1) << 60, UINT64_C(1) << 60}};
    place_init(&p, *state, "[level]\nlocal = trail\n");
    assert_ok(cairn_open(p.mpi, p.config, &c));
    assert_refused(c, cairn_protect_piece(c, "x", &item, CAIRN_UINT64, &huge), CAIRN_EINVAL,
                   "with what is around it, is larger than any memory");
    assert_refused(c, cairn_protect_part(c, "x", &item, CAIRN_UINT64, 9, one, one, one),
                   CAIRN_EINVAL, "1 to 8 dimensions, not 9");
    assert_ok(cairn_close(c));
    place_done(&p);
}

/* --- items in cells --------------------------------------------------------------------------- */

enum { CELLS = 100 };

/* Every rank has each nranks-th cell; cell k has k % 5 items, all of which say k. */
static size_t fill_cells(const place *p, uint64_t *cell, uint64_t *nitems, uint64_t *item)
{
    size_t n = 0, m = 0;
    for (uint64_t k = (uint64_t)p->rank; k < CELLS; k += (uint64_t)p->nranks) {
        cell[n] = k;
        nitems[n++] = k % 5;
        for (uint64_t i = 0; i < k % 5; i++)
            item[m++] = k;
    }
    return n;
}

static void test_cells_come_back(void **state)
{
    place p;
    cairn *c;
    uint64_t cell[CELLS], nitems[CELLS], item[5 * CELLS] = {0}, want[5 * CELLS];
    place_init(&p, *state, "[level]\nlocal = trail\n");
    const size_t n = fill_cells(&p, cell, nitems, item);
    assert_ok(cairn_open(p.mpi, p.config, &c));
    assert_ok(cairn_protect_ragged(c, "items", item, CAIRN_UINT64, CELLS, n, cell, nitems));
    assert_ok(cairn_protect_list(c, "list", item, CAIRN_UINT64, 3));
    assert_ok(cairn_mark(c, 1, CAIRN_AUTO));
    leave_session(c);
    memcpy(want, item, sizeof want);
    memset(item, 0, sizeof item);
    assert_ok(cairn_open(p.mpi, p.config, &c));
    assert_ok(cairn_protect_ragged(c, "items", item, CAIRN_UINT64, CELLS, n, cell, nitems));
    assert_ok(cairn_protect_list(c, "list", item, CAIRN_UINT64, 3));
    assert_ok(cairn_resume(c, NULL));
    assert_memory_equal(item, want, sizeof want);
    /* a plain variable of that name has no cells any more */
    assert_ok(cairn_protect(c, "items", item, CAIRN_UINT64, 1));
    assert_int_equal(cairn_release(c, "items#cells"), CAIRN_ENOTFOUND);
    assert_ok(cairn_protect_ragged(c, "items", item, CAIRN_UINT64, CELLS, n, cell, nitems));
    assert_ok(cairn_release(c, "items"));
    assert_ok(cairn_mark(c, 2, CAIRN_AUTO));
    assert_ok(cairn_close(c));
    place_done(&p);
}

static void test_bad_cells_are_refused(void **state)
{
    place p;
    cairn *c;
    const uint64_t cell[] = {1, 3, 3}, nitems[] = {1, 1, 1};
    uint64_t item[3] = {0};
    place_init(&p, *state, "[level]\nlocal = trail\n");
    assert_ok(cairn_open(p.mpi, p.config, &c));
    assert_refused(c, cairn_protect_ragged(c, "p", item, CAIRN_UINT64, 9, 3, cell, nitems),
                   CAIRN_EINVAL, "cell 3 follows cell 3: numbers must grow");
    assert_refused(c, cairn_protect_ragged(c, "p", item, CAIRN_UINT64, 3, 2, cell, nitems),
                   CAIRN_EINVAL, "there is no cell 3 of 3");
    assert_refused(c, cairn_protect(c, "p#cells", item, CAIRN_UINT64, 3), CAIRN_EINVAL,
                   "Cairn's own");
    assert_ok(cairn_close(c));
    place_done(&p);
}

/* --- pieces in larger memory ------------------------------------------------------------------ */

enum { ROWS = 30, COLUMNS = 50, AROUND = 2 };

static void test_piece_in_larger_memory_comes_back(void **state)
{
    place p;
    cairn *c;
    static double memory[ROWS + 2 * AROUND][COLUMNS + 2 * AROUND];
    place_init(&p, *state, "[level]\nlocal = trail\n[variable]\nblock = 1K\n");
    const cairn_piece piece = {.struct_bytes = sizeof piece,
                               .ndims = 2,
                               .global = {(uint64_t)p.nranks * ROWS, COLUMNS},
                               .offset = {(uint64_t)p.rank * ROWS, 0},
                               .count = {ROWS, COLUMNS},
                               .before = {AROUND, AROUND},
                               .after = {AROUND, AROUND}};
    for (int i = 0; i < ROWS + 2 * AROUND; i++)
        for (int j = 0; j < COLUMNS + 2 * AROUND; j++)
            memory[i][j] = i * 1000 + j;
    for (int leg = 0; leg < 3; leg++) {
        assert_ok(cairn_open(p.mpi, p.config, &c));
        assert_ok(cairn_protect_piece(c, "field", memory, CAIRN_FLOAT64, &piece));
        assert_int_equal(cairn_resume(c, NULL), leg == 0 ? CAIRN_NOTHING : CAIRN_OK);
        for (int i = 0; leg > 0 && i < ROWS + 2 * AROUND; i++)
            for (int j = 0; j < COLUMNS + 2 * AROUND; j++) {
                const bool inside =
                    i >= AROUND && i < ROWS + AROUND && j >= AROUND && j < COLUMNS + AROUND;
                assert_true(memory[i][j] == (inside ? i * 1000 + j + (leg - 1) * (j == 7) : -1));
            }
        if (leg == 1)
            for (int i = 0; i < ROWS + 2 * AROUND; i++)
                memory[i][7]++;
        assert_ok(cairn_mark(c, (uint64_t)leg + 1, CAIRN_AUTO));
        leave_session(c);
        for (int i = 0; i < ROWS + 2 * AROUND; i++)
            for (int j = 0; j < COLUMNS + 2 * AROUND; j++)
                memory[i][j] = -1;
    }
    place_done(&p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_structures_come_back),
        cmocka_unit_test(test_another_structure_is_refused),
        cmocka_unit_test(test_bad_structures_are_refused),
        cmocka_unit_test(test_pieces_beyond_all_memory_are_refused),
        cmocka_unit_test(test_cells_come_back),
        cmocka_unit_test(test_bad_cells_are_refused),
        cmocka_unit_test(test_piece_in_larger_memory_comes_back),
    };
    return run_mpi_tests(argc, argv, tests);
}
