/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What storage has lost of a shelf: pages of the index come back from the parts, and a put never
 * builds upon blocks that are damaged.
 */
#include <fcntl.h>
#include <unistd.h>

#include <cairn/state.h>

#include "harness/scratch.h"
#include "io/io_fault.h"
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

/* --- blocks ------------------------------------------------------------------------------- */

/* Change a byte of the first place of a writer's part that has the 8 bytes of a number. */
static void damage_block(uint32_t writer, double number)
{
    char name[64];
    unsigned char page[4096];
    snprintf(name, sizeof name, "writers-000/part-%u-0", writer);
    const int fd = open_file(name);
    for (off_t at = 0; pread(fd, page, sizeof page, at) == sizeof page; at += sizeof page)
        if (memcmp(page, &number, sizeof number) == 0 && memcmp(page + 8, &number, 8) == 0) {
            assert_int_equal(pwrite(fd, "?", 1, at + 3), 1);
            close(fd);
            return;
        }
    fail();
}

static void assert_damaged(cairn_shelf *s, const char *key, uint64_t version)
{
    const cairn_field f = field_of(y);
    assert_int_equal(cairn_state_get(s, key, version, &f, 1), CAIRN_ECORRUPT);
}

static uint32_t npins;

static uint32_t writer_of(cairn_shelf *s, const char *key, uint64_t version)
{
    cairn_state_info info = {.struct_bytes = sizeof info};
    assert_ok(cairn_state_describe(s, key, version, &info, NULL, NULL));
    npins = info.npins;
    return info.writer;
}

/* A state that has blocks in common with a damaged one is whole when its put says so; and the
 * damaged one is when it is put again, by its writer or by another. */
static void test_put_over_damage(void **state)
{
    (void)state;
    cairn_shelf *s = fresh_shelf(), *other = open_shelf(), *reader = open_shelf();
    assert_ok(put(s, "m", 1, 7));
    damage_block(1, 7);
    assert_damaged(reader, "m", 1);
    assert_ok(put(s, "m", 2, 7)); /* takes after it */
    check(reader, "m", 2, 7);
    assert_ok(put(s, "n", 3, 7)); /* has blocks that it has */
    check(reader, "n", 3, 7);
    assert_damaged(reader, "m", 1);
    assert_ok(cairn_state_pin(s, "m", 1));
    assert_ok(put(s, "m", 1, 7));
    check(reader, "m", 1, 7);
    assert_int_equal(put(s, "m", 1, 7), CAIRN_NOTHING);
    assert_int_equal(put(s, "m", 1, 8), CAIRN_EMISMATCH);
    assert_int_equal(put(other, "m", 1, 7), CAIRN_NOTHING);
    assert_int_equal(writer_of(reader, "m", 1), 1);
    damage_block(1, 7);
    damage_block(1, 7); /* of the two copies, that which counts */
    assert_damaged(reader, "m", 1);
    assert_ok(put(other, "m", 1, 7));
    check(reader, "m", 1, 7);
    assert_int_equal(writer_of(reader, "m", 1), 2);
    assert_int_equal(npins, 1);
    assert_ok(put(s, "o", 4, 9)); /* and heeds that its own is not wanted any more */
    assert_int_equal(count(reader), 4);
    cairn_shelf_close(s);
    cairn_shelf_close(other);
    cairn_shelf_close(reader);
}

static void push(cairn_shelf *from, cairn_shelf *to, int result)
{
    cairn_transfer *t;
    assert_ok(cairn_state_push(from, "m", 1, to, 0, &t));
    assert_int_equal(cairn_transfer_wait(t), result);
}

/* The same of copies. */
static void test_push_over_damage(void **state)
{
    (void)state;
    cairn_shelf *s = fresh_shelf();
    assert_ok(put(s, "m", 1, 7));
    cairn_shelf *far = fresh_shelf(), *reader = open_shelf();
    push(s, far, CAIRN_OK);
    push(s, far, CAIRN_NOTHING);
    damage_block(1, 7);
    assert_damaged(reader, "m", 1);
    push(s, far, CAIRN_OK);
    check(reader, "m", 1, 7);
    push(s, far, CAIRN_NOTHING);
    cairn_shelf_close(s);
    cairn_shelf_close(far);
    cairn_shelf_close(reader);
}

/* --- full disks --------------------------------------------------------------------------- */

static uint64_t part_bytes(cairn_shelf *s)
{
    cairn_shelf_info info = {.struct_bytes = sizeof info};
    assert_ok(cairn_shelf_describe(s, &info));
    return info.part_bytes;
}

/* Where no new byte has room, what is dropped makes some: by its writer, or by another. */
static void test_drop_when_full(void **state)
{
    (void)state;
    cairn_shelf *s = fresh_shelf(), *other = open_shelf();
    for (uint64_t v = 1; v <= 3; v++)
        assert_ok(put(s, "m", v, (double)v));
    const uint64_t before = part_bytes(s);
    crn_fault_arm(&(crn_fault){CRN_FAULT_WRITE, CRN_FAULT_ENOSPC, 2, 1}); /* the catalogue */
    assert_ok(cairn_state_drop(s, "m", 1));
    crn_fault_arm(NULL);
    assert_true(part_bytes(s) < before);
    crn_fault_arm(&(crn_fault){CRN_FAULT_WRITE, CRN_FAULT_ENOSPC, 2, 1}); /* the line that asks */
    assert_ok(cairn_state_drop(other, "m", 2));
    crn_fault_arm(NULL);
    crn_fault_arm(&(crn_fault){CRN_FAULT_WRITE, CRN_FAULT_ENOSPC, 1, 1}); /* and then a block */
    assert_ok(put(s, "m", 4, 4));
    crn_fault_arm(NULL);
    check(other, "m", 3, 3);
    check(other, "m", 4, 4);
    assert_int_equal(count(other), 2);
    cairn_shelf_close(s);
    cairn_shelf_close(other);
}

/* Storage is given back when much was dropped, and of what is left at the end. */
static void test_shrinks(void **state)
{
    (void)state;
    enum { MANY = 40, STATE_BYTES = N * sizeof *x };
    cairn_shelf *s = fresh_shelf(), *reader = open_shelf();
    for (uint64_t v = 1; v <= MANY; v++)
        assert_ok(put(s, "m", v, (double)v));
    for (uint64_t v = 1; v <= MANY; v++)
        if (v % 10 != 0)
            assert_ok(cairn_state_drop(s, "m", v));
    assert_true(part_bytes(reader) < (MANY / 10 * 3 + 5) * (uint64_t)STATE_BYTES);
    cairn_shelf_close(s);
    assert_true(part_bytes(reader) < (MANY / 10 + 1) * (uint64_t)STATE_BYTES);
    s = open_shelf();
    assert_ok(put(s, "m", 1, 1));
    for (uint64_t v = 10; v <= MANY; v += 10)
        check(reader, "m", v, (double)v);
    check(reader, "m", 1, 1);
    cairn_shelf_close(s);
    cairn_shelf_close(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damaged_index),   cmocka_unit_test(test_damaged_overflow),
        cmocka_unit_test(test_put_over_damage), cmocka_unit_test(test_push_over_damage),
        cmocka_unit_test(test_drop_when_full),  cmocka_unit_test(test_shrinks)};
    return cmocka_run_group_tests_name("state_damage", tests, scratch_begin, scratch_end);
}
