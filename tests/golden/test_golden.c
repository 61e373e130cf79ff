/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files of all formats, kept so that every later version is held to reading them. Each was written
 * by this program, called with --write, in a version of that format; what is in them follows from
 * the functions below alone. Parts of format 1, and the same of format 2, with "-2":
 *
 *     good-part-1       three marks of two variables, two retained
 *     good-part-compound  one mark of a variable of structures
 *     good-part-codecs  one mark with a variable for each codec
 *     good-manifest-1   two marks on four ranks
 *     good-manifest-2   a list of 256 such marks, and four that follow it as changes, of which two
 *                       belong together; the last is cut
 *     good-trees-1      trees of three marks (small_trees.h)
 *     good-golden-1     marks 3 and 6 of examples/heat2d --size 16 --every 3 on two ranks, with the
 *                       bounds 1e-3 and 1e-9, by 'cairn gate --bless'
 *     good-golden-2     the same of format 2, with '--sketch bytes'
 *     bad-*             the same, damaged
 *
 * NEEDS: lz4 zstd zfp fpzip
 */
#include "diff/diff.h"
#include "harness/encode.h"
#include "harness/small_trees.h"
#include "store/store_part.h"

enum { CELLS = 300, BLOCK = 1024, RANKS = 4 };

static const crn_part_options options = {CRN_IO_THREADS, 2, false};
static const crn_part_id owner = {"golden run 0001", 1, 2, RANKS, CRN_ROLE_OWN};

static uint64_t cell(uint64_t version, uint64_t i)
{
    return i * 1000 + (i < 64 ? version : 0);
}

static cairn_status put_mark(crn_part *part, uint64_t version)
{
    uint64_t field[CELLS], global[2] = {3, 400}, offset[2] = {0, 100}, count[2] = {3, 100};
    crn_var_spec spec = {.name = "field",
                         .type = "uint64",
                         .item = 8,
                         .block = BLOCK,
                         .nbytes = sizeof field,
                         .ndims = 2,
                         .global = global,
                         .offset = offset,
                         .count = count,
                         .attributes = "unit=m\n"};
    crn_var_spec empty = {.name = "empty", .type = "int8", .item = 1, .block = BLOCK};
    crn_draft *d;
    size_t v;
    for (uint64_t i = 0; i < CELLS; i++)
        field[i] = cell(version, i);
    CRN_TRY(crn_draft_begin(part, version, &d));
    assert_ok(crn_draft_add(d, &spec, &v));
    assert_ok(crn_draft_put_all(d, v, field));
    assert_ok(crn_draft_add(d, &empty, &v));
    return crn_draft_commit(d, 2, NULL);
}

/* --- structures ----------------------------------------------------------------------------- */

#define COMPOUND "{48:id@0:uint64,x@8:float64[3],cell@32:{8:i@0:int32,j@4:int32}}"

typedef struct particle {
    uint64_t id;
    double x[3];
    int32_t cell[2];
    uint64_t rest;
} particle;

static particle particle_of(uint64_t i)
{
    return (particle){.id = i, .x = {(double)i, 0.5, -1}, .cell = {(int32_t)i % 7, -3}};
}

static void put_particles(crn_part *part)
{
    particle p[CELLS];
    crn_var_spec spec = {.name = "particles",
                         .type = COMPOUND,
                         .item = sizeof *p,
                         .block = BLOCK,
                         .nbytes = sizeof p};
    crn_draft *d;
    size_t v;
    for (uint64_t i = 0; i < CELLS; i++)
        p[i] = particle_of(i);
    assert_ok(crn_draft_begin(part, 10, &d));
    assert_ok(crn_draft_add(d, &spec, &v));
    assert_ok(crn_draft_put_all(d, v, p));
    assert_ok(crn_draft_commit(d, 1, NULL));
}

/* --- codecs --------------------------------------------------------------------------------- */

/* Smooth, and nothing towards the end. */
static double value_of(uint64_t i)
{
    return i < 200 ? 3 + 0.25 * (double)i : 0;
}

