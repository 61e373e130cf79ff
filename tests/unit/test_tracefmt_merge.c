/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Many ranks of random programs: built, written, read, merged in a tree, and walked again, each
 * rank's events must be what the rank did. Programs differ between ranks the way real ones do:
 * boundaries, rows, butterflies, data-dependent counts, a master.
 *
 * NEEDS: zstd random123
 */
#include "harness/harness.h"

#include "tracefmt/tracefmt.h"

enum { NRANKS_MAX = 40 };

typedef struct node {
    int site; /* a call; 0: a loop */
    int call;
    int who;   /* which ranks take it */
    int peer;  /* how the peer is chosen */
    int count; /* how the count is chosen */
    int turns, spread;
    int nchildren;
    struct node *child[4];
} node;

static const int calls[] = {CRN_CALL_MPI_Send,    CRN_CALL_MPI_Recv,    CRN_CALL_MPI_Allreduce,
                            CRN_CALL_MPI_Barrier, CRN_CALL_MPI_Waitall, CRN_CALL_MPI_File_open};

static node *random_node(crn_rng *r, int depth, int *sites)
{
    node *n;
    assert_ok(crn_alloc(&n, 1));
    n->who = crn_rng_below(r, 3) == 0 ? 1 + (int)crn_rng_below(r, 4) : 0;
    n->peer = (int)crn_rng_below(r, 5);
    n->count = (int)crn_rng_below(r, 4);
    n->turns = 1 + (int)crn_rng_below(r, 6);
    n->spread = crn_rng_below(r, 3) == 0 ? 3 : 1;
    if (depth == 0 || crn_rng_below(r, 3) == 0) {
        n->site = ++*sites;
        n->call = calls[crn_rng_below(r, sizeof calls / sizeof *calls)];
        return n;
    }
    n->nchildren = 1 + (int)crn_rng_below(r, 4);
    for (int i = 0; i < n->nchildren; i++)
        n->child[i] = random_node(r, depth - 1, sites);
    return n;
}

static void free_node(node *n)
{
    for (int i = 0; i < n->nchildren; i++)
        free_node(n->child[i]);
    free(n);
}

/* A rank and its plain log. */
typedef struct plain {
    uint32_t call, site, name;
    int64_t value[CRN_COLUMNS];
    int ncolumns;
    int64_t list[8];
    size_t nlist;
} plain;

typedef struct rank {
    uint32_t rank, nranks;
    crn_tables tables;
    crn_build build;
    CRN_VEC(plain) log;
    crn_rng own, common; /* what differs between ranks, and what does not */
    int step;
} rank;

static int64_t peer_of(const rank *x, int how)
{
    switch (how) {
    case 0:
        return (x->rank + 1) % x->nranks;
    case 1:
        return x->rank + 1 < x->nranks ? (int64_t)x->rank + 1 : CRN_PEER_NULL;
    case 2:
        return (x->rank ^ 1u << x->step % 3) % x->nranks;
    case 3: { /* the right and the lower neighbour on a torus, in turns */
        uint32_t width = 2 + x->nranks % 3;
        if (x->nranks % width > 0)
            return 0;
        if (x->step % 2)
            return (x->rank + width) % x->nranks;
        return x->rank - x->rank % width + (x->rank + 1) % width;
    }
    default:
        return 0;
    }
}

static int64_t count_of(rank *x, int how)
{
    switch (how) {
    case 0:
        return 100;
    case 1:
        return 1000 + 8 * x->step;
    case 2:
        return 64 * (int64_t)x->rank;
    default:
        return (int64_t)crn_rng_below(&x->own, 5);
    }
}

static void fill_point(rank *x, const node *n, crn_record *r)
{
    r->ncolumns = 5;
    r->value[0] = count_of(x, n->count);
    r->value[1] = n->site % 3 == 0 ? 1 : 0; /* datatype */
    r->value[2] = peer_of(x, n->peer);
    r->value[3] = n->site;
    r->value[4] = CRN_COMM_WORLD;
}

static void fill_open(rank *x, crn_record *r)
{
    char name[64];
    int64_t number[CRN_NAME_NUMBERS];
    int n;
    snprintf(name, sizeof name, "out/step%03d.%u", x->step, x->rank);
    assert_ok(crn_tables_pattern(&x->tables, name, number, &n, &r->name));
    r->ncolumns = 3 + n;
    r->value[0] = CRN_COMM_WORLD;
    r->value[1] = 5;
    r->value[2] = 0;
    for (int i = 0; i < n; i++)
        r->value[3 + i] = number[i];
}

