/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Folding against the plain sequence: whatever a program does, expansion gives it back.
 *
 * NEEDS: random123
 */
#include "harness/harness.h"

#include "tracefmt/tracefmt.h"

typedef CRN_VEC(uint32_t) places;

/* Expand a fold as of now. */
typedef struct expansion {
    const crn_fold *f;
    crn_seq *count;
    crn_seq_iter *it;
    places out;
} expansion;

static void expand(expansion *x, uint32_t symbol)
{
    int64_t n;
    const crn_fold_symbol *s = &x->f->symbol.at[symbol];
    assert_true(crn_seq_next(&x->it[symbol], &n));
    for (int64_t i = 0; i < n; i++) {
        if (s->nbody == 0)
            assert_ok(crn_vec_push(&x->out, symbol));
        for (uint32_t k = 0; k < s->nbody; k++)
            expand(x, s->body[k]);
    }
}

static size_t check(const crn_fold *f, const places *in)
{
    uint32_t *root;
    size_t n, symbols = f->symbol.n;
    uint64_t reads;
    expansion x = {.f = f};
    assert_ok(crn_alloc(&x.count, symbols));
    assert_ok(crn_alloc(&x.it, symbols));
    for (uint32_t i = 0; i < symbols; i++) {
        assert_ok(crn_fold_count(f, i, &x.count[i], &reads));
        crn_seq_iter_init(&x.it[i], &x.count[i]);
    }
    assert_ok(crn_fold_root(f, &root, &n));
    for (size_t i = 0; i < n; i++)
        expand(&x, root[i]);
    assert_int_equal(x.out.n, in->n);
    for (size_t i = 0; i < in->n; i++)
        assert_int_equal(x.out.at[i], in->at[i]);
    for (uint32_t i = 0; i < symbols; i++)
        crn_seq_done(&x.count[i]);
    free(x.count);
    free(x.it);
    free(root);
    crn_vec_done(&x.out);
    return n;
}

typedef struct fixture {
    crn_fold f;
    places in;
    uint32_t place[64];
} fixture;

static void begin(fixture *x, int nplaces)
{
    memset(x, 0, sizeof *x);
    assert_ok(crn_fold_init(&x->f));
    for (int i = 0; i < nplaces; i++)
        assert_ok(crn_fold_new_place(&x->f, &x->place[i]));
}

static void event(fixture *x, int place)
{
    crn_fold_event(&x->f, x->place[place]);
    assert_ok(crn_vec_push(&x->in, x->place[place]));
}

static void end(fixture *x)
{
    crn_fold_done(&x->f);
    crn_vec_done(&x->in);
}

static void test_nested_loops_become_one_symbol(void **state)
{
    (void)state;
    fixture x;
    begin(&x, 6);
    event(&x, 5);
    for (int i = 0; i < 20; i++) {
        for (int j = 0; j < 5; j++) {
            event(&x, 0);
            event(&x, 1);
            event(&x, 2);
        }
        event(&x, 3);
    }
    event(&x, 4);
    assert_int_equal(check(&x.f, &x.in), 3); /* before, the loop, after */
    end(&x);
}

static void test_counts_may_vary_and_vanish(void **state)
{
    (void)state;
    fixture x;
    crn_rng r = crn_rng_of(test_seed(), 1);
    begin(&x, 5);
    for (int step = 0; step < 400; step++) {
        uint64_t n = crn_rng_below(&r, 4);
        for (uint64_t i = 0; i < n; i++)
            event(&x, 0);
        for (uint64_t i = 0; i < n; i++) {
            event(&x, 1);
            event(&x, 2);
        }
        event(&x, 3);
        event(&x, 4);
    }
    assert_in_range(check(&x.f, &x.in), 1, 20);
    end(&x);
}

/* A random program: a tree of loops over places, some with conditions and varying counts. */
typedef struct node {
    int place; /* or -1: a loop */
    int turns, spread, chance;
    int nchildren;
    struct node *child[5];
} node;

static node *random_node(crn_rng *r, int depth, int nplaces)
{
    node *n;
    assert_ok(crn_alloc(&n, 1));
    n->place =
        depth == 0 || crn_rng_below(r, 3) == 0 ? (int)crn_rng_below(r, (uint64_t)nplaces) : -1;
    n->turns = (int)crn_rng_below(r, 6);
    n->spread = crn_rng_below(r, 3) == 0 ? 3 : 1;
    n->chance = crn_rng_below(r, 4) == 0 ? 2 : 1;
    if (n->place < 0) {
        n->nchildren = 1 + (int)crn_rng_below(r, 5);
        for (int i = 0; i < n->nchildren; i++)
            n->child[i] = random_node(r, depth - 1, nplaces);
    }
    return n;
}

