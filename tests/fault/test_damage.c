/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Damage. Part files are cut, flipped, zeroed, swapped and forged. Whatever is found in them
 * afterwards is, bit for bit, what was once written, or is refused with a sentence; nothing
 * crashes, and nothing allocates by a number that was not checked.
 *
 * NEEDS: lz4 zstd zfp fpzip random123
 */
#include "fault/history.h"
#include "harness/heal.h"
#include "harness/small_trail.h"
#include "store/store_part.h"

#include <cairn/trail.h>
#include <sys/resource.h>

static const crn_part_options quick = {CRN_IO_THREADS, 1, false};

static char scratch[64];
static int dir = -1;
static char where[160]; /* the damage being looked at */

/* A part of a few marks, as bytes, and what was in them. */
static model past, other; /* other: variables of which no block is like one of past's */
static unsigned char *whole, *file;
static size_t nwhole;
static mark_list written;
static uint64_t ntried;

static unsigned char *load(const char *name, size_t *ret_n)
{
    void *data;
    assert_ok(crn_file_slurp(dir, name, 64 << 20, &data, ret_n));
    return data;
}

static void save(const char *name, const void *data, size_t n)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_true(write(fd, data, n) == (ssize_t)n);
    close(fd);
}

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer) ||                           \
    defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define SANITIZED /* and in need of all address space */
#endif

/* Memory enough for all that the tests do, and not for a length out of a forged file. */
static void limit_memory(void)
{
#ifndef SANITIZED
    struct rlimit limit = {1u << 30, 1u << 30};
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
#endif
}

static int setup(void **state)
{
    (void)state;
    crn_part *part;
    limit_memory();
    disk_scratch(scratch, "damage");
    dir = open(scratch, O_RDONLY | O_DIRECTORY);
    model_init(&past, test_seed(), 6000);
    assert_ok(crn_part_create(dir, "part", &model_id, &quick, &part));
    for (uint64_t version = 1; version <= 5; version++) {
        model_step(&past);
        assert_ok(model_mark(&past, part, version, 3, NULL));
    }
    model_init(&other, test_seed() + 1, 3000);
    model_step(&other);
    written = list_of_part(part);
    crn_part_close(part);
    whole = load("part", &nwhole);
    file = malloc(nwhole + 4096);
    assert_non_null(file);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    model_done(&past);
    model_done(&other);
    free(whole);
    free(file);
    close(dir);
    remove_tree(scratch);
    return 0;
}

static void must_refuse(cairn_status rc)
{
    if (rc != CAIRN_ECORRUPT && rc != CAIRN_EUNSUPPORTED && rc != CAIRN_ENOTFOUND)
        fail_msg("%s: %s: %s", where, cairn_strerror(rc), crn_err_peek()->text);
    assert_true(strlen(crn_err_peek()->text) > 0);
}

/* Marks of a damaged part read back right or are refused; how many of them read. */
static int read_marks(crn_part *part)
{
    mark_list l = list_of_part(part);
    int good = 0;
    for (size_t i = 0; i < l.n; i++) {
        cairn_status rc = model_check(&past, part, l.version[i]);
        good += rc == CAIRN_OK;
        if (rc < 0)
            must_refuse(rc); /* what is wrong would be CAIRN_EMISMATCH */
    }
    return good;
}

/* Open what is in file; a mark of top on top of it must succeed if it opens at all. */
static int try_part(size_t n, model *top)
{
    crn_part *part;
    ntried++;
    save("part", file, n);
    cairn_status rc = crn_part_open(dir, "part", &model_id, false, &quick, &part);
    if (rc < 0) {
        must_refuse(rc);
        return 0;
    }
    int good = read_marks(part);
    crn_part_close(part);
    if (ntried % 8 != 0)
        return good;
    rc = crn_part_open(dir, "part", &model_id, true, &quick, &part);
    if (rc < 0)
        fail_msg("%s: opens to read, not to write: %s", where, crn_err_peek()->text);
    rc = model_mark(top, part, 40, 3, NULL);
    if (rc < 0 || model_check(top, part, 40) < 0)
        fail_msg("%s: no mark on top: %s", where, crn_err_peek()->text);
    crn_part_close(part);
    return good;
}

