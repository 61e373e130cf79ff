/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parts with many small variables: pages of the record that marks share, blocks that share sectors,
 * and what comes back after all kinds of retention.
 *
 * NEEDS: random123
 */
#include "harness/scratch.h"
#include "store/store_part.h"

enum { MOST = 700, MARKS = 40, BYTES_MAX = 900, WINDOW = 4 };

static const crn_part_id id = {.run = "many variables", .series = 1, .nranks = 1};
static const crn_part_options options = {CRN_IO_THREADS, 2, false};

/* All variables of one mark. */
typedef struct snapshot {
    uint64_t version;
    size_t nvars;
    uint32_t nbytes[MOST];
    unsigned char data[MOST][BYTES_MAX];
} snapshot;

static snapshot now, past[MARKS + 1];
static crn_rng rng;

static void name_of(size_t i, char name[16])
{
    snprintf(name, 16, "v%zu", i);
}

static void change(snapshot *s, size_t i)
{
    for (uint32_t k = 0; k < s->nbytes[i]; k++)
        s->data[i][k] = (unsigned char)crn_rng_u64(&rng);
}

static void begin(size_t nvars, uint64_t stream)
{
    rng = crn_rng_of(test_seed(), stream);
    now.version = 0;
    now.nvars = nvars;
    for (size_t i = 0; i < nvars; i++) {
        now.nbytes[i] = 1 + (uint32_t)crn_rng_below(&rng, i % 5 ? 130 : BYTES_MAX);
        change(&now, i);
    }
}

static crn_draft_stats mark(crn_part *part, uint64_t keep)
{
    crn_draft *d;
    crn_draft_stats stats;
    char name[16];
    assert_ok(crn_draft_begin(part, ++now.version, &d));
    for (size_t i = 0; i < now.nvars; i++) {
        const crn_var_spec spec = {
            .name = name, .type = "bytes", .item = 1, .block = 1024, .nbytes = now.nbytes[i]};
        size_t v;
        name_of(i, name);
        assert_ok(crn_draft_add(d, &spec, &v));
        assert_ok(crn_draft_put_all(d, v, now.data[i]));
    }
    assert_ok(crn_draft_commit(d, keep, &stats));
    past[now.version] = now;
    return stats;
}

static void check(crn_part *part)
{
    crn_part_info info;
    crn_part_describe(part, &info);
    for (size_t k = 0; k < info.nmarks; k++) {
        const snapshot *s = &past[crn_part_version(part, k)];
        crn_mark *m;
        assert_ok(crn_part_load(part, s->version, &m));
        assert_int_equal(m->nvars, s->nvars);
        for (size_t i = 0; i < s->nvars; i++) {
            unsigned char data[BYTES_MAX];
            char name[16];
            name_of(i, name);
            crn_var *v = crn_mark_find(m, name);
            assert_non_null(v);
            assert_int_equal(v->spec.nbytes, s->nbytes[i]);
            assert_ok(crn_mark_read(part, m, v, 0, v->nblocks, data, NULL));
            assert_memory_equal(data, s->data[i], s->nbytes[i]);
        }
        crn_mark_free(m);
    }
}

/* Free space in memory must be free by what the file says, too. */
static void check_space(crn_part *part)
{
    const uint64_t used = part->space.used;
    assert_ok(crn_part_derive(part));
    assert_true(part->space.used <= used);
}

static void step(crn_part **part, uint64_t keep)
{
    const size_t n = crn_rng_below(&rng, 4) == 0 ? now.nvars : crn_rng_below(&rng, 20);
    for (size_t i = 0; i < n; i++)
        change(&now, n == now.nvars ? i : crn_rng_below(&rng, now.nvars));
    if (crn_rng_below(&rng, 8) == 0)
        now.nvars = CRN_MAX(1, crn_rng_below(&rng, MOST));
    for (size_t i = 0; i < now.nvars; i++)
        if (now.nbytes[i] == 0)
            now.nbytes[i] = 1 + (uint32_t)crn_rng_below(&rng, 200);
    mark(*part, keep);
    if (crn_rng_below(&rng, 3) == 0) {
        const uint64_t version[] = {now.version - crn_rng_below(&rng, WINDOW)};
        assert_ok(crn_part_retain(*part, version, 1));
    }
    check_space(*part);
    if (crn_rng_below(&rng, 4) == 0) {
        crn_part_close(*part);
        assert_ok(crn_part_open(dir, "part", &id, true, &options, part));
    }
    check(*part);
}

static void test_random_histories(void **state)
{
    (void)state;
    const uint64_t keep[] = {1, 2, 3, CRN_KEEP_ALL};
    for (uint64_t i = 0; i < sizeof keep / sizeof *keep; i++) {
        crn_part *part;
        rng = crn_rng_of(test_seed(), 20 + i);
        begin(1 + crn_rng_below(&rng, MOST), i);
        assert_ok(crn_part_create(dir, "part", &id, &options, &part));
        while (now.version < MARKS)
            step(&part, keep[i]);
        crn_part_close(part);
    }
}

