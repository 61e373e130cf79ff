/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Trace files: whole, cut, changed, of the future, and what a killed run leaves.
 *
 * NEEDS: zstd random123
 */
#include "harness/harness.h"

#include "tracefmt/tracefmt.h"

/* A small trace of one rank: a loop of sends and opens. */
static crn_trace *make(uint32_t rank, uint32_t nranks)
{
    crn_tables tables;
    crn_build build, *lane = &build;
    crn_trace *t;
    assert_ok(crn_tables_init(&tables));
    assert_ok(crn_build_init(&build, rank, 100, true));
    for (uint32_t i = 0; i < 300; i++) {
        crn_record r = {.call = CRN_CALL_MPI_Send, .ncolumns = 5, .comm_rank = rank};
        int n;
        r.comm_size = nranks;
        r.value[0] = i % 7;
        r.value[2] = (rank + 1) % nranks;
        r.start = i * 100 + 1;
        r.end = r.start + 50;
        assert_ok(crn_tables_site(&tables, (crn_site){.off = i % 3 + 1}, &r.site));
        if (i % 50 == 0) {
            r.call = CRN_CALL_open;
            r.ncolumns = 3 + 1;
            assert_ok(crn_tables_pattern(&tables, "a/b%c-07.dat", &r.value[3], &n, &r.name));
            assert_int_equal(n, 1);
        }
        crn_build_add(&build, &r);
    }
    assert_ok(crn_build_trace(&lane, 1, &tables, rank, nranks, &t));
    crn_build_done(&build);
    crn_tables_done(&tables);
    return t;
}

static uint64_t count_events(const crn_trace *t, uint32_t rank)
{
    crn_walk *w;
    crn_traced_event e;
    uint64_t n = 0;
    assert_ok(crn_walk_open(t, 0, rank, 0, &w));
    while (crn_walk_next(w, &e))
        n++;
    crn_walk_close(w);
    return n;
}

static void test_save_and_load(void **state)
{
    (void)state;
    char dir[64], path[96];
    crn_trace *t = make(0, 1), *again;
    struct stat st;
    snprintf(path, sizeof path, "%s/t.ctr", make_scratch(dir, sizeof dir, "trace"));
    const mode_t was = umask(027);
    assert_ok(crn_trace_save(t, path));
    umask(was);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_ok(crn_trace_load(path, &again));
    assert_int_equal(count_events(again, 0), 300);
    assert_true(crn_trace_complete(again));
    assert_fails(crn_trace_load(dir, &again), CAIRN_EINVAL, "is not a trace");
    crn_trace_free(again);
    crn_trace_free(t);
    remove_tree(dir);
}

static void expect_same(crn_trace *t, const crn_buf *bytes)
{
    crn_buf b = {0};
    assert_ok(crn_trace_encode(t, CRN_TRACE_BEST, &b));
    assert_int_equal(b.n, bytes->n);
    assert_memory_equal(b.at, bytes->at, b.n);
    crn_buf_done(&b);
    crn_trace_free(t);
}

static void test_cut_and_changed_files_are_refused(void **state)
{
    (void)state;
    crn_trace *t = make(0, 1), *again;
    crn_buf b = {0}, whole = {0};
    crn_rng r = crn_rng_of(test_seed(), 1);
    assert_ok(crn_trace_encode(t, CRN_TRACE_BEST, &b));
    assert_ok(crn_trace_encode(t, CRN_TRACE_BEST, &whole));
    for (size_t n = 0; n < b.n; n++)
        assert_int_equal(crn_trace_decode(b.at, n, &again), CAIRN_ECORRUPT);
    for (int i = 0; i < 2000; i++) {
        size_t at = crn_rng_below(&r, b.n);
        unsigned char bit = (unsigned char)(1u << crn_rng_below(&r, 8));
        b.at[at] ^= bit;
        if (crn_trace_decode(b.at, b.n, &again) == CAIRN_OK)
            expect_same(again, &whole); /* padding inside zstd's frame */
        b.at[at] ^= bit;
    }
    b.at[8] = 99;
    assert_fails(crn_trace_decode(b.at, b.n, &again), CAIRN_EUNSUPPORTED, "format 99");
    crn_buf_done(&b);
    crn_buf_done(&whole);
    crn_trace_free(t);
}

static void test_patterns_of_names(void **state)
{
    (void)state;
    const char *names[] = {
        "out-7.012", "100%.txt",          "a",   "", "x%d00099999999999999999999z",
        "0",         "1-2-3-4-5-6-7-8.9", "%%%7"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char pattern[200], name[200];
        int64_t number[CRN_NAME_NUMBERS];
        int n = crn_pattern_split(names[i], pattern, number);
        assert_int_equal(crn_pattern_numbers(pattern), n);
        assert_true(crn_pattern_join(pattern, number, n, name, sizeof name));
        assert_string_equal(name, names[i]);
        assert_false(crn_pattern_join(pattern, number, n, name, strlen(names[i])));
        int64_t again[CRN_NAME_NUMBERS];
        int nagain;
        assert_true(crn_pattern_match(pattern, names[i], again, &nagain));
        assert_int_equal(nagain, n);
        for (int k = 0; k < n; k++)
            assert_int_equal(again[k], number[k]);
    }
    char buf[20], pattern[64];
    int64_t number[CRN_NAME_NUMBERS];
    crn_pattern_split("tmp/1/2/run-3/4/5/6/out-7.08", pattern, number);
    assert_string_equal(pattern, "tmp/1/2/run-%d/%d/%d/%d/out-%d.%02d"); /* the last ones count */
    assert_int_equal(number[5], 8);
    assert_false(crn_pattern_join("%99999d", (int64_t[]){1}, 1, buf, sizeof buf));
    assert_false(crn_pattern_join("%d", NULL, 0, buf, sizeof buf));
}

