/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Manifests, and other lists, that claim more than there is: ten million ranks, or 300,000 marks,
 * in a few bytes or megabytes. What is done about them is bounded by the files that are there: by
 * how many are opened, and by what is told. No clock is asked: what is not bounded so does not end
 * before ctest ends it.
 */
#include "harness/small_trail.h"
#include "io/io_fault.h"

#include <cairn/cairn.h>
#include <inttypes.h>

#include "store/store_format.h"
#include "store/store_trees_format.h"

enum { MANY_RANKS = 10000000, MANY_MARKS = 300000, FEW = 40 };

static char scratch[64];

static int setup(void **state)
{
    (void)state;
    make_scratch(scratch, sizeof scratch, "manifest");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    remove_tree(scratch);
    return 0;
}

typedef struct told {
    unsigned n;
    char text[4096];
} told;

static int tell(void *arg, const cairn_finding *f)
{
    told *t = arg;
    const size_t used = strlen(t->text);
    if (f->status < 0 && ++t->n <= FEW)
        snprintf(t->text + used, sizeof t->text - used, "%" PRIu32 ": %s\n", f->rank, f->text);
    return t->n > FEW; /* that is enough to know */
}

/* A run of two ranks with marks 10 and 20, and what a forger makes its manifest say. */
static void forge(const char *path, size_t nmarks, crn_manifest_mark (*make)(size_t i))
{
    crn_trail *t;
    crn_run *run;
    crn_manifest_mark *k;
    assert_ok(small_trail(path, "r", 2, 2, 2));
    assert_ok(crn_trail_open(path, false, &t));
    assert_ok(crn_run_open(t, "r", true, &run));
    assert_ok(crn_alloc(&k, nmarks));
    for (size_t i = 0; i < nmarks; i++) {
        k[i] = make(i);
        k[i].levels = CRN_IN_TRAIL;
        k[i].wall_ns = i + 1;
        k[i].nbytes = 8;
    }
    assert_ok(crn_run_replace_marks(run, k, nmarks, 0, false));
    free(k);
    crn_run_close(run);
    crn_trail_close(t);
}

static told verify(const char *name, size_t nmarks, crn_manifest_mark (*make)(size_t i))
{
    const crn_fault opens = {.where = CRN_FAULT_OPEN}; /* counts, and fails none */
    char path[128];
    cairn_trail *t;
    told said = {0};
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    forge(path, nmarks, make);
    crn_fault_arm(&opens);
    assert_int_equal(cairn_trail_open(path, &t), CAIRN_OK);
    assert_int_equal(cairn_trail_verify(t, 0, CAIRN_ALL_MARKS, tell, &said), CAIRN_ECORRUPT);
    cairn_trail_close(t);
    assert_true(crn_fault_seen() <= FEW);
    crn_fault_arm(NULL);
    assert_true(said.n <= FEW);
    return said;
}

static crn_manifest_mark with_many_ranks(size_t i)
{
    return (crn_manifest_mark){.version = 10 * (i + 1), .series = 1, .nranks = MANY_RANKS};
}

static void test_ranks_that_are_not_there_are_told_as_one(void **state)
{
    (void)state;
    told said = verify("ranks", 2, with_many_ranks);
    assert_non_null(
        strstr(said.text, "2: series 1: 'part-000002' to 'part-9999999' are not there"));
    assert_non_null(strstr(said.text, "(2 marks from here on)"));
    assert_non_null(strstr(said.text, "is the part of rank 1 of 2"));
}

static crn_manifest_mark many(size_t i)
{
    return (crn_manifest_mark){.version = i + 1, .series = 1, .nranks = 2};
}

static void test_marks_that_are_not_there_are_told_as_one(void **state)
{
    (void)state;
    told said = verify("marks", MANY_MARKS, many);
    assert_int_equal(said.n, 2 * 3); /* of each rank: before 10, between, and behind 20 */
    assert_non_null(strstr(said.text, "has no mark 11 (9 marks from here on)"));
    assert_non_null(strstr(said.text, "has no mark 21 (299980 marks from here on)"));
}

static crn_manifest_mark of_many_series(size_t i)
{
    return (crn_manifest_mark){.version = i + 1, .series = (uint32_t)i + 7, .nranks = MANY_RANKS};
}

