/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a mark keeps, for 10,000 random programs with loops, branches on values and boxes, against
 * an oracle that looks at every element's future; a restart with all else poisoned ends as the
 * undisturbed run does; and OPS's rule never keeps less.
 *
 * NEEDS: random123
 */
#include "harness/harness.h"

#include <inttypes.h>

#include "region/region_decide.h"

enum { NPROGRAMS = 10000, VARS = 5, SITES = 6, ACCESSES = 4, OPS = 64, REGIONS = 120, CELLS = 125 };

typedef enum op_kind { OP_REGION, OP_VALUE, OP_UNLESS, OP_LOOP, OP_AGAIN } op_kind;

typedef struct op {
    op_kind kind;
    uint32_t n; /* site; where to go on if the value is even; how often; where the loop began */
} op;

typedef struct program {
    uint32_t nvars, nsites, nops;
    crn_box whole[VARS];
    crn_access access[SITES][ACCESSES];
    size_t naccesses[SITES];
    uint64_t touched[SITES];
    op ops[OPS];
    uint64_t ninit; /* regions of the initialisation phase */
    uint64_t limit; /* of the look-ahead, in regions */
    uint64_t seed;
} program;

/* --- making programs -------------------------------------------------------------------------- */

static void make_access(const program *p, crn_rng *rng, crn_access *a)
{
    const uint64_t how = crn_rng_below(rng, 3);
    a->var = (uint32_t)crn_rng_below(rng, p->nvars);
    a->reads = how != 0;
    a->writes = how != 1;
    a->box = p->whole[a->var];
    a->all = crn_rng_below(rng, 2);
    for (uint32_t d = 0; !a->all && d < a->box.ndims; d++) {
        const uint64_t n = a->box.hi[d];
        a->box.lo[d] = crn_rng_below(rng, n);
        a->box.hi[d] = a->box.lo[d] + 1 + crn_rng_below(rng, n - a->box.lo[d]);
    }
}

static void make_ops(program *p, crn_rng *rng, unsigned depth)
{
    const uint64_t n = 1 + crn_rng_below(rng, 4);
    for (uint64_t i = 0; i < n && p->nops + 4 < OPS; i++) {
        const uint64_t what = crn_rng_below(rng, depth < 3 ? 6 : 3);
        if (what < 3) {
            p->ops[p->nops++] = (op){OP_REGION, (uint32_t)crn_rng_below(rng, p->nsites)};
        } else if (what == 3) {
            p->ops[p->nops++] = (op){OP_VALUE, 0};
        } else {
            const uint32_t at = p->nops++;
            p->ops[at] = (op){what == 4 ? OP_UNLESS : OP_LOOP, 1 + (uint32_t)crn_rng_below(rng, 5)};
            make_ops(p, rng, depth + 1);
            if (what == 4)
                p->ops[at].n = p->nops;
            else
                p->ops[p->nops++] = (op){OP_AGAIN, at};
        }
    }
}

static program make_program(uint64_t seed)
{
    crn_rng rng = crn_rng_of(test_seed(), seed);
    program p = {.seed = seed};
    p.nvars = 1 + (uint32_t)crn_rng_below(&rng, VARS);
    p.nsites = 1 + (uint32_t)crn_rng_below(&rng, SITES);
    for (uint32_t v = 0; v < p.nvars; v++) {
        p.whole[v].ndims = 1 + (uint32_t)crn_rng_below(&rng, 3);
        for (uint32_t d = 0; d < p.whole[v].ndims; d++)
            p.whole[v].hi[d] = 1 + crn_rng_below(&rng, 5);
    }
    for (uint32_t s = 0; s < p.nsites; s++) {
        p.naccesses[s] = crn_rng_below(&rng, ACCESSES + 1);
        for (size_t i = 0; i < p.naccesses[s]; i++) {
            make_access(&p, &rng, &p.access[s][i]);
            crn_bit_set(&p.touched[s], p.access[s][i].var);
        }
    }
    p.ops[p.nops++] = (op){OP_LOOP, 2 + (uint32_t)crn_rng_below(&rng, 20)};
    make_ops(&p, &rng, 0);
    p.ops[p.nops++] = (op){OP_AGAIN, 0};
    p.ninit = crn_rng_below(&rng, 5);
    p.limit = 1 + crn_rng_below(&rng, 40);
    return p;
}

