/* SPDX-License-Identifier: BSD-3-Clause
 *
 * States that are stored with a stated loss: what is got is within the bound, the same from every
 * copy, and a state is recognised by what its program had.
 *
 * NEEDS: lz4 zstd zfp fpzip
 */
#include <math.h>

#include <cairn/state.h>

#include "harness/scratch.h"
#include "state/state.h"

enum { ROWS = 300, COLUMNS = 256, N = ROWS * COLUMNS };

static double x[N], got[N];

static cairn_shelf *open_shelf(const char *name, const char *lines)
{
    char config[200], path[200];
    cairn_shelf *s;
    snprintf(config, sizeof config, "%s/%s.ini", scratch, name);
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    FILE *f = fopen(config, "w");
    assert_non_null(f);
    fputs(lines, f);
    fclose(f);
    assert_ok(cairn_shelf_open(path, config, &s));
    return s;
}

static void fill(double shift)
{
    for (int i = 0; i < N; i++)
        x[i] = sin(0.02 * i / COLUMNS) * cos(0.03 * (i % COLUMNS)) + shift;
}

static cairn_field field_of(double *data)
{
    return (cairn_field){.name = "x",
                         .data = data,
                         .type = CAIRN_FLOAT64,
                         .ndims = 2,
                         .global = {ROWS, COLUMNS},
                         .count = {ROWS, COLUMNS}};
}

static double worst(void)
{
    double most = 0;
    for (int i = 0; i < N; i++)
        most = fmax(most, fabs(x[i] - got[i]));
    return most;
}

static void get(cairn_shelf *s, uint64_t version)
{
    const cairn_field f = field_of(got);
    memset(got, 0, sizeof got);
    assert_ok(cairn_state_get(s, "m", version, &f, 1));
}

static uint64_t stored_bytes(cairn_shelf *s)
{
    crn_part_info info;
    crn_part_describe(s->part, &info);
    return info.used_bytes;
}

static void check_setting(const char *name, const char *lines, double bound)
{
    char far[64];
    static double first[N];
    snprintf(far, sizeof far, "%s-far", name);
    cairn_shelf *s = open_shelf(name, lines), *other = open_shelf(far, "");
    const cairn_field f = field_of(x);
    cairn_transfer *t;
    fill(0);
    assert_ok(cairn_state_put(s, "m", 1, NULL, &f, 1));
    assert_true(stored_bytes(s) < sizeof x * 7 / 10);
    get(s, 1);
    assert_true(worst() > 0 && worst() <= bound);
    assert_ok(cairn_state_verify(s, "m", 1));
    assert_int_equal(cairn_state_put(s, "m", 1, NULL, &f, 1), CAIRN_NOTHING);
    memcpy(first, got, sizeof first);
    const uint64_t before = stored_bytes(s);
    x[5] += 1; /* a child that differs in one block */
    assert_ok(cairn_state_put(s, "m", 2, NULL, &f, 1));
    get(s, 2);
    assert_true(worst() <= bound);
    assert_true(stored_bytes(s) - before < sizeof x / 5);
    assert_ok(cairn_state_push(s, "m", 1, other, 0, &t));
    assert_ok(cairn_transfer_wait(t));
    get(other, 1);
    assert_memory_equal(got, first, sizeof got); /* a copy has what a reader got, bit for bit */
    cairn_state_info a = {.struct_bytes = sizeof a}, b = a;
    assert_ok(cairn_state_describe(s, "m", 1, &a, NULL, NULL));
    assert_ok(cairn_state_describe(other, "m", 1, &b, NULL, NULL));
    assert_string_equal(a.digest, b.digest);
    fill(0); /* without loss, and of the same digest */
    assert_int_equal(cairn_state_put(other, "m", 1, NULL, &f, 1), CAIRN_NOTHING);
    assert_ok(cairn_state_put(other, "m", 7, NULL, &f, 1)); /* it loses nothing of the copy's */
    get(other, 7);
    assert_memory_equal(got, x, sizeof got);
    cairn_shelf_close(s);
    cairn_shelf_close(other);
}

static void test_bounds(void **state)
{
    (void)state;
    check_setting("zfp", "[variable]\ncodec = zfp\nloss = abs 1e-6\n", 1e-6);
    check_setting("round", "[variable]\ncodec = round\nloss = abs 1e-5\n", 1e-5);
    check_setting("f32", "[variable]\ncodec = f32\nloss = rel 1e-6\n", 1e-6);
}

/* A bound that the codec cannot hold costs bytes, and not the bound. */
static void test_bound_that_is_too_tight(void **state)
{
    (void)state;
    cairn_shelf *s = open_shelf("tight", "[variable]\ncodec = f32\nloss = abs 1e-12\n");
    const cairn_field f = field_of(x);
    fill(1000);
    assert_ok(cairn_state_put(s, "m", 1, NULL, &f, 1));
    get(s, 1);
    assert_true(worst() <= 1e-12);
    cairn_shelf_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bounds),
                                       cmocka_unit_test(test_bound_that_is_too_tight)};
    return cmocka_run_group_tests_name("state_loss", tests, scratch_begin, scratch_end);
}