static void test_series_that_are_not_there_are_told_as_one(void **state)
{
    (void)state;
    told said = verify("series", MANY_MARKS, of_many_series);
    assert_int_equal(said.n, 1);
    assert_non_null(strstr(said.text, "'series-7' has no part"));
    assert_non_null(strstr(said.text, "(300000 marks from here on)"));
}

static crn_manifest_mark of_all_kinds(size_t i)
{
    return (crn_manifest_mark){.version = i + 1,
                               .series = (uint32_t)i % 2 + 1,
                               .nranks = (uint32_t)(i * 37 % 1000000 + 1)};
}

static void test_rank_counts_that_change_cost_no_more(void **state)
{
    (void)state;
    told said = verify("kinds", MANY_MARKS, of_all_kinds);
    assert_true(said.n > 0);
}

/* Comparing and blessing such a run end in a sentence, before any rank is looked for. */
static void test_ranks_that_are_not_there_are_not_compared(void **state)
{
    const crn_fault opens = {.where = CRN_FAULT_OPEN};
    const cairn_comparison_options how = {.struct_bytes = sizeof how};
    cairn_comparison found = {.struct_bytes = sizeof found};
    char path[128], run[160], golden[160];
    (void)state;
    snprintf(path, sizeof path, "%s/compared", scratch);
    snprintf(run, sizeof run, "%s/r", path);
    snprintf(golden, sizeof golden, "%s/golden", scratch);
    forge(path, 2, with_many_ranks);
    crn_fault_arm(&opens);
    assert_int_equal(cairn_compare(MPI_COMM_SELF, run, run, &how, &found), CAIRN_ECORRUPT);
    assert_non_null(strstr(cairn_last_error(NULL), "10000000 ranks, and there are files of 2"));
    assert_int_equal(cairn_bless(run, golden), CAIRN_ECORRUPT);
    assert_true(crn_fault_seen() <= FEW);
    crn_fault_arm(NULL);
}

/* Nor is a part opened, or the manifest read again, for each mark that it does not have. */
static void test_marks_that_are_not_there_are_compared_at_once(void **state)
{
    const crn_fault opens = {.where = CRN_FAULT_OPEN};
    const cairn_comparison_options how = {.struct_bytes = sizeof how, .nthreads = 1};
    cairn_comparison found = {.struct_bytes = sizeof found};
    char path[128], run[160];
    (void)state;
    snprintf(path, sizeof path, "%s/many-compared", scratch);
    snprintf(run, sizeof run, "%s/r", path);
    forge(path, MANY_MARKS / 10, many);
    crn_fault_arm(&opens);
    assert_int_equal(cairn_compare(MPI_COMM_SELF, run, run, &how, &found), CAIRN_OK);
    assert_int_equal(found.verdict, CAIRN_INCONCLUSIVE);
    assert_true(crn_fault_seen() <= FEW);
    crn_fault_arm(NULL);
}

/* A page of a part's catalogue, listed again and again. */
static void test_a_page_of_a_catalogue_counts_once(void **state)
{
    enum { PAGES = 60000, PAGE_BYTES = 5000, END = 1 << 22 };
    part_list list = {0}, back;
    crn_buf b = {0};
    (void)state;
    for (uint32_t i = 0; i < PAGES; i++)
        assert_ok(
            crn_vec_push(&list, (part_list_page){{DATA_START, PAGE_BYTES, {{0}}}, 64, false}));
    crn_format_put_list(&list, &b);
    assert_ok(crn_buf_status(&b));
    assert_int_equal(crn_format_get_list(b.at, b.n, END, &back), CAIRN_ECORRUPT);
    list.n = END / PAGE_BYTES / 2;
    b.n = 0;
    crn_format_put_list(&list, &b);
    assert_ok(crn_format_get_list(b.at, b.n, END, &back));
    crn_vec_done(&back);
    crn_vec_done(&list);
    crn_buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_that_are_not_there_are_told_as_one),
        cmocka_unit_test(test_marks_that_are_not_there_are_told_as_one),
        cmocka_unit_test(test_series_that_are_not_there_are_told_as_one),
        cmocka_unit_test(test_rank_counts_that_change_cost_no_more),
        cmocka_unit_test(test_ranks_that_are_not_there_are_not_compared),
        cmocka_unit_test(test_marks_that_are_not_there_are_compared_at_once),
        cmocka_unit_test(test_a_page_of_a_catalogue_counts_once),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
