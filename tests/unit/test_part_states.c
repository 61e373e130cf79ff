/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parts with states: begun, read and dropped in any order, against a plain model in memory; equal
 * blocks are stored once, and what nobody refers to any more is free.
 *
 * NEEDS: random123
 */
#include "harness/scratch.h"
#include "store/store_part.h"
#include "store/store_uses.h"

enum { STATES = 24, BYTES = 20000, BLOCK = 1024, STEPS = 400 };

static const crn_part_id id = {.run = "a shelf", .series = 1, .nranks = 1, .role = CRN_ROLE_STATES};
static const crn_part_options options = {CRN_IO_THREADS, 2, false};

typedef struct model_state {
    bool there;
    char key[8];
    uint64_t version;
    uint32_t nbytes;
    unsigned char data[BYTES];
} model_state;

static model_state model[STATES];
static crn_rng rng;

static crn_state_name name_of(const model_state *s)
{
    return (crn_state_name){s->key, s->version};
}

static crn_draft_stats put(crn_part *part, const model_state *s, const char *parent)
{
    const crn_var_spec spec = {
        .name = "x", .type = "bytes", .item = 1, .block = BLOCK, .nbytes = s->nbytes};
    crn_draft *d;
    crn_draft_stats stats;
    size_t v;
    assert_ok(crn_state_begin(part, name_of(s), parent, &d));
    assert_ok(crn_draft_add(d, &spec, &v));
    crn_put how = {.way = crn_rng_below(&rng, 2) ? CRN_PUT_COPY : CRN_PUT_COMPARE};
    assert_ok(crn_draft_put_changed(d, v, s->data, &how));
    assert_ok(crn_draft_commit(d, CRN_KEEP_ALL, &stats));
    return stats;
}

static void check_one(crn_part *part, const model_state *s)
{
    static unsigned char data[BYTES];
    crn_mark *m;
    assert_ok(crn_part_load_state(part, name_of(s), &m));
    crn_var *v = crn_mark_find(m, "x");
    assert_non_null(v);
    assert_int_equal(v->spec.nbytes, s->nbytes);
    assert_ok(crn_mark_read(part, m, v, 0, v->nblocks, data, NULL));
    assert_memory_equal(data, s->data, s->nbytes);
    crn_mark_free(m);
}

static void check(crn_part *part)
{
    crn_part_info info;
    size_t n = 0;
    for (size_t i = 0; i < STATES; i++) {
        n += model[i].there;
        if (model[i].there)
            check_one(part, &model[i]);
    }
    crn_part_describe(part, &info);
    assert_int_equal(info.nmarks, n);
}

/* Free space in memory must be free by what the file says, too, and little of that be forgotten. */
static void check_space(crn_part *part)
{
    const uint64_t used = part->space.used;
    assert_ok(crn_part_derive(part));
    assert_true(part->space.used <= used);
}

static model_state *any(bool there)
{
    const size_t first = crn_rng_below(&rng, STATES);
    for (size_t k = 0; k < STATES; k++) {
        model_state *s = &model[(first + k) % STATES];
        if (s->there == there)
            return s;
    }
    return NULL;
}

/* A state like another one but for a few bytes, or a new one of few different blocks. */
static void make(model_state *s, const model_state *parent)
{
    static uint64_t version;
    snprintf(s->key, sizeof s->key, "m%u", (unsigned)crn_rng_below(&rng, 5));
    s->version = ++version ^ 3; /* they need not grow */
    s->nbytes = 1 + (uint32_t)crn_rng_below(&rng, BYTES);
    if (parent) {
        s->nbytes = parent->nbytes;
        memcpy(s->data, parent->data, s->nbytes);
    } else {
        for (uint32_t i = 0; i < s->nbytes; i++)
            s->data[i] = (unsigned char)(i / BLOCK % 3 + crn_rng_below(&rng, 2) * (i % BLOCK == 7));
    }
    for (size_t n = crn_rng_below(&rng, 4); n > 0; n--)
        s->data[crn_rng_below(&rng, s->nbytes)] ^= 0x55;
    s->there = true;
}

static void step(crn_part **part)
{
    model_state *s = any(false), *parent = any(true);
    const uint64_t dice = crn_rng_below(&rng, 10);
    if (dice < 6 && s) {
        const bool alike = parent && crn_rng_below(&rng, 3) > 0;
        make(s, alike ? parent : NULL);
        (void)put(*part, s, alike ? parent->key : NULL);
    } else if (dice < 9) {
        crn_state_name gone[3];
        size_t n = 0;
        for (; n < 1 + dice % 3 && (s = any(true)); n++) {
            gone[n] = name_of(s);
            s->there = false;
        }
        assert_ok(crn_part_drop(*part, gone, n));
    } else {
        crn_part_close(*part);
        assert_ok(crn_part_open(dir, "part", &id, true, &options, part));
    }
}

