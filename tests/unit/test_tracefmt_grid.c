/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Peers on grids: the arithmetic; tori of all sorts whose ranks become alike and come back exactly;
 * and what must not be taken for a torus.
 *
 * NEEDS: zstd random123
 */
#include "harness/small_trace.h"

enum { TURNS = 20, NEIGHBOURS = 27, COMM = 2 };

/* How the program sees its ranks. */
typedef struct shape {
    const char *name;
    int dim[3];      /* the last one runs fastest; unused ones are 1 */
    bool open[3];    /* no neighbours beyond the edge: MPI_PROC_NULL */
    bool corners;    /* all neighbours, not only those along the axes */
    bool one_site;   /* all messages from one place of the program */
    bool own_comm;   /* on a communicator of its own, ranks in reverse */
    bool two_orders; /* the communicator is made anew, ranks in order, under the same number */
} shape;

static const shape *now; /* the program has no argument of its own */

static int64_t wrap(const shape *s, int axis, int64_t at)
{
    int64_t n = s->dim[axis];
    if (s->open[axis] && (at < 0 || at >= n))
        return -1;
    return (at + n) % n;
}

/* The neighbours of a rank, in the order in which it sends to them. */
static size_t neighbours(const shape *s, int64_t rank, int64_t *peer)
{
    size_t n = 0;
    int64_t at[3] = {rank / (s->dim[1] * s->dim[2]), rank / s->dim[2] % s->dim[1],
                     rank % s->dim[2]};
    for (int step = 0; step < NEIGHBOURS; step++) {
        int by[3] = {step / 9 - 1, step / 3 % 3 - 1, step % 3 - 1};
        int axes = abs(by[0]) + abs(by[1]) + abs(by[2]);
        bool flat = (by[0] && s->dim[0] == 1) || (by[1] && s->dim[1] == 1);
        if (axes == 0 || (axes > 1 && !s->corners) || flat)
            continue;
        int64_t x = wrap(s, 0, at[0] + by[0]), y = wrap(s, 1, at[1] + by[1]);
        int64_t z = wrap(s, 2, at[2] + by[2]);
        peer[n++] = x < 0 || y < 0 || z < 0 ? CRN_PEER_NULL : (x * s->dim[1] + y) * s->dim[2] + z;
    }
    return n;
}

static void make_comm(small_rank *x, bool reverse)
{
    int64_t world[64];
    for (uint32_t i = 0; i < x->nranks; i++)
        world[i] = reverse ? x->nranks - 1 - i : i;
    small_event_list(x, CRN_CALL_MPI_Comm_split, 5, (int64_t[]){0, 0, 0, COMM, 0}, 4, world,
                     x->nranks);
}

static void stencil(small_rank *x, int64_t comm)
{
    int64_t peer[NEIGHBOURS];
    size_t n = neighbours(now, x->rank, peer);
    for (int turn = 0; turn < TURNS; turn++) {
        for (size_t i = 0; i < n; i++)
            small_event(x, CRN_CALL_MPI_Send, now->one_site ? 10 : 10 + (uint32_t)i,
                        (int64_t[]){50, 0, peer[i], 7, comm});
        small_event(x, CRN_CALL_MPI_Barrier, 9, (int64_t[]){comm});
    }
}

static void program(small_rank *x)
{
    uint32_t self = x->rank;
    bool reverse = now->own_comm;
    small_event(x, CRN_CALL_MPI_Init, 1, NULL);
    for (int round = 0; round < (now->two_orders ? 2 : 1); round++, reverse = !reverse) {
        if (now->own_comm)
            make_comm(x, reverse);
        x->rank = reverse ? x->nranks - 1 - self : self;
        stencil(x, now->own_comm ? COMM : CRN_COMM_WORLD);
        x->rank = self;
        if (now->own_comm)
            small_event(x, CRN_CALL_MPI_Comm_free, 6, (int64_t[]){COMM});
    }
    small_event(x, CRN_CALL_MPI_Finalize, 2, NULL);
}

static crn_trace *trace_of(const shape *s)
{
    uint32_t nranks = (uint32_t)(s->dim[0] * s->dim[1] * s->dim[2]);
    now = s;
    crn_trace *all = small_record(0, nranks, 100, false, program);
    for (uint32_t r = 1; r < nranks; r++)
        assert_ok(crn_trace_merge(all, small_record(r, nranks, 100, false, program)));
    assert_ok(crn_trace_finish(all));
    return all;
}

/* To bytes and back; how many. */
static size_t through_bytes(crn_trace **t)
{
    crn_buf b = {0};
    assert_ok(crn_trace_encode(*t, CRN_TRACE_BEST, &b));
    crn_trace_free(*t);
    assert_ok(crn_trace_decode(b.at, b.n, t));
    size_t n = b.n;
    crn_buf_done(&b);
    return n;
}

static void expect_rank(const crn_trace *t, const shape *s, uint32_t rank)
{
    crn_walk *w;
    crn_traced_event e;
    int64_t peer[NEIGHBOURS], self = s->own_comm ? t->nranks - 1 - rank : rank;
    size_t n = neighbours(s, self, peer), sent = 0, all = TURNS * n * (s->two_orders ? 2 : 1);
    assert_ok(crn_walk_open(t, 0, rank, 0, &w));
    while (crn_walk_next(w, &e)) {
        if (e.place->call != CRN_CALL_MPI_Send)
            continue;
        if (sent == TURNS * n)
            neighbours(s, rank, peer);
        assert_int_equal(e.value[2], peer[sent++ % n]);
    }
    crn_walk_close(w);
    assert_int_equal(sent, all);
}