static int try_cut(size_t n)
{
    snprintf(where, sizeof where, "cut to %zu of %zu bytes", n, nwhole);
    memcpy(file, whole, nwhole);
    return try_part(n, &past);
}

static int try_flip(size_t bit)
{
    snprintf(where, sizeof where, "bit %zu of byte %zu flipped", bit % 8, bit / 8);
    memcpy(file, whole, nwhole);
    file[bit / 8] ^= (unsigned char)(1u << bit % 8);
    return try_part(nwhole, &other); /* blocks that have rotted unseen would be inherited */
}

/* --- cuts, flips, zeros ----------------------------------------------------------------------- */

static void test_every_cut(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 1);
    for (size_t n = 0; n <= nwhole; n += DISK_SECTOR) {
        (void)try_cut(n);
        (void)try_cut(n + 1 <= nwhole ? n + 1 : n);
        (void)try_cut(n > 0 ? n - 1 : 0);
    }
    for (int i = 0; i < 300; i++)
        (void)try_cut(crn_rng_below(&rng, nwhole));
    assert_int_equal(try_cut(nwhole), (int)written.n);
}

/* Where superblocks, catalogues, records and tables lie: the rest is blocks and free space. */
static void find_structure(bool *is_structure)
{
    crn_part *part;
    save("part", whole, nwhole);
    assert_ok(crn_part_open(dir, "part", &model_id, false, &quick, &part));
    for (size_t at = 0; at < DATA_START; at += COPY_OFFSET)
        memset(is_structure + at, 1, SUPER_BYTES);
    const part_ref *c = &part->super.catalogue;
    memset(is_structure + c->off, 1, c->nbytes);
    for (size_t i = 0; i < part->list.n; i++)
        memset(is_structure + part->list.at[i].ref.off, 1, part->list.at[i].ref.nbytes);
    for (size_t i = 0; i < part->cat.n; i++) {
        crn_mark *m;
        const part_ref *r = &part->cat.at[i].record;
        memset(is_structure + r->off, 1, r->nbytes);
        assert_ok(crn_part_load(part, part->cat.at[i].version, &m));
        for (size_t v = 0; v < m->nvars; v++)
            memset(is_structure + m->var[v].place.off, 1, m->var[v].place.nbytes);
        for (size_t p = 0; p < m->npages; p++)
            memset(is_structure + m->page[p].off, 1, m->page[p].nbytes);
        crn_mark_free(m);
    }
    crn_part_close(part);
}

static void test_every_flip(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 2);
    bool *is_structure = calloc(nwhole, sizeof *is_structure);
    find_structure(is_structure);
    int all = (int)written.n;
    for (size_t byte = 0; byte < nwhole; byte++) {
        /* every bit of what was found by the newest superblock, a few bits of the rest */
        bool super = byte < DATA_START;
        int nbits = is_structure[byte] ? (super && byte % COPY_OFFSET > 112 ? 1 : 8) : 0;
        for (int bit = 0; bit < nbits; bit++) {
            int good = try_flip(8 * byte + (size_t)bit);
            if (super && good != all) /* the copy beside it is whole */
                fail_msg("%s: %d of %d marks read", where, good, all);
        }
    }
    for (int i = 0; i < 500; i++)
        (void)try_flip(crn_rng_below(&rng, 8 * nwhole));
    free(is_structure);
}

static void test_zeroed_superblocks(void **state)
{
    (void)state;
    crn_part *part;
    for (int slot = 0; slot < NSLOTS; slot++) {
        snprintf(where, sizeof where, "slot %d zeroed", slot);
        memcpy(file, whole, nwhole);
        memset(file + (size_t)slot * SLOT_BYTES, 0, SLOT_BYTES);
        assert_true(try_part(nwhole, &past) >= 1);
        save("part", file, nwhole);
        assert_ok(crn_part_open(dir, "part", &model_id, false, &quick, &part));
        assert_true(list_of_part(part).n >= 2);
        crn_part_info info;
        crn_part_describe(part, &info);
        assert_true(info.fallback);
        crn_part_close(part);
    }
    memset(file, 0, DATA_START);
    save("part", file, nwhole);
    assert_fails(crn_part_open(dir, "part", NULL, false, &quick, &part), CAIRN_ECORRUPT,
                 "'part': no whole superblock");
}

