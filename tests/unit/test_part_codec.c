/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks that codecs store: they take less, come back bit for bit whatever was used before, and
 * what is damaged of them is found. Random histories of them are test_part.c's.
 *
 * NEEDS: lz4 zstd zfp fpzip
 */
#include "harness/encode.h"
#include "harness/model.h"
#include "harness/scratch.h"

#include <math.h>

enum { BLOCK = 16384, BLOCKS = 40, VALUES = BLOCK * BLOCKS / sizeof(double) - 5 };
enum { EXACT = 4 }; /* codecs up to this one lose nothing, whatever the values */

static double field[VALUES];

/* A smooth field, and nothing in every fifth block: the one is for codecs of values, the other for
 * all of them. */
static void fill_field(void)
{
    for (size_t i = 0; i < VALUES; i++)
        field[i] = i * sizeof(double) / BLOCK % 5 == 0 ? 0 : 100 * sin((double)i / 3000) + 3;
}

static crn_var *mark_field(crn_part *part, uint64_t version, const char *codec, crn_mark **ret)
{
    const crn_var_spec spec = {
        .name = "field", .type = "float64", .item = 8, .block = BLOCK, .nbytes = sizeof field};
    crn_draft *d;
    size_t v;
    assert_ok(crn_draft_begin(part, version, &d));
    assert_ok(crn_draft_add(d, &spec, &v));
    test_encode(d, v, codec, "");
    assert_ok(crn_draft_put_all(d, v, field));
    assert_ok(crn_draft_commit(d, CRN_KEEP_ALL, NULL));
    assert_ok(crn_part_load(part, version, ret));
    crn_var *var = crn_mark_find(*ret, "field");
    assert_ok(crn_mark_table(part, *ret, var));
    return var;
}

static void check_field(crn_part *part, const crn_mark *m, crn_var *v)
{
    static double back[VALUES + 1]; /* not aligned for direct reads */
    memset(back, 0x5a, sizeof back);
    assert_ok(crn_mark_read(part, m, v, 0, v->nblocks, (char *)back + 1, NULL));
    assert_memory_equal((char *)back + 1, field, sizeof field);
    assert_ok(crn_mark_read(part, m, v, v->nblocks - 3, 3, back, NULL));
    assert_memory_equal(back, (char *)field + (BLOCKS - 3) * BLOCK,
                        sizeof field - (BLOCKS - 3) * BLOCK);
}

/* Every third block, from the last one on backwards. */
static void check_scattered(crn_part *part, const crn_mark *m, crn_var *v)
{
    static unsigned char back[BLOCKS * BLOCK];
    uint64_t want[BLOCKS];
    size_t n = 0;
    crn_fetch *f;
    crn_io *io;
    crn_bad_blocks bad = {0};
    for (uint64_t i = 0; i < BLOCKS; i += 3)
        want[n++] = BLOCKS - 1 - i;
    assert_ok(crn_io_create(CRN_IO_AUTO, 8, &io));
    assert_ok(crn_fetch_create(&f));
    assert_ok(crn_fetch_start(f, io, part, m, v, want, n, back));
    assert_ok(crn_fetch_finish(f, io, &bad));
    assert_int_equal(bad.n, 0);
    for (size_t k = 0; k < n; k++)
        assert_memory_equal(back + k * BLOCK, (char *)field + want[k] * BLOCK,
                            crn_var_block_bytes(v, want[k]));
    crn_fetch_free(f);
    crn_io_free(io);
}

static void test_each_codec_stores_less(void **state)
{
    (void)state;
    for (size_t i = 1; i <= EXACT; i++) {
        const char *name = crn_codec_name(crn_codec_at(i));
        crn_part *part;
        crn_part_info info;
        crn_mark *m;
        fill_field();
        assert_ok(crn_part_create(dir, name, &model_id, &model_options, &part));
        crn_var *v = mark_field(part, 1, name, &m);
        const double share = (double)v->stored_bytes / sizeof field;
        assert_true(share < (i < 3 ? 0.97 : 0.8)); /* of bytes, of values */
        crn_part_describe(part, &info);
        assert_true((double)info.file_bytes < (share + 0.2) * sizeof field);
        check_field(part, m, v);
        check_scattered(part, m, v);
        crn_mark_free(m);
        crn_part_close(part);
    }
}