/* A name belongs to the patterns that write it so, and to no other. */
static void test_patterns_match(void **state)
{
    (void)state;
    const struct {
        const char *pattern, *name;
        bool match;
    } cases[] = {
        {"a%03d", "a007", true}, {"a%03d", "a1234", true},
        {"a%03d", "a07", false}, {"a%03d", "a0012", false},
        {"a%d", "a0", true},     {"a%d", "a07", false},
        {"a%d", "a7b", false},   {"a%db", "a7", false},
        {"a%d", "a", false},     {"a%%d", "a%d", true},
        {"a%%d", "a%%d", false}, {"a1/%d", "a12/3", false},
        {"a1/%d", "a1/3", true}, {"%9999d", "1", false},
        {"%", "1", false},       {"%d", "9223372036854775808", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t number[CRN_NAME_NUMBERS];
        int n;
        assert_int_equal(crn_pattern_match(cases[i].pattern, cases[i].name, number, &n),
                         cases[i].match);
    }
    assert_int_equal(crn_pattern_hash("x/7/a-100"), crn_pattern_hash("x/12345/a-007"));
    assert_true(crn_pattern_hash("x/7/a-100") != crn_pattern_hash("x/7/b-100"));
}

/* What comes again is found, whatever came in between; a width that fits both is kept. */
static void test_tables_find_again(void **state)
{
    (void)state;
    crn_tables t;
    int64_t number[CRN_NAME_NUMBERS];
    uint32_t first[3], again;
    int n;
    assert_ok(crn_tables_init(&t));
    assert_ok(crn_tables_pattern(&t, "out-008", number, &n, &first[0]));
    assert_ok(crn_tables_pattern(&t, "in-8", number, &n, &first[1]));
    for (int i = 0; i < 300; i++) {
        char name[32];
        snprintf(name, sizeof name, "out-%03d", 5 * i);
        assert_ok(crn_tables_pattern(&t, name, number, &n, &again));
        assert_int_equal(again, first[0]);
        assert_int_equal(number[0], 5 * i);
        snprintf(name, sizeof name, "%c%c", 'a' + i / 26, 'a' + i % 26);
        assert_ok(crn_tables_string(&t, name, &again));
    }
    assert_ok(crn_tables_pattern(&t, "in-900", number, &n, &again));
    assert_int_equal(again, first[1]);
    assert_int_equal(t.string.n, 3 + 300);
    crn_tables_done(&t);
}

static void test_types_are_known_by_their_contents(void **state)
{
    (void)state;
    crn_tables t;
    uint32_t first, other, again;
    const int64_t value[] = {2, 5, 5, 0, 64, 0}; /* two blocks of five, 64 bytes apart */
    crn_contents c = {
        .combiner = CRN_COMBINER_HINDEXED, .nints = 3, .naddrs = 2, .ntypes = 1, .value = value};
    crn_contents moved = c, cut = c;
    moved.value = (const int64_t[]){2, 5, 5, 0, 72, 0};
    cut.nints = 2; /* the same values, shared out in another way */
    cut.naddrs = 3;
    assert_ok(crn_tables_init(&t));
    assert_false(crn_tables_find_type(&t, &c, &first));
    assert_ok(crn_tables_describe_type(&t, &c, &(crn_type){.nbytes = 40}, &first));
    assert_false(crn_tables_find_type(&t, &moved, &other));
    assert_false(crn_tables_find_type(&t, &cut, &other));
    assert_ok(crn_tables_describe_type(&t, &moved, &(crn_type){.nbytes = 40}, &other));
    assert_true(crn_tables_find_type(&t, &c, &again) && again == first);
    assert_true(crn_tables_find_type(&t, &moved, &again) && again == other);
    crn_tables_done(&t);
}

static void test_what_a_killed_run_left(void **state)
{
    (void)state;
    char dir[64], path[96], name[128];
    crn_trace *all;
    uint64_t at;
    snprintf(path, sizeof path, "%s/t.ctr", make_scratch(dir, sizeof dir, "left"));
    assert_fails(crn_trace_salvage(path, &all), CAIRN_ENOTFOUND, "no rank left anything");
    for (uint32_t rank = 0; rank < 12; rank++) {
        crn_trace *one = make(rank, 12);
        int64_t self = rank;
        assert_ok(crn_seq_of(&self, 1, &one->cut));
        snprintf(name, sizeof name, "%s.%u", path, rank);
        if (rank != 5)
            assert_ok(crn_trace_save(one, name));
        if (rank == 10)
            assert_int_equal(truncate(name, 100), 0);
        crn_trace_free(one);
    }
    assert_ok(crn_trace_salvage(path, &all));
    assert_false(crn_trace_complete(all));
    assert_int_equal(crn_seq_count(&all->missing), 2);
    assert_true(crn_seq_find(&all->missing, 5, &at) && crn_seq_find(&all->missing, 10, &at));
    assert_int_equal(crn_seq_count(&all->cut), 10);
    assert_int_equal(count_events(all, 11), 300);
    crn_trace_free(all);
    remove_tree(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_save_and_load),
        cmocka_unit_test(test_cut_and_changed_files_are_refused),
        cmocka_unit_test(test_patterns_of_names),
        cmocka_unit_test(test_patterns_match),
        cmocka_unit_test(test_tables_find_again),
        cmocka_unit_test(test_types_are_known_by_their_contents),
        cmocka_unit_test(test_what_a_killed_run_left),
    };
    return cmocka_run_group_tests_name("tracefmt_file", tests, NULL, NULL);
}
