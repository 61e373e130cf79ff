/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The trees file: what is appended is read back; a crash or damage costs what it hit, with a
 * sentence, and never gives other digests.
 */
#include "harness/small_trees.h"

#include <sys/stat.h>

#include "io/io_fault.h"

typedef struct place {
    char dir[64], path[160], file[200];
    crn_trail *trail;
    crn_run *run;
} place;

static void place_init(place *p)
{
    make_scratch(p->dir, sizeof p->dir, "trees");
    snprintf(p->path, sizeof p->path, "%s/trail", p->dir);
    assert_ok(crn_trail_open(p->path, true, &p->trail));
    assert_ok(crn_run_create(p->trail, "run-1", &p->run));
    snprintf(p->file, sizeof p->file, "%s/run-1/trees/000/trees-000002", p->path);
}

static void place_done(place *p)
{
    crn_run_close(p->run);
    crn_trail_close(p->trail);
    remove_tree(p->dir);
}

static void append(place *p, const uint64_t *version, size_t n)
{
    crn_trees *t;
    crn_trees_mark *last = NULL;
    assert_ok(crn_run_trees(p->run, 2, true, &t));
    for (size_t i = 0; i < n; i++) {
        crn_trees_mark *m = small_trees_mark(version[i]);
        assert_ok(crn_trees_append(t, m, last));
        crn_trees_mark_free(last);
        last = m;
    }
    crn_trees_mark_free(last);
    crn_trees_close(t);
}

/* Load all that a file has and check it; the marks' versions are in order. */
static size_t check_all(crn_trees *t, size_t *nbad)
{
    for (size_t i = 0; i < crn_trees_nmarks(t); i++) {
        crn_trees_mark *m = crn_trees_at(t, i);
        assert_true(i == 0 || m->version > crn_trees_at(t, i - 1)->version);
        assert_ptr_equal(crn_trees_of_version(t, m->version), m);
        assert_true(crn_trees_of_version(t, m->version + 1) != m);
        assert_true(m->wall_ns == 1000 + m->version && m->nranks == 4 && m->nvars == 3);
        for (size_t k = 0; k < m->nvars; k++) {
            cairn_status rc = crn_trees_load(t, m, &m->var[k]);
            if (rc == CAIRN_OK) {
                assert_small_var(m->version, k, &m->var[k]);
            } else {
                assert_int_equal(rc, CAIRN_ECORRUPT);
                assert_non_null(strstr(crn_err_peek()->text, "damaged"));
                (*nbad)++;
            }
        }
    }
    return crn_trees_nmarks(t);
}