static void free_node(node *n)
{
    for (int i = 0; i < n->nchildren; i++)
        free_node(n->child[i]);
    free(n);
}

static void run(fixture *x, const node *n, crn_rng *r)
{
    if (x->in.n > 20000 || crn_rng_below(r, (uint64_t)n->chance) != 0)
        return;
    if (n->place >= 0) {
        event(x, n->place);
        return;
    }
    int turns = n->turns + (int)crn_rng_below(r, (uint64_t)n->spread);
    for (int t = 0; t < turns; t++)
        for (int i = 0; i < n->nchildren; i++)
            run(x, n->child[i], r);
}

static void test_random_programs_come_back(void **state)
{
    (void)state;
    crn_rng r = crn_rng_of(test_seed(), 2);
    for (int i = 0; i < 400; i++) {
        fixture x;
        int nplaces = 1 + (int)crn_rng_below(&r, 20);
        node *program = random_node(&r, 4, nplaces);
        begin(&x, nplaces);
        for (int k = 0; k < 3; k++) {
            run(&x, program, &r);
            check(&x.f, &x.in); /* looking changes nothing */
        }
        check(&x.f, &x.in);
        free_node(program);
        end(&x);
    }
}

static void test_noise_comes_back(void **state)
{
    (void)state;
    crn_rng r = crn_rng_of(test_seed(), 3);
    for (int nplaces = 1; nplaces < 12; nplaces++) {
        fixture x;
        begin(&x, nplaces);
        for (int i = 0; i < 5000; i++) {
            event(&x, (int)crn_rng_below(&r, (uint64_t)nplaces));
            if (i % 617 == 0)
                check(&x.f, &x.in);
        }
        check(&x.f, &x.in);
        end(&x);
    }
}

/* As crn_build and crn_walk see it: each letter is a place. */
static void expect_walked(const char *letters)
{
    crn_tables tables;
    crn_build build, *lane = &build;
    crn_trace *t;
    crn_walk *w;
    crn_traced_event e;
    size_t n = 0;
    assert_ok(crn_tables_init(&tables));
    assert_ok(crn_build_init(&build, 0, 100, false));
    for (const char *c = letters; *c; c++) {
        crn_record r = {.call = CRN_CALL_MPI_Finalize};
        assert_ok(crn_tables_site(&tables, (crn_site){.off = (uint64_t)*c}, &r.site));
        crn_build_add(&build, &r);
    }
    assert_ok(crn_build_trace(&lane, 1, &tables, 0, 1, &t));
    assert_ok(crn_walk_open(t, 0, 0, 0, &w));
    for (; crn_walk_next(w, &e); n++)
        assert_int_equal(t->site[e.place->site].off, letters[n]);
    assert_int_equal(n, strlen(letters));
    crn_walk_close(w);
    crn_trace_free(t);
    crn_build_done(&build);
    crn_tables_done(&tables);
}

static void test_turns_without_events_are_walked(void **state)
{
    (void)state;
    expect_walked("vf_emf_em_oeoe_e_e_oeoe_e_efo");
    expect_walked("vkbokbokekbmogmogkbobokekbmomokbokbokek");
}

static void test_ten_million_events_take_no_more_memory(void **state)
{
    (void)state;
    crn_fold f;
    uint32_t place[8];
    assert_ok(crn_fold_init(&f));
    for (int i = 0; i < 8; i++)
        assert_ok(crn_fold_new_place(&f, &place[i]));
    for (int step = 0; step < 500000; step++) {
        for (int i = 0; i < 9; i++)
            for (int k = 0; k < 2; k++)
                crn_fold_event(&f, place[k]);
        for (int k = 2; k < 4 + step % 4; k++)
            crn_fold_event(&f, place[k]);
    }
    assert_in_range(crn_fold_nbytes(&f), 1, 300000);
    crn_fold_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nested_loops_become_one_symbol),
        cmocka_unit_test(test_counts_may_vary_and_vanish),
        cmocka_unit_test(test_random_programs_come_back),
        cmocka_unit_test(test_noise_comes_back),
        cmocka_unit_test(test_turns_without_events_are_walked),
        cmocka_unit_test(test_ten_million_events_take_no_more_memory),
    };
    return cmocka_run_group_tests_name("tracefmt_fold", tests, NULL, NULL);
}