/* Blocks stay what they were stored as; only those that change become something else. */
static void test_codecs_change_from_mark_to_mark(void **state)
{
    (void)state;
    static const char *const name[] = {"none", "fpzip", "zfp", "zstd", "lz4", "none"};
    crn_part *part;
    fill_field();
    assert_ok(crn_part_create(dir, "mixed", &model_id, &model_options, &part));
    for (uint64_t version = 1; version <= 6; version++) {
        crn_mark *m;
        for (size_t i = version; i < BLOCKS; i += 7)
            field[i * BLOCK / sizeof(double) + 3] += (double)version;
        crn_var *v = mark_field(part, version, name[version - 1], &m);
        if (version > 1)
            assert_in_range(v->nchanged, BLOCKS / 7, BLOCKS / 7 + 1);
        check_field(part, m, v);
        check_scattered(part, m, v);
        crn_mark_free(m);
    }
    crn_part_close(part);
}

/* One byte of what is stored is hit, at many places: the block is damaged, and no other one. */
static void test_damage_is_found(void **state)
{
    (void)state;
    static double back[VALUES];
    for (size_t i = 1; i <= EXACT; i++) {
        const char *name = crn_codec_name(crn_codec_at(i));
        char file[32];
        crn_part *part;
        crn_mark *m;
        snprintf(file, sizeof file, "damaged-%s", name);
        fill_field();
        assert_ok(crn_part_create(dir, file, &model_id, &model_options, &part));
        crn_var *v = mark_field(part, 1, name, &m);
        const crn_block *b = &v->table[5]; /* smaller by any codec */
        const int fd = openat(dir, file, O_RDWR);
        assert_int_equal(b->codec, i);
        for (uint32_t at = 0; at < b->nbytes; at += 1 + b->nbytes / 50) {
            crn_bad_blocks bad = {0};
            unsigned char byte;
            assert_int_equal(pread(fd, &byte, 1, (off_t)(b->off + at)), 1);
            const unsigned char other = byte ^ 0x10;
            assert_int_equal(pwrite(fd, &other, 1, (off_t)(b->off + at)), 1);
            assert_ok(crn_mark_read(part, m, v, 0, v->nblocks, back, &bad));
            assert_true(bad.n == 1 && bad.at[0] == 5); /* also where no decoder would mind */
            crn_vec_done(&bad);
            assert_int_equal(pwrite(fd, &byte, 1, (off_t)(b->off + at)), 1);
        }
        close(fd);
        crn_mark_free(m);
        crn_part_close(part);
    }
}

/* Stored bytes are judged before they are decoded: by their own digest, whatever comes of them. */
static void test_stored_bytes_have_a_digest(void **state)
{
    (void)state;
    static double back[VALUES];
    for (size_t i = 1; i <= EXACT; i++) {
        crn_part *part;
        crn_mark *m;
        crn_bad_blocks bad = {0};
        fill_field();
        assert_ok(crn_part_create(dir, "stored", &model_id, &model_options, &part));
        crn_var *v = mark_field(part, 1, crn_codec_name(crn_codec_at(i)), &m);
        assert_true(v->has_stored);
        assert_int_equal(v->table[5].codec, i);
        v->table[5].stored.b[0] ^= 1;
        assert_ok(crn_mark_read(part, m, v, 0, v->nblocks, back, &bad));
        assert_true(bad.n == 1 && bad.at[0] == 5);
        crn_vec_done(&bad);
        crn_mark_free(m);
        crn_part_close(part);
    }
}

/* Every third block is noise, which no codec makes smaller. */
static void add_noise(void)
{
    crn_rng r = crn_rng_of(test_seed(), 1);
    for (size_t i = 0; i < VALUES; i++)
        if (i * sizeof(double) / BLOCK % 3 == 2) {
            const uint64_t u = crn_rng_u64(&r);
            memcpy(&field[i], &u, sizeof u);
        }
}

