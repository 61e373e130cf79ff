/* SPDX-License-Identifier: BSD-3-Clause
 *
 * NEEDS: random123
 */
#include "harness/harness.h"
#include "hash/hash.h"

#include <xxhash.h>

/* Bytes that repeat with no power of two. */
static unsigned char *pattern(size_t n)
{
    unsigned char *p;
    assert_ok(crn_alloc(&p, n));
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)(i * 31 + i / 251);
    return p;
}

static void assert_text(crn_digest d, const char *text)
{
    char buf[CRN_DIGEST_TEXT];
    assert_string_equal(crn_digest_format(&d, buf), text);
}

/* Published values of XXH3-128 with seed 0: the digest is part of the file format. */
static void test_digest_known_answers(void **state)
{
    (void)state;
    assert_text(crn_digest_of(NULL, 0), "99aa06d3014798d86001c324468d497f");
    assert_text(crn_digest_of("a", 1), "a96faf705af16834e6c632b61e964e1f");
    assert_text(crn_digest_of("abc", 3), "06b05ab6733a618578af5f94892f3950");
}

/* Around every change of method in XXH3 the bytes are those of xxhash's own canonical form. */
static void test_digest_is_canonical_xxh3(void **state)
{
    (void)state;
    static const size_t sizes[] = {0,   1,   3,   4,   8,    9,    16,   17,    128,
                                   129, 240, 241, 256, 1023, 1024, 1025, 16384, 100003};
    unsigned char *data = pattern(100003);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        XXH128_canonical_t want;
        XXH128_canonicalFromHash(&want, XXH3_128bits(data, sizes[i]));
        crn_digest got = crn_digest_of(data, sizes[i]);
        assert_memory_equal(got.b, want.digest, sizeof got.b);
    }
    free(data);
}

static void test_digest_equal_looks_at_every_byte(void **state)
{
    (void)state;
    crn_digest a = crn_digest_of("block", 5);
    for (size_t i = 0; i < sizeof a.b; i++) {
        crn_digest b = a;
        assert_true(crn_digest_equal(&a, &b));
        b.b[i] ^= 1;
        assert_false(crn_digest_equal(&a, &b));
    }
}

/* Copy n bytes between the given offsets; nothing beside the copy may change. */
static void check_copy(const unsigned char *src, unsigned char *room, size_t to, size_t n)
{
    enum { MARGIN = 128 };
    memset(room, 0xa5, to + n + MARGIN);
    crn_digest got = crn_digest_copy(room + to, src, n);
    crn_digest want = crn_digest_of(src, n);
    assert_true(crn_digest_equal(&got, &want));
    assert_memory_equal(room + to, src, n);
    for (size_t i = 0; i < to; i++)
        assert_int_equal(room[i], 0xa5);
    for (size_t i = 0; i < MARGIN; i++)
        assert_int_equal(room[to + n + i], 0xa5);
}

static void test_digest_copy_any_size_and_alignment(void **state)
{
    (void)state;
    static const size_t sizes[] = {0,     1,     63,    64,    65,    4096,  16320, 16383,  16384,
                                   16385, 16447, 16448, 32767, 32768, 32769, 65536, 131071, 200003};
    unsigned char *src = pattern(200003 + 64), *room;
    assert_ok(crn_alloc_aligned(&room, 200003 + 512, 64));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < 9; k++)
            check_copy(src + (k * 13) % 64, room, (k * 31) % 64, sizes[i]);
    for (size_t to = 0; to < 64; to++)
        check_copy(src + 1, room, to, 16384 + 64 + to / 2);
    free(room);
    free(src);
}

static void test_digest_copy_random(void **state)
{
    (void)state;
    enum { MOST = 150000 };
    crn_rng rng = crn_rng_of(test_seed(), 1);
    unsigned char *src = pattern(MOST + 64), *room;
    assert_ok(crn_alloc_aligned(&room, MOST + 512, 64));
    for (int round = 0; round < 100; round++)
        check_copy(src + crn_rng_below(&rng, 64), room, crn_rng_below(&rng, 64),
                   crn_rng_below(&rng, MOST));
    free(room);
    free(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digest_known_answers),
        cmocka_unit_test(test_digest_is_canonical_xxh3),
        cmocka_unit_test(test_digest_equal_looks_at_every_byte),
        cmocka_unit_test(test_digest_copy_any_size_and_alignment),
        cmocka_unit_test(test_digest_copy_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
