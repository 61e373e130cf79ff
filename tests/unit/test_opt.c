/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The option table and the configuration that is read over it.
 *
 * NEEDS: inih
 */
#include "harness/harness.h"

#include <math.h>

static const crn_opt rows[] = {
    {"disk", "block", CRN_OPT_NBYTES, "64KiB", "1KiB..4MiB, a power of two", "size"},
    {"disk", "keep", CRN_OPT_COUNT, "2", "1..|all", "marks"},
    {"disk", "direct", CRN_OPT_BOOL, "yes", "", "past the cache"},
    {"disk", "backend", CRN_OPT_WORD, "auto", "auto|uring|threads", "how"},
    {"net", "wait", CRN_OPT_SECONDS, "1.5h", "1s..10d|forever", "time"},
    {"variable", "codec", CRN_OPT_WORD, "none", "none|lz4|zstd", "how blocks are stored"},
    {"variable", "note", CRN_OPT_TEXT, "", "", "any text"},
};
enum { NROWS = sizeof rows / sizeof *rows };

/* Rows of the table above, in its order. */
static const crn_opt_id BLOCK = (crn_opt_id)0, KEEP = (crn_opt_id)1, DIRECT = (crn_opt_id)2,
                        BACKEND = (crn_opt_id)3, WAIT = (crn_opt_id)4, CODEC = (crn_opt_id)5,
                        NOTE = (crn_opt_id)6;

static cairn_status parse(const char *text, crn_config **ret)
{
    return crn_config_parse_with(rows, NROWS, "my.ini", text, strlen(text), ret);
}

static void assert_refused(const char *text, const char *words)
{
    crn_config *cfg = NULL;
    assert_fails(parse(text, &cfg), CAIRN_EINVAL, words);
    assert_null(cfg);
}

/* Every row of the real table can be shown, beside those of its section, and has a default that it
 * accepts itself. */
static void test_table_is_sound(void **state)
{
    (void)state;
    for (int i = 0; i < CRN_OPT_COUNT_OF; i++) {
        const crn_opt *row = crn_opt_row((crn_opt_id)i);
        crn_opt_value value;
        char env[CRN_OPT_ENV];
        assert_ok(crn_opt_parse(row, row->def, &value));
        assert_true(strlen(crn_opt_env(row, env)) < CRN_OPT_ENV - 1);
        assert_true(strlen(row->section) > 0 && strlen(row->key) > 0 && strlen(row->help) > 10);
        assert_null(strchr(row->help, '\n'));
        assert_true(row->help[strlen(row->help) - 1] != '.');
        assert_true(strlen(row->help) <= 190); /* 'cairn help config' must be a configuration */
        assert_true(strlen(crn_opt_type_name(row->type)) > 0);
        const bool begins =
            i == 0 || strcmp(crn_opt_row((crn_opt_id)(i - 1))->section, row->section) != 0;
        for (int j = 0; j < i; j++) {
            const crn_opt *before = crn_opt_row((crn_opt_id)j);
            char other[CRN_OPT_ENV];
            assert_string_not_equal(env, crn_opt_env(before, other));
            assert_false(begins && strcmp(before->section, row->section) == 0);
        }
    }
}

static void test_defaults(void **state)
{
    (void)state;
    crn_config *cfg;
    assert_ok(parse("", &cfg));
    assert_int_equal(crn_config_nbytes(cfg, BLOCK), 65536);
    assert_int_equal(crn_config_count(cfg, KEEP), 2);
    assert_true(crn_config_bool(cfg, DIRECT));
    assert_int_equal(crn_config_word(cfg, BACKEND), 0);
    assert_true(crn_config_seconds(cfg, WAIT) == 5400);
    assert_string_equal(crn_config_text(cfg, NOTE), "");
    crn_config_free(cfg);
    crn_config_free(NULL);
}

static void test_file_overrides_defaults(void **state)
{
    (void)state;
    crn_config *cfg;
    assert_ok(parse("\xef\xbb\xbf; a comment\r\n[disk]\r\n  block = 1MiB ; large\n\tkeep:all\n"
                    "direct=off\n[net] # second\nwait = forever\n[disk]\n"
                    "backend = threads",
                    &cfg));
    assert_int_equal(crn_config_nbytes(cfg, BLOCK), 1 << 20);
    assert_true(crn_config_count(cfg, KEEP) == UINT64_MAX);
    assert_false(crn_config_bool(cfg, DIRECT));
    assert_int_equal(crn_config_word(cfg, BACKEND), 2);
    assert_true(isinf(crn_config_seconds(cfg, WAIT)));
    assert_string_equal(crn_config_text(cfg, BLOCK), "1MiB");
    crn_config_free(cfg);
}

