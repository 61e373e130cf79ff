/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What marks promise rests on the digest alone. With digests of one byte, blocks that change and
 * keep their digest stay what they were, exactly those, and nothing notices; with whole digests
 * there is none.
 *
 * NEEDS: random123
 */
#include "harness/harness.h"

#include "store/store.h"

enum { BLOCK = 1024, NBLOCKS = 256, MARKS = 24 };

static const crn_part_id id = {"0123456789abcde", 1, 0, 1, CRN_ROLE_OWN};
static const crn_part_options options = {CRN_IO_AUTO, 4, false};
static unsigned char now[NBLOCKS][BLOCK], want[NBLOCKS][BLOCK], got[NBLOCKS][BLOCK];

static void mark(crn_part *part, uint64_t version)
{
    crn_draft *d;
    size_t v;
    const crn_var_spec spec = {
        .name = "x", .type = "bytes", .item = 1, .block = BLOCK, .nbytes = sizeof now};
    crn_put how = {.way = version % 2 ? CRN_PUT_COMPARE : CRN_PUT_COPY};
    assert_ok(crn_draft_begin(part, version, &d));
    assert_ok(crn_draft_add(d, &spec, &v));
    assert_ok(crn_draft_put_changed(d, v, now, &how));
    assert_ok(crn_draft_commit(d, 1, NULL));
}

/* What the mark must have: a block's new bytes only if its digest tells them from the old ones.
 * Returns how many changes are missed. */
static int expect(uint64_t version)
{
    int missed = 0;
    for (size_t i = 0; i < NBLOCKS; i++) {
        const crn_digest old = crn_digest_of(want[i], BLOCK), new = crn_digest_of(now[i], BLOCK);
        if (version == 1 || !crn_digest_equal(&old, &new))
            memcpy(want[i], now[i], BLOCK);
        else
            missed += memcmp(want[i], now[i], BLOCK) != 0;
    }
    return missed;
}

static void check(crn_part *part, uint64_t version)
{
    crn_mark *m;
    assert_ok(crn_part_load(part, version, &m));
    crn_var *v = crn_mark_find(m, "x");
    assert_non_null(v);
    assert_ok(crn_mark_read(part, m, v, 0, v->nblocks, got, NULL));
    assert_memory_equal(got, want, sizeof got);
    crn_mark_free(m);
}

static int play(size_t nbytes)
{
    char scratch[64];
    crn_part *part;
    int missed = 0;
    crn_rng rng = crn_rng_of(test_seed(), nbytes);
    make_scratch(scratch, sizeof scratch, "weak");
    const int dir = open(scratch, O_RDONLY | O_DIRECTORY);
    assert_true(dir >= 0);
    crn_digest_weaken(nbytes);
    assert_ok(crn_part_create(dir, "part", &id, &options, &part));
    for (uint64_t version = 1; version <= MARKS; version++) {
        for (size_t i = 0; i < NBLOCKS; i++)
            if (crn_rng_below(&rng, 2) == 0)
                now[i][crn_rng_below(&rng, BLOCK)] = (unsigned char)crn_rng_u64(&rng);
        missed += expect(version);
        mark(part, version);
        check(part, version);
    }
    crn_part_close(part);
    crn_digest_weaken(CRN_DIGEST_BYTES);
    close(dir);
    remove_tree(scratch);
    return missed;
}

static void test_collisions_are_missed_and_nothing_else(void **state)
{
    (void)state;
    assert_true(play(1) > 0);
    assert_int_equal(play(CRN_DIGEST_BYTES), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collisions_are_missed_and_nothing_else)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
