/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Observations from text: columns, operators, what is left out, blocks of covariances; the same
 * bits for any decomposition. Files in HDF5: tests/system/test_observe.py, with h5py.
 *
 * NEEDS: hdf5 random123
 */
#include "harness/harness.h"
#include "observe/observe.h"

#include <math.h>

enum { NY = 6, NX = 8, NZ = 3 };

static const crn_obs_field fields[] = {
    {.name = "x", .ndims = 1, .global = {40}},
    {.name = "h",
     .ndims = 2,
     .global = {NY, NX},
     .placed = true,
     .axis = {{.dim = 1, .origin = 0.5, .step = 1}, {.dim = 0, .origin = 10, .step = 2}}},
    {.name = "u", .ndims = 2, .global = {NY, NX}},
    {.name = "v", .ndims = 2, .global = {NY, NX}},
    {.name = "tracer",
     .ndims = 3,
     .global = {NZ, NY, NX},
     .placed = true,
     .axis = {{.dim = 2, .origin = 0.5, .step = 1}, {.dim = 1, .origin = 10, .step = 2}}},
};
enum { NFIELDS = sizeof fields / sizeof *fields };

static const double layers[NZ] = {1, 0.5, 0.25};

#ifndef WIND_PLUGIN
#define WIND_PLUGIN "wind_operator.so"
#endif

static const crn_obs_type types[] = {
    {.name = "height", .field = "h", .kind = CRN_OBS_INTERPOLATE, .radius = 3, .variance = 0.25},
    {.name = "column",
     .field = "tracer",
     .kind = CRN_OBS_COLUMN,
     .along = 0,
     .weight = layers,
     .nweights = NZ,
     .radius = 3},
    {.name = "wind", .kind = CRN_OBS_PLUGIN, .plugin = WIND_PLUGIN ":wind_speed", .radius = 1},
    {.name = "mass", .kind = CRN_OBS_PLUGIN, .plugin = WIND_PLUGIN ":mass", .radius = 1},
    {.name = "near", .field = "h", .correlation = 2, .variance = 4, .radius = 1},
};