static void test_variable_sections(void **state)
{
    (void)state;
    static const char name[] = "ocean/mixed_layer/tendency_of_temperature_by_advection";
    char text[256];
    crn_config *cfg;
    snprintf(text, sizeof text,
             "[variable %s]\ncodec = zstd\n[variable]\ncodec = lz4\n[variable  my pressure ]\n"
             "note = hello world\n",
             name);
    assert_ok(parse(text, &cfg));
    assert_string_equal(crn_config_text(cfg, CODEC), "lz4");
    assert_string_equal(crn_config_for_variable(cfg, CODEC, name), "zstd");
    assert_string_equal(crn_config_for_variable(cfg, CODEC, "my pressure"), "lz4");
    assert_string_equal(crn_config_for_variable(cfg, NOTE, "my pressure"), "hello world");
    assert_string_equal(crn_config_for_variable(cfg, NOTE, name), "");
    assert_int_equal(crn_config_variable(cfg, CODEC, "my pressure").word,
                     crn_config_word(cfg, CODEC));
    assert_int_not_equal(crn_config_variable(cfg, CODEC, name).word, crn_config_word(cfg, CODEC));
    crn_config_free(cfg);
    assert_refused("[variable x]\ncodec = gzip\n", "my.ini:2: 'codec': 'gzip' is not one of");
    assert_refused("[variable x]\nkeep = 1\n", "my.ini:2: no key 'keep' in section [variable]");
    assert_refused("[variable x]\ncodec=lz4\n[variable x]\ncodec=lz4", "already set in line 2");
}

/* Whoever compares configurations sees what is said of single variables. */
static void test_bytes_tell_variables_apart(void **state)
{
    (void)state;
    static const char *const text[] = {"[variable a]\ncodec = zstd\n",
                                       "[variable b]\ncodec = zstd\n", ""};
    crn_buf said[3] = {{0}};
    for (int i = 0; i < 3; i++) {
        crn_config *cfg;
        assert_ok(parse(text[i], &cfg));
        crn_config_put(cfg, &said[i]);
        assert_ok(crn_buf_status(&said[i]));
        crn_config_free(cfg);
    }
    assert_int_equal(said[0].n, said[1].n);
    assert_memory_not_equal(said[0].at, said[1].at, said[0].n);
    assert_int_not_equal(said[0].n, said[2].n);
    for (int i = 0; i < 3; i++)
        crn_buf_done(&said[i]);
}

static void test_mistakes_name_file_line_and_key(void **state)
{
    (void)state;
    assert_refused("[disk]\n\nkep = 1\n", "my.ini:3: no key 'kep' in section [disk]; did you mean "
                                          "'keep'?");
    assert_refused("[dsik]\n", "my.ini:1: no section [dsik]; did you mean 'disk'?");
    assert_refused("[zzzzzz]\n", "my.ini:1: no section [zzzzzz]");
    assert_refused("[disk]\nkeep = 1\nkeep = 2\n", "my.ini:3: 'keep' was already set in line 2");
    assert_refused("keep = 1\n", "my.ini:1: 'keep' stands before the first [section]");
    assert_refused("[disk]\nkeep 1\n", "my.ini:2: neither a [section] nor 'key = value'");
    assert_refused("[disk]\nrubbish\nkeep = 0\n", "my.ini:2: neither");
    assert_refused("[disk]\nkeep = 0\nrubbish\n", "my.ini:2: 'keep': '0' is out of range");
    assert_refused("[disk\nkeep = 1\n", "my.ini:1: a section without its ']'");
    assert_refused("[disk] keep = 1\n", "my.ini:1: 'keep = 1' after a section's ']'");
}

static void test_values_are_checked(void **state)
{
    (void)state;
    assert_refused("[disk]\nblock = 512\n", "'block': '512' is out of range (1KiB..4MiB, a power");
    assert_refused("[disk]\nblock = 8MiB\n", "'8MiB' is out of range");
    assert_refused("[disk]\nblock = 3KiB\n", "'3KiB' is out of range");
    assert_refused("[disk]\nkeep = -1\n", "'-1' is not a whole number");
    assert_refused("[disk]\nkeep =\n", "'' is not a whole number");
    assert_refused("[disk]\nkeep = every\n", "'every' is not a whole number");
    assert_refused("[disk]\ndirect = maybe\n", "'maybe' is neither yes nor no");
    assert_refused("[disk]\nbackend = urng\n", "'urng' is not one of auto|uring|threads; did you "
                                               "mean 'uring'?");
    assert_refused("[net]\nwait = 11d\n", "'11d' is out of range (1s..10d|forever)");
    assert_refused("[net]\nwait = nan\n", "'nan' is not a duration");
}

static void test_garbage_is_refused(void **state)
{
    (void)state;
    crn_config *cfg = NULL;
    assert_fails(crn_config_parse("x", "[io]\0\n", 6, &cfg), CAIRN_EINVAL, "not a text file");
    assert_fails(crn_config_parse("x", "\0", 1, &cfg), CAIRN_EINVAL, "x:1: control characters");
    char line[400] = "[io]\n# ";
    memset(line + 7, 'y', sizeof line - 7);
    assert_fails(crn_config_parse("x", line, sizeof line, &cfg), CAIRN_EINVAL, "x:2: the line is");
    static char big[(1 << 20) + 1];
    memset(big, '\n', sizeof big);
    assert_fails(crn_config_parse("x", big, sizeof big, &cfg), CAIRN_EINVAL, "at most 1048576");
    assert_null(cfg);
    assert_ok(crn_config_parse("x", big, sizeof big - 1, &cfg));
    crn_config_free(cfg);
}

