/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Manifests of many marks, which are changed without being written anew: against a plain list, cut
 * and damaged everywhere behind it, and with writes that fail.
 *
 * NEEDS: random123
 */
#include "harness/harness.h"
#include "io/io.h"
#include "io/io_fault.h"
#include "store/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MANY = 256, CHANGE = 80 };

typedef CRN_VEC(crn_manifest_mark) marks;

static char scratch[64];

static int setup(void **state)
{
    (void)state;
    make_scratch(scratch, sizeof scratch, "many-marks");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    remove_tree(scratch);
    return 0;
}

static crn_manifest_mark mark_of(uint64_t version)
{
    return (crn_manifest_mark){.version = version,
                               .wall_ns = version + 7,
                               .nbytes = version * 3,
                               .series = 1,
                               .nranks = 4,
                               .levels = 1};
}

static void assert_marks(const crn_manifest *m, const marks *list)
{
    assert_int_equal(m->mark.n, list->n);
    for (size_t i = 0; i < list->n; i++)
        assert_true(crn_manifest_mark_equal(&m->mark.at[i], &list->at[i]));
}

static void begin(const char *name, crn_trail **t, crn_run **run)
{
    assert_ok(crn_trail_open(scratch, true, t));
    assert_ok(crn_run_create(*t, name, run));
}

static size_t file_bytes(const char *name, ino_t *ret)
{
    char path[128];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s/manifest", scratch, name);
    assert_int_equal(stat(path, &st), 0);
    if (ret)
        *ret = st.st_ino;
    return (size_t)st.st_size;
}

/* What the file has, whoever asks. */
static void assert_file(crn_trail *t, const char *name, const marks *list, bool finished)
{
    crn_run *run;
    assert_ok(crn_run_open(t, name, false, &run));
    assert_marks(crn_run_manifest(run), list);
    assert_int_equal(crn_run_manifest(run)->finished, finished);
    crn_run_close(run);
}

/* Change some of the last marks, as levels do, drop some, and add some; how many are as before. */
static size_t change(crn_rng *r, marks *list, uint64_t *version)
{
    size_t same = list->n;
    switch (crn_rng_below(r, 8)) {
    case 0: /* a mark is raised, and one before it loses a level */
        same = list->n - CRN_MIN(list->n, 1 + crn_rng_below(r, 5));
        for (size_t i = same; i < list->n; i++)
            list->at[i].levels ^= 8;
        break;
    case 1: /* some were abandoned */
        list->n -= CRN_MIN(list->n, crn_rng_below(r, 3));
        same = list->n;
        break;
    default:
        break;
    }
    assert_ok(crn_vec_push(list, mark_of((*version)++)));
    return same;
}

static void test_changes_are_a_list(void **state)
{
    (void)state;
    crn_trail *t;
    crn_run *run;
    marks list = {0};
    crn_rng r = crn_rng_of(test_seed(), 1);
    uint64_t version = 1;
    ino_t last, now;
    size_t nwhole = 0;
    begin("list", &t, &run);
    file_bytes("list", &last);
    for (size_t i = 0; i < 6 * MANY; i++) {
        size_t same = change(&r, &list, &version);
        if (crn_rng_below(&r, 50) == 0)
            same = 0; /* whoever does not know says so */
        const bool finished = crn_rng_below(&r, 40) == 0;
        assert_ok(crn_run_replace_marks(run, list.at, list.n, same, finished));
        assert_marks(crn_run_manifest(run), &list);
        assert_file(t, "list", &list, finished);
        file_bytes("list", &now);
        nwhole += i > 2 * MANY && now != last && same > 0;
        last = now;
        if (crn_rng_below(&r, 60) == 0) { /* another leg */
            crn_run_close(run);
            assert_ok(crn_run_open(t, "list", true, &run));
        }
    }
    assert_true(nwhole < 20); /* the rest was appended */
    crn_run_close(run);
    crn_trail_close(t);
    crn_vec_done(&list);
}

/* All that was written for so many marks, in proportion to one. */
static void test_marks_cost_what_they_are(void **state)
{
    (void)state;
    crn_trail *t;
    crn_run *run;
    uint64_t written = 0;
    ino_t last = 0, now;
    begin("cost", &t, &run);
    for (uint64_t v = 1; v <= 20 * MANY; v++) {
        const crn_manifest_mark m = mark_of(v);
        assert_ok(crn_run_commit(run, &m, CRN_KEEP_ALL));
        const size_t n = file_bytes("cost", &now);
        if (v > MANY)
            written += now == last ? CHANGE : n;
        last = now;
    }
    assert_true(written < (uint64_t)20 * MANY * 4 * CHANGE);
    crn_run_close(run);
    crn_trail_close(t);
}

/* A manifest with three changes, of one, three and one mark; where each ends. */
static void *changed_file(const char *name, marks *list, size_t end[4])
{
    crn_trail *t;
    crn_run *run;
    void *data;
    size_t n;
    char path[128];
    begin(name, &t, &run);
    for (uint64_t v = 1; v <= 2 * MANY; v++)
        assert_ok(crn_vec_push(list, mark_of(v)));
    assert_ok(crn_run_replace_marks(run, list->at, list->n, 0, false));
    end[0] = file_bytes(name, NULL);
    assert_ok(crn_vec_push(list, mark_of(5000)));
    assert_ok(crn_run_replace_marks(run, list->at, list->n, list->n - 1, false));
    list->at[list->n - 1].levels = 9;
    list->at[list->n - 2].levels = 8;
    assert_ok(crn_vec_push(list, mark_of(5001)));
    assert_ok(crn_run_replace_marks(run, list->at, list->n, list->n - 3, false));
    assert_ok(crn_vec_push(list, mark_of(5002)));
    assert_ok(crn_run_replace_marks(run, list->at, list->n, list->n - 1, true));
    end[1] = end[0] + CHANGE;
    end[2] = end[1] + 3 * CHANGE;
    end[3] = end[2] + CHANGE;
    assert_int_equal(file_bytes(name, NULL), end[3]);
    crn_run_close(run);
    crn_trail_close(t);
    snprintf(path, sizeof path, "%s/%s/manifest", scratch, name);
    assert_ok(crn_file_slurp(AT_FDCWD, path, 1 << 20, &data, &n));
    return data;
}

