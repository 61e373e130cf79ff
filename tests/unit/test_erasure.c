/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The code against field arithmetic written out bit by bit, and every way to lose blocks of small
 * stripes.
 *
 * NEEDS: isal random123
 */
#include "harness/harness.h"
#include "erasure/erasure.h"

/* The product in GF(2^8) with 0x11d, as in a textbook. */
static uint8_t times(unsigned a, unsigned b)
{
    unsigned product = 0;
    for (; b; b >>= 1) {
        if (b & 1)
            product ^= a;
        a = a << 1 ^ (a & 0x80 ? 0x11d : 0);
    }
    return (uint8_t)product;
}

/* A stripe's blocks, each at its own alignment, with a margin that nothing may touch. */
typedef struct stripe {
    crn_erasure *code;
    int ndata, nblocks;
    size_t nbytes;
    unsigned char *block[CRN_ERASURE_MAX], *saved[CRN_ERASURE_MAX];
    unsigned char *memory;
} stripe;

enum { MARGIN = 64 };

/* Make a stripe with random data and its parity; saved is a copy of all blocks. */
static void stripe_init(stripe *s, crn_rng *rng, int ndata, int nparity, size_t nbytes)
{
    s->ndata = ndata;
    s->nblocks = ndata + nparity;
    s->nbytes = nbytes;
    assert_ok(crn_erasure_create(ndata, nparity, &s->code));
    size_t each = nbytes + 2 * MARGIN;
    assert_ok(crn_alloc(&s->memory, 2 * each * (size_t)s->nblocks));
    memset(s->memory, 0xa5, 2 * each * (size_t)s->nblocks);
    for (int i = 0; i < s->nblocks; i++) {
        s->block[i] = s->memory + each * (size_t)(2 * i) + crn_rng_below(rng, MARGIN);
        s->saved[i] = s->memory + each * (size_t)(2 * i + 1) + crn_rng_below(rng, MARGIN);
        for (size_t k = 0; i < ndata && k < nbytes; k++)
            s->block[i][k] = (unsigned char)crn_rng_u64(rng);
    }
    crn_erasure_encode(s->code, nbytes, s->block, s->block + ndata);
    for (int i = 0; i < s->nblocks; i++)
        memcpy(s->saved[i], s->block[i], nbytes);
}

static void stripe_done(stripe *s)
{
    crn_erasure_free(s->code);
    free(s->memory);
}

static void assert_whole(const stripe *s)
{
    for (int i = 0; i < s->nblocks; i++) {
        assert_memory_equal(s->block[i], s->saved[i], s->nbytes);
        assert_int_equal(s->block[i][s->nbytes], 0xa5);
        assert_true(s->block[i] == s->memory || *(s->block[i] - 1) == 0xa5);
    }
}

/* The blocks that a run may look at, all others being NULL: the first ndata that are present, and
 * those that it makes. */
static void show_blocks(const stripe *s, const bool *present, const bool *made,
                        unsigned char **block)
{
    for (int i = 0, nread = 0; i < s->nblocks; i++) {
        const bool read = present[i] && nread++ < s->ndata;
        block[i] = read || made[i] ? s->block[i] : NULL;
    }
}

/* Rebuild what is lost, from buffers that hold nothing of it, touching no more than it says. */
static void lose_and_rebuild(stripe *s, const bool *present)
{
    crn_rebuild *plan;
    unsigned char *block[CRN_ERASURE_MAX];
    bool lost[CRN_ERASURE_MAX];
    assert_ok(crn_rebuild_create(s->code, present, NULL, &plan));
    for (int i = 0; i < s->nblocks; i++) {
        lost[i] = !present[i];
        if (lost[i])
            memset(s->block[i], 0x5a, s->nbytes);
    }
    show_blocks(s, present, lost, block);
    crn_rebuild_run(plan, s->nbytes, block);
    crn_rebuild_free(plan);
    assert_whole(s);
}

