/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Part files: random histories against a model, retention, bounded size, identity, locks.
 *
 * NEEDS: lz4 zstd zfp fpzip random123
 */
#include "harness/model.h"
#include "harness/scratch.h"
#include "store/store_part.h"

#include <sys/wait.h>

/* What is free must be what a fresh look at the file finds free. */
static void assert_space_is_derived(crn_part *part)
{
    crn_extents none = {0};
    assert_ok(crn_space_give(&part->space, &none));
    crn_vec_done(&none);
    crn_space kept = part->space;
    memset(&part->space, 0, sizeof part->space);
    assert_ok(crn_part_derive(part));
    assert_true(kept.used == part->space.used);
    assert_true(kept.end == part->space.end);
    assert_int_equal(kept.hole.n, part->space.hole.n);
    assert_memory_equal(kept.hole.at, part->space.hole.at, kept.hole.n * sizeof *kept.hole.at);
    crn_space_done(&kept);
}

/* A reader gets the same from a file in memory, block after block, and by way of its queue. */
static void assert_readers_agree(model *m, const crn_part_options *opt)
{
    crn_part *part;
    crn_part_info info;
    assert_ok(crn_part_open(dir, "random", &model_id, false, opt, &part));
    crn_part_describe(part, &info);
    assert_null(part->io); /* what it has read of the file so far takes none */
    part->cached = true;
    for (size_t i = 0; i < info.nmarks; i++)
        assert_ok(model_check(m, part, crn_part_version(part, i)));
    assert_null(part->io);
    part->cached = false;
    for (size_t i = 0; i < info.nmarks; i++)
        assert_ok(model_check(m, part, crn_part_version(part, i)));
    crn_part_close(part);
}

static void random_history(uint64_t seed, uint64_t keep, crn_io_backend backend)
{
    model m;
    crn_part *part;
    crn_part_options opt = {backend, 8, seed % 2 == 0};
    model_init(&m, seed, 40000);
    assert_ok(crn_part_create(dir, "random", &model_id, &opt, &part));
    crn_part_set_staging(part, seed % 5 == 0 ? 16 << 20 : 0);
    for (uint64_t version = 1; version <= 20; version++) {
        model_step(&m);
        assert_ok(model_mark(&m, part, version, keep, NULL));
        if (version % 3 == 0)
            assert_ok(crn_part_trim(part, keep));
        assert_space_is_derived(part);
        if (version % 4 == 0) {
            crn_part_close(part);
            assert_readers_agree(&m, &opt);
            assert_ok(crn_part_open(dir, "random", &model_id, true, &opt, &part));
        }
        crn_part_info info;
        crn_part_describe(part, &info);
        assert_int_equal(info.nmarks, CRN_MIN(keep, version));
        for (size_t i = 0; i < info.nmarks; i++)
            assert_ok(model_check(&m, part, crn_part_version(part, i)));
    }
    crn_part_close(part);
    model_done(&m);
}

static void test_random_histories_read_back(void **state)
{
    (void)state;
    const uint64_t keep[] = {1, 2, 5, CRN_KEEP_ALL};
    for (uint64_t i = 0; i < 24; i++)
        random_history(test_seed() + i, keep[i % 4], i % 3 ? CRN_IO_URING : CRN_IO_THREADS);
}

static void test_rewind_drops_what_came_after(void **state)
{
    (void)state;
    model m;
    crn_part *part;
    model_init(&m, test_seed(), 20000);
    assert_ok(crn_part_create(dir, "rewind", &model_id, &model_options, &part));
    for (uint64_t version = 1; version <= 6; version++) {
        model_step(&m);
        assert_ok(model_mark(&m, part, version, CRN_KEEP_ALL, NULL));
    }
    assert_ok(crn_part_rewind(part, 3));
    assert_space_is_derived(part);
    model_step(&m);
    assert_ok(model_mark(&m, part, 4, CRN_KEEP_ALL, NULL)); /* another mark 4 */
    for (uint64_t version = 1; version <= 4; version++)
        assert_ok(model_check(&m, part, version));
    assert_fails(model_check(&m, part, 5), CAIRN_ENOTFOUND, "has no mark 5");
    crn_part_close(part);
    model_done(&m);
}