/* --- running them ----------------------------------------------------------------------------- */

typedef struct machine {
    const program *p;
    uint64_t cell[VARS][CELLS];
    uint64_t result; /* of the last region that read something */
    uint64_t count;  /* regions met */
    uint32_t site[REGIONS];
    CRN_VEC(uint64_t) log; /* values */
    uint64_t nvalues;      /* handed out */
    uint64_t resume;       /* the region that a restart goes on from; 0: not a restart */
    void (*before)(struct machine *m, uint32_t site);
    struct look *look;
} machine;

static uint64_t mix(uint64_t a, uint64_t b)
{
    const uint64_t v[] = {a, b};
    return crn_hash_bytes(v, sizeof v);
}

typedef void cell_fn(machine *m, uint32_t var, size_t i);

static size_t number_of(const crn_box *whole, const uint64_t *index)
{
    size_t n = 0;
    for (uint32_t d = 0; d < whole->ndims; d++)
        n = n * whole->hi[d] + index[d];
    return n;
}

static bool next(const crn_box *b, uint64_t *index)
{
    for (uint32_t d = b->ndims; d-- > 0;) {
        if (++index[d] < b->hi[d])
            return true;
        index[d] = b->lo[d];
    }
    return false;
}

static void each_cell(machine *m, uint32_t var, const crn_box *b, cell_fn *fn)
{
    uint64_t index[CRN_DIMS_MAX];
    memcpy(index, b->lo, sizeof index);
    do
        fn(m, var, number_of(&m->p->whole[var], index));
    while (next(b, index));
}

static void read_cell(machine *m, uint32_t var, size_t i)
{
    m->result = mix(m->result, m->cell[var][i]);
}

static void write_cell(machine *m, uint32_t var, size_t i)
{
    m->cell[var][i] = mix(m->result, i + 1000 * var);
}

static void update_cell(machine *m, uint32_t var, size_t i)
{
    m->cell[var][i] = mix(m->result, m->cell[var][i]);
}

static void run_body(machine *m, uint32_t site)
{
    const crn_access *a = m->p->access[site];
    m->result = site; /* what skipped regions would have found must not matter */
    for (size_t i = 0; i < m->p->naccesses[site]; i++)
        if (a[i].reads)
            each_cell(m, a[i].var, &a[i].box, read_cell);
    for (size_t i = 0; i < m->p->naccesses[site]; i++)
        if (a[i].writes)
            each_cell(m, a[i].var, &a[i].box, a[i].reads ? update_cell : write_cell);
}

static bool is_skipped(const machine *m)
{
    return m->count >= m->p->ninit && m->count < m->resume;
}

static void run_region(machine *m, uint32_t site)
{
    m->site[m->count] = site;
    if (m->before)
        m->before(m, site);
    if (!is_skipped(m))
        run_body(m, site);
    m->count++;
}

/* The result, from the log where it was not computed. */
static uint64_t take_value(machine *m)
{
    if (m->resume > 0 && m->nvalues < m->log.n && m->count <= m->resume)
        return m->log.at[m->nvalues++];
    m->nvalues++;
    if (m->resume == 0)
        assert_ok(crn_vec_push(&m->log, m->result));
    return m->result;
}

static void run(machine *m)
{
    uint64_t value = 0;
    uint32_t left[OPS] = {0};
    for (uint32_t at = 0; at < m->p->nops && m->count < REGIONS; at++) {
        const op *o = &m->p->ops[at];
        if (o->kind == OP_REGION)
            run_region(m, o->n);
        else if (o->kind == OP_VALUE)
            value = take_value(m);
        else if (o->kind == OP_UNLESS && value % 2 == 0)
            at = o->n - 1;
        else if (o->kind == OP_LOOP)
            left[at] = o->n;
        else if (o->kind == OP_AGAIN && --left[o->n] > 0)
            at = o->n;
    }
}