/* However many threads encode, and however much is held back: the same bytes at the same places. */
static void test_threads_do_not_show(void **state)
{
    (void)state;
    static const uint64_t staging[] = {0, 64 << 20};
    crn_block *first = NULL;
    fill_field();
    add_noise();
    for (unsigned i = 0; i < 4; i++) {
        char name[24];
        crn_part *part;
        crn_mark *m;
        snprintf(name, sizeof name, "threads-%u", i);
        assert_ok(crn_part_create(dir, name, &model_id, &model_options, &part));
        crn_part_set_staging(part, staging[i / 2]);
        crn_part_set_threads(part, i % 2 ? 7 : 1);
        crn_var *v = mark_field(part, 1, "zstd:shuffle", &m);
        check_field(part, m, v);
        assert_true(v->table[2].codec == 0 && v->table[3].codec == 7);
        if (!first) {
            assert_ok(crn_alloc(&first, v->nblocks));
            memcpy(first, v->table, v->nblocks * sizeof *first);
        }
        for (uint64_t k = 0; k < v->nblocks; k++)
            assert_true(first[k].off == v->table[k].off && first[k].nbytes == v->table[k].nbytes &&
                        crn_digest_equal(&first[k].stored, &v->table[k].stored));
        crn_mark_free(m);
        crn_part_close(part);
    }
    free(first);
}

enum { COPIES = 9 }; /* of the field: more than a buffer has room for */

static crn_draft *begin_lossy(crn_part *part)
{
    crn_draft *d;
    assert_ok(crn_draft_begin(part, 1, &d));
    for (int k = 0; k < COPIES; k++) {
        const char name[] = {(char)('a' + k), 0};
        const crn_var_spec spec = {
            .name = name, .type = "float64", .item = 8, .block = BLOCK, .nbytes = sizeof field};
        size_t v;
        assert_ok(crn_draft_add(d, &spec, &v));
        test_encode(d, v, "zfp", "abs 1e-6");
        field[k] += 1; /* or one block would stand for all */
        assert_ok(crn_draft_put_all(d, v, field));
    }
    return d;
}

static void check_lossy(crn_part *part, const crn_mark *m, crn_var *v)
{
    static double back[VALUES];
    assert_ok(crn_mark_read(part, m, v, 0, v->nblocks, back, NULL));
    for (size_t i = COPIES; i < VALUES; i++)
        assert_true(fabs(back[i] - field[i]) <= 1e-6);
}

static void must_have_the_same(crn_part *a, crn_part *b)
{
    crn_mark *m[2];
    assert_ok(crn_part_load(a, 1, &m[0]));
    assert_ok(crn_part_load(b, 1, &m[1]));
    for (int k = 0; k < COPIES; k++) {
        crn_var *v[2] = {&m[0]->var[k], &m[1]->var[k]};
        assert_ok(crn_mark_table(a, m[0], v[0]));
        assert_ok(crn_mark_table(b, m[1], v[1]));
        for (uint64_t i = 0; i < v[0]->nblocks; i++) {
            const crn_block *x = &v[0]->table[i], *y = &v[1]->table[i];
            assert_true(x->codec == y->codec && x->nbytes == y->nbytes &&
                        crn_digest_equal(&x->stored, &y->stored) &&
                        crn_digest_equal(&x->origin, &y->origin));
        }
        check_lossy(b, m[1], v[1]);
    }
    crn_mark_free(m[0]);
    crn_mark_free(m[1]);
}

/* A draft that another part takes over: what was encoded moves as it is, what was held back is
 * encoded as it would have been. */
static void test_a_moved_draft_is_stored_as_it_was(void **state)
{
    (void)state;
    for (int staged = 0; staged < 2; staged++) {
        crn_part *from, *to;
        crn_draft *other;
        fill_field();
        assert_ok(crn_part_create(dir, "from", &model_id, &model_options, &from));
        assert_ok(crn_part_create(dir, "to", &model_id, &model_options, &to));
        crn_part_set_staging(from, staged ? 64 << 20 : 0);
        crn_draft *d = begin_lossy(from);
        assert_ok(crn_draft_begin(to, 1, &other));
        assert_ok(crn_draft_move(d, COPIES, other, false));
        assert_ok(crn_draft_commit(d, CRN_KEEP_ALL, NULL));
        assert_ok(crn_draft_commit(other, CRN_KEEP_ALL, NULL));
        must_have_the_same(from, to);
        crn_part_close(from);
        crn_part_close(to);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_codec_stores_less),
        cmocka_unit_test(test_codecs_change_from_mark_to_mark),
        cmocka_unit_test(test_damage_is_found),
        cmocka_unit_test(test_stored_bytes_have_a_digest),
        cmocka_unit_test(test_threads_do_not_show),
        cmocka_unit_test(test_a_moved_draft_is_stored_as_it_was),
    };
    return cmocka_run_group_tests_name("part_codec", tests, scratch_begin, scratch_end);
}
