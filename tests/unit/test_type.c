/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Types as text: what is composed is read back alike, and nothing else is a type.
 */
#include "harness/harness.h"

typedef struct pair {
    int32_t i, j;
} pair;

typedef struct particle {
    uint64_t id;
    double x[3];
    pair cell[2];
    char tag;
} particle;

#define PAIR     "{8:i@0:int32,j@4:int32}"
#define PARTICLE "{56:id@0:uint64,x@8:float64[3],cell@32:" PAIR "[2],tag@48:int8}"

static void test_parse_scalars(void **state)
{
    (void)state;
    crn_type_tree *t;
    for (cairn_type k = CAIRN_BYTES; cairn_type_name(k); k++) {
        assert_ok(crn_type_parse(cairn_type_name(k), &t));
        assert_true(t->scalar == k && t->nbytes == cairn_type_bytes(k) && t->n == 0);
        crn_type_free(t);
    }
}

static void test_compose_sorts_members(void **state)
{
    (void)state;
    char *text;
    const crn_member_spec pairs[] = {
        {"j", offsetof(pair, j), 4, "int32", 4},
        {"i", offsetof(pair, i), 4, "int32", 4},
    };
    assert_ok(crn_type_compose(sizeof(pair), pairs, 2, &text));
    assert_string_equal(text, PAIR);
    const crn_member_spec members[] = {
        {"cell", offsetof(particle, cell), sizeof(pair[2]), text, sizeof(pair)},
        {"tag", offsetof(particle, tag), 1, "int8", 1},
        {"x", offsetof(particle, x), sizeof(double[3]), "float64", 8},
        {"id", offsetof(particle, id), 8, "uint64", 8},
    };
    char *all;
    assert_ok(crn_type_compose(sizeof(particle), members, 4, &all));
    assert_string_equal(all, PARTICLE);
    free(all);
    free(text);
}

static void test_parse_compound(void **state)
{
    (void)state;
    crn_type_tree *t;
    assert_ok(crn_type_parse(PARTICLE, &t));
    assert_true(t->scalar == 0 && t->nbytes == sizeof(particle) && t->n == 4);
    assert_string_equal(t->member[1].name, "x");
    assert_true(t->member[1].offset == 8 && t->member[1].count == 3);
    assert_true(t->member[1].type->scalar == CAIRN_FLOAT64);
    const crn_type_member *cell = &t->member[2];
    assert_true(cell->count == 2 && cell->type->scalar == 0 && cell->type->n == 2);
    assert_string_equal(cell->type->member[1].name, "j");
    assert_int_equal(t->member[3].count, 0);
    crn_type_free(t);
}

static void test_parse_refuses_with_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", "no type ''"},
        {"float", "no type 'float'"},
        {"float641", "no type 'float641'"},
        {"int8 ", "followed by ' '"},
        {"int8[2]", "followed by '[2]'"},
        {"{8}", "no ':' before '}'"},
        {"{8:}", "member's name"},
        {"{0:a@0:int8}", "at least one byte"},
        {"{08:a@0:int8}", "no proper number"},
        {"{4294967296:a@0:int8}", "no proper number"},
        {"{8:a@0}", "no ':' before"},
        {"{8:a@0:int8", "no '}' before"},
        {"{8:a@0:int8,}", "member's name"},
        {"{8:a b@0:int8}", "no '@' before"},
        {"{8:a@0:int8[1]}", "2 elements or more"},
        {"{8:a@0:int64[4294967295]}", "ends at byte 34359738360 of a compound that has 8"},
        {"{8:a@4:int64}", "ends at byte 12"},
        {"{8:a@0:int32,b@2:int16}", "'a' and 'b' overlap"},
        {"{8:b@4:int16,a@0:int32}", "'b' and 'a' overlap"},
        {"{8:a@0:int8,a@1:int8}", "two members are called 'a'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        crn_type_tree *t;
        assert_fails(crn_type_parse(bad[i].text, &t), CAIRN_EINVAL, bad[i].why);
    }
}

static void test_parse_is_bounded(void **state)
{
    (void)state;
    char text[CRN_TYPE_TEXT + 2] = "";
    crn_type_tree *t;
    for (size_t i = 0; i < CRN_TYPE_DEPTH + 1; i++)
        snprintf(text + 7 * i, 8, "{8:a@0:");
    assert_fails(crn_type_parse(text, &t), CAIRN_EINVAL, "8 deep at most");
    memset(text, 'x', sizeof text - 1);
    assert_fails(crn_type_parse(text, &t), CAIRN_EINVAL, "more than 4095 bytes");
}

static void test_compose_refuses_with_a_reason(void **state)
{
    (void)state;
    char *text;
    const crn_member_spec odd = {"x", 0, 12, "float64", 8};
    const crn_member_spec named = {"a:b", 0, 8, "float64", 8};
    assert_fails(crn_type_compose(16, &odd, 1, &text), CAIRN_EINVAL,
                 "member 'x' has 12 bytes, which is no whole number of elements of 8");
    assert_fails(crn_type_compose(16, &named, 1, &text), CAIRN_EINVAL, "no '@' before");
    assert_fails(crn_type_compose(16, &odd, 0, &text), CAIRN_EINVAL, "needs members");
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    cairn_status rc = CAIRN_ENOMEM;
    for (uint64_t n = 1; rc == CAIRN_ENOMEM; n++) {
        crn_type_tree *t = NULL;
        crn_mem_fail_at(n);
        rc = crn_type_parse(PARTICLE, &t);
        crn_type_free(t);
    }
    crn_mem_fail_at(0);
    assert_ok(rc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_scalars),
        cmocka_unit_test(test_compose_sorts_members),
        cmocka_unit_test(test_parse_compound),
        cmocka_unit_test(test_parse_refuses_with_a_reason),
        cmocka_unit_test(test_parse_is_bounded),
        cmocka_unit_test(test_compose_refuses_with_a_reason),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("type", tests, NULL, NULL);
}