static void test_newer_format(void **state)
{
    (void)state;
    crn_part *part;
    for (size_t at = 0; at < DATA_START; at += COPY_OFFSET) {
        memcpy(file, whole, nwhole);
        heal_put(file + at + HEAL_SUPER_FORMAT, 4, CAIRN_FORMAT + 1);
        heal_part(file, nwhole);
        save("part", file, nwhole);
        assert_fails(crn_part_open(dir, "part", NULL, true, &quick, &part), CAIRN_EUNSUPPORTED,
                     "'part': format 3, but this version of cairn reads formats 1 to 2");
    }
}

/* --- lies with right digests --------------------------------------------------------------------
 */

/* The newest copy of the superblock, and what it leads to. */
typedef struct anatomy {
    unsigned char *super, *catalogue, *list_page, *entry, *record, *page, *variable;
    unsigned char *kind, *table_ref, *table; /* of a variable whose table is a piece of its own, */
    unsigned char *near;                     /* and an entry of one that has it in the page */
    size_t ncatalogue, nlist_page, nrecord, npage, ntable;
} anatomy;

/* Look for a variable of either kind in a page. */
static void dissect_page(heal *h, anatomy *a)
{
    uint64_t nblocks;
    for (size_t at = HEAL_PAGE; (at = heal_declaration(a->page, a->npage, at, &nblocks)) > 0;) {
        unsigned char *kind = a->page + at++;
        const size_t entry = *kind & 1 ? 2 * HEAL_TABLE : HEAL_TABLE;
        if (*kind & 2 && nblocks > 0)
            a->near = a->page + at;
        if (!(*kind & 2)) {
            a->kind = kind;
            a->table_ref = a->page + at;
            a->table = heal_follow(h, a->table_ref, &a->ntable);
        }
        at += *kind & 2 ? (size_t)nblocks * entry : 32;
    }
}

static anatomy dissect(void)
{
    anatomy a = {0};
    heal h = {file, nwhole, 1000};
    for (size_t copy = 0; copy < DATA_START; copy += COPY_OFFSET)
        if (!a.super ||
            heal_get(file + copy + HEAL_SUPER_SEQ, 8) > heal_get(a.super + HEAL_SUPER_SEQ, 8))
            a.super = file + copy;
    a.catalogue = heal_follow(&h, a.super + HEAL_SUPER_REF, &a.ncatalogue);
    a.list_page = heal_follow(&h, a.catalogue + a.ncatalogue - HEAL_LIST, &a.nlist_page);
    a.entry = a.list_page + a.nlist_page - HEAL_ENTRY;
    a.record = heal_follow(&h, a.entry + HEAL_ENTRY_REF, &a.nrecord);
    a.page = heal_follow(&h, a.record + HEAL_RECORD, &a.npage);
    a.variable = a.page + HEAL_PAGE;
    dissect_page(&h, &a);
    assert_non_null(a.table_ref);
    assert_non_null(a.near);
    return a;
}

/* Where a lie is told: field of a structure, its width. */
typedef struct field {
    const char *what;
    unsigned char *at;
    int nbytes;
} field;

static const uint64_t absurd[] = {
    0,          1,          7,          255,       256,        511,          512,
    4095,       4096,       8191,       8192,      UINT16_MAX, 1u << 24,     INT32_MAX,
    UINT32_MAX, 1ull << 32, 1ull << 40, INT64_MAX, UINT64_MAX, -(1ull << 9), -(1ull << 12)};

/* All superblocks tell the same lie, so that none is left to fall back on. */
static void lie_everywhere(size_t off, int nbytes, uint64_t value)
{
    anatomy a = dissect();
    unsigned char copy[SUPER_BYTES];
    memcpy(copy, a.super, sizeof copy);
    heal_put(copy + off, nbytes, value);
    for (size_t at = 0; at < DATA_START; at += COPY_OFFSET)
        memcpy(file + at, copy, sizeof copy);
}