static void test_rewind_and_trim_leave_what_they_should(void **state)
{
    (void)state;
    model m;
    crn_part *part;
    crn_part_info info;
    model_init(&m, test_seed(), 20000);
    assert_ok(crn_part_create(dir, "between", &model_id, &model_options, &part));
    for (uint64_t version = 10; version <= 40; version += 10) {
        model_step(&m);
        assert_ok(model_mark(&m, part, version, CRN_KEEP_ALL, NULL));
    }
    assert_ok(crn_part_rewind(part, 25)); /* a version that was never retained */
    assert_ok(crn_part_trim(part, 0));    /* the newest mark is never dropped */
    crn_part_describe(part, &info);
    assert_int_equal(info.nmarks, 1);
    assert_ok(model_check(&m, part, 20));
    assert_space_is_derived(part);
    crn_part_close(part);
    model_done(&m);
}

static void test_marks_are_retained_by_list(void **state)
{
    (void)state;
    model m;
    crn_part *part;
    const uint64_t listed[] = {2, 5, 9}; /* and 9 was never there */
    model_init(&m, test_seed(), 20000);
    assert_ok(crn_part_create(dir, "listed", &model_id, &model_options, &part));
    for (uint64_t version = 1; version <= 8; version++) {
        model_step(&m);
        assert_ok(model_mark(&m, part, version, CRN_KEEP_ALL, NULL));
        assert_ok(crn_part_retain(part, listed, 3));
        assert_space_is_derived(part);
    }
    crn_part_close(part);
    assert_ok(crn_part_open(dir, "listed", &model_id, true, &model_options, &part));
    crn_part_info info;
    crn_part_describe(part, &info);
    assert_int_equal(info.nmarks, 3);
    for (size_t i = 0; i < 2; i++)
        assert_ok(model_check(&m, part, listed[i]));
    assert_ok(model_check(&m, part, 8));
    assert_ok(crn_part_retain(part, NULL, 0)); /* the newest mark is never dropped */
    assert_ok(model_check(&m, part, 8));
    assert_space_is_derived(part);
    crn_part_close(part);
    model_done(&m);
}

enum { STATE = 8 << 20, BLOCK = 4 << 10, BLOCKS = STATE / BLOCK };

static cairn_status mark_state(crn_part *part, uint64_t version, uint64_t keep,
                               const unsigned char *data, crn_draft_stats *stats)
{
    crn_draft *d;
    size_t v;
    crn_var_spec spec = {
        .name = "state", .type = "bytes", .item = 1, .block = BLOCK, .nbytes = STATE};
    CRN_TRY(crn_draft_begin(part, version, &d));
    assert_ok(crn_draft_add(d, &spec, &v));
    assert_ok(crn_draft_put_all(d, v, data));
    return crn_draft_commit(d, keep, stats);
}

/* Change one byte in each of n blocks, scattered over the state. */
static void change_blocks(unsigned char *data, size_t n, crn_rng *rng)
{
    for (size_t i = 0; i < n; i++) {
        size_t block = i * (BLOCKS / n) + crn_rng_below(rng, BLOCKS / n);
        data[block * BLOCK + crn_rng_below(rng, BLOCK)]++;
    }
}

static void test_small_changes_cost_little_and_size_stays_bounded(void **state)
{
    enum { CHANGED = BLOCKS / 100 };
    (void)state;
    crn_part *part;
    crn_rng rng = crn_rng_of(test_seed(), 1);
    crn_draft_stats stats;
    crn_part_info info;
    unsigned char *data = calloc(1, STATE);
    assert_ok(crn_part_create(dir, "bounded", &model_id, &model_options, &part));
    for (uint64_t version = 1; version <= 200; version++) {
        change_blocks(data, CHANGED, &rng);
        assert_ok(mark_state(part, version, 1, data, &stats));
        assert_int_equal(stats.changed, version == 1 ? BLOCKS : CHANGED);
        assert_int_equal(stats.data_bytes, stats.changed * BLOCK);
        crn_part_describe(part, &info);
        assert_true(info.file_bytes < STATE + STATE / 10);
    }
    crn_part_close(part);
    free(data);
}