static void test_matrix_is_the_documented_one(void **state)
{
    (void)state;
    for (int r = 0; r < 128; r++)
        for (int j = 0; j < 127; j++) {
            uint8_t c = crn_erasure_coef(r, j);
            assert_int_equal(times(c, (unsigned)((255 - r) ^ j)), 255 ^ j);
            assert_true(r > 0 || c == 1);
        }
    /* pinned: part of the file format */
    assert_int_equal(crn_erasure_coef(1, 0), 0x7f);
    assert_int_equal(crn_erasure_coef(2, 5), 0x85);
}

static void test_encode_matches_the_sum(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 1);
    stripe s;
    stripe_init(&s, &rng, 7, 5, 333);
    for (int r = 0; r < 5; r++)
        for (size_t k = 0; k < s.nbytes; k++) {
            unsigned sum = 0;
            for (int j = 0; j < 7; j++)
                sum ^= times(crn_erasure_coef(r, j), s.block[j][k]);
            assert_int_equal(s.block[7 + r][k], sum);
        }
    stripe_done(&s);
}

static void test_first_parity_is_plain_xor(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 2);
    for (int nparity = 1; nparity <= 3; nparity++) {
        stripe s;
        stripe_init(&s, &rng, 9, nparity, 1000);
        for (size_t k = 0; k < s.nbytes; k++) {
            unsigned char sum = 0;
            for (int j = 0; j < 9; j++)
                sum ^= s.block[j][k];
            assert_int_equal(s.block[9][k], sum);
        }
        stripe_done(&s);
    }
}

/* Lose every subset of the blocks of a stripe that its code can bear. */
static void lose_every_way(stripe *s)
{
    for (unsigned lost = 0; lost < 1u << s->nblocks; lost++) {
        bool present[CRN_ERASURE_MAX];
        for (int i = 0; i < s->nblocks; i++)
            present[i] = !(lost >> i & 1);
        if (__builtin_popcount(lost) <= s->nblocks - s->ndata)
            lose_and_rebuild(s, present);
    }
}

static void test_rebuild_every_pattern(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 63, 257};
    crn_rng rng = crn_rng_of(test_seed(), 3);
    for (int ndata = 1; ndata <= 5; ndata++)
        for (int nparity = 1; nparity <= 4; nparity++) {
            stripe s;
            stripe_init(&s, &rng, ndata, nparity, lengths[(ndata + nparity) % 4]);
            lose_every_way(&s);
            stripe_done(&s);
        }
}

static void test_rebuild_random_large(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 4);
    for (int round = 0; round < 40; round++) {
        int nparity = 1 + (int)crn_rng_below(&rng, 20);
        int ndata = 1 + (int)crn_rng_below(&rng, 60);
        stripe s;
        stripe_init(&s, &rng, ndata, nparity, crn_rng_below(&rng, 3000));
        bool present[CRN_ERASURE_MAX];
        memset(present, true, sizeof present);
        for (int i = 0; i < nparity; i++)
            present[crn_rng_below(&rng, (uint64_t)s.nblocks)] = false;
        lose_and_rebuild(&s, present);
        stripe_done(&s);
    }
}

/* The largest codes, with all that can be lost lost; and blocks longer than one call of ISA-L. */
static void test_rebuild_limits(void **state)
{
    (void)state;
    static const int shapes[][2] = {{254, 1}, {1, 254}, {128, 127}};
    crn_rng rng = crn_rng_of(test_seed(), 5);
    for (size_t k = 0; k < 3; k++) {
        stripe s;
        stripe_init(&s, &rng, shapes[k][0], shapes[k][1], 100);
        bool present[CRN_ERASURE_MAX];
        for (int i = 0; i < s.nblocks; i++)
            present[i] = i >= shapes[k][1];
        lose_and_rebuild(&s, present);
        stripe_done(&s);
    }
    stripe s;
    stripe_init(&s, &rng, 2, 2, (1 << 20) + 77);
    lose_and_rebuild(&s, (bool[]){false, true, true, false});
    stripe_done(&s);
}