static cairn_status read_text(const char *text, uint64_t steps, crn_obs **ret)
{
    static char path[128]; /* as long as the observations are there */
    char dir[64];
    make_scratch(dir, sizeof dir, "observe");
    snprintf(path, sizeof path, "%s/obs.txt", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    crn_obs_setup s = {.path = path,
                       .steps = steps,
                       .step = 0.5,
                       .space = {.ndims = 2, .period = {NX, 0}},
                       .field = fields,
                       .nfields = NFIELDS,
                       .type = types,
                       .ntypes = sizeof types / sizeof *types};
    cairn_status rc = crn_obs_open(&s, ret);
    remove_tree(dir);
    return rc;
}

/* --- a member ------------------------------------------------------------------------------- */

static double truth(size_t field, uint64_t i)
{
    const crn_rng_key key = {7, 1, 0, field};
    return crn_rng_normal_at(&key, i);
}

static uint64_t volume(const uint64_t *n, int ndims)
{
    uint64_t v = 1;
    for (int d = 0; d < ndims; d++)
        v *= n[d];
    return v;
}

/* The p-th of parts pieces along each dimension. */
static cairn_field piece_of(uint32_t f, uint64_t parts, uint64_t p)
{
    cairn_field piece = {.name = fields[f].name, .type = CAIRN_FLOAT64, .ndims = fields[f].ndims};
    for (int d = 0; d < piece.ndims; d++, p /= parts) {
        uint64_t k = p % parts, n = fields[f].global[d];
        piece.global[d] = n;
        piece.offset[d] = n * k / parts;
        piece.count[d] = n * (k + 1) / parts - piece.offset[d];
    }
    return piece;
}

static void fill_piece(uint32_t f, cairn_field *piece)
{
    const uint32_t nd = (uint32_t)piece->ndims;
    const crn_box part = crn_box_of(nd, piece->offset, piece->count);
    const crn_box all = crn_box_of(nd, NULL, piece->global);
    double *data;
    assert_ok(crn_alloc(&data, crn_box_volume(&part) + 1));
    crn_stretches walk = crn_stretches_of(&part, &part, &all);
    while (crn_stretches_next(&walk))
        for (uint64_t i = 0; i < walk.n; i++)
            data[walk.from + i] = truth(f, walk.to + i);
    piece->data = data;
}

/* Pick from a member cut into parts pieces along each dimension. */
static void pick(const crn_obs_set *set, uint64_t parts, double *entry)
{
    memset(entry, 0, set->nentries * sizeof *entry);
    for (uint32_t f = 0; f < NFIELDS; f++) {
        uint64_t npieces = 1;
        for (int d = 0; d < fields[f].ndims; d++)
            npieces *= parts;
        for (uint64_t p = 0; p < npieces; p++) {
            cairn_field piece = piece_of(f, parts, p);
            if (volume(piece.count, piece.ndims) == 0)
                continue;
            fill_piece(f, &piece);
            assert_ok(crn_obs_pick(set, 0, f, &piece, entry));
            free(piece.data);
        }
    }
}

static double *observe(const crn_obs_set *set, uint64_t parts)
{
    double *entry, *y;
    assert_ok(crn_alloc(&entry, set->nentries + 1));
    assert_ok(crn_alloc(&y, set->n + 1));
    pick(set, parts, entry);
    crn_obs_apply(set, entry, y);
    free(entry);
    return y;
}

static crn_obs_set *cycle_of(const char *text, uint64_t cycle, crn_obs **obs)
{
    crn_obs_set *set;
    assert_ok(read_text(text, 10, obs));
    assert_ok(crn_obs_cycle(*obs, cycle, &set));
    return set;
}

/* --- cases ---------------------------------------------------------------------------------- */

static void test_first_format(void **state)
{
    crn_obs *o;
    (void)state;
    crn_obs_set *set = cycle_of("# cycle field index value variance\n"
                                "2 x 39 1.5 0.5 # last\n1 x 3 -2 1\n\n2 h 9 7 2\n",
                                2, &o);
    assert_int_equal(crn_obs_count(o), 3);
    assert_int_equal(set->n, 2);
    double *y = observe(set, 2);
    assert_true(y[0] == truth(0, 39));
    assert_true(y[1] == truth(1, 9));
    assert_true(set->item[0].value == 1.5 && set->item[0].variance == 0.5);
    assert_false(set->item[0].placed);
    assert_true(set->item[1].placed); /* by its axes */
    assert_true(set->item[1].place[0] == 1.5 && set->item[1].place[1] == 12);
    assert_int_equal(set->item[0].step, 10);
    free(y);
    crn_obs_set_free(set);
    crn_obs_close(o);
}

static double h(uint64_t row, uint64_t column)
{
    return truth(1, row * NX + column);
}

static void test_interpolation(void **state)
{
    crn_obs *o;
    (void)state;
    crn_obs_set *set = cycle_of("columns cycle type x y value\n"
                                "1 height 2.75 13 1\n"  /* between rows 1, 2 and columns 2, 3 */
                                "1 height 8.25 10 1\n"  /* = 0.25: between the last and the first */
                                "1 height 1.5 20 1\n"   /* on an element of the rim */
                                "1 height 1.5 20.5 1\n" /* outside */
                                "1 height 1.5 nan 1\n"  /* nowhere */
                                "1 height 1.5 12 nan\n", /* without a value */
                                1, &o);
    double *y = observe(set, 1);
    assert_int_equal(set->n, 3);
    assert_float_equal(
        y[0], 0.5 * (0.75 * h(1, 2) + 0.25 * h(1, 3)) + 0.5 * (0.75 * h(2, 2) + 0.25 * h(2, 3)),
        1e-14);
    assert_float_equal(y[1], 0.25 * h(0, 7) + 0.75 * h(0, 0), 1e-14);
    assert_true(y[2] == h(5, 1));
    assert_int_equal(set->item[2].nentries, 1);
    assert_int_equal(set->rejected.n, 3);
    assert_int_equal(set->rejected.at[0].flag, CRN_OBS_OUTSIDE);
    assert_int_equal(set->rejected.at[1].flag, CRN_OBS_OUTSIDE);
    assert_int_equal(set->rejected.at[2].flag, CRN_OBS_NOT_FINITE);
    assert_int_equal(set->rejected.at[2].item.number, 5);
    free(y);
    crn_obs_set_free(set);
    crn_obs_close(o);
}

static void test_column(void **state)
{
    crn_obs *o;
    (void)state;
    crn_obs_set *set =
        cycle_of("columns cycle type x y value variance\n1 column 1.0 10 3 1\n", 1, &o);
    double *y = observe(set, 1), sum = 0;
    for (uint64_t z = 0; z < NZ; z++)
        sum += layers[z] * 0.5 * (truth(4, z * NY * NX) + truth(4, z * NY * NX + 1));
    assert_float_equal(y[0], sum, 1e-14);
    assert_int_equal(set->item[0].nentries, 2 * NZ);
    free(y);
    crn_obs_set_free(set);
    crn_obs_close(o);
}

static void test_plugins(void **state)
{
    crn_obs *o;
    (void)state;
    crn_obs_set *set = cycle_of("1 wind 11 3 1\n1 mass 0 3 1\n", 1, &o);
    double *y = observe(set, 2), sum = 0;
    for (uint64_t i = 0; i < NZ * NY * NX; i++)
        sum += truth(4, i);
    assert_true(y[0] == hypot(truth(2, 11), truth(3, 11)));
    assert_float_equal(y[1], sum, 1e-12);
    free(y);
    crn_obs_set_free(set);
    crn_obs_close(o);
}

static void test_decompositions(void **state)
{
    crn_obs *o;
    char text[8192] = "columns cycle type x y value variance\n";
    crn_rng rng = crn_rng_of(test_seed(), 3);
    (void)state;
    for (size_t i = 0; i < 100; i++) {
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "1 %s %.6f %.6f 0 1\n", i % 3 ? "height" : "column",
                 NX * crn_rng_unit(&rng), 10 + 10 * crn_rng_unit(&rng));
    }
    crn_obs_set *set = cycle_of(text, 1, &o);
    double *y = observe(set, 1);
    assert_int_equal(set->n, 100);
    for (uint64_t parts = 2; parts < 6; parts++) {
        double *z = observe(set, parts);
        assert_memory_equal(y, z, set->n * sizeof *y);
        free(z);
    }
    free(y);
    crn_obs_set_free(set);
    crn_obs_close(o);
}