static machine make_machine(const program *p)
{
    machine m = {.p = p};
    for (uint32_t v = 0; v < VARS; v++)
        for (size_t i = 0; i < CELLS; i++)
            m.cell[v][i] = mix(p->seed, i + 1000 * v);
    return m;
}

/* --- deciding --------------------------------------------------------------------------------- */

typedef struct look {
    uint64_t place;
    crn_region_vars vars;
    crn_decision decision;
    bool on;
    machine *m;
    uint64_t saved[VARS][CELLS], at_place[VARS][CELLS];
    bool kept[VARS][CELLS];
} look;

static void save_cell(machine *m, uint32_t var, size_t i)
{
    look *l = m->look;
    assert_false(l->kept[var][i]);
    l->kept[var][i] = true;
    l->saved[var][i] = m->cell[var][i];
}

static cairn_status keep(void *arg, size_t var, const crn_boxes *boxes)
{
    look *l = arg;
    for (size_t i = 0; i < boxes->n; i++)
        each_cell(l->m, (uint32_t)var, &boxes->at[i], save_cell);
    return CAIRN_OK;
}

static void end(look *l)
{
    if (l->on)
        assert_ok(crn_decision_end(&l->decision, &l->vars, keep, l));
    l->on = false;
}

static void before_region(machine *m, uint32_t site)
{
    look *l = m->look;
    const crn_accesses a = {m->p->access[site], m->p->naccesses[site], &m->p->touched[site]};
    if (m->count == l->place) {
        assert_ok(crn_decision_begin(&l->decision, &l->vars, keep, l));
        memcpy(l->at_place, m->cell, sizeof l->at_place);
        l->on = true;
    }
    if (l->on && m->count == l->place + m->p->limit)
        end(l);
    if (l->on)
        assert_ok(crn_decision_step(&l->decision, &l->vars, &a, keep, l));
    if (m->count >= m->p->ninit)
        assert_ok(crn_modify(&l->vars, &a));
}

static void look_init(look *l, machine *m, uint64_t place)
{
    memset(l, 0, sizeof *l);
    l->m = m;
    l->place = place;
    for (uint32_t v = 0; v < m->p->nvars; v++) {
        crn_region_var var;
        crn_region_var_init(&var, &m->p->whole[v], sizeof(uint64_t));
        assert_ok(crn_vec_push(&l->vars, var));
    }
    assert_ok(crn_decision_init(&l->decision, l->vars.n));
    m->look = l;
    m->before = before_region;
}

static void look_done(look *l)
{
    for (size_t i = 0; i < l->vars.n; i++)
        crn_region_var_done(&l->vars.at[i]);
    crn_vec_done(&l->vars);
    crn_decision_done(&l->decision);
}

/* --- the oracle ------------------------------------------------------------------------------- */

static bool covers(const crn_box *b, const uint64_t *index)
{
    for (uint32_t d = 0; d < b->ndims; d++)
        if (index[d] < b->lo[d] || index[d] >= b->hi[d])
            return false;
    return true;
}

/* Does a region of this site read, or write, an element? */
static bool touches(const program *p, uint32_t site, uint32_t var, const uint64_t *index,
                    bool reads)
{
    for (size_t i = 0; i < p->naccesses[site]; i++) {
        const crn_access *a = &p->access[site][i];
        if (a->var == var && (reads ? a->reads : a->writes) && covers(&a->box, index))
            return true;
    }
    return false;
}

static bool is_modified(const machine *m, uint64_t place, uint32_t var, const uint64_t *index)
{
    for (uint64_t i = m->p->ninit; i < place; i++)
        if (touches(m->p, m->site[i], var, index, false))
            return true;
    return false;
}