static void test_load_reads_file_then_environment(void **state)
{
    (void)state;
    char dir[64], path[128];
    crn_config *cfg;
    snprintf(path, sizeof path, "%s/c.ini", make_scratch(dir, sizeof dir, "opt"));
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("[io]\ndepth = 7\n[keep]\nlocal = all\n", f);
    fclose(f);
    setenv("CAIRN_IO_DEPTH", "9", 1);
    assert_ok(crn_config_load(path, &cfg));
    assert_int_equal(crn_config_count(cfg, CRN_OPT_IO_DEPTH), 9);
    assert_true(crn_config_count(cfg, CRN_OPT_KEEP_LOCAL) == UINT64_MAX);
    crn_config_free(cfg);
    unsetenv("CAIRN_IO_DEPTH");
    setenv("CAIRN_CONFIG", path, 1);
    assert_ok(crn_config_load(NULL, &cfg));
    assert_int_equal(crn_config_count(cfg, CRN_OPT_IO_DEPTH), 7);
    crn_config_free(cfg);
    unsetenv("CAIRN_CONFIG");
    assert_fails(crn_config_load(dir, &cfg), CAIRN_EINVAL, "is not a plain file");
    remove_tree(dir);
    assert_fails(crn_config_load(path, &cfg), CAIRN_ENOTFOUND, "cannot open configuration");
}

/* Who says what the default says has said it. */
static void test_given(void **state)
{
    (void)state;
    crn_config *cfg;
    crn_buf a = {0}, b = {0};
    assert_ok(parse("[disk]\nkeep = 2\n", &cfg));
    assert_true(crn_config_is_given(cfg, KEEP));
    assert_false(crn_config_is_given(cfg, BLOCK));
    crn_config_put(cfg, &a);
    crn_config_free(cfg);
    setenv("CAIRN_LEVEL_PARTNER", "4", 1);
    assert_ok(crn_config_load(NULL, &cfg));
    assert_true(crn_config_is_given(cfg, CRN_OPT_LEVEL_PARTNER));
    assert_false(crn_config_is_given(cfg, CRN_OPT_LEVEL_GLOBAL));
    crn_config_free(cfg);
    unsetenv("CAIRN_LEVEL_PARTNER");
    /* ranks of which one was told and another was not must notice */
    assert_ok(parse("", &cfg));
    crn_config_put(cfg, &b);
    assert_true(a.n != b.n || memcmp(a.at, b.at, a.n) != 0);
    crn_config_free(cfg);
    crn_buf_done(&a);
    crn_buf_done(&b);
}

static void test_environment_mistakes(void **state)
{
    (void)state;
    crn_config *cfg;
    setenv("CAIRN_IO_DEPTH", "many", 1);
    assert_fails(crn_config_load(NULL, &cfg), CAIRN_EINVAL,
                 "environment variable 'CAIRN_IO_DEPTH': 'many' is not a whole number");
    unsetenv("CAIRN_IO_DEPTH");
    setenv("CAIRN_IO_DETPH", "1", 1);
    assert_fails(crn_config_load(NULL, &cfg), CAIRN_EINVAL,
                 "'CAIRN_IO_DETPH' names no option; did you mean 'CAIRN_IO_DEPTH'?");
    unsetenv("CAIRN_IO_DETPH");
    setenv("CAIRN_SEED", "1", 1);
    assert_ok(crn_config_load(NULL, &cfg));
    crn_config_free(cfg);
    unsetenv("CAIRN_SEED");
}

/* Each allocation on the way fails once: no crash, no leak, a code that says so. */
static void test_load_survives_lack_of_memory(void **state)
{
    (void)state;
    crn_config *cfg = NULL;
    cairn_status rc = CAIRN_ENOMEM;
    for (uint64_t n = 1; rc != CAIRN_OK; n++) {
        crn_mem_fail_at(n);
        rc = parse("[variable x]\ncodec = lz4\nnote = y\n[disk]\nkeep = 3\n", &cfg);
        crn_mem_fail_at(0);
        assert_true(rc == CAIRN_OK || rc == CAIRN_ENOMEM);
    }
    crn_config_free(cfg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_is_sound),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_file_overrides_defaults),
        cmocka_unit_test(test_variable_sections),
        cmocka_unit_test(test_bytes_tell_variables_apart),
        cmocka_unit_test(test_mistakes_name_file_line_and_key),
        cmocka_unit_test(test_values_are_checked),
        cmocka_unit_test(test_garbage_is_refused),
        cmocka_unit_test(test_load_reads_file_then_environment),
        cmocka_unit_test(test_given),
        cmocka_unit_test(test_environment_mistakes),
        cmocka_unit_test(test_load_survives_lack_of_memory),
    };
    return cmocka_run_group_tests_name("opt", tests, NULL, NULL);
}