static void put_encoded(crn_part *part, uint64_t version)
{
    double x[CELLS];
    crn_draft *d;
    for (uint64_t i = 0; i < CELLS; i++)
        x[i] = value_of(i);
    assert_ok(crn_draft_begin(part, version, &d));
    for (size_t i = 0; i < 5; i++) { /* those of the file */
        size_t v;
        crn_var_spec spec = {.name = crn_codec_name(crn_codec_at(i)),
                             .type = "float64",
                             .item = sizeof *x,
                             .block = BLOCK,
                             .nbytes = sizeof x};
        assert_ok(crn_draft_add(d, &spec, &v));
        test_encode(d, v, crn_codec_name(crn_codec_at(i)), "");
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

static void check_mark(crn_part *part, uint64_t version)
{
    crn_mark *m;
    uint64_t field[CELLS];
    assert_ok(crn_part_load(part, version, &m));
    assert_int_equal(m->nvars, 2);
    crn_var *v = crn_mark_find(m, "field");
    assert_non_null(v);
    assert_string_equal(v->spec.type, "uint64");
    assert_string_equal(v->spec.attributes, "unit=m\n");
    assert_true(v->spec.global[1] == 400 && v->spec.offset[1] == 100 && v->spec.count[0] == 3);
    assert_ok(crn_mark_read(part, m, v, 0, v->nblocks, field, NULL));
    for (uint64_t i = 0; i < CELLS; i++)
        assert_true(field[i] == cell(version, i));
    assert_int_equal(crn_mark_find(m, "empty")->nblocks, 0);
    crn_mark_free(m);
}

static void test_good_part(void **state)
{
    (void)state;
    static const char *const name[] = {"good-part-1", "good-part-2"};
    int dir = golden_dir();
    for (uint32_t format = 1; format <= 2; format++) {
        crn_part *part;
        crn_part_info info;
        assert_ok(crn_part_open(dir, name[format - 1], &owner, false, &options, &part));
        assert_int_equal(part->super.format, format);
        crn_part_describe(part, &info);
        assert_int_equal(info.nmarks, 2);
        assert_false(info.fallback);
        check_mark(part, 20);
        check_mark(part, 30);
        crn_part_close(part);
    }
    close(dir);
}

/* A copy that can be written to. */
static void open_copy(const char *name, char *scratch, size_t cap, crn_part **ret)
{
    void *data;
    size_t n;
    int from = golden_dir();
    make_scratch(scratch, cap, "golden");
    int to = open(scratch, O_RDONLY | O_DIRECTORY);
    assert_ok(crn_file_slurp(from, name, 1 << 20, &data, &n));
    assert_ok(crn_file_replace(to, "part", data, n));
    assert_ok(crn_part_open(to, "part", &owner, true, &options, ret));
    free(data);
    close(from);
    close(to);
}

static void check_encoded(crn_part *part, crn_mark *m)
{
    static const char *const name[] = {"none", "lz4", "zstd", "zfp", "fpzip"};
    assert_int_equal(m->nvars, 5);
    for (uint32_t k = 0; k < 5; k++) {
        double x[CELLS];
        crn_var *v = crn_mark_find(m, name[k]);
        assert_non_null(v);
        assert_ok(crn_mark_read(part, m, v, 0, v->nblocks, x, NULL));
        assert_int_equal(v->table[2].codec, k);
        for (uint64_t i = 0; i < CELLS; i++)
            assert_true(x[i] == value_of(i));
    }
}

/* A part of format 1 is gone on with: the next commit makes it one of format 2, in which the older
 * marks are as they were. Until then it stays what it is. */
static void test_old_parts_go_on(void **state)
{
    (void)state;
    char scratch[64];
    crn_part *part;
    open_copy("good-part-1", scratch, sizeof scratch, &part);
    assert_ok(crn_part_trim(part, 1));
    assert_int_equal(part->super.format, 1);
    for (uint64_t version = 40; version <= 60; version += 10) {
        assert_ok(put_mark(part, version));
        assert_int_equal(part->super.format, 2);
        check_mark(part, version - 10);
        check_mark(part, version);
    }
    crn_part_close(part);
    remove_tree(scratch);
}

/* Blocks that were encoded without a digest of what was stored are not inherited. */
static void test_old_encoded_blocks_are_put_again(void **state)
{
    (void)state;
    char scratch[64];
    crn_part *part;
    crn_mark *m;
    open_copy("good-part-codecs", scratch, sizeof scratch, &part);
    put_encoded(part, 20);
    assert_ok(crn_part_load(part, 20, &m));
    for (size_t i = 0; i < m->nvars; i++) {
        const crn_var *v = &m->var[i];
        assert_true(v->has_stored);
        assert_int_equal(v->nchanged > 0, strcmp(v->spec.name, "none") != 0);
    }
    check_encoded(part, m);
    crn_mark_free(m);
    crn_part_close(part);
    remove_tree(scratch);
}

static void test_good_compound(void **state)
{
    (void)state;
    crn_part *part;
    crn_mark *m;
    particle p[CELLS];
    static const char *const name[] = {"good-part-compound", "good-part-compound-2"};
    int dir = golden_dir();
    for (int k = 0; k < 2; k++) {
        assert_ok(crn_part_open(dir, name[k], &owner, false, &options, &part));
        assert_ok(crn_part_load(part, 10, &m));
        crn_var *v = crn_mark_find(m, "particles");
        assert_non_null(v);
        assert_string_equal(v->spec.type, COMPOUND);
        assert_ok(crn_mark_read(part, m, v, 0, v->nblocks, p, NULL));
        for (uint64_t i = 0; i < CELLS; i++) {
            const particle want = particle_of(i);
            assert_memory_equal(&p[i], &want, sizeof want);
        }
        crn_mark_free(m);
        crn_part_close(part);
    }
    close(dir);
}

static void test_good_codecs(void **state)
{
    (void)state;
    static const char *const name[] = {"good-part-codecs", "good-part-codecs-2"};
    int dir = golden_dir();
    for (int i = 0; i < 2; i++) {
        crn_part *part;
        crn_mark *m;
        assert_ok(crn_part_open(dir, name[i], &owner, false, &options, &part));
        assert_ok(crn_part_load(part, 10, &m));
        check_encoded(part, m);
        crn_mark_free(m);
        crn_part_close(part);
    }
    close(dir);
}

static cairn_status load_manifest(const char *name, crn_manifest *ret)
{
    void *data;
    size_t n;
    int dir = golden_dir();
    assert_ok(crn_file_slurp(dir, name, 1 << 20, &data, &n));
    close(dir);
    cairn_status rc = crn_manifest_parse(data, n, ret);
    free(data);
    return rc;
}

static void test_good_manifest(void **state)
{
    (void)state;
    crn_manifest m;
    assert_ok(load_manifest("good-manifest-1", &m));
    assert_int_equal(m.mark.n, 2);
    assert_memory_equal(m.run, owner.run, sizeof m.run);
    assert_true(m.mark.at[1].version == 30 && m.mark.at[1].nranks == RANKS);
    assert_true(m.mark.at[0].nbytes == 9600 && m.mark.at[0].levels == CRN_IN_TRAIL);
    crn_manifest_done(&m);
}

static crn_manifest_mark listed_mark(uint64_t version)
{
    return (crn_manifest_mark){.version = version,
                               .wall_ns = version,
                               .nbytes = RANKS * CELLS * 8ull,
                               .series = 1,
                               .nranks = RANKS,
                               .levels = CRN_IN_TRAIL};
}

static void test_good_long_manifest(void **state)
{
    (void)state;
    crn_manifest m;
    assert_ok(load_manifest("good-manifest-2", &m));
    assert_int_equal(m.mark.n, 258);
    for (uint64_t i = 0; i < m.mark.n; i++) {
        crn_manifest_mark k = listed_mark(i + 1);
        k.levels |= i + 1 == 257;
        assert_true(crn_manifest_mark_equal(&m.mark.at[i], &k));
    }
    assert_true(m.seq == 4 && !m.finished && m.end > m.list_end);
    crn_manifest_done(&m);
}

static void *slurp_golden(const char *name, size_t *n)
{
    void *data;
    int dir = golden_dir();
    assert_ok(crn_file_slurp(dir, name, 1 << 20, &data, n));
    close(dir);
    return data;
}

static void test_good_trees(void **state)
{
    (void)state;
    size_t n;
    crn_trees *t;
    void *data = slurp_golden("good-trees-1", &n);
    assert_ok(crn_trees_of("good-trees-1", data, n, &t));
    assert_int_equal(crn_trees_rank(t), 2);
    assert_int_equal(crn_trees_nmarks(t), 3);
    for (size_t i = 0; i < 3; i++) {
        crn_trees_mark *m = crn_trees_at(t, i);
        assert_int_equal(m->version, 10 * (i + 1));
        for (size_t k = 0; k < m->nvars; k++) {
            assert_ok(crn_trees_load(t, m, &m->var[k]));
            assert_small_var(m->version, k, &m->var[k]);
        }
    }
    assert_true(crn_trees_at(t, 2)->var[0].bound[1].absolute == 1e-9);
    crn_trees_close(t);
    free(data);
    data = slurp_golden("bad-trees-newer", &n);
    assert_fails(crn_trees_of("bad-trees-newer", data, n, &t), CAIRN_EUNSUPPORTED, "reads format");
    free(data);
}

/* Trees of two ranks and marks, with sketches of both bounds or without. */
static void check_golden(const char *name, bool sketched)
{
    void *data;
    size_t n;
    diff_side s = {0};
    crn_comm *comm;
    int dir = golden_dir();
    assert_ok(crn_file_slurp(dir, name, 1 << 20, &data, &n));
    assert_ok(crn_comm_create_self(&comm));
    assert_ok(crn_diff_golden_of(&s, name, data, n));
    assert_ok(crn_diff_check_whole(&s, comm));
    assert_int_equal(s.nranks, 2);
    assert_int_equal(s.mark.n, 2);
    for (uint32_t r = 0; r < 2; r++) {
        for (size_t i = 0; i < 2; i++) {
            crn_trees_mark *m = crn_trees_at(crn_diff_trees(&s, r), i);
            crn_trees_var *field = crn_trees_find(m, "field");
            diff_share share;
            diff_sketch sketch;
            assert_int_equal(m->version, 3 * (i + 1));
            assert_non_null(field);
            assert_int_equal(field->nbounds, 2);
            assert_ok(crn_trees_load(crn_diff_trees(&s, r), m, field));
            assert_ok(crn_diff_share_open(&s, &s.mark.at[i], r, &share));
            assert_int_equal(crn_diff_sketch_find(&share, field, &sketch), sketched);
            if (sketched)
                assert_true(crn_diff_sketch_facts(&sketch, 0).size > 0);
        }
    }
    crn_diff_close(&s);
    crn_comm_free(comm);
    close(dir);
}

static void test_good_golden(void **state)
{
    (void)state;
    check_golden("good-golden-1", false);
    check_golden("good-golden-2", true);
}

static void test_bad_files(void **state)
{
    (void)state;
    crn_part *part;
    crn_manifest m;
    int dir = golden_dir();
    assert_fails(crn_part_open(dir, "bad-part-cut", NULL, false, &options, &part), CAIRN_ECORRUPT,
                 "too few for a part file");
    assert_fails(crn_part_open(dir, "bad-part-newer", NULL, false, &options, &part),
                 CAIRN_EUNSUPPORTED, "reads format");
    assert_fails(crn_part_open(dir, "bad-part-zeroed", NULL, false, &options, &part),
                 CAIRN_ECORRUPT, "no whole superblock");
    assert_fails(load_manifest("bad-manifest-cut", &m), CAIRN_ECORRUPT, "cut short");
    assert_fails(load_manifest("bad-manifest-newer", &m), CAIRN_EUNSUPPORTED, "reads format");
    close(dir);
}

/* --- writing them --------------------------------------------------------------------------- */

#include "harness/heal.h"

static void save(int dir, const char *name, const void *data, size_t n)
{
    assert_ok(crn_file_replace(dir, name, data, n));
}

static void write_manifests(int dir)
{
    crn_manifest m = {.seq = 2, .created_ns = 1};
    crn_buf buf = {0};
    memcpy(m.run, owner.run, sizeof m.run);
    for (uint64_t version = 20; version <= 30; version += 10)
        assert_ok(crn_vec_push(&m.mark, listed_mark(version)));
    crn_manifest_put(&m, &buf);
    assert_ok(crn_buf_status(&buf));
    save(dir, "good-manifest-1", buf.at, buf.n);
    save(dir, "bad-manifest-cut", buf.at, buf.n - 20);
    buf.at[HEAL_SUPER_FORMAT] = 99;
    heal_manifest(buf.at, buf.n);
    save(dir, "bad-manifest-newer", buf.at, buf.n);
    crn_buf_done(&buf);
    crn_manifest_done(&m);
}

/* Mark 257 is added; it gets a level, and 258 is added; 259 is cut. */
static void write_long_manifest(int dir)
{
    crn_manifest m = {.seq = 2, .created_ns = 1};
    crn_buf buf = {0};
    memcpy(m.run, owner.run, sizeof m.run);
    for (uint64_t version = 1; version <= 259; version++)
        assert_ok(crn_vec_push(&m.mark, listed_mark(version)));
    m.mark.n = 256;
    crn_manifest_put(&m, &buf);
    assert_ok(crn_buf_status(&buf));
    crn_manifest_follow(&m, buf.at, buf.n);
    assert_true(crn_manifest_change(&m, m.mark.at, 257, 256, false, &buf));
    m.seq++;
    m.mark.at[256].levels |= 1;
    assert_true(crn_manifest_change(&m, m.mark.at, 258, 256, false, &buf));
    m.seq++;
    assert_true(crn_manifest_change(&m, m.mark.at, 259, 258, false, &buf));
    save(dir, "good-manifest-2", buf.at, buf.n - 1);
    crn_buf_done(&buf);
    crn_manifest_done(&m);
}

/* A seed that begins with the number of a decoder of fuzz_part. */
static void save_seed(int dir, const char *name, int decoder, const void *data, size_t n)
{
    crn_buf buf = {0};
    crn_put_u8(&buf, (uint8_t)decoder);
    crn_put_bytes(&buf, data, n);
    assert_ok(crn_buf_status(&buf));
    save(dir, name, buf.at, buf.n);
    crn_buf_done(&buf);
}

static void write_part_seeds(int dir, crn_part *part)
{
    crn_buf list = {0}, entries = {0}, root = {0}, page = {0}, wire = {0}, table = {0};
    crn_mark *m;
    unsigned char slot[SLOT_BYTES];
    assert_ok(crn_part_load(part, 30, &m));
    crn_var *v = &m->var[0];
    assert_ok(crn_mark_table(part, m, v));
    crn_format_put_list(&part->list, &list);
    crn_format_put_list_page(part->cat.at, part->cat.n, &entries);
    crn_format_put_root(m, &root);
    crn_format_put_page(m, 0, &page);
    crn_mark_put(m, &wire);
    crn_put_u32(&table, (uint32_t)v->spec.nbytes);
    v->entry_bytes = LONG_ENTRY_BYTES;
    crn_format_put_table(v, &table);
    crn_format_put_super(&part->super, slot);
    save_seed(dir, "good-wire", 2, wire.at, wire.n);
    save_seed(dir, "good-long-table", 3, table.at, table.n);
    save_seed(dir, "good-super-2", 4, slot + 8, 92);
    save_seed(dir, "good-list", 5, list.at, list.n);
    save_seed(dir, "good-list-page", 6, entries.at, entries.n);
    save_seed(dir, "good-root", 7, root.at, root.n);
    save_seed(dir, "good-page", 8, page.at, page.n);
    crn_buf_done(&list);
    crn_buf_done(&entries);
    crn_buf_done(&root);
    crn_buf_done(&page);
    crn_buf_done(&wire);
    crn_buf_done(&table);
    crn_mark_free(m);
}

/* The page of a mark with structures, and the same with one that is none. */
static void write_compound(int dir, int seeds)
{
    crn_part *part;
    crn_mark *m;
    crn_buf record = {0};
    assert_ok(crn_part_create(dir, "good-part-compound-2", &owner, &options, &part));
    put_particles(part);
    assert_ok(crn_part_load(part, 10, &m));
    crn_format_put_page(m, 0, &record);
    save_seed(seeds, "good-compound-2", 8, record.at, record.n);
    unsigned char *type = memmem(record.at, record.n, COMPOUND, strlen(COMPOUND));
    assert_non_null(type);
    type[strcspn(COMPOUND, "x") + 2] = '4'; /* members overlap */
    save_seed(seeds, "bad-compound-2", 8, record.at, record.n);
    crn_buf_done(&record);
    crn_mark_free(m);
    crn_part_close(part);
}

static void write_encoded(int dir, int seeds)
{
    crn_part *part;
    void *data;
    size_t n;
    assert_ok(crn_part_create(dir, "good-part-codecs-2", &owner, &options, &part));
    put_encoded(part, 10);
    crn_part_close(part);
    assert_ok(crn_file_slurp(dir, "good-part-codecs-2", 1 << 20, &data, &n));
    save(seeds, "good-file-codecs-2", data, n);
    free(data);
}

static void write_parts(int dir, int seeds)
{
    crn_part *part;
    void *data;
    size_t n;
    assert_ok(crn_part_create(dir, "good-part-2", &owner, &options, &part));
    for (uint64_t version = 10; version <= 30; version += 10)
        assert_ok(put_mark(part, version));
    write_part_seeds(seeds, part);
    crn_part_close(part);
    assert_ok(crn_file_slurp(dir, "good-part-2", 1 << 20, &data, &n));
    unsigned char *file = data;
    save(seeds, "good-file-2", file, n);
    save(dir, "bad-part-cut", file, HEAL_START - 1);
    for (size_t at = 0; at < HEAL_START; at += HEAL_COPY)
        file[at + HEAL_SUPER_FORMAT] = 99;
    heal_part(file, n);
    save(dir, "bad-part-newer", file, n);
    memset(file, 0, HEAL_START);
    save(dir, "bad-part-zeroed", file, n);
    free(data);
}

/* The header with another number of the format, and its digest. */
static void write_newer_trees(int dir, unsigned char *file, size_t n)
{
    file[8] = 99;
    const crn_digest d = crn_digest_of(file, 48);
    memcpy(file + 48, d.b, sizeof d.b);
    save(dir, "bad-trees-newer", file, n);
}

static void write_trees(void **state)
{
    (void)state;
    char scratch[64];
    crn_trail *trail;
    crn_run *run;
    crn_trees *t;
    crn_trees_mark *last = NULL;
    void *data;
    size_t n;
    make_scratch(scratch, sizeof scratch, "golden");
    assert_ok(crn_trail_open(scratch, true, &trail));
    assert_ok(crn_run_create(trail, "run", &run));
    assert_ok(crn_run_trees(run, 2, true, &t));
    for (uint64_t version = 10; version <= 30; version += 10) {
        crn_trees_mark *m = small_trees_mark(version);
        assert_ok(crn_trees_append(t, m, last));
        crn_trees_mark_free(last);
        last = m;
    }
    crn_trees_mark_free(last);
    crn_trees_close(t);
    snprintf(scratch + strlen(scratch), 40, "/run/trees/000/trees-000002");
    assert_ok(crn_file_slurp(AT_FDCWD, scratch, 1 << 20, &data, &n));
    *strchr(scratch, '/') = 0;
    int dir = golden_dir(), seeds = open(TESTS_DIR "/fuzz/corpus/trees", O_RDONLY | O_DIRECTORY);
    assert_true(seeds >= 0);
    save(dir, "good-trees-1", data, n);
    save(seeds, "good-file", data, n);
    save(seeds, "bad-cut", data, n - 700);
    write_newer_trees(dir, data, n);
    close(seeds);
    close(dir);
    free(data);
    crn_run_close(run);
    crn_trail_close(trail);
    remove_tree(scratch);
}

static void write_all(void **state)
{
    (void)state;
    int dir = golden_dir();
    int parts = open(TESTS_DIR "/fuzz/corpus/part", O_RDONLY | O_DIRECTORY);
    assert_true(parts >= 0);
    write_manifests(dir);
    write_long_manifest(dir);
    write_parts(dir, parts);
    write_compound(dir, parts);
    write_encoded(dir, parts);
    close(parts);
    close(dir);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_part),
        cmocka_unit_test(test_old_parts_go_on),
        cmocka_unit_test(test_old_encoded_blocks_are_put_again),
        cmocka_unit_test(test_good_compound),
        cmocka_unit_test(test_good_codecs),
        cmocka_unit_test(test_good_manifest),
        cmocka_unit_test(test_good_long_manifest),
        cmocka_unit_test(test_good_trees),
        cmocka_unit_test(test_good_golden),
        cmocka_unit_test(test_bad_files),
    };
    const struct CMUnitTest writing[] = {cmocka_unit_test(write_all)};
    const struct CMUnitTest trees[] = {cmocka_unit_test(write_trees)};
    if (argc == 2 && strcmp(argv[1], "--write-trees") == 0)
        return cmocka_run_group_tests_name("write", trees, NULL, NULL);
    if (argc == 2 && strcmp(argv[1], "--write") == 0)
        return cmocka_run_group_tests_name("write", writing, NULL, NULL);
    return cmocka_run_group_tests_name("golden", tests, NULL, NULL);
}