static void expect(place *p, const uint64_t *version, size_t n)
{
    crn_trees *t;
    size_t nbad = 0;
    assert_ok(crn_run_trees(p->run, 2, false, &t));
    assert_int_equal(check_all(t, &nbad), n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(crn_trees_at(t, i)->version, version[i]);
    assert_int_equal(nbad + crn_trees_ndamaged(t), 0);
    crn_trees_close(t);
}

static void test_append_and_read(void **state)
{
    (void)state;
    place p;
    crn_trees *t;
    place_init(&p);
    assert_fails(crn_run_trees(p.run, 2, false, &t), CAIRN_ENOTFOUND, "trees");
    append(&p, (const uint64_t[]){10, 20, 30}, 3);
    expect(&p, (const uint64_t[]){10, 20, 30}, 3);
    append(&p, (const uint64_t[]){40}, 1);
    expect(&p, (const uint64_t[]){10, 20, 30, 40}, 4);
    append(&p, (const uint64_t[]){25, 35}, 2); /* the run went back to mark 20 */
    expect(&p, (const uint64_t[]){10, 20, 25, 35}, 4);
    place_done(&p);
}

/* Names and types may be as short as they can. */
static void test_shortest_names(void **state)
{
    (void)state;
    for (size_t nvars = 0; nvars < 5; nvars++) {
        place p;
        crn_trees *t;
        crn_trees_mark *m;
        place_init(&p);
        assert_ok(crn_trees_mark_create(nvars, &m));
        m->version = 7;
        m->nranks = 3;
        for (size_t i = 0; i < nvars; i++) {
            const char name[2] = {(char)('a' + i), 0};
            const crn_var_spec spec = {
                .name = name, .type = "i", .item = 1, .block = 1024, .nbytes = 3};
            assert_ok(crn_trees_declare(&m->var[i], &spec, NULL));
            small_tree(7, i, 1, &m->var[i].exact);
            m->var[i].var.root = crn_tree_root(&m->var[i].exact);
            m->var[i].loaded = true;
        }
        assert_ok(crn_run_trees(p.run, 2, true, &t));
        assert_ok(crn_trees_append(t, m, NULL));
        crn_trees_close(t);
        assert_ok(crn_run_trees(p.run, 2, false, &t));
        assert_int_equal(crn_trees_nmarks(t), 1);
        assert_int_equal(crn_trees_at(t, 0)->nvars, nvars);
        crn_trees_close(t);
        crn_trees_mark_free(m);
        place_done(&p);
    }
}

/* What has not changed is not written again. */
static void test_unchanged_costs_little(void **state)
{
    (void)state;
    place p;
    struct stat one, two;
    crn_trees *t;
    place_init(&p);
    append(&p, (const uint64_t[]){10}, 1);
    assert_int_equal(stat(p.file, &one), 0);
    assert_ok(crn_run_trees(p.run, 2, true, &t));
    crn_trees_mark *last = crn_trees_at(t, 0), *m = small_trees_mark(10);
    for (size_t k = 0; k < last->nvars; k++)
        assert_ok(crn_trees_load(t, last, &last->var[k]));
    m->version = 11;
    assert_ok(crn_trees_append(t, m, last));
    crn_trees_mark_free(m);
    crn_trees_close(t);
    assert_int_equal(stat(p.file, &two), 0);
    assert_true(two.st_size - one.st_size < 640);
    place_done(&p);
}

static void *slurp(const char *path, size_t *n)
{
    void *data;
    assert_ok(crn_file_slurp(AT_FDCWD, path, 1 << 20, &data, n));
    return data;
}

/* Cut at any length, the file gives the marks before the cut, and can be appended to. */
static void test_cut(void **state)
{
    (void)state;
    place p;
    size_t n, before = 0, nbad = 0;
    place_init(&p);
    append(&p, (const uint64_t[]){10, 20, 30}, 3);
    unsigned char *whole = slurp(p.file, &n);
    for (size_t cut = 64; cut <= n; cut += cut % 64 == 0 ? 1 : 63) {
        crn_trees *t;
        assert_ok(crn_trees_of("cut", whole, cut, &t));
        const size_t found = check_all(t, &nbad);
        assert_true(found >= before && found <= before + 1);
        before = found;
        crn_trees_close(t);
        if (cut % 64 != 1)
            continue;
        assert_int_equal(truncate(p.file, (off_t)cut), 0);
        append(&p, (const uint64_t[]){99}, 1);
        assert_ok(crn_run_trees(p.run, 2, false, &t));
        assert_int_equal(check_all(t, &nbad), found + 1);
        crn_trees_close(t);
        assert_ok(crn_file_replace(AT_FDCWD, p.file, whole, n));
    }
    assert_int_equal(before, 3);
    assert_int_equal(nbad, 0);
    free(whole);
    place_done(&p);
}

/* One damaged byte anywhere: other marks stay, and nothing wrong is believed. */
static void test_damage(void **state)
{
    (void)state;
    place p;
    size_t n, hit = 0;
    place_init(&p);
    append(&p, (const uint64_t[]){10, 20, 30}, 3);
    unsigned char *whole = slurp(p.file, &n);
    for (size_t i = 0; i < n; i++) {
        crn_trees *t;
        size_t nbad = 0;
        whole[i] ^= 0x10;
        cairn_status rc = crn_trees_of("damaged", whole, n, &t);
        if (i < 64) {
            assert_true(rc == CAIRN_ECORRUPT || rc == CAIRN_EUNSUPPORTED);
        } else {
            assert_ok(rc);
            assert_true(check_all(t, &nbad) >= 2);
            hit += nbad + crn_trees_ndamaged(t) + 3 - crn_trees_nmarks(t) > 0;
            crn_trees_close(t);
        }
        whole[i] ^= 0x10;
    }
    assert_true(hit > n / 2); /* the rest is padding */
    free(whole);
    place_done(&p);
}

/* A read that fails says nothing of what is there: a writer must not take that for a crash's rest.
 */
static void test_what_cannot_be_read_is_not_cut_off(void **state)
{
    (void)state;
    place p;
    crn_trees *t;
    cairn_status rc = CAIRN_EIO;
    place_init(&p);
    append(&p, (const uint64_t[]){10, 20, 30}, 3);
    for (uint64_t at = 1; rc < 0; at++) {
        crn_fault_arm(&(crn_fault){CRN_FAULT_READ, CRN_FAULT_EIO, at, 1});
        rc = crn_run_trees(p.run, 2, true, &t);
        assert_true(rc == (crn_fault_seen() < at ? CAIRN_OK : CAIRN_EIO));
        crn_fault_arm(NULL);
        expect(&p, (const uint64_t[]){10, 20, 30}, 3);
    }
    crn_trees_close(t);
    place_done(&p);
}

static void test_wrong_place(void **state)
{
    (void)state;
    place p;
    crn_trees *t;
    crn_run *other;
    char from[200];
    place_init(&p);
    append(&p, (const uint64_t[]){10}, 1);
    assert_ok(crn_run_create(p.trail, "run-2", &other));
    assert_ok(crn_run_trees(other, 2, true, &t));
    crn_trees_close(t);
    snprintf(from, sizeof from, "%s/run-2/trees/000/trees-000002", p.path);
    assert_int_equal(rename(p.file, from), 0);
    assert_fails(crn_run_trees(other, 2, false, &t), CAIRN_EMISMATCH, "another run");
    crn_run_close(other);
    place_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append_and_read),
        cmocka_unit_test(test_shortest_names),
        cmocka_unit_test(test_unchanged_costs_little),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_what_cannot_be_read_is_not_cut_off),
        cmocka_unit_test(test_wrong_place),
    };
    return cmocka_run_group_tests_name("trees", tests, NULL, NULL);
}
