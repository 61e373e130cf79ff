/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Streams: where variables lie, what a unit's id follows, and reading units back from a part, with
 * blocks that are smaller and larger than a unit.
 */
#include <inttypes.h>

#include "harness/harness.h"
#include "level/level_encoded.h"

typedef struct var {
    uint64_t nbytes;
    uint32_t block;
    uint64_t start; /* where it must lie in the stream */
} var;

/* A small one, one that just fits, one that does not, large ones with all kinds of blocks. */
static const var vars[] = {
    {1000, 1024, 0},
    {0, 1024, 1000},
    {CRN_UNIT - 1000, 4096, 1000},
    {10, 1024, CRN_UNIT},
    {CRN_UNIT, 1 << 18, 2 * CRN_UNIT},
    {5 * CRN_UNIT + 77, 1 << 14, 3 * CRN_UNIT},
    {300, 1 << 20, 8 * CRN_UNIT + 77},
    {9 * CRN_UNIT + 5, 1 << 18, 9 * CRN_UNIT},
    {3 * CRN_UNIT, CRN_UNIT, 19 * CRN_UNIT},
};
enum { NVARS = sizeof vars / sizeof *vars, NUNITS = 22 };

static unsigned char byte_of(size_t v, uint64_t i)
{
    crn_digest d = crn_digest_of(&(uint64_t[2]){v, i / 16}, 16);
    return d.b[i % 16];
}

typedef struct fixture {
    char dir[64];
    int fd;
    crn_part *part;
    unsigned char *stream; /* as it must be */
} fixture;

static void put_mark(fixture *f, uint64_t version)
{
    crn_draft *d;
    assert_ok(crn_draft_begin(f->part, version, &d));
    for (size_t i = 0; i < NVARS; i++) {
        char name[16];
        size_t number;
        snprintf(name, sizeof name, "v%zu", i);
        assert_ok(crn_draft_add(d,
                                &(crn_var_spec){.name = name,
                                                .type = "uint8",
                                                .item = 1,
                                                .block = vars[i].block,
                                                .nbytes = vars[i].nbytes},
                                &number));
        assert_ok(crn_draft_put_all(d, number, f->stream + vars[i].start));
    }
    assert_ok(crn_draft_commit(d, CRN_KEEP_ALL, NULL));
}

static int setup(void **state)
{
    static fixture f;
    crn_part_options opt = {.depth = 8};
    make_scratch(f.dir, sizeof f.dir, "stream");
    f.fd = open(f.dir, O_RDONLY | O_DIRECTORY);
    assert_ok(crn_part_create(f.fd, "part", &(crn_part_id){.nranks = 1}, &opt, &f.part));
    f.stream = calloc(NUNITS, CRN_UNIT);
    for (size_t v = 0; v < NVARS; v++)
        for (uint64_t i = 0; i < vars[v].nbytes; i++)
            f.stream[vars[v].start + i] = byte_of(v, i);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    crn_part_close(f->part);
    close(f->fd);
    remove_tree(f->dir);
    free(f->stream);
    return 0;
}

static crn_mark *load(fixture *f, uint64_t version)
{
    crn_mark *m;
    assert_ok(crn_part_load(f->part, version, &m));
    for (size_t i = 0; i < m->nvars; i++)
        assert_ok(crn_mark_table(f->part, m, &m->var[i]));
    return m;
}

static void test_variables_do_not_cross_units_needlessly(void **state)
{
    fixture *f = *state;
    crn_stream s;
    put_mark(f, 1);
    crn_mark *m = load(f, 1);
    assert_ok(crn_stream_init(&s, m));
    assert_int_equal(s.nunits, NUNITS);
    for (size_t i = 0; i < NVARS; i++)
        assert_int_equal(s.start[i], vars[i].start);
    crn_stream_done(&s);
    crn_mark_free(m);
}

static void test_read_every_range(void **state)
{
    fixture *f = *state;
    crn_stream s;
    put_mark(f, 1);
    crn_mark *m = load(f, 1);
    assert_ok(crn_stream_init(&s, m));
    crn_stream_reader r = {.stream = &s, .part = f->part};
    unsigned char *got = malloc((size_t)NUNITS * CRN_UNIT);
    for (uint64_t first = 0; first < NUNITS; first++)
        for (uint64_t n = 1; n <= NUNITS - first; n += first % 3 + 1) {
            memset(got, 0xee, n * CRN_UNIT);
            assert_ok(crn_stream_read(&r, first, n, got));
            assert_memory_equal(got, f->stream + first * CRN_UNIT, n * CRN_UNIT);
        }
    free(got);
    crn_stream_reader_done(&r);
    crn_stream_done(&s);
    crn_mark_free(m);
}

/* Change one byte of the stream: the ids of exactly the units of its block change. */
static void change_byte(fixture *f, const crn_digest *before, size_t v, uint64_t i)
{
    crn_digest after[NUNITS];
    crn_stream s;
    uint64_t version = crn_part_version(f->part, 0) + 1;
    f->stream[vars[v].start + i] ^= 1;
    put_mark(f, version);
    assert_ok(crn_part_trim(f->part, 1));
    f->stream[vars[v].start + i] ^= 1;
    crn_mark *m = load(f, version);
    assert_ok(crn_stream_init(&s, m));
    assert_ok(crn_stream_ids(&s, after));
    uint64_t block = i / vars[v].block * vars[v].block;
    uint64_t from = vars[v].start + block;
    uint64_t to = vars[v].start + CRN_MIN(block + vars[v].block, vars[v].nbytes);
    for (uint64_t unit = 0; unit < NUNITS; unit++) {
        bool within = unit * CRN_UNIT < to && (unit + 1) * CRN_UNIT > from;
        if (crn_digest_equal(&before[unit], &after[unit]) == within)
            fail_msg("variable %zu, byte %" PRIu64 ": unit %" PRIu64 " %s", v, i, unit,
                     within ? "keeps its id" : "gets another id");
    }
    crn_stream_done(&s);
    crn_mark_free(m);
}

static void test_ids_follow_content(void **state)
{
    fixture *f = *state;
    crn_digest before[NUNITS];
    crn_stream s;
    put_mark(f, 1);
    crn_mark *m = load(f, 1);
    assert_ok(crn_stream_init(&s, m));
    assert_ok(crn_stream_ids(&s, before));
    for (uint64_t i = 0; i < NUNITS; i++)
        for (uint64_t k = 0; k < i; k++)
            assert_false(crn_digest_equal(&before[i], &before[k]));
    crn_stream_done(&s);
    crn_mark_free(m);
    for (size_t v = 0; v < NVARS; v++) {
        if (vars[v].nbytes == 0)
            continue;
        change_byte(f, before, v, 0);
        change_byte(f, before, v, vars[v].nbytes / 2);
        change_byte(f, before, v, vars[v].nbytes - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_variables_do_not_cross_units_needlessly, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_read_every_range, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ids_follow_content, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
