/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The journal of a particle filter's server: cut at every byte it has the lines before the cut, and
 * goes on; a line that was changed is damage.
 */
#include "ensemble/ensemble_journal.h"
#include "harness/scratch.h"

enum { NLINES = 4 };

typedef struct lines {
    char text[16][64];
    size_t n;
} lines;

static cairn_status take(void *arg, const char *line)
{
    lines *l = arg;
    snprintf(l->text[l->n++], sizeof l->text[0], "%s", line);
    return CAIRN_OK;
}

static void write_journal(crn_study *study)
{
    crn_journal j;
    crn_buf b = {0};
    lines l = {0};
    (void)unlinkat(dir, "journal", 0);
    assert_int_equal(crn_journal_open(&j, study, take, &l), CAIRN_NOTHING);
    crn_journal_line(&b, "begin %d", 7);
    assert_ok(crn_journal_replace(&j, &b));
    crn_buf_done(&b);
    for (int i = 1; i < NLINES; i++)
        assert_ok(crn_journal_add(&j, "task %d %d", i, i * i));
    assert_ok(crn_journal_sync(&j, false));
    crn_journal_close(&j);
}

static size_t read_file(char *text, size_t cap)
{
    int fd = openat(dir, "journal", O_RDONLY);
    ssize_t n = read(fd, text, cap);
    close(fd);
    return (size_t)n;
}

static void write_file(const char *text, size_t n)
{
    int fd = openat(dir, "journal", O_WRONLY | O_TRUNC);
    assert_int_equal(write(fd, text, n), n);
    close(fd);
}

static size_t lines_before(const char *text, size_t cut)
{
    size_t n = 0;
    for (size_t i = 0; i < cut; i++)
        n += text[i] == '\n';
    return n;
}

static void test_cut_anywhere(void **state)
{
    (void)state;
    crn_study study = {.dir = scratch};
    char text[1024];
    write_journal(&study);
    const size_t n = read_file(text, sizeof text);
    assert_int_equal(lines_before(text, n), NLINES);
    for (size_t cut = 1; cut <= n; cut++) {
        crn_journal j;
        lines l = {0}, again = {0};
        write_file(text, cut);
        if (lines_before(text, cut) == 0) { /* it was never so short: it is replaced as a whole */
            assert_fails(crn_journal_open(&j, &study, take, &l), CAIRN_ECORRUPT, "is cut");
            crn_journal_close(&j);
            continue;
        }
        assert_ok(crn_journal_open(&j, &study, take, &l));
        assert_int_equal(l.n, lines_before(text, cut));
        assert_ok(crn_journal_add(&j, "weight 1"));
        crn_journal_close(&j);
        assert_ok(crn_journal_open(&j, &study, take, &again));
        assert_int_equal(again.n, l.n + 1);
        assert_string_equal(again.text[l.n], "weight 1");
        crn_journal_close(&j);
    }
}

static void test_damage(void **state)
{
    (void)state;
    crn_study study = {.dir = scratch};
    char text[1024];
    write_journal(&study);
    const size_t n = read_file(text, sizeof text);
    const size_t last = (size_t)(strrchr((text[n - 1] = 0, text), '\n') - text);
    text[n - 1] = '\n';
    for (size_t at = 0; at < 2 * last; at++) { /* other bits, or zeros as of a lost block */
        crn_journal j;
        lines l = {0};
        const char was = text[at / 2];
        text[at / 2] = at % 2 ? 0 : (char)(was ^ 0x10);
        write_file(text, n);
        text[at / 2] = was;
        assert_fails(crn_journal_open(&j, &study, take, &l), CAIRN_ECORRUPT, "is damaged");
        crn_journal_close(&j);
    }
}

static cairn_status count(void *arg, const char *line)
{
    (void)line;
    ++*(size_t *)arg;
    return CAIRN_OK;
}

/* Of an ensemble of 65,536 members: longer than the small files of a study may be. */
static void test_many_lines(void **state)
{
    (void)state;
    enum { MANY = 65536 };
    crn_study study = {.dir = scratch};
    crn_journal j;
    crn_buf b = {0};
    size_t n = 0;
    write_journal(&study);
    assert_ok(crn_journal_open(&j, &study, count, &n));
    for (int i = 0; i < MANY; i++)
        crn_journal_line(&b, "parent %d 1 0123456789abcdef0123456789abcdef", i);
    assert_ok(crn_journal_replace(&j, &b));
    crn_buf_done(&b);
    crn_journal_close(&j);
    n = 0;
    assert_ok(crn_journal_open(&j, &study, count, &n));
    assert_int_equal(n, MANY);
    crn_journal_close(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_many_lines),
    };
    return cmocka_run_group_tests_name("journal", tests, scratch_begin, scratch_end);
}