static void try_lie(const char *what, uint64_t value)
{
    snprintf(where, sizeof where, "%s says %" PRIu64, what, value);
    heal_part(file, nwhole);
    ntried++;
    crn_part *part;
    save("part", file, nwhole);
    cairn_status rc = crn_part_open(dir, "part", NULL, false, &quick, &part);
    if (rc < 0) {
        must_refuse(rc);
        return;
    }
    crn_part_info info;
    crn_part_describe(part, &info);
    for (size_t i = 0; i < info.nmarks; i++)
        (void)model_check(&past, part, crn_part_version(part, i));
    crn_part_close(part);
    if (crn_part_open(dir, "part", NULL, true, &quick, &part) < 0)
        return;
    rc = model_mark(&past, part, UINT64_MAX, 2, NULL);
    if (rc == CAIRN_OK && model_check(&past, part, UINT64_MAX) < 0)
        fail_msg("%s: the mark on top is gone: %s", where, crn_err_peek()->text);
    assert_true(rc != CAIRN_ENOMEM);
    crn_part_close(part);
}

static void test_absurd_superblocks(void **state)
{
    (void)state;
    const struct {
        const char *what;
        size_t off;
        int nbytes;
    } fields[] = {{"sequence", HEAL_SUPER_SEQ, 8},
                  {"end", HEAL_SUPER_END, 8},
                  {"catalogue's place", HEAL_SUPER_REF, 8},
                  {"catalogue's length", HEAL_SUPER_REF + 8, 8},
                  {"dropped", HEAL_SUPER_DROPPED, 4},
                  {"rank", 44, 4},
                  {"nranks", 48, 4}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        for (size_t k = 0; k < sizeof absurd / sizeof *absurd; k++) {
            memcpy(file, whole, nwhole);
            lie_everywhere(fields[i].off, fields[i].nbytes, absurd[k]);
            try_lie(fields[i].what, absurd[k]);
        }
}

/* Fields of what the newest superblock leads to. */
static size_t list_fields(const anatomy *a, field *ret)
{
    unsigned char *text_end = a->kind - 32 - 17; /* where item begins, without dimensions */
    const field all[] = {
        {"catalogue's magic", a->catalogue, 4},
        {"catalogue's count", a->catalogue + 4, 4},
        {"place of a catalogue's page", a->catalogue + 8, 8},
        {"length of a catalogue's page", a->catalogue + 16, 8},
        {"entries of a catalogue's page", a->catalogue + 40, 4},
        {"magic of a catalogue's page", a->list_page, 4},
        {"count of a catalogue's page", a->list_page + 4, 4},
        {"length of a mark's name", a->entry - 2, 2},
        {"mark's version", a->entry, 8},
        {"mark's sequence", a->entry + 8, 8},
        {"record's place", a->entry + 24, 8},
        {"record's length", a->entry + 32, 8},
        {"record's magic", a->record, 4},
        {"number of variables", a->record + 4, 4},
        {"record's version", a->record + 8, 8},
        {"place of a record's page", a->record + 32, 8},
        {"length of a record's page", a->record + 40, 8},
        {"magic of a record's page", a->page, 4},
        {"variables of a record's page", a->page + 4, 4},
        {"sequence of a record's page", a->page + 8, 8},
        {"length of a name", a->variable, 2},
        {"item", text_end, 4},
        {"block", text_end + 4, 4},
        {"length of a variable", text_end + 8, 8},
        {"dimensions", text_end + 16, 1},
        {"changed blocks", a->kind - 32, 8},
        {"kind of table", a->kind, 1},
        {"table's place", a->table_ref, 8},
        {"table's length", a->table_ref + 8, 8},
        {"block's place", a->table, 8},
        {"block's length", a->table + 8, 4},
        {"codec", a->table + 12, 4},
        {"place of a block in the page", a->near, 8},
        {"length of a block in the page", a->near + 8, 4},
        {"codec of a block in the page", a->near + 12, 4},
    };
    memcpy(ret, all, sizeof all);
    return sizeof all / sizeof *all;
}

static void test_absurd_numbers(void **state)
{
    (void)state;
    field fields[64];
    memcpy(file, whole, nwhole);
    anatomy a = dissect();
    size_t n = list_fields(&a, fields);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof absurd / sizeof *absurd; k++) {
            memcpy(file, whole, nwhole);
            heal_put(fields[i].at, fields[i].nbytes, absurd[k]);
            try_lie(fields[i].what, absurd[k]);
        }
}