/* The future of one element, which all of it is known of. */
static bool is_needed(const machine *m, uint64_t place, uint32_t var, const uint64_t *index)
{
    if (!is_modified(m, place, var, index))
        return false;
    for (uint64_t i = place; i < m->count && i < place + m->p->limit; i++) {
        if (touches(m->p, m->site[i], var, index, true))
            return true;
        if (touches(m->p, m->site[i], var, index, false))
            return false;
    }
    return true;
}

/* OPS: the first loop that touches a variable decides all of it. */
static bool ops_keeps(const machine *m, uint64_t place, uint32_t var, const uint64_t *index)
{
    const program *p = m->p;
    for (uint64_t i = place; i < m->count && i < place + p->limit; i++) {
        const uint32_t site = m->site[i];
        bool met = false, reads = false;
        for (size_t k = 0; k < p->naccesses[site]; k++)
            if (p->access[site][k].var == var) {
                met = true;
                reads = reads || p->access[site][k].reads;
            }
        if (met)
            return reads || !touches(p, site, var, index, false);
    }
    return true;
}

static void check_var(const look *l, uint32_t var)
{
    const machine *m = l->m;
    const crn_box *whole = &m->p->whole[var];
    uint64_t index[CRN_DIMS_MAX] = {0};
    do {
        const size_t i = number_of(whole, index);
        if (l->kept[var][i] != is_needed(m, l->place, var, index))
            fail_msg("program %" PRIu64 ", place %" PRIu64 ": element %zu of variable %u is %s",
                     m->p->seed, l->place, i, var, l->kept[var][i] ? "kept" : "missing");
        if (l->kept[var][i]) {
            assert_true(ops_keeps(m, l->place, var, index));
            assert_int_equal(l->saved[var][i], l->at_place[var][i]);
        }
    } while (next(whole, index));
}

/* --- a restart -------------------------------------------------------------------------------- */

static void restore(machine *m, uint32_t site)
{
    const look *l = m->look;
    (void)site;
    if (m->count != l->place)
        return;
    for (uint32_t v = 0; v < m->p->nvars; v++) {
        uint64_t index[CRN_DIMS_MAX] = {0};
        do {
            const size_t i = number_of(&m->p->whole[v], index);
            if (l->kept[v][i])
                m->cell[v][i] = l->saved[v][i];
            else if (is_modified(l->m, l->place, v, index))
                m->cell[v][i] = 0xDEADDEADDEADDEAD;
        } while (next(&m->p->whole[v], index));
    }
}

static void check_restart(look *l)
{
    machine m = make_machine(l->m->p);
    m.resume = l->place;
    m.log.at = l->m->log.at;
    m.log.n = l->m->log.n;
    m.before = restore;
    m.look = l;
    run(&m);
    assert_int_equal(m.count, l->m->count);
    assert_memory_equal(m.site, l->m->site, m.count * sizeof *m.site);
    for (uint32_t v = 0; v < m.p->nvars; v++)
        assert_memory_equal(m.cell[v], l->m->cell[v],
                            crn_box_volume(&m.p->whole[v]) * sizeof m.cell[v][0]);
}

/* How many regions does it run? Needed to choose a place among them. */
static uint64_t count_regions(const program *p)
{
    machine m = make_machine(p);
    run(&m);
    crn_vec_done(&m.log);
    return m.count;
}

static void test_random_programs(void **state)
{
    static look l;
    uint64_t nlooked = 0;
    (void)state;
    for (uint64_t k = 0; k < NPROGRAMS; k++) {
        const program p = make_program(k);
        crn_rng rng = crn_rng_of(test_seed() + 1, k);
        const uint64_t n = count_regions(&p);
        if (n <= p.ninit)
            continue;
        machine m = make_machine(&p);
        look_init(&l, &m, p.ninit + crn_rng_below(&rng, n - p.ninit));
        run(&m);
        end(&l);
        for (uint32_t v = 0; v < p.nvars; v++)
            check_var(&l, v);
        if (l.place > 0)
            check_restart(&l);
        look_done(&l);
        crn_vec_done(&m.log);
        nlooked++;
    }
    assert_true(nlooked > NPROGRAMS / 2);
}

