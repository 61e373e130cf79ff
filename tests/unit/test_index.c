/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hash index against a plain list: items come, go and move; hashes collide on purpose.
 *
 * NEEDS: random123
 */
#include "harness/harness.h"

enum { ITEMS = 300, STEPS = 20000 };

/* What is where, the slow way. */
typedef struct model {
    uint64_t hash[ITEMS];
    bool there[ITEMS];
} model;

/* Is exactly what the model has at a hash found? */
static void check(const crn_index *x, const model *m, uint64_t hash)
{
    bool seen[ITEMS] = {false};
    uint32_t at;
    for (size_t probe = 0; crn_index_next(x, hash, &probe, &at);) {
        assert_true(at < ITEMS && m->there[at] && !seen[at]);
        assert_int_equal((uint32_t)m->hash[at], (uint32_t)hash);
        seen[at] = true;
    }
    for (size_t i = 0; i < ITEMS; i++)
        assert_int_equal(seen[i], m->there[i] && (uint32_t)m->hash[i] == (uint32_t)hash);
}

static void step(crn_index *x, model *m, crn_rng *rng)
{
    const size_t i = crn_rng_below(rng, ITEMS), k = crn_rng_below(rng, ITEMS);
    const uint64_t hash = crn_rng_below(rng, 64); /* neighbours, so that runs of slots are long */
    if (!m->there[i]) {
        assert_ok(crn_index_add(x, hash, i));
        m->there[i] = true;
        m->hash[i] = hash;
    } else if (!m->there[k]) {
        crn_index_move(x, m->hash[i], i, k);
        m->there[k] = true;
        m->hash[k] = m->hash[i];
        m->there[i] = false;
    } else {
        crn_index_remove(x, m->hash[i], i);
        m->there[i] = false;
    }
}

static void test_against_a_list(void **state)
{
    (void)state;
    crn_index x = {0};
    model m = {0};
    crn_rng rng = crn_rng_of(test_seed(), 0);
    for (int i = 0; i < STEPS; i++) {
        step(&x, &m, &rng);
        if (i % 16 == 0)
            check(&x, &m, crn_rng_below(&rng, 64));
    }
    crn_index_clear(&x);
    memset(m.there, 0, sizeof m.there);
    check(&x, &m, 1);
    crn_index_done(&x);
    check(&x, &m, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_a_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