static void test_data_that_did_not_change_shares_its_table(void **state)
{
    (void)state;
    crn_part *part;
    crn_draft_stats stats;
    unsigned char *data = calloc(1, STATE);
    assert_ok(crn_part_create(dir, "shared", &model_id, &model_options, &part));
    assert_ok(mark_state(part, 1, 2, data, &stats));
    assert_ok(mark_state(part, 2, 2, data, &stats));
    assert_int_equal(stats.changed, 0);
    assert_int_equal(stats.data_bytes, 0);
    assert_true(stats.meta_bytes < 8192);
    crn_part_close(part);
    free(data);
}

static bool is_even(const void *arg, uint64_t i)
{
    (void)arg;
    return i % 2 == 0;
}

/* Mark 64 blocks of 1 KiB, of which the last is short. */
static crn_put mark_blocks(crn_part *part, uint64_t version, const unsigned char *data,
                           crn_put_way way, bool (*is_clean)(const void *arg, uint64_t i))
{
    crn_draft *d;
    crn_draft_stats stats;
    size_t v;
    const crn_var_spec spec = {
        .name = "x", .type = "bytes", .item = 1, .block = 1024, .nbytes = 64 * 1024 - 24};
    crn_put how = {.way = way, .is_clean = is_clean};
    assert_ok(crn_draft_begin(part, version, &d));
    assert_ok(crn_draft_add(d, &spec, &v));
    assert_ok(crn_draft_put_changed(d, v, data, &how));
    assert_ok(crn_draft_commit(d, 1, &stats));
    assert_int_equal((stats.changed * 1024 + 1023) / 1024 * 1024,
                     (how.stored + 1023) / 1024 * 1024);
    return how;
}

static void test_ways_to_find_what_changed(void **state)
{
    (void)state;
    enum { ALL = 64 * 1024 - 24 };
    static unsigned char data[ALL];
    for (int direct = 0; direct < 2; direct++) {
        crn_part *part;
        crn_part_options opt = {CRN_IO_AUTO, 8, direct};
        assert_ok(crn_part_create(dir, direct ? "ways-d" : "ways", &model_id, &opt, &part));
        crn_put how = mark_blocks(part, 1, data, CRN_PUT_COMPARE, is_even);
        assert_int_equal(how.hashed, ALL); /* there was nothing to inherit */
        assert_int_equal(how.changed, ALL);
        data[5]++;
        data[3 * 1024]++;
        how = mark_blocks(part, 2, data, CRN_PUT_COPY, NULL);
        assert_true(how.hashed == ALL && how.changed == 2048 && how.stored == 2048);
        data[3 * 1024]++;
        how = mark_blocks(part, 3, data, CRN_PUT_COMPARE, is_even);
        assert_true(how.hashed == ALL - 32 * 1024 && how.changed == 1024 && how.stored == 1024);
        how = mark_blocks(part, 4, data, CRN_PUT_COPY, is_even);
        assert_true(how.hashed == ALL - 32 * 1024 && how.changed == 0 && how.stored == 0);
        data[ALL - 1]++;
        how = mark_blocks(part, 5, data, CRN_PUT_FULL, NULL);
        assert_true(how.hashed == ALL && how.changed == 1000 && how.stored == ALL);
        assert_space_is_derived(part);
        crn_part_close(part);
    }
}

static void test_blocks_beyond_four_gigabytes(void **state)
{
    (void)state;
    crn_part *part;
    crn_mark *mark;
    unsigned char *data = malloc(STATE), *back = malloc(STATE);
    memset(data, 7, STATE);
    assert_ok(crn_part_create(dir, "large", &model_id, &model_options, &part));
    part->space.end = (uint64_t)5 << 30; /* a sparse file whose first blocks lie behind 5 GiB */
    assert_ok(mark_state(part, 1, 1, data, NULL));
    crn_part_close(part);
    assert_ok(crn_part_open(dir, "large", &model_id, false, &model_options, &part));
    assert_ok(crn_part_load(part, 1, &mark));
    assert_ok(crn_mark_read(part, mark, &mark->var[0], 0, BLOCKS, back, NULL));
    assert_true(mark->var[0].table[0].off >= (uint64_t)5 << 30);
    assert_memory_equal(data, back, STATE);
    crn_mark_free(mark);
    crn_part_close(part);
    free(data);
    free(back);
}

