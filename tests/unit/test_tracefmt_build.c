/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Builders of programs that do ever new things: what they are told is found again, and counted.
 */
#include "harness/harness.h"

#include "tracefmt/tracefmt.h"

static void test_sites_are_found_again(void **state)
{
    (void)state;
    enum { SITES = 5000 };
    crn_tables t;
    uint32_t number, again;
    assert_ok(crn_tables_init(&t));
    for (uint32_t turn = 0; turn < 2; turn++) {
        for (uint32_t i = 0; i < SITES; i++) {
            crn_site site = {.outer = i / 2, .module = i % 3, .off = i % 7};
            assert_ok(crn_tables_site(&t, site, &number));
            assert_ok(crn_tables_site(&t, site, &again));
            assert_int_equal(number, again);
            assert_int_equal(number, i + 1);
        }
    }
    assert_int_equal(t.site.n, SITES + 1);
    assert_true(crn_tables_nbytes(&t) >= SITES * sizeof(crn_site));
    crn_tables_done(&t);
}

/* The list of turn i has two values that no other has together. */
static void add_turn(crn_build *b, int64_t i)
{
    int64_t value[2] = {i / 3, i * i % 101};
    crn_record r = {.call = CRN_CALL_MPI_Alltoallv, .start = 1, .end = 2};
    const crn_call *call = crn_call_row(r.call);
    r.ncolumns = call->ncolumns;
    for (int c = 0; c < r.ncolumns; c++)
        r.list[c] = (crn_list){value, crn_kind_is_list(call->kind[c]) ? 2 : 0};
    crn_build_add(b, &r);
}

/* Of each pair of equal lists one is kept, however many there are. */
static void test_lists_are_found_again(void **state)
{
    (void)state;
    enum { LISTS = 3000 };
    crn_build b;
    assert_ok(crn_build_init(&b, 0, 100, false));
    size_t empty = crn_build_nbytes(&b);
    for (int turn = 0; turn < 2; turn++)
        for (int64_t i = 0; i < LISTS; i++)
            add_turn(&b, i);
    assert_int_equal(b.place.n, 1);
    size_t columns = 0;
    for (size_t c = 0; c < b.place.at[0].ncolumns; c++) {
        const crn_column_build *column = &b.place.at[0].column[c];
        if (!crn_kind_is_list(column->kind))
            continue;
        columns++;
        assert_in_range(column->list.n, LISTS / 2, LISTS);
        for (size_t i = 0; i < column->list.n; i++)
            for (size_t k = i + 1; k < CRN_MIN(column->list.n, i + 200); k++)
                assert_false(crn_seq_equal(&column->list.at[i], &column->list.at[k]));
    }
    assert_true(columns > 0);
    assert_true(b.fresh >= columns * LISTS / 2 * sizeof(crn_seq));
    assert_true(crn_build_nbytes(&b) >= empty + columns * LISTS / 2 * sizeof(crn_seq));
    crn_build_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sites_are_found_again),
        cmocka_unit_test(test_lists_are_found_again),
    };
    return cmocka_run_group_tests_name("tracefmt_build", tests, NULL, NULL);
}
