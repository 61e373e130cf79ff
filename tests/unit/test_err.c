/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The error idiom: records, frames, threads.
 */
#include "harness/harness.h"

#include <errno.h>
#include <pthread.h>

static cairn_status fail_deep(void)
{
    return crn_fail(CAIRN_ECORRUPT, "block %d is damaged", 7);
}

static cairn_status forward(void)
{
    CRN_TRY(fail_deep());
    return CAIRN_OK;
}

static cairn_status release_then_forward(int *released)
{
    cairn_status rc = CAIRN_OK;
    CRN_TRY_OUT(rc, forward());
    return CAIRN_OK;
out:
    ++*released;
    return rc;
}

static void test_frames_tell_the_way_up(void **state)
{
    (void)state;
    int released = 0;
    crn_err err;
    char text[CRN_ERR_TEXT];
    assert_int_equal(release_then_forward(&released), CAIRN_ECORRUPT);
    assert_int_equal(released, 1);
    crn_err_take(&err);
    assert_int_equal(err.code, CAIRN_ECORRUPT);
    assert_int_equal(err.nframes, 3);
    assert_int_equal(err.rank, -1);
    crn_err_format(&err, false, text, sizeof text);
    assert_string_equal(text, "block 7 is damaged");
    crn_err_format(&err, true, text, sizeof text);
    assert_non_null(strstr(text, "test_err.c:"));
    assert_int_equal(crn_err_peek()->code, CAIRN_OK);
    assert_string_equal(crn_err_peek()->text, "");
}

/* A program prints what cairn_error_text returns; names in it may come from a forged file. */
static void test_text_cannot_drive_a_terminal(void **state)
{
    (void)state;
    (void)crn_fail(CAIRN_ECORRUPT, "'%s' is damaged",
                   "a\xe2\x80\xae"
                   "b\xc2\x9b"
                   "31mc\x1b[2Jd\n");
    assert_string_equal(cairn_error_text(), "'a?b?31mc?[2Jd?' is damaged");
    crn_err_prefix("%s: ", "x\xe2\x81\xa6");
    assert_string_equal(cairn_error_text(), "x?: 'a?b?31mc?[2Jd?' is damaged");
    (void)crn_fail_sys(ENOENT, "\xc3");
    assert_int_equal(cairn_error_text()[0], '?');
    char many[2 * CRN_ERR_TEXT];
    for (size_t i = 0; i + 2 < sizeof many; i += 2)
        memcpy(many + i, "\xc3\xa4", 3); /* cut in the middle of a character */
    (void)crn_fail(CAIRN_ECORRUPT, "a%s", many);
    uint32_t code;
    bool fair;
    for (const char *at = cairn_error_text(); *at; at += crn_utf8_next(at, &code, &fair)) {
        (void)crn_utf8_next(at, &code, &fair);
        assert_true(fair);
    }
}

static void test_take_and_give_move_the_record(void **state)
{
    (void)state;
    crn_err err;
    assert_int_equal(forward(), CAIRN_ECORRUPT);
    crn_err_take(&err);
    assert_int_equal(crn_err_give(&err), CAIRN_ECORRUPT);
    crn_err_prefix("mark %d: ", 12);
    assert_string_equal(crn_err_peek()->text, "mark 12: block 7 is damaged");
}

static void test_prefix_and_text_are_cut_not_overrun(void **state)
{
    (void)state;
    char words[2 * CRN_ERR_TEXT];
    memset(words, 'w', sizeof words - 1);
    words[sizeof words - 1] = 0;
    assert_int_equal(crn_fail(CAIRN_EIO, "%s", words), CAIRN_EIO);
    assert_int_equal(strlen(crn_err_peek()->text), CRN_ERR_TEXT - 1);
    crn_err_prefix("%s", words);
    assert_int_equal(strlen(crn_err_peek()->text), CRN_ERR_TEXT - 1);
    char small[16];
    crn_err_format(crn_err_peek(), true, small, sizeof small);
    assert_int_equal(strlen(small), sizeof small - 1);
}

static void test_frames_are_bounded(void **state)
{
    (void)state;
    fail_deep();
    for (int i = 0; i < 100; i++)
        crn_err_frame(__FILE__, __LINE__);
    assert_int_equal(crn_err_peek()->nframes, CRN_ERR_FRAMES);
}

static void test_fail_sys_picks_the_code(void **state)
{
    (void)state;
    assert_fails(crn_fail_sys(ENOSPC, "cannot write '%s'", "x"), CAIRN_ENOSPC,
                 "cannot write 'x': No space left on device");
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(crn_fail_sys(EDQUOT, "x"), CAIRN_ENOSPC);
    assert_int_equal(crn_fail_sys(ENOENT, "x"), CAIRN_ENOTFOUND);
    assert_int_equal(crn_fail_sys(ENOMEM, "x"), CAIRN_ENOMEM);
    assert_int_equal(crn_fail_sys(EACCES, "x"), CAIRN_EIO);
    assert_int_equal(crn_err_peek()->sys, EACCES);
}

static void *fail_elsewhere(void *arg)
{
    (void)arg;
    crn_fail(CAIRN_EBUSY, "another thread's story");
    return NULL;
}

static void test_threads_have_their_own_record(void **state)
{
    (void)state;
    pthread_t thread;
    fail_deep();
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
    pthread_join(thread, NULL);
    assert_string_equal(crn_err_peek()->text, "block 7 is damaged");
}

static void test_strerror_knows_every_code(void **state)
{
    (void)state;
    for (int code = CAIRN_ECANCELED; code <= CAIRN_NOTHING; code++)
        assert_string_not_equal(cairn_strerror(code), "unknown status");
    assert_string_equal(cairn_strerror(-1000), "unknown status");
    assert_string_equal(cairn_strerror(2), "unknown status");
}

static void test_version_is_the_headers(void **state)
{
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", CAIRN_VERSION_MAJOR, CAIRN_VERSION_MINOR,
             CAIRN_VERSION_PATCH);
    assert_string_equal(cairn_version(), text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_tell_the_way_up),
        cmocka_unit_test(test_text_cannot_drive_a_terminal),
        cmocka_unit_test(test_take_and_give_move_the_record),
        cmocka_unit_test(test_prefix_and_text_are_cut_not_overrun),
        cmocka_unit_test(test_frames_are_bounded),
        cmocka_unit_test(test_fail_sys_picks_the_code),
        cmocka_unit_test(test_threads_have_their_own_record),
        cmocka_unit_test(test_strerror_knows_every_code),
        cmocka_unit_test(test_version_is_the_headers),
    };
    return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