static void test_unaligned_memory_reads_and_writes(void **state)
{
    (void)state;
    crn_part *part;
    crn_mark *mark;
    unsigned char *data = malloc(STATE + 64), *back = malloc(STATE + 64);
    for (size_t i = 0; i < STATE; i++)
        data[i + 1] = (unsigned char)(i * 7);
    assert_ok(crn_part_create(dir, "unaligned", &model_id, &model_options, &part));
    assert_ok(mark_state(part, 1, 1, data + 1, NULL));
    assert_ok(crn_part_load(part, 1, &mark));
    for (size_t shift = 0; shift < 64; shift += 13) {
        memset(back, 0, STATE + 64);
        assert_ok(crn_mark_read(part, mark, &mark->var[0], 3, 100, back + shift, NULL));
        assert_memory_equal(data + 1 + 3 * BLOCK, back + shift, 100 * BLOCK);
    }
    crn_mark_free(mark);
    crn_part_close(part);
    free(data);
    free(back);
}

/* Large state is written from where it lies, but not after the call has returned. */
static void test_memory_may_change_once_it_was_put(void **state)
{
    (void)state;
    enum { LARGE = 40 << 20, SHIFT = 4104 };
    unsigned char *memory;
    unsigned char *back = malloc(LARGE);
    assert_ok(crn_alloc_aligned(&memory, LARGE + SHIFT, 4096));
    crn_var_spec spec = {.name = "state", .type = "bytes", .item = 1, .block = BLOCK};
    for (int k = 0; k < 4; k++) {
        unsigned char *data = memory + (k % 2) * SHIFT; /* aligned for direct writes, and not */
        crn_part_options opt = model_options;
        crn_part *part;
        crn_draft *d;
        crn_mark *m;
        size_t v;
        opt.direct = k < 2;
        spec.nbytes = LARGE - (uint64_t)k * 1000;
        for (size_t i = 0; i < LARGE; i++)
            data[i] = (unsigned char)(i * 2654435761u >> 13);
        assert_ok(crn_part_create(dir, "lent", &model_id, &opt, &part));
        assert_ok(crn_draft_begin(part, 1, &d));
        assert_ok(crn_draft_add(d, &spec, &v));
        assert_ok(crn_draft_put_all(d, v, data));
        memset(data, 0, LARGE);
        assert_ok(crn_draft_commit(d, 1, NULL));
        assert_ok(crn_part_load(part, 1, &m));
        assert_ok(crn_mark_read(part, m, &m->var[0], 0, m->var[0].nblocks, back, NULL));
        for (size_t i = 0; i < spec.nbytes; i++)
            if (back[i] != (unsigned char)(i * 2654435761u >> 13))
                fail_msg("byte %zu is wrong", i);
        crn_mark_free(m);
        crn_part_close(part);
    }
    free(memory);
    free(back);
}

static void test_many_variables(void **state)
{
    (void)state;
    enum { N = 20000 };
    crn_part *part;
    crn_mark *mark;
    crn_draft *d;
    assert_ok(crn_part_create(dir, "many", &model_id, &model_options, &part));
    for (uint64_t version = 1; version <= 2; version++) {
        assert_ok(crn_draft_begin(part, version, &d));
        for (uint64_t i = 0; i < N; i++) {
            char name[32];
            size_t v;
            uint64_t value = i * version;
            snprintf(name, sizeof name, "scalar %" PRIu64, i);
            crn_var_spec spec = {
                .name = name, .type = "uint64", .item = 8, .block = BLOCK, .nbytes = 8};
            assert_ok(crn_draft_add(d, &spec, &v));
            assert_ok(crn_draft_put_all(d, v, &value));
        }
        assert_ok(crn_draft_commit(d, 1, NULL));
    }
    assert_ok(crn_part_load(part, 2, &mark));
    for (uint64_t i = 0; i < N; i += 997) {
        char name[32];
        uint64_t value;
        snprintf(name, sizeof name, "scalar %" PRIu64, i);
        crn_var *v = crn_mark_find(mark, name);
        assert_non_null(v);
        assert_ok(crn_mark_read(part, mark, v, 0, 1, &value, NULL));
        assert_true(value == i * 2);
    }
    crn_mark_free(mark);
    crn_part_close(part);
}