static void call(rank *x, const node *n)
{
    crn_record r = {.call = (uint32_t)n->call, .comm_rank = x->rank, .comm_size = x->nranks};
    plain p = {0};
    assert_ok(
        crn_tables_site(&x->tables, (crn_site){.module = 1, .off = (uint64_t)n->site}, &r.site));
    if (n->call == CRN_CALL_MPI_Send || n->call == CRN_CALL_MPI_Recv) {
        fill_point(x, n, &r);
    } else if (n->call == CRN_CALL_MPI_Waitall) {
        p.nlist = 1 + crn_rng_below(&x->common, 3);
        for (size_t i = 0; i < p.nlist; i++) /* few lists, or more than are kept at hand */
            p.list[i] = (int64_t)i * 2 + x->rank + (n->site % 2 ? x->step : 0);
        r.ncolumns = 1;
        r.list[0] = (crn_list){p.list, p.nlist};
    } else if (n->call == CRN_CALL_MPI_File_open) {
        fill_open(x, &r);
    } else if (n->call == CRN_CALL_MPI_Barrier) {
        r.ncolumns = 1;
    } else {
        r.ncolumns = 5; /* inplace count type op comm */
        r.value[1] = count_of(x, n->count & 1);
    }
    r.start = (uint64_t)x->log.n * 100 + 1;
    r.end = r.start + 50;
    crn_build_add(&x->build, &r);
    p.call = r.call;
    p.site = (uint32_t)n->site;
    p.ncolumns = r.ncolumns;
    memcpy(p.value, r.value, sizeof p.value);
    assert_ok(crn_vec_push(&x->log, p));
}

static bool takes(const rank *x, int who)
{
    switch (who) {
    case 1:
        return x->rank > 0;
    case 2:
        return x->rank + 1 < x->nranks;
    case 3:
        return x->rank % 2 == 0;
    case 4:
        return x->rank == 0;
    default:
        return true;
    }
}

static void run(rank *x, const node *n)
{
    if (!takes(x, n->who) || x->log.n > 3000)
        return;
    if (n->site > 0) {
        call(x, n);
        return;
    }
    int turns = n->turns + (int)crn_rng_below(n->who ? &x->own : &x->common, (uint64_t)n->spread);
    for (int i = 0; i < turns; i++) {
        x->step++;
        for (int k = 0; k < n->nchildren; k++)
            run(x, n->child[k]);
    }
}

static crn_trace *through_bytes(crn_trace *t)
{
    crn_buf b = {0};
    crn_trace *copy;
    assert_ok(crn_trace_encode(t, CRN_TRACE_QUICK, &b));
    crn_trace_free(t);
    assert_ok(crn_trace_decode(b.at, b.n, &copy));
    crn_buf_done(&b);
    return copy;
}

static crn_trace *record(rank *x, uint32_t r, uint32_t nranks, const node *program, uint64_t seed,
                         uint32_t precision)
{
    crn_build *build = &x->build;
    crn_trace *t;
    uint32_t number;
    memset(x, 0, sizeof *x);
    x->rank = r;
    x->nranks = nranks;
    x->own = crn_rng_of(seed, 100 + r);
    x->common = crn_rng_of(seed, 99);
    assert_ok(crn_tables_init(&x->tables));
    assert_ok(crn_tables_string(&x->tables, "program", &number));
    for (uint32_t i = 0; i < 2; i++) /* the ranks do not agree on the numbers of datatypes */
        assert_ok(crn_tables_type(&x->tables, &(crn_type){.name = 1, .nbytes = (i + r) % 2 + 4},
                                  &number));
    assert_ok(crn_build_init(build, r, precision, true));
    run(x, program);
    assert_ok(crn_build_trace(&build, 1, &x->tables, r, nranks, &t));
    return through_bytes(t);
}