/* Columns of peers in which not all ranks are alike. */
static size_t different(const crn_trace *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->lane[0].nsymbols; i++) {
        const crn_symbol *s = &t->lane[0].symbol[i];
        for (size_t k = 1; k < s->ncolumns; k++) {
            const crn_column *c = &s->column[k];
            n += crn_symbol_kind(s, k) == CRN_KIND_PEER && (c->ngroups > 1 || c->group->base.n > 0);
        }
    }
    return n;
}

static const shape tori[] = {
    {.name = "line", .dim = {1, 1, 6}},
    {.name = "2-D", .dim = {1, 4, 6}},
    {.name = "2-D, one site", .dim = {1, 6, 4}, .one_site = true},
    {.name = "2-D, one site, corners", .dim = {1, 5, 7}, .one_site = true, .corners = true},
    {.name = "3-D", .dim = {3, 4, 5}},
    {.name = "3-D, one site", .dim = {4, 2, 6}, .one_site = true},
    {.name = "3-D, corners, on a communicator",
     .dim = {3, 3, 4},
     .corners = true,
     .own_comm = true},
    {.name = "2-D, on a communicator, one site",
     .dim = {1, 8, 8},
     .own_comm = true,
     .one_site = true},
};

static void test_tori_have_ranks_alike(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof tori / sizeof *tori; i++) {
        crn_trace *t = trace_of(&tori[i]);
        through_bytes(&t);
        if (different(t) > 0)
            fail_msg("%s: %zu columns of peers differ between ranks", tori[i].name, different(t));
        for (uint32_t r = 0; r < t->nranks; r++)
            expect_rank(t, &tori[i], r);
        crn_trace_free(t);
    }
}

static const shape others[] = {
    {.name = "open", .dim = {1, 4, 6}, .open = {0, 1, 1}},
    {.name = "tube", .dim = {1, 4, 6}, .open = {0, 1, 0}, .one_site = true},
    {.name = "open, 3-D", .dim = {3, 4, 3}, .open = {1, 1, 1}, .one_site = true, .corners = true},
    {.name = "a number for two communicators",
     .dim = {1, 4, 4},
     .own_comm = true,
     .two_orders = true},
    {.name = "prime", .dim = {1, 1, 13}, .corners = true},
};

static void test_others_come_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        crn_trace *t = trace_of(&others[i]);
        through_bytes(&t);
        for (uint32_t r = 0; r < t->nranks; r++)
            expect_rank(t, &others[i], r);
        crn_trace_free(t);
    }
}

/* The bar: within 1.2 times from 4 to 64 ranks, or from 8 where a cube needs them. */
static void test_size_does_not_grow(void **state)
{
    (void)state;
    static const shape pairs[][2] = {
        {{.name = "2-D", .dim = {1, 2, 2}}, {.name = "2-D", .dim = {1, 8, 8}}},
        {{.name = "one site", .dim = {1, 2, 2}, .one_site = true},
         {.name = "one site", .dim = {1, 8, 8}, .one_site = true}},
        {{.name = "3-D", .dim = {2, 2, 2}}, {.name = "3-D", .dim = {4, 4, 4}}},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        crn_trace *few = trace_of(&pairs[i][0]), *many = trace_of(&pairs[i][1]);
        size_t small = through_bytes(&few), large = through_bytes(&many);
        if (large * 10 > small * 12)
            fail_msg("%s: %zu bytes for few ranks, %zu for 64", pairs[i][0].name, small, large);
        crn_trace_free(few);
        crn_trace_free(many);
    }
}

static void test_shifts_and_peers(void **state)
{
    (void)state;
    crn_rng r = crn_rng_of(test_seed(), 1);
    for (int round = 0; round < 200; round++) {
        crn_grid g = {.ndims = 1 + (uint32_t)crn_rng_below(&r, CRN_GRID_DIMS)};
        for (uint32_t i = 0; i < g.ndims; i++)
            g.dim[i] = 1 + (uint32_t)crn_rng_below(&r, 7);
        int64_t size = crn_grid_size(&g), rank = (int64_t)crn_rng_below(&r, (uint64_t)size);
        int64_t peer = (int64_t)crn_rng_below(&r, (uint64_t)size);
        int64_t shift = crn_grid_shift(&g, rank, peer);
        assert_true(shift >= 0 && shift < size);
        assert_int_equal(crn_grid_peer(&g, rank, shift), peer);
        assert_int_equal(crn_grid_shift(&g, rank, rank), 0);
    }
    crn_grid line = {.ndims = 1, .dim = {10}}, cube = {.ndims = 3, .dim = {2, 2, 2}};
    assert_int_equal(crn_grid_shift(&line, 7, 2), 5); /* plain relative */
    assert_int_equal(crn_grid_shift(&cube, 5, 3), 5 ^ 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shifts_and_peers),
        cmocka_unit_test(test_tori_have_ranks_alike),
        cmocka_unit_test(test_others_come_back),
        cmocka_unit_test(test_size_does_not_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