/* --- by hand ---------------------------------------------------------------------------------- */

typedef struct tally {
    uint64_t kept;
} tally;

static cairn_status count_kept(void *arg, size_t var, const crn_boxes *boxes)
{
    tally *t = arg;
    (void)var;
    t->kept += crn_boxes_volume(boxes);
    return CAIRN_OK;
}

static void one_var(crn_region_vars *vars, crn_decision *d, uint64_t n)
{
    const crn_box whole = {.ndims = 2, .hi = {n, n}};
    crn_region_var v;
    crn_region_var_init(&v, &whole, 8);
    assert_ok(crn_vec_push(vars, v));
    assert_ok(crn_decision_init(d, 1));
}

static void one_done(crn_region_vars *vars, crn_decision *d)
{
    crn_region_var_done(&vars->at[0]);
    crn_vec_done(vars);
    crn_decision_done(d);
}

/* Writing every other row leaves more boxes than are tracked: the rest is kept then, as it is. */
static void test_too_many_boxes(void **state)
{
    crn_region_vars vars = {0};
    crn_decision d;
    tally t = {0};
    const uint64_t touched = 1, n = 4 * CRN_REGION_FRAGMENTS;
    (void)state;
    one_var(&vars, &d, n);
    crn_access all = {.writes = true, .all = true, .box = vars.at[0].whole};
    const crn_accesses whole = {&all, 1, &touched};
    assert_ok(crn_modify(&vars, &whole));
    assert_ok(crn_decision_begin(&d, &vars, count_kept, &t));
    uint64_t nwritten = 0;
    for (uint64_t row = 1; row < n && !crn_decision_is_made(&d); row += 2, nwritten += n) {
        crn_access a = {.writes = true, .box = {.ndims = 2, .lo = {row, 0}, .hi = {row + 1, n}}};
        const crn_accesses one = {&a, 1, &touched};
        assert_ok(crn_decision_step(&d, &vars, &one, count_kept, &t));
    }
    assert_true(crn_decision_is_made(&d));
    assert_int_equal(t.kept + nwritten, n * n);
    one_done(&vars, &d);
}

/* What is modified in pieces that touch is soon one box again. */
static void test_pieces_join(void **state)
{
    crn_region_vars vars = {0};
    crn_decision d;
    const uint64_t touched = 1;
    (void)state;
    one_var(&vars, &d, 8);
    for (uint64_t row = 0; row < 8; row++) {
        crn_access a = {.writes = true, .box = {.ndims = 2, .lo = {row, 0}, .hi = {row + 1, 8}}};
        const crn_accesses one = {&a, 1, &touched};
        assert_ok(crn_modify(&vars, &one));
        assert_int_equal(vars.at[0].modified.n, 1);
    }
    assert_true(vars.at[0].all_modified);
    one_done(&vars, &d);
}

static void test_rules(void **state)
{
    crn_region_vars vars = {0};
    crn_decision d;
    tally t = {0};
    (void)state;
    one_var(&vars, &d, 8);
    vars.at[0].rule = CRN_KEEP_ALWAYS; /* also what nobody has modified */
    assert_ok(crn_decision_begin(&d, &vars, count_kept, &t));
    assert_int_equal(t.kept, 64);
    assert_true(crn_decision_is_made(&d));
    crn_access all = {.writes = true, .all = true, .box = vars.at[0].whole};
    const uint64_t touched = 1;
    assert_ok(crn_modify(&vars, &(crn_accesses){&all, 1, &touched}));
    vars.at[0].rule = CRN_KEEP_NEVER;
    assert_ok(crn_decision_begin(&d, &vars, count_kept, &t));
    assert_true(crn_decision_is_made(&d));
    assert_int_equal(t.kept, 64);
    one_done(&vars, &d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_programs),
        cmocka_unit_test(test_too_many_boxes),
        cmocka_unit_test(test_pieces_join),
        cmocka_unit_test(test_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
