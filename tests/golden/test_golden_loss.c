/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks by the codecs of boxes, by shuffling and by narrow formats (5 to 9), with loss and
 * without, kept so that every later version is held to reading them: good-part-loss, written by
 * this program with --write. Each block's digests are in the file, so what is read is what was
 * written then, to the last bit.
 *
 * NEEDS: lz4 zstd zfp fpzip
 */
#include "harness/encode.h"

#include <math.h>

enum { ROWS = 60, COLUMNS = 40, N = ROWS * COLUMNS, BLOCK = 4096 };

static const crn_part_options options = {CRN_IO_THREADS, 2, false};
static const crn_part_id owner = {"golden run 0001", 1, 2, 4, CRN_ROLE_OWN};

static const struct golden {
    const char *name, *codec, *loss;
    uint32_t id;
    double most; /* error */
} vars[] = {
    {"zfp accuracy", "zfp:accuracy=1e-3", "", 5, 1e-3},
    {"zfp rate", "zfp:rate=16", "", 5, 1},
    {"zfp exact", "zfp", "", 5, 0},
    {"fpzip", "fpzip:precision=32", "", 6, 1e-4},
    {"fpzip exact", "fpzip", "", 6, 0},
    {"shuffled", "zstd:shuffle", "", 7, 0},
    {"shuffled lz4", "lz4:shuffle", "", 7, 0},
    {"rounded", "round:bits=12", "", 7, 1e-2},
    {"f32", "f32", "", 8, 1e-5},
    {"f16", "f16", "", 9, 1e-1},
    {"by loss", "auto", "abs 1e-2", 0, 1e-2}, /* whichever is smallest */
};
enum { NVARS = sizeof vars / sizeof *vars };

/* Smooth, with values that no codec can keep among others. */
static double value_of(size_t i)
{
    if (i == 100 || i == 777)
        return i == 100 ? NAN : INFINITY;
    return 20 + (double)(i / COLUMNS) / 8 + (double)(i % COLUMNS * (i % COLUMNS)) / 256;
}

static void put_all(crn_part *part)
{
    static const uint64_t shape[] = {ROWS, COLUMNS}, origin[] = {0, 0};
    double x[N];
    crn_draft *d;
    for (size_t i = 0; i < N; i++)
        x[i] = value_of(i);
    assert_ok(crn_draft_begin(part, 10, &d));
    for (size_t i = 0; i < NVARS; i++) {
        size_t v;
        const crn_var_spec spec = {.name = vars[i].name,
                                   .type = "float64",
                                   .item = sizeof *x,
                                   .block = BLOCK,
                                   .nbytes = sizeof x,
                                   .ndims = 2,
                                   .global = shape,
                                   .offset = origin,
                                   .count = shape};
        assert_ok(crn_draft_add(d, &spec, &v));
        test_encode(d, v, vars[i].codec, vars[i].loss);
        assert_ok(crn_draft_put_all(d, v, x));
    }
    assert_ok(crn_draft_commit(d, 1, NULL));
}

static int golden_dir(void)
{
    int fd = open(TESTS_DIR "/golden", O_RDONLY | O_DIRECTORY);
    assert_true(fd >= 0);
    return fd;
}

static void check_values(const struct golden *g, const double *x)
{
    for (size_t i = 0; i < N; i++) {
        const double want = value_of(i);
        if (!isfinite(want))
            assert_memory_equal(&x[i], &want, sizeof want);
        else if (!(fabs(x[i] - want) <= g->most))
            fail_msg("'%s', value %zu: %.17g, not %.17g", g->name, i, x[i], want);
    }
}

static void test_good_part_loss(void **state)
{
    (void)state;
    crn_part *part;
    crn_mark *m;
    int dir = golden_dir();
    assert_ok(crn_part_open(dir, "good-part-loss", &owner, false, &options, &part));
    assert_ok(crn_part_load(part, 10, &m));
    assert_int_equal(m->nvars, NVARS);
    for (int apart = 0; apart < 2; apart++) {
        for (size_t i = 0; i < NVARS; i++) {
            double x[N];
            crn_var *v = crn_mark_find(m, vars[i].name);
            assert_non_null(v);
            assert_ok(crn_mark_read(part, m, v, 0, v->nblocks, x, NULL));
            check_values(&vars[i], x);
            if (vars[i].id != 0)
                assert_int_equal(v->table[1].codec, vars[i].id);
        }
        crn_part_distrust(part);
    }
    crn_mark_free(m);
    crn_part_close(part);
    close(dir);
}

static void write_part(void **state)
{
    (void)state;
    crn_part *part;
    int dir = golden_dir();
    assert_ok(crn_part_create(dir, "good-part-loss", &owner, &options, &part));
    put_all(part);
    crn_part_close(part);
    close(dir);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_good_part_loss)};
    const struct CMUnitTest writing[] = {cmocka_unit_test(write_part)};
    if (argc == 2 && strcmp(argv[1], "--write") == 0)
        return cmocka_run_group_tests_name("write", writing, NULL, NULL);
    return cmocka_run_group_tests_name("golden loss", tests, NULL, NULL);
}
