/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What happens to a shelf is in the log of whoever owns it: in its file, or with the program.
 *
 * NEEDS: inih
 */
#include <unistd.h>

#include <cairn/state.h>

#include "event/event.h"
#include "harness/scratch.h"

typedef struct heard {
    char text[4096]; /* "put m 1, dropped m 1, " */
} heard;

static void hear(void *arg, const char *line)
{
    heard *h = arg;
    crn_event e;
    const size_t n = strlen(h->text);
    assert_true(crn_event_decode(line, NULL, &e));
    assert_true(e.time > 1e9);
    if (e.kind == CRN_EVENT_STATE) {
        snprintf(h->text + n, sizeof h->text - n, "%s %s %d, ", e.state.what, e.state.key,
                 (int)e.state.version);
        assert_int_equal(e.state.text != NULL, strstr(e.state.what, "failed") != NULL);
    } else {
        assert_int_equal(e.kind, CRN_EVENT_SHELF);
        snprintf(h->text + n, sizeof h->text - n, "%s %d, ", e.shelf.what, (int)e.shelf.states);
    }
    crn_event_done(&e);
}

static cairn_shelf *open_shelf(const char *name, const char *events)
{
    char path[160], config[160];
    cairn_shelf *s;
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    snprintf(config, sizeof config, "%s/%s.ini", scratch, name);
    FILE *f = fopen(config, "w");
    assert_non_null(f);
    fprintf(f, "[state]\nevents = %s\n", events);
    fclose(f);
    assert_ok(cairn_shelf_open(path, config, &s));
    return s;
}

static int put(cairn_shelf *s, uint64_t version, double value)
{
    const cairn_field f = {.name = "x", .data = &value, .type = CAIRN_FLOAT64, .count = {1}};
    return cairn_state_put(s, "m", version, NULL, &f, 1);
}

/* All that happened to a shelf that wrote its own log. */
static void read_log(const char *name, heard *h)
{
    char path[200], line[4096];
    snprintf(path, sizeof path, "%s/%s/events", scratch, name);
    FILE *f = fopen(path, "r");
    h->text[0] = 0;
    while (f && fgets(line, sizeof line, f))
        hear(h, line);
    if (f)
        fclose(f);
}

static void make_history(cairn_shelf *s, cairn_shelf *to)
{
    cairn_transfer *t;
    assert_ok(put(s, 1, 1));
    assert_int_equal(put(s, 1, 1), CAIRN_NOTHING);
    assert_int_equal(put(s, 1, 2), CAIRN_EMISMATCH);
    assert_ok(cairn_state_push(s, "m", 1, to, 0, &t));
    assert_ok(cairn_transfer_wait(t));
    assert_ok(put(s, 2, 2));
    assert_ok(cairn_state_drop(s, "m", 1));
}

static void test_program_listens(void **state)
{
    (void)state;
    heard here = {""}, there = {""};
    cairn_shelf *s = open_shelf("near", "all"), *to = open_shelf("far", "all");
    cairn_shelf_listen(s, hear, &here);
    cairn_shelf_listen(to, hear, &there);
    make_history(s, to);
    assert_string_equal(here.text, "put m 1, put failed m 1, put m 2, dropped m 1, ");
    assert_string_equal(there.text, "copied m 1, ");
    cairn_shelf_close(s);
    cairn_shelf_close(to);
    read_log("near", &here);
    assert_string_equal(here.text, "");
}

static void test_file_of_the_shelf(void **state)
{
    (void)state;
    heard h;
    char path[200];
    cairn_shelf *s = open_shelf("own", "notable"), *to = open_shelf("other", "none");
    make_history(s, to);
    assert_int_equal(put(to, 1, 7), CAIRN_EMISMATCH); /* and nobody is told */
    cairn_shelf_close(s);
    s = open_shelf("own", "notable");
    assert_ok(put(s, 3, 3)); /* goes on with the part of the first */
    cairn_shelf_close(s);
    snprintf(path, sizeof path, "%s/own/index", scratch);
    assert_int_equal(unlink(path), 0);
    cairn_shelf_close(open_shelf("own", "notable"));
    read_log("own", &h);
    assert_string_equal(h.text, "put failed m 1, adopted 1, indexed 2, ");
    read_log("other", &h);
    assert_string_equal(h.text, "");
    cairn_shelf_close(to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_program_listens),
                                       cmocka_unit_test(test_file_of_the_shelf)};
    return cmocka_run_group_tests_name("state_log", tests, scratch_begin, scratch_end);
}