static void test_rebuild_only_what_is_wanted(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 6);
    stripe s;
    stripe_init(&s, &rng, 4, 3, 500);
    const bool present[] = {true, false, true, true, false, true, true};
    const bool wanted[] = {true, true, false, false, false, false, false};
    unsigned char *block[7];
    crn_rebuild *plan;
    assert_ok(crn_rebuild_create(s.code, present, wanted, &plan));
    show_blocks(&s, present, (bool[7]){false, true}, block);
    memset(s.block[1], 0, s.nbytes);
    crn_rebuild_run(plan, s.nbytes, block);
    assert_whole(&s);
    crn_rebuild_free(plan);

    /* nothing to do needs nothing: too few are present, but what is wanted is among them */
    assert_ok(crn_rebuild_create(s.code, (bool[7]){true, true}, wanted, &plan));
    crn_rebuild_run(plan, s.nbytes, NULL);
    crn_rebuild_free(plan);
    stripe_done(&s);
}

static void test_rebuild_with_too_few(void **state)
{
    (void)state;
    crn_erasure *code;
    crn_rebuild *plan = NULL;
    assert_ok(crn_erasure_create(4, 2, &code));
    assert_fails(crn_rebuild_create(code, (bool[6]){true, true, false, false, true}, NULL, &plan),
                 CAIRN_ENOTFOUND,
                 "3 of 6 blocks of a stripe are missing, at most 2 can be rebuilt");
    assert_null(plan);
    crn_erasure_free(code);
}

static void test_code_is_a_prefix_of_larger_ones(void **state)
{
    (void)state;
    crn_rng rng = crn_rng_of(test_seed(), 9);
    stripe s;
    stripe_init(&s, &rng, 4, 2, 300);
    crn_erasure *larger;
    unsigned char zero[300] = {0}, spare[3][300], parity[2][300];
    unsigned char *data[] = {s.block[0], s.block[1], s.block[2], s.block[3], zero, zero};
    unsigned char *to[] = {parity[0], parity[1], spare[0], spare[1], spare[2]};
    assert_ok(crn_erasure_create(6, 5, &larger));
    crn_erasure_encode(larger, s.nbytes, data, to);
    assert_memory_equal(parity[0], s.block[4], s.nbytes);
    assert_memory_equal(parity[1], s.block[5], s.nbytes);
    crn_erasure_free(larger);
    stripe_done(&s);
}

static void test_create_refuses_bad_shapes(void **state)
{
    (void)state;
    static const int shapes[][2] = {
        {0, 1},   {1, 0},     {-1, 2},        {2, -1},        {255, 1},
        {1, 255}, {128, 128}, {INT32_MAX, 1}, {1, INT32_MAX}, {INT32_MAX, INT32_MAX}};
    crn_erasure *code = NULL;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        assert_fails(crn_erasure_create(shapes[i][0], shapes[i][1], &code), CAIRN_EINVAL,
                     "at most 255 in all");
    assert_null(code);
    crn_erasure_free(NULL);
    crn_rebuild_free(NULL);
}

static void test_no_memory_at_every_step(void **state)
{
    (void)state;
    crn_erasure *code = NULL;
    crn_rebuild *plan = NULL;
    crn_mem_fail_at(1);
    assert_fails(crn_erasure_create(2, 1, &code), CAIRN_ENOMEM, "cannot allocate");
    assert_ok(crn_erasure_create(2, 1, &code));
    for (uint64_t n = 1; n <= 2; n++) {
        crn_mem_fail_at(n);
        assert_fails(crn_rebuild_create(code, (bool[3]){true, false, true}, NULL, &plan),
                     CAIRN_ENOMEM, "cannot allocate");
        assert_null(plan);
    }
    crn_mem_fail_at(0);
    crn_erasure_free(code);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matrix_is_the_documented_one),
        cmocka_unit_test(test_encode_matches_the_sum),
        cmocka_unit_test(test_first_parity_is_plain_xor),
        cmocka_unit_test(test_rebuild_every_pattern),
        cmocka_unit_test(test_rebuild_random_large),
        cmocka_unit_test(test_rebuild_limits),
        cmocka_unit_test(test_rebuild_only_what_is_wanted),
        cmocka_unit_test(test_rebuild_with_too_few),
        cmocka_unit_test(test_code_is_a_prefix_of_larger_ones),
        cmocka_unit_test(test_create_refuses_bad_shapes),
        cmocka_unit_test(test_no_memory_at_every_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