/* The newest mark of what is in file is refused as damaged, not read wrong. */
static void must_refuse_newest(void)
{
    crn_part *part;
    save("part", file, nwhole);
    cairn_status rc = crn_part_open(dir, "part", NULL, false, &quick, &part);
    if (rc == CAIRN_OK) {
        rc = model_check(&past, part, written.version[written.n - 1]);
        crn_part_close(part);
    }
    /* not there at all: making the digests right has broken the newest superblock */
    if (rc != CAIRN_ECORRUPT && rc != CAIRN_ENOTFOUND)
        fail_msg("%s: is believed", where);
}

/* References that lead where something else lies. */
static void test_structures_in_each_other(void **state)
{
    (void)state;
    memcpy(file, whole, nwhole);
    anatomy a = dissect();
    const uint64_t cat = heal_get(a.super + HEAL_SUPER_REF, 8);
    const uint64_t record = heal_get(a.entry + HEAL_ENTRY_REF, 8);
    const uint64_t table = heal_get(a.table_ref, 8);
    const struct {
        const char *what;
        unsigned char *at;
        uint64_t value;
    } lies[] = {
        {"a block inside the superblocks", a.table, SLOT_BYTES},
        {"a block that is its own table", a.table, table},
        {"a block that is the catalogue", a.table, cat},
        {"a table inside the superblocks", a.table_ref, 0},
        {"a table that is its record", a.table_ref, record},
        {"a page that is its record", a.record + HEAL_RECORD, record},
        {"a page inside the superblocks", a.record + HEAL_RECORD, COPY_OFFSET},
        {"a page of the catalogue that is the catalogue", a.catalogue + 8, cat},
        {"a record that is the catalogue", a.entry + HEAL_ENTRY_REF, cat},
        {"a record inside the superblocks", a.entry + HEAL_ENTRY_REF, COPY_OFFSET},
        {"a catalogue that is a record", a.super + HEAL_SUPER_REF, record},
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        memcpy(file, whole, nwhole);
        heal_put(lies[i].at, 8, lies[i].value);
        try_lie(lies[i].what, lies[i].value);
        if (lies[i].value < DATA_START)
            must_refuse_newest();
    }
}

/* Two marks of one version: which of them is meant? Neither is believed. */
static void test_versions_that_do_not_grow(void **state)
{
    (void)state;
    crn_part *part;
    memcpy(file, whole, nwhole);
    anatomy a = dissect();
    for (size_t at = 0; at < DATA_START; at += COPY_OFFSET)
        memcpy(file + at, a.super, SUPER_BYTES);
    heal_put(a.entry, 8, heal_get(a.entry - 2 - HEAL_ENTRY, 8));
    heal_part(file, nwhole);
    save("part", file, nwhole);
    assert_fails(crn_part_open(dir, "part", NULL, false, &quick, &part), CAIRN_ECORRUPT,
                 "catalogue");
}

/* --- a trail ---------------------------------------------------------------------------------- */

typedef struct findings {
    int n;
    char first[CRN_ERR_TEXT];
    char variable[32];
    uint64_t block;
} findings;

static int note(void *arg, const cairn_finding *f)
{
    findings *to = arg;
    if (f->status == CAIRN_OK)
        return 0;
    if (to->n++ == 0) {
        snprintf(to->first, sizeof to->first, "%s", f->text);
        snprintf(to->variable, sizeof to->variable, "%s", f->variable ? f->variable : "");
        to->block = f->block;
    }
    return 0;
}