static void expect_events(const crn_trace *t, const rank *x)
{
    crn_walk *w;
    crn_traced_event e;
    assert_ok(crn_walk_open(t, 0, x->rank, 0, &w));
    for (size_t i = 0; i < x->log.n; i++) {
        const plain *p = &x->log.at[i];
        assert_true(crn_walk_next(w, &e));
        assert_int_equal(e.place->call, p->call);
        assert_int_equal(t->site[e.place->site].off, p->site);
        assert_int_equal(e.ncolumns, p->ncolumns);
        for (int k = 0; k < e.ncolumns; k++) {
            if (crn_kind_is_list(e.kind[k])) {
                assert_int_equal(e.list[k].n, p->nlist);
                assert_memory_equal(e.list[k].at, p->list, p->nlist * sizeof *p->list);
            } else if (e.kind[k] == CRN_KIND_TYPE && p->call != CRN_CALL_MPI_Allreduce) {
                uint64_t nbytes = t->type[e.value[k]].nbytes; /* the same type, by another number */
                assert_int_equal(nbytes, ((uint64_t)p->value[k] + x->rank) % 2 + 4);
            } else if (e.kind[k] != CRN_KIND_TYPE) {
                assert_int_equal(e.value[k], p->value[k]);
            }
        }
    }
    assert_false(crn_walk_next(w, &e));
    crn_walk_close(w);
}

static void expect_counts(const crn_trace *t, const rank *x)
{
    uint64_t *count, total = 0;
    const crn_lane *l = &t->lane[0];
    assert_ok(crn_alloc(&count, l->nsymbols));
    assert_ok(crn_lane_counts(t, 0, x->rank, count));
    for (size_t i = 0; i < l->nsymbols; i++) {
        if (l->symbol[i].call == CRN_CALL_NONE)
            continue;
        crn_runs runs;
        crn_site_run run;
        uint64_t n = 0;
        if (count[i] > 0 && crn_runs_init(&runs, &l->symbol[i], x->rank, count[i])) {
            while (crn_runs_next(&runs, &run))
                n += run.n;
        }
        assert_int_equal(n, count[i]);
        total += n;
    }
    assert_int_equal(total, x->log.n);
    free(count);
}

/* Merge neighbours, then neighbours of those, as the recorder does. */
static crn_trace *merge_tree(crn_trace **t, uint32_t n)
{
    for (uint32_t step = 1; step < n; step *= 2) {
        for (uint32_t i = 0; i + step < n; i += 2 * step) {
            assert_ok(crn_trace_merge(t[i], t[i + step]));
            t[i] = through_bytes(t[i]);
        }
    }
    return t[0];
}

static void test_random_programs_come_back(void **state)
{
    (void)state;
    crn_rng r = crn_rng_of(test_seed(), 1);
    for (int round = 0; round < 60; round++) {
        uint32_t nranks = 1 + (uint32_t)crn_rng_below(&r, round < 50 ? 10 : NRANKS_MAX);
        rank *x;
        crn_trace *t[NRANKS_MAX] = {0};
        int sites = 0;
        node *program = random_node(&r, 4, &sites);
        assert_ok(crn_alloc(&x, nranks));
        for (uint32_t i = 0; i < nranks; i++) {
            t[i] = record(&x[i], i, nranks, program, test_seed() + (uint64_t)round, 100);
            expect_events(t[i], &x[i]);
        }
        crn_trace *all = merge_tree(t, nranks);
        assert_ok(crn_trace_finish(all));
        all = through_bytes(all);
        for (uint32_t i = 0; i < nranks; i++) {
            expect_events(all, &x[i]);
            expect_counts(all, &x[i]);
            crn_tables_done(&x[i].tables);
            crn_build_done(&x[i].build);
            crn_vec_done(&x[i].log);
        }
        crn_trace_free(all);
        free_node(program);
        free(x);
    }
}

/* Events and elements of each site, over all ranks. */
typedef struct sums {
    double events[300], elements[300];
} sums;

static void sum_log(const rank *x, sums *s)
{
    for (size_t i = 0; i < x->log.n; i++) {
        const plain *p = &x->log.at[i];
        s->events[p->site]++;
        if (p->call == CRN_CALL_MPI_Send || p->call == CRN_CALL_MPI_Recv)
            s->elements[p->site] += (double)p->value[0];
    }
}

static double sum_run(const crn_runs *runs, const crn_site_run *run)
{
    const crn_group *g = runs->group[0];
    if (g->nhists > 0)
        return (double)run->n * crn_hist_mean(&g->hist[run->value[0]]);
    return (double)run->n *
           ((double)run->value[0] + (double)run->stride[0] * (double)(run->n - 1) / 2);
}

