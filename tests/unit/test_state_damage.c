/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What storage has lost of a shelf: pages of the index come back from the parts, and a put never
 * builds upon blocks that are damaged.
 */
#include <fcntl.h>
#include <unistd.h>

#include <cairn/state.h>

#include "harness/scratch.h"
#include "state/state_shelf.h"

enum { N = 40000, PAGE_HALF = 4096, KEYS = 8 };

static char path[128];
static double x[N], y[N];

static cairn_shelf *open_shelf(void)
{
    cairn_shelf *s;
    assert_ok(cairn_shelf_open(path, NULL, &s));
    return s;
}

static cairn_shelf *fresh_shelf(void)
{
    static int n;
    snprintf(path, sizeof path, "%s/shelf%d", scratch, n++);
    return open_shelf();
}

static cairn_field field_of(double *data)
{
    return (cairn_field){.name = "x", .data = data, .type = CAIRN_FLOAT64, .count = {N}};
}

static int put(cairn_shelf *s, const char *key, uint64_t version, double seed)
{
    const cairn_field f = field_of(x);
    for (size_t i = 0; i < N; i++)
        x[i] = seed + (double)(i / 8192 == 1 ? version : 0);
    return cairn_state_put(s, key, version, NULL, &f, 1);
}

static void check(cairn_shelf *s, const char *key, uint64_t version, double seed)
{
    const cairn_field f = field_of(y);
    assert_ok(cairn_state_get(s, key, version, &f, 1));
    for (size_t i = 0; i < N; i++)
        assert_true(y[i] == seed + (double)(i / 8192 == 1 ? version : 0));
}

/* --- the index ---------------------------------------------------------------------------- */

static int open_file(const char *name)
{
    char file[200];
    snprintf(file, sizeof file, "%s/%s", path, name);
    const int fd = open(file, O_RDWR);
    assert_true(fd >= 0);
    return fd;
}

/* The half of the page of a state's bucket that was written last. */
static off_t newest_half(int fd, const char *key, uint64_t version)
{
    const off_t at = (off_t)crn_state_index_bucket((crn_state_name){key, version}) * 2 * PAGE_HALF;
    uint64_t seq[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pread(fd, &seq[i], 8, at + i * PAGE_HALF + 8), 8);
    return at + (seq[1] > seq[0]) * PAGE_HALF;
}

typedef enum harm { ZERO_NEWEST, ZERO_BOTH, FLIP_NEWEST, FLIP_BOTH, HARMS } harm;

static void damage(const char *key, uint64_t version, harm how)
{
    static const unsigned char zeros[2 * PAGE_HALF];
    const int fd = open_file("index");
    const off_t newest = newest_half(fd, key, version), page = newest / sizeof zeros * sizeof zeros;
    const bool both = how == ZERO_BOTH || how == FLIP_BOTH;
    if (how <= ZERO_BOTH) {
        const size_t n = both ? sizeof zeros : PAGE_HALF;
        assert_int_equal(pwrite(fd, zeros, n, both ? page : newest), n);
    } else {
        assert_int_equal(pwrite(fd, "?", 1, newest + 40), 1);
        if (both)
            assert_int_equal(pwrite(fd, "?", 1, page + (newest == page ? PAGE_HALF : 0) + 40), 1);
    }
    close(fd);
}

static int count_one(void *arg, const cairn_state_info *info)
{
    (void)info;
    ++*(size_t *)arg;
    return 0;
}

static size_t count(cairn_shelf *s)
{
    size_t n = 0;
    assert_ok(cairn_state_list(s, NULL, true, 0, count_one, &n));
    return n;
}

/* A state that was just put stays, and one that was just dropped stays away, whatever page of the
 * index is lost in whatever way: by has, list, get, put and drop. */
static void test_damaged_index(void **state)
{
    (void)state;
    for (harm how = 0; how < HARMS; how++) {
        cairn_shelf *s = fresh_shelf(), *reader = open_shelf();
        assert_ok(put(s, "m", 1, 1));
        damage("m", 1, how);
        assert_ok(cairn_state_has(reader, "m", 1));
        damage("m", 1, how);
        assert_int_equal(count(reader), 1);
        damage("m", 1, how);
        check(reader, "m", 1, 1);
        assert_ok(cairn_state_pin(s, "m", 1));
        damage("m", 1, how);
        assert_int_equal(put(s, "m", 1, 1), CAIRN_NOTHING);
        while (cairn_state_unpin(s, "m", 1) == CAIRN_OK)
            ;
        assert_ok(cairn_state_drop(s, "m", 1));
        damage("m", 1, how);
        assert_int_equal(cairn_state_has(reader, "m", 1), CAIRN_NOTHING);
        damage("m", 1, how);
        assert_int_equal(count(reader), 0);
        assert_ok(put(s, "m", 1, 2));
        damage("m", 1, how);
        assert_ok(cairn_state_drop(reader, "m", 1)); /* by another, while the writer lives */
        damage("m", 1, how);
        assert_int_equal(cairn_state_has(s, "m", 1), CAIRN_NOTHING);
        assert_ok(put(s, "m", 1, 3));
        damage("m", 1, how);
        check(reader, "m", 1, 3);
        cairn_shelf_close(s);
        cairn_shelf_close(reader);
    }
}

/* A bucket of several pages, each of which is lost in turn. */
static void test_damaged_overflow(void **state)
{
    (void)state;
    enum { MANY = 150 };
    static const unsigned char zeros[2 * PAGE_HALF];
    cairn_shelf *s = fresh_shelf();
    const uint64_t bucket = crn_state_index_bucket((crn_state_name){"k", 0});
    uint64_t version[MANY];
    const cairn_field f = {.name = "x", .data = x, .type = CAIRN_FLOAT64, .count = {1}};
    size_t n = 0;
    for (uint64_t v = 0; n < MANY; v++)
        if (crn_state_index_bucket((crn_state_name){"k", v}) == bucket) {
            assert_ok(cairn_state_put(s, "k", v, NULL, &f, 1));
            version[n++] = v;
        }
    const int fd = open_file("index");
    const off_t end = lseek(fd, 0, SEEK_END);
    assert_true(end > (4097 + 1) * (off_t)sizeof zeros);
    for (off_t at = 4097 * (off_t)sizeof zeros; at < end; at += sizeof zeros) {
        assert_int_equal(pwrite(fd, zeros, sizeof zeros, at), sizeof zeros);
        assert_int_equal(count(s), MANY);
    }
    assert_int_equal(pwrite(fd, zeros, sizeof zeros, (off_t)bucket * 2 * PAGE_HALF), sizeof zeros);
    for (size_t i = 0; i < MANY; i++)
        assert_ok(cairn_state_has(s, "k", version[i]));
    close(fd);
    cairn_shelf_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_damaged_index),
                                       cmocka_unit_test(test_damaged_overflow)};
    return cmocka_run_group_tests_name("state_damage", tests, scratch_begin, scratch_end);
}
