/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Every row of the level table has all that its users ask for: implementation, file names that no
 * other level has, options of its name.
 */
#include "harness/harness.h"

#include <cairn/ckpt.h>
#include <cairn/planner.h>

#include "level/level_ops.h"

static void test_every_level_has_an_implementation(void **state)
{
    (void)state;
    for (crn_level l = 0; l < CRN_NLEVELS; l++) {
        const crn_level_ops *ops = crn_level_table[l];
        assert_true(ops && ops->check && ops->raise && ops->each);
        for (crn_level k = 0; k < l; k++)
            assert_int_not_equal(ops->role, crn_level_table[k]->role);
    }
}

static void test_file_names_lead_back_to_their_role(void **state)
{
    (void)state;
    for (crn_level l = 0; l < CRN_NLEVELS; l++) {
        const crn_level_ops *ops = crn_level_table[l];
        char name[64];
        uint32_t role, rank;
        assert_ptr_equal(crn_role_name(ops->role), ops->file);
        if (!ops->file)
            continue;
        snprintf(name, sizeof name, "%s-7", ops->file);
        assert_true(crn_vault_parse_name(name, &role, &rank));
        assert_int_equal(role, ops->role);
        assert_int_equal(rank, 7);
    }
}

static void assert_option(crn_opt_id id, const char *section, const char *key)
{
    assert_string_equal(crn_opt_row(id)->section, section);
    assert_string_equal(crn_opt_row(id)->key, key);
}

static void test_options_have_the_level_s_name(void **state)
{
    (void)state;
    for (crn_level l = 0; l < CRN_NLEVELS; l++) {
        assert_option(crn_opt_keep(l), "keep", crn_level_name(l));
        assert_string_equal(crn_opt_row(crn_opt_mtbf(l))->section, "plan");
        if (l >= CRN_LEVEL_RAISED)
            assert_option(crn_opt_every(l), "level", crn_level_name(l));
    }
}

static void test_the_public_constants_are_the_levels(void **state)
{
    (void)state;
    assert_int_equal(CAIRN_LEVEL_LOCAL, 1 + CRN_LEVEL_LOCAL);
    assert_int_equal(CAIRN_LEVEL_GLOBAL, 1 + CRN_LEVEL_GLOBAL);
    assert_int_equal(CAIRN_LEVEL_GLOBAL, CRN_NLEVELS);
    assert_int_equal(CAIRN_PLAN_LEVELS, CRN_NLEVELS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_level_has_an_implementation),
        cmocka_unit_test(test_file_names_lead_back_to_their_role),
        cmocka_unit_test(test_options_have_the_level_s_name),
        cmocka_unit_test(test_the_public_constants_are_the_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