static void test_declarations_are_checked(void **state)
{
    (void)state;
    crn_part *part;
    crn_draft *d;
    size_t v;
    uint64_t dim[1] = {4}, off[1] = {2}, count[1] = {3};
    crn_var_spec spec = {.name = "a", .type = "int8", .item = 1, .block = 1024, .nbytes = 10};
    assert_ok(crn_part_create(dir, "spec", &model_id, &model_options, &part));
    assert_ok(crn_draft_begin(part, 1, &d));
    assert_ok(crn_draft_add(d, &spec, &v));
    assert_fails(crn_draft_add(d, &spec, &v), CAIRN_EINVAL, "variable 'a' is declared twice");
    spec.name = "b", spec.block = 1000;
    assert_fails(crn_draft_add(d, &spec, &v), CAIRN_EINVAL, "power of two");
    spec.block = 1024, spec.item = 3;
    assert_fails(crn_draft_add(d, &spec, &v), CAIRN_EINVAL, "whole number of elements");
    spec.item = 1, spec.ndims = 1, spec.global = dim, spec.offset = off, spec.count = count;
    assert_fails(crn_draft_add(d, &spec, &v), CAIRN_EINVAL, "a piece of 3 at 2 does not fit");
    assert_fails(crn_draft_commit(d, 1, NULL), CAIRN_EINVAL, "1 of 1 blocks were not given");
    assert_fails(crn_part_load(part, 1, NULL), CAIRN_ENOTFOUND, "has no mark 1");
    crn_part_close(part);
}

static void test_versions_must_grow(void **state)
{
    (void)state;
    model m;
    crn_part *part;
    model_init(&m, 1, 5000);
    assert_ok(crn_part_create(dir, "grow", &model_id, &model_options, &part));
    assert_ok(model_mark(&m, part, 7, 1, NULL));
    assert_fails(model_mark(&m, part, 7, 1, NULL), CAIRN_EINVAL, "versions must grow");
    crn_part_close(part);
    model_done(&m);
}

static void test_second_writer_is_refused(void **state)
{
    (void)state;
    crn_part *part, *other;
    assert_ok(crn_part_create(dir, "lock", &model_id, &model_options, &part));
    assert_fails(crn_part_open(dir, "lock", &model_id, true, &model_options, &other), CAIRN_EBUSY,
                 "'lock' is being written by another process");
    assert_ok(crn_part_open(dir, "lock", &model_id, false, &model_options, &other));
    crn_part_close(other);
    crn_part_close(part);
}

static void test_owner_is_checked(void **state)
{
    (void)state;
    crn_part *part;
    crn_part_id other = model_id;
    assert_ok(crn_part_create(dir, "owner", &model_id, &model_options, &part));
    crn_part_close(part);
    other.rank = 4;
    assert_fails(crn_part_open(dir, "owner", &other, false, &model_options, &part), CAIRN_EMISMATCH,
                 "'owner' is the part of rank 3 of 8");
    other = model_id;
    other.run[0] ^= 1;
    assert_fails(crn_part_open(dir, "owner", &other, false, &model_options, &part), CAIRN_EMISMATCH,
                 "another run");
    assert_ok(crn_part_open(dir, "owner", NULL, false, &model_options, &part));
    crn_part_close(part);
}

/* A reader takes no lock: superblocks and catalogues are replaced while it opens the part. */
static void test_reader_beside_a_writer_sees_no_damage(void **state)
{
    (void)state;
    model m;
    crn_part *part, *reader;
    crn_part_info info;
    model_init(&m, 1, 5000);
    assert_ok(crn_part_create(dir, "live", &model_id, &model_options, &part));
    crn_part_close(part);
    pid_t child = fork();
    if (child == 0) {
        cairn_status rc = crn_part_open(dir, "live", &model_id, true, &model_options, &part);
        for (uint64_t version = 1; version <= 200 && rc == CAIRN_OK; version++)
            rc = model_mark(&m, part, version, 1, NULL);
        _exit(rc == CAIRN_OK ? 0 : 1);
    }
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
        assert_ok(crn_part_open(dir, "live", &model_id, false, &model_options, &reader));
        crn_part_describe(reader, &info);
        assert_false(info.fallback);
        crn_part_close(reader);
    }
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    model_done(&m);
}

