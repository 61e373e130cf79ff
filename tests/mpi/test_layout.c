/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What variables may be besides plain arrays: structures.
 *
 * TEST: ranks self 2
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_structures_come_back),
        cmocka_unit_test(test_another_structure_is_refused),
        cmocka_unit_test(test_bad_structures_are_refused),
    };
    return run_mpi_tests(argc, argv, tests);
}