static void verify(const char *path, findings *ret)
{
    cairn_trail *t;
    memset(ret, 0, sizeof *ret);
    assert_ok(cairn_trail_open(path, &t));
    cairn_status rc = cairn_trail_verify(t, 0, CAIRN_ALL_MARKS, note, ret);
    assert_int_equal(rc, ret->n ? CAIRN_ECORRUPT : CAIRN_OK);
    cairn_trail_close(t);
}

/* Every block of every variable, damaged in turn, is named. */
static void test_verify_names_each_block(void **state)
{
    (void)state;
    char path[96], name[128];
    findings f;
    size_t n;
    snprintf(path, sizeof path, "%s/t", scratch);
    snprintf(name, sizeof name, "t/r/series-1/000/part-000001");
    assert_ok(small_trail(path, "r", 2, 1, 1));
    verify(path, &f);
    assert_int_equal(f.n, 0);
    unsigned char *part = load(name, &n);
    const uint64_t nblocks = SMALL_CELLS * sizeof(double) / SMALL_BLOCK;
    for (uint64_t block = 0; block < nblocks; block++) {
        size_t at = DATA_START + block * SMALL_BLOCK + 11 * (size_t)block;
        part[at] ^= 4;
        save(name, part, n);
        part[at] ^= 4;
        verify(path, &f);
        assert_int_equal(f.n, 1);
        assert_string_equal(f.variable, "temperature");
        assert_int_equal(f.block, block);
        assert_non_null(strstr(f.first, "rank 1, variable 'temperature', block"));
    }
    free(part);
}

static void test_swapped_files(void **state)
{
    (void)state;
    char path[96];
    size_t n0, n1;
    findings f;
    const char *zero = "s/r/series-1/000/part-000000", *one = "s/r/series-1/000/part-000001";
    snprintf(path, sizeof path, "%s/s", scratch);
    assert_ok(small_trail(path, "r", 2, 2, 2));
    unsigned char *p0 = load(zero, &n0), *p1 = load(one, &n1);
    save(zero, p1, n1);
    verify(path, &f);
    assert_non_null(strstr(f.first, "is the part of rank 1 of 2, series 1, not of rank 0"));
    save(zero, p0, n0);
    verify(path, &f);
    assert_int_equal(f.n, 0);
    free(p0);
    free(p1);
}

/* A forged manifest may name any number of ranks; looking for them must come to an end. */
static void test_absurd_manifests(void **state)
{
    (void)state;
    crn_manifest m = {.seq = 1}, back;
    crn_buf buf = {0};
    assert_ok(crn_vec_push(&m.mark, (crn_manifest_mark){.version = 1, .nranks = 1, .series = 1}));
    crn_manifest_put(&m, &buf);
    for (size_t at = 8; at < buf.n - 16; at++)
        for (int k = 0; k < 256; k += 5) {
            unsigned char kept = buf.at[at];
            buf.at[at] = (unsigned char)k;
            heal_manifest(buf.at, buf.n);
            cairn_status rc = crn_manifest_parse(buf.at, buf.n, &back);
            if (rc == CAIRN_OK) {
                assert_true(back.mark.n == 1 && back.mark.at[0].nranks <= CRN_RANKS_MAX);
                crn_manifest_done(&back);
            } else {
                must_refuse(rc);
            }
            buf.at[at] = kept;
        }
    crn_buf_done(&buf);
    crn_manifest_done(&m);
}

static void test_the_count(void **state)
{
    (void)state;
    print_message("%llu damaged files\n", (unsigned long long)ntried);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_every_flip),
        cmocka_unit_test(test_zeroed_superblocks),
        cmocka_unit_test(test_newer_format),
        cmocka_unit_test(test_absurd_superblocks),
        cmocka_unit_test(test_absurd_numbers),
        cmocka_unit_test(test_structures_in_each_other),
        cmocka_unit_test(test_versions_that_do_not_grow),
        cmocka_unit_test(test_verify_names_each_block),
        cmocka_unit_test(test_swapped_files),
        cmocka_unit_test(test_absurd_manifests),
        cmocka_unit_test(test_the_count),
    };
    return cmocka_run_group_tests_name("damage", tests, setup, teardown);
}