static void test_times(void **state)
{
    crn_obs *o;
    (void)state; /* 10 steps of 0.5 in a cycle: cycle 2 is from 5, not included, to 10 */
    crn_obs_set *set = cycle_of("columns time type index value variance\n"
                                "5.0 x 1 0 1\n5.5 x 2 0 1\n10 x 3 0 1\n7.4 x 4 0 1\n",
                                2, &o);
    assert_int_equal(set->n, 3);
    assert_int_equal(set->item[0].step, 1);
    assert_int_equal(set->item[1].step, 10);
    assert_int_equal(set->item[2].step, 5);
    assert_int_equal(crn_obs_next_step(set, 0), 1);
    assert_int_equal(crn_obs_next_step(set, 1), 5);
    assert_int_equal(crn_obs_next_step(set, 5), 10);
    assert_int_equal(crn_obs_next_step(set, 10), 0);
    crn_obs_set_free(set);
    crn_obs_close(o);
    assert_fails(read_text("columns time cycle type index value variance\n5.5 1 x 2 0 1\n", 10, &o),
                 CAIRN_EINVAL, "is in cycle 2, not in cycle 1");
}

static void test_likelihood(void **state)
{
    crn_obs *o;
    (void)state;
    crn_obs_set *set = cycle_of("columns cycle type index value variance block\n"
                                "1 x 0 1 4 -\n1 x 1 1 9 7\n1 x 2 2 1 -\n1 x 3 3 9 7\n"
                                "covariance 1 x 7 2 1 3\n",
                                1, &o);
    /* The block comes together: 0, 1, 3, 2; its covariances are 2, 1, 3, and count, not 9. */
    const double y[] = {0, 0, 0, 0};
    assert_int_equal(set->item[2].index, 3);
    assert_true(set->item[2].variance == 3);
    double block = (3 * 1.0 * 1 - 2 * 1 * 1.0 * 3 + 2 * 3.0 * 3) / 5; /* d^T R^-1 d */
    assert_float_equal(crn_obs_loglik(set, y), -0.5 * (1.0 / 4 + 4 + block), 1e-13);
    const double same[] = {1, 1, 3, 2}, bad[] = {1, NAN, 3, 2};
    assert_true(crn_obs_loglik(set, same) == 0);
    assert_true(crn_obs_loglik(set, bad) == -INFINITY);

    const crn_obs_flag flag[] = {0, CRN_OBS_FAR, 0, 0};
    const double note[] = {0, 5, 0, 0};
    assert_ok(crn_obs_reject(set, flag, note, note));
    assert_int_equal(set->n, 3);
    assert_int_equal(set->nentries, 3);
    assert_float_equal(crn_obs_loglik(set, y), -0.5 * (1.0 / 4 + 3 + 4), 1e-13);
    double *z = observe(set, 1);
    assert_true(z[1] == truth(0, 3));
    assert_int_equal(set->rejected.at[0].item.number, 1);
    free(z);
    crn_obs_set_free(set);
    crn_obs_close(o);
}

