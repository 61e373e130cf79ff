/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What storage has damaged of earlier marks is found with time, and not inherited any more.
 *
 * NEEDS: random123
 */
#include "harness/model.h"

#include <fcntl.h>
#include <unistd.h>

enum { BLOCK = 4096, NBLOCKS = 100, ENOUGH = 200 /* marks, for 64 shares to have their turns */ };

static char scratch[64];
static int dirfd;
static crn_part *part;
static unsigned char still[NBLOCKS * BLOCK], moving[NBLOCKS * BLOCK];

static int setup(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 0);
    make_scratch(scratch, sizeof scratch, "scrub");
    dirfd = open(scratch, O_RDONLY | O_DIRECTORY);
    for (size_t i = 0; i < sizeof still; i++)
        still[i] = (unsigned char)crn_rng_u64(&rng);
    return dirfd < 0;
}

static int teardown(void **state)
{
    (void)state;
    close(dirfd);
    remove_tree(scratch);
    return 0;
}

static void begin(void)
{
    assert_ok(crn_part_create(dirfd, "part", &model_id, &model_options, &part));
}

static void end(void)
{
    crn_part_close(part);
    assert_int_equal(unlinkat(dirfd, "part", 0), 0);
}

static void put(crn_draft *d, const char *name, const unsigned char *data)
{
    const crn_var_spec spec = {
        .name = name, .type = "uint8", .item = 1, .block = BLOCK, .nbytes = sizeof still};
    size_t v;
    assert_ok(crn_draft_add(d, &spec, &v));
    assert_ok(crn_draft_put_all(d, v, data));
}

/* Take a mark in which one block has changed; how many pieces it healed. */
static uint64_t mark(uint64_t version)
{
    crn_draft *d;
    crn_draft_stats stats;
    memcpy(moving, &version, sizeof version);
    assert_ok(crn_draft_begin(part, version, &d));
    put(d, "still", still);
    put(d, "moving", moving);
    assert_ok(crn_draft_commit(d, 2, &stats));
    return stats.healed;
}

static uint64_t scrub(void)
{
    uint64_t n;
    assert_ok(crn_part_scrub(part, &n));
    return n;
}

/* The newest mark, with its tables. */
static crn_mark *load(uint64_t version)
{
    crn_mark *m;
    assert_ok(crn_part_load(part, version, &m));
    for (size_t v = 0; v < m->nvars; v++)
        assert_ok(crn_mark_table(part, m, &m->var[v]));
    return m;
}

static void flip(uint64_t off)
{
    unsigned char byte;
    int fd = openat(dirfd, "part", O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, (off_t)off), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)off), 1);
    close(fd);
}

static void check(uint64_t version)
{
    static unsigned char data[sizeof still];
    crn_part_close(part);
    assert_ok(crn_part_open(dirfd, "part", &model_id, true, &model_options, &part));
    crn_mark *m = load(version);
    assert_ok(crn_mark_read(part, m, crn_mark_find(m, "still"), 0, NBLOCKS, data, NULL));
    assert_memory_equal(data, still, sizeof still);
    assert_ok(crn_mark_read(part, m, crn_mark_find(m, "moving"), 0, NBLOCKS, data, NULL));
    assert_memory_equal(data, moving, sizeof moving);
    crn_mark_free(m);
}

static void heal_block(const char *name, uint64_t block)
{
    uint64_t version = 2;
    begin();
    mark(1);
    mark(2);
    crn_mark *m = load(2);
    flip(crn_mark_find(m, name)->table[block].off + 17);
    crn_mark_free(m);
    while (scrub() == 0 && version < ENOUGH)
        assert_int_equal(mark(++version), 0);
    assert_true(version < ENOUGH);
    assert_int_equal(mark(++version), 1);
    for (int i = 0; i < 5; i++) /* in which other blocks get to where the lost one was */
        assert_int_equal(mark(++version), 0);
    check(version);
    end();
}

static void test_every_block_has_its_turn(void **state)
{
    (void)state;
    const uint64_t block[] = {0, 1, 49, 98, NBLOCKS - 1};
    for (size_t i = 0; i < sizeof block / sizeof *block; i++)
        heal_block("still", block[i]);
    heal_block("moving", 60); /* whose table is a new one each time */
}

/* A table that no mark writes again is inherited, too, and no longer in memory only. */
static void test_tables_are_looked_at_each_time(void **state)
{
    (void)state;
    begin();
    mark(1);
    mark(2);
    crn_mark *m = load(2);
    flip(crn_mark_find(m, "still")->place.off + 3);
    crn_mark_free(m);
    assert_int_equal(scrub(), 1);
    assert_int_equal(mark(3), 1);
    assert_int_equal(scrub(), 0);
    check(3);
    end();
}

/* A draft that comes to nothing does not make up for what is lost. */
static void test_what_is_lost_stays_lost_until_a_mark(void **state)
{
    (void)state;
    crn_draft *d;
    begin();
    mark(1);
    mark(2);
    crn_mark *m = load(2);
    for (uint64_t i = 0; i < NBLOCKS; i++) /* whichever has its turn */
        flip(crn_mark_find(m, "still")->table[i].off);
    crn_mark_free(m);
    const uint64_t n = scrub();
    assert_true(n > 0 && n <= NBLOCKS / 64 + 1);
    assert_ok(crn_draft_begin(part, 3, &d));
    put(d, "still", still);
    crn_draft_drop(d);
    assert_int_equal(mark(4), n);
    end();
}

/* What a mark wrote itself it has not inherited: nobody reads it at once. */
static void test_a_full_mark_costs_no_reading(void **state)
{
    (void)state;
    begin();
    mark(1);
    crn_mark *m = load(1);
    for (uint64_t i = 0; i < NBLOCKS; i++)
        flip(crn_mark_find(m, "still")->table[i].off);
    crn_mark_free(m);
    assert_int_equal(scrub(), 0);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_block_has_its_turn),
        cmocka_unit_test(test_tables_are_looked_at_each_time),
        cmocka_unit_test(test_what_is_lost_stays_lost_until_a_mark),
        cmocka_unit_test(test_a_full_mark_costs_no_reading),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
