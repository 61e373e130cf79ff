/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks outside of parts: where the bytes of a piece lie in a global array, which arrays the
 * variables of many ranks make, and what is said when they do not agree.
 *
 * NEEDS: random123
 */
#include "harness/harness.h"

#include "store/store.h"

enum { TURNS = 300 };

/* A random box of a random array, of a few thousand elements at most. */
static void draw(uint64_t seed, crn_var_spec *s, uint64_t *dims)
{
    crn_rng rng = crn_rng_of(seed, 0);
    const uint32_t ndims = 1 + (uint32_t)crn_rng_below(&rng, 4);
    uint64_t cells = 1;
    s->ndims = ndims;
    s->item = 8;
    s->global = dims;
    s->offset = dims + ndims;
    s->count = dims + 2 * (size_t)ndims;
    for (uint32_t d = 0; d < ndims; d++) {
        dims[d] = 1 + crn_rng_below(&rng, 8);
        dims[ndims + d] = crn_rng_below(&rng, dims[d]);
        dims[2 * ndims + d] = 1 + crn_rng_below(&rng, dims[d] - dims[ndims + d]);
        cells *= dims[2 * ndims + d];
    }
    s->nbytes = 8 * cells;
}

/* The place of element i of the piece, one index at a time. */
static uint64_t plain_place(const crn_var_spec *s, uint64_t i)
{
    uint64_t index[CRN_DIMS_MAX] = {0}, place = 0;
    for (uint32_t d = s->ndims; d-- > 0;) {
        index[d] = s->offset[d] + i % s->count[d];
        i /= s->count[d];
    }
    for (uint32_t d = 0; d < s->ndims; d++)
        place = place * s->global[d] + index[d];
    return place * s->item;
}

static void test_place_of_every_byte(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TURNS; seed++) {
        crn_var_spec s = {0};
        uint64_t dims[3 * CRN_DIMS_MAX], run;
        draw(seed, &s, dims);
        for (uint64_t pos = 0; pos < s.nbytes; pos++) {
            assert_int_equal(crn_var_place(&s, pos, &run), plain_place(&s, pos / 8) + pos % 8);
            assert_true(run > 0 && run <= s.nbytes - pos);
            /* what follows without a gap does so */
            const uint64_t last = pos + run - 1;
            assert_int_equal(plain_place(&s, last / 8) + last % 8,
                             plain_place(&s, pos / 8) + pos % 8 + run - 1);
        }
    }
}

static void test_place_of_whole_rows_is_one_run(void **state)
{
    (void)state;
    const uint64_t dims[] = {10, 6, 4, /* at */ 3, 0, 0, /* has */ 5, 6, 4};
    const crn_var_spec s = {.ndims = 3,
                            .item = 4,
                            .nbytes = 480,
                            .global = dims,
                            .offset = dims + 3,
                            .count = dims + 6};
    uint64_t run;
    assert_int_equal(crn_var_place(&s, 0, &run), 3 * 6 * 4 * 4);
    assert_int_equal(run, 480);
}

static crn_var_spec plain(const char *name, const char *type, uint32_t item, uint64_t n)
{
    return (crn_var_spec){.name = name, .type = type, .item = item, .nbytes = n * item};
}

static void test_arrays_by_rank(void **state)
{
    (void)state;
    crn_frame f = {.nranks = 3};
    uint64_t off;
    for (uint32_t r = 0; r < 3; r++) {
        crn_var_spec even = plain("even", "int32", 4, 5), one = plain("one", "float64", 8, 1);
        crn_var_spec uneven = plain("uneven", "int8", 1, r * 2);
        assert_ok(crn_frame_add(&f, r, &even));
        assert_ok(crn_frame_add(&f, r, &one));
        assert_ok(crn_frame_add(&f, r, &uneven));
    }
    crn_frame_seal(&f);
    const crn_array *even = crn_frame_find(&f, "even"), *one = crn_frame_find(&f, "one");
    crn_array *uneven = crn_frame_find(&f, "uneven");
    assert_int_equal(even->ndims, 1); /* a list, whether counts happen to be equal or not */
    assert_int_equal(even->dims[0], 15);
    assert_int_equal(one->ndims, 1);
    assert_int_equal(one->dims[0], 3);
    assert_int_equal(uneven->ndims, 1);
    assert_int_equal(uneven->dims[0], 6);
    uneven->off = 1000;
    assert_int_equal(crn_array_place(uneven, 2, &off), CRN_OUTSIDE);
    assert_int_equal(off, 1002);
    assert_null(crn_frame_find(&f, "other"));
    crn_frame_done(&f);
}

static void test_ranks_must_agree(void **state)
{
    (void)state;
    const uint64_t zero = 0, four = 4, eight = 8;
    crn_frame f = {.nranks = 2};
    crn_var_spec a = plain("a", "int32", 4, 5), b = plain("a", "uint32", 4, 5);
    crn_var_spec c = {.name = "c",
                      .type = "int8",
                      .item = 1,
                      .nbytes = 4,
                      .ndims = 1,
                      .global = &eight,
                      .offset = &zero,
                      .count = &four};
    crn_var_spec d = c, e = plain("c", "int8", 1, 4);
    d.global = &four;
    assert_ok(crn_frame_add(&f, 0, &a));
    assert_ok(crn_frame_add(&f, 0, &c));
    assert_int_equal(crn_frame_add(&f, 1, &b), CAIRN_EMISMATCH);
    assert_string_equal(crn_err_peek()->text,
                        "variable 'a' is of type int32 on rank 0 and of type uint32 on rank 1");
    assert_int_equal(crn_frame_add(&f, 1, &d), CAIRN_EMISMATCH);
    assert_int_equal(crn_frame_add(&f, 1, &e), CAIRN_EMISMATCH);
    crn_frame_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place_of_every_byte),
        cmocka_unit_test(test_place_of_whole_rows_is_one_run),
        cmocka_unit_test(test_arrays_by_rank),
        cmocka_unit_test(test_ranks_must_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
