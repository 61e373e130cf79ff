/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The event log as it is read: every whole line once and in order, whatever lines are long or
 * short, and whatever the log is as a whole.
 */
#include "harness/small_trail.h"

typedef struct world {
    char dir[64], log[128];
    crn_trail *trail;
    crn_run *run;
    uint64_t nlines, stop_at; /* handed out so far; the line that ends it, 0: none */
    bool wrong;               /* one was not what was written */
} world;

static int begin(void **state)
{
    world *w;
    char path[96];
    assert_ok(crn_alloc(&w, 1));
    make_scratch(w->dir, sizeof w->dir, "events");
    snprintf(path, sizeof path, "%s/trail", w->dir);
    snprintf(w->log, sizeof w->log, "%s/trail/run-1/events", w->dir);
    assert_ok(small_trail(path, NULL, 1, 1, 1));
    assert_ok(crn_trail_open(path, false, &w->trail));
    assert_ok(crn_run_open(w->trail, "run-1", false, &w->run));
    *state = w;
    return 0;
}

static int end(void **state)
{
    world *w = *state;
    crn_run_close(w->run);
    crn_trail_close(w->trail);
    remove_tree(w->dir);
    free(w);
    return 0;
}

/* Lines are their number, and then a letter for as often as the number says. */
static size_t length_of(uint64_t line)
{
    return (size_t)(line * line * 977 % 50021) * (line % 7 == 0 ? 40 : 1);
}

static void write_line(FILE *f, uint64_t line)
{
    fprintf(f, "%llu ", (unsigned long long)line);
    for (size_t n = length_of(line); n > 0; n--)
        fputc('a' + (int)(line % 26), f);
    fputc('\n', f);
}

static int take(void *arg, const char *line)
{
    world *w = arg;
    char *text;
    const uint64_t number = strtoull(line, &text, 10);
    const char letter[2] = {(char)('a' + (int)(number % 26)), 0};
    w->wrong |= number != ++w->nlines || *text++ != ' ' || strlen(text) != length_of(number) ||
                strspn(text, letter) != length_of(number);
    return w->nlines == w->stop_at;
}

static void check(world *w, cairn_status expected, uint64_t nlines)
{
    w->nlines = 0;
    assert_int_equal(crn_run_events(w->run, take, w), expected);
    assert_int_equal(w->nlines, nlines);
    assert_false(w->wrong);
}

static void test_events_of_all_lengths(void **state)
{
    world *w = *state;
    enum { LINES = 120 };
    unlink(w->log);
    check(w, CAIRN_OK, 0);
    FILE *f = fopen(w->log, "w");
    assert_non_null(f);
    for (uint64_t i = 1; i <= LINES; i++)
        write_line(f, i);
    fputs("121 cut by a cra", f);
    fclose(f);
    check(w, CAIRN_OK, LINES);
    w->stop_at = 57;
    check(w, CAIRN_NOTHING, 57);
}

/* A hundred megabytes without the end of a line, as damage to a file system leaves it. */
static void test_events_behind_what_is_none(void **state)
{
    world *w = *state;
    FILE *f = fopen(w->log, "w");
    assert_non_null(f);
    write_line(f, 1);
    assert_int_equal(fseek(f, (long)100 << 20, SEEK_CUR), 0);
    fputc('\n', f);
    write_line(f, 2);
    write_line(f, 3);
    fclose(f);
    check(w, CAIRN_OK, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_events_of_all_lengths, begin, end),
        cmocka_unit_test_setup_teardown(test_events_behind_what_is_none, begin, end),
    };
    return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