static size_t marks_after(const size_t end[4], size_t n)
{
    return 2 * MANY + (n >= end[1]) + (n >= end[2]) + (n >= end[3]);
}

/* A crash leaves the changes that are whole, of those that belong together all or none. */
static void test_cut_changes_never_counted(void **state)
{
    (void)state;
    marks list = {0};
    size_t end[4];
    crn_manifest m;
    unsigned char *data = changed_file("cut", &list, end), *copy;
    assert_ok(crn_alloc(&copy, end[3] + 4096));
    for (size_t n = 0; n < end[3]; n++) {
        const cairn_status rc = crn_manifest_parse(data, n, &m);
        assert_int_equal(rc == CAIRN_OK, n >= end[0]);
        if (rc < 0)
            continue;
        assert_int_equal(m.mark.n, marks_after(end, n));
        assert_true(m.end <= n && !m.finished);
        assert_int_equal(m.mark.at[2 * MANY - 1].levels, n >= end[2] ? 8 : 1);
        crn_manifest_done(&m);
    }
    for (size_t i = 0; i < 4; i++) { /* a machine's crash may leave zeros */
        memset(copy, 0, end[3] + 4096);
        memcpy(copy, data, end[i]);
        assert_ok(crn_manifest_parse(copy, end[3] + 4096, &m));
        assert_int_equal(m.mark.n, marks_after(end, end[i]));
        assert_int_equal(m.end, end[i]);
        crn_manifest_done(&m);
    }
    free(copy);
    free(data);
    crn_vec_done(&list);
}

static void test_damage_is_noticed(void **state)
{
    (void)state;
    marks list = {0};
    size_t end[4];
    crn_manifest m;
    unsigned char *data = changed_file("damaged", &list, end);
    for (size_t at = 0; at<end[3]; at += at> 200 && at < end[0] - 200 ? 97 : 1)
        for (int bit = 0; bit < 8; bit++) {
            data[at] ^= (unsigned char)(1u << bit);
            assert_int_equal(crn_manifest_parse(data, end[3], &m), CAIRN_ECORRUPT);
            data[at] ^= (unsigned char)(1u << bit);
        }
    assert_ok(crn_manifest_parse(data, end[3], &m));
    assert_true(m.finished);
    assert_marks(&m, &list);
    crn_manifest_done(&m);
    /* a change that another list had, or that stood elsewhere, is none */
    memmove(data + end[0], data + end[2], CHANGE);
    assert_int_equal(crn_manifest_parse(data, end[1], &m), CAIRN_ECORRUPT);
    free(data);
    crn_vec_done(&list);
}

/* What could not be written counts or does not, and the next mark finds a list either way. */
static void test_writes_that_fail(void **state)
{
    static const crn_fault_how how[] = {CRN_FAULT_EIO, CRN_FAULT_ENOSPC, CRN_FAULT_SHORT,
                                        CRN_FAULT_TORN};
    static const crn_fault_where where[] = {CRN_FAULT_WRITE, CRN_FAULT_SYNC, CRN_FAULT_OPEN};
    (void)state;
    crn_trail *t;
    crn_run *run, *seen;
    marks list = {0};
    uint64_t version = 1;
    begin("failing", &t, &run);
    for (; version <= 2 * MANY; version++)
        assert_ok(crn_vec_push(&list, mark_of(version)));
    assert_ok(crn_run_replace_marks(run, list.at, list.n, 0, false));
    for (size_t i = 0; i < sizeof how / sizeof *how * (sizeof where / sizeof *where); i++) {
        const crn_fault f = {.where = where[i % 3], .at = 1, .how = how[i / 3], .count = 1};
        assert_ok(crn_vec_push(&list, mark_of(version++)));
        crn_fault_arm(&f);
        const cairn_status rc = crn_run_replace_marks(run, list.at, list.n, list.n - 1, false);
        crn_fault_arm(NULL);
        assert_int_equal(rc == CAIRN_OK, how[i / 3] == CRN_FAULT_SHORT || rc == CAIRN_OK);
        assert_ok(crn_run_open(t, "failing", false, &seen));
        assert_true(crn_run_manifest(seen)->mark.n + (rc < 0) >= list.n);
        crn_run_close(seen);
        if (rc < 0) {
            list.n--;
            assert_marks(crn_run_manifest(run), &list);
        }
        assert_ok(crn_vec_push(&list, mark_of(version++)));
        assert_ok(crn_run_replace_marks(run, list.at, list.n, list.n - 1, false));
        assert_file(t, "failing", &list, false);
    }
    crn_run_close(run);
    crn_trail_close(t);
    crn_vec_done(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes_are_a_list),
        cmocka_unit_test(test_marks_cost_what_they_are),
        cmocka_unit_test(test_cut_changes_never_counted),
        cmocka_unit_test(test_damage_is_noticed),
        cmocka_unit_test(test_writes_that_fail),
    };
    return cmocka_run_group_tests_name("manifest", tests, setup, teardown);
}