static void test_mark_for_the_wire(void **state)
{
    (void)state;
    model m;
    crn_part *part;
    crn_mark *mark, *back;
    crn_buf buf = {0};
    model_init(&m, test_seed() + 5, 20000);
    model_step(&m);
    assert_ok(crn_part_create(dir, "wire", &model_id, &model_options, &part));
    assert_ok(model_mark(&m, part, 9, 1, NULL));
    assert_ok(crn_part_load(part, 9, &mark));
    for (size_t i = 0; i < mark->nvars; i++)
        assert_ok(crn_mark_table(part, mark, &mark->var[i]));
    crn_mark_put(mark, &buf);
    assert_ok(crn_buf_status(&buf));
    crn_cursor c = crn_cursor_of(buf.at, buf.n);
    assert_ok(crn_mark_get(&c, &back));
    assert_int_equal(c.n, 0);
    assert_int_equal(back->nvars, mark->nvars);
    for (size_t i = 0; i < mark->nvars; i++) {
        assert_string_equal(back->var[i].spec.name, mark->var[i].spec.name);
        for (uint64_t b = 0; b < mark->var[i].nblocks; b++)
            assert_memory_equal(&back->var[i].table[b].digest, &mark->var[i].table[b].digest, 16);
    }
    for (size_t n = 0; n < buf.n; n++) {
        crn_mark *none;
        c = crn_cursor_of(buf.at, n);
        assert_true(crn_mark_get(&c, &none) < 0);
    }
    crn_mark_free(back);
    crn_mark_free(mark);
    crn_buf_done(&buf);
    crn_part_close(part);
    model_done(&m);
}

/* Dimensions lie in their variable, wherever that has moved when others came. */
static void test_many_variables_keep_their_shapes(void **state)
{
    (void)state;
    enum { MANY = 100 };
    crn_part *part;
    crn_draft *d;
    assert_ok(crn_part_create(dir, "many", &model_id, &model_options, &part));
    assert_ok(crn_draft_begin(part, 1, &d));
    for (uint64_t i = 0; i < MANY; i++) {
        char name[16];
        size_t v;
        const uint64_t global[] = {i + 7, 3}, offset[] = {i, 1}, count[] = {0, 2};
        snprintf(name, sizeof name, "v%d", (int)i);
        const crn_var_spec spec = {.name = name,
                                   .type = "int8",
                                   .item = 1,
                                   .block = 1024,
                                   .ndims = 2,
                                   .global = global,
                                   .offset = offset,
                                   .count = count};
        assert_ok(crn_draft_add(d, &spec, &v));
    }
    const crn_mark *m = crn_draft_mark(d);
    for (uint64_t i = 0; i < MANY; i++) {
        const crn_var *v = &m->var[i];
        assert_true(v->spec.global == v->dims && v->spec.offset == v->dims + 2);
        assert_true(v->spec.count == v->dims + 4 && v->spec.global[0] == i + 7);
    }
    assert_ok(crn_draft_commit(d, 1, NULL));
    crn_part_close(part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_histories_read_back),
        cmocka_unit_test(test_rewind_drops_what_came_after),
        cmocka_unit_test(test_rewind_and_trim_leave_what_they_should),
        cmocka_unit_test(test_marks_are_retained_by_list),
        cmocka_unit_test(test_small_changes_cost_little_and_size_stays_bounded),
        cmocka_unit_test(test_data_that_did_not_change_shares_its_table),
        cmocka_unit_test(test_ways_to_find_what_changed),
        cmocka_unit_test(test_blocks_beyond_four_gigabytes),
        cmocka_unit_test(test_unaligned_memory_reads_and_writes),
        cmocka_unit_test(test_memory_may_change_once_it_was_put),
        cmocka_unit_test(test_many_variables),
        cmocka_unit_test(test_declarations_are_checked),
        cmocka_unit_test(test_versions_must_grow),
        cmocka_unit_test(test_second_writer_is_refused),
        cmocka_unit_test(test_owner_is_checked),
        cmocka_unit_test(test_reader_beside_a_writer_sees_no_damage),
        cmocka_unit_test(test_mark_for_the_wire),
        cmocka_unit_test(test_many_variables_keep_their_shapes),
    };
    return cmocka_run_group_tests_name("part", tests, scratch_begin, scratch_end);
}
