/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks that a forger made: whatever their bytes do to a codec's decoder, those who look into a
 * trail find them damaged, and all others good. Decoded in place, about every second one would end
 * the test.
 *
 * NEEDS: lz4 zstd zfp fpzip random123
 */
#include "harness/encode.h"
#include "harness/heal.h"
#include "harness/small_trail.h"
#include "store/store_part.h"

#include <cairn/trail.h>

#include <xxhash.h>

enum { CELLS = 64 * 512, BLOCK = 4096, NBLOCKS = CELLS * 8 / BLOCK, STEP = 4 };

static const crn_part_options quick = {CRN_IO_THREADS, 1, false};

static char scratch[64];

static int setup(void **state)
{
    (void)state;
    make_scratch(scratch, sizeof scratch, "forged");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    remove_tree(scratch);
    return 0;
}

/* A run of one mark, whose one variable is encoded. */
static void make_run(crn_trail *t, const char *codec, crn_run **ret)
{
    static double field[CELLS];
    const crn_var_spec spec = {
        .name = "field", .type = "float64", .item = 8, .block = BLOCK, .nbytes = sizeof field};
    const crn_manifest_mark k = {.version = 1,
                                 .wall_ns = 1,
                                 .nbytes = sizeof field,
                                 .series = 1,
                                 .nranks = 1,
                                 .levels = CRN_IN_TRAIL};
    crn_part *part;
    crn_draft *d;
    size_t v;
    for (size_t i = 0; i < CELLS; i++)
        field[i] = 1 + 1e-3 * (double)i + 1e-6 * (double)(i * i % 977);
    assert_ok(crn_run_create(t, NULL, ret));
    assert_ok(crn_run_part(*ret, 1, 0, 1, true, &quick, &part));
    assert_ok(crn_draft_begin(part, 1, &d));
    assert_ok(crn_draft_add(d, &spec, &v));
    test_encode(d, v, codec, "");
    assert_ok(crn_draft_put_all(d, v, field));
    assert_ok(crn_draft_commit(d, 1, NULL));
    crn_part_close(part);
    assert_ok(crn_run_commit(*ret, &k, 1));
}

/* Random bytes and the right guard, for every STEP-th block. */
static void forge(crn_run *run)
{
    crn_part *part;
    crn_mark *m;
    crn_rng r = crn_rng_of(test_seed(), 0);
    assert_ok(crn_run_part(run, 1, 0, 1, true, &quick, &part));
    assert_ok(crn_part_load(part, 1, &m));
    assert_ok(crn_mark_table(part, m, &m->var[0]));
    assert_int_equal(m->var[0].nblocks, NBLOCKS);
    for (uint64_t i = 0; i < NBLOCKS; i += STEP) {
        const crn_block *b = &m->var[0].table[i];
        unsigned char data[BLOCK];
        assert_true(b->codec > 2);
        for (size_t k = 8; k < b->nbytes; k++)
            data[k] = (unsigned char)crn_rng_below(&r, 256);
        uint64_t guard = XXH3_64bits_withSeed(data + 8, b->nbytes - 8,
                                              (uint64_t)BLOCK << 8 | (uint64_t)CRN_ELEM_F64);
        memcpy(data, &guard, 8);
        assert_ok(crn_file_write(part->file, data, b->nbytes, b->off));
    }
    crn_mark_free(m);
    crn_part_close(part);
}

/* A forger makes the digests of what is stored right, too: only decoding tells. */
static void sign(crn_run *run)
{
    struct stat st;
    unsigned char *data;
    const int fd = openat(crn_run_fd(run), "series-1/000/part-000000", O_RDWR);
    assert_int_equal(fstat(fd, &st), 0);
    assert_ok(crn_alloc(&data, (size_t)st.st_size));
    assert_int_equal(pread(fd, data, (size_t)st.st_size, 0), st.st_size);
    heal_part(data, (size_t)st.st_size);
    assert_int_equal(pwrite(fd, data, (size_t)st.st_size, 0), st.st_size);
    close(fd);
    free(data);
}

/* Read all blocks of the part; what is bad must be what was forged. */
static void read_part(crn_run *run, bool distrust)
{
    static double back[CELLS];
    crn_part *part;
    crn_mark *m;
    crn_bad_blocks bad = {0};
    assert_ok(crn_run_part(run, 1, 0, 1, false, &quick, &part));
    if (distrust)
        crn_part_distrust(part);
    assert_ok(crn_part_load(part, 1, &m));
    assert_ok(crn_mark_read(part, m, &m->var[0], 0, NBLOCKS, back, &bad));
    assert_int_equal(bad.n, NBLOCKS / STEP);
    for (size_t i = 0; i < bad.n; i++)
        assert_int_equal(bad.at[i] % STEP, 0);
    crn_vec_done(&bad);
    crn_mark_free(m);
    crn_part_close(part);
}

static int count_damaged(void *arg, const cairn_finding *f)
{
    size_t *n = arg;
    *n += f->status == CAIRN_ECORRUPT && f->block != UINT64_MAX;
    if (f->status == CAIRN_ECORRUPT)
        assert_non_null(strstr(f->text, "damaged"));
    return 0;
}

static void verify(const char *path, const char *run)
{
    cairn_trail *t;
    size_t index, n = 0;
    assert_int_equal(cairn_trail_open(path, &t), CAIRN_OK);
    assert_int_equal(cairn_trail_find_run(t, run, &index), CAIRN_OK);
    assert_int_equal(cairn_trail_verify(t, index, SIZE_MAX, count_damaged, &n), CAIRN_ECORRUPT);
    assert_int_equal(n, NBLOCKS / STEP);
    cairn_trail_close(t);
}

static int to_another(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return chown(path, 12345, (gid_t)-1);
}

/* As somebody else's file it is read so without being asked; only root can make one. */
static void give_away(const char *path, const char *run)
{
    char file[200];
    snprintf(file, sizeof file, "%s/%s/series-1", path, run);
    assert_int_equal(nftw(file, to_another, 16, FTW_PHYS), 0);
}

static void test_forged(void **state)
{
    static const char *const codec[] = {"fpzip", "zfp"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char path[100], name[16];
        crn_trail *t;
        crn_run *run;
        snprintf(path, sizeof path, "%s/trail", scratch);
        snprintf(name, sizeof name, "run-%zu", i + 1);
        assert_ok(crn_trail_open(path, true, &t));
        make_run(t, codec[i], &run);
        forge(run);
        sign(run);
        read_part(run, true);
        verify(path, name);
        if (geteuid() == 0) {
            give_away(path, name);
            read_part(run, false);
        }
        crn_run_close(run);
        crn_trail_close(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forged)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