static void test_random_histories(void **state)
{
    (void)state;
    for (uint64_t stream = 0; stream < 4; stream++) {
        crn_part *part;
        rng = crn_rng_of(test_seed(), stream);
        memset(model, 0, sizeof model);
        assert_ok(crn_part_create(dir, "part", &id, &options, &part));
        for (int i = 0; i < STEPS; i++) {
            step(&part);
            if (i % 10 == 0)
                check(part);
            if (i % 40 == 0)
                check_space(part);
        }
        crn_part_close(part);
    }
}

static void test_equal_blocks_are_stored_once(void **state)
{
    (void)state;
    crn_part *part;
    model_state *a = &model[0], *b = &model[1];
    memset(model, 0, sizeof model);
    rng = crn_rng_of(test_seed(), 9);
    assert_ok(crn_part_create(dir, "part", &id, &options, &part));
    for (size_t k = 0; k < 2; k++) {
        snprintf(model[k].key, sizeof model[k].key, "m%zu", k);
        model[k].version = 1;
        model[k].nbytes = 16 * BLOCK;
    }
    for (size_t i = 0; i < 16 * BLOCK; i++) { /* the second has the blocks in another order */
        a->data[i] = (unsigned char)(i / BLOCK / 2);
        b->data[i] = (unsigned char)(7 - i / BLOCK / 2);
    }
    assert_int_equal(put(part, a, NULL).data_bytes, 8 * BLOCK);
    assert_int_equal(put(part, b, NULL).data_bytes, 0);
    assert_ok(crn_part_drop(part, &(crn_state_name){"m0", 1}, 1));
    check_one(part, b);
    assert_ok(crn_part_drop(part, &(crn_state_name){"m1", 1}, 1));
    assert_true(part->space.used < 8 * BLOCK);
    crn_part_close(part);
}

/* Leave memory behind that the next allocations get, and that is not zero. */
static void soil_memory(void)
{
    enum { SIZES = 40, EACH = 7 };
    void *at[SIZES][EACH];
    for (size_t i = 0; i < SIZES * EACH; i++) {
        at[i / EACH][i % EACH] = malloc(32 + 16 * (i / EACH));
        assert_non_null(at[i / EACH][i % EACH]);
        memset(at[i / EACH][i % EACH], 0xff, 32 + 16 * (i / EACH));
    }
    for (size_t i = 0; i < SIZES * EACH; i++)
        free(at[i / EACH][i % EACH]);
}

/* More states than a page of the catalogue has, put by several writers one after the other: pages
 * that were read are taken over as they are, whatever was in memory before. */
static void test_pages_that_were_read(void **state)
{
    (void)state;
    enum { MANY = 150 };
    crn_part *part;
    rng = crn_rng_of(test_seed(), 11);
    assert_ok(crn_part_create(dir, "part", &id, &options, &part));
    for (uint64_t v = 0; v < MANY; v++) {
        model_state *s = &model[0];
        uint64_t wall_ns;
        *s = (model_state){.key = "m", .version = v, .nbytes = 2 * BLOCK};
        memcpy(s->data, &v, sizeof v);
        (void)put(part, s, NULL);
        if (v % 10 == 9) {
            crn_part_close(part);
            soil_memory();
            assert_ok(crn_part_open(dir, "part", &id, true, &options, &part));
        }
        if (v % 7 == 6)
            assert_ok(crn_part_drop(part, &(crn_state_name){"m", v - 3}, 1));
        for (uint64_t i = 0; i <= v; i += 5)
            assert_int_equal(crn_part_find_state(part, (crn_state_name){"m", i}, &wall_ns),
                             i % 7 != 3 || i + 3 > v);
    }
    crn_part_close(part);
}

static void test_names_are_checked(void **state)
{
    (void)state;
    crn_part *part;
    crn_draft *d;
    char name[CRN_KEY_MAX + 2];
    memset(name, 'a', sizeof name);
    name[CRN_KEY_MAX + 1] = 0;
    assert_ok(crn_part_create(dir, "part", &id, &options, &part));
    const char *const bad[] = {"", ".", "../x", "a/b", "a b", "-x", name};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(crn_state_begin(part, (crn_state_name){bad[i], 1}, NULL, &d), CAIRN_EINVAL,
                     "is no key");
    crn_part_close(part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_histories),
        cmocka_unit_test(test_equal_blocks_are_stored_once),
        cmocka_unit_test(test_pages_that_were_read),
        cmocka_unit_test(test_names_are_checked),
    };
    return cmocka_run_group_tests_name("part_states", tests, scratch_begin, scratch_end);
}