/* One variable of many: its page, the lists of pages, its sector. */
static void test_one_change_writes_little(void **state)
{
    (void)state;
    crn_part *part;
    begin(MOST, 10);
    assert_ok(crn_part_create(dir, "part", &id, &options, &part));
    const crn_draft_stats first = mark(part, 2);
    change(&now, MOST / 2);
    const crn_draft_stats second = mark(part, 2);
    assert_int_equal(second.changed, 1);
    assert_true(second.data_bytes <= 2 * GRAIN);
    assert_true(second.meta_bytes < first.meta_bytes / 2);
    check(part);
    crn_part_close(part);
}

/* Small blocks take little more than their bytes, again and again. */
static void test_space(void **state)
{
    (void)state;
    crn_part *part;
    crn_part_info info;
    begin(MOST, 11);
    for (size_t i = 0; i < MOST; i++)
        now.nbytes[i] = 64;
    assert_ok(crn_part_create(dir, "part", &id, &options, &part));
    const uint64_t data = mark(part, 1).data_bytes;
    assert_true(data <= 64 * MOST + GRAIN);
    crn_part_describe(part, &info);
    const uint64_t once = info.file_bytes;
    for (int i = 0; i < 20; i++) {
        for (size_t v = 0; v < MOST; v++)
            change(&now, v);
        mark(part, 1);
    }
    crn_part_describe(part, &info);
    assert_true(info.file_bytes <= 3 * once);
    check(part);
    crn_part_close(part);
}

/* A page that nobody writes again is read from time to time, and written again when it is lost. */
static void test_lost_pages_are_written_again(void **state)
{
    (void)state;
    crn_part *part;
    crn_mark *m;
    uint64_t nlost;
    unsigned char byte = 0xff;
    begin(MOST, 12);
    assert_ok(crn_part_create(dir, "part", &id, &options, &part));
    mark(part, 2);
    mark(part, 2);
    assert_ok(crn_part_load(part, 2, &m));
    const uint64_t off = m->page[1].off;
    assert_int_equal(off, part->tip->page[1].off);
    assert_ok(crn_file_write(part->file, &byte, 1, off + 1));
    crn_mark_free(m);
    assert_ok(crn_part_scrub(part, &nlost));
    assert_int_equal(nlost, 1);
    mark(part, 1);
    assert_ok(crn_part_scrub(part, &nlost));
    assert_int_equal(nlost, 0);
    check(part);
    crn_part_close(part);
}

/* Commit n empty marks from version first on; the bytes that they took. */
static uint64_t commit_some(crn_part *part, uint64_t first, uint64_t n, uint64_t keep)
{
    uint64_t nbytes = 0;
    for (uint64_t v = first; v < first + n; v++) {
        crn_draft *d;
        crn_draft_stats stats;
        assert_ok(crn_draft_begin(part, v, &d));
        assert_ok(crn_draft_commit(d, keep, &stats));
        nbytes += stats.meta_bytes;
    }
    return nbytes;
}

/* Does a reader find these marks? */
static void check_versions(const uint64_t *version, size_t n)
{
    crn_part *part;
    crn_part_info info;
    assert_ok(crn_part_open(dir, "part", &id, false, &options, &part));
    crn_part_describe(part, &info);
    assert_int_equal(info.nmarks, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(crn_part_version(part, i), version[i]);
    crn_part_close(part);
}

/* Many marks: a commit writes the end of the catalogue and, once in a while, pages made one, so
 * that there are few to list; any mark may go, and the oldest with each commit. */
static void test_long_catalogues(void **state)
{
    (void)state;
    enum { MANY = 1500, MORE = 300 };
    crn_part *part;
    uint64_t left[MANY], n = 0;
    assert_ok(crn_part_create(dir, "part", &id, &options, &part));
    assert_true(commit_some(part, 1, MANY, CRN_KEEP_ALL) / MANY < 2 * 4096);
    assert_true(part->list.n <= 8); /* 46 if none were made one */
    assert_true(commit_some(part, MANY + 1, MORE, MANY - MORE) / MORE < 4 * 4096);
    for (uint64_t v = 2 * MORE + 1; v <= MANY + MORE; v++)
        left[n++] = v;
    check_versions(left, n);
    n = 0;
    for (uint64_t v = 2 * MORE + 1; v <= MANY + MORE; v++)
        if (v % 7 == 0 || v > MANY)
            left[n++] = v;
    assert_ok(crn_part_retain(part, left, n));
    assert_true(part->list.n <= 2 * n / LIST_ENTRIES + 2);
    crn_part_close(part);
    check_versions(left, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_histories),
        cmocka_unit_test(test_one_change_writes_little),
        cmocka_unit_test(test_space),
        cmocka_unit_test(test_lost_pages_are_written_again),
        cmocka_unit_test(test_long_catalogues),
    };
    return cmocka_run_group_tests_name("part_many", tests, scratch_begin, scratch_end);
}