static void test_correlation(void **state)
{
    crn_obs *o;
    (void)state;
    crn_obs_set *set = cycle_of("columns cycle type x y value block\n"
                                "1 near 0.5 10 0 1\n1 near 7.5 10 0 1\n",
                                1, &o);
    assert_int_equal(set->nblocks, 1); /* one apart around the period of 8 */
    assert_float_equal(set->block[0].covariance[1], 4 * exp(-0.5), 1e-14);
    crn_obs_set_free(set);
    crn_obs_close(o);
}

static void test_mistakes(void **state)
{
    crn_obs *o;
    crn_obs_set *set;
    (void)state;
    assert_fails(read_text("1 x 3 1\n", 1, &o), CAIRN_EINVAL, "line 1: 4 words");
    assert_fails(read_text("1 x 3 1 1 1\n", 1, &o), CAIRN_EINVAL, "more than 5 words");
    assert_fails(read_text("1 xx 3 1 1\n", 1, &o), CAIRN_EINVAL, "neither a type");
    assert_fails(read_text("1 x -3 1 1\n", 1, &o), CAIRN_EINVAL, "line 1");
    assert_fails(read_text("1 x 3 1 0\n", 1, &o), CAIRN_EINVAL, "not above 0");
    assert_fails(read_text("columns cycle type vlaue\n", 1, &o), CAIRN_EINVAL,
                 "did you mean 'value'");
    assert_fails(read_text("columns cycle type x value\n1 x 2 3\n", 1, &o), CAIRN_EINVAL,
                 "no variance");
    assert_fails(read_text("columns cycle type x value variance\n1 x 2 3 1\n", 1, &o), CAIRN_EINVAL,
                 "1 coordinates in a space of 2");
    assert_fails(read_text("covariance 1 x 7 1 2\n", 1, &o), CAIRN_EINVAL, "no lower triangle");
    assert_ok(read_text("columns cycle type index value variance block\n1 x 1 1 1 7\n1 x 2 1 1 7\n"
                        "covariance 1 x 7 1 2 1\n",
                        1, &o));
    assert_fails(crn_obs_cycle(o, 1, &set), CAIRN_EINVAL, "not positive definite");
    crn_obs_close(o);
    assert_ok(read_text("columns cycle type x y value variance\n1 u 1 12 1 7\n", 1, &o));
    assert_fails(crn_obs_cycle(o, 1, &set), CAIRN_EINVAL, "field 'u' has no axes");
    crn_obs_close(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_format),   cmocka_unit_test(test_interpolation),
        cmocka_unit_test(test_column),         cmocka_unit_test(test_plugins),
        cmocka_unit_test(test_decompositions), cmocka_unit_test(test_times),
        cmocka_unit_test(test_likelihood),     cmocka_unit_test(test_correlation),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