static void sum_trace(const crn_trace *t, uint32_t r, sums *s)
{
    const crn_lane *l = &t->lane[0];
    uint64_t *count;
    assert_ok(crn_alloc(&count, l->nsymbols));
    assert_ok(crn_lane_counts(t, 0, r, count));
    for (size_t i = 0; i < l->nsymbols; i++) {
        crn_runs runs;
        crn_site_run run;
        const crn_symbol *place = &l->symbol[i];
        uint64_t site = t->site[place->site].off;
        if (place->call == CRN_CALL_NONE)
            continue;
        s->events[site] += (double)count[i];
        if (place->call != CRN_CALL_MPI_Send && place->call != CRN_CALL_MPI_Recv)
            continue;
        if (count[i] > 0 && crn_runs_init(&runs, place, r, count[i])) {
            while (crn_runs_next(&runs, &run))
                s->elements[site] += sum_run(&runs, &run);
        }
    }
    free(count);
}

/* Every rank's walk ends, and after about as many events as there were. */
static double walk_length(const crn_trace *t, uint32_t nranks)
{
    double n = 0;
    crn_traced_event e;
    for (uint32_t i = 0; i < nranks; i++) {
        crn_walk *w;
        assert_ok(crn_walk_open(t, 0, i, 7, &w));
        for (uint64_t k = 0; crn_walk_next(w, &e); k++, n++)
            assert_true(k < 1000000);
        crn_walk_close(w);
    }
    return n;
}

static void expect_near(double a, double b, double slack)
{
    if (a > b + slack || a < b - slack)
        fail_msg("%g instead of %g", a, b);
}

static void lossy_round(const node *program, uint32_t nranks, int sites, uint64_t seed,
                        uint32_t precision)
{
    rank *x;
    crn_trace *t[NRANKS_MAX] = {0};
    sums log = {0}, trace = {0};
    double total = 0;
    assert_ok(crn_alloc(&x, nranks));
    for (uint32_t i = 0; i < nranks; i++) {
        t[i] = record(&x[i], i, nranks, program, seed, precision);
        sum_log(&x[i], &log);
        total += (double)x[i].log.n;
    }
    crn_trace *all = merge_tree(t, nranks);
    assert_ok(crn_trace_finish(all));
    all = through_bytes(all);
    for (uint32_t i = 0; i < nranks; i++)
        sum_trace(all, i, &trace);
    /*
     * A histogram hands turns out evenly to all ranks. Where only some of them take a piece of a
     * loop, the sums for that piece are off by as much as those ranks are off the mean.
     */
    double events = 0;
    for (int i = 1; i <= sites; i++) {
        events += trace.events[i];
        expect_near(trace.events[i], log.events[i], 4 * nranks + log.events[i]);
        expect_near(trace.elements[i], log.elements[i], 4000.0 * nranks + log.elements[i]);
    }
    expect_near(events, total, 4 * nranks + 0.1 * total);
    expect_near(walk_length(all, nranks), total, 200 + total);
    crn_trace_free(all);
    for (uint32_t i = 0; i < nranks; i++) {
        crn_tables_done(&x[i].tables);
        crn_build_done(&x[i].build);
        crn_vec_done(&x[i].log);
    }
    free(x);
}

static void test_lossy_traces_keep_the_sums(void **state)
{
    (void)state;
    crn_rng r = crn_rng_of(test_seed(), 3);
    for (int round = 0; round < 40; round++) {
        uint32_t nranks = 1 + (uint32_t)crn_rng_below(&r, 12);
        int sites = 0;
        node *program = random_node(&r, 4, &sites);
        lossy_round(program, nranks, sites, test_seed() + (uint64_t)round, 0);
        lossy_round(program, nranks, sites, test_seed() + (uint64_t)round, 90);
        free_node(program);
    }
}

static void test_ranks_must_ascend(void **state)
{
    (void)state;
    rank x[2];
    int sites = 0;
    crn_rng r = crn_rng_of(test_seed(), 2);
    node *program = random_node(&r, 0, &sites);
    program->who = 0;
    crn_trace *one = record(&x[1], 1, 2, program, 1, 100),
              *zero = record(&x[0], 0, 2, program, 1, 100);
    assert_fails(crn_trace_merge(one, zero), CAIRN_EINVAL, "rank 0 is to be merged after rank 1");
    crn_trace_free(one);
    for (int i = 0; i < 2; i++) {
        crn_tables_done(&x[i].tables);
        crn_build_done(&x[i].build);
        crn_vec_done(&x[i].log);
    }
    free_node(program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_programs_come_back),
        cmocka_unit_test(test_lossy_traces_keep_the_sums),
        cmocka_unit_test(test_ranks_must_ascend),
    };
    return cmocka_run_group_tests_name("tracefmt_merge", tests, NULL, NULL);
}
